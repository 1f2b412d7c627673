"""Laplace noise on sums, on single numbers and on histograms: correct, and with the scale upside down."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from auditdp.mechanism.laws import LaplaceLaw
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.classic.noise import answers, laplace_noise
from mechanisms.rounding import laplace_scale
from mechanisms.validation import check_integer, check_positive


class LaplaceAnswers:
    """A query with independent Laplace noise of one scale; subclasses define the query.

    ``sensitivity`` is the ℓ₁ sensitivity that the noise is calibrated to, ``scale`` is sensitivity/ε. The law is that of
    real-valued noise: the rounding of doubles is not part of it (``mechanisms.classic.floating`` is about that).
    """

    epsilon: float
    sensitivity: float
    norm = "l1"

    def query(self, data: Array, rng: Rng | None = None) -> Array:
        """Return the answers without noise, shape (k,); it uses no randomness."""
        return answers(type(self).__name__, data)

    @cached_property
    def scale(self) -> float:
        """The Laplace scale sensitivity/ε, rounded towards privacy."""
        return laplace_scale(self.sensitivity, self.epsilon)

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy answers, float64, shape (size, k)."""
        location = self.query(data)
        noisy = laplace_noise((size, len(location)), rng, scale=self.scale)
        noisy += location
        return noisy

    def distribution(self, data: Array) -> LaplaceLaw:
        """Return location and scale of every coordinate."""
        location = self.query(data)
        return LaplaceLaw(location, np.full(len(location), self.scale))

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log density of each output, shape (size,)."""
        return self.distribution(data).log_prob(outputs)


@dataclass(frozen=True)
class LaplaceSum(LaplaceAnswers):
    """The sum of the answers plus Lap(sensitivity/ε); of one answer, that answer itself.

    Claimed: ε-DP where the sum changes by at most ``sensitivity``. True: exactly ε for one answer that changes by the
    sensitivity, and kε where k answers do.

    Source: Dwork, McSherry, Nissim & Smith (2006), "Calibrating Noise to Sensitivity in Private Data Analysis", TCC,
    Proposition 1.

    Args:
        epsilon: Privacy loss in nats, finite and > 0.
        sensitivity: What the noise is calibrated to, finite and > 0.
    """

    epsilon: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        check_positive("LaplaceSum", "epsilon", self.epsilon)
        check_positive("LaplaceSum", "sensitivity", self.sensitivity)

    @property
    def name(self) -> str:
        """The mechanism and its parameters."""
        return f"LaplaceSum(epsilon={self.epsilon:g}, sensitivity={self.sensitivity:g})"

    def query(self, data: Array, rng: Rng | None = None) -> Array:
        """Return the sum, shape (1,)."""
        return answers("LaplaceSum", data).sum(keepdims=True)


@dataclass(frozen=True)
class LaplaceParallel(LaplaceAnswers):
    """One answer published ``copies`` times, each with Lap(1/ε) of its own. Output: float64, shape (size, copies).

    Claimed: copies·ε-DP by composition (20 copies at ε = .005 in DP-Sniper, so .1). True: exactly that, because the
    losses add up where all outputs lie beyond both answers.

    Source: Bichsel, Steffen, Bogunovic & Vechev (2021), "DP-Sniper", S&P (LaplaceParallel).

    Args:
        epsilon: Privacy loss of one copy in nats, finite and > 0.
        copies: How many copies, >= 1.
    """

    epsilon: float = 0.005
    copies: int = 20

    def __post_init__(self) -> None:
        check_positive("LaplaceParallel", "epsilon", self.epsilon)
        check_integer("LaplaceParallel", "copies", self.copies, 1)

    @property
    def name(self) -> str:
        """The mechanism and its parameters."""
        return f"LaplaceParallel(epsilon={self.epsilon:g}, copies={self.copies})"

    @property
    def sensitivity(self) -> float:  # type: ignore[override]
        """The copies together change by this much; their noise is right for the budget copies·ε."""
        return float(self.copies)

    @cached_property
    def scale(self) -> float:
        """1/ε, rounded towards privacy."""
        return laplace_scale(1, self.epsilon)

    def query(self, data: Array, rng: Rng | None = None) -> Array:
        """Return the answer, repeated."""
        return np.repeat(answers("LaplaceParallel", data, length=1), self.copies)


@dataclass(frozen=True)
class NoisyHistogram1(LaplaceAnswers):
    """Every count plus Lap(1/ε). Input: counts, shape (k,). Output: float64, shape (size, k).

    Claimed: ε-DP where one count changes by one. True: exactly ε there, and kε where all k answers may change.

    Source: Ding et al. (2018), arXiv:1805.10277, Algorithm 9 (correct histogram).

    Args:
        epsilon: Privacy loss in nats, finite and > 0.
    """

    epsilon: float
    sensitivity: float = field(default=1.0, init=False)

    def __post_init__(self) -> None:
        check_positive("NoisyHistogram1", "epsilon", self.epsilon)

    @property
    def name(self) -> str:
        """The mechanism and its budget."""
        return f"NoisyHistogram1(epsilon={self.epsilon:g})"


@dataclass(frozen=True)
class NoisyHistogram2(LaplaceAnswers):
    """Every count plus Lap(ε): the scale is upside down. Input: counts, shape (k,). Output: float64, shape (size, k).

    Claimed: ε-DP where one count changes by one. True: exactly 1/ε there, so the claim fails for ε < 1. The noise is
    that of sensitivity ε².

    Source: Ding et al. (2018), arXiv:1805.10277, Algorithm 10 (wrong scale).

    Args:
        epsilon: The claimed privacy loss in nats, finite and > 0.
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_positive("NoisyHistogram2", "epsilon", self.epsilon)

    @property
    def name(self) -> str:
        """The mechanism and its budget."""
        return f"NoisyHistogram2(epsilon={self.epsilon:g})"

    @property
    def sensitivity(self) -> float:  # type: ignore[override]
        """The sensitivity that noise of this scale would be right for."""
        return self.epsilon**2

    @property
    def scale(self) -> float:  # type: ignore[override]
        """ε itself."""
        return float(self.epsilon)


