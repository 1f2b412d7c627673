"""Upper bounds over all events at once, from counts of outputs in n runs on each input.

First the bounds on the loss (``largest_losses``), then the distance from a stated law
(``total_variation``, ``log_e_value``, ``kolmogorov``), then the counts (``Tally``).

The bounds are about every event, also events of outputs that never came, and need no
list of outputs that would have to be fixed beforehand. They need no correction for the
number of events, pairs or orders:

**One event is enough.** Let P and Q be the laws of the output on the two inputs of a
pair. Suppose that some pair, in some order, has an event S with P(S) > e^ε Q(S) + δ.
This S is fixed by the laws: it does not depend on the runs. The numbers of runs that
fall into it, X on the first and Y on the second input, are independent and binomial, so
there is a region that holds (P(S), Q(S)) with probability 1 - error. If it does, then
the largest ε that any event's region allows is at least that of S. It does not matter
which event S is: the bound is the largest over *all* events, so its error is that of
one.

**The region** of an event with X and Y of n runs: let a = P[Bin(n, p) <= X] and b =
P[Bin(n, q) >= Y]. At the true p and q each is at most u with probability at most u, so
Φ⁻¹(a) and Φ⁻¹(b) are stochastically larger than two independent standard normal
numbers. The region is r² >= min(Φ⁻¹(a), 0)² + min(Φ⁻¹(b), 0)², which fails with
probability at most ½ P(χ²₁ > r²) + ¼ P(χ²₂ > r²) = Φ(-r) + ¼ exp(-r²/2), and r makes
that the error. Every (p, q) of it has an angle θ in [0, π/2] with p at most the
Clopper-Pearson upper limit at error Φ(-r cos θ) and q at least the lower limit at error
Φ(-r sin θ). Both limits fall with θ, so a grid of angles encloses the region: p's limit
at an angle with q's at the next. (Two limits, each with half of the error, would let
ln(p/q) reach up to 1.4 times as far: their deviations would add, but here their squares
add.)

**All events.** The largest ε or δ grows with X and falls with Y. So only sets of
outputs that came count, and of these only those with the most X for their Y: a
knapsack, solved exactly (Bellman 1957). The limits of a region are first taken from a
table, with X rounded up and Y down, and computed exactly only if an event may have the
largest loss.

A bound on ε at a given δ holds if that δ is fixed beforehand, and a bound on δ at a
given ε if that ε is. Several statements have an error each. Because of outputs that
never came, no ε is finite for a δ below ``unseen``.

Assumption: runs are independent. Null hypothesis of each bound: some event exceeds it.
Errors are conservative.

The rest of the module compares outputs with the law that the mechanism states, on the
inputs that were run. A certificate is about the law; counts show the code: an upper
bound on the distance of its outputs from the law, and a test of the law.

- **Finite laws**: the total variation distance, sup P(S) - L(S) over events S. It is
  attained by the event of the outputs that are likelier than the law states, which is
  fixed before anything is drawn. So, as above, the upper Clopper-Pearson limit of that
  one event suffices, and the largest limit minus L(S) of all events is no less. The law
  is tested by the e-value of a mixture of multinomial laws around it (see
  ``log_e_value``).
- **Step laws, and Gaussian laws of one number**: the Kolmogorov distance, the largest
  difference of two distribution functions, by the inequality of Dvoretzky, Kiefer &
  Wolfowitz (1956) with the constant of Massart (1990, Corollary 1): the empirical
  function is further than √(ln(2/error)/2n) from the true one with probability at most
  the error. It is no bound on the total variation, which no number of runs bounds for
  such laws.

Probabilities of laws are converted to doubles; that rounding, below 1e-9, is less than
any of these tests can detect. Assumption: runs are independent.

``Tally`` counts how often each output came on each of several inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_ndtr, logsumexp, ndtr

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.views import as_rows, fingerprint
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.laws import GaussianLaw, StepLaw
from auditdp.mechanism.protocol import Array, identity_key
from auditdp.numerics.arrays import Floats
from auditdp.numerics.binomial import lower_limit, upper_limit
from auditdp.numerics.streams import Streams

Counts = NDArray[np.int64]
Places = NDArray[np.intp]
Loss = Callable[[Floats, Floats], Floats]


class CountLimits:
    """Limits of counting."""

    coarse_grid = 9
    """Number of angles θ of the region's limits in the table."""
    fine_grid = 65
    """Number of angles θ of the region's limits that are computed for one event."""
    outputs = 512
    """Largest number of outputs in the knapsack of ``most_hits``. Of more outputs, the
    rarest on the second input are assumed never to come there."""
    exact_outputs = 64
    """Largest number of outputs for which ``_smallest_mass`` is exact."""
    batch = 1 << 16
    """Largest number of runs of one call."""


