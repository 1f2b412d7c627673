"""The loss of all releases of a pair together, against a claim, by the accountants of this project.

Parts are (ε_i, δ_i) statements and Gaussian pairs of parameter μ_i, all of them about this pair. ε_i compose by the optimal
theorem, and Gaussian pairs to √Σμ_i². Where both occur, two bounds hold and the smaller one counts: the Gaussian
curve moved by Σε_i, and that of zero-concentrated DP, ρ = Σμ_i²/2 + Σρ_i. There ρ_i is ε_i tanh(ε_i/2) unless that of
the noise is known. An ε-DP pair is μ-GDP for μ = 2Φ⁻¹(e^ε/(1 + e^ε)): its trade-off function has the line 1 − e^ε α up to
the point (a, a), a = 1/(1 + e^ε), which is the chord of the convex Gaussian one between the same two points, and the other
half is its mirror image.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from auditdp.accountants.additive_noise import GaussianCurve
from auditdp.accountants.concentrated import ZCDP
from auditdp.accountants.root_finding import epsilon_from
from auditdp.accountants.unequal_composition import HeterogeneousComposition
from auditdp.claims.claim import Claim
from auditdp.claims.curves import AccountedDP, RenyiDP, ZeroConcentratedDP
from auditdp.claims.statements import GaussianDP, PureDP
from auditdp.tracing.noise_families import Loss

SLACK = 1e-9
"""By how much, relatively, a loss may exceed a claim by rounding."""
LARGEST = 600.0
"""ε of a part beyond which it counts as unbounded."""


@dataclass(frozen=True)
class ComposedLoss:
    """Parts that are composed.

    Args:
        parts: What each release loses on the pair.
    """

    parts: tuple[Loss, ...]

    @classmethod
    def of(cls, losses: Sequence[Loss | None]) -> ComposedLoss:
        """Return the composition of the releases that lose anything."""
        return cls(tuple(loss for loss in losses if loss is not None and any(loss)))

    def times(self, factor: float) -> ComposedLoss:
        """Return it with every loss so many times as large, but for what occurs on one input alone."""
        return ComposedLoss(
            tuple(
                Loss(
                    p.epsilon * factor,
                    p.delta,
                    p.squared_mu * factor**2,
                    None if p.rho is None else p.rho * factor,
                )
                for p in self.parts
            )
        )

    @cached_property
    def epsilon(self) -> float:
        """Σ ε_i: the whole loss where no part is Gaussian and none has a δ."""
        return math.inf if self.squared_mu > 0 or self.delta > 0 else self.statements

    @cached_property
    def statements(self) -> float:
        """Σ ε_i of the parts that are statements."""
        return math.fsum(part.epsilon for part in self.parts)

    @cached_property
    def delta(self) -> float:
        """1 − ∏(1 − δ_i)."""
        if any(part.delta >= 1 for part in self.parts):
            return 1.0
        return -math.expm1(math.fsum(math.log1p(-part.delta) for part in self.parts))

    @cached_property
    def squared_mu(self) -> float:
        """Σ μ_i²."""
        return math.fsum(part.squared_mu for part in self.parts)

    @cached_property
    def rho(self) -> float:
        """ρ of zero-concentrated DP."""
        if self.delta > 0 or math.isinf(self.squared_mu):
            return math.inf
        return self.squared_mu / 2 + math.fsum(map(_rho_of, self.parts))

    def delta_at(self, epsilon: float) -> float:
        """Return a δ such that the pair is (epsilon, δ)-indistinguishable as far as its releases go."""
        if self.delta >= 1 or self.statements > LARGEST or math.isinf(self.squared_mu):
            return (
                min(1.0, self.delta)
                if self.statements <= epsilon and not self.squared_mu
                else 1.0
            )
        if not self.squared_mu:
            return (
                self.delta
                if self.statements <= epsilon * (1 + SLACK)
                else self._of_statements(epsilon)
            )
        bounds = [1.0]
        if not self.delta:
            bounds.append(ZCDP(self.rho).delta_at(epsilon))
        if epsilon >= self.statements:
            gaussian = GaussianCurve(1 / math.sqrt(self.squared_mu)).delta_at(
                epsilon - self.statements
            )
            bounds.append(self.delta + (1 - self.delta) * gaussian)
        return min(bounds)

    def _of_statements(self, epsilon: float) -> float:
        lossy = [part for part in self.parts if part.epsilon > 0]
        rest = [part for part in self.parts if not part.epsilon]
        own = HeterogeneousComposition(
            tuple(p.epsilon for p in lossy), tuple(p.delta for p in lossy)
        ).delta_at(epsilon)
        kept = math.prod(1 - part.delta for part in rest)
        return 1 - (1 - own) * kept

    def level(self, claim: Claim) -> float:
        """Return the smallest level of a claim of this kind that the releases of the pair are seen to satisfy."""
        if isinstance(claim, PureDP):
            return self.epsilon
        if isinstance(claim, GaussianDP):
            if self.delta:
                return math.inf
            return math.hypot(
                math.sqrt(self.squared_mu),
                *(_mu_of(part.epsilon) for part in self.parts if part.epsilon),
            )
        if isinstance(claim, ZeroConcentratedDP):
            return self.rho
        if isinstance(claim, RenyiDP):
            return claim.order * self.rho
        quoted = allowed_delta(claim)
        if not quoted or self.epsilon <= 0:
            return self.epsilon
        if (
            self.delta > quoted
            or self.statements > LARGEST
            or math.isinf(self.squared_mu)
        ):
            return math.inf
        return min(
            epsilon_from(
                self.delta_at,
                quoted,
                pure=self.statements if not self.squared_mu else math.inf,
            ),
            self.epsilon,
        )

    def satisfies(self, claim: Claim) -> bool:
        """Return whether the releases of the pair keep a claim; an upper bound of their loss is compared with it."""
        if isinstance(claim, PureDP | GaussianDP | ZeroConcentratedDP | RenyiDP):
            return self.level(claim) <= claim.level * (1 + SLACK)
        if not self.parts:
            return True
        return all(
            self.delta_at(float(e)) <= float(d) * (1 + 1e-6) + 1e-15
            for e, d in claim.statements()
        )

    def share(self, claim: Claim) -> float:
        """Return a number that grows with the loss, 1 at the claim: what a search maximises, without composing curves."""
        if isinstance(claim, PureDP | GaussianDP | ZeroConcentratedDP | RenyiDP):
            level = self.level(claim)
            return level / claim.level if claim.level else (math.inf if level else 0.0)
        if (
            self.delta >= 1
            or math.isinf(self.statements)
            or math.isinf(self.squared_mu)
        ):
            return math.inf
        allowed = allowed_delta(claim)
        spent = self.delta / allowed if allowed else (math.inf if self.delta else 0.0)
        mu = (
            math.sqrt(self.squared_mu) / _mu_within(claim.level, allowed)
            if self.squared_mu and allowed
            else 0.0
        )
        statements = (
            self.statements / claim.level
            if claim.level
            else (math.inf if self.statements else 0.0)
        )
        return max(statements + mu, spent)


def _rho_of(part: Loss) -> float:
    """Return ρ of a statement: its own where that is known, else that of every (ε, 0) statement."""
    return part.epsilon * math.tanh(part.epsilon / 2) if part.rho is None else part.rho


def _mu_of(epsilon: float) -> float:
    """Return the μ of Gaussian DP that every ε-DP pair satisfies."""
    if math.isinf(epsilon):
        return math.inf
    from scipy.special import (
        log_expit,
        ndtri_exp,
    )  # slow to load: only where it is needed

    return float(-2 * ndtri_exp(log_expit(-epsilon)))


@lru_cache(maxsize=64)
def _mu_within(epsilon: float, delta: float) -> float:
    """Return the largest μ of Gaussian noise within an (ε, δ) statement."""
    return 1 / GaussianCurve.sigma_for(epsilon, delta)


def allowed_delta(claim: Claim | None) -> float:
    """Return the delta that a claim states, or that its curve is quoted at; 0 for claims without one."""
    delta = (
        claim.quoted
        if isinstance(claim, AccountedDP)
        else getattr(claim, "delta", None)
    )
    return float(delta or 0.0)
