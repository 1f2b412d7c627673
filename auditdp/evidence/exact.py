"""Exact evidence: epsilon and the whole curve δ(ε) from known laws, in outward-rounded ball arithmetic.

The claim is about a *model*: the law that the mechanism states. Whether the code draws from it is for the game and for
goodness-of-fit tests. CERTIFIED is said only when every neighbouring pair of the stated scope is covered
(``exact_coverage.py`` says how, and on what assumptions) and each inequality is certain at the working precision. VIOLATED
is said when one pair certainly breaks the claim by more than a relative 1e-12 of the claimed level: two budgets that agree
to twelve digits are the same claim written in doubles. Anything between the two is NOT_REFUTED, and says so.

Only what is attained refutes: the loss of a pair under the law of the output itself. A bound that covers more than was
looked at, and the law before post-processing, bound the loss from above. They can certify a claim and never refute one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from flint import arb

from auditdp.adjacency import Adjacency, Box, Pair
from auditdp.adjacency.adjacency import offers, sides
from auditdp.adjacency.pair_search import smallest
from auditdp.claims.claim import Claim
from auditdp.claims.statements import GaussianDP
from auditdp.errors import AuditError, ClaimError, MechanismError
from auditdp.evidence.exact_coverage import EXAMPLES, Compared, by_envelope, by_pairs
from auditdp.evidence.exact_losses import (
    ROUNDING_TOLERANCE,
    PairLoss,
    aligned,
    hockey_stick,
    ratio,
    row_loss,
)
from auditdp.evidence.loss_of_laws import delta_curve
from auditdp.evidence.request import EvidenceRequest
from auditdp.evidence.stated_laws import Stated, is_pure, size, stated_by
from auditdp.mechanism.capabilities import Capabilities, capabilities
from auditdp.mechanism.laws import (
    Envelope,
    FiniteLaw,
    GaussianLaw,
    LaplaceLaw,
    StepLaw,
    precision,
)
from auditdp.mechanism.protocol import brief
from auditdp.numerics.balls import above, below
from auditdp.numerics.rounding import outwards
from auditdp.record.details import ExactDetails
from auditdp.record.results import Counterexample, Evidence, Verdict

CURVE_POINTS = 60
NOTHING = 1e-30
"""A bound below this is written as 0; no claim is about so little."""


def gathered(request: EvidenceRequest, alpha: float) -> Evidence | None:
    """Stated laws, of the listed pairs alone where the audit is not exhaustive."""
    del alpha  # nothing is drawn
    mechanism, adjacency, refuting = (
        request.mechanism,
        request.adjacency,
        request.control,
    )
    if not has_exact_law(mechanism, adjacency, refuting=refuting):
        return None
    play = None if request.exhaustive else (request.game.play or adjacency.pairs())
    seed, examples = (
        int(request.streams("exact", 0).integers(2**32)),
        request.generated(EXAMPLES),
    )
    return exact_evidence(
        mechanism,
        request.privacy,
        adjacency,
        play=play,
        seed=seed,
        examples=examples,
        refuting=refuting,
    )


def has_exact_law(
    mechanism: Any, adjacency: Adjacency, *, refuting: bool = False
) -> bool:
    """Return whether the mechanism states a law that this evidence can use for these neighbours.

    Where that is for ``refuting`` a claim, one before post-processing cannot be used.
    """
    able = capabilities(mechanism)
    if isinstance(adjacency, Box) and able.envelope is not None:
        return True
    return (able.law_of_output if refuting else able.law) is not None


def exact_evidence(
    mechanism: Any,
    claim: Claim,
    adjacency: Adjacency,
    *,
    play: Sequence[Pair] | None = None,
    seed: int = 0,
    examples: int = EXAMPLES,
    refuting: bool = False,
) -> Evidence:
    """Compare the stated laws of neighbours with the claim.

    Of pairs to ``play`` no others are looked at; then the claim can be refuted but not certified. Where it is enough to be
    ``refuting`` it, the first pair that certainly breaks it is all that counts. A search generates at most so many
    ``examples``.

    Raises:
        MechanismError: If the laws are malformed, or no law is stated.
        ClaimError: If the claim is of a curve, of which one point would be compared.
        AdjacencyError: If a pair is not adjacent.

    >>> from auditdp.adjacency import as_adjacency
    >>> from auditdp.claims.statements import PureDP
    >>> from auditdp.testing import LaplaceMechanism
    >>> found = exact_evidence(LaplaceMechanism(scale=0.5), PureDP(1.0), as_adjacency([(0.0, 1.0)]))
    >>> print(found.statement)
    Exact ε = 2 over 1 pair of pairs as given (adjacency not checked); the claim is 1-DP
    """
    if claim.of_curve:
        raise ClaimError(
            f"exact evidence compares one point of δ(ε), expected PureDP, ApproxDP or GaussianDP; got {claim!r}"
        )
    able = capabilities(mechanism)
    stated = stated_by(able, claim)
    envelope: Envelope | None = None
    enclosed = play is None and (stated is None or is_pure(claim))
    if enclosed and isinstance(adjacency, Box) and able.envelope is not None:
        envelope = able.envelope()
        compared = by_envelope(envelope, stated, adjacency, seed)
    elif stated is None:
        raise MechanismError(
            f"{able.name}: states no law to compare; give it distribution(data)"
        )
    else:
        if refuting and stated.of_output:
            play = _first_that_breaks(stated, claim, adjacency, play) or play
        compared = by_pairs(
            able, stated, claim, adjacency, play, seed=seed, examples=examples
        )
    found = _LawComparison(able, claim, stated, envelope, compared)
    if found.broken and found.attained:
        return Evidence(
            verdict=Verdict.VIOLATED,
            statement=f"Exact {_value(found.worst, claim)} over {compared.coverage.scope}; the claim is {claim}",
            counterexample=found.counterexample(
                adjacency, seed=seed, examples=examples
            ),
            **found.recorded(),
        )
    reached = _reached(found.worst, compared, claim, attained=found.attained)
    if found.within and found.bounded and compared.complete:
        return Evidence(
            verdict=Verdict.CERTIFIED,
            statement=f"{reached}, certainly within {claim}",
            **found.recorded(),
        )
    return Evidence(
        verdict=Verdict.NOT_REFUTED,
        statement=f"{reached}; not certified: {found.undecided_because()}",
        **found.recorded(),
    )


class _LawComparison:
    """The losses that were compared with a claim, and how they stand to it.

    Attributes:
        attained: Whether some output attains the losses: an envelope is of the output, and its pairs attain it where no law
            says otherwise.
        broken: Which pairs certainly break the claim.
        within: Whether all that were looked at certainly keep it.
        bounded: Whether the bound on all others certainly keeps it.
        index: Of the pair that is shown: one that certainly breaks the claim, else the one that comes nearest.
    """

    def __init__(
        self,
        able: Capabilities,
        claim: Claim,
        stated: Stated | None,
        envelope: Envelope | None,
        compared: Compared,
    ) -> None:
        self.able, self.claim, self.stated, self.envelope, self.compared = (
            able,
            claim,
            stated,
            envelope,
            compared,
        )
        self.attained = envelope is not None or (
            stated is not None and stated.of_output
        )
        judged, bound = (
            [_judge(loss, claim) for loss in compared.losses],
            compared.coverage.bound,
        )
        self.broken = [k for k, (_, breaks) in enumerate(judged) if breaks]
        self.within = all(holds for holds, _ in judged)
        self.bounded = bound is None or _judge(bound, claim)[0]
        self.index = max(
            self.broken or range(len(judged)), key=lambda k: size(compared.losses[k])
        )
        self.worst, self.pair = compared.losses[self.index], compared.pairs[self.index]

    def recorded(self) -> dict[str, Any]:
        """Return what an evidence holds whatever its verdict is."""
        claim, compared, worst = self.claim, self.compared, self.worst
        coverage = compared.coverage
        ends = [
            _levels(loss, claim) for loss in [*compared.losses, coverage.bound or worst]
        ]
        known = all(level is not None for level in ends)
        calibrated = coverage.bound is not None and self.envelope is None
        return {
            "kind": "exact",
            "assumptions": _assumptions(
                self.able.name, compared, attained=self.attained
            ),
            "details": ExactDetails(
                exact_epsilon=worst.lower
                if self.attained and (worst.mu is None or is_pure(claim))
                else None,
                worst_pair=str(self.pair),
                loss_computed_from=worst.source,
                scope=coverage.scope,
                pairs_enumerated=compared.looked_at,
                given_sensitivity=self.able.sensitivity if calibrated else None,
                **_curves(claim, self.stated, worst, self.pair),
            ),
            "epsilon_lower": max(level[0] for level in ends[:-1] if level)
            if known and self.attained
            else None,
            "epsilon_upper": max(level[1] for level in ends if level)
            if known and compared.complete
            else None,
        }

    def counterexample(
        self, adjacency: Adjacency, *, seed: int, examples: int
    ) -> Counterexample:
        """Spell out the pair that breaks the claim, or a smaller one that a search comes to."""
        if self.envelope is not None and not self.compared.by_law:
            return _envelope_counterexample(
                self.envelope, self.index, self.worst, self.pair, self.claim
            )
        assert self.stated is not None  # its law gave the loss
        pair = self.pair
        if self.compared.searchable:
            pair = _smallest(
                adjacency, self.stated, self.claim, pair, seed=seed, examples=examples
            )
        return _counterexample(self.stated, pair, self.claim)

    def undecided_because(self) -> str:
        """Say why the claim is neither broken nor certified."""
        unchecked = self.compared.coverage.unchecked
        if self.broken:
            return (
                "that is the law before post-processing, and the output may lose less"
            )
        if self.within and self.bounded:
            return unchecked
        if self.within and unchecked == "":
            return "that is a bound, which no pair that was looked at attains"
        margin = f"the margin is within the rounding or enclosure of a loss computed from {self.worst.source}"
        return "; ".join(filter(None, [margin, unchecked]))


def _first_that_breaks(
    stated: Stated, claim: Claim, adjacency: Adjacency, given: Sequence[Pair] | None
) -> list[Pair] | None:
    """Return the first pair, of those that are given, listed or enumerated, that certainly breaks the claim, if any does."""
    enumerated = (
        pair
        for source in (adjacency.pairs, adjacency.exhaustive)
        for pair in source() or ()
    )
    return next(
        (
            [pair]
            for pair in given or enumerated
            if _judge(stated.loss_of(pair), claim)[1]
        ),
        None,
    )


def _smallest(
    adjacency: Adjacency,
    stated: Stated,
    claim: Claim,
    start: Pair,
    *,
    seed: int,
    examples: int,
) -> Pair:
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
        return -math.inf if loss is None else max(size(loss)[:2])

    generated = offers(adjacency).generated
    if generated is None:
        return start
    return (
        smallest(
            generated, violates, examples=examples, seed=seed, start=start, score=score
        )
        or start
    )


def _levels(loss: PairLoss, claim: Claim) -> tuple[float, float] | None:
    """Bounds on what the claim's parameter has to be for this pair: epsilon, or mu where the pair is Gaussian."""
    if isinstance(claim, GaussianDP):
        return (
            None
            if loss.mu is None or loss.least_mu is None
            else (max(0.0, below(loss.least_mu)), above(loss.mu))
        )
    if is_pure(claim) or loss.needed is None:
        return (loss.lower, loss.upper) if is_pure(claim) else None
    holds, breaks = _judge(loss, claim)
    lower, upper = loss.needed
    return max(lower, claim.level) if breaks else lower, min(
        upper, claim.level
    ) if holds else upper


