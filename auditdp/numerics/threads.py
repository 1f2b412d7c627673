"""One thread for numerical libraries: small problems lose on many, and the runner uses the cores already."""

import sys
from contextlib import AbstractContextManager
from functools import lru_cache
from importlib.machinery import ExtensionFileLoader
from types import ModuleType
from typing import Any

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which OpenMP and BLAS run on one thread, in all libraries that are imported when it is made.

    So no sum depends on the number of threads. Where more cores are seen than granted, as in containers, threads that wait
    for each other make fitting a few small trees take a minute.
    """
    modules = [vars(module) for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    native = sum(isinstance(module.get("__loader__"), ExtensionFileLoader) for module in modules)
    limited: AbstractContextManager[Any] = _controller(native).limit(limits=1)
    return limited


@lru_cache(maxsize=1)
def _controller(native: int) -> ThreadpoolController:
    """Look for libraries, which takes tens of milliseconds: again where native modules were imported, not in every fork."""
    return ThreadpoolController()
