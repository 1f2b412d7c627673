"""Differences between a baseline and a run: findings, weaker audits, stale entries.

``differences`` compares a whole run. It calls one function for each subject: the
claims, the findings, the strength of each audit, and the entries without a result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from auditdp.numerics.rounding import count, outwards
from auditdp.record.baseline_entries import STRENGTH, Entry, entry_of, same_text
from auditdp.record.details import kind_of
from auditdp.record.results import REFUTATIONS, AuditResult, RunRecord, Verdict
from auditdp.record.traces import Fate
from auditdp.record.versions import LawChange

EXPECTED_POWER = 1.5
"""Loss that an audit should detect, as a multiple of the claim.

If an audit detects too little, the sentence about it proposes calls for this loss.
"""
BLIND_POWER = 2.0
"""Smallest loss that a new audit has to detect, as a multiple of the claim.

The audit is reported if the smallest loss that it detects is more than ``POWER_GROWTH``
times as large.
"""
POWER_GROWTH = 1.5
"""Factor by which the detectable loss may grow before an audit counts as weaker.

Chance changes it by less: by at most a factor of 1.35 between two seeds, in six hundred
checks of harmless changes.
"""


class Kind(StrEnum):
    """Kinds of differences, worst first."""

    FINDING = "new finding"
    EXPIRED = "no longer accepted"
    CRASHED = "crashed"
    DRIFT = "drifted"
    LOSES = "loses more"
    CHANGED = "claim changed"
    WEAKER = "weaker"
    SKIPPED = "skipped"
    GONE = "gone"
    STALE = "stale entry"
    ACCEPTED = "accepted"
    CHANCE = "perhaps chance"
    STRONGER = "stronger"
    NEW = "new audit"
    LAW = "law changed"
    DRAWS = "draws otherwise"
    NOT_COMPARED = "not compared"
    NOT_RUN = "not run"


FINDINGS = (Kind.FINDING, Kind.EXPIRED)
OF_VERSIONS = {
    LawChange.CHANGED: Kind.LAW,
    LawChange.DRAWS: Kind.DRAWS,
    LawChange.FAILED: Kind.NOT_COMPARED,
}
REGRESSIONS = (
    Kind.DRIFT,
    Kind.LOSES,
    Kind.CHANGED,
    Kind.WEAKER,
    Kind.SKIPPED,
    Kind.GONE,
    Kind.STALE,
)


@dataclass(frozen=True)
class Difference:
    """A difference between the baseline and the run in one audit.

    ``result`` is None if the run has no result of the audit.
    """

    audit: str
    kind: Kind
    text: str
    result: AuditResult | None = None


Found = Iterator[tuple[Kind, str]]


def differences(
    known: Mapping[str, Entry],
    record: RunRecord,
    *,
    covered: Callable[[str], bool],
    today: date,
) -> list[Difference]:
    """Return all differences, sorted by kind, worst first, and then by id.

    Args:
        known: The entries of the baseline by id.
        record: The run.
        covered: Function of an audit's id: True if the run selected this audit
            (``auditdp.record.baseline_entries.covered``).
        today: The day in UTC; an acceptance holds until the end of the day of its
            expiry.
    """
    results = {result.id: result for result in record.results}
    found = [
        Difference(name, kind, text, result)
        for name, result in results.items()
        for kind, text in _of(known.get(name), result, today)
    ]
    found += _without_result(known, record, covered)
    found += _uncompared(known, results)
    return worst_first([*found, *of_versions(record)])


def worst_first(found: Sequence[Difference]) -> list[Difference]:
    """Return the differences, sorted by kind, worst first, and then by id."""
    order = list(Kind)
    return sorted(found, key=lambda each: (order.index(each.kind), each.audit))


def of_versions(record: RunRecord) -> Iterator[Difference]:
    """Yield a difference for each mechanism that differs from that of another revision.

    An audit whose comparison failed has a difference as well (``Kind.NOT_COMPARED``).
    """
    for result in record.results:
        versions = result.versions
        if versions is not None and versions.change is not LawChange.UNSEEN:
            kind = Kind.LOSES if versions.worse else OF_VERSIONS[versions.change]
            yield Difference(result.id, kind, versions.text, result)


def _of(entry: Entry | None, result: AuditResult, today: date) -> Found:
    # A crashed audit has nothing else to compare.
    if result.verdict is Verdict.ERROR:
        yield Kind.CRASHED, result.summary
        return
    if entry is not None:
        yield from _claims(entry, result)
    yield from _findings(entry, result, today)
    if result.is_unconfirmed:
        text = f"the claim was refuted, and the refutation was not confirmed: {result.summary}"
        yield Kind.WEAKER, text
    if result.mutation is not None:
        for mutant in result.mutation.of(Fate.SURVIVED):
            yield Kind.FINDING, f"mutant {mutant.name} survives: {mutant.statement}"
    if entry is not None:
        yield from _strength(entry, result)
    elif not result.is_finding:
        yield Kind.NEW, f"{result.verdict}; it is not in the baseline yet"
        yield from _sight(None, result)


def _findings(entry: Entry | None, result: AuditResult, today: date) -> Found:
    accepted = None
    if entry is not None:
        accepted = entry.accepted
    if not result.is_finding:
        if accepted is not None and result.verdict is not Verdict.SKIPPED:
            yield (
                Kind.STALE,
                f"{result.verdict} now; what was accepted is no longer found: "
                f"{accepted.reason}",
            )
        return
    # An acceptance covers one fault. A later one may have another verdict.
    same = entry is not None and entry.verdict is result.verdict
    same = same and entry is not None and entry.expect == result.expected
    if accepted is None or not same:
        yield Kind.FINDING, result.summary
    elif accepted.expires is not None and accepted.expires < today:
        yield Kind.EXPIRED, f"accepted until {accepted.expires}: {accepted.reason}"
    else:
        yield Kind.ACCEPTED, accepted.reason


def _claims(entry: Entry, result: AuditResult) -> Found:
    now = entry_of(result)
    if entry.expect != now.expect:
        text = f"it declares {entry.expect!r} in the baseline, {now.expect!r} now"
        yield Kind.CHANGED, text
    if not now.claim or not entry.claim or entry.same(now):
        # A skipped audit states no claim.
        return
    # The digests differ and the texts do not, so no text can show the change.
    if entry.adjacency == now.adjacency and not entry.same_neighbours(now):
        yield (
            Kind.CHANGED,
            "the neighbours, or the pairs that are played, are others than in the baseline: "
            f"{now.adjacency} leaves out the part that changed",
        )
        return
    then, new = (f"{each.claim} ({each.adjacency})" for each in (entry, now))
    # Equal texts hide a change in later digits.
    if then == new:
        then, new = (
            f"{each.claim}, in full {' '.join(map(repr, each.numbers))},"
            for each in (entry, now)
        )
    yield Kind.CHANGED, f"{then} in the baseline, {new} now"


def _uncompared(
    known: Mapping[str, Entry], results: Mapping[str, AuditResult]
) -> Iterator[Difference]:
    """Yield differences for audits in which a change of neighbours may stay unnoticed.

    One difference is for all audits without a digest in the baseline. Each audit whose
    digest leaves out a part of the neighbours has one of its own.
    """
    undigested = []
    for name, result in results.items():
        if name not in known:
            continue
        entry = known[name]
        digest = entry_of(result).digest
        without = digest.partition(" ")[2]
        if digest and not entry.digest and entry.claim:
            undigested.append(result)
        elif without and entry.digest:
            text = f"the neighbours are compared {without}: a change of that cannot be noticed"
            yield Difference(name, Kind.NOT_COMPARED, text, result)
    if undigested:
        first, *rest = undigested
        others = ""
        if rest:
            others = f" and of {count(len(rest), 'other audit')}"
        yield Difference(
            first.id,
            Kind.NOT_COMPARED,
            f"the neighbours of this{others} are compared by their short text alone, since "
            "an earlier version of auditdp wrote the baseline; `auditdp baseline update` "
            "adds digests",
            first,
        )


def _strength(entry: Entry, result: AuditResult) -> Found:
    now = entry_of(result)
    # A skipped audit has no strength to compare.
    if now.verdict is Verdict.SKIPPED:
        if entry.verdict is not Verdict.SKIPPED:
            text = f"{entry.verdict} in the baseline, not run now: {result.summary}"
            yield Kind.SKIPPED, text
        return
    changes = [*_changes(entry, now, result), *_sight(entry, result)]
    # Weaker changes are listed one by one; others are summed up.
    weaker = [text for kind, text in changes if kind is Kind.WEAKER]
    chance = [text for kind, text in changes if kind is Kind.CHANCE]
    stronger = [text for kind, text in changes if kind is Kind.STRONGER]
    yield from ((Kind.WEAKER, text) for text in weaker)
    contradiction = drift(entry, now)
    if contradiction and entry.same(now):
        yield Kind.DRIFT, contradiction
    if chance:
        yield Kind.CHANCE, f"{'; '.join(chance)}: random draws decide that"
    if stronger and not weaker:
        yield Kind.STRONGER, "; ".join(stronger)


def _changes(entry: Entry, now: Entry, result: AuditResult) -> Found:
    """Yield the changes of an audit's strength, as (kind, sentence).

    The kind is ``WEAKER``, ``STRONGER`` or ``CHANCE``.
    """
    # With a small budget, chance decides the verdict and the refuted controls.
    may_vary = Kind.WEAKER
    if result.is_undecided:
        may_vary = Kind.CHANCE
    verdicts = (entry.verdict, now.verdict)
    if entry.verdict is not now.verdict and STRENGTH.keys() >= {*verdicts}:
        kind = may_vary
        if STRENGTH[now.verdict] >= STRENGTH[entry.verdict]:
            kind = Kind.STRONGER
        elif verdicts == (Verdict.EQUIVALENT, Verdict.NOT_REFUTED):
            kind = Kind.CHANCE
        yield kind, f"{entry.verdict} in the baseline, {now.verdict} now"
    for name in sorted({*entry.evidence} - {*now.evidence}):
        by_data = name in result.asked and kind_of(name).by_data
        kind = Kind.WEAKER
        if by_data:
            kind = Kind.CHANCE
        yield kind, f"evidence {name!r} is no longer gathered"
    for name in now.evidence:
        if name not in entry.evidence:
            yield Kind.STRONGER, f"evidence {name!r} is new"
    for name in _lacking(entry.controls, now.controls):
        yield may_vary, f"control {name!r} is no longer refuted"
    for name in _lacking(now.controls, entry.controls):
        yield Kind.STRONGER, f"control {name!r} is new"
    # The calls of a game that refuted a claim, or was not confirmed, say how soon it
    # ended, and not how strong it is.
    decided = {*verdicts} & {*REFUTATIONS, Verdict.INCONCLUSIVE}
    if not decided and now.calls != entry.calls:
        kind = Kind.STRONGER
        if now.calls < entry.calls:
            kind = Kind.WEAKER
        yield kind, f"{entry.calls:,} calls in the baseline, {now.calls:,} now"


def _sight(entry: Entry | None, result: AuditResult) -> Found:
    """Yield (kind, sentence) if the smallest loss that an audit detects is too large.

    The limit is ``POWER_GROWTH`` times the loss in the entry, or times the claim if
    that loss is smaller. For a new audit it is ``POWER_GROWTH`` times ``BLIND_POWER``.
    """
    power = result.power
    then: float | None = BLIND_POWER
    if entry is not None:
        then = entry.sees
    if power is None or then is None or power <= max(then, 1.0) * POWER_GROWTH:
        return
    now = f"one of {outwards(power, up=True, digits=2)} times"
    if power == math.inf:
        now = "none of a size that is known"
    if entry is None:
        text = f"it would not have found twice the claim, only {now}"
    else:
        text = f"a loss of {then:g} times the claim would have been found in the baseline, only {now} now"
    remedy = (
        f"give it more calls, as --budget level:{EXPECTED_POWER:g} counts them, or "
        f"Audit(find='level:{EXPECTED_POWER:g}')"
    )
    if result.has_same_outputs:
        remedy = (
            "both inputs of every pair have the same outputs; give pairs on which they "
            "differ"
        )
    yield Kind.WEAKER, f"{text}: {remedy}"


def _lacking(names: Sequence[str], among: Sequence[str]) -> list[str]:
    # Names of controls have parameters in them, which are computed as claims are.
    return [
        name for name in names if not any(same_text(name, other) for other in among)
    ]


def drift(entry: Entry, now: Entry) -> str:
    """Return a sentence on a contradiction between the bounds of two runs, or ''.

    Two intervals for the claim's parameter contradict each other if they have no common
    point. Counts contradict each other as follows. One run certifies that an event has
    probability at least p on an input and at most q on its neighbour. The other run
    certifies (ε, δ) for all events, and p > e^ε q + δ. A lower bound of the game above
    a counted ε is no contradiction: the loss may be in outputs that are rarer than δ.

    Guarantee: for an audit of the same inputs whose mechanism did not change, the text
    is not empty with probability at most 4α. This is the sum of the errors of the
    statements, where α is the error of counting or of the game in one audit. A false
    contradiction needs two runs that err in opposite directions, so it is far rarer
    (``tests/statistical/test_unchanged_audits.py``).

    Args:
        entry: The entry of the baseline.
        now: The entry of the run.
    """
    then_low, then_high = entry.at_least, entry.at_most
    low, high = now.at_least, now.at_most
    # Two certified intervals without a common point cannot both be right.
    if low is not None and then_high is not None and low > then_high:
        return f"at most {then_high:g} in the baseline, at least {low:g} now"
    if high is not None and then_low is not None and high < then_low:
        return f"at least {then_low:g} in the baseline, at most {high:g} now"
    then = _counts_contradict(entry.counted, now.told_apart)
    new = _counts_contradict(now.counted, entry.told_apart)[::-1]
    statements = then or new
    if not statements:
        return ""
    error = "either is wrong with a probability of at most counting's α"
    return f"{statements[0]}, in the baseline; {statements[1]}, now; {error}"


def _counts_contradict(
    counted: tuple[float, float] | None, event: tuple[float, float] | None
) -> tuple[str, ...]:
    """Return two phrases, on a bound and on an event that contradicts it.

    The result is empty if either is None, or the event does not contradict the bound.

    Args:
        counted: The bound (ε, δ).
        event: A lower bound on the probability of an event on one input, and an upper
            bound on its probability on the neighbour.
    """
    if counted is None or event is None:
        return ()
    epsilon, delta = counted
    # e^700 is near the largest double.
    if event[0] <= math.exp(min(epsilon, 700.0)) * event[1] + delta:
        return ()
    return (
        f"on the tested inputs, at most ε = {epsilon:g} but for a probability of {delta:g}",
        f"an event of probability at least {event[0]:g} on one of them, and at most "
        f"{event[1]:g} on its neighbour",
    )


def _without_result(
    known: Mapping[str, Entry], record: RunRecord, covered: Callable[[str], bool]
) -> Iterator[Difference]:
    """Yield differences for planned audits and for entries without a result.

    The kind is ``CRASHED`` for a planned audit, and otherwise ``NOT_RUN``, ``GONE`` or
    ``STALE``. Entries of a file that could not be imported are left out.
    """
    for name in record.missing:
        text = f"it was planned and has no result: the run is {record.status}"
        yield Difference(name, Kind.CRASHED, text)
    # A result whose id is a file is the error of importing it.
    results = {result.id for result in record.results}
    unlisted = [each for each in record.results if each.id not in known]
    new = [entry_of(each) for each in unlisted if each.claim is not None]
    for name, entry in known.items():
        there = {name, name.partition("::")[0]} & results
        if there or name in record.missing:
            continue
        if not covered(name):
            yield Difference(name, Kind.NOT_RUN, "the run had other audits")
            continue
        kind = Kind.GONE
        text = "there is no such audit any more"
        # A new audit of an equal claim may be the old one under another name.
        same = [other.id for other in new if entry.same(other)]
        if len(same) == 1:
            text += f"; perhaps it is {same[0]} now"
        if entry.accepted is not None:
            kind = Kind.STALE
            text += f"; it was accepted: {entry.accepted.reason}"
        yield Difference(name, kind, text)
