"""Forecasters: the probability that the coin was 1, given an output.

A user's forecaster has scikit-learn's methods, ``fit(outputs, labels)`` and
``predict_proba(outputs)``. It may also have ``log_odds(outputs)``, which does not round
a probability near 1. It learns from earlier calls of one pair only. The game is valid
for any forecasts. A good forecaster is calibrated, and abstains if it is unsure:
against an ε-claim, log-odds between -ε and ε place no bet.

In the game every forecaster is a *player*. A player may be many forecasters at once: a
``ViewPlayer`` has one expert for every view of an output and every estimator.
"""

from __future__ import annotations

import copy
import math
from typing import Any, Protocol, Self

import numpy as np
from scipy.special import logit

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.players import Player
from auditdp.betting.forecasters.repeated_outputs import Repeating
from auditdp.betting.limits import LARGEST_FINITE, LIMITS, TINY
from auditdp.betting.wealth.forecasts import Forecasts, Law
from auditdp.betting.wealth.regions import growth, log_cap
from auditdp.errors import AuditError
from auditdp.mechanism.calls.inputs import Inputs
from auditdp.mechanism.calls.remote_mechanism import MechanismElsewhere
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import Array, Mechanism
from auditdp.numerics.arrays import Floats, Labels


class Forecaster(Protocol):
    """Anything with scikit-learn's ``fit`` and ``predict_proba``."""

    def fit(self, outputs: Array, labels: Labels) -> Any:
        """Learn from earlier outputs, shape (n, ...), and their coins, shape (n,)."""

    def predict_proba(self, outputs: Array) -> Floats:
        """Return the probabilities of coin 0 and 1 for each output, shape (n, 2)."""


def player(forecaster: Any, mechanism: Mechanism, pair: Pair) -> Player:
    """Return a new player of a forecaster for one pair of inputs of a mechanism.

    If the forecaster has a method ``player``, this method makes the player. Otherwise
    the player has one forecaster: the result of the method ``bind``, if there is one,
    or a copy.
    """
    if hasattr(forecaster, "player"):
        return forecaster.player(mechanism, pair)  # type: ignore[no-any-return]
    if hasattr(forecaster, "bind"):
        return Single(forecaster.bind(mechanism, pair))
    return Single(copy.deepcopy(forecaster))


def default_forecasters(mechanism: Any) -> list[Any]:
    """Return templates of the forecasters of an audit that names none.

    The first is the exact likelihood ratio if the mechanism states its law, else its
    ``score`` if it has one. The forecasters that use outputs alone always follow, since
    a sampler may not follow its stated law. The last ones are the ``forecasters`` of
    the mechanism, if it has any.
    """
    chosen: list[Any] = []
    able = capabilities(mechanism)
    if able.knows_odds:
        chosen.append(LikelihoodRatio())
    elif able.score is not None:
        chosen.append(Scored())
    return [*chosen, ViewExperts(), Repeating(), *getattr(mechanism, "forecasters", ())]


