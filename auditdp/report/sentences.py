"""Sentences and counts about audits and about whole runs, which all formats share."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from auditdp.numerics.rounding import confidence, outwards
from auditdp.record.budget import BUDGETS
from auditdp.record.details import CountingDetails
from auditdp.record.differences import EXPECTED_POWER
from auditdp.record.results import AuditResult, Evidence, RunRecord, Verdict
from auditdp.record.traces import Fate, Mutation
from auditdp.record.verdict import MISCALIBRATION, REMEDY, of_claim
from auditdp.report.guesses import CLEAN_RUN
from auditdp.report.numbers import (
    at_most,
    between,
    bound,
    count,
    duration,
    level,
    number,
    symbol,
)


class Standing(StrEnum):
    """Outcomes of audits, given their declarations; reports list them in this order."""

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
"""Number of audits of a file above which reports remark on its use of alpha."""
BEYOND = "Smaller or rarer leaks may be missed; more calls find more."
"""Sentence after a list of the leaks that the calls would find."""


def outcome_words(key: Standing, audits: int) -> str:
    """Return the words of an outcome that follow a number of audits.

    For one audit, the first word is singular.
    """
    if audits == 1:
        return re.sub(r"^(\w+)s\b", r"\1", key.value)
    return key.value


def standing(result: AuditResult) -> Standing:
    """Return the outcome of one audit, given its declaration."""
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
    """Return the audits of each standing, in the order of the record.

    Standings are in the order of the class ``Standing``. Those without audits are left
    out.
    """
    groups: dict[Standing, list[AuditResult]] = {key: [] for key in Standing}
    for result in record.results:
        groups[standing(result)].append(result)
    return {key: results for key, results in groups.items() if results}


def outcomes(record: RunRecord) -> dict[Standing, int]:
    """Return the numbers of audits by standing.

    Standings without audits are left out, except ``FINDING``.
    """
    counts = Counter(standing(result) for result in record.results)
    listed = {*counts, Standing.FINDING}
    return {key: counts[key] for key in Standing if key in listed}


def headline(
    record: RunRecord, *beside: str, findings: int | None = None, new: str = ""
) -> str:
    """Return the outcomes of a run in one line, with unconfirmed refutations first.

    Args:
        record: The run.
        beside: Counts that follow the number of findings, such as "2 accepted
            findings".
        findings: The number of findings; by default that of the record.
        new: "new " if ``findings`` counts only those that no baseline has, else "".
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
    # The counts in ``beside`` follow the findings, which follow unconfirmed
    # refutations.
    parts[Standing.FINDING] = "; ".join([parts[Standing.FINDING], *beside])
    return "; ".join(parts.values())


def verdict_label(result: AuditResult) -> str:
    """Return the verdict as text, with 'as declared' after it if it was declared."""
    if result.verdict is result.declared:
        return f"{result.verdict} as declared"
    return str(result.verdict)


def role(result: AuditResult) -> str:
    """Return the name of an audit's colour, such as 'not-refuted'.

    It is the colour of its verdict. A declared fault that was found has the colour of
    CERTIFIED.
    """
    as_declared = standing(result) in AS_DECLARED
    verdict = result.verdict
    if as_declared:
        verdict = Verdict.CERTIFIED
    return verdict.value.lower().replace("_", "-")


def reasons(result: AuditResult) -> list[str]:
    """Return the reasons why an audit is a finding; empty if it is none."""
    if not result.is_finding:
        return []
    sentences = []
    undeclared = result.verdict is not result.declared
    if result.verdict is Verdict.VIOLATED and undeclared:
        sentences.append(
            "The claim is violated. The audit did not declare in advance that the claim is false, so this is a finding."
        )
    if result.verdict is Verdict.MISCALIBRATED and undeclared:
        sentences.append(
            f"{MISCALIBRATION} The audit did not declare this in advance. {REMEDY}"
        )
    survived = [f"A control survived: {control}" for control in surviving(result)]
    return [*sentences, *missed_declaration(result), *survived]


def undecided(result: AuditResult) -> str:
    """Return a sentence about the calls that an undecided audit lacks, else ""."""
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
    """Return a list of one sentence if the audit missed its declared fault, else []."""
    verdicts = {result.verdict, *(evidence.verdict for evidence in result.evidence)}
    if result.declared in (None, *verdicts):
        return []
    return [f"A {result.expected} is declared here, and it was not found."]