def _reached(
    worst: PairLoss, compared: Compared, claim: Claim, *, attained: bool
) -> str:
    """Say what is lost at most, and whether any pair was seen to lose it."""
    coverage = compared.coverage
    loses, bound, scope = (
        _value(worst, claim),
        coverage.bound and _value(coverage.bound, claim),
        coverage.scope,
    )
    if not attained:
        return f"Before post-processing the law loses {bound or loses} over {scope}, and the output at most that"
    if bound in (None, loses):
        return f"Exact {loses} over {scope}"
    return f"At most {bound} over {scope}; the pair that loses most of those looked at has {loses}"


def _value(loss: PairLoss, claim: Claim) -> str:
    """Say what a loss is, by the parameter of the claim."""
    if isinstance(claim, GaussianDP) and loss.mu is not None:
        return f"μ = {_number(loss.mu, 12)}"
    if loss.delta is not None and loss.needed is not None:
        pure = "" if loss.mu is not None else f" (pure ε = {loss})"
        return f"δ({claim.level:.6g}) = {_number(loss.delta, 6)}{pure}"
    return f"ε = {loss}"


def _number(value: arb, digits: int) -> str:
    """Write the middle of a ball, or its ends where they are apart."""
    low, high = max(0.0, below(value)), above(value)
    if low == high == math.inf:
        return "∞"
    if low == 0.0 < high:
        return "0" if high < NOTHING else f"at most {high:.{digits}g}"
    if high - low > 1e-6 * high:
        return f"between {low:.{digits}g} and {high:.{digits}g}"
    return f"{float(value.mid()):.{digits}g}"


