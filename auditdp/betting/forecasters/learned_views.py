"""Learned views: one number per output that is learned from earlier calls, for what needs many coordinates at once.

A learner overfits, and overfitted odds would be bet on. So it is trained on half of the calls that are kept, and its view is
cut into cells with the counts of the other half and of all calls after it; while calls are few, each half is counted by the
view that the other half gave, and the view is then learned from both. Cheap learners start early, a heavy one late and only
if the claim still stands.

To add a learner, derive a class from ``Learner`` and add it to ``learned_views``.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from auditdp.betting.forecasters.views import View, signed
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats, Labels
from auditdp.numerics.streams import one_thread

CROSSED = 1 << 14
"""Calls up to which each half is counted as the other one sees it."""
FOR_QUANTILES = 8192
"""Values from which quantiles are taken."""
FEW = 1 << 14
"""Rows that choose among coordinates well enough."""
STEPS = 8
"""Cells of each column."""
MOST_DIFFERENCES = 32
"""Differences of neighbouring coordinates are looked at where there are at most so many coordinates."""
TELLING = 3.0
"""Standard errors by which a column has to tell the coins apart to have a vote."""
NARROW = 64
"""Up to so many numbers, Newton's steps are the faster regression."""
TINY = 1e-12
"""Keeps a variance of 0 from dividing."""
LARGEST = 1e30
"""Numbers are clipped to it: the squares of their differences are finite."""


class Learner(View):
    """A view that is learned from earlier calls, and has values once it has been.

    Attributes:
        start: It is first trained when so many calls have been seen, and again whenever they have doubled.
        blind: Whether it ignores the coins.
        most: Rows that it is trained on at most.
    """

    start: int
    blind: bool = False
    most: int = 1 << 16

    def __init__(self) -> None:
        self.values = _not_learned

    @abstractmethod
    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Learn from rows of shape (n, d) and their coins; return the view."""

    def is_ready(self, calls: int, stalled: bool) -> bool:
        """Return whether it can be learned after so many calls; a heavy one only as long as the claim still stands."""
        return calls >= self.start and (stalled or not self.heavy)

    def learn(self, sides: tuple[Array, Array]) -> tuple[Floats, Floats]:
        """Learn from rows under coin 0 and coin 1, and return its values of rows that it was not learned from."""
        if self.blind:
            self.values = self._fit(sides)
            return self.values(sides[0]), self.values(sides[1])
        halves = [(sides[0][k::2], sides[1][k::2]) for k in (0, 1)]
        self.values = self._fit(halves[0])
        zeros, ones = (self.values(side) for side in halves[1])
        if sum(map(len, sides)) <= CROSSED:
            other = self._fit(halves[1])
            zeros, ones = (
                np.concatenate([fresh, other(side)])
                for fresh, side in zip((zeros, ones), halves[0], strict=True)
            )
            self.values = self._fit(sides)
        return zeros, ones

    def _fit(self, sides: Sequence[Array]) -> Callable[[Array], Floats]:
        rows = [side[: self.most // 2] for side in sides]
        return self.fit(
            np.concatenate(rows),
            np.repeat(np.array([0, 1], np.int8), [len(part) for part in rows]),
        )


def _not_learned(rows: Array) -> Floats:
    raise AssertionError("a learned view is asked for values after it was learned")


def learned_views(width: int) -> list[Learner]:
    """Return the learned views of outputs of ``width`` numbers."""
    if width < 2:
        return []
    screens: list[Learner] = [Screen(rank) for rank in range(4)] if width > 32 else []
    few: list[Learner] = (
        [Interaction(), Smallest()] if width <= MOST_DIFFERENCES else []
    )
    return [
        *screens,
        *few,
        Above("coordinates"),
        Above("differences"),
        Votes(),
        Linear(),
        Additive(),
        Trees(),
    ]


class Screen(Learner):
    """Looks at one coordinate of a long output: the one whose means differ most, counting from ``rank`` 0."""

    start = 16

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank
        self.name = f"telling coordinate {rank + 1}"

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Rank coordinates by their standardised difference of means."""
        direction = _direction(rows, labels)
        chosen = int(np.argsort(-np.abs(direction), kind="stable")[self.rank])
        return lambda rows: signed(_finite(rows[:, chosen]))