def further_summary(result: AuditResult) -> str:
    """Return the part of the summary after the statement of the leading evidence.

    It is empty if the summary does not begin with this statement.
    """
    statement = ""
    if result.leading:
        statement = result.leading.statement
    if not statement or not result.summary.startswith(statement):
        return ""
    return result.summary.removeprefix(statement).lstrip(";. ")


def claim_itself(result: AuditResult) -> str:
    """Return the verdict on the claim of an audit whose calibration is refuted.

    The text has the verdict and its reason, or states that the claim was not audited.
    """
    known = of_claim(result.evidence)
    if known is None:
        return "not audited here: this audit is about the sensitivity only"
    return f"{known[0]}: {known[1]}"


def refutation(evidence: Evidence) -> str:
    """Return the kind and the statement of a piece of evidence that refutes."""
    if evidence.unconfirmed:
        return f"{evidence.kind}, which was not confirmed: {evidence.statement}"
    return f"{evidence.kind}: {evidence.verdict}, {evidence.statement}"


def unconfirmed(result: AuditResult) -> list[str]:
    """Return sentences about the refutations on which the verdict does not rest.

    The summary of the audit follows, unless it repeats one of them.
    """
    sentences = [
        f"Refuted, although the verdict is {result.verdict}, by {refutation(evidence)}."
        for evidence in result.refuting
    ]
    return [*sentences, *unrepeated_summary(result)]


def unrepeated_summary(result: AuditResult) -> list[str]:
    """Return a list of the summary, or [] if evidence in ``refuting`` states it."""
    statements = [evidence.statement for evidence in result.refuting]
    if result.summary in statements:
        return []
    return [result.summary]


def slowest(record: RunRecord) -> list[AuditResult]:
    """Return at most five audits of a second or more, the slowest first.

    The list is empty if these are all audits of the run.
    """
    ordered = sorted(record.results, key=lambda result: -result.seconds)
    slow = [result for result in ordered if result.seconds >= 1][:5]
    if len(record.results) > len(slow):
        return slow
    return []


def cpu_shares(results: Iterable[AuditResult]) -> dict[str, float]:
    """Return the share of each phase in the CPU time of audits, the largest first.

    Phases with less than a hundredth of the total are left out.
    """
    spent: Counter[str] = Counter()
    for result in results:
        spent.update(result.cpu_by_phase)
    total = sum(spent.values())
    return {
        name: seconds / total
        for name, seconds in spent.most_common()
        if seconds > total / 100
    }


def cpu_sentence(results: Sequence[AuditResult]) -> str:
    """Return the CPU time of audits in words, with the share of each phase.

    It is empty if no phase is recorded.
    """
    shares = [f"{name} {share:.0%}" for name, share in cpu_shares(results).items()]
    if not shares:
        return ""
    total = duration(sum(result.cpu_seconds for result in results))
    elsewhere = duration(sum(result.mechanism_cpu_seconds for result in results))
    return f"{total}: {', '.join(shares)}; {elsewhere} of it in processes of the audited code"


def surviving(result: AuditResult) -> list[str]:
    """Return a sentence for each control that the audit did not refute.

    A control is a broken twin of the mechanism.
    """
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
    """Return the command that may decide an INCONCLUSIVE audit.

    An unconfirmed refutation is tested again with ten times the calls. If pieces of
    evidence contradict each other, the mechanism is traced. Otherwise the audit is
    repeated, with the next larger budget if there is one. The command is empty if the
    audit was no part of a run.
    """
    lead = result.leading
    if result.reproduce and lead is not None and lead.unconfirmed:
        calls = str(10 * result.calls)
        return shlex.join(["auditdp", "confirm", result.id, "--budget", calls])
    played = lead is not None and lead.known.opposes
    # If evidence without calls contradicts other evidence, more calls do not help.
    if result.reproduce and not played and not result.surviving_controls:
        return shlex.join(["auditdp", "trace", result.id])
    command, _, budget = result.reproduce.partition("  #")[0].rpartition(" --budget ")
    budgets = list(BUDGETS)
    if budget in budgets[:-1]:
        return f"{command} --budget {budgets[budgets.index(budget) + 1]}"
    return result.reproduce


