"""Exact evidence: epsilon and the whole curve δ(ε) from known laws, in outward-rounded ball arithmetic.

The claim is about a *model*: the law that the mechanism states. Whether the code draws from it is for the game and for
goodness-of-fit tests. CERTIFIED is said only when every neighbouring pair of the stated scope is covered and each
inequality is certain at the working precision. VIOLATED is said when one inequality is certainly false by more than a
relative 1e-12 of the claimed level: two budgets that agree to twelve digits are the same claim written in doubles.
Anything between the two is NOT_REFUTED, and says so.

All pairs are covered in one of three ways. The adjacency enumerates them. Or an ``Envelope`` bounds what any two inputs of
a domain can do. Or the law is Laplace or Gaussian noise around a query of declared sensitivity: the loss grows with the
distance of the answers, so the declared sensitivity bounds it (the certificate is then given that number, which is for
evidence of sensitivity to refute). Elsewhere the listed pairs are compared, and a search looks for a worse one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from flint import arb

from auditdp.adjacency import Adjacency, Box, Pair
from auditdp.betting.game import checked_pairs
from auditdp.claims import Claim, GaussianDP
from auditdp.errors import AuditError
from auditdp.evidence.losses import (
    ROUNDING_TOLERANCE,
    PairLoss,
    aligned,
    delta_curve,
    envelope_losses,
    gaussian_loss,
    hockey_stick,
    pair_loss,
    ratio,
    rows_loss,
)
from auditdp.laws import Envelope, FiniteLaw, GaussianLaw, LaplaceLaw, StepLaw, precision
from auditdp.laws.balls import above, below
from auditdp.mechanism import brief, identity_key, name_of, stated_law
from auditdp.results import Counterexample, Evidence, Verdict
from auditdp.search import key, maximise, smallest

CURVE_POINTS = 60
EXAMPLES = 100
"""Pairs that a search generates, at most."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Stated:
    """What a mechanism states: the law of an input, and by it the loss of a pair, each computed once."""

    law_of: Callable[[Any], Any]
    loss_of: Callable[[Pair], PairLoss]


@dataclass(frozen=True)
class Compared:
    """The pairs that were looked at, with the loss of each, and what is known of all others.

    Attributes:
        pairs: The pairs.
        losses: Their losses.
        scope: Which pairs these are, in words.
        bound: A bound on the loss of every pair of the scope; None where the losses are those of all pairs, or where
            nothing is known of the others.
        complete: Whether the losses, or the bound, cover every pair of the scope.
        searchable: Whether other pairs may be looked for, among them the simplest that violates.
    """

    pairs: list[Pair]
    losses: list[PairLoss]
    scope: str
    bound: PairLoss | None = None
    complete: bool = True
    searchable: bool = False


def has_exact_law(mechanism: Any, adjacency: Adjacency) -> bool:
    """Return whether the mechanism states a law that this evidence can use for these neighbours."""
    return stated_law(mechanism) is not None or (isinstance(adjacency, Box) and hasattr(mechanism, "envelope"))


