"""Log-odds of an output whose noise is on values of sampled or shuffled records.

Traced runs on each input record the *signals*, the values that noise is added to. A
*part* of a training lies between two draws of records: it is a step with a Poisson
batch, or an epoch of shuffled records. The density of the noisy numbers of a part is
the average over the signals of all runs. The densities of all parts are multiplied,
since the draws of records are independent. If signals also depend on earlier noise, as
unclipped gradients do, this dependence is ignored. The log-odds are therefore shrunken
by a factor: the largest one that predicts the inputs of left-out runs nearly best.

If every record has a coin of its own, the trace records the probability of the coin.
Each run is replayed with both outcomes of the coin of the record that differs, and the
laws of both outcomes are mixed by this probability. Then the other records are the same
on both inputs, and the ratio is that of one record. If a record is replaced and rows
are shuffled, each run is replayed on the other input for the same reason.

Some numbers of the output have no noise but depend on that coin, such as the size of a
batch. They carry information about the drawn records. Such a number belongs to one
part: in every run it equals the number in the replay with the outcome that the coin has
in this part. The law of these numbers is nearly normal, and each signal is moved along
its regression on them. Coins have one law in all parts, so parts of the same kind share
their signals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp

from auditdp.adjacency import Pair
from auditdp.adjacency.symmetry import changed_record
from auditdp.betting.forecasters.traced_noise import (
    ROUNDING,
    Laws,
    LinearFunction,
    NoisyNumber,
    Ratio,
    function_of,
    laws_of,
    results_of,
)
from auditdp.betting.wealth.forecasts import Law
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing import Trace
from auditdp.tracing.chance import is_sample
from auditdp.tracing.draws import COIN, NOISY, Release
from auditdp.tracing.watched_run import TracedRun

RowsOf = Callable[[Sequence[Any]], Array]
"""A function from single outputs to rows."""


class Signals(NamedTuple):
    """The signals on one input, run by run.

    Attributes:
        runs: The noisy releases of each run.
        rows: The outputs of the runs, shape (runs, numbers).
        weights: The probability of each run.
        owners: For each run, the number of the recorded run that it is, or that it
            replays.
        kinds: A number for each run, equal for runs with the same outcome of the
            record's coin.
    """

    runs: list[list[Release]]
    rows: Floats
    weights: Floats
    owners: NDArray[np.intp]
    kinds: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        rows_of: RowsOf,
        runs: Sequence[TracedRun],
        owners: Sequence[int],
        weights: Floats | None = None,
    ) -> Signals:
        """Return the signals of runs.

        Args:
            rows_of: A function from outputs to rows.
            runs: The runs; with coins, all runs with heads and then all with tails.
            owners: For each run, the number of the recorded run that it is, or that it
                replays.
            weights: Weights that are normalised to probabilities; None for equal ones.
        """
        shares = np.ones(len(runs)) if weights is None else weights
        kinds = np.arange(len(runs)) // (max(owners) + 1 - min(owners))
        noisy = [[release for release, _ in _noisy_parts(run)] for run in runs]
        rows = rows_of([run.output for run in runs]).astype(float)
        return cls(noisy, rows, shares / shares.sum(), np.array(owners), kinds)

    def repeated(self, times: int) -> Signals:
        """Return the signals of ``times`` parts of one kind.

        Weights, owners and kinds are repeated; runs and rows are not.
        """
        return self._replace(
            weights=np.tile(self.weights, times),
            owners=np.tile(self.owners, times),
            kinds=np.tile(self.kinds, times),
        )


@dataclass(frozen=True, eq=False)
class SampledPart:
    """The numbers that a part of a training releases, and their signals.

    Attributes:
        noisy: The noisy numbers.
        columns: Columns of the output without noise that depend on the drawn records.
        exact: The values in these columns for each signal, on the data and on the
            neighbour, each of shape (signals, columns).
        signals: The signals on the data, and on the neighbour.
    """

    noisy: list[NoisyNumber]
    columns: NDArray[np.intp]
    exact: tuple[Floats, Floats]
    signals: tuple[Signals, Signals]

    @property
    def kind(self) -> Any:
        """A value that is equal for parts with the same noise and number of columns."""
        laws = [law for each in self.noisy for law in each.laws]
        noise = [(law.family.name, law.numbers[0, 1:].tobytes()) for law in laws]
        return tuple(noise), len(self.columns)

    def log_odds(self, outputs: Floats, owners: NDArray[np.intp] | None) -> Floats:
        """Return the log-odds of outputs.

        Args:
            outputs: Rows, shape (outputs, numbers).
            owners: For each output, the number of its own recorded run, whose signals
                are left out; None to use all signals.
        """
        with np.errstate(all="ignore"):
            one, zero = (self._log_densities(outputs, owners, side) for side in (0, 1))
            return np.asarray(one - zero)

    def _log_densities(
        self, outputs: Floats, owners: NDArray[np.intp] | None, side: int
    ) -> Floats:
        signals = self.signals[side]
        values = np.array([each.values(outputs) for each in self.noisy])
        weights = signals.weights[:, None]
        if owners is not None:
            is_own = signals.owners[:, None] == owners
            weights = np.where(is_own, 0.0, np.repeat(weights, len(outputs), axis=1))
        found = []
        for kind in np.unique(signals.kinds):
            own = signals.kinds == kind
            numbers = [each.laws[side].numbers[own] for each in self.noisy]
            locations = np.array([each[:, 0] for each in numbers])
            shown = outputs[:, self.columns]
            density, moves = _given_exact_numbers(
                shown, self.exact[side][own], locations, weights[own]
            )
            density = density + np.log(weights[own])
            for k, each in enumerate(self.noisy):
                law = Laws(each.laws[side].family, numbers[k])
                density = density + law.log_densities(values[k] - moves[k])
            found.append(density)
        total = logsumexp(np.concatenate(found), axis=0)
        return np.asarray(total - np.log(weights.sum(axis=0)))


def _given_exact_numbers(
    values: Floats, exact: Floats, locations: Floats, weights: Floats
) -> tuple[Floats, Floats]:
    """Return the log density of numbers without noise, and how far signals move.

    The size of a batch is a sum of coins, so it is nearly normal. A signal is a linear
    function of it, plus a residual. If the size differs from that of the signal's run,
    the signal moves along this function.

    Args:
        values: The numbers without noise of outputs, shape (outputs, numbers).
        exact: The same numbers for the signals of one kind, shape (signals, numbers).
        locations: The signals, shape (noisy numbers, signals).
        weights: Probabilities of the signals, shape (signals, outputs) or (signals, 1).

    Returns:
        The log densities, up to a constant, shape (signals, outputs), and the moves,
        shape (noisy numbers, signals, outputs). Without such numbers, both are 0, and
        axes may have length 1.
    """
    if not exact.shape[1]:
        return np.zeros((len(exact), 1)), np.zeros((len(locations), 1, 1))
    shares = (weights / weights.sum(axis=0)).T
    mean = shares @ exact
    off = exact - mean[:, None]
    # The covariance of n equally weighted signals is corrected by (1 + 1/n)/(1 − 1/n):
    # the next one varies around an estimated mean.
    inverse_count = np.square(shares).sum(axis=1)[:, None, None]
    spread = np.einsum("mg,mgk,mgl->mkl", shares, off, off)
    spread *= (1 + inverse_count) / (1 - inverse_count)
    # Smaller relative deviations than a millionth are rounding.
    finest = 1e-6 * np.abs(exact).max(axis=0) + np.finfo(float).tiny
    inverse = np.linalg.inv(spread + np.diag(finest**2))
    slopes = np.einsum("mkl,mg,mgl,ng->nmk", inverse, shares, off, locations)
    gap = values - mean
    density = np.linalg.slogdet(inverse)[1] / 2
    density = density - np.einsum("mk,mkl,ml->m", gap, inverse, gap) / 2
    moves = np.einsum("nmk,gmk->ngm", slopes, values - exact[:, None])
    return np.broadcast_to(density, (len(exact), len(values))), moves


class RatioByParts(NamedTuple):
    """The fit for a pair if the code samples or shuffles records.

    Attributes:
        read: The function from rows to log-odds with the law of these log-odds; None if
            the log-odds of left-out runs are hardly better than chance.
        distance: The distance of the laws on both inputs, in standard deviations of the
            log-odds.
    """

    read: tuple[Ratio, Law] | None
    distance: float


def ratio_by_parts(
    trace: Trace, pair: Pair, rows_of: RowsOf, *, runs: int, seed: int
) -> RatioByParts | None:
    """Fit the law of each part of a training, and multiply their likelihood ratios.

    Args:
        trace: Trace of the mechanism.
        pair: The pair.
        rows_of: A function from outputs to rows.
        runs: Number of runs on each input; there are a quarter more if records have
            coins and one record is replaced.
        seed: The seed of the runs.

    Returns:
        The fit. None if the code draws no records, if its releases differ between runs,
        or if the output does not determine the noisy numbers.
    """
    inputs = (pair.data, pair.neighbour)

    def recorded(side: int, first: int, last: int) -> list[TracedRun]:
        rngs = [np.random.default_rng([seed, side, k]) for k in range(first, last)]
        return [trace.record(inputs[side], rng) for rng in rngs]

    first = recorded(0, 0, 1)
    if not any(map(is_sample, first[0].releases)):
        return None
    half = runs // 2
    sides = [first + recorded(0, 1, half), recorded(1, 0, half)]
    record = changed_record(pair)
    coin = _coin(record, sides)
    if coin is not None:
        signals = _by_coin(trace, inputs, coin, sides[coin.side], rows_of)
    elif record is not None and record[1][0] == record[1][1]:
        # Half of the runs are recorded on either input, and replayed on the other.
        replayed = [[trace.replay(inputs[1 - k], r) for r in sides[k]] for k in (0, 1)]
        signals = (
            Signals.of(rows_of, [*sides[0], *replayed[1]], range(2 * half)),
            Signals.of(rows_of, [*replayed[0], *sides[1]], range(2 * half)),
        )
    else:
        sides = [side + recorded(k, half, runs) for k, side in enumerate(sides)]
        signals = (
            Signals.of(rows_of, sides[0], range(runs)),
            Signals.of(rows_of, sides[1], range(runs, 2 * runs)),
        )
    all_runs = [*signals[0].runs, *signals[1].runs]
    kinds = [[(r.site, r.law.family, r.shape) for r in run] for run in all_runs]
    if not kinds[0] or any(kind != kinds[0] for kind in kinds):
        return None
    rows = [rows_of([run.output for run in side]).astype(float) for side in sides]
    decided: list[tuple[int, int]] = []
    if coin is not None:
        side = coin.side
        decided = _decided_columns(coin, signals[side], sides[side], rows[side])
    parts = _parts(signals, sides, rows, decided)
    if parts is None:
        return None
    count = len(rows[0])
    owners = np.arange(2 * count)
    if coin is not None:
        parts = _pooled(parts)
        # Only runs on the coin's side own signals, and their numbers start at 0.
        owners = np.roll(owners, count * coin.side)
    labels = np.repeat([1, -1], count)
    outputs = np.concatenate(rows)
    each = np.array([part.log_odds(outputs, owners) for part in parts])
    # One run with certain log-odds must not outweigh all others.
    odds = np.clip(each.sum(axis=0), -20, 20)
    factor = _shrinkage(labels * odds)

    def log_odds(outputs: Array) -> Floats:
        rows = np.asarray(outputs, float)
        return np.asarray(factor * sum(part.log_odds(rows, None) for part in parts))

    distance = _distance((factor * odds)[None])
    if coin is not None:
        # The distance is also computed part by part, for which few runs suffice. If
        # earlier noise moves signals, the log-odds of parts cancel, and the distance by
        # their sum is smaller.
        distance = min(_distance(odds[None]), _distance(each))
    if factor == 0:
        return RatioByParts(None, distance)
    law = Law(factor * odds, np.ones(len(odds)))
    return RatioByParts((log_odds, law), distance)


def _shrinkage(signed_odds: Floats) -> float:
    """Return the largest factor of log-odds that predicts inputs nearly best.

    It is 0 if no factor predicts them clearly better than chance.

    Args:
        signed_odds: The log-odds of each left-out run in favour of its own input.
    """
    factors = np.linspace(0, 1, 21)
    likelihoods = log_expit(np.multiply.outer(factors, signed_odds)).sum(axis=1)
    best = likelihoods.max()
    # One nat of likelihood is within the error of the estimate.
    if best <= likelihoods[0] + 1:
        return 0.0
    return float(factors[likelihoods >= best - 1][-1])


def _distance(odds: Floats) -> float:
    """Return the distance of the laws on both inputs, in standard deviations.

    The parts are independent, so their squared distances add up.

    Args:
        odds: The log-odds of each part in each run, shape (parts, runs).
    """
    squares = np.square(np.tanh(odds / 2)).mean(axis=1)
    return 2 * float(np.sqrt(squares.sum()))


def _numbered(run: TracedRun) -> list[tuple[Release, int]]:
    """Return each release with the number of its part.

    A part begins with the first release after noise that has no noise: a draw of
    records.
    """
    found: list[tuple[Release, int]] = []
    part, after_noise = 0, False
    for release in run.releases:
        is_noisy = release.kind == NOISY
        part += after_noise and not is_noisy
        after_noise = is_noisy
        found.append((release, part))
    return found


def _noisy_parts(run: TracedRun) -> list[tuple[Release, int]]:
    return [
        (release, part) for release, part in _numbered(run) if release.kind == NOISY
    ]


class Coin(NamedTuple):
    """The coin of the record that differs, which decides whether the record is sampled.

    Attributes:
        side: The input with the record: 0 for the data, 1 for the neighbour.
        place: The place of the record in this input.
        rate: The probability of heads, with which the record is sampled.
        both: Whether both inputs have a record at this place: the pair replaces the
            record, and does not remove it.
    """

    side: int
    place: int
    rate: float
    both: bool


def _coin(
    record: tuple[int, tuple[int, int]] | None, sides: Sequence[Sequence[TracedRun]]
) -> Coin | None:
    """Return the coin of the record that differs.

    Args:
        record: The place of the record, and the number of records of each input; None
            if the pair does not differ in one record.
        sides: The recorded runs on the data, and on the neighbour.

    Returns:
        The coin. None if ``record`` is None, or if the record has no coin with one
        probability in all runs.
    """
    if record is None:
        return None
    place, sizes = record
    side = int(sizes[1] > sizes[0])
    rates = set()
    for run in sides[side]:
        for release in filter(is_sample, run.releases):
            if release.kind != COIN or release.shape != (sizes[side],):
                return None
            rates.add(float(np.broadcast_to(release.location, release.shape)[place]))
    if len(rates) != 1:
        return None
    return Coin(side, place, rates.pop(), sizes[0] == sizes[1])


def _by_coin(
    trace: Trace,
    inputs: Sequence[Any],
    coin: Coin,
    runs: Sequence[TracedRun],
    rows_of: RowsOf,
) -> tuple[Signals, Signals]:
    """Return the signals on the data and on the neighbour, by the record's coin.

    Each run is replayed with both outcomes of the coin. The weights of the replays are
    the probabilities of the outcomes.

    Args:
        trace: Trace of the mechanism.
        inputs: The data and the neighbour.
        coin: The coin of the record.
        runs: The runs that are recorded on the input with the record.
        rows_of: A function from outputs to rows.
    """

    def forced(data: Any, heads: bool) -> list[TracedRun]:
        replays = []
        for run in runs:
            results = {}
            for release in filter(is_sample, run.releases):
                results[release.number] = np.array(release.result)
                results[release.number][coin.place] = heads
            replays.append(trace.replay(data, run, forced=results))
        return replays

    own, other = inputs[coin.side], inputs[1 - coin.side]
    taken, left = forced(own, True), forced(own, False)
    weights = np.repeat([coin.rate, 1 - coin.rate], len(runs))
    once, twice = [*range(len(runs))], 2 * [*range(len(runs))]
    first = Signals.of(rows_of, taken + left, twice, weights)
    second = Signals.of(rows_of, left, once)
    if coin.both:
        second = Signals.of(rows_of, forced(other, True) + left, twice, weights)
    if coin.side:
        return second, first
    return first, second


def _decided_columns(
    coin: Coin, signals: Signals, runs: Sequence[TracedRun], rows: Floats
) -> list[tuple[int, int]]:
    """Return pairs of a column without noise that the coin decides, and its part.

    Args:
        coin: The coin of the record.
        signals: The signals on the input with the record.
        runs: The runs that are recorded on this input.
        rows: The outputs of these runs.
    """
    taken, left = signals.rows[: len(rows)], signals.rows[len(rows) :]
    samples = [
        [(r, part) for r, part in _numbered(run) if is_sample(r)] for run in runs
    ]
    decided = []
    for column in np.flatnonzero((taken != left).any(axis=0)).tolist():
        parts = set()
        for k, (_, part) in enumerate(samples[0]):
            heads = np.array([run[k][0].result[coin.place] for run in samples])
            expected = np.where(heads, taken[:, column], left[:, column])
            if np.array_equal(rows[:, column], expected):
                parts.add(part)
        if len(parts) == 1:
            decided.append((column, parts.pop()))
    return decided


def _parts(
    signals: tuple[Signals, Signals],
    sides: Sequence[Sequence[TracedRun]],
    rows: Sequence[Floats],
    decided: Sequence[tuple[int, int]],
) -> list[SampledPart] | None:
    """Return the parts of a training.

    Args:
        signals: The signals on the data, and on the neighbour.
        sides: The recorded runs on the data, and on the neighbour.
        rows: The outputs of these runs.
        decided: Columns that the coin decides, each with the number of its part.

    Returns:
        The parts that have noisy numbers, in order. None if a law is unknown, or if the
        output does not determine all noisy numbers.
    """
    noisy = [[_noisy_parts(run) for run in side] for side in sides]
    places = [[part for _, part in run] for side in noisy for run in side]
    if any(len(place) != len(signals[0].runs[0]) for place in places):
        return None
    # If noisy numbers belong to different parts in different runs, all is one part.
    is_alike = all(place == places[0] for place in places)
    numbers = [part * is_alike for part in places[0]]
    parts: list[list[NoisyNumber]] = [[] for _ in range(max(numbers) + 1)]
    for number, part in enumerate(numbers):
        ones, zeros = (laws_of([run[number] for run in s.runs]) for s in signals)
        releases = [[run[number][0] for run in side] for side in noisy]
        functions = _functions(releases, rows)
        if ones is None or zeros is None or functions is None:
            return None
        for function, one, zero in zip(functions, ones, zeros, strict=True):
            parts[part].append(NoisyNumber(*function, (one, zero)))
    found = []
    for part, numbers_of_part in enumerate(parts):
        columns = np.array([c for c, p in decided if is_alike and p == part], int)
        exact = (signals[0].rows[:, columns], signals[1].rows[:, columns])
        if numbers_of_part:
            found.append(SampledPart(numbers_of_part, columns, exact, signals))
    return found


def _functions(
    releases: Sequence[Sequence[Release]], rows: Sequence[Floats]
) -> list[LinearFunction] | None:
    """Return the functions from an output to the noisy numbers of a release.

    Args:
        releases: The release in the runs on the data, and on the neighbour.
        rows: The outputs of these runs.

    Returns:
        The functions, or None if there is no function for a number, or no common one
        for both inputs.
    """
    values = [results_of(side) for side in releases]
    # The side with more runs determines the function, and the other side tests it.
    long = int(len(values[1]) > len(values[0]))
    functions = []
    for own, other in zip(values[long].T, values[1 - long].T, strict=True):
        function = function_of(own, rows[long])
        if function is None:
            return None
        columns, weights, offset = function
        computed = rows[1 - long][:, columns] @ weights + offset
        tolerance = ROUNDING * np.abs(other).max()
        if not np.allclose(computed, other, rtol=ROUNDING, atol=tolerance):
            return None
        functions.append(function)
    return functions


def _pooled(parts: Sequence[SampledPart]) -> list[SampledPart]:
    """Return the parts, each with signals of other parts of the same kind added."""
    kinds = defaultdict[Any, list[SampledPart]](list)
    for part in parts:
        kinds[part.kind].append(part)
    return [_with_signals_of(part, kinds[part.kind]) for part in parts]


def _with_signals_of(part: SampledPart, alike: Sequence[SampledPart]) -> SampledPart:
    """Return a part with the signals of parts of the same kind added to its own.

    The number of signals is limited, to about 512.
    """
    own = max(len(side.weights) for side in part.signals)
    # More than 512 signals of a part take too much time.
    most = max(512 // own, 1)
    step = -(-len(alike) // most)
    others = [each for each in alike if each is not part]
    some = [part, *others[::step]][:most]
    noisy = []
    for k, number in enumerate(part.noisy):
        one, zero = (
            Laws(law.family, np.concatenate([p.noisy[k].laws[s].numbers for p in some]))
            for s, law in enumerate(number.laws)
        )
        noisy.append(replace(number, laws=(one, zero)))
    ones, zeros = (np.concatenate([p.exact[side] for p in some]) for side in (0, 1))
    one_signals, zero_signals = (side.repeated(len(some)) for side in part.signals)
    return SampledPart(noisy, part.columns, (ones, zeros), (one_signals, zero_signals))
