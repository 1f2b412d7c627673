"""Facts about results and about evidence, which every format of a report lists.

A fact is a label, a sentence or number, and the tone in which it is written. Each
format chooses facts by their labels. A number that a statement has already is left out.
Details that only programs need are in the JSON record alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from auditdp.record.details import (
    AccountingDetails,
    ClassOfInputs,
    Confirmation,
    CountingDetails,
    EstimationDetails,
    ExactDetails,
    GameDetails,
)
from auditdp.record.results import (
    REFUTATIONS,
    AuditResult,
    ClaimRecord,
    Counterexample,
    Evidence,
    Verdict,
    details,
)
from auditdp.record.traces import Fate
from auditdp.record.verdict import REMEDY
from auditdp.report import numbers
from auditdp.report.guesses import (
    MEANINGS,
    at_most,
    columns,
    guessing,
    rows,
    suspicions,
    trace_scope,
    trace_sentences,
)
from auditdp.report.numbers import MISSING, number
from auditdp.report.plain_text import shell, shorten
from auditdp.report.sentences import (
    claim_itself,
    counting_sentences,
    further_summary,
    missed_declaration,
    mutation_score,
    next_command,
    refutation,
    surviving,
    undecided,
    unrepeated_summary,
    would_find,
)


class Tone(StrEnum):
    """Tones of facts; the values are styles of the library rich."""

    PLAIN = ""
    ALARM = "bold red"
    ERROR = "magenta"
    DOUBT = "yellow"
    GOOD = "green"
    QUIET = "dim"
    COMMAND = "bold"


@dataclass(frozen=True)
class Fact:
    """A labelled sentence or number about a result."""

    label: str
    text: str
    tone: Tone = Tone.PLAIN


SPELLED_OUT = (
    *("claim", "found", "refuted", "meaning", "self-reported", "pair", "as Python"),
    *("output", "because", "trace", "reproduce", "next"),
)
"""Labels of the facts about a finding in annotations, SARIF and comments."""
CODE = ("pair", "as Python", "output", "reproduce", "next")
"""Labels of facts that are written as code."""


def facts(result: AuditResult) -> Iterator[Fact]:
    """Yield the facts of a result, most important first."""
    verdict = result.verdict
    claim = result.claim
    if claim is not None:
        yield Fact("claim", f"{claim.text} ({claim.adjacency})")
    if numbers.bounds(result) != MISSING:
        yield Fact("found", numbers.bounds(result))
    reproduce = shell(result.reproduce)
    command = []
    if reproduce:
        command = [Fact("reproduce", reproduce, Tone.COMMAND)]
    if verdict is Verdict.ERROR:
        crash = result.summary.removeprefix(f"{result.id}: ")
        yield from [Fact("error", crash, Tone.ERROR), *command]
        return
    if verdict is Verdict.SKIPPED:
        yield Fact("reason", result.summary, Tone.QUIET)
        return
    if result.is_undecided:
        yield from [Fact("undecided", undecided(result), Tone.DOUBT), *command]
        return
    # The verdict hides these refutations, so they come first.
    for evidence in result.refuting:
        yield Fact("refuted", refutation(evidence), Tone.ALARM)
        if evidence.counterexample is not None:
            yield from list(_counterexample(evidence.counterexample))[:2]
    # A declared fault that was not found is a finding by itself.
    for sentence in missed_declaration(result):
        yield Fact("missed", sentence, Tone.ALARM)
    if verdict in REFUTATIONS:
        yield from _of_refutation(result)
    # A trace explains a finding, or suggests the line of one that bets did not confirm.
    yield from (Fact("trace", sentence) for sentence in trace_sentences(result))
    for label, finding in suspicions(result):
        yield Fact(label, finding.located, Tone.DOUBT)
    if verdict is Verdict.MISCALIBRATED:
        if result.is_finding:
            yield Fact("means", f"{MEANINGS[verdict]} {REMEDY}")
        yield Fact("the claim", claim_itself(result))
    for sentence in surviving(result):
        yield Fact("control", f"Survived: {sentence}", Tone.ALARM)
    # The summary of an audit with a surviving control repeats that.
    if verdict is Verdict.INCONCLUSIVE and not result.surviving_controls:
        yield from (Fact("because", text) for text in unrepeated_summary(result))
    if verdict is Verdict.NOT_REFUTED:
        if would_find(result):
            yield Fact("would find", would_find(result))
        else:
            yield Fact("because", result.summary)
    if at_most(result):
        yield Fact("traced", at_most(result))
    yield from (Fact("notice", text, Tone.DOUBT) for text in result.notices)
    yield from (Fact(label, sentence) for label, sentence in counting_sentences(result))
    # A surviving mutant is a fault of the audit, and not of the mechanism.
    if result.mutation is not None:
        survivors = result.mutation.of(Fate.SURVIVED)
        tone = Tone.GOOD
        if survivors:
            tone = Tone.DOUBT
        yield Fact("mutants", mutation_score(result.mutation), tone)
        for mutant in survivors:
            sentence = f"{mutant.name}: {mutant.statement}"
            yield Fact("survivor", sentence, Tone.DOUBT)
    # An open question has a command that may decide it; else the finding is repeated.
    unconfirmed = all(each.unconfirmed for each in result.refuting)
    following = shell(next_command(result))
    if verdict is Verdict.INCONCLUSIVE and unconfirmed and following:
        yield Fact("next", following, Tone.COMMAND)
    elif result.is_finding or verdict in REFUTATIONS or result.refuting:
        yield from command


def _of_refutation(result: AuditResult) -> Iterator[Fact]:
    # Readers of a declared fault know where the claim is from.
    if result.claim is not None and result.claim.source and result.is_finding:
        yield Fact("claimed in", result.claim.source)
    if guessing(result):
        yield Fact("meaning", guessing(result))
    if result.is_self_reported:
        sentence = "the verdict rests on numbers that the code of the audit computed."
        yield Fact("self-reported", sentence)
    if result.counterexample is not None:
        yield from _counterexample(result.counterexample)
    elif result.summary:
        yield Fact("because", result.summary)
    further = further_summary(result)
    if further and result.is_finding and result.verdict is Verdict.VIOLATED:
        yield Fact("besides", further)


def _counterexample(found: Counterexample) -> Iterator[Fact]:
    pair = Fact("pair", found.pair)
    if found.python:
        pair = Fact("as Python", found.python)
    listed = [pair, Fact("output", found.output), Fact("because", found.explanation)]
    yield from (fact for fact in listed if fact.text)
    if not found.confirmed:
        yield Fact("note", "Not confirmed on fresh randomness.", Tone.DOUBT)


_PLACED = {
    *("threshold", "refuted_at", "notices", "same_outputs", "search_calls"),
    *("forecasters_played", "detectable_epsilon", "detectable_alternative"),
    *("detectable_rarely", "claimed_epsilon", "delta", "exact_epsilon"),
    *("worst_pair", "scope", "pairs_enumerated", "pairs_compared", "exhaustive"),
    *("margin", "sensitivity", "norm", "largest_difference", "delta_upper"),
    *("delta_at_claim", "confidence", "followed", "law_distance"),
    *("law_distance_is", "runs_per_input"),
}
"""Fields of details that have a place of their own in reports.

