"""How often is a claim refuted that is true and tight? At most alpha of the time, for every kind of statistical evidence.

Each case repeats one whole audit at a null that is the least favourable one known for it, and counts the audits that
refute at ``ALPHA``: an alarm. The games are short because what could go wrong is in how bets are settled, not in how many
there are; forecasters who are sure and wrong bet from the first batch.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from auditdp import ApproxDP, GaussianDP, Pair, PureDP
from auditdp.betting.forecasters import Classifier, LikelihoodRatio, Scored
from auditdp.betting.game import Game
from auditdp.betting.watcher import Watching
from auditdp.claims import Claim
from auditdp.evidence.estimation import Promise, Unbiased, VarianceAtMost, estimation_evidence
from auditdp.mechanism import Array
from auditdp.randomness import stream
from auditdp.report.numbers import number
from auditdp.results import Verdict
from auditdp.testing import GaussianMechanism, LaplaceMechanism, LeakyResponse, Response
from benchmarks import false_alarms_bounds, false_alarms_exact
from benchmarks.parts import ALPHA, Bar, Options, Part, Result, Results, Table, View, grouped
from mechanisms.classic import Gaussian, NoisyHistogram1

REPEATS = 10_000
QUICK_REPEATS = 500
CHUNK = 500
"""Repeats of one unit."""
CALLS = 120
CONFIDENCE = 0.999
BIT = (Pair(1, 0),)
VECTOR = (Pair(np.eye(3)[0], np.zeros(3)),)
Rng = np.random.Generator
Check = Callable[[int, Rng], int]


class Overconfident:
    """Forecasts with the law of a mechanism that leaks more than the one that is audited: wrong, and sure of it."""

    name = "overconfident"

    def __init__(self, believed: Any) -> None:
        self.believed = believed

    def bind(self, mechanism: Any, pair: Pair) -> LikelihoodRatio:
        """Return the likelihood ratio of the believed mechanism."""
        return LikelihoodRatio().bind(self.believed, pair)


@dataclass(frozen=True)
class WithScore:
    """A mechanism with its law hidden and a score: its first number, rounded."""

    mechanism: Any

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return what the mechanism returns."""
        return self.mechanism(data, size, rng=rng)  # type: ignore[no-any-return]

    def score(self, outputs: Array, pair: Pair) -> Array:
        """Return the score of each output, shape (size,)."""
        return np.round(np.asarray(outputs, float).reshape(len(outputs), -1)[:, 0])


@dataclass(frozen=True)
class Null:
    """A mechanism at exactly its claim, and a leakier one that an overconfident forecaster believes in."""

    mechanism: Any
    claim: Claim
    believed: Any
    pairs: Sequence[Pair] = BIT


NULLS = {
    "randomised response": Null(Response(1.0), PureDP(1.0), Response(1.4)),
    "Laplace": Null(LaplaceMechanism(1.0), PureDP(1.0), LaplaceMechanism(0.7)),
    "Laplace, 3 numbers": Null(NoisyHistogram1(1.0), PureDP(1.0), NoisyHistogram1(1.4), VECTOR),
    "(ε, δ)": Null(LeakyResponse(1.0, 0.05), ApproxDP(1.0, 0.05), LeakyResponse(1.4, 0.1)),
    "Gaussian": Null(GaussianMechanism(1.0), GaussianDP(1.0), GaussianMechanism(0.7)),
    "Gaussian, 3 numbers": Null(
        Gaussian(1.0, 1e-5, "laplace"), GaussianDP(1.0), Gaussian(1.0, 1e-5, "laplace", sensitivity=0.7), VECTOR
    ),
    "four tight pairs": Null(Response(1.0), PureDP(1.0), Response(1.4), tuple(Pair(1, 0, str(k)) for k in range(4))),
}


def _forecasters(kind: str, believed: Any) -> list[Any]:
    known: dict[str, Callable[[], list[Any]]] = {
        "likelihood ratio": lambda: [LikelihoodRatio()],
        "overconfident": lambda: [Overconfident(believed)],
        "watcher": lambda: [Watching()],
        "score": lambda: [Scored(), Watching()],
        "classifier": lambda: [Classifier(LogisticRegression())],
        "mixture": lambda: [Overconfident(believed), Watching()],
    }
    return known[kind]()


