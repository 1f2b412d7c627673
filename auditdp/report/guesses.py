"""What a finding means to somebody who sees an output: how often a guess at the input is right, and what a claim allows.

A fair coin picks one of two neighbours, the mechanism runs, and whoever sees the output may guess the coin or pass. Let b be
the share of runs on which they guess and r, w those on which they are right and wrong, b = r + w. A guess of the first input
is an event A, one of the second an event B, so r = (P(A) + Q(B))/2 and w = (Q(A) + P(B))/2. Under (ε, δ)-DP, in both orders,
P(A) ≤ e^ε Q(A) + δ and Q(B) ≤ e^ε P(B) + δ, hence r ≤ e^ε w + δ, and

    r/b ≤ (e^ε + δ/b) / (1 + e^ε).

With δ = 0 that is 1/(1 + e^-ε) for any choice of outputs to guess on, one output alone among them. A claim that is a curve
makes many such statements, and the least of their limits holds; at b = 1, ε = 0 gives (1 + δ(0))/2, which is attained.

The words and signs that every report shares: what each verdict means, and what a clean run means.

What a trace read off the code, as reports say it: the line of a finding, and which line of clean code uses how much.
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
    bound,
    count,
    level,
    number,
    symbol,
)
from auditdp.report.plain_text import printable, shorten

MOST_DIGITS = 9
SELDOM = 0.005
"""Share of wrong guesses below which these are spoken of, and not the right ones."""
WHICH = "which of the two inputs was used"


def allowed(statements: Sequence[tuple[float, float]], rate: float = 1.0) -> float:
    """Return how large a share of guesses may be right under (ε, δ) statements that all hold.

    Args:
        statements: Pairs (ε, δ); none allow everything.
        rate: The share of runs on which somebody guesses, in (0, 1].

    >>> round(allowed([(math.log(3), 0.0)], 0.1), 12), round(allowed([(math.log(3), 0.02)]), 12)
    (0.75, 0.755)
    """
    return min(
        [
            1.0,
            *(
                (1 + delta / rate * math.exp(-e)) / (1 + math.exp(-e))
                for e, delta in statements
            ),
        ]
    )


def statements(claim: ClaimRecord | None) -> list[tuple[float, float]]:
    """Return (ε, δ) statements of a recorded claim; none where it is not about privacy or its record has no number."""
    claimed = level(claim)
    if claim is None or claimed is None or not 0 < claimed < math.inf:
        return []
    if claim.curve:
        return [(float(epsilon), float(delta)) for epsilon, delta in claim.curve]
    if claim.kind in (
        "PureDP",
        "ApproxDP",
    ):  # the report of a run does without numpy, which what follows loads
        return [(claimed, as_float(claim.delta) or 0.0)]
    from auditdp.claims.statements import CLAIMS

    if claim.kind not in CLAIMS:
        return []
    made: Any = CLAIMS[claim.kind]
    known = made(*(as_float(getattr(claim, name)) or 0.0 for name in made.recorded_by))
    return [(float(epsilon), float(delta)) for epsilon, delta in known.statements()]


def guessing(result: AuditResult) -> str:
    """Return what a violated claim means to somebody who sees an output; empty where the record does not say.

    Of several ways to say it, the first that shows the violation: the output that tells the inputs apart, guesses on fresh
    calls, the δ that is needed, and what follows from the certified bound.
    """
    lead, known = result.leading, statements(result.claim)
    if result.verdict is not Verdict.VIOLATED or lead is None or not known:
        return ""
    sentences = (
        _output(result, known),
        _guesses(lead, result.claim, known),
        _needed(result, lead),
        _bounded(result, lead),
    )
    return next((sentence for sentence in sentences if sentence), "")


def _output(result: AuditResult, known: Sequence[tuple[float, float]]) -> str:
    """After one output, of which the law gives both probabilities, under a pure claim."""
    found = result.counterexample
    if found is None or found.probabilities is None or known[0][1] or len(known) > 1:
        return ""
    first, second = (as_float(p) or 0.0 for p in found.probabilities)
    if first + second <= 0 or not math.isfinite(first + second):
        return ""
    wrong, may = min(first, second) / (first + second), _wrong(known[0][0])
    if wrong >= may:
        return ""
    return f"Whoever sees this output {_against(wrong, may)}."


def _guesses(
    lead: Evidence, claim: ClaimRecord | None, known: Sequence[tuple[float, float]]
) -> str:
    """Return the share of right guesses on fresh calls by the best forecaster: an observation, and no bound.

    Where the certified bound implies more right guesses after some outputs, that is what a pure claim is about.
    """
    if not isinstance(lead.details, GameDetails):
        return ""
    played = lead.details.smallest or lead.details.confirmation
    if played is None or not played.confirmed:
        return ""
    right, bets, calls = played.right, played.bets, played.calls
    if not 0 < right <= bets <= calls:
        return ""
    seen, cap = right / bets, allowed(known, bets / calls)
    lower = as_float(lead.epsilon_lower)
    beyond = lower is not None and symbol(claim) == "ε" and 1 - _wrong(lower) > seen
    if seen <= cap or (
        beyond and claim is not None and not claim.delta and not claim.curve
    ):
        return ""
    together = ", over all of them together" if beyond else ""
    each = (
        "an output"
        if bets == calls
        else f"one of the most telling outputs ({_share(bets / calls)} of all)"
    )
    return (
        f"Whoever sees {each} guesses rightly {_of_100(seen, cap)} times of 100 {WHICH} "
        f"({number(right)} of {number(bets)} guesses on fresh calls{together}); the claim allows {_of_100(cap, seen)}."
    )


def _needed(result: AuditResult, lead: Evidence) -> str:
    """By the δ that the law needs at the claimed ε, where the claim has a δ."""
    claim = result.claim
    assert claim is not None  # it has statements
    delta, epsilon = as_float(claim.delta), as_float(claim.epsilon)
    curve = lead.details.curve if isinstance(lead.details, ExactDetails) else None
    if not delta or epsilon is None or curve is None:
        return ""
    # The curve falls, so its value at any ε beyond the claimed one is a lower bound on what is needed there.
    needed = max((d for e, d in curve if e >= epsilon * (1 - 1e-12)), default=0.0)
    if needed <= delta:
        return ""
    return (
        f"Some outputs are so much likelier on one of the two inputs that ε = {number(epsilon)} needs "
        f"δ ≥ {bound(needed, up=False, against=delta)}; the claim states δ = {number(delta)}."
    )


def _bounded(result: AuditResult, lead: Evidence) -> str:
    """By the certified lower bound: under a pure claim there are outputs after which a guess is that often right."""
    lower, claimed, claim = (
        as_float(lead.epsilon_lower),
        level(result.claim),
        result.claim,
    )
    if lower is None or claimed is None or claim is None or lower <= claimed:
        return ""
    sure = "proved" if lead.known.proves else "a certified bound"
    if claim.parameter != "epsilon" or claim.delta:
        least = bound(lower, up=False, against=claimed)
        at = f" at δ = {number(claim.delta)}" if claim.delta else ""
        from auditdp.claims.claim import Claim
        from auditdp.claims.statements import CLAIMS

        what = CLAIMS[claim.kind].bounds if claim.kind in CLAIMS else Claim.bounds
        return f"The {what} is {symbol(claim)} ≥ {least}{at} ({sure}); the claim allows {number(claimed, digits=6)}."
    against = _against(
        _wrong(lower), _wrong(claimed), up=False, after=" after any output"
    )
    return f"There are outputs after which whoever sees them {against} ({sure})."


def _against(
    wrong: float, may: float, *, up: bool | None = None, after: str = ""
) -> str:
    """How often a guess is right, against how often it may be; where both nearly always are, how seldom it is wrong.

    Both are shares of wrong guesses, since a share of right ones near 1 has lost its digits.
    """
    if max(wrong, may) > SELDOM:
        least = "" if up is None or wrong <= 0 else "at least "
        often = f"rightly {least}{_of_100(1 - wrong, 1 - may, up=up)} times of 100"
        allows = f"; the claim allows {_of_100(1 - may, 1 - wrong)}{after}"
    else:
        times = apart(
            *(1 / share if share > 0 else math.inf for share in (wrong, may)), digits=3
        )
        seldom, allowed_once = (
            MISSING if text == "∞" else number(float(text), digits=MOST_DIGITS)
            for text in times
        )
        often = (
            "without ever being wrong"
            if wrong <= 0
            else f"wrongly only once in {seldom} times"
        )
        allows = (
            f"; the claim makes that once in {allowed_once} times or more often{after}"
            if may > 0
            else ""
        )
    return f"guesses {often} {WHICH}{allows}"


def _share(part: float) -> str:
    """A part of all outputs as a percentage of two digits, which is not 100% where it is not all of them."""
    percent = number(100 * part, 2)
    return f"{percent}%" if percent != "100" else "more than 99%"


def _wrong(epsilon: float) -> float:
    """The share of wrong guesses that a pure claim leaves, 1/(1 + e^ε)."""
    return math.exp(-epsilon) / (1 + math.exp(-epsilon))


def _of_100(share: float, other: float, *, up: bool | None = None) -> str:
    """A share as times of 100, with as many digits as set it apart from the other share, and from 0 and 100."""
    for digits in range(MOST_DIGITS):
        shown, beside = round(100 * share, digits), round(100 * other, digits)
        if up is False and shown > 100 * share:
            shown = round(shown - 10.0**-digits, digits)
        if shown != beside and (share in (0.0, 1.0) or 0 < shown < 100):
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
    Verdict.CERTIFIED: "The claim is proved for the stated model and scope. How the code samples is outside it.",
    Verdict.NOT_REFUTED: (
        "No violation was seen. This is not “private”: the report says how small a violation would have been seen."
    ),
    Verdict.EQUIVALENT: "An estimate is within the stated margin of what is promised, on the inputs that were tried.",
    Verdict.INCONCLUSIVE: (
        "Nothing is decided: a broken twin was not refuted, the code is not what its law says, or the claim was refuted and "
        "that was not confirmed."
    ),
    Verdict.ERROR: (
        "The audit could not be carried out: it crashed, ran out of time, or the mechanism cannot be tested as it is. "
        "Nothing was found out about the claim, and an error is never a finding."
    ),
    Verdict.SKIPPED: "The audit could not run here, for the reason given.",
}

UNCONFIRMED_REMEDY = (
    "Test it again with another seed and more calls (`auditdp confirm ID --budget 1000000`). Where the mechanism takes a "
    "size, look for code that depends on it, and draw fresh noise for each output."
)
"""What to do where a refutation was not confirmed."""
REMEDIES: dict[Verdict, str] = {
    Verdict.VIOLATED: (
        "Paste the pair and look at the line that is read off the code: noise is calibrated to less than one neighbour "
        "changes, or something gets round it. Mend that, or correct the claim; the command of the report shows the "
        "finding again. One that the project lives with is accepted in the baseline, with a reason."
    ),
    Verdict.MISCALIBRATED: REMEDY,
    Verdict.CERTIFIED: "Read what it rests on, on the audit's page of the HTML report; `auditdp run` also plays the code.",
    Verdict.NOT_REFUTED: (
        "Read how small a violation these calls would have found: `--find level:1.2` or `--budget thorough` find smaller "
        "ones, and an adjacency that generates pairs looks at others."
    ),
    Verdict.EQUIVALENT: "Give further inputs; nothing is known of those that were not tried.",
    Verdict.INCONCLUSIVE: (
        "Where a broken twin was not refuted, give the calls that find it (`--budget`, `--find`), pairs on which it "
        "differs, or a twin that breaks the claim by more. Where the code is not what its law says, mend either. Where a "
        f"refutation was not confirmed: {UNCONFIRMED_REMEDY}"
    ),
    Verdict.ERROR: "The message has the line; mend it there. A time limit is raised with `--timeout`.",
    Verdict.SKIPPED: "Install or provide what the reason names.",
}
"""What to do about each verdict."""

CLEAN_RUN = (
    "A clean run means that these audits found no violation beyond those that they declare, each within its stated "
    "scope, pairs and budget; it does not mean that the mechanisms are private."
)


MOST = 3
"""Findings of a trace that are said of one audit."""
NEARLY = 0.95
"""A share of the claim from which on nothing is said to be left."""
WHOLE = 1 + 1e-5
"""The share of all of the claim, up to rounding in single precision."""
NOT_UNDERSTOOD = "not understood"
"""Stands for a loss that the trace does not know."""
LONG = 300
"""Characters of a sentence of a trace."""


def traced(result: AuditResult) -> GameTrace | None:
    """Return what a trace said of an audit; None where its code was not traced."""
    return next(
        (
            game.trace
            for game in details(result.evidence, GameDetails)
            if game.trace is not None
        ),
        None,
    )


def read_off(result: AuditResult) -> list[TracedFinding]:
    """Return what a trace read off the code of a claim that evidence refutes, first what names a line."""
    trace = traced(result)
    if trace is None or result.verdict not in REFUTATIONS:
        return []
    found = sorted(
        (each for each in trace.findings if each.read_off),
        key=lambda each: not each.line,
    )
    return found[:MOST]


def proposed(result: AuditResult) -> list[tuple[str, TracedFinding]]:
    """Return suspicions of a trace that no bet has shown, each with its label. They are no evidence of a loss.

    Where the claim is not refuted, these are the findings that runs with other draws confirmed, except losses, which a
    notice states. A run that differs from the parameters of its accountant is listed with every verdict.
    """
    trace = traced(result)
    found = [] if trace is None else trace.findings
    other = [each for each in found if each.kind != "loss" and each.confirmed]
    open_ones = [
        ("suspicion", each) for each in other if result.verdict is Verdict.NOT_REFUTED
    ]
    steps = [("accountant", each) for each in found if each.kind == "steps"]
    return [*steps[:MOST], *open_ones[:MOST]]


def said(result: AuditResult) -> list[str]:
    """Return what was read off as sentences, with their files and with the pair where it is not the counterexample's."""
    shown = result.counterexample
    return [
        each.located
        + (
            ""
            if shown is None or shown.pair == each.pair
            else f"; on the pair {shorten(each.pair, LONG)}"
        )
        for each in read_off(result)
    ]


