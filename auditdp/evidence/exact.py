"""Exact evidence: epsilon and the curve δ(ε) of stated laws, in ball arithmetic.

A ball is a number with an error bound; balls are rounded outwards. The claim is about a
*model*: the law that the mechanism states. Whether the code draws from it is tested by
the game and by goodness-of-fit tests. The verdict is CERTIFIED only if every
neighbouring pair of the stated scope is covered (``exact_coverage.py`` has the ways,
and their assumptions) and each inequality is certain at the working precision. It is
VIOLATED if one pair certainly breaks the claim by more than a relative 1e-12 of the
claimed level: two budgets that agree to twelve digits are the same claim written in
doubles. Anything between the two is NOT_REFUTED, with the reason.

Only an attained loss refutes: the loss of a pair under the law of the output itself. A
bound that covers more pairs than were compared, and the law before post-processing,
bound the loss from above. They can certify a claim and never refute one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
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
    ratio,
    row_loss,
)
from auditdp.evidence.loss_of_laws import Stated, delta_curve, is_pure, size, stated_by
from auditdp.evidence.request import EvidenceRequest
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
from auditdp.record.verdict import DRAWS_FROM_LAW


def gathered(request: EvidenceRequest, alpha: float) -> Evidence | None:
    """Return the comparison of the stated laws with the claim.

    Only the listed pairs are compared unless the audit is exhaustive.

    Returns:
        The evidence, or None if the mechanism states no law that can be used.
    """
    # The computation draws nothing.
    del alpha
    mechanism, adjacency = request.mechanism, request.adjacency
    if not has_exact_law(mechanism, adjacency, refuting=request.control):
        return None
    play = None if request.exhaustive else (request.game.play or adjacency.pairs())
    return exact_evidence(
        mechanism,
        request.privacy,
        adjacency,
        play=play,
        seed=int(request.streams("exact", 0).integers(2**32)),
        examples=request.generated(EXAMPLES),
        refuting=request.control,
    )


def has_exact_law(
    mechanism: Any, adjacency: Adjacency, *, refuting: bool = False
) -> bool:
    """Return True if the mechanism states a law that this evidence can use.

    Args:
        mechanism: The mechanism.
        adjacency: The neighbours; an envelope can be used for a ``Box`` only.
        refuting: Whether the evidence has to refute the claim, as about a control. A
            law before post-processing cannot be used for that.
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

    Args:
        mechanism: The mechanism, which states a law or an envelope.
        claim: The claim.
        adjacency: The neighbours.
        play: The only pairs to compare, if given; then the claim can be refuted but not
            certified.
        seed: Seed of searches.
        examples: Largest number of pairs that a search generates.
        refuting: Whether to look first for one pair that certainly breaks the claim. If
            there is one, no other pair is compared.

    Returns:
        Evidence with the verdict VIOLATED or CERTIFIED, or NOT_REFUTED with the reason.

    Raises:
        MechanismError: If the laws are malformed, or no law is stated.
        ClaimError: If the claim is about a whole curve; only one point is compared.
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
            "exact evidence compares one point of δ(ε), expected PureDP, ApproxDP or "
            f"GaussianDP; got {claim!r}"
        )
    able = capabilities(mechanism)
    stated = stated_by(able, claim)
    envelope: Envelope | None = None
    enclosed = play is None and (stated is None or is_pure(claim))
    # An envelope covers all pairs of a domain, but only for a pure epsilon.
    if enclosed and isinstance(adjacency, Box) and able.envelope is not None:
        envelope = able.envelope()
        compared = by_envelope(envelope, stated, adjacency, seed)
    elif stated is None:
        raise MechanismError(
            f"{able.name}: states no law to compare; give it distribution(data)"
        )
    else:
        if refuting and stated.of_output:
            # A control is refuted by its first pair that breaks the claim.
            play = _first_that_breaks(stated, claim, adjacency, play) or play
        compared = by_pairs(
            able, stated, claim, adjacency, play, seed=seed, examples=examples
        )
    found = _LawComparison(able, claim, stated, envelope, compared)
    # Only an attained loss refutes.
    if found.broken and found.attained:
        return Evidence(
            verdict=Verdict.VIOLATED,
            statement=(
                f"Exact {_value(found.worst, claim)} over {compared.coverage.scope}; "
                f"the claim is {claim}"
            ),
            counterexample=found.counterexample(
                adjacency, seed=seed, examples=examples
            ),
            **found.recorded(),
        )
    # Every inequality is certain, and every pair is covered.
    if found.within and found.bounded and compared.complete:
        verdict, ending = Verdict.CERTIFIED, f", certainly within {claim}"
    else:
        verdict = Verdict.NOT_REFUTED
        ending = f"; not certified: {found.undecided_because()}"
    statement = f"{found.reached()}{ending}"
    return Evidence(verdict=verdict, statement=statement, **found.recorded())


