"""Forecasters: how likely it is that the coin showed 1, given an output.

A forecaster of one's own has scikit-learn's shape, ``fit(outputs, labels)`` and ``predict_proba(outputs)``, and may also
offer ``log_odds(outputs)``, which keeps certainty that a probability near 1 would round away. It learns from earlier
calls of one pair only; whatever it forecasts, the game stays valid. A good forecaster is calibrated and abstains
(log-odds within the cap) when it does not know.

In the game every forecaster is a *player*, which may be many forecasters at once: a ``ViewPlayer`` has one expert for every
view of an output and every estimator.

The player in the place of one that failed: it makes no bets, and keeps the reason.

A bet that is not made changes no guarantee: whoever abstains keeps the stake.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np
from scipy.special import logit

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.repeated_outputs import Repeating
from auditdp.betting.wealth.forecasts import Forecasts, Law
from auditdp.betting.wealth.regions import growth, log_cap
from auditdp.errors import AuditError, raised_in
from auditdp.mechanism.calls.inputs import Inputs
from auditdp.mechanism.calls.remote_mechanism import MechanismElsewhere
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import Array, Mechanism
from auditdp.numerics.arrays import Floats, Labels


class Forecaster(Protocol):
    """Anything with scikit-learn's ``fit`` and ``predict_proba``."""

    def fit(self, outputs: Array, labels: Labels) -> Any:
        """Learn from earlier outputs, shape (n, ...), and the coins that chose their inputs, shape (n,)."""

    def predict_proba(self, outputs: Array) -> Floats:
        """Return the probabilities of coin 0 and coin 1 for each output, shape (n, 2)."""


class Player(Protocol):
    """One or more forecasters on one pair, as the game plays them."""

    @property
    def names(self) -> Sequence[str]:
        """What reports call each of its forecasters."""

    @property
    def shares(self) -> Sequence[float]:
        """The prior weight of each of them."""

    def open(self, like: Array, pairs: Sequence[Pair], labels: Sequence[str]) -> None:
        """Look at outputs that look like those to come, before the first batch.

        Args:
            like: Outputs of independent calls.
            pairs: The pairs of the game.
            labels: What each number of an output is called, if that is known.
        """

    def forecast(self, batch: Batch) -> list[Forecasts]:
        """Return the forecasts of each forecaster for a batch."""

    def learn(self, memory: Memory, *, stalled: bool) -> None:
        """Learn from all calls so far, the last batch included; ``stalled`` as long as the claim still stands."""

    def plausible_growth(
        self, epsilon: float, rng: np.random.Generator, leading: int | None
    ) -> float:
        """Draw what a call of this pair may gain against an epsilon, in nats; ``leading`` is who gains most, if anybody."""

    def rank(self, log_wealth: Floats, calls: int) -> None:
        """Spare work on forecasters that have won little lately; ``log_wealth`` has shape (forecasters, statements)."""


def player(forecaster: Any, mechanism: Mechanism, pair: Pair) -> Player:
    """Return a fresh player for one pair: white-box forecasters take what they need from the mechanism."""
    if hasattr(forecaster, "player"):
        return forecaster.player(mechanism, pair)  # type: ignore[no-any-return]
    if hasattr(forecaster, "bind"):
        return Single(forecaster.bind(mechanism, pair))
    return Single(copy.deepcopy(forecaster))


def default_forecasters(mechanism: Any) -> list[Any]:
    """Return the forecasters whose mixture is played unless an audit names its own.

    The exact likelihood ratio where the mechanism states its law, its ``score`` where it has one, and always those that
    look only at outputs, so that a sampler which does not follow its stated law is still caught. A mechanism may bring
    others: its ``forecasters``.
    """
    chosen: list[Any] = []
    able = capabilities(mechanism)
    if able.knows_odds:
        chosen.append(LikelihoodRatio())
    elif able.score is not None:
        chosen.append(Scored())
    return [*chosen, ViewExperts(), Repeating(), *getattr(mechanism, "forecasters", ())]


