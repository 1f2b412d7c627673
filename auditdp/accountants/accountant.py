"""The interface of accountants, and the classes of mechanisms that they describe.

An accountant is a frozen dataclass of a mechanism's parameters that *is* a privacy
curve: it converts ε to δ and back. It never receives the mechanism itself. A proof from
above rounds δ up, and its ``epsilon_at`` returns an ε at which ``delta_at`` was
evaluated and is at most δ. A proof from below rounds δ down, and returns an ε at which
``delta_at`` exceeds δ. So the inverse of a proof is a proof as well.

The parameters describe a *class*, that is a set, of mechanisms: all k-fold compositions
of (ε, δ)-DP mechanisms, for example, or all queries with a sensitivity and Gaussian
noise. The true curve of a class is that of its worst mechanism, data and neighbours. So
a bound from above for a class bounds every class within it, and a bound from below
bounds every class around it. Nothing else follows: the worst composition of (ε, δ)-DP
parts is no Gaussian noise, and its loss refutes no claim about Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, Protocol, runtime_checkable

from flint import arb

from auditdp.accountants.parameter_checks import (
    check_count,
    check_delta,
    check_epsilon,
    check_positive,
    check_rate,
)
from auditdp.accountants.root_finding import epsilon_from
from auditdp.errors import MissingExtraError
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import above, ball

ROUNDED_UP = 1e-12
"""Relative error in ε and in δ by which rounding up may raise an exact curve."""


class Soundness(StrEnum):
    """The relation of an accountant's curve to the true curve of its class.

    The first three are proofs. Their numbers are rounded outwards: in ball arithmetic,
    or in floating point with an error bound that is derived, not measured.
    """

    EXACT = "exact"
    """A proof from both sides: the class is (ε, δ)-DP, and for no smaller δ."""
    UPPER = "upper bound"
    """A proof: the class is (ε, δ)-DP. A smaller δ may hold as well."""
    LOWER = "lower bound"
    """A proof that a mechanism in the class has at least this δ at ε."""
    UNPROVED = "unproved upper bound"
    """Not a proof: an upper bound in real numbers, with an unknown rounding error."""
    APPROXIMATION = "approximation"
    """Not a proof: the number may lie above or below the true curve."""

    @property
    def is_proof(self) -> bool:
        """True if the curve is a proof that the whole class is (ε, δ)-DP."""
        return self in (Soundness.EXACT, Soundness.UPPER)

    @property
    def is_attained(self) -> bool:
        """True if the curve proves that the class has at least this δ at every ε."""
        return self in (Soundness.EXACT, Soundness.LOWER)


@runtime_checkable
class Accountant(Protocol):
    """A privacy curve of a mechanism that is described by its parameters."""

    @property
    def name(self) -> str:
        """The analysis and its parameters, written as a call in Python."""

    @property
    def soundness(self) -> Soundness:
        """The relation of the curve to the true curve of the class."""

    @property
    def describes(self) -> Description:
        """The class of mechanisms that the curve is about."""

    @property
    def adjacency(self) -> str:
        """The relation between neighbours for which the curve holds, in words."""

    @property
    def sampling(self) -> str:
        """The sampling scheme of each use; ``"none"`` if each use has all records."""

    @property
    def source(self) -> str:
        """The paper, theorem and version of the analysis, or the library."""

    def delta_at(self, epsilon: float) -> float:
        """Return δ in [0, 1] at ``epsilon`` >= 0 nats; δ never rises with ε."""

    def epsilon_at(self, delta: float) -> float:
        """Return ε in nats at ``delta`` in [0, 1], or ``inf`` if no ε suffices.

        ε never rises with ``delta``.
        """


@dataclass(frozen=True)
class CompositionPart:
    """The parts of an adaptive composition, and one curve that holds for each part."""

    count: int
    """The number of parts."""
    curve: Accountant
    """A curve that holds for each part."""


class Description:
    """A class, that is a set, of mechanisms: all mechanisms with the same parameters.

    Every Python subclass is a frozen dataclass of the parameters.

    Raises:
        AccountantError: If a parameter is outside its range. An ``int`` is a count and
            >= 1, a ``delta`` is in [0, 1], a ``rate`` in (0, 1], and every other
            ``float`` is finite and > 0. A Python subclass with other parameters checks
            them in its own ``__post_init__``.
    """

    adjacency: ClassVar[str]
    """The relation between neighbours, in words."""
    sampling: ClassVar[str] = "none"
    """The sampling scheme of each use; ``"none"`` if each use has all records."""
    words: ClassVar[str] = "{self.name}"
    """The format string of ``text``, in which ``self`` is this object."""

    def __post_init__(self) -> None:
        kind = type(self).__name__
        for name, of_type in self._types.items():
            value = getattr(self, name)
            if of_type == "int":
                check_count(kind, **{name: value})
            elif name == "delta":
                check_delta(kind, value)
            elif name == "rate":
                check_rate(kind, value)
            elif of_type == "float":
                check_positive(kind, **{name: value})

    @property
    def _types(self) -> dict[str, Any]:
        """The name of the type of each parameter, by the parameter's name."""
        parameters = fields(self)  # type: ignore[arg-type]  # every subclass is a dataclass
        return {
            each.name: getattr(each.type, "__name__", each.type) for each in parameters
        }

    @property
    def name(self) -> str:
        """The name of the Python class with its parameters, floats to six digits."""
        arguments = []
        for name, of_type in self._types.items():
            digits = "" if of_type == "int" else "g"
            arguments.append(f"{name}={getattr(self, name):{digits}}")
        return f"{type(self).__name__}({', '.join(arguments)})"

    @property
    def describes(self) -> Description:
        """This class of mechanisms without a curve, if such a description exists.

        Otherwise it is the object itself: if it has no curve, or if the parameters are
        declared with the curve, as for ``ZCDP``.
        """
        # The last dataclass among the bases declares the parameters of the family.
        kinds = type(self).__mro__
        family: Any = [k for k in kinds if "__dataclass_fields__" in vars(k)][-1]
        if type(self) is family:
            return self
        described: Description = family(
            *(getattr(self, each.name) for each in fields(family))
        )
        return described

    @property
    def text(self) -> str:
        """The class of mechanisms in a few words, which can follow 'of'."""
        return self.words.format(self=self)

    @property
    def zcdp(self) -> Fraction | None:
        """A ρ for which the class is ρ-zCDP, or None if the parameters give none."""
        return None

    @property
    def gaussian(self) -> Fraction | None:
        """The square of the least μ for which the class is μ-Gaussian DP.

        It is None if the parameters give no such μ.
        """
        return None

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return a lower and an upper bound on the supremum of D_α/α.

        D_α is a Rényi divergence, and the supremum is over the mechanisms of the class
        and their neighbours. By default the bounds are 0 and ``zcdp``, or 0 and
        infinity if ``zcdp`` is None.

        Args:
            order: α > 1; None for the supremum over all α > 1, which is the least ρ of
                zero-concentrated DP.
        """
        del order
        return arb(0), arb.pos_inf() if self.zcdp is None else ball(self.zcdp)

    @property
    def part(self) -> CompositionPart | None:
        """The parts, if the class consists of adaptive compositions; otherwise None."""
        return None

    def includes(self, other: Description) -> bool:
        """Return True if the parameters prove that ``other`` lies within this class.

        False means that no proof is known. ``within`` combines this method and
        ``wider``.
        """
        del other
        return False

    def wider(self) -> Sequence[Description]:
        """Return classes of mechanisms that contain this one, possibly none.

        They are of other Python types than this description.
        """
        return ()


class Analysis(Description):
    """A description with a privacy curve δ(ε), and the inverse of the curve.

    A subclass defines ``enclosed_delta``, or overrides ``delta_at``.
    """

    @property
    def largest_loss(self) -> float:
        """The ε in nats beyond which the curve is constant; infinite by default."""
        return math.inf

    @property
    def own_delta(self) -> float:
        """The δ at ``largest_loss`` and beyond; no ε suffices for a smaller δ."""
        return 0.0

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return a ball (an interval) that contains δ(ε), for ε < ``largest_loss``."""
        raise NotImplementedError

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up, at most 1.

        Raises:
            AccountantError: If ``epsilon`` is negative or NaN.
        """
        check_epsilon(self.name, epsilon)
        if epsilon >= self.largest_loss:
            return self.own_delta
        return self._rounded_up(epsilon)

    def _rounded_up(self, epsilon: float) -> float:
        with precision():
            return min(1.0, above(self.enclosed_delta(epsilon)))

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest ε for δ, rounded up, or ``inf`` if no ε suffices.

        Raises:
            AccountantError: If ``delta`` is not in [0, 1].
        """
        check_delta(self.name, delta)
        return epsilon_from(self.delta_at, delta, pure=self.largest_loss)


