"""Base of the mechanisms for one number in [−1, 1]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import Envelope
from auditdp.mechanism.protocol import Array, brief
from mechanisms.backend import Backend, Rng, Values, backend_of
from mechanisms.validation import check_positive

HIGH, LOW = np.array([1.0]), np.array([-1.0])
"""The ends of the domain."""
LEAST_EPSILON = 2.0**-30
"""Smallest ε. For less, outputs are around 4/ε and their spacing as doubles is around
ε·10^-6: too coarse to be unbiased."""


class Scalar(ABC):
    """A mechanism for one number of [−1, 1].

    Input: a number, or an array of shape (1,). Output: float64, shape (size,). ``perturb`` takes any number of numbers at
    once, in any shape, and runs on numpy or torch, whichever the generator belongs to.
    """

    epsilon: float
    finite = False
    """True if the atoms are the only outputs."""

    @property
    def atoms(self) -> tuple[float, ...]:
        """The outputs that have a probability of their own."""
        return ()

    def __post_init__(self) -> None:
        check_budget(type(self).__name__, self.epsilon)

    @property
    def name(self) -> str:
        """The mechanism and its budget."""
        return f"{type(self).__name__}(epsilon={self.epsilon:g})"

    def output_range(self, data: Any) -> tuple[float, float] | None:
        """Return the least and the greatest output, whatever the number; None where there are none."""
        return None

    @abstractmethod
    def draw(self, x: Values, backend: Backend) -> Values:
        """Return one independent output for each number, in the same shape."""

    @abstractmethod
    def envelope(self) -> Envelope:
        """Return the least and the most that any number of [−1, 1] gives an output."""

    @abstractmethod
    def log_prob(self, outputs: Array, data: Any) -> Array:
        """Return the log probability or log density of each output, shape (size,)."""

    @abstractmethod
    def variance(self, x: Any) -> Any:
        """Return the variance of the output in closed form; elementwise."""

    @property
    @abstractmethod
    def largest_variance(self) -> float:
        """The published worst case of the variance over all inputs."""

    def perturb(self, values: Any, *, rng: Rng) -> Values:
        """Return one output per number, float64 in the shape of ``values``, on the generator's device.

        Raises:
            MechanismError: If a number is outside [−1, 1].
        """
        backend = backend_of(rng)
        return self.draw(inside(self.name, values, backend), backend)

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent outputs for one number, float64, shape (size,)."""
        return self.perturb(np.repeat(record(self.name, data), size), rng=rng)


def check_budget(owner: str, epsilon: float) -> None:
    """Raise unless ``epsilon`` is a finite number of at least 2^-30."""
    check_positive(owner, "epsilon", epsilon)
    if epsilon < LEAST_EPSILON:
        raise MechanismError(
            f"{owner}: expected epsilon >= {LEAST_EPSILON:.2g}, got {epsilon!r}; with less, the outputs are too large for "
            "doubles to be unbiased: perturb fewer features, or spend more"
        )


def inside(owner: str, values: Any, backend: Backend) -> Values:
    """Return values as float64 on the generator's device.

    Raises:
        MechanismError: If one is not a number of [−1, 1].
    """
    numbers = backend.array(values)
    outside = ~(abs(numbers) <= 1)
    if outside.any():
        raise MechanismError(
            f"{owner}: expected numbers of [-1, 1], got {float(numbers[outside].reshape(-1)[0])!r}; scale and clip them "
            "with bounds that are public, not taken from the data"
        )
    return numbers


def record(owner: str, data: Any, dimension: int = 1) -> NDArray[np.float64]:
    """Return one record as float64, shape (dimension,); a plain number is a record of one.

    Raises:
        MechanismError: If it has another shape.
    """
    numbers = np.atleast_1d(np.asarray(data, dtype=np.float64))
    if numbers.shape != (dimension,):
        raise MechanismError(
            f"{owner}: expected a record of {dimension} numbers, got {brief(data)}"
        )
    return numbers


def extremes(mechanism: Any, *numbers: float) -> Envelope:
    """Return the envelope of finitely many outputs whose probabilities are monotone between neighbours of these numbers.

    The least and the most are then among the laws at these numbers.
    """
    laws = [mechanism.distribution(x) for x in numbers]
    least, most, inputs = [], [], []
    for output in mechanism.atoms:
        chances = [
            dict(zip(law.outcomes.tolist(), law.probabilities, strict=True)).get(
                output, 0
            )
            for law in laws
        ]
        least.append(min(chances))
        most.append(max(chances))
        inputs.append(
            tuple(
                np.array([numbers[chances.index(extreme[-1])]])
                for extreme in (most, least)
            )
        )
    return Envelope(mechanism.atoms, least, most, inputs)


def records(owner: str, values: Values, dimension: int) -> Values:
    """Return values if they are records, shape (n, dimension).

    Raises:
        MechanismError: If they have another shape.
    """
    if values.ndim != 2 or values.shape[1] != dimension:
        raise MechanismError(
            f"{owner}: expected records, shape (n, {dimension}), got shape {tuple(values.shape)}"
        )
    return values
