"""Linear forms of draws: what noise is, beside how it behaves.

Noise that is transformed and stays noise: rounded, and made of uniform draws by their logarithms.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any

import numpy as np

from auditdp.tracing.draws import ALONE, LENT, NOISY, Term, WatchedDraw
from auditdp.tracing.noise_families import FAMILIES, NoiseLaw, same
from auditdp.tracing.plain_values import all_of, any_of, ndim, shape_of
from auditdp.tracing.shared_noise import law_and_groups
from auditdp.tracing.sites import CodeLine
from auditdp.tracing.watched_run import WatchedRun

SEEN = ("is in the output", "is printed")
"""Uses that show a number as it is."""
CHANGED = 0.01
"""How far, relatively, rounding may take a number from the sum that it is."""
LAZY = [name for name, family in FAMILIES.items() if family.is_part]
"""Families of draws that are parts of noise, or are compared; a value that is added to one is released when it is used."""


class Form:
    """A linear form of draws, and perhaps a value that was added to it.

    Attributes:
        run: The run that it belongs to.
        value: The number or array that it is.
        terms: The draws.
        offset: What was added to them; None where nothing was.
        site: Where it was added; None where nothing was, or by the sampler itself.
        weight: Of noise before a maximum: ln Σ e^score over all that it was seen to exceed, itself included.
        is_held: Whether values are being added to it by ``+=``: what is released is their sum, at its first other use.
    """

    __slots__ = (
        "_settled",
        "is_held",
        "offset",
        "run",
        "site",
        "terms",
        "value",
        "weight",
    )

    def __init__(
        self,
        run: WatchedRun,
        value: Any,
        terms: tuple[Term, ...],
        offset: Any = None,
        site: CodeLine | None = None,
    ) -> None:
        self.run, self.value, self.terms, self.offset, self.site = (
            run,
            value,
            terms,
            offset,
            site,
        )
        self.weight: float | None = None
        self._settled: tuple[Any] | None = None
        self.is_held = False

    @property
    def settled(self) -> tuple[Any] | None:
        """The ordinary number or array in a tuple, once it has ended as noise, as by this question where it is held."""
        if self.is_held:
            self.settle("")
        return self._settled

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise."""
        return law_and_groups(self.terms, ())[0]

    def settle(self, why: str) -> Any:
        """Return the ordinary number or array, and note the release: of the value that was added, or of noise alone."""
        self.is_held = False
        if self._settled is None:
            site = self.site or self.terms[0].draw.site
            kind = ALONE if self.offset is None else NOISY
            law, groups = self.law_and_groups()
            is_noisy = kind == NOISY and law.family not in LAZY and all_of(law.scale)
            if law.family == "integer" or why in SEEN or is_noisy:
                why = ""  # a choice among as many, what is shown as it is, or a value with noise, which is what is released
            with outside_of_transforms(self.value):
                self._settled = (
                    self.run.release(
                        kind,
                        law,
                        self.offset,
                        self.value,
                        site,
                        self.terms,
                        groups=groups,
                        why=why,
                    ),
                )
        return self._settled[0]

    def law_and_groups(self) -> tuple[NoiseLaw, Any]:
        """Return the law of its entries, and which of them share a draw; another one where its numbers were changed."""
        law, groups = law_and_groups(self.terms, shape_of(self.value))
        changed = (
            not any(term.draw.is_lent for term in self.terms) and self.was_changed()
        )
        return (NoiseLaw(f"{law.family}{LENT}") if changed else law), groups

    def was_changed(self) -> bool:
        """Return whether its numbers are not those of the draws, as where code changed them by a view of the same memory."""
        made = 0.0 if self.offset is None else self.offset
        size = np.abs(made)
        for term in self.terms:
            draw, index = term.draw, term.index
            if draw.drawn is None:
                return False
            drawn = number(draw.drawn.reshape(-1)[np.array(index)])
            if any_of(draw.location):
                drawn = (
                    drawn
                    - np.broadcast_to(draw.location, shape_of(draw.drawn)).reshape(-1)[
                        index
                    ]
                )
            part = term.factor * drawn
            made, size = made + part, size + np.abs(part)
        with np.errstate(all="ignore"):
            return any_of(np.abs(number(self.value) - made) > CHANGED * size)

    @property
    def is_whole(self) -> bool:
        """Whether noise is whole by its family, and what was added and multiplied is."""
        whole = all(
            term.draw.law.family
            in ("geometric", "integer", "binomial", "rounded Laplace")
            and bool(np.all(np.asarray(term.factor) == np.rint(term.factor)))
            for term in self.terms
        )
        return whole and (
            self.offset is None or bool(np.all(self.offset == np.rint(self.offset)))
        )


