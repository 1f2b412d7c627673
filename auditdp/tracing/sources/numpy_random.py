"""``numpy.random``: its samplers, its generators, and the functions that make them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from auditdp.tracing.generators import (
    UNWATCHED,
    WatchedGenerator,
    WatchedState,
    watched_draw,
)
from auditdp.tracing.mixed_values import gathered
from auditdp.tracing.noise import Noise
from auditdp.tracing.patches import Patches
from auditdp.tracing.sites import here
from auditdp.tracing.watched_run import Active, WatchedRun


def watch(patches: Patches, active: Active) -> None:
    """Replace the samplers of ``numpy.random``, and functions that make generators.

    ``numpy.array`` and ``numpy.asarray`` are replaced too: they may get lists of noise.
    """
    module = np.random
    methods = [name for name in vars(module.mtrand.RandomState) if name[0] != "_"]
    for name in (*methods, "ranf", "sample"):
        if name not in UNWATCHED and callable(getattr(module, name, None)):
            patches.sampler(module, name, active, functools.partial(_drawn, name))
    # Libraries that are given no generator draw from this one.
    patches.attribute(module.mtrand, "_rand", WatchedState(module.mtrand._rand, active))
    make = functools.partial(_default_rng, active)
    patches.sampler(module, "default_rng", active, make)
    for plain, watched in (
        (np.random.RandomState, WatchedState),
        (np.random.Generator, WatchedGenerator),
    ):
        patches.attribute(module, plain.__name__, _class(plain, watched, active))
    patches.sampler(module, "seed", active, _seed_all)
    for name in ("array", "asarray"):
        patches.attribute(np, name, _array(getattr(np, name)))


def _drawn(
    name: str, run: WatchedRun, function: Any, *arguments: Any, **keywords: Any
) -> Any:
    return watched_draw(run, name, function, arguments, keywords)


def _array(array: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement of ``numpy.array`` or ``asarray``, which keeps noise.

    A list of noise becomes an array that is noise. A call with other arguments, such as
    ``dtype``, goes to the original.
    """

    @functools.wraps(array)
    def make(*arguments: Any, **keywords: Any) -> Any:
        if len(arguments) != 1 or keywords:
            return array(*arguments, **keywords)
        # numpy would make a float of each entry, which ends its noise.
        (first,) = arguments
        if type(first) is list and Noise in map(type, first):
            noise = gathered(first, array)
            if noise is None:
                return array(first)
            return noise
        is_noise = type(first) is Noise and isinstance(first.value, np.ndarray)
        if is_noise and first.settled is None:
            return first
        return array(first)

    return make


def _seeded(run: WatchedRun, seed: Any) -> tuple[Any, Any]:
    """Record the seed of a new generator.

    Args:
        run: The run.
        seed: The seed: numbers, noise, a seed sequence, a generator or None.

    Returns:
        The seed, with numbers in place of noise, and a key that is equal for equal
        seeds. The key is None for None and for a generator, which are not recorded.
    """
    seed = seed.settle("seeds a generator") if isinstance(seed, Noise) else seed
    sources = np.random.BitGenerator | np.random.Generator | np.random.RandomState
    if seed is None or isinstance(seed, sources):
        return seed, None
    is_sequence = isinstance(seed, np.random.SeedSequence)
    key = str(seed.state) if is_sequence else repr(np.asarray(seed).tolist())
    run.seed(here(), key)
    return seed, key


def _seed_all(run: WatchedRun, seed_all: Any, seed: Any = None) -> None:
    seed_all(_seeded(run, seed)[0])


def _default_rng(
    active: Active, run: WatchedRun, default_rng: Any, seed: Any = None
) -> Any:
    if isinstance(seed, WatchedGenerator):
        return default_rng(seed)
    seed, key = _seeded(run, seed)
    return WatchedGenerator(default_rng(seed), active, key)


class _Instances(type):
    """Metaclass that makes ``isinstance`` and ``issubclass`` test for another class.

    Attributes:
        plain: The other class.
    """

    plain: type

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.plain)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.plain)


def _class(plain: type, watched: Any, active: Active) -> type:
    """Return a class to replace ``plain``, a class of numpy's generators.

    In a run, a call of it returns a generator of the class ``watched``. Outside of
    runs, it returns a plain generator.
    """

    def new(cls: type, seed: Any = None) -> Any:
        run = active()
        if run is None:
            return plain(seed)
        seed, key = _seeded(run, seed)
        return watched(plain(seed), active, key)

    return _Instances(plain.__name__, (), {"plain": plain, "__new__": new})
