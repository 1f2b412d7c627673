"""What a run changes of what was known: findings, audits that look at less, entries that are about nothing any more."""

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

SEEN, BLIND, FELL = 1.5, 2.0, 1.5
"""A loss of so many times the claim is what an audit should see; one that misses the second is blind; and its sight has
fallen where it needs so many times the loss that it needed. What chance decides of the calls of a pair is less: at most
1.35 times between two seeds, in six hundred checks of harmless changes."""


class Kind(StrEnum):
    """What a difference is, worst first."""

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
    """A difference between what is known of an audit and what a run says; the result is None where it has none."""

    audit: str
    kind: Kind
    text: str
    result: AuditResult | None = None


def differences(
    known: Mapping[str, Entry],
    record: RunRecord,
    *,
    covered: Callable[[str], bool],
    today: date,
) -> list[Difference]:
    """Return all differences, worst first, otherwise by id.

    Args:
        known: The entries by id.
        record: The run.
        covered: Whether the run was to audit an id, had it been there.
        today: The day, in UTC: an acceptance holds up to and with the day on which it expires.
    """
    results = {result.id: result for result in record.results}
    found = [
        difference
        for result in record.results
        for difference in _of(known.get(result.id), result, today)
    ]
    found += _without_result(known, record, covered, results)
    found += _uncompared(known, results)
    return worst_first([*found, *of_versions(record)])


def worst_first(found: Sequence[Difference]) -> list[Difference]:
    """Return differences worst first, otherwise by id."""
    order = list(Kind)
    return sorted(
        found, key=lambda difference: (order.index(difference.kind), difference.audit)
    )


def of_versions(record: RunRecord) -> Iterator[Difference]:
    """Yield what differs from another revision of the code, with which a run has compared mechanisms."""
    for result in record.results:
        if (versions := result.versions) is None or versions.change is LawChange.UNSEEN:
            continue
        yield Difference(
            result.id,
            Kind.LOSES if versions.worse else OF_VERSIONS[versions.change],
            versions.text,
            result,
        )


def _of(entry: Entry | None, result: AuditResult, today: date) -> Iterator[Difference]:
    """What one result differs in."""

    def differs(kind: Kind, text: str) -> Difference:
        return Difference(result.id, kind, text, result)

    if result.verdict is Verdict.ERROR:
        yield differs(Kind.CRASHED, result.summary)
        return
    if entry is not None:
        yield from (differs(Kind.CHANGED, text) for text in _claims(entry, result))
    accepted = entry.accepted if entry is not None else None
    if result.is_finding:
        same = (
            entry is not None
            and entry.verdict is result.verdict
            and entry.expect == result.expected
        )
        if accepted is None or not same:
            yield differs(Kind.FINDING, result.summary)
        elif accepted.expires is not None and accepted.expires < today:
            yield differs(
                Kind.EXPIRED, f"accepted until {accepted.expires}: {accepted.reason}"
            )
        else:
            yield differs(Kind.ACCEPTED, accepted.reason)
    elif accepted is not None and result.verdict is not Verdict.SKIPPED:
        yield differs(
            Kind.STALE,
            f"{result.verdict} now; what was accepted is no longer found: {accepted.reason}",
        )
    if result.is_unconfirmed:
        yield differs(
            Kind.WEAKER,
            f"the claim was refuted, and that was not confirmed: {result.summary}",
        )
    survivors = result.mutation.of(Fate.SURVIVED) if result.mutation is not None else []
    yield from (
        differs(Kind.FINDING, f"mutant {mutant.name} survives: {mutant.statement}")
        for mutant in survivors
    )
    if entry is None:
        if not result.is_finding:
            yield differs(Kind.NEW, f"{result.verdict}; it is not in the baseline yet")
            yield from (differs(Kind.WEAKER, text) for text in _sight(None, result))
        return
    yield from _strength(entry, result, differs)


