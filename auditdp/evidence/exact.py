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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flint import arb

from auditdp.adjacency import Adjacency, Pair
from auditdp.betting.game import checked_pairs
from auditdp.claims import Claim, GaussianDP
from auditdp.laws import FiniteLaw, LaplaceLaw, ball, precision
from auditdp.mechanism import brief, name_of
from auditdp.results import Counterexample, Evidence, Verdict

ROUNDING_TOLERANCE = 1e-12
CURVE_POINTS = 60


@dataclass(frozen=True)
class PairLoss:
    """The privacy loss of one pair of laws.

    Attributes:
        epsilon: Enclosure of the exact pure epsilon, max over outputs of |ln P/Q|; None if infinite.
        delta: Enclosure of δ at the claim's epsilon, the larger of the two orders; None where it was not needed.
        output: The output whose ratio is largest, rendered.
        probabilities: Its probabilities on the two inputs, rendered.
    """

    epsilon: arb | None
    delta: arb | None = None
    output: str = ""
    probabilities: tuple[str, str] = ("", "")

    @property
    def upper(self) -> float:
        """An upper bound on epsilon as a float."""
        return math.inf if self.epsilon is None else float(self.epsilon.upper())

    @property
    def lower(self) -> float:
        """A lower bound on epsilon as a float."""
        return math.inf if self.epsilon is None else max(0.0, float(self.epsilon.lower()))


def aligned(p: FiniteLaw, q: FiniteLaw) -> list[tuple[arb, arb, Any]]:
    """Return (P(y), Q(y), y) for every output y that either law can produce."""
    zero = arb(0)
    rows = [(pp, q.balls[q.index[k]] if k in q.index else zero, y) for k, pp, y in _items(p)]
    return rows + [(zero, qq, y) for k, qq, y in _items(q) if k not in p.index]


def _items(law: FiniteLaw) -> list[tuple[bytes, arb, Any]]:
    return [(key, law.balls[i], law.outcomes[i]) for key, i in law.index.items()]


def finite_loss(p: FiniteLaw, q: FiniteLaw, *, epsilon: float | None = None) -> PairLoss:
    """Return the exact loss between two finite laws, and δ(epsilon) where an epsilon is given.

    Pure epsilon is the largest |ln P(y)/Q(y)|; δ(ε) = Σ_y (P(y) - e^ε Q(y))₊, the larger of the two orders. Each number
    is an enclosure: the true value of the stated laws lies inside the ball.
    """
    with precision():
        rows = aligned(p, q)
        worst, where, infinite = None, None, False
        for pp, qq, y in rows:
            if pp == 0 and qq == 0:
                continue
            if pp == 0 or qq == 0:
                infinite, where = True, (pp, qq, y)
                break
            ratio = pp / qq
            ratio = ratio if ratio.mid() >= 1 else qq / pp
            worst = ratio if worst is None else worst.max(ratio)
            if where is None or worst.mid() == ratio.mid():
                where = (pp, qq, y)
        delta = None
        if epsilon is not None:
            e, zero = arb(epsilon).exp(), arb(0)
            forward = sum(((pp - e * qq).max(zero) for pp, qq, _ in rows), zero)
            backward = sum(((qq - e * pp).max(zero) for pp, qq, _ in rows), zero)
            delta = forward.max(backward)
        assert where is not None  # a law has at least one outcome of positive probability
        shown = (_show(where[0]), _show(where[1]))
        loss = None if infinite or worst is None else worst.log()
        return PairLoss(loss, delta, brief(where[2]), shown)


def _show(p: arb) -> str:
    value = float(p.mid())
    return p.str(6, radius=False) if value == 0 and p != 0 else f"{value:.12g}"


