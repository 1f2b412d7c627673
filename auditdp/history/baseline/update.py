"""Making a baseline from a run: what is known is what the run says, and findings only where they are accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from auditdp.errors import ConfigurationError
from auditdp.history.baseline.differences import drift
from auditdp.history.baseline.entries import Accepted, Entry, covered, entry_of
from auditdp.record.results import RunRecord, Verdict

T = TypeVar("T")


def updated(known: Mapping[str, Entry], record: RunRecord, accept: Mapping[str, Accepted]) -> dict[str, Entry]:
    """Return the entries after a run: those that it covers are its own, others are as they were.

    Claims and bounds stay as they were written where the new ones do not contradict them, so that a diff shows no digits
    that do not count.

    Args:
        known: The entries by id, before.
        record: The run.
        accept: Findings that are accepted from now on, by id.

    Raises:
        ConfigurationError: If an audit crashed or has no result, a finding is not accepted, or what is accepted is none.
    """
    crashed = [result.id for result in record.results if result.verdict is Verdict.ERROR] + record.missing
    if crashed:
        raise ConfigurationError(
            f"nothing is known of {', '.join(crashed)}: crashed, or not finished; repair that, run again, and then update"
        )
    results = {result.id: result for result in record.results}
    for name in accept:
        if name not in results or not results[name].is_finding:
            known_findings = ", ".join(result.id for result in record.results if result.is_finding) or "none"
            raise ConfigurationError(f"--accept {name}: the run has no finding of this id; findings: {known_findings}")
    asked = covered(record)
    entries = {name: entry for name, entry in known.items() if name not in results and not asked(name)}
    open_findings = []
    for name, result in results.items():
        old = known.get(name)
        still = old is not None and old.verdict is result.verdict and result.is_finding
        accepted = accept.get(name) or (old.accepted if still and old is not None else None)
        if result.is_finding and accepted is None:
            open_findings.append(name)
        entry = entry_of(result, accepted)
        entries[name] = _as_written(old, entry) if old is not None and old.claimed.same(entry.claimed) else entry
    if open_findings:
        raise ConfigurationError(
            f"not accepted: {', '.join(open_findings)}; repair the mechanism, declare what is published as false "
            "(@audit(expect=...)), or accept each with --accept ID --reason TEXT"
        )
    return entries


def _as_written(old: Entry, entry: Entry) -> Entry:
    """Return an entry about the same claim with what the old one has of it, as far as nothing contradicts that."""
    entry = replace(entry, claim=old.claim, adjacency=old.adjacency, numbers=old.numbers or entry.numbers)
    if drift(old, entry):
        return entry
    low, high = map(_known, old.bounds, entry.bounds)
    counted, told_apart = _known(old.counted, entry.counted), _known(old.told_apart, entry.told_apart)
    return replace(entry, bounds=(low, high), counted=counted, told_apart=told_apart)


def _known(then: T | None, now: T | None) -> T | None:
    """Return what was known, where both runs have something."""
    return now if then is None or now is None else then
