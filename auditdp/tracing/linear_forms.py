"""Linear forms of draws: the data of noise, without its behaviour.

`Form` holds the data, and `auditdp.tracing.noise` adds the behaviour of a number or an
array. The last functions turn noise into noise of another law: rounded noise, clipped
noise, and noise that code makes of uniform draws by their logarithms.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any

import numpy as np

from auditdp.tracing.draws import ALONE, LENT, NOISY, Term, WatchedDraw, law_of
from auditdp.tracing.noise_families import FAMILIES, NoiseLaw, same
from auditdp.tracing.plain_values import all_of, any_of, ndim, shape_of
from auditdp.tracing.shared_noise import law_and_groups
from auditdp.tracing.sites import CodeLine
from auditdp.tracing.watched_run import WatchedRun

SHOWING = ("is in the output", "is printed")
"""Uses of noise that reveal its number as it is."""
ROUNDING_RTOL = 0.01
"""Largest relative difference between noise and the sum of its terms by rounding.

With a larger difference, code has changed the numbers.
"""
WHOLE = ("geometric", "integer", "binomial", "rounded Laplace")
"""Families of whole draws, whose sums are whole as well."""
LAZY = [name for name, family in FAMILIES.items() if family.is_part]
"""Families whose draws code usually combines to noise, or compares.

The sum of a value and such a draw is not released before the code uses it.
"""


class Form:
    """A linear form of draws, and perhaps a value that was added to it.

    Attributes:
        run: The run that it belongs to.
        value: The number or array that it stands for.
        terms: Terms whose sum is the noise.
        offset: The value that was added to the noise; None if no value was.
        site: The line that added the value; None if no line did, as for the location
            that a sampler adds.
        weight: For a score v with Gumbel noise that was compared with other scores: ln
            Σ e^v over itself and all scores that it exceeded, in units of the scale; −∞
            if another score exceeded it. None before any comparison.
        is_held: Whether the last operation was ``+=`` or ``-=`` with a value. The first
            use that is no such operation releases the sum.
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
        self.run, self.value, self.terms = run, value, terms
        self.offset, self.site = offset, site
        self.weight: float | None = None
        self.is_held = False
        self._settled: tuple[Any] | None = None

    @property
    def settled(self) -> tuple[Any] | None:
        """The ordinary number or array in a tuple, once the noise has ended; else None.

        Reading it ends noise that is held.
        """
        if self.is_held:
            self.settle("")
        return self._settled

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise."""
        return law_of(self.terms)

    @property
    def centre(self) -> Any:
        """The value that was added to the draws, or 0 if none was."""
        if self.offset is None:
            return 0.0
        return self.offset

    def settle(self, why: str) -> Any:
        """End the noise, and return the ordinary number or array.

        The first call records a release: that of the value with noise, or of the noise
        alone if no value was added.

        Args:
            why: Use that ends the noise, such as "is printed"; empty for a use that is
                understood. It makes the release opaque, except for uses in ``SHOWING``,
                for integers, and for values with noise of a family outside ``LAZY``.
        """
        self.is_held = False
        if self._settled is None:
            kind = ALONE if self.offset is None else NOISY
            law, groups = self.law_and_groups()
            # A value with noise is a release whatever follows, and so is a choice among
            # integers.
            is_noisy = kind == NOISY and law.family not in LAZY and all_of(law.scale)
            if law.family == "integer" or why in SHOWING or is_noisy:
                why = ""
            site = self.site or self.terms[0].draw.site
            with outside_of_transforms(self.value):
                released = self.run.release(
                    kind,
                    law,
                    self.offset,
                    self.value,
                    site,
                    self.terms,
                    groups=groups,
                    why=why,
                )
            self._settled = (released,)
        return self._settled[0]

    def law_and_groups(self) -> tuple[NoiseLaw, Any]:
        """Return the law of its entries, and the groups of entries that share a draw.

        If code changed the numbers in memory, the law is unknown. The groups have a
        number for each entry, and are None if no two entries share a draw.
        """
        law, groups = law_and_groups(self.terms, shape_of(self.value))
        # The law of lent noise has such a name already, by its draws.
        is_lent = any(term.draw.is_lent for term in self.terms)
        if not is_lent and self.was_changed():
            law = NoiseLaw(f"{law.family}{LENT}")
        return law, groups

    def was_changed(self) -> bool:
        """Return True if code changed its numbers in memory, as by a view."""
        total = self.centre
        # Terms may cancel, so rounding is relative to the sum of their sizes.
        size = np.abs(total)
        for term in self.terms:
            draw = term.draw
            if draw.drawn is None:
                return False
            part = number(draw.drawn.reshape(-1)[np.array(term.index)])
            if any_of(draw.location):
                locations = np.broadcast_to(draw.location, shape_of(draw.drawn))
                part = part - locations.reshape(-1)[term.index]
            part = term.factor * part
            total, size = total + part, size + np.abs(part)
        with np.errstate(all="ignore"):
            return any_of(np.abs(number(self.value) - total) > ROUNDING_RTOL * size)

    @property
    def is_whole(self) -> bool:
        """True if families, factors and offset imply that all its numbers are whole."""
        numbers = [self.centre, *(term.factor for term in self.terms)]
        return all(term.draw.law.family in WHOLE for term in self.terms) and all(
            bool(np.all(np.asarray(part) == np.rint(part))) for part in numbers
        )


def outside_of_transforms(value: Any) -> AbstractContextManager[Any]:
    """Return a context in which no transform of ``torch.func`` applies to a tensor."""
    context: AbstractContextManager[Any] = nullcontext()
    if hasattr(value, "detach"):
        context = sys.modules["torch"]._C._DisableFuncTorch()
    return context


# -- numbers and terms -----------------------------------------------------------------


def number(value: Any) -> Any:
    """Return a value as a real number or an array of numpy.

    For complex numbers it is the real part.
    """
    if isinstance(value, int | float):
        return value
    if isinstance(value, complex):
        return value.real
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind == "c":
            return value.real
        is_other = value.dtype.kind in "buO"
        if is_other:
            return value.astype(np.float64)
        return value
    if isinstance(value, list | tuple):
        return np.asarray(value, float)
    if hasattr(value, "to_numpy"):
        return value.to_numpy()
    if hasattr(value, "detach"):
        return value.detach().cpu().double().numpy()[()]
    is_array = hasattr(value, "__array__")
    if is_array:
        return np.asarray(value, np.float64)[()]
    return float(value)


def is_numeric(value: Any) -> bool:
    """Return True for a number, array of numbers, tensor or table; False for a list."""
    if isinstance(value, bool | int | float | complex):
        return True
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "biufc"
    if isinstance(value, list | tuple):
        return False
    is_known = type(value).__name__ in ("Decimal", "Fraction", "Series", "DataFrame")
    # Arrays of torch have the one attribute, and those of jax the other.
    return is_known or hasattr(value, "detach") or hasattr(value, "aval")


def scaled(terms: tuple[Term, ...], factor: Any) -> tuple[Term, ...]:
    """Return terms multiplied by a factor."""
    if isinstance(factor, float) and factor == 1.0:
        return terms
    return tuple(Term(term.draw, term.index, term.factor * factor) for term in terms)


def joined(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return an equal sum, in which equal entries of one draw have a single term.

    Terms whose coefficients cancel to 0 are left out.
    """
    if len(terms) < 2:
        return terms
    # Terms are few and their entries are arrays, so a dictionary would not be faster.
    result: list[Term] = []
    for term in terms:
        for other in result:
            if other.draw is term.draw and same(other.index, term.index):
                other.factor = other.factor + term.factor
                break
        else:
            result.append(Term(term.draw, term.index, term.factor))
    return tuple(term for term in result if any_of(term.factor))