``evidence_facts`` lists every other field whose value is a text, a number or a bool.
"""


@dataclass(frozen=True)
class Table:
    """A table of a piece of evidence; the first column names the rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left_out: int = 0
    """Number of further rows that are not shown."""


def evidence_facts(
    evidence: Evidence,
    claim: ClaimRecord | None,
    *,
    already_shown: str = "",
    pair: str = "",
) -> Iterator[tuple[str, str]]:
    """Yield (name, value) for the numbers of a piece of evidence.

    Args:
        evidence: The evidence.
        claim: The claim of the audit, if there is one.
        already_shown: The text above the facts. Numbers that it has are left out if
            ``IN_STATEMENTS`` names them.
        pair: The pair of the audit's counterexample. If it is also the worst pair, the
            worst pair is left out.
    """
    for name, value in _evidence_facts(evidence, claim, pair):
        # The words in brackets are not in statements.
        number_alone = value.partition(" (")[0]
        is_repeated = contains_phrase(already_shown, number_alone)
        if name not in IN_STATEMENTS or not is_repeated:
            yield name, value


DETECTED = "Would have refuted, with probability 9 in 10"
IN_STATEMENTS = (
    *("Bounds", "Scope", "Pairs enumerated", "Refuted after", "Calls"),
    *("Calls to find pairs", DETECTED),
)
"""Names of numbers that are left out if the text above the facts has them."""


