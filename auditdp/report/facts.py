"""The numbers of a piece of evidence: facts that stand beside it, and tables that a reader may open.

What a statement says is not said again, and what a reader of a table can do without is left to the JSON record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from auditdp.record.details import (
    AccountingDetails,
    ClassOfInputs,
    Confirmation,
    CountingDetails,
    EstimationDetails,
    ExactDetails,
    GameDetails,
    SensitivityDetails,
)
from auditdp.record.results import ClaimRecord, Evidence, Verdict
from auditdp.report import numbers
from auditdp.report.guesses import columns, looked_at, rows
from auditdp.report.numbers import MISSING, number
from auditdp.report.plain_text import shorten

CLASSES_SHOWN = 18
PAIRS_SHOWN = 4
FORECASTERS_SHOWN = 3
WON = 0.05  # nats; who gained less has gained nothing that can be seen
PAIR_LENGTH = 100  # in a list of pairs
VALUE_LENGTH = 300

_PLACED = {
    *(
        "threshold",
        "refuted_at",
        "notices",
        "same_outputs",
        "search_calls",
        "forecasters_played",
    ),
    *(
        "detectable_epsilon",
        "detectable_alternative",
        "detectable_rarely",
        "claimed_epsilon",
        "delta",
    ),
    *(
        "exact_epsilon",
        "worst_pair",
        "scope",
        "pairs_enumerated",
        "pairs_compared",
        "exhaustive",
        "margin",
    ),
    *(
        "sensitivity",
        "norm",
        "largest_difference",
        "delta_upper",
        "delta_at_claim",
        "confidence",
        "followed",
    ),
    *("law_distance", "law_distance_is", "runs_per_input"),
}
"""Details that have a place of their own or that statements say; any other is listed where it is a plain value."""


@dataclass(frozen=True)
class Table:
    """A small table of an evidence's numbers, with the name of a row in its first column."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left_out: int = 0


def facts(
    evidence: Evidence,
    claim: ClaimRecord | None,
    *,
    already_shown: str = "",
    pair: str = "",
) -> Iterator[tuple[str, str]]:
    """Return the numbers of an evidence, as (name, value).

    Args:
        evidence: The evidence.
        claim: What is audited.
        already_shown: What the reader has been told already.
        pair: The pair of the audit's counterexample, which stands above.
    """
    shown, letter = evidence.details, numbers.symbol(claim)
    exact = shown if isinstance(shown, ExactDetails) else ExactDetails()
    game = shown if isinstance(shown, GameDetails) else GameDetails()
    refuted = evidence.verdict is Verdict.VIOLATED
    found = numbers.interval(
        evidence.epsilon_lower, evidence.epsilon_upper, claim, refuted=refuted
    )
    known = numbers.interval(exact.exact_epsilon, exact.exact_epsilon, claim)
    if isinstance(shown, CountingDetails) and shown.delta_upper is not None:
        if evidence.epsilon_upper is not None:
            yield (
                "On the pairs counted",
                numbers.at_most(evidence.epsilon_upper, shown.delta_upper),
            )
    elif found not in (MISSING, known) and not says(already_shown, found):
        yield "Bounds", found
    if exact.exact_epsilon is not None:
        pure = "pure " if claim is not None and claim.delta else ""
        yield f"Exact {pure}{letter}", number(exact.exact_epsilon, digits=6)
    if isinstance(
        shown, ExactDetails | SensitivityDetails
    ) and shown.worst_pair not in (None, pair):
        yield "Worst pair", plain(shown.worst_pair)
    scope = plain(
        shown.scope
        if isinstance(shown, ExactDetails | SensitivityDetails | CountingDetails)
        else None
    )
    if scope != MISSING and not says(already_shown, scope):
        yield "Scope", scope
    many = number(exact.pairs_enumerated)
    if many != MISSING and not says(f"{already_shown} {scope}", many):
        yield "Pairs enumerated", many
    if evidence.log_e_value is not None:
        against = (
            ""
            if game.threshold is None
            else f", against {numbers.e_value(game.threshold)} = 1/α"
        )
        yield "e-value (wealth)", numbers.e_value(evidence.log_e_value) + against
    for name, calls in (
        ("Refuted after", game.refuted_at),
        ("Calls", evidence.calls or None),
        ("Calls to find pairs", game.search_calls or None),
    ):
        if calls is not None and not says(already_shown, f"{number(calls)} calls"):
            yield name, number(calls) + (" calls" if name == "Refuted after" else "")
    smallest = numbers.bound(game.detectable_epsilon, up=True)
    if smallest != MISSING and not says(already_shown, smallest):
        alternative = game.detectable_alternative
        seen = f"{letter} = {smallest}" + (f" ({alternative})" if alternative else "")
        yield (
            "Would have refuted, 9 times in 10",
            "not known: the calls are few" if smallest == "∞" else seen,
        )
    if game.trace is not None:
        yield "Traced", looked_at(game.trace)
    if game.confirmation is not None:
        yield "Confirmation on fresh randomness", _confirmation(game.confirmation)
    winners = _winners(game)
    if winners:
        played = number(game.forecasters_played)
        yield (
            "Best forecasters" + (f", of {played}" if played != MISSING else ""),
            winners,
        )
    if isinstance(shown, EstimationDetails) and shown.margin is not None:
        yield "Margin", f"± {number(shown.margin)}"
    for key, value in shown.values():
        if key not in _PLACED and isinstance(value, str | int | float | bool):
            yield key.replace("_", " ").capitalize(), plain(value)


