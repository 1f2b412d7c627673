"""Node-level accounting: one node of a graph is in the gradients of many.

In a graph whose nodes have at most K out-neighbours, what a node sends reaches at most N_T = 1 + K + … + K^r nodes in r
layers. Adding or removing it can change the gradients of all of these, each by up to 2C. A batch of m nodes, drawn without
replacement from N, has ρ of them, ρ hypergeometric with (N, N_T, m). Accounting for records takes ρ <= 1 and the
sensitivity C: the wrong neighbours.

What is *not* certified here: that the graph's out-degrees are bounded by a sampler that a node's change does not spread
through, that the gradients are per node and clipped, and that K and N are public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from auditdp.accountants.accountant import (
    Accountant,
    AccountantError,
    Soundness,
    check_count,
)
from auditdp.accountants.additive_noise import GaussianNoise
from auditdp.accountants.concentrated import RenyiCurve
from auditdp.accountants.description import Description
from auditdp.accountants.dp_sgd_poisson import deviations
from auditdp.accountants.loss_grid import GridCurve, OnGrid, from_above, from_below
from auditdp.accountants.normal_quantiles import Enclosed, gaussian_cells
from auditdp.mechanism.protocol import Array

ADD_OR_REMOVE_NODE = "add or remove one node"
ORDERS = np.concatenate(
    [1 + np.arange(1, 100) / 10, np.arange(11.0, 64.0), 2.0 ** np.arange(6, 11)]
)


def reached_nodes(out_degree: int, layers: int) -> int:
    """Return N_T = (K^(r+1) − 1)/(K − 1), how many nodes one node reaches in r layers, itself included.

    Source: Daigavane, Madan, Sinha, Thakurta, Aggarwal & Jain (2021), "Node-Level Differentially Private Graph Neural
    Networks", arXiv:2111.15521.

    Note:
        Replacing a node by one with other edges changes what both reach: up to 2 N_T − 1 gradients.

    >>> reached_nodes(4, 2)
    21
    """
    check_count("reached_nodes", out_degree=out_degree, layers=layers)
    return sum(out_degree**hop for hop in range(layers + 1))


@dataclass(frozen=True)
class NodeLevel(Description):
    """DP-SGD over the nodes of a graph.

    Args:
        noise: σ/C: standard deviation of the noise on the sum of clipped gradients, over the clipping norm. (Not over the
            sensitivity 2 N_T C, as some papers give it.)
        nodes: N, how many nodes are trained on.
        reached: N_T, how many gradients one node can change; ``reached_nodes`` for a bounded out-degree.
        batch: m, nodes in a batch, drawn without replacement for each step afresh.
        steps: How many batches.
    """

    noise: float
    nodes: int
    reached: int
    batch: int
    steps: int
    adjacency: ClassVar[str] = ADD_OR_REMOVE_NODE
    sampling: ClassVar[str] = "fixed size without replacement"
    words: ClassVar[str] = (
        "DP-SGD in {self.steps:,} batches of {self.batch:,} among {self.nodes:,} nodes, {self.reached:,} reached, with "
        "noise {self.noise:.6g}C"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("reached", "batch"):
            if (value := getattr(self, name)) > self.nodes:
                raise AccountantError(
                    f"{type(self).__name__}: expected {name} <= nodes={self.nodes}, got {value!r}"
                )

    def wider(self) -> tuple[GaussianNoise]:
        """Return the steps without sampling, in each of which all gradients that a node reaches turn around."""
        return (
            GaussianNoise(self.noise, 2.0 * min(self.reached, self.batch), self.steps),
        )

    @cached_property
    def affected(self) -> tuple[Array, Array]:
        """How many gradients of a batch can change, and the probability of each number, off by u at most."""
        counts = np.arange(
            max(0, self.reached + self.batch - self.nodes),
            min(self.reached, self.batch) + 1,
        )
        ways, total = [], math.comb(self.nodes, self.batch)
        others = self.nodes - self.reached
        first = int(counts[0])
        way = math.comb(self.reached, first) * math.comb(others, self.batch - first)
        for k in counts.tolist():
            ways.append(way)
            way = (
                way
                * (self.reached - k)
                * (self.batch - k)
                // ((k + 1) * (others - self.batch + k + 1))
            )
        return counts, np.array([float(Fraction(way, total)) for way in ways])

    def largest_loss(self, negligible: float) -> float:
        """Return the most that one ρ can lose, as far as its probability allows it to matter."""
        counts, weights = self.affected
        mu, weights = (
            2 * counts[weights > negligible] / self.noise,
            weights[weights > negligible],
        )
        reach = np.sqrt(2 * np.log(weights / negligible))
        return (
            float(np.max(mu**2 / 2 + mu * reach)) or 1.0
        )  # any grid does where only batches without the node matter


@dataclass(frozen=True)
class NodeLevelRDP(NodeLevel, RenyiCurve):
    """The paper's bound: a step's divergence is at most that of the pair that reveals ρ, N(0, σ²) against N(2ρC, σ²).

    exp((α−1) D_α) is jointly convex, so that exp((α−1) D_α) <= E_ρ exp(α(α−1) 2ρ²C²/σ²).
    """

    source: ClassVar[str] = (
        "Daigavane et al. (2021), arXiv:2111.15521, Theorem 1 (r layers)"
    )

    def divergences(self) -> tuple[Array, Array]:
        """Return orders and the bound on the divergence of a step for each."""
        counts, weights = self.affected
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)
        exponents = (
            ORDERS[:, None] * (ORDERS[:, None] - 1) * 2 * (counts / self.noise) ** 2
        )
        return ORDERS, logsumexp(log_weights + exponents, axis=1) / (ORDERS - 1)


@dataclass(frozen=True)
class NodeLevelUpper(NodeLevel, GridCurve):
    """The curve of the same pair that reveals ρ, E_ρ δ_Gauss(ε; 2ρC/σ), composed without a detour by Rényi divergences."""

    soundness: ClassVar[Soundness] = Soundness.UPPER
    source: ClassVar[str] = (
        "the pair that reveals ρ (Daigavane et al. 2021, arXiv:2111.15521), by connecting the dots"
    )

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss whose curve is that of the pair, which is the same in both orders."""
        counts, weights = self.affected
        mu = 2 * counts / self.noise
        seen = (mu > 0) & (weights > negligible / len(mu))
        high = self.largest_loss(negligible)
        last = math.ceil(high / interval)
        ends = np.arange(-last, last + 1) * interval
        first, second = np.zeros(len(ends) + 1), np.zeros(len(ends) + 1)
        for each, weight in zip(mu[seen], weights[seen], strict=True):
            edges = ends / each + each / 2
            first += weight * gaussian_cells(edges, each, 1.0)[1]
            second += weight * gaussian_cells(edges, 0.0, 1.0)[0]
        revealing_nothing = float(weights[mu == 0].sum())
        first[last] += revealing_nothing
        second[last] += revealing_nothing
        first[-1] += float(weights[~seen & (mu > 0)].sum())
        # Weights and sums of so many terms are off by u each; the loss of an edge x is μx − μ²/2.
        off = (len(mu) + 4) * 2.0**-52
        rounding = 2.0**-49 * (
            high + interval + float(np.max(mu[seen], initial=0.0)) ** 2
        )
        return [
            from_above(
                first * (1 + off),
                second * (1 - off),
                -last,
                interval,
                rounding=rounding,
            )
        ]