def _assumptions(name: str, compared: Compared, *, attained: bool) -> list[str]:
    """Return what the evidence rests on."""
    what = (
        "draws from the law that it states"
        if attained
        else "computes its output from what has the law that it states"
    )
    losses = [*compared.losses, *filter(None, [compared.coverage.bound])]
    return [
        f"{name} {what}",
        f"scope: {compared.coverage.scope}",
        *compared.coverage.assumptions,
        *dict.fromkeys(each for loss in losses for each in loss.assumed),
    ]


def _judge(loss: PairLoss, claim: Claim) -> tuple[bool, bool]:
    """Return (the claim certainly holds for this pair, it is certainly broken beyond rounding).

    A bounded loss that is not of Gaussian noise lies within some Gaussian curve; whether within the claimed one is left to
    the game.
    """
    with precision():
        level = arb(claim.level)
        tolerance = 1 + arb(ROUNDING_TOLERANCE)
        if isinstance(claim, GaussianDP):
            if loss.mu is None or loss.least_mu is None:
                return False, float(loss.low) == math.inf
            return bool(loss.mu <= level), bool(loss.least_mu > level * tolerance)
        delta = claim.tangents()[0][1]
        if delta == 0:
            return bool(loss.high <= level), bool(loss.low > level * tolerance)
        if loss.delta is None or loss.delta_beyond is None:
            return bool(
                loss.high <= level
            ), False  # a pure loss within the level satisfies every delta
        return bool(loss.high <= level or loss.delta <= arb(delta)), bool(
            loss.delta_beyond > arb(delta) * tolerance
        )


