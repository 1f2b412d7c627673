"""Node-level accounting of DP-SGD: one node of a graph affects the gradients of many.

In a graph whose nodes have at most K out-neighbours, the messages of a node reach at
most N_T = 1 + K + … + K^r nodes in r layers. Adding or removing the node can change the
gradients of all N_T nodes, each by up to 2C. A batch of m nodes, drawn without
replacement from N, has ρ of these nodes; ρ is hypergeometric with (N, N_T, m).
Record-level accounting assumes ρ <= 1 and the sensitivity C, so its neighbours are the
wrong ones.

The code here assumes, and does not certify, that a sampler bounds the graph's
out-degrees and does not spread the change of a node, that gradients are computed and
clipped per node, and that K and N are public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from auditdp.accountants.accountant import Accountant, Description, Soundness
from auditdp.accountants.additive_noise import GaussianNoise
from auditdp.accountants.concentrated import RenyiCurve
from auditdp.accountants.dp_sgd_poisson import deviations
from auditdp.accountants.loss_grid import (
    AttainedPair,
    GridCurve,
    OnGrid,
    from_above,
)
from auditdp.accountants.normal_quantiles import Enclosed, gaussian_cells
from auditdp.accountants.parameter_checks import AccountantError, check_count
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats

ORDERS = np.concatenate(
    [1 + np.arange(1, 100) / 10, np.arange(11.0, 64.0), 2.0 ** np.arange(6, 11)]
)
"""Orders of Rényi divergences: the default orders of dp-accounting, and 64."""


def reached_nodes(out_degree: int, layers: int) -> int:
    """Return N_T, the largest number of nodes that one node reaches in r layers.

    It is 1 + K + … + K^r for K = ``out_degree`` and r = ``layers``, both >= 1. The node
    itself is counted.

    Source: Daigavane, Madan, Sinha, Thakurta, Aggarwal & Jain (2021), "Node-Level
    Differentially Private Graph Neural Networks", arXiv:2111.15521.

    Note:
        To replace a node by one with other edges changes the gradients of all nodes
        that the old or the new node reaches: up to 2 N_T − 1.

    >>> reached_nodes(4, 2)
    21
    """
    check_count("reached_nodes", out_degree=out_degree, layers=layers)
    return sum(out_degree**hop for hop in range(layers + 1))


@dataclass(frozen=True)
class NodeLevel(Description):
    """DP-SGD over the nodes of a graph.

    Args:
        noise: σ/C, the standard deviation of the noise on the sum of clipped gradients,
            divided by the clipping norm. (Some papers divide by the sensitivity 2 N_T C
            instead.)
        nodes: N, the number of training nodes.
        reached: N_T, the number of gradients that one node can change;
            ``reached_nodes`` computes it for a bounded out-degree.
        batch: m, the number of nodes in a batch. Each step draws its batch afresh,
            without replacement.
        steps: The number of batches.
    """

    noise: float
    nodes: int
    reached: int
    batch: int
    steps: int
    adjacency = "add or remove one node"
    sampling = "fixed size without replacement"
    words = (
        "DP-SGD in {self.steps:,} batches of {self.batch:,} among {self.nodes:,} nodes, "
        "{self.reached:,} reached, with noise {self.noise:.6g}C"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("reached", "batch"):
            value = getattr(self, name)
            if value > self.nodes:
                raise AccountantError(
                    f"{type(self).__name__}: expected {name} <= nodes={self.nodes}, got "
                    f"{value!r}"
                )

    def wider(self) -> tuple[GaussianNoise]:
        """Return a tuple of one class: Gaussian noise for the same steps, no sampling.

        Its noise and sensitivity are in units of C. Its δ bounds this one: a mixture
        over batches loses no more than its worst batch, in which a node moves the sum
        by at most 2 min(N_T, m).
        """
        sensitivity = 2.0 * min(self.reached, self.batch)
        return (GaussianNoise(self.noise, sensitivity, self.steps),)

    @cached_property
    def affected(self) -> tuple[Array, Floats]:
        """The possible numbers ρ of reached nodes in a batch, and their probabilities.

        ρ ascends, and the probabilities are rounded to doubles.
        """
        unreached = self.nodes - self.reached
        fewest = max(0, self.batch - unreached)
        counts = np.arange(fewest, min(self.reached, self.batch) + 1)
        total = math.comb(self.nodes, self.batch)
        ways = math.comb(self.reached, fewest) * math.comb(
            unreached, self.batch - fewest
        )
        weights = []
        for k in counts.tolist():
            weights.append(float(Fraction(ways, total)))
            # The ratio of consecutive hypergeometric probabilities.
            ways *= (self.reached - k) * (self.batch - k)
            ways //= (k + 1) * (unreached - self.batch + k + 1)
        return counts, np.array(weights)

    def loss_quantile(self, negligible: float) -> float:
        """Return a loss that one step exceeds with about ``negligible`` probability.

        It is the largest loss over the ρ whose own probability is above ``negligible``.
        """
        counts, weights = self.affected
        matters = weights > negligible
        mu = 2 * counts[matters] / self.noise
        reach = np.sqrt(2 * np.log(weights[matters] / negligible))
        # If only batches without the node matter, any grid will do.
        return float(np.max(mu**2 / 2 + mu * reach)) or 1.0


class NodeLevelRDP(NodeLevel, RenyiCurve):
    """The Rényi bound of Daigavane et al. (2021), from a pair that reveals ρ.

    The pair is N(0, σ²) against N(2ρC, σ²). exp((α−1) D_α) is jointly convex, so that
    exp((α−1) D_α) <= E_ρ exp(α(α−1) 2ρ²C²/σ²).
    """

    source = "Daigavane et al. (2021), arXiv:2111.15521, Theorem 1 (r layers)"

    def divergences(self) -> tuple[Array, Array]:
        """Return ``ORDERS``, and the bound on D_α of one step for each of them."""
        counts, weights = self.affected
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)
        orders = ORDERS[:, None]
        exponents = orders * (orders - 1) * 2 * (counts / self.noise) ** 2
        return ORDERS, logsumexp(log_weights + exponents, axis=1) / (ORDERS - 1)


class NodeLevelUpper(NodeLevel, GridCurve):
    """An upper bound on the curve δ(ε): the composition of steps that reveal ρ.

    ρ is the number of reached nodes in the batch. The curve of one step is
    E_ρ δ_Gauss(ε; μ = 2ρC/σ).
    """

    soundness = Soundness.UPPER
    source = (
        "the pair that reveals ρ (Daigavane et al. 2021, arXiv:2111.15521), by connecting the "
        "dots"
    )

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return a list of one loss: the pair's, which is the same in both orders."""
        counts, weights = self.affected
        mu = 2 * counts / self.noise
        relevant = (mu > 0) & (weights > negligible / len(mu))
        largest = self.loss_quantile(negligible)
        last = math.ceil(largest / interval)
        ends = np.arange(-last, last + 1) * interval
        first, second = np.zeros(len(ends) + 1), np.zeros(len(ends) + 1)
        # An output x of N(μ, 1) against N(0, 1) has the loss μx − μ²/2.
        for each, weight in zip(mu[relevant], weights[relevant], strict=True):
            edges = ends / each + each / 2
            first += weight * gaussian_cells(edges, each, 1.0)[1]
            second += weight * gaussian_cells(edges, 0.0, 1.0)[0]
        # A batch with ρ = 0 has no loss. Other ρ of negligible probability count as an
        # infinite loss.
        revealing_nothing = float(weights[mu == 0].sum())
        first[last] += revealing_nothing
        second[last] += revealing_nothing
        first[-1] += float(weights[~relevant & (mu > 0)].sum())
        # Each weight and each term of a sum is off by u.
        off = (len(mu) + 4) * 2.0**-52
        largest_mu = float(np.max(mu[relevant], initial=0.0))
        rounding = 2.0**-49 * (largest + interval + largest_mu**2)
        first, second = first * (1 + off), second * (1 - off)
        return [from_above(first, second, -last, interval, rounding=rounding)]