def laplace_loss(p: LaplaceLaw, q: LaplaceLaw) -> PairLoss:
    """Return the exact loss between two laws of independent Laplace coordinates."""
    total = p.epsilon_against(q)
    with precision():
        return PairLoss(ball(total), None, "any output beyond both locations in every coordinate that differs")


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
    with np.errstate(divide="ignore"):
        loss = np.log(p) - np.log(q)
    order = np.argsort(loss)
    tail_p = np.append(np.cumsum(p[order][::-1])[::-1], 0.0)
    tail_q = np.append(np.cumsum(q[order][::-1])[::-1], 0.0)
    start = np.searchsorted(loss[order], epsilons, side="right")
    return np.maximum(tail_p[start] - np.exp(epsilons) * tail_q[start], 0.0)


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
    law = mechanism.distribution if hasattr(mechanism, "distribution") else mechanism.laplace
    cache: dict[bytes | str, Any] = {}

    def law_of(data: Any) -> Any:
        key = data.tobytes() if isinstance(data, np.ndarray) else repr(data)
        if key not in cache:
            cache[key] = law(data)
        return cache[key]

    curve_claim = isinstance(claim, GaussianDP)
    epsilon = None if curve_claim or claim.tangents()[0][1] == 0 else claim.level
    worst, worst_pair, certain, violated = None, played[0], True, False
    for pair in played:
        p, q = law_of(pair.data), law_of(pair.neighbour)
        loss = laplace_loss(p, q) if isinstance(p, LaplaceLaw) else finite_loss(p, q, epsilon=epsilon)
        holds, breaks = _judge(loss, claim)
        certain, violated = certain and holds, violated or breaks
        if worst is None or _size(loss) > _size(worst):
            worst, worst_pair = loss, pair
    assert worst is not None
    count = f"{len(played):,} pair{'s' if len(played) > 1 else ''}"
    scope = f"{'all ' if everything is not None else ''}{count} of {adjacency.name}"
    details = _details(claim, law_of(worst_pair.data), law_of(worst_pair.neighbour), worst)
    details |= {"worst_pair": str(worst_pair), "scope": scope, "pairs_enumerated": len(played)}
    common: dict[str, Any] = {
        "kind": "exact",
        "assumptions": [f"{name_of(mechanism)} draws from the law that it states", f"scope: {scope}"],
        "details": details,
        "epsilon_lower": None if curve_claim or epsilon is not None else worst.lower,
        "epsilon_upper": None if curve_claim or epsilon is not None or everything is None else worst.upper,
    }
    if isinstance(law_of(worst_pair.data), FiniteLaw) and epsilon is None and not curve_claim and violated:
        worst = replace(
            worst, delta=finite_loss(law_of(worst_pair.data), law_of(worst_pair.neighbour), epsilon=claim.level).delta
        )
    said = f"Exact ε = {_text(worst)} over {scope}"
    if epsilon is not None and worst.delta is not None:
        said = f"Exact δ({claim.level:.6g}) = {float(worst.delta.mid()):.6g} over {scope} (pure ε = {_text(worst)})"
    if violated:
        return Evidence(
            verdict=Verdict.VIOLATED,
            statement=f"{said}; the claim is {claim}",
            counterexample=_counterexample(worst, worst_pair, claim),
            **common,
        )
    if certain and everything is not None and not curve_claim:
        return Evidence(verdict=Verdict.CERTIFIED, statement=f"{said}, certainly within {claim}", **common)
    reason = "not all neighbouring pairs were enumerated" if certain else "the margin is within rounding"
    return Evidence(verdict=Verdict.NOT_REFUTED, statement=f"{said}; not certified: {reason}", **common)


def _size(loss: PairLoss) -> tuple[float, float]:
    return (float(loss.delta.mid()) if loss.delta is not None else 0.0, loss.upper)


def _text(loss: PairLoss) -> str:
    return "∞" if loss.epsilon is None else f"{float(loss.epsilon.mid()):.12g}"


def _judge(loss: PairLoss, claim: Claim) -> tuple[bool, bool]:
    """Return (the claim certainly holds for this pair, it is certainly broken beyond rounding)."""
    with precision():
        level = arb(claim.level)
        excess = level * (1 + arb(ROUNDING_TOLERANCE))
        if isinstance(claim, GaussianDP):
            return False, loss.epsilon is None  # bounded loss is always within some GDP curve; judged by the game
        delta = claim.tangents()[0][1]
        if delta == 0:
            return loss.epsilon is not None and bool(loss.epsilon <= level), loss.epsilon is None or bool(
                loss.epsilon > excess
            )
        if loss.delta is None:  # no curve is known, but a pure loss within the level satisfies every delta
            return loss.epsilon is not None and bool(loss.epsilon <= level), False
        return bool(loss.delta <= arb(delta)), bool(loss.delta > arb(delta) * (1 + arb(ROUNDING_TOLERANCE)))


def _details(claim: Claim, p: Any, q: Any, worst: PairLoss) -> dict[str, Any]:
    exact = math.inf if worst.epsilon is None else float(worst.epsilon.mid())
    details: dict[str, Any] = {"exact_epsilon": exact}
    top = 1.25 * max(claim.level, exact if math.isfinite(exact) else 2 * claim.level)
    epsilons = np.linspace(0.0, top, CURVE_POINTS)
    details["claim_curve"] = [[float(e), claim.delta_at(float(e))] for e in epsilons]
    if isinstance(p, FiniteLaw):
        details["curve"] = delta_curve(p, q, epsilons)
    return details


def _counterexample(loss: PairLoss, pair: Pair, claim: Claim) -> Counterexample:
    if loss.probabilities == ("", ""):
        explanation = f"The log ratio of the two densities reaches {_text(loss)}; the claim allows {claim.level:.6g}"
    else:
        p, q = loss.probabilities
        factor = "∞" if loss.epsilon is None else f"{math.exp(min(float(loss.epsilon.mid()), 700.0)):.6g}"
        explanation = (
            f"This output has probability {p} on the first input and {q} on the second, a factor of {factor} = "
            f"e^{_text(loss)}; the claim is {claim}"
        )
        if loss.delta is not None:
            explanation += f"; over all outputs δ({claim.level:.6g}) = {float(loss.delta.mid()):.4g}"
    return Counterexample(pair=str(pair), output=loss.output, explanation=explanation)
