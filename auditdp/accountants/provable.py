"""Rules by which accounting proves or refutes a claim, for each kind of claim.

A claim is about all mechanisms of a class. A *proof* is an exact curve or an upper
bound for a class around that class, a *loss* an exact curve or a lower bound for a
class within it; an approximation or an unproved bound decides nothing.

- *ε-DP and (ε, δ)-DP* hold if a proof has at most δ at ε; they fail if a loss has more.
- *A curve that is given by points* holds if at each of them some proof, not always the
  same, has at most its δ; it fails if at any of them a loss has more.
- *A curve that is a function of ε* holds if it is itself the curve of a proof; it fails
  if at any of the points that are compared a loss has more.
- *μ-Gaussian DP* holds if the class is within μ′-Gaussian DP for a μ′ <= μ; it fails if
  a loss has more at any point, or if something in the class has μ′ > μ.
- *(α, ε)-Rényi DP* and *ρ-zCDP* hold if a bound on D_α of the class is at most ε, on
  D_α/α at most ρ at all α > 1; they fail if something in the class has more, or a loss
  has more than the claim implies at any point.

*Why.* A proof bounds δ(ε) of everything in the class, and something in the class has a
loss, so at one ε they prove the claim, or its negation. A curve is a claim at every ε:
one point above it refutes it, and it holds if every one of its statements is proved.
Nothing is proved between points: a δ(ε) below the curve at some ε may be above it at
the next. Hence points do not certify a function of ε; but the curve of an accountant
that is a proof for a class around states no more than that proof. (α, ε)-Rényi DP
implies δ(ε′) <= e^{(α−1)(ε−ε′)} (1 − 1/α)^α/(α−1), and ρ-zCDP the infimum of that over
α at ε = αρ (Canonne, Kamath & Steinke 2020, arXiv:2004.00010v3, Proposition 12): a loss
above it has a larger divergence. The converse is false: a mechanism below the implied
curve may have a larger divergence, even an infinite one. So these claims are certified
by divergences alone (``Description.concentrated``), whatever the curves are. Gaussian
DP is a curve with a statement at every ε, and is certified by the Gaussian noise that a
mechanism is a post-processing of (``Description.gaussian``).
"""

from __future__ import annotations

from functools import reduce

from flint import arb

from auditdp.accountants.accountant import Accountant, Description, around, within
from auditdp.accountants.additive_noise import GaussianCurve
from auditdp.accountants.concentrated import ZCDP
from auditdp.claims.claim import Claim
from auditdp.claims.curves import AccountedDP, RenyiDP, ZeroConcentratedDP
from auditdp.claims.statements import GaussianDP
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import above, ball


def statements(claim: Claim) -> list[tuple[float, float]]:
    """Return the (ε, δ) statements of a claim at which accountants are compared.

    The δ of a claim of zCDP, Rényi DP or Gaussian DP is computed here and rounded up. A
    loss refutes a claim only at these points.
    """
    points = []
    for epsilon, delta in claim.statements().tolist():
        if isinstance(claim, ZeroConcentratedDP):
            delta = ZCDP(claim.level).delta_at(epsilon)
        elif isinstance(claim, GaussianDP):
            delta = GaussianCurve(1.0, claim.level).delta_at(epsilon)
        elif isinstance(claim, RenyiDP):
            delta = _implied_by_divergence(claim, epsilon)
        points.append((epsilon, delta))
    return points


def _implied_by_divergence(claim: RenyiDP, epsilon: float) -> float:
    with precision():
        order = arb(claim.order)
        log_delta = (
            (order - 1) * (arb(claim.level) - arb(epsilon))
            + order * (1 - 1 / order).log()
            - (order - 1).log()
        )
        return min(1.0, above(log_delta.exp()))


def own_proof(claim: Claim, about: Description) -> Accountant | None:
    """Return the accountant whose whole curve is the claim, if it proves the claim.

    Returns:
        The accountant; None if the claim is no curve of an accountant, or if this
        accountant is no proof for a class that contains ``about``.
    """
    curve = claim.curve if isinstance(claim, AccountedDP) else None
    if not isinstance(curve, Accountant) or not curve.soundness.is_proof:
        return None
    return curve if within(about, curve.describes) else None


def bounds(claim: Claim, described: Description) -> tuple[arb, arb]:
    """Return a lower and an upper bound on the least parameter of a true claim.

    The parameter is μ of Gaussian DP, ε of Rényi DP, or ρ of zCDP. A claim with a
    parameter below the first bound is false for some mechanism of the class. A claim
    with a parameter of at least the second bound holds for all. The bounds are 0 and
    infinity if nothing is known, and for all other claims.
    """
    low, high = arb(0), arb.pos_inf()
    with precision():
        if isinstance(claim, GaussianDP):
            if described.gaussian is not None:
                low = ball(described.gaussian).sqrt()
            squares = [each.gaussian for each in around(described)]
            finite = [square for square in squares if square is not None]
            if finite:
                high = ball(min(finite)).sqrt()
        elif isinstance(claim, RenyiDP | ZeroConcentratedDP):
            order = claim.order if isinstance(claim, RenyiDP) else None
            pairs = [each.concentrated(order) for each in around(described)]
            low, high = pairs[0][0], reduce(arb.min, (pair[1] for pair in pairs))
            # An infinite ball times a number would contain every number.
            if order is not None and low.is_finite():
                low = low * order
            if order is not None and high.is_finite():
                high = high * order
    return low, high


def measure(claim: Claim) -> str:
    """Return words for the quantity that a claim's parameter bounds, to follow 'has'.

    It is used only for claims of Rényi DP, zCDP and Gaussian DP.
    """
    if isinstance(claim, RenyiDP):
        return f"a Rényi divergence of order {claim.order:.6g} of"
    return "a ρ of" if isinstance(claim, ZeroConcentratedDP) else "a μ of"
