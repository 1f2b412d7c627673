"""Log-odds of outputs from tables: of all outputs, of decided numbers, or of values.

`by_table`: if random events and choices decide between a small number of outputs, the
trace computes the probability of each output on both inputs, and the log-odds are
exact. `decided_numbers`: the log-odds are also exact if each number of the output is
decided by one event or choice, as in randomised response of many bits, since the
numbers are independent. `by_values`: if a value reaches the output without noise, it
occurs repeatedly on one input, and never on the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from auditdp.betting.forecasters.traced_noise import (
    Ratio,
    Table,
    TracedRuns,
    results_of,
)
from auditdp.betting.wealth.forecasts import Law
from auditdp.mechanism.calls.representation import Representation
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing import Outcomes
from auditdp.tracing.chance import tables_of

ANYWHERE = -1
"""Stands for the place of a number that counts wherever it is in the output."""


def by_table(outcomes: Outcomes, rows: Array) -> tuple[Ratio, Law] | None:
    """Return the log-odds of outputs, by a table of all possible outputs.

    Args:
        outcomes: All outputs on the pair, with their probabilities.
        rows: The outputs as rows, in the order of ``outcomes.masses``, shape (outcomes,
            numbers).

    Returns:
        The function from rows to log-odds and the law of these log-odds, or None if
        both inputs have the same law.
    """
    masses = np.array(list(outcomes.masses.values()))
    possible = masses.any(axis=1)
    rows, masses = rows[possible], masses[possible]
    with np.errstate(divide="ignore"):
        one, zero = np.log(masses).T
    odds = one - zero
    if not np.any(one != zero):
        return None
    table = {row.tobytes(): value for row, value in zip(rows, odds, strict=True)}

    def log_odds(outputs: Array) -> Floats:
        return np.array([table.get(row.tobytes(), np.nan) for row in outputs])

    return log_odds, Law(odds, masses.sum(axis=1))


@dataclass(frozen=True, eq=False)
class DecidedNumbers:
    """Numbers of the output that one event or choice decides together.

    Attributes:
        columns: The columns of the numbers.
        values: The possible values of the numbers, shape (outcomes, numbers).
        masses: The probabilities of the outcomes on the data, and on the neighbour.
    """

    columns: NDArray[np.intp]
    values: Floats
    masses: tuple[Floats, Floats]

    @property
    def odds(self) -> Floats:
        """The log-odds of each outcome, shape (outcomes,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.masses[0]) - np.log(self.masses[1]))

    def tables(self) -> list[Table]:
        """Return the log-odds and their probabilities, for data and neighbour."""
        return [(self.odds, masses) for masses in self.masses]

    def log_odds(self, outputs: Floats) -> Floats:
        """Return the log-odds of rows; NaN for values that no traced run had."""
        found = np.full(len(outputs), np.nan)
        for value, odds in zip(self.values, self.odds, strict=True):
            found[np.all(outputs[:, self.columns] == value, axis=1)] = odds
        return found


def decided_numbers(
    runs: TracedRuns, places: Sequence[int], is_open: NDArray[np.bool_]
) -> list[DecidedNumbers] | None:
    """Find the numbers of the output that events and choices decide.

    Args:
        runs: Traced runs of a pair, enough to contain all likely outcomes.
        places: The indices of the releases that are events or choices.
        is_open: Mask of the columns that differ between the inputs, and that no noisy
            value explains.

    Returns:
        The numbers whose laws differ between the inputs. None if an event with
        different laws decides no number, or if no event explains an open column.
    """
    one, zero = runs.rows
    # A constant decides the columns that are the same in all runs of an input.
    certain = np.ones(1), np.ones(1)
    sources = [(np.zeros(len(one), int), certain)]
    for place in places:
        sources += _events(runs, place)
    is_free = np.ones(one.shape[1], bool)
    found = []
    # The comparison with each column is quadratic in the number of events.
    for results, masses in sources[:256]:
        is_decided = is_free & _is_decided(results, one) & _is_decided(results, zero)
        columns = np.flatnonzero(is_decided)
        is_free[columns] = False
        if not len(columns):
            if not np.array_equal(*masses):
                return None
            continue
        # Probabilities of outcomes with the same value are added.
        both: dict[tuple[float, ...], list[float]] = {}
        for result in np.unique(results).tolist():
            for side, rows in enumerate((one, zero)):
                value = tuple(rows[results == result][0, columns].tolist())
                both.setdefault(value, [0.0, 0.0])[side] += float(masses[side][result])
        ones, zeros = np.array(list(both.values())).T
        if not np.array_equal(ones, zeros):
            found.append(DecidedNumbers(columns, np.array(list(both)), (ones, zeros)))
    if np.any(is_open & is_free):
        return None
    return found


