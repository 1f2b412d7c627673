"""The power line of a night: the smallest violation that one night, and several, report nine times in ten."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist

from auditdp.nightly.control import POWER, nights_to_report
from auditdp.nightly.stream import Stream
from auditdp.results import SYMBOLS, AuditResult, Verdict

PRECISION = 1e-3


def within(result: AuditResult, stream: Stream, nights: int) -> Iterator[tuple[str, float, float]]:
    """Yield (letter, level of one night, level of several) for an audit of a pure claim whose game refuted nothing.

    One night's level is that of the game. What its learning costs is read off that level, and taken off every night again;
    the alternative is randomised response on one bit, whose growth and deviation per call are known.

    Args:
        result: The audit.
        stream: After the night.
        nights: How many.
    """
    game = next((evidence for evidence in result.evidence if evidence.kind == "game"), None)
    claim = result.claim
    if game is None or claim is None or claim.epsilon is None or claim.delta or game.verdict is not Verdict.NOT_REFUTED:
        return
    claimed, single = float(claim.epsilon), game.details.get("detectable_epsilon")
    if not isinstance(single, int | float) or not math.isfinite(single) or not result.alpha or not game.calls:
        return
    growth, deviation = per_call(claimed, single)
    calls = game.calls
    earned = calls * growth - NormalDist().inv_cdf(POWER) * deviation * math.sqrt(calls)
    cost = max(earned - math.log(1 / result.alpha), 0.0)
    low, high = claimed, max(single, claimed + 1.0) + 10.0
    while high - low > PRECISION * high:
        level = (low + high) / 2
        growth, deviation = per_call(claimed, level)
        needed = nights_to_report(
            growth=calls * growth - cost,
            deviation=deviation * math.sqrt(calls),
            alpha=stream.alpha,
            night=stream.night + 1,
            audits=max(len(stream.accounts), 1),
        )
        low, high = (low, level) if needed <= nights else (level, high)
    yield SYMBOLS[claim.parameter], float(single), min(high, float(single))


def per_call(claimed: float, truth: float) -> tuple[float, float]:
    """Return mean and standard deviation of a call's log factor: bets by the true posterior against a pure claim.

    The output names the coin rightly with probability e^truth/(1+e^truth); the claim allows e^claimed/(1+e^claimed).
    """
    right, allowed = 1 / (1 + math.exp(-truth)), 1 / (1 + math.exp(-claimed))
    gain, loss = math.log(right / allowed), math.log((1 - right) / (1 - allowed))
    mean = right * gain + (1 - right) * loss
    return mean, math.sqrt(right * (1 - right)) * abs(gain - loss)