def says(text: str, part: str) -> bool:
    """Return whether a text says something, and not only a longer number or word that contains it."""
    return re.search(rf"(?<![\w.,]){re.escape(part)}(?![\w]|[.,]\d)", text) is not None


def _confirmation(confirmation: Confirmation) -> str:
    outcome = "confirmed" if confirmation.confirmed else "not confirmed"
    calls, wealth = (
        number(confirmation.calls),
        numbers.e_value(confirmation.log_e_value),
    )
    return f"{outcome} after {calls} calls (e-value {wealth}, α = {number(confirmation.alpha)})"


def tables(evidence: Evidence, claim: ClaimRecord | None = None) -> Iterator[Table]:
    """Return the tables of an evidence: its classes of inputs, its bounds, what accountants say, and lines with noise."""
    shown = evidence.details
    if isinstance(shown, GameDetails) and shown.trace is not None and shown.trace.lines:
        lines = [[plain(cell) for cell in row] for row in rows(shown.trace.lines)]
        yield Table("Lines at which noise enters", columns(claim), lines)
    if isinstance(shown, EstimationDetails) and shown.classes:
        heads = [
            "Class",
            "n",
            "Truth",
            "Mean",
            "Interval of the mean",
            "Variance",
            "Variance bound",
        ]
        classes = [_class(row) for row in shown.classes]
        yield Table(
            "Classes of inputs",
            heads,
            classes[:CLASSES_SHOWN],
            max(0, len(classes) - CLASSES_SHOWN),
        )
    if (
        isinstance(shown, CountingDetails)
        and len(bounds := shown.upper_bounds or []) > 1
    ):
        ends = [
            [numbers.bound(end, up=True) for end in (row.delta, row.epsilon)]
            for row in bounds
        ]
        yield Table("Upper bounds that hold together", ["δ", "ε at most"], ends)
    if isinstance(shown, AccountingDetails) and shown.accountants:
        heads = [
            "Accountant",
            "Is",
            f"ε at δ = {number(shown.delta)}",
            "Source",
            "Finding",
        ]
        said = (
            (a.name, a.soundness, number(a.epsilon), a.source, a.finding)
            for a in shown.accountants
        )
        yield Table("Accountants", heads, [[*map(plain, row)] for row in said])


def pairs(evidence: Evidence) -> Iterator[str]:
    """Return what is known of each pair that was played, the most played first."""
    played = evidence.details.pairs if isinstance(evidence.details, GameDetails) else []
    for row in sorted(played, key=lambda row: -row.calls):
        growth = (
            f", {number(row.growth, 3)} nats per call" if row.growth is not None else ""
        )
        yield f"{shorten(plain(row.pair), PAIR_LENGTH)}: {number(row.calls)} calls{growth}"


def _winners(game: GameDetails) -> str:
    """The forecasters that won most, with their wealth."""
    won = sorted(
        (row for row in game.forecasters if row.log_wealth > WON),
        key=lambda row: -row.log_wealth,
    )
    return "; ".join(
        f"{plain(row.name)} ({numbers.e_value(row.log_wealth)})"
        for row in won[:FORECASTERS_SHOWN]
    )


def _class(row: ClassOfInputs) -> list[str]:
    interval, variances = (
        f"{number(row.low)} to {number(row.high)}",
        (row.variance, row.variance_bound),
    )
    return [
        plain(row.name),
        *map(number, (row.n, row.truth, row.mean)),
        interval,
        *map(number, variances),
    ]


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
