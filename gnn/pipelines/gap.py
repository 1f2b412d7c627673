"""GAP: an encoder, noisy sums over neighbours, and a classifier, at edge or node level."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

from auditdp.accountants import GaussianCurve
from gnn.datasets.splits import Split
from gnn.models import MLP
from gnn.pipelines.degrees import bounded_out_degree
from gnn.pipelines.parts import (
    PrivateRecord,
    check_parameters,
    check_training,
    record_noise,
    settings_of,
    steps_of,
)
from gnn.training import Record, Rows, Settings, fit, fit_private, last
from gnn.validation import check_choice, check_positive

UP = 1 + 1e-9
"""Factor of the solution for σ, so that rounding does not decide."""


@dataclass(frozen=True)
class GAPParameters:
    """The parameters of GAP.

    Args:
        epsilon: ε in nats; infinite for no noise and no clipping.
        delta: δ, in (0, 1).
        level: "edge": one undirected edge is there or not; "node": one node is.
        hops: K, how often is aggregated.
        out_degree: D, the most neighbours that a node sends to, at node level.
        share: Share of ε and δ that the aggregations have, at node level; the trainings have the rest.
        batch: Expected size of a Poisson batch, at node level; all nodes where they are fewer. All nodes at edge level.
        epochs: Epochs of each of the two trainings.
        clipping_norm: C.
        learning_rate: Of Adam.
        hidden: Units of hidden layers, and the width of what is aggregated.

    Raises:
        ConfigurationError: If a parameter is outside its range.
    """

    epsilon: float = 8.0
    delta: float = 2e-3
    level: Literal["edge", "node"] = "node"
    hops: int = 2
    out_degree: int = 10
    share: float = 0.5
    batch: int = 256
    epochs: int = 20
    clipping_norm: float = 1.0
    learning_rate: float = 0.01
    hidden: int = 32

    def __post_init__(self) -> None:
        check_parameters(self, "hops", "out_degree", "batch", "epochs", "hidden")
        check_positive("GAPParameters", "share", self.share)
        check_choice("GAPParameters", "level", self.level, ("edge", "node"))


class GAP(nn.Module):
    """Encoder, K noisy aggregations, and a classifier on all of them side by side.

    Args:
        encoder: Its last hidden layer is what is aggregated.
        classifier: Of (K + 1)·hidden numbers.
        aggregation_hops: K.
        sigma: Standard deviation of the noise on each sum.
        seed: Of the noise of ``forward``, which is the same in every call.
    """

    hops = 0

    def __init__(
        self,
        encoder: MLP,
        classifier: MLP,
        *,
        aggregation_hops: int,
        sigma: float,
        seed: int,
    ) -> None:
        super().__init__()
        self.encoder, self.classifier = encoder, classifier
        self.aggregation_hops, self.sigma, self.seed = aggregation_hops, sigma, seed

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Return the logits, shape (nodes, classes), from aggregations with fresh noise of the same size; no weights."""
        generator = torch.Generator().manual_seed(self.seed)
        aggregated = noisy_aggregations(
            self.encoder.hidden(x),
            edge_index,
            hops=self.aggregation_hops,
            sigma=self.sigma,
            generator=generator,
        )
        found: Tensor = self.classifier(aggregated)
        return found


def neighbour_sums(x: Tensor, edge_index: Tensor) -> Tensor:
    """Return the sum of what each node receives, shape (nodes, width)."""
    return torch.zeros_like(x).index_add_(0, edge_index[1], x[edge_index[0]])


def noisy_aggregations(
    x: Tensor,
    edge_index: Tensor,
    *,
    hops: int,
    sigma: float,
    generator: torch.Generator,
) -> Tensor:
    """Return [h₀, h₁, …, h_K] side by side, h₀ the rows of x with norm 1, h_k ← rownorm(A h_{k−1} + N(0, σ²I)).

    Source: Sajadmanesh et al. (2023), "GAP", arXiv:2203.00949, the aggregation module.

    Args:
        x: Shape (nodes, width).
        edge_index: Arcs (source, target), shape (2, arcs).
        hops: K.
        sigma: Standard deviation of the noise.
        generator: On the CPU.

    Returns:
        Shape (nodes, (K + 1)·width).
    """
    found = [functional.normalize(x, dim=1)]
    for _ in range(hops):
        sums = neighbour_sums(found[-1], edge_index)
        noise = torch.randn(x.shape, dtype=x.dtype, generator=generator).to(x.device)
        found.append(functional.normalize(sums + sigma * noise, dim=1))
    return torch.cat(found, dim=1)


def aggregation_sigma(parameters: GAPParameters) -> float:
    """Return the standard deviation of a hop's noise, 0 without privacy.

    An undirected edge is two arcs, each of which changes one sum by 1: √2 a hop. A node changes the sums of up to D
    others by 1 each: √D a hop, its own row being left out (``audits/audit_accounting_baselines.py`` on both).
    """
    if math.isinf(parameters.epsilon):
        return 0.0
    edge = parameters.level == "edge"
    budget = (parameters.epsilon, parameters.delta)
    if not edge:
        budget = (
            parameters.share * parameters.epsilon,
            parameters.share * parameters.delta,
        )
    sensitivity = math.sqrt(2 if edge else parameters.out_degree)
    return (
        GaussianCurve.sigma_for(*budget, sensitivity=sensitivity, count=parameters.hops)
        * UP
    )


