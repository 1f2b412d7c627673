"""The file of a baseline: TOML that is read in a diff, sorted, without floats and without line numbers.

Making a baseline from a run: what is known is what the run says, and findings only where they are accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

from auditdp.errors import ConfigurationError, did_you_mean
from auditdp.files import MOST_SETTINGS, content_of, toml_of
from auditdp.record.baseline_entries import CLAIMED_DIGITS as DIGITS
from auditdp.record.baseline_entries import Accepted, Entry, covered, entry_of
from auditdp.record.details import kind_of
from auditdp.record.differences import drift
from auditdp.record.results import DECLARABLE, REFUTATIONS, RunRecord, Verdict

VERSION = 3
READABLE = (1, 2, VERSION)
"""Version 1 has a digest of the claim's digits, which is left alone, and in its calls those of counting; it and
version 2 have no digest of the adjacency."""
HEAD = """\
# What the audits of this repository are known to show. A run that finds more, or looks at less, is a regression.
# Made by `auditdp baseline update`, checked by `auditdp baseline check`; to be reviewed like code.
"""
KEYS: dict[str, tuple[type, ...]] = {
    "claim": (str,),
    "adjacency": (str,),
    "numbers": (str,),
    "digest": (str,),
    "verdict": (str,),
    "expect": (str,),
    "evidence": (list,),
    "controls": (list,),
    "calls": (int,),
    "at_least": (str,),
    "at_most": (str,),
    "counted": (str,),
    "told_apart": (str,),
    "sees": (str,),
    "accepted": (dict,),
}
VERDICTS = [verdict.value for verdict in Verdict if verdict is not Verdict.ERROR]
NEEDED = ("claim", "adjacency", "verdict")
_CONFLICT = re.compile(r"^(<{7}|={7}|>{7}|\|{7})( .*)?$", re.M)


def read_baseline(path: Path) -> dict[str, Entry]:
    """Return the entries of a baseline by id.

    Raises:
        ConfigurationError: If there is none, or it is not what ``write_baseline`` writes, with the line or the entry.
    """
    try:
        text = content_of(path, MOST_SETTINGS).decode().replace("\r\n", "\n")
    except FileNotFoundError:
        raise ConfigurationError(
            f"no baseline in {path}; make one from the last run with: auditdp baseline update"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    if (conflict := _CONFLICT.search(text)) is not None:
        line = text.count("\n", 0, conflict.start()) + 1
        raise ConfigurationError(
            f"{path}, line {line}: a conflict of a merge is not resolved ({conflict[0].strip()}); take one side, run the "
            "audits, and write it anew with: auditdp baseline update"
        )
    try:
        content = toml_of(text.encode())
    except ValueError as error:
        raise ConfigurationError(
            f"{path}: {error}; repair it, or write it anew: auditdp baseline update"
        ) from error
    version = content.get("version")
    if version not in READABLE:
        raise ConfigurationError(
            f"{path} has version {version!r}, and this auditdp reads versions 1 to {VERSION}; use the auditdp that wrote "
            "it, or remove it and write it anew: auditdp baseline update"
        )
    _refuse_unknown(content, ("version", "audit"), str(path))
    audits = content.get("audit", {})
    if not isinstance(audits, dict):
        raise ConfigurationError(
            f'{path}: audit = {audits!r}; expected tables such as [audit."audits/audit_a.py::b"]'
        )
    found = {
        name: _entry(name, table, f"{path}, [audit.{_text(name)}]", version)
        for name, table in audits.items()
    }
    return (
        {name: _of_version_1(entry) for name, entry in found.items()}
        if version == 1
        else found
    )


def _of_version_1(entry: Entry) -> Entry:
    """Return an entry with the calls that are known: those of counting depend on what was drawn, and were in the sum."""
    return (
        replace(entry, calls=0)
        if any(kind_of(kind).by_data for kind in entry.evidence)
        else entry
    )


def write_baseline(entries: Iterable[Entry]) -> str:
    """Return the text of a baseline, sorted by id."""
    blocks = [_block(entry) for entry in sorted(entries, key=lambda entry: entry.id)]
    return "\n".join([HEAD + f"version = {VERSION}\n", *blocks])


def _block(entry: Entry) -> str:
    low, high = entry.bounds
    values: dict[str, Any] = {
        "claim": entry.claim,
        "adjacency": entry.adjacency,
        "numbers": _joined(entry.numbers),
        "digest": entry.digest or None,
        "verdict": str(entry.verdict),
        "expect": entry.expect if entry.expect != "holds" else None,
        "at_least": None if low is None else f"{low:g}",
        "at_most": None if high is None else f"{high:g}",
        "counted": _joined(entry.counted or ()),
        "told_apart": _joined(entry.told_apart or ()),
        "sees": None if entry.sees is None else f"{entry.sees:g}",
        "evidence": list(entry.evidence),
        "controls": list(entry.controls),
        "calls": entry.calls,
    }
    lines = [f"[audit.{_text(entry.id)}]"]
    lines += [
        f"{name} = {_value(value)}"
        for name, value in values.items()
        if value not in (None, [])
    ]
    if entry.accepted is not None:
        lines += [
            "",
            f"[audit.{_text(entry.id)}.accepted]",
            f"reason = {_text(entry.accepted.reason)}",
        ]
        lines += (
            [f"expires = {entry.accepted.expires.isoformat()}"]
            if entry.accepted.expires
            else []
        )
    return "\n".join(lines) + "\n"


def _joined(numbers: Iterable[float]) -> str | None:
    return " ".join(f"{number:.{DIGITS}g}" for number in numbers) or None


def _value(value: Any) -> str:
    if isinstance(value, list):
        if len(value) < 2:
            return f"[{', '.join(map(_text, value))}]"
        return "[\n" + "".join(f"  {_text(item)},\n" for item in value) + "]"
    return _text(value) if isinstance(value, str) else f"{value:_}"


def _text(value: str) -> str:
    """Return a TOML string; JSON's are, but for DEL, which JSON leaves as it is."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _refuse_unknown(table: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for name in table:
        if name not in known:
            raise ConfigurationError(
                f"{where}: unknown key {name!r}; {did_you_mean(name, known)}"
            )


