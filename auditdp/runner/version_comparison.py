"""Compare an audit's mechanism with that of another revision: by traces, then by bets.

Traces run both versions on the same inputs with the same generator, and report
differences of the draws and of the privacy loss. This describes the code in these runs,
and proves nothing about the law of the outputs.

Bets are statistical evidence. A coin chooses the version, the version runs on an input,
and forecasters give the odds of each version. Null hypothesis: both versions have the
same law on every played input. Then outputs are independent of the coin, which is 0-DP
for the pair of (main, input) and (here, input). So the game is that of every audit. Its
level is the audit's share of a second α, beside the α of the claims. Versions with the
same law are distinguished with probability at most that level.

A changed law is not a violation. But a change fails a check if both of the following
hold on some pair. First, by the traces, this version loses more than the claim, and the
other one satisfies it. Second, one of these is true:

- Bets distinguished the outputs. And the output reveals this version's loss, or all
  noise of this version occurs in the other one, too.
- Bets distinguished the outputs, or both versions make the same releases. And runs with
  other draws confirm the finding about this version.
- Both versions make the same releases, and one loses more than before. And runs with
  other draws confirm that each release has noise of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from auditdp.adjacency import Adjacency, Alike, Neighbours, Pair
from auditdp.adjacency.adjacency import different, offers
from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.claims.claim import Claim
from auditdp.claims.statements import PureDP
from auditdp.errors import AdjacencyError, AuditError
from auditdp.evidence.game_sentences import looked_at
from auditdp.mechanism.protocol import brief, identity_key, name_of
from auditdp.numerics.rounding import SAME, same_number
from auditdp.record.budget import Budget
from auditdp.record.details import GameDetails
from auditdp.record.results import SYMBOLS, Verdict
from auditdp.record.versions import LawChange, VersionsResult
from auditdp.runner.audit_traces import breaking, generated_pairs, is_shown
from auditdp.runner.plan import Task
from auditdp.runner.version_process import (
    OtherVersion,
    VersionError,
    output_of,
    traces_of,
)
from auditdp.tracing import (
    Finding,
    PairTrace,
    Trace,
    VersionChange,
    VersionsTrace,
    findings,
)
from auditdp.tracing.draws import Release
from auditdp.tracing.prediction import Experiments


@dataclass(frozen=True)
class ComparisonLimits:
    """Limits of a comparison. They bound its time; no benchmark varies them."""

    listed_pairs: int = 20
    """Largest number of listed pairs that are traced."""
    corner_cases: int = 40
    """Largest number of corner cases that are traced."""
    generated_pairs: int = 30
    """Largest number of generated pairs that are traced."""
    similar_pairs: int = 8
    """Largest number of traced pairs that differ like listed ones."""
    runs_per_pair: int = 3
    """Number of traced runs on each of the similar pairs, since one run takes one path
    through the code. Other pairs are traced once."""
    played_inputs: int = 6
    """Largest number of inputs on which bets are made."""
    calls: int = 4_000
    """Largest number of calls for the bets, of both versions together."""
    added_pairs: int = 4
    """Largest number of pairs that the audit plays in addition to its own."""
    lines: int = 3
    """Largest number of differing lines that the result names."""
    more_calls: int = 10
    """Factor of the calls for the game of an audit whose mechanism changed."""


LIMITS = ComparisonLimits()
HERE = "here"
THERE = "main"


@dataclass(frozen=True)
class ComparedAudit:
    """The result of a comparison, and its effects on the following audit."""

    result: VersionsResult
    pairs: Sequence[Pair] = ()
    """Pairs that the audit plays in addition to its own, because the releases of this
    version lose more on them."""

    def audit(self, built: Audit) -> Audit:
        """Return ``built`` with ``pairs`` in addition to its own pairs."""
        if not self.pairs:
            return built
        if built.play is not None:
            return replace(built, play=[*built.play, *self.pairs])
        return replace(built, pairs=MorePairs(built.adjacency, self.pairs))

    def settings(self, settings: Settings) -> Settings:
        """Return settings with ``LIMITS.more_calls`` times the calls after a change.

        Without a change of the mechanism, the settings are returned as they are.
        """
        if not self.result.differs:
            return settings
        budget = replace(
            settings.budget, calls=settings.budget.calls * LIMITS.more_calls
        )
        return replace(settings, budget=budget)


class MorePairs:
    """An adjacency with further listed pairs; all else is that of ``adjacency``."""

    def __init__(self, adjacency: Adjacency, pairs: Sequence[Pair]) -> None:
        self._adjacency, self._pairs = adjacency, list(pairs)

    def __getattr__(self, name: str) -> Any:
        # While a copy is made, ``_adjacency`` is still missing.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._adjacency, name)

    def pairs(self) -> list[Pair]:
        """Return the listed pairs of the adjacency, and the further ones."""
        return [*self._adjacency.pairs(), *self._pairs]


def compared(
    built: Audit, task: Task, other: OtherVersion, settings: Settings
) -> ComparedAudit:
    """Compare the mechanism of an audit with that of the other revision.

    This runs in the process of the mechanism. If the versions cannot be compared, the
    result has the change ``FAILED`` and the reason.

    Args:
        built: The audit of this revision.
        task: The task of the audit.
        other: The audit of the other revision.
        settings: The settings of the audit. The bets have its level, and at most its
            calls.
    """
    # Only a task with another revision is compared.
    assert task.against is not None
    revision = task.against.revision
    if built.is_formula or not isinstance(built.claim, Claim):
        return ComparedAudit(
            VersionsResult(
                revision,
                LawChange.FAILED,
                reason="only mechanisms with a claim of privacy are",
            )
        )
    claim, name = built.claim, name_of(built.mechanism)
    listed = _pairs(built, task)
    similar = _like(built.adjacency, listed)
    pairs = [*listed, *similar * LIMITS.runs_per_pair]
    try:
        old = other.traces(pairs, claim)
    except VersionError as error:
        return ComparedAudit(
            VersionsResult(revision, LawChange.FAILED, name, reason=str(error))
        )
    new = traces_of(built.mechanism, pairs, claim, task)
    seen = [
        _BothTraces(p, one, two) for p, one, two in zip(pairs, old, new, strict=True)
    ]
    own = seen[: len(listed)]
    read = VersionsResult(
        revision,
        LawChange.DRAWS if any(map(_of_code, seen)) else LawChange.UNSEEN,
        name,
        lines=_lines(seen),
        loss=_loss(own, claim),
        inputs=len(listed) + len(similar),
    )
    try:
        read = bets(read, built, own, other, settings)
    except AuditError as error:
        read = replace(read, reason=f"bets ended with: {error}")
    law = read.change is LawChange.CHANGED
    read = replace(read, worse=_worse(seen, claim, built.mechanism, changed=law))
    return ComparedAudit(read, _proposed(own, built) if read.differs else ())


@dataclass(frozen=True, eq=False)
class _BothTraces:
    """A pair, and the traces of both versions on it; ``new`` is of this version."""

    pair: Pair
    old: PairTrace
    new: PairTrace

    @cached_property
    def versions(self) -> VersionsTrace:
        """The differences between both traces."""
        return VersionsTrace.of(self.old, self.new)


def _pairs(built: Audit, task: Task) -> list[Pair]:
    listed = list(islice(built.play or built.adjacency.pairs(), LIMITS.listed_pairs))
    corners = list(
        islice(offers(built.adjacency).corner_cases or (), LIMITS.corner_cases)
    )
    generated = generated_pairs(
        built.adjacency, listed, LIMITS.generated_pairs, task.root_seed
    )
    return different([*listed, *corners, *generated])


def _like(adjacency: Adjacency, listed: Sequence[Pair]) -> list[Pair]:
    """Return unlisted pairs that differ as listed ones do.

    There are none if the adjacency states a relation or generates pairs. The pairs are
    traced and not played, since nobody stated that their inputs are neighbours. A loss
    above the claim only counts if the other version satisfies the claim on the same
    pair.
    """
    found: list[Pair] = []
    if (
        isinstance(adjacency, Neighbours)
        and adjacency.search is None
        and adjacency.relation is None
    ):
        for pair in listed:
            # Inputs that do not differ in one record have no similar pairs.
            with suppress(AdjacencyError):
                found += [
                    replace(like, name="a pair like the given")
                    for like in Alike([pair]).corner_cases()
                ]
    return different([*listed, *found])[len(listed) :][: LIMITS.similar_pairs]


def _lines(seen: Sequence[_BothTraces]) -> list[str]:
    """Return a sentence for each difference, those that occur on most pairs first.

    After ``LIMITS.lines`` differences, the last sentence has the number of the others.
    """
    found: dict[Any, tuple[int, str]] = {}
    for each in seen:
        for change in _of_code(each):
            key = _place(change)
            many, sentence = found.get(key, (0, _named(change)))
            found[key] = (many + 1, sentence)
    ordered = sorted(found.values(), key=lambda item: -item[0])
    more = (
        [f"{len(ordered) - LIMITS.lines} more lines differ"]
        if len(ordered) > LIMITS.lines
        else []
    )
    return [sentence for _, sentence in ordered[: LIMITS.lines]] + more


def _of_code(each: _BothTraces) -> list[VersionChange]:
    """Return the differences of the traces, except in the number of equal releases.

    A release that only one version makes does not count if the other version makes one
    of the same kind in the same function. Their number may depend on the run.
    """
    known = [
        {_kind(release) for release in trace.first.releases}
        for trace in (each.new, each.old)
    ]
    return [
        change
        for change in each.versions.changes
        if not (
            change.after is None
            and change.before is not None
            and _kind(change.before) in known[0]
        )
        and not (
            change.before is None
            and change.after is not None
            and _kind(change.after) in known[1]
        )
    ]


def _kind(release: Release) -> tuple[str, str]:
    return release.site.function, findings.what_is_done(release)


def _place(change: VersionChange) -> Any:
    release = change.after or change.before
    return (
        (release.site, change.before is None, change.after is None)
        if release is not None
        else None
    )


def _named(change: VersionChange) -> str:
    release = change.after or change.before
    return (
        f"{Path(release.site.file).name}: {change.sentence}"
        if release is not None
        else change.sentence
    )


def _loss(seen: Sequence[_BothTraces], claim: Claim) -> str:
    """Return a phrase with the largest traced loss of each version.

    It is empty if both losses are equal.
    """
    old, new = (
        max((each.old.level for each in seen), default=0.0),
        max((each.new.level for each in seen), default=0.0),
    )
    if same_number(old, new, near=SAME):
        return ""
    then, now = (
        "without bound" if level == math.inf else f"{level:.4g}" for level in (old, new)
    )
    return f"{SYMBOLS[claim.parameter]} of its releases, on the compared pairs, is {now} and was {then}"


def _worse(
    seen: Sequence[_BothTraces], claim: Claim, mechanism: Any, *, changed: bool
) -> str:
    """Return why the claim fails now, on the first pair that shows it.

    The pairs are tried in the order of their traced losses, the largest first.

    Args:
        seen: The traces on all pairs.
        claim: The claim of this version.
        mechanism: The mechanism of this version.
        changed: Whether bets distinguished the outputs.

    Returns:
        A sentence, empty if nothing suggests that the claim fails.
    """
    unconfirmed = set[Any]()
    with Trace(mechanism) as trace:
        for each in sorted(seen, key=lambda each: -each.new.share):
            for finding in _breaking(each):
                place = finding.kind, finding.site
                shown = (
                    changed
                    and finding.kind != "round"
                    and (is_shown(each.new, finding) or _same_noise(each))
                )
                more = finding.kind == "loss" and _loses_more(each)
                if (
                    not shown
                    and (more or changed or _same_releases(each))
                    and (place, more) not in unconfirmed
                ):
                    tried = Experiments(trace, each.new)
                    shown = tried.confirms(*place) or (
                        more and tried.is_own and tried.is_steady
                    )
                    # Another pair runs the same code there, so it is not tried again.
                    unconfirmed.add((place, more))
                if shown:
                    return (
                        f"by the trace, the claim {claim} does not hold on "
                        f"{each.pair}, and held before: {finding.sentence}"
                    )
    return ""


def _breaking(each: _BothTraces) -> list[Finding]:
    """Return the findings that break the claim now and did not before.

    The list is empty unless the trace of the other version is understood completely,
    satisfies the claim, and has no such finding.
    """
    if not each.old.covers or not each.old.satisfies or any(breaking(each.old)):
        return []
    return list(breaking(each.new))


def _same_noise(each: _BothTraces) -> bool:
    """Return True if all noise of this version occurs in the other one as well.

    Noise is compared by its kind, its family, and the function that adds it. All code
    of this version must be understood.
    """
    old, new = (
        {_at(release) for release in trace.first.releases}
        for trace in (each.old, each.new)
    )
    return each.new.extent == "full" and new <= old


def _same_releases(each: _BothTraces) -> bool:
    """Return True if both versions make the same releases in the same order.

    Releases are compared by kind, family of the noise, and function.
    """
    old, new = (
        [_at(release) for release in trace.first.releases]
        for trace in (each.old, each.new)
    )
    return old == new


def _loses_more(each: _BothTraces) -> bool:
    """Return True if one release loses more now, and none loses less.

    Both versions must make the same releases.
    """
    sizes = [
        [findings.size(moved) for moved in trace.moved]
        for trace in (each.old, each.new)
    ]
    return (
        _same_releases(each)
        and sizes[0] != sizes[1]
        and all(a <= b for a, b in zip(*sizes, strict=False))
    )


def _at(release: Release) -> tuple[str, str, str]:
    return release.kind, release.law.family, release.site.function


def bets(
    read: VersionsResult,
    built: Audit,
    seen: Sequence[_BothTraces],
    other: OtherVersion,
    settings: Settings,
) -> VersionsResult:
    """Return ``read`` with the outcome of bets on the version behind each output.

    Args:
        read: The comparison of the traces.
        built: The audit of this revision.
        seen: The traces on pairs whose inputs may be played.
        other: The audit of the other revision.
        settings: The settings of the audit; the game has its level.
    """

    def version(data: tuple[str, Any], rng: np.random.Generator) -> Any:
        which, given = data
        if which == HERE:
            return output_of(built.mechanism, given, rng)
        return other.output(given, int(rng.integers(2**63)))

    calls = min(LIMITS.calls, settings.budget.calls, built.calls or LIMITS.calls)
    inputs = {f"input {k}": data for k, data in enumerate(_inputs(seen))}
    pairs = [Pair((THERE, data), (HERE, data), name) for name, data in inputs.items()]
    game = Audit(version, PureDP(0.0), pairs, evidence=["game"])
    found = run_audit(
        game,
        replace(
            settings,
            budget=Budget(calls, is_limit=True),
            key=f"{settings.key} versions",
        ),
    )
    read = replace(read, calls=found.calls, alpha=settings.alpha)
    details = found.evidence[0].details
    if found.verdict is not Verdict.VIOLATED or not isinstance(details, GameDetails):
        return read
    assert details.confirmation is not None  # of every violation that a game finds
    basis = looked_at(details.confirmation.forecaster)
    on = brief(inputs[details.confirmation.pair.partition(":")[0]])
    outputs = f"bets on the version distinguished their outputs by {basis}, on {on}"
    return replace(read, change=LawChange.CHANGED, outputs=outputs)


def _inputs(seen: Sequence[_BothTraces]) -> list[Any]:
    """Return at most ``LIMITS.played_inputs`` inputs on which the traces differ.

    Inputs that show different changes come first. If no traces differ, the inputs of
    all pairs are candidates.
    """
    differing: dict[Any, Any] = {}
    for each in seen:
        if each.versions.differs:
            places = frozenset(map(_place, each.versions.changes))
            differing.setdefault(
                (places, len(differing) if not places else 0), each.pair.data
            )
    inputs = [
        *differing.values(),
        *(each.pair.data for each in seen if each.versions.differs),
    ]
    inputs = inputs or [
        data for each in seen for data in (each.pair.data, each.pair.neighbour)
    ]
    found: dict[Any, Any] = {}
    for data in inputs:
        found.setdefault(identity_key(data), data)
    return list(found.values())[: LIMITS.played_inputs]


def _proposed(seen: Sequence[_BothTraces], built: Audit) -> list[Pair]:
    """Return pairs on which this version loses more than on each pair of the audit.

    The losses are those of the traces. At most ``LIMITS.added_pairs`` are returned.
    """
    own = {_key(pair) for pair in built.play or built.adjacency.pairs()}
    played = max(
        (each.new.share for each in seen if _key(each.pair) in own), default=0.0
    )
    others = sorted(
        (each for each in seen if _key(each.pair) not in own),
        key=lambda each: -each.new.share,
    )
    return [each.pair for each in islice(_distinct(others, played), LIMITS.added_pairs)]


def _key(pair: Pair) -> Any:
    return identity_key(pair.data), identity_key(pair.neighbour)


def _distinct(others: Sequence[_BothTraces], played: float) -> Iterator[_BothTraces]:
    """Yield the pairs whose share is over 1.05 times ``played``, one for each share.

    The share of a pair is its traced loss, as a multiple of the claim.
    """
    shares: set[float] = set()
    for each in others:
        if each.new.share > played * 1.05 and round(each.new.share, 3) not in shares:
            shares.add(round(each.new.share, 3))
            yield each