def with_law(
    draw: WatchedDraw, change: Callable[[Any], Any], shape: tuple[int, ...]
) -> WatchedDraw:
    """Return a draw with its arrays of parameters moved, repeated or selected.

    The draw itself is returned if its parameters are no arrays or its law is unknown.

    Args:
        draw: The draw.
        change: A function that moves, repeats or selects the entries of an array.
        shape: Shape of the noise before the change.
    """
    law = draw.law
    parts = [law.scale, law.parameter]
    is_scalar = isinstance(law.parameter, tuple) or ndim(law.parameter) == 0
    if law.known is None or (ndim(law.scale) == 0 and is_scalar):
        return draw
    for k, part in enumerate(parts):
        if ndim(part):
            parts[k] = change(np.broadcast_to(part, shape))
    changed = copy(draw)
    changed.law = NoiseLaw(law.family, *parts)
    return changed


# -- noise of another law --------------------------------------------------------------


def _is_one_draw(noise: Form, *, offset: bool = False) -> bool:
    """Return True if noise is a multiple of one draw that nothing has used.

    Args:
        noise: The noise.
        offset: Whether a value may have been added to it.
    """
    is_alone = len(noise.terms) == 1 and (offset or noise.offset is None)
    return is_alone and noise.settled is None and not noise.terms[0].draw.used