def exact_evidence(
    mechanism: Any, claim: Claim, adjacency: Adjacency, *, pairs: Sequence[Pair] | None = None, seed: int = 0
) -> Evidence:
    """Compare the stated laws of neighbours with the claim.

    Args:
        mechanism: A mechanism with ``distribution(data)``, ``laplace(data)`` or, for a ``Box``, ``envelope()``.
        claim: What it promises.
        adjacency: The neighbours; where all pairs can be covered, the evidence can certify the claim for that scope.
        pairs: Only these pairs; then the claim can be refuted but not certified.
        seed: Seed of the search for pairs.

    Raises:
        MechanismError: If the laws are malformed.
        AdjacencyError: If a pair is not adjacent.
    """
    stated = _stated(mechanism, claim)
    if pairs is None and isinstance(adjacency, Box) and hasattr(mechanism, "envelope") and _is_pure(claim):
        envelope = mechanism.envelope()
        compared = _by_envelope(envelope, adjacency)
    else:
        assert stated is not None  # has_exact_law said so
        envelope = None
        compared = _by_pairs(mechanism, stated, claim, adjacency, pairs, seed)
    judged = [_judge(loss, claim) for loss in compared.losses]
    violated = any(breaks for _, breaks in judged)
    certain = all(holds for holds, _ in judged) and (compared.bound is None or _judge(compared.bound, claim)[0])
    # A counterexample comes from a pair that certainly breaks the claim; else the pair that comes nearest is shown.
    shown = [k for k, (_, breaks) in enumerate(judged) if breaks] or range(len(judged))
    k = max(shown, key=lambda k: _size(compared.losses[k]))
    worst, pair = compared.losses[k], compared.pairs[k]
    reaches = compared.bound or worst
    ends = [_levels(loss, claim) for loss in [*compared.losses, reaches]]
    known = all(level is not None for level in ends)
    common: dict[str, Any] = {
        "kind": "exact",
        "assumptions": [f"{name_of(mechanism)} draws from the law that it states", f"scope: {compared.scope}"],
        "details": _details(claim, stated, worst, pair)
        | {"worst_pair": str(pair), "scope": compared.scope}
        | ({"pairs_enumerated": len(compared.pairs)} if envelope is None else {})
        | ({"given_sensitivity": float(mechanism.sensitivity)} if compared.bound is not None else {}),
        "epsilon_lower": max(level[0] for level in ends[:-1] if level) if known else None,
        "epsilon_upper": max(level[1] for level in ends if level) if known and compared.complete else None,
    }
    if violated:
        if envelope is not None:
            found = _envelope_counterexample(envelope, k, worst, pair, claim)
        else:
            assert stated is not None
            if compared.searchable:
                pair = _smallest(adjacency, stated, claim, seed, pair)
            found = _counterexample(stated, pair, claim)
        return Evidence(
            verdict=Verdict.VIOLATED,
            statement=f"{_said(worst, claim)} over {compared.scope}; the claim is {claim}",
            counterexample=found,
            **common,
        )
    said = f"{_said(reaches, claim)} over {compared.scope}"
    if certain and compared.complete:
        return Evidence(verdict=Verdict.CERTIFIED, statement=f"{said}, certainly within {claim}", **common)
    reason = "not all neighbouring pairs were covered" if certain else "the margin is within rounding or enclosure"
    return Evidence(verdict=Verdict.NOT_REFUTED, statement=f"{said}; not certified: {reason}", **common)


def _by_envelope(envelope: Envelope, adjacency: Adjacency) -> Compared:
    pairs = [Pair(large, small) for large, small in envelope.inputs]
    for pair in pairs:
        adjacency.check(pair)
    return Compared(pairs, envelope_losses(envelope), f"all pairs of {adjacency.name}")


def _by_pairs(
    mechanism: Any, stated: Stated, claim: Claim, adjacency: Adjacency, given: Sequence[Pair] | None, seed: int
) -> Compared:
    everything = adjacency.exhaustive() if given is None else None
    pairs = list(checked_pairs(adjacency, given) if everything is None else everything)
    losses = [stated.loss_of(pair) for pair in pairs]
    count = f"{len(pairs):,} pairs" if len(pairs) > 1 else "1 pair"
    if everything is not None:
        count = f"all {count}" if len(pairs) > 1 else "the only pair"
        return Compared(pairs, losses, f"{count} of {adjacency.name}")
    if given is None:
        if (bound := _by_sensitivity(mechanism, stated.law_of(pairs[0].data), claim)) is not None:
            scope = (
                f"all neighbours with queries at most {mechanism.sensitivity:g} apart in {mechanism.norm}, as declared"
            )
            return Compared(pairs, losses, f"{scope}; {adjacency.name}", bound, searchable=True)
        searched = maximise(
            adjacency.strategy(), lambda pair: max(_size(stated.loss_of(pair))), examples=EXAMPLES, seed=seed
        )
        listed = {key(each) for pair in pairs for each in (pair, pair.swapped())}
        new = [pair for _, pair in searched if key(pair) not in listed]
        if new:
            pairs.append(new[0])
            losses.append(stated.loss_of(new[0]))
            count = f"{count} and {len(new):,} that a search came across"
    return Compared(pairs, losses, f"{count} of {adjacency.name}", complete=False, searchable=given is None)