def nodes(runs: int, spacing: float) -> Counts:
    """Return ascending counts from 0 to ``runs``, for a grid of binomial counts.

    Consecutive counts are about ``spacing`` standard deviations of a binomial count
    apart, and at least 1.
    """
    # The arcsine of the root of a share has a standard deviation of about 1/(2 √runs),
    # whatever the share is.
    steps = 2 + math.ceil(math.pi * math.sqrt(runs) / spacing)
    share = np.sin(np.linspace(0, np.pi / 2, steps)) ** 2
    return np.unique(np.rint(share * runs)).astype(np.int64)


def _binned(values: Counts, ends: Counts) -> tuple[Places, Places]:
    """Divide ascending values at ``ends``.

    Returns:
        The first and the last index of the values in each part that is not empty.
    """
    part = np.searchsorted(ends, values, side="right")
    starts = np.flatnonzero(np.diff(part, prepend=-1))
    return starts, np.append(starts[1:], len(values)) - 1


@cache
def radius(error: float) -> float:
    """Return the r with Φ(-r) + exp(-r²/2)/4 = error, or 0 for an error above 0.75.

    >>> round(radius(0.05), 3)
    2.057
    """
    # This import is slow, so it is made when it is needed.
    from scipy.optimize import brentq

    if error >= 0.75:
        return 0.0

    def excess(r: float) -> float:
        log_chi = -r * r / 2 - math.log(4)
        return float(np.logaddexp(log_ndtr(-r), log_chi) - math.log(error))

    return float(brentq(excess, 0, 60))


def unseen(runs: int, error: float) -> float:
    """Return the δ below which no bound on ε is finite.

    It is the upper limit on the probability of an event that never occurred.

    Args:
        runs: Number of runs on each input.
        error: Error probability of the bound.
    """
    return -math.expm1(float(log_ndtr(-radius(error))) / runs)


