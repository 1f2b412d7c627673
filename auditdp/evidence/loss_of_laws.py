"""The privacy loss between stated laws, enclosed in outward-rounded ball arithmetic.

Let P and Q be the laws of the output on two neighbours. The pure ε is the largest |ln
P(y)/Q(y)| over outputs y. δ(ε) is the largest P(S) - e^ε Q(S) or Q(S) - e^ε P(S) over
sets S of outputs. Each family of laws has a function of its own:
``rows_loss`` for laws that are listed or constant on intervals, ``laplace_loss`` and
``gaussian_loss``. They return a ``PairLoss``, which has bounds, never estimates. A new
family is a new function and a line in ``pair_loss``. ``stated_by`` returns the laws
that a mechanism states, with a cache for laws and losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import numpy as np
from flint import arb

from auditdp.accountants.root_finding import least
from auditdp.adjacency import Pair
from auditdp.adjacency.pair_search import key
from auditdp.claims.claim import Claim
from auditdp.claims.statements import GaussianDP
from auditdp.errors import MechanismError
from auditdp.evidence.exact_losses import (
    ROUNDING_TOLERANCE,
    ROUNDING_UNITS,
    PairLoss,
    aligned,
    rows_loss,
    verified_epsilon,
)
from auditdp.mechanism.calls.inputs import Inputs
from auditdp.mechanism.calls.leaves import EXACT
from auditdp.mechanism.capabilities import Capabilities
from auditdp.mechanism.laws import GaussianLaw, LaplaceLaw, ball, precision
from auditdp.mechanism.laws.additive import gaussian_delta
from auditdp.mechanism.protocol import identity_key
from auditdp.numerics.arrays import Floats
from auditdp.numerics.balls import above

Result = TypeVar("Result")


def pair_loss(
    p: Any, q: Any, *, epsilon: float | None = None, delta: float | None = None
) -> PairLoss:
    """Return the loss between two laws of one family.

    Args:
        p: A law.
        q: Another law.
        epsilon: The ε at which δ is computed, if any.
        delta: The δ at which the smallest ε is computed (``PairLoss.needed``), if any.

    Raises:
        MechanismError: If the two laws are not of one family.
    """
    if isinstance(p, LaplaceLaw) and isinstance(q, LaplaceLaw):
        return laplace_loss(p, q)
    if isinstance(p, GaussianLaw) and isinstance(q, GaussianLaw):
        return gaussian_loss(p, q, epsilon=epsilon, delta=delta)
    return rows_loss(aligned(p, q), epsilon=epsilon, delta=delta)


def laplace_loss(p: LaplaceLaw, q: LaplaceLaw) -> PairLoss:
    """Return the exact loss between two laws of independent Laplace coordinates.

    If the two scales of a coordinate differ by more than a relative 1e-12, |ln P/Q| is
    unbounded in its tail, and the loss is infinite. If they differ by less, there is no
    upper bound, and the lower bound is the loss of the coordinates with equal scales.
    The lower bound includes a tolerance for the rounding of the locations.

    Raises:
        MechanismError: If the numbers of coordinates differ.
    """
    if np.shape(p.scale) != np.shape(q.scale):
        raise MechanismError(
            f"LaplaceLaw: {np.size(p.scale)} coordinates and {np.size(q.scale)} on a neighbour; how many there are must not "
            "depend on the data"
        )
    same = np.asarray(p.scale) == np.asarray(q.scale)
    # Scales that agree up to rounding refute nothing.
    if not np.allclose(p.scale, q.scale, rtol=ROUNDING_TOLERANCE, atol=0):
        source = "the scales of the noise, which depend on the data, so that the log ratio of the two densities has no bound"
        return PairLoss(arb.pos_inf(), arb.pos_inf(), source)
    with precision():
        one, two = (LaplaceLaw(law.location[same], law.scale[same]) for law in (p, q))
        high = ball(one.epsilon_against(two)).upper()
        source = "the distances of the two locations in scales of the noise, summed over the coordinates"
        if not same.all():
            high = arb.pos_inf()
            source += " of one scale; the scales of others agree up to rounding only, so that there is no upper bound"
        low = arb(0)
        # The lower bound refutes a claim, so that rounding is subtracted from it.
        for gap, scale in zip(_certain_gaps(one, two), one.scale, strict=True):
            low += ball(gap / Fraction(float(scale)))
        return PairLoss(low.lower(), high, source)


def _certain_gaps(first: Any, second: Any) -> list[Fraction]:
    """Return |a − b| for each coordinate of two locations, less a tolerance.

    The tolerance is ``ROUNDING_UNITS`` units in the last place of the larger number. It
    is 0 for whole numbers below 2^53, which are exact. The result is at least 0.
    """
    gaps = []
    locations = zip(first.location, second.location, strict=True)
    for a, b in (map(float, pair) for pair in locations):
        gap = abs(Fraction(a) - Fraction(b))
        size = max(abs(a), abs(b))
        whole = a.is_integer() and b.is_integer()
        if not whole or size >= EXACT:
            gap -= ROUNDING_UNITS * Fraction(math.ulp(size))
        gaps.append(max(gap, Fraction(0)))
    return gaps


def gaussian_loss(
    p: GaussianLaw,
    q: GaussianLaw,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
) -> PairLoss:
    """Return the loss between two Gaussian laws: its exact μ, and its δ(ε).

    The pure epsilon is infinite unless the laws are equal. If the deviations of the
    laws differ by more than a relative 1e-12, μ is infinite as well. If they differ by
    less, rounding may be the reason, and the bounds on pure epsilon and μ are 0 and
    infinity. In both cases the bounds on δ(ε) are 0 and 1. If the deviations are equal,
    lower bounds include a tolerance for the rounding of the locations.

    Args:
        p: A law.
        q: Another law.
        epsilon: The ε at which δ is computed, if any.
        delta: The δ at which the smallest ε is computed (``PairLoss.needed``), if any.

    Raises:
        MechanismError: If the numbers of coordinates differ.
    """
    if p.sigma != q.sigma and len(p.location) == len(q.location):
        return _unequal_gaussian_loss(p, q, epsilon, delta)
    with precision():
        at = beyond = needed = None
        mu = p.mu_against(q)
        squares = sum((gap**2 for gap in _certain_gaps(p, q)), Fraction(0))
        least_mu = ball(squares).sqrt() / ball(Fraction(float(p.sigma)))
        if epsilon is not None:
            larger = arb(epsilon) * (1 + arb(ROUNDING_TOLERANCE))
            at = gaussian_delta(mu, arb(epsilon))
            beyond = gaussian_delta(least_mu, larger)
        if delta is not None:
            # An accountant's search gives a guess, and balls verify it.
            guess = least(lambda e: above(gaussian_delta(mu, arb(e))), delta)
            lower, upper = (
                verified_epsilon(partial(gaussian_delta, each), delta, guess)
                for each in (least_mu, mu)
            )
            needed = lower[0], upper[1]
        source = (
            "the distance of the two locations in deviations of the noise, which is μ"
        )
        low, high = (arb(0) if at == 0 else arb.pos_inf() for at in (least_mu, mu))
        return PairLoss(low, high, source, at, beyond, mu, needed, least_mu=least_mu)


def _unequal_gaussian_loss(
    p: GaussianLaw, q: GaussianLaw, epsilon: float | None, delta: float | None
) -> PairLoss:
    # If σ > σ′, the log ratio grows like the square of a coordinate. Then P(ln P/Q > ε)
    # falls only as a power of e^-ε, and the δ(ε) of every μ falls like e^-(ε/μ)²/2.
    with precision():
        low = mu = arb.pos_inf()
        source = "the deviations of the noise, which depend on the data, so that no μ is large enough"
        if math.isclose(p.sigma, q.sigma, rel_tol=ROUNDING_TOLERANCE):
            low, mu = arb(0), arb(0, math.inf)
            source = "two deviations that agree up to rounding only, which leaves μ and δ open"
        # This ball is [0, 1], which contains every δ.
        anything = None if epsilon is None else arb(0.5, 0.5)
        needed = None if delta is None else (0.0, math.inf)
        high = arb.pos_inf()
        return PairLoss(low, high, source, anything, anything, mu, needed, least_mu=mu)


def delta_curve(p: Any, q: Any, epsilons: Any) -> list[list[float]]:
    """Return [ε, δ(ε)] for each ε, for plots; the laws are finite, step or Gaussian.

    δ(ε) is the larger of its values for (p, q) and (q, p). It is no certified bound.

    Raises:
        MechanismError: If finite or step laws differ in family, or Gaussian laws in σ
            or shape.
    """
    if isinstance(p, GaussianLaw):
        mu = p.mu_against(q)
        curve = [float(gaussian_delta(mu, arb(float(e))).mid()) for e in epsilons]
    else:
        laws = aligned(p, q)
        first, second = laws.side(0), laws.side(1)
        orders = [
            _one_sided(*pair, epsilons) for pair in ((first, second), (second, first))
        ]
        curve = np.maximum(*orders).tolist()
    return [[float(e), d] for e, d in zip(epsilons, curve, strict=True)]


def _one_sided(p: Floats, q: Floats, epsilons: Any) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.nan_to_num(
            np.log(p) - np.log(q), nan=0.0, posinf=np.inf, neginf=-np.inf
        )
    order = np.argsort(loss)
    tail_p = np.append(np.cumsum(p[order][::-1])[::-1], 0.0)
    tail_q = np.append(np.cumsum(q[order][::-1])[::-1], 0.0)
    # Outputs with a larger loss than ε contribute to δ(ε).
    start = np.searchsorted(loss[order], epsilons, side="right")
    # Beyond the largest loss e^ε may overflow, times a tail of 0.
    with np.errstate(over="ignore", invalid="ignore"):
        taken = np.where(tail_q[start] > 0, np.exp(epsilons) * tail_q[start], 0.0)
    return np.asarray(np.maximum(tail_p[start] - taken, 0.0))


@dataclass(frozen=True)
class Stated:
    """The stated laws of a mechanism, and the losses between them."""

    law_of: Callable[[Any], Any]
    """Returns the law of an input."""
    loss_of: Callable[[Pair], PairLoss]
    """Returns the loss between the laws of a pair."""
    of_output: bool
    """True if the law is that of the output itself; False for a law before
    post-processing, whose loss only bounds that of the output from above."""


def stated_by(able: Capabilities, claim: Claim) -> Stated | None:
    """Return the stated laws of a mechanism, with losses at the claim's point of δ(ε).

    Returns:
        The laws, or None if the mechanism states none.
    """
    law = able.law
    if law is None:
        return None
    inputs, name, point = Inputs(), f"{able.name}: its law", claimed_point(claim)

    def lent_law(data: Any) -> Any:
        with inputs.lent(name, data) as (lent,):
            return law(lent)

    # A list of pairs has the same input many times, and its law takes time.
    law_of = _once(lent_law, identity_key)

    def loss_of(pair: Pair) -> PairLoss:
        return pair_loss(law_of(pair.data), law_of(pair.neighbour), **point)

    return Stated(law_of, _once(loss_of, key), able.law_of_output is not None)


def is_pure(claim: Claim) -> bool:
    """Return True if a claim is pure ε-DP, which includes (ε, δ)-DP with δ = 0."""
    return not isinstance(claim, GaussianDP) and claim.tangents()[0][1] == 0


def claimed_point(claim: Claim) -> dict[str, float]:
    """Return ``epsilon`` and ``delta`` of an (ε, δ) claim, arguments of ``pair_loss``.

    The dictionary is empty for a claim of pure or Gaussian DP.
    """
    if isinstance(claim, GaussianDP) or is_pure(claim):
        return {}
    return {"epsilon": claim.level, "delta": claim.tangents()[0][1]}


def size(loss: PairLoss) -> tuple[float, float, float]:
    """Return a sort key of a loss: its μ, or else its δ, and then its pure epsilon.

    The first number is 0 if μ and δ are missing, or if its ball contains 0.
    """
    main = loss.mu if loss.mu is not None else loss.delta
    # The middle of an enclosure of 0 would measure its width.
    if main is None or main.contains(0):
        return 0.0, loss.lower, loss.upper
    return float(main.mid()), loss.lower, loss.upper


def _once(
    function: Callable[[Any], Result], identity: Callable[[Any], Any]
) -> Callable[[Any], Result]:
    """Return the function with a cache; ``identity`` returns the key of an argument."""
    cache: dict[Any, tuple[Result, Any]] = {}

    def of(value: Any) -> Result:
        same = identity(value)
        if same not in cache:
            # The value is kept alive, so that its identity stays its own.
            cache[same] = function(value), value
        return cache[same][0]

    return of
