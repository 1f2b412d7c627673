"""Noise that remembers its draws: what watched samplers return in place of a number or an array.

It behaves as the number or the array does. Scaling, shifting, slicing, sums and differences of noise give noise; adding a
value to it gives an ordinary number or array, and that is a release; comparing it with a number is a release of an event of
known probability. Any other use ends it: from there on it is an ordinary number, released as public randomness, and the trace
says why.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from auditdp.tracing.plain import all_of, any_of, ndim, shape_of, size_of

from auditdp.tracing.draws import ALONE, CHOICE, COIN, MAXIMUM, NOISY, WHOLE, Draw, Term
from auditdp.tracing.families import FAMILIES, Law, same
from auditdp.tracing.run import Run, law_and_groups
from auditdp.tracing.sites import Site, called_by_builtin, here

COMPARISONS: dict[str, tuple[Callable[[Any, Any], Any], bool, bool]] = {
    "less": (operator.lt, True, True),
    "less_equal": (operator.le, True, False),
    "greater": (operator.gt, False, False),
    "greater_equal": (operator.ge, False, True),
}
"""By the name of numpy's function: the operator, whether small noise makes it true, and whether equality counts as large."""
ROUNDINGS = ("rint", "round", "around", "round_")
SEEN = ("is in the output", "is printed")
"""Uses that show a number as it is."""
LAZY = ("geometric", "exponential", "Gumbel", "uniform", "integer")


