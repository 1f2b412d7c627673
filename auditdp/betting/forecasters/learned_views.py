"""Learned views: one number per output, by a function learned from earlier calls.

They are for outputs whose information lies in many coordinates at once. A learner
overfits, and overfitted odds would be bet on. So it is trained on half of the stored
calls, and the cells of its view get the counts of the other half and of all later
calls. While there are few calls, each half is counted by the view that is learned from
the other half, and the view is then learned from both. Cheap learners start early. A
heavy learner starts late, and only if the claim is not refuted yet.

To add a learner, derive a class from ``Learner`` and add it to ``learned_views``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from auditdp.betting.forecasters.views import View, signed
from auditdp.betting.limits import LARGEST_FINITE, LIMITS, TINY
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats, Labels
from auditdp.numerics.streams import one_thread


class Learner(View):
    """A view whose function is learned from earlier calls.

    Attributes:
        start: Number of calls from which on it is trained; it is trained again whenever
            views are cut into cells again.
        blind: Whether it ignores the coins, and is then trained on all stored calls.
        max_rows: Largest number of rows that it is trained on.
    """

    start: int
    blind: bool = False
    max_rows: int = 1 << 16

    def __init__(self) -> None:
        self.values = _not_learned

    @abstractmethod
    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Learn from rows, shape (n, d), and their coins.

        Returns:
            The function of the view, from rows to numbers.
        """

    def is_ready(self, calls: int, stalled: bool) -> bool:
        """Return True from ``start`` calls on.

        A heavy learner also needs a claim that is not refuted yet (``stalled``).
        """
        return calls >= self.start and (stalled or not self.heavy)

    def learn(self, sides: tuple[Array, Array]) -> tuple[Floats, Floats]:
        """Train the function of the view on rows under coin 0 and under coin 1.

        Returns:
            Values under coin 0 and under coin 1. No value comes from a function that
            was trained on the coin of its row; rows without such a value are left out.
        """
        if self.blind:
            self.values = self._fit(sides)
            return super().learn(sides)
        # Cross-fitting: no row is counted with a view that was trained on it.
        first, second = [(sides[0][k::2], sides[1][k::2]) for k in (0, 1)]
        self.values = self._fit(first)
        values = super().learn(second)
        if sum(map(len, sides)) > LIMITS.few_rows:
            return values
        self.values = self._fit(second)
        zeros, ones = map(
            np.concatenate, zip(values, super().learn(first), strict=True)
        )
        self.values = self._fit(sides)
        return zeros, ones

    def _fit(self, sides: Sequence[Array]) -> Callable[[Array], Floats]:
        rows = [side[: self.max_rows // 2] for side in sides]
        labels = np.repeat(np.array([0, 1], np.int8), [len(part) for part in rows])
        return self.fit(np.concatenate(rows), labels)


def _not_learned(rows: Array) -> Floats:
    raise AssertionError("a learned view is asked for values after it was learned")


def learned_views(width: int) -> list[Learner]:
    """Return the learned views of outputs of ``width`` numbers; [] for a width of 1."""
    if width < 2:
        return []
    views: list[Learner] = [Interaction(), Smallest()]
    if width > LIMITS.coordinates:
        views = [Screen(rank) for rank in range(4)]
    views += [
        Above("coordinates"),
        Above("differences"),
        Votes(),
        Linear(),
        Additive(),
    ]
    if width > 2:
        # For two numbers, ``Interaction`` has their product, and trees would cost an
        # import of scikit-learn, which takes a second.
        views.append(Trees())
    return views


class Screen(Learner):
    """One coordinate of a long output, chosen by its difference of means.

    Args:
        rank: Rank of the coordinate by the size of the standardised difference of means
            under both coins, 0 for the largest.
    """

    start = 16

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank
        self.name = f"telling coordinate {rank + 1}"

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Return the function that reads the coordinate with this rank."""
        direction = _direction(rows, labels)
        chosen = int(np.argsort(-np.abs(direction), kind="stable")[self.rank])
        return lambda rows: signed(_finite(rows[:, chosen]))


class Above(Learner):
    """The number of columns with a value above their median, for noise on all columns.

    Args:
        columns: "coordinates", or "differences" of neighbouring coordinates.
    """

    start = 8
    blind = True

    def __init__(self, columns: str) -> None:
        super().__init__()
        self.name = f"{columns} above their medians"
        self._order = int(columns == "differences")

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Return the function that counts columns above the medians of ``rows``."""
        middles = _middles(np.diff(_finite(_some(rows)), n=self._order, axis=1))

        def count(rows: Array) -> Floats:
            above = np.diff(_finite(rows), n=self._order, axis=1) > middles
            return np.asarray(above.sum(axis=1), dtype=np.float64)

        return count


class Votes(Learner):
    """Votes of coordinates, or of differences of neighbouring ones, for a coin.

    A column votes for one coin if its value is above its median, and for the other coin
    if not. All votes have the same weight. A column votes if the frequencies of the
    sides differ between the coins by three standard errors or more, and the column with
    the largest difference always votes. The view is quick to learn and right for equal
    noise on all coordinates. It has few values, so each gets a cell.
    """

    name = "votes"
    start = 16

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Return the function that sums the votes of columns.

        The columns are coordinates or differences, whichever separate the coins best.
        """
        best: tuple[Any, ...] = ()
        largest = -1.0
        orders = 2 if rows.shape[1] <= LIMITS.coordinates else 1
        for order in range(orders):
            columns = np.diff(_finite(rows), n=order, axis=1)
            middles = _middles(_some(columns))
            above = columns > middles
            count = np.count_nonzero(above, axis=0)
            ones = np.count_nonzero(above[labels == 1], axis=0)
            variance = np.maximum(count * (1 - count / len(rows)), TINY)
            z = 2 * (ones - labels.mean() * count) / np.sqrt(variance)
            least = min(3.0, np.abs(z).max(initial=0.0))
            voters = np.flatnonzero(np.abs(z) >= least)
            signs = np.sign(z[voters])
            votes = above[:, voters] @ signs
            apart = abs(float(_direction(votes[:, None], labels)[0]))
            if apart > largest:
                best, largest = (order, voters, middles[voters], signs), apart
        order, voters, middles, signs = best

        def vote(rows: Array) -> Floats:
            columns = np.diff(_finite(rows), n=order, axis=1)[:, voters]
            return np.asarray((columns > middles) @ signs)

        return vote


class Interaction(Learner):
    """The agreement of two standardised coordinates a and b: sign(ab) min(|a|, |b|).

    It is for dependence that no single coordinate has, such as the sign of a product or
    of a correlation, or the parity of two bits. With b = a, it is the distance of a
    coordinate from its middle. Only one pair of coordinates is chosen: votes of several
    pairs would not be comparable, since each half of the calls may choose another
    number of pairs.
    """

    name = "interaction"
    start = 32
    weight = 2.0
    max_rows = 1 << 14

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Return the function that computes the agreement of two coordinates.

        They are those whose product depends most on the coin, in standard errors.
        """
        # Standard errors of all products of two coordinates, by matrix products.
        scaled = _scaled(rows)
        x = scaled(rows, slice(None))
        variance = np.square(x).T @ np.square(x) / len(x) - np.square(x.T @ x / len(x))
        covariance = (x.T * (labels - labels.mean())) @ x
        apart = np.abs(np.triu(covariance / np.sqrt(np.maximum(variance, TINY))))
        two = list(np.unravel_index(np.argmax(apart), apart.shape))

        def score(rows: Array) -> Floats:
            a, b = scaled(rows, two).T
            return np.asarray(np.sign(a * b) * np.minimum(np.abs(a), np.abs(b)))

        return score


class Smallest(Learner):
    """The smallest standardised coordinate, for rare events that move all coordinates.

    Each coordinate is multiplied by the sign of its difference of means under both
    coins.
    """

    name = "smallest of the scaled"
    start = 1024
    max_rows = 1 << 14

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Return the function that computes the smallest value, with learned signs."""
        scaled, every = _scaled(rows), slice(None)
        excess = (labels - labels.mean()) @ scaled(rows, every)
        signs = np.where(excess < 0, -1.0, 1.0)
        return lambda rows: np.asarray((scaled(rows, every) * signs).min(axis=1))


class Linear(Learner):
    """A linear score of coordinates, by a ridge logistic regression."""

    name = "linear"
    start = 64

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Return the score function of a regression on standardised coordinates."""
        columns = [
            np.clip(x[np.isfinite(x)], -LARGEST_FINITE, LARGEST_FINITE)
            for x in np.asarray(rows, dtype=np.float64).T
        ]
        ends = [np.quantile(x, (0.01, 0.99)) if len(x) else (0, 0) for x in columns]
        low, high = np.array(ends, dtype=np.float64).T
        # A column with NaN gets an indicator of NaN, since the value that replaces NaN
        # also occurs by itself.
        nothing = np.clip(0.0, low, high)
        gappy = [j for j, x in enumerate(columns) if len(x) < len(rows)]

        def design(rows: Array) -> Floats:
            x = np.clip(np.asarray(rows, dtype=np.float64), low, high)
            missing = np.isnan(x)
            if not missing.any() and not gappy:
                return x
            return np.hstack([np.where(missing, nothing, x), missing[:, gappy]])

        x = design(rows)
        centre, scale = x.mean(axis=0), x.std(axis=0) + TINY
        weights = _regression((x - centre) / scale, labels, C=0.1) / scale

        def score(rows: Array) -> Floats:
            # The order of summation of a matrix product, and so its last bits, would
            # depend on the number of rows.
            terms = np.multiply(design(rows) - centre, weights, order="C")
            return np.asarray(terms.sum(axis=1))

        return score


class Additive(Learner):
    """A sum of step functions of coordinates and of differences of neighbouring ones.

    For Laplace noise, the log-likelihood ratio is constant outside the two centres: a
    step and no slope. The steps lie at quantiles.
    """

    name = "additive"
    start = 1024
    max_rows = 1 << 19

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Return the score function of a ridge regression on the cells of columns."""
        from scipy.sparse import csr_matrix

        width = rows.shape[1]
        count = 2 * width - 1 if width <= LIMITS.coordinates else width
        columns = _columns(rows, range(count))
        cuts = np.arange(1, 8) / 8
        edges = [
            np.unique(np.quantile(_some(c), cuts, method="lower")) for c in columns
        ]
        # One sparse row per output, with a 1 in the cell of every column.
        offsets = np.cumsum([0, *(len(e) + 1 for e in edges)])
        cells = np.stack(
            [
                offset + np.searchsorted(own, column)
                for column, own, offset in zip(columns, edges, offsets, strict=False)
            ],
            axis=1,
        )
        starts = np.arange(0, cells.size + 1, count)
        x = csr_matrix(
            (np.ones(cells.size), cells.ravel(), starts), (len(rows), offsets[-1])
        )
        tables = np.split(_regression(x, labels, C=1.0), offsets[1:-1])
        # Columns of small weight only cost time.
        ranges = np.array([np.ptp(table) for table in tables])
        chosen = np.flatnonzero(ranges > ranges.max() / 50).tolist()

        def score(rows: Array) -> Floats:
            total = np.zeros(len(rows))
            for j, column in zip(chosen, _columns(rows, chosen), strict=True):
                # Comparing with few edges is faster than a search among them.
                step = np.zeros(len(rows), np.int8)
                for edge in edges[j]:
                    step += column > edge
                total += tables[j][step]
            return total

        return score


class Trees(Learner):
    """Boosted trees, for dependence among three and more numbers.

    They are slow, and so they start late.
    """

    name = "trees"
    start = 8192
    heavy = True
    max_rows = 1 << 15

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Return the score function of boosting with few, shallow trees."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        # With a fixed seed and one thread, a run can be repeated exactly.
        model: Any = HistGradientBoostingClassifier(
            max_iter=40,
            max_leaf_nodes=8,
            early_stopping=False,
            random_state=0,
            min_samples_leaf=40,
        )

        def score(rows: Array) -> Floats:
            with one_thread():
                return np.asarray(model.decision_function(_finite(rows)))

        with one_thread():
            model.fit(_finite(rows), labels)
        return score


def _middles(columns: Floats) -> Floats:
    """Return the median of every column, or a smaller value if none is above it.

    The median may be the largest value, as in a column of bits that are mostly 1. Then
    the next smaller value is returned.
    """
    middles = np.median(columns, axis=0)
    below = np.where(columns < middles, columns, -np.inf).max(axis=0, initial=-np.inf)
    is_largest = (middles == columns.max(axis=0)) & np.isfinite(below)
    return np.where(is_largest, below, middles)


def _scaled(rows: Array) -> Callable[[Array, Any], Floats]:
    """Return a function that clips and standardises some coordinates of other rows.

    Coordinates are clipped to the quantiles .05 and .95 of ``rows``. The arguments of
    the function are the other rows, and the index of the coordinates.
    """
    x = _finite(_some(rows))
    low, high = np.quantile(x, (0.05, 0.95), axis=0)
    clipped = np.clip(x, low, high)
    centre, deviation = clipped.mean(axis=0), clipped.std(axis=0) + TINY

    def scaled(rows: Array, at: Any) -> Floats:
        inside = np.clip(_finite(rows[:, at]), low[at], high[at])
        return np.asarray((inside - centre[at]) / deviation[at])

    return scaled


def _some(values: Array) -> Array:
    """Return equally spaced values, at most ``LIMITS.quantile_rows`` of them."""
    return values[:: -(-len(values) // LIMITS.quantile_rows)]


def _regression(x: Any, labels: Labels, *, C: float) -> Floats:
    """Return the weights of a ridge logistic regression, shape (columns,).

    There are at most 60 iterations. Let s be 1 for label 1 and -1 for label 0. The
    weights w and an intercept b minimise

        ‖w‖²/2 + C Σᵢ log(1 + exp(−sᵢ (xᵢ·w + b))).

    Args:
        x: Rows, dense or sparse, shape (rows, columns).
        labels: Label of each row.
        C: Weight of the data, relative to the ridge.
    """
    signs = np.where(labels, 1.0, -1.0)
    rows, columns = x.shape

    def loss(parameters: Floats) -> tuple[float, Floats]:
        """Return the minimised sum and its gradient; the last parameter is b."""
        weights = parameters[:-1]
        margins = signs * (x @ weights + parameters[-1])
        pull = C * signs * expit(-margins)
        value = weights @ weights / 2 + C * np.logaddexp(0.0, -margins).sum()
        return float(value), np.append(weights - x.T @ pull, -pull.sum())

    parameters = np.zeros(columns + 1)
    if columns > LIMITS.newton_width or not isinstance(x, np.ndarray):
        from scipy.optimize import minimize

        options = {"maxiter": LIMITS.regression_steps}
        found = minimize(loss, parameters, jac=True, method="L-BFGS-B", options=options)
        return np.asarray(found.x[:-1])
    # Newton's method is faster for a few dense columns, and does not import
    # scipy.optimize, which takes longer than a small game.
    design = np.column_stack([x, np.ones(rows)])
    ridge = np.diag([*np.ones(columns), 0.0])
    value, gradient = loss(parameters)
    for _ in range(LIMITS.regression_steps):
        if np.abs(gradient).max() <= LIMITS.regression_tolerance * C * rows:
            break
        chances = expit(design @ parameters)
        # The intercept has no ridge, so with a curvature of 0 nothing could be solved.
        curvature = C * chances * (1 - chances) + TINY
        step = np.linalg.solve((design.T * curvature) @ design + ridge, gradient)
        moved, after = loss(parameters - step)
        # A full step may overshoot where the loss is nearly flat.
        while moved > value and np.abs(step).max() > TINY:
            step /= 2
            moved, after = loss(parameters - step)
        parameters, value, gradient = parameters - step, moved, after
    return parameters[:-1]


def _direction(rows: Array, labels: Labels) -> Floats:
    """Return the standardised difference of means of coordinates, up to a factor.

    It is positive for a coordinate that is larger under coin 1. It is computed as a
    covariance with the coins. So it is 0, and not undefined, if all calls have the same
    coin.
    """
    x = _finite(rows)
    # Without this, a rounding error of a large constant may look like a difference.
    x = x - x.mean(axis=0)
    deviation = np.sqrt(np.square(x).mean(axis=0)) + TINY
    return np.asarray((labels - labels.mean()) @ x / deviation)


def _columns(rows: Array, chosen: Sequence[int]) -> list[Floats]:
    """Return chosen columns: coordinates, or differences of neighbouring coordinates.

    Args:
        rows: Shape (n, d).
        chosen: For each column, j < d for coordinate j, or d + j for coordinate j + 1
            minus coordinate j.
    """
    width = rows.shape[1]
    # A coordinate can be in three columns, so its clipped values are kept.
    finite: dict[int, Floats] = {}

    def coordinate(j: int) -> Floats:
        if j not in finite:
            finite[j] = _finite(np.ascontiguousarray(rows[:, j]))
        return finite[j]

    columns = []
    for j in chosen:
        if j < width:
            columns.append(coordinate(j))
        else:
            columns.append(coordinate(j - width + 1) - coordinate(j - width))
    return columns


def _finite(rows: Array) -> Floats:
    """Return the numbers as doubles whose differences and squares are finite.

    They are clipped to ±``LARGEST_FINITE``; NaN ("no number here") becomes twice that.
    """
    x = np.asarray(rows, dtype=np.float64)
    if rows.dtype.kind != "f":
        return x
    # Comparisons with NaN are false, and an extreme of values with a NaN is NaN.
    if max(-x.min(initial=0.0), x.max(initial=0.0)) <= LARGEST_FINITE:
        return x
    clipped = np.clip(x, -LARGEST_FINITE, LARGEST_FINITE)
    return np.where(np.isnan(x), 2 * LARGEST_FINITE, clipped)