def _of_draw(noise: Form, law: NoiseLaw, value: Any, *, keep: bool = False) -> Form:
    """Return noise of another law that is made of the draw of this one.

    Args:
        noise: Noise of one draw.
        law: The other law.
        value: The number or array that the new noise is.
        keep: Whether ``value`` also replaces the numbers of the copied draw.
    """
    term = noise.terms[0]
    changed = copy(term.draw)
    # The copy shares the record of uses: whatever uses one of the draws uses both.
    changed.law, changed.location, changed.limits, changed.drawn = law, 0.0, {}, None
    if keep:
        changed.value = value
    return type(noise)(noise.run, value, (Term(changed, term.index),))


def rounded(noise: Form, plain: Any) -> Form | None:
    """Return noise after it was rounded to whole numbers.

    Args:
        noise: The noise.
        plain: The rounded number or array.

    Returns:
        The noise, or None if it is not followed.
    """
    if noise.settled is None and noise.is_whole:
        return type(noise)(noise.run, plain, noise.terms, noise.offset, noise.site)
    law = noise.law
    if law.family != "Laplace" or not _is_one_draw(noise):
        return None
    cells = NoiseLaw("rounded Laplace", 1.0, np.abs(law.scale))
    return _of_draw(noise, cells, plain, keep=True)


def clipped(noise: Form, low: Any, high: Any, plain: Any) -> Form | None:
    """Return Laplace or Gaussian noise after it was clipped to an interval.

    Args:
        noise: The noise.
        low: The lower end; None for no end.
        high: The upper end; None for no end.
        plain: The clipped number or array.

    Returns:
        The noise, or None if it is not followed.
    """
    law = noise.law
    is_known = law.family in ("Laplace", "Gaussian") and _is_one_draw(noise)
    if not is_known or ndim(law.scale) or ndim(low) or ndim(high):
        return None
    scale = float(np.abs(law.scale))
    low = -math.inf if low is None else float(low)
    high = math.inf if high is None else float(high)
    ends = (low / scale, high / scale)
    return _of_draw(
        noise, NoiseLaw(f"clipped {law.family}", scale, ends), plain, keep=True
    )


def _is_around_zero(noise: Form) -> bool:
    if noise.law.family != "uniform" or noise.offset is None:
        return False
    is_centred = same(2 * noise.offset, -noise.law.scale)
    return is_centred and _is_one_draw(noise, offset=True)


def folded(noise: Form, absolute: Callable[[Any], Any] = abs) -> Form | None:
    """Return the absolute value of a uniform draw around 0.

    Args:
        noise: The noise.
        absolute: Function that returns the absolute value of a number or an array.

    Returns:
        A uniform draw of half the width, or None for other noise.
    """
    if not _is_around_zero(noise):
        return None
    law = NoiseLaw("uniform", np.abs(noise.law.scale) / 2)
    return _of_draw(noise, law, absolute(noise.value))


def sign_of(noise: Form, sign: Callable[[Any], Any] = np.sign) -> Form | None:
    """Return the sign of a uniform draw around 0, or None for other noise.

    If the same uniform draw is also made an exponential one (see ``logarithm``), the
    product of both is Laplace noise (see ``signed``).

    Args:
        noise: The noise.
        sign: Function that returns the sign of a number or an array.
    """
    if not _is_around_zero(noise):
        return None
    return _of_draw(noise, NoiseLaw("sign"), sign(noise.value))


def signed(first: Form, second: Form) -> Form | None:
    """Return the product of an exponential draw and a sign of the same uniform draw.

    Returns:
        Laplace noise, or None for other factors. The order of the factors is free.
    """
    by_family = {noise.law.family: noise for noise in (first, second)}
    if set(by_family) != {"exponential", "sign"}:
        return None
    size, sign = by_family["exponential"], by_family["sign"]
    if size.offset is not None or first.settled or second.settled:
        return None
    if size.terms[0].draw.used is not sign.terms[0].draw.used:
        return None
    scale = np.abs(size.law.scale * sign.terms[0].factor)
    return _of_draw(size, NoiseLaw("Laplace", scale), first.value * second.value)


def logarithm(noise: Form, log: Callable[[Any], Any], plus: float = 0.0) -> Form | None:
    """Return the logarithm of a uniform draw, as the negative of an exponential draw.

    Args:
        noise: The noise.
        log: Function that returns the logarithm of its argument plus ``plus``.
        plus: 1 for ``log1p``, 0 for ``log``.

    Returns:
        The noise, or None if the argument plus ``plus`` is not uniform between 0 and 1.
    """
    if noise.law.family != "uniform" or not _is_one_draw(noise, offset=True):
        return None
    width = noise.law.scale
    start = noise.centre + plus
    is_upwards = same(width, 1.0) and same(start, 0.0)
    is_downwards = same(width, -1.0) and same(start, 1.0)
    if not is_upwards and not is_downwards:
        return None
    return _of_draw(noise, NoiseLaw("exponential", -1.0), log(noise.value))
