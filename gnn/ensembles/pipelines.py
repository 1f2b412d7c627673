"""Releases and noisy sums of graph pipelines, by their own functions, as mechanisms.

A graph is a symmetric matrix of zeros and ones on public ids, with no loops; a node without edges is not there. Features and
labels are public here, and worst for the claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from auditdp.adjacency import Pair
from auditdp.mechanism.protocol import Array
from gnn.ensembles.draws import keys_of
from gnn.ensembles.fit import fit_ensemble
from gnn.ensembles.released import Released
from gnn.ensembles.trained import generator_of
from gnn.ensembles.worlds import World
from gnn.pipelines.degrees import bounded_out_degree
from gnn.pipelines.dpar.matrix import PageRankMatrix
from gnn.pipelines.gap import neighbour_sums, noisy_aggregations
from gnn.pipelines.sage_dp import with_means
from gnn.training import PageRankRows


def arcs_of(data: Array) -> Tensor:
    """Return the arcs (source, target) of a graph, both ways, int64, shape (2, arcs)."""
    return torch.from_numpy(np.stack(np.nonzero(np.asarray(data))))


@dataclass(frozen=True, eq=False)
class GAPAggregations:
    """Releases GAP's noisy aggregations, shape (visible nodes, hops·width).

    Args:
        x: Rows that are aggregated, shape (nodes, width).
        hops: K.
        sigma: Standard deviation of the noise.
        reach: The Euclidean change of a hop's sums that the noise is for.
        out_degree: D, the most nodes that a node sends to; None at edge level, where all arcs are kept.
        unseen: A node whose own sums are left out of what is released, as the accounting of nodes does.
        label: What reports call it.
    """

    x: Tensor
    hops: int
    sigma: float
    reach: float
    out_degree: int | None = None
    unseen: int | None = None
    label: str = ""
    norm = "l2"

    @property
    def name(self) -> str:
        """The label, or the numbers of the aggregation."""
        return (
            self.label
            or f"GAP's aggregations ({self.hops} hops, σ = {self.sigma:g}, D = {self.out_degree})"
        )

    @property
    def sensitivity(self) -> float:
        """The change of a hop's sums that the noise is for."""
        return self.reach

    def query(self, data: Array, rng: np.random.Generator) -> Array:
        """Return the sums of the first hop over sampled arcs, without noise."""
        arcs = self._kept(data, generator_of(rng))
        return np.asarray(
            neighbour_sums(functional.normalize(self.x, dim=1), arcs).numpy()[
                self._seen
            ]
        )

    def score(self, outputs: Array, pair: Pair) -> Array:
        """Return the first hops along the difference of the mean sums of both graphs, shape (size,)."""
        first, second = (self._mean_sums(data) for data in (pair.data, pair.neighbour))
        return np.tensordot(
            np.asarray(outputs)[:, :, : self.x.shape[1]], first - second, axes=2
        )

    def __call__(self, data: Array, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` releases, each of arcs that are sampled anew."""
        found = []
        for _ in range(size):
            generator = generator_of(rng)
            arcs = self._kept(data, generator)
            rows = noisy_aggregations(
                self.x, arcs, hops=self.hops, sigma=self.sigma, generator=generator
            )
            found.append(rows[:, self.x.shape[1] :].numpy()[self._seen])
        return np.stack(found)

    def _kept(self, data: Array, generator: torch.Generator) -> Tensor:
        """Return the arcs that are aggregated: all of them, or D of each node at most."""
        arcs = arcs_of(data)
        if self.out_degree is None:
            return arcs
        return bounded_out_degree(
            arcs, len(self.x), self.out_degree, generator=generator
        )

    def _mean_sums(self, data: Array) -> Array:
        """Return the mean of the first hop's sums without noise: a node of d neighbours sends to each with min(1, D/d)."""
        graph, rows = (
            np.asarray(data, dtype=float),
            functional.normalize(self.x, dim=1).numpy(),
        )
        sent = np.minimum(
            1.0, (self.out_degree or len(graph)) / graph.sum(axis=1).clip(min=1)
        )
        return np.asarray((graph.T @ (sent[:, None] * rows))[self._seen])

    @property
    def _seen(self) -> Array:
        return np.flatnonzero(np.arange(len(self.x)) != self.unseen)


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledSums(Released):
    """Releases the noised sums of SAGE-DP's steps, shape (steps, weights), on arcs that are sampled for each training.

    An example is a node's mean over what it receives beside its own features, as ``fit_sage`` has it.

    Args:
        x: Features, shape (nodes, features).
        targets: Classes, int64, shape (nodes,).
        out_degree: K.
        others: As of ``Released``; the trainer's rows have twice as many features.
    """

    x: Tensor
    targets: Tensor
    out_degree: int

    def sampled(self, data: Array, rng: np.random.Generator) -> World:
        """Return the world of a graph with arcs that are drawn."""
        nodes = len(self.x)
        arcs = bounded_out_degree(
            arcs_of(data), nodes, self.out_degree, generator=generator_of(rng)
        )
        return World(
            (with_means(self.x, arcs).to_dense().to(self.x.dtype), self.targets),
            name=f"graph of {nodes} ids",
        )

    def query(self, data: Array, rng: np.random.Generator) -> Array:
        """Return the sum of the first step without noise, all nodes in the batch, shape (weights,)."""
        return super().query(self.sampled(data, rng), rng)

    def __call__(self, data: Array, size: int, *, rng: np.random.Generator) -> Array:
        """Return the releases of ``size`` trainings, shape (size, steps, weights)."""
        worlds = [self.sampled(data, rng) for _ in range(size)]
        found = fit_ensemble(
            self.trainer,
            worlds,
            keys=keys_of(size, rng=rng),
            world_of=range(size),
            sums=True,
        )
        assert found.sums is not None  # they were asked for
        return np.asarray(found.sums.numpy())


@dataclass(frozen=True, eq=False)
class PageRankWorlds:
    """Makes the world of DPAR's training from the nodes' features, given a matrix that was released before.

    Args:
        matrix: The rows of PageRank.
        targets: The class of each row's owner, int64, shape (rows,).
    """

    matrix: PageRankMatrix
    targets: Tensor

    def __call__(self, data: Array | Tensor) -> World:
        """Return the world of features, shape (nodes, features), which a tensor keeps its gradient through."""
        weights = torch.from_numpy(self.matrix.weights)
        x = data if isinstance(data, Tensor) else torch.from_numpy(np.array(data))
        examples = PageRankRows(x, torch.from_numpy(self.matrix.ids), weights)
        return World.of(
            examples, self.targets, name=f"features of {self.matrix.nodes} nodes"
        )


def mixed_loss(call: Any, rows: Tensor, weights: Tensor, target: Tensor) -> Tensor:
    """Return the cross-entropy of Σ_k w_k f(x_k) at a class, which is DPAR's loss of a row."""
    return functional.cross_entropy(
        (weights.unsqueeze(-1) * call(rows)).sum(dim=-2), target
    )
