"""What every claim of privacy answers, so that no auditor needs to know which notion it is auditing.

- ``level``, the one number that a lower bound is about (epsilon, or mu for Gaussian DP), and ``at(level)``, the same
  claim with another number;
- ``statements()``, the (epsilon, delta) statements that it consists of, which the game is played against, and
  ``tangents()``, a few of them, for evidence that looks at one at a time;
- ``delta_at(epsilon)``, the privacy curve: the largest delta that the claim allows at that epsilon;
- ``posterior_cap()``, how sure anybody may be of a fair coin that chose between two neighbours.

A new claim is a subclass, in a file of its own, and a line in ``CLAIMS`` of ``statements.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from auditdp.claims.dominating import DominatingPair
from auditdp.errors import ClaimError


class Claim:
    """A claim of privacy: whoever derives is a frozen dataclass of its parameters, which states what it consists of."""

    parameter: ClassVar[str] = "epsilon"
    """The name of the parameter that its level is; of records, too."""
    alternative: ClassVar[str]
    """Which mechanism is the easiest to refute it by."""
    bounds: ClassVar[str] = "loss"
    """What its level bounds."""
    recorded_by: ClassVar[tuple[str, ...]] = ()
    """The parameters by which a record gives it back, in the order of its fields; none where they do not."""
    is_point: ClassVar[bool] = False
    """Whether it consists of one (epsilon, delta)."""
    of_curve: ClassVar[bool] = True
    """Whether it is about a whole curve, of which one number says too little to be compared exactly."""
    levels: Sequence[float] | None = None
    """The only levels that there are, ascending; None where any number is one."""

    if TYPE_CHECKING:

        @property
        def source(self) -> str:
            """Where it is stated: paper, theorem, version."""

        @property
        def delta(self) -> float | None:
            """Its delta; None where it has many."""

    @property
    def is_its_points(self) -> bool:
        """Whether it promises no more than its ``statements`` do, so that a proof of these proves it."""
        return False

    @property
    def level(self) -> float:
        """The claimed number."""
        return float(getattr(self, self.parameter))

    def at(self, level: float) -> Self:
        """Return the same claim with another number."""
        changed: dict[str, Any] = {self.parameter: level}
        return replace(self, **changed)  # type: ignore[type-var]  # whoever derives is a dataclass

    def statements(self) -> NDArray[np.float64]:
        """Return the (epsilon, delta) statements that it consists of, shape (statements, 2)."""
        raise NotImplementedError

    @cached_property
    def _pair(self) -> DominatingPair:
        return DominatingPair.of(self.statements())

    def delta_at(self, epsilon: float) -> float:
        """Return the largest delta that the statements allow at an epsilon."""
        return self._pair.hockey_stick(epsilon)

    def posterior_cap(self) -> float:
        """Return 1: some delta is left at every epsilon."""
        return 1.0

    def tangents(self) -> tuple[tuple[float, float], ...]:
        """Return six of the statements, spread over the curve, or all where they are fewer."""
        points = self.statements()
        spread = np.unique(np.linspace(0, len(points) - 1, 6).astype(int))
        return tuple((float(e), float(d)) for e, d in points[spread])


class PointClaim(Claim):
    """A claim that consists of one (epsilon, delta)."""

    is_point: ClassVar[bool] = True
    of_curve: ClassVar[bool] = False

    @property
    def is_its_points(self) -> bool:
        """Whether it promises no more than its ``statements``: it is the only one."""
        return True

    def statements(self) -> NDArray[np.float64]:
        """Return the claim itself as its only (epsilon, delta) statement, shape (1, 2)."""
        return np.array([[self.level, self.delta]])

    def tangents(self) -> tuple[tuple[float, float], ...]:
        """Return the claim itself as its only (epsilon, delta) statement."""
        return ((self.level, float(self.delta or 0.0)),)


def check_positive(
    kind: str, name: str, value: float, *, or_zero: bool = False
) -> None:
    """Raise a ``ClaimError`` unless a parameter of a claim is a finite positive number, or 0 where that is one."""
    number = isinstance(
        value, int | float | np.floating | np.integer
    ) and math.isfinite(value)
    if not (number and (value > 0 or (or_zero and value == 0))):
        raise ClaimError(
            f"{kind}: expected finite {name} {'>=' if or_zero else '>'} 0, got {name}={value!r}"
        )
