"""``random`` and ``secrets`` of the standard library."""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from auditdp.tracing.draws import ALONE, CHOICE
from auditdp.tracing.linear_forms import logarithm, number, sign_of
from auditdp.tracing.noise import Noise, noise_of, settled
from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.patches import Patches
from auditdp.tracing.sites import here
from auditdp.tracing.watched_run import Active, WatchedRun, in_run

Samplers = dict[str, Callable[..., tuple[NoiseLaw, Any]]]
SAMPLERS: Samplers = {
    "random": lambda: (NoiseLaw("uniform"), 0.0),
    "uniform": lambda a, b: (NoiseLaw("uniform", b - a), a),
    "gauss": lambda mu=0.0, sigma=1.0: (NoiseLaw("Gaussian", sigma), mu),
    "normalvariate": lambda mu=0.0, sigma=1.0: (NoiseLaw("Gaussian", sigma), mu),
    "expovariate": lambda lambd=1.0: (NoiseLaw("exponential", 1 / lambd), 0.0),
    "randint": lambda a, b: (NoiseLaw("integer", 1.0, b - a + 1), a),
    "randbelow": lambda n: (NoiseLaw("integer", 1.0, n), 0.0),
    "randrange": lambda start, stop=None, step=1: (
        (NoiseLaw("integer", 1.0, start), 0.0)
        if stop is None
        else (NoiseLaw("integer", float(step), -(-(stop - start) // step)), start)
    ),
    "getrandbits": lambda k: (
        NoiseLaw("integer", 1.0, 2.0**k if k < 1000 else np.inf),
        0.0,
    ),
    "randbits": lambda k: (
        NoiseLaw("integer", 1.0, 2.0**k if k < 1000 else np.inf),
        0.0,
    ),
}
"""By the name of the sampler: from its arguments the law of the draw, and the location."""
OTHERS = (
    *(
        "triangular",
        "lognormvariate",
        "gammavariate",
        "betavariate",
        "paretovariate",
        "weibullvariate",
    ),
    "vonmisesvariate",
)
ITEMS = ("choice", "choices", "sample", "shuffle")


def watch(patches: Patches, active: Active) -> None:
    """Replace the functions of both modules, and the methods of their generators."""
    patches.attribute(math, "log", _log(math.log))
    patches.attribute(math, "log1p", _log(math.log1p, 1.0))
    patches.attribute(math, "copysign", _copied_sign(math.copysign))
    for name in (*SAMPLERS, *OTHERS, *ITEMS, "binomialvariate"):
        for module in (random, secrets):
            if callable(function := vars(module).get(name)):
                patches.attribute(
                    module, name, _watched(name, function, active, is_method=False)
                )
        for kind in (random.Random, random.SystemRandom):
            # Methods that a class inherits in C are given it for the time of a run.
            if name in vars(kind) or (
                kind is random.Random and name in ("random", "getrandbits")
            ):
                patches.attribute(
                    kind,
                    name,
                    _watched(name, getattr(kind, name), active, is_method=True),
                )


def _log(log: Callable[..., float], plus: float = 0.0) -> Callable[..., Any]:
    def logarithm_of(*arguments: Any) -> Any:
        noise = (
            arguments[0]
            if len(arguments) == 1 and type(arguments[0]) is Noise
            else None
        )
        found = None if noise is None else logarithm(noise, log, plus)
        return log(*arguments) if found is None else found

    return logarithm_of


def _copied_sign(copysign: Callable[..., float]) -> Callable[..., Any]:
    def with_sign_of(*arguments: Any) -> Any:
        is_noise = (
            len(arguments) == 2
            and type(arguments[1]) is Noise
            and type(arguments[0]) in (int, float)
        )
        sign = sign_of(arguments[1]) if is_noise else None
        return copysign(*arguments) if sign is None else abs(arguments[0]) * sign

    return with_sign_of


def _watched(
    name: str, function: Callable[..., Any], active: Active, *, is_method: bool
) -> Callable[..., Any]:
    def draw(run: WatchedRun, *arguments: Any, **keywords: Any) -> Any:
        before, given = (arguments[:1], arguments[1:]) if is_method else ((), arguments)

        def perform(*those: Any, **others: Any) -> Any:
            return run.unwatched(function, *before, *those, **others)()

        return drawn(run, name, perform, settled(given), keywords)

    return in_run(function, active, draw)


def drawn(
    run: WatchedRun,
    name: str,
    perform: Callable[..., Any],
    given: Sequence[Any],
    keywords: dict[str, Any],
) -> Any:
    """Draw by a function of the standard library."""
    if name in ITEMS:
        return _items(run, name, perform, *given, **keywords)
    site = here()
    law, location = (
        SAMPLERS[name](*given, **keywords)
        if name in SAMPLERS
        else (NoiseLaw(name), 0.0)
    )
    law, location = (
        NoiseLaw(law.family, number(law.scale), law.parameter),
        number(location),
    )
    draw = run.draw(
        name,
        lambda: perform(*given, **keywords),
        law,
        site,
        location=location,
        shape=(),
    )
    return noise_of(run, draw, location or None)


def _items(
    run: WatchedRun,
    name: str,
    perform: Callable[..., Any],
    items: Any,
    *rest: Any,
    **keywords: Any,
) -> Any:
    """Choose items by their places, so that a replay chooses from its own."""
    site, count = here(), len(items)
    places = range(count)
    if name == "choices":
        given = dict(zip(("weights",), rest, strict=False)) | keywords
        weights, sums = given.get("weights"), given.get("cum_weights")
        chosen = run.draw(
            name,
            lambda: np.array(perform(places, *rest, **keywords)),
            NoiseLaw("choice"),
            site,
        )
        if weights is None and sums is None:
            place = run.release(
                ALONE, NoiseLaw("choice of items", 1.0, count), None, chosen.value, site
            )
        else:
            table = np.asarray(
                weights
                if weights is not None
                else np.diff(np.asarray(sums), prepend=0),
                float,
            )
            names = tuple(map(repr, items))
            place = run.release(
                CHOICE,
                NoiseLaw("choice"),
                table / table.sum(),
                chosen.value,
                site,
                names=names,
            )
        return [items[min(k, count - 1)] for k in place.tolist()]
    if name == "shuffle":

        def order() -> Any:
            made = list(places)
            perform(made)
            return np.array(made, int)

        shuffled = run.draw(
            name, order, NoiseLaw("permutation", 1.0, count), site, shape=(count,)
        )
        place = run.release(
            ALONE, NoiseLaw("permutation", 1.0, count), None, shuffled.value, site
        )
        items[:] = [items[k] for k in place.tolist()]
        return None
    sample = name == "sample"
    law = NoiseLaw("sample of items" if sample else "choice of items", 1.0, count)
    chosen = run.draw(
        name, lambda: np.array(perform(places, *rest, **keywords))[()], law, site
    )
    place = run.release(ALONE, law, None, chosen.value, site)
    found = [items[min(k, count - 1)] for k in np.atleast_1d(place).tolist()]
    return found if sample else found[0]