def outside_of_transforms(value: Any) -> AbstractContextManager[Any]:
    """Return a context in which a tensor is what it is outside of transforms of ``torch.func`` that are under way."""
    return (
        sys.modules["torch"]._C._DisableFuncTorch()
        if hasattr(value, "detach")
        else nullcontext()
    )


def derived(draw: WatchedDraw, law: NoiseLaw, value: Any = None) -> WatchedDraw:
    """Return a draw of another law that was made of one; what uses either uses both."""
    made = copy(draw)
    made.law, made.value = law, draw.value if value is None else value
    made.location, made.limits, made.drawn = 0.0, {}, None
    return made


def number(value: Any) -> Any:
    """Return a value as numpy computes with it: Decimal and Fraction as floats, of complex numbers the real part."""
    if isinstance(value, int | float):
        return value
    if isinstance(value, complex):
        return value.real
    if isinstance(value, np.ndarray | np.generic):
        array = value.real if value.dtype.kind == "c" else value
        return (
            array.astype(np.float64)
            if array.dtype.kind in "bu" or array.dtype == object
            else array
        )
    if isinstance(value, list | tuple):
        return np.asarray(value, float)
    if hasattr(value, "to_numpy"):
        return value.to_numpy()
    if hasattr(value, "detach"):
        return value.detach().cpu().double().numpy()[()]
    return (
        np.asarray(value, np.float64)[()]
        if hasattr(value, "__array__")
        else float(value)
    )


def is_numeric(value: Any) -> bool:
    """Return whether arithmetic with a value is that of numbers."""
    if isinstance(value, bool | int | float | complex):
        return True
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "biufc"
    if isinstance(value, list | tuple):
        return False
    known = type(value).__name__ in ("Decimal", "Fraction", "Series", "DataFrame")
    return (
        known or hasattr(value, "detach") or hasattr(value, "aval")
    )  # an array of torch or jax


def scaled(terms: tuple[Term, ...], factor: Any) -> tuple[Term, ...]:
    """Return terms multiplied by a factor."""
    if isinstance(factor, float) and factor == 1.0:
        return terms
    return tuple(Term(term.draw, term.index, term.factor * factor) for term in terms)


def joined(terms: tuple[Term, ...], shape: tuple[int, ...]) -> tuple[Term, ...]:
    """Return terms for noise of a shape; those of the same entries of one draw as one, and none that cancel."""
    if len(terms) < 2:
        return terms
    found: list[Term] = []
    for term in terms:
        for other in found:
            if other.draw is term.draw and same(other.index, term.index):
                other.factor = other.factor + term.factor
                break
        else:
            found.append(Term(term.draw, term.index, term.factor))
    return tuple(term for term in found if any_of(term.factor))


def with_law(
    draw: WatchedDraw, change: Callable[[Any], Any], shape: tuple[int, ...]
) -> WatchedDraw:
    """Return a draw whose scale, where it is an array, follows a change of shape."""
    law = draw.law
    if law.known is None or (
        ndim(law.scale) == 0
        and (isinstance(law.parameter, tuple) or ndim(law.parameter) == 0)
    ):
        return draw
    scale, parameter = (
        part if ndim(part) == 0 else change(np.broadcast_to(part, shape))
        for part in (law.scale, law.parameter)
    )
    made = copy(draw)
    made.law = NoiseLaw(law.family, scale, parameter)
    return made


