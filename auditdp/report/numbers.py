"""Numbers for readers: bounds are rounded outwards, and a missing value is a dash."""

from __future__ import annotations

import math
from decimal import Decimal

from auditdp.numerics.rounding import NEAR, outward, significant
from auditdp.numerics.rounding import count as count
from auditdp.record.results import SYMBOLS, AuditResult, ClaimRecord, Verdict

MISSING = "–"
SNAP = 1e-9
"""Relative difference up to which a bound is written as the nearest short decimal."""
CLAIM_DIGITS = 6
"""Significant digits of a claimed number, as in the text of a claim."""


def between(before: str, text: str | None, after: str = "") -> str:
    """Return ``text`` between two others, or "" if ``text`` is empty or None.

    >>> between(" (", "1-DP", ")"), between(" (", None, ")")
    (' (1-DP)', '')
    """
    if text:
        return f"{before}{text}{after}"
    return ""


def as_float(value: object) -> float | None:
    """Return a recorded number as a float; None for NaN and other values.

    Texts of numbers are read, since records have infinity as the text 'inf'.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        result = float(value)
    except ValueError:
        return None
    if math.isnan(result):
        return None
    return result


def number(value: object, digits: int = 4) -> str:
    """Return a number as text with ``digits`` significant digits; "–" without a number.

    Integers have all of their digits, and floats below 1e9 all digits before the point.
    Thousands are separated.

    >>> number(12345.678), number(0.00001), number(float("inf")), number(None)
    ('12,346', '1e-5', '∞', '–')
    >>> number(0.30000000000000004)
    '0.3'
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    exact = as_float(value)
    if exact is None:
        return MISSING
    if math.isinf(exact):
        if exact > 0:
            return "∞"
        return "−∞"
    return _write(significant(exact, digits))


def bound(
    value: object, *, up: bool, against: float | None = None, digits: int = 4
) -> str:
    """Return a bound as text, rounded outwards: a lower bound down, an upper one up.

    Digits are added until the written bound is on the same side of ``against`` as the
    exact one. So a refutation of epsilon = 1 by 1.00003 is not written as "1". A bound
    that differs from ``against`` only by rounding is written as ``against``. A missing
    bound is "–".

    >>> bound(1.31289, up=False), bound(1.31289, up=True)
    ('1.312', '1.313')
    >>> bound(1.00003, up=False, against=1)
    '1.00003'
    """
    exact = as_float(value)
    if exact is None or math.isinf(exact):
        return number(value)
    near = SNAP
    if against is not None:
        # The excess of a refutation is more than rounding.
        if not up and exact > against:
            near = NEAR
        if abs(exact - against) <= near * abs(against):
            return number(against, digits=CLAIM_DIGITS)
    return _write(outward(exact, up=up, digits=digits, near=near, against=against))


def level(claim: ClaimRecord | None) -> float | None:
    """Return the claimed value of a claim's parameter, such as its ε.

    Returns:
        The value; None if there is no claim, or if it is not about privacy.
    """
    if claim is None or claim.parameter not in SYMBOLS:
        return None
    return as_float(getattr(claim, claim.parameter))


def symbol(claim: ClaimRecord | None) -> str:
    """Return the letter of a claim's parameter, such as "μ"; by default "ε"."""
    if claim is not None:
        return SYMBOLS.get(claim.parameter, "ε")
    return "ε"


def at_delta(claim: ClaimRecord | None) -> str:
    """Return " at δ = ..." with the δ of a claim; empty if it has no δ."""
    if claim is not None and claim.delta:
        return f" at δ = {number(claim.delta)}"
    return ""


def interval(
    lower: object,
    upper: object,
    claim: ClaimRecord | None = None,
    *,
    refuted: bool = False,
) -> str:
    """Return two bounds as an inequality, such as '1.31 ≤ ε' or '0.98 ≤ ε ≤ 1'.

    A missing bound is None, and an infinite upper bound counts as missing. Without any
    bound the text is "–". Equal bounds are written as 'ε = 1', and an infinite lower
    bound as 'ε = ∞'. The parameter is that of the claim; without a claim it is ε.

    Args:
        lower: The lower bound.
        upper: The upper bound.
        claim: The claim.
        refuted: True if the claim is refuted. Then the inequality is strict if the
            written lower bound is the claimed level.
    """
    low = as_float(lower)
    high = as_float(upper)
    if high is not None and math.isinf(high):
        high = None
    letter = symbol(claim)
    claimed = level(claim)
    if low == math.inf:
        return f"{letter} = ∞"
    # Bounds that differ by rounding are one exact value.
    if low is not None and high is not None and abs(high - low) <= SNAP * abs(high):
        return f"{letter} = {bound(high, up=True, against=claimed)}"
    text = letter
    if low is not None:
        least = bound(low, up=False, against=claimed)
        is_strict = refuted and least == number(claimed, digits=CLAIM_DIGITS)
        text = f"{least} {'<' if is_strict else '≤'} {letter}"
    if high is not None:
        text += f" ≤ {bound(high, up=True, against=claimed)}"
    if text == letter:
        return MISSING
    return text


def at_most(epsilon: object, delta: object, on: str | None = None) -> str:
    """Return an (ε, δ) bound in words: no event S has P(S) > e^ε Q(S) + δ.

    ``on`` names the pairs on which the bound holds.

    >>> at_most(1.0612, 0.00141204)
    'ε ≤ 1.062, but for outputs of probability δ = 0.0015'
    """
    pairs = between(" on ", on)
    rare = f"outputs of probability δ = {bound(delta, up=True, digits=2)}"
    return f"ε ≤ {bound(epsilon, up=True)}{pairs}, but for {rare}"


def bounds(result: AuditResult) -> str:
    """Return the bounds that an audit found, as an inequality; "–" if there are none."""
    is_refuted = result.verdict is Verdict.VIOLATED
    lower, upper = result.epsilon_lower, result.epsilon_upper
    return interval(lower, upper, result.claim, refuted=is_refuted)


def e_value(log_e_value: object) -> str:
    """Return e^``log_e_value`` as text, even if it is too large for a float.

    Without a number it is "–".
    """
    log = as_float(log_e_value)
    if log is None:
        return MISSING
    if math.isinf(log) or abs(log) < math.log(1e6):
        return number(math.exp(log), digits=3)
    exponent = math.floor(log / math.log(10))
    # Beyond 1e12 the fractional part of a logarithm has no correct digit.
    rest = 0.0
    if abs(log) <= 1e12:
        rest = log - exponent * math.log(10)
    mantissa = f"{math.exp(rest):.1f}"
    if mantissa == "10.0":
        return f"1.0e{exponent + 1}"
    return f"{mantissa}e{exponent}"


def duration(seconds: object) -> str:
    """Return a time in at most two units, such as hours and minutes; "–" without one.

    >>> duration(0.4213), duration(75), duration(7300)
    ('0.42 s', '1 min 15 s', '2 h 1 min')
    """
    value = as_float(seconds)
    if value is None or math.isinf(value):
        return number(value)
    # Times are rounded, so 9.995 and 59.95 have a digit less than smaller ones.
    if value < 9.995:
        return f"{value:.2f} s"
    if value < 59.95:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s"


def _write(value: Decimal) -> str:
    if value == 0:
        return "0"
    sign = ""
    if value < 0:
        sign = "−"
    if not -4 <= value.adjusted() < 9:
        mantissa, _, exponent = f"{abs(value):.3e}".partition("e")
        return f"{sign}{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    text = f"{abs(value):,f}"
    return sign + (text.rstrip("0").rstrip(".") if "." in text else text)
