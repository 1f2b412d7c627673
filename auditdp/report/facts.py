"""The numbers of a piece of evidence: facts that stand beside it, and tables that a reader may open.

What a statement says is not said again, and what a reader of a table can do without is left to the JSON record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from auditdp.report import numbers
from auditdp.report.numbers import MISSING, as_float, number
from auditdp.report.text import shorten
from auditdp.results import ClaimRecord, Evidence

CLASSES_SHOWN = 18
PAIRS_SHOWN = 4
FORECASTERS_SHOWN = 3
WON = 0.05  # nats; who earned less has earned nothing that can be seen
PAIR_LENGTH = 100  # in a list of pairs
VALUE_LENGTH = 300

_PLACED = (
    "threshold",
    "refuted_at",
    "detectable_epsilon",
    "detectable_alternative",
    "growths",
    "detectable_rarely",
    "notices",
    "exact_epsilon",
    "worst_pair",
    "scope",
    "pairs_enumerated",
    "margin",
    "search_calls",
    "forecasters_played",
    "sensitivity",
    "norm",
    "largest_difference",
    "claimed_epsilon",
    "delta",
    "pairs_compared",
    "exhaustive",
    "delta_upper",
    "delta_at_claim",
    "confidence",
    "followed",
    "law_distance",
    "law_distance_is",
    "runs_per_input",
)
"""Details that have a place of their own or that statements say; any other is listed where it is a plain value."""


@dataclass(frozen=True)
class Table:
    """A small table of an evidence's numbers, with the name of a row in its first column."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left_out: int = 0


def facts(
    evidence: Evidence, claim: ClaimRecord | None, *, said: str = "", pair: str = ""
) -> Iterator[tuple[str, str]]:
    """Return the numbers of an evidence, as (name, value).

    Args:
        evidence: The evidence.
        claim: What is audited.
        said: What the reader has been told already.
        pair: The pair of the audit's counterexample, which stands above.
    """
    details, letter = evidence.details, numbers.symbol(claim)
    exact = as_float(details.get("exact_epsilon"))
    found = numbers.interval(evidence.epsilon_lower, evidence.epsilon_upper, claim)
    known = exact is not None and found == numbers.interval(exact, exact, claim)
    if details.get("delta_upper") is not None:
        if evidence.epsilon_upper is not None:
            yield "On the pairs counted", numbers.at_most(evidence.epsilon_upper, details["delta_upper"])
    elif found != MISSING and not known and not says(said, found):
        yield "Bounds", found
    if details.get("exact_epsilon") is not None:
        pure = "pure " if claim is not None and claim.delta else ""
        yield f"Exact {pure}{letter}", number(details["exact_epsilon"], digits=6)
    if details.get("worst_pair") not in (None, pair):
        yield "Worst pair", plain(details["worst_pair"])
    scope = plain(details.get("scope"))
    if scope != MISSING and not says(said, scope):
        yield "Scope", scope
    many = number(details.get("pairs_enumerated"))
    if many != MISSING and not says(f"{said} {scope}", many):
        yield "Pairs enumerated", many
    if evidence.log_e_value is not None:
        threshold = as_float(details.get("threshold"))
        against = "" if threshold is None else f", against {numbers.e_value(threshold)} = 1/α"
        yield "e-value (wealth)", numbers.e_value(evidence.log_e_value) + against
    for name, calls in (
        ("Refuted after", details.get("refuted_at")),
        ("Calls", evidence.calls or None),
        ("Calls to find pairs", details.get("search_calls") or None),
    ):
        if calls is not None and not says(said, f"{number(calls)} calls"):
            yield name, number(calls) + (" calls" if name == "Refuted after" else "")
    smallest = number(details.get("detectable_epsilon"))
    if smallest != MISSING and not says(said, smallest):
        alternative = details.get("detectable_alternative")
        seen = f"{letter} = {smallest}" + (f" ({alternative})" if alternative else "")
        yield "Would have refuted, 9 times in 10", "nothing: the calls are too few" if smallest == "∞" else seen
    confirmation = mapping(details.get("confirmation"))
    if confirmation:
        yield "Confirmation on fresh randomness", _confirmation(confirmation)
    winners = _winners(evidence)
    if winners:
        played = number(details.get("forecasters_played"))
        yield "Best forecasters" + (f", of {played}" if played != MISSING else ""), winners
    margin = as_float(details.get("margin"))
    if margin is not None:
        yield "Margin", f"± {number(margin)}"
    for key, value in details.items():
        if key not in _PLACED and isinstance(value, str | int | float | bool):
            yield key.replace("_", " ").capitalize(), plain(value)


