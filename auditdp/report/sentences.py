"""Sentences and counts that all reports share, on audits and on whole runs."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from auditdp.numerics.rounding import confidence, outwards
from auditdp.record.budget import BUDGETS
from auditdp.record.details import CountingDetails, GameDetails
from auditdp.record.differences import EXPECTED_POWER
from auditdp.record.results import AuditResult, Evidence, RunRecord, Verdict
from auditdp.record.results import details as details_of
from auditdp.record.traces import Fate, Mutation
from auditdp.record.verdict import MISCALIBRATION, REMEDY, of_claim
from auditdp.report.guesses import CLEAN_RUN
from auditdp.report.numbers import at_most, between, bound, count, level, number, symbol


class Standing(StrEnum):
    """Outcomes of audits, beside their declarations, in the order of reports."""

    UNCONFIRMED = "claims refuted, not confirmed"
    FINDING = "findings"
    UNDECIDED = "undecided with so few calls"
    DECLARED = "claims refuted, as declared"
    MISCALIBRATED = "calibrations refuted, as declared"
    CERTIFIED = "proved"
    EQUIVALENT = "equivalent on the tested inputs"
    NOT_REFUTED = "not refuted"
    INCONCLUSIVE = "inconclusive"
    ERROR = "errors"
    SKIPPED = "skipped"


AS_DECLARED = (Standing.DECLARED, Standing.MISCALIBRATED)
MANY_AUDITS = 100
"""Number of audits of one file above which reports warn that it takes most of alpha."""
BEYOND = "Smaller or rarer leaks may be missed; more calls find more."
"""Sentence after the leaks that the calls would find."""


def outcome_words(key: Standing, audits: int) -> str:
    """Return the words after a number of audits, of which the first may be singular."""
    if audits == 1:
        return re.sub(r"^(\w+)s\b", r"\1", key.value)
    return key.value


def standing(result: AuditResult) -> Standing:
    """Return the standing of one audit."""
    if result.is_finding:
        return Standing.FINDING
    if result.is_unconfirmed:
        return Standing.UNCONFIRMED
    if result.is_undecided:
        return Standing.UNDECIDED
    # An undeclared violation is a finding, which returned above.
    if result.verdict is Verdict.VIOLATED:
        return Standing.DECLARED
    return Standing[result.verdict.name]


def by_standing(record: RunRecord) -> dict[Standing, list[AuditResult]]:
    """Return the audits by standing, worst first, each in the order of the record."""
    groups: dict[Standing, list[AuditResult]] = {key: [] for key in Standing}
    for result in record.results:
        groups[standing(result)].append(result)
    return {key: results for key, results in groups.items() if results}


def outcomes(record: RunRecord) -> dict[Standing, int]:
    """Return the numbers of audits by standing; that of findings may be 0."""
    counts = Counter(standing(result) for result in record.results)
    listed = {*counts, Standing.FINDING}
    return {key: counts[key] for key in Standing if key in listed}


def headline(
    record: RunRecord, *beside: str, findings: int | None = None, new: str = ""
) -> str:
    """Return the outcomes of a run in one line, with unconfirmed refutations first.

    Args:
        record: The run.
        beside: Counts that follow the findings, such as that of accepted ones.
        findings: The number of findings; those of the record by default.
        new: "new " if findings are those that a baseline does not have.
    """
    counts = outcomes(record)
    if findings is not None:
        counts[Standing.FINDING] = findings
    parts = {
        key: f"{many:,} {outcome_words(key, many)}" for key, many in counts.items()
    }
    findings_text = count(counts[Standing.FINDING], f"{new}finding")
    parts[Standing.FINDING] = f"{findings_text} in {of_planned(record)}"
    if not (record.audited or findings):
        parts[Standing.FINDING] = "Nothing was audited"
    # The counts beside the findings follow these, which follow unconfirmed refutations.
    parts[Standing.FINDING] = "; ".join([parts[Standing.FINDING], *beside])
    return "; ".join(parts.values())


def verdict_label(result: AuditResult) -> str:
    """Return the verdict, with 'as declared' for a declared fault that was found."""
    if result.verdict is result.declared:
        return f"{result.verdict} as declared"
    return str(result.verdict)


def role(result: AuditResult) -> str:
    """Return the name of an audit's colour; a declared fault is certified."""
    as_declared = standing(result) in AS_DECLARED
    verdict = result.verdict
    if as_declared:
        verdict = Verdict.CERTIFIED
    return verdict.value.lower().replace("_", "-")


