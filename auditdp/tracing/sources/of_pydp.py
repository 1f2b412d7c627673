"""PyDP: noise is drawn in C++; its mechanisms tell the scale, and its algorithms the ε of one row."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.patches import Patches
from auditdp.tracing.sources.primitives import Library, declared, of_groups, rows_apart
from auditdp.tracing.watched_run import Active, WatchedRun, in_run

ENTRIES = "_watched_entries"
"""The attribute of an algorithm that keeps what it was given in a run."""


def _of_rows(algorithm: Any, rows: Any) -> tuple[NoiseLaw, Any]:
    name, epsilon = f"{type(algorithm).__name__} of PyDP", float(algorithm.epsilon)
    return declared(name, rows_apart, of_groups(epsilon), epsilon), list(rows)


LIBRARY = Library(
    "pydp",
    "python-dp",
    ("1.1",),
    {
        "algorithms.numerical_mechanisms.LaplaceMechanism.add_noise": lambda self, v: (
            NoiseLaw("Laplace", float(self.diversity)),
            v,
        ),
        "algorithms.numerical_mechanisms.GaussianMechanism.add_noise": lambda self, v: (
            NoiseLaw("Gaussian", float(self.std)),
            v,
        ),
        "algorithms._algorithm.MetaAlgorithm.quick_result": _of_rows,
        "algorithms._algorithm.MetaAlgorithm.result": lambda self, *_: _of_rows(
            self, vars(self).get(ENTRIES, [])
        ),
    },
)


def watch(patches: Patches, active: Active) -> None:
    """Replace what adds noise, and keep what algorithms are given one after the other."""
    LIBRARY.watch(patches, active)
    kind = sys.modules["pydp.algorithms._algorithm"].MetaAlgorithm
    patches.attribute(
        kind, "add_entry", _kept(kind.add_entry, lambda entry: [entry], active)
    )
    patches.attribute(kind, "add_entries", _kept(kind.add_entries, list, active))


def _kept(
    add: Callable[..., Any], rows_of: Callable[[Any], list[Any]], active: Active
) -> Callable[..., Any]:
    def added(run: WatchedRun, algorithm: Any, entries: Any) -> Any:
        vars(algorithm).setdefault(ENTRIES, []).extend(rows_of(entries))
        return add(algorithm, entries)

    return in_run(add, active, added)