def _by_sensitivity(mechanism: Any, law: Any, claim: Claim) -> PairLoss | None:
    """Return the loss at the declared sensitivity of additive noise; None where there is no such bound.

    Gaussian noise of deviation σ around answers that are at most S apart in ℓ₂ is S/σ-Gaussian DP, and its δ(ε) grows with
    μ. Laplace noise of scale b around answers at most S apart in ℓ₁ loses at most S/b, for the smallest b.
    """
    distance, norm = getattr(mechanism, "sensitivity", None), getattr(mechanism, "norm", None)
    if distance is None:
        return None
    if isinstance(law, GaussianLaw) and norm == "l2":
        far, near = (GaussianLaw(np.array([at]), law.sigma) for at in (float(distance), 0.0))
        return gaussian_loss(far, near, **_asked(claim))
    if isinstance(law, LaplaceLaw) and norm == "l1":
        scale = np.array([np.min(law.scale)])
        return pair_loss(*(LaplaceLaw(np.array([at]), scale) for at in (float(distance), 0.0)))
    return None


def _smallest(adjacency: Adjacency, stated: Stated, claim: Claim, seed: int, start: Pair) -> Pair:
    """Return the simplest violating pair that a search comes to, or the one that it starts from."""

    def loss_of(pair: Pair) -> PairLoss | None:
        try:
            return stated.loss_of(pair)
        except AuditError:
            return None

    def violates(pair: Pair) -> bool:
        loss = loss_of(pair)
        return loss is not None and _judge(loss, claim)[1]

    def score(pair: Pair) -> float:
        loss = loss_of(pair)
        return -math.inf if loss is None else max(_size(loss))

    return smallest(adjacency.strategy(), violates, examples=EXAMPLES, seed=seed, start=start, score=score) or start


def _stated(mechanism: Any, claim: Claim) -> Stated | None:
    law = stated_law(mechanism)
    if law is None:
        return None
    law_of = _once(law, identity_key)
    asked = _asked(claim)
    loss_of = _once(lambda pair: pair_loss(law_of(pair.data), law_of(pair.neighbour), **asked), key)
    return Stated(law_of, loss_of)


def _once(function: Callable[[Any], Result], identity: Callable[[Any], Any]) -> Callable[[Any], Result]:
    """Return the function, computed once for values that are certainly the same."""
    cache: dict[Any, tuple[Result, Any]] = {}

    def of(value: Any) -> Result:
        same = identity(value)
        if same not in cache:
            cache[same] = (function(value), value)  # the value is kept alive, so that its identity stays its own
        return cache[same][0]

    return of


def _is_pure(claim: Claim) -> bool:
    return not isinstance(claim, GaussianDP) and claim.tangents()[0][1] == 0


def _asked(claim: Claim) -> dict[str, float]:
    """The point of the curve δ(ε) that the claim is about, if it is about one."""
    if isinstance(claim, GaussianDP) or _is_pure(claim):
        return {}
    return {"epsilon": claim.level, "delta": claim.tangents()[0][1]}


def _size(loss: PairLoss) -> tuple[float, float, float]:
    main = loss.mu if loss.mu is not None else loss.delta
    return (float(main.mid()) if main is not None else 0.0, loss.lower, loss.upper)


def _levels(loss: PairLoss, claim: Claim) -> tuple[float, float] | None:
    """Bounds on what the claim's parameter has to be for this pair: epsilon, or mu where the pair is Gaussian."""
    if isinstance(claim, GaussianDP):
        return None if loss.mu is None else (max(0.0, below(loss.mu)), above(loss.mu))
    if _is_pure(claim) or loss.needed is None:
        return (loss.lower, loss.upper) if _is_pure(claim) else None
    holds, breaks = _judge(loss, claim)
    lower, upper = loss.needed
    return max(lower, claim.level) if breaks else lower, min(upper, claim.level) if holds else upper


def _said(loss: PairLoss, claim: Claim) -> str:
    if isinstance(claim, GaussianDP) and loss.mu is not None:
        return f"Exact μ = {float(loss.mu.mid()):.12g}"
    if loss.delta is not None and loss.needed is not None:
        pure = "" if loss.mu is not None else f" (pure ε = {loss})"
        return f"Exact δ({claim.level:.6g}) = {float(loss.delta.mid()):.6g}{pure}"
    return f"Exact ε = {loss}"