def _entry(name: str, table: Any, where: str, version: int) -> Entry:
    if not isinstance(table, dict):
        raise ConfigurationError(f"{where}: expected a table, got {table!r}")
    table = {
        key: value
        for key, value in table.items()
        if version > 1 or key != "fingerprint"
    }
    _refuse_unknown(table, KEYS, where)
    for key in NEEDED:
        if key not in table:
            raise ConfigurationError(
                f"{where}: {key} is missing; write the entry anew: auditdp baseline update"
            )
    for key, value in table.items():
        if not isinstance(value, KEYS[key]) or isinstance(value, bool):
            expected = {
                str: "a text",
                list: "a list of texts",
                int: "an integer",
                dict: "a table",
            }[KEYS[key][0]]
            raise ConfigurationError(f"{where}: {key} = {value!r}; expected {expected}")
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise ConfigurationError(
                f"{where}: {key} = {value!r}; expected a list of texts"
            )
    if table["verdict"] not in VERDICTS:
        raise ConfigurationError(
            f"{where}: verdict = {table['verdict']!r}; {did_you_mean(table['verdict'], VERDICTS)}"
        )
    expect, verdict = table.get("expect", "holds"), Verdict(table["verdict"])
    if expect != "holds" and expect not in DECLARABLE:
        raise ConfigurationError(
            f"{where}: expect = {expect!r}; {did_you_mean(expect, ['holds', *DECLARABLE])}"
        )
    accepted = _accepted(table["accepted"], where) if "accepted" in table else None
    if (
        verdict in REFUTATIONS
        and DECLARABLE.get(expect) is not verdict
        and accepted is None
    ):
        raise ConfigurationError(
            f"{where}: {verdict} is not declared by the audit, so it needs [audit.{_text(name)}.accepted] with a reason"
        )
    if table.get("calls", 0) < 0:
        raise ConfigurationError(
            f"{where}: calls = {table['calls']}; expected a number >= 0"
        )
    return Entry(
        id=name,
        claim=table["claim"],
        adjacency=table["adjacency"],
        verdict=verdict,
        expect=expect,
        evidence=tuple(table.get("evidence", ())),
        controls=tuple(table.get("controls", ())),
        calls=table.get("calls", 0),
        bounds=(_bound(table, "at_least", where), _bound(table, "at_most", where)),
        numbers=_numbers(table, "numbers", where),
        digest=table.get("digest", ""),
        counted=_pair(table, "counted", where),
        told_apart=_pair(table, "told_apart", where),
        sees=_bound(table, "sees", where),
        accepted=accepted,
    )


