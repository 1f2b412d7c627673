"""False alarms of the tests of ``auditdp.bounds`` on true and tight claims.

``FALSE_ALARMS`` maps a name to a function of (repeats, rng) that returns how many of so many repeated audits of a tight
claim refuted it at ``ALPHA``. Each null is the least favourable one that is known for its test, and is named in its
docstring. ``from_outputs`` has no entry of its own: after its split it is 'split, exact test'.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.special import expit, ndtr

from auditdp.bounds import one_event, stated_assumptions, thresholds
from auditdp.bounds.one_event import Counts
from auditdp.bounds.one_run import curve_refuted, one_run_p_value
from auditdp.bounds.privacy_curves import Curve, EpsilonDelta, Gaussian
from auditdp.bounds.result import Question
from benchmarks.parts import ALPHA, Check, Rng

EPSILON = 1.0
DELTA = 0.01
MU = 1.0
ARM = 60
CANARIES = 200


@cache
def _exact_refutes(counts: Counts, curve: Curve, level: float) -> bool:
    return one_event.p_value(counts, curve, level, ALPHA) <= ALPHA


@cache
def _limits_refute(counts: Counts, curve: Curve, level: float) -> bool:
    return one_event.clopper_pearson(counts, curve, ALPHA) >= level


def _two_arms(
    refutes: Callable[[Counts, Curve, float], bool],
    curve: Curve,
    level: float,
    q: float,
) -> Check:
    """Counts of an event on the boundary of the claim: P(A) = F(Q(A)), Q(A) = q."""

    def check(repeats: int, rng: Rng) -> int:
        first = rng.binomial(ARM, float(curve.largest_p(q, level)), repeats)
        second = rng.binomial(ARM, q, repeats)
        return sum(
            refutes(Counts(int(x), ARM, int(y), ARM), curve, level)
            for x, y in zip(first, second, strict=True)
        )

    return check


def _counted(refutes: Callable[[int], bool], right: np.ndarray) -> int:
    values, times = np.unique(right, return_counts=True)
    return int(
        sum(n for value, n in zip(values, times, strict=True) if refutes(int(value)))
    )


def _binomial(repeats: int, rng: Rng) -> int:
    """Guesses on randomised response."""
    right = rng.binomial(CANARIES, expit(EPSILON), repeats)
    return _counted(
        lambda v: one_run_p_value(v, CANARIES, CANARIES, EPSILON, 0.0) <= ALPHA, right
    )


def _leaky_guesses(repeats: int, rng: Rng) -> np.ndarray:
    """Return guesses that are (epsilon, delta)-DP: with probability delta all are right."""
    return np.where(
        rng.random(repeats) < DELTA,
        CANARIES,
        rng.binomial(CANARIES, expit(EPSILON), repeats),
    )


def _one_run(repeats: int, rng: Rng) -> int:
    """Randomised response that reveals all coins at once with probability delta."""
    return _counted(
        lambda v: one_run_p_value(v, CANARIES, CANARIES, EPSILON, DELTA) <= ALPHA,
        _leaky_guesses(repeats, rng),
    )


def _one_run_curve(repeats: int, rng: Rng) -> int:
    """The same, against the recursion."""
    curve = EpsilonDelta(DELTA)
    return _counted(
        lambda v: bool(curve_refuted(v, CANARIES, CANARIES, curve, EPSILON, ALPHA)[0]),
        _leaky_guesses(repeats, rng),
    )


def _one_run_gaussian(share: float) -> Check:
    """Independent canaries under Gaussian noise, guesses on the share of highest and lowest outputs."""

    def check(repeats: int, rng: Rng) -> int:
        guesses = round(share * CANARIES)
        right = np.empty(repeats, dtype=int)
        for k in range(repeats):
            labels = rng.integers(0, 2, CANARIES, dtype=np.int8)
            order = np.argsort(-(labels * MU + rng.normal(size=CANARIES)))
            right[k] = thresholds.right_guesses(labels[order], guesses, "both")
        return _counted(
            lambda v: bool(
                curve_refuted(v, guesses, CANARIES, Gaussian(), MU, ALPHA)[0]
            ),
            right,
        )

    return check


def _scan(guess: str) -> Check:
    """Scores of which all guesses are right with probability e^epsilon/(1+e^epsilon), and 40 distinct values."""

    def check(repeats: int, rng: Rng) -> int:
        refuted = 0
        for _ in range(repeats):
            scores = rng.integers(0, 40, CANARIES).astype(float)
            is_in = (
                np.ones(CANARIES, bool)
                if guess == "in"
                else scores >= np.median(scores)
            )
            labels = np.where(
                rng.random(CANARIES) < expit(EPSILON), is_in, ~is_in
            ).astype(np.int8)
            refuted += (
                thresholds.p_value(
                    thresholds.nested_sets(scores, labels, guess), EPSILON
                )
                <= ALPHA
            )
        return refuted

    return check


def _laplace(rng: Rng, n: int) -> tuple[np.ndarray, np.ndarray]:
    labels = rng.integers(0, 2, n, dtype=np.int8)
    return labels + rng.laplace(scale=1 / EPSILON, size=n), labels


def _scan_laplace(repeats: int, rng: Rng) -> int:
    """Laplace noise at the claimed epsilon."""
    return sum(
        thresholds.p_value(
            thresholds.nested_sets(*_laplace(rng, CANARIES), "both"), EPSILON
        )
        <= ALPHA
        for _ in range(repeats)
    )


def _dkw(repeats: int, rng: Rng) -> int:
    """Laplace noise at the claimed epsilon, the threshold chosen on the same data."""
    refuted = 0
    for _ in range(repeats):
        scores, labels = _laplace(rng, 2 * ARM)
        refuted += (
            one_event.dkw(
                scores[labels == 1], scores[labels == 0], EpsilonDelta(), ALPHA
            )
            >= EPSILON
        )
    return refuted


def _split_exact(repeats: int, rng: Rng) -> int:
    """Laplace noise at the claimed epsilon, the threshold chosen on a fifth of the rows."""
    curve, refuted = EpsilonDelta(), 0
    for _ in range(repeats):
        scores, labels = _laplace(rng, 2 * ARM)
        learning = one_event.learning_part(labels, 0.2, rng)
        threshold = one_event.best_threshold(scores[learning], labels[learning], curve)
        counts = one_event.event_counts(scores[~learning], labels[~learning], threshold)
        refuted += _exact_refutes(counts, curve, EPSILON)
    return refuted


def _bets(repeats: int, rng: Rng) -> int:
    """Gaussian noise at the claimed mu, all outputs played as a game."""
    question, refuted = Question(Gaussian(), ALPHA, MU), 0
    for _ in range(repeats):
        first, second = rng.normal(size=ARM) + MU, rng.normal(size=ARM)
        refuted += (
            stated_assumptions.played(
                first, second, question, int(rng.integers(2**32))
            )[0].lower
            >= MU
        )
    return refuted


RESPONSE = float(expit(-EPSILON))
FALSE_ALARMS: dict[str, Check] = {
    "exact test, randomised response": _two_arms(
        _exact_refutes, EpsilonDelta(), EPSILON, RESPONSE
    ),
    "exact test, rare event": _two_arms(_exact_refutes, EpsilonDelta(), EPSILON, 0.05),
    "exact test, delta = .01": _two_arms(
        _exact_refutes, EpsilonDelta(DELTA), EPSILON, 0.1
    ),
    "exact test, Gaussian": _two_arms(
        _exact_refutes, Gaussian(), MU, float(ndtr(-MU / 2))
    ),
    "Clopper-Pearson, randomised response": _two_arms(
        _limits_refute, EpsilonDelta(), EPSILON, RESPONSE
    ),
    "Clopper-Pearson, Gaussian": _two_arms(
        _limits_refute, Gaussian(), MU, float(ndtr(-MU / 2))
    ),
    "binomial guesses": _binomial,
    "one run, delta = .01": _one_run,
    "one run by the curve, delta = .01": _one_run_curve,
    "one run by the curve, Gaussian, all guessed": _one_run_gaussian(1.0),
    "one run by the curve, Gaussian, a quarter guessed": _one_run_gaussian(0.25),
    "scan, all guesses tight": _scan("both"),
    "scan, one-sided": _scan("in"),
    "scan, Laplace": _scan_laplace,
    "DKW, Laplace": _dkw,
    "split, exact test": _split_exact,
    "bets, Gaussian": _bets,
}
