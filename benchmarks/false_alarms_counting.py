"""False bounds of counting, and refutations of correct laws: at most alpha of the time.

A bound is wrong where the largest loss of the laws, or their distance, is above it. It has no slack where one event decides;
where several come near to it, or an output is rarer than what runs can show, the bound is wrong less often.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from scipy.special import expit, ndtr

from auditdp.evidence.counted_events import (
    Counts,
    kolmogorov,
    kolmogorov_margin,
    largest_losses,
    log_e_value,
    told_apart,
    total_variation,
    unseen,
)
from auditdp.numerics.arrays import Floats
from benchmarks.parts import ALPHA, Check, Rng

EPSILON = 1.0
RUNS = 400

PAIR = np.array([[0], [1]])
TIMES = 5.0
"""The δ at which ε is bounded, in units of the probability of an unobserved event."""
RARE = 1e-3


def response(epsilon: float) -> Floats:
    """Randomised response: the laws of the output on both inputs, shape (2, 2)."""
    keep = float(expit(epsilon))
    return np.array([[keep, 1 - keep], [1 - keep, keep]])


def with_rare(size: int, mass: float) -> Floats:
    """Randomised response that is replaced, with probability ``mass``, by one of ``size`` outputs that the other lacks."""
    laws = np.zeros((2, 2 + 2 * size))
    laws[:, :2] = (1 - mass) * response(EPSILON)
    laws[0, 2 : 2 + size] = laws[1, 2 + size :] = mass / size
    return laws


def geometric(values: int) -> Floats:
    """Two-sided geometric noise of ε = 1 on a line so long that its ends hardly ever come."""
    places = np.arange(values)
    masses = np.exp(
        -EPSILON * np.abs(places - np.array([[values // 2], [values // 2 + 1]]))
    )
    return masses / masses.sum(axis=1, keepdims=True)


LAWS = {
    "randomised response": response(EPSILON),
    "one event decides": np.array([[0.5, 0.5], [0.2, 0.8]]),
    "never-seen outputs of infinite ratio": with_rare(1, RARE),
    "many rare outputs of infinite ratio": with_rare(200, 0.02),
    "geometric noise": geometric(40),
    "40 outputs of which two tell": np.array(
        [
            np.append([0.04, 0.06], np.full(38, 0.9 / 38)),
            np.append([0.06, 0.04], np.full(38, 0.9 / 38)),
        ]
    ),
    "equal laws": np.full((2, 30), 1 / 30),
    "one output": np.ones((2, 1)),
    "different answers": np.eye(2),
}


def _times(
    wrong: Callable[[Counts], bool], laws: Floats, repeats: int, rng: Rng
) -> int:
    """Draw counts several times, and return the number of errors."""
    drawn = rng.multinomial(RUNS, laws, size=(repeats, len(laws)))
    tables, times = np.unique(drawn.reshape(repeats, -1), axis=0, return_counts=True)
    return sum(
        int(n)
        for table, n in zip(tables, times, strict=True)
        if wrong(table.reshape(laws.shape))
    )


def largest_delta(laws: Floats, epsilon: float) -> float:
    """Return the δ of a pair at an ε, in the worse order."""
    p, q = laws
    return max(
        float(np.maximum(a - np.exp(epsilon) * b, 0).sum()) for a, b in ((p, q), (q, p))
    )


def _wrong_epsilon(name: str) -> Check:
    """The bound on ε is below the ε that the laws need with the same δ, which is so where they need more δ at the bound."""

    def check(repeats: int, rng: Rng) -> int:
        laws, delta = LAWS[name], TIMES * unseen(RUNS, ALPHA)

        def wrong(counts: Counts) -> bool:
            (bound,), _ = largest_losses(
                counts, PAIR, RUNS, error=ALPHA, deltas=[delta]
            )
            return bool(
                np.isfinite(bound) and largest_delta(laws, bound) > delta * (1 + 1e-12)
            )

        return _times(wrong, laws, repeats, rng)

    return check


def _wrong_delta(name: str, epsilon: float) -> Check:
    def check(repeats: int, rng: Rng) -> int:
        truth = largest_delta(LAWS[name], epsilon)

        def wrong(counts: Counts) -> bool:
            _, (bound,) = largest_losses(
                counts, PAIR, RUNS, error=ALPHA, epsilons=[epsilon]
            )
            return bound < truth - 1e-12

        return _times(wrong, LAWS[name], repeats, rng)

    return check


def _no_event(name: str) -> Check:
    """Return True if no event has such probabilities, where the first quarter chooses it."""

    def check(repeats: int, rng: Rng) -> int:
        (p, q), wrong = LAWS[name], 0
        events = [list(event) for event in product((False, True), repeat=len(p))]
        for _ in range(repeats):
            first, later = (
                rng.multinomial(RUNS // 4, LAWS[name]),
                rng.multinomial(RUNS, LAWS[name]),
            )
            least, most = told_apart(first, first + later, PAIR, RUNS, ALPHA) or (
                0.0,
                1.0,
            )
            pairs = [
                (one[event].sum(), other[event].sum())
                for event in events
                for one, other in ((p, q), (q, p))
            ]
            wrong += not any(one >= least and other <= most for one, other in pairs)
        return wrong

    return check


SAMPLERS: dict[str, tuple[Floats, Floats]] = {
    "right, two outputs": (response(EPSILON)[:1], response(EPSILON)[:1]),
    "wrong by a bias of .05": (
        response(EPSILON)[:1],
        response(EPSILON)[:1] + np.array([[0.05, -0.05]]),
    ),
    "right, 40 outputs": (geometric(40)[:1], geometric(40)[:1]),
    "wrong in an output that never comes": (
        np.array([[1 - RARE, RARE]]),
        np.array([[1.0, 0.0]]),
    ),
    "wrong on one of three inputs": (
        np.array([[0.5, 0.5], [0.55, 0.45], [0.5, 0.5]]),
        np.full((3, 2), 0.5),
    ),
}


def _wrong_distance(name: str) -> Check:
    def check(repeats: int, rng: Rng) -> int:
        true, stated = SAMPLERS[name]
        distance = float(np.abs(true - stated).sum(axis=1).max()) / 2
        return _times(
            lambda counts: (
                total_variation(counts, stated, RUNS, ALPHA) < distance - 1e-12
            ),
            true,
            repeats,
            rng,
        )

    return check


def _refuted_law(laws: Floats) -> Check:
    def check(repeats: int, rng: Rng) -> int:
        return _times(
            lambda counts: log_e_value(counts, laws) >= -np.log(ALPHA),
            laws,
            repeats,
            rng,
        )

    return check


def _kolmogorov(refuted: bool) -> Check:
    """Normal runs against their own law, or a bound on their distance from a shifted one."""

    def check(repeats: int, rng: Rng) -> int:
        shift, margin = 0.0 if refuted else 0.3, kolmogorov_margin(RUNS, ALPHA)
        distance = 2 * float(ndtr(shift / 2)) - 1
        found = np.array(
            [
                kolmogorov(rng.normal(size=RUNS), lambda y: ndtr(y - shift))
                for _ in range(repeats)
            ]
        )
        return int(
            np.sum(found > margin) if refuted else np.sum(found + margin < distance)
        )

    return check


FALSE_ALARMS: dict[str, Check] = {
    **{f"ε too low: {name}": _wrong_epsilon(name) for name in LAWS},
    **{f"δ(½) too low: {name}": _wrong_delta(name, EPSILON / 2) for name in LAWS},
    "δ(1) too low: many rare outputs of infinite ratio": _wrong_delta(
        "many rare outputs of infinite ratio", EPSILON
    ),
    **{
        f"no such event: {name}": _no_event(name)
        for name in ("randomised response", "one event decides")
    },
    **{f"distance too low: {name}": _wrong_distance(name) for name in SAMPLERS},
    "law refuted: two outputs": _refuted_law(response(EPSILON)[:1]),
    "law refuted: geometric noise, two inputs": _refuted_law(geometric(40)),
    "law refuted: 200 equal outputs": _refuted_law(np.full((1, 200), 1 / 200)),
    "law refuted: normal": _kolmogorov(refuted=True),
    "distance too low: normal": _kolmogorov(refuted=False),
}
