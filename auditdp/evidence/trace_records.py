"""The record of the traces before a game: lines that add noise, and suspected faults.

The record informs the reader of a report; it is no evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from auditdp.adjacency import Pair
from auditdp.adjacency.remote_adjacency import TraceElsewhere
from auditdp.betting.pairs.trace_summary import TraceLook
from auditdp.claims.claim import Claim
from auditdp.claims.curves import AccountedDP
from auditdp.mechanism.calls.channel import shaped
from auditdp.record.traces import GameTrace, TracedFinding, TracedLine
from auditdp.tracing import Finding, PairTrace, Trace, checked
from auditdp.tracing.chance import is_by_chance
from auditdp.tracing.composed_loss import ComposedLoss
from auditdp.tracing.draws import CHOICE, COIN, Release
from auditdp.tracing.findings import moved_by, needed_scale, scale_of, size
from auditdp.tracing.losses import Moved
from auditdp.tracing.noise_families import Loss
from auditdp.tracing.origin import made_at
from auditdp.tracing.sites import CodeLine
from auditdp.tracing.training_steps import cost_as_run

Traced = Sequence[tuple[Pair, PairTrace]]
GAME_TRACE: TypeAdapter[GameTrace | None] = TypeAdapter(GameTrace | None)
OTHERWISE = (
    "outputs of the game of another form than those that were traced: {:,}; no bets "
    "were made on them by the traced noise"
)
"""Sentence on outputs for which the traced law gave no odds, with their number."""


def game_trace(
    look: TraceLook | TraceElsewhere, claim: Claim, *, played: bool, abstained: int
) -> GameTrace | None:
    """Return the record of the traces before a game, or None if nothing was traced.

    Args:
        look: The result of the trace, in this process or in that of the mechanism.
        claim: The claim.
        played: Whether a law of the trace was a forecaster of the game.
        abstained: Number of outputs for which this forecaster gave no odds.
    """
    if isinstance(look, TraceElsewhere):
        return shaped(GAME_TRACE, look.recorded(played=played, abstained=abstained))
    failed = [look.failed] if look.failed else []
    if not look.looked:
        if not failed:
            return None
        return GameTrace(pairs=look.pairs, runs=look.runs, extent="none", opaque=failed)
    found, root = [(each.pair, each.trace) for each in look.looked], Path.cwd()
    # The pair with the largest share is checked again with other draws.
    place = max(range(len(found)), key=lambda k: found[k][1].share)
    pair, worst = found[place]
    if look.covers:
        worst = checked(look.trace, worst)
        found[place] = pair, worst
    findings, opaque = findings_of(found, claim, root, look.trace)
    opaque += failed
    if abstained:
        opaque.append(OTHERWISE.format(abstained))
    extents = {trace.extent for _, trace in found}
    return GameTrace(
        pairs=look.pairs,
        runs=look.runs,
        extent=extents.pop() if len(extents) == 1 else "part",
        is_bound=worst.is_bound,
        share=look.share,
        pair=str(pair) if worst.share else "",
        played=played,
        lines=lines_of(found, claim, root),
        findings=findings,
        opaque=opaque,
    )


Line = tuple[CodeLine, str]
"""A line of code, and the family of its noise."""


def lines_of(found: Traced, claim: Claim, root: Path) -> list[TracedLine]:
    """Return one row for each line and family of noise, sorted by file and line.

    Each row has the largest values on any pair: the privacy loss of the line (None if
    it is unknown on a pair), the change between the two inputs of the values to which
    the line adds noise, and the scale that the claim needs.

    Args:
        found: The traced pairs.
        claim: The claim.
        root: The working folder, from which the rows state paths.
    """
    largest: dict[Line, TracedLine] = {}
    for _, pair in found:
        # The first release of a line stands for its noise.
        releases = {_line(each): each for each in reversed(_releases(pair))}
        for line, losses in _losses(pair).items():
            site, family = line
            at_line = pair.by_line().get(site, ())
            moves = [moved for moved in at_line if _line(moved.first) == line]
            composed = None if None in losses else ComposedLoss.of(losses)
            if composed is not None and not composed.parts and not pair.covers:
                # Part of the loss is not understood, and it may be that of this line.
                composed = None
            row = TracedLine(
                file=_file(site, root),
                line=site.line,
                family=family,
                scale=_scale(releases[line]),
                moved=moved_by(moves) if moves else 0.0,
                loss=composed.level(claim) if composed is not None else None,
                share=composed.share(claim) if composed is not None else None,
                needed=_needed(moves, claim),
            )
            largest[line] = _larger(largest.get(line, row), row)
    return [largest[line] for line in sorted(largest)]


def _line(release: Release) -> Line:
    return release.site, release.law.family


def _releases(pair: PairTrace) -> list[Release]:
    return [*pair.first.releases, *pair.second.releases]


def _losses(pair: PairTrace) -> dict[Line, list[Loss | None]]:
    """Return the losses of each line; a loss is None if it is unknown.

    If all outcomes of random choices were compared, the loss of all choices together is
    known, and that of each choice is not. It is listed at the first line that makes a
    choice, and the other such lines have None.
    """
    found: dict[Line, list[Loss | None]] = {}
    together = pair.outcomes is not None and pair.outcomes.complete
    by_chance = list(filter(is_by_chance, _releases(pair)))
    if together and by_chance:
        found = {_line(release): [None] for release in by_chance}
        found[_line(by_chance[0])] = [pair.losses[-1]]
    for moved in pair.moved:
        if not (together and is_by_chance(moved.first)):
            found.setdefault(_line(moved.first), []).append(moved.loss)
    return found


def _scale(release: Release) -> str:
    if release.kind in (COIN, CHOICE) or release.law.known is None:
        return ""
    return scale_of(release)


def _larger(one: TracedLine, other: TracedLine) -> TracedLine:
    """Return the row with the larger loss of two rows of one line.

    It gets the larger difference and the larger needed scale of the two. An unknown
    loss counts as larger than any other.
    """
    worse = max(one, other, key=lambda row: (row.share is None, row.share or 0.0))
    scales = [row.needed for row in (one, other) if row.needed is not None]
    moved = max(one.moved, other.moved)
    return replace(worse, moved=moved, needed=max(scales, default=None))


def findings_of(
    found: Traced, claim: Claim, root: Path, code: Trace
) -> tuple[list[TracedFinding], list[str]]:
    """Return every finding once, and sentences on code that the trace cannot follow.

    A finding on several pairs is reported for the pair with the largest loss. Confirmed
    findings come first, then those for which the trace understood all code.

    Args:
        found: The traced pairs.
        claim: The claim.
        root: The working folder, from which the rows state paths.
        code: The trace, which runs the mechanism with other draws to confirm findings.
    """
    by_place: dict[tuple[str, CodeLine], list[tuple[Pair, PairTrace, Finding]]] = {}
    for pair, trace in found:
        for finding in trace.findings:
            same = by_place.setdefault((finding.kind, finding.site), [])
            same.append((pair, trace, finding))
    rows: list[TracedFinding] = []
    opaque: list[str] = []
    confirmed: dict[int, PairTrace] = {}
    for (kind, site), same in by_place.items():
        pair, trace, finding = max(
            same, key=lambda each: (each[2].is_read_off, each[1].share)
        )
        # A finding is confirmed by runs with other draws, once for each trace.
        if finding.is_read_off:
            if id(trace) not in confirmed:
                confirmed[id(trace)] = checked(code, trace)
            again = confirmed[id(trace)].findings
            finding = next(
                each for each in again if (each.kind, each.site) == (kind, site)
            )
        if kind == "opaque":
            opaque += dict.fromkeys(each.sentence for _, _, each in same)
            continue
        sentence = finding.sentence
        noise = _noise_of(trace.by_line().get(site, ()), claim)
        # The line that makes the difference says more than the line that shows it.
        if kind == "flow" or (kind == "round" and not site.line):
            maker = made_at(code, trace)
            if maker.line:
                does = "makes what gets round the noise"
                if trace.second.parted:
                    does = "takes another branch on the other input"
                site, sentence = maker, f"line {maker.line} {does}: {sentence}"
        if kind == "steps" and not any(row.kind == kind for row in rows):
            sentence += _cost_as_run(trace, claim)
        row = TracedFinding(
            kind=kind,
            file=_file(site, root),
            line=site.line,
            sentence=sentence,
            read_off=finding.is_read_off,
            confirmed=finding.is_confirmed,
            pair=str(pair),
            pairs=len({id(each) for each, _, _ in same}),
            **noise,
        )
        rows.append(row)
    return sorted(rows, key=lambda row: (not row.confirmed, not row.read_off)), opaque


def _cost_as_run(trace: PairTrace, claim: Claim) -> str:
    """Return a phrase for the loss of a training's steps as they were run.

    The loss is an accountant's lower bound. The phrase is empty if there is no such
    bound above the claim, or the claim is not an accountant's.
    """
    found = cost_as_run(trace)
    if found is None or not isinstance(claim, AccountedDP):
        return ""
    ran, lower = found
    words = ran.words.format(self=ran)
    return (
        f"; ASSUMING that every step is released and can move as far, {words} has ε ≥ "
        f"{lower:.3g} at δ = {claim.quoted:g}"
    )


def _noise_of(moves: Sequence[Moved], claim: Claim) -> dict[str, Any]:
    """Return fields of ``TracedFinding`` about the noise of one line.

    They are the family, the scale, the difference between the inputs, and the needed
    scale. The result is empty if the line has no noise of a known scale.
    """
    if not moves:
        return {}
    release = max(moves, key=size).first
    scale = _scale(release)
    if not scale:
        return {}
    moved, needed = moved_by(moves), _needed(moves, claim)
    family = release.law.family
    return {"family": family, "scale": scale, "moved": moved, "needed": needed}


def _needed(moves: Sequence[Moved], claim: Claim) -> float | None:
    if not moves:
        return None
    return needed_scale(max(moves, key=size).first, moved_by(moves), claim)


def _file(site: CodeLine, root: Path) -> str:
    file = Path(site.file)
    if site.file and file.is_relative_to(root):
        return file.relative_to(root).as_posix()
    return file.name
