"""Audits of trainers: their bounds, trainings to refute a broken one, and speed.

The trainer is that of ``gnn.ensembles.example``: DP-SGD of a linear classifier on eight examples, and a gradient canary.
Units need the extra ``torch``; without it the part has none.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from auditdp import AccountedDP, GaussianDP
from auditdp.accountants import PLDLower, PLDUpper
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import LikelihoodRatio, Scored
from auditdp.betting.game import Game
from auditdp.betting.wealth.levels import level_grid
from auditdp.numerics.streams import stream
from benchmarks import trainers_correct, trainers_found, trainers_speed
from benchmarks.parts import (
    ALPHA,
    Bar,
    Options,
    Part,
    Result,
    Results,
    Table,
    View,
    grouped,
    median,
    spread,
)

TRAININGS = 20_000
FULL, FINAL = "full batch, μ = ", "final model, μ = "
LEAST = {f"{FULL}0.5": 0.90, f"{FULL}1": 0.94, f"{FULL}2": 0.96}
"""Part of μ that is to be certified where the noised sums of ten steps are released."""
POISSON, LEAST_POISSON = "Poisson batches, q = .1, 100 steps", 0.85
NOISE, RATE, STEPS, QUOTED = 2.0, 0.1, 100, 1e-5
GAMES = {FULL: 15, FINAL: 3, POISSON: 3}
"""Number of games of a bound. Those of full batches differ by a twentieth, and take 15 CPU
seconds each."""
CANARY = 10.0
"""Norm of the canary before clipping, over the clipping norm, for twins."""
TWIN_STEPS = 4
MOST_TWIN = 1_000
TWINS = (
    "no clipping",
    "clipping after averaging",
    "noise of the mean divided by the batch once more",
    "noise seeded alike in every step",
    "no noise",
    "half the noise",
)
ONE_STEP = ("no clipping", "no noise", "half the noise")
"""Twins of which each step is a game of its own, the canary in its batch or not by a coin: calls are steps of a run."""
TWIN_GAMES, CORRECT_GAMES, CORRECT_TRAININGS = 10, 20, 2_000
CORRECT = "correct trainer"
BATCHES, IN_ORDER, OUTLIER = "an epoch", "in order", "an outlier"
SETTINGS = {
    "shuffled batches": BATCHES,
    "batches of fixed size": BATCHES,
    "Poisson batches over their own size": BATCHES,
    "last batch over its own size": IN_ORDER,
    "standardised by the private data": OUTLIER,
}
"""Twins whose faults other data show, and which: they have a budget, and a correct trainer, of their own."""
MOST_SETTINGS = 2_000


def bound(name: str, trainings: int, seed: int) -> Result:
    """Certify the level of a tight claim."""
    from gnn.ensembles import FinalModel, NoisedSums
    from gnn.ensembles.example import canary_pair, full_batch, trainer

    started = time.process_time()
    if name == POISSON:

        def curve(factor: float) -> PLDUpper:
            return PLDUpper(NOISE * factor, RATE, STEPS)

        claim: Any = AccountedDP(curve(1.0), quoted=QUOTED, family=curve)
        truth = PLDLower(NOISE, RATE, STEPS).epsilon_at(QUOTED)
        mechanism: Any = NoisedSums(
            trainer(noise_multiplier=NOISE, rate=RATE, steps=STEPS)
        )
        pair = canary_pair(STEPS)
        forecaster: Any = LikelihoodRatio()
    else:
        truth = float(name.rpartition(" ")[2])
        claim, made, final = (
            GaussianDP(truth),
            full_batch(truth, 10),
            name.startswith(FINAL),
        )
        mechanism = FinalModel(made) if final else NoisedSums(made)
        pair = canary_pair(10, alternating=not final)
        forecaster = ViewExperts() if final else LikelihoodRatio()
    game = Game(
        mechanism,
        claim,
        [pair],
        [forecaster],
        partial(stream, seed, name),
        levels=level_grid(claim),
    )
    game.play(trainings, alpha=ALPHA)
    part = game.wealth.lower_bound(ALPHA) / truth
    return {
        "part": part,
        "trainings": trainings,
        "cpu_seconds": time.process_time() - started,
    }


def _refuted(name: str, steps: int, most: int, seed: int) -> Result:
    """Count the trainings that refute a twin, or the correct trainer, at μ = 1."""
    from gnn.ensembles import NoisedSums, twins
    from gnn.ensembles.example import canary_pair, full_batch

    started, correct = time.process_time(), full_batch(1.0, steps)
    made = correct if name == CORRECT else twins(correct)[name]
    pair, forecasters = canary_pair(steps, norm=CANARY), [LikelihoodRatio(), Scored()]
    game = Game(
        NoisedSums(made),
        GaussianDP(1.0),
        [pair],
        forecasters,
        partial(stream, seed, name),
    )
    game.play(most, alpha=ALPHA, stop_when_refuted=True)
    return {"calls": game.refuted_at, "cpu_seconds": time.process_time() - started}


def _refuted_on(name: str, most: int, seed: int) -> Result:
    """Count the trainings that refute a twin on the data that show its fault, or the correct trainer on the same data."""
    from gnn.ensembles import (
        NoisedSums,
        SumsAlone,
        batch_twins,
        example,
        in_order,
        over_own_size,
        standardised,
    )

    started, setting = (
        time.process_time(),
        SETTINGS.get(name, name.removeprefix(f"{CORRECT}, ")),
    )
    claim: Any = GaussianDP(1.0)
    if setting == BATCHES:
        claim, pair = AccountedDP(PLDUpper(0.6, 0.25, 4)), example.opposed_pair(31, 4)
        correct = example.linear_trainer(
            noise_multiplier=0.6, batch=8, rate=0.25, steps=4
        )
        made = batch_twins(correct).get(name, correct)
    elif setting == IN_ORDER:
        correct = example.linear_trainer(
            noise_multiplier=2**0.5, batch=4, rate=0.5, steps=4
        )
        pair, correct = example.opposed_pair(4, 4), replace(correct, batches=in_order)
        made = replace(correct, finish=over_own_size) if name in SETTINGS else correct
    else:
        pair, correct = example.outlier_pair(), example.full_batch(1.0, 2)
        made = replace(correct, prepare=standardised) if name in SETTINGS else correct
    mechanism = NoisedSums(made) if setting == OUTLIER else SumsAlone(made)
    game = Game(mechanism, claim, [pair], [Scored()], partial(stream, seed, name))
    game.play(most, alpha=ALPHA, stop_when_refuted=True)
    return {"calls": game.refuted_at, "cpu_seconds": time.process_time() - started}


def units(options: Options) -> Mapping[str, partial[Result]]:
    """One unit for each game, and those of the throughput; none without torch."""
    if find_spec("torch") is None:
        return {}
    fewer = options.repeats or (1 if options.quick else None)
    trainings = TRAININGS // 10 if options.quick else TRAININGS
    made: dict[str, partial[Result]] = {}
    for kind, names in (
        (FULL, list(LEAST)),
        (FINAL, [f"{FINAL}1"]),
        (POISSON, [POISSON]),
    ):
        for name in names:
            for k in range(fewer or GAMES[kind]):
                made[f"{name}/{k}"] = partial(bound, name, trainings, options.seed + k)
    for names, steps, of in ((TWINS, TWIN_STEPS, ""), (ONE_STEP, 1, ", step by step")):
        for name in names:
            for k in range(fewer or TWIN_GAMES):
                made[f"{name}{of}/{k}"] = partial(
                    _refuted, name, steps, MOST_TWIN, options.seed + k
                )
    for k in range(fewer or CORRECT_GAMES):
        made[f"{CORRECT}/{k}"] = partial(
            _refuted, CORRECT, TWIN_STEPS, CORRECT_TRAININGS, options.seed + k
        )
    for name in (
        *SETTINGS,
        *(f"{CORRECT}, {setting}" for setting in dict.fromkeys(SETTINGS.values())),
    ):
        for k in range(fewer or TWIN_GAMES):
            made[f"{name}/{k}"] = partial(
                _refuted_on, name, MOST_SETTINGS, options.seed + k
            )
    correct = trainers_correct.units(options)
    return (
        made
        | trainers_found.units(options)
        | correct
        | trainers_speed.units(quick=options.quick)
    )


def view(results: Results) -> View:
    """Compare every row with its bar."""
    groups = grouped(results)
    of_trainers = *trainers_found.bars(groups), *trainers_correct.bars(groups)
    bars = [
        *_tight(groups),
        *_decided(groups),
        *of_trainers,
        *trainers_speed.bars(groups),
    ]
    tables = [
        _bounds(groups),
        _twins(groups),
        *trainers_found.tables(groups),
        *trainers_speed.tables(groups),
    ]
    return View(bars, [table for table in tables if table.rows])


def _tight(groups: Mapping[str, list[Result]]) -> list[Bar]:
    found = {
        name: median([run["part"] for run in groups[name]])
        for name in LEAST
        if name in groups
    }
    poisson = (
        median([run["part"] for run in groups[POISSON]]) if POISSON in groups else None
    )
    parts = "/".join(f"{least:.2f}" for least in LEAST.values())
    return [
        Bar(
            f"Full batches, white box: {parts} of μ = .5/1/2 after {TRAININGS:,} trainings (medians)",
            all(value >= LEAST[name] for name, value in found.items())
            if len(found) == len(LEAST)
            else None,
            "/".join(f"{value:.3f}" for value in found.values()) or "not measured",
        ),
        Bar(
            f"{POISSON}, white box: {LEAST_POISSON:g} of the accountant's ε at δ = {QUOTED:g}, as often (median)",
            None if poisson is None else poisson >= LEAST_POISSON,
            "not measured" if poisson is None else f"{poisson:.3f}",
        ),
    ]


def _decided(groups: Mapping[str, list[Result]]) -> list[Bar]:
    games = [run for name in (*TWINS, *SETTINGS) for run in groups.get(name, [])]
    missed = sum(run["calls"] is None for run in games)
    correct = groups.get(CORRECT, [])
    false = sum(run["calls"] is not None for run in correct)
    on_settings = [
        run
        for name in groups
        if name.startswith(f"{CORRECT}, ")
        for run in groups[name]
    ]
    false_on = sum(run["calls"] is not None for run in on_settings)
    return [
        Bar(
            f"Every broken twin is refuted within {MOST_TWIN:,} trainings, or {MOST_SETTINGS:,} on its own data",
            missed == 0
            if missed or len(games) == (len(TWINS) + len(SETTINGS)) * TWIN_GAMES
            else None,
            f"{len(games) - missed} of {len(games)} games" if games else "not measured",
        ),
        Bar(
            f"The correct trainer is refuted in no game of {CORRECT_TRAININGS:,} trainings",
            false == 0 if false or len(correct) == CORRECT_GAMES else None,
            f"{false} of {len(correct)} games" if correct else "not measured",
        ),
        Bar(
            f"Nor is it on the data of any twin in {MOST_SETTINGS:,} trainings",
            false_on == 0
            if false_on or len(on_settings) == len({*SETTINGS.values()}) * TWIN_GAMES
            else None,
            f"{false_on} of {len(on_settings)} games"
            if on_settings
            else "not measured",
        ),
    ]


def _bounds(groups: Mapping[str, list[Result]]) -> Table:
    lines = []
    for name in (*LEAST, f"{FINAL}1", POISSON):
        if runs := groups.get(name):
            parts, seconds = (
                [run["part"] for run in runs],
                [run["cpu_seconds"] for run in runs],
            )
            shown = [
                spread(parts, "{:.3f}".format),
                f"{runs[0]['trainings']:,}",
                f"{median(seconds):.0f}",
            ]
            lines.append([name, *shown, str(len(runs))])
    return Table(
        "Certified level over the true one",
        ["Trainer", "Median", "Trainings", "CPU s a game", "Games"],
        lines,
        note="Noised sums are released, but where it says final model, which is a black box. Ten steps for full batches.",
    )


def _twins(groups: Mapping[str, list[Result]]) -> Table:
    lines = []
    beside = [f"{CORRECT}, {setting}" for setting in dict.fromkeys(SETTINGS.values())]
    for name in (
        *TWINS,
        *(f"{name}, step by step" for name in ONE_STEP),
        CORRECT,
        *SETTINGS,
        *beside,
    ):
        if runs := groups.get(name):
            calls = [math.inf if run["calls"] is None else run["calls"] for run in runs]
            refuted = sum(map(math.isfinite, calls))
            middle = float(np.median(calls))
            shown = f"{middle:,.0f}" if math.isfinite(middle) else "–"
            lines.append([name, f"{refuted} of {len(runs)}", shown])
    return Table(
        "Trainings to refute the claim",
        ["Trainer", "Refuted", "Median"],
        lines,
        note=(
            f"μ = 1, {TWIN_STEPS} steps, all examples in every batch; step by step a training is one step of a longer run. "
            "Other batches: the accountant's curve of an epoch of 4 Poisson batches of 8 at σ = 0.6; in order: two epochs "
            "of two batches; an outlier: two steps."
        ),
    )


PART = Part("trainers", "Trainers", units, view, alone=True)
