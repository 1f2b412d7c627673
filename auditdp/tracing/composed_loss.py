"""The composed loss of all releases of a pair, compared with a claim.

Parts are (ε_i, δ_i) statements and Gaussian pairs of parameter μ_i, all of them about
this pair. The ε_i compose by the optimal theorem, and Gaussian pairs to √Σμ_i². If both
occur, two bounds hold and the smaller one counts: the Gaussian curve moved by Σε_i, and
the curve of zero-concentrated DP with ρ = Σμ_i²/2 + Σρ_i. The ρ_i of a statement is ε_i
tanh(ε_i/2), unless a smaller ρ_i of its noise is known.

An ε-DP pair is μ-GDP for μ = 2Φ⁻¹(e^ε/(1 + e^ε)). Its trade-off function is at least
the line 1 − e^ε α up to the point (a, a), a = 1/(1 + e^ε). This line is the chord of
the Gaussian trade-off function, which is convex, between the same two points. The other
half is the mirror image.
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
from auditdp.tracing.trace_limits import LIMITS, ROUNDING, ROUNDING_OF_SUMS

LEVELLED = PureDP | GaussianDP | ZeroConcentratedDP | RenyiDP
"""Classes of claims that are tested by their level: ε, μ, ρ or the Rényi divergence.

Other claims are tested at each of their (ε, δ) statements.
"""


@dataclass(frozen=True)
class ComposedLoss:
    """The composed loss of several releases on one pair.

    Args:
        parts: The loss of each release.
    """

    parts: tuple[Loss, ...]

    @classmethod
    def of(cls, losses: Sequence[Loss | None]) -> ComposedLoss:
        """Return the composition of losses; None and zero losses are left out."""
        return cls(tuple(loss for loss in losses if loss is not None and any(loss)))

    def times(self, factor: float) -> ComposedLoss:
        """Return a copy with ε, μ and ρ of each part, but not δ, times a factor."""
        parts = []
        for part in self.parts:
            rho = None if part.rho is None else part.rho * factor
            squared_mu = part.squared_mu * factor**2
            parts.append(Loss(part.epsilon * factor, part.delta, squared_mu, rho))
        return ComposedLoss(tuple(parts))

    @cached_property
    def statements(self) -> float:
        """Σ ε_i of the parts that are (ε_i, δ_i) statements."""
        return math.fsum(part.epsilon for part in self.parts)

    @cached_property
    def delta(self) -> float:
        """δ of all parts together: 1 − ∏(1 − δ_i)."""
        if any(part.delta >= 1 for part in self.parts):
            return 1.0
        return -math.expm1(math.fsum(math.log1p(-part.delta) for part in self.parts))

    @cached_property
    def squared_mu(self) -> float:
        """μ² of all Gaussian parts together: Σ μ_i²."""
        return math.fsum(part.squared_mu for part in self.parts)

    @cached_property
    def epsilon(self) -> float:
        """Σ ε_i, or infinity if some part is Gaussian or has a δ."""
        return math.inf if self.squared_mu > 0 or self.delta > 0 else self.statements

    @cached_property
    def rho(self) -> float:
        """ρ of zero-concentrated DP; infinite if some part has a δ."""
        if self.delta > 0 or math.isinf(self.squared_mu):
            return math.inf
        return self.squared_mu / 2 + math.fsum(map(_rho_of, self.parts))

    @property
    def _mu(self) -> float:
        """μ of Gaussian DP; infinite if some part has a δ."""
        if self.delta > 0:
            return math.inf
        others = [_mu_of(part.epsilon) for part in self.parts if part.epsilon]
        return math.hypot(math.sqrt(self.squared_mu), *others)

    @property
    def _is_unbounded(self) -> bool:
        return self.statements > LIMITS.composed_epsilon or math.isinf(self.squared_mu)

    def delta_at(self, epsilon: float) -> float:
        """Return an upper bound of δ(ε), the smallest δ of the pair at this epsilon.

        The bound is at most 1.
        """
        if self.delta >= 1 or self._is_unbounded:
            is_within = self.statements <= epsilon and not self.squared_mu
            return min(1.0, self.delta) if is_within else 1.0
        if not self.squared_mu:
            if self.statements <= epsilon * (1 + ROUNDING):
                return self.delta
            return self._delta_of_statements(epsilon)
        # Two bounds hold for a mixture of statements and Gaussian parts.
        bounds = [1.0]
        if not self.delta:
            bounds.append(ZCDP(self.rho).delta_at(epsilon))
        if epsilon >= self.statements:
            curve = GaussianCurve(1 / math.sqrt(self.squared_mu))
            gaussian = curve.delta_at(epsilon - self.statements)
            bounds.append(self.delta + (1 - self.delta) * gaussian)
        return min(bounds)

    def _delta_of_statements(self, epsilon: float) -> float:
        lossy = [part for part in self.parts if part.epsilon > 0]
        composition = HeterogeneousComposition(
            tuple(part.epsilon for part in lossy), tuple(part.delta for part in lossy)
        )
        # Parts without ε fail independently of the others.
        others = math.prod(1 - part.delta for part in self.parts if not part.epsilon)
        return 1 - (1 - composition.delta_at(epsilon)) * others

    def level(self, claim: Claim) -> float:
        """Return an upper bound of the smallest level that the losses satisfy.

        Args:
            claim: A claim whose class decides what the level is, such as ε for
                ``PureDP``. Its δ or its order is used, and its own level is not.

        Returns:
            The bound, which is infinite if no level is known to be satisfied.
        """
        if isinstance(claim, PureDP):
            return self.epsilon
        if isinstance(claim, GaussianDP):
            return self._mu
        if isinstance(claim, ZeroConcentratedDP):
            return self.rho
        if isinstance(claim, RenyiDP):
            return claim.order * self.rho
        quoted = allowed_delta(claim)
        if not quoted or self.epsilon <= 0:
            return self.epsilon
        if self.delta > quoted or self._is_unbounded:
            return math.inf
        pure = math.inf if self.squared_mu else self.statements
        return min(epsilon_from(self.delta_at, quoted, pure=pure), self.epsilon)

    def satisfies(self, claim: Claim) -> bool:
        """Return True if an upper bound of the loss on the pair is within a claim."""
        if isinstance(claim, LEVELLED):
            return self.level(claim) <= claim.level * (1 + ROUNDING)
        return not self.parts or all(
            self.delta_at(float(e)) <= float(d) * (1 + ROUNDING_OF_SUMS) + 1e-15
            for e, d in claim.statements()
        )

    def share(self, claim: Claim) -> float:
        """Return the loss divided by the claimed loss, as a rank for searches.

        It is infinite for an unbounded loss. For claims with a δ or with the curve of
        an accountant it is only an estimate.
        """
        if isinstance(claim, LEVELLED):
            return _ratio(self.level(claim), claim.level)
        unbounded = (self.statements, self.squared_mu)
        if self.delta >= 1 or any(map(math.isinf, unbounded)):
            return math.inf
        allowed = allowed_delta(claim)
        part = _ratio(self.statements, claim.level)
        if self.squared_mu and allowed:
            part += math.sqrt(self.squared_mu) / _max_mu(claim.level, allowed)
        return max(part, _ratio(self.delta, allowed))


def _ratio(loss: float, allowed: float) -> float:
    if allowed:
        return loss / allowed
    return math.inf if loss else 0.0


def _rho_of(part: Loss) -> float:
    """Return ρ of a statement: its own ``rho``, or else the ρ of every ε-DP pair."""
    return part.epsilon * math.tanh(part.epsilon / 2) if part.rho is None else part.rho


def _mu_of(epsilon: float) -> float:
    """Return the μ of Gaussian DP that every ε-DP pair satisfies."""
    if math.isinf(epsilon):
        return math.inf
    # SciPy is slow to load, so it is imported only if it is needed.
    from scipy.special import log_expit, ndtri_exp

    return float(-2 * ndtri_exp(log_expit(-epsilon)))


@lru_cache(maxsize=64)
def _max_mu(epsilon: float, delta: float) -> float:
    """Return the largest μ of a Gaussian pair that satisfies an (ε, δ) statement."""
    return 1 / GaussianCurve.sigma_for(epsilon, delta)


def allowed_delta(claim: Claim | None) -> float:
    """Return the δ that a claim states or quotes; 0 if it has none, and for None."""
    if isinstance(claim, AccountedDP):
        return float(claim.quoted or 0.0)
    return float(getattr(claim, "delta", None) or 0.0)
