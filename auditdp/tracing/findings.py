"""Findings of a pair: what a trace proposes, each with the line that it is about.

What a trace says, as sentences that name the line.

What a notebook shows of a trace: its printed form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from auditdp.accountants.additive_noise import GaussianCurve
from auditdp.claims.claim import Claim
from auditdp.claims.curves import ZeroConcentratedDP
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.tracing.chance import is_by_chance, is_sample
from auditdp.tracing.composed_loss import ComposedLoss, allowed_delta
from auditdp.tracing.draws import ALONE, CHOICE, COIN, MAXIMUM, Release
from auditdp.tracing.losses import Moved
from auditdp.tracing.noise_families import Loss
from auditdp.tracing.outcomes import Outcomes
from auditdp.tracing.outputs import brief, occurs
from auditdp.tracing.sites import NOWHERE, CodeLine

if TYPE_CHECKING:
    from auditdp.tracing.pair import PairTrace

SINGLE = 1e-5
"""What a loss may exceed a claim by, relatively, where values with noise have single precision: clipping rounds them so."""


@dataclass(frozen=True)
class Finding:
    """One thing that a trace says of a pair: a proposal, no verdict.

    Attributes:
        kind: 'loss' above the claim, noise that depends on the data ('scale'), is used twice ('reuse'), is whole on
            what is not ('whole') or on no number ('number'), 'seed' from the data, outputs that got 'round' the
            noise, 'flow' that parted, 'steps' that the accountant of the claim was told otherwise, or what is 'opaque'.
        site: The line; an unknown one where it is about the output.
        sentence: What it is.
        is_read_off: Whether the trace understood all that it rests on. Else it is where to look.
        is_confirmed: Whether runs with other draws confirmed it. Else it is a suspicion.
    """

    kind: str
    site: CodeLine
    sentence: str
    is_read_off: bool = True
    is_confirmed: bool = False

    def __str__(self) -> str:
        """Return the sentence, and how it is known."""
        if self.is_confirmed:
            return self.sentence
        return f"{'not understood' if self.kind == 'opaque' else 'suspicion'}: {self.sentence}"


def of_noise(trace: PairTrace) -> list[Finding]:
    """Return what is wrong with the noise itself, line by line."""
    found = []
    for site, pairs in trace.by_line().items():
        for why in sorted(
            {
                pair.why
                for pair in pairs
                if pair.why and pair.loss is not None and any(pair.loss)
            }
        ):
            wrong = [pair for pair in pairs if pair.why == why]
            found.append(
                Finding(
                    why, site, of_line(wrong, trace.claim), _understood(trace, wrong)
                )
            )
    return found


def of_fixed(trace: PairTrace) -> list[Finding]:
    """Return the lines whose noise is the same in every run: who knows the code can compute it."""
    found = []
    for site, pairs in trace.by_line().items():
        known = [
            pair
            for pair in pairs
            if pair.first.number in trace.fixed and pair.loss and any(pair.loss)
        ]
        if known:
            sentence = f"{of_line(known)}; it is the same noise in every run, whatever the generator"
            found.append(Finding("seed", site, sentence))
    return found


def of_loss(trace: PairTrace) -> list[Finding]:
    """Return the lines that lose most, where all releases together lose more than the claim.

    Lines whose noise is wrong in itself, and what one input alone gives, are said by themselves.
    """
    claim, outcomes = trace.claim, trace.outcomes
    if (
        claim is None
        or trace.satisfies
        or (trace.is_single and trace.composed.times(1 - SINGLE).satisfies(claim))
    ):
        return []
    complete = outcomes is not None and outcomes.complete
    noisy = trace.noisy if complete else trace.moved
    rest = [
        pair
        for pair in noisy
        if pair.loss is not None and any(pair.loss) and not pair.why
    ]
    by_chance = [Loss(outcomes.epsilon)] if outcomes is not None and complete else []
    if ComposedLoss.of([*(pair.loss for pair in rest), *by_chance]).satisfies(claim):
        return []
    if not rest:
        lossy = [pair for pair in trace.moved if is_by_chance(pair.first)]
        site = lossy[0].first.site if lossy else NOWHERE
        epsilon = by_chance[0].epsilon if by_chance else 0.0
        sentence = f"line {site.line}: what chance decides there loses {epsilon:.6g}; the claim is {claim}"
        return [Finding("loss", site, sentence, not trace.opaque)]
    values = [pair for pair in rest if not is_by_chance(pair.first)]
    if not ComposedLoss.of([pair.loss for pair in values]).satisfies(claim):
        rest = values  # whatever chance decides
    order = sorted(
        trace.by_line(rest).items(), key=lambda item: -math.fsum(map(size, item[1]))
    )
    said = "; ".join(of_line(pairs, claim) for _, pairs in order[:3])
    if len(order) > 1 and math.isfinite(
        level := ComposedLoss.of([pair.loss for pair in rest]).level(claim)
    ):
        said += f"; together they lose {claim.parameter} = {level:.6g}"
    telling = outcomes.telling if outcomes is not None else frozenset()
    by_outcomes = not complete and any(
        is_by_chance(p.first) and p.first.number not in telling for p in rest
    )
    other_names = any(
        p.loss is not None and p.loss.delta > 0 and p.first.names != p.second.names
        for p in rest
    )
    understood = (
        (other_names or not by_outcomes)
        and not trace.reordered
        and _understood(trace, rest)
    )
    # Which records take part is drawn, and what is drawn makes the loss smaller by how seldom they do.
    understood = understood and (
        complete or not any(map(is_sample, trace.first.releases))
    )
    both = [
        (
            trace.first.releases[pair.first.number],
            trace.second.releases[pair.second.number],
        )
        for pair in rest
    ]
    # Of two shapes, as noise on each record has, it is not known which rows correspond, unless the output shows them.
    understood &= all(
        a.shape == b.shape or occurs(a.result, trace.first.output) for a, b in both
    )
    return [Finding("loss", order[0][0], said, understood)]


def _understood(trace: PairTrace, pairs: Sequence[Moved]) -> bool:
    """Return whether the trace understands some releases, and those that the same draws went into before.

    What a draw decides is not all that it does where some use of a draw is not understood.
    """
    if trace.opaque and any(is_by_chance(pair.first) for pair in pairs):
        return False
    opaque = {
        release.number
        for release in trace.first.releases
        if release.why or not release.is_known
    }
    return not any(
        pair.first.number in opaque or opaque.intersection(pair.first.earlier)
        for pair in pairs
    )


def of_outputs(trace: PairTrace) -> list[Finding]:
    """Return what got round the noise."""
    outcomes, allowed = trace.outcomes, allowed_delta(trace.claim)
    if trace.shown:
        chance = min(math.fsum(one.chance for one in trace.shown), 1.0)
        if chance <= allowed * (1 + 1e-6):
            return []
        site = max(trace.shown, key=lambda one: one.chance).release.site
        doing = f"line {site.line} releases a value that the other input does not have, and the output shows that with "
        doing += f"probability {chance:.3g}"
        doing += f"; the claim's δ is {allowed:.3g}" if allowed else ""
        doing += f": {trace.differ}" if trace.differ is not None else ""
        return [Finding("round", site, doing, not trace.opaque)]
    if outcomes is not None:
        if (
            outcomes.complete
            and outcomes.delta > max(allowed, 1e-12)
            and outcomes.only is not None
        ):
            said = f"with probability {outcomes.delta:.3g} the output is one that the other input never gives"
            return [_round(trace, said)]
        if outcomes.complete or outcomes.matched:
            return []
    if trace.differ is None or trace.repeats is False:
        return []
    return [
        _round(
            trace,
            f"outputs differ although all noisy values are equal: {trace.differ}",
            tried=outcomes,
        )
    ]


def _round(trace: PairTrace, sentence: str, tried: Outcomes | None = None) -> Finding:
    if trace.differ is not None and trace.differ not in sentence:
        sentence += f": {trace.differ}"
    public = trace.is_hidden
    understood = (
        not trace.opaque
        and (tried is None or tried.complete)
        and not public
        and not trace.doubt
    )
    if trace.doubt:
        sentence += f"; but {trace.doubt}"
    elif public and not trace.opaque:
        sentence += "; other orders or samples were not tried"
    elif trace.opaque:
        sentence += "; part of the draws is not understood"
    elif not understood:
        sentence += f"; {tried.runs if tried else 0} outcomes were tried"
    return Finding("round", NOWHERE, sentence, understood)


def scale_of(release: Release) -> str:
    """Return the scale of a release, of all entries where it is one."""
    scales = np.unique(np.abs(np.asarray(release.law.scale, float)))
    if release.law.family in ("geometric", "two-sided geometric"):
        scales = np.unique(-1 / np.log1p(-np.asarray(release.law.parameter, float)))
    if release.law.family in ("rounded Laplace", "discrete Gaussian"):
        scales = np.unique(np.asarray(release.law.parameter, float))
    return (
        f"{scales[0]:.6g}"
        if len(scales) == 1
        else f"{scales[0]:.6g} to {scales[-1]:.6g}"
    )


def what_it_does(release: Release) -> str:
    """Return what a line does, such as 'line 31 adds Laplace noise of scale 1 to a value'."""
    return f"line {release.site.line} {what_is_done(release)}"


def what_is_done(release: Release) -> str:
    """Return what a release does, at whatever line."""
    if release.kind == COIN:
        return "decides by a draw of known probability"
    if release.kind == CHOICE:
        return "chooses by a table of probabilities"
    if release.kind == MAXIMUM:
        return f"takes the largest of scores with Gumbel noise of scale {scale_of(release)}"
    if release.law.declared is not None:
        return f"calls {release.law.family}, which is trusted, on a value"
    if release.law.known is None and release.kind == ALONE:
        return (
            f"uses {release.law.family}, whose law the trace does not know, by itself"
        )
    if release.law.known is None:
        return (
            f"adds {release.law.family}, whose law the trace does not know, to a value"
        )
    noise = f"{release.law.family} noise of scale {scale_of(release)}"
    return (
        f"uses {noise} by itself"
        if release.kind == ALONE
        else f"adds {noise} to a value"
    )


def moved_by(pairs: Sequence[Moved]) -> float:
    """Return how far the values of one line, of one family, move together in the norm of their noise."""
    law, moved = max(pairs, key=size).first.law, [pair.distance for pair in pairs]
    return (
        math.hypot(*moved)
        if law.known is not None and law.known.norm == "L2"
        else math.fsum(moved)
    )


def of_line(pairs: Iterable[Moved], claim: Claim | None = None) -> str:
    """Return the sentence of the releases of one line on a pair: what moved, and which scale the claim needs."""
    pairs = list(pairs)
    first = max(pairs, key=size)
    release, distance = first.first, moved_by(pairs)
    times = f", {len(pairs)} times" if len(pairs) > 1 else ""
    moves = (
        f"{times}: the values move by {distance:.6g} together"
        if times
        else f" that moves by {distance:.6g}"
    )
    doing = what_it_does(release)
    if any(pair.why == "reuse" for pair in pairs):
        said = "with noise that is used before or for another entry: the difference has no noise, and it moves"
        return f"{doing}{times}, {said}"
    if any(pair.why == "scale" for pair in pairs):
        other = scale_of(first.second)
        return f"{doing}{times}; on the other input the scale is {other}: it depends on the data"
    if any(pair.why == "number" for pair in pairs):
        values = f"{brief(release.location)} on one input and {brief(first.second.location)} on the other"
        return f"{doing}{times} that is {values}"
    if any(pair.why == "whole" for pair in pairs):
        return f"{doing}{moves}: whole noise does not hide what is no whole number"
    if release.kind in (COIN, CHOICE, MAXIMUM):
        if not distance:
            return f"{doing}{times}, the same on both inputs"
        logarithms = f"whose logarithms move by {distance:.6g}"
        return f"{doing}{times}, {logarithms if math.isfinite(distance) else 'of which one is 0 on one input alone'}"
    if first.only and size(first):
        loss = math.fsum(pair.loss.epsilon for pair in pairs if pair.loss is not None)
        return f"{doing}{moves}; the output shows only {first.only}, for ε = {loss:.6g}"
    if not distance:
        return f"{doing}{f'{times}, none of which moves' if times else ' that does not move'}"
    return f"{doing}{moves}{_enough(release, distance, claim)}"


def _enough(release: Release, distance: float, claim: Claim | None) -> str:
    """Return which scale would be enough for a claim, where one number says it."""
    if (
        release.law.family == "Gaussian"
        and isinstance(claim, PureDP)
        and math.isfinite(distance)
    ):
        return "; Gaussian noise is of no finite ε"
    needed = needed_scale(release, distance, claim)
    return "" if needed is None else f"; {claim} needs scale {needed:.6g}"


def needed_scale(
    release: Release, distance: float, claim: Claim | None
) -> float | None:
    """Return the scale of the noise at which a release alone keeps a claim; None where no number says it."""
    law = release.law
    if claim is None or law.known is None or not math.isfinite(distance):
        return None
    if law.family == "Gaussian":
        if isinstance(claim, GaussianDP):
            return distance / claim.level
        if isinstance(claim, ZeroConcentratedDP):
            return distance / math.sqrt(2 * claim.level)
        if isinstance(claim, ApproxDP) and claim.delta > 0:
            return (
                GaussianCurve.sigma_for(
                    claim.epsilon, claim.delta, sensitivity=distance
                )
                if distance
                else 0.0
            )
        return None
    at_once = law.known.norm == "L1" and not law.known.is_part
    return (
        distance / claim.level
        if at_once and isinstance(claim, PureDP | ApproxDP) and claim.level
        else None
    )


def size(pair: Moved) -> float:
    """Return a number by which losses of releases are put in order."""
    if pair.loss is None:
        return 0.0
    return pair.loss.epsilon + pair.loss.delta + math.sqrt(pair.loss.squared_mu)


class Printed:
    """Shows what ``str`` returns in a notebook, where texts of the caller's code are escaped."""

    def _repr_html_(self) -> str:
        from auditdp.report.html.notebook import printed

        return printed(str(self))

    def _repr_markdown_(self) -> str:
        from auditdp.report.html.notebook import printed_markdown

        return printed_markdown(str(self))
