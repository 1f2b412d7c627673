"""Primitives: functions of libraries that add noise to a value in one call.

The trace does not observe the draws of a primitive. A call is one release, and the
parameters of the primitive state its law.
"""

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
from auditdp.tracing.noise import places_of, settled
from auditdp.tracing.noise_families import DeclaredLoss, Loss, NoiseLaw
from auditdp.tracing.patches import Patches
from auditdp.tracing.sites import here
from auditdp.tracing.watched_run import Active, WatchedRun, in_run

Law = tuple[NoiseLaw, Any]
"""Law of the noise of a call, and the value that the noise is added to."""
Read = Callable[..., Law]
"""Function that returns the ``Law`` of a call, given the arguments of the call.

The object of a method comes first.
"""


@dataclass(frozen=True)
class Library:
    """The primitives of a library.

    Attributes:
        module: Name of the module that has to be imported.
        package: Name of the installed package.
        versions: Prefixes of the versions that contract tests were run with. The
            primitives of other versions are opaque.
        primitives: For each primitive, the function that returns the law of a call. The
            key is the path of the primitive below the module.
    """

    module: str
    package: str
    versions: tuple[str, ...]
    primitives: Mapping[str, Read]

    @property
    def why(self) -> str:
        """The reason why its primitives are opaque; "" for a tested version."""
        version = importlib.metadata.version(self.package)
        if any(f"{version}.".startswith(f"{each}.") for each in self.versions):
            return ""
        return f"is of {self.package} {version}; the known versions are {', '.join(self.versions)}"

    def watch(self, patches: Patches, active: Active) -> None:
        """Replace the primitives whose modules are imported.

        Args:
            patches: The replacements, which undo themselves later.
            active: Function that returns the run under way in this thread, or None.
        """
        for path, read in self.primitives.items():
            *parents, name = path.split(".")
            owner: Any = sys.modules[self.module]
            for part in parents:
                owner = getattr(owner, part, None)
            if hasattr(owner, name):
                function = getattr(owner, name)
                call = functools.partial(_called, path, function, read, self.why)
                replaced = functools.wraps(function)(in_run(function, active, call))
                patches.attribute(owner, name, replaced)


def _called(
    path: str,
    function: Callable[..., Any],
    read: Read,
    why: str,
    run: WatchedRun,
    *arguments: Any,
    **keywords: Any,
) -> Any:
    """Call a primitive, record the release, and return its result.

    Args:
        path: Path of the primitive, which names its draw.
        function: The primitive.
        read: Function that returns the law of the call.
        why: Reason why the release is opaque; empty if it is understood.
        run: The run.
        arguments: Positional arguments of the call.
        keywords: Its keyword arguments.
    """
    arguments = tuple(settled(arguments, "is given to a library"))
    result, site = run.unwatched(function, *arguments, **keywords)(), here()
    law, value = read(*arguments, **keywords)
    is_declared = law.declared is not None
    # A declared distance takes the inputs as they are, which may be no numbers.
    if not is_declared:
        value = number(value)
    draw = run.draw(path, lambda: result, law, site, location=value)
    terms = () if is_declared else (Term(draw, places_of(result)),)
    plain = np.asarray(result) if isinstance(result, list) else result
    released = run.release(NOISY, law, value, plain, site, terms, why=why)
    if isinstance(result, list):
        return released.tolist()
    if not isinstance(result, float | int):
        return released
    # On the neighbour a number may have another type than its noise: it is returned as
    # it was recorded.
    last = run.traced.releases[-1]
    if run.record is None or last.recorded is None or last.number in run.forced:
        return released
    return run.record.releases[last.recorded].result


def declared(
    name: str,
    distance: Callable[[Any, Any], float],
    loss: Callable[[float], Loss | None],
    *parameters: Any,
) -> NoiseLaw:
    """Return the law of a primitive whose library declares its loss.

    Args:
        name: Name of the primitive in sentences.
        distance: Function that returns the distance of two inputs of the primitive.
        loss: Function of a distance: the loss, or None if the loss is unknown.
        parameters: Parameters of the primitive. If they differ between the inputs, the
            loss is unbounded.
    """
    return NoiseLaw(name, 1.0, repr(parameters), DeclaredLoss(distance, loss))


def of_groups(epsilon: float, delta: float = 0.0) -> Callable[[float], Loss]:
    """Return the function from a distance to a loss, given the (ε, δ) at distance 1.

    By group privacy the loss at distance k is (kε, δ(e^kε − 1)/(e^ε − 1)). A distance
    is rounded up to a whole number k.

    Source: Vadhan (2017), "The Complexity of Differential Privacy", Lemma 2.2, the sum
    in its proof.
    """

    def loss(distance: float) -> Loss:
        # Rounding must not make a whole distance one larger.
        k = math.ceil(distance * (1 - 1e-9)) if math.isfinite(distance) else math.inf
        # The exponential would overflow.
        if k * epsilon > 700:
            return Loss(k * epsilon, 1.0 if delta else 0.0)
        times = math.expm1(k * epsilon) / math.expm1(epsilon) if epsilon else k
        return Loss(k * epsilon, min(delta * times, 1.0))

    return loss


def apart(unit: float = 1.0) -> Callable[[Any, Any], float]:
    """Return a function of two values: their L1 distance in units of ``unit``.

    The distance is infinite for values of different shapes, for NaN, and for different
    values if the unit is 0.
    """

    def distance(first: Any, second: Any) -> float:
        one, two = np.asarray(number(first), float), np.asarray(number(second), float)
        if one.shape != two.shape:
            return math.inf
        moved = float(np.abs(one - two).sum())
        if moved == 0:
            return 0.0
        if math.isnan(moved) or not unit:
            return math.inf
        return moved / unit

    return distance


def rows_apart(first: Any, second: Any) -> float:
    """Return the number of rows that only one of two collections has.

    Equal rows count as often as they occur. The order of rows does not matter.
    """
    one, two = (
        Counter(map(repr, np.asarray(rows).tolist())) for rows in (first, second)
    )
    return float((one - two).total() + (two - one).total())


def unlike(first: Any, second: Any) -> float:
    """Return the discrete distance of two values: 0 if they are equal, else 1."""
    alike = np.array_equal(first, second) if is_numeric(first) else first == second
    if alike:
        return 0.0
    return 1.0