class LikelihoodRatio:
    """Forecasts with the mechanism's own law: log-odds ln P(y | data) - ln P(y | neighbour), the true posterior.

    Takes ``log_prob(outputs, data)`` where the mechanism has it, else its finite ``distribution(data)``.

    Attributes:
        unlisted: Outputs that are impossible on both inputs by that law, or that it gives no number: it abstained there.
    """

    name = "likelihood ratio"
    share = 16.0
    calibrated = True

    def bind(self, mechanism: Any, pair: Pair) -> Self:
        """Return the forecaster of one pair."""
        bound, inputs, able = copy.copy(self), Inputs(), capabilities(mechanism)
        if isinstance(able.mechanism, MechanismElsewhere):
            assert able.form is not None  # outputs were looked at
            bound._log_probs, bound._unlisted, stated = able.mechanism.law(
                able.form, pair
            )
            bound.stated = Law(*stated) if stated else None
        elif (log_prob := able.log_prob) is not None:

            def log_probs(outputs: Array) -> list[Any]:
                with inputs.lent(
                    f"{able.name}.log_prob", pair.data, pair.neighbour
                ) as lent:
                    return [log_prob(outputs, x) for x in lent]

            bound._log_probs = log_probs
        else:
            assert able.law_of_output is not None  # else it is not played
            with inputs.lent(
                f"{able.name}.distribution", pair.data, pair.neighbour
            ) as lent:
                laws = [able.law_of_output(x) for x in lent]
            bound._log_probs = lambda outputs: [
                able.log_prob_by(law, outputs) for law in laws
            ]
            bound.stated = bound._stated(laws)
            bound._unlisted = max(
                (law.log_unlisted for law in laws if isinstance(law, FiniteLaw)),
                default=-np.inf,
            )
        return bound

    def _stated(self, laws: list[Any]) -> Law | None:
        """Return how often finite laws give which log-odds."""
        if not all(isinstance(law, FiniteLaw) for law in laws):
            return None
        odds = np.concatenate(
            [
                _log_ratio(*(law.log_prob(each.outcomes) for law in laws))
                for each in laws
            ]
        )
        return Law(odds, np.concatenate([law.floats for law in laws])).grouped()

    def log_odds(self, outputs: Array) -> Floats:
        """Return the log-likelihood ratio; 0 where both laws call the output impossible, or none gives it a number."""
        ones, zeros = (
            np.asarray(side, dtype=float) for side in self._log_probs(outputs)
        )
        self.unlisted += int(
            (~(ones > self._unlisted) & ~(zeros > self._unlisted)).sum()
        )
        return _log_ratio(ones, zeros)

    stated: Law | None = None
    unlisted: int = 0
    _unlisted: float = -np.inf
    _log_probs: Any = None


