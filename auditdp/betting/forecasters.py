"""Forecasters: who says how likely it is that the coin showed 1, given an output.

A forecaster has scikit-learn's shape, ``fit(outputs, labels)`` and ``predict_proba(outputs)``, and may also offer
``log_odds(outputs)``, which keeps certainty that a probability near 1 would round away. It is fitted on earlier calls
of one pair only; whatever it forecasts, the game stays valid. A good forecaster is calibrated and abstains (log-odds
within the cap) when it does not know.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from auditdp.adjacency import Pair
from auditdp.laws import row_keys
from auditdp.mechanism import Array, Mechanism

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]


class Forecaster(Protocol):
    """Anything with scikit-learn's ``fit`` and ``predict_proba``."""

    def fit(self, outputs: Array, labels: Labels) -> Any:
        """Learn from earlier outputs, shape (n, ...), and the coins that chose their inputs, shape (n,)."""

    def predict_proba(self, outputs: Array) -> Floats:
        """Return the probabilities of coin 0 and coin 1 for each output, shape (n, 2)."""


def bind(forecaster: Any, mechanism: Mechanism, pair: Pair) -> Any:
    """Return a fresh copy of a forecaster for one pair: white-box ones take what they need from the mechanism."""
    if hasattr(forecaster, "bind"):
        return forecaster.bind(mechanism, pair)
    if not hasattr(forecaster, "log_odds"):
        return Classifier(copy.deepcopy(forecaster))
    return copy.deepcopy(forecaster)


def default_forecasters(mechanism: Any) -> list[Any]:
    """Return the forecasters whose mixture is played unless an audit names its own.

    The exact likelihood ratio where the mechanism states its law, its ``score`` where it has one, and always two that
    look only at outputs, so that a sampler which does not follow its stated law is still caught.
    """
    chosen: list[Any] = []
    if hasattr(mechanism, "log_prob") or hasattr(mechanism, "distribution"):
        chosen.append(LikelihoodRatio())
    elif hasattr(mechanism, "score"):
        chosen.append(Scored())
    return [*chosen, Categorical(), Classifier()]


class LikelihoodRatio:
    """Forecasts with the mechanism's own law: log-odds ln P(y | data) - ln P(y | neighbour), the true posterior.

    Takes ``log_prob(outputs, data)`` where the mechanism has it, else its finite ``distribution(data)``.
    """

    name = "likelihood ratio"

    def bind(self, mechanism: Any, pair: Pair) -> Self:
        """Return the forecaster of one pair."""
        bound = copy.copy(self)
        if hasattr(mechanism, "log_prob"):
            bound._log_prob = mechanism.log_prob
            bound._inputs = (pair.data, pair.neighbour)
        else:
            bound._log_prob = lambda outputs, law: law.log_prob(outputs)
            bound._inputs = (mechanism.distribution(pair.data), mechanism.distribution(pair.neighbour))
        return bound

    def fit(self, outputs: Array, labels: Labels) -> Self:
        """Do nothing: the law is known."""
        return self

    def log_odds(self, outputs: Array) -> Floats:
        """Return the log-likelihood ratio; 0 where both laws call the output impossible."""
        ones, zeros = (np.asarray(self._log_prob(outputs, x), dtype=float) for x in self._inputs)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.nan_to_num(ones - zeros, nan=0.0, posinf=np.inf, neginf=-np.inf))

    def predict_proba(self, outputs: Array) -> Floats:
        """Return the two posterior probabilities, shape (n, 2)."""
        return probabilities(self.log_odds(outputs))

    _log_prob: Any = None
    _inputs: tuple[Any, Any] = (None, None)


class Categorical:
    """Krichevsky-Trofimov estimate per atom: log-odds ln((n1 + 1/2)/(n0 + 1/2)) from the counts of each output.

    Discrete outputs are their own atoms; more than ``max_atoms`` distinct scalars are cut at quantiles into about the
    cube root of their number of cells. Many distinct vectors are left to other forecasters: it abstains.
    """

    name = "categorical"

    def __init__(self, max_atoms: int = 64) -> None:
        self.max_atoms = max_atoms
        self._edges: Floats | None = None
        self._counts: dict[bytes, Floats] = {}

    def fit(self, outputs: Array, labels: Labels) -> Self:
        """Count the coins per atom."""
        rows = np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)
        self._edges, self._counts = None, {}
        keys, inverse = _atoms(rows)
        if len(keys) > self.max_atoms:
            if rows.shape[1] != 1:
                return self
            cells = int(np.clip(round(len(rows) ** (1 / 3)), 4, self.max_atoms))
            self._edges = np.unique(np.quantile(rows[:, 0], np.arange(1, cells) / cells, method="lower"))
            keys, inverse = _atoms(self._cells(rows))
        ones = np.bincount(inverse, weights=labels, minlength=len(keys))
        total = np.bincount(inverse, minlength=len(keys))
        self._counts = {key: np.array([t - o, o]) for key, o, t in zip(keys, ones, total, strict=True)}
        return self

    def _cells(self, rows: Floats) -> Floats:
        if self._edges is None:
            return rows
        return np.searchsorted(self._edges, rows[:, :1]).astype(np.float64)

    def log_odds(self, outputs: Array) -> Floats:
        """Return the estimated log-odds; 0 for an atom that was never seen."""
        if not self._counts:
            return np.zeros(len(outputs))
        keys, inverse = _atoms(self._cells(np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)))
        counts = np.array([self._counts.get(key, _UNSEEN) for key in keys]) + 0.5
        return np.asarray(np.log(counts[:, 1] / counts[:, 0])[inverse])

    def predict_proba(self, outputs: Array) -> Floats:
        """Return the two estimated probabilities, shape (n, 2)."""
        return probabilities(self.log_odds(outputs))


