"""SAGE-DP: DP-SGD on nodes with sampled neighbours, accounted for nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch_geometric.data import Data

from auditdp.accountants import reached_nodes
from gnn.models import GraphSAGE
from gnn.pipelines.degrees import bounded_out_degree
from gnn.pipelines.parts import (
    PrivateRecord,
    check_parameters,
    check_training,
    node_noise,
    settings_of,
)
from gnn.sparse import csr, is_sparse
from gnn.training import Rows, fit_private


def with_means(x: Tensor, arcs: Tensor) -> Tensor:
    """Return the mean of what each node receives, 0 where that is nothing, beside its own features, sparse CSR.

    Args:
        x: Dense or sparse, shape (nodes, features).
        arcs: (source, target), shape (2, arcs).

    Returns:
        Shape (nodes, 2·features).
    """
    x, nodes = x.cpu(), len(x)
    if is_sparse(x):
        own = sparse.csr_array(
            (x.values(), x.col_indices(), x.crow_indices()), shape=tuple(x.shape)
        )
    else:
        own = sparse.csr_array(x.numpy())
    source, target = arcs.cpu().numpy()
    shares = 1 / np.bincount(target, minlength=nodes).clip(min=1)
    means = (
        sparse.csr_array((shares[target], (target, source)), shape=(nodes, nodes)) @ own
    )
    found = sparse.hstack([means, own], format="csr")
    found.sort_indices()
    return csr(found.data, found.indices, found.indptr, (nodes, found.shape[1]))


@dataclass(frozen=True)
class SAGEParameters:
    """The parameters of SAGE-DP.

    Args:
        epsilon: ε in nats; infinite for no noise and no clipping (neighbours are sampled all the same).
        delta: δ, in (0, 1).
        out_degree: K, the most nodes that a node sends to.
        batch: m, nodes in a batch, drawn without replacement; all nodes where they are fewer.
        steps: Batches.
        clipping_norm: C.
        learning_rate: Of Adam.

    Raises:
        ConfigurationError: If a parameter is outside its range.
    """

    epsilon: float = 8.0
    delta: float = 2e-3
    out_degree: int = 4
    batch: int = 256
    steps: int = 200
    clipping_norm: float = 1.0
    learning_rate: float = 0.005

    def __post_init__(self) -> None:
        check_parameters(self, "out_degree", "batch", "steps")


def fit_sage(
    data: Data,
    parameters: SAGEParameters,
    *,
    classes: int,
    generator: torch.Generator,
    device: str | torch.device = "cpu",
) -> tuple[GraphSAGE, PrivateRecord]:
    """Train a layer of GraphSAGE by DP-SGD on nodes with their neighbours, in a graph of out-degree at most K.

    Source: Daigavane et al. (2021), arXiv:2111.15521, for r = 1: a node is in at most 1 + K neighbourhoods, a batch has a
    hypergeometric number of these, and each of their gradients changes by up to 2C. The noise is that of the same pair
    without the detour by Rényi divergences (``auditdp.accountants.dp_sgd_node_level.NodeLevelUpper``). One layer, as in the
    comparison of Zhang et al. (2024), is a linear map of the mean of the neighbours and of the node itself, and is
    trained as that.

    Note:
        The original samples the in-arcs of a node, drops nodes with too many, and has an encoder before the layer. Here
        arcs are sampled by ``bounded_out_degree``, whose note says what accounting leaves out.

    Args:
        data: The training nodes, with ``x``, ``y`` and ``edge_index``.
        parameters: Budget, sampling, training.
        classes: Number of classes, public.
        generator: The randomness, on the CPU.
        device: Where to train.

    Returns:
        The model, which predicts from all neighbours, and the record, with noise "network" over C.

    Raises:
        ConfigurationError: If the device is not there.
        DataError: If the data cannot be trained on.
        TrainingError: If a loss is no number.
    """
    check_training("fit_sage", data, classes)
    nodes, private = int(data.num_nodes or 0), not math.isinf(parameters.epsilon)
    batch = min(parameters.batch, nodes)
    reached = min(reached_nodes(parameters.out_degree, 1), nodes)
    noise = 0.0
    if private:
        noise = node_noise(
            parameters.epsilon,
            parameters.delta,
            nodes,
            reached,
            batch,
            parameters.steps,
        )
    arcs = bounded_out_degree(
        data.edge_index, nodes, parameters.out_degree, generator=generator
    )
    model = GraphSAGE(
        data.x.shape[1], classes, layers=1, dropout=0.0, generator=generator
    )
    convolution: Any = model.layers[0]
    linear = nn.Linear(2 * data.x.shape[1], classes)
    with torch.no_grad():
        linear.weight.copy_(
            torch.cat([convolution.lin_l.weight, convolution.lin_r.weight], dim=1)
        )
        linear.bias.copy_(convolution.lin_l.bias)
    settings = settings_of(
        parameters, noise, steps=parameters.steps, batch=batch, rate=None
    )
    examples = Rows(with_means(data.x, arcs))
    _, training = fit_private(
        linear, examples, data.y, settings=settings, generator=generator, device=device
    )
    with torch.no_grad():
        neighbours, own = linear.cpu().weight.chunk(2, dim=1)
        convolution.lin_l.weight.copy_(neighbours)
        convolution.lin_r.weight.copy_(own)
        convolution.lin_l.bias.copy_(linear.bias)
    return model.to(device).eval(), PrivateRecord(
        epsilon=parameters.epsilon,
        delta=parameters.delta,
        neighbours="one node is there or not, in a graph whose out-degrees are bounded",
        trainings={"network": training},
        noise={"network": noise} if private else {},
        counts={"nodes": nodes, "steps": parameters.steps, "reached": reached},
    )