def line_of(result: AuditResult) -> Place | None:
    """Return the line that a finding is about; None where none was read off in a file of the project.

    A trace names files of elsewhere without their folder.
    """
    own = {
        place.file
        for place in (result.mechanism_at, result.audit_at)
        if place is not None
    }
    for finding in read_off(result):
        if finding.line > 0 and ("/" in finding.file or finding.file in own):
            return Place(finding.file, finding.line)
    return None


def looked_at(trace: GameTrace) -> str:
    """Return the scope of a trace.

    >>> looked_at(GameTrace(pairs=4000, runs=8000, extent="full"))
    '4,000 pairs and 8,000 runs looked at'
    """
    extent = {"full": "", "part": ", traced in part", "none": ", not traced"}.get(
        trace.extent, ""
    )
    return (
        f"{count(trace.pairs, 'pair')} and {count(trace.runs, 'run')} looked at{extent}"
    )


def at_most(result: AuditResult) -> str:
    """Return the most that clean code was seen to lose, and what that leaves of the claim; empty where that is not known."""
    trace, claimed = traced(result), level(result.claim)
    share = as_float(trace.share) if trace is not None else None
    if (
        trace is None
        or result.verdict is not Verdict.NOT_REFUTED
        or not trace.is_bound
        or share is None
    ):
        return ""
    if (
        not 0 <= share <= WHOLE
    ):  # where records are drawn the loss is smaller than that of a run
        return ""
    if (as_float(result.epsilon_lower) or 0.0) > share * (claimed or 0.0):
        return ""  # other evidence certifies that the output loses more
    alone = (
        claimed is not None and result.claim is not None and not result.claim.delta
    )  # else a share is no level
    loss = bound(share * (claimed or 0) if alone else share, up=True)
    most = f"{symbol(result.claim)} = {loss}" if alone else f"{loss} of the claim"
    rest = (
        f"; {math.floor(100 * (1 - share))}% of the budget is unused"
        if share < NEARLY
        else ""
    )
    return f"at most {most} on {looked_at(trace)}{rest}"


def columns(claim: ClaimRecord | None) -> list[str]:
    """Return what stands above the columns of ``rows``."""
    return [
        "Line",
        "Noise",
        "Scale",
        "Moved at most",
        f"{symbol(claim)} lost",
        "Share of the claim",
    ]


def aligned(cells: Sequence[Sequence[str]], longest: int) -> list[str]:
    """Return the lines of a table in plain text, each cell at most so long."""
    shown = [[shorten(printable(cell), longest) for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in shown]


def rows(lines: Sequence[TracedLine]) -> list[list[str]]:
    """Return each line at which noise enters, as cells."""
    return [
        [
            f"{row.file}:{row.line}" if row.line else "unknown",
            row.family,
            row.scale or MISSING,
            number(row.moved),
            *(
                NOT_UNDERSTOOD if value is None else number(value)
                for value in (row.loss, row.share)
            ),
        ]
        for row in lines
    ]
