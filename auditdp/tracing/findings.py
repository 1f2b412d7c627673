"""Findings of a pair: suspected faults, each as a sentence that names the line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from auditdp.accountants.additive_noise import GaussianCurve
from auditdp.claims.claim import Claim
from auditdp.claims.curves import ZeroConcentratedDP
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.tracing.chance import NAMED, is_by_chance, is_sample
from auditdp.tracing.composed_loss import ComposedLoss, allowed_delta
from auditdp.tracing.draws import ALONE, CHOICE, COIN, MAXIMUM, Release
from auditdp.tracing.losses import Moved
from auditdp.tracing.noise_families import Loss
from auditdp.tracing.outputs import brief, occurs
from auditdp.tracing.pair_record import PairRecord
from auditdp.tracing.sites import NOWHERE, CodeLine
from auditdp.tracing.trace_limits import (
    ABSOLUTE_ROUNDING,
    LIMITS,
    ROUNDING_OF_SUMS,
    SINGLE,
)
from auditdp.tracing.training_steps import differences


@dataclass(frozen=True)
class Finding:
    """A suspected fault on a pair: a proposal, no verdict.

    Attributes:
        kind: Name of the fault. "loss": the loss exceeds the claim. "scale": the scale
            of noise depends on the data. "reuse": noise is used again. "whole": a
            fractional value has whole noise. "number": a value with noise is no finite
            number. "seed": a seed depends on the data, or noise is the same in every
            run. "round": outputs differ without noise. "flow": the replay has other
            draws or releases. "steps": a training run differs from the parameters of
            its accountant. "opaque": the trace does not understand a line.
        site: The line; ``NOWHERE`` if the finding is about no line.
        sentence: The finding as a sentence.
        is_read_off: Whether the trace understands all code that the finding is derived
            from. It is False for "flow", "steps" and "opaque".
        is_confirmed: Whether runs with other draws confirmed it.
    """

    kind: str
    site: CodeLine
    sentence: str
    is_read_off: bool = True
    is_confirmed: bool = False

    def __str__(self) -> str:
        """Return the sentence, after "suspicion:" if it is not confirmed.

        An unconfirmed finding of the kind "opaque" has "not understood:" instead.
        """
        if self.is_confirmed:
            return self.sentence
        mark = "not understood" if self.kind == "opaque" else "suspicion"
        return f"{mark}: {self.sentence}"


class Printed:
    """Base class of results that a notebook displays as their escaped text."""

    def _repr_html_(self) -> str:
        from auditdp.report.html.notebook import printed

        return printed(str(self))

    def _repr_markdown_(self) -> str:
        from auditdp.report.html.notebook import printed_markdown

        return printed_markdown(str(self))


def findings_of(pair: PairRecord) -> list[Finding]:
    """Return the findings of a pair, none of them confirmed yet."""
    return [
        *_of_fixed_noise(pair),
        *_of_noise(pair),
        *_of_loss(pair),
        *_of_outputs(pair),
        *(Finding("steps", *difference, False) for difference in differences(pair)),
        *_of_control_flow(pair),
        *_of_opaque_code(pair),
    ]


def _of_fixed_noise(pair: PairRecord) -> list[Finding]:
    """Return the findings about noise that is the same in every run.

    Everybody who has the code knows such noise.
    """
    found = []
    for site, moved in pair.by_line().items():
        fixed = [each for each in _lossy(moved) if each.first.number in pair.fixed]
        if fixed:
            sentence = f"{of_line(fixed)}; this noise is the same in every run, whatever the generator"
            found.append(Finding("seed", site, sentence))
    return found


def _of_noise(pair: PairRecord) -> list[Finding]:
    """Return the findings about faults of the noise itself, line by line."""
    found = []
    for site, moved in pair.by_line().items():
        for why in sorted({each.why for each in _lossy(moved) if each.why}):
            faulty = [each for each in moved if each.why == why]
            sentence = of_line(faulty, pair.claim)
            found.append(Finding(why, site, sentence, _is_understood(pair, faulty)))
    return found


def _of_loss(pair: PairRecord) -> list[Finding]:
    """Return a list of the one finding that the loss exceeds the claim, or [].

    The finding names the lines with the largest loss. Releases whose noise has a fault
    are left out, because ``_of_noise`` returns findings about them. The result is [] if
    the others satisfy the claim, if the excess may be rounding in single precision, and
    without a claim.
    """
    claim, outcomes = pair.claim, pair.outcomes
    if claim is None or pair.satisfies:
        return []
    # A value that is clipped in single precision may exceed the norm by rounding.
    if pair.is_single and pair.composed.times(1 - SINGLE).satisfies(claim):
        return []
    is_settled = pair.is_settled
    moved = pair.noisy if is_settled else pair.moved
    rest = [each for each in _lossy(moved) if not each.why]
    losses = [each.loss for each in rest]
    if outcomes is not None and is_settled:
        losses.append(Loss(outcomes.epsilon))
    # The excess may come from the releases of other findings alone.
    if ComposedLoss.of(losses).satisfies(claim):
        return []
    if not rest:
        return [_loss_by_chance(pair, claim)]
    values = [each for each in rest if not is_by_chance(each.first)]
    if not _composed(values).satisfies(claim):
        # The noisy values exceed the claim whatever chance decides.
        rest = values
    by_line = pair.by_line(rest)
    order = sorted(by_line, key=lambda site: -math.fsum(map(size, by_line[site])))
    lines = [of_line(by_line[site], claim) for site in order[: LIMITS.named]]
    sentence = "; ".join(lines)
    level = _composed(rest).level(claim)
    if len(order) > 1 and math.isfinite(level):
        sentence += f"; together they lose {claim.parameter} = {level:.6g}"
    is_understood = _is_loss_exact(pair, rest) and _is_understood(pair, rest)
    return [Finding("loss", order[0], sentence, is_understood)]


def _loss_by_chance(pair: PairRecord, claim: Claim) -> Finding:
    """Return the finding that the loss of events and choices exceeds the claim."""
    sites = [each.first.site for each in pair.moved if is_by_chance(each.first)]
    site = sites[0] if sites else NOWHERE
    outcomes = pair.outcomes
    epsilon = outcomes.epsilon if outcomes is not None and outcomes.complete else 0.0
    sentence = (
        f"line {site.line}: the random decision there has a privacy loss of "
        f"{epsilon:.6g}; the claim is {claim}"
    )
    return Finding("loss", site, sentence, not pair.opaque)


def _is_loss_exact(pair: PairRecord, moved: Sequence[Moved]) -> bool:
    """Return True if the loss of the output may be that of these releases together.

    It is False if a reason for a smaller loss exists: records are sampled, or the
    output may hide a choice or a row.
    """
    first, second = pair.first, pair.second
    if pair.reordered:
        return False
    if not pair.is_settled:
        # A sampled record takes part with a probability below 1, so the loss is
        # smaller.
        if any(map(is_sample, first.releases)):
            return False
        # The output may hide a choice, unless every other outcome of it was tried and
        # gave another output, or a name exists on one input alone.
        revealed = pair.outcomes.telling if pair.outcomes is not None else frozenset()
        by_chance = [each.first for each in moved if is_by_chance(each.first)]
        is_revealed = all(release.number in revealed for release in by_chance)
        if not is_revealed and not any(map(_has_other_names, moved)):
            return False
    # Noise on each record has one row more on one input, and rows correspond only as
    # far as the output shows them.
    for each in moved:
        own = first.releases[each.first.number]
        other = second.releases[each.second.number]
        if own.shape != other.shape and not occurs(own.result, first.output):
            return False
    return True


def _has_other_names(moved: Moved) -> bool:
    has_delta = moved.loss is not None and moved.loss.delta > 0
    return has_delta and moved.first.names != moved.second.names


def _is_understood(pair: PairRecord, moved: Sequence[Moved]) -> bool:
    """Return True if the trace understands releases and earlier uses of their draws.

    For releases by chance it has to understand all lines of the pair.
    """
    if pair.opaque and any(is_by_chance(each.first) for each in moved):
        return False
    releases = pair.first.releases
    opaque = {each.number for each in releases if each.why or not each.is_known}
    return not any(
        opaque.intersection((each.first.number, *each.first.earlier)) for each in moved
    )


def _of_outputs(pair: PairRecord) -> list[Finding]:
    """Return the findings about differences of the outputs that no noise covers."""
    outcomes, allowed = pair.outcomes, allowed_delta(pair.claim)
    # A value that one input alone has may be revealed by its noise, within the δ.
    if pair.shown:
        chance = min(math.fsum(tail.chance for tail in pair.shown), 1.0)
        if chance <= allowed * (1 + ROUNDING_OF_SUMS):
            return []
        site = max(pair.shown, key=lambda tail: tail.chance).release.site
        sentence = (
            f"line {site.line} releases a value that the other input does not have, "
            "and the output shows that with "
        )
        sentence += f"probability {chance:.3g}"
        sentence += f"; the claim's δ is {allowed:.3g}" if allowed else ""
        sentence += f": {pair.differ}" if pair.differ is not None else ""
        return [Finding("round", site, sentence, not pair.opaque)]
    # Outcomes that were all tried decide whether chance explains the difference.
    if outcomes is not None:
        is_above = outcomes.delta > max(allowed, ABSOLUTE_ROUNDING)
        if outcomes.complete and is_above:
            sentence = (
                f"by the traced code, one input gives with probability "
                f"{outcomes.delta:.3g} an output that the other one never gives"
            )
            sentence += f"; the claim's δ is {allowed:.3g}" if allowed else ""
            return [_round(pair, sentence)]
        if outcomes.complete or outcomes.matched:
            return []
    # Without a repeated output, the difference may come from hidden draws.
    if pair.differ is None or pair.repeats is False:
        return []
    sentence = f"outputs differ although all noisy values are equal: {pair.differ}"
    return [_round(pair, sentence)]


def _round(pair: PairRecord, sentence: str) -> Finding:
    """Return a finding of the kind "round" with a sentence.

    If there is a reason why the finding may be wrong, the sentence states it, and the
    finding is not read off.
    """
    if pair.differ is not None and pair.differ not in sentence:
        sentence += f": {pair.differ}"
    outcomes, reason = pair.outcomes, ""
    if pair.doubt:
        reason = f"; but {pair.doubt}"
    elif pair.opaque:
        reason = "; part of the draws is not understood"
    elif pair.is_hidden:
        reason = "; other orders or samples were not tried"
    elif outcomes is not None and not outcomes.complete:
        reason = f"; {outcomes.runs} outcomes were tried"
    return Finding("round", NOWHERE, sentence + reason, not reason)


def _of_control_flow(pair: PairRecord) -> list[Finding]:
    """Return the findings about lines at which the replay differs from the record.

    It has other draws, releases or seeds there.
    """
    found = []
    for site, why in dict.fromkeys(pair.second.parted):
        is_seed = "seeded" in why
        sentence = f"line {site.line}: {why}"
        found.append(Finding("seed" if is_seed else "flow", site, sentence, is_seed))
    return found


def _of_opaque_code(pair: PairRecord) -> list[Finding]:
    """Return a finding for each line that the trace does not understand."""
    found, by_line = [], pair.by_line()
    for site, why in pair.opaque:
        unknown = [each for each in by_line.get(site, ()) if not each.first.is_known]
        sentence = f"line {site.line}: {why}" if site.line else why
        if unknown:
            sentence = of_line(unknown)
        found.append(Finding("opaque", site, sentence, False))
    return found


def _lossy(moved: Iterable[Moved]) -> list[Moved]:
    """Return the releases that the trace understands and whose loss is positive."""
    return [each for each in moved if each.loss is not None and any(each.loss)]


def _composed(moved: Iterable[Moved]) -> ComposedLoss:
    return ComposedLoss.of([each.loss for each in moved])


def scale_of(release: Release) -> str:
    """Return the scale of noise as text: "1", or "1 to 2" for several scales."""
    law = release.law
    scales = np.abs(np.asarray(law.scale, float))
    units = None if law.known is None else law.known.units
    if units is not None:
        # The shape parameter implies the scale.
        scales = 1 / np.asarray(units(1.0, law.parameter), float)
    smallest, largest = np.min(scales), np.max(scales)
    if smallest == largest:
        return f"{smallest:.6g}"
    return f"{smallest:.6g} to {largest:.6g}"


def what_it_does(release: Release) -> str:
    """Return a clause such as 'line 31 adds Laplace noise of scale 1 to a value'."""
    return f"line {release.site.line} {what_is_done(release)}"


def what_is_done(release: Release) -> str:
    """Return a clause such as 'adds Laplace noise of scale 1 to a value'."""
    law, kind = release.law, release.kind
    if kind == COIN:
        return "decides by a draw of known probability"
    if kind == CHOICE:
        return "chooses by a table of probabilities"
    if kind == MAXIMUM:
        return f"takes the largest of scores with Gumbel noise of scale {scale_of(release)}"
    if law.declared is not None:
        return f"calls {law.family}, a trusted function, on a value"
    noise = f"{law.family}, whose law the trace does not know,"
    if law.known is not None:
        noise = f"{law.family} noise of scale {scale_of(release)}"
    return f"uses {noise} by itself" if kind == ALONE else f"adds {noise} to a value"


def moved_by(pairs: Sequence[Moved]) -> float:
    """Return the joint move of all values of one line, in the norm of their noise."""
    law = max(pairs, key=size).first.law
    distances = [pair.distance for pair in pairs]
    if law.known is not None and law.known.norm == "L2":
        return math.hypot(*distances)
    return math.fsum(distances)


def of_line(pairs: Sequence[Moved], claim: Claim | None = None) -> str:
    """Return a sentence about the releases of one line.

    It states the fault of the noise, if there is one. Otherwise it states how far the
    values differ between the inputs, and the scale that the claim needs, if this scale
    is known.

    Args:
        pairs: The releases, at least one.
        claim: The claim; None to state no needed scale.
    """
    largest = max(pairs, key=size)
    release, other = largest.first, largest.second
    distance, doing = moved_by(pairs), what_it_does(release)
    times = f", {len(pairs)} times" if len(pairs) > 1 else ""
    moves = f" that differs by {distance:.6g} between the inputs"
    if times:
        moves = (
            f"{times}: the values differ by {distance:.6g} in total between the inputs"
        )
    # A fault of the noise explains more than a number, so it is named first.
    faults = {pair.why for pair in pairs}
    if "reuse" in faults:
        fault = "noise that was used before, or for another entry"
        return (
            f"{doing}{times}, with {fault}: the difference of both values has no "
            "noise, and the inputs differ in it"
        )
    if "scale" in faults:
        return f"{doing}{times}; on the other input the scale is {scale_of(other)}: it depends on the data"
    if "number" in faults:
        return (
            f"{doing}{times} that is {brief(release.location)} on one input and "
            f"{brief(other.location)} on the other"
        )
    if "whole" in faults:
        return f"{doing}{moves}: noise of whole numbers does not hide a fraction"
    if release.kind in NAMED:
        if not distance:
            return f"{doing}{times}, the same on both inputs"
        if math.isfinite(distance):
            return f"{doing}{times}, whose logarithms differ by {distance:.6g} between the inputs"
        return f"{doing}{times}, one of which is 0 on one input only"
    if largest.only and size(largest):
        loss = math.fsum(pair.loss.epsilon for pair in pairs if pair.loss is not None)
        return (
            f"{doing}{moves}; the output reveals only {largest.only}, so ε = {loss:.6g}"
        )
    if not distance:
        return (
            f"{doing}{times}, equal on both inputs"
            if times
            else f"{doing} that is equal on both inputs"
        )
    if (
        release.law.family == "Gaussian"
        and isinstance(claim, PureDP)
        and math.isfinite(distance)
    ):
        return f"{doing}{moves}; Gaussian noise has no finite ε"
    needed = needed_scale(release, distance, claim)
    if needed is None:
        return f"{doing}{moves}"
    return f"{doing}{moves}; {claim} needs scale {needed:.6g}"


def needed_scale(
    release: Release, distance: float, claim: Claim | None
) -> float | None:
    """Return a scale of the noise at which a release satisfies a claim.

    Args:
        release: The release, taken alone. Only the family of its noise is used.
        distance: Move of its value between the inputs, in the norm of the noise.
        claim: The claim, or None.

    Returns:
        The scale, in the unit of ``distance``. None without a claim, for an infinite
        distance, and if there is no formula for this claim and this noise.
    """
    known = release.law.known
    if claim is None or known is None or not math.isfinite(distance):
        return None
    if release.law.family == "Gaussian":
        if isinstance(claim, GaussianDP):
            return distance / claim.level
        if isinstance(claim, ZeroConcentratedDP):
            return distance / math.sqrt(2 * claim.level)
        if not isinstance(claim, ApproxDP) or not claim.delta > 0:
            return None
        return distance * GaussianCurve.sigma_for(claim.epsilon, claim.delta)
    is_linear = known.norm == "L1" and not known.is_part
    if is_linear and isinstance(claim, PureDP | ApproxDP) and claim.level:
        return distance / claim.level
    return None


def size(pair: Moved) -> float:
    """Return ε + δ + μ of the loss of a release, a number that ranks releases.

    It is 0 for a release whose loss is not understood.
    """
    if pair.loss is None:
        return 0.0
    return pair.loss.epsilon + pair.loss.delta + math.sqrt(pair.loss.squared_mu)
