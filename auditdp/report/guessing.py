"""What a finding means to somebody who sees an output: how often a guess at the input is right, and what a claim allows.

A fair coin picks one of two neighbours, the mechanism runs, and whoever sees the output may guess the coin or pass. Let b be
the share of runs on which they guess and r, w those on which they are right and wrong, b = r + w. A guess of the first input
is an event A, one of the second an event B, so r = (P(A) + Q(B))/2 and w = (Q(A) + P(B))/2. Under (ε, δ)-DP, in both orders,
P(A) ≤ e^ε Q(A) + δ and Q(B) ≤ e^ε P(B) + δ, hence r ≤ e^ε w + δ, and

    r/b ≤ (e^ε + δ/b) / (1 + e^ε).

With δ = 0 that is 1/(1 + e^-ε) for any choice of outputs to guess on, one output alone among them. A claim that is a curve
makes many such statements, and the least of their limits holds; at b = 1, ε = 0 gives (1 + δ(0))/2, which is attained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from auditdp.numerics.rounding import apart
from auditdp.record.details import ExactDetails, GameDetails
from auditdp.record.results import AuditResult, ClaimRecord, Evidence, Verdict
from auditdp.report.numbers import MISSING, as_float, bound, level, number, symbol

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
    return min([1.0, *((1 + delta / rate * math.exp(-e)) / (1 + math.exp(-e)) for e, delta in statements)])


def statements(claim: ClaimRecord | None) -> list[tuple[float, float]]:
    """Return (ε, δ) statements of a recorded claim; none where it is not about privacy or its record has no number."""
    claimed = level(claim)
    if claim is None or claimed is None or not 0 < claimed < math.inf:
        return []
    if claim.curve:
        return [(float(epsilon), float(delta)) for epsilon, delta in claim.curve]
    if claim.kind in ("PureDP", "ApproxDP"):  # the report of a run does without numpy, which what follows loads
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


def _guesses(lead: Evidence, claim: ClaimRecord | None, known: Sequence[tuple[float, float]]) -> str:
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
    if seen <= cap or (beyond and claim is not None and not claim.delta and not claim.curve):
        return ""
    together = ", over all of them together" if beyond else ""
    each = "an output" if bets == calls else f"one of the most telling outputs ({_share(bets / calls)} of all)"
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
    lower, claimed, claim = as_float(lead.epsilon_lower), level(result.claim), result.claim
    if lower is None or claimed is None or claim is None or lower <= claimed:
        return ""
    sure = "proved" if lead.known.proves else "a certified bound"
    if claim.parameter != "epsilon" or claim.delta:
        least = bound(lower, up=False, against=claimed)
        at = f" at δ = {number(claim.delta)}" if claim.delta else ""
        from auditdp.claims.base import Claim
        from auditdp.claims.statements import CLAIMS

        what = CLAIMS[claim.kind].bounds if claim.kind in CLAIMS else Claim.bounds
        return f"The {what} is {symbol(claim)} ≥ {least}{at} ({sure}); the claim allows {number(claimed, digits=6)}."
    against = _against(_wrong(lower), _wrong(claimed), up=False, after=" after any output")
    return f"There are outputs after which whoever sees them {against} ({sure})."


def _against(wrong: float, may: float, *, up: bool | None = None, after: str = "") -> str:
    """How often a guess is right, against how often it may be; where both nearly always are, how seldom it is wrong.

    Both are shares of wrong guesses, since a share of right ones near 1 has lost its digits.
    """
    if max(wrong, may) > SELDOM:
        least = "" if up is None or wrong <= 0 else "at least "
        often = f"rightly {least}{_of_100(1 - wrong, 1 - may, up=up)} times of 100"
        allows = f"; the claim allows {_of_100(1 - may, 1 - wrong)}{after}"
    else:
        times = apart(*(1 / share if share > 0 else math.inf for share in (wrong, may)), digits=3)
        seldom, allowed_once = (MISSING if text == "∞" else number(float(text), digits=MOST_DIGITS) for text in times)
        often = "without ever being wrong" if wrong <= 0 else f"wrongly only once in {seldom} times"
        allows = f"; the claim makes that once in {allowed_once} times or more often{after}" if may > 0 else ""
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
