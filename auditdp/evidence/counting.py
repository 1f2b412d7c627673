"""What a mechanism of few inputs and few outputs loses, by counting its outputs: for broken twins that may keep a claim.

An audit whose mechanism loses less than is claimed cannot refute a fault that only uses the slack up. Where all neighbours
can be listed and outputs are few, the probability of every output on every input is bounded from runs (Clopper & Pearson
1934), and with them the loss on every pair, from both sides. Outputs that neither input of a pair was seen to give are
bounded in probability only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Adjacency, Pair
from auditdp.betting.cells import Names
from auditdp.betting.game import Streams
from auditdp.betting.views import as_rows, fingerprint
from auditdp.betting.wealth import Floats
from auditdp.binomial import lower_limit, upper_limit
from auditdp.calls import call
from auditdp.mechanism import Mechanism, identity_key

FIRST_RUNS = 4096
"""Runs on every input that show which outputs there are; they are not counted."""
LOOKS = 9
"""How often runs are doubled and looked at: up to two million on every input."""
MOST_CALLS = 1 << 27
MOST_OUTPUTS = 256
MOST_PAIRS = 4096
ERROR = 1e-4
"""Probability that any of the bounds does not hold."""


@dataclass(frozen=True)
class Counted:
    """The loss of a mechanism over all neighbours, from counts, with an error probability of 1e-4.

    Attributes:
        epsilon: The loss that is claimed, in nats.
        lower: Some output is so much likelier on one input of ``pair`` than on the other, in nats, or more.
        upper: No output that either input of a pair was seen to give is more than so much likelier on the other.
        pair: The pair of the lower bound.
        runs: Runs on every input.
        inputs: Inputs.
        outputs: Outputs that were seen.
        others: All outputs that neither input of a pair was seen to give have at most this probability, together, on both.
    """

    epsilon: float
    lower: float
    upper: float
    pair: Pair
    runs: int
    inputs: int
    outputs: int
    others: float

    @property
    def calls(self) -> int:
        """Calls that were made."""
        return (self.runs + FIRST_RUNS) * self.inputs

    @property
    def keeps(self) -> bool:
        """Whether the claim is kept."""
        return self.upper <= self.epsilon

    @property
    def breaks(self) -> bool:
        """Whether the claim is broken."""
        return self.lower > self.epsilon

    @property
    def statement(self) -> str:
        """What was found, in words."""
        what = f"counting in {self.runs:,} runs on each of {self.inputs:,} inputs"
        if self.breaks:
            return f"{what} shows a loss of at least {self.lower:.4g} on {self.pair}"
        if not self.keeps:
            return f"{what} leaves its loss between {self.lower:.4g} and {self.upper:.4g}"
        return (
            f"{what} shows that it keeps the claim: none of {self.outputs} outputs is more than e^{self.upper:.4g} times as "
            f"likely on a neighbour, others have a probability of at most {self.others:.2g} (wrong once in {1 / ERROR:,.0f})"
        )


def counted(mechanism: Mechanism, adjacency: Adjacency, epsilon: float, streams: Streams) -> Counted | None:
    """Count outputs on all inputs until it is clear whether the loss is above or below ``epsilon``, or runs are many.

    Returns:
        The bounds; None where neighbours cannot be listed, or are more than 4,096 pairs, or outputs more than 256.

    Raises:
        MechanismError: If the mechanism misbehaves.
    """
    pairs = adjacency.exhaustive()
    if not pairs or len(pairs) > MOST_PAIRS:
        return None
    inputs = {identity_key(data): data for pair in pairs for data in (pair.data, pair.neighbour)}
    place = {key: k for k, key in enumerate(inputs)}
    ends = np.array([[place[identity_key(data)] for data in (pair.data, pair.neighbour)] for pair in pairs]).T
    number = count()

    def draw(data: Any, runs: int) -> Floats:
        return fingerprint(as_rows(call(mechanism, data, runs, streams("counted", next(number)))))

    names = np.zeros(0)
    for data in inputs.values():
        names = np.union1d(names, draw(data, FIRST_RUNS))
        if len(names) > MOST_OUTPUTS:
            return None
    cells = Names(names)  # and a last one for what was not seen before
    counts, runs, found = np.zeros((len(inputs), cells.size)), 0, None
    for look in range(LOOKS):
        more = FIRST_RUNS << look
        if (runs + more) * len(inputs) > MOST_CALLS:
            break
        counts += [cells.count(draw(data, more)) for data in inputs.values()]
        runs += more
        found = _losses(counts, runs, pairs, ends, epsilon)
        if found.keeps or found.breaks:
            break
    return found


def _losses(counts: Floats, runs: int, pairs: Sequence[Pair], ends: NDArray[np.intp], epsilon: float) -> Counted:
    """Return the loss over all pairs from counts of shape (inputs, outputs), the last column being all other outputs."""
    error = ERROR / (2 * LOOKS * counts.size)
    with np.errstate(divide="ignore"):
        low, high = np.log(lower_limit(counts, runs, error)), np.log(upper_limit(counts, runs, error))
    data, neighbour = ends
    least = np.maximum(low[data] - high[neighbour], low[neighbour] - high[data]).max(axis=1)
    unseen = (counts[data] == 0) & (counts[neighbour] == 0)
    unseen[:, -1] = True
    most = np.where(unseen, -np.inf, np.maximum(high[data] - low[neighbour], high[neighbour] - low[data]))
    worst = int(np.argmax(least))
    others = float(max((np.exp(high[side]) * unseen).sum(axis=1).max() for side in ends))
    size = counts.shape[1] - 1
    return Counted(epsilon, float(least[worst]), float(most.max()), pairs[worst], runs, len(counts), size, others)