@dataclass(frozen=True)
class _LawComparison:
    """The losses of compared pairs, and their relation to a claim."""

    able: Capabilities
    claim: Claim
    stated: Stated | None
    envelope: Envelope | None
    compared: Compared

    @property
    def attained(self) -> bool:
        """True if the losses are those of the output, so that they can refute a claim.

        The loss of a law before post-processing is only an upper bound. The loss of an
        envelope counts as attained.
        """
        of_output = self.stated is not None and self.stated.of_output
        return self.envelope is not None or of_output

    @cached_property
    def _judged(self) -> list[tuple[bool, bool]]:
        return [_judge(loss, self.claim) for loss in self.compared.losses]

    @property
    def broken(self) -> list[int]:
        """The indices of pairs that certainly break the claim."""
        return [k for k, (_, breaks) in enumerate(self._judged) if breaks]

    @property
    def within(self) -> bool:
        """True if the claim certainly holds for all compared pairs."""
        return all(holds for holds, _ in self._judged)

    @property
    def bounded(self) -> bool:
        """True if the bound on all pairs, if any, is certainly within the claim."""
        bound = self.compared.coverage.bound
        return bound is None or _judge(bound, self.claim)[0]

    @cached_property
    def index(self) -> int:
        """The index of the reported pair.

        It is the pair with the largest loss among the pairs that certainly break the
        claim, or among all pairs if none does.
        """
        losses = self.compared.losses
        among = self.broken or range(len(losses))
        return max(among, key=lambda k: size(losses[k]))

    @property
    def worst(self) -> PairLoss:
        """The loss of the reported pair."""
        return self.compared.losses[self.index]

    @property
    def pair(self) -> Pair:
        """The reported pair."""
        return self.compared.pairs[self.index]

    def recorded(self) -> dict[str, Any]:
        """Return the fields of ``Evidence`` that do not depend on its verdict."""
        claim, compared, worst = self.claim, self.compared, self.worst
        coverage = compared.coverage
        losses = [*compared.losses, coverage.bound or worst]
        levels = [_levels(loss, claim) for loss in losses]
        ends = [level for level in levels if level is not None]
        known = len(ends) == len(losses)
        pure = worst.mu is None or is_pure(claim)
        calibrated = coverage.bound is not None and self.envelope is None
        details = ExactDetails(
            exact_epsilon=worst.lower if self.attained and pure else None,
            worst_pair=str(self.pair),
            loss_computed_from=worst.source,
            scope=coverage.scope,
            pairs_enumerated=compared.looked_at,
            given_sensitivity=self.able.sensitivity if calibrated else None,
            **_curves(claim, self.stated, worst, self.pair),
        )
        lower = upper = None
        # A bound counts only if all losses have one.
        if known and self.attained:
            lower = max(low for low, _ in ends[:-1])
        if known and compared.complete:
            upper = max(high for _, high in ends)
        return {
            "kind": "exact",
            "assumptions": self._assumptions(),
            "details": details,
            "epsilon_lower": lower,
            "epsilon_upper": upper,
        }

    def _assumptions(self) -> list[str]:
        what = "computes its output from a value with its stated law"
        if self.attained:
            what = DRAWS_FROM_LAW
        coverage = self.compared.coverage
        losses = [*self.compared.losses, *filter(None, [coverage.bound])]
        assumed = chain.from_iterable(loss.assumed for loss in losses)
        return [
            f"{self.able.name} {what}",
            f"scope: {coverage.scope}",
            *coverage.assumptions,
            *dict.fromkeys(assumed),
        ]

    def counterexample(
        self, adjacency: Adjacency, *, seed: int, examples: int
    ) -> Counterexample:
        """Return a counterexample: the reported pair, or a simpler one of a search."""
        if self.envelope is not None and not self.compared.by_law:
            return _envelope_counterexample(
                self.envelope, self.index, self.worst, self.pair, self.claim
            )
        # The stated law gave the loss.
        assert self.stated is not None
        pair = self.pair
        if self.compared.searchable:
            pair = _smallest(
                adjacency, self.stated, self.claim, pair, seed=seed, examples=examples
            )
        return _counterexample(self.stated, pair, self.claim)

    def reached(self) -> str:
        """Return a phrase for the largest loss, and for a bound that exceeds it."""
        coverage, loses = self.compared.coverage, _value(self.worst, self.claim)
        bound = loses
        if coverage.bound is not None:
            bound = _value(coverage.bound, self.claim)
        if not self.attained:
            return (
                f"Before post-processing the law loses {bound} over {coverage.scope}, "
                "and the output at most that"
            )
        if bound == loses:
            return f"Exact {loses} over {coverage.scope}"
        return (
            f"At most {bound} over {coverage.scope}; of the compared pairs, the one "
            f"that loses most has {loses}"
        )

    def undecided_because(self) -> str:
        """Return the reason why the claim is neither broken nor certified."""
        unchecked = self.compared.coverage.unchecked
        if self.broken:
            return (
                "that is the law before post-processing, and the output may lose less"
            )
        if self.within and self.bounded:
            return unchecked
        if self.within and unchecked == "":
            return "that is a bound, which no compared pair attains"
        margin = f"the margin is within the rounding or enclosure of a loss computed from {self.worst.source}"
        return "; ".join(filter(None, [margin, unchecked]))