class LikelihoodRatio:
    """Forecasts by the mechanism's own law: ln P(y | data) - ln P(y | neighbour).

    These are the log-odds of the true posterior. The law is the mechanism's
    ``log_prob(outputs, data)`` if it has one, else its ``distribution(data)``.

    Attributes:
        stated: The law of these log-odds. None if the mechanism has ``log_prob``, or if
            a law is not a finite list of outcomes.
        unlisted: Number of outputs so far that neither law lists, or whose log
            probabilities are undefined.
    """

    name = "likelihood ratio"
    share = 16.0
    calibrated = True
    stated: Law | None = None
    unlisted: int = 0
    _unlisted: float = -np.inf
    _log_probs: Any = None

    def bind(self, mechanism: Any, pair: Pair) -> Self:
        """Return a copy of the forecaster for one pair, with the laws of its inputs."""
        bound, inputs, able = copy.copy(self), Inputs(), capabilities(mechanism)
        sides = pair.data, pair.neighbour
        if isinstance(able.mechanism, MechanismElsewhere):
            # The representation of outputs was fixed before.
            assert able.form is not None
            law = able.mechanism.law(able.form, pair)
            bound._log_probs, bound._unlisted, stated = law
            bound.stated = Law(*stated) if stated else None
            return bound
        log_prob = able.log_prob
        if log_prob is not None:

            def log_probs(outputs: Array) -> list[Any]:
                with inputs.lent(f"{able.name}.log_prob", *sides) as lent:
                    return [log_prob(outputs, x) for x in lent]

            bound._log_probs = log_probs
            return bound
        # This forecaster plays only if the mechanism has a law.
        assert able.law_of_output is not None
        with inputs.lent(f"{able.name}.distribution", *sides) as lent:
            laws = [able.law_of_output(x) for x in lent]
        bound._log_probs = lambda outputs: [
            able.log_prob_by(law, outputs) for law in laws
        ]
        finite = [law for law in laws if isinstance(law, FiniteLaw)]
        bound._unlisted = max((law.log_unlisted for law in finite), default=-np.inf)
        if len(finite) == len(laws):
            bound.stated = _law_of_ratio(finite)
        return bound

    def log_odds(self, outputs: Array) -> Floats:
        """Return the log-likelihood ratio of each output, and count unlisted outputs.

        The ratio is 0 if it is undefined, as for an output that is impossible on both
        inputs.
        """
        ones, zeros = (
            np.asarray(side, dtype=float) for side in self._log_probs(outputs)
        )
        # Laws of floats give unlisted outputs an upper bound on their probability.
        is_listed = (ones > self._unlisted) | (zeros > self._unlisted)
        self.unlisted += int(np.count_nonzero(~is_listed))
        return _log_ratio(ones, zeros)


def _law_of_ratio(laws: list[FiniteLaw]) -> Law:
    """Return the law of the log-likelihood ratio of two finite laws."""
    odds = []
    for law in laws:
        odds.append(_log_ratio(*(each.log_prob(law.outcomes) for each in laws)))
    weights = np.concatenate([law.floats for law in laws])
    return Law(np.concatenate(odds), weights).grouped()


