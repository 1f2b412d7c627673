"""What a clean game would have found: the smallest violation that its budget refutes nine times in ten, and the reverse.

No finite sample bounds every alternative, so the alternative is named: the pair that the same kind of claim allows at a
larger level, which is the easiest violation to see. It is randomised response on one bit for pure claims, the Gaussian
mechanism for Gaussian DP, and for any claim the dominating pair, whose growth under the best bet (`regions.py`) is the limit
for every sequential test.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import cache

import numpy as np
from scipy.special import betainc, gammaincinv, ndtr, ndtri

from auditdp.betting.wealth.forecasts import Law
from auditdp.betting.wealth.levels import level_grid
from auditdp.betting.wealth.nearest_region import nearest_regions
from auditdp.betting.wealth.regions import log_cap
from auditdp.claims.claim import Claim
from auditdp.claims.dominating import DominatingPair, lines
from auditdp.errors import ConfigurationError
from auditdp.record.budget import Fault

POWER = 0.9
"""What is called nine times in ten."""
HIGHEST_LEVEL = 64.0
"""Violations beyond it are not considered."""
UNKNOWN = 10
"""Occurrences of an output before a cell of its own is known and trusted."""
PRECISION = 1e-3
"""Of detectable levels, relative."""
MOST_FOUND = 10**15
"""Calls beyond which none are counted."""


def detectable_level(
    claim: Claim, *, calls: int, alpha: float, share: float, white_box: bool
) -> tuple[float, str]:
    """Return the smallest level refuted with probability at least .9, and the alternative it is about.

    The calls are those that the best pair got: with several pairs, what was spent on the others shows nothing.

    For pure claims, with one exact forecaster that has a share of the wealth, the wealth after all calls is at least
    what its bets make of that share, so the binomial tail below is a lower bound on the power. Without a white-box
    forecaster, the price of learning two atoms, 2 (ln(calls/2)/2 + ln 2) nats (Krichevsky & Trofimov 1981), is added;
    then, and for all other claims (normal approximation, and a region that is known from the start), the level is an
    estimate.

    Args:
        claim: The claim that was not refuted.
        calls: Calls that were spent on one pair.
        alpha: The level of the test.
        share: The share of the wealth that the forecaster in question has from the start.
        white_box: Whether it knows the law.

    Returns:
        The level (infinite if even the largest that is considered, 64, is beyond the budget) and its description.
    """
    found = _Levels(claim).detectable(
        calls=calls, alpha=alpha, share=share, white_box=white_box
    )
    return found, claim.alternative


class _Levels:
    """The levels above a claim's, and the power against the worst pair at each."""

    def __init__(self, claim: Claim) -> None:
        levels = level_grid(claim, ratio=1 + PRECISION)
        self.claim = claim
        self._levels = levels[(levels > claim.level) & (levels <= HIGHEST_LEVEL)]
        self._growth = cache(lambda level: growth(claim, claim.at(level)))

    def detectable(
        self, *, calls: int, alpha: float, share: float, white_box: bool
    ) -> float:
        """Return the smallest level refuted with probability at least .9, or infinity."""
        if not calls:
            return math.inf
        needed = math.log(1 / alpha) - math.log(share)
        if not white_box:
            needed += math.log(max(calls, 2) / 2) + 2 * math.log(2)
        enough = bisect_left(
            self._levels,
            POWER,
            key=lambda level: self._power(float(level), calls, needed),
        )
        return float(self._levels[enough]) if enough < len(self._levels) else math.inf

    def _power(self, level: float, calls: int, needed: float) -> float:
        """Return P(final log wealth >= needed), for all but pure claims in a normal approximation."""
        if self.claim.delta == 0:
            return _response_power(self.claim, level, calls, needed)
        mean, deviation = self._growth(
            level
        )  # under the region that is best against it
        return float(ndtr((mean * calls - needed) / (deviation * math.sqrt(calls))))


