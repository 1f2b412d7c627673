"""The power line of a night: the smallest violation that one night, and several, report nine times in ten."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np

from auditdp.history.nightly.control import POWER, nights_to_report
from auditdp.history.nightly.stream import Stream
from auditdp.record.details import GameDetails
from auditdp.record.results import SYMBOLS, AuditResult, Verdict

PRECISION = 1e-3


def within(result: AuditResult, stream: Stream, nights: int) -> Iterator[tuple[str, float, float]]:
    """Yield (letter, level of one night, level of several) for an audit whose game refuted nothing.

    One night's level is that of the game. What its learning costs is read off that level, and taken off every night again;
    what a call gains at lower levels is in the game's details.

    Args:
        result: The audit.
        stream: After the night.
        nights: How many.
    """
    game, claim = result.game, result.claim
    if game is None or claim is None or game.verdict is not Verdict.NOT_REFUTED:
        return
    points = game.details.growths if isinstance(game.details, GameDetails) else None
    if not points or not result.alpha or not game.calls:
        return
    levels, means, deviations = np.array(points, dtype=float).T
    single, calls = float(levels[-1]), game.calls
    gained = calls * means[-1] - NormalDist().inv_cdf(POWER) * deviations[-1] * math.sqrt(calls)
    cost = max(gained - math.log(1 / result.alpha), 0.0)
    low, high = float(levels[0]), single
    while high - low > PRECISION * high:
        level = (low + high) / 2
        needed = nights_to_report(
            growth=calls * float(np.interp(level, levels, np.sqrt(means))) ** 2 - cost,
            deviation=float(np.interp(level, levels, deviations)) * math.sqrt(calls),
            alpha=stream.alpha,
            night=stream.night + 1,
            audits=max(len(stream.accounts), 1),
        )
        low, high = (low, level) if needed <= nights else (level, high)
    yield SYMBOLS[claim.parameter], single, high
