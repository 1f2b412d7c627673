"""What a run changes of what was known: findings, audits that look at less, entries that are about nothing any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from auditdp.baseline.entries import STRENGTH, Entry, entry_of
from auditdp.results import REFUTATIONS, AuditResult, Fate, RunRecord, Verdict


class Kind(StrEnum):
    """What a difference is, worst first."""

    FINDING = "new finding"
    EXPIRED = "no longer accepted"
    CRASHED = "crashed"
    DRIFT = "drifted"
    CHANGED = "claim changed"
    WEAKER = "weaker"
    SKIPPED = "skipped"
    GONE = "gone"
    STALE = "stale entry"
    ACCEPTED = "accepted"
    STRONGER = "stronger"
    NEW = "new audit"
    NOT_RUN = "not run"


FINDINGS = (Kind.FINDING, Kind.EXPIRED)
REGRESSIONS = (Kind.DRIFT, Kind.CHANGED, Kind.WEAKER, Kind.SKIPPED, Kind.GONE, Kind.STALE)


@dataclass(frozen=True)
class Difference:
    """A difference between what is known of an audit and what a run says; the result is None where it has none."""

    audit: str
    kind: Kind
    text: str
    result: AuditResult | None = None


def differences(
    known: Mapping[str, Entry], record: RunRecord, *, covered: Callable[[str], bool], today: date
) -> list[Difference]:
    """Return all differences, worst first, otherwise by id.

    Args:
        known: The entries by id.
        record: The run.
        covered: Whether the run was to audit an id, had it been there.
        today: The day, in UTC: an acceptance holds up to and with the day on which it expires.
    """
    results = {result.id: result for result in record.results}
    found = [difference for result in record.results for difference in _of(known.get(result.id), result, today)]
    found += _without_result(known, record, covered, results)
    order = list(Kind)
    return sorted(found, key=lambda difference: (order.index(difference.kind), difference.audit))


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
        same = entry is not None and entry.verdict is result.verdict and entry.expect == result.expected
        if accepted is None or not same:
            yield differs(Kind.FINDING, result.summary)
        elif accepted.expires is not None and accepted.expires < today:
            yield differs(Kind.EXPIRED, f"accepted until {accepted.expires}: {accepted.reason}")
        else:
            yield differs(Kind.ACCEPTED, accepted.reason)
    elif accepted is not None and result.verdict is not Verdict.SKIPPED:
        yield differs(Kind.STALE, f"{result.verdict} now; what was accepted is no longer found: {accepted.reason}")
    survivors = result.mutation.of(Fate.SURVIVED) if result.mutation is not None else []
    yield from (differs(Kind.FINDING, f"mutant {mutant.name} survives: {mutant.statement}") for mutant in survivors)
    if entry is None:
        if not result.is_finding:
            yield differs(Kind.NEW, f"{result.verdict}; it is not in the baseline yet")
        return
    yield from _strength(entry, result, differs)


def _claims(entry: Entry, result: AuditResult) -> Iterator[str]:
    now = entry_of(result)
    if entry.expect != result.expected:
        yield f"it declares {entry.expect!r} in the baseline, {result.expected!r} now"
    if result.claim is None or not entry.fingerprint or entry.fingerprint == now.fingerprint:
        return  # a skipped audit states no claim
    then, new = f"{entry.claim} ({entry.adjacency})", f"{now.claim} ({now.adjacency})"
    yield f"{then} in the baseline, {new} now" if then != new else f"{new} with other digits: {now.fingerprint}"


def _strength(entry: Entry, result: AuditResult, differs: Callable[[Kind, str], Difference]) -> Iterator[Difference]:
    now = entry_of(result)
    if result.verdict is Verdict.SKIPPED:
        if entry.verdict is not Verdict.SKIPPED:
            yield differs(Kind.SKIPPED, f"{entry.verdict} in the baseline, not run now: {result.summary}")
        return
    weaker: list[str] = []
    stronger: list[str] = []
    if entry.verdict in STRENGTH and now.verdict in STRENGTH and entry.verdict is not now.verdict:
        said = f"{entry.verdict} in the baseline, {now.verdict} now"
        (weaker if STRENGTH[now.verdict] < STRENGTH[entry.verdict] else stronger).append(said)
    for name, then, of in (("evidence", entry.evidence, now.evidence), ("control", entry.controls, now.controls)):
        weaker += [
            f"{name} {item!r} is no longer {'gathered' if name == 'evidence' else 'refuted'}"
            for item in then
            if item not in of
        ]
        stronger += [f"{name} {item!r} is new" for item in of if item not in then]
    decided = {entry.verdict, now.verdict} & set(REFUTATIONS)  # then calls say how soon, and not how much was looked at
    if not decided and now.calls != entry.calls:
        said = f"{entry.calls:,} calls in the baseline, {now.calls:,} now"
        (weaker if now.calls < entry.calls else stronger).append(said)
    yield from (differs(Kind.WEAKER, text) for text in weaker)
    if entry.fingerprint == now.fingerprint and (text := drift(entry, now)):
        yield differs(Kind.DRIFT, text)
    if stronger and not weaker:
        yield differs(Kind.STRONGER, "; ".join(stronger))


def drift(entry: Entry, now: Entry) -> str:
    """Say where two intervals have no point in common; empty where they have, whatever their ends."""
    (low, high), (new_low, new_high) = entry.bounds, now.bounds
    if new_low is not None and high is not None and new_low > high:
        return f"at most {high:g} in the baseline, at least {new_low:g} now"
    if new_high is not None and low is not None and new_high < low:
        return f"at least {low:g} in the baseline, at most {new_high:g} now"
    return ""


def _without_result(
    known: Mapping[str, Entry],
    record: RunRecord,
    covered: Callable[[str], bool],
    results: Mapping[str, AuditResult],
) -> Iterator[Difference]:
    """Entries that the run has no result of, and audits that were planned and not finished."""
    files = {result.id for result in record.results if "::" not in result.id}  # these did not import
    unknown = [result for name, result in results.items() if name not in known and result.claim is not None]
    for name in record.missing:
        yield Difference(name, Kind.CRASHED, f"it was planned and has no result: the run is {record.status}")
    for name, entry in known.items():
        if name in results or name in record.missing or name.partition("::")[0] in files:
            continue
        if not covered(name):
            yield Difference(name, Kind.NOT_RUN, "the run was asked for other audits")
            continue
        same = [other.id for other in unknown if entry_of(other).fingerprint == entry.fingerprint]
        renamed = f"; perhaps it is {same[0]} now" if len(same) == 1 else ""
        accepted = f"; it was accepted: {entry.accepted.reason}" if entry.accepted is not None else ""
        kind = Kind.GONE if entry.accepted is None else Kind.STALE
        yield Difference(name, kind, f"there is no such audit any more{renamed}{accepted}")