def _curves(
    claim: Claim, stated: Stated | None, worst: PairLoss, pair: Pair
) -> dict[str, Any]:
    """Return δ(ε) of the claim, and of the worst pair where its law is known."""
    top = 1.25 * max(
        claim.level, worst.lower if math.isfinite(worst.lower) else 2 * claim.level
    )
    epsilons = np.linspace(0.0, top, CURVE_POINTS)
    curves: dict[str, Any] = {
        "claim_curve": [(float(e), claim.delta_at(float(e))) for e in epsilons]
    }
    laws = (
        []
        if stated is None or not stated.of_output
        else [stated.law_of(data) for _, data in sides(pair)]
    )
    if laws and isinstance(laws[0], FiniteLaw | StepLaw | GaussianLaw):
        with suppress(MechanismError):  # no closed form where sigma depends on the data
            curves["curve"] = delta_curve(laws[0], laws[1], epsilons)
    return curves


def _counterexample(stated: Stated, pair: Pair, claim: Claim) -> Counterexample:
    """Spell a violation out: of the outputs that certainly exceed the claim, the one that adds most to δ."""
    loss, p, q = (
        stated.loss_of(pair),
        stated.law_of(pair.data),
        stated.law_of(pair.neighbour),
    )
    found = partial(Counterexample, pair=str(pair), python=pair.python)
    if isinstance(p, LaplaceLaw) and loss.lower == math.inf:
        return found(explanation=f"An infinite loss, computed from {loss.source}")
    if isinstance(p, LaplaceLaw):
        return found(
            output="any output beyond both locations in every coordinate that differs",
            explanation=f"The log ratio of the two densities reaches {loss}; the claim allows {claim.level:.6g}",
        )
    if isinstance(p, GaussianLaw):
        return found(
            explanation=f"The two laws are Gaussian: exact {_value(loss, claim)}; the claim is {claim}"
        )
    with precision():
        level = arb(claim.level).exp()
        laws = aligned(p, q)
        rows = laws.filled
        exceeding = [row for row in rows if ratio(row[0], row[1])[0] > level] or rows
        pp, qq, output = max(
            exceeding,
            key=lambda row: max(
                float(row[0] - level * row[1]), float(row[1] - level * row[0])
            ),
        )
        delta = float(hockey_stick(laws, arb(claim.level)).mid())
    return found(
        output=output if isinstance(output, str) else brief(output),
        explanation=(
            f"This output has probability {_show(pp)} on the first input and {_show(qq)} on the second, "
            f"{_factor(row_loss(pp, qq))}; the claim is {claim}. Over all outputs ε = {loss} and "
            f"δ({claim.level:.6g}) = {outwards(delta, up=False, against=claim.delta)}"
        ),
        probabilities=(float(pp.mid()), float(qq.mid())),
    )


def _envelope_counterexample(
    envelope: Envelope, k: int, loss: PairLoss, pair: Pair, claim: Claim
) -> Counterexample:
    output = envelope.outputs[k]
    least, most = envelope.bounds[k]
    each = (
        f"; {envelope.uses} coordinates lose as much each, ε = {loss} in all"
        if envelope.uses > 1
        else ""
    )
    return Counterexample(
        pair=str(pair),
        python=pair.python,
        output=output if isinstance(output, str) else brief(output),
        explanation=(
            f"This output has probability (or density) {_show(most)} on the first input and {_show(least)} on the second, "
            f"{_factor(row_loss(most, least))}{each}; the claim is {claim}"
        ),
        probabilities=None
        if envelope.uses > 1
        else (float(most.mid()), float(least.mid())),
    )


def _show(p: arb) -> str:
    value = float(p.mid())
    return p.str(6, radius=False) if value == 0 and p != 0 else f"{value:.12g}"


def _factor(loss: PairLoss) -> str:
    if loss.lower == math.inf:
        return "it is possible on one of them only"
    if loss.lower >= 700:
        return f"a factor of more than 1e304 = e^{loss}"
    if loss.upper == math.inf:
        return f"a factor of {outwards(math.exp(loss.lower), up=False)} at least"
    return f"a factor of {math.exp(loss.lower):.6g} = e^{loss}"
