"""The law of an output with finitely many values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from auditdp.errors import MechanismError
from auditdp.laws.balls import LeftOut, above, ball, left_out, middle, precision
from auditdp.mechanism import Array


def row_keys(outputs: Array) -> list[bytes]:
    """Return one hashable key per output: the bytes of the row as float64 (so that 1, 1.0 and True agree)."""
    rows = np.ascontiguousarray(np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)) + 0.0  # -0.0 -> 0.0
    return [row.tobytes() for row in rows]


@dataclass(frozen=True, eq=False)
class FiniteLaw:
    """The law of an output with finitely many values.

    Args:
        outcomes: All outputs of positive probability, shape (m, ...), each once; also those that underflow to 0.0.
        probabilities: Their m probabilities, as Fractions, arb balls, or floats, whose error ``balls`` names. What floats
            lack, exact evidence takes for outputs that are not listed.

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
        if self._left_out is None:
            numbers = [float(p.mid() if isinstance(p, arb) else p) for p in self.probabilities]
            raise MechanismError(
                f"FiniteLaw: expected probabilities >= 0 that sum to 1, got minimum {min(numbers, default=0.0):.3g} and "
                f"sum {sum(numbers):.15g} (Fractions must sum to 1 exactly, balls must contain 1, floats may be off by 1e-9)"
            )
        if len(self.index) != len(self.outcomes):
            raise MechanismError("FiniteLaw: an outcome is listed twice; add its probabilities up")

    @cached_property
    def floats(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The probabilities as float64, shape (m,)."""
        return np.array([middle(p) for p in self.probabilities])

    @cached_property
    def balls(self) -> list[arb]:
        """The probabilities as balls."""
        with precision():
            return [ball(p) for p in self.probabilities]

    @property
    def left_out(self) -> LeftOut:
        """The probability of outputs that are not listed."""
        assert self._left_out is not None  # checked when the law was made
        return self._left_out

    @cached_property
    def _left_out(self) -> LeftOut | None:
        return left_out(self.probabilities)

    @cached_property
    def largest(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The largest that each probability may be, and last that of an output that is not listed; shape (m + 1,)."""
        unlisted = above(self.left_out.most) if self.left_out.floats else 0.0
        return np.array([*map(above, self.balls), unlisted])

    @cached_property
    def index(self) -> dict[bytes, int]:
        """Position of each outcome by its key."""
        return {key: i for i, key in enumerate(row_keys(self.outcomes))}

    def log_prob(self, outputs: Array) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the log probability of each output, -inf for one that is not listed; shape (size,).

        Of floats it is that of the largest that they may be: a bet on a float of 0.0 would be one on a certainty.
        """
        with np.errstate(divide="ignore"):
            logs = np.log(self.largest if self.left_out.floats else np.append(self.floats, 0.0))
        return np.asarray(logs[[self.index.get(key, -1) for key in row_keys(outputs)]])

    def same_as(self, other: FiniteLaw) -> bool:
        """Return whether two laws agree up to rounding."""
        return all(
            np.allclose(np.exp(self.log_prob(each)), np.exp(other.log_prob(each)), rtol=1e-9, atol=0)
            for each in (self.outcomes, other.outcomes)
        )
