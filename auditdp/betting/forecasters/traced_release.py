"""Log-odds of an output by the laws of its noisy numbers, which traced runs recorded.

A noisy value may be a number of the output, or a linear function of its numbers. Then
an output determines the value, and the trace has recorded its density. Given the input,
the noisy values of an output are independent, so their log-odds add up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditdp.betting.forecasters.traced_noise import (
    NoisyNumber,
    Ratio,
    Table,
    TracedRuns,
    function_of,
    laws_of,
    results_of,
)
from auditdp.betting.forecasters.traced_outcomes import (
    DecidedNumbers,
    decided_numbers,
)
from auditdp.betting.wealth.forecasts import Law
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing.draws import ALONE, NOISY


def by_releases(
    runs: TracedRuns, fixed: Sequence[int], *, with_events: bool
) -> tuple[Ratio, Law] | None:
    """Compute log-odds by the recorded laws, and the law of these log-odds.

    Args:
        runs: Traced runs of a pair.
        fixed: Columns that must not change: if such a column was constant in the traced
            runs, the log-odds of outputs with another value are NaN.
        with_events: Whether there are enough runs to find the numbers that events and
            choices decide.

    Returns:
        The function from outputs to log-odds and the law of these log-odds. None if the
        runs are not alike (``TracedRuns.is_alike``), if a release with a loss is not
        determined by the output, if its law is unknown or differs between runs, if the
        releases do not explain a difference of the outputs, or if nothing differs
        between the inputs.
    """
    if not runs.is_alike:
        return None
    one, zero = runs.rows
    # A column is open as long as its difference is not explained by a noisy number.
    is_open = np.any((one != zero) & ~(np.isnan(one) & np.isnan(zero)), axis=0)
    has_open = bool(is_open.any())
    parts: list[NoisyNumber | DecidedNumbers] = []
    events = []
    for place in runs.places:
        loses = runs.loses(place)
        if runs.of(place)[0][0].kind not in (NOISY, ALONE):
            events.append(place)
        elif loses or has_open:
            found = _noisy_numbers(runs, place, has_open=has_open)
            if found is None and loses:
                return None
            parts += found or []
            is_open[[n.columns[0] for n in found or [] if len(n.columns) == 1]] = False
    if is_open.any() or any(map(runs.loses, events)):
        if not with_events:
            return None
        decided = decided_numbers(runs, events, is_open)
        if decided is None:
            return None
        parts += decided
    if not parts:
        return None
    values = {k: one[0, k] for k in fixed if len({*one[:, k].tolist()}) == 1}

    def log_odds(outputs: Array) -> Floats:
        rows = outputs.astype(float)
        with np.errstate(all="ignore"):
            odds = np.sum([part.log_odds(rows) for part in parts], axis=0)
        for column, value in values.items():
            odds[rows[:, column] != value] = np.nan
        return np.asarray(odds)

    return log_odds, _law_of_sum([each.tables() for each in parts])


def _noisy_numbers(
    runs: TracedRuns, place: int, *, has_open: bool
) -> list[NoisyNumber] | None:
    """Return the numbers of a release whose laws differ between the inputs.

    Args:
        runs: Traced runs of a pair.
        place: The index of the release.
        has_open: Whether to return numbers with equal laws as well, if the output is
            another function of them on the neighbour.

    Returns:
        The numbers. None if the law of a number is unknown or differs between runs, if
        its noise is shared or used before, or if a number with different laws is not
        determined by the output.
    """
    sides = runs.of(place)
    first = sides[0]
    if any(r.groups is not None or r.earlier for r in first):
        return None
    ones, zeros = (laws_of(side) for side in sides)
    if ones is None or zeros is None:
        return None
    values = results_of(first)
    numbers = []
    for column, ones_law, zeros_law in zip(values.T, ones, zeros, strict=True):
        one, zero = ones_law.common(), zeros_law.common()
        if one is None or zero is None:
            return None
        is_equal = one.same_as(zero)
        if is_equal and not has_open:
            continue
        function, other = (function_of(column, rows) for rows in runs.rows)
        moved = None
        if function is not None and other is not None:
            # The neighbour's law is stated for the data's function of the output.
            moved = zero.transformed(other, function)
        if moved is None and not is_equal:
            return None
        if function is not None and moved is not None and not one.same_as(moved):
            numbers.append(NoisyNumber(*function, (one, moved)))
    return numbers


def _law_of_sum(tables: Sequence[Sequence[Table]]) -> Law:
    """Return the law of a sum of independent log-odds.

    Args:
        tables: For each term, its tables on the data and on the neighbour.
    """
    if len(tables) == 1:
        parts = tables[0]
    else:
        # Draws from the law of the sum are accurate enough for the choice of bets.
        draws = 2_048
        rng = np.random.default_rng(0)
        parts = []
        for side in (0, 1):
            drawn = [rng.choice(t[side][0], draws, p=t[side][1]) for t in tables]
            with np.errstate(invalid="ignore"):
                total = np.sum(drawn, axis=0)
            total = np.nan_to_num(total, nan=0.0, posinf=np.inf, neginf=-np.inf)
            parts.append((total, np.full(draws, 1 / draws)))
    odds, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Law(odds, weights).grouped()