class NodeLevelLower(NodeLevel, AttainedPair):
    """A lower bound from an attained pair: all ρ gradients change from −C to C.

    ρ is not revealed. In each step the outputs are Σ_ρ w_ρ N(2ρC, σ²) against N(0, σ²),
    with w_ρ the probability of ρ. Both orders are composed.
    """

    source = "the attained mixture of Gaussians"

    def cells(self, negligible: float) -> tuple[Enclosed, Enclosed]:
        """Return bounds on the masses of the same cells, with and without the node."""
        counts, weights = self.affected
        means = 2.0 * counts
        relevant = weights > negligible / len(means)
        reach = deviations(negligible) * self.noise
        edges = np.linspace(-reach, float(means[relevant].max()) + reach, 100_001)
        low = np.zeros(len(edges) + 1)
        high = np.full(len(edges) + 1, float(weights[~relevant].sum()))
        # The outputs of a ρ that is left out may lie in any cell, so that its weight
        # is added to every upper bound.
        for weight, mean in zip(weights[relevant], means[relevant], strict=True):
            cell_low, cell_high = gaussian_cells(edges, float(mean), self.noise)
            low, high = low + weight * cell_low, high + weight * cell_high
        off = (len(means) + 4) * 2.0**-52
        without = gaussian_cells(edges, 0.0, self.noise)
        return (low * (1 - off), high * (1 + off)), without


def node_level_accountants(
    noise: float, nodes: int, reached: int, batch: int, steps: int
) -> list[Accountant]:
    """Return the accountants of ``NodeLevel`` with these parameters.

    They are an upper bound, a lower bound and a Rényi bound.
    """
    kinds = (NodeLevelUpper, NodeLevelLower, NodeLevelRDP)
    return [kind(noise, nodes, reached, batch, steps) for kind in kinds]