def reasons(result: AuditResult) -> list[str]:
    """Return the reasons why an audit is a finding, one sentence each."""
    if not result.is_finding:
        return []
    sentences = []
    undeclared = result.verdict is not result.declared
    if result.verdict is Verdict.VIOLATED and undeclared:
        sentences.append(
            "The claim is violated, and the audit does not declare that it is."
        )
    if result.verdict is Verdict.MISCALIBRATED and undeclared:
        sentences.append(f"{MISCALIBRATION} The audit does not declare this. {REMEDY}")
    survived = [f"A control survived: {control}" for control in surviving(result)]
    return [*sentences, *missed_declaration(result), *survived]


def undecided(result: AuditResult) -> str:
    """Return why a small budget decides nothing; empty if it decides."""
    if not result.is_undecided:
        return ""
    twins = " and ".join(result.surviving_controls)
    task = (
        f"refute the broken {twins}"
        if twins
        else f"find the declared {result.expected}"
    )
    return (
        f"The budget is too small to {task}: it leaves out {result.lacking:,} of the calls "
        "that the audit names. A larger budget decides."
    )


def missed_declaration(result: AuditResult) -> list[str]:
    """Return a sentence if the audit declares a fault that it did not find."""
    verdicts = {result.verdict, *(evidence.verdict for evidence in result.evidence)}
    if result.declared in (None, *verdicts):
        return []
    return [f"A {result.expected} is declared here, and it was not found."]


def further_summary(result: AuditResult) -> str:
    """Return the part of the summary after the statement of the leading evidence."""
    statement = ""
    if result.leading:
        statement = result.leading.statement
    if not statement or not result.summary.startswith(statement):
        return ""
    return result.summary.removeprefix(statement).lstrip(";. ")


def claim_itself(result: AuditResult) -> str:
    """Return the verdict on the claim of a refuted calibration, and its summary."""
    known = of_claim(result.evidence)
    if known is None:
        return "not audited here: this audit is about the sensitivity only"
    return f"{known[0]}: {known[1]}"


def refutation(evidence: Evidence) -> str:
    """Return the statement of an evidence that refutes, with its kind."""
    if evidence.unconfirmed:
        return f"{evidence.kind}, which was not confirmed: {evidence.statement}"
    return f"{evidence.kind}: {evidence.verdict}, {evidence.statement}"


def unconfirmed(result: AuditResult) -> list[str]:
    """Return the refutations on which the verdict does not rest, and then the verdict.

    The summary is left out if it repeats one of them.
    """
    sentences = [
        f"Refuted, although the verdict is {result.verdict}, by {refutation(evidence)}."
        for evidence in result.refuting
    ]
    return [*sentences, *unrepeated_summary(result)]


def unrepeated_summary(result: AuditResult) -> list[str]:
    """Return the summary, unless it is the statement of an evidence that refutes."""
    statements = [evidence.statement for evidence in result.refuting]
    if result.summary in statements:
        return []
    return [result.summary]


def slowest(record: RunRecord) -> list[AuditResult]:
    """Return up to five audits of a second or more, unless they are all of the run."""
    ordered = sorted(record.results, key=lambda result: -result.seconds)
    slow = [result for result in ordered if result.seconds >= 1][:5]
    if len(record.results) > len(slow):
        return slow
    return []