_UNSEEN = np.zeros(2)


def _atoms(rows: Floats) -> tuple[list[bytes], NDArray[np.intp]]:
    """Return the distinct rows as keys, and for each row the position of its key."""
    rows = np.ascontiguousarray(rows) + 0.0
    if rows.shape[1] == 1:
        values, inverse = np.unique(rows[:, 0], return_inverse=True)
        return row_keys(values), inverse
    packed = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    values, inverse = np.unique(packed, return_inverse=True)
    return [value.tobytes() for value in values], inverse


class Scored:
    """Forecasts from the mechanism's ``score(outputs, pair)``: one number that keeps what tells the pair apart.

    Args:
        inner: The forecaster that learns from the score; the categorical one unless named.
    """

    name = "score"

    def __init__(self, inner: Any = None) -> None:
        self.inner = inner if inner is not None else Categorical()

    def bind(self, mechanism: Any, pair: Pair) -> Self:
        """Return the forecaster of one pair."""
        bound = copy.copy(self)
        bound.inner = copy.deepcopy(self.inner)
        bound._score = lambda outputs: np.asarray(mechanism.score(outputs, pair))
        return bound

    def fit(self, outputs: Array, labels: Labels) -> Self:
        """Fit the inner forecaster on the scores."""
        self.inner.fit(self._score(outputs), labels)
        return self

    def log_odds(self, outputs: Array) -> Floats:
        """Return the inner forecaster's log-odds at the scores."""
        return np.asarray(self.inner.log_odds(self._score(outputs)))

    def predict_proba(self, outputs: Array) -> Floats:
        """Return the inner forecaster's probabilities at the scores, shape (n, 2)."""
        return probabilities(self.log_odds(outputs))

    _score: Any = None


class Classifier:
    """Any scikit-learn classifier as a forecaster, refitted whenever its data have doubled.

    Outputs are flattened to one row of features each. Until it has seen ``least`` calls with both coins, it abstains.

    Args:
        estimator: A classifier with ``fit`` and ``predict_proba``; standardised logistic regression unless named.
        least: Calls before the first fit.
        most: Fit on at most this many of the latest calls.
    """

    def __init__(self, estimator: Any = None, *, least: int = 32, most: int = 50_000) -> None:
        if estimator is None:
            from sklearn.linear_model import LogisticRegression
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler

            estimator = make_pipeline(StandardScaler(), LogisticRegression(C=1.0))
        self.estimator = estimator
        self.least = least
        self.most = most
        self._next = least
        self._fitted = False

    @property
    def name(self) -> str:
        """The estimator's class, in lower case words."""
        last = self.estimator.steps[-1][1] if hasattr(self.estimator, "steps") else self.estimator
        return "".join(f" {c.lower()}" if c.isupper() else c for c in type(last).__name__).strip()

    def fit(self, outputs: Array, labels: Labels) -> Self:
        """Refit if the data have doubled since the last fit."""
        if len(outputs) >= self._next and 0 < labels.sum() < len(labels):
            recent = slice(-self.most, None)
            self.estimator.fit(_features(outputs[recent]), labels[recent])
            self._next, self._fitted = 2 * len(outputs), True
        return self

    def log_odds(self, outputs: Array) -> Floats:
        """Return the classifier's log-odds; 0 before the first fit."""
        if not self._fitted:
            return np.zeros(len(outputs))
        p = self.estimator.predict_proba(_features(outputs))[:, 1]
        return np.asarray(logit(np.clip(p, 1e-12, 1 - 1e-12)))

    def predict_proba(self, outputs: Array) -> Floats:
        """Return the two estimated probabilities, shape (n, 2)."""
        return probabilities(self.log_odds(outputs))


LARGEST_FEATURE = 1e30


def _features(outputs: Array) -> Floats:
    """Return one row of finite numbers per output, shape (n, d); infinities become very large."""
    rows = np.asarray(outputs, dtype=float).reshape(len(outputs), -1)
    return np.asarray(np.clip(rows, -LARGEST_FEATURE, LARGEST_FEATURE))


def probabilities(log_odds: Floats) -> Floats:
    """Return the probabilities of coin 0 and coin 1, shape (n, 2)."""
    return np.stack([np.exp(-np.logaddexp(0.0, sign * log_odds)) for sign in (1, -1)], axis=1)


def forecast(forecasters: Sequence[Any], outputs: Array) -> Floats:
    """Return the log-odds of all forecasters, shape (K, n), with an undefined forecast taken as abstaining."""
    return np.stack([np.nan_to_num(f.log_odds(outputs), nan=0.0, posinf=np.inf, neginf=-np.inf) for f in forecasters])
