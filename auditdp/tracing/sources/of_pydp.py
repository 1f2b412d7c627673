"""PyDP: its mechanisms and its algorithms.

A mechanism states the scale of its noise. An algorithm states its ε for one row, and
the trace trusts this ε.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.patches import Patches
from auditdp.tracing.sources.primitives import (
    Law,
    Library,
    declared,
    of_groups,
    rows_apart,
)
from auditdp.tracing.watched_run import Active, WatchedRun

ENTRIES = "_watched_entries"
"""Name of an attribute that this source gives to an algorithm.

It has the list of the entries that a watched run added to the algorithm.
"""


def _of_rows(algorithm: Any, rows: Any) -> Law:
    name, epsilon = f"{type(algorithm).__name__} of PyDP", float(algorithm.epsilon)
    return declared(name, rows_apart, of_groups(epsilon), epsilon), list(rows)


def _of_entries(algorithm: Any, *_: Any) -> Law:
    return _of_rows(algorithm, vars(algorithm).get(ENTRIES, []))


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
        "algorithms._algorithm.MetaAlgorithm.result": _of_entries,
    },
)


def watch(patches: Patches, active: Active) -> None:
    """Replace the methods that add noise, and record the entries of algorithms."""
    LIBRARY.watch(patches, active)
    kind = sys.modules["pydp.algorithms._algorithm"].MetaAlgorithm
    patches.sampler(kind, "add_entry", active, partial(_kept, lambda entry: [entry]))
    patches.sampler(kind, "add_entries", active, partial(_kept, list))


def _kept(rows_of: Any, run: WatchedRun, add: Any, algorithm: Any, entries: Any) -> Any:
    vars(algorithm).setdefault(ENTRIES, []).extend(rows_of(entries))
    return add(algorithm, entries)
