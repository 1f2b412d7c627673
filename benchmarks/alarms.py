"""False alarms on true and tight claims, for every kind of statistical evidence.

Each case repeats one whole audit at a null that is the least favourable one known for it, and counts the audits that
refute at ``ALPHA``: an alarm. The games are short because what could go wrong is in how bets are settled, not in how many
there are; forecasters who are sure and wrong bet from the first batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from auditdp import Pair
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import Classifier, LikelihoodRatio, Scored
from auditdp.betting.forecasters.schedule import Schedule
from auditdp.betting.forecasters.traced import ReplayedRatio
from auditdp.betting.game import Game
from auditdp.mechanism.protocol import Array
from auditdp.numerics.streams import stream
from auditdp.report.numbers import number
from auditdp.tracing import Trace
from benchmarks import (
    false_alarms_accounting,
    false_alarms_bounds,
    false_alarms_counting,
    false_alarms_estimation,
    false_alarms_exact,
    false_alarms_game,
    false_alarms_one_run,
    false_alarms_verdicts,
)
from benchmarks.parts import (
    ALPHA,
    Bar,
    BlackBox,
    Check,
    Options,
    Part,
    Result,
    Results,
    Rng,
    Table,
    View,
    grouped,
)
from benchmarks.tight_nulls import MIXED, NULLS, Null

REPEATS = 10_000
WHOLE_AUDITS = ("order and dependence", "whole audits", "verdict", "one run")
"""Kinds whose repeats are audits from beginning to end, of up to 30,000 calls: they are fewer."""
REPEATS_OF_WHOLE_AUDITS = 2_000
CHUNK = 500
CHUNK_OF_WHOLE_AUDITS = 25
"""Repeats of one unit."""
MOST_CHUNKS = 1_000
CALLS = 120
CONFIDENCE = 0.999


class Overconfident:
    """Forecasts with the law of a mechanism that leaks more than the one that is audited: wrong, and sure of it."""

    name = "overconfident"

    def __init__(self, believed: Any) -> None:
        self.believed = believed

    def bind(self, mechanism: Any, pair: Pair) -> LikelihoodRatio:
        """Return the likelihood ratio of the believed mechanism."""
        return LikelihoodRatio().bind(self.believed, pair)


class Threefold(false_alarms_game.OfTheLaw):
    """Forecasts three times the true log-odds: right on which input, and wrong on how sure that is."""

    name = "threefold"

    def log_odds(self, outputs: Array) -> Array:
        """Return three times the log-likelihood ratio."""
        found: Array = 3 * self.law.log_odds(outputs)
        return found


class WithScore(BlackBox):
    """A mechanism with its law hidden and a score: its first number, rounded."""

    def score(self, outputs: Array, pair: Pair) -> Array:
        """Return the score of each output, shape (size,)."""
        return np.round(np.asarray(outputs, float).reshape(len(outputs), -1)[:, 0])


class _Thinned(Schedule):
    """One view sees everything, and the others a third."""

    whole, part = 1, 3


def _forecasters(kind: str, spec: Null) -> list[Any]:
    believed = spec.believed
    known: dict[str, Callable[[], list[Any]]] = {
        "likelihood ratio": lambda: [LikelihoodRatio()],
        "overconfident": lambda: [Overconfident(believed)],
        "watcher": lambda: [ViewExperts()],
        "score": lambda: [Scored(), ViewExperts()],
        "classifier": lambda: [Classifier(LogisticRegression())],
        "mixture": lambda: [Overconfident(believed), ViewExperts()],
        "threefold": lambda: [Threefold()],
        "thinned views": lambda: [
            Overconfident(believed),
            ViewExperts(schedule=_Thinned),
        ],
        "replayed ratio": lambda: [
            ReplayedRatio(Trace(spec.mechanism), spec.claim, seed=1)
        ],
        "replayed ratio of leakier code": lambda: [
            ReplayedRatio(Trace(believed), spec.claim, seed=1)
        ],
    }
    return known[kind]()


def games(null: str, kind: str, repeats: int, rng: Rng) -> Iterator[Game]:
    """Play whole games, stopped when they refute."""
    spec = NULLS[null]
    mechanism = WithScore(spec.mechanism) if kind == "score" else spec.mechanism
    for _ in range(repeats):
        game = Game(
            mechanism, spec.claim, spec.pairs, _forecasters(kind, spec), lambda *_: rng
        )
        if (
            kind == "thinned views"
        ):  # ranked from the first calls on, as if there had been many
            for table in game.tables:
                table.next_ranking = CALLS // 5
        game.play(CALLS, alpha=ALPHA, stop_when_refuted=True)
        yield game


def _game(null: str, kind: str, repeats: int, rng: Rng) -> int:
    return sum(game.refuted_at is not None for game in games(null, kind, repeats, rng))


def games_for_a_bound(
    null: str, factor: float, repeats: int, rng: Rng
) -> Iterator[Game]:
    """Play games against a claim at ``factor`` times the truth, which is one of their levels."""
    spec = NULLS[null]
    levels = spec.claim.level * 2.0 ** (np.arange(-12, 13) / 8)
    claim = spec.claim.at(
        float(levels[np.argmin(np.abs(levels - factor * spec.claim.level))])
    )
    for _ in range(repeats):
        game = Game(
            spec.mechanism,
            claim,
            spec.pairs,
            _forecasters("mixture", spec),
            lambda *_: rng,
            levels=levels,
        )
        game.play(CALLS, alpha=ALPHA)
        yield game


def _lower_bound(null: str, factor: float, repeats: int, rng: Rng) -> int:
    truth = NULLS[null].claim.level
    return sum(
        game.wealth.lower_bound(ALPHA) >= truth
        for game in games_for_a_bound(null, factor, repeats, rng)
    )


TRACED = ("(ε, δ)", "Gaussian")
LEAKIER = (
    *TRACED,
    "Laplace",
    "Laplace, 3 numbers",
    "Gaussian, 3 numbers",
    "four bits",
    "(0, δ)",
)
"""Nulls whose laws are read off a trace of their code, or of that of a leakier mechanism: noise, also such as is not
followed, events that decide a number each, and outcomes of chance."""
BOUNDED, FACTORS = ("randomised response", "(ε, δ)", "Gaussian"), (0.5, 2.0)
PLAYED = (
    (
        "randomised response",
        (
            "likelihood ratio",
            "overconfident",
            "watcher",
            "score",
            "classifier",
            "mixture",
            "thinned views",
        ),
    ),
    ("Laplace", ("overconfident", "watcher", "classifier")),
    ("Laplace, 3 numbers", ("overconfident", "watcher")),
    ("sign of a product", ("mixture",)),
    (
        "(ε, δ)",
        (
            "likelihood ratio",
            "overconfident",
            "watcher",
            "score",
            "classifier",
            "mixture",
            "threefold",
            "thinned views",
        ),
    ),
    (
        "Gaussian",
        ("likelihood ratio", "overconfident", "watcher", "score", "threefold"),
    ),
    ("Gaussian, 3 numbers", ("overconfident", "watcher")),
    ("four tight pairs", ("mixture",)),
    ("four bits", ("overconfident", "watcher")),
    ("small ε", ("overconfident", "watcher")),
    ("no loss", ("overconfident", "watcher")),
    (
        "(0, δ)",
        ("likelihood ratio", "overconfident", "watcher", "mixture", "threefold"),
    ),
    ("mostly new", ("overconfident", "watcher")),
    *(
        (
            f"mixture of {name}",
            ("likelihood ratio", "overconfident", "watcher", "threefold"),
        )
        for name in MIXED
    ),
    *((name, ("replayed ratio",)) for name in TRACED),
    *((name, ("replayed ratio of leakier code",)) for name in LEAKIER),
    *(
        (name, ("mixture", "likelihood ratio"))
        for name in NULLS
        if name.startswith("tight channels")
    ),
)


def cases() -> Mapping[str, Mapping[str, Check]]:
    """Return every check by the kind of evidence and its name: a function of (repeats, rng) that counts alarms."""
    return {
        "game": {
            f"{null}, {kind}": partial(_game, null, kind)
            for null, kinds in PLAYED
            for kind in kinds
        },
        "lower bound": {
            f"{null}, claim {factor:g} times the truth": partial(
                _lower_bound, null, factor
            )
            for null in BOUNDED
            for factor in FACTORS
        },
        "estimation": dict(false_alarms_estimation.FALSE_ALARMS),
        "recorded data": dict(false_alarms_bounds.FALSE_ALARMS),
        "order and dependence": dict(false_alarms_game.FALSE_ALARMS),
        "whole audits": dict(false_alarms_game.LONG_FALSE_ALARMS),
        "verdict": dict(false_alarms_verdicts.FALSE_ALARMS),
        "accounting": dict(false_alarms_accounting.FALSE_ALARMS),
        "counting": dict(false_alarms_counting.FALSE_ALARMS),
        "exact": dict(false_alarms_exact.FALSE_ALARMS),
        "one run": dict(false_alarms_one_run.FALSE_ALARMS),
    }


def count(kind: str, name: str, seed: int, chunk: int, repeats: int) -> Result:
    """Repeat one case and count its alarms."""
    alarms = cases()[kind][name](repeats, stream(seed, "alarms", kind, name, chunk))
    return {"kind": kind, "name": name, "repeats": repeats, "alarms": int(alarms)}


def units(options: Options) -> dict[str, partial[Result]]:
    """Chunks of every case, all cases in turn."""
    return {
        f"{kind}: {name}/{chunk}": partial(count, kind, name, options.seed, chunk, size)
        for chunk in range(MOST_CHUNKS)
        for kind, checks in cases().items()
        for name in checks
        if (size := _size(kind, chunk, options)) > 0
    }


def required(kind: str) -> int:
    """Return the number of repeats that decide the bar of a kind."""
    return REPEATS_OF_WHOLE_AUDITS if kind in WHOLE_AUDITS else REPEATS


def _size(kind: str, chunk: int, options: Options) -> int:
    """Return the number of repeats in a chunk of a case, at most 0 beyond the last."""
    repeats = options.repeats or (
        required(kind) // 20 if options.quick else required(kind)
    )
    most = CHUNK_OF_WHOLE_AUDITS if kind in WHOLE_AUDITS else CHUNK
    return min(most, repeats - chunk * most)


def view(results: Results) -> View:
    """Add the chunks up and compare every rate with alpha."""
    totals = {
        row: (
            runs[0]["kind"],
            runs[0]["name"],
            sum(r["alarms"] for r in runs),
            sum(r["repeats"] for r in runs),
        )
        for row, runs in grouped(results).items()
    }
    every = sum(map(len, cases().values()))
    above = [
        f"{kind}: {name}"
        for kind, name, alarms, n in totals.values()
        if alarms > ALPHA * n
    ]
    certain = [
        f"{kind}: {name}"
        for kind, name, alarms, n in totals.values()
        if binomtest(alarms, n, ALPHA, alternative="greater").pvalue < 1 - CONFIDENCE
    ]
    complete = len(totals) == every and all(
        n >= required(kind) for kind, _, _, n in totals.values()
    )
    found = f"{len(totals) - len(above)} of {every} cases at or below {ALPHA:g}"
    if above:
        found += f"; above: {'; '.join(above)} (beyond chance: {'; '.join(certain) or 'none'})"
    bar = Bar(
        f"Wrong verdicts ≤ α = {ALPHA:g} over ≥ {REPEATS:,} audits of tight claims, ≥ {REPEATS_OF_WHOLE_AUDITS:,} where "
        "they are whole ones, for every verdict that can be wrong",
        not above if complete else None,
        found,
    )
    tables = [
        Table(
            f"False alarms: {kind}",
            [
                "Tight claim and test",
                "α",
                "Audits",
                "Alarms",
                "Rate",
                f"{CONFIDENCE:.1%} upper bound",
            ],
            [
                _line(name, alarms, n)
                for of, name, alarms, n in totals.values()
                if of == kind
            ],
        )
        for kind in cases()
        if any(of == kind for of, *_ in totals.values())
    ]
    notes = [
        f"The upper bound on the rate is one-sided Clopper–Pearson, {CONFIDENCE:.1%} for each row. A test of size exactly α "
        "shows more than α alarms about every second time: “beyond chance” says which rows a binomial test at "
        f"{1 - CONFIDENCE:.1%} calls too high. Games are of {CALLS} calls, whole audits of what their names say."
    ]
    return View([bar], tables, notes=notes)


def _line(name: str, alarms: int, repeats: int) -> list[str]:
    upper = (
        binomtest(alarms, repeats, alternative="less").proportion_ci(CONFIDENCE).high
    )
    return [
        name,
        f"{ALPHA:g}",
        f"{repeats:,}",
        f"{alarms:,}",
        f"{100 * alarms / repeats:.2f} %",
        f"{number(100 * upper, 3)} %",
    ]


PART = Part("alarms", "False alarms", units, view)