def _events(
    runs: TracedRuns, place: int
) -> list[tuple[NDArray[np.int64], tuple[Floats, Floats]]]:
    """Return the results of each event of a release, and their probabilities.

    Returns:
        For each event, its result in each run and the probabilities of the results on
        both inputs; [] if probabilities differ between runs, or if the events have
        different numbers of outcomes on the two inputs.
    """
    sides = runs.of(place)
    results = results_of(sides[0]).astype(int)
    masses = []
    for side in sides:
        tables = [np.atleast_2d(tables_of(release)) for release in side]
        if any(not np.array_equal(table, tables[0]) for table in tables):
            return []
        masses.append(tables[0])
    if masses[0].shape != masses[1].shape:
        return []
    shape = (results.shape[1], masses[0].shape[-1])
    one, zero = (np.broadcast_to(table, shape) for table in masses)
    return [(results[:, k], (one[k], zero[k])) for k in range(results.shape[1])]


def _is_decided(results: NDArray[np.int64], rows: Floats) -> NDArray[np.bool_]:
    """Return a mask of the columns that are equal in all runs with the same result."""
    parts = [rows[results == result] for result in np.unique(results)]
    equal = [(part == part[0]).all(axis=0) for part in parts]
    return np.asarray(np.all(equal, axis=0))


def by_values(
    sides: Sequence[Array], tails: Sequence[Array], form: Representation, *, often: int
) -> tuple[Ratio, Floats] | None:
    """Return infinite log-odds for outputs with a number that only one input gives.

    Args:
        sides: Outputs of runs on the data, and on the neighbour.
        tails: Outputs of further runs on the data, and on the neighbour, in which a
            rare event was forced; [] if there are none.
        form: The representation of outputs as rows.
        often: A number counts if at least ``often`` outputs of one input have it, and
            none of the other input.

    Returns:
        The function from rows to log-odds, which is 0 for other outputs and for outputs
        with numbers of both inputs. Then the share of runs on each input for which it
        is not 0, shape (2,). None if there is no such number.
    """
    counts = []
    for k, side in enumerate(sides):
        rows = _placed(side, form)
        if tails:
            rows += _placed(tails[k], form)
        counts.append(Counter(chain.from_iterable(rows)))
    own = []
    for mine, theirs in (counts, counts[::-1]):
        own.append({x for x, n in mine.items() if n >= often and x not in theirs})
    # A number that is rare at every single place may be frequent over all places.
    anywhere = [{x for x in side if x[0] == ANYWHERE} for side in own]
    ones, zeros = anywhere if any(anywhere) else own
    if not ones and not zeros:
        return None

    def log_odds(outputs: Array) -> Floats:
        odds = np.zeros(len(outputs))
        for k, numbers in enumerate(_placed(outputs, form)):
            is_one, is_zero = (
                not ones.isdisjoint(numbers),
                not zeros.isdisjoint(numbers),
            )
            if is_one and not is_zero:
                odds[k] = np.inf
            if is_zero and not is_one:
                odds[k] = -np.inf
        return odds

    return log_odds, np.array([float(np.mean(log_odds(side) != 0)) for side in sides])


def _placed(rows: Array, form: Representation) -> list[set[tuple[int, float]]]:
    """Return a set of pairs (place, number) for each row; NaN is left out.

    In outputs of one length, each number is listed with its place and with
    ``ANYWHERE``. In outputs of varying length, the first and the last number are listed
    with their place, and all others with ``ANYWHERE``.
    """
    placed = []
    for row in rows.tolist():
        numbers: set[tuple[int, float]] = set()
        for place, x in enumerate(row):
            if x != x:
                continue
            has_place = not form.flat or place in (0, len(row) - 1)
            numbers.add((place if has_place else ANYWHERE, x))
            if not form.flat:
                numbers.add((ANYWHERE, x))
        placed.append(numbers)
    return placed
