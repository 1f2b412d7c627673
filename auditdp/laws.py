"""Known output laws: finite ones with exact probabilities, and independent Laplace noise.

Probabilities are exact (``fractions.Fraction``) or rigorous enclosures (``flint.arb`` balls). Plain floats are taken to
be right up to a relative error of 1e-12, so they can show a violation but cannot certify a claim that is tight.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb, ctx, fmpq

from auditdp.errors import MechanismError
from auditdp.mechanism import Array

if TYPE_CHECKING:
    from collections.abc import Iterator

PRECISION_BITS = 256
FLOAT_RELATIVE_ERROR = 1e-12


@contextmanager
def precision(bits: int = PRECISION_BITS) -> Iterator[None]:
    """Evaluate ball arithmetic inside the block with the given working precision."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def ball(value: Any) -> arb:
    """Return a ball that contains ``value``: tight for int and Fraction, 1e-12 wide (relative) for a float."""
    if isinstance(value, arb):
        return value
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    if isinstance(value, int | np.integer):
        return arb(int(value))
    return arb(float(value), abs(float(value)) * FLOAT_RELATIVE_ERROR)


def row_keys(outputs: Array) -> list[bytes]:
    """Return one hashable key per output: the bytes of the row as float64 (so that 1, 1.0 and True agree)."""
    rows = np.ascontiguousarray(np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)) + 0.0  # -0.0 -> 0.0
    return [row.tobytes() for row in rows]


@dataclass(frozen=True, eq=False)
class FiniteLaw:
    """The law of an output with finitely many values.

    Args:
        outcomes: All outputs of positive probability, shape (m, ...), each once.
        probabilities: Their m probabilities, as Fractions, arb balls, or floats.

    Raises:
        MechanismError: If the lengths differ, a probability is negative, or they cannot sum to one.
    """

    outcomes: Array
    probabilities: Sequence[Any]

    def __post_init__(self) -> None:
        if len(self.outcomes) != len(self.probabilities):
            raise MechanismError(
                f"FiniteLaw: {len(self.outcomes)} outcomes but {len(self.probabilities)} probabilities; give one each"
            )
        if any(bool(p < 0) for p in self.probabilities) or not self._can_sum_to_one():
            raise MechanismError(
                f"FiniteLaw: expected probabilities >= 0 that sum to 1, got minimum {self.floats.min():.3g} and "
                f"sum {float(self.floats.sum()):.15g} (Fractions must sum to 1 exactly, balls must contain 1)"
            )
        if len(self.index) != len(self.outcomes):
            raise MechanismError("FiniteLaw: an outcome is listed twice; add its probabilities up")

    def _can_sum_to_one(self) -> bool:
        if all(isinstance(p, Fraction | int) for p in self.probabilities):
            return bool(sum(self.probabilities) == 1)
        if any(isinstance(p, arb) for p in self.probabilities):
            with precision():
                return bool(sum(self.balls, arb(0)).contains(1))
        return bool(abs(self.floats.sum() - 1) <= 1e-9)

    @cached_property
    def floats(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The probabilities as float64, shape (m,)."""
        return np.array([float(p.mid()) if isinstance(p, arb) else float(p) for p in self.probabilities])

    @cached_property
    def balls(self) -> list[arb]:
        """The probabilities as balls."""
        with precision():
            return [ball(p) for p in self.probabilities]

    @cached_property
    def index(self) -> dict[bytes, int]:
        """Position of each outcome by its key."""
        return {key: i for i, key in enumerate(row_keys(self.outcomes))}

    def log_prob(self, outputs: Array) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the log probability of each output, -inf for one that is not listed; shape (size,)."""
        with np.errstate(divide="ignore"):
            logs = np.append(np.log(self.floats), -np.inf)
        return logs[[self.index.get(key, -1) for key in row_keys(outputs)]]


@dataclass(frozen=True, eq=False)
class LaplaceLaw:
    """Independent Laplace coordinates: what a mechanism computes before it post-processes.

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
