"""What accountants speak of: classes of mechanisms, described by parameters, and which class lies within which.

The true curve of a class is that of its worst mechanism, data and neighbours: of all k-fold compositions of (ε, δ)-DP
mechanisms, say, or of all queries with a sensitivity and Gaussian noise. So what bounds a class from above bounds every
class within it, and what bounds a class from below bounds every class around it. Nothing else follows: the worst
composition of (ε, δ)-DP parts is no Gaussian noise, and its loss refutes no claim about Gaussian noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

from flint import arb

from auditdp.accountants.accountant import (
    Accountant,
    check_count,
    check_delta,
    check_positive,
    check_rate,
)
from auditdp.numerics.balls import ball

CHECKS = {"delta": check_delta, "rate": check_rate}


@dataclass(frozen=True)
class CompositionPart:
    """Parts of which a mechanism is an adaptive composition: how many there are, and a curve that holds for each."""

    count: int
    curve: Accountant


class Description:
    """A class of mechanisms. Whoever derives is a frozen dataclass of the parameters, and equal if they are equal.

    Raises:
        AccountantError: If a parameter is outside its range: whole numbers are counts and >= 1, others finite and > 0, but
            for a ``delta`` in [0, 1] and a ``rate`` in (0, 1]; whoever takes others has a ``__post_init__`` of its own.
    """

    adjacency: ClassVar[str]
    """Who is a neighbour."""
    sampling: ClassVar[str] = "none"
    """How records are drawn for each use of the data, ``"none"`` where all are used."""
    words: ClassVar[str] = "{self.name}"
    """The class in a few words, which follow 'of'."""

    def __post_init__(self) -> None:
        kind = type(self).__name__
        for key, of_type in self._types.items():
            value = getattr(self, key)
            if of_type == "int":
                check_count(kind, **{key: value})
            elif key in CHECKS:
                CHECKS[key](kind, value)
            elif of_type == "float":
                check_positive(kind, **{key: value})

    @property
    def _types(self) -> dict[str, Any]:
        """The parameters with the names of their types."""
        of_self = fields(self)  # type: ignore[arg-type]  # whoever derives is a dataclass
        return {
            field.name: getattr(field.type, "__name__", field.type) for field in of_self
        }

    @property
    def name(self) -> str:
        """The class or the analysis, and its parameters, floats to six digits."""
        given = (
            f"{key}={format(getattr(self, key), '' if of == 'int' else 'g')}"
            for key, of in self._types.items()
        )
        return f"{type(self).__name__}({', '.join(given)})"

    @property
    def describes(self) -> Description:
        """The class of mechanisms: the parameters without an analysis of them."""
        family: Any = next(
            kind for kind in type(self).__mro__ if Description in kind.__bases__
        )
        return (
            self
            if type(self) is family
            else family(*(getattr(self, field.name) for field in fields(family)))
        )

    @property
    def text(self) -> str:
        """``words``, with the parameters."""
        return self.words.format(self=self)

    @property
    def zcdp(self) -> Fraction | None:
        """A ρ for which all that is described is ρ-zCDP; None where the parameters give none."""
        return None

    @property
    def gaussian(self) -> Fraction | None:
        """The square of a μ for which all that is described is μ-Gaussian DP; None where the parameters give none."""
        return None

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return bounds on the largest D_α/α, a Rényi divergence over its order, of all that is described.

        The first is a proof that something that is described has so much (its supremum counts as attained), the second
        that nothing has more. By default nothing is known but ``zcdp``.

        Args:
            order: α > 1; None for the supremum over all α > 1, which is the least ρ of zero-concentrated DP.
        """
        del order
        return arb(0), arb.pos_inf() if self.zcdp is None else ball(self.zcdp)

    @property
    def part(self) -> CompositionPart | None:
        """The parts of which all that is described is an adaptive composition; None where it is no composition."""
        return None

    def includes(self, other: Description) -> bool:
        """Return whether a comparison of the parameters proves that another class lies within this one."""
        del other
        return False

    def wider(self) -> Sequence[Description]:
        """Return classes of other descriptions that contain this one."""
        return ()


class Repeated:
    """A mechanism of equal uses of the data."""

    steps: int
    """How many there are, unless ``uses`` says otherwise."""

    @property
    def uses(self) -> int:
        """How many uses add up."""
        return self.steps


def within(narrow: Description, wide: Description) -> bool:
    """Return whether it is proved that one class lies within another: they are equal, or a chain of inclusions leads up.

    >>> from auditdp.accountants.additive_noise import GaussianNoise
    >>> from auditdp.accountants.concentrated import ZCDP
    >>> within(GaussianNoise(1.0), ZCDP(0.5)), within(GaussianNoise(1.0), ZCDP(0.4))
    (True, False)
    """
    return any(between == wide or wide.includes(between) for between in around(narrow))


def around(description: Description) -> Iterator[Description]:
    """Yield a class and the classes of other descriptions that contain it: what bounds them from above bounds it."""
    yield description
    for wide in description.wider():
        yield from around(wide)


def narrowest(descriptions: Sequence[Description]) -> Description | None:
    """Return the class that lies within all of them; None where there is none, so that they speak of different things."""
    return next(
        (
            one
            for one in descriptions
            if all(within(one, other) for other in descriptions)
        ),
        None,
    )