def calls_to_find(
    fault: Fault, claim: Claim, *, alpha: float, share: float, white_box: bool
) -> int:
    """Return after how many calls of one pair a fault is found nine times in ten: what the power line then states.

    It inverts ``detectable_level`` and ``detectable_rarely``, which are estimates where these are, by bisection. The power
    against a pure claim goes up and down a little with the calls, so that somewhat fewer may do as well.

    Args:
        fault: The fault.
        claim: The claim that is played against.
        alpha: The level of the test.
        share: The share of the wealth that the forecaster in question has from the start.
        white_box: Whether it knows the law; for 'level'.

    Raises:
        ConfigurationError: If the power against such a fault is not known for this claim, or no number of calls finds it.
    """
    if fault.kind != "level" and claim.delta != 0:
        raise ConfigurationError(
            f"find {fault}: how rare an output may be is known for claims with δ = 0 alone, and this one is {claim}; find a "
            "level, such as level:1.5, or name the calls"
        )
    levels = _Levels(claim)

    def found(calls: int) -> bool:
        if fault.kind == "level":
            smallest = levels.detectable(
                calls=calls, alpha=alpha, share=share, white_box=white_box
            )
            return smallest <= fault.size * claim.level
        tail, alone = detectable_rarely(claim, calls=calls, alpha=alpha, share=share)
        return (tail if fault.kind == "tail" else alone) <= fault.size

    high = 1
    while not found(high):
        high *= 2
        if high > MOST_FOUND:
            raise ConfigurationError(
                f"find {fault}: {MOST_FOUND:.0e} calls do not find {fault.description}, of {claim}; find a larger fault"
            )
    least = high // 2 + 1
    return least + bisect_left(range(least, high), True, key=found)


def detectable_rarely(
    claim: Claim, *, calls: int, alpha: float, share: float
) -> tuple[float, float]:
    """Return how rare an output may be that a black box refutes a pure claim by it nine times in ten.

    The first of two probabilities is that of outputs which lose twice the claim, under the input that gives them more often;
    the second that of an output which only one input gives. Either is bet on in a cell of its own, once that is known and
    trusted. What that takes is an estimate, which repeated games agree with (``tests/unit/betting/test_power.py``).

    Args:
        claim: A claim without a δ.
        calls: Calls that were spent on one pair.
        alpha: The level of the test.
        share: The share of the wealth that one forecaster has from the start.
    """
    if claim.level > HIGHEST_LEVEL / 2:
        return 1.0, 1.0
    needed, quantile = math.log(1 / alpha) - math.log(share), -ndtri(1 - POWER)
    mean, deviation = growth(claim, claim.at(2 * claim.level))
    events = 1.0
    while events <= calls and (
        events * mean - quantile * deviation * math.sqrt(events)
        < needed + math.log(events) + UNKNOWN * mean
    ):
        events *= 1.02
    tail = (
        2
        * (events + quantile * math.sqrt(events))
        / (calls * (1 + math.exp(-2 * claim.level)))
    )
    alone = UNKNOWN + needed / math.log1p(math.exp(-claim.level))
    return min(tail, 1.0), min(
        float(2 * gammaincinv(math.ceil(alone), POWER) / calls), 1.0
    )


def _response_power(claim: Claim, level: float, calls: int, needed: float) -> float:
    """P(final log wealth >= needed) when randomised response at ``level`` is played by its true posterior."""
    (log_q, log_1q), (log_p, log_1p) = log_cap(claim.level), log_cap(level)
    won, lost = log_p - log_q, log_1p - log_1q
    enough = math.ceil((needed - calls * lost) / (won - lost))
    if not 0 < enough <= calls:
        return float(enough <= 0)
    return float(
        betainc(enough, calls - enough + 1, math.exp(log_p))
    )  # P(Bin(calls, p) >= enough)


def growth(claim: Claim, truth: Claim) -> tuple[float, float]:
    """Return mean and standard deviation of a call's log factor under the best bet, for the worst pair that is allowed.

    The mean is the limit for every sequential test (`regions.py`), but for what is lost by cutting a law into 32 cells.

    Args:
        claim: The claim that is bet against.
        truth: The claim whose dominating pair the outputs are drawn from.
    """
    pair = DominatingPair.of(truth.statements())
    return gain(claim, Law(pair.log_odds, pair.p + pair.q))


def gain(claim: Claim, law: Law) -> tuple[float, float]:
    """Return mean and standard deviation of a call's log factor under the best bet, for a law of log-odds that is known."""
    claimed = claim.statements()
    zeros, ones = law.cells()
    (region,) = nearest_regions(zeros[None], ones[None], lines(claimed)[None])
    gains = region.choose(np.log(ones) - np.log(zeros)) - region.price(
        DominatingPair.of(claimed)
    )
    weights = np.stack([zeros, ones]) / 2
    mean = float((weights * gains).sum())
    return mean, math.sqrt(
        max(float((weights * np.square(gains)).sum()) - mean**2, 1e-300)
    )
