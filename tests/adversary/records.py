"""Records with the same hostile text, or the same extreme number, in every field, built by walking the fields."""

import dataclasses
import enum
import re
import types
import typing
from collections.abc import Callable
from typing import Any

from auditdp.record.details import KINDS
from auditdp.record.results import (
    AuditResult,
    ClaimRecord,
    ControlResult,
    Evidence,
    LedgerEntry,
    RunRecord,
    Verdict,
)
from auditdp.runner.run_record import chained

Fill = Callable[[Any, str], Any]
"""From the type of a plain value and the name of its field to the value."""


def filled(kind: Any, fill: Fill, name: str = "", /, **given: Any) -> Any:
    """Return a value of a type with every field filled; a record's fields that are given are as given."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return filled(inside[0], fill, name)
    if origin in (types.UnionType, typing.Union):
        return filled(
            next(each for each in inside if each is not type(None)), fill, name
        )
    if origin is list:
        return [filled(inside[0], fill, name)]
    if origin is tuple:
        return tuple(filled(each, fill, name) for each in inside)
    if origin is dict:
        return {str(fill(str, f"{name} key")): filled(inside[1], fill, name)}
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, include_extras=False)
        own = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
        return kind(
            **{
                n: given[n] if n in given else filled(of, fill, n)
                for n, of in own.items()
            }
        )
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return next(iter(kind))
    return fill(kind, name)


def without_digests(log: bytes) -> bytes:
    """Return a log as earlier versions wrote it."""
    return re.sub(rb', "digest": "[0-9a-f]{64}"\}$', b"}", log, flags=re.MULTILINE)


def with_digests(log: bytes) -> bytes:
    """Return a log with the digests that its lines would have been written with."""
    before, lines = "", []
    for line in without_digests(log).splitlines():
        before = chained(before, line[:-1])
        lines.append(line[:-1] + f', "digest": "{before}"}}\n'.encode())
    return b"".join(lines)


def text_in(text: str, *, real: bool) -> Fill:
    """Fill texts with one text, and numbers with harmless ones.

    Args:
        text: The text.
        real: Whether what decides how a record is shown, such as the letter of a claim, is what audits write.
    """
    known = (
        {"parameter": "epsilon", "expected": "violation", "kind": "PureDP"}
        if real
        else {}
    )

    def fill(kind: Any, name: str) -> Any:
        if kind in (str, Any):
            return known.get(name, text)
        return {int: 1, float: 0.5, bool: True}[kind]

    return fill


def number_in(number: float) -> Fill:
    """Fill numbers with one number, as far as its type holds it, and texts with harmless ones."""

    def fill(kind: Any, name: str) -> Any:
        if name in ("alpha", "line", "detectable_rarely"):
            return kind(1)
        if kind in (int, Any):
            return int(min(max(number, 0), 2**63 - 1)) if number == number else 0
        if kind is float:
            return max(0.0, number) if name.endswith(("seconds", "phase")) else number
        return {
            str: {"parameter": "epsilon", "kind": "PureDP"}.get(name, f"a {name}"),
            bool: False,
        }[kind]

    return fill


def record(
    fill: Fill, *, name: Callable[[int], str] = "audits/audit_{}.py::x".format
) -> RunRecord:
    """Return a run with an audit of every verdict and every kind of evidence, and one that has no result.

    Args:
        fill: What is in its fields.
        name: The id of an audit, from its number.
    """
    results = []
    kinds = [*KINDS, str(fill(str, "kind of evidence"))]
    verdicts = [verdict for verdict in Verdict for _ in range(2)]
    for k, (verdict, kind) in enumerate(zip(verdicts, kinds * 2, strict=False)):
        record_of = KINDS[kind].record if kind in KINDS else None
        details = (
            filled(record_of, fill)
            if record_of is not None
            else {"key": fill(str, "detail")}
        )
        evidence = filled(Evidence, fill, kind=kind, verdict=verdict, details=details)
        control = filled(ControlResult, fill, verdict=Verdict.VIOLATED)
        results.append(
            filled(
                AuditResult,
                fill,
                id=name(k),
                verdict=verdict,
                evidence=[]
                if verdict in (Verdict.ERROR, Verdict.SKIPPED)
                else [evidence],
                controls=[control],
                claim=filled(ClaimRecord, fill),
                alpha=0.01,
            )
        )
    ledger = [filled(LedgerEntry, fill, audit=each.id, alpha=0.01) for each in results]
    ledger.append(filled(LedgerEntry, fill, audit=name(len(results)), alpha=0.01))
    return filled(
        RunRecord, fill, status="interrupted", root_seed=1, arguments={"more": fill(str, "argument")}, results=results,
        alpha_ledger=ledger,
    )  # fmt: skip