def _log_ratio(ones: Floats, zeros: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray(
            np.nan_to_num(ones - zeros, nan=0.0, posinf=np.inf, neginf=-np.inf)
        )


class Scored:
    """Forecasts from the mechanism's ``score(outputs, pair)``: one number that keeps what tells the pair apart.

    Scores are rounded to single precision: the last bits of a computed score show where the output lay, which is a leak
    of floating-point sampling and not of the mechanism (see ``evidence/output_support.py``).
    """

    name = "score"

    def player(self, mechanism: Any, pair: Pair) -> Player:
        """Return the player of one pair: it sees the scores alone."""
        inputs, able = Inputs(), capabilities(mechanism)
        assert able.score is not None  # else it is not played
        scored = able.score

        def score(outputs: Array) -> Array:
            with inputs.lent(f"{able.name}.score", pair.data, pair.neighbour) as (
                data,
                neighbour,
            ):
                return np.asarray(
                    scored(outputs, Pair(data, neighbour, pair.name)), dtype=np.float32
                )

        return ViewExperts("score: ", share=4.0, prepare=score).player(mechanism, pair)


class Classifier:
    """Any scikit-learn classifier as a forecaster, refitted whenever its data have doubled.

    Outputs are flattened to one row of features each. Until it has seen ``least`` calls with both coins, it abstains.

    Args:
        estimator: A classifier with ``fit`` and ``predict_proba``.
        least: Calls before the first fit.
        most: Fit on at most this many calls.
    """

    def __init__(self, estimator: Any, *, least: int = 32, most: int = 50_000) -> None:
        self.estimator = estimator
        self.least = least
        self.most = most
        self._next = least
        self._fitted = False

    @property
    def name(self) -> str:
        """The estimator's class, in lower case words."""
        last = (
            self.estimator.steps[-1][1]
            if hasattr(self.estimator, "steps")
            else self.estimator
        )
        return "".join(
            f" {c.lower()}" if c.isupper() else c for c in type(last).__name__
        ).strip()

    def fit(self, outputs: Array, labels: Labels) -> Self:
        """Refit if the data have doubled since the last fit."""
        if len(outputs) >= self._next and 0 < labels.sum() < len(labels):
            step = -(-len(outputs) // self.most)
            self.estimator.fit(_features(outputs[::step]), labels[::step])
            self._next, self._fitted = 2 * len(outputs), True
        return self

    def log_odds(self, outputs: Array) -> Floats:
        """Return the classifier's log-odds; 0 before the first fit."""
        if not self._fitted:
            return np.zeros(len(outputs))
        p = self.estimator.predict_proba(_features(outputs))[:, 1]
        return np.asarray(logit(np.clip(p, 1e-12, 1 - 1e-12)))


class Single:
    """One forecaster as a player.

    Args:
        forecaster: With ``fit`` and ``log_odds``, or ``predict_proba`` alone, which is then taken as a ``Classifier``.
    """

    def __init__(self, forecaster: Any) -> None:
        self.forecaster = (
            forecaster if hasattr(forecaster, "log_odds") else Classifier(forecaster)
        )
        self.names: Sequence[str] = [
            getattr(self.forecaster, "name", type(self.forecaster).__name__)
        ]
        self.shares: Sequence[float] = [float(getattr(self.forecaster, "share", 1.0))]
        self._recent: list[tuple[Floats, Labels]] = []

    def afresh(self) -> Self:
        """Return it for another game, in which it goes on with what it has learned."""
        again = copy.copy(self)
        again.forecaster = getattr(self.forecaster, "afresh", lambda: self.forecaster)()
        return again

    def open(self, like: Array, pairs: Sequence[Pair], labels: Sequence[str]) -> None:
        """Do nothing: it learns from calls alone."""

    def forecast(self, batch: Batch) -> list[Forecasts]:
        """Return its log-odds of every call; an undefined one counts as abstaining."""
        odds = np.asarray(self.forecaster.log_odds(batch.mixed), dtype=np.float64)
        if odds.shape != (len(batch),):
            raise AuditError(
                f"forecaster {self.names[0]}: expected one log-odds for each of {len(batch)} outputs, got shape {odds.shape}"
            )
        odds, labels = (
            np.nan_to_num(odds, nan=0.0, posinf=np.inf, neginf=-np.inf),
            batch.labels,
        )
        expected = self._expected()
        self._recent = [
            *self._recent[-RECENT_BATCHES:],
            (odds[:RECENT_CALLS], labels[:RECENT_CALLS]),
        ]
        if len(odds) <= RECENT_CALLS:
            return [Forecasts.of_calls(odds, labels, expected)]
        return [_counted(odds, labels, expected)]

    def _expected(self) -> Law:
        """Return the law of the log-odds of earlier batches, and of the one that is stated.

        As long as they are few, their mirror image counts as well.
        """
        odds = np.concatenate([np.zeros(0), *(odds for odds, _ in self._recent)])
        stated: Law | None = getattr(self.forecaster, "stated", None)
        if stated is not None:
            weights = np.append(
                np.ones(len(odds)), STATED * stated.weights / stated.weights.sum()
            )
            return Law(np.append(odds, stated.log_odds), weights)
        mirrored = min(1.0, FEW / max(len(odds), 1)) if len(odds) else 0.0
        return Law(np.concatenate([odds, -odds]), np.repeat([1.0, mirrored], len(odds)))

    def learn(self, memory: Memory, *, stalled: bool) -> None:
        """Fit it on the calls that are kept."""
        if not getattr(self.forecaster, "calibrated", False):
            self.forecaster.fit(*memory.labelled())

    def rank(self, log_wealth: Floats, calls: int) -> None:
        """Do nothing: there is but one."""

    @property
    def foretells(self) -> bool:
        """Whether it was read off the code, before the first call, how often it gives which log-odds."""
        return (
            getattr(self.forecaster, "is_read", False)
            and getattr(self.forecaster, "stated", None) is not None
        )

    def plausible_growth(
        self, epsilon: float, rng: np.random.Generator, leading: int | None
    ) -> float:
        """Draw the growth: who knows the law is asked for it, others are judged by how often they were right."""
        if self.foretells:
            law = self._expected()
            gains = _gains(law.log_odds, epsilon)
            calls, mean = law.weights.sum(), np.average(gains, weights=law.weights)
            deviation = math.sqrt(
                np.average(np.square(gains - mean), weights=law.weights)
            )
            return float(mean + rng.standard_normal() * deviation / math.sqrt(calls))
        if not self._recent:
            return float("inf")
        odds, labels = (
            np.concatenate(part) for part in zip(*self._recent, strict=True)
        )
        if getattr(self.forecaster, "calibrated", False):
            gains = _gains(odds, epsilon)
            return float(
                gains.mean() + rng.standard_normal() * gains.std() / np.sqrt(len(gains))
            )
        beyond = np.abs(odds) > epsilon
        right = int((beyond & ((odds > 0) == (labels == 1))).sum())
        bets = int(beyond.sum())
        p = np.clip(rng.beta(right + 0.5, bets - right + 0.5), 1e-12, 1 - 1e-12)
        return float(bets / len(odds) * growth(p, epsilon))


def _gains(odds: Floats, epsilon: float) -> Floats:
    """Return what calls with these log-odds gain in the mean against an epsilon, where the odds are right."""
    log_q, log_1q = log_cap(epsilon)
    sure, doubtful = -np.logaddexp(0.0, -np.abs(odds)), -np.logaddexp(0.0, np.abs(odds))
    with np.errstate(invalid="ignore"):
        doubt = np.where(np.isfinite(odds), np.exp(doubtful) * (doubtful - log_1q), 0.0)
    return np.where(np.abs(odds) > epsilon, np.exp(sure) * (sure - log_q) + doubt, 0.0)


RECENT_BATCHES = 16
"""Batches from which the law of a forecaster is known."""
RECENT_CALLS = 4096
"""Calls of each of them."""
FEW = 50
"""Calls up to which the mirror image of the log-odds counts as much as they do."""
STATED = 1_000.0
"""What a stated law counts for, in calls."""
MANTISSA = np.int64(-1 << 43)
"""Keeps nine bits of the mantissa of a double."""
LARGEST_FEATURE = 1e30
"""What infinities become: its square is finite."""


def _counted(odds: Floats, labels: Labels, expected: Law) -> Forecasts:
    """Return forecasts rounded towards 0, by at most 0.2 %, so that few different ones are left to be counted."""
    values, inverse = np.unique(
        (odds.view(np.int64) & MANTISSA).view(np.float64), return_inverse=True
    )
    ones, zeros = (
        np.bincount(inverse, weights=side, minlength=len(values))
        for side in (labels, 1 - labels)
    )
    return Forecasts(
        values[None],
        np.asarray(ones, dtype=np.float64),
        np.asarray(zeros, dtype=np.float64),
        (expected.log_odds[None], expected.weights),
    )


def _features(outputs: Array) -> Floats:
    """Return one row of finite numbers per output, shape (n, d); infinities become very large."""
    rows = np.asarray(outputs, dtype=float).reshape(len(outputs), -1)
    return np.asarray(
        np.nan_to_num(rows, nan=0.0, posinf=LARGEST_FEATURE, neginf=-LARGEST_FEATURE)
    )


class Unbound:
    """A forecaster that knows no pair yet."""

    def __init__(self, forecaster: Any) -> None:
        self.forecaster = forecaster
        self.names = [getattr(forecaster, "name", type(forecaster).__name__)]
        self.shares = [float(getattr(forecaster, "share", 1.0))]

    def on(self, mechanism: Any, pair: Pair) -> Player:
        """Return its player of a pair."""
        return player(self.forecaster, mechanism, pair)


class Abstaining:
    """A player that makes no bets.

    Attributes:
        names: The names of the forecasters that failed.
        shares: Their prior weights.
        failed: The error that ended them, and the line that raised it.
    """

    def __init__(
        self, names: Sequence[str], shares: Sequence[float], failed: str
    ) -> None:
        self.names, self.shares, self.failed = names, shares, failed

    @classmethod
    def after(cls, error: BaseException, failed: Player | Unbound) -> Self:
        """Return the player in the place of one that raised an error."""
        return cls(
            failed.names,
            failed.shares,
            f"{type(error).__name__}: {error} ({raised_in(error, '')})",
        )

    def like(self, other: Player) -> Self:
        """Return it with the names and the shares of the same player on another pair."""
        return type(self)(other.names, other.shares, self.failed)

    def on(self, mechanism: Any, pair: Pair) -> Self:
        """Return itself: it knows no pair."""
        return self

    def open(self, like: Array, pairs: Sequence[Pair], labels: Sequence[str]) -> None:
        """Do nothing."""

    def forecast(self, batch: Batch) -> list[Forecasts]:
        """Abstain."""
        return [Forecasts.abstaining(len(self.names))]

    def learn(self, memory: Memory, *, stalled: bool) -> None:
        """Do nothing."""

    def plausible_growth(
        self, epsilon: float, rng: np.random.Generator, leading: int | None
    ) -> float:
        """Return that it gains nothing."""
        return 0.0

    def rank(self, log_wealth: Floats, calls: int) -> None:
        """Do nothing."""