def _log_ratio(ones: Floats, zeros: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return _without_nan(ones - zeros)


def _without_nan(odds: Floats) -> Floats:
    """Replace NaN by 0, the log-odds of a forecaster that abstains."""
    return np.asarray(np.nan_to_num(odds, nan=0.0, posinf=np.inf, neginf=-np.inf))


class Scored:
    """Forecasts from the mechanism's ``score(outputs, pair)``, one number per output.

    Scores are rounded to single precision. The last bits of a computed score may reveal
    the input, which is a leak of floating-point sampling and not of the mechanism (see
    ``evidence/output_support.py``).
    """

    name = "score"

    def player(self, mechanism: Any, pair: Pair) -> Player:
        """Return the player of one pair, whose views are views of the scores."""
        inputs, able = Inputs(), capabilities(mechanism)
        # This forecaster plays only if the mechanism has a score.
        assert able.score is not None
        scored = able.score

        def score(outputs: Array) -> Array:
            sides = pair.data, pair.neighbour
            with inputs.lent(f"{able.name}.score", *sides) as (data, neighbour):
                lent = Pair(data, neighbour, pair.name)
                return np.asarray(scored(outputs, lent), dtype=np.float32)

        return ViewExperts("score: ", share=4.0, prepare=score).player(mechanism, pair)


class Classifier:
    """Any scikit-learn classifier as a forecaster, refitted when data have doubled.

    Each output is flattened to one row of features. The forecaster abstains before the
    first fit.

    Args:
        estimator: A classifier with ``fit`` and ``predict_proba``.
        max_calls: Largest number of calls in a fit.
    """

    def __init__(self, estimator: Any, *, max_calls: int = 50_000) -> None:
        self.estimator = estimator
        self.max_calls = max_calls
        # The first fit is on at least 32 calls, with both coins among them.
        self._next = 32
        self._is_fitted = False

    @property
    def name(self) -> str:
        """Class of the estimator, or of a pipeline's last step, in lower-case words."""
        last = self.estimator
        if hasattr(last, "steps"):
            last = last.steps[-1][1]
        words = [f" {c.lower()}" if c.isupper() else c for c in type(last).__name__]
        return "".join(words).strip()

    def fit(self, outputs: Array, labels: Labels) -> Self:
        """Refit if the data have doubled since the last fit, and have both coins.

        The first fit needs 32 outputs.
        """
        if len(outputs) >= self._next and 0 < labels.sum() < len(labels):
            step = -(-len(outputs) // self.max_calls)
            self.estimator.fit(_features(outputs[::step]), labels[::step])
            self._next, self._is_fitted = 2 * len(outputs), True
        return self

    def log_odds(self, outputs: Array) -> Floats:
        """Return the classifier's log-odds; 0 before the first fit."""
        if not self._is_fitted:
            return np.zeros(len(outputs))
        p = self.estimator.predict_proba(_features(outputs))[:, 1]
        return np.asarray(logit(np.clip(p, TINY, 1 - TINY)))


class Single(Player):
    """One forecaster as a player.

    Args:
        forecaster: A forecaster with ``log_odds``, or a classifier with ``fit`` and
            ``predict_proba``, which becomes a ``Classifier``.
    """

    def __init__(self, forecaster: Any) -> None:
        if not hasattr(forecaster, "log_odds"):
            forecaster = Classifier(forecaster)
        self.forecaster = forecaster
        self.names, self.shares = _name_and_share(forecaster)
        self._recent: list[tuple[Floats, Labels]] = []

    def afresh(self) -> Self:
        """Return a copy for another game, still fitted to the calls so far."""
        again = copy.copy(self)
        again.forecaster = getattr(self.forecaster, "afresh", lambda: self.forecaster)()
        return again

    @property
    def _stated(self) -> Law | None:
        """The law of the log-odds that the forecaster states, or None."""
        return getattr(self.forecaster, "stated", None)

    @property
    def _is_calibrated(self) -> bool:
        """True if the forecaster uses a law of the outputs and does not learn."""
        return bool(getattr(self.forecaster, "calibrated", False))

    def forecast(self, batch: Batch) -> list[Forecasts]:
        """Return the forecaster's log-odds, with 0 for NaN, as a list of one element.

        In a batch of more than 4,096 calls, log-odds are rounded, and equal ones are
        counted in one column.

        Raises:
            AuditError: If there is not one number for each output.
        """
        odds = np.asarray(self.forecaster.log_odds(batch.mixed), dtype=np.float64)
        if odds.shape != (len(batch),):
            raise AuditError(
                f"forecaster {self.names[0]}: expected one log-odds for each of {len(batch)} outputs, got shape {odds.shape}"
            )
        odds, labels = _without_nan(odds), batch.labels
        expected = self._expected()
        count = LIMITS.recent_calls
        recent = self._recent[-LIMITS.recent_batches :]
        self._recent = [*recent, (odds[:count], labels[:count])]
        # Large batches are counted by rounded log-odds, which costs little growth.
        if len(odds) <= count:
            return [Forecasts.of_calls(odds, labels, expected)]
        return [_counted(odds, labels, expected)]

    def _expected(self) -> Law:
        """Return the expected law of log-odds, by recent batches and a prior.

        The prior is the stated law, with the weight of a thousand calls. Without a
        stated law it is the mirror image of the recent log-odds, with the weight of at
        most fifty calls.
        """
        odds = np.concatenate([np.zeros(0), *(odds for odds, _ in self._recent)])
        stated = self._stated
        if stated is not None:
            # A stated law counts for a thousand calls.
            weights = 1000.0 * stated.weights / stated.weights.sum()
            weights = np.append(np.ones(len(odds)), weights)
            return Law(np.append(odds, stated.log_odds), weights)
        mirrored = min(1.0, 50 / max(len(odds), 1))
        weights = np.repeat([1.0, mirrored], len(odds))
        return Law(np.concatenate([odds, -odds]), weights)

    def learn(self, memory: Memory, *, stalled: bool) -> None:
        """Fit the forecaster on the stored calls, unless it uses a law."""
        if not self._is_calibrated:
            self.forecaster.fit(*memory.labelled())

    @property
    def foretells(self) -> bool:
        """True if the law of the forecaster's log-odds was derived from traces."""
        is_read = getattr(self.forecaster, "is_read", False)
        return bool(is_read) and self._stated is not None

    def plausible_growth(
        self, epsilon: float, rng: np.random.Generator, leading: int | None
    ) -> float:
        """Draw a plausible gain by the law, if there is one, or by past bets.

        It is infinite before the first batch, unless the law is from traces. The
        arguments are those of ``Player.plausible_growth``.
        """
        if self.foretells:
            law = self._expected()
            gains = _gains(law.log_odds, epsilon)
            mean = np.average(gains, weights=law.weights)
            variance = np.average(np.square(gains - mean), weights=law.weights)
            deviation, calls = math.sqrt(variance), law.weights.sum()
            return float(mean + rng.standard_normal() * deviation / math.sqrt(calls))
        if not self._recent:
            return math.inf
        odds, labels = map(np.concatenate, zip(*self._recent, strict=True))
        if self._is_calibrated:
            gains = _gains(odds, epsilon)
            noise = rng.standard_normal() * gains.std() / np.sqrt(len(gains))
            return float(gains.mean() + noise)
        # A forecaster that learns is judged by its bets, since its odds may be
        # overfitted.
        beyond = np.abs(odds) > epsilon
        right = int((beyond & ((odds > 0) == (labels == 1))).sum())
        bets = int(beyond.sum())
        p = np.clip(rng.beta(right + 0.5, bets - right + 0.5), TINY, 1 - TINY)
        return float(bets / len(odds) * growth(p, epsilon))


def _name_and_share(forecaster: Any) -> tuple[list[str], list[float]]:
    """Return the name and the prior weight of a forecaster, each in a list."""
    name = getattr(forecaster, "name", type(forecaster).__name__)
    return [name], [float(getattr(forecaster, "share", 1.0))]


def _gains(odds: Floats, epsilon: float) -> Floats:
    """Return the expected gain of each call against an epsilon, in nats.

    The log-odds are assumed to be calibrated.
    """
    log_q, log_1q = log_cap(epsilon)
    likelier, rarer = -np.logaddexp(0.0, [-np.abs(odds), np.abs(odds)])
    with np.errstate(invalid="ignore"):
        loss = np.exp(rarer) * (rarer - log_1q)
    gain = np.exp(likelier) * (likelier - log_q) + np.where(
        np.isfinite(odds), loss, 0.0
    )
    return np.where(np.abs(odds) > epsilon, gain, 0.0)


def _counted(odds: Floats, labels: Labels, expected: Law) -> Forecasts:
    """Return forecasts rounded towards 0 by at most 0.2 %; equal ones are counted."""
    # The mask keeps nine bits of the mantissa of a double.
    rounded = (odds.view(np.int64) & np.int64(-1 << 43)).view(np.float64)
    values, inverse = np.unique(rounded, return_inverse=True)
    ones, zeros = (
        np.bincount(inverse, weights=side, minlength=len(values)).astype(np.float64)
        for side in (labels, 1 - labels)
    )
    law = expected.log_odds[None], expected.weights
    return Forecasts(values[None], ones, zeros, law)


def _features(outputs: Array) -> Floats:
    """Return one row of finite numbers per output, shape (n, d)."""
    rows = np.asarray(outputs, dtype=float).reshape(len(outputs), -1)
    largest = LARGEST_FINITE
    return np.asarray(np.nan_to_num(rows, nan=0.0, posinf=largest, neginf=-largest))


class Unbound(Player):
    """Placeholder of a forecaster that is not bound to a pair yet; ``on`` binds it."""

    def __init__(self, forecaster: Any) -> None:
        self.forecaster = forecaster
        self.names, self.shares = _name_and_share(forecaster)

    def on(self, mechanism: Any, pair: Pair) -> Player:
        """Return the player of this forecaster for a pair."""
        return player(self.forecaster, mechanism, pair)
