"""Random streams keyed by what is computed, never by who computes it.

One thread for numerical libraries: small problems lose on many, and the runner uses the cores already.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from importlib.machinery import ExtensionFileLoader
from types import ModuleType
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

Streams = Callable[[str, int], np.random.Generator]
"""Gives a fresh generator for (purpose, number): the same one whenever it is asked for the same."""


def prefixed(streams: Streams, prefix: str) -> Streams:
    """Return streams of their own for what has this prefix before its purpose."""
    return lambda purpose, number: streams(f"{prefix} {purpose}", number)


def position(rng: np.random.Generator) -> Any:
    """Return the state of a generator, which changes when anything is drawn, or spawned from it."""
    return rng.bit_generator.state, rng.bit_generator.seed_seq.n_children_spawned  # type: ignore[attr-defined]


def stream(root: int, *key: str | int) -> np.random.Generator:
    """Return the generator that belongs to ``key`` under the root seed.

    Two calls with the same root and key give the same stream on any machine and in any process; different keys give
    streams that are independent for all practical purposes (the key is hashed into a ``SeedSequence`` spawn key).

    The root is the root seed of a run, a non-negative integer; the key is such as ``("audit_edges.py::dprr", "game", 3)``.
    """
    digest = hashlib.blake2b(
        "\x1f".join(f"{type(part).__name__}:{part}" for part in key).encode(),
        digest_size=16,
    )
    words = np.frombuffer(digest.digest(), dtype="<u4")
    return np.random.default_rng(
        np.random.SeedSequence(root, spawn_key=tuple(int(word) for word in words))
    )


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which OpenMP and BLAS run on one thread, in all libraries that are imported when it is made.

    So no sum depends on the number of threads. Where more cores are seen than granted, as in containers, threads that wait
    for each other make fitting a few small trees take a minute.
    """
    modules = [
        vars(module)
        for module in list(sys.modules.values())
        if isinstance(module, ModuleType)
    ]
    native = sum(
        isinstance(module.get("__loader__"), ExtensionFileLoader) for module in modules
    )
    limited: AbstractContextManager[Any] = _controller(native).limit(limits=1)
    return limited


@lru_cache(maxsize=1)
def _controller(native: int) -> ThreadpoolController:
    """Look for libraries, which takes tens of milliseconds: again where native modules were imported, not in every fork."""
    return ThreadpoolController()
