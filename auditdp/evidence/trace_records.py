"""What a trace saw of pairs, as a record has it: lines at which noise enters, and what is proposed. It is no evidence."""

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
    "outputs of the game that do not look like those that were traced: {:,}; no bet was made on them by the noise that was "
    "read off"
)
"""What is said of outputs on which the replayed ratio abstained."""


def game_trace(
    look: TraceLook | TraceElsewhere, claim: Claim, *, played: bool, abstained: int
) -> GameTrace | None:
    """Return the record of what a trace saw before a game; None where it looked at nothing.

    ``played`` says whether the replayed ratio was a forecaster, and ``abstained`` on how many outputs it abstained.
    """
    if isinstance(look, TraceElsewhere):
        return shaped(GAME_TRACE, look.recorded(played=played, abstained=abstained))
    if not look.looked:
        return (
            GameTrace(
                pairs=look.pairs, runs=look.runs, extent="none", opaque=[look.failed]
            )
            if look.failed
            else None
        )
    found, root = [(each.pair, each.trace) for each in look.looked], Path.cwd()
    place = max(range(len(found)), key=lambda k: found[k][1].share)
    pair, worst = found[place]
    if look.covers:
        worst = checked(look.trace, worst)
        found[place] = pair, worst
    findings, opaque = findings_of(found, claim, root, look.trace)
    opaque += [look.failed] if look.failed else []
    opaque += [OTHERWISE.format(abstained)] if abstained else []
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


def lines_of(found: Traced, claim: Claim, root: Path) -> list[TracedLine]:
    """Return each line with the largest numbers that it has on any pair."""
    largest: dict[tuple[CodeLine, str], TracedLine] = {}
    for _, pair in found:
        for (site, family), losses in _losses(pair).items():
            moves = [
                moved
                for moved in pair.by_line().get(site, ())
                if moved.first.law.family == family
            ]
            releases = [
                release
                for release in (*pair.first.releases, *pair.second.releases)
                if release.site == site
            ]
            release = next(
                release for release in releases if release.law.family == family
            )
            composed = None if None in losses else ComposedLoss.of(losses)
            if composed is not None and not composed.parts and not pair.covers:
                composed = None  # part of the loss is not understood, and it may be that of this line
            row = TracedLine(
                file=_file(site, root),
                line=site.line,
                family=family,
                scale=_scale(release),
                moved=moved_by(moves) if moves else 0.0,
                loss=composed.level(claim) if composed is not None else None,
                share=composed.share(claim) if composed is not None else None,
                needed=_needed(moves, claim),
            )
            before = largest.get((site, family))
            largest[site, family] = row if before is None else _larger(before, row)
    return [largest[key] for key in sorted(largest)]


def _losses(pair: PairTrace) -> dict[tuple[CodeLine, str], list[Loss | None]]:
    """Return what each line loses; of lines at which chance decides, all together, the first has it and the others None."""
    found: dict[tuple[CodeLine, str], list[Loss | None]] = {}
    together = pair.outcomes is not None and pair.outcomes.complete
    by_chance = [
        release
        for release in (*pair.first.releases, *pair.second.releases)
        if is_by_chance(release)
    ]
    if together and by_chance:
        found = {(release.site, release.law.family): [None] for release in by_chance}
        found[by_chance[0].site, by_chance[0].law.family] = [pair.losses[-1]]
    for moved in pair.moved:
        if not (together and is_by_chance(moved.first)):
            found.setdefault((moved.first.site, moved.first.law.family), []).append(
                moved.loss
            )
    return found


def _scale(release: Release) -> str:
    return (
        ""
        if release.kind in (COIN, CHOICE) or release.law.known is None
        else scale_of(release)
    )


def _larger(one: TracedLine, other: TracedLine) -> TracedLine:
    """Return the row of one line that loses more, with the larger move; a loss that is not known outranks the others."""
    worse = max(one, other, key=lambda row: (row.share is None, row.share or 0.0))
    needed = max(
        (row.needed for row in (one, other) if row.needed is not None), default=None
    )
    return replace(worse, moved=max(one.moved, other.moved), needed=needed)


def findings_of(
    found: Traced, claim: Claim, root: Path, code: Trace
) -> tuple[list[TracedFinding], list[str]]:
    """Return every finding once, as it is on the pair where it shows most, and what is opaque."""
    by_place: dict[tuple[str, CodeLine], list[tuple[Pair, PairTrace, Finding]]] = {}
    for pair, trace in found:
        for finding in trace.findings:
            by_place.setdefault((finding.kind, finding.site), []).append(
                (pair, trace, finding)
            )
    made, opaque, tried = list[TracedFinding](), list[str](), dict[int, PairTrace]()
    for (kind, site), seen in by_place.items():
        pair, trace, finding = max(
            seen, key=lambda each: (each[2].is_read_off, each[1].share)
        )
        if finding.is_read_off:
            if id(trace) not in tried:
                tried[id(trace)] = checked(code, trace)
            finding = next(
                one
                for one in tried[id(trace)].findings
                if (one.kind, one.site) == (kind, site)
            )
        if kind == "opaque":
            opaque += list(dict.fromkeys(each.sentence for _, _, each in seen))
            continue
        on, sentence = len({id(each) for each, _, _ in seen}), finding.sentence
        noise = _noise_of(trace.by_line().get(site, ()), claim)
        if (kind == "flow" or (kind == "round" and not site.line)) and (
            maker := made_at(code, trace)
        ).line:
            does = (
                "goes another way on the other input"
                if trace.second.parted
                else "makes what gets round the noise"
            )
            site, sentence = maker, f"line {maker.line} {does}: {sentence}"
        if kind == "steps" and not any(row.kind == kind for row in made):
            sentence += _cost_as_run(trace, claim)
        file = _file(site, root)
        row = TracedFinding(
            kind=kind,
            file=file,
            line=site.line,
            sentence=sentence,
            read_off=finding.is_read_off,
            confirmed=finding.is_confirmed,
            pair=str(pair),
            pairs=on,
            **noise,
        )
        made.append(row)
    return sorted(
        made, key=lambda each: (not each.confirmed, not each.read_off)
    ), opaque


def _cost_as_run(trace: PairTrace, claim: Claim) -> str:
    """Return what the steps as they were run cost at least by an accountant; empty where that is no more than the claim."""
    if (found := cost_as_run(trace)) is None or not isinstance(claim, AccountedDP):
        return ""
    ran, lower = found
    words = ran.words.format(self=ran)
    return f"; ASSUMING that every step is released and can move as far, {words} has ε ≥ {lower:.3g} at δ = {claim.quoted:g}"


def _noise_of(moves: Sequence[Moved], claim: Claim) -> dict[str, Any]:
    """Return family, scale, move and the scale that is needed, of the noise of one line on one pair."""
    if not moves or not (scale := _scale(max(moves, key=size).first)):
        return {}
    family = max(moves, key=size).first.law.family
    return {
        "family": family,
        "scale": scale,
        "moved": moved_by(moves),
        "needed": _needed(moves, claim),
    }


def _needed(moves: Sequence[Moved], claim: Claim) -> float | None:
    return (
        needed_scale(max(moves, key=size).first, moved_by(moves), claim)
        if moves
        else None
    )


def _file(site: CodeLine, root: Path) -> str:
    file = Path(site.file)
    return (
        file.relative_to(root).as_posix()
        if site.file and file.is_relative_to(root)
        else file.name
    )
