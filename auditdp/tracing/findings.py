"""Findings of a pair: what a trace proposes, each with the line that it is about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from auditdp.tracing import sentences
from auditdp.tracing.composing import ComposedLoss, allowed_delta
from auditdp.tracing.exploring import Outcomes, is_by_chance
from auditdp.tracing.families import Loss
from auditdp.tracing.losses import Moved
from auditdp.tracing.outputs import occurs
from auditdp.tracing.sites import NOWHERE, CodeLine
from auditdp.tracing.steps import is_sample

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
        for why in sorted({pair.why for pair in pairs if pair.why and pair.loss is not None and any(pair.loss)}):
            wrong = [pair for pair in pairs if pair.why == why]
            found.append(Finding(why, site, sentences.of_line(wrong, trace.claim), _understood(trace, wrong)))
    return found


def of_fixed(trace: PairTrace) -> list[Finding]:
    """Return the lines whose noise is the same in every run: who knows the code can compute it."""
    found = []
    for site, pairs in trace.by_line().items():
        known = [pair for pair in pairs if pair.first.number in trace.fixed and pair.loss and any(pair.loss)]
        if known:
            sentence = f"{sentences.of_line(known)}; it is the same noise in every run, whatever the generator"
            found.append(Finding("seed", site, sentence))
    return found


def of_loss(trace: PairTrace) -> list[Finding]:
    """Return the lines that lose most, where all releases together lose more than the claim.

    Lines whose noise is wrong in itself, and what one input alone gives, are said by themselves.
    """
    claim, outcomes = trace.claim, trace.outcomes
    if claim is None or trace.satisfies or (trace.is_single and trace.composed.times(1 - SINGLE).satisfies(claim)):
        return []
    complete = outcomes is not None and outcomes.complete
    noisy = trace.noisy if complete else trace.moved
    rest = [pair for pair in noisy if pair.loss is not None and any(pair.loss) and not pair.why]
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
    order = sorted(trace.by_line(rest).items(), key=lambda item: -math.fsum(map(sentences.size, item[1])))
    said = "; ".join(sentences.of_line(pairs, claim) for _, pairs in order[:3])
    if len(order) > 1 and math.isfinite(level := ComposedLoss.of([pair.loss for pair in rest]).level(claim)):
        said += f"; together they lose {claim.parameter} = {level:.6g}"
    telling = outcomes.telling if outcomes is not None else frozenset()
    by_outcomes = not complete and any(is_by_chance(p.first) and p.first.number not in telling for p in rest)
    other_names = any(p.loss is not None and p.loss.delta > 0 and p.first.names != p.second.names for p in rest)
    understood = (other_names or not by_outcomes) and not trace.reordered and _understood(trace, rest)
    # Which records take part is drawn, and what is drawn makes the loss smaller by how seldom they do.
    understood = understood and (complete or not any(map(is_sample, trace.first.releases)))
    both = [(trace.first.releases[pair.first.number], trace.second.releases[pair.second.number]) for pair in rest]
    # Of two shapes, as noise on each record has, it is not known which rows correspond, unless the output shows them.
    understood &= all(a.shape == b.shape or occurs(a.result, trace.first.output) for a, b in both)
    return [Finding("loss", order[0][0], said, understood)]


def _understood(trace: PairTrace, pairs: Sequence[Moved]) -> bool:
    """Return whether the trace understands some releases, and those that the same draws went into before.

    What a draw decides is not all that it does where some use of a draw is not understood.
    """
    if trace.opaque and any(is_by_chance(pair.first) for pair in pairs):
        return False
    opaque = {release.number for release in trace.first.releases if release.why or not release.is_known}
    return not any(pair.first.number in opaque or opaque.intersection(pair.first.earlier) for pair in pairs)


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
        if outcomes.complete and outcomes.delta > max(allowed, 1e-12) and outcomes.only is not None:
            said = f"with probability {outcomes.delta:.3g} the output is one that the other input never gives"
            return [_round(trace, said)]
        if outcomes.complete or outcomes.matched:
            return []
    if trace.differ is None or trace.repeats is False:
        return []
    return [_round(trace, f"outputs differ although all noisy values are equal: {trace.differ}", tried=outcomes)]


def _round(trace: PairTrace, sentence: str, tried: Outcomes | None = None) -> Finding:
    if trace.differ is not None and trace.differ not in sentence:
        sentence += f": {trace.differ}"
    public = trace.is_hidden
    understood = not trace.opaque and (tried is None or tried.complete) and not public and not trace.doubt
    if trace.doubt:
        sentence += f"; but {trace.doubt}"
    elif public and not trace.opaque:
        sentence += "; other orders or samples were not tried"
    elif trace.opaque:
        sentence += "; part of the draws is not understood"
    elif not understood:
        sentence += f"; {tried.runs if tried else 0} outcomes were tried"
    return Finding("round", NOWHERE, sentence, understood)
