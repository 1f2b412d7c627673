"""The interface of claims of privacy, the same for every notion of privacy.

A claim has:

- ``level``, the one number with which a lower bound is compared: epsilon, mu of
  Gaussian DP, or rho of zero-concentrated DP; and ``at(level)``, the claim of the same
  kind with another number;
- ``statements()``, the (epsilon, delta) statements of the claim; the game bets against
  all of them at once;
- ``tangents()``, at most six statements, for evidence that tests one at a time;
- ``delta_at(epsilon)``, the privacy curve: the largest delta that the claim allows at
  that epsilon;
- ``posterior_cap()``, if a fair coin chooses one of two neighbours: an upper bound of
  the posterior probability that an output can give to either of them.

A new claim is a subclass, in a file of its own, and an entry in ``KINDS`` of
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
from auditdp.numerics.arrays import Floats, is_number


class Claim:
    """Base class of the claims of privacy.

    Each subclass is a frozen dataclass of its parameters.
    """

    parameter: ClassVar[str] = "epsilon"
    """Name of the level in records, and of the field that holds it in most classes."""
    alternative: ClassVar[str]
    """Text for reports: the mechanism that makes a false claim easiest to refute."""
    bounds: ClassVar[str] = "loss"
    """Text for reports: the quantity that the level bounds."""
    recorded_by: ClassVar[tuple[str, ...]] = ()
    """Names of the arguments from which a record restores the claim, in order.

    It is empty if no such arguments suffice. A record then stores points of the curve.
    """
    is_point: ClassVar[bool] = False
    """True if the claim consists of one (epsilon, delta)."""
    of_curve: ClassVar[bool] = True
    """True if the claim is a curve that neither one point nor a mu represents."""
    levels: Sequence[float] | None = None
    """The only levels that ``at`` allows, ascending; None if it allows any level."""

    if TYPE_CHECKING:

        @property
        def source(self) -> str:
            """The paper, theorem and version that states the claim."""

        @property
        def delta(self) -> float | None:
            """The claimed delta, or None if the claim has one for every epsilon."""

    @property
    def is_its_points(self) -> bool:
        """True if the claim promises its ``statements`` and nothing more.

        A proof of the statements is then a proof of the claim.
        """
        return self.is_point

    @property
    def level(self) -> float:
        """The claimed value of the parameter, such as epsilon."""
        return float(getattr(self, self.parameter))

    def at(self, level: float) -> Self:
        """Return the same claim with another level."""
        changed: dict[str, Any] = {self.parameter: level}
        return replace(self, **changed)  # type: ignore[type-var]  # it is a dataclass

    def statements(self) -> Floats:
        """Return the (epsilon, delta) of every statement, shape (statements, 2)."""
        raise NotImplementedError

    @cached_property
    def _pair(self) -> DominatingPair:
        return DominatingPair.of(self.statements())

    def delta_at(self, epsilon: float) -> float:
        """Return the largest delta that the statements allow at an epsilon."""
        return self._pair.hockey_stick(epsilon)

    def posterior_cap(self) -> float:
        """Return an upper bound of the posterior that an output can give to one input.

        Both inputs have the prior 1/2. The base class returns 1, which always holds.
        """
        return 1.0

    def tangents(self) -> tuple[tuple[float, float], ...]:
        """Return at most six of the statements, at equal distances in their list."""
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


def check_positive(
    kind: str, name: str, value: float, *, or_zero: bool = False
) -> None:
    """Raise ``ClaimError`` unless a parameter of a claim is a finite number > 0.

    Args:
        kind: The class of the claim, for the message.
        name: The name of the parameter, for the message.
        value: The value of the parameter.
        or_zero: Whether 0 is allowed as well.
    """
    finite = is_number(value) and math.isfinite(value)
    if not finite or value < 0 or (value == 0 and not or_zero):
        raise ClaimError(
            f"{kind}: expected finite {name} {'>=' if or_zero else '>'} 0, got "
            f"{name}={value!r}"
        )
