"""Bounds of DP-SGD beside those of other tools: their side, their width, their cost.

Random trainings with Poisson batches. Every tool answers in a process of its own, with a limit on its time and memory, and
says where ε lies: between a lower and an upper bound, or below an upper bound alone. An interval that has no point in common
with ours shows an error, in one or the other. Peers that are not installed are left out: autodp and prv-accountant are in
no extra of auditdp, as they have not been kept up to date.
"""

from __future__ import annotations

import json
import math
import os
import resource
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec

import numpy as np

from auditdp.accountants import OpacusPRV, PLDLower, PLDUpper
from benchmarks.parts import Bar, Options, Part, Result, Results, Table, View

SETS = 500
Training = tuple[float, float, int, float]
"""Noise multiplier, sampling rate, steps, δ."""
Interval = tuple[float, float]
SECONDS, MEGABYTES, WIDTH = 2.0, 400.0, 1e-3
"""The bars: for both bounds together, where a peer answers, beyond some 100 MB that are imported."""
LIMIT_SECONDS, LIMIT_MEGABYTES = 60, 6000
"""Limits of a tool."""
OURS = "auditdp"


def ours(noise: float, rate: float, steps: int, delta: float) -> Interval:
    """Return both bounds."""
    return tuple(
        kind(noise, rate, steps).epsilon_at(delta) for kind in (PLDLower, PLDUpper)
    )  # type: ignore[return-value]


def dp_accounting(noise: float, rate: float, steps: int, delta: float) -> Interval:
    """Return both of dp-accounting's estimates, on its own grid."""
    from dp_accounting.pld import privacy_loss_distribution as library

    low, high = (
        library.from_gaussian_mechanism(
            noise,
            sampling_prob=rate,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
        )
        .self_compose(steps)
        .get_epsilon_for_delta(delta)
        for pessimistic in (False, True)
    )
    return low, high


def opacus(noise: float, rate: float, steps: int, delta: float) -> Interval:
    """Return Opacus' PRV accountant's upper bound."""
    return 0.0, OpacusPRV(noise, rate, steps).epsilon_at(delta)


def prv_accountant(noise: float, rate: float, steps: int, delta: float) -> Interval:
    """Return prv-accountant's bounds, with the errors that it recommends."""
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    step = PoissonSubsampledGaussianMechanism(
        noise_multiplier=noise, sampling_probability=rate
    )
    accountant = PRVAccountant(
        prvs=[step],
        max_self_compositions=[steps],
        eps_error=0.01,
        delta_error=delta / 1000,
    )
    low, _, high = accountant.compute_epsilon(delta, [steps])
    return low, high


def autodp(noise: float, rate: float, steps: int, delta: float) -> Interval:
    """Return autodp's bound by Rényi divergences."""
    from autodp.mechanism_zoo import GaussianMechanism
    from autodp.transformer_zoo import AmplificationBySampling, Composition

    step = AmplificationBySampling(PoissonSampling=True)(
        GaussianMechanism(noise), rate, improved_bound_flag=True
    )
    return 0.0, Composition()([step], [steps]).get_approxDP(delta)


TOOLS: Mapping[str, tuple[str, Callable[..., Interval]]] = {
    OURS: ("auditdp", ours),
    "dp-accounting": ("dp_accounting", dp_accounting),
    "prv-accountant": ("prv_accountant", prv_accountant),
    "Opacus PRV": ("opacus", opacus),
    "autodp RDP": ("autodp", autodp),
}


def training(seed: int, number: int) -> Training:
    """Return a random training: all but its δ are log-uniform, and its δ is so between 1e-10 and 1e-4."""
    noise, rate, steps, delta = np.random.default_rng([seed, number]).uniform(
        np.log([0.6, 1e-5, 50, 1e-10]), np.log([4.0, 0.05, 25_000, 1e-4])
    )
    return (
        round(math.exp(noise), 3),
        float(f"{math.exp(rate):.3e}"),
        int(math.exp(steps)),
        float(f"{math.exp(delta):.1e}"),
    )


def measure(seed: int, number: int) -> Result:
    """Return every tool's answer for one training, with CPU seconds and peak memory."""
    found = {
        name: alone(answer, training(seed, number))
        for name, (module, answer) in TOOLS.items()
        if find_spec(module)
    }
    return {"training": training(seed, number), "tools": found}


@cache
def ready(answer: Callable[..., Interval]) -> None:
    """Let a tool import and compute its caches once."""
    with suppress(Exception):  # what fails will say so when it is measured
        answer(1.0, 0.01, 10, 1e-5)