class Above(Learner):
    """How many coordinates, or differences of neighbouring ones, are above their medians: for noise on all of them.

    Args:
        what: "coordinates" or "differences".
    """

    start = 8
    blind = True

    def __init__(self, what: str) -> None:
        super().__init__()
        self.name = f"{what} above their medians"
        self._differences = what == "differences"

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Find the middles."""
        middles = _middles(self._part(_some(rows)))
        return lambda rows: np.asarray(
            (self._part(rows) > middles).sum(axis=1), dtype=np.float64
        )

    def _part(self, rows: Array) -> Floats:
        return np.diff(_finite(rows), axis=1) if self._differences else _finite(rows)


class Votes(Learner):
    """Coordinates, or differences of neighbouring ones, vote for a coin by the side of their middle that they are on.

    All votes count the same, and only those have one that tell the coins apart by three standard errors, or the one that
    does so best: quick to learn, right where the noise on all is the same, and with few results, each a cell of its own.
    """

    name = "votes"
    start = 16

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Choose the columns: coordinates or differences, whichever tell more together."""
        chosen, most = (0, np.zeros(0, np.intp), np.zeros(0), np.zeros(0)), -1.0
        for order in range(2 if rows.shape[1] <= MOST_DIFFERENCES else 1):
            columns = np.diff(_finite(rows), n=order, axis=1)
            middles = _middles(_some(columns))
            above = columns > middles
            count = np.count_nonzero(above, axis=0)
            excess = (
                np.count_nonzero(above[labels == 1], axis=0) - labels.mean() * count
            )
            z = 2 * excess / np.sqrt(np.maximum(count * (1 - count / len(rows)), TINY))
            voters = np.flatnonzero(
                np.abs(z) >= min(TELLING, np.abs(z).max(initial=0.0))
            )
            votes = above[:, voters] @ np.sign(z[voters])
            if (apart := abs(float(_direction(votes[:, None], labels)[0]))) > most:
                chosen, most = (
                    (order, voters, middles[voters], np.sign(z[voters])),
                    apart,
                )
        order, voters, middles, signs = chosen
        return lambda rows: (
            (np.diff(_finite(rows), n=order, axis=1)[:, voters] > middles) @ signs
        )


class Interaction(Learner):
    """Whether two coordinates are on the same side of their middles, and how far the nearer one is: the two that tell most.

    For what no single number shows: the sign of a product or of a correlation, the parity of two bits. A coordinate with
    itself shows how far out it is. One pair alone has a vote: how many do would change between both halves and all of the
    calls, and with it what a number of votes means.
    """

    name = "interaction"
    start = 32
    weight = 2.0
    most = FEW

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Find the two whose product differs most between the coins, in standard errors."""
        scaled = _scaled(rows)
        x = scaled(rows, slice(None))
        variance = np.square(x).T @ np.square(x) / len(x) - np.square(x.T @ x / len(x))
        apart = np.triu(
            (x.T * (labels - labels.mean())) @ x / np.sqrt(np.maximum(variance, TINY))
        )
        two = list(np.unravel_index(np.argmax(np.abs(apart)), apart.shape))

        def score(rows: Array) -> Floats:
            a, b = scaled(rows, two).T
            return np.asarray(np.sign(a * b) * np.minimum(np.abs(a), np.abs(b)))

        return score


class Smallest(Learner):
    """The smallest coordinate, each scaled and turned the way that coin 1 moves it: for rare events in all at once."""

    name = "smallest of the scaled"
    start = 1024
    most = FEW

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Find which way every coordinate is turned."""
        scaled, every = _scaled(rows), slice(None)
        turned = np.where((labels - labels.mean()) @ scaled(rows, every) < 0, -1.0, 1.0)
        return lambda rows: np.asarray((scaled(rows, every) * turned).min(axis=1))


class Linear(Learner):
    """A linear score of coordinates and their differences: logistic regression, shrunk."""

    name = "linear"
    start = 64

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Fit a ridge logistic regression on standardised coordinates."""
        columns = [
            np.clip(x[np.isfinite(x)], -LARGEST, LARGEST)
            for x in np.asarray(rows, dtype=np.float64).T
        ]
        low, high = np.array(
            [np.quantile(x, (0.01, 0.99)) if len(x) else (0.0, 0.0) for x in columns]
        ).T
        nothing = np.clip(0.0, low, high)
        gappy = [j for j, x in enumerate(columns) if len(x) < len(rows)]

        def design(rows: Array) -> Floats:
            x = np.clip(np.asarray(rows, dtype=np.float64), low, high)
            missing = np.isnan(x)
            if not missing.any() and not gappy:
                return x
            return np.hstack([np.where(missing, nothing, x), missing[:, gappy]])

        x = design(rows)
        centre, scale = x.mean(axis=0), x.std(axis=0) + 1e-12
        solver = "newton-cholesky" if x.shape[1] <= NARROW else "lbfgs"
        weights = (
            _regression((x - centre) / scale, labels, C=0.1, solver=solver) / scale
        )
        # A matrix product's order of summation, and so its last bits, would depend on how many rows there are.
        return lambda rows: np.multiply(design(rows) - centre, weights, order="C").sum(
            axis=1
        )


class Additive(Learner):
    """A sum of step functions, one of each coordinate and of each difference of neighbouring ones.

    Laplace noise tells its two centres apart by a step, not by a slope: the log-likelihood ratio is constant outside the
    centres. Steps lie at quantiles.
    """

    name = "additive"
    start = 1024
    most = 1 << 19

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Fit a ridge logistic regression on the indicators of the cells of every column."""
        from scipy.sparse import csr_matrix

        columns = _columns(rows, range(_how_many(rows)))
        cuts = np.arange(1, STEPS) / STEPS
        edges = [
            np.unique(np.quantile(_some(c), cuts, method="lower")) for c in columns
        ]
        offsets = np.cumsum([0, *(len(e) + 1 for e in edges)])
        cells = np.stack(
            [
                o + np.searchsorted(e, c)
                for c, e, o in zip(columns, edges, offsets[:-1], strict=True)
            ],
            axis=1,
        )
        ones = np.ones(cells.size)
        x = csr_matrix(
            (ones, cells.ravel(), np.arange(0, cells.size + 1, cells.shape[1])),
            (len(rows), offsets[-1]),
        )
        weights = _regression(x, labels, C=1.0)
        tables = np.split(weights, offsets[1:-1])
        # Columns of small weight only cost time.
        loudest = max(np.ptp(table) for table in tables)
        telling = [j for j, table in enumerate(tables) if np.ptp(table) > loudest / 50]

        def score(rows: Array) -> Floats:
            total = np.zeros(len(rows))
            for j, column in zip(telling, _columns(rows, telling), strict=True):
                step = np.zeros(
                    len(rows), np.int8
                )  # counting the few edges below is faster than searching among them
                for edge in edges[j]:
                    step += column > edge
                total += tables[j][step]
            return total

        return score


