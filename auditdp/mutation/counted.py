"""What a mechanism of few inputs and few outputs loses, by counting its outputs: for broken twins that may keep a claim.

An audit whose mechanism loses less than is claimed cannot refute a fault that only uses the slack up. Where all neighbours
can be listed and outputs are few, counts bound the loss from above over all events of all pairs
(``evidence/counting/events.py``), and from below by the outputs that the first runs showed (Clopper & Pearson 1934,
each limit with its share of the error).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Adjacency, Pair
from auditdp.evidence.counting.events import Counts, largest_losses, unseen
from auditdp.evidence.counting.tally import Tally, inputs_of
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.protocol import Mechanism
from auditdp.numerics.binomial import lower_limit, upper_limit
from auditdp.numerics.randomness import Streams
from auditdp.numerics.rounding import at_least, outwards

FIRST_RUNS = 4096
"""Runs on every input that show which outputs the lower bound is about."""
LOOKS = 9
"""How often runs are doubled and looked at: up to two million on every input."""
MOST_CALLS = 1 << 27
MOST_WORK = 1 << 32
"""Runs times outputs times pairs, at most: what the upper bound costs."""
MOST_OUTPUTS = 256
MOST_PAIRS = 4096
ERROR = 1e-4
"""Probability that any of the bounds does not hold."""
UNSEEN = 5.0
"""What δ the upper bound allows at least, in units of what an event may have that never came."""


@dataclass(frozen=True)
class Counted:
    """The loss of a mechanism over all neighbours, from counts, with an error probability of 1e-4."""

    epsilon: float
    lower: float
    """Some output is so much likelier on one input of ``pair`` than on the other, in nats, or more."""
    upper: float
    """Every event S of every pair has P(S) <= e^upper Q(S) + ``delta``."""
    delta: float
    """The larger of the claimed one and one that a few runs that came by chance do not exceed."""
    pair: Pair
    """The pair of the lower bound."""
    runs: int
    inputs: int
    outputs: int

    @property
    def calls(self) -> int:
        """Calls that were made."""
        return self.runs * self.inputs

    @property
    def keeps(self) -> bool:
        """Whether the claim is kept with ``delta``."""
        return self.upper <= self.epsilon

    @property
    def breaks(self) -> bool:
        """Whether some output loses more than is claimed."""
        return self.lower > self.epsilon

    @property
    def statement(self) -> str:
        """What was found, in words."""
        what = f"counting {self.runs:,} runs on each of {self.inputs:,} inputs"
        if self.breaks:
            return f"{what} shows a loss {at_least(self.lower, self.epsilon)} on {self.pair}"
        most = outwards(self.upper, up=True, against=self.epsilon)
        but = f"with δ = {self.delta:.2g}"
        if not self.keeps:
            return f"{what} leaves its loss between {outwards(self.lower, up=False)} and {most} {but}"
        return (
            f"{what} shows that it keeps the claim {but}: no event of any pair loses more than {most} "
            f"(wrong once in {1 / ERROR:,.0f})"
        )


def counted(
    mechanism: Mechanism, adjacency: Adjacency, epsilon: float, delta: float, streams: Streams
) -> Counted | None:
    """Count outputs on all inputs until it is clear whether the loss is above or below ``epsilon``, or runs are many.

    Returns:
        The bounds; None where neighbours cannot be listed, or are more than 4,096 pairs, or outputs more than 256.

    Raises:
        MechanismError: If the mechanism misbehaves.
    """
    pairs = adjacency.exhaustive()
    if not pairs or len(pairs) > MOST_PAIRS:
        return None
    inputs, ends = inputs_of(pairs)
    tally = Tally(Calls(mechanism), inputs, streams, most=MOST_OUTPUTS)
    tally.add(FIRST_RUNS)
    first, found = tally.counts.copy(), None
    for look in range(LOOKS):
        more = FIRST_RUNS << look
        runs = tally.runs + more
        too_much = runs * len(inputs) > MOST_CALLS or runs * len(pairs) * len(tally.outputs) > MOST_WORK
        if tally.full or (too_much and found is not None):
            break
        tally.add(more)
        found = _losses(tally, first, pairs, ends, epsilon, delta)
        if found.keeps or found.breaks:
            break
    return None if tally.full else found


def _losses(
    tally: Tally, first: Counts, pairs: Sequence[Pair], ends: NDArray[np.intp], epsilon: float, delta: float
) -> Counted:
    """Return the loss over all pairs, given the counts of the first runs, which fix the outputs of the lower bound."""
    error = ERROR / (2 * LOOKS)
    lower, worst = _lower(tally.counts[:, : first.shape[1]] - first, tally.runs - FIRST_RUNS, ends, error)
    delta = max(delta, UNSEEN * unseen(tally.runs, error))
    (upper,), _ = largest_losses(tally.counts, ends, tally.runs, error=error, deltas=[delta])
    return Counted(epsilon, lower, upper, delta, pairs[worst], tally.runs, len(first), len(tally.outputs))


def _lower(counts: Counts, runs: int, ends: NDArray[np.intp], error: float) -> tuple[float, int]:
    """Return a lower bound on the loss of the likeliest output and pair, and the number of that pair."""
    with np.errstate(divide="ignore"):
        low, high = (np.log(limit(counts, runs, error / (2 * counts.size))) for limit in (lower_limit, upper_limit))
    data, neighbour = ends
    least = np.maximum(low[data] - high[neighbour], low[neighbour] - high[data]).max(axis=1)
    worst = int(np.argmax(least))
    return float(least[worst]), worst