def _judge(loss: PairLoss, claim: Claim) -> tuple[bool, bool]:
    """Return (the claim certainly holds for this pair, it is certainly broken beyond rounding).

    A bounded loss that is not of Gaussian noise lies within some Gaussian curve; whether within the claimed one is left to
    the game.
    """
    with precision():
        level = arb(claim.level)
        tolerance = 1 + arb(ROUNDING_TOLERANCE)
        if isinstance(claim, GaussianDP):
            if loss.mu is None:
                return False, float(loss.low) == math.inf
            return bool(loss.mu <= level), bool(loss.mu > level * tolerance)
        delta = claim.tangents()[0][1]
        if delta == 0:
            return bool(loss.high <= level), bool(loss.low > level * tolerance)
        if loss.delta is None or loss.delta_beyond is None:
            return bool(loss.high <= level), False  # a pure loss within the level satisfies every delta
        return bool(loss.delta <= arb(delta)), bool(loss.delta_beyond > arb(delta) * tolerance)


def _details(claim: Claim, stated: Stated | None, worst: PairLoss, pair: Pair) -> dict[str, Any]:
    exact = worst.lower
    details: dict[str, Any] = {} if worst.mu is not None and not _is_pure(claim) else {"exact_epsilon": exact}
    top = 1.25 * max(claim.level, exact if math.isfinite(exact) else 2 * claim.level)
    epsilons = np.linspace(0.0, top, CURVE_POINTS)
    details["claim_curve"] = [[float(e), claim.delta_at(float(e))] for e in epsilons]
    p, q = (None, None) if stated is None else (stated.law_of(pair.data), stated.law_of(pair.neighbour))
    if isinstance(p, FiniteLaw | StepLaw | GaussianLaw):
        details["curve"] = delta_curve(p, q, epsilons)
    return details


def _counterexample(stated: Stated, pair: Pair, claim: Claim) -> Counterexample:
    """Spell a violation out: of the outputs that certainly exceed the claim, the one that adds most to δ."""
    loss, p, q = stated.loss_of(pair), stated.law_of(pair.data), stated.law_of(pair.neighbour)
    if isinstance(p, LaplaceLaw):
        return Counterexample(
            pair=str(pair),
            output="any output beyond both locations in every coordinate that differs",
            explanation=f"The log ratio of the two densities reaches {loss}; the claim allows {claim.level:.6g}",
        )
    if isinstance(p, GaussianLaw):
        return Counterexample(
            pair=str(pair),
            explanation=f"The two laws are Gaussian: {_said(loss, claim)}; the claim is {claim}",
        )
    with precision():
        level = arb(claim.level).exp()
        rows = aligned(p, q)
        exceeding = [row for row in rows if ratio(row[0], row[1])[0] > level] or rows
        pp, qq, output = max(
            exceeding, key=lambda row: max(float(row[0] - level * row[1]), float(row[1] - level * row[0]))
        )
        delta = float(hockey_stick(rows, arb(claim.level)).mid())
    return Counterexample(
        pair=str(pair),
        output=output if isinstance(output, str) else brief(output),
        explanation=(
            f"This output has probability {_show(pp)} on the first input and {_show(qq)} on the second, "
            f"{_factor(rows_loss([(pp, qq, output)]))}; the claim is {claim}. Over all outputs ε = {loss} and "
            f"δ({claim.level:.6g}) = {delta:.4g}"
        ),
    )


def _envelope_counterexample(envelope: Envelope, k: int, loss: PairLoss, pair: Pair, claim: Claim) -> Counterexample:
    output = envelope.outputs[k]
    least, most = envelope.bounds[k]
    each = f"; {envelope.uses} coordinates lose as much each, ε = {loss} in all" if envelope.uses > 1 else ""
    return Counterexample(
        pair=str(pair),
        output=output if isinstance(output, str) else brief(output),
        explanation=(
            f"This output has probability (or density) {_show(most)} on the first input and {_show(least)} on the second, "
            f"{_factor(rows_loss([(most, least, output)]))}{each}; the claim is {claim}"
        ),
    )


def _show(p: arb) -> str:
    value = float(p.mid())
    return p.str(6, radius=False) if value == 0 and p != 0 else f"{value:.12g}"


def _factor(loss: PairLoss) -> str:
    if loss.lower == math.inf:
        return "it is possible on one of them only"
    factor = f"{math.exp(loss.lower):.6g}" if loss.lower < 700 else "more than 1e304"
    return f"a factor of {factor} = e^{loss}"
