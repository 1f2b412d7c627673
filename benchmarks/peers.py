"""Bounds of other auditors on the same outputs, at the same confidence.

A task is a pair of laws; every method gets the same independent outputs of both inputs and returns a lower bound on ε at
confidence 1 - ALPHA. jax-privacy takes outputs as scores; privacy-estimates takes the counts of one event, and is given
the best one, which is more than it could know. The game draws for itself, as many calls in all as there are outputs.
What does not install or fails is recorded as such.
"""

from __future__ import annotations

import importlib
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binomtest, laplace, norm

from auditdp import ApproxDP, GaussianDP, Pair, PureDP
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.game import Game
from auditdp.betting.wealth.levels import level_grid
from auditdp.bounds import from_outputs
from auditdp.claims.claim import Claim
from auditdp.mechanism.protocol import Array
from auditdp.numerics.binomial import lower_limit, upper_limit
from auditdp.numerics.streams import stream
from auditdp.report.numbers import number
from auditdp.testing import GaussianMechanism, LaplaceMechanism, Response
from benchmarks.calls import gaussian_epsilon
from benchmarks.parts import (
    ALPHA,
    BlackBox,
    Options,
    Part,
    Result,
    Results,
    Table,
    View,
    grouped,
    median,
)

REPEATS = 20
"""Number of data sets for tightness, whose median is reported; a single one may be off by
a third."""
ALARM_REPEATS = 1_000
CHUNK = 100
ALARM_DRAWS = 100
"""Outputs of each input in an audit that is repeated for its false alarms."""
CONFIDENCE = 0.999
PAIR = Pair(1, 0)


