"""The power of a game without a finding: the smallest violation that it would refute.

The power depends on the law of the mechanism, so one law is chosen for each level: the
worst pair of output laws that the same kind of claim allows at this level. No other
violation of this level is easier to detect. The pair is randomised response on one bit
for pure claims, and the Gaussian mechanism for Gaussian DP. For any claim it is the
dominating pair (`claims/dominating.py`). No sequential test gains more per call than
the best bet under this pair (`regions.py`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import cache

import numpy as np
from scipy.special import betainc, gammaincinv, ndtr, ndtri

from auditdp.betting.limits import LIMITS
from auditdp.betting.wealth.forecasts import Law
from auditdp.betting.wealth.levels import HIGHEST_LEVEL, level_grid
from auditdp.betting.wealth.nearest_region import nearest_regions
from auditdp.betting.wealth.regions import log_cap
from auditdp.claims.claim import Claim
from auditdp.claims.dominating import DominatingPair, lines
from auditdp.errors import ConfigurationError
from auditdp.record.budget import Fault

POWER = 0.9
"""Probability of a refutation that reports call "nine times in ten"."""
TRUSTED_OCCURRENCES = 10
"""Occurrences of an output after which a cell of its own is learned and trusted.

An estimate, which repeated games agree with (``tests/unit/betting/test_power.py``).
"""


def detectable_level(
    claim: Claim, *, calls: int, alpha: float, share: float, white_box: bool
) -> tuple[float, str]:
    """Return the smallest level refuted with probability .9, and its description.

    For pure claims, one exact forecaster bets with ``share`` of the first wealth. The
    final wealth is at least the wealth of this forecaster. So the power is at least a
    binomial tail (``_response_power``). Without a white-box forecaster, the
    cost of learning two atoms, 2 (ln(calls/2)/2 + ln 2) nats (Krichevsky & Trofimov
    1981), is added to the wealth that is needed; the level is then an estimate. For all
    other claims it is always an estimate, by a normal approximation and with a region
    that is known from the start.

    Args:
        claim: The claim that was not refuted.
        calls: Calls of the pair with most calls; calls of other pairs do not count.
        alpha: The level of the test.
        share: The forecaster's share of the wealth at the start, 0 to 1.
        white_box: Whether the forecaster knows the law.

    Returns:
        The level (infinite if no level up to 64 is refuted, or if there are no calls)
        and the description of a mechanism that has exactly this level.
    """
    level = _Levels(claim).detectable(
        calls=calls, alpha=alpha, share=share, white_box=white_box
    )
    return level, claim.alternative


class _Levels:
    """The levels above a claim's, and the power against the worst pair of each."""

    def __init__(self, claim: Claim) -> None:
        # A detectable level is found to a relative precision of 1e-3.
        levels = level_grid(claim, ratio=1 + 1e-3)
        self.claim = claim
        self._levels = levels[(levels > claim.level) & (levels <= HIGHEST_LEVEL)]
        self._growth = cache(lambda level: growth(claim, claim.at(level)))

    def detectable(
        self, *, calls: int, alpha: float, share: float, white_box: bool
    ) -> float:
        """Return the smallest level refuted with probability .9, or infinity."""
        if not calls:
            return math.inf
        needed = math.log(1 / alpha) - math.log(share)
        # The cost of learning two atoms; ``detectable_level`` has the source.
        if not white_box:
            needed += math.log(max(calls, 2) / 2) + 2 * math.log(2)

        def power(level: float) -> float:
            if self.claim.delta == 0:
                return _response_power(self.claim, level, calls, needed)
            # The bets are those of the region that is best for this level.
            mean, deviation = self._growth(level)
            excess = mean * calls - needed
            return float(ndtr(excess / (deviation * math.sqrt(calls))))

        place = bisect_left(self._levels, POWER, key=lambda level: power(float(level)))
        return float(self._levels[place]) if place < len(self._levels) else math.inf


