"""Noise that remembers its draws: what watched samplers return in place of a number or an array.

It behaves as the number or the array does. Scaling, shifting, slicing, sums and differences of noise give noise; adding a
value to it gives an ordinary number or array, and that is a release; comparing it with a number is a release of an event of
known probability. Any other use ends it: from there on it is an ordinary number, released as public randomness, and
the trace says why.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from auditdp.tracing.draws import LARGEST, NOISY, Term, WatchedDraw
from auditdp.tracing.event_comparisons import compare, largest
from auditdp.tracing.linear_forms import (
    LAZY,
    folded,
    is_numeric,
    joined,
    number,
    rounded,
    scaled,
    signed,
)
from auditdp.tracing.plain_values import all_of, any_of, ndim, put_at, shape_of, size_of
from auditdp.tracing.shapes import ShapedForm
from auditdp.tracing.sites import called_by_builtin, here
from auditdp.tracing.watched_run import WatchedRun

LENDING = ("view", "data", "flat", "fill", "sort", "partition", "put", "resize")
"""Attributes of an array by which code can change its numbers in place."""
WRITTEN = "is written into an array"


class Noise(ShapedForm):
    """A linear form of draws that behaves as the number or the array that it is."""

    __array_priority__ = 1e9
    __pandas_priority__ = 1_000_000
    __slots__ = ()

    @property
    def requires_grad(self) -> Any:
        """Whether it is a tensor that has a gradient."""
        return self.value.requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.settle("").requires_grad = wanted

    @property
    def __class__(self) -> Any:
        """The type that code sees which asks ``isinstance(x, float)``."""
        kind = type(self.value)
        return (
            Noise if hasattr(kind, "aval") else kind
        )  # jax leaves operators to what it does not know

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise TypeError(f"the type of a number cannot be set to {kind!r}")

    # -- sums and multiples -------------------------------------------------------------------------------------------

    def _sum(self, other: Any, sign: float, reflected: bool, held: bool = False) -> Any:
        """Return other + self, self ± other or other − self: ``sign`` is that of what is subtracted."""
        compute = operator.add if sign > 0 else operator.sub
        if self.settled is not None:
            mine, theirs = self.settled[0], other
            return compute(theirs, mine) if reflected else compute(mine, theirs)
        if isinstance(other, Noise):
            if other.settled is not None:
                return self._sum(other.settled[0], sign, reflected, held)
            plain = compute(self.value, other.value)
            offset = self.offset
            if other.offset is not None:
                offset = (0.0 if offset is None else offset) + sign * number(
                    other.offset
                )
            return self.made(
                plain, (*self.terms, *scaled(other.terms, sign)), offset, held
            )
        if isinstance(other, list | tuple) and isinstance(self.value, np.ndarray):
            other = np.asarray(other)
        if not is_numeric(other):
            settled = self.settle("is combined with what is no number")
            return compute(other, settled) if reflected else compute(settled, other)
        if (
            reflected
            and sign > 0
            and type(other) is int
            and other == 0
            and called_by_builtin()
        ):
            return self  # sum() begins with it
        plain = compute(other, self.value) if reflected else compute(self.value, other)
        terms = scaled(self.terms, sign) if reflected else self.terms
        value = (
            np.copy(kept) if isinstance(kept := number(other), np.ndarray) else kept
        )  # code may add noise in place
        before = 0.0 if self.offset is None else self.offset
        if reflected:
            offset = value + sign * before if self.offset is not None else value
        else:
            offset = (
                before + sign * value
                if self.offset is not None
                else (value if sign > 0 else -value)
            )
        return self.made(plain, terms, offset, held)

    def made(
        self, plain: Any, terms: tuple[Term, ...], offset: Any, held: bool = False
    ) -> Any:
        """Return a new form, or the release that it is where a value was added to noise of a whole family.

        Where it is ``held`` that is at its first use.
        """
        made = Noise(self.run, plain, joined(terms, shape_of(plain)), offset)
        if not made.terms:  # all noise has cancelled
            return plain
        if offset is None:
            return made
        made.site = self.site or here()
        if made.site in self.run.traced.constants:
            return made
        law, groups = made.law_and_groups()
        known = law.known
        lazy = (
            term.draw.law.family in LAZY and not term.draw.compared(term.index)
            for term in terms
        )
        if all(lazy) if known is None else known.is_part:
            return made
        if held and known is not None:
            made.is_held = True
            return made
        return self.run.release(
            NOISY, law, offset, plain, made.site, made.terms, groups=groups
        )

    def _times(
        self,
        other: Any,
        compute: Callable[[Any, Any], Any],
        reflected: bool,
        divide: bool,
    ) -> Any:
        if (
            isinstance(other, Noise)
            and not divide
            and (made := signed(self, other)) is not None
        ):
            return made
        if (
            self.settled is not None
            or isinstance(other, Noise)
            or not is_numeric(other)
            or (divide and reflected)
        ):
            numeric = is_numeric(other)
            mine = self.settle(
                "is multiplied with noise, or is divided by"
                if numeric
                else "repeats something"
            )
            theirs = (
                other.settle("is multiplied with noise")
                if isinstance(other, Noise)
                else other
            )
            return compute(theirs, mine) if reflected else compute(mine, theirs)
        plain = compute(other, self.value) if reflected else compute(self.value, other)
        with np.errstate(all="ignore"):
            by = number(other)
            factor = 1 / by if divide and all_of(by) else by
            if divide and not all_of(by):
                return compute(self.settle("is divided by zero"), other)
            offset = None if self.offset is None else self.offset * factor
            return Noise(
                self.run,
                plain,
                joined(scaled(self.terms, factor), shape_of(plain)),
                offset,
                self.site,
            )

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _product(other, self)

    def __neg__(self) -> Any:
        if self.settled is not None:
            return -self.settled[0]
        offset = None if self.offset is None else -self.offset
        return Noise(self.run, -self.value, scaled(self.terms, -1.0), offset, self.site)

    def __pos__(self) -> Any:
        return self

    def become(self, result: Any) -> Any:
        """Return it after it was changed in place, memory and all, into a result, which is noise or what was released."""
        if type(result) is Noise and result._settled is None and self._settled is None:
            self.terms, self.offset, self.site = (
                result.terms,
                result.offset,
                result.site,
            )
            self.is_held = result.is_held
            write(self.value, result.value)
            return self
        plain = result.settle(WRITTEN) if type(result) is Noise else result
        self._settled = self._settled or (self.value,)
        return write(self._settled[0], plain)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.overwrite(value, put_at(key))

    def overwrite(self, content: Any, put: Callable[[Any, Any], Any]) -> None:
        """Write numbers or noise into it, by a function of two arrays."""
        from auditdp.tracing.mixed_values import overwritten

        made = overwritten(self, content, put) if self.settled is None else None
        if made is not None:
            self.become(made if any_of(made.law.scale) else made.value)
        else:
            why = "is changed in place"
            put(
                self.settle(why),
                content.settle(why) if isinstance(content, Noise) else content,
            )

    def __eq__(self, other: object) -> Any:
        theirs = (
            other.settle("is compared for equality")
            if isinstance(other, Noise)
            else other
        )
        return self.settle("is compared for equality") == theirs

    def __ne__(self, other: object) -> Any:
        theirs = (
            other.settle("is compared for equality")
            if isinstance(other, Noise)
            else other
        )
        return self.settle("is compared for equality") != theirs

    def argmax(self, *arguments: Any, **keywords: Any) -> Any:
        """Return the place of the largest entry."""
        return largest(self, *arguments, **keywords)

    # -- conversions --------------------------------------------------------------------------------------------------

    def as_number(self, kind: type) -> Any:
        """Return it as an ``int`` or a ``float`` that is still noise, where that changes no number of it."""
        if (
            self.settled is None
            and size_of(self.value) == 1
            and (kind is float or self.is_whole)
        ):
            scalar = (
                self
                if ndim(self.value) == 0
                else self.shaped(lambda array: np.reshape(array, ()))
            )
            return Noise(
                self.run, kind(self.value), scalar.terms, scalar.offset, self.site
            )
        return kind(self.settle("is rounded"))

    def __round__(self, digits: int | None = None) -> Any:
        found = rounded(self, round(self.value)) if digits is None else None
        return found if found is not None else round(self.settle("is rounded"), digits)

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """Return it rounded."""
        found = (
            rounded(self, self.value.round()) if not decimals and out is None else None
        )
        return (
            found
            if found is not None
            else self.settle("is rounded").round(decimals, out)
        )

    def astype(self, dtype: Any, *arguments: Any, **keywords: Any) -> Any:
        """Return it as another type that holds the same numbers; else it is an array from there on."""
        target = np.dtype(dtype)
        same_numbers = target.kind == "f" or (
            target.kind == "i" and target.itemsize == 8 and self.is_whole
        )
        if self.settled is None and not arguments and not keywords and same_numbers:
            self.run.traced.coarse |= target.itemsize < self.value.dtype.itemsize
            return self.copied(self.value.astype(target))
        return self.settle("is converted").astype(dtype, *arguments, **keywords)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.settle("is converted to an array"), dtype=dtype)

    def __format__(self, form: str) -> str:
        return format(self.settle("is printed"), form)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of what others look for in types of their own
            raise AttributeError(name)
        if name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize"):
            return getattr(self.value, name)
        if name == "clip":
            return lambda low=None, high=None: np.clip(self, low, high)
        if hasattr(self.value, "detach") and self.settled is None:
            from auditdp.tracing.tensor_functions import (
                DESCRIBING,
                METHODS,
                torch_function,
            )

            if name in DESCRIBING:
                return getattr(self.value, name)
            if name == "data":
                return self.copied(self.value.data)
            if name == "numpy":
                return lambda **keywords: self.copied(self.value.numpy(**keywords))
            if name in METHODS:
                method = getattr(type(self.value), name)
                return lambda *arguments, **keywords: torch_function(
                    method, (self, *arguments), keywords
                )
        if (
            name in ("cumsum", "dot", "mean")
            and isinstance(self.value, np.ndarray)
            and self.settled is None
        ):
            return partial(getattr(np, name), self)
        settled = self.settle(
            "" if name == "requires_grad_" else f"is used by .{name}"
        )  # parameters are public
        if name in LENDING:
            for term in self.terms:
                term.draw.is_lent = True
        return getattr(settled, name)

    def __reduce__(self) -> Any:
        return (_itself, (self.settle("is copied"),))

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __array_ufunc__(
        self, function: Any, method: str, *inputs: Any, **keywords: Any
    ) -> Any:
        from auditdp.tracing.array_functions import ufunc

        return ufunc(function, method, inputs, keywords)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, arguments: Any = (), keywords: Any = None
    ) -> Any:
        from auditdp.tracing.tensor_functions import torch_function

        return torch_function(function, arguments, keywords or {})

    def __array_function__(
        self, function: Any, types: Any, arguments: Any, keywords: Any
    ) -> Any:
        from auditdp.tracing.array_functions import array_function

        return array_function(function, arguments, keywords)


def _ending(
    name: str, function: Callable[..., Any], *, reflected: bool = False
) -> Callable[..., Any]:
    """Return an operator that ends noise: it is an ordinary number for it."""

    def operate(self: Noise, *others: Any) -> Any:
        plain = [
            other.settle("is computed with") if isinstance(other, Noise) else other
            for other in others
        ]
        mine = self.settle(f"is used by {name}")
        return function(*plain, mine) if reflected else function(mine, *plain)

    return operate


def _operator(compute: Callable[..., Any], *given: Any) -> Callable[[Any, Any], Any]:
    """Return an operator of two by a function that takes more."""
    return lambda self, other: compute(self, other, *given)


def _conversion(function: Callable[[Any], Any], why: str) -> Callable[[Any], Any]:
    """Return what ends noise as an ordinary number."""
    return lambda self: function(self.settle(why))


for _name, _sign in (("add", 1.0), ("sub", -1.0)):
    setattr(Noise, f"__{_name}__", _operator(Noise._sum, _sign, False))
    setattr(Noise, f"__r{_name}__", _operator(Noise._sum, _sign, True))
for _name, _function in (("mul", operator.mul), ("truediv", operator.truediv)):
    setattr(
        Noise,
        f"__{_name}__",
        _operator(Noise._times, _function, False, _name == "truediv"),
    )
    setattr(
        Noise,
        f"__r{_name}__",
        _operator(Noise._times, _function, True, _name == "truediv"),
    )
for _name, _comparison in (
    ("lt", "less"),
    ("le", "less_equal"),
    ("gt", "greater"),
    ("ge", "greater_equal"),
):
    setattr(Noise, f"__{_name}__", _operator(compare, _comparison))
_CONVERSIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "hash": (hash, "is a key"),
    "float": (float, "is converted to a float"),
    "int": (int, "is converted to an int"),
    "index": (operator.index, "is an index or a count"),
    "bool": (bool, "is a truth value"),
    "repr": (repr, "is printed"),
    "str": (str, "is printed"),
}
for _name, (_convert, _why) in _CONVERSIONS.items():
    setattr(Noise, f"__{_name}__", _conversion(_convert, _why))
for _name in (
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
    "divmod",
):
    _function = divmod if _name == "divmod" else getattr(operator, f"__{_name}__")
    setattr(Noise, f"__{_name}__", _ending(_name, _function))
    setattr(Noise, f"__r{_name}__", _ending(_name, _function, reflected=True))


def _product(first: Any, second: Any) -> Any:
    """Return the product of two matrices, one of them noise, and the other one perhaps sparse."""
    from auditdp.tracing.array_functions import plainly, through

    torch = sys.modules.get("torch")
    if torch is not None and (
        isinstance(first, torch.Tensor) or isinstance(second, torch.Tensor)
    ):
        return torch.matmul(first, second)
    found = through(operator.matmul, (first, second), {})
    return (
        plainly(operator.matmul, (first, second), {}, "matmul")
        if found is None
        else found
    )


def _in_place(name: str) -> Callable[..., Any]:
    """Return an operator such as ``+=``: of an array it changes the memory, which others may look at.

    Values may be added one after another, as in a loop over records: what is released is their sum.
    """
    sign = {"add": 1.0, "sub": -1.0}.get(name)

    def operate(self: Noise, other: Any) -> Any:
        settled = self.settled if sign is None else self._settled
        if settled is not None:
            return getattr(operator, f"i{name}")(settled[0], other)
        self.is_held = False
        made = (
            getattr(operator, name)(self, other)
            if sign is None
            else self._sum(other, sign, False, held=True)
        )
        return (
            self.become(made)
            if isinstance(self.value, np.ndarray) or hasattr(self.value, "detach")
            else made
        )

    return operate


for _name in ("add", "sub", "mul", "truediv"):
    setattr(Noise, f"__i{_name}__", _in_place(_name))


Noise.__abs__ = folded  # type: ignore[attr-defined]
_ENDING: dict[str, Callable[..., Any]] = {
    "invert": operator.invert,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "complex": complex,
}
for _name, _function in _ENDING.items():
    setattr(Noise, f"__{_name}__", _ending(_name, _function))


def _itself(value: Any) -> Any:
    return value


def write(target: Any, numbers: Any) -> Any:
    """Return an array or a tensor once numbers are written into it."""
    if not hasattr(target, "detach"):
        np.copyto(target, numbers, casting="same_kind")
        return target
    with sys.modules["torch"].no_grad():
        return target.copy_(numbers)


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "negative": operator.neg,
    "positive": operator.pos,
    **dict.fromkeys(("subtract", "sub"), operator.sub),
    **dict.fromkeys(("multiply", "mul"), operator.mul),
    **dict.fromkeys(("divide", "true_divide", "div"), operator.truediv),
}
"""By the names of functions of numpy, of torch and of jax."""
REFLECTED: dict[Callable[..., Any], str] = {
    operator.add: "__radd__",
    operator.sub: "__rsub__",
    operator.mul: "__rmul__",
    operator.truediv: "__rtruediv__",
}


def operated(compute: Callable[..., Any], first: Any, *second: Any) -> Any:
    """Apply an operator by the method of the noise, so that whose function it is is not asked again."""
    return (
        compute(first, *second)
        if isinstance(first, Noise)
        else getattr(second[0], REFLECTED[compute])(first)
    )


def places_of(value: Any) -> Any:
    """Return the places of the entries of a draw, counted flat, in its shape."""
    shape = tuple(shape_of(value))
    return np.arange(math.prod(shape)).reshape(shape) if shape else 0


def noise_of(run: WatchedRun, draw: WatchedDraw, location: Any = None) -> Any:
    """Return what the caller's code is to see of a draw: noise, or the release that it is where a location was added."""
    noise, known = (
        Noise(run, draw.value, (Term(draw, places_of(draw.value)),), location),
        draw.law.known,
    )
    if draw.law.family == "integer" and any_of(draw.law.parameter > LARGEST):
        return noise.settle("")
    return (
        noise.settle("")
        if location is not None and known is not None and not known.is_part
        else noise
    )


def settled(values: Sequence[Any]) -> list[Any]:
    """Return the arguments of a draw, ordinary numbers where they are noise."""
    return [
        value.settle("is a parameter of a draw") if isinstance(value, Noise) else value
        for value in values
    ]
