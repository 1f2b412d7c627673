"""Pure, approximate and Gaussian differential privacy, and the list of all claims."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from auditdp.claims.claim import Claim, PointClaim, check_positive
from auditdp.claims.curves import AccountedDP, RenyiDP, ZeroConcentratedDP
from auditdp.errors import ClaimError
from auditdp.numerics.arrays import Floats, is_number


@dataclass(frozen=True)
class PureDP(PointClaim):
    """Pure epsilon-differential privacy: P(A) <= e^epsilon Q(A) for every event A.

    It holds in both orders of the neighbours.

    Args:
        epsilon: The claimed epsilon, in nats; finite and not negative. 0 is the claim
            that outputs do not depend on the input.
        source: The paper, theorem and version that states the claim.

    Raises:
        ClaimError: If epsilon is not a finite number >= 0.

    >>> PureDP(math.log(3)).posterior_cap()
    0.75
    """

    epsilon: float
    source: str = field(default="", kw_only=True)
    delta = 0.0
    recorded_by = ("epsilon",)
    alternative = "randomised response, where every output leaks equally"

    def __post_init__(self) -> None:
        check_positive("PureDP", "epsilon", self.epsilon, or_zero=True)

    def delta_at(self, epsilon: float) -> float:
        """Return the delta of randomised response, (e^eps0 - e^epsilon)₊/(1 + e^eps0).

        Here eps0 is the claimed epsilon. No eps0-DP pair has a larger delta.

        Source: Kairouz, Oh & Viswanath (2015), "The Composition Theorem for
        Differential Privacy", proof of Theorem 3.3: every eps0-DP pair is a
        post-processing of randomised response with eps0.
        """
        if epsilon >= self.epsilon:
            return 0.0
        # Divided by e^eps0, so that nothing overflows.
        return -math.expm1(epsilon - self.epsilon) / (1 + math.exp(-self.epsilon))

    def posterior_cap(self) -> float:
        """Return e^epsilon/(1 + e^epsilon), the largest posterior for the prior 1/2."""
        return 1 / (1 + math.exp(-self.epsilon))

    def __str__(self) -> str:
        return f"{self.epsilon:.6g}-DP"


@dataclass(frozen=True)
class ApproxDP(PointClaim):
    """(epsilon, delta)-differential privacy: P(A) <= e^epsilon Q(A) + delta for all A.

    It holds in both orders of the neighbours.

    Args:
        epsilon: The claimed epsilon, in nats; finite and not negative. With 0, delta
            bounds the total variation distance.
        delta: The claimed delta, in [0, 1). With delta = 0 this is ``PureDP``.
        source: The paper, theorem and version that states the claim.

    Raises:
        ClaimError: If epsilon is not a finite number >= 0 or delta is not in [0, 1).
    """

    epsilon: float
    delta: float
    source: str = field(default="", kw_only=True)
    recorded_by = ("epsilon", "delta")
    alternative = "the leakiest mechanism with this δ"

    def __post_init__(self) -> None:
        check_positive("ApproxDP", "epsilon", self.epsilon, or_zero=True)
        if not (is_number(self.delta) and 0 <= self.delta <= 1):
            raise ClaimError(
                f"ApproxDP: expected delta in [0, 1], got delta={self.delta!r}"
            )
        if self.delta == 1:
            raise ClaimError(
                "ApproxDP: every mechanism is (epsilon, 1)-DP, so there is nothing to audit; "
                "state delta < 1"
            )

    def delta_at(self, epsilon: float) -> float:
        """Return the largest delta that an (eps0, delta0)-DP pair can have at epsilon.

        Here eps0 and delta0 are the claimed epsilon and delta. The extreme pair reveals
        the input with probability delta0 and is randomised response with eps0 otherwise
        (Kairouz, Oh & Viswanath 2015, proof of Theorem 3.3). So its curve is delta0 +
        (1 - delta0) times the curve of ``PureDP``.
        """
        pure = PureDP(self.epsilon).delta_at(epsilon)
        return float(self.delta + (1 - self.delta) * pure)

    def posterior_cap(self) -> float:
        """Return the largest posterior of one input, for the prior 1/2.

        It is 1 if delta > 0, because an output may then reveal the input.
        """
        return PureDP(self.epsilon).posterior_cap() if self.delta == 0 else 1.0

    def __str__(self) -> str:
        return f"({self.epsilon:.6g}, {self.delta:.3g})-DP"


@dataclass(frozen=True)
class GaussianDP(Claim):
    """mu-Gaussian differential privacy.

    Neighbours are at least as hard to distinguish as N(0, 1) and N(mu, 1). A refutation
    refutes the whole curve, but not necessarily any single (epsilon, delta) statement
    that is derived from it.

    Args:
        mu: The claimed mu (sensitivity over noise standard deviation for one Gaussian
            release); finite and positive.
        source: The paper, theorem and version that states the claim.

    Raises:
        ClaimError: If mu is not a positive finite number.
    """

    mu: float
    source: str = field(default="", kw_only=True)
    delta = None
    parameter = "mu"
    recorded_by = ("mu",)
    of_curve = False
    alternative = "the Gaussian mechanism"

    def __post_init__(self) -> None:
        check_positive("GaussianDP", "mu", self.mu)

    def delta_at(self, epsilon: float) -> float:
        """Return the largest delta that the claim allows at an epsilon.

        It is Φ(-epsilon/mu + mu/2) - e^epsilon Φ(-epsilon/mu - mu/2).

        Source: Dong, Roth & Su (2022), "Gaussian Differential Privacy", Corollary 2.13
        (arXiv:1905.02383v3).
        """
        return float(self._delta(np.array(epsilon)))

    def statements(self) -> Floats:
        """Return the (epsilon, delta) of many points of the curve, shape (points, 2).

        Under N(mu, 1) the privacy loss is N(mu²/2, mu²). The epsilons begin at 0, with
        steps of 0.05 standard deviations of the loss. From three standard deviations
        above the mean loss to six, the steps are 0.2.

        Between two epsilons the statements are weaker than the curve, as if mu was
        larger: by less than 0.1 % up to three standard deviations, by about 0.5 %
        beyond.
        """
        # In standard deviations; little is left to distinguish beyond three of them.
        sparse_from = self.mu / 2 + 3
        dense = np.arange(0, sparse_from, 0.05)
        sparse = np.arange(sparse_from, sparse_from + 3.01, 0.2)
        epsilons = np.append(dense, sparse) * self.mu
        return np.stack([epsilons, self._delta(epsilons)], axis=1)

    def _delta(self, epsilons: Floats) -> Floats:
        # SciPy is slow to load.
        from scipy.special import log_ndtr

        # The difference of logarithms keeps the digits of a small δ.
        upper = log_ndtr(-epsilons / self.mu + self.mu / 2)
        lower = epsilons + log_ndtr(-epsilons / self.mu - self.mu / 2)
        return np.asarray(np.exp(upper) * -np.expm1(np.fmin(0.0, lower - upper)))

    def tangents(self) -> tuple[tuple[float, float], ...]:
        """Return six statements, for evidence that tests one at a time.

        Under N(mu, 1) the privacy loss is N(mu²/2, mu²). One statement is at epsilon =
        0 (total variation). The others are at the mean loss and up to three standard
        deviations above it.
        """
        deviations = (0.0, 0.5, 1.0, 2.0, 3.0)
        epsilons = [0.0, *(self.mu**2 / 2 + k * self.mu for k in deviations)]
        return tuple((epsilon, self.delta_at(epsilon)) for epsilon in epsilons)

    def __str__(self) -> str:
        return f"{self.mu:.6g}-GDP"


KINDS = (PureDP, ApproxDP, GaussianDP, AccountedDP, ZeroConcentratedDP, RenyiDP)
CLAIMS: dict[str, type[Claim]] = {kind.__name__: kind for kind in KINDS}
"""The classes of all claims of privacy, by the names under which records store them."""
