"""The loss between laws of Laplace or Gaussian noise around two locations."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
from flint import arb

from auditdp.accountants.root_finding import least
from auditdp.errors import MechanismError
from auditdp.evidence.exact_losses import ROUNDING_TOLERANCE, PairLoss, verified_epsilon
from auditdp.evidence.query_differences import EXACT_INTEGERS, ROUNDING_UNITS
from auditdp.mechanism.laws import GaussianLaw, LaplaceLaw, ball, precision
from auditdp.mechanism.laws.additive import gaussian_delta
from auditdp.numerics.balls import above


def laplace_loss(p: LaplaceLaw, q: LaplaceLaw) -> PairLoss:
    """Return the exact loss between two laws of independent Laplace coordinates.

    Where a coordinate has a larger scale under P, ln P/Q has no bound on its tail: the loss is infinite. It is left open,
    with the loss of the other coordinates as a lower bound, where all scales agree to a relative 1e-12. The lower bound is
    less by what the rounding of the locations explains.

    Raises:
        MechanismError: If the numbers of coordinates differ.
    """
    if np.shape(p.scale) != np.shape(q.scale):
        raise MechanismError(
            f"LaplaceLaw: {np.size(p.scale)} coordinates and {np.size(q.scale)} on a neighbour; how many there are must not "
            "depend on the data"
        )
    same = np.asarray(p.scale) == np.asarray(q.scale)
    if not np.allclose(p.scale, q.scale, rtol=ROUNDING_TOLERANCE, atol=0):
        source = "the scales of the noise, which depend on the data, so that the log ratio of the two densities has no bound"
        return PairLoss(arb.pos_inf(), arb.pos_inf(), source)
    with precision():
        one, two = (LaplaceLaw(law.location[same], law.scale[same]) for law in (p, q))
        total = ball(one.epsilon_against(two))
        source = "the distances of the two locations in scales of the noise, summed over the coordinates"
        if not same.all():
            source += " of one scale; the scales of others agree up to rounding only, so that there is no upper bound"
        gaps = zip(one.location, two.location, one.scale, strict=True)
        low = sum(
            (
                ball(max(_gap(a, b), Fraction(0)) / Fraction(float(s)))
                for a, b, s in gaps
            ),
            arb(0),
        )
        return PairLoss(
            low.lower(), total.upper() if same.all() else arb.pos_inf(), source
        )


def _gap(a: float, b: float) -> Fraction:
    """Return how far two locations are apart, less what rounding explains: ``ROUNDING_UNITS``, but 0 for whole numbers."""
    size = max(abs(float(a)), abs(float(b)))
    whole = float(a).is_integer() and float(b).is_integer() and size < EXACT_INTEGERS
    return abs(Fraction(float(a)) - Fraction(float(b))) - (
        0 if whole else ROUNDING_UNITS * Fraction(math.ulp(size))
    )


def gaussian_loss(
    p: GaussianLaw,
    q: GaussianLaw,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
) -> PairLoss:
    """Return the loss between two Gaussian laws: no pure epsilon unless they are equal, an exact μ, and its δ(ε).

    Where σ > σ′, the log ratio grows like the square of a coordinate, P(ln P/Q > ε) falls as a power of e^-ε only, and the
    δ(ε) of every μ falls like e^-(ε/μ)²/2: no μ is large enough, and δ(ε) is left open. So are ε and μ where σ and σ′ agree
    to a relative 1e-12. Nothing is refuted by what the rounding of the locations explains.

    Raises:
        MechanismError: If the numbers of coordinates differ.
    """
    with precision():
        found = beyond = needed = None
        if p.sigma != q.sigma and len(p.location) == len(q.location):
            low = mu = arb.pos_inf()
            source = "the deviations of the noise, which depend on the data, so that no μ is large enough"
            if math.isclose(p.sigma, q.sigma, rel_tol=ROUNDING_TOLERANCE):
                low, mu = arb(0), arb(0, math.inf)
                source = "two deviations that agree up to rounding only, which leaves μ and δ open"
            if epsilon is not None:
                found = beyond = arb(0.5, 0.5)
            needed = None if delta is None else (0.0, math.inf)
            return PairLoss(
                low, arb.pos_inf(), source, found, beyond, mu, needed, least_mu=mu
            )
        mu = p.mu_against(q)
        gaps = (_gap(a, b) for a, b in zip(p.location, q.location, strict=True))
        nearest = ball(
            sum((max(gap, Fraction(0)) ** 2 for gap in gaps), Fraction(0))
        ).sqrt() / ball(Fraction(float(p.sigma)))
        if epsilon is not None:
            found = gaussian_delta(mu, arb(epsilon))
            beyond = gaussian_delta(
                nearest, arb(epsilon) * (1 + arb(ROUNDING_TOLERANCE))
            )
        if delta is not None:
            guess = least(lambda e: above(gaussian_delta(mu, arb(e))), delta)
            lower, upper = (
                verified_epsilon(partial(gaussian_delta, at), delta, guess)
                for at in (nearest, mu)
            )
            needed = lower[0], upper[1]
        source = (
            "the distance of the two locations in deviations of the noise, which is μ"
        )
        low, high = (arb(0) if at == 0 else arb.pos_inf() for at in (nearest, mu))
        return PairLoss(low, high, source, found, beyond, mu, needed, least_mu=nearest)