def training_noise(parameters: GAPParameters, nodes: int) -> float:
    """Return σ/C of the two trainings at node level, accounted as one."""
    if math.isinf(parameters.epsilon) or parameters.level == "edge":
        return 0.0
    rest, batch = 1 - parameters.share, min(parameters.batch, nodes)
    steps = 2 * steps_of(nodes, batch=batch, epochs=parameters.epochs)
    return record_noise(
        rest * parameters.epsilon, rest * parameters.delta, batch / nodes, steps
    )


def fit_gap(
    data: Data,
    parameters: GAPParameters,
    *,
    classes: int,
    generator: torch.Generator,
    device: str | torch.device = "cpu",
) -> tuple[GAP, PrivateRecord]:
    """Train GAP on all nodes of a graph.

    The encoder is an MLP trained on features and labels; its hidden layer is aggregated with noise, and a second MLP is
    trained on the aggregations. At edge level neither training sees an edge but through the aggregations, and only these
    are noisy. At node level both trainings are DP-SGD, and the aggregations are over sampled neighbours.

    The text of Sajadmanesh et al. (2023), arXiv:2203.00949, was not at hand. It is taken to claim (ε, δ)-DP for an edge,
    or for a node of a graph of bounded degree that is added or removed, with sums of rows of norm 1, as the audits of
    ``audits/audit_accounting_baselines.py`` do (gap_undirected_repaired, gap_node).

    Note:
        Parts add up by basic composition, where the paper composes Rényi divergences; the classifier is one MLP on all
        hops, where the paper has one for each hop before. ``bounded_out_degree`` says what the accounting of nodes
        leaves out, and a removed node's own row is left out of the comparison.

    Args:
        data: The training nodes, with ``x``, ``y`` and ``edge_index``.
        parameters: Budget, aggregation, training.
        classes: Number of classes, public.
        generator: The randomness, on the CPU.
        device: Where to train.

    Returns:
        The model, whose inference is noisy too, and the record, with noise "aggregation" (σ) and "trainings" (over C).

    Raises:
        ConfigurationError: If the device is not there.
        DataError: If the data cannot be trained on.
        TrainingError: If a loss is no number.
    """
    check_training("fit_gap", data, classes)
    nodes = int(data.num_nodes or 0)
    sigma, noise = aggregation_sigma(parameters), training_noise(parameters, nodes)
    width = parameters.hidden
    encoder = MLP(
        data.x.shape[1], classes, hidden=width, dropout=0.0, generator=generator
    )
    first = _trained(encoder, data, parameters, noise, generator, device)
    arcs = data.edge_index
    if parameters.level == "node" and sigma:
        arcs = bounded_out_degree(
            arcs, nodes, parameters.out_degree, generator=generator
        )
    encoder.cpu().eval()
    with torch.no_grad():
        rows = noisy_aggregations(
            encoder.hidden(data.x),
            arcs,
            hops=parameters.hops,
            sigma=sigma,
            generator=generator,
        )
    classifier = MLP(
        (parameters.hops + 1) * width,
        classes,
        hidden=width,
        dropout=0.0,
        generator=generator,
    )
    aggregated = Data(x=rows, y=data.y, edge_index=data.edge_index, num_nodes=nodes)
    second = _trained(classifier, aggregated, parameters, noise, generator, device)
    seed = int(torch.randint(2**63 - 1, (), generator=generator))
    model = GAP(
        encoder, classifier, aggregation_hops=parameters.hops, sigma=sigma, seed=seed
    )
    return model.to(device).eval(), PrivateRecord(
        epsilon=parameters.epsilon,
        delta=parameters.delta,
        neighbours=(
            "one undirected edge is there or not"
            if parameters.level == "edge"
            else "one node is there or not, in a graph whose out-degrees are bounded, its own sums left out"
        ),
        trainings={"encoder": first, "classifier": second},
        noise={
            name: value
            for name, value in (("aggregation", sigma), ("trainings", noise))
            if value
        },
        counts={"nodes": nodes, "arcs": arcs.shape[1]},
    )


def _trained(
    model: MLP,
    data: Data,
    parameters: GAPParameters,
    noise: float,
    generator: torch.Generator,
    device: str | torch.device,
) -> Record:
    """Train by DP-SGD at node level, and without noise on batches of the same size else."""
    nodes = int(data.num_nodes or 0)
    batch = min(parameters.batch, nodes)
    if not noise:
        none = torch.empty(0, dtype=torch.long)
        settings = Settings(
            epochs=parameters.epochs,
            learning_rate=parameters.learning_rate,
            batch=batch,
        )
        split = Split(torch.arange(nodes), none, none)
        return fit(
            model,
            data,
            split=split,
            generator=generator,
            settings=settings,
            better=last,
            device=device,
        )[1]
    steps = steps_of(nodes, batch=batch, epochs=parameters.epochs)
    private = settings_of(
        parameters, noise, steps=steps, batch=batch, rate=batch / nodes
    )
    return fit_private(
        model,
        Rows(data.x),
        data.y,
        settings=private,
        generator=generator,
        device=device,
    )[1]
