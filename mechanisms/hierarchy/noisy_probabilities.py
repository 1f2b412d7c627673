"""CalculateNoisyProb: noisy edge probabilities for the pairs across the internal nodes of a dendrogram.

Starting at the root r: if 1/(ε₂L̄R̄) >= τ₁ and 2/(ε₂(L̄+R̄)(L̄+R̄−1)) >= τ₂, with L̄, R̄ the private nodes on either side, then all
pairs below r get min(1, (private edges below r + Lap(1/ε₂))/C(L̄+R̄, 2)); else the pairs across r get
min(1, (private edges across r + Lap(1/ε₂))/(L̄R̄)), and both children follow. Three readings of "for r and its descendants":

- 'one': one draw serves r and its descendants. Every pair is then counted exactly once, in one noisy count, so given the
  dendrogram all counts together have sensitivity 1 and cost ε₂.
- 'fresh': r and every descendant draw anew for the same count. A pair below a cut node with m private nodes is counted by as
  many draws as there are internal nodes with private nodes on both sides, m − 1: they cost (m−1)ε₂.
- 'nested': every descendant counts what is below itself. A pair is counted by its lowest common ancestor and all nodes from
  there up to r, at most m − 1 of them: they cost up to (m−1)ε₂, and ε₂ times the height of the subtree.

Which counts there are depends on the dendrogram, V_pri and ε₂ only. A negative probability draws no edge, as 0 does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import acb, arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import ball, precision
from mechanisms.hierarchy.dendrogram import Dendrogram
from mechanisms.validation import check_positive

DRAWS = ("one", "fresh", "nested")


@dataclass(frozen=True)
class Thresholds:
    """When counts are pooled, and how: ε₂, τ₁, τ₂ and the reading of the draws."""

    epsilon: float
    tau1: float = 0.05
    tau2: float = 0.01
    draws: str = "one"

    def __post_init__(self) -> None:
        check_positive("CalculateNoisyProb", "epsilon", self.epsilon)
        for name, value in (("tau1", self.tau1), ("tau2", self.tau2)):
            if not value > 0:
                raise MechanismError(
                    f"CalculateNoisyProb: expected {name} > 0 (infinite: never pool), got {value!r}"
                )
        if self.draws not in DRAWS:
            raise MechanismError(
                f"CalculateNoisyProb: expected draws one of {DRAWS}, got {self.draws!r}"
            )

    def pools(self, left: int, right: int) -> bool:
        """Return True if a node pools its subtree, by its private nodes on either side."""
        pairs, all_pairs = left * right, (left + right) * (left + right - 1) / 2
        return (
            math.inf if not pairs else 1 / (self.epsilon * pairs)
        ) >= self.tau1 and (1 / (self.epsilon * all_pairs) >= self.tau2)


@dataclass(frozen=True)
class NoisyCount:
    """One draw of noise: an internal node's probability is (edges across ``counted`` + noise)/pairs.

    Attributes:
        drawn: The internal nodes whose pairs are drawn with this probability.
        counted: The internal nodes whose edges are counted.
        pairs: The denominator.
    """

    drawn: tuple[int, ...]
    counted: tuple[int, ...]
    pairs: int

    def value(self, dendrogram: Dendrogram) -> int:
        """Return the true count."""
        return sum(len(dendrogram.across[0][node]) for node in self.counted)


def noisy_counts(dendrogram: Dendrogram, thresholds: Thresholds) -> list[NoisyCount]:
    """Return the counts that CalculateNoisyProb draws noise for, from the root down; layer 0 holds the private edges."""
    sizes, found = dendrogram.sizes[0], []
    stack = [dendrogram.root]
    while stack:
        node = stack.pop()
        if node < dendrogram.leaves or sizes[node] < 2:
            continue
        left, right = dendrogram.children[node]
        if not thresholds.pools(sizes[left], sizes[right]):
            if sizes[left] and sizes[right]:
                found.append(NoisyCount((node,), (node,), sizes[left] * sizes[right]))
            stack += [right, left]
            continue
        below = _splitting_below(dendrogram, node)
        pairs = math.comb(sizes[node], 2)
        if thresholds.draws == "one":
            found.append(NoisyCount(below, below, pairs))
        elif thresholds.draws == "fresh":
            found += [NoisyCount((inner,), below, pairs) for inner in below]
        else:
            found += [
                NoisyCount(
                    (inner,),
                    _splitting_below(dendrogram, inner),
                    math.comb(sizes[inner], 2),
                )
                for inner in below
            ]
    return found


def _splitting_below(dendrogram: Dendrogram, top: int) -> tuple[int, ...]:
    """The internal nodes from ``top`` down that have private nodes on both sides."""
    sizes, found, stack = dendrogram.sizes[0], [], [top]
    while stack:
        node = stack.pop()
        if node >= dendrogram.leaves and sizes[node] >= 2:
            left, right = dendrogram.children[node]
            if sizes[left] and sizes[right]:
                found.append(node)
            stack += [right, left]
    return tuple(found)


@lru_cache(maxsize=4096)
def drawn_probability(
    ones: int, zeros: int, count: int, pairs: int, scale: float
) -> arb:
    """Return E[p^ones (1−p)^zeros] for p = (count + Lap(scale))/pairs clipped to [0, 1], enclosed.

    The chance that given pairs with one noisy probability become just these edges and non-edges.
    """
    with precision():
        rate = 1 / ball(Fraction(scale))

        def piece(sign: int, low: int, high: int) -> arb:
            """Integrate over an interval on which the noise has one sign."""

            def integrand(x: acb, _: Any) -> acb:
                return (
                    (x / pairs) ** ones
                    * (1 - x / pairs) ** zeros
                    * rate
                    / 2
                    * (sign * rate * (x - count)).exp()
                )

            return acb.integral(integrand, acb(low), acb(high)).real

        total = arb(0)
        if count > 0:
            total += piece(1, 0, count)
        if count < pairs:
            total += piece(-1, count, pairs)
        if not ones:
            total += (-rate * count).exp() / 2
        if not zeros:
            total += (-rate * (pairs - count)).exp() / 2
        return total