class Noise:
    """A linear form of draws, and perhaps a value that was added to it.

    Attributes:
        run: The run that it belongs to.
        value: The number or array that it is.
        terms: The draws.
        offset: What was added to them; None where nothing was.
        site: Where it was added; None where nothing was, or by the sampler itself.
        weight: Of noise before a maximum: ln Σ e^score over all that it was seen to exceed, itself included.
    """

    __array_priority__ = 1e9
    __pandas_priority__ = 1_000_000
    __slots__ = ("_settled", "offset", "run", "site", "terms", "value", "weight")

    def __init__(
        self, run: Run, value: Any, terms: tuple[Term, ...], offset: Any = None, site: Site | None = None
    ) -> None:
        self.run, self.value, self.terms, self.offset, self.site = run, value, terms, offset, site
        self.weight: float | None = None
        self._settled: Any = None

    # -- what ends it -------------------------------------------------------------------------------------------------

    def settle(self, why: str) -> Any:
        """Return the ordinary number or array, and note the release: of the value that was added, or of noise alone."""
        if self._settled is None:
            site = self.site or self.terms[0].draw.site
            kind = ALONE if self.offset is None else NOISY
            law, groups = law_and_groups(self.terms, shape_of(self.value))
            if law.family == "integer" or why in SEEN or (kind == NOISY and law.family not in LAZY):
                why = ""  # a choice among as many, what is shown as it is, or a value with noise, which is what is released
            self._settled = (
                self.run.release(kind, law, self.offset, self.value, site, self.terms, groups=groups, why=why),
            )
        return self._settled[0]

    # -- sums and multiples -------------------------------------------------------------------------------------------

    def _sum(self, other: Any, sign: float, reflected: bool) -> Any:
        """Return other + self, self ± other or other − self: ``sign`` is that of what is subtracted."""
        compute = operator.add if sign > 0 else operator.sub
        if self._settled is not None:
            mine, theirs = self._settled[0], other
            return compute(theirs, mine) if reflected else compute(mine, theirs)
        if isinstance(other, Noise):
            if other._settled is not None:
                return self._sum(other._settled[0], sign, reflected)
            plain = compute(self.value, other.value)
            offset = self.offset
            if other.offset is not None:
                offset = (0.0 if offset is None else offset) + sign * _number(other.offset)
            return self._made(plain, (*self.terms, *_scaled(other.terms, sign)), offset)
        if not _is_numeric(other):
            settled = self.settle("is combined with what is no number")
            return compute(other, settled) if reflected else compute(settled, other)
        if reflected and sign > 0 and type(other) is int and other == 0 and called_by_builtin():
            return self  # sum() begins with it
        plain = compute(other, self.value) if reflected else compute(self.value, other)
        terms = _scaled(self.terms, sign) if reflected else self.terms
        value = _number(other)
        before = 0.0 if self.offset is None else self.offset
        if reflected:
            offset = value + sign * before if self.offset is not None else value
        else:
            offset = before + sign * value if self.offset is not None else (value if sign > 0 else -value)
        return self._made(plain, terms, offset)

    def _made(self, plain: Any, terms: tuple[Term, ...], offset: Any) -> Any:
        """Return a new form, or the release that it is where a value was added to noise of a whole family."""
        made = Noise(self.run, plain, _joined(terms, shape_of(plain)), offset)
        if not made.terms:  # all noise has cancelled
            return plain
        if offset is None:
            return made
        made.site = self.site or here()
        law, groups = law_and_groups(made.terms, shape_of(plain))
        known = FAMILIES.get(law.family)
        if known is None and all(term.draw.law.family in LAZY for term in terms) and not any(t.draw.compared(t.index) for t in terms):
            return made
        if known is not None and not known.is_released_at_once:
            return made
        return self.run.release(NOISY, law, offset, plain, made.site, made.terms, groups=groups)

    def _times(self, other: Any, compute: Callable[[Any, Any], Any], reflected: bool, divide: bool) -> Any:
        if isinstance(other, Noise) and not divide and (made := _signed(self, other)) is not None:
            return made
        if self._settled is not None or isinstance(other, Noise) or not _is_numeric(other) or (divide and reflected):
            mine = self.settle("is multiplied with noise, or is divided by" if _is_numeric(other) else "repeats something")
            theirs = other.settle("is multiplied with noise") if isinstance(other, Noise) else other
            return compute(theirs, mine) if reflected else compute(mine, theirs)
        plain = compute(other, self.value) if reflected else compute(self.value, other)
        with np.errstate(all="ignore"):
            factor = 1 / _number(other) if divide and all_of(other) else _number(other)
            if divide and not all_of(other):
                return compute(self.settle("is divided by zero"), other)
            offset = None if self.offset is None else self.offset * factor
            return Noise(self.run, plain, _joined(_scaled(self.terms, factor), shape_of(plain)), offset, self.site)

    def __add__(self, other: Any) -> Any:
        return self._sum(other, 1.0, False)

    def __radd__(self, other: Any) -> Any:
        return self._sum(other, 1.0, True)

    def __sub__(self, other: Any) -> Any:
        return self._sum(other, -1.0, False)

    def __rsub__(self, other: Any) -> Any:
        return self._sum(other, -1.0, True)

    def __mul__(self, other: Any) -> Any:
        return self._times(other, operator.mul, False, False)

    def __rmul__(self, other: Any) -> Any:
        return self._times(other, operator.mul, True, False)

    def __truediv__(self, other: Any) -> Any:
        return self._times(other, operator.truediv, False, True)

    def __rtruediv__(self, other: Any) -> Any:
        return self._times(other, operator.truediv, True, True)

    def __neg__(self) -> Any:
        if self._settled is not None:
            return -self._settled[0]
        return Noise(self.run, -self.value, _scaled(self.terms, -1.0), None if self.offset is None else -self.offset, self.site)

    def __pos__(self) -> Any:
        return self

    # -- comparisons --------------------------------------------------------------------------------------------------

    def _compare(self, other: Any, name: str) -> Any:
        compute, small, strict = COMPARISONS[name]
        if isinstance(other, Noise):
            found = self._tournament(other, compute, small)
            if found is not None:
                return found
            other = other.settle("is compared with noise")
        event = self._event(other, small, strict)
        if event is None:
            return compute(self.settle("is compared with a number"), other)
        probability, limits, below = event
        term = self.terms[0]
        happened = self.run.release(COIN, Law("coin"), probability, compute(self.value, other), here(), ())
        if term.draw.used:  # noise that went into a release is compared as well
            self.run.traced.releases[-1].earlier = tuple(term.draw.earlier(term.index))
        is_below = happened if small == bool(all_of(_number(term.factor) * term.draw.law.scale > 0)) else np.logical_not(happened)
        is_below = is_below.numpy() if hasattr(is_below, "detach") else is_below
        low, high = limits
        term.draw.limits[term.index if isinstance(term.index, int) else WHOLE] = (
            np.where(is_below, low, np.maximum(low, below))[()],
            np.where(is_below, np.minimum(high, below), high)[()],
        )
        return happened

    def _event(self, other: Any, small: bool, strict: bool) -> tuple[Any, tuple[Any, Any], Any] | None:
        """Return the probability that a comparison is true, given earlier ones, what these leave, and P(draw below)."""
        if self._settled is not None or len(self.terms) != 1 or not _is_numeric(other):
            return None
        term, draw = self.terms[0], self.terms[0].draw
        family = draw.law.known
        if family is None or family.distribution is None or self.weight is not None:
            return None
        key = term.index if isinstance(term.index, int) else WHOLE
        if key not in draw.limits and draw.compared(term.index):
            return None
        whole = isinstance(term.index, int) or size_of(term.index) == size_of(draw.value)
        if not whole or size_of(other) > max(size_of(self.value), 1):
            return None
        with np.errstate(all="ignore"):
            scale = _number(term.factor) * draw.law.scale
            if not all_of(scale):
                return None
            offset = 0.0 if self.offset is None else self.offset
            point = (_number(other) - offset) / scale
            positive = bool(all_of(scale > 0))
            if not positive and not all_of(scale < 0):
                return None
            if family.is_whole:  # P(U < z) is P(U <= z − 1) for whole z
                takes_equal = strict == positive
                point = np.where(takes_equal, np.ceil(point - 1e-9) - 1, np.floor(point + 1e-9))[()]
            below = family.distribution(point, draw.law.parameter)
            low, high = limits = draw.limits.get(key, (0.0, 1.0))
            width = high - low
            inside = np.clip((np.clip(below, low, high) - low) / np.where(width > 0, width, 1.0), 0.0, 1.0)
            probability = inside if small == positive else 1 - inside
        return probability[()] if isinstance(probability, np.ndarray) else probability, limits, below

    def _tournament(self, other: Noise, compute: Callable[[Any, Any], Any], small: bool) -> Any:
        """Return which of two scores with Gumbel noise is larger, as an event; None where they are none.

        The larger of two is again a score with Gumbel noise, ln(e^v + e^w), independent of which one it was.
        """
        laws = [law_and_groups(noise.terms, ())[0] for noise in (self, other)]
        alike = laws[0].family == laws[1].family == "Gumbel" and same(laws[0].scale, laws[1].scale)
        if not alike or ndim(self.value) or ndim(other.value) or self._settled or other._settled:
            return None
        scale = float(laws[0].scale)
        if scale <= 0 or any(noise.weight == -math.inf for noise in (self, other)):
            return None
        mine, theirs = (
            float(0.0 if noise.offset is None else noise.offset) / scale if noise.weight is None else noise.weight
            for noise in (self, other)
        )
        larger = 1 / (1 + math.exp(min(theirs - mine, 700.0)))
        happened = self.run.release(
            COIN, Law("coin"), 1 - larger if small else larger, compute(self.value, other.value), here(), ()
        )
        winner, loser = (other, self) if bool(happened) == small else (self, other)
        winner.weight, loser.weight = float(np.logaddexp(mine, theirs)), -math.inf
        return happened

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, "less")

    def __le__(self, other: Any) -> Any:
        return self._compare(other, "less_equal")

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, "greater")

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, "greater_equal")

    def __eq__(self, other: object) -> Any:
        theirs = other.settle("is compared for equality") if isinstance(other, Noise) else other
        return self.settle("is compared for equality") == theirs

    def __ne__(self, other: object) -> Any:
        theirs = other.settle("is compared for equality") if isinstance(other, Noise) else other
        return self.settle("is compared for equality") != theirs

    def __hash__(self) -> int:
        return hash(self.settle("is a key"))

    # -- choices ------------------------------------------------------------------------------------------------------

    def searched(self, table: Any, side: str) -> Any:
        """Return the place in a table of sums of a uniform draw, as a choice; None where it is none."""
        if self._settled is not None or len(self.terms) != 1 or ndim(self.value) > 1 or ndim(table) != 1:
            return None
        draw = self.terms[0].draw
        if draw.law.family not in ("uniform", "integer") or draw.limits or draw.used:
            return None
        scale = float(_number(self.terms[0].factor) * draw.law.scale)
        if not scale > 0 or ndim(self.offset):
            return None
        points = (np.asarray(table, float) - float(self.offset or 0.0)) / scale
        if draw.law.family == "integer":
            points = points / draw.law.parameter
        chances = np.diff(np.clip(points, 0.0, 1.0), prepend=0.0, append=1.0)
        plain = np.searchsorted(table, self.value, side=side)  # type: ignore[call-overload]
        return self.run.release(CHOICE, Law("choice"), np.maximum(chances, 0.0), plain, here(), self.terms)

    def argmax(self, *arguments: Any, **keywords: Any) -> Any:
        """Return the place of the largest entry: a release of its name alone, where scores have Gumbel noise."""
        law, groups = law_and_groups(self.terms, shape_of(self.value))
        scale = np.asarray(law.scale, float)
        if (
            self._settled is not None
            or law.family != "Gumbel"
            or arguments
            or keywords
            or groups is not None
            or not scale.size
            or not all_of(scale == scale.flat[0])
            or not scale.flat[0] > 0
        ):
            return np.argmax(self.settle("is used by its order"), *arguments, **keywords)
        location = np.broadcast_to(0.0 if self.offset is None else self.offset, shape_of(self.value)).ravel()
        made = Law("Gumbel", float(scale.flat[0]))
        return self.run.release(MAXIMUM, made, location.copy(), np.argmax(self.value), here(), self.terms)

    # -- shapes -------------------------------------------------------------------------------------------------------

    def _shaped(self, change: Callable[[Any], Any]) -> Any:
        if self._settled is not None:
            settled = self._settled[0]
            return change(settled if hasattr(settled, "reshape") else np.asarray(settled))
        shape, terms = shape_of(self.value), []
        for term in self.terms:
            index = change(np.broadcast_to(term.index, shape))
            index = int(index) if ndim(index) == 0 else index
            factor = term.factor if ndim(term.factor) == 0 else change(np.broadcast_to(term.factor, shape))
            terms.append(Term(_with_law(term.draw, change, shape), index, factor))
        offset = self.offset if self.offset is None or not shape else change(np.broadcast_to(self.offset, shape))
        value = self.value if hasattr(self.value, "reshape") else np.asarray(self.value)
        return Noise(self.run, change(value), tuple(terms), offset, self.site)

    def __getitem__(self, key: Any) -> Any:
        key = key.settle("is an index") if isinstance(key, Noise) else key
        return self._shaped(lambda array: array[key])

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self.value)))

    def reshape(self, *shape: Any, **keywords: Any) -> Any:
        """Return it in another shape."""
        return self._shaped(lambda array: array.reshape(*shape, **keywords))

    def ravel(self) -> Any:
        """Return it flat."""
        return self._shaped(lambda array: array.ravel())

    flatten = ravel

    def squeeze(self, *arguments: Any, **keywords: Any) -> Any:
        """Return it without axes of one entry."""
        return self._shaped(lambda array: array.squeeze(*arguments, **keywords))

    def transpose(self, *axes: Any) -> Any:
        """Return it with other axes."""
        return self._shaped(lambda array: array.transpose(*axes))

    @property
    def T(self) -> Any:  # noqa: N802
        """Return it transposed."""
        return self._shaped(lambda array: array.T)

    def copy(self) -> Any:
        """Return the same noise."""
        return self

    def item(self, *arguments: Any) -> Any:
        """Return the only entry."""
        if self._settled is None and size_of(self.value) == 1 and not arguments:
            found = self._shaped(lambda array: array.reshape(()))
            found.value = self.value.item() if hasattr(self.value, "item") else self.value
            return found
        return self.settle("is used otherwise").item(*arguments)

    def tolist(self) -> Any:
        """Return its entries as a list."""
        if self._settled is None and ndim(self.value) == 1:
            return [entry.item() for entry in self]
        return self.settle("is used otherwise").tolist()

    def sum(self, *arguments: Any, **keywords: Any) -> Any:
        """Return the sum of the entries."""
        if self._settled is None and not arguments and not keywords and ndim(self.value) == 1 and len(self.value) <= 64:
            terms = tuple(term for k in range(len(self.value)) for term in self[k].terms)
            offset = None if self.offset is None else np.broadcast_to(self.offset, shape_of(self.value)).sum()
            return Noise(self.run, self.value.sum(), terms, offset)
        return self.settle("is summed").sum(*arguments, **keywords)

    # -- conversions --------------------------------------------------------------------------------------------------

    def as_number(self, kind: type) -> Any:
        """Return it as an ``int`` or a ``float`` that is still noise, where that changes no number of it."""
        if self._settled is None and size_of(self.value) == 1 and (kind is float or self._is_whole()):
            scalar = self if ndim(self.value) == 0 else self._shaped(lambda array: np.reshape(array, ()))
            return Noise(self.run, kind(self.value), scalar.terms, scalar.offset, self.site)
        return kind(self.settle("is rounded"))

    def _is_whole(self) -> bool:
        """Whether noise is whole by its family, and what was added and multiplied is."""
        whole = all(
            term.draw.law.family in ("geometric", "integer", "binomial", "rounded Laplace")
            and all_of(np.asarray(term.factor) == np.rint(term.factor))
            for term in self.terms
        )
        return whole and (self.offset is None or bool(all_of(self.offset == np.rint(self.offset))))

    def rounded(self, plain: Any) -> Any:
        """Return it rounded to whole numbers: whole noise as it is, Laplace noise as that of another family."""
        if self._settled is not None:
            return None
        if self._is_whole():
            return Noise(self.run, plain, self.terms, self.offset, self.site)
        term, law = self.terms[0], law_and_groups(self.terms, ())[0]
        if law.family == "Laplace" and len(self.terms) == 1 and self.offset is None and not term.draw.used:
            draw = term.draw
            made = Draw(draw.number, draw.method, Law("rounded Laplace", 1.0, np.abs(law.scale)), plain, draw.site, 0.0, draw.used)
            return Noise(self.run, plain, (Term(made, term.index),))
        return None

    def __round__(self, digits: int | None = None) -> Any:
        found = self.rounded(round(self.value)) if digits is None else None
        return found if found is not None else round(self.settle("is rounded"), digits)

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """Return it rounded."""
        found = self.rounded(self.value.round()) if not decimals and out is None else None
        return found if found is not None else self.settle("is rounded").round(decimals, out)

    def astype(self, dtype: Any, *arguments: Any, **keywords: Any) -> Any:
        """Return it as another type that holds the same numbers; else it is an array from there on."""
        target = np.dtype(dtype)
        if self._settled is None and not arguments and not keywords:
            if (target == np.float64) or (target.kind == "i" and target.itemsize == 8 and self._is_whole()):
                return Noise(self.run, self.value.astype(target), self.terms, self.offset, self.site)
        return self.settle("is converted").astype(dtype, *arguments, **keywords)

    def __float__(self) -> float:
        return float(self.settle("is converted to a float"))

    def __int__(self) -> int:
        return int(self.settle("is converted to an int"))

    def __index__(self) -> int:
        return operator.index(self.settle("is an index or a count"))

    def __bool__(self) -> bool:
        return bool(self.settle("is a truth value"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.settle("is converted to an array"), dtype=dtype)

    def __repr__(self) -> str:
        return repr(self.settle("is printed"))

    def __str__(self) -> str:
        return str(self.settle("is printed"))

    def __format__(self, form: str) -> str:
        return format(self.settle("is printed"), form)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of what others look for in types of their own
            raise AttributeError(name)
        if name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize"):
            return getattr(self.value, name)
        return getattr(self.settle(f"is used by .{name}"), name)

    def __reduce__(self) -> Any:
        return (_itself, (self.settle("is copied"),))

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        from auditdp.tracing.numpy_functions import ufunc

        return ufunc(function, method, inputs, keywords)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        from auditdp.tracing.torch_functions import torch_function

        return torch_function(function, arguments, keywords or {})

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        from auditdp.tracing.numpy_functions import array_function

        return array_function(function, arguments, keywords)


def _ending(name: str, function: Callable[..., Any], *, reflected: bool = False) -> Callable[..., Any]:
    """Return an operator that ends noise: it is an ordinary number for it."""

    def operate(self: Noise, *others: Any) -> Any:
        plain = [other.settle("is computed with") if isinstance(other, Noise) else other for other in others]
        mine = self.settle(f"is used by {name}")
        return function(*plain, mine) if reflected else function(mine, *plain)

    return operate


for _name in ("floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift", "divmod"):
    _function = divmod if _name == "divmod" else getattr(operator, f"__{_name}__")
    setattr(Noise, f"__{_name}__", _ending(_name, _function))
    setattr(Noise, f"__r{_name}__", _ending(_name, _function, reflected=True))
def _folded(noise: Noise) -> Any:
    """Return |noise|: of a uniform draw around 0 a uniform one of half the width."""
    term, draw = noise.terms[0], noise.terms[0].draw
    law = law_and_groups(noise.terms, shape_of(noise.value))[0]
    if noise._settled is None and law.family == "uniform" and len(noise.terms) == 1 and noise.offset is not None and not draw.used:
        width = np.abs(law.scale)
        if same(2 * noise.offset, -law.scale):
            made = Draw(draw.number, draw.method, Law("uniform", width / 2), draw.value, draw.site, 0.0, draw.used)
            return Noise(noise.run, abs(noise.value), (Term(made, term.index),))
    return abs(noise.settle("is used by abs"))


def sign_of(noise: Noise) -> Noise | None:
    """Return the sign of a uniform draw around 0, which may make an exponential one Laplace noise; None of other noise."""
    term, draw = noise.terms[0], noise.terms[0].draw
    law = law_and_groups(noise.terms, shape_of(noise.value))[0]
    if noise._settled is not None or law.family != "uniform" or noise.offset is None or draw.used:
        return None
    if not same(2 * noise.offset, -law.scale):
        return None
    made = Draw(draw.number, draw.method, Law("sign"), draw.value, draw.site, 0.0, draw.used)
    return Noise(noise.run, np.sign(noise.value), (Term(made, term.index),))


Noise.__abs__ = _folded  # type: ignore[attr-defined]
for _name, _function in {
    "invert": operator.invert,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "complex": complex,
}.items():
    setattr(Noise, f"__{_name}__", _ending(_name, _function))


def _signed(first: Noise, second: Noise) -> Noise | None:
    """Return an exponential draw times the sign of the uniform one that it was made of: Laplace noise; None of others."""
    laws = [noise.terms[0].draw.law.family for noise in (first, second)]
    if sorted(laws) != ["exponential", "sign"] or len(first.terms) + len(second.terms) > 2:
        return None
    size, sign = (first, second) if laws[0] == "exponential" else (second, first)
    term, draw = size.terms[0], size.terms[0].draw
    if draw.used is not sign.terms[0].draw.used or size.offset is not None or first._settled or second._settled:
        return None
    scale = np.abs(term.factor * sign.terms[0].factor * draw.law.scale)
    made = Draw(draw.number, draw.method, Law("Laplace", scale), draw.value, draw.site, 0.0, draw.used)
    return Noise(first.run, first.value * second.value, (Term(made, term.index),))


def _itself(value: Any) -> Any:
    return value


def _number(value: Any) -> Any:
    """Return a value as numpy computes with it: Decimal and Fraction as floats, of complex numbers the real part."""
    if isinstance(value, int | float):
        return value
    if isinstance(value, complex):
        return value.real
    if isinstance(value, np.ndarray | np.generic):
        array = value.real if value.dtype.kind == "c" else value
        return array.astype(np.float64) if array.dtype.kind in "bu" or array.dtype == object else array
    if isinstance(value, list | tuple):
        return np.asarray(value, float)
    if hasattr(value, "to_numpy"):
        return value.to_numpy()
    if hasattr(value, "detach"):
        return value.detach().cpu().double().numpy()[()]
    return float(value)


def _is_numeric(value: Any) -> bool:
    """Return whether arithmetic with a value is that of numbers."""
    if isinstance(value, bool | int | float | complex):
        return True
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "biufc"
    if isinstance(value, list | tuple):
        return False
    return type(value).__name__ in ("Decimal", "Fraction", "Series", "DataFrame") or hasattr(value, "detach")


def _scaled(terms: tuple[Term, ...], factor: Any) -> tuple[Term, ...]:
    if isinstance(factor, float) and factor == 1.0:
        return terms
    return tuple(Term(term.draw, term.index, term.factor * factor) for term in terms)


def _joined(terms: tuple[Term, ...], shape: tuple[int, ...]) -> tuple[Term, ...]:
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


def _with_law(draw: Draw, change: Callable[[Any], Any], shape: tuple[int, ...]) -> Draw:
    """Return a draw whose scale, where it is an array, follows a change of shape."""
    law = draw.law
    if law.known is None or (ndim(law.scale) == 0 and ndim(law.parameter) == 0):
        return draw
    scale, parameter = (
        part if ndim(part) == 0 else change(np.broadcast_to(part, shape)) for part in (law.scale, law.parameter)
    )
    return Draw(draw.number, draw.method, Law(law.family, scale, parameter), draw.value, draw.site, draw.location, draw.used)