def surviving(result: AuditResult) -> list[str]:
    """Return a sentence for each broken twin that the audit did not refute."""
    sentences = []
    for control in result.controls:
        if control.survived:
            calls = ""
            if control.calls:
                calls = f" after {count(control.calls, 'call')}"
            statement = "."
            if control.statement:
                statement = f": {control.statement}"
            sentences.append(
                f"{control.name} ended {control.verdict}{calls}{statement}"
            )
    return sentences


def next_command(result: AuditResult) -> str:
    """Return the command that may decide an undecided audit; empty outside of runs.

    It confirms a refutation with ten times the calls, traces the mechanism if evidence
    contradicts itself, or runs the audit with the next larger budget.
    """
    lead = result.leading
    if result.reproduce and lead is not None and lead.unconfirmed:
        calls = str(10 * result.calls)
        return shlex.join(["auditdp", "confirm", result.id, "--budget", calls])
    played = lead is not None and lead.known.opposes
    # Evidence without calls that contradicts other evidence needs no more of them.
    if result.reproduce and not played and not result.surviving_controls:
        return shlex.join(["auditdp", "trace", result.id])
    command, _, budget = result.reproduce.partition("  #")[0].rpartition(" --budget ")
    budgets = list(BUDGETS)
    if budget in budgets[:-1]:
        return f"{command} --budget {budgets[budgets.index(budget) + 1]}"
    return result.reproduce


def detectable(result: AuditResult) -> str:
    """Return the smallest ε that the game refutes nine times in ten, as a phrase."""
    for game in details_of(result.evidence, GameDetails):
        smallest = game.detectable_epsilon
        if smallest == math.inf:
            return "no size of violation is known, since there are few calls"
        if smallest is not None:
            against = between(" (", game.detectable_alternative, ")")
            return f"{symbol(result.claim)} = {bound(smallest, up=True)}{against}"
    return ""


def would_find(result: AuditResult) -> str:
    """Return the losses that the calls of a clean game would find, and may miss."""
    smallest = detectable(result)
    if not smallest:
        return ""
    return f"with probability 9 in 10: {'; '.join([smallest, *rare_leaks(result)])}. {BEYOND}"


def rare_leaks(result: AuditResult) -> list[str]:
    """Return the rarest leaks that the game would find, as phrases."""
    for game in details_of(result.evidence, GameDetails):
        if game.detectable_rarely:
            tail, alone = game.detectable_rarely
            twice = number(2 * (level(result.claim) or 0.0))
            leak = (
                f"{symbol(result.claim)} = {twice} if the leak is in outputs that occur"
            )
            only = (
                "an output that is possible on one of two neighbours only, if it occurs"
            )
            phrases = [
                f"{phrase} once in {math.floor(1 / share):,} calls"
                for phrase, share in ((leak, tail), (only, alone))
                # More frequent outputs are not rare.
                if share <= 0.5
            ]
            return phrases or ["no leak that is in rare outputs only"]
    return []


def counting_sentences(result: AuditResult) -> list[tuple[str, str]]:
    """Return (label, sentence) of the bounds and the law by counting outputs.

    An upper bound on other pairs than that of the counterexample is left out, since
    nothing bounds the loss of that one from above.
    """
    sentences = []
    pair = None
    if result.counterexample:
        pair = result.counterexample.pair
    for evidence in result.evidence:
        counts = evidence.details
        if not isinstance(counts, CountingDetails):
            continue
        upper, delta = evidence.epsilon_upper, counts.delta_upper
        unnamed = counts.counted_pairs is None or not pair
        named_pair = unnamed or pair in (counts.counted_pairs or [])
        # Each bound is written with its own error probability.
        if upper is not None and delta is not None and named_pair:
            shown = at_most(upper, delta, on=counts.scope)
            sure = confidence(1 - (counts.confidence or 0.0))
            calls = count(evidence.calls, "call")
            sentences.append(("at most", f"{shown} ({calls}, {sure})"))
        if counts.followed is not None:
            sentences.append(("law", counts.followed))
    return sentences