def _first_that_breaks(
    stated: Stated, claim: Claim, adjacency: Adjacency, given: Sequence[Pair] | None
) -> list[Pair] | None:
    """Return a list with only the first pair that certainly breaks the claim, or None.

    The given pairs are tried, or else those that the adjacency lists or enumerates.
    """
    sources = adjacency.pairs, adjacency.exhaustive
    # An enumeration is long, and starts only if no listed pair breaks the claim.
    listed = chain.from_iterable(source() or () for source in sources)
    for pair in given or listed:
        if _judge(stated.loss_of(pair), claim)[1]:
            return [pair]
    return None


def _smallest(
    adjacency: Adjacency,
    stated: Stated,
    claim: Claim,
    start: Pair,
    *,
    seed: int,
    examples: int,
) -> Pair:
    """Return the simplest violating pair that a search finds, or ``start``."""

    # A mechanism may refuse to state the law of a generated pair.
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
    found = smallest(
        generated, violates, examples=examples, seed=seed, start=start, score=score
    )
    return found or start


def _levels(loss: PairLoss, claim: Claim) -> tuple[float, float] | None:
    """Return bounds on the smallest level at which the claim holds for this pair.

    The level is epsilon, or mu for a claim of Gaussian DP.

    Returns:
        The lower and the upper bound, or None if they were not computed.
    """
    if isinstance(claim, GaussianDP):
        if loss.mu is None or loss.least_mu is None:
            return None
        return max(0.0, below(loss.least_mu)), above(loss.mu)
    if is_pure(claim):
        return loss.lower, loss.upper
    if loss.needed is None:
        return None
    # The claim may be judged with certainty although both bounds enclose its level.
    holds, breaks = _judge(loss, claim)
    lower, upper = loss.needed
    if breaks:
        lower = max(lower, claim.level)
    if holds:
        upper = min(upper, claim.level)
    return lower, upper


def _value(loss: PairLoss, claim: Claim) -> str:
    """Return the text of a loss in terms of the claim: its μ, its δ(ε), or its ε."""
    if isinstance(claim, GaussianDP) and loss.mu is not None:
        return f"μ = {_number(loss.mu, 12)}"
    if loss.delta is not None and loss.needed is not None:
        pure = "" if loss.mu is not None else f" (pure ε = {loss})"
        return f"δ({claim.level:.6g}) = {_number(loss.delta, 6)}{pure}"
    return f"ε = {loss}"


def _number(value: arb, digits: int) -> str:
    """Return the text of the middle of a ball, or of both ends if the ball is wide.

    Of a ball that contains 0, it is the upper end, or '0' if this is below 1e-30.
    """
    low, high = max(0.0, below(value)), above(value)
    if low == high == math.inf:
        return "∞"
    if low == 0.0 < high:
        # An enclosure that contains 0 has no digits.
        # No claim is about a probability below 1e-30.
        return "0" if high < 1e-30 else f"at most {high:.{digits}g}"
    if high - low > 1e-6 * high:
        return f"between {low:.{digits}g} and {high:.{digits}g}"
    return f"{float(value.mid()):.{digits}g}"


def _judge(loss: PairLoss, claim: Claim) -> tuple[bool, bool]:
    """Return (the claim certainly holds for this pair, it is certainly broken).

    A claim is certainly broken only beyond rounding. For a claim of Gaussian DP and
    laws that are not Gaussian, only an infinite pure ε is judged: a finite loss is
    within some Gaussian curve, and the game tests whether it is within the claimed one.
    """
    with precision():
        # Comparisons of balls are true only if they are certain.
        level = arb(claim.level)
        tolerance = 1 + arb(ROUNDING_TOLERANCE)
        if isinstance(claim, GaussianDP):
            if loss.mu is None or loss.least_mu is None:
                return False, float(loss.low) == math.inf
            return bool(loss.mu <= level), bool(loss.least_mu > level * tolerance)
        delta = arb(claim.tangents()[0][1])
        # A pure loss within the level satisfies every delta.
        holds = bool(loss.high <= level)
        if delta == 0:
            return holds, bool(loss.low > level * tolerance)
        if loss.delta is None or loss.delta_beyond is None:
            return holds, False
        within = holds or bool(loss.delta <= delta)
        return within, bool(loss.delta_beyond > delta * tolerance)


