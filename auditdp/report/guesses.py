"""Sentences that explain verdicts: guesses at the input, and findings of a trace.

``guessing`` explains a violated claim by the share of right guesses. A fair coin picks
one of two neighbours, the mechanism runs, and an observer of the output guesses the
coin or passes. Let b be the share of runs with a guess, and r and w the shares with a
right and with a wrong guess, b = r + w. A guess of the first input is an event A, a
guess of the second an event B. So r = (P(A) + Q(B))/2 and w = (Q(A) + P(B))/2. Under
(ε, δ)-DP, in both orders, P(A) ≤ e^ε Q(A) + δ and Q(B) ≤ e^ε P(B) + δ, hence r ≤ e^ε w
+ δ, and

    r/b ≤ (e^ε + δ/b) / (1 + e^ε).

With δ = 0 the limit is 1/(1 + e^-ε) for any choice of outputs to guess on, also for a
single output. A claim that is a curve makes many such statements, and the least of
their limits holds; at b = 1, ε = 0 gives (1 + δ(0))/2, which is attained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from auditdp.numerics.rounding import apart
from auditdp.record.details import ExactDetails, GameDetails
from auditdp.record.results import (
    REFUTATIONS,
    AuditResult,
    ClaimRecord,
    Evidence,
    Place,
    Verdict,
    details,
)
from auditdp.record.traces import GameTrace, TracedFinding, TracedLine
from auditdp.record.verdict import MISCALIBRATION, REMEDY
from auditdp.report.numbers import (
    MISSING,
    as_float,
    at_delta,
    bound,
    count,
    level,
    number,
    symbol,
)
from auditdp.report.plain_text import printable, shorten

MOST_DIGITS = 9
"""Largest number of digits of a share of guesses. Digits are added until the share
differs from the allowed share."""
WHICH = "which of the two inputs was used"


def allowed(statements: Sequence[tuple[float, float]], rate: float = 1.0) -> float:
    """Return the largest share of right guesses if all (ε, δ) statements hold.

    Args:
        statements: Pairs (ε, δ). If there are none, all guesses may be right.
        rate: b, the share of runs with a guess, in (0, 1].

    >>> round(allowed([(math.log(3), 0.0)], 0.1), 12)
    0.75
    >>> round(allowed([(math.log(3), 0.02)]), 12)
    0.755
    """
    limits = [
        (1 + delta / rate * math.exp(-epsilon)) / (1 + math.exp(-epsilon))
        for epsilon, delta in statements
    ]
    return min([1.0, *limits])


def statements(claim: ClaimRecord | None) -> list[tuple[float, float]]:
    """Return the (ε, δ) statements that a recorded claim makes.

    The list is empty if there is no claim, if its kind is unknown, or if it claims no
    finite level of privacy above 0.
    """
    claimed = level(claim)
    if claim is None or claimed is None or not 0 < claimed < math.inf:
        return []
    if claim.curve:
        return [(float(epsilon), float(delta)) for epsilon, delta in claim.curve]
    # Other claims need numpy, whose import a report with only these claims avoids.
    if claim.kind in ("PureDP", "ApproxDP"):
        return [(claimed, as_float(claim.delta) or 0.0)]
    from auditdp.claims.statements import CLAIMS

    if claim.kind not in CLAIMS:
        return []
    kind: Any = CLAIMS[claim.kind]
    claimed_statements = kind(
        *(as_float(getattr(claim, name)) or 0.0 for name in kind.recorded_by)
    )
    return [
        (float(epsilon), float(delta))
        for epsilon, delta in claimed_statements.statements()
    ]


def guessing(result: AuditResult) -> str:
    """Return a sentence about the meaning of a violated claim for an observer.

    There are four kinds of sentences: about one output of the counterexample, about
    guesses in fresh calls, about the δ that the law needs, and about the certified
    bound. The first one that shows the violation is returned. The result is empty if
    none does, or if the claim is not violated.
    """
    lead = result.leading
    allowed_statements = statements(result.claim)
    if result.verdict is not Verdict.VIOLATED or lead is None or not allowed_statements:
        return ""
    return (
        _from_output(result, allowed_statements)
        or _from_guesses(lead, result.claim, allowed_statements)
        or _from_curve(result, lead)
        or _from_bound(result, lead)
    )


def _from_output(result: AuditResult, statements: Sequence[tuple[float, float]]) -> str:
    """Return the sentence on one output and its probabilities, for a pure claim.

    It is empty for other claims, without recorded probabilities, and if the output does
    not show the violation.
    """
    counterexample = result.counterexample
    # Statements on δ are about sets of outputs, and not about one.
    if (
        counterexample is None
        or counterexample.probabilities is None
        or statements[0][1]
        or len(statements) > 1
    ):
        return ""
    first, second = (as_float(p) or 0.0 for p in counterexample.probabilities)
    total = first + second
    if not 0 < total < math.inf:
        return ""
    # The best guess is the likelier input.
    wrong = min(first, second) / total
    may = _wrong(statements[0][0])
    if wrong < may:
        return f"After this output, one {_against(wrong, may)}."
    return ""


def _from_guesses(
    lead: Evidence, claim: ClaimRecord | None, known: Sequence[tuple[float, float]]
) -> str:
    """Return the sentence on the guesses of the best forecaster in fresh calls.

    The share of right guesses is an observation and no bound. The sentence is empty
    without a confirmed game, or if the share is allowed. It is also empty if the
    certified bound on a pure claim implies a larger share after some outputs.

    Args:
        lead: The evidence on which the verdict rests.
        claim: The claim.
        known: The (ε, δ) statements of the claim.
    """
    if not isinstance(lead.details, GameDetails) or claim is None:
        return ""
    played = lead.details.smallest or lead.details.confirmation
    if played is None or not played.confirmed:
        return ""
    right, bets, calls = played.right, played.bets, played.calls
    # Records of other versions have no bets.
    if not 0 < right <= bets <= calls:
        return ""
    share = right / bets
    cap = allowed(known, bets / calls)
    lower = as_float(lead.epsilon_lower)
    beyond = symbol(claim) == "ε" and lower is not None and 1 - _wrong(lower) > share
    if share <= cap or (beyond and not claim.delta and not claim.curve):
        return ""
    each = "From the output"
    if bets < calls:
        percent = number(100 * bets / calls, 2)
        percent = "more than 99" if percent == "100" else percent
        each = (
            f"{percent}% of the calls gave an output that tells much about the input. "
            "From these outputs"
        )
    together = ""
    if beyond:
        together = ", all of these outputs together"
    return (
        f"{each}, one can guess rightly {_of_100(share, cap)} times in 100 {WHICH} "
        f"({number(right)} of {number(bets)} guesses on fresh calls{together}); the claim "
        f"allows {_of_100(cap, share)} in 100."
    )


def _from_curve(result: AuditResult, lead: Evidence) -> str:
    """Return the sentence on the δ that the law needs at the claimed ε.

    It is empty unless a computed curve shows more δ than is claimed.
    """
    claim = result.claim
    if claim is None or not isinstance(lead.details, ExactDetails):
        return ""
    delta = as_float(claim.delta)
    epsilon = as_float(claim.epsilon)
    if not delta or epsilon is None:
        return ""
    # The curve falls, so its value beyond the claimed ε is a lower bound on the needed
    # δ.
    curve = lead.details.curve or []
    beyond = [value for at, value in curve if at >= epsilon * (1 - 1e-12)]
    needed = max(beyond, default=0.0)
    if needed <= delta:
        return ""
    return (
        f"Some outputs are so much more likely on one of the two inputs that ε = "
        f"{number(epsilon)} needs δ ≥ {bound(needed, up=False, against=delta)}; the claim "
        f"states δ = {number(delta)}."
    )


def _from_bound(result: AuditResult, lead: Evidence) -> str:
    """Return the sentence on the certified lower bound; empty if the claim allows it.

    For a pure claim, the bound implies that guesses after some outputs are right with a
    certain probability, and the sentence states this probability.
    """
    lower = as_float(lead.epsilon_lower)
    claim = result.claim
    claimed = level(claim)
    if lower is None or claimed is None or claim is None or lower <= claimed:
        return ""
    sure = "a certified bound"
    if lead.known.proves:
        sure = "proved"
    if claim.parameter == "epsilon" and not claim.delta:
        against = _against(
            _wrong(lower), _wrong(claimed), up=False, after=" after any output"
        )
        return f"After some outputs, one {against} ({sure})."
    from auditdp.claims.claim import Claim
    from auditdp.claims.statements import CLAIMS

    bounded = CLAIMS.get(claim.kind, Claim).bounds
    least = bound(lower, up=False, against=claimed)
    return (
        f"The {bounded} is {symbol(claim)} ≥ {least}{at_delta(claim)} ({sure}); the claim allows "
        f"{number(claimed, digits=6)}."
    )


def _against(
    wrong: float, may: float, *, up: bool | None = None, after: str = ""
) -> str:
    """Return words for a share of right guesses, and for the allowed share.

    Args:
        wrong: The share of wrong guesses. If it is near 0, the float of the share of
            right guesses would have lost its digits.
        may: The smallest share of wrong guesses that the claim allows. If both shares
            are at most 0.5 %, the frequency of wrong guesses is written.
        up: False if the share of right guesses is a lower bound, which is rounded down;
            None if it is an observation.
        after: Words after the allowed share.
    """
    if max(wrong, may) > 0.005:
        least = ""
        if up is not None and wrong > 0:
            least = "at least "
        often = f"rightly {least}{_of_100(1 - wrong, 1 - may, up=up)} times in 100"
        limit = f"{_of_100(1 - may, 1 - wrong)} in 100{after}"
        return f"can guess {often} {WHICH}; the claim allows {limit}"
    times = [1 / share if share > 0 else math.inf for share in (wrong, may)]
    once_in = [
        MISSING if text == "∞" else number(float(text), digits=MOST_DIGITS)
        for text in apart(times[0], times[1], digits=3)
    ]
    often = f"with one error in {once_in[0]} guesses"
    if wrong <= 0:
        often = "without ever being wrong"
    limit = ""
    if may > 0:
        limit = f"; if the claim were true, at least one guess in {once_in[1]} would be wrong{after}"
    return f"can guess {often} {WHICH}{limit}"


def _wrong(epsilon: float) -> float:
    """Return the smallest share of wrong guesses under ε-DP, 1/(1 + e^ε)."""
    # The exponential of a large ε would overflow.
    return math.exp(-epsilon) / (1 + math.exp(-epsilon))


def _of_100(share: float, other: float, *, up: bool | None = None) -> str:
    """Return a share as a percentage, without a sign, that differs from ``other``.

    It also differs from 0 and 100, unless the share is exactly 0 or 1. Up to
    ``MOST_DIGITS`` decimals are written for that. With ``up`` = False the percentage is
    rounded down, otherwise to the nearest.
    """
    for digits in range(MOST_DIGITS):
        shown = round(100 * share, digits)
        # A lower bound is rounded down.
        if up is False and shown > 100 * share:
            shown = round(shown - 10.0**-digits, digits)
        is_apart = shown != round(100 * other, digits)
        if is_apart and (share in (0.0, 1.0) or 0 < shown < 100):
            return f"{shown:.{digits}f}"
    return f"{100 * share:.{MOST_DIGITS}f}"


SIGNS: dict[Verdict, str] = {
    Verdict.VIOLATED: "✕",
    Verdict.MISCALIBRATED: "▲",
    Verdict.CERTIFIED: "■",
    Verdict.NOT_REFUTED: "○",
    Verdict.EQUIVALENT: "≈",
    Verdict.INCONCLUSIVE: "◇",
    Verdict.ERROR: "!",
    Verdict.SKIPPED: "–",
}

MEANINGS: dict[Verdict, str] = {
    Verdict.VIOLATED: (
        "The claim is false. There is a counterexample; where the evidence is statistical, "
        "a true claim would have been refuted with probability at most α."
    ),
    Verdict.MISCALIBRATED: MISCALIBRATION,
    Verdict.CERTIFIED: (
        "The claim is proved for the stated model and scope. The proof does not cover how "
        "the code draws its noise."
    ),
    Verdict.NOT_REFUTED: (
        "No violation was found. This does not mean “private”: the report states how small "
        "a violation would have been found."
    ),
    Verdict.EQUIVALENT: (
        "An estimate is within the stated margin of its promise, on the tested inputs."
    ),
    Verdict.INCONCLUSIVE: (
        "Nothing is decided: a control (a twin that is broken on purpose) was not refuted, the code does "
        "not follow its stated law, or a refutation of the claim was not confirmed."
    ),
    Verdict.ERROR: (
        "The audit could not be carried out: it crashed, ran out of time, or the mechanism "
        "cannot be tested as it is. Nothing is known about the claim, and an error is "
        "never a finding."
    ),
    Verdict.SKIPPED: "The audit could not run here, for the reason given.",
}
"""Meanings of the verdicts."""

UNCONFIRMED_REMEDY = (
    "Test it again with another seed and more calls (`auditdp confirm ID --budget "
    "1000000`). Where the mechanism takes a size, look for code that depends on it, and "
    "draw fresh noise for each output."
)
"""Remedy for a refutation that was not confirmed."""
REMEDIES: dict[Verdict, str] = {
    Verdict.VIOLATED: (
        "Paste the pair, and look at the line that the trace names: its noise is too small "
        "for the change between two neighbours, or the output depends on the data without "
        "noise. Repair that, or correct the claim. The command in the report repeats the "
        "finding. A finding that the project accepts goes into the baseline, with a reason."
    ),
    Verdict.MISCALIBRATED: REMEDY,
    Verdict.CERTIFIED: (
        "Read its assumptions on the audit's page of the HTML report; `auditdp run` also "
        "tests the code."
    ),
    Verdict.NOT_REFUTED: (
        "Read how small a violation these calls would have found. `--find level:1.2` or "
        "`--budget thorough` find smaller ones. An adjacency that generates pairs adds "
        "others."
    ),
    Verdict.EQUIVALENT: (
        "Give further inputs; nothing is known about inputs that were not tested."
    ),
    Verdict.INCONCLUSIVE: (
        "If a broken twin was not refuted, give more calls (`--budget`, `--find`), pairs on "
        "which it differs, or a twin that breaks the claim by more. If the code does not "
        "follow its stated law, correct one of them. If a refutation was not confirmed: "
        f"{UNCONFIRMED_REMEDY}"
    ),
    Verdict.ERROR: (
        "The message names the line; repair it there. `--timeout` raises the time limit."
    ),
    Verdict.SKIPPED: "Provide whatever the reason names.",
}
"""Remedies by verdict."""

CLEAN_RUN = (
    "A clean run means that these audits found no violation beyond those that they declare, "
    "each within its stated scope, pairs and budget; it does not mean that the mechanisms "
    "are private."
)

MOST_FINDINGS = 3
"""Largest number of findings of a trace that are reported for one audit."""
MOST_CHARACTERS = 300
"""Largest number of characters of a pair beside a finding of a trace."""


def trace_of(result: AuditResult) -> GameTrace | None:
    """Return the trace of an audit, or None if its code was not traced."""
    traces = (game.trace for game in details(result.evidence, GameDetails))
    return next((trace for trace in traces if trace is not None), None)


def understood_findings(result: AuditResult) -> list[TracedFinding]:
    """Return the findings of a trace that explain a refutation, at most three.

    They are the findings that the trace understood completely. Those at a line of code
    come first. The list is empty if the verdict is no refutation.
    """
    trace = trace_of(result)
    if trace is None or result.verdict not in REFUTATIONS:
        return []
    understood = [each for each in trace.findings if each.read_off]
    return sorted(understood, key=lambda each: not each.line)[:MOST_FINDINGS]


def suspicions(result: AuditResult) -> list[tuple[str, TracedFinding]]:
    """Return (label, finding) for the suspicions of a trace, which are no evidence.

    A traced training whose steps differ from the parameters of its accountant has the
    label 'accountant', with every verdict. With NOT_REFUTED, findings that runs with
    other draws confirmed follow, with the label 'suspicion'. Losses are not among them,
    since a notice states them.
    """
    trace = trace_of(result)
    if trace is None:
        return []
    steps = [each for each in trace.findings if each.kind == "steps"]
    labelled = [("accountant", each) for each in steps[:MOST_FINDINGS]]
    if result.verdict is Verdict.NOT_REFUTED:
        confirmed = [each for each in trace.findings if each.confirmed]
        other = [each for each in confirmed if each.kind != "loss"]
        labelled += [("suspicion", each) for each in other[:MOST_FINDINGS]]
    return labelled


def trace_sentences(result: AuditResult) -> list[str]:
    """Return the ``understood_findings`` as sentences.

    A sentence names the pair of its finding if the counterexample has another pair.
    """
    counterexample = result.counterexample
    sentences = []
    for finding in understood_findings(result):
        sentence = finding.located
        if counterexample is not None and counterexample.pair != finding.pair:
            sentence += f"; on the pair {shorten(finding.pair, MOST_CHARACTERS)}"
        sentences.append(sentence)
    return sentences


def line_of(result: AuditResult) -> Place | None:
    """Return the line of the first of ``understood_findings`` in a file of the project.

    A trace names files outside the project without their folder, so these are skipped.
    The result is None if no finding is left.
    """
    places = (result.mechanism_at, result.audit_at)
    own = {place.file for place in places if place is not None}
    # A file name without a folder may be that of another package.
    for finding in understood_findings(result):
        if finding.line > 0 and ("/" in finding.file or finding.file in own):
            return Place(finding.file, finding.line)
    return None


def trace_scope(trace: GameTrace) -> str:
    """Return the numbers of traced pairs and runs, in words.

    >>> trace_scope(GameTrace(pairs=4000, runs=8000, extent="full"))
    '4,000 traced pairs (8,000 runs)'
    """
    extents = {"part": ", followed in part", "none": ", not followed"}
    scope = f"{count(trace.pairs, 'traced pair')} ({count(trace.runs, 'run')})"
    return f"{scope}{extents.get(trace.extent, '')}"


def at_most(result: AuditResult) -> str:
    """Return a phrase with the largest traced loss of an audit that is NOT_REFUTED.

    If more than 5 % of the claim is unused, the phrase states this part. It is empty
    with another verdict, and without a trace that bounds the loss. It is also empty if
    the traced loss exceeds the claim, or if other evidence certifies a larger loss.
    """
    trace = trace_of(result)
    if trace is None or not trace.is_bound or result.verdict is not Verdict.NOT_REFUTED:
        return ""
    share = as_float(trace.share)
    claimed = level(result.claim) or 0.0
    # A share above 1, apart from rounding in single precision, is the loss of one run.
    # If records are sampled, the loss of the output is smaller.
    if share is None or not 0 <= share <= 1 + 1e-5:
        return ""
    if (as_float(result.epsilon_lower) or 0.0) > share * claimed:
        # Other evidence certifies that the output loses more.
        return ""
    most = f"{bound(share, up=True)} of the claim"
    # A share of a claim with δ is not a level of ε.
    if claimed and result.claim is not None and not result.claim.delta:
        most = f"{symbol(result.claim)} = {bound(share * claimed, up=True)}"
    rest = ""
    if share < 0.95:
        rest = f"; {math.floor(100 * (1 - share))}% of the claim is unused"
    return f"the noise in {trace_scope(trace)} allows at most {most}; this is no proof{rest}"


def columns(claim: ClaimRecord | None) -> list[str]:
    """Return the headings of the table of code lines that add noise.

    They are the headings of the cells in each of ``rows``: the line, its noise, and its
    loss. The claim decides the letter of the loss, such as ε or μ; None means ε.
    """
    lost = f"{symbol(claim)} lost"
    return ["Line", "Noise", "Scale", "Moved at most", lost, "Share of the claim"]


def aligned(cells: Sequence[Sequence[str]], longest: int) -> list[str]:
    """Return the lines of a table in aligned columns; each item of ``cells`` is a row.

    All rows have equal length. Cells are shortened to at most ``longest`` characters.
    """
    shown = [[shorten(printable(cell), longest) for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in shown]


def rows(lines: Sequence[TracedLine]) -> list[list[str]]:
    """Return a row for each traced line of code that adds noise.

    The cells are the place, the noise, its scale, the distance by which the value under
    the noise moved, the loss, and the loss as a share of the claim.
    """
    cells = []
    for row in lines:
        place = "unknown"
        if row.line:
            place = f"{row.file}:{row.line}"
        losses = [
            "not understood" if value is None else number(value)
            for value in (row.loss, row.share)
        ]
        scale = row.scale or MISSING
        cells.append([place, row.family, scale, number(row.moved), *losses])
    return cells
