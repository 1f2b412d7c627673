"""What a trace keeps: draws, the linear forms that code makes of them, and releases."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.tracing.noise_families import NoiseLaw, same
from auditdp.tracing.plain_values import ndim, shape_of
from auditdp.tracing.sites import CodeLine

LARGEST = 2**24
"""Integers of a wider range are seeds and names, not noise."""
WHOLE = -1
"""Stands for all entries of a draw."""


COMPARED = " noise that was compared with a number before"
"""What follows the name of a family whose noise is conditioned by a comparison."""
LENT = " noise that may have been changed in place"
"""What follows the name of a family whose noise code may have changed."""
SHARED = " noise that entries share"
"""What follows the name of a family of which one draw is in sums of several entries."""


@dataclass(slots=True, eq=False)
class WatchedDraw:
    """One call of a sampler.

    Attributes:
        number: Its place among the draws of the run.
        method: The sampler, as the caller's code names it.
        law: Of the draw without its location.
        value: What it returned.
        site: The line.
        location: What the sampler added to the draw.
        used: For every entry of it, the first release that it went into; none yet where that is absent.
        limits: For every entry that was compared with a number, what P(U <= u) lies between by that; under ``WHOLE``
            for all.
        drawn: A copy of an array that it returned, for replays: code may change that in place.
        is_lent: Whether code got the memory of the array, as by ``view``, so that its numbers may be others since.
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
        """What it returned, as it was then."""
        return self.value if self.drawn is None else self.drawn

    def compared(self, index: Any) -> bool:
        """Return whether some entries were compared with a number before."""
        if not self.limits:
            return False
        return (
            WHOLE in self.limits or not isinstance(index, int) or index in self.limits
        )

    def earlier(self, index: Any) -> list[int]:
        """Return the releases that some entries went into already."""
        if not self.used:
            return []
        if isinstance(index, int):
            return [self.used[index]] if index in self.used else []
        return sorted(
            {self.used[k] for k in np.ravel(index).tolist() if k in self.used}
        )

    def use(self, index: Any, release: int) -> None:
        """Note that some entries go into a release."""
        for k in (index,) if isinstance(index, int) else np.ravel(index).tolist():
            self.used.setdefault(k, release)


@dataclass(slots=True, eq=False)
class Term:
    """Entries of a draw, each multiplied by a coefficient.

    Attributes:
        draw: The draw.
        index: Places of the entries in the draw, counted flat: a number, or an array of the shape of the noise.
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
"""The family of the difference of two independent draws of one law."""


def law_of(terms: tuple[Term, ...]) -> NoiseLaw:
    """Return the law of a linear form of draws, by the sampler's name where it is not followed.

    One term has the family of its draw. The difference of two geometric draws of one p is two-sided geometric, that of two
    exponential ones of one scale Laplace, that of two Gumbel ones logistic; sums of Gaussian draws are Gaussian.
    """
    laws = [term.draw.law for term in terms]
    family = laws[0].family
    if any(term.draw.is_lent for term in terms):
        return NoiseLaw(f"{family}{LENT}")
    if any(term.draw.compared(term.index) for term in terms):
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
        if same(parameter, laws[1].parameter) and not _is_one(*terms):
            return NoiseLaw(DIFFERENCES[family], np.abs(scales[0]), parameter)
    return NoiseLaw(f"a sum of {len(terms)} draws ({', '.join(sorted(families))})")


def _is_one(first: Term, second: Term) -> bool:
    """Return whether two terms are made of one draw, as two logarithms of one uniform draw are."""
    return first.draw.used is second.draw.used and bool(
        np.any(np.equal(first.index, second.index))
    )


def _times(a: Any, b: Any) -> Any:
    return (
        b
        if isinstance(a, float) and a == 1.0
        else a
        if isinstance(b, float) and b == 1.0
        else a * b
    )


COIN, CHOICE, MAXIMUM, NOISY, ALONE = (
    "coin",
    "choice",
    "maximum",
    "noise on a value",
    "noise alone",
)
"""Kinds of releases: an event of known probability, a name by a table of probabilities, the name of the largest noisy
score, a value with noise, and noise that the code uses by itself, as public randomness."""


@dataclass(slots=True, eq=False)
class Release:
    """A value at which noise enters, and what came out.

    Attributes:
        number: Its place among the releases of the run.
        kind: One of the kinds above.
        law: The law of the noise.
        location: The value v that the noise is added to; the probability of a coin, the table of a choice, the scores
            before a maximum; None for noise alone without a location.
        result: What came out: a number or an array; a truth value; a place in the table.
        site: The line.
        groups: Where one draw is shared by several entries, the number of the draw's entry for each; else None.
        factor: What the draws are multiplied by, where there is one draw.
        earlier: Releases that the same draws went into before.
        why: Why noise alone was taken for public randomness, where the trace does not understand it.
        names: What the places of a choice stand for; None where they stand for themselves.
        label: What tells the passes of a loop apart, where that was seen.
        recorded: On a replay the number of the recorded release whose result it got; None where it got none.
        terms: The draws.
        of_record: Whether it is a coin that is tossed once for each record.
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
    label: str = ""
    recorded: int | None = None
    terms: tuple[Term, ...] = ()
    of_record: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return shape_of(self.result)

    @property
    def centre(self) -> Any:
        """The value that the noise is added to; 0 where there is none."""
        return 0.0 if self.location is None else self.location

    @property
    def is_known(self) -> bool:
        """Whether the trace knows the law, or the draw is one that the code treats as public, such as an order of rows."""
        public = self.kind == ALONE and not self.why
        has_law = self.law.known is not None or self.law.declared is not None
        return public or self.kind in (COIN, CHOICE, MAXIMUM) or has_law