def calls_to_find(
    fault: Fault, claim: Claim, *, alpha: float, share: float, white_box: bool
) -> int:
    """Return the number of calls of one pair that finds a fault nine times in ten.

    ``detectable_level`` and ``detectable_rarely`` are inverted by bisection. The result
    is an estimate if theirs is one. The power against a pure claim goes up and down a
    little with the number of calls, so slightly fewer calls may be enough.

    Args:
        fault: The fault.
        claim: The claim that is played against.
        alpha: The level of the test.
        share: The forecaster's share of the wealth at the start, 0 to 1.
        white_box: Whether the forecaster knows the law. It has no effect on faults of
            other kinds than 'level'.

    Raises:
        ConfigurationError: If the power against the fault is not known for this claim,
            or no number of calls finds it.
    """
    if fault.kind != "level" and claim.delta != 0:
        raise ConfigurationError(
            f"find {fault}: how rare an output may be is known for claims with δ = 0 alone, and this one is {claim}; find a "
            "level, such as level:1.5, or name the calls"
        )
    levels = _Levels(claim)

    def is_found(calls: int) -> bool:
        if fault.kind == "level":
            smallest = levels.detectable(
                calls=calls, alpha=alpha, share=share, white_box=white_box
            )
            return bool(smallest <= fault.size * claim.level)
        tail, alone = detectable_rarely(claim, calls=calls, alpha=alpha, share=share)
        if fault.kind == "tail":
            return tail <= fault.size
        return alone <= fault.size

    # Double the calls until the fault is found, then bisect the last doubling.
    high = 1
    while not is_found(high):
        high *= 2
        if high > LIMITS.calls_to_find:
            raise ConfigurationError(
                f"find {fault}: {LIMITS.calls_to_find:.0e} calls do not find {fault.description}, of {claim}; "
                "find a larger fault"
            )
    low = high // 2 + 1
    return low + bisect_left(range(low, high), True, key=is_found)


def detectable_rarely(
    claim: Claim, *, calls: int, alpha: float, share: float
) -> tuple[float, float]:
    """Return the smallest probabilities at which two kinds of outputs refute a claim.

    The claim is pure, and its refutation has a probability of about .9. Outputs are bet
    on in a cell of their own, once the odds of this cell are learned. Probabilities are
    those under the input that gives the outputs more often.

    Args:
        claim: A claim without a δ.
        calls: Calls of the pair.
        alpha: The level of the test.
        share: The forecaster's share of the wealth at the start, 0 to 1.

    Returns:
        The smallest probability of outputs whose privacy loss is twice the claim, and
        the smallest one of an output that only one input gives. Each is 1.0 if no
        smaller one suffices; both are 1.0 for a claim above level 32.
    """
    if claim.level > HIGHEST_LEVEL / 2:
        return 1.0, 1.0
    needed, quantile = math.log(1 / alpha) - math.log(share), -ndtri(1 - POWER)
    mean, deviation = growth(claim, claim.at(2 * claim.level))

    def is_enough(events: float) -> bool:
        surely = events * mean - quantile * deviation * math.sqrt(events)
        return bool(surely >= needed + math.log(events) + TRUSTED_OCCURRENCES * mean)

    # Occurrences of a rare output that pay for the test and for learning its cell.
    events = 1.0
    while events <= calls and not is_enough(events):
        events *= 1.02
    # Enough occurrences come with probability .9 if their mean is this much higher.
    occurrences = events + quantile * math.sqrt(events)
    tail = 2 * occurrences / (calls * (1 + math.exp(-2 * claim.level)))
    alone = TRUSTED_OCCURRENCES + needed / math.log1p(math.exp(-claim.level))
    rarest = float(2 * gammaincinv(math.ceil(alone), POWER) / calls)
    return min(tail, 1.0), min(rarest, 1.0)


def _response_power(claim: Claim, level: float, calls: int, needed: float) -> float:
    """Return P(final log wealth >= needed) for randomised response at a level.

    The bets are the best ones against the claim.
    """
    (log_q, log_1q), (log_p, log_1p) = log_cap(claim.level), log_cap(level)
    won, lost = log_p - log_q, log_1p - log_1q
    enough = math.ceil((needed - calls * lost) / (won - lost))
    if not 0 < enough <= calls:
        return float(enough <= 0)
    # P(Bin(calls, p) >= enough)
    return float(betainc(enough, calls - enough + 1, math.exp(log_p)))


def growth(claim: Claim, truth: Claim) -> tuple[float, float]:
    """Return mean and standard deviation of the log factor of the best bet on a call.

    Both are in nats. No sequential test gains more per call (`regions.py`), up to the
    loss by cutting a law into 32 cells.

    Args:
        claim: The claim that is bet against.
        truth: The claim whose dominating pair is the law of the outputs.
    """
    pair = DominatingPair.of(truth.statements())
    return gain(claim, Law(pair.log_odds, pair.p + pair.q))


def gain(claim: Claim, law: Law) -> tuple[float, float]:
    """Return mean and standard deviation of a call's log factor under a law, in nats.

    The bets are the best ones against the claim for this law.
    """
    claimed = claim.statements()
    zeros, ones = law.cells()
    (region,) = nearest_regions(zeros[None], ones[None], lines(claimed)[None])
    price = region.price(DominatingPair.of(claimed))
    gains = region.choose(np.log(ones) - np.log(zeros)) - price
    weights = np.stack([zeros, ones]) / 2
    mean = float((weights * gains).sum())
    variance = float((weights * np.square(gains)).sum()) - mean**2
    return mean, math.sqrt(max(variance, 1e-300))
