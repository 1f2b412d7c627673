"""Matrix factorisation: training with noise that is correlated over the steps, as DP-FTRL adds it.

Of the gradients x_1..x_n, each clipped to norm C, C^-1 (C x + σ z) is released, z standard Gaussian: all that is known is
a post-processing of C x + σ z, chosen adaptively or not (Denisov, McMahan, Rush, Smith & Thakurta 2022, arXiv:2202.08312,
Theorem 2.1). C is lower triangular and Toeplitz with the coefficients c_0, c_1, ..., in units of the clipping norm.

A record is in k steps at most, b apart at least. With the columns c^i of C and vectors g_i, ‖g_i‖ <= 1, it moves C x by
‖Σ c^i g_iᵀ‖² = Σ <c^i, c^j> <g_i, g_j>, over the steps i, j that it is in. Two cases are exact:

- *Banded:* no more than b coefficients. Columns b apart are orthogonal, so that is Σ ‖c^i‖², and norms fall with i: it is
  the largest for the steps 0, b, 2b, ... (Choquette-Choo et al. 2023, "(Amplified) Banded Matrix Factorization",
  arXiv:2306.08153).
- *Falling:* c_0 >= c_1 >= ... >= 0. All <c^i, c^j> = Σ_s c_s c_{s+j−i}, over s < n − j, are >= 0, so that equal g_i are
  the worst; and they fall with j and with j − i, so that the same steps are (Kalinin & Lampert 2024, "Banded Square Root
  Matrix Factorization", arXiv:2405.13763).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

from auditdp.accountants.base import AccountantError, Soundness, check_count
from auditdp.accountants.description import Description
from auditdp.accountants.dp_sgd.parameters import ZERO_OUT
from auditdp.accountants.gaussian import GaussianShaped

MOST_TERMS = 10**7
"""Fractions of a sensitivity, of which a million take some three seconds."""


@dataclass(frozen=True)
class MatrixNoise(Description):
    """Training with correlated noise; neighbours differ in one record, which is zeroed out.

    Args:
        noise_multiplier: σ, over the clipping norm.
        coefficients: c_0, c_1, ... of the strategy C, c_0 > 0; those that are left out are 0.
        steps: n.
        separation: b, how many steps apart the uses of a record are at least.
        participations: k, how many uses of a record there are at most.

    Raises:
        AccountantError: If a parameter is outside its range, or the strategy is neither banded nor falling.
    """

    noise_multiplier: float
    coefficients: tuple[float, ...]
    steps: int
    separation: int
    participations: int = 1
    adjacency: ClassVar[str] = ZERO_OUT
    sampling: ClassVar[str] = "uses of a record apart"

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = type(self).__name__
        if not (self.coefficients and all(map(math.isfinite, self.coefficients)) and self.coefficients[0] > 0):
            raise AccountantError(f"{kind}: expected finite coefficients, the first > 0, got {self.coefficients!r:.60}")
        uses = min(self.participations, -(-self.steps // self.separation))
        terms = self.steps + uses * min(len(self.coefficients), self.steps)
        if terms > MOST_TERMS:
            raise AccountantError(
                f"{kind}: expected steps + participations × coefficients <= {MOST_TERMS:,}, got {terms:,}; use fewer"
            )
        falling = all(one >= other for one, other in pairwise([*self.coefficients, 0.0]))
        if len(self.coefficients) > self.separation and self.participations > 1 and not falling:
            raise AccountantError(
                f"{kind}: expected no more coefficients than separation={self.separation}, or such that fall and are >= 0, "
                f"got {len(self.coefficients)}; of others no exact sensitivity is known"
            )

    @property
    def name(self) -> str:
        """The analysis and its parameters, coefficients abridged."""
        rest = f"{self.steps}, separation={self.separation}, participations={self.participations}"
        return f"{type(self).__name__}({self.noise_multiplier:g}, {len(self.coefficients)} coefficients, steps={rest})"

    @property
    def text(self) -> str:
        """The class in a few words."""
        return (
            f"{self.steps:,} steps with noise multiplier {self.noise_multiplier:.6g}, correlated by "
            f"{len(self.coefficients):,} coefficients, of which a record is in {self.participations:,} that are "
            f"{self.separation:,} apart"
        )

    @cached_property
    def squared_sensitivity(self) -> Fraction:
        """The largest ‖C x − C x′‖², exactly."""
        used = range(0, self.steps, self.separation)[: self.participations]
        c = [Fraction(each) for each in self.coefficients[: self.steps]]
        moved = [Fraction(0)] * self.steps
        for step in used:
            for lag, coefficient in enumerate(c[: self.steps - step]):
                moved[step + lag] += coefficient
        return sum((each**2 for each in moved), Fraction(0))

    @property
    def gaussian(self) -> Fraction:
        """μ²: the square of the sensitivity over that of σ."""
        return self.squared_sensitivity / Fraction(self.noise_multiplier) ** 2

    @property
    def zcdp(self) -> Fraction:
        """ρ = μ²/2."""
        return self.gaussian / 2


@dataclass(frozen=True)
class MatrixCurve(GaussianShaped, MatrixNoise):
    """The exact curve, which is that of Gaussian noise with this sensitivity.

    >>> round(MatrixCurve(1.0, (1.0, 0.5), 10, 2, 5).epsilon_at(1e-5), 2)
    13.21
    """

    soundness: ClassVar[Soundness] = Soundness.EXACT
    source: ClassVar[str] = "Choquette-Choo et al. (2023), arXiv:2306.08153; Kalinin & Lampert (2024), arXiv:2405.13763"


def square_root(bands: int) -> tuple[float, ...]:
    """Return the first coefficients of (1 − x)^(−1/2), whose square is the matrix of prefix sums: 1, 1/2, 3/8, ...

    Source: Fichtenberger, Henzinger & Upadhyay (2023), "Constant matters", arXiv:2202.11205; banded: arXiv:2405.13763.
    """
    check_count("square_root", bands=bands)
    if bands > MOST_TERMS:
        raise AccountantError(f"square_root: expected bands <= {MOST_TERMS:,}, got bands={bands:,}; use fewer")
    found = [1.0]
    for k in range(1, bands):
        found.append(found[-1] * (2 * k - 1) / (2 * k))
    return tuple(found)