def within(narrow: Description, wide: Description) -> bool:
    """Return True if one class is proved to lie within another.

    The classes are equal, or a chain of inclusions leads from one to the other.

    >>> from auditdp.accountants import GaussianNoise, ZCDP
    >>> within(GaussianNoise(1.0), ZCDP(0.5)), within(GaussianNoise(1.0), ZCDP(0.4))
    (True, False)
    """
    return any(each == wide or wide.includes(each) for each in around(narrow))


def around(description: Description) -> Iterator[Description]:
    """Yield a class, its ``wider`` classes, their ``wider`` classes, and so on."""
    yield description
    for wide in description.wider():
        yield from around(wide)


def narrowest(descriptions: Sequence[Description]) -> Description | None:
    """Return the given class that lies within all given ones, or None if none does."""
    for narrow in descriptions:
        if all(within(narrow, wide) for wide in descriptions):
            return narrow
    return None


def failure(error: Exception) -> str:
    """Return a text about the error that an accountant raised, with a remedy."""
    if isinstance(error, MissingExtraError):
        return str(error)
    reason = f"raised {type(error).__name__}: {error}"
    remedy = "use another accountant or other parameters"
    if isinstance(error, MemoryError):
        reason = "ran out of memory"
        remedy = "use fewer uses of the data, more noise, or a machine with more memory"
    return f"{reason}; it gave no answer: {remedy}"