def _claims(entry: Entry, result: AuditResult) -> Iterator[str]:
    now = entry_of(result)
    if entry.expect != result.expected:
        yield f"it declares {entry.expect!r} in the baseline, {result.expected!r} now"
    if not now.claim or not entry.claim or entry.claimed.same(now.claimed):
        return  # a skipped audit states no claim
    then, new = f"{entry.claim} ({entry.adjacency})", f"{now.claim} ({now.adjacency})"
    if (
        not entry.claimed.same_neighbours(now.claimed)
        and entry.adjacency == now.adjacency
    ):
        yield (
            f"the neighbours, or the pairs that are played, are others than in the baseline: {now.adjacency} leaves out the "
            "part that changed"
        )
        return
    if then == new:
        then, new = (
            f"{each.claim}, in full {' '.join(map(repr, each.numbers))},"
            for each in (entry, now)
        )
    yield f"{then} in the baseline, {new} now"


def _uncompared(
    known: Mapping[str, Entry], results: Mapping[str, AuditResult]
) -> Iterator[Difference]:
    """Yield the audits of which a change of the neighbours could not be noticed."""
    compared = [
        (known[name], entry_of(result))
        for name, result in results.items()
        if name in known
    ]
    old = [
        now.id
        for entry, now in compared
        if now.digest and not entry.digest and entry.claim
    ]
    if old:
        others = f" and of {count(len(old) - 1, 'other audit')}" if old[1:] else ""
        yield Difference(
            old[0],
            Kind.NOT_COMPARED,
            f"the neighbours of this{others} are compared by their short text alone, since an earlier version of auditdp "
            "wrote the baseline; `auditdp baseline update` adds digests",
            results[old[0]],
        )
    for entry, now in compared:
        without = now.digest.partition(" ")[2]
        if without and entry.digest:
            text = f"the neighbours are compared {without}: a change of that cannot be noticed"
            yield Difference(now.id, Kind.NOT_COMPARED, text, results[now.id])


def _strength(
    entry: Entry, result: AuditResult, differs: Callable[[Kind, str], Difference]
) -> Iterator[Difference]:
    now = entry_of(result)
    if result.verdict is Verdict.SKIPPED:
        if entry.verdict is not Verdict.SKIPPED:
            yield differs(
                Kind.SKIPPED,
                f"{entry.verdict} in the baseline, not run now: {result.summary}",
            )
        return
    weaker: list[str] = []
    chance: list[str] = []
    stronger: list[str] = []
    may_vary = chance if result.is_undecided else weaker
    if (
        entry.verdict in STRENGTH
        and now.verdict in STRENGTH
        and entry.verdict is not now.verdict
    ):
        change = f"{entry.verdict} in the baseline, {now.verdict} now"
        fell = (
            chance
            if (entry.verdict, now.verdict) == (Verdict.EQUIVALENT, Verdict.NOT_REFUTED)
            else may_vary
        )
        (fell if STRENGTH[now.verdict] < STRENGTH[entry.verdict] else stronger).append(
            change
        )
    for kind in sorted({*entry.evidence} - {*now.evidence}):
        by_data = kind in result.asked and kind_of(kind).by_data
        (chance if by_data else weaker).append(
            f"evidence {kind!r} is no longer gathered"
        )
    stronger += [
        f"evidence {kind!r} is new"
        for kind in now.evidence
        if kind not in entry.evidence
    ]
    may_vary += [
        f"control {each!r} is no longer refuted"
        for each in _lacking(entry.controls, now.controls)
    ]
    stronger += [
        f"control {each!r} is new" for each in _lacking(now.controls, entry.controls)
    ]
    # A game that refuted a claim, or was not confirmed, has calls that say how soon, and not how much was looked at.
    decided = {entry.verdict, now.verdict} & {*REFUTATIONS, Verdict.INCONCLUSIVE}
    if not decided and now.calls != entry.calls:
        change = f"{entry.calls:,} calls in the baseline, {now.calls:,} now"
        (weaker if now.calls < entry.calls else stronger).append(change)
    weaker += _sight(entry, result)
    yield from (differs(Kind.WEAKER, text) for text in weaker)
    if entry.claimed.same(now.claimed) and (text := drift(entry, now)):
        yield differs(Kind.DRIFT, text)
    if chance:
        yield differs(Kind.CHANCE, f"{'; '.join(chance)}: what is drawn decides that")
    if stronger and not weaker:
        yield differs(Kind.STRONGER, "; ".join(stronger))


