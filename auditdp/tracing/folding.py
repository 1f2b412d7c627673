"""Noise that is transformed and stays noise: rounded, and made of uniform draws by their logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from auditdp.tracing.draws import Term
from auditdp.tracing.families import NoiseLaw, same
from auditdp.tracing.forms import Form, derived
from auditdp.tracing.plain import ndim


def rounded(noise: Form, plain: Any) -> Any:
    """Return it rounded to whole numbers: whole noise as it is, Laplace noise as that of another family."""
    if noise.settled is not None:
        return None
    if noise.is_whole:
        return type(noise)(noise.run, plain, noise.terms, noise.offset, noise.site)
    law = noise.law
    if law.family == "Laplace" and len(noise.terms) == 1 and noise.offset is None and not noise.terms[0].draw.used:
        return _of_draw(noise, NoiseLaw("rounded Laplace", 1.0, np.abs(law.scale)), plain, plain)
    return None


def clipped(noise: Form, low: Any, high: Any, plain: Any) -> Form | None:
    """Return noise clipped to an interval around 0; None of other noise than Laplace and Gaussian.

    Args:
        noise: Noise to which nothing was added.
        low: The lower end, a number; None for none.
        high: The upper end.
        plain: The clipped number or array.
    """
    law, draw = noise.law, noise.terms[0].draw
    alone = len(noise.terms) == 1 and noise.offset is None and noise.settled is None and not (draw.used or draw.limits)
    if law.family not in ("Laplace", "Gaussian") or not alone or ndim(law.scale) or ndim(low) or ndim(high):
        return None
    scale = float(np.abs(law.scale))
    bounds = (-math.inf if low is None else float(low) / scale, math.inf if high is None else float(high) / scale)
    return _of_draw(noise, NoiseLaw(f"clipped {law.family}", scale, bounds), plain, plain)


def _of_draw(noise: Form, law: NoiseLaw, value: Any, drawn: Any = None) -> Form:
    """Return noise of another law that is made of the draw of this one."""
    term = noise.terms[0]
    return type(noise)(noise.run, value, (Term(derived(term.draw, law, drawn), term.index),))


def _is_around_zero(noise: Form) -> bool:
    """Return whether it is one uniform draw around 0 that nothing has used."""
    known = noise.settled is None and noise.offset is not None and not noise.terms[0].draw.used
    return known and noise.law.family == "uniform" and same(2 * noise.offset, -noise.law.scale)


def folded(noise: Form) -> Any:
    """Return |noise|: of a uniform draw around 0 a uniform one of half the width."""
    if not _is_around_zero(noise):
        return abs(noise.settle("is used by abs"))
    return _of_draw(noise, NoiseLaw("uniform", np.abs(noise.law.scale) / 2), abs(noise.value))


def sign_of(noise: Form) -> Form | None:
    """Return the sign of a uniform draw around 0, which may make an exponential one Laplace noise; None of other noise."""
    return _of_draw(noise, NoiseLaw("sign"), np.sign(noise.value)) if _is_around_zero(noise) else None


def signed(first: Form, second: Form) -> Form | None:
    """Return an exponential draw times the sign of the uniform one that it was made of: Laplace noise; None of others."""
    laws = [noise.terms[0].draw.law.family for noise in (first, second)]
    if sorted(laws) != ["exponential", "sign"] or len(first.terms) + len(second.terms) > 2:
        return None
    size, sign = (first, second) if laws[0] == "exponential" else (second, first)
    term, draw = size.terms[0], size.terms[0].draw
    if draw.used is not sign.terms[0].draw.used or size.offset is not None or first.settled or second.settled:
        return None
    scale = np.abs(term.factor * sign.terms[0].factor * draw.law.scale)
    return _of_draw(size, NoiseLaw("Laplace", scale), first.value * second.value)


def logarithm(noise: Any, log: Callable[[Any], Any], plus: float = 0.0) -> Form | None:
    """Return the logarithm of a uniform draw, an exponential one with a minus sign; None of anything else.

    Args:
        noise: Any argument.
        log: Computes the logarithm of its value plus a number.
        plus: That number.
    """
    if not isinstance(noise, Form) or len(noise.terms) != 1:
        return None
    term, draw = noise.terms[0], noise.terms[0].draw
    if draw.law.family != "uniform" or draw.used or draw.limits or noise.settled is not None:
        return None
    width, start = term.factor * draw.law.scale, (0.0 if noise.offset is None else noise.offset) + plus
    if not (same(width, 1.0) and same(start, 0.0)) and not (same(width, -1.0) and same(start, 1.0)):
        return None
    return _of_draw(noise, NoiseLaw("exponential", -1.0), log(noise.value))
