"""Primitives of libraries: a call of one is one release, whose law is read from the primitive's own parameters."""

from __future__ import annotations

import functools
import importlib.metadata
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditdp.tracing.draws import NOISY, Term
from auditdp.tracing.linear_forms import is_numeric, number
from auditdp.tracing.noise import Noise, places_of
from auditdp.tracing.noise_families import DeclaredLoss, Loss, NoiseLaw
from auditdp.tracing.patches import Patches
from auditdp.tracing.sites import here
from auditdp.tracing.watched_run import Active, WatchedRun, in_run

Read = Callable[..., tuple[NoiseLaw, Any]]
"""From the arguments of a primitive, the object first: the law of its noise, and the value."""


@dataclass(frozen=True)
class Library:
    """What is known of a library.

    Attributes:
        module: The module that has to be imported.
        package: Its name where packages are installed.
        versions: Versions that contract tests were run with, by how they begin; those of others are opaque.
        primitives: By the path below the module, how a call is read.
    """

    module: str
    package: str
    versions: tuple[str, ...]
    primitives: Mapping[str, Read]

    @property
    def why(self) -> str:
        """Why its primitives are opaque; empty where they are known."""
        version = importlib.metadata.version(self.package)
        known = any(f"{version}.".startswith(f"{each}.") for each in self.versions)
        return (
            ""
            if known
            else f"is of {self.package} {version}, and known are {', '.join(self.versions)}"
        )

    def watch(self, patches: Patches, active: Active) -> None:
        """Replace its primitives, as far as the code has imported them."""
        for path, read in self.primitives.items():
            *parents, name = path.split(".")
            owner: Any = sys.modules[self.module]
            for part in parents:
                owner = getattr(owner, part, None)
            if hasattr(owner, name):
                patches.attribute(
                    owner,
                    name,
                    _released(path, getattr(owner, name), read, self.why, active),
                )


def _released(
    path: str, function: Callable[..., Any], read: Read, why: str, active: Active
) -> Callable[..., Any]:
    def call(run: WatchedRun, *arguments: Any, **keywords: Any) -> Any:
        arguments = tuple(
            a.settle("is given to a library") if isinstance(a, Noise) else a
            for a in arguments
        )
        result, site = run.unwatched(function, *arguments, **keywords)(), here()
        law, value = read(*arguments, **keywords)
        value = number(value) if law.declared is None else value
        draw = run.draw(path, lambda: result, law, site, location=value)
        terms = (Term(draw, places_of(result)),) if law.declared is None else ()
        if isinstance(
            result, float | int
        ):  # whose type may be that of the noise: as recorded
            made = run.release(NOISY, law, value, result, site, terms, why=why)
            last = run.traced.releases[-1]
            if run.record is None or last.recorded is None or last.number in run.forced:
                return made
            return run.record.releases[last.recorded].result
        if not isinstance(result, list):
            return run.release(NOISY, law, value, result, site, terms, why=why)
        return run.release(
            NOISY, law, value, np.asarray(result), site, terms, why=why
        ).tolist()

    return functools.wraps(function)(in_run(function, active, call))


def declared(
    name: str,
    distance: Callable[[Any, Any], float],
    loss: Callable[[float], Loss | None],
    *says: Any,
) -> NoiseLaw:
    """Return the law of a primitive that draws where it cannot be seen.

    Args:
        name: What sentences call it.
        distance: Of two inputs.
        loss: At a distance.
        says: What it was made with: on both inputs it has to be the same.
    """
    return NoiseLaw(name, 1.0, repr(says), DeclaredLoss(distance, loss))


def of_groups(epsilon: float, delta: float = 0.0) -> Callable[[float], Loss]:
    """Return the loss at k times the distance that (ε, δ) is for, by the privacy of groups: (kε, δ(e^kε − 1)/(e^ε − 1)).

    Source: Vadhan (2017), "The Complexity of Differential Privacy", Lemma 2.2, the sum in its proof.
    """

    def loss(distance: float) -> Loss:
        k = math.ceil(distance * (1 - 1e-9)) if math.isfinite(distance) else math.inf
        if k * epsilon > 700:
            return Loss(k * epsilon, 1.0 if delta else 0.0)
        times = math.expm1(k * epsilon) / math.expm1(epsilon) if epsilon else k
        return Loss(k * epsilon, min(delta * times, 1.0))

    return loss


def apart(unit: float = 1.0) -> Callable[[Any, Any], float]:
    """Return the distance of two numbers, or of two arrays in L1, in multiples of a unit."""

    def distance(first: Any, second: Any) -> float:
        one, two = np.asarray(number(first), float), np.asarray(number(second), float)
        if one.shape != two.shape:
            return math.inf
        moved = float(np.abs(one - two).sum())
        return (
            0.0
            if moved == 0
            else math.inf
            if math.isnan(moved) or not unit
            else moved / unit
        )

    return distance


def rows_apart(first: Any, second: Any) -> float:
    """Return how many rows are in one collection and not in the other, in both directions together."""
    one, two = (
        Counter(map(repr, np.asarray(rows).tolist())) for rows in (first, second)
    )
    return float((one - two).total() + (two - one).total())


def unlike(first: Any, second: Any) -> float:
    """Return 0 for what is the same, and else 1."""
    alike = np.array_equal(first, second) if is_numeric(first) else first == second
    return 0.0 if alike else 1.0