def _sight(entry: Entry | None, result: AuditResult) -> Iterator[str]:
    """Yield why an audit sees less than it did, or, where nothing is known of that, not even a doubled loss."""
    power, then = result.power, entry.sees if entry is not None else BLIND
    if power is None or then is None or power <= max(then, 1.0) * FELL:
        return
    if entry is not None:
        yield f"a loss of {then:g} times the claim was seen in the baseline, only {_times(power)} now: {_remedy(result)}"
    else:
        yield f"it would not have seen twice the claim, only {_times(power)}: {_remedy(result)}"


def _times(power: float) -> str:
    return (
        "none of a size that is known"
        if power == math.inf
        else f"one of {outwards(power, up=True, digits=2)} times"
    )


def _remedy(result: AuditResult) -> str:
    """Return what makes an audit see more, in words."""
    if result.has_same_outputs:
        return "both inputs of every pair have the same outputs; give pairs on which they differ"
    return f"give it more calls, as --budget level:{SEEN:g} counts them, or Audit(find='level:{SEEN:g}')"


def _lacking(names: Sequence[str], among: Sequence[str]) -> list[str]:
    """Return the names that are none of others; parameters in them are computed, as claims are."""
    return [
        name for name in names if not any(same_text(name, other) for other in among)
    ]


def drift(entry: Entry, now: Entry) -> str:
    """Say where two runs contradict each other: intervals without a common point, or counts; empty where they do not.

    Counts contradict each other where one run shows an event that has at least p on an input and at most q on its neighbour,
    and the other that no event has more than e^ε times what it has on a neighbour, and δ: p > e^ε q + δ. That the game loses
    more than a counted ε contradicts nothing, since it may lose it in outputs that are rarer than δ.

    Guarantee: of an audit of the same inputs whose mechanism did not change, this is said with probability at most the
    errors of the statements together: 4α, where α is what counting or the game has in an audit. Two runs have to err in
    opposite directions for it, which is far rarer (``tests/statistical/test_unchanged_audits.py``).
    """
    (low, high), (new_low, new_high) = entry.bounds, now.bounds
    if new_low is not None and high is not None and new_low > high:
        return f"at most {high:g} in the baseline, at least {new_low:g} now"
    if new_high is not None and low is not None and new_high < low:
        return f"at least {low:g} in the baseline, at most {new_high:g} now"
    for bound, event, later in (
        (entry.counted, now.told_apart, True),
        (now.counted, entry.told_apart, False),
    ):
        if (
            bound is None
            or event is None
            or event[0] <= math.exp(min(bound[0], 700.0)) * event[1] + bound[1]
        ):
            continue
        most = f"on the inputs played, at most ε = {bound[0]:g} but for a probability of {bound[1]:g}"
        seen = f"an event of probability at least {event[0]:g} on one of them, and at most {event[1]:g} on its neighbour"
        then, new = (most, seen) if later else (seen, most)
        return f"{then}, in the baseline; {new}, now; either is wrong with a probability of at most counting's α"
    return ""


def _without_result(
    known: Mapping[str, Entry],
    record: RunRecord,
    covered: Callable[[str], bool],
    results: Mapping[str, AuditResult],
) -> Iterator[Difference]:
    """Entries that the run has no result of, and audits that were planned and not finished."""
    files = {
        result.id for result in record.results if "::" not in result.id
    }  # these did not import
    unknown = [
        result
        for name, result in results.items()
        if name not in known and result.claim is not None
    ]
    for name in record.missing:
        yield Difference(
            name,
            Kind.CRASHED,
            f"it was planned and has no result: the run is {record.status}",
        )
    for name, entry in known.items():
        if (
            name in results
            or name in record.missing
            or name.partition("::")[0] in files
        ):
            continue
        if not covered(name):
            yield Difference(name, Kind.NOT_RUN, "the run was asked for other audits")
            continue
        same = [
            other.id for other in unknown if entry.claimed.same(entry_of(other).claimed)
        ]
        renamed = f"; perhaps it is {same[0]} now" if len(same) == 1 else ""
        accepted = (
            f"; it was accepted: {entry.accepted.reason}"
            if entry.accepted is not None
            else ""
        )
        kind = Kind.GONE if entry.accepted is None else Kind.STALE
        yield Difference(
            name, kind, f"there is no such audit any more{renamed}{accepted}"
        )
