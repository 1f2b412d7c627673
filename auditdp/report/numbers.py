"""Numbers as a reader sees them: bounds are rounded outwards, an infinite epsilon is ∞, a missing value is a dash."""

from __future__ import annotations

import math
from decimal import Decimal

from auditdp.numerics.rounding import NEAR, outward, significant
from auditdp.numerics.rounding import count as count
from auditdp.record.results import SYMBOLS, AuditResult, ClaimRecord, Verdict

MISSING = "–"
SNAP = 1e-9  # a bound this close to a short decimal is shown as that decimal, in either direction
CLAIM_DIGITS = 6  # as in the text of a claim


def as_float(value: object) -> float | None:
    """Return a number that a record may hold as a float or as the strings 'inf' and 'nan'; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        result = float(value)
    except ValueError:
        return None
    return None if math.isnan(result) else result


def number(value: object, digits: int = 4) -> str:
    """Return ``value`` to so many significant digits, with thousands separated.

    >>> number(12345.678), number(0.00001), number(float("inf")), number(None), number(0.30000000000000004)
    ('12,346', '1e-5', '∞', '–', '0.3')
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    as_number = as_float(value)
    if as_number is None:
        return MISSING
    if math.isinf(as_number):
        return "∞" if as_number > 0 else "−∞"
    return _write(significant(as_number, digits))


def bound(
    value: object, *, up: bool, against: float | None = None, digits: int = 4
) -> str:
    """Return a bound rounded outwards: a lower bound down, an upper bound up.

    Digits are added until the bound shows on the same side of ``against`` as it is, so that a refutation of epsilon = 1
    by 1.00003 does not read as "1".

    >>> bound(1.31289, up=False), bound(1.31289, up=True), bound(1.00003, up=False, against=1)
    ('1.312', '1.313', '1.00003')
    """
    exact = as_float(value)
    if exact is None or math.isinf(exact):
        return number(value)
    near = (
        SNAP if against is None or up or exact <= against else NEAR
    )  # a refutation is no matter of rounding
    if against is not None and abs(exact - against) <= near * abs(against):
        return number(against, digits=CLAIM_DIGITS)
    return _write(outward(exact, up=up, digits=digits, near=near, against=against))


def level(claim: ClaimRecord | None) -> float | None:
    """Return the claimed number, of the parameter that it is about; None where the claim is not about privacy."""
    if claim is None or claim.parameter not in SYMBOLS:
        return None
    return as_float(getattr(claim, claim.parameter))


def symbol(claim: ClaimRecord | None) -> str:
    """Return the letter that the bounds of an audit are about."""
    return SYMBOLS.get(claim.parameter, "ε") if claim is not None else "ε"


def interval(
    lower: object,
    upper: object,
    claim: ClaimRecord | None = None,
    *,
    refuted: bool = False,
) -> str:
    """Return what two bounds say, for example '1.31 ≤ ε', 'ε = ∞' or '0.98 ≤ ε ≤ 1'.

    Where the claim is refuted and the lower bound is no higher level, the true value exceeds it: '1 < ε'.
    """
    low, high, letter, claimed = (
        as_float(lower),
        as_float(upper),
        symbol(claim),
        level(claim),
    )
    if low is not None and low == math.inf:
        return f"{letter} = ∞"
    if (
        low is not None
        and high is not None
        and math.isfinite(high)
        and abs(high - low) <= SNAP * abs(high)
    ):
        return f"{letter} = {bound(high, up=True, against=claimed)}"
    least = "" if low is None else bound(low, up=False, against=claimed)
    strictly = refuted and least == number(claimed, digits=CLAIM_DIGITS)
    left = f"{least} {'<' if strictly else '≤'} " if least else ""
    right = (
        ""
        if high is None or math.isinf(high)
        else f" ≤ {bound(high, up=True, against=claimed)}"
    )
    return f"{left}{letter}{right}" if left or right else MISSING


def at_most(epsilon: object, delta: object, on: str | None = None) -> str:
    """Return a bound that counting shows: no event S has P(S) > e^ε Q(S) + δ, on pairs that are named if they are given.

    >>> at_most(1.0612, 0.00141204)
    'ε ≤ 1.062, but for outputs of probability δ = 0.0015'
    """
    pairs = "" if on is None else f" on {on}"
    return f"ε ≤ {bound(epsilon, up=True)}{pairs}, but for outputs of probability δ = {bound(delta, up=True, digits=2)}"


def bounds(result: AuditResult) -> str:
    """Return the bounds that an audit found."""
    refuted = result.verdict is Verdict.VIOLATED
    return interval(
        result.epsilon_lower, result.epsilon_upper, result.claim, refuted=refuted
    )


def e_value(log_e_value: object) -> str:
    """Return the wealth whose natural logarithm is given; it may be too large for a float."""
    log = as_float(log_e_value)
    if log is None or math.isinf(log):
        return number(log)
    if abs(log) < math.log(1e6):
        return number(math.exp(log), digits=3)
    exponent = math.floor(log / math.log(10))
    if abs(log) > 1e12:  # whose fraction has no digit left
        return f"1.0e{exponent}"
    mantissa = f"{math.exp(log - exponent * math.log(10)):.1f}"
    return f"1.0e{exponent + 1}" if mantissa == "10.0" else f"{mantissa}e{exponent}"


def duration(seconds: object) -> str:
    """Return a time that reads at a glance.

    >>> duration(0.4213), duration(75), duration(7300)
    ('0.42 s', '1 min 15 s', '2 h 1 min')
    """
    value = as_float(seconds)
    if value is None or math.isinf(value):
        return number(value)
    if value < 59.95:
        return f"{value:.2f} s" if value < 9.995 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _write(value: Decimal) -> str:
    if value == 0:
        return "0"
    if not -4 <= value.adjusted() < 9:
        mantissa, _, exponent = f"{value:.3e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}".replace(
            "-", "−", 1 if value < 0 else 0
        )
    text = f"{value:,f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−")
