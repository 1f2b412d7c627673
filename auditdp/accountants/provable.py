"""What accounting can prove of a claim, and what it can refute: each kind of claim, in one place.

A claim is about all mechanisms of a class. A *proof* is an exact curve or an upper bound for a class around that class, a
*loss* an exact curve or a lower bound for a class within it; an approximation or an unproved bound decides nothing.

- *ε-DP and (ε, δ)-DP* hold where a proof has at most δ at ε; they fail where a loss has more.
- *A curve that is given by points* holds where at each of them some proof, not always the same, has at most its δ; it fails
  where at any of them a loss has more.
- *A curve that is a function of ε* holds where it is itself the curve of a proof; it fails where at any of the points
  that are compared a loss has more.
- *μ-Gaussian DP* holds where the class is within μ′-Gaussian DP for a μ′ <= μ; it fails where a loss has more at any
  point, or where something has μ′ > μ.
- *(α, ε)-Rényi DP* and *ρ-zCDP* hold where a bound on D_α of the class is at most ε, on D_α/α at most ρ at all α > 1;
  they fail where something has more, or a loss has more than the claim implies at any point.

*Why.* A proof bounds δ(ε) of everything in the class, and a loss is had by something in it, so at one ε they prove what the
claim says, or its negation. A curve says so at every ε: one point above it refutes it, and it holds where all that it
says is proved. Between points nothing is: a δ(ε) below the curve at some ε may be above it at the next. Hence points
do not certify a function of ε; but where it is the curve of an accountant that is a proof for a class around, it says
no more than that proof. (α, ε)-Rényi DP implies δ(ε′) <= e^{(α−1)(ε−ε′)} (1 − 1/α)^α/(α−1), and ρ-zCDP the infimum of
that over α at ε = αρ (Canonne, Kamath & Steinke 2020, arXiv:2004.00010v3, Proposition 12): a loss above it has a
larger divergence. The converse is false: what lies below the implied curve may have a larger divergence, even an
infinite one. So these claims are certified by divergences alone (``Description.concentrated``), whatever the curves
are. Gaussian DP is a curve that says something at every ε, and is certified by the noise that something is a
post-processing of (``Description.gaussian``).
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

from flint import arb

from auditdp.accountants.accountant import Accountant
from auditdp.accountants.additive_noise import curve_of
from auditdp.accountants.concentrated import ZCDP
from auditdp.accountants.description import Description, around, within
from auditdp.claims.claim import Claim
from auditdp.claims.curves import AccountedDP, RenyiDP, ZeroConcentratedDP
from auditdp.claims.statements import GaussianDP
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import above, ball


def statements(claim: Claim) -> list[tuple[float, float]]:
    """Return (ε, δ) statements that a claim implies, δ rounded up: what is compared, and all of it that can be refuted."""
    points = [(float(epsilon), float(delta)) for epsilon, delta in claim.statements()]
    if isinstance(claim, GaussianDP | ZeroConcentratedDP | RenyiDP):
        return [(epsilon, _implied(claim, epsilon)) for epsilon, _ in points]
    return points


def _implied(claim: GaussianDP | ZeroConcentratedDP | RenyiDP, epsilon: float) -> float:
    if isinstance(claim, ZeroConcentratedDP):
        return ZCDP(claim.level).delta_at(epsilon)
    if isinstance(claim, GaussianDP):
        return above(curve_of(Fraction(claim.level) ** 2, epsilon))
    with precision():
        order = arb(claim.order)
        log = (
            (order - 1) * (arb(claim.level) - arb(epsilon))
            + order * (1 - 1 / order).log()
            - (order - 1).log()
        )
        return min(1.0, above(log.exp()))


def own_proof(claim: Claim, about: Description) -> Accountant | None:
    """Return the accountant whose curve is claimed, where it is a proof for a class around the claim's; else None."""
    curve = claim.curve if isinstance(claim, AccountedDP) else None
    proves = (
        isinstance(curve, Accountant)
        and curve.soundness.is_proof
        and within(about, curve.describes)
    )
    return curve if proves else None


def bounds(claim: Claim, described: Description) -> tuple[arb, arb]:
    """Return bounds on the parameter of a claim that the worst of a class needs: one that it has, and one that suffices.

    They are 0 and infinite where nothing is known, and for claims that consist of (ε, δ) statements.
    """
    with precision():
        if isinstance(claim, GaussianDP):
            own, squares = (
                described.gaussian,
                [one.gaussian for one in around(described)],
            )
            least = min(
                (square for square in squares if square is not None), default=None
            )
            return arb(0) if own is None else ball(
                own
            ).sqrt(), arb.pos_inf() if least is None else ball(least).sqrt()
        if not isinstance(claim, RenyiDP | ZeroConcentratedDP):
            return arb(0), arb.pos_inf()
        order = claim.order if isinstance(claim, RenyiDP) else None
        found = [one.concentrated(order) for one in around(described)]
        low, high = found[0][0], reduce(arb.min, (most for _, most in found))
        times = (
            arb(1) if order is None else arb(order)
        )  # ∞ times a number would be any number
        return (
            low * times if low.is_finite() else low,
            high * times if high.is_finite() else high,
        )


def measure(claim: Claim) -> str:
    """Return what a claim's parameter bounds, in words that follow 'has'."""
    if isinstance(claim, RenyiDP):
        return f"a Rényi divergence of order {claim.order:.6g} of"
    return "a ρ of" if isinstance(claim, ZeroConcentratedDP) else "a μ of"
