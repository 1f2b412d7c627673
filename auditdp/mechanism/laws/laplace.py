"""The law of independent Laplace coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array


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
        if np.shape(self.location) != np.shape(self.scale) or np.ndim(self.location) != 1:
            raise MechanismError(
                f"LaplaceLaw: expected location and scale of one shape (k,), got {np.shape(self.location)} and "
                f"{np.shape(self.scale)}"
            )
        if not ((np.asarray(self.scale) > 0) & np.isfinite(self.scale) & np.isfinite(self.location)).all():
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
            raise MechanismError("LaplaceLaw: the scale depends on the data; the closed form needs equal scales")
        total = Fraction(0)
        for a, b, s in zip(self.location, other.location, self.scale, strict=True):
            if a != b:
                total += abs(Fraction(float(a)) - Fraction(float(b))) / Fraction(float(s))
        return total

    def log_prob(self, outputs: Array) -> NDArray[np.float64]:
        """Return the log density of each output, shape (size,)."""
        distance = np.abs(np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1) - self.location)
        return np.asarray(-(distance / self.scale + np.log(2 * self.scale)).sum(axis=1))

    def same_as(self, other: LaplaceLaw) -> bool:
        """Return whether two laws agree up to rounding."""
        mine, theirs = (np.array([law.location, law.scale]) for law in (self, other))
        return mine.shape == theirs.shape and np.allclose(mine, theirs, rtol=1e-9, atol=0)
