"""Exact evidence: epsilon and the whole curve δ(ε) from known laws, in outward-rounded ball arithmetic.

The claim is about a *model*: the law that the mechanism states. Whether the code draws from it is for the game and for
goodness-of-fit tests. CERTIFIED is said only when every neighbouring pair of the stated scope was enumerated and each
inequality is certain at the working precision. VIOLATED is said when one inequality is certainly false by more than a
relative 1e-12 of the claimed level: two budgets that agree to twelve digits are the same claim written in doubles.
Anything between the two is NOT_REFUTED, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb

from auditdp.adjacency import Adjacency, Pair
from auditdp.betting.game import checked_pairs
from auditdp.claims import Claim, GaussianDP
from auditdp.laws import FiniteLaw, LaplaceLaw, ball, precision
from auditdp.mechanism import brief, identity_key, name_of
from auditdp.results import Counterexample, Evidence, Verdict

ROUNDING_TOLERANCE = 1e-12
CURVE_POINTS = 60


@dataclass(frozen=True)
class PairLoss:
    """The privacy loss of one pair of laws, enclosed.

    Attributes:
        low: Lower bound on the exact pure epsilon, max over outputs of |ln P/Q|; may be infinite.
        high: Upper bound on it; infinite as soon as one probability may be zero where the other may not.
        delta: Enclosure of δ at the claim's epsilon, the larger of the two orders; None where it is not known.
        delta_beyond: The same at an epsilon that is larger by the rounding tolerance.
    """

    low: arb
    high: arb
    delta: arb | None = None
    delta_beyond: arb | None = None

    @property
    def lower(self) -> float:
        """A double that is at most the exact epsilon."""
        value = float(self.low)
        return max(0.0, value if bool(arb(value) <= self.low) else math.nextafter(value, -math.inf))

    @property
    def upper(self) -> float:
        """A double that is at least the exact epsilon."""
        value = float(self.high)
        return value if bool(arb(value) >= self.high) else math.nextafter(value, math.inf)

    def __str__(self) -> str:
        low, high = self.lower, self.upper
        if low == math.inf:
            return "∞"
        width = (high - low) / max(high, 1.0)
        return (
            f"{low:.12g}" if width <= 1e-11 else f"{low:.6g}" if width <= 1e-7 else f"between {low:.6g} and {high:.6g}"
        )


def aligned(p: FiniteLaw, q: FiniteLaw) -> list[tuple[arb, arb, Any]]:
    """Return (P(y), Q(y), y) for every output y that either law can produce."""
    zero = arb(0)
    rows = [(pp, q.balls[q.index[k]] if k in q.index else zero, y) for k, pp, y in _items(p)]
    return rows + [(zero, qq, y) for k, qq, y in _items(q) if k not in p.index]


def _items(law: FiniteLaw) -> list[tuple[bytes, arb, Any]]:
    return [(key, law.balls[i], law.outcomes[i]) for key, i in law.index.items()]


def finite_loss(p: FiniteLaw, q: FiniteLaw, *, epsilon: float | None = None) -> PairLoss:
    """Return the loss between two finite laws, and δ(epsilon) where an epsilon is given.

    Pure epsilon is the largest |ln P(y)/Q(y)|; δ(ε) = Σ_y (P(y) - e^ε Q(y))₊, the larger of the two orders. With
    P(y) in [a, b] and Q(y) in [c, d], the larger of P/Q and Q/P lies between max(a/d, c/b) and max(b/c, d/a): whatever
    law inside the balls is the true one, its loss lies between the bounds.
    """
    with precision():
        rows = aligned(p, q)
        low, high = arb(1), arb(1)
        for pp, qq, _ in rows:
            smallest, largest = _ratio(pp, qq)
            low, high = _larger(low, smallest), _larger(high, largest)
        delta = beyond = None
        if epsilon is not None:
            delta = _hockey_stick(rows, arb(epsilon))
            beyond = _hockey_stick(rows, arb(epsilon) * (1 + arb(ROUNDING_TOLERANCE)))
        return PairLoss(low.log().lower(), high.log().upper(), delta, beyond)


def _ratio(p: arb, q: arb) -> tuple[arb, arb]:
    """Return a lower and an upper bound on the larger of p/q and q/p."""
    smallest = _larger(_quotient(p.lower(), q.upper()).lower(), _quotient(q.lower(), p.upper()).lower())
    largest = _larger(_quotient(p.upper(), q.lower()).upper(), _quotient(q.upper(), p.lower()).upper())
    return smallest, largest


def _quotient(a: arb, b: arb) -> arb:
    """a/b for endpoints of probabilities: 0 for 0/0 (an output of neither law), infinite for anything else over 0."""
    if a <= 0:
        return arb(0)
    return arb.pos_inf() if b <= 0 else a / b


def _larger(a: arb, b: arb) -> arb:
    return a if a >= b else b


def _hockey_stick(rows: Sequence[tuple[arb, arb, Any]], epsilon: arb) -> arb:
    e, zero = epsilon.exp(), arb(0)
    forward = sum(((pp - e * qq).max(zero) for pp, qq, _ in rows), zero)
    backward = sum(((qq - e * pp).max(zero) for pp, qq, _ in rows), zero)
    return forward.max(backward)


def _show(p: arb) -> str:
    value = float(p.mid())
    return p.str(6, radius=False) if value == 0 and p != 0 else f"{value:.12g}"


def laplace_loss(p: LaplaceLaw, q: LaplaceLaw) -> PairLoss:
    """Return the exact loss between two laws of independent Laplace coordinates."""
    with precision():
        total = ball(p.epsilon_against(q))
        return PairLoss(total.lower(), total.upper())


def delta_curve(p: FiniteLaw, q: FiniteLaw, epsilons: Any) -> list[list[float]]:
    """Return [ε, δ(ε)] for plots: floating point, the larger of the two orders.

    With ratios sorted, δ(ε) is a difference of two suffix sums: one sort serves the whole curve.
    """
    keys = list(dict.fromkeys([*p.index, *q.index]))
    pp = np.array([p.floats[p.index[k]] if k in p.index else 0.0 for k in keys])
    qq = np.array([q.floats[q.index[k]] if k in q.index else 0.0 for k in keys])
    curve = np.maximum(_one_sided(pp, qq, epsilons), _one_sided(qq, pp, epsilons))
    return [[float(e), float(d)] for e, d in zip(epsilons, curve, strict=True)]


def _one_sided(p: Any, q: Any, epsilons: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.nan_to_num(np.log(p) - np.log(q), nan=0.0, posinf=np.inf, neginf=-np.inf)
    order = np.argsort(loss)
    tail_p = np.append(np.cumsum(p[order][::-1])[::-1], 0.0)
    tail_q = np.append(np.cumsum(q[order][::-1])[::-1], 0.0)
    start = np.searchsorted(loss[order], epsilons, side="right")
    with np.errstate(over="ignore", invalid="ignore"):  # beyond the largest loss e^ε may overflow, times a tail of 0
        taken = np.where(tail_q[start] > 0, np.exp(epsilons) * tail_q[start], 0.0)
    return np.maximum(tail_p[start] - taken, 0.0)


def has_exact_law(mechanism: Any) -> bool:
    """Return whether the mechanism states a law that this evidence can use."""
    return hasattr(mechanism, "distribution") or hasattr(mechanism, "laplace")


def exact_evidence(
    mechanism: Any, claim: Claim, adjacency: Adjacency, *, pairs: Sequence[Pair] | None = None
) -> Evidence:
    """Enumerate the stated laws over all neighbouring pairs (or those that are played) and compare with the claim.

    Args:
        mechanism: A mechanism with ``distribution(data)`` or ``laplace(data)``.
        claim: What it promises.
        adjacency: The neighbours; where it can enumerate all pairs, the evidence can certify the claim for that scope.
        pairs: Only these pairs; then the claim can be refuted but not certified.

    Raises:
        MechanismError: If the laws are malformed.
        AdjacencyError: If a pair is not adjacent.
    """
    everything = adjacency.exhaustive() if pairs is None else None
    played = checked_pairs(adjacency, pairs) if everything is None else everything
    law_of = _cached(mechanism.distribution if hasattr(mechanism, "distribution") else mechanism.laplace)
    delta = claim.tangents()[0][1]
    curve_claim = isinstance(claim, GaussianDP)
    pure = not curve_claim and delta == 0
    losses = [_loss(law_of(pair.data), law_of(pair.neighbour), None if pure else claim.level) for pair in played]
    judged = [_judge(loss, claim) for loss in losses]
    certain, violated = all(holds for holds, _ in judged), any(breaks for _, breaks in judged)
    # A counterexample comes from a pair that certainly breaks the claim; else the pair that comes nearest is shown.
    shown = [k for k, (_, breaks) in enumerate(judged) if breaks] or range(len(losses))
    k = max(shown, key=lambda k: _size(losses[k]))
    worst, pair, p, q = losses[k], played[k], law_of(played[k].data), law_of(played[k].neighbour)
    count = f"{len(played):,} pairs" if len(played) > 1 else "1 pair"
    if everything is not None:
        count = f"all {count}" if len(played) > 1 else "the only pair"
    scope = f"{count} of {adjacency.name}"
    details = _details(claim, p, q, worst)
    details |= {"worst_pair": str(pair), "scope": scope, "pairs_enumerated": len(played)}
    common: dict[str, Any] = {
        "kind": "exact",
        "assumptions": [f"{name_of(mechanism)} draws from the law that it states", f"scope: {scope}"],
        "details": details,
        "epsilon_lower": max(loss.lower for loss in losses) if pure else None,
        "epsilon_upper": max(loss.upper for loss in losses) if pure and everything is not None else None,
    }
    said = f"Exact ε = {worst} over {scope}"
    if not pure and not curve_claim and worst.delta is not None:
        said = f"Exact δ({claim.level:.6g}) = {float(worst.delta.mid()):.6g} over {scope} (pure ε = {worst})"
    if violated:
        return Evidence(
            verdict=Verdict.VIOLATED,
            statement=f"{said}; the claim is {claim}",
            counterexample=_counterexample(worst, pair, claim, p, q),
            **common,
        )
    if certain and everything is not None and not curve_claim:
        return Evidence(verdict=Verdict.CERTIFIED, statement=f"{said}, certainly within {claim}", **common)
    reason = "not all neighbouring pairs were enumerated" if certain else "the margin is within rounding or enclosure"
    return Evidence(verdict=Verdict.NOT_REFUTED, statement=f"{said}; not certified: {reason}", **common)


def _cached(law: Any) -> Any:
    """Return a law that is computed once for inputs that are certainly the same."""
    cache: dict[Any, Any] = {}

    def law_of(data: Any) -> Any:
        key = identity_key(data)
        if key not in cache:
            cache[key] = law(data)
        return cache[key]

    return law_of


def _loss(p: Any, q: Any, epsilon: float | None) -> PairLoss:
    return laplace_loss(p, q) if isinstance(p, LaplaceLaw) else finite_loss(p, q, epsilon=epsilon)


def _size(loss: PairLoss) -> tuple[float, float, float]:
    return (float(loss.delta.mid()) if loss.delta is not None else 0.0, loss.lower, loss.upper)


def _judge(loss: PairLoss, claim: Claim) -> tuple[bool, bool]:
    """Return (the claim certainly holds for this pair, it is certainly broken beyond rounding).

    A bounded loss lies within some Gaussian curve; whether within the claimed one is left to the game.
    """
    with precision():
        level = arb(claim.level)
        tolerance = 1 + arb(ROUNDING_TOLERANCE)
        if isinstance(claim, GaussianDP):
            return False, float(loss.low) == math.inf
        delta = claim.tangents()[0][1]
        if delta == 0:
            return bool(loss.high <= level), bool(loss.low > level * tolerance)
        if loss.delta is None or loss.delta_beyond is None:
            return bool(loss.high <= level), False  # a pure loss within the level satisfies every delta
        return bool(loss.delta <= arb(delta)), bool(loss.delta_beyond > arb(delta) * tolerance)


def _details(claim: Claim, p: Any, q: Any, worst: PairLoss) -> dict[str, Any]:
    exact = worst.lower
    details: dict[str, Any] = {"exact_epsilon": exact}
    top = 1.25 * max(claim.level, exact if math.isfinite(exact) else 2 * claim.level)
    epsilons = np.linspace(0.0, top, CURVE_POINTS)
    details["claim_curve"] = [[float(e), claim.delta_at(float(e))] for e in epsilons]
    if isinstance(p, FiniteLaw):
        details["curve"] = delta_curve(p, q, epsilons)
    return details


def _counterexample(loss: PairLoss, pair: Pair, claim: Claim, p: Any, q: Any) -> Counterexample:
    """Spell a violation out: of the outputs that certainly exceed the claim, the one that adds most to δ."""
    if isinstance(p, LaplaceLaw):
        return Counterexample(
            pair=str(pair),
            output="any output beyond both locations in every coordinate that differs",
            explanation=f"The log ratio of the two densities reaches {loss}; the claim allows {claim.level:.6g}",
        )
    with precision():
        level = arb(claim.level).exp()
        rows = aligned(p, q)
        exceeding = [row for row in rows if _ratio(row[0], row[1])[0] > level] or rows
        pp, qq, output = max(
            exceeding, key=lambda row: max(float(row[0] - level * row[1]), float(row[1] - level * row[0]))
        )
        smallest, largest = _ratio(pp, qq)
        here = PairLoss(smallest.log().lower(), largest.log().upper())
        delta = float(_hockey_stick(rows, arb(claim.level)).mid())
    said = "it is possible on one of them only" if here.lower == math.inf else f"a factor of {_factor(here)} = e^{here}"
    return Counterexample(
        pair=str(pair),
        output=brief(output),
        explanation=(
            f"This output has probability {_show(pp)} on the first input and {_show(qq)} on the second, {said}; the claim "
            f"is {claim}. Over all outputs ε = {loss} and δ({claim.level:.6g}) = {delta:.4g}"
        ),
    )


def _factor(loss: PairLoss) -> str:
    return f"{math.exp(loss.lower):.6g}" if loss.lower < 700 else "more than 1e304"