@dataclass(frozen=True)
class RegionLimits:
    """Limits that enclose the region of an event, for one number of runs and one error.

    The region is the one of the module's docstring.
    """

    runs: int
    error: float

    def __call__(
        self, first: Counts, second: Counts, angles: int
    ) -> tuple[Floats, Floats]:
        """Return limits that enclose the region of each event (X, Y).

        Args:
            first: X of each event, shape (events,).
            second: Y of each event, shape (events,).
            angles: Number of angles of the grid.

        Returns:
            Upper limits of p and lower limits of q, each of shape (events, angles - 1).
        """
        return self._upper(first, angles)[:, :-1], self._lower(second, angles)[:, 1:]

    def rounded(self, first: Counts, second: Counts) -> tuple[Floats, Floats]:
        """Return wider limits, from the table of rounded counts.

        Their shape is (events, ``CountLimits.coarse_grid`` - 1).
        """
        up = np.searchsorted(self.nodes, first)
        down = np.searchsorted(self.nodes, second, side="right") - 1
        upper, lower = self._table
        for table, used, limit in (
            (upper, up, self._upper),
            (lower, down, self._lower),
        ):
            missing = np.unique(used[np.isnan(table[used, 0])])
            table[missing] = limit(self.nodes[missing], CountLimits.coarse_grid)
        return upper[up][:, :-1], lower[down][:, 1:]

    @cached_property
    def nodes(self) -> Counts:
        """The counts of the table: from 0 to ``runs``, ¼ standard deviation apart."""
        return nodes(self.runs, 0.25)

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Limits of the nodes at every angle; a row is NaN until it is computed."""
        empty = np.full((len(self.nodes), CountLimits.coarse_grid), np.nan)
        return empty, empty.copy()

    def _upper(self, counts: Counts, angles: int) -> Floats:
        return self._limit(upper_limit, counts, np.cos(_grid(angles)))

    def _lower(self, counts: Counts, angles: int) -> Floats:
        return self._limit(lower_limit, counts, np.sin(_grid(angles)))

    def _limit(self, limit: Any, counts: Counts, side: Floats) -> Floats:
        errors = ndtr(-radius(self.error) * side)
        found: Floats = limit(counts[:, None], self.runs, errors)
        return found


def _grid(angles: int) -> Floats:
    return np.linspace(0, np.pi / 2, angles)


def largest_losses(
    counts: Counts,
    ends: Places,
    runs: int,
    *,
    error: float,
    deltas: Sequence[float] = (),
    epsilons: Sequence[float] = (),
) -> tuple[list[float], list[float]]:
    """Return upper bounds on ε at each δ and on δ at each ε, over all events and pairs.

    Both orders of each pair count.

    Args:
        counts: The count of each output on each input, shape (inputs, outputs): all
            outputs that occurred.
        ends: Indices of the two inputs of every pair, shape (2, pairs).
        runs: Number of runs on each input.
        error: Largest probability that a returned bound is wrong, for each bound.
        deltas: The values of δ for which ε is bounded.
        epsilons: The values of ε for which δ is bounded.

    Returns:
        Two lists: an ε for each of ``deltas``, infinite if runs are too few, and a δ
        for each of ``epsilons``. With each, P(S) <= e^ε Q(S) + δ for every event S.
    """
    losses = [*map(_epsilon_at, deltas), *map(_delta_at, epsilons)]
    limits, found = RegionLimits(runs, error), [0.0] * len(losses)
    for first, second in np.concatenate([ends, ends[::-1]], axis=1).T:
        events = _events(counts[first], counts[second], limits)
        found = [
            _largest(loss, events, limits, so_far)
            for loss, so_far in zip(losses, found, strict=True)
        ]
    return found[: len(deltas)], found[len(deltas) :]


def told_apart(
    first: Counts, counts: Counts, ends: Places, runs: int, error: float
) -> tuple[float, float] | None:
    """Return bounds on the probability of one event on the two inputs of a pair.

    The pair, its order and the event are those with the largest difference in the first
    runs. All later runs are independent of that choice. So their numbers in the event
    are binomial, and each limit is wrong with probability at most half of the error.

    Args:
        first: The count of each output on each input in the first runs, shape (inputs,
            outputs).
        counts: The counts in all runs; outputs that came later are the last columns.
        ends: Indices of the two inputs of every pair, shape (2, pairs).
        runs: Number of later runs on each input.
        error: Largest probability that one of the two limits is wrong.

    Returns:
        (p, q): the event has probability at least p on one input and at most q on its
        neighbour. None without later runs.
    """
    if not runs:
        return None
    one, other = np.concatenate([ends, ends[::-1]], axis=1)
    best = np.argmax(np.maximum(first[one] - first[other], 0).sum(axis=1))
    # The event holds the outputs that are more frequent on one input.
    event = first[one[best]] > first[other[best]]
    later = (counts[:, : first.shape[1]] - first)[:, event].sum(axis=1)
    lower = lower_limit(later[one[best]], runs, error / 2)
    return float(lower), float(upper_limit(later[other[best]], runs, error / 2))


def most_hits(first: Counts, second: Counts, runs: int) -> Counts:
    """Return, for each y, the largest X of a set of outputs with Y at most y.

    X and Y are the numbers of runs on the first and the second input whose output is in
    the set; y goes from 0 to ``runs``. For more than ``CountLimits.outputs`` outputs
    the result is an upper bound on the largest X.

    >>> most_hits(np.array([3, 1]), np.array([1, 2]), 4).tolist()
    [0, 3, 3, 4, 4]
    """
    here = (first > 0) & (second > 0)
    weights, gains = second[here], first[here]
    best = np.full(runs + 1, int(first[second == 0].sum()), dtype=np.int64)
    if len(gains) > CountLimits.outputs:
        order = np.argsort(weights)
        rare, kept = order[: -CountLimits.outputs], order[-CountLimits.outputs :]
        best += gains[rare].sum()
        weights, gains = weights[kept], gains[kept]
    # Invariant: ``best[y]`` is the largest X with Y <= y, of the outputs so far.
    for weight, gain in zip(weights, gains, strict=True):
        np.maximum(best[weight:], best[:-weight] + gain, out=best[weight:])
    return best


def _events(
    first: Counts, second: Counts, limits: RegionLimits
) -> tuple[Counts, Counts]:
    """Return arrays (X, Y) of counts that dominate those of every event.

    For every event there is an index k such that its first count is at most X[k] and
    its second count at least Y[k].
    """
    hits = most_hits(first, second, limits.runs)
    # Only steps at which X grows count, and of all steps between two nodes, the least Y
    # and the most X.
    steps = np.append(0, 1 + np.flatnonzero(np.diff(hits)))
    starts, ends = _binned(steps, limits.nodes)
    return hits[steps[ends]], steps[starts]


def _largest(
    loss: Loss, events: tuple[Counts, Counts], limits: RegionLimits, so_far: float
) -> float:
    """Return the largest loss of all events, or ``so_far`` if that is larger."""
    first, second = events
    bounds = loss(*limits.rounded(first, second)).max(axis=1)
    for k in np.argsort(-bounds):
        if bounds[k] <= so_far:
            break
        exact = limits(first[k : k + 1], second[k : k + 1], CountLimits.fine_grid)
        so_far = max(so_far, float(loss(*exact).max()))
    return so_far


def _epsilon_at(delta: float) -> Loss:
    def loss(p: Floats, q: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            log_q = np.where(p > delta, np.log(q), 0.0)
            return np.log(np.maximum(p - delta, 0.0)) - log_q

    return loss


def _delta_at(epsilon: float) -> Loss:
    # A smaller ε only needs more δ, and e^700 is a double.
    factor = math.exp(min(epsilon, 700.0))
    return lambda p, q: p - factor * q


def total_variation(counts: Counts, law: Floats, runs: int, error: float) -> float:
    """Return an upper bound on the distance of the law of outputs from the stated law.

    It is the total variation distance, and the bound holds for all inputs together. The
    input with the largest distance, and its event, are fixed by the laws, so no
    correction for the number of inputs is needed.

    Args:
        counts: The count of each output on each input, shape (inputs, outputs): all
            outputs that occurred.
        law: Probability of each of these outputs by the law of each input, same shape.
        runs: Number of runs on each input.
        error: Largest probability that the distance of some input exceeds the bound.
    """
    ends = nodes(runs, 0.1)
    largest = 0.0
    for x, q in zip(counts, law, strict=True):
        hits, mass = _smallest_mass(x[x > 0], q[x > 0], runs)
        # Of all sets between two ends, the most runs and the least mass.
        first, last = _binned(hits, ends)
        limits = upper_limit(hits[last], runs, error)
        distances = limits - np.minimum.reduceat(mass, first)
        largest = max(largest, float(np.max(distances)))
    return largest


def _smallest_mass(x: Counts, q: Floats, runs: int) -> tuple[Counts, Floats]:
    """Return arrays (X, m) of counts and masses that dominate those of every set.

    For every set of outputs there is an index k such that its count is at most X[k] and
    its probability by the law at least m[k]. X ascends from 0. For up to
    ``CountLimits.exact_outputs`` outputs the masses are the solution of a knapsack. For
    more outputs they are a lower bound: the outputs are taken in the order of q/x, and
    the last of them in part.
    """
    if len(x) > CountLimits.exact_outputs:
        order = np.argsort(q / x)
        hits = np.arange(runs + 1)
        known = np.append(0, np.cumsum(x[order]))
        return hits, np.interp(hits, known, np.append(0.0, np.cumsum(q[order])))
    smallest = np.full(runs + 1, np.inf)
    smallest[0] = 0.0
    for times, mass in zip(x, q, strict=True):
        np.minimum(smallest[times:], smallest[:-times] + mass, out=smallest[times:])
    hits = np.flatnonzero(np.isfinite(smallest))
    return hits, smallest[hits]


def log_e_value(counts: Counts, law: Floats) -> float:
    """Return the logarithm of an e-value against "outputs follow their stated laws".

    If they do, it is at least ln(1/α) with probability at most α, by Markov's
    inequality. The e-value is a mean over inputs. That of one input is the mean of
    ratios for the concentrations c = 1, 4, …, 4^13. The divisor is the probability of
    the counts under the law. The numerator is their probability if the probabilities of
    outputs are themselves drawn from a Dirichlet law with the parameters c times the
    law. Each ratio has expectation 1 under the law, since both are probabilities of
    counts. The e-value is infinite if an output came that the law excludes. If the law
    is known up to rounding only, the largest possible probabilities make the divisor as
    large as possible, so the expectation is at most 1.

    Args:
        counts: The count of each output on each input, shape (inputs, outputs): all
            outputs that came.
        law: Largest probability of each of these outputs by the law, same shape.
    """
    logs = [_log_e_value(x, q) for x, q in zip(counts, law, strict=True)]
    return float(logsumexp(logs) - math.log(len(counts)))


def _log_e_value(x: Counts, q: Floats) -> float:
    # Outputs that never came have factors of 1.
    q, x = q[x > 0], x[x > 0]
    if (q <= 0).any():
        return math.inf
    concentrations = 4.0 ** np.arange(14)
    # Largest probabilities may sum to more than 1; the divisor then grows.
    c = concentrations[:, None] / max(1.0, float(q.sum()))
    outputs = (gammaln(c * q + x) - gammaln(c * q) - x * np.log(q)).sum(axis=1)
    mixed = outputs + gammaln(concentrations) - gammaln(concentrations + x.sum())
    return float(logsumexp(mixed) - math.log(len(concentrations)))


def cdf_of(law: object) -> Callable[[Floats], Floats] | None:
    """Return the distribution function of a law.

    Returns:
        The function of a step law or of a Gaussian law of one number; None for any
        other law.
    """
    if isinstance(law, StepLaw):
        return law.cdf
    if isinstance(law, GaussianLaw) and len(law.location) == 1:
        centre, sigma = float(law.location[0]), law.sigma
        return lambda y: np.asarray(ndtr((y - centre) / sigma))
    return None


def kolmogorov(values: Floats, cdf: Callable[[Floats], Floats]) -> float:
    """Return the Kolmogorov distance between the outputs of runs and a law.

    The law may have atoms. The distance is 1 if an output is NaN.

    Args:
        values: One output per run, shape (runs,).
        cdf: Distribution function of the law, elementwise.
    """
    if np.isnan(values).any():
        return 1.0
    # The largest difference is at a value, or just before one.
    points, times = np.unique(values, return_counts=True)
    until = np.cumsum(times) / len(values)
    before = np.append(0.0, until[:-1])
    above = np.max(until - cdf(points))
    below = np.max(cdf(np.nextafter(points, -np.inf)) - before)
    return float(max(above, below))


def kolmogorov_margin(runs: int, error: float) -> float:
    """Return a bound on the Kolmogorov distance between outputs and their own law.

    The distance exceeds it with probability at most ``error``.
    """
    return math.sqrt(math.log(2 / error) / (2 * runs))


class Tally:
    """The count of each different output on each input.

    Two outputs are the same if their rows of numbers are equal. -0.0 differs from 0.0,
    and two NaNs are equal if their bits are, apart from the sign. If the representation
    of outputs is undecided, first calls on ``inputs`` decide it. Counting ends when
    there are more than ``most`` different outputs. Then the tally is ``full``, and its
    counts are incomplete.

    Attributes:
        runs: Number of counted runs on each input.
        full: Whether there were more than ``most`` different outputs.
    """

    def __init__(
        self, calls: Calls, inputs: Sequence[Any], streams: Streams, *, most: int
    ) -> None:
        self.calls = calls
        self.inputs = list(inputs)
        self.streams = streams
        self.most = most
        self.runs = 0
        self.full = False
        calls.look(self.inputs, streams("counting: shape", 0))
        self._batches = count()
        self._places: dict[bytes, int] = {}
        self._outputs: list[Array] = []
        self._counts = np.zeros((len(self.inputs), 0), dtype=np.int64)

    @property
    def counts(self) -> Counts:
        """The count of each of ``outputs`` on each input, shape (inputs, outputs)."""
        return self._counts[:, : len(self._outputs)]

    @property
    def outputs(self) -> Array:
        """The different outputs, one row of numbers each, in order of occurrence."""
        return np.array(self._outputs)

    def add(self, runs: int) -> list[Array]:
        """Run the mechanism ``runs`` more times on each input and count its outputs.

        Returns:
            For each input its new outputs, one row of numbers per run. They are
            returned, but not counted, if the tally is full.
        """
        rows = [self._add(k, runs) for k in range(len(self.inputs))]
        self.runs += runs
        return rows

    def _add(self, which: int, runs: int) -> Array:
        # A batch of 2^24 numbers protects memory.
        width = max(1, math.prod(self.calls.form.shape))
        largest = min(CountLimits.batch, max(1, (1 << 24) // width))
        drawn = []
        while runs:
            size = min(runs, largest)
            rng = self.streams("counting", next(self._batches))
            drawn.append(as_rows(self.calls(self.inputs[which], size, rng)))
            self._count(which, drawn[-1])
            runs -= size
        return np.concatenate(drawn)

    def _count(self, which: int, rows: Array) -> None:
        if self.full:
            return
        found, counts = different(rows)
        # A row that came before keeps its column.
        for row, times in zip(found[: self.most], counts, strict=False):
            place = self._places.setdefault(_key(row), len(self._outputs))
            if place == len(self._outputs):
                self._outputs.append(row)
            if place >= self._counts.shape[1]:
                # The array about doubles, so that it is copied rarely.
                more = np.zeros((len(self.inputs), 64 + place), dtype=np.int64)
                self._counts = np.concatenate([self._counts, more], axis=1)
            self._counts[which, place] += times
        self.full = max(len(found), len(self._outputs)) > self.most


def inputs_of(pairs: Sequence[Pair]) -> tuple[list[Any], Places]:
    """Return the different inputs of pairs, and the indices of each pair's two inputs.

    Inputs are in order of occurrence. The indices have shape (2, pairs).
    """
    places: dict[Any, int] = {}
    inputs: list[Any] = []
    ends = []
    for pair in pairs:
        for data in (pair.data, pair.neighbour):
            same = identity_key(data)
            if same not in places:
                places[same] = len(inputs)
                inputs.append(data)
            ends.append(places[same])
    return inputs, np.array(ends, np.intp).reshape(-1, 2).T


def different(rows: Array) -> tuple[Array, Counts]:
    """Return the different rows, in no particular order, and the count of each."""
    _, first, which, times = np.unique(
        fingerprint(rows), return_index=True, return_inverse=True, return_counts=True
    )
    same = rows[first][which]
    equal = (rows == same) | ((rows != rows) & (same != same))
    # Different rows with one fingerprint.
    if not equal.all():
        keys = np.array([_key(row) for row in rows])
        _, first, times = np.unique(keys, return_index=True, return_counts=True)
    return rows[first], times


def _key(row: Array) -> bytes:
    """Return bytes that identify a row among rows of one type.

    The sign of a NaN is ignored. Its other bits count, because they name an output that
    is no number (``auditdp.mechanism.calls.representation``).
    """
    if row.dtype.kind == "f":
        row = np.where(np.isnan(row), np.abs(row), row)
    return row.tobytes()