def detectable(result: AuditResult) -> str:
    """Return a phrase with the smallest ε that the game refutes nine times in ten.

    The parameter is that of the claim, for example μ instead of ε. If the calls are too
    few to know the number, the phrase states that. It is empty if no game has recorded
    such a number.
    """
    game = result.game_details
    if game is None or game.detectable_epsilon is None:
        return ""
    smallest = game.detectable_epsilon
    if smallest == math.inf:
        return "no size of violation is known, since there are few calls"
    against = between(" (", game.detectable_alternative, ")")
    return f"{symbol(result.claim)} = {bound(smallest, up=True)}{against}"


def would_find(result: AuditResult) -> str:
    """Return a sentence about the losses that the calls of a clean game would find.

    It is empty if no game has recorded the smallest such loss.
    """
    smallest = detectable(result)
    if not smallest:
        return ""
    return f"with probability 9 in 10: {'; or '.join([smallest, *rare_leaks(result)])}. {BEYOND}"


def rare_leaks(result: AuditResult) -> list[str]:
    """Return phrases with the frequencies of the rarest leaks that a game would find.

    The list is empty if no game has recorded them.
    """
    game = result.game_details
    if game is None or not game.detectable_rarely:
        return []
    tail, alone = game.detectable_rarely
    twice = number(2 * (level(result.claim) or 0.0))
    leak = f"{symbol(result.claim)} = {twice} if the leak is in outputs that occur"
    only = "an output that only one of two neighbours gives, if it occurs"
    phrases = [
        f"{phrase} once in {math.floor(1 / share):,} calls"
        for phrase, share in ((leak, tail), (only, alone))
        # More frequent outputs are not rare.
        if share <= 0.5
    ]
    return phrases or ["no leak that is in rare outputs only"]


def counting_sentences(result: AuditResult) -> list[tuple[str, str]]:
    """Return (label, sentence) for the results of counting outputs.

    The label 'at most' is for an upper bound, and 'law' for the agreement with the
    stated law. An upper bound that is not about the pair of the counterexample is left
    out.
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
    """Return the number of killed mutants in words, such as '3 of 4 killed'.

    The numbers of equivalent and invalid mutants, which do not count, follow. The
    mutants of all ``mutations``, one for each audit, are counted together.
    """
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
    """Return (fate, statement, names) for each group of equal fate and statement.

    ``names`` has the mutants of the group. Survivors come first. The statement of
    killed and invalid mutants is "".
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
    """Return the number of finished audits of a privacy claim.

    Audits that crashed or were skipped are not counted.
    """
    without = (Verdict.ERROR, Verdict.SKIPPED)
    audited = [each for each in record.results if each.verdict not in without]
    return sum(level(result.claim) is not None for result in audited)


def of_planned(record: RunRecord) -> str:
    """Return the number of results in words, as in '3 audits' or '3 of 5 audits'."""
    if not record.missing:
        return count(len(record.results), "audit")
    return f"{len(record.results):,} of {count(record.planned, 'audit')}"


ENDED = {"skipped": "skipped", "crashed": "ended with an error"}
"""Words of a sentence for the two outcomes of ``unseen``."""


def unseen(record: RunRecord) -> list[tuple[int, str]]:
    """Return (number of audits, outcome) for the outcomes 'skipped' and 'crashed'.

    An outcome without audits is left out.
    """
    counts = [
        (record.ended(Verdict.SKIPPED), "skipped"),
        (record.ended(Verdict.ERROR), "crashed"),
    ]
    return [(audits, ended) for audits, ended in counts if audits]


def remarks(record: RunRecord) -> dict[str, str]:
    """Return the remarks on a run that every report has, by label.

    A label is missing if there is nothing to remark.

    - 'self-reported': verdicts that rest on evidence computed by code of their audits;
    - 'many audits': files with more than ``MANY_AUDITS`` audits, which leave less alpha
      to the audits of other files.
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
    """Return the meaning of a run without findings, in sentences.

    Such a run is clean if something was audited, no refutation was left unconfirmed,
    nothing crashed, and the run is complete.
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
    """Return a text about the proofs and the detectable losses of a run.

    It states the numbers of proofs and of estimates within their margin. It states how
    many clean games would have found a loss of ``EXPECTED_POWER`` times the claim, in
    every output of a tested pair, and it names games that would have missed this loss.
    It is empty if there are no such audits.
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
    """Return phrases that name the games of ``blind``, and remedies.

    These games would have missed a loss of ``EXPECTED_POWER`` times the claim.

    Args:
        blind: Each audit, with the smallest loss that its game would have found, as a
            multiple of the claim. The first four are named.
    """
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
