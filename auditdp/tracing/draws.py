"""Records of a trace: draws, releases, and the terms of noise.

Code adds and scales draws. The result is a linear form: a sum of `Term`, each a draw
times a coefficient. A linear form that is added to a value is the noise of a `Release`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.tracing.noise_families import NoiseLaw, same
from auditdp.tracing.plain_values import ndim, shape_of
from auditdp.tracing.sites import CodeLine

MAX_NOISE_RANGE = 2**24
"""Largest range of drawn integers that can be noise.

A draw from a wider range is taken for a seed or a random name.
"""
WHOLE = -1
"""Key of ``WatchedDraw.limits`` that stands for all entries of the draw."""
COMPARED = " noise that was compared with a number before"
"""Suffix of the family's name for noise whose law a comparison changed."""
LENT = " noise that may have been changed in place"
"""Suffix of the family's name for noise whose numbers code may have changed."""
SHARED = " noise that entries share"
"""Suffix of the family's name for sums of draws that several entries share."""


@dataclass(slots=True, eq=False)
class WatchedDraw:
    """One call of a sampler.

    Attributes:
        number: Its place among the draws of the run.
        method: Name of the sampler, such as ``laplace``.
        law: Law of the draw without its location.
        value: Number or array that the code got. The code may change an array in place.
        site: The line that draws.
        location: Number or array that the sampler added to the draw; ``value`` includes
            it.
        used: For each entry of the draw that went into a release, the number of the
            first such release. Entries are counted flat.
        limits: Interval that contains P(U <= u) for the draw u, by the results of the
            comparisons of u with numbers; empty without comparisons. The key is the
            entry that was compared, or ``WHOLE`` if all entries were.
        drawn: Copy of an array as the sampler returned it, for replays; None for a
            number, and for a draw that is made of another one, as by rounding.
        is_lent: Whether the code got the memory of the array, as by ``view``, so that
            it may have changed the numbers.
    """

    number: int
    method: str
    law: NoiseLaw
    value: Any
    site: CodeLine
    location: Any = 0.0
    used: dict[int, int] = field(default_factory=dict)
    limits: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    drawn: Any = None
    is_lent: bool = False

    @property
    def numbers(self) -> Any:
        """The numbers that the sampler returned: the copy ``drawn``, or ``value``."""
        if self.drawn is None:
            return self.value
        return self.drawn

    def compared(self, index: Any) -> bool:
        """Return True if an entry of ``index`` may have been compared with a number."""
        if not self.limits or WHOLE in self.limits:
            return bool(self.limits)
        return not isinstance(index, int) or index in self.limits

    def earlier(self, index: Any) -> list[int]:
        """Return the numbers of the releases that first used entries of ``index``.

        The numbers ascend.
        """
        # The usual case, which needs no list of the entries.
        if not self.used:
            return []
        entries = np.ravel(index).tolist()
        return sorted({self.used[k] for k in entries if k in self.used})

    def use(self, index: Any, release: int) -> None:
        """Record the number of a release as the first use of entries of ``index``.

        Entries with an earlier use are left as they are.
        """
        # A single entry is the usual case, and numpy is slow for it.
        entries = [index] if isinstance(index, int) else np.ravel(index).tolist()
        for k in entries:
            self.used.setdefault(k, release)


@dataclass(slots=True, eq=False)
class Term:
    """Entries of a draw, each multiplied by a coefficient.

    Attributes:
        draw: The draw.
        index: Places of the entries in the draw, counted flat: a number, or an array of
            the shape of the noise.
        factor: The coefficient, a number or an array.
    """

    draw: WatchedDraw
    index: Any
    factor: Any = 1.0


DIFFERENCES = {
    "geometric": "two-sided geometric",
    "exponential": "Laplace",
    "Gumbel": "logistic",
}
"""Family of the difference of two independent draws of one law, by their family."""