def mutation_score(*mutations: Mutation) -> str:
    """Return the number of killed mutants, and of those that do not count."""
    killed = sum(each.killed for each in mutations)
    counts = sum(each.counted for each in mutations)
    rest = []
    for fate in (Fate.EQUIVALENT, Fate.INVALID):
        mutants = sum(len(each.of(fate)) for each in mutations)
        if mutants:
            rest.append(f"{mutants:,} {fate}")
    left_out = between(" (", ", ".join(rest), ")")
    return f"{killed:,} of {counts:,} killed{left_out}"


def mutants_by_fate(mutation: Mutation) -> list[tuple[Fate, str, list[str]]]:
    """Return (fate, argument, names) of the mutants with equal fates and arguments.

    The evidence against killed and invalid mutants is left out.
    """
    groups: dict[tuple[Fate, str], list[str]] = {}
    order = (Fate.SURVIVED, Fate.EQUIVALENT, Fate.REJECTED, Fate.KILLED, Fate.INVALID)
    for mutant in sorted(mutation.mutants, key=lambda each: order.index(each.fate)):
        key = (mutant.fate, mutant.statement)
        if mutant.fate in (Fate.KILLED, Fate.INVALID):
            key = (mutant.fate, "")
        groups.setdefault(key, []).append(mutant.name)
    return [(*key, names) for key, names in groups.items()]


def audited_claims(record: RunRecord) -> int:
    """Return the number of audited privacy claims."""
    without = (Verdict.ERROR, Verdict.SKIPPED)
    audited = [each for each in record.results if each.verdict not in without]
    return sum(level(result.claim) is not None for result in audited)


def of_planned(record: RunRecord) -> str:
    """Return the number of results, and of planned audits if some have none."""
    if not record.missing:
        return count(len(record.results), "audit")
    return f"{len(record.results):,} of {count(record.planned, 'audit')}"


ENDED = {"skipped": "skipped", "crashed": "ended with an error"}
"""Words of a sentence for the keys of ``unseen``."""


def unseen(record: RunRecord) -> list[tuple[int, str]]:
    """Return the numbers of 'skipped' and of 'crashed' audits, if there are any."""
    counts = [
        (record.ended(Verdict.SKIPPED), "skipped"),
        (record.ended(Verdict.ERROR), "crashed"),
    ]
    return [(audits, ended) for audits, ended in counts if audits]


def remarks(record: RunRecord) -> dict[str, str]:
    """Return the remarks on a run that every report has, by label.

    Verdicts that rest on evidence that code of their audits computed are
    'self-reported'. Files with 'many audits' leave a small share of alpha to the audits
    of other files.
    """
    sentences = {}
    own = sum(result.is_self_reported for result in record.results)
    if own:
        rest, whose = ("rests", "its audit") if own == 1 else ("rest", "their audits")
        sentence = f"{rest} on evidence that code of {whose} computed"
        sentences["self-reported"] = f"{count(own, 'verdict')} {sentence}"
    # Alpha is shared by all audits of a run, whatever their file.
    audits = Counter(entry.audit.rpartition("::")[0] for entry in record.alpha_ledger)
    crowded = [
        f"{number:,} audits in {file}"
        for file, number in audits.items()
        if number > MANY_AUDITS
    ]
    if crowded:
        sentences["many audits"] = (
            f"{', '.join(crowded)}: alpha is shared by all audits, so each of the others "
            "has less of it"
        )
    return sentences


