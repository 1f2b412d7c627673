"""The file of a baseline: read, written, and updated by a run.

A baseline has one entry for each audit of a repository. People review the file as a
diff: its entries are sorted, numbers other than calls are texts of at most nine digits,
and no entry has a line number. A finding enters the baseline only if a person accepts
it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from auditdp.errors import ConfigurationError, did_you_mean
from auditdp.files import FileLimits, content_of, toml_of
from auditdp.record.baseline_entries import (
    CLAIMED_DIGITS,
    Accepted,
    Entry,
    covered,
    entry_of,
)
from auditdp.record.details import kind_of
from auditdp.record.differences import drift
from auditdp.record.results import DECLARABLE, REFUTATIONS, RunRecord, Verdict

VERSION = 3
READABLE = (1, 2, VERSION)
"""Versions of the file that can be read.

Version 1 has a digest of the claim, which is ignored. Its calls are read as 0 if they
include calls of counting. Versions 1 and 2 have no digest of the adjacency.
"""
HEAD = (
    "# Results of the audits of this repository. A run that finds more, or tests less, is a regression.\n"
    "# Made by `auditdp baseline update`, checked by `auditdp baseline check`; review it like code.\n"
)
UPDATE = "auditdp baseline update"
NUMBERS = {
    "at_least": 1,
    "at_most": 1,
    "sees": 1,
    "counted": 2,
    "told_apart": 2,
    "numbers": None,
}
"""Number of numbers in the value of each key whose value is a text of numbers; None for
one or more."""
TYPES: dict[str, type] = {"evidence": list, "controls": list, "calls": int}
TYPES |= {"accepted": dict}
"""Types of the values in the file that are not texts, by key."""
EXPECTED = {list: "a list of texts", int: "an integer", dict: "a table", str: "a text"}
KEYS = (
    *("claim", "adjacency", "numbers", "digest", "verdict", "expect", "at_least"),
    *("at_most", "counted", "told_apart", "sees", "evidence", "controls", "calls"),
    "accepted",
)
"""The keys of an entry, in the order of the file."""
NEEDED = ("claim", "adjacency", "verdict")
VERDICTS = [verdict.value for verdict in Verdict if verdict is not Verdict.ERROR]
_CONFLICT = re.compile(r"^(<{7}|={7}|>{7}|\|{7})( .*)?$", re.M)


def read_baseline(path: Path) -> dict[str, Entry]:
    """Return the entries of a baseline by id.

    Raises:
        ConfigurationError: If the file is missing or cannot be read, or its content is
            not valid. The message names the line or the entry where that is known.
    """
    try:
        text = (
            content_of(path, FileLimits.settings_bytes).decode().replace("\r\n", "\n")
        )
    except FileNotFoundError:
        raise ConfigurationError(
            f"no baseline in {path}; make one from the last run with: {UPDATE}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    # The error of TOML on these markers would not name the merge.
    conflict = _CONFLICT.search(text)
    if conflict is not None:
        line = text.count("\n", 0, conflict.start()) + 1
        raise ConfigurationError(
            f"{path}, line {line}: a conflict of a merge is not resolved "
            f"({conflict[0].strip()}); take one side, run the audits, and write it anew "
            f"with: {UPDATE}"
        )
    try:
        content = toml_of(text.encode())
    except ValueError as error:
        raise ConfigurationError(
            f"{path}: {error}; repair it, or write it anew: {UPDATE}"
        ) from error
    version = content.get("version")
    if version not in READABLE:
        raise ConfigurationError(
            f"{path} has version {version!r}, and this auditdp reads versions 1 to "
            f"{VERSION}; use the auditdp that wrote it, or remove it and write it anew: "
            f"{UPDATE}"
        )
    _refuse_unknown(content, ("version", "audit"), str(path))
    audits = content.get("audit", {})
    if not isinstance(audits, dict):
        example = '[audit."audits/audit_a.py::b"]'
        raise ConfigurationError(
            f"{path}: audit = {audits!r}; expected tables such as {example}"
        )
    entries = {}
    # The message of each error names the table.
    for name, table in audits.items():
        where = f"{path}, [audit.{_text(name)}]"
        if not isinstance(table, dict):
            raise ConfigurationError(f"{where}: expected a table, got {table!r}")
        if version == 1:
            table.pop("fingerprint", None)
        entry = _entry(name, table, where)
        # Version 1 counted calls whose number depends on the drawn outputs.
        if version == 1 and any(kind_of(kind).by_data for kind in entry.evidence):
            entry = replace(entry, calls=0)
        entries[name] = entry
    return entries


def write_baseline(entries: Iterable[Entry]) -> str:
    """Return the text of a baseline file, with the entries sorted by id."""
    blocks = [_block(entry) for entry in sorted(entries, key=lambda entry: entry.id)]
    return "\n".join([HEAD + f"version = {VERSION}\n", *blocks])


def _block(entry: Entry) -> str:
    # The fields of an entry are the keys of the file.
    defaults = {field.name: field.default for field in fields(Entry)}
    lines = [f"[audit.{_text(entry.id)}]"]
    for key in KEYS:
        value = getattr(entry, key)
        # Defaults are left out, unless a reader would take their absence for a mistake.
        needed = key in NEEDED or key == "calls"
        if key != "accepted" and (needed or value != defaults[key]):
            lines.append(f"{key} = {_value(key, value)}")
    if entry.accepted is not None:
        lines += ["", f"[audit.{_text(entry.id)}.accepted]"]
        lines.append(f"reason = {_text(entry.accepted.reason)}")
        if entry.accepted.expires is not None:
            lines.append(f"expires = {entry.accepted.expires.isoformat()}")
    return "\n".join(lines) + "\n"


def _value(key: str, value: Any) -> str:
    """Return the value of a key of an entry as TOML."""
    if NUMBERS.get(key) == 1:
        return _text(f"{value:g}")
    if key in NUMBERS:
        return _text(" ".join(f"{number:.{CLAIMED_DIGITS}g}" for number in value))
    if isinstance(value, int):
        return f"{value:_}"
    if isinstance(value, str):
        return _text(value)
    # Longer lists have a line for each item, for a diff.
    if len(value) == 1:
        return f"[{_text(value[0])}]"
    return "[\n" + "".join(f"  {_text(item)},\n" for item in value) + "]"


def _text(value: str) -> str:
    """Return a text as a TOML string.

    Every JSON string is a TOML string, except that TOML requires an escaped DEL.
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _refuse_unknown(table: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for name in table:
        if name not in known:
            raise ConfigurationError(
                f"{where}: unknown key {name!r}; {did_you_mean(name, known)}"
            )


def _entry(name: str, table: dict[str, Any], where: str) -> Entry:
    _refuse_unknown(table, KEYS, where)
    for key in NEEDED:
        if key not in table:
            raise ConfigurationError(
                f"{where}: {key} is missing; write the entry anew: {UPDATE}"
            )
    values: dict[str, Any] = {
        key: _read(key, value, where) for key, value in table.items()
    }
    entry = Entry(id=name, **values)
    declared = DECLARABLE.get(entry.expect)
    if entry.expect != "holds" and declared is None:
        raise _refused(where, "expect", entry.expect, ["holds", *DECLARABLE])
    # A finding that is neither declared nor accepted must not become known silently.
    undeclared = entry.verdict in REFUTATIONS and entry.verdict is not declared
    if undeclared and entry.accepted is None:
        raise ConfigurationError(
            f"{where}: {entry.verdict} is not declared by the audit, so it needs "
            f"[audit.{_text(name)}.accepted] with a reason"
        )
    return entry


def _refused(
    where: str, key: str, value: str, known: Iterable[str]
) -> ConfigurationError:
    suggestion = did_you_mean(value, known)
    return ConfigurationError(f"{where}: {key} = {value!r}; {suggestion}")


def _read(key: str, value: Any, where: str) -> Any:
    """Return the value of a field of ``Entry``, from the value of its key in the file.

    Args:
        key: The key, which is also the name of the field.
        value: The value of the key in the TOML file.
        where: The file and the table, for messages of errors.
    """
    expected = TYPES.get(key, str)
    given = f"{where}: {key} = {value!r}"
    # In Python a boolean is an integer.
    is_of_type = isinstance(value, expected) and not isinstance(value, bool)
    if is_of_type and expected is list:
        is_of_type = all(isinstance(item, str) for item in value)
    if not is_of_type:
        raise ConfigurationError(f"{given}; expected {EXPECTED[expected]}")
    if key in NUMBERS:
        return _numbers(NUMBERS[key], value, given)
    if key == "verdict" and value not in VERDICTS:
        raise _refused(where, key, value, VERDICTS)
    if key == "verdict":
        return Verdict(value)
    if key == "accepted":
        return _accepted(value, f"{where}.accepted")
    if key == "calls" and value < 0:
        raise ConfigurationError(f"{given}; expected a number >= 0")
    if expected is list:
        return tuple(value)
    return value


def _numbers(amount: int | None, text: str, given: str) -> Any:
    """Return the number in a text if ``amount`` is 1, otherwise a tuple of its numbers.

    Args:
        amount: Required amount of numbers; None for one or more.
        text: Numbers, separated by spaces.
        given: Start of the message of an error, with the file, the key and the text.
    """
    try:
        numbers = tuple(map(float, text.split()))
    except ValueError:
        numbers = ()
    if not numbers or amount not in (None, len(numbers)):
        needed = {None: "numbers", 1: "a number", 2: "two numbers"}[amount]
        raise ConfigurationError(f'{given}; expected {needed} as a text, such as "0.8"')
    if amount == 1:
        return numbers[0]
    return numbers


def _accepted(table: Mapping[str, Any], where: str) -> Accepted:
    _refuse_unknown(table, ("reason", "expires"), where)
    reason = table.get("reason")
    expires = table.get("expires")
    if not isinstance(reason, str) or not reason.strip():
        raise ConfigurationError(
            f"{where}: reason = {reason!r}; give the reason for which it is accepted"
        )
    # A datetime is a date, and would be compared with days.
    is_day = isinstance(expires, date) and not isinstance(expires, datetime)
    if expires is not None and not is_day:
        raise ConfigurationError(
            f"{where}: expires = {expires!r}; expected a date, such as 2027-01-31"
        )
    return Accepted(reason, expires)


def updated(
    known: Mapping[str, Entry], record: RunRecord, accept: Mapping[str, Accepted]
) -> dict[str, Entry]:
    """Return the entries of the baseline after a run.

    The results of the run replace the old entries of their audits. An old entry without
    a result is removed if the run selected its audit (``covered``); otherwise it stays.
    An entry keeps the digits of an old claim, and of old bounds that the run does not
    contradict. Then a diff has no meaningless changes. An old acceptance stays if the
    audit has the same finding again.

    Args:
        known: The old entries by id.
        record: The run.
        accept: New acceptances by id of the audit. Each id must have a finding.

    Raises:
        ConfigurationError: If an audit crashed or has no result, a finding is not
            accepted, or an id in ``accept`` has no finding.
    """
    crashed = [each.id for each in record.results if each.verdict is Verdict.ERROR]
    crashed += record.missing
    if crashed:
        raise ConfigurationError(
            f"nothing is known about {', '.join(crashed)}: crashed, or not finished; repair "
            "that, run again, and then update"
        )
    findings = [result.id for result in record.results if result.is_finding]
    for name in accept:
        if name not in findings:
            raise ConfigurationError(
                f"--accept {name}: the run has no finding of this id; findings: "
                f"{', '.join(findings) or 'none'}"
            )
    results = {result.id: result for result in record.results}
    is_covered = covered(record)
    # Entries that the run was not to audit stay; others without a result are gone.
    entries = {
        name: entry
        for name, entry in known.items()
        if name not in results and not is_covered(name)
    }
    for name, result in results.items():
        old = known.get(name)
        accepted = accept.get(name)
        if accepted is None and old is not None and old.verdict is result.verdict:
            accepted = old.accepted
        if not result.is_finding:
            accepted = None
        entry = entry_of(result, accepted)
        if old is not None and old.same(entry):
            entry = _as_written(old, entry)
        entries[name] = entry
    open_findings = [name for name in findings if entries[name].accepted is None]
    if open_findings:
        raise ConfigurationError(
            f"not accepted: {', '.join(open_findings)}; repair the mechanism, declare what "
            "is published as false (@audit(expect=...)), or accept each with --accept ID "
            "--reason TEXT"
        )
    return entries


def _as_written(old: Entry, entry: Entry) -> Entry:
    """Return the new entry with old digits.

    The claim has its old digits. The caller has to check that both claims are the same.
    A bound has its old digits if both entries have it, and no bounds contradict each
    other.
    """
    agreed = ["claim", "adjacency"]
    if old.numbers:
        agreed.append("numbers")
    if not drift(old, entry):
        # A bound that only one of the runs has is a change, and not one of digits.
        bounds = ("at_least", "at_most", "counted", "told_apart")
        for name in bounds:
            if None not in (getattr(old, name), getattr(entry, name)):
                agreed.append(name)
    values: dict[str, Any] = {name: getattr(old, name) for name in agreed}
    return replace(entry, **values)