def _game(null: str, kind: str, repeats: int, rng: Rng) -> int:
    """Whole games, stopped when they refute."""
    spec, alarms = NULLS[null], 0
    mechanism = WithScore(spec.mechanism) if kind == "score" else spec.mechanism
    for _ in range(repeats):
        game = Game(mechanism, spec.claim, spec.pairs, _forecasters(kind, spec.believed), lambda *_: rng)
        game.play(CALLS, alpha=ALPHA, stop_when_refuted=True)
        alarms += game.refuted_at is not None
    return alarms


def _lower_bound(null: str, factor: float, repeats: int, rng: Rng) -> int:
    """Games against a claim at ``factor`` times the truth whose lower bound reaches the truth, one of its levels."""
    spec, alarms = NULLS[null], 0
    levels = spec.claim.level * 2.0 ** (np.arange(-12, 13) / 8)
    claim = spec.claim.at(float(levels[np.argmin(np.abs(levels - factor * spec.claim.level))]))
    for _ in range(repeats):
        game = Game(
            spec.mechanism, claim, spec.pairs, _forecasters("mixture", spec.believed), lambda *_: rng, levels=levels
        )
        game.play(CALLS, alpha=ALPHA)
        alarms += game.wealth.lower_bound(ALPHA) >= spec.claim.level
    return alarms


@dataclass(frozen=True)
class Noise:
    """A number plus noise of mean 0 and variance 1, by name; ``bias`` is added."""

    kind: str
    bias: float = 0.0

    def __call__(self, data: float, size: int, *, rng: Rng) -> Array:
        """Return ``size`` noisy numbers."""
        draw = {
            "normal": rng.standard_normal,
            "Laplace": lambda n: rng.laplace(scale=math.sqrt(0.5), size=n),
            "exponential": lambda n: rng.standard_exponential(n) - 1,
        }
        return np.asarray(data + self.bias + draw[self.kind](size))


MARGIN = 0.1
ESTIMATION_CALLS = 900


def _estimation(promise: Promise, noise: Noise, wrong: Verdict, repeats: int, rng: Rng) -> int:
    """Estimates of three inputs that the promise, or its margin, just holds for."""
    gc.freeze()  # statsmodels collects garbage in every test, which takes long once many modules are loaded
    inputs = {f"{value:g}": [value] for value in (0.0, 5.0, 20.0)}
    return sum(
        estimation_evidence(noise, promise, inputs, alpha=ALPHA, calls=ESTIMATION_CALLS, streams=lambda *_: rng).verdict
        is wrong
        for _ in range(repeats)
    )


def _truth(value: float) -> float:
    return value


PROMISES: dict[str, tuple[Promise, Noise, Verdict]] = {
    "unbiased, normal noise": (Unbiased(_truth, MARGIN), Noise("normal"), Verdict.VIOLATED),
    "unbiased, exponential noise": (Unbiased(_truth, MARGIN), Noise("exponential"), Verdict.VIOLATED),
    "almost unbiased, bias at the margin": (
        Unbiased(_truth, MARGIN, almost=True),
        Noise("normal", MARGIN),
        Verdict.VIOLATED,
    ),
    "equivalent, bias at the margin": (Unbiased(_truth, MARGIN), Noise("normal", MARGIN), Verdict.EQUIVALENT),
    "variance at its bound, normal noise": (VarianceAtMost(1.0, _truth), Noise("normal"), Verdict.VIOLATED),
    "variance at its bound, Laplace noise": (VarianceAtMost(1.0, _truth), Noise("Laplace"), Verdict.VIOLATED),
}

PLAYED = (
    ("randomised response", ("likelihood ratio", "overconfident", "watcher", "score", "classifier", "mixture")),
    ("Laplace", ("overconfident", "watcher", "classifier")),
    ("Laplace, 3 numbers", ("overconfident", "watcher")),
    ("(ε, δ)", ("likelihood ratio", "overconfident", "watcher", "mixture")),
    ("Gaussian", ("likelihood ratio", "overconfident", "watcher", "score")),
    ("Gaussian, 3 numbers", ("overconfident", "watcher")),
    ("four tight pairs", ("mixture",)),
)


