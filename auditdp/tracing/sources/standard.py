"""Samplers of ``random`` and ``secrets`` of the standard library."""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from auditdp.tracing.draws import ALONE
from auditdp.tracing.generators import as_order, drawn_places, items_law
from auditdp.tracing.linear_forms import number
from auditdp.tracing.noise import Noise, apply, drawn_noise, drawn_release, settled
from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.patches import Patches
from auditdp.tracing.watched_run import Active, WatchedRun

Sample = tuple[NoiseLaw, Any]
"""Law of a draw without its location, and the location."""


def _gauss(mu: float = 0.0, sigma: float = 1.0) -> Sample:
    return NoiseLaw("Gaussian", number(sigma)), mu


def _range(start: Any, stop: Any = None, step: int = 1) -> Sample:
    if stop is None:
        return NoiseLaw("integer", 1.0, start), 0.0
    return NoiseLaw("integer", float(step), -(-(stop - start) // step)), start


def _bits(k: int) -> Sample:
    # The number of values as a float ends at 2^1023.
    return NoiseLaw("integer", 1.0, 2.0**k if k < 1000 else np.inf), 0.0


SAMPLERS: dict[str, Callable[..., Sample]] = {
    "random": lambda: (NoiseLaw("uniform"), 0.0),
    "uniform": lambda a, b: (NoiseLaw("uniform", number(b - a)), a),
    "gauss": _gauss,
    "normalvariate": _gauss,
    "expovariate": lambda lambd=1.0: (NoiseLaw("exponential", number(1 / lambd)), 0.0),
    "randint": lambda a, b: (NoiseLaw("integer", 1.0, b - a + 1), a),
    "randbelow": lambda n: (NoiseLaw("integer", 1.0, n), 0.0),
    "randrange": _range,
    "getrandbits": _bits,
    "randbits": _bits,
}
"""Functions from the arguments of a call to its ``Sample``, by the sampler's name."""
OTHERS = (
    "triangular",
    "lognormvariate",
    "gammavariate",
    "betavariate",
    "paretovariate",
    "weibullvariate",
    "vonmisesvariate",
    "binomialvariate",
)
"""Samplers whose law is not followed."""
ITEMS = ("choice", "choices", "sample", "shuffle")


def watch(patches: Patches, active: Active) -> None:
    """Replace the samplers of both modules, and the methods of their generators.

    The functions ``log``, ``log1p`` and ``copysign`` of ``math`` are replaced as well,
    because code makes Laplace noise of a uniform draw with them.
    """
    for name in ("log", "log1p", "copysign"):
        patches.attribute(math, name, _of_noise(name, getattr(math, name)))
    for name in (*SAMPLERS, *OTHERS, *ITEMS):
        for module in (random, secrets):
            if callable(vars(module).get(name)):
                patches.sampler(module, name, active, partial(_drawn, name, 0))
        for kind in (random.Random, random.SystemRandom):
            # The class inherits these two from C, and has them itself for the time of a
            # run.
            is_inherited = kind is random.Random and name in ("random", "getrandbits")
            if name in vars(kind) or is_inherited:
                patches.sampler(kind, name, active, partial(_drawn, name, 1))


def _of_noise(name: str, function: Callable[..., float]) -> Callable[..., Any]:
    """Return a function of numbers that also takes noise, by the rule of its name."""

    def compute(*arguments: Any) -> Any:
        if Noise in map(type, arguments):
            return apply(name, function, arguments, {})
        return function(*arguments)

    return compute


def _drawn(
    name: str,
    owners: int,
    run: WatchedRun,
    function: Any,
    *arguments: Any,
    **keywords: Any,
) -> Any:
    """Draw by a function, or by a method of a generator.

    Args:
        name: Name of the sampler.
        owners: 1 for a method, whose first argument is the generator; 0 for a function.
        run: The run.
        function: The sampler.
        arguments: Its positional arguments.
        keywords: Its keyword arguments.
    """
    given = settled(arguments[owners:], "is a parameter of a draw")

    # Samplers of the standard library call each other: only the outermost is a draw.
    def perform(*those: Any, **others: Any) -> Any:
        return run.unwatched(function, *arguments[:owners], *those, **others)()

    if name in ITEMS:
        return _items(run, name, perform, *given, **keywords)
    law, location = NoiseLaw(name), 0.0
    if name in SAMPLERS:
        law, location = SAMPLERS[name](*given, **keywords)
    draw = partial(perform, *given, **keywords)
    return drawn_noise(run, name, draw, law, number(location), shape=())


def _items(
    run: WatchedRun,
    name: str,
    perform: Callable[..., Any],
    items: Any,
    *rest: Any,
    **keywords: Any,
) -> Any:
    """Choose or shuffle items by their places.

    So a replay takes the recorded places, and the items of its own input.

    Returns:
        One item for "choice", None for "shuffle", else a list of items.
    """
    count = len(items)

    def draw() -> Any:
        if name != "shuffle":
            return np.array(perform(range(count), *rest, **keywords))[()]
        order = [*range(count)]
        perform(order)
        return np.array(order, int)

    if name == "shuffle":
        law, shape = NoiseLaw("permutation", 1.0, count), (count,)
        place = drawn_release(run, name, draw, ALONE, law, shape=shape)
        items[:] = [items[k] for k in as_order(place, count)]
        return None
    law, names = items_law(count, replace=name != "sample"), None
    table = _table(*rest, **keywords) if name == "choices" else None
    if table is not None:
        law, names = NoiseLaw("choice"), tuple(map(repr, items))
    place = drawn_places(run, name, draw, law, count, table=table, names=names)
    if name == "choice":
        return items[place]
    return [items[k] for k in place.tolist()]


def _table(weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> Any:
    """Return an array of the probabilities of the items; None without weights."""
    if cum_weights is not None:
        weights = np.diff(np.asarray(cum_weights), prepend=0)
    if weights is None:
        return None
    table = np.asarray(weights, float)
    return table / table.sum()
