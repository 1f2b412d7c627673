"""Upper bounds over all events at once, from how often each output came in n runs on each input.

The bounds are about every event, events of outputs that never came included, and there is no list of outputs that would have
to be fixed beforehand. They need no correction for how many events, pairs or orders there are:

**One event is enough.** Let P and Q be the laws of the output on the two inputs of a pair. Suppose that some pair, in some
order, has an event S with P(S) > e^ε Q(S) + δ. This S is fixed by the laws: it does not depend on the runs. The numbers of
runs that fall into it, X on the first and Y on the second input, are independent and binomial, so there is a region that
holds (P(S), Q(S)) with probability 1 - error. If it does, then the largest ε that any event's region allows is at least
that of S. It does not matter which event S is: the bound is the largest over *all* events, so its error is that of one.

**The region** of an event with X and Y of n runs: let a = P[Bin(n, p) <= X] and b = P[Bin(n, q) >= Y]. At the true p and q
each is at most u with probability at most u, so Φ⁻¹(a) and Φ⁻¹(b) are stochastically larger than two independent standard
normal numbers. The region is r² >= min(Φ⁻¹(a), 0)² + min(Φ⁻¹(b), 0)², which fails with probability at most
½ P(χ²₁ > r²) + ¼ P(χ²₂ > r²) = Φ(-r) + ¼ exp(-r²/2), and r makes that the error. Every (p, q) of it has an angle θ in
[0, π/2] with p at most the Clopper-Pearson upper limit at error Φ(-r cos θ) and q at least the lower limit at error
Φ(-r sin θ). Both limits fall with θ, so a grid of angles encloses the region: p's limit at an angle with q's at the next.
(Two limits, each with half of the error, would let ln(p/q) reach up to 1.4 times as far: their deviations would add, here it
is their squares that do.)

**All events.** What is largest grows with X and falls with Y. So only sets of outputs that came count, and of these only
those with the most X for their Y: a knapsack, solved exactly (Bellman 1957). Limits are first looked up in a table, with X
rounded up and Y down, and computed where that is not enough.

The ε of a given δ holds for a δ that is fixed beforehand, and the δ of a given ε for that ε; several statements have their
own error each. What never came costs δ: no ε is finite for a δ below ``unseen``.

Assumption: runs are independent. Null hypothesis of each bound: some event exceeds it. Errors are conservative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from auditdp.numerics.arrays import Floats
from auditdp.numerics.binomial import lower_limit, upper_limit

Counts = NDArray[np.int64]
Loss = Callable[[Floats, Floats], Floats]

COARSE, FINE = 9, 65
"""Angles of the table, and of the limits that are computed."""
SPACING = 0.25
"""Steps of the table in standard deviations of a count; a count is rounded by less than one step."""
MOST_OUTPUTS = 512
"""Of more outputs, the rarest on the second input are taken never to come there."""


def nodes(runs: int, spacing: float) -> Counts:
    """Return counts from 0 to ``runs`` that are so many standard deviations apart, or 1."""
    # The arcsine of the root of a share has a standard deviation of about 1/(2 √runs), whatever the share is.
    share = np.sin(np.linspace(0, np.pi / 2, 2 + math.ceil(math.pi * math.sqrt(runs) / spacing))) ** 2
    return np.unique(np.rint(share * runs)).astype(np.int64)


@cache
def radius(error: float) -> float:
    """Return the r with Φ(-r) + exp(-r²/2)/4 = error.

    >>> round(radius(0.05), 3)
    2.057
    """
    from scipy.optimize import brentq  # slow to load: only where it is needed

    if error >= 0.75:
        return 0.0
    return float(brentq(lambda r: np.logaddexp(log_ndtr(-r), -r * r / 2 - math.log(4)) - math.log(error), 0, 60))


def unseen(runs: int, error: float) -> float:
    """Return the δ below which no ε is finite: what an event may have that never came in so many runs."""
    return -math.expm1(float(log_ndtr(-radius(error))) / runs)


@dataclass(frozen=True)
class Limits:
    """The limits of every event's region, for one number of runs and one error."""

    runs: int
    error: float

    def __call__(self, first: Counts, second: Counts, angles: int) -> tuple[Floats, Floats]:
        """Return limits that enclose the region of every (X, Y): p at most, q at least; shape (events, angles - 1)."""
        return self._most(first, angles)[:, :-1], self._least(second, angles)[:, 1:]

    def rounded(self, first: Counts, second: Counts) -> tuple[Floats, Floats]:
        """Return wider limits of the same shape, looked up."""
        up = np.searchsorted(self.nodes, first)
        down = np.searchsorted(self.nodes, second, side="right") - 1
        most, least = self._table
        for table, used, limit in ((most, up, self._most), (least, down, self._least)):
            missing = np.unique(used[np.isnan(table[used, 0])])
            table[missing] = limit(self.nodes[missing], COARSE)
        return most[up][:, :-1], least[down][:, 1:]

    @cached_property
    def nodes(self) -> Counts:
        """Counts from 0 to ``runs`` that are a step apart."""
        return nodes(self.runs, SPACING)

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Limits of the nodes at every angle, NaN where nobody has asked yet."""
        empty = np.full((len(self.nodes), COARSE), np.nan)
        return empty, empty.copy()

    def _most(self, counts: Counts, angles: int) -> Floats:
        errors = ndtr(-radius(self.error) * np.cos(np.linspace(0, np.pi / 2, angles)))
        return upper_limit(counts[:, None], self.runs, errors)

    def _least(self, counts: Counts, angles: int) -> Floats:
        errors = ndtr(-radius(self.error) * np.sin(np.linspace(0, np.pi / 2, angles)))
        return lower_limit(counts[:, None], self.runs, errors)


def largest_losses(
    counts: Counts,
    ends: NDArray[np.intp],
    runs: int,
    *,
    error: float,
    deltas: Sequence[float] = (),
    epsilons: Sequence[float] = (),
) -> tuple[list[float], list[float]]:
    """Return the largest ε of every δ, and the largest δ of every ε, over all events of all pairs in both orders.

    Args:
        counts: How often each output came on each input, shape (inputs, outputs): all outputs that came.
        ends: The two inputs of every pair, shape (2, pairs).
        runs: Runs on each input.
        error: Probability that one of the statements is wrong; each has its own.
        deltas: What δ to bound ε for.
        epsilons: What ε to bound δ for.

    Returns:
        For every δ an ε, infinite where runs are too few, and for every ε a δ: P(S) <= e^ε Q(S) + δ.
    """
    losses = [_epsilon_at(delta) for delta in deltas] + [_delta_at(epsilon) for epsilon in epsilons]
    limits, found = Limits(runs, error), [0.0] * len(losses)
    for one, other in ends.T:
        for first, second in ((one, other), (other, one)):
            events = _events(counts[first], counts[second], limits)
            found = [_largest(loss, events, limits, least) for loss, least in zip(losses, found, strict=True)]
    return found[: len(deltas)], found[len(deltas) :]


def told_apart(
    first: Counts, counts: Counts, ends: NDArray[np.intp], runs: int, error: float
) -> tuple[float, float] | None:
    """Return (p, q) so that some event has at least p on one input of a pair, and at most q on the other.

    Pair, order and event are those that the first runs tell apart best. All later runs are independent of that choice, so
    that their numbers in the event are binomial, and each limit fails with at most half of the error.

    Args:
        first: How often each output came on each input in the first runs, shape (inputs, outputs).
        counts: The same in all runs; outputs that came later stand behind.
        ends: The two inputs of every pair, shape (2, pairs).
        runs: Later runs on each input; None is returned where there are none.
        error: Probability that there is no such event.
    """
    if not runs:
        return None
    one, other = np.concatenate([ends, ends[::-1]], axis=1)
    best = np.argmax(np.maximum(first[one] - first[other], 0).sum(axis=1))
    event = first[one[best]] > first[other[best]]
    later = (counts[:, : first.shape[1]] - first)[:, event].sum(axis=1)
    least = lower_limit(later[one[best]], runs, error / 2)
    return float(least), float(upper_limit(later[other[best]], runs, error / 2))


def most_hits(first: Counts, second: Counts, runs: int) -> Counts:
    """Return the most runs on the first input of any set of outputs that has at most y on the second, for y up to ``runs``.

    >>> most_hits(np.array([3, 1]), np.array([1, 2]), 4).tolist()
    [0, 3, 3, 4, 4]
    """
    here = (first > 0) & (second > 0)
    weights, gains = second[here], first[here]
    most = np.full(runs + 1, int(first[second == 0].sum()), dtype=np.int64)
    if len(gains) > MOST_OUTPUTS:
        order = np.argsort(weights)
        rare, kept = order[:-MOST_OUTPUTS], order[-MOST_OUTPUTS:]
        most += gains[rare].sum()
        weights, gains = weights[kept], gains[kept]
    for weight, gain in zip(weights, gains, strict=True):
        np.maximum(most[weight:], most[:-weight] + gain, out=most[weight:])
    return most


def _events(first: Counts, second: Counts, limits: Limits) -> tuple[Counts, Counts]:
    """Return (X, Y) such that every event has at most the X and at least the Y of one of them."""
    most = most_hits(first, second, limits.runs)
    steps = np.append(0, 1 + np.flatnonzero(np.diff(most)))  # where more can be had
    part = np.searchsorted(limits.nodes, steps, side="right")
    starts = np.flatnonzero(np.diff(part, prepend=-1))  # of all steps between two nodes, the least Y and the most X
    return most[steps[np.append(starts[1:], len(steps)) - 1]], steps[starts]


def _largest(loss: Loss, events: tuple[Counts, Counts], limits: Limits, least: float) -> float:
    """Return the largest loss of all events, or ``least`` where that is more."""
    first, second = events
    bounds = loss(*limits.rounded(first, second)).max(axis=1)
    for k in np.argsort(-bounds):
        if bounds[k] <= least:
            break
        least = max(least, float(loss(*limits(first[k : k + 1], second[k : k + 1], FINE)).max()))
    return least


def _epsilon_at(delta: float) -> Loss:
    def loss(p: Floats, q: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(p - delta, 0.0)) - np.where(p > delta, np.log(q), 0.0)

    return loss


def _delta_at(epsilon: float) -> Loss:
    return lambda p, q: p - math.exp(min(epsilon, 700.0)) * q  # a smaller ε only needs more δ
