"""``numpy.random``: its functions, its generators and what makes them."""

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
from auditdp.tracing.watched_run import Active, WatchedRun, in_run


def watch(patches: Patches, active: Active) -> None:
    """Replace the functions of ``numpy.random``, and what makes generators."""
    module = np.random
    for name in dir(module.mtrand.RandomState):
        function = getattr(module, name, None)
        if not name.startswith("_") and callable(function) and name not in UNWATCHED:
            patches.attribute(module, name, _function(name, function, active))
    for name in ("ranf", "sample"):
        patches.attribute(module, name, _function(name, getattr(module, name), active))
    # what libraries draw from that are given no generator
    patches.attribute(module.mtrand, "_rand", WatchedState(module.mtrand._rand, active))
    patches.attribute(module, "default_rng", _default_rng(module.default_rng, active))
    patches.attribute(
        module, "RandomState", _class(np.random.RandomState, WatchedState, active)
    )
    patches.attribute(
        module, "Generator", _class(np.random.Generator, WatchedGenerator, active)
    )
    seed_all = module.seed
    patches.attribute(
        module,
        "seed",
        in_run(seed_all, active, lambda run, seed=None: seed_all(seeded(run, seed)[0])),
    )
    for name in ("array", "asarray"):
        patches.attribute(np, name, _array(getattr(np, name), active))


def _function(
    name: str, function: Callable[..., Any], active: Active
) -> Callable[..., Any]:
    def draw(run: WatchedRun, *arguments: Any, **keywords: Any) -> Any:
        return watched_draw(run, name, function, arguments, keywords)

    return in_run(function, active, draw)


def _array(array: Callable[..., Any], active: Active) -> Callable[..., Any]:
    """Return what makes an array of noise of a list of noise."""

    @functools.wraps(array)
    def make(*arguments: Any, **keywords: Any) -> Any:
        first = arguments[0] if arguments else None
        alone = len(arguments) == 1 and not keywords
        if alone and type(first) is list and Noise in map(type, first):
            found = gathered(first, array)
            return array(first) if found is None else found
        if (
            type(first) is Noise
            and alone
            and isinstance(first.value, np.ndarray)
            and first.settled is None
        ):
            return first
        return array(*arguments, **keywords)

    return make


def seeded(run: WatchedRun, seed: Any) -> tuple[Any, Any]:
    """Return a seed as an ordinary one, and what generators share that have the same; None where it has no seed."""
    seed = seed.settle("seeds a generator") if isinstance(seed, Noise) else seed
    if seed is None or isinstance(
        seed, np.random.BitGenerator | np.random.Generator | np.random.RandomState
    ):
        return seed, None
    key = (
        str(seed.state)
        if isinstance(seed, np.random.SeedSequence)
        else repr(np.asarray(seed).tolist())
    )
    run.seed(here(), key)
    return seed, key


def _default_rng(default_rng: Callable[..., Any], active: Active) -> Callable[..., Any]:
    def make(run: WatchedRun, seed: Any = None) -> Any:
        if isinstance(seed, WatchedGenerator):
            return default_rng(seed)
        seed, key = seeded(run, seed)
        made = default_rng(seed)
        return (
            WatchedGenerator(made, active, key)
            if isinstance(made, np.random.Generator)
            else made
        )

    return in_run(default_rng, active, make)


class _Instances(type):
    """Lets plain generators pass for instances of what takes the place of their class."""

    plain: type

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.plain)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.plain)


def _class(plain: type, watched: Any, active: Active) -> type:
    """Return a class that makes watched generators where the plain one makes plain ones."""

    def new(cls: type, seed: Any = None) -> Any:
        run = active()
        if run is None:
            return plain(seed)
        seed, key = seeded(run, seed)
        return watched(plain(seed), active, key)

    return _Instances(plain.__name__, (), {"plain": plain, "__new__": new})