def alone(answer: Callable[..., Interval], parameters: Training) -> Result:
    """Return the answer of a process of its own, and its cost beyond its imports."""
    ready(answer)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(_asked(answer, parameters)).encode())
        finally:
            os._exit(
                0
            )  # a process that has been forked must not go on with its parent's work
    os.close(writing)
    with os.fdopen(reading) as answers:
        said = answers.read()
    os.waitpid(child, 0)
    return (
        json.loads(said) if said else {"error": f"used more than {LIMIT_SECONDS} CPU s"}
    )


def _asked(answer: Callable[..., Interval], parameters: Training) -> Result:
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_SECONDS, LIMIT_SECONDS))
    resource.setrlimit(
        resource.RLIMIT_DATA, (LIMIT_MEGABYTES * 10**6, LIMIT_MEGABYTES * 10**6)
    )
    before, started = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        time.process_time(),
    )
    try:
        low, high = answer(*parameters)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    spent, most = (
        time.process_time() - started,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    )
    return {
        "low": float(low),
        "high": float(high),
        "cpu_seconds": spent,
        "megabytes": (most - before) / 1000,
    }


def units(options: Options) -> dict[str, partial[Result]]:
    """One unit a training."""
    count = options.repeats or (10 if options.quick else SETS)
    return {f"training/{k}": partial(measure, options.seed, k) for k in range(count)}


def answered(found: Result | None) -> bool:
    """Return True if a tool answered with an interval for ε."""
    return (
        found is not None
        and math.isfinite(found.get("high", math.inf))
        and found["low"] <= found["high"]
    )


def width(found: Result) -> float:
    """Return the relative width of an interval."""
    return (found["high"] - found["low"]) / found["high"] if found["high"] > 0 else 0.0


def view(results: Results) -> View:
    """Compare our bounds with the bars, and all tools with each other."""
    sets = [result["tools"] for result in results.values()]
    own = [tools[OURS] for tools in sets if answered(tools[OURS])]
    of_peers = [
        (
            tools[OURS],
            [
                tools[name]
                for name in TOOLS
                if name != OURS and answered(tools.get(name))
            ],
        )
        for tools in sets
    ]
    asked = [found for found, peers in of_peers if peers]
    dear = [found for found in asked if not answered(found) or _is_dear(found)]
    apart = [
        found
        for found, peers in of_peers
        if answered(found) and any(_apart(found, peer) for peer in peers)
    ]
    widest = max(map(width, own), default=0.0)
    bars = [
        Bar(
            "Bounds share a point with every peer's",
            not apart if asked else None,
            f"{len(asked) - len(apart)} of {len(asked)} trainings",
        ),
        Bar(
            f"They are apart by {WIDTH:.1%} at most",
            widest <= WIDTH and len(own) == len(sets),
            f"{widest:.2%} at most",
        ),
        Bar(
            f"Both take {SECONDS:g} CPU s and {MEGABYTES:g} MB at most where a peer answers",
            not dear if asked else None,
            f"{len(asked) - len(dear)} of {len(asked)} trainings",
        ),
    ]
    lines = [
        _line(name, sets) for name in TOOLS if any(name in tools for tools in sets)
    ]
    columns = [
        "Tool",
        "answers",
        "apart from ours",
        "width, median",
        "at most",
        "CPU s, median",
        "at most",
        "MB, median",
        "at most",
    ]
    note = "Widths are relative to the upper bound. Memory is what is used beyond what has been imported."
    return View(
        bars, [Table(f"ε of {len(sets)} random trainings", columns, lines, note)]
    )


def _apart(one: Result, other: Result) -> bool:
    return one["low"] > other["high"] * (1 + 1e-9) or other["low"] > one["high"] * (
        1 + 1e-9
    )


def _is_dear(found: Result) -> bool:
    return found["cpu_seconds"] > SECONDS or found["megabytes"] > MEGABYTES


def _line(name: str, sets: list[Mapping[str, Result]]) -> list[str]:
    found = [(tools[OURS], tools[name]) for tools in sets if answered(tools.get(name))]
    answers = [each for _, each in found]
    apart = sum(answered(own) and _apart(own, each) for own, each in found)
    kinds: list[tuple[list[float], str]] = [
        ([width(each) for each in answers if each["low"] > 0], ".2g"),
        ([each["cpu_seconds"] for each in answers], ".2g"),
        ([each["megabytes"] for each in answers], ".0f"),
    ]
    cells = [
        format(of(values), form) if values else "–"
        for values, form in kinds
        for of in (statistics.median, max)
    ]
    return [name, f"{len(answers)} of {len(sets)}", str(apart), *cells]


PART = Part("accountants", "Accountants of DP-SGD", units, view, alone=True)