def rounded(noise: Form, plain: Any) -> Any:
    """Return it rounded to whole numbers: whole noise as it is, Laplace noise as that of another family."""
    if noise.settled is not None:
        return None
    if noise.is_whole:
        return type(noise)(noise.run, plain, noise.terms, noise.offset, noise.site)
    law = noise.law
    if (
        law.family == "Laplace"
        and len(noise.terms) == 1
        and noise.offset is None
        and not noise.terms[0].draw.used
    ):
        return _of_draw(
            noise, NoiseLaw("rounded Laplace", 1.0, np.abs(law.scale)), plain, plain
        )
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
    alone = (
        len(noise.terms) == 1
        and noise.offset is None
        and noise.settled is None
        and not (draw.used or draw.limits)
    )
    if (
        law.family not in ("Laplace", "Gaussian")
        or not alone
        or ndim(law.scale)
        or ndim(low)
        or ndim(high)
    ):
        return None
    scale = float(np.abs(law.scale))
    bounds = (
        -math.inf if low is None else float(low) / scale,
        math.inf if high is None else float(high) / scale,
    )
    return _of_draw(
        noise, NoiseLaw(f"clipped {law.family}", scale, bounds), plain, plain
    )


def _of_draw(noise: Form, law: NoiseLaw, value: Any, drawn: Any = None) -> Form:
    """Return noise of another law that is made of the draw of this one."""
    term = noise.terms[0]
    return type(noise)(
        noise.run, value, (Term(derived(term.draw, law, drawn), term.index),)
    )


def _is_around_zero(noise: Form) -> bool:
    """Return whether it is one uniform draw around 0 that nothing has used."""
    known = (
        noise.settled is None
        and noise.offset is not None
        and not noise.terms[0].draw.used
    )
    return (
        known
        and noise.law.family == "uniform"
        and same(2 * noise.offset, -noise.law.scale)
    )


def folded(noise: Form) -> Any:
    """Return |noise|: of a uniform draw around 0 a uniform one of half the width."""
    if not _is_around_zero(noise):
        return abs(noise.settle("is used by abs"))
    return _of_draw(
        noise, NoiseLaw("uniform", np.abs(noise.law.scale) / 2), abs(noise.value)
    )


def sign_of(noise: Form) -> Form | None:
    """Return the sign of a uniform draw around 0, which may make an exponential one Laplace noise; None of other noise."""
    return (
        _of_draw(noise, NoiseLaw("sign"), np.sign(noise.value))
        if _is_around_zero(noise)
        else None
    )


def signed(first: Form, second: Form) -> Form | None:
    """Return an exponential draw times the sign of the uniform one that it was made of: Laplace noise; None of others."""
    laws = [noise.terms[0].draw.law.family for noise in (first, second)]
    if (
        sorted(laws) != ["exponential", "sign"]
        or len(first.terms) + len(second.terms) > 2
    ):
        return None
    size, sign = (first, second) if laws[0] == "exponential" else (second, first)
    term, draw = size.terms[0], size.terms[0].draw
    if (
        draw.used is not sign.terms[0].draw.used
        or size.offset is not None
        or first.settled
        or second.settled
    ):
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
    if (
        draw.law.family != "uniform"
        or draw.used
        or draw.limits
        or noise.settled is not None
    ):
        return None
    width, start = (
        term.factor * draw.law.scale,
        (0.0 if noise.offset is None else noise.offset) + plus,
    )
    if not (same(width, 1.0) and same(start, 0.0)) and not (
        same(width, -1.0) and same(start, 1.0)
    ):
        return None
    return _of_draw(noise, NoiseLaw("exponential", -1.0), log(noise.value))
