"""How the audits of a run stand, in the order in which a person should look at them.

What a clean run would have found: the sentence that stands in place of "nothing is worse".
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from auditdp.numerics.rounding import confidence, outwards
from auditdp.record.budget import BUDGETS
from auditdp.record.details import CountingDetails, GameDetails
from auditdp.record.differences import SEEN
from auditdp.record.results import (
    DECLARABLE,
    AuditResult,
    ControlResult,
    Evidence,
    RunRecord,
    Verdict,
    details,
)
from auditdp.record.traces import Fate, Mutation
from auditdp.record.verdict import MISCALIBRATION, REMEDY, of_claim
from auditdp.report.guesses import CLEAN_RUN
from auditdp.report.numbers import at_most, bound, count, e_value, level, number, symbol


class Standing(StrEnum):
    """What an audit amounts to once what it declares is taken into account; listed in the order of reports."""

    UNCONFIRMED = "claims refuted, not confirmed"
    FINDING = "findings"
    UNDECIDED = "undecided with so few calls"
    DECLARED = "claims refuted, as declared"
    MISCALIBRATED = "calibrations refuted, as declared"
    CERTIFIED = "proved"
    EQUIVALENT = "equivalent on the inputs that were tried"
    NOT_REFUTED = "not refuted"
    INCONCLUSIVE = "inconclusive"
    ERROR = "errors"
    SKIPPED = "skipped"


LONG = 1.0
"""Seconds from which an audit may be listed as slow."""
MOST_SLOW = 5
MANY_AUDITS = 100
"""Audits of a file; of a file with more, reports say that it leaves less of alpha to the audits of other files."""
BEYOND = "Smaller or rarer leaks may be missed; more calls find more."
"""What follows the leaks that a budget would find."""
MORE_CALLS = 10
"""Times as many calls as it had test a claim again whose refutation was not confirmed."""
RARE = 0.5
"""Outputs that come more often than in every second call are not called rare."""
AS_DECLARED = (Standing.DECLARED, Standing.MISCALIBRATED)
_ONE = {
    "findings": "finding",
    "claims refuted, not confirmed": "claim refuted, not confirmed",
    "claims refuted, as declared": "claim refuted, as declared",
    "calibrations refuted, as declared": "calibration refuted, as declared",
    "errors": "error",
}


def named(key: Standing, many: int) -> str:
    """Return the words that follow a number of audits."""
    return _ONE.get(key.value, key.value) if many == 1 else key.value


def standing(result: AuditResult) -> Standing:
    """Return how one audit stands."""
    if result.is_finding:
        return Standing.FINDING
    if result.is_unconfirmed:
        return Standing.UNCONFIRMED
    if result.is_undecided:
        return Standing.UNDECIDED
    return (
        Standing.DECLARED
        if result.verdict is Verdict.VIOLATED
        else Standing[result.verdict.name]
    )


def by_standing(record: RunRecord) -> dict[Standing, list[AuditResult]]:
    """Return the audits of every standing that occurs, worst first, otherwise in the order of the record."""
    groups = {
        key: [result for result in record.results if standing(result) is key]
        for key in Standing
    }
    return {key: results for key, results in groups.items() if results}


def outcomes(record: RunRecord) -> dict[Standing, int]:
    """Return the number of audits of every standing that occurs, and the number of findings even where it is 0."""
    groups = by_standing(record)
    return {
        key: len(groups.get(key, ()))
        for key in Standing
        if key in groups or key is Standing.FINDING
    }


def headline(
    record: RunRecord, *beside: str, findings: int | None = None, new: str = ""
) -> str:
    """Return the outcomes of a run in one line: refutations that were not confirmed, findings, those declared, proofs.

    Args:
        record: The run.
        beside: Counts that follow the findings, such as that of accepted ones.
        findings: The number of findings; those of the record unless given.
        new: "new " where findings are those that a baseline does not have.
    """
    many = outcomes(record)
    own = many.pop(Standing.FINDING)
    first = f"{count(own if findings is None else findings, f'{new}finding')} in {of_planned(record)}"
    if not (record.audited or findings):
        first = "Nothing was audited"
    dropped = many.pop(Standing.UNCONFIRMED, 0)
    loudest = [f"{dropped:,} {named(Standing.UNCONFIRMED, dropped)}"] if dropped else []
    return "; ".join(
        [
            *loudest,
            first,
            *beside,
            *(f"{number:,} {named(key, number)}" for key, number in many.items()),
        ]
    )


def verdict_label(result: AuditResult) -> str:
    """Return the verdict, with 'as declared' where the audit says that it ends so."""
    if result.verdict is DECLARABLE.get(result.expected):
        return f"{result.verdict} as declared"
    return str(result.verdict)


def role(result: AuditResult) -> str:
    """Return the colour of an audit by name: that of its verdict, but what is declared and found is good."""
    verdict = Verdict.CERTIFIED if standing(result) in AS_DECLARED else result.verdict
    return verdict.value.lower().replace("_", "-")


def reasons(result: AuditResult) -> list[str]:
    """Return why an audit is a finding, one sentence each; empty where it is none."""
    if not result.is_finding:
        return []
    found = []
    if result.verdict is Verdict.VIOLATED and result.expected != "violation":
        found.append(
            "The claim is violated, and the audit does not declare that it is."
        )
    if result.verdict is Verdict.MISCALIBRATED and result.expected != "miscalibration":
        found.append(f"{MISCALIBRATION} The audit does not declare this. {REMEDY}")
    found.extend(missed(result))
    found.extend(f"A control survived: {control}" for control in surviving(result))
    return found


def undecided(result: AuditResult) -> str:
    """Return why nothing is decided with this budget; empty where it is."""
    if not result.is_undecided:
        return ""
    twins = " and ".join(result.surviving_controls)
    what = (
        f"to refute the broken {twins}"
        if twins
        else f"to find the declared {result.expected}"
    )
    return (
        f"The budget is too small {what}: it leaves out {result.lacking:,} of the calls that the audit names. "
        "A larger budget decides."
    )


def missed(result: AuditResult) -> list[str]:
    """Return one sentence where the audit declares what none of its evidence found; else none."""
    declared = DECLARABLE.get(result.expected)
    if declared in (
        None,
        result.verdict,
        *(evidence.verdict for evidence in result.evidence),
    ):
        return []
    return [f"A {result.expected} is declared here, and it was not found."]


def beside(result: AuditResult) -> str:
    """Return what the summary adds to the statement of the evidence that the verdict rests on."""
    statement = result.leading.statement if result.leading else ""
    follows = statement and result.summary.startswith(statement)
    return result.summary.removeprefix(statement).lstrip(";. ") if follows else ""


def claim_itself(result: AuditResult) -> str:
    """Return what is known of the claim where its calibration is refuted: the verdict on it, and why."""
    known = of_claim(result.evidence)
    return (
        f"{known[0]}: {known[1]}"
        if known
        else "not audited here: what is audited is the sensitivity alone"
    )


def refuted(evidence: Evidence) -> str:
    """Return how an evidence refutes, in a sentence: where that was not confirmed, with the e-values of all its games."""
    if not evidence.unconfirmed:
        return f"{evidence.kind}: {evidence.verdict}, {evidence.statement}"
    found = f"{evidence.kind}, which was not confirmed"
    game = evidence.details
    if not isinstance(game, GameDetails) or evidence.log_e_value is None:
        return found
    reached = (
        f", after it had reached {e_value(game.threshold)} = 1/α"
        if game.threshold is not None
        else ""
    )
    parts = [f"{found}: e-value {e_value(evidence.log_e_value)}{reached}"]
    for how, fresh in (
        ("one by one", game.confirmation),
        ("of several outputs", game.together),
    ):
        if fresh is not None:
            needed = e_value(-math.log(fresh.alpha))
            calls = count(fresh.calls, "fresh call")
            parts.append(
                f"{e_value(fresh.log_e_value)} in {calls} {how}, where {needed} confirms"
            )
    return "; ".join(parts)


def unconfirmed(result: AuditResult) -> list[str]:
    """Return how a claim was refuted without that being the verdict, one sentence for each evidence that did it."""
    return [
        f"Refuted, though the verdict is {result.verdict}, by {refuted(e)}."
        for e in result.refuting
    ]


def slowest(record: RunRecord) -> list[AuditResult]:
    """Return the audits that took longest, where they are few of all and take long enough to be looked at."""
    long = sorted(
        (r for r in record.results if r.seconds >= LONG), key=lambda r: -r.seconds
    )[:MOST_SLOW]
    return long if len(record.results) > len(long) else []


def surviving(result: AuditResult) -> list[str]:
    """Return one sentence for each broken twin that the audit did not refute."""
    return [_survivor(control) for control in result.controls if control.survived]


def _survivor(control: ControlResult) -> str:
    calls = f" after {count(control.calls, 'call')}" if control.calls else ""
    statement = f": {control.statement}" if control.statement else "."
    return f"{control.name} ended {control.verdict}{calls}{statement}"


def next_command(result: AuditResult) -> str:
    """Return the command that may decide what is undecided: with the next larger budget or another seed, or by a trace.

    Empty where no run made the result.
    """
    lead = result.leading
    if result.reproduce and lead is not None and lead.unconfirmed:
        return shlex.join(
            [
                "auditdp",
                "confirm",
                result.id,
                "--budget",
                str(MORE_CALLS * result.calls),
            ]
        )
    if (
        result.reproduce
        and not surviving(result)
        and (lead is None or not lead.known.opposes)
    ):
        return shlex.join(["auditdp", "trace", result.id])
    budgets = list(BUDGETS)
    words = result.reproduce.partition("  #")[0].rpartition(" --budget ")
    if words[2] in budgets[:-1]:
        return f"{words[0]} --budget {budgets[budgets.index(words[2]) + 1]}"
    return result.reproduce


def detectable(result: AuditResult) -> str:
    """Return the smallest epsilon that the game would have refuted, as a phrase; empty where none was computed."""
    for game in details(result.evidence, GameDetails):
        smallest = game.detectable_epsilon
        if smallest == math.inf:
            return "no violation of a size that is known, since the calls are few"
        if smallest is not None:
            against = (
                f" ({game.detectable_alternative})"
                if game.detectable_alternative
                else ""
            )
            return f"{symbol(result.claim)} = {bound(smallest, up=True)}{against}"
    return ""


def would_find(result: AuditResult) -> str:
    """Return what the calls of a clean game would have found, and what they may miss; empty where that was not computed."""
    smallest = detectable(result)
    if not smallest:
        return ""
    return f"nine times in ten: {'; '.join([smallest, *rarely(result)])}. {BEYOND}"


def rarely(result: AuditResult) -> list[str]:
    """Return how rare what tells may be for the game to have refuted the claim by it, as phrases."""
    for game in details(result.evidence, GameDetails):
        if game.detectable_rarely:
            tail, alone = game.detectable_rarely
            twice = (
                f"{symbol(result.claim)} = {number(2 * (level(result.claim) or 0.0))}"
            )
            phrases = [
                (
                    tail,
                    f"{twice} where the leak is in outputs that come once in {math.floor(1 / tail):,} calls",
                ),
                (
                    alone,
                    f"an output that only one of two neighbours gives, if it comes once in {math.floor(1 / alone):,} calls",
                ),
            ]
            return [phrase for share, phrase in phrases if share <= RARE] or [
                "no leak that only rare outputs show"
            ]
    return []


def counted(result: AuditResult) -> list[tuple[str, str]]:
    """Return what counting outputs shows of the pairs counted and of the stated law, as (label, sentence).

    An upper bound on other pairs than that of the counterexample is left out: nothing is known from above of that one.
    """
    found = []
    for evidence in result.evidence:
        if not isinstance(seen := evidence.details, CountingDetails):
            continue
        pair = result.counterexample.pair if result.counterexample else ""
        named = pair in (
            "",
            *(seen.counted_pairs if seen.counted_pairs is not None else [pair]),
        )
        if (
            evidence.epsilon_upper is not None
            and seen.delta_upper is not None
            and named
        ):
            shown = at_most(evidence.epsilon_upper, seen.delta_upper, on=seen.scope)
            sure = confidence(1 - (seen.confidence or 0.0))
            found.append(
                ("at most", f"{shown} ({count(evidence.calls, 'call')}, {sure})")
            )
        if seen.followed is not None:
            found.append(("law", seen.followed))
    return found


def mutation_score(*mutations: Mutation) -> str:
    """Return how many mutants were killed of those that count, and how many do not count."""
    killed, counted = (
        sum(m.killed for m in mutations),
        sum(m.counted for m in mutations),
    )
    left = {
        fate: sum(len(m.of(fate)) for m in mutations)
        for fate in (Fate.EQUIVALENT, Fate.INVALID)
    }
    rest = [f"{n:,} {fate}" for fate, n in left.items() if n]
    return f"{killed:,} of {counted:,} killed" + (
        f" ({', '.join(rest)})" if rest else ""
    )


def mutants_by_fate(mutation: Mutation) -> list[tuple[Fate, str, list[str]]]:
    """Return (fate, reason, names) of the mutants with one fate and reason; of those that are gone, without the reason."""
    groups: dict[tuple[Fate, str], list[str]] = {}
    for fate in (
        Fate.SURVIVED,
        Fate.EQUIVALENT,
        Fate.REJECTED,
        Fate.KILLED,
        Fate.INVALID,
    ):
        for mutant in mutation.of(fate):
            statement = "" if fate in (Fate.KILLED, Fate.INVALID) else mutant.statement
            groups.setdefault((fate, statement), []).append(mutant.name)
    return [(fate, statement, names) for (fate, statement), names in groups.items()]


def audited_claims(record: RunRecord) -> int:
    """Return how many privacy claims were looked at, without those whose audit crashed or could not run."""
    without = (Verdict.ERROR, Verdict.SKIPPED)
    return sum(
        level(result.claim) is not None and result.verdict not in without
        for result in record.results
    )


def of_planned(record: RunRecord) -> str:
    """Return how many audits have a result, of how many that were planned where some are missing."""
    if not record.missing:
        return count(len(record.results), "audit")
    return f"{len(record.results):,} of {count(record.planned, 'audit')}"


def unseen(record: RunRecord) -> list[tuple[int, str]]:
    """Return how many audits were 'skipped' and how many 'crashed', where there are any."""
    counts = [
        (record.ended(Verdict.SKIPPED), "skipped"),
        (record.ended(Verdict.ERROR), "crashed"),
    ]
    return [(number, what) for number, what in counts if number]


def self_reported(record: RunRecord) -> str:
    """Say how many verdicts rest on what code of their audits computed; empty for none."""
    if not (many := sum(result.is_self_reported for result in record.results)):
        return ""
    rest, whose = ("rests", "its audit") if many == 1 else ("rest", "their audits")
    return f"{count(many, 'verdict')} {rest} on evidence that code of {whose} computed"


def crowded(record: RunRecord) -> str:
    """Return a sentence that names files with more than ``MANY_AUDITS`` audits; empty for none."""
    audits = Counter(entry.audit.rpartition("::")[0] for entry in record.alpha_ledger)
    found = [
        f"{number:,} audits in {file}"
        for file, number in audits.items()
        if number > MANY_AUDITS
    ]
    return (
        f"{', '.join(found)}: alpha is shared by all audits, so each of the others has less of it"
        if found
        else ""
    )


ENDED = {"skipped": "skipped", "crashed": "ended with an error"}
"""What became of the audits that ``unseen`` counts, in words."""


def run_meaning(record: RunRecord) -> str:
    """Return what this run means where it has no findings: that of a clean run, if it is one.

    A run is clean only where something was audited, no refutation was left unconfirmed, nothing crashed and no audit is
    missing.
    """
    left_out = [
        f"{count(many, 'audit')} {('was ' if many == 1 else 'were ') * (what == 'skipped')}{ENDED[what]}"
        for many, what in unseen(record)
    ]
    nothing = (
        f"{' and '.join(left_out)}; nothing is known of what was to be audited there."
        if left_out
        else ""
    )
    if not record.audited:
        return f"Nothing was audited, so this is not a clean run. {nothing}".rstrip()
    if dropped := sum(result.is_unconfirmed for result in record.results):
        what = "1 claim was" if dropped == 1 else f"{dropped:,} claims were"
        return f"This is not a clean run: {what} refuted, and that was not confirmed. {nothing}".rstrip()
    if record.ended(Verdict.ERROR):
        return f"This is not a clean run: {nothing}"
    if record.status != "complete" or record.missing:
        state = f"it is {record.status}, and " if record.status != "complete" else ""
        some = f": {of_planned(record)} have a result" if record.missing else ""
        return f"This is not a clean run: {state}audits are missing{some}. {nothing}".rstrip()
    few = sum(result.is_undecided for result in record.results)
    counted = (
        f"{count(few, 'audit')} {'is' if few == 1 else 'are'} undecided with so few calls."
        if few
        else ""
    )
    seen = assurance(record)
    seen = f"{seen[:1].upper()}{seen[1:]}." if seen else ""
    return " ".join(
        filter(None, [CLEAN_RUN, seen, counted, nothing[:1].upper() + nothing[1:]])
    )


NAMED = 4
"""Audits that are named."""


def assurance(record: RunRecord) -> str:
    """Return what the audits of a run that refuted nothing would have seen, and which of them would not; empty for none.

    The loss is one of every output of a pair that was played, as the power lines of games have it.
    """
    seeing = [result for result in record.results if result.power is not None]
    blind = [result for result in seeing if (result.power or 0.0) > SEEN]
    proved, tried = record.ended(Verdict.CERTIFIED), record.ended(Verdict.EQUIVALENT)
    parts = (
        [
            f"{count(proved, 'audit')} proved what is claimed, of the law or accountant that is stated"
        ]
        if proved
        else []
    )
    parts += (
        [
            f"{count(tried, 'audit')} found an estimate within its margin, on the inputs that were tried"
        ]
        if tried
        else []
    )
    if many := len(seeing) - len(blind):
        parts.append(
            f"a loss of {SEEN:g} times the claim, in every output of a pair that was played, would have been found nine "
            f"times in ten in {_these(many, others=bool(blind))}"
        )
    return "; ".join([*parts, *(_not(blind) if blind else [])])


def _these(many: int, *, others: bool) -> str:
    if others:
        return f"the other {count(many, 'audit')}" if many > 1 else "the other audit"
    return f"these {count(many, 'audit')}" if many > 1 else "this audit"


def _not(blind: Sequence[AuditResult]) -> list[str]:
    """Return which audits would not have seen that, with the remedies."""
    said = [f"{_name(result)} ({_sees(result)})" for result in blind[:NAMED]]
    more = [f"{len(blind) - NAMED} more"] if len(blind) > NAMED else []
    remedy = f"--budget level:{SEEN:g} has the calls that it takes"
    same = [_name(result) for result in blind if result.has_same_outputs]
    pairs = (
        [f"{', '.join(same)}: give pairs of which the outputs differ"] if same else []
    )
    calls = [remedy] if len(same) < len(blind) else []
    return [
        f"a loss of {SEEN:g} times the claim would have been missed in {', '.join([*said, *more])}",
        *pairs,
        *calls,
    ]


def _name(result: AuditResult) -> str:
    return f"`{result.id.rpartition('::')[2]}`"


def _sees(result: AuditResult) -> str:
    if result.has_same_outputs:
        return "both inputs of every pair have the same outputs"
    power = result.power or math.inf
    if power == math.inf:
        return "no size is known that it sees"
    return f"seen from {outwards(power, up=True, digits=2, against=SEEN)} times on"