def run_meaning(record: RunRecord) -> str:
    """Return the meaning of a run without findings.

    A run is clean only if something was audited, no refutation was left unconfirmed,
    nothing crashed and no audit is missing.
    """
    left_out = []
    for audits, ended in unseen(record):
        verb = ""
        if ended == "skipped":
            verb = "was " if audits == 1 else "were "
        left_out.append(f"{count(audits, 'audit')} {verb}{ENDED[ended]}")
    nothing = ""
    if left_out:
        nothing = "; nothing is known about the claims that they were to test."
        nothing = " and ".join(left_out) + nothing
    dropped = sum(result.is_unconfirmed for result in record.results)
    unclean = ""
    if not record.audited:
        return f"Nothing was audited, so this is not a clean run. {nothing}".rstrip()
    if dropped:
        claims = "1 claim was" if dropped == 1 else f"{dropped:,} claims were"
        unclean = f"{claims} refuted, and the refutation was not confirmed. "
    # A crash is reported in ``nothing``.
    elif not record.ended(Verdict.ERROR):
        if record.status != "complete":
            unclean = f"it is {record.status}, and audits are missing"
        elif record.missing:
            unclean = "audits are missing"
        if record.missing:
            unclean += f": {of_planned(record)} have a result"
        unclean += ". " * bool(unclean)
    if unclean or record.ended(Verdict.ERROR):
        return f"This is not a clean run: {unclean}{nothing}".rstrip()
    sentences = [CLEAN_RUN]
    assured = assurance(record)
    if assured:
        sentences.append(f"{assured[:1].upper()}{assured[1:]}.")
    open_audits = sum(result.is_undecided for result in record.results)
    if open_audits:
        verb = "are"
        if open_audits == 1:
            verb = "is"
        audits_text = count(open_audits, "audit")
        sentences.append(f"{audits_text} {verb} undecided, for want of calls.")
    return " ".join([*sentences, nothing]).rstrip()


def assurance(record: RunRecord) -> str:
    """Return the losses that a run without refutations would have found.

    The audits that would have missed them are named. A loss is one in every output of a
    pair that was played, as in the power lines of games. The text is empty if no game
    was clean and nothing was proved.
    """
    parts = []
    proved = record.ended(Verdict.CERTIFIED)
    tried = record.ended(Verdict.EQUIVALENT)
    if proved:
        statement = "proved the claim, for the stated law or accountant"
        parts.append(f"{count(proved, 'audit')} {statement}")
    if tried:
        statement = "found an estimate within its margin, on the tested inputs"
        parts.append(f"{count(tried, 'audit')} {statement}")
    powers = [(result, result.power) for result in record.results]
    powered = [(result, power) for result, power in powers if power is not None]
    blind = [(result, power) for result, power in powered if power > EXPECTED_POWER]
    seeing = len(powered) - len(blind)
    if seeing:
        audits = count(seeing, "audit").removeprefix("1 ")
        which = "this"
        if seeing > 1:
            which = "these"
        if blind:
            which = "the other"
        parts.append(
            f"a loss of {EXPECTED_POWER:g} times the claim, in every output of a tested pair, "
            f"would have been found with probability 9 in 10 in {which} {audits}"
        )
    # The losses that would be missed are no assurance, and stand last.
    if blind:
        parts += _blind_spots(blind)
    return "; ".join(parts)


def _blind_spots(blind: Sequence[tuple[AuditResult, float]]) -> list[str]:
    """Return the first four audits that miss the expected power, with remedies."""
    listed = []
    same = []
    for result, power in blind:
        name = f"`{result.id.rpartition('::')[2]}`"
        reason = "no size of loss is known that it would find"
        if result.has_same_outputs:
            same.append(name)
            reason = "both inputs of every pair have the same outputs"
        elif power < math.inf:
            least = outwards(power, up=True, digits=2, against=EXPECTED_POWER)
            reason = f"found from {least} times the claim on"
        listed.append(f"{name} ({reason})")
    if len(listed) > 4:
        listed[4:] = [f"{len(listed) - 4} more"]
    text = f"a loss of {EXPECTED_POWER:g} times the claim would have been missed in "
    parts = [text + ", ".join(listed)]
    if same:
        parts.append(f"{', '.join(same)}: give pairs whose outputs differ")
    if len(same) < len(blind):
        parts.append(
            f"--budget level:{EXPECTED_POWER:g} gives the calls that are needed"
        )
    return parts