def _numbers(
    table: Mapping[str, Any], key: str, where: str, expected: int | None = None
) -> tuple[float, ...]:
    """Return the numbers of a text, as many as are expected; none where there is no text."""
    try:
        numbers = tuple(map(float, table.get(key, "").split()))
    except ValueError:
        numbers = ()
    if key in table and len(numbers) != (expected or max(len(numbers), 1)):
        needed = {None: "numbers", 1: "a number", 2: "two numbers"}[expected]
        raise ConfigurationError(
            f'{where}: {key} = {table[key]!r}; expected {needed} as a text, such as "0.8"'
        )
    return numbers


def _bound(table: Mapping[str, Any], key: str, where: str) -> float | None:
    return next(iter(_numbers(table, key, where, 1)), None)


def _pair(table: Mapping[str, Any], key: str, where: str) -> tuple[float, float] | None:
    numbers = _numbers(table, key, where, 2)
    return (numbers[0], numbers[1]) if numbers else None


def _accepted(table: Mapping[str, Any], where: str) -> Accepted:
    _refuse_unknown(table, ("reason", "expires"), f"{where}.accepted")
    reason, expires = table.get("reason"), table.get("expires")
    if not isinstance(reason, str) or not reason.strip():
        raise ConfigurationError(
            f"{where}.accepted: reason = {reason!r}; say why this is lived with"
        )
    if expires is not None and (
        not isinstance(expires, date) or isinstance(expires, datetime)
    ):
        raise ConfigurationError(
            f"{where}.accepted: expires = {expires!r}; expected a date, such as 2027-01-31"
        )
    return Accepted(reason, expires)


T = TypeVar("T")


def updated(
    known: Mapping[str, Entry], record: RunRecord, accept: Mapping[str, Accepted]
) -> dict[str, Entry]:
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
    crashed = [
        result.id for result in record.results if result.verdict is Verdict.ERROR
    ] + record.missing
    if crashed:
        raise ConfigurationError(
            f"nothing is known of {', '.join(crashed)}: crashed, or not finished; repair that, run again, and then update"
        )
    results = {result.id: result for result in record.results}
    for name in accept:
        if name not in results or not results[name].is_finding:
            known_findings = (
                ", ".join(result.id for result in record.results if result.is_finding)
                or "none"
            )
            raise ConfigurationError(
                f"--accept {name}: the run has no finding of this id; findings: {known_findings}"
            )
    asked = covered(record)
    entries = {
        name: entry
        for name, entry in known.items()
        if name not in results and not asked(name)
    }
    open_findings = []
    for name, result in results.items():
        old = known.get(name)
        still = old is not None and old.verdict is result.verdict and result.is_finding
        accepted = accept.get(name) or (
            old.accepted if still and old is not None else None
        )
        if result.is_finding and accepted is None:
            open_findings.append(name)
        entry = entry_of(result, accepted)
        entries[name] = (
            _as_written(old, entry)
            if old is not None and old.claimed.same(entry.claimed)
            else entry
        )
    if open_findings:
        raise ConfigurationError(
            f"not accepted: {', '.join(open_findings)}; repair the mechanism, declare what is published as false "
            "(@audit(expect=...)), or accept each with --accept ID --reason TEXT"
        )
    return entries


def _as_written(old: Entry, entry: Entry) -> Entry:
    """Return an entry about the same claim with what the old one has of it, as far as nothing contradicts that."""
    entry = replace(
        entry,
        claim=old.claim,
        adjacency=old.adjacency,
        numbers=old.numbers or entry.numbers,
    )
    if drift(old, entry):
        return entry
    low, high = map(_known, old.bounds, entry.bounds)
    counted, told_apart = (
        _known(old.counted, entry.counted),
        _known(old.told_apart, entry.told_apart),
    )
    return replace(entry, bounds=(low, high), counted=counted, told_apart=told_apart)


def _known(then: T | None, now: T | None) -> T | None:
    """Return what was known, where both runs have something."""
    return now if then is None or now is None else then
