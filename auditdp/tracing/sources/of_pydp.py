"""PyDP: noise is drawn in C++; its mechanisms tell the scale, and its algorithms the ε of one row."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from auditdp.tracing.families import NoiseLaw
from auditdp.tracing.patches import Patches
from auditdp.tracing.run import Active, WatchedRun, in_run
from auditdp.tracing.sources.primitives import Library, declared, of_groups, rows_apart

ENTRIES = "_watched_entries"
"""The attribute of an algorithm that keeps what it was given in a run."""


def _laplace(mechanism: Any, value: Any) -> tuple[NoiseLaw, Any]:
    return NoiseLaw("Laplace", float(mechanism.diversity)), value


def _gaussian(mechanism: Any, value: Any) -> tuple[NoiseLaw, Any]:
    return NoiseLaw("Gaussian", float(mechanism.std)), value


def _of_rows(algorithm: Any, rows: Any) -> tuple[NoiseLaw, Any]:
    name, epsilon = f"{type(algorithm).__name__} of PyDP", float(algorithm.epsilon)
    return declared(name, rows_apart, of_groups(epsilon), epsilon), list(rows)


def _result(algorithm: Any, *_: Any) -> tuple[NoiseLaw, Any]:
    return _of_rows(algorithm, vars(algorithm).get(ENTRIES, []))


LIBRARY = Library(
    "pydp",
    "python-dp",
    ("1.1",),
    {
        "algorithms.numerical_mechanisms.LaplaceMechanism.add_noise": _laplace,
        "algorithms.numerical_mechanisms.GaussianMechanism.add_noise": _gaussian,
        "algorithms._algorithm.MetaAlgorithm.quick_result": _of_rows,
        "algorithms._algorithm.MetaAlgorithm.result": _result,
    },
)


def watch(patches: Patches, active: Active) -> None:
    """Replace what adds noise, and keep what algorithms are given one after the other."""
    LIBRARY.watch(patches, active)
    kind = sys.modules["pydp.algorithms._algorithm"].MetaAlgorithm
    patches.attribute(kind, "add_entry", _kept(kind.add_entry, lambda entry: [entry], active))
    patches.attribute(kind, "add_entries", _kept(kind.add_entries, list, active))


def _kept(add: Callable[..., Any], rows_of: Callable[[Any], list[Any]], active: Active) -> Callable[..., Any]:
    def added(run: WatchedRun, algorithm: Any, entries: Any) -> Any:
        vars(algorithm).setdefault(ENTRIES, []).extend(rows_of(entries))
        return add(algorithm, entries)

    return in_run(add, active, added)