class Trees(Learner):
    """Boosted trees, for what no sum over coordinates shows; slow, so late."""

    name = "trees"
    start = 8192
    heavy = True
    most = 1 << 15

    def fit(self, rows: Array, labels: Labels) -> Callable[[Array], Floats]:
        """Fit scikit-learn's histogram gradient boosting with few, shallow trees."""
        from sklearn.ensemble import HistGradientBoostingClassifier

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
    """Return the median of every column or, where nothing is above it, the value before it: half of the bits are 1, say."""
    middles = np.median(columns, axis=0)
    below = np.where(columns < middles, columns, -np.inf).max(axis=0, initial=-np.inf)
    return np.where(
        (middles == columns.max(axis=0)) & np.isfinite(below), below, middles
    )


def _scaled(rows: Array) -> Callable[[Array, Any], Floats]:
    """Return what clips some coordinates of rows to where most are, and gives them mean 0 and deviation 1."""
    x = _finite(_some(rows))
    low, high = np.quantile(x, (0.05, 0.95), axis=0)
    clipped = np.clip(x, low, high)
    centre, deviation = clipped.mean(axis=0), clipped.std(axis=0) + TINY
    return lambda rows, at: (
        (np.clip(_finite(rows[:, at]), low[at], high[at]) - centre[at]) / deviation[at]
    )


def _some(values: Array) -> Array:
    """Return enough of the values to know their quantiles, spread over all of them."""
    return values[:: -(-len(values) // FOR_QUANTILES)]


def _regression(x: Any, labels: Labels, *, C: float, solver: str = "lbfgs") -> Floats:
    """Return the weights of a ridge logistic regression, as far as some iterations go: a forecast needs no more."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(
            LogisticRegression(C=C, max_iter=60, solver=solver).fit(x, labels).coef_[0]
        )


def _direction(rows: Array, labels: Labels) -> Floats:
    """Return the standardised difference of the means of every coordinate, up to a factor that all of them share.

    It is written as a covariance with the coins, which is 0, and not undefined, where there are calls of one coin only.
    """
    x = _finite(rows)
    x = x - x.mean(
        axis=0
    )  # so that no rounding error of a large constant is taken for a difference
    return np.asarray(
        (labels - labels.mean()) @ x / (np.sqrt(np.square(x).mean(axis=0)) + 1e-12)
    )


def _how_many(rows: Array) -> int:
    """Return how many columns there are: coordinates and, where they are few, differences of neighbouring ones."""
    width = int(rows.shape[1])
    return 2 * width - 1 if width <= MOST_DIFFERENCES else width


def _columns(rows: Array, chosen: Sequence[int]) -> list[Floats]:
    """Return some columns: coordinates are counted from 0, and differences to the next one from the width on."""
    width = rows.shape[1]
    needed = {
        c for j in chosen for c in ((j,) if j < width else (j - width, j - width + 1))
    }
    x = {c: _finite(np.ascontiguousarray(rows[:, c])) for c in needed}
    return [x[j] if j < width else x[j - width + 1] - x[j - width] for j in chosen]


def _finite(rows: Array) -> Floats:
    """Return numbers whose differences and squares are finite: none beyond ±LARGEST, and "no number here" at twice that."""
    x = np.asarray(rows, dtype=np.float64)
    # Comparisons with NaN are false, and an extreme of values of which one is NaN is NaN.
    if rows.dtype.kind != "f" or (
        x.min(initial=0.0) >= -LARGEST and x.max(initial=0.0) <= LARGEST
    ):
        return x
    return np.where(np.isnan(x), 2 * LARGEST, np.clip(x, -LARGEST, LARGEST))
