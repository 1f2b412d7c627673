"""One thread for numerical libraries: small problems lose on many, and the runner uses the cores already."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    import sklearn.ensemble  # noqa: F401 - a limit reaches only the libraries that are loaded when it is found

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which scikit-learn's OpenMP and BLAS run on one thread, even where it was just imported.

    Where more cores are seen than granted, as in containers, threads that wait for each other make fitting a few small
    trees take a minute.
    """
    limited: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limited