def cases() -> Mapping[str, Mapping[str, Check]]:
    """Return every check by the kind of evidence and its name: a function of (repeats, rng) that counts alarms."""
    return {
        "game": {f"{null}, {kind}": partial(_game, null, kind) for null, kinds in PLAYED for kind in kinds},
        "lower bound": {
            f"{null}, claim {factor:g} times the truth": partial(_lower_bound, null, factor)
            for null in ("randomised response", "(ε, δ)", "Gaussian")
            for factor in (0.5, 2.0)
        },
        "estimation": {name: partial(_estimation, *case) for name, case in PROMISES.items()},
        "recorded data": dict(false_alarms_bounds.FALSE_ALARMS),
        "exact": dict(false_alarms_exact.FALSE_ALARMS),
    }


def count(kind: str, name: str, seed: int, chunk: int, repeats: int) -> Result:
    """Repeat one case and count its alarms."""
    alarms = cases()[kind][name](repeats, stream(seed, "alarms", kind, name, chunk))
    return {"kind": kind, "name": name, "repeats": repeats, "alarms": int(alarms)}


def units(options: Options) -> dict[str, partial[Result]]:
    """Chunks of every case, all cases in turn."""
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    return {
        f"{kind}: {name}/{chunk}": partial(count, kind, name, options.seed, chunk, min(CHUNK, repeats - chunk * CHUNK))
        for chunk in range(math.ceil(repeats / CHUNK))
        for kind, checks in cases().items()
        for name in checks
    }


def view(results: Results) -> View:
    """Add the chunks up and compare every rate with alpha."""
    totals = {
        row: (runs[0]["kind"], runs[0]["name"], sum(r["alarms"] for r in runs), sum(r["repeats"] for r in runs))
        for row, runs in grouped(results).items()
    }
    every = sum(map(len, cases().values()))
    above = [f"{kind}: {name}" for kind, name, alarms, n in totals.values() if alarms > ALPHA * n]
    certain = [
        f"{kind}: {name}"
        for kind, name, alarms, n in totals.values()
        if binomtest(alarms, n, ALPHA, alternative="greater").pvalue < 1 - CONFIDENCE
    ]
    complete = len(totals) == every and all(n >= REPEATS for *_, n in totals.values())
    found = f"{len(totals) - len(above)} of {every} cases at or below {ALPHA:g}"
    if above:
        found += f"; above: {'; '.join(above)} (beyond chance: {'; '.join(certain) or 'none'})"
    bar = Bar(
        f"False alarms ≤ α = {ALPHA:g} over ≥ {REPEATS:,} audits of tight claims, every kind of statistical evidence",
        not above if complete else None,
        found,
    )
    tables = [
        Table(
            f"False alarms: {kind}",
            ["Tight claim and test", "α", "Audits", "Alarms", "Rate", f"{CONFIDENCE:.1%} upper bound"],
            [_line(name, alarms, n) for of, name, alarms, n in totals.values() if of == kind],
        )
        for kind in cases()
        if any(of == kind for of, *_ in totals.values())
    ]
    notes = [
        f"The upper bound on the rate is one-sided Clopper–Pearson, {CONFIDENCE:.1%} for each row. A test of size exactly α "
        "shows more than α alarms about every second time: “beyond chance” says which rows a binomial test at "
        f"{1 - CONFIDENCE:.1%} calls too high. Games are of {CALLS} calls."
    ]
    return View([bar], tables, notes=notes)


def _line(name: str, alarms: int, repeats: int) -> list[str]:
    upper = binomtest(alarms, repeats, alternative="less").proportion_ci(CONFIDENCE).high
    return [
        name,
        f"{ALPHA:g}",
        f"{repeats:,}",
        f"{alarms:,}",
        f"{100 * alarms / repeats:.2f} %",
        f"{number(100 * upper, 3)} %",
    ]


PART = Part("alarms", "False alarms", units, view)