@dataclass(frozen=True)
class Task:
    """Two laws at a known ε.

    Attributes:
        name: What the tables call it.
        mechanism: Draws the outputs; larger ones are likelier under input 1.
        draws: Outputs of each input.
        epsilon: The true ε at ``delta``.
        delta: The δ that goes with it.
        tail: P(output >= t) under the two inputs, as a function of the threshold t.
        thresholds: The thresholds among which the best event is.
        mu: The true μ if the pair is exactly Gaussian DP.
    """

    name: str
    mechanism: Any
    draws: int
    epsilon: float
    delta: float
    tail: Callable[[Array], tuple[Array, Array]]
    thresholds: Array
    mu: float | None = None

    def outputs(self, draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return outputs of input 1 and of input 0 as floats, shape (draws,) each."""
        first, second = (
            np.asarray(self.mechanism(x, draws, rng=rng), float)
            for x in (PAIR.data, PAIR.neighbour)
        )
        return first, second

    def best(self, draws: int) -> tuple[float, float]:
        """Return the best threshold, and the Clopper–Pearson bound that it is expected to give."""
        p, q = self.tail(self.thresholds)
        low = lower_limit(draws * p, draws, ALPHA / 2) - self.delta
        high = upper_limit(draws * q, draws, ALPHA / 2)
        k = int(np.argmax(low / high))
        return float(self.thresholds[k]), math.log(low[k] / high[k])


def _tail_of(law: Any) -> Callable[[Array], tuple[Array, Array]]:
    return lambda t: (law.sf(t - 1), law.sf(t))


def _response_tail(t: Array) -> tuple[Array, Array]:
    keep = Response(1.0).keep
    return np.full_like(t, keep), np.full_like(t, 1 - keep)


GRID = np.linspace(-6, 12, 3601)
TASKS = (
    Task(
        "Randomised response, ε = 1",
        Response(1.0),
        2_000,
        1.0,
        0.0,
        _response_tail,
        np.array([0.5]),
    ),
    Task(
        "Laplace, ε = 1",
        LaplaceMechanism(1.0),
        10_000,
        1.0,
        0.0,
        _tail_of(laplace),
        GRID,
    ),
    Task(
        "Laplace, ε = .1",
        LaplaceMechanism(10.0),
        200_000,
        0.1,
        0.0,
        lambda t: (laplace.sf((t - 1) / 10), laplace.sf(t / 10)),
        10 * GRID,
    ),
    *(
        Task(
            f"Gaussian, μ = 1, δ = {delta:g}",
            GaussianMechanism(1.0),
            10_000,
            gaussian_epsilon(1.0, delta),
            delta,
            _tail_of(norm),
            GRID,
            1.0,
        )
        for delta in (0.01, 1e-5)
    ),
)

Method = Callable[[Task, int, np.random.Generator], float]


def _played(
    claim: Callable[[Task], Claim], task: Task, draws: int, rng: np.random.Generator
) -> float:
    """A game as a black box, 2·draws calls in all, whose bound in μ is read at δ."""
    stated = claim(task)
    game = Game(
        BlackBox(task.mechanism),
        stated,
        [PAIR],
        [ViewExperts()],
        lambda *_: rng,
        levels=level_grid(stated),
    )
    game.play(2 * draws, alpha=ALPHA)
    bound = game.wealth.lower_bound(ALPHA)
    return _at_delta(bound, task) if isinstance(stated, GaussianDP) else bound


def _at_delta(mu: float, task: Task) -> float:
    """ε at the task's δ of a bound on μ; 0 where the curve is below δ everywhere."""
    return (
        gaussian_epsilon(mu, task.delta)
        if mu > 0 and GaussianDP(mu).delta_at(0.0) > task.delta
        else 0.0
    )


def _recorded(
    parameter: str, task: Task, draws: int, rng: np.random.Generator
) -> float:
    gaussian = parameter == "mu"
    bound = from_outputs(
        *task.outputs(draws, rng),
        delta=0.0 if gaussian else task.delta,
        parameter=parameter,
        alpha=ALPHA,
    )
    return _at_delta(bound.lower, task) if gaussian else bound.lower


def _jax(strategy: str, task: Task, draws: int, rng: np.random.Generator) -> float:
    auditing = importlib.import_module("jax_privacy.auditing")
    auditor = auditing.CanaryScoreAuditor(*task.outputs(draws, rng))
    if strategy == "gdp":
        return float(auditor.epsilon_from_gdp(ALPHA, task.delta))
    seeded = {} if strategy == "Bonferroni" else {"seed": int(rng.integers(2**32))}
    chosen = getattr(auditing, strategy)(**seeded)
    return float(
        auditor.epsilon_clopper_pearson(ALPHA, task.delta, threshold_strategy=chosen)
    )


def _estimates(method: str, task: Task, draws: int, rng: np.random.Generator) -> float:
    package = importlib.import_module("privacy_estimates")
    threshold, _ = task.best(draws)
    right, wrong = (int((part >= threshold).sum()) for part in task.outputs(draws, rng))
    counts = package.AttackResults(
        FN=draws - right, FP=wrong, TN=draws - wrong, TP=right
    )
    return float(package.compute_eps_lo(counts, task.delta, ALPHA, method))


@dataclass(frozen=True)
class Auditor:
    """A method, the tasks that it is for, and, of a slow one, the share of repeats for false alarms and the data sets."""

    bound: Method
    suits: Callable[[Task], bool] = lambda task: True
    share: float = 1.0
    sets: int = REPEATS


AUDITORS = {
    "auditdp, game": Auditor(
        partial(
            _played,
            lambda t: ApproxDP(t.epsilon, t.delta) if t.delta else PureDP(t.epsilon),
        )
    ),
    "auditdp, game on the Gaussian curve": Auditor(
        partial(_played, lambda t: GaussianDP(t.mu)), lambda t: t.mu is not None
    ),
    "auditdp, bounds from outputs": Auditor(partial(_recorded, "epsilon"), share=0.1),
    "auditdp, bounds from outputs, μ": Auditor(
        partial(_recorded, "mu"), lambda t: t.mu is not None, share=0.1
    ),
    "jax-privacy, Clopper–Pearson, Bonferroni": Auditor(partial(_jax, "Bonferroni")),
    "jax-privacy, Clopper–Pearson, Split": Auditor(partial(_jax, "Split")),
    "jax-privacy, Clopper–Pearson, MultiSplit": Auditor(
        partial(_jax, "MultiSplit"), share=0.2
    ),
    "jax-privacy, epsilon_from_gdp": Auditor(
        partial(_jax, "gdp"), lambda t: t.mu is not None
    ),
    "privacy-estimates, beta": Auditor(partial(_estimates, "beta")),
    "privacy-estimates, jeffreys": Auditor(partial(_estimates, "jeffreys")),
    "privacy-estimates, joint-beta": Auditor(
        partial(_estimates, "joint-beta"),
        lambda t: t.name.startswith("Randomised"),
        share=0.1,
        sets=3,
    ),
    "privacy-estimates, joint-dirichlet": Auditor(
        partial(_estimates, "joint-dirichlet"),
        lambda t: t.name.startswith("Randomised"),
        share=0.1,
        sets=3,
    ),
}


def tightness(task: str, auditor: str, seed: int, repeats: int) -> Result:
    """Return the bounds of an auditor on several data sets, the oracle's, and the CPU seconds of one."""
    spec, method = next(t for t in TASKS if t.name == task), AUDITORS[auditor]
    bounds, seconds = [], []
    try:
        for k in range(repeats):
            rng = stream(seed, "peers", task, k)
            started = time.process_time()
            bounds.append(method.bound(spec, spec.draws, rng))
            seconds.append(time.process_time() - started)
    except Exception as error:  # a peer's failure is a finding of this table, and no reason to lose the others
        return {"task": task, "auditor": auditor, "failed": _reason(error)}
    return {
        "task": task,
        "auditor": auditor,
        "bounds": bounds,
        "oracle": spec.best(spec.draws)[1],
        "cpu_seconds": statistics.median(seconds),
    }


def alarms(task: str, auditor: str, seed: int, chunk: int, repeats: int) -> Result:
    """Return the share of bounds that exceed the truth."""
    spec, method = next(t for t in TASKS if t.name == task), AUDITORS[auditor]
    count = 0
    try:
        for k in range(repeats):
            bound = method.bound(
                spec,
                ALARM_DRAWS,
                stream(seed, "peers' alarms", task, auditor, chunk, k),
            )
            count += bound > spec.epsilon * (1 + 1e-9)
    except Exception as error:  # as above
        return {"task": task, "auditor": auditor, "failed": _reason(error)}
    return {"task": task, "auditor": auditor, "repeats": repeats, "alarms": count}


def _reason(error: Exception) -> str:
    prefix = "not installed: " if isinstance(error, ModuleNotFoundError) else "fails: "
    return prefix + f"{type(error).__name__}: {error}"[:200]


def units(options: Options) -> dict[str, partial[Result]]:
    """One unit for each task and auditor, and chunks of repeats for the false alarms."""
    repeats = options.repeats or (100 if options.quick else ALARM_REPEATS)
    found: dict[str, partial[Result]] = {}
    for task in TASKS:
        for name, auditor in AUDITORS.items():
            if auditor.suits(task):
                key = f"{task.name}: {name}"
                found[key] = partial(
                    tightness,
                    task.name,
                    name,
                    options.seed,
                    1 if options.quick else auditor.sets,
                )
                total = max(1, round(repeats * auditor.share))
                for chunk in range(math.ceil(total / CHUNK)):
                    size = min(CHUNK, total - chunk * CHUNK)
                    found[f"{key}, alarms/{chunk}"] = partial(
                        alarms, task.name, name, options.seed, chunk, size
                    )
    return found


def view(results: Results) -> View:
    """Return one table for each task."""
    groups = grouped(results)
    tables = [
        Table(
            f"{task.name}: true ε = {number(task.epsilon)}, {task.draws:,} outputs of each input",
            [
                "Auditor",
                "Bound",
                "Ratio to oracle",
                "CPU s",
                "False alarms",
                "of audits",
                f"{CONFIDENCE:.1%} upper bound",
            ],
            rows,
            note="; ".join(
                f"{name}: {reason}" for name, reason in _failures(groups, task).items()
            ),
        )
        for task in TASKS
        if (
            rows := [
                row
                for name in AUDITORS
                if (row := _line(groups, task, name)) is not None
            ]
        )
    ]
    notes = [
        "The oracle is Clopper–Pearson at the expected counts of the best event of the form “output at least t”. A ratio "
        "above 1 is possible for a test that is sharper than Clopper–Pearson, or wrong: see its false alarms, which are "
        f"bounds above the true ε with {ALARM_DRAWS} outputs of each input at nominal α = {ALPHA:g}. The claims of the "
        "games are the truth. Those on the Gaussian curve and in μ assume Gaussian DP, as epsilon_from_gdp does; the oracle "
        "does not."
    ]
    return View([], tables, notes=notes)


def _failures(groups: dict[str, list[Result]], task: Task) -> dict[str, str]:
    """Why auditors failed on a task, by auditor."""
    runs = [
        run
        for key, found in groups.items()
        if key.startswith(f"{task.name}: ")
        for run in found
    ]
    return {run["auditor"]: run["failed"] for run in runs if "failed" in run}


def _line(
    groups: dict[str, list[Result]], task: Task, auditor: str
) -> list[str] | None:
    key = f"{task.name}: {auditor}"
    measured, repeated = groups.get(key, []), groups.get(f"{key}, alarms", [])
    if auditor in _failures(groups, task):
        return [auditor, "failed", "–", "–", "–", "–", "–"]
    if not measured and not repeated:
        return None
    line = [auditor, "–", "–", "–"]
    if measured:
        (run,) = measured
        bound = median(run["bounds"])
        ratio = f"{bound / run['oracle']:.3f}" if run["oracle"] > 0 else "–"
        line = [auditor, number(bound), ratio, number(run["cpu_seconds"], 2)]
    if not repeated:
        return [*line, "–", "–", "–"]
    count, total = (
        sum(run[name] for run in repeated) for name in ("alarms", "repeats")
    )
    upper = binomtest(count, total, alternative="less").proportion_ci(CONFIDENCE).high
    return [*line, f"{count / total:.1%}", f"{total:,}", f"{upper:.1%}"]


PART = Part("peers", "Peers on the same outputs", units, view)