def _evidence_facts(
    evidence: Evidence, claim: ClaimRecord | None, pair: str
) -> Iterator[tuple[str, str]]:
    given = evidence.details
    letter = numbers.symbol(claim)
    exact = next(details([evidence], ExactDetails), ExactDetails())
    game = next(details([evidence], GameDetails), GameDetails())
    counting = next(details([evidence], CountingDetails), CountingDetails())
    upper = evidence.epsilon_upper
    # Counting bounds the pairs that were counted, and not all pairs.
    if counting.delta_upper is None:
        is_refuted = evidence.verdict is Verdict.VIOLATED
        interval = numbers.interval(
            evidence.epsilon_lower, upper, claim, refuted=is_refuted
        )
        exact_interval = numbers.interval(
            exact.exact_epsilon, exact.exact_epsilon, claim
        )
        if interval not in (MISSING, exact_interval):
            yield "Bounds", interval
    elif upper is not None:
        yield "On the pairs counted", numbers.at_most(upper, counting.delta_upper)
    # With δ, an exact ε is that of pure DP, and not that of the claim.
    if exact.exact_epsilon is not None:
        pure = ""
        if claim is not None and claim.delta:
            pure = "pure "
        yield f"Exact {pure}{letter}", number(exact.exact_epsilon, digits=6)
    worst_pair = getattr(given, "worst_pair", None)
    if worst_pair not in (None, pair):
        yield "Worst pair", plain(worst_pair)
    scope = getattr(given, "scope", None)
    if scope is not None:
        yield "Scope", plain(scope)
    pairs_text = number(exact.pairs_enumerated)
    if pairs_text != MISSING and not contains_phrase(exact.scope or "", pairs_text):
        yield "Pairs enumerated", pairs_text
    if evidence.log_e_value is not None:
        against = ""
        if game.threshold is not None:
            against = f", against {numbers.e_value(game.threshold)} = 1/α"
        yield "e-value (wealth)", numbers.e_value(evidence.log_e_value) + against
    if game.refuted_at is not None:
        yield "Refuted after", f"{number(game.refuted_at)} calls"
    if evidence.calls:
        yield "Calls", f"{number(evidence.calls)} calls"
    if game.search_calls:
        yield "Calls to find pairs", f"{number(game.search_calls)} calls"
    smallest = numbers.bound(game.detectable_epsilon, up=True)
    if smallest == "∞":
        yield DETECTED, "not known, since there are few calls"
    elif smallest != MISSING:
        mechanism = numbers.between(" (", game.detectable_alternative, ")")
        yield DETECTED, f"{letter} = {smallest}{mechanism}"
    if game.trace is not None:
        yield "Traced", trace_scope(game.trace)
    if game.confirmation is not None:
        yield "Confirmation on fresh randomness", _confirmation(game.confirmation)
    yield from _best_forecasters(game)
    if isinstance(given, EstimationDetails) and given.margin is not None:
        yield "Margin", f"± {number(given.margin)}"
    for key, value in given.values():
        if key not in _PLACED and isinstance(value, str | int | float | bool):
            yield key.replace("_", " ").capitalize(), plain(value)


def contains_phrase(text: str, part: str) -> bool:
    """Return True if ``part`` occurs in a text, not inside a longer number or word."""
    return re.search(rf"(?<![\w.,]){re.escape(part)}(?![\w]|[.,]\d)", text) is not None


