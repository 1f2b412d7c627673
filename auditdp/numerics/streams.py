"""Random streams, each with a key, and how processes use numerical libraries.

Numerical libraries get one thread: small problems are slower on many, and the runner
uses the cores already. A process imports slow libraries before it is forked, so that
its forks need not.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

Streams = Callable[[str, int], np.random.Generator]
"""Function of a purpose and a number that returns a new generator for this key."""


def prefixed(streams: Streams, prefix: str) -> Streams:
    """Return streams with a prefix before each purpose, independent of ``streams``."""
    return lambda purpose, number: streams(f"{prefix} {purpose}", number)


def position(rng: np.random.Generator) -> Any:
    """Return the state of a generator; each draw and each spawned child changes it."""
    bits: Any = rng.bit_generator
    return bits.state, bits.seed_seq.n_children_spawned


def stream(root: int, *key: str | int) -> np.random.Generator:
    """Return the generator that belongs to ``key`` under the root seed.

    Two calls with the same root and key give the same stream on any machine and in any
    process; different keys give streams that are independent for all practical purposes
    (the key is hashed into a ``SeedSequence`` spawn key).

    Args:
        root: The root seed of a run, >= 0.
        key: For example ``"audit_edges.py::dprr", "game", 3``.
    """
    # The type is part of the key, so that 1 and "1" differ.
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in key)
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    words = tuple(np.frombuffer(digest, dtype="<u4").tolist())
    return np.random.default_rng(np.random.SeedSequence(root, spawn_key=words))


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which OpenMP and BLAS run on one thread.

    Only libraries that are imported before this call are limited. With one thread, no
    sum depends on the number of threads. With many threads in a container of few cores,
    the threads wait for each other, and a fit of a few small trees takes a minute.
    """
    native = 0
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            loader = vars(module).get("__loader__")
            native += isinstance(loader, ExtensionFileLoader)
    limited: AbstractContextManager[Any] = _controller(native).limit(limits=1)
    return limited


@lru_cache(maxsize=1)
def _controller(native: int) -> ThreadpoolController:
    # The search for libraries takes tens of milliseconds. It is repeated if native
    # modules were imported, and not in every fork.
    return ThreadpoolController()


SLOW = (
    *("dp_accounting", "flint", "hypothesis", "joblib", "opacus", "scipy", "sklearn"),
    *("statsmodels", "threadpoolctl", "torch", "torch_geometric"),
)
"""Libraries that take long to import."""


def slow_modules() -> set[str]:
    """Return the names of the imported modules of the libraries in ``SLOW``."""
    return {name for name in list(sys.modules) if name.partition(".")[0] in SLOW}


def import_before_fork(modules: Iterable[str]) -> None:
    """Import modules that forks of this process will need.

    A module that cannot be imported is left out: the fork reports the error if it
    imports the module.
    """
    gpu = Path("/dev/nvidiactl").exists()
    for name in sorted(modules):
        if gpu and name.startswith("torch"):
            # This import may load the CUDA driver, which does not survive a fork.
            continue
        with suppress(Exception):
            importlib.import_module(name)
