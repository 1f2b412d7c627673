"""Common parts of the pipelines: the private part of a graph, and the spent budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from auditdp.accountants import NodeLevelUpper, solve
from gnn.sparse import is_sparse, rows
from gnn.training import PrivateSettings, Record, noise_for
from gnn.validation import DataError, check_count, check_positive


@dataclass(frozen=True)
class PrivateRecord:
    """The record of a private pipeline.

    Attributes:
        epsilon: ε in nats for which the model is proved (ε, delta)-DP for the neighbours below; infinite without a proof.
        delta: δ.
        neighbours: Which data are neighbours in that proof.
        trainings: The record of each training, by part of the pipeline; their losses are no part of what is private.
        noise: Of each part: a noise multiplier, or a standard deviation, as the pipeline says.
        counts: Numbers of nodes, rows, steps and the like.
    """

    epsilon: float
    delta: float
    neighbours: str
    trainings: Mapping[str, Record]
    noise: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


def part(data: Data, nodes: Tensor) -> Data:
    """Return the subgraph on some nodes, with their features and labels; classes keep their numbers.

    Args:
        data: One graph with ``x``, ``y`` and ``edge_index``.
        nodes: Ids, int64, ascending.
    """
    edge_index, _ = subgraph(
        nodes, data.edge_index, relabel_nodes=True, num_nodes=data.num_nodes
    )
    return Data(
        x=rows(data.x, nodes),
        edge_index=edge_index,
        y=data.y[nodes],
        num_nodes=len(nodes),
    )


def check_training(owner: str, data: Data, classes: int) -> None:
    """Raise unless a private model can be trained on all nodes of the data.

    Raises:
        DataError: If there are no nodes, no features or features that are not finite, labels that are missing or beyond the
            classes, edges between nodes that are not there, or self-loops.
    """
    nodes = int(data.num_nodes or 0)
    if not nodes:
        raise DataError(
            f"{owner}: the graph has no nodes; expected at least one training node"
        )
    if data.x is None or len(data.x) != nodes:
        raise DataError(
            f"{owner}: expected features x of {nodes} nodes, got {None if data.x is None else len(data.x)}"
        )
    values = data.x.values() if is_sparse(data.x) else data.x
    if not values.is_floating_point() or not bool(torch.isfinite(values).all()):
        raise DataError(
            f"{owner}: expected finite floating-point features x; clean them, such as with torch.nan_to_num"
        )
    if (
        data.y is None
        or len(data.y) != nodes
        or int(data.y.min()) < 0
        or int(data.y.max()) >= classes
    ):
        raise DataError(
            f"{owner}: expected a label from 0 to {classes - 1} for each of {nodes} nodes; leave others out"
        )
    ends = data.edge_index
    if ends.numel() and not 0 <= int(ends.min()) <= int(ends.max()) < nodes:
        raise DataError(
            f"{owner}: edges between nodes {int(ends.min())} to {int(ends.max())}, and {nodes} nodes"
        )
    if bool((ends[0] == ends[1]).any()):
        raise DataError(
            f"{owner}: the graph has self-loops; drop them with torch_geometric.utils.remove_self_loops"
        )


def check_parameters(parameters: Any, *counts: str) -> None:
    """Raise unless ε is positive or infinite, δ, C and the learning rate are positive, and the others are counts.

    Raises:
        ConfigurationError: If one is not.
    """
    owner = type(parameters).__name__
    if not math.isinf(parameters.epsilon):
        check_positive(owner, "epsilon", parameters.epsilon)
    for name in ("delta", "clipping_norm", "learning_rate"):
        check_positive(owner, name, getattr(parameters, name))
    for name in counts:
        check_count(owner, name, getattr(parameters, name))


def settings_of(
    parameters: Any, noise: float, *, steps: int, batch: int, rate: float | None
) -> PrivateSettings:
    """Return DP-SGD with the clipping norm and the learning rate of a pipeline; without noise nothing is clipped."""
    return PrivateSettings(
        steps=steps,
        noise_multiplier=noise,
        clipping_norm=parameters.clipping_norm if noise else math.inf,
        batch=batch,
        rate=rate,
        learning_rate=parameters.learning_rate,
        gradients="layers",
    )


@lru_cache(maxsize=256)
def record_noise(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """Return ``gnn.training.noise_for``, remembered: the least noise multiplier for records in Poisson batches."""
    return noise_for(epsilon, delta, rate=rate, steps=steps).value


@lru_cache(maxsize=256)
def node_noise(
    epsilon: float, delta: float, nodes: int, reached: int, batch: int, steps: int
) -> float:
    """Return the least noise multiplier, to five digits, for a node that is in ``reached`` of the examples.

    Args:
        epsilon: In nats.
        delta: In (0, 1).
        nodes: Number of examples.
        reached: How many of them a node can change.
        batch: Examples in a batch, drawn without replacement.
        steps: Number of batches.

    Raises:
        AccountantError: If an argument is out of range, or no noise multiplier between 1e-6 and 1e6 is enough.
    """
    found = solve(
        lambda noise: [NodeLevelUpper(noise, nodes, reached, batch, steps)],
        epsilon,
        delta,
        larger_is_safer=True,
    )
    return found.value


def numpy_generator(generator: torch.Generator) -> np.random.Generator:
    """Return numpy's generator with a seed that is drawn from torch's, on the CPU."""
    return np.random.default_rng(int(torch.randint(2**63 - 1, (), generator=generator)))


def steps_of(examples: int, *, batch: int, epochs: int) -> int:
    """Return the number of batches of a training: those of an epoch cover the examples once."""
    return epochs * math.ceil(examples / batch)