def _confirmation(confirmation: Confirmation) -> str:
    outcome = "not confirmed"
    if confirmation.confirmed:
        outcome = "confirmed"
    wealth = numbers.e_value(confirmation.log_e_value)
    return (
        f"{outcome} after {number(confirmation.calls)} calls (e-value {wealth}, α = "
        f"{number(confirmation.alpha)})"
    )


def _best_forecasters(game: GameDetails) -> Iterator[tuple[str, str]]:
    ordered = sorted(game.forecasters, key=lambda each: -each.log_wealth)
    # A gain of less than 0.05 nats does not show in three digits.
    winners = [
        f"{plain(each.name)} ({numbers.e_value(each.log_wealth)})"
        for each in ordered
        if each.log_wealth > 0.05
    ]
    if winners:
        played = number(game.forecasters_played)
        of_played = "" if played == MISSING else f", of {played}"
        yield f"Best forecasters{of_played}", "; ".join(winners[:3])


def tables(evidence: Evidence, claim: ClaimRecord | None = None) -> Iterator[Table]:
    """Yield the one table of a piece of evidence, or nothing.

    The table of a game lists the lines of code that add noise, if it was traced. That
    of an estimation lists its classes of inputs, that of counting its upper bounds if
    there are several, and that of accounting the accountants. ``claim`` decides the
    letter of the loss in the table of a game; None means ε.
    """
    given = evidence.details
    if isinstance(given, GameDetails) and given.trace is not None:
        lines = [[plain(cell) for cell in row] for row in rows(given.trace.lines)]
        if lines:
            yield Table("Lines at which noise enters", columns(claim), lines)
    elif isinstance(given, EstimationDetails) and given.classes:
        heads = ["Class", "n", "Truth", "Mean", "Interval of the mean", "Variance"]
        heads.append("Variance bound")
        listed = [_class(row) for row in given.classes[:18]]
        left_out = len(given.classes) - len(listed)
        yield Table("Classes of inputs", heads, listed, left_out)
    elif isinstance(given, CountingDetails) and len(given.upper_bounds or []) > 1:
        ends = [
            [numbers.bound(end, up=True) for end in (row.delta, row.epsilon)]
            for row in given.upper_bounds or []
        ]
        yield Table("Upper bounds that hold together", ["δ", "ε at most"], ends)
    elif isinstance(given, AccountingDetails) and given.accountants:
        at = f"ε at δ = {number(given.delta)}"
        answers = [
            [
                plain(each.name),
                plain(each.soundness),
                number(each.epsilon),
                plain(each.source),
                plain(each.finding),
            ]
            for each in given.accountants
        ]
        heads = ["Accountant", "Is", at, "Source", "Finding"]
        yield Table("Accountants", heads, answers)


def pairs(evidence: Evidence) -> Iterator[str]:
    """Yield a line of text about each pair of a game, the pair with most calls first.

    Other kinds of evidence have no lines.
    """
    game = next(details([evidence], GameDetails), GameDetails())
    for row in sorted(game.pairs, key=lambda row: -row.calls):
        growth = ""
        if row.growth is not None:
            growth = f", mean log gain of the best bets {number(row.growth, 3)} a call"
        yield f"{shorten(plain(row.pair), 100)}: {number(row.calls)} calls{growth}"


def _class(row: ClassOfInputs) -> list[str]:
    interval = f"{number(row.low)} to {number(row.high)}"
    middle = [number(value) for value in (row.n, row.truth, row.mean)]
    variances = [number(value) for value in (row.variance, row.variance_bound)]
    return [plain(row.name), *middle, interval, *variances]


def plain(value: object) -> str:
    """Return a value of any type as text; longer texts are cut to 300 characters.

    None is "–", a bool is "yes" or "no", and a list or dictionary is JSON.
    """
    if value is None:
        return MISSING
    if isinstance(value, bool):
        if value:
            return "yes"
        return "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value, digits=6)
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return shorten(value, 300)
