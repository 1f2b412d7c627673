"""Laws of numbers: Gaussian and Laplace noise, and piecewise constant densities.

A float as a parameter stands for the exact rational number that it stores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.numerics.balls import LeftOut, ball, is_float, left_out, middle, precision


def exact_gaps(first: Any, second: Any) -> list[Fraction]:
    """Return |a − b| of each coordinate of the locations of two laws, exactly."""
    both = zip(first.location, second.location, strict=True)
    return [abs(Fraction(float(a)) - Fraction(float(b))) for a, b in both]


@dataclass(frozen=True, eq=False)
class GaussianLaw:
    """Law of independent Gaussian coordinates, N(location, σ² I).

    Args:
        location: Centre of each coordinate, shape (k,).
        sigma: Standard deviation of every coordinate, > 0.

    Raises:
        MechanismError: If the shape of an argument is wrong, or a value is not allowed.
    """

    location: Array
    sigma: float

    def __post_init__(self) -> None:
        is_vector = np.ndim(self.location) == 1 and np.isfinite(self.location).all()
        if not is_vector or not 0 < self.sigma < math.inf:
            raise MechanismError(
                f"GaussianLaw: expected a finite location of shape (k,) and a finite sigma > 0, got {self.location!r} "
                f"and {self.sigma!r}"
            )

    def mu_against(self, other: GaussianLaw) -> arb:
        """Return an enclosure of μ = ‖location − location′‖₂/σ.

        The two laws are exactly as hard to distinguish as N(μ, 1) and N(0, 1): project
        on the line through both centres; the other directions have the same law under
        both.

        Raises:
            MechanismError: If the two laws differ in σ or in the number of coordinates.
        """
        same_shape = np.shape(self.location) == np.shape(other.location)
        if self.sigma != other.sigma or not same_shape:
            raise MechanismError(
                "GaussianLaw: sigma or the shape depends on the data; the closed form needs equal ones"
            )
        squares = (gap**2 for gap in exact_gaps(self, other))
        with precision():
            distance = ball(sum(squares, Fraction(0))).sqrt()
            return distance / ball(Fraction(float(self.sigma)))

    def log_prob(self, outputs: Array) -> Floats:
        """Return the log density of each output, shape (size,)."""
        distance = (_vectors(outputs) - self.location) / self.sigma
        constant = len(self.location) * math.log(self.sigma * math.sqrt(2 * math.pi))
        return np.asarray(-(distance**2).sum(axis=1) / 2 - constant)


def _vectors(outputs: Array) -> Floats:
    return np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)


def gaussian_delta(mu: arb, epsilon: arb) -> arb:
    """Return an enclosure of the exact δ(ε) between N(μ, 1) and N(0, 1).

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ). With a, b = (ε/μ ∓ μ/2)/√2 it equals
    (erfc(a) − e^ε erfc(b))/2, and ε = b² − a². If e^ε is too large to be enclosed well
    beside erfc(b), e^(b²) erfc(b) = U(1/2, 1/2, b²)/√π takes its place.

    Source: Balle & Wang (2018), arXiv:1805.06530, Theorem 8.
    """
    with precision():
        if mu == 0:
            return arb(0)
        root = arb(2).sqrt()
        near, far = ((epsilon / mu + sign * mu / 2) / root for sign in (-1, 1))
        # e^(b²) and erfc(b) are enclosed well up to b of about 10,000.
        if far < 1000:
            return (near.erfc() - epsilon.exp() * far.erfc()) / 2
        half = arb(1) / 2
        scaled = (far**2).hypgeom_u(half, half) / arb.pi().sqrt()
        return (near.erfc() - (-(near**2)).exp() * scaled) / 2


@dataclass(frozen=True, eq=False)
class LaplaceLaw:
    """Law of independent Laplace coordinates.

    Args:
        location: Centre of each coordinate, shape (k,).
        scale: Laplace scale of each coordinate, shape (k,), positive.

    Raises:
        MechanismError: If the shape of an argument is wrong, or a value is not allowed.
    """

    location: Array
    scale: Array

    def __post_init__(self) -> None:
        location, scale = np.asarray(self.location), np.asarray(self.scale)
        if location.shape != scale.shape or location.ndim != 1:
            raise MechanismError(
                f"LaplaceLaw: expected location and scale of one shape (k,), got {location.shape} and "
                f"{scale.shape}"
            )
        finite = np.isfinite(scale) & np.isfinite(location)
        if not ((scale > 0) & finite).all():
            raise MechanismError(
                f"LaplaceLaw: expected finite locations and finite scales > 0, got {self.location!r}, {self.scale!r}"
            )

    def epsilon_against(self, other: LaplaceLaw) -> Fraction:
        """Return the exact pure epsilon of two laws, Σ |location − location'|/scale.

        The log ratio of the densities of a coordinate is at most |difference|/scale,
        and equal to it beyond both centres. The coordinates are independent, so all
        attain their largest ratio at once.

        Raises:
            MechanismError: If the scales differ. The ratio is then unbounded, or has
                another form.
        """
        if not np.array_equal(self.scale, other.scale):
            raise MechanismError(
                "LaplaceLaw: the scale depends on the data; the closed form needs equal scales"
            )
        losses = zip(exact_gaps(self, other), self.scale, strict=True)
        terms = (gap / Fraction(float(scale)) for gap, scale in losses if gap)
        return sum(terms, Fraction(0))

    def log_prob(self, outputs: Array) -> Floats:
        """Return the log density of each output, shape (size,)."""
        distance = np.abs(_vectors(outputs) - self.location)
        return np.asarray(-(distance / self.scale + np.log(2 * self.scale)).sum(axis=1))


@dataclass(frozen=True, eq=False)
class StepLaw:
    """Law of a number with a piecewise constant density, and with atoms.

    A step is an interval between consecutive breaks. Its probability is its density
    times its exact width.

    Args:
        breaks: Increasing numbers (int, float or Fraction), m + 1 of them, or none.
        densities: Probability per unit of length on each of the m steps: Fractions, arb
            balls, or floats.
        atoms: Distinct outputs that have a positive probability.
        probabilities: The probability of each atom.

    Raises:
        MechanismError: If the lengths do not fit, the breaks do not increase, an atom
            is listed twice, a break or atom is not finite, a density or probability is
            negative, or the total mass cannot be one.
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
        # Exact rationals are compared, so that no rounding hides an overlap.
        increasing = all(a < b for a, b in pairwise(self.ends))
        if not increasing or len(self.points) < len(self.atoms):
            raise MechanismError(
                f"StepLaw: expected increasing breaks and distinct atoms, got {[float(x) for x in self.breaks]} and "
                f"{[float(x) for x in self.atoms]}"
            )
        if self._left_out is None:
            masses = [middle(p) for p in self._all_masses]
            raise MechanismError(
                f"StepLaw: expected densities and probabilities >= 0 of total mass 1, got masses "
                f"{masses} of sum {sum(masses):.15g}"
            )

    @cached_property
    def ends(self) -> list[Fraction]:
        """The breaks as exact rationals."""
        return [_exact(x) for x in self.breaks]

    @cached_property
    def points(self) -> dict[Fraction, Any]:
        """The probability of each atom, by its exact value."""
        return dict(zip(map(_exact, self.atoms), self.probabilities, strict=True))

    @cached_property
    def masses(self) -> list[Any]:
        """The probability of each step: density times width.

        It is a Fraction, a ball or a float, as the density is.
        """
        found: list[Any] = []
        with precision():
            for density, (a, b) in zip(
                self.densities, pairwise(self.ends), strict=True
            ):
                width = b - a
                # Fractions stay exact; balls and floats carry their errors.
                if isinstance(density, Fraction | int):
                    found.append(density * width)
                elif isinstance(density, arb):
                    found.append(ball(density) * ball(width))
                else:
                    found.append(density * float(width))
        return found

    @property
    def _all_masses(self) -> list[Any]:
        return [*self.masses, *self.probabilities]

    @cached_property
    def _left_out(self) -> LeftOut | None:
        return left_out(self._all_masses)

    @property
    def left_out(self) -> LeftOut:
        """Bound on the probability of outputs outside the steps and atoms."""
        # Checked when the law was made.
        assert self._left_out is not None
        return self._left_out

    def density_between(self, start: Fraction, end: Fraction) -> arb:
        """Return the density on an interval that no break divides; 0 outside the steps.

        The assumed error of floats is stated for probabilities. So the error of a float
        density is that of the probability of its step, divided by the width.
        """
        steps = zip(pairwise(self.ends), self.densities, self.masses, strict=True)
        for (a, b), density, mass in steps:
            if a <= start and end <= b:
                return ball(mass) / ball(b - a) if is_float(density) else ball(density)
        return arb(0)

    def log_prob(self, outputs: Array) -> Floats:
        """Return log probabilities of outputs that are atoms, else log densities.

        The shape is (size,). An output outside the steps and atoms has -inf.
        """
        y = np.asarray(outputs, dtype=np.float64).reshape(-1)
        found = np.zeros(len(y))
        if len(self.breaks):
            levels = np.array([0.0, *map(middle, self.densities), 0.0])
            found = levels[np.searchsorted(self._float_breaks, y, side="right")]
        # An atom has a probability, which precedes any density.
        for atom, p in zip(self.atoms, self.probabilities, strict=True):
            found = np.where(y == float(atom), middle(p), found)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(found))

    @property
    def _float_breaks(self) -> list[float]:
        return [float(x) for x in self.breaks]

    def cdf(self, outputs: Array) -> Floats:
        """Return P(Y <= y) for each output y, shape (size,), in floating point."""
        y = np.asarray(outputs, dtype=np.float64).reshape(-1)
        below = np.zeros(len(y))
        if len(self.breaks):
            steps = np.append(0.0, np.cumsum([middle(p) for p in self.masses]))
            below = np.interp(y, self._float_breaks, steps)
        atoms = np.zeros(len(y))
        for atom, p in zip(self.atoms, self.probabilities, strict=True):
            atoms += (y >= float(atom)) * middle(p)
        return np.asarray(below + atoms)


def _exact(value: Any) -> Fraction:
    if isinstance(value, Fraction):
        return value
    if not math.isfinite(value):
        raise MechanismError(
            f"StepLaw: expected finite breaks and atoms, got {value!r}; clamp the output"
        )
    return Fraction(float(value))