@dataclass(frozen=True)
class NodeLevelLower(NodeLevel, GridCurve):
    """An attained pair: all ρ gradients change from −C to C at once, and nothing tells ρ.

    The outputs are Σ_ρ w_ρ N(2ρC, σ²) against N(0, σ²) in each step, composed in both orders.
    """

    soundness: ClassVar[Soundness] = Soundness.LOWER
    source: ClassVar[str] = "the attained mixture of Gaussians"

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of a step in both orders."""
        (low, high), (other_low, other_high) = _attained(self, negligible)
        return [
            from_below(low, other_high, interval),
            from_below(other_low, high, interval),
        ]


@lru_cache(maxsize=1)
def _attained(pair: NodeLevelLower, negligible: float) -> tuple[Enclosed, Enclosed]:
    """Bounds on the probabilities of cells of outputs, with the node and without it."""
    counts, weights = pair.affected
    means = 2.0 * counts
    seen = weights > negligible / len(means)
    reach = deviations(negligible) * pair.noise
    edges = np.linspace(-reach, float(means[seen].max()) + reach, 100_001)
    low, high = (
        np.zeros(len(edges) + 1),
        np.full(len(edges) + 1, float(weights[~seen].sum())),
    )
    for weight, mean in zip(weights[seen], means[seen], strict=True):
        cell_low, cell_high = gaussian_cells(edges, float(mean), pair.noise)
        low, high = low + weight * cell_low, high + weight * cell_high
    off = (len(means) + 4) * 2.0**-52
    return (low * (1 - off), high * (1 + off)), gaussian_cells(edges, 0.0, pair.noise)


def node_level_accountants(
    noise: float, nodes: int, reached: int, batch: int, steps: int
) -> list[Accountant]:
    """Return every node-level accountant of such a training."""
    return [
        kind(noise, nodes, reached, batch, steps)
        for kind in (NodeLevelUpper, NodeLevelLower, NodeLevelRDP)
    ]
