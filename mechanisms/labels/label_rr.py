"""Randomised response on a label."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, precision
from auditdp.mechanism.protocol import Array, brief
from mechanisms.backend import Rng, Values, backend_of
from mechanisms.rounding import GRID
from mechanisms.validation import check_integer, check_positive

LEAST_EPSILON = 2.0**-22
MOST_CLASSES = 2**15
"""Labels are released as int16."""


@dataclass(frozen=True)
class LabelRR:
    """The true label with probability E/(E+c−1), E = e^ε, and each other one with 1/(E+c−1).

    Claimed: ε-label LDP. True, and exactly ε. Input: a label, an integer in 0..classes−1. Output: int16, shape (size,).

    Source: Sajadmanesh & Gatica-Perez (2021), "Locally Private Graph Neural Networks", CCS, arXiv:2006.05535; the
    mechanism is c-ary randomised response, Kairouz, Oh & Viswanath (2014), "Extremal Mechanisms for Local Differential
    Privacy", arXiv:1407.1338.

    Note:
        The probability of another label is rounded up to a multiple of 2^-53, and the true one has what remains, so
        that one uniform number decides and the deployed labels have exactly these probabilities.

    Args:
        epsilon: Privacy loss of the label in nats, finite and >= 2^-22 (below, rounding would exceed it).
        classes: Number of classes c, from 2 to 2^15.
    """

    epsilon: float
    classes: int

    def __post_init__(self) -> None:
        check_positive("LabelRR", "epsilon", self.epsilon)
        check_integer("LabelRR", "classes", self.classes, 2)
        if self.epsilon < LEAST_EPSILON or self.classes > MOST_CLASSES:
            raise MechanismError(
                f"LabelRR: expected epsilon >= 2^-22 and at most {MOST_CLASSES} classes, got epsilon={self.epsilon!r} and "
                f"{self.classes!r} classes; for no information at all publish nothing"
            )

    @property
    def name(self) -> str:
        """The mechanism, its budget and the number of classes."""
        return f"LabelRR(epsilon={self.epsilon:g}, classes={self.classes})"

    @cached_property
    def other(self) -> Fraction:
        """The probability of each label but the true one: 1/(E+c−1), rounded up to a multiple of 2^-53.

        Rounded up from the upper end of a ball, so that true/other <= E for certain. With r <= 2^-53 for what rounding
        adds, other/true <= E means r(1 + E(c−1)) <= (E²−1)/(E+c−1). For E <= c that follows from r <= (E − 1/E)/(2c²),
        which ε >= 2^-22 and c <= 2^15 ensure; for E > c, from r <= 3/(8c).
        """
        with precision():
            steps = GRID / (arb(float(self.epsilon)).exp() + self.classes - 1)
            return Fraction(int(steps.upper().ceil().unique_fmpz()), GRID)

    @property
    def true(self) -> Fraction:
        """The probability of the true label."""
        return 1 - (self.classes - 1) * self.other

    def _labels(self, values: Values, rng: Rng) -> Values:
        labels = backend_of(rng).array(values)
        if labels.ndim != 1 or not bool(
            ((labels >= 0) & (labels < self.classes) & (labels == labels.round())).all()
        ):
            raise MechanismError(
                f"{self.name}: expected labels of shape (n,), integers from 0 to {self.classes - 1}, got {brief(values)}; "
                "number the classes from 0"
            )
        return labels

    def _label(self, data: Any) -> int:
        return int(
            self._labels(np.asarray(data, np.float64)[None], np.random.default_rng(0))[
                0
            ]
        )

    def perturb(self, values: Values, *, rng: Rng) -> Values:
        """Return one noisy label for each of n labels, int16, shape (n,).

        The c−1 stretches of length ``other`` from 0 on are the other labels, in their order after the true one.
        """
        backend = backend_of(rng)
        labels = self._labels(values, rng)
        xp = backend.xp
        stretch = xp.asarray(
            backend.uniform(len(labels)) * GRID, dtype=xp.int64
        ) // int(self.other * GRID)
        step = xp.where(stretch < self.classes - 1, stretch + 1, 0)
        return xp.asarray((labels + step) % self.classes, dtype=xp.int16)

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy labels, int16, shape (size,)."""
        return self.perturb(
            np.repeat(np.asarray(data, np.float64)[None], size), rng=rng
        )

    def distribution(self, data: Any) -> FiniteLaw:
        """Return the exact law as Fractions."""
        label = self._label(data)
        outcomes = np.arange(self.classes, dtype=np.int16)
        return FiniteLaw(
            outcomes, [self.true if label == y else self.other for y in outcomes]
        )

    def log_prob(self, outputs: Array, data: Any) -> Array:
        """Return the log probability of each output, shape (size,)."""
        return np.where(
            np.asarray(outputs) == self._label(data),
            np.log(float(self.true)),
            np.log(float(self.other)),
        )
