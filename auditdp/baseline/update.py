"""Making a baseline from a run: what is known is what the run says, and findings only where they are accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from auditdp.baseline.differences import drift
from auditdp.baseline.entries import Accepted, Entry, covered, entry_of
from auditdp.errors import ConfigurationError
from auditdp.results import RunRecord, Verdict


def updated(known: Mapping[str, Entry], record: RunRecord, accept: Mapping[str, Accepted]) -> dict[str, Entry]:
    """Return the entries after a run: those that it covers are its own, others are as they were.

    Bounds stay as they were where the new ones have a point in common with them, so that a diff shows none that do not
    count.

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
            raise ConfigurationError(
                f"--accept {name}: the run has no finding of this id; findings: {_findings(record)}"
            )
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
        if old is not None and old.fingerprint == entry.fingerprint and not drift(old, entry):
            both = zip(old.bounds, entry.bounds, strict=True)
            low, high = (new if then is None or new is None else then for then, new in both)
            entry = replace(entry, bounds=(low, high))
        entries[name] = entry
    if open_findings:
        raise ConfigurationError(
            f"not accepted: {', '.join(open_findings)}; repair the mechanism, declare what is published as false "
            "(@audit(expect=...)), or accept each with --accept ID --reason TEXT"
        )
    return entries


def _findings(record: RunRecord) -> str:
    return ", ".join(result.id for result in record.results if result.is_finding) or "none"
