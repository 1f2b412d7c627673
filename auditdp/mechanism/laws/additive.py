"""The law of independent Gaussian noise on a vector.

The law of independent Laplace coordinates.

The law of one number whose density is piecewise constant, with or without atoms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.numerics.balls import LeftOut, ball, is_float, left_out, middle, precision

FAR = 1000
"""From here on e^(b²) is not computed: it and erfc(b) are enclosed well up to about 10 times that."""


@dataclass(frozen=True, eq=False)
class GaussianLaw:
    """N(location, σ² I). Location and σ are read as the exact rationals that the floats are.

    Args:
        location: Centre of each coordinate, shape (k,).
        sigma: Standard deviation of each coordinate, > 0.
    """

    location: Array
    sigma: float

    def __post_init__(self) -> None:
        if (
            np.ndim(self.location) != 1
            or not np.isfinite(self.location).all()
            or not 0 < self.sigma < math.inf
        ):
            raise MechanismError(
                f"GaussianLaw: expected a finite location of shape (k,) and a finite sigma > 0, got {self.location!r} "
                f"and {self.sigma!r}"
            )

    def mu_against(self, other: GaussianLaw) -> arb:
        """Return μ = ‖location − location′‖₂/σ: telling the two laws apart is exactly as hard as N(μ, 1) from N(0, 1).

        Project on the line through both centres: the other directions have the same law under either.

        Raises:
            MechanismError: If σ or the number of coordinates depends on the data.
        """
        if self.sigma != other.sigma or np.shape(self.location) != np.shape(
            other.location
        ):
            raise MechanismError(
                "GaussianLaw: sigma or the shape depends on the data; the closed form needs equal ones"
            )
        squares = [
            (Fraction(float(a)) - Fraction(float(b))) ** 2
            for a, b in zip(self.location, other.location, strict=True)
        ]
        with precision():
            return ball(sum(squares, Fraction(0))).sqrt() / ball(
                Fraction(float(self.sigma))
            )

    def log_prob(self, outputs: Array) -> NDArray[np.float64]:
        """Return the log density of each output, shape (size,)."""
        distance = (
            np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)
            - self.location
        ) / self.sigma
        constant = len(self.location) * math.log(self.sigma * math.sqrt(2 * math.pi))
        return np.asarray(-(distance**2).sum(axis=1) / 2 - constant)

    def same_as(self, other: GaussianLaw) -> bool:
        """Return whether two laws agree up to rounding."""
        mine, theirs = (np.append(law.location, law.sigma) for law in (self, other))
        return mine.shape == theirs.shape and np.allclose(
            mine, theirs, rtol=1e-9, atol=0
        )


def gaussian_delta(mu: arb, epsilon: arb) -> arb:
    """Return Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), enclosed: the exact δ(ε) between N(μ, 1) and N(0, 1).

    With a, b = (ε/μ ∓ μ/2)/√2 that is (erfc(a) − e^ε erfc(b))/2, and ε = b² − a². Where e^ε is too large to be enclosed well
    beside erfc(b), e^(b²) erfc(b) = U(1/2, 1/2, b²)/√π takes its place.

    Source: Balle & Wang (2018), arXiv:1805.06530, Theorem 8.
    """
    with precision():
        if mu == 0:
            return arb(0)
        root = arb(2).sqrt()
        near, far = ((epsilon / mu + sign * mu / 2) / root for sign in (-1, 1))
        if far < FAR:
            return (near.erfc() - epsilon.exp() * far.erfc()) / 2
        half = arb(1) / 2
        scaled = (far**2).hypgeom_u(half, half) / arb.pi().sqrt()
        return (near.erfc() - (-(near**2)).exp() * scaled) / 2


@dataclass(frozen=True, eq=False)
class LaplaceLaw:
    """Independent Laplace coordinates.

    Location and scale are read as the exact rationals that the floats are.

    Args:
        location: Centre of each coordinate, shape (k,).
        scale: Laplace scale of each coordinate, shape (k,), positive.
    """

    location: Array
    scale: Array

    def __post_init__(self) -> None:
        if (
            np.shape(self.location) != np.shape(self.scale)
            or np.ndim(self.location) != 1
        ):
            raise MechanismError(
                f"LaplaceLaw: expected location and scale of one shape (k,), got {np.shape(self.location)} and "
                f"{np.shape(self.scale)}"
            )
        if not (
            (np.asarray(self.scale) > 0)
            & np.isfinite(self.scale)
            & np.isfinite(self.location)
        ).all():
            raise MechanismError(
                f"LaplaceLaw: expected finite locations and finite scales > 0, got {self.location!r}, {self.scale!r}"
            )

    def epsilon_against(self, other: LaplaceLaw) -> Fraction:
        """Return the exact pure epsilon between the two laws, sum_i |location_i - location'_i| / scale_i.

        Each coordinate's log ratio is bounded by |difference| / scale and attains it beyond both centres; the
        coordinates are independent, so all attain it at once.

        Raises:
            MechanismError: If the scales differ (then the ratio is unbounded or not of this form).
        """
        if not np.array_equal(self.scale, other.scale):
            raise MechanismError(
                "LaplaceLaw: the scale depends on the data; the closed form needs equal scales"
            )
        total = Fraction(0)
        for a, b, s in zip(self.location, other.location, self.scale, strict=True):
            if a != b:
                total += abs(Fraction(float(a)) - Fraction(float(b))) / Fraction(
                    float(s)
                )
        return total

    def log_prob(self, outputs: Array) -> NDArray[np.float64]:
        """Return the log density of each output, shape (size,)."""
        distance = np.abs(
            np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)
            - self.location
        )
        return np.asarray(-(distance / self.scale + np.log(2 * self.scale)).sum(axis=1))

    def same_as(self, other: LaplaceLaw) -> bool:
        """Return whether two laws agree up to rounding."""
        mine, theirs = (np.array([law.location, law.scale]) for law in (self, other))
        return mine.shape == theirs.shape and np.allclose(
            mine, theirs, rtol=1e-9, atol=0
        )


@dataclass(frozen=True, eq=False)
class StepLaw:
    """The law of a number with a constant density between consecutive breaks, and atoms.

    Breaks and atoms are read as the exact rationals that they are; masses are density times exact width.

    Args:
        breaks: Increasing numbers (int, float or Fraction), m + 1 of them, or none.
        densities: Probability per unit of length between consecutive breaks, m of them: Fractions, arb balls, or floats.
        atoms: Distinct outputs of positive probability of their own.
        probabilities: Those probabilities.

    Raises:
        MechanismError: If the lengths do not fit, the breaks do not increase, an atom is listed twice, a density or
            probability is negative, or all of it cannot sum to one.
    """

    breaks: Sequence[Any] = ()
    densities: Sequence[Any] = ()
    atoms: Sequence[Any] = ()
    probabilities: Sequence[Any] = ()

    def __post_init__(self) -> None:
        steps = max(len(self.breaks) - 1, 0)
        if len(self.densities) != steps or len(self.probabilities) != len(self.atoms):
            raise MechanismError(
                f"StepLaw: {len(self.breaks)} breaks and {len(self.densities)} densities, {len(self.atoms)} atoms and "
                f"{len(self.probabilities)} probabilities; give a density per step, and a probability per atom"
            )
        if any(a >= b for a, b in zip(self.ends, self.ends[1:], strict=False)) or len(
            self.points
        ) < len(self.atoms):
            raise MechanismError(
                f"StepLaw: expected increasing breaks and distinct atoms, got {[float(x) for x in self.breaks]} and "
                f"{[float(x) for x in self.atoms]}"
            )
        masses = [*self.masses, *self.probabilities]
        if left_out(masses) is None:
            raise MechanismError(
                f"StepLaw: expected densities and probabilities >= 0 of total mass 1, got masses "
                f"{[middle(p) for p in masses]} of sum {sum(map(middle, masses)):.15g}"
            )

    @cached_property
    def ends(self) -> list[Fraction]:
        """The breaks as exact rationals."""
        return [_exact(x) for x in self.breaks]

    @cached_property
    def points(self) -> dict[Fraction, Any]:
        """The probability of each atom."""
        return dict(zip(map(_exact, self.atoms), self.probabilities, strict=True))

    @cached_property
    def masses(self) -> list[Any]:
        """The probability of each step: density times width."""
        widths = [b - a for a, b in zip(self.ends, self.ends[1:], strict=False)]
        with precision():
            return [
                density * width if isinstance(density, Fraction | int) else ball(density) * ball(width)
                if isinstance(density, arb)
                else density * float(width)
                for density, width in zip(self.densities, widths, strict=True)
            ]  # fmt: skip

    @cached_property
    def left_out(self) -> LeftOut:
        """The probability of outputs outside the steps and atoms."""
        found = left_out([*self.masses, *self.probabilities])
        assert found is not None  # checked when the law was made
        return found

    def density_between(self, start: Fraction, end: Fraction) -> arb:
        """Return the density on a stretch that no break divides; 0 outside the steps.

        What a float is off by is relative to probability 1, so it is that of its step, over the width.
        """
        for a, b, density, mass in zip(
            self.ends, self.ends[1:], self.densities, self.masses, strict=False
        ):
            if a <= start and end <= b:
                return ball(mass) / ball(b - a) if is_float(density) else ball(density)
        return arb(0)

    def log_prob(self, outputs: Array) -> Floats:
        """Return the log probability of each output that is an atom, else the log density there; shape (size,)."""
        y = np.asarray(outputs, dtype=np.float64).reshape(-1)
        levels = np.array([0.0, *map(middle, self.densities), 0.0])
        found = (
            levels[np.searchsorted([float(x) for x in self.breaks], y, side="right")]
            if len(self.breaks)
            else 0 * y
        )
        for atom, p in zip(self.atoms, self.probabilities, strict=True):
            found = np.where(y == float(atom), middle(p), found)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(found))

    def cdf(self, outputs: Array) -> Floats:
        """Return the probability of at most each output, shape (size,), in floating point."""
        y = np.asarray(outputs, dtype=np.float64).reshape(-1)
        steps = np.append(0.0, np.cumsum([middle(p) for p in self.masses]))
        below = (
            np.interp(y, [float(x) for x in self.breaks], steps)
            if len(self.breaks)
            else np.zeros(len(y))
        )
        atoms = sum(
            (
                (y >= float(a)) * middle(p)
                for a, p in zip(self.atoms, self.probabilities, strict=True)
            ),
            np.zeros(len(y)),
        )
        return np.asarray(below + atoms)

    def same_as(self, other: StepLaw) -> bool:
        """Return whether two laws agree up to rounding."""
        mine, theirs = (
            [law.ends, law.masses, list(law.points), law.probabilities]
            for law in (self, other)
        )
        return all(
            len(a) == len(b)
            and np.allclose(
                [middle(x) for x in a], [middle(x) for x in b], rtol=1e-9, atol=0
            )
            for a, b in zip(mine, theirs, strict=True)
        )


def _exact(value: Any) -> Fraction:
    if isinstance(value, Fraction):
        return value
    if not math.isfinite(value):
        raise MechanismError(
            f"StepLaw: expected finite breaks and atoms, got {value!r}; clamp the output"
        )
    return Fraction(float(value))
