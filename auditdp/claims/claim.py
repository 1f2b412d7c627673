"""The interface of claims of privacy, the same for every notion.

- ``level``, the one number that a lower bound is about (epsilon, or mu for Gaussian
  DP), and ``at(level)``, the same claim with another number;
- ``statements()``, the (epsilon, delta) statements of the claim, which the game is
  played against, and ``tangents()``, at most six of them, for evidence that tests one
  at a time;
- ``delta_at(epsilon)``, the privacy curve: the largest delta that the claim allows at
  that epsilon;
- ``posterior_cap()``, the largest posterior probability of a fair coin that chose
  between two neighbours.

A new claim is a subclass, in a file of its own, and a line in ``CLAIMS`` of
``statements.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from auditdp.claims.dominating import DominatingPair
from auditdp.errors import ClaimError
from auditdp.numerics.arrays import Floats


class Claim:
    """A claim of privacy; every subclass is a frozen dataclass of its parameters."""

    parameter: ClassVar[str] = "epsilon"
    """The name of the parameter that its level is, also in records."""
    alternative: ClassVar[str]
    """The mechanism by which it is the easiest to refute, in words."""
    bounds: ClassVar[str] = "loss"
    """The quantity that its level bounds."""
    recorded_by: ClassVar[tuple[str, ...]] = ()
    """The parameters from which a record restores it, in order, if they suffice."""
    is_point: ClassVar[bool] = False
    """True if it consists of one (epsilon, delta)."""
    of_curve: ClassVar[bool] = True
    """True if it is about a whole curve, which one number does not represent."""
    levels: Sequence[float] | None = None
    """The only possible levels, ascending; None if any number is one."""

    if TYPE_CHECKING:

        @property
        def source(self) -> str:
            """The paper, theorem and version that states the claim."""

        @property
        def delta(self) -> float | None:
            """Its delta; None if it has many."""

    @property
    def is_its_points(self) -> bool:
        """True if a proof of its ``statements`` proves it, as it promises no more."""
        return self.is_point

    @property
    def level(self) -> float:
        """The claimed number."""
        return float(getattr(self, self.parameter))

    def at(self, level: float) -> Self:
        """Return the same claim with another number."""
        changed: dict[str, Any] = {self.parameter: level}
        return replace(self, **changed)  # type: ignore[type-var]  # it is a dataclass

    def statements(self) -> Floats:
        """Return its (epsilon, delta) statements, shape (statements, 2)."""
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
        """Return six of the statements, spread over the curve, or fewer."""
        points = self.statements()
        spread = np.unique(np.linspace(0, len(points) - 1, 6).astype(int))
        return tuple((epsilon, delta) for epsilon, delta in points[spread].tolist())


class PointClaim(Claim):
    """A claim that consists of one (epsilon, delta)."""

    is_point = True
    of_curve = False

    def statements(self) -> Floats:
        """Return the claim itself as its only statement, shape (1, 2)."""
        return np.array([[self.level, self.delta]], dtype=np.float64)


def is_number(value: object) -> bool:
    """Return True if a value is a real number, of Python or of NumPy."""
    return isinstance(value, int | float | np.floating | np.integer)


def check_positive(
    kind: str, name: str, value: float, *, or_zero: bool = False
) -> None:
    """Raise a ``ClaimError`` unless a parameter of a claim is finite and positive.

    With ``or_zero``, 0 is allowed as well.
    """
    finite = is_number(value) and math.isfinite(value)
    if not finite or value < 0 or (value == 0 and not or_zero):
        raise ClaimError(
            f"{kind}: expected finite {name} {'>=' if or_zero else '>'} 0, got "
            f"{name}={value!r}"
        )