def law_of(terms: tuple[Term, ...]) -> NoiseLaw:
    """Return the law of a linear form of draws.

    One term has the family of its draw. The difference of two geometric draws of one p
    is two-sided geometric, that of two exponential draws of one scale is Laplace, and
    that of two Gumbel draws is logistic. Sums of Gaussian draws are Gaussian. Any other
    form is of unknown law: its family has a name, but is not in ``FAMILIES``. So is a
    form whose draws were compared with a number, or may have been changed in place.
    """
    laws = [term.draw.law for term in terms]
    family = laws[0].family
    for term in terms:
        if term.draw.is_lent:
            return NoiseLaw(f"{family}{LENT}")
        if term.draw.limits and term.draw.compared(term.index):
            return NoiseLaw(f"{family}{COMPARED}")
    scales = [
        _times(term.factor, law.scale) for term, law in zip(terms, laws, strict=True)
    ]
    if len(terms) == 1:
        return NoiseLaw(family, scales[0], laws[0].parameter)
    families = {law.family for law in laws}
    if families == {"Gaussian"}:
        if all(ndim(scale) == 0 for scale in scales):
            return NoiseLaw("Gaussian", math.hypot(*map(float, scales)))
        return NoiseLaw("Gaussian", np.sqrt(sum(np.square(scale) for scale in scales)))
    is_pair = len(terms) == 2 and len(families) == 1 and family in DIFFERENCES
    if is_pair and same(_times(-1.0, scales[0]), scales[1]):
        parameter = laws[0].parameter
        if same(parameter, laws[1].parameter) and not _are_one(*terms):
            return NoiseLaw(DIFFERENCES[family], np.abs(scales[0]), parameter)
    return NoiseLaw(f"a sum of {len(terms)} draws ({', '.join(sorted(families))})")


def _are_one(first: Term, second: Term) -> bool:
    # Two logarithms of one uniform draw are two draws with one record of uses.
    is_same = first.draw.used is second.draw.used
    return is_same and bool(np.any(np.equal(first.index, second.index)))


def _times(factor: Any, scale: Any) -> Any:
    # A product with 1 would make a float of every whole number.
    if isinstance(factor, float) and factor == 1.0:
        return scale
    if isinstance(scale, float) and scale == 1.0:
        return factor
    return factor * scale


COIN = "coin"
"""Kind of a release: an event of known probability."""
CHOICE = "choice"
"""Kind of a release: the place of an item, drawn by a table of probabilities."""
MAXIMUM = "maximum"
"""Kind of a release: the place of the largest noisy score."""
NOISY = "noise on a value"
"""Kind of a release: a value with noise."""
ALONE = "noise alone"
"""Kind of a release: noise that the code uses by itself, as public randomness."""


@dataclass(slots=True, eq=False)
class Release:
    """A value at which noise enters, and the result.

    Attributes:
        number: Its place among the releases of the run.
        kind: ``COIN``, ``CHOICE``, ``MAXIMUM``, ``NOISY`` or ``ALONE``.
        law: Law of the noise.
        location: The value v that the noise is added to; the probability of a coin, the
            table of a choice, the scores before a maximum; None for noise alone without
            a location.
        result: The noisy number or array; the truth value of a coin; the place that a
            choice or a maximum returned.
        site: The line at which the noise enters.
        groups: For each entry of the result, a number that entries with the same draw
            share; None if no two entries share a draw.
        factor: Coefficient of the draw, if the noise has one term; else 1.
        earlier: Numbers of the earlier releases that the same draws went into.
        why: Reason for which the trace does not understand the release; empty if it
            does.
        names: Texts of the items of a choice, by their place; None if only places are
            recorded.
        recorded: On a replay, the number of the recorded release that corresponds to
            this one; None if there is none.
        terms: Terms of the noise; empty for coins and for draws that are not followed.
        of_record: Whether it is a coin that a loop tosses once for each record.
    """

    number: int
    kind: str
    law: NoiseLaw
    location: Any
    result: Any
    site: CodeLine
    groups: NDArray[np.int64] | None = None
    factor: Any = 1.0
    earlier: tuple[int, ...] = ()
    why: str = ""
    names: tuple[Any, ...] | None = None
    recorded: int | None = None
    terms: tuple[Term, ...] = ()
    of_record: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return shape_of(self.result)

    @property
    def centre(self) -> Any:
        """The value that the noise is added to, or 0 for noise alone."""
        if self.location is None:
            return 0.0
        return self.location

    @property
    def is_known(self) -> bool:
        """True if the trace knows the law, or needs none.

        It needs none for events, choices and maxima, which have tables of
        probabilities, and for understood noise alone, such as an order of rows.
        """
        is_public = self.kind == ALONE and not self.why
        has_law = self.law.known is not None or self.law.declared is not None
        return is_public or has_law or self.kind in (COIN, CHOICE, MAXIMUM)