@dataclass(frozen=True)
class PrefixSum:
    """All prefix sums of the answers with Lap(1/ε) on each. Input shape (k,). Output: float64, shape (size, k).

    Claimed: ε-DP where one answer changes by one. True: exactly ε there, and kε where all k answers change, because
    differences of neighbouring outputs give back the noisy answers, so nothing is lost by summing.

    Source: Wang, Ding, Wang, Kifer & Zhang (2019), "Proving Differential Privacy with Shadow Execution", PLDI
    (arXiv:1903.12254; PrefixSum).

    Args:
        epsilon: Privacy loss of one answer in nats, finite and > 0.
    """

    epsilon: float
    sensitivity: float = field(default=1.0, init=False)
    norm = "l1"

    def __post_init__(self) -> None:
        check_positive("PrefixSum", "epsilon", self.epsilon)

    @property
    def name(self) -> str:
        """The mechanism and its budget."""
        return f"PrefixSum(epsilon={self.epsilon:g})"

    @property
    def _noisy(self) -> NoisyHistogram1:
        """The numbers that are summed."""
        return NoisyHistogram1(self.epsilon)

    def query(self, data: Array, rng: Rng | None = None) -> Array:
        """Return the answers without noise, shape (k,)."""
        return answers("PrefixSum", data)

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent rows of noisy prefix sums, float64, shape (size, k)."""
        noisy = self._noisy(data, size, rng=rng)
        return np.cumsum(noisy, axis=1, out=noisy)

    def before_processing(self, data: Array) -> LaplaceLaw:
        """Return the law of the noisy answers, which are then summed."""
        return self._noisy.distribution(data)

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log density of each output: that of its first differences, shape (size,)."""
        return self._noisy.log_prob(np.diff(outputs, axis=1, prepend=0.0), data)