def says(text: str, part: str) -> bool:
    """Return whether a text says something, and not only a longer number or word that contains it."""
    return re.search(rf"(?<![\w.,]){re.escape(part)}(?![\w]|[.,]\d)", text) is not None


def _confirmation(confirmation: dict[str, Any]) -> str:
    outcome = "confirmed" if confirmation.get("confirmed") else "not confirmed"
    calls, wealth = number(confirmation.get("calls")), numbers.e_value(confirmation.get("log_e_value"))
    return f"{outcome} after {calls} calls (e-value {wealth}, α = {number(confirmation.get('alpha'))})"


def tables(evidence: Evidence) -> Iterator[Table]:
    """Return the tables of an evidence: its classes of inputs, and what accountants say."""
    details = evidence.details
    classes = _rows(details.get("classes"))
    if classes:
        columns = ["Class", "n", "Truth", "Mean", "Interval of the mean", "Variance", "Variance bound"]
        rows = [[plain(row.get("class")), *map(number, _class_numbers(row))] for row in classes]
        for shown, row in zip(rows, classes, strict=True):
            shown.insert(4, f"{number(row.get('low'))} to {number(row.get('high'))}")
        yield Table("Classes of inputs", columns, rows[:CLASSES_SHOWN], max(0, len(rows) - CLASSES_SHOWN))
    if len(bounds := _rows(details.get("upper_bounds"))) > 1:
        columns = ["δ", "ε at most"]
        ends = [[numbers.bound(row.get(key), up=True) for key in ("delta", "epsilon")] for row in bounds]
        yield Table("Upper bounds that hold together", columns, ends)
    if accountants := _rows(details.get("accountants")):
        columns = ["Accountant", "Is", f"ε at δ = {number(details.get('delta'))}", "Source", "Finding"]
        said = [[row.get(key) for key in ("name", "soundness", "epsilon", "source", "finding")] for row in accountants]
        yield Table(
            "Accountants", columns, [[*map(plain, row[:2]), number(row[2]), *map(plain, row[3:])] for row in said]
        )


def pairs(evidence: Evidence) -> Iterator[str]:
    """Return what is known of each pair that was played, the most played first."""
    for row in sorted(_rows(evidence.details.get("pairs")), key=lambda row: -(as_float(row.get("calls")) or 0.0)):
        growth = f", {number(row.get('growth'), 3)} nats per call" if row.get("growth") is not None else ""
        yield f"{shorten(plain(row.get('pair')), PAIR_LENGTH)}: {number(row.get('calls'))} calls{growth}"


def _winners(evidence: Evidence) -> str:
    """The forecasters that won most, with their wealth."""
    wealth = [
        (as_float(row.get("log_wealth")) or 0.0, plain(row.get("name")))
        for row in _rows(evidence.details.get("forecasters"))
    ]
    won = sorted((entry for entry in wealth if entry[0] > WON), key=lambda entry: -entry[0])
    shown = [f"{name} ({numbers.e_value(log)})" for log, name in won[:FORECASTERS_SHOWN]]
    return "; ".join(shown)


def _class_numbers(row: dict[str, Any]) -> list[Any]:
    return [row.get(key) for key in ("n", "truth", "mean", "variance", "variance_bound")]


def mapping(value: object) -> dict[str, Any]:
    """Return a detail that should be a mapping, or an empty one."""
    return value if isinstance(value, dict) else {}


def _rows(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list | tuple) else []


def plain(value: object) -> str:
    """Return a parameter or detail of any type on one line."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return str(value) if isinstance(value, int) else number(value, digits=6)
    if isinstance(value, str):
        return shorten(value, VALUE_LENGTH)
    return shorten(json.dumps(value, ensure_ascii=False, default=str), VALUE_LENGTH)