def _curves(
    claim: Claim, stated: Stated | None, worst: PairLoss, pair: Pair
) -> dict[str, Any]:
    """Return the fields of ``ExactDetails`` with curves δ(ε), by name.

    They are the curve of the claim and, if the output has a stated finite, step or
    Gaussian law, the curve of ``pair``.
    """
    largest = worst.lower if math.isfinite(worst.lower) else 2 * claim.level
    epsilons = np.linspace(0.0, 1.25 * max(claim.level, largest), 60)
    claimed = [(float(e), claim.delta_at(float(e))) for e in epsilons]
    curves: dict[str, Any] = {"claim_curve": claimed}
    if stated is None or not stated.of_output:
        return curves
    first, second = (stated.law_of(data) for _, data in sides(pair))
    if isinstance(first, FiniteLaw | StepLaw | GaussianLaw):
        # There is no closed form if sigma depends on the data.
        with suppress(MechanismError):
            curves["curve"] = delta_curve(first, second, epsilons)
    return curves


def _counterexample(stated: Stated, pair: Pair, claim: Claim) -> Counterexample:
    """Return the counterexample of a pair that certainly breaks the claim.

    For finite and step laws it names the output that adds most to δ, among the outputs
    whose ratio certainly exceeds e^ε if there are any.
    """
    loss = stated.loss_of(pair)
    p, q = stated.law_of(pair.data), stated.law_of(pair.neighbour)
    found = partial(Counterexample, pair=str(pair), python=pair.python)
    if isinstance(p, LaplaceLaw) and loss.lower == math.inf:
        return found(explanation=f"An infinite loss, computed from {loss.source}")
    if isinstance(p, LaplaceLaw):
        return found(
            output="any output beyond both locations in every coordinate that differs",
            explanation=(
                f"The log ratio of the two densities reaches {loss}; the claim allows "
                f"{claim.level:.6g}"
            ),
        )
    if isinstance(p, GaussianLaw):
        return found(
            explanation=f"The two laws are Gaussian: exact {_value(loss, claim)}; the claim is {claim}"
        )
    with precision():
        # The output that adds most to δ is the clearest example.
        factor = arb(claim.level).exp()

        def excess(row: Any) -> float:
            return max(float(row[0] - factor * row[1]), float(row[1] - factor * row[0]))

        laws = aligned(p, q)
        rows = laws.filled
        exceeding = [row for row in rows if ratio(row[0], row[1])[0] > factor]
        one, two, output = max(exceeding or rows, key=excess)
        delta = float(laws.delta(arb(claim.level)).mid())
    return found(
        output=_text(output),
        explanation=(
            f"This output has probability {_show(one)} on the first input and {_show(two)} on the second, "
            f"{_factor(row_loss(one, two))}; the claim is {claim}. Over all outputs ε = {loss} and "
            f"δ({claim.level:.6g}) = {outwards(delta, up=False, against=claim.delta)}"
        ),
        probabilities=(float(one.mid()), float(two.mid())),
    )


def _envelope_counterexample(
    envelope: Envelope, k: int, loss: PairLoss, pair: Pair, claim: Claim
) -> Counterexample:
    output = envelope.outputs[k]
    smallest_p, largest_p = envelope.bounds[k]
    several = envelope.uses > 1
    each = ""
    if several:
        each = f"; {envelope.uses} coordinates lose as much each, ε = {loss} in all"
    probabilities = float(largest_p.mid()), float(smallest_p.mid())
    return Counterexample(
        pair=str(pair),
        python=pair.python,
        output=_text(output),
        explanation=(
            f"This output has probability (or density) {_show(largest_p)} on the first input and "
            f"{_show(smallest_p)} on the second, "
            f"{_factor(row_loss(largest_p, smallest_p))}{each}; the claim is {claim}"
        ),
        probabilities=None if several else probabilities,
    )


def _text(output: Any) -> str:
    return output if isinstance(output, str) else brief(output)


def _show(p: arb) -> str:
    value = float(p.mid())
    return p.str(6, radius=False) if value == 0 and p != 0 else f"{value:.12g}"


def _factor(loss: PairLoss) -> str:
    if loss.lower == math.inf:
        return "it is possible on one of them only"
    # The largest double is about e^709.
    if loss.lower >= 700:
        return f"a factor of more than 1e304 = e^{loss}"
    if loss.upper == math.inf:
        return f"a factor of {outwards(math.exp(loss.lower), up=False)} at least"
    return f"a factor of {math.exp(loss.lower):.6g} = e^{loss}"
