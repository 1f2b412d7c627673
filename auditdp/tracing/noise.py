"""Noise that remembers its draws, in place of the number or array of a sampler.

It behaves as the number or the array does. Multiples, slices, sums and differences of
noise are noise. The sum of noise and a value is an ordinary number or array, and it is
a release. A comparison of noise with a number releases an event of known probability.
Any other use *ends* the noise: from then on the code gets an ordinary number, and the
trace records a release with the reason.

Functions of numpy and torch pass through `apply`, which looks up a rule by the name of
the function. Other modules fill the table of rules, so that this module imports none of
them.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from auditdp.tracing.draws import ALONE, COIN, MAX_NOISE_RANGE, NOISY, Term, WatchedDraw
from auditdp.tracing.event_comparisons import compare
from auditdp.tracing.linear_forms import (
    LAZY,
    Form,
    is_numeric,
    joined,
    number,
    scaled,
    signed,
    with_law,
)
from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.plain_values import (
    all_of,
    any_of,
    ndim,
    placed,
    rebuilt,
    shape_of,
    size_of,
)
from auditdp.tracing.sites import called_by_builtin, here
from auditdp.tracing.watched_run import WatchedRun


class Call(NamedTuple):
    """A call of a library function that has noise among its arguments.

    Attributes:
        function: The function, which takes ordinary numbers and arrays.
        given: Its positional arguments. Noise that has ended is replaced by its number.
        options: Its keyword arguments.
    """

    function: Callable[..., Any]
    given: Sequence[Any]
    options: Mapping[str, Any]

    @property
    def noise(self) -> Noise | None:
        """The first argument if it is noise, else None."""
        first = next(iter(self.given), None)
        if type(first) is Noise:
            return first
        return None

    @property
    def is_of_one(self) -> bool:
        """True if the call has one argument."""
        return len(self.given) == 1 and not self.options

    def of(self, entries: Any) -> Any:
        """Return the function's result with ``entries`` in place of the first argument.

        Other arguments that are noise are passed as ordinary numbers or arrays.
        """
        others = [value_of(other) for other in self.given[1:]]
        return self.function(entries, *others, **self.options)


Rule = Callable[[Call], Any]
"""Function that returns the result of a call, or None if it cannot follow the noise."""
RULES: dict[str, Rule] = {}
"""The rule of each followed function or method, by its name.

Names of operators and of torch's functions have no underscores at their ends.
"""
ADAPTERS: dict[str, Callable[..., Any]] = {}
"""The function that applies torch functions to noise, under the key "torch".

`tensor_functions` sets it, so that this module does not import it.
"""
DESCRIBING = frozenset(
    (
        "device",
        "dim",
        "dtype",
        "grad",
        "grad_fn",
        "is_cuda",
        "is_floating_point",
        "is_leaf",
        "is_sparse",
        "itemsize",
        "layout",
        "len",
        "nbytes",
        "ndim",
        "numel",
        "requires_grad",
        "shape",
        "size",
        "stride",
    )
)
"""Attributes and functions that reveal no entry of an array or a tensor."""
LENDING = ("view", "data", "flat", "fill", "sort", "partition", "put", "resize")
"""Attributes of an array by which code can change its numbers in place."""
WRITTEN = "is written into an array"


class Noise(Form):
    """A linear form of draws that behaves as a number or an array.

    Its attribute ``value`` is that number or array.
    """

    __array_priority__ = 1e9
    __pandas_priority__ = 1_000_000
    __slots__ = ()

    @property
    def __class__(self) -> Any:
        """The type of ``value``, which ``isinstance`` in watched code then finds.

        For an array of jax it is ``Noise``.
        """
        kind = type(self.value)
        # An array of jax leaves an operator to another type only if it does not know
        # the type.
        if hasattr(kind, "aval"):
            return Noise
        return kind

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise TypeError(f"the type of a number cannot be set to {kind!r}")

    @property
    def requires_grad(self) -> Any:
        """The attribute ``requires_grad`` of the tensor; setting it ends the noise."""
        return self._now.requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.settle("").requires_grad = wanted

    @property
    def _now(self) -> Any:
        """The released number or array if the noise has ended, else ``value``.

        Reading it does not end the noise.
        """
        if self._settled:
            return self._settled[0]
        return self.value

    # -- entries -----------------------------------------------------------------------

    def shaped(self, change: Callable[[Any], Any]) -> Any:
        """Return noise with its entries moved, repeated or selected.

        Args:
            change: A function that moves, repeats or selects the entries of an array.
        """
        shape = shape_of(self.value)
        terms = []
        for term in self.terms:
            index = change(np.broadcast_to(term.index, shape))
            if ndim(index) == 0:
                index = int(index)
            factor = term.factor
            if ndim(factor):
                factor = change(np.broadcast_to(factor, shape))
            terms.append(Term(with_law(term.draw, change, shape), index, factor))
        offset = self.offset
        if offset is not None and shape:
            offset = change(np.broadcast_to(offset, shape))
        value = self.value
        # A number of Python has no entries to move.
        if not hasattr(value, "reshape"):
            value = np.asarray(value)
        return Noise(self.run, change(value), tuple(terms), offset, self.site)

    def laid(self, change: Callable[[Any], Any]) -> Any:
        """Return noise with its entries moved, repeated or selected.

        Args:
            change: A function that moves, repeats or selects the entries of an array.
                It may also split the array into a list or a tuple of arrays.

        Returns:
            Noise, or a list or tuple of noise if ``change`` splits arrays.
        """
        parts = change(self.value)
        if not isinstance(parts, list | tuple):
            return self.shaped(change)
        return type(parts)(
            self.shaped(partial(_part_of, change, k)) for k in range(len(parts))
        )

    def copied(self, value: Any) -> Any:
        """Return noise of the same draws whose number or array is ``value``."""
        return Noise(self.run, value, self.terms, self.offset, self.site)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Form):
            key = key.settle("is an index")
        if self.settled is not None:
            return self.settled[0][key]
        return self.shaped(lambda array: array[placed(key, array)])

    def __setitem__(self, key: Any, content: Any) -> None:
        RULES["setitem"](Call(operator.setitem, (self, key, content), {}))

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self.value)))

    @property
    def T(self) -> Any:  # noqa: N802
        """The transposed array or tensor, which is noise until this noise has ended."""
        if self.settled is not None:
            return self.settled[0].T
        return self.shaped(lambda array: array.T)

    def item(self, *arguments: Any) -> Any:
        """Return the only entry, as noise on a number of Python.

        With an index or several entries, the noise ends first.
        """
        if self.settled is not None or size_of(self.value) != 1 or arguments:
            return self.settle("is used otherwise").item(*arguments)
        return self._as_scalar(self.value.item())

    def tolist(self) -> Any:
        """Return its entries as a list: noise for a vector, else ordinary numbers.

        Once the noise has ended, they are ordinary numbers for a vector as well.
        """
        if self.settled is None and ndim(self.value) == 1:
            return [entry.item() for entry in self]
        return self.settle("is used otherwise").tolist()

    # -- sums and changes in place -----------------------------------------------------

    def summed(
        self, plain: Any, terms: tuple[Term, ...], offset: Any, held: bool = False
    ) -> Any:
        """Return a sum with this noise.

        Args:
            plain: The sum as an ordinary number or array.
            terms: Terms of the sum.
            offset: Value in the sum; None if no value was added.
            held: Whether a sum with a value stays noise until its first use other than
                ``+=`` or ``-=``. Noise of unknown law is not held.

        Returns:
            Noise, if no value was added, if the sum is held, if the noise is only a
            part of noise (see ``Family.is_part``), or if the value counts as a constant
            on this line. ``plain`` if all noise has cancelled. Else ``plain`` or the
            forced result, which is released.
        """
        form = Noise(self.run, plain, joined(terms), offset)
        # All noise has cancelled.
        if not form.terms:
            return plain
        if offset is None:
            return form
        form.site = self.site or here()
        if form.site in self.run.traced.constants:
            # The value is the same on both inputs, and part of the noise.
            return form
        law, groups = form.law_and_groups()
        # One geometric draw, for example, is only a part of noise: code will add
        # another one.
        if law.known is None:
            is_part = all(
                term.draw.law.family in LAZY and not term.draw.compared(term.index)
                for term in terms
            )
        else:
            is_part = law.known.is_part
        if is_part:
            return form
        if held and law.known is not None:
            form.is_held = True
            return form
        return self.run.release(
            NOISY, law, offset, plain, form.site, form.terms, groups=groups
        )

    def become(self, result: Any) -> Any:
        """Turn this object into other noise or into numbers, and fill its array.

        Args:
            result: The other noise, or the numbers.

        Returns:
            This object if it is noise now, else its array. Once its noise has ended, it
            cannot become noise again, and the noise of ``result`` ends.
        """
        # The names in the code that hold this object get the noise of the result.
        if type(result) is Noise and result._settled is None and self._settled is None:
            self.terms, self.offset = result.terms, result.offset
            self.site, self.is_held = result.site, result.is_held
            write(self.value, result.value)
            return self
        self._settled = self._settled or (self.value,)
        return write(self._settled[0], plain(result, WRITTEN))

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _product(other, self)

    def __neg__(self) -> Any:
        return apply("negative", operator.neg, (self,), {})

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return apply("abs", abs, (self,), {})

    def __eq__(self, other: object) -> Any:
        return operator.eq(*plain((self, other), "is compared for equality"))

    def __ne__(self, other: object) -> Any:
        return operator.ne(*plain((self, other), "is compared for equality"))

    # -- conversions -------------------------------------------------------------------

    def as_number(self, kind: type) -> Any:
        """Return it as ``int`` or ``float``: as noise, if the conversion is exact.

        A conversion that rounds ends the noise.
        """
        is_same = kind is float or self.is_whole
        if self.settled is not None or size_of(self.value) != 1 or not is_same:
            return kind(self.settle("is rounded"))
        return self._as_scalar(kind(self.value))

    def _as_scalar(self, value: Any) -> Any:
        scalar = self.shaped(lambda array: np.reshape(array, ()))
        return scalar.copied(value)

    def __round__(self, digits: int | None = None) -> Any:
        given = (self,) if digits is None else (self, digits)
        return apply("round", round, given, {})

    def astype(self, dtype: Any, *arguments: Any, **keywords: Any) -> Any:
        """Return it as an array of another type.

        It stays noise in a type of floats, and in 64-bit integers if it is whole. Any
        other type and any further argument end the noise.
        """
        target = np.dtype(dtype)
        is_whole = target.kind == "i" and target.itemsize == 8 and self.is_whole
        is_same = target.kind == "f" or is_whole
        if self.settled is None and not arguments and not keywords and is_same:
            self.run.traced.coarse |= target.itemsize < self.value.dtype.itemsize
            return self.copied(self.value.astype(target))
        return self.settle("is converted").astype(dtype, *arguments, **keywords)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.settle("is converted to an array"), dtype=dtype)

    def __format__(self, form: str) -> str:
        return format(self.settle("is printed"), form)

    def __reduce__(self) -> Any:
        return copy, (self.settle("is copied"),)

    def __copy__(self) -> Any:
        return deepcopy(self)

    def __deepcopy__(self, memo: Any) -> Any:
        if self.settled is not None:
            return deepcopy(self.settled[0])
        return self.copied(deepcopy(self.value))

    # -- functions of libraries --------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        # Libraries look for private attributes to find types of their own.
        if name.startswith("_"):
            raise AttributeError(name)
        if name in DESCRIBING:
            return getattr(self._now, name)
        result = None if self.settled else self._method(name)
        if result is not None:
            return result
        # Whatever has a gradient is a parameter, and parameters are public.
        why = "" if name == "requires_grad_" else f"is used by .{name}"
        settled = self.settle(why)
        if name in LENDING:
            for term in self.terms:
                term.draw.is_lent = True
        return getattr(settled, name)

    def _method(self, name: str) -> Any:
        """Return a method of the number, array or tensor that follows the noise.

        It is None if there is no rule for a method of this name. For the attribute
        ``data`` of a tensor it is noise.
        """
        kind = type(self.value)
        if hasattr(kind, "detach"):
            if name == "data":
                return self.copied(self.value.data)
            is_followed = name.rstrip("_") in RULES or name in ("fill_", "zero_")
            if is_followed and hasattr(kind, name):
                return partial(_call_of_torch, getattr(kind, name), self)
        # The view of an array has other numbers: the same bytes, read as another type.
        elif name in RULES and hasattr(kind, name) and name != "view":
            return partial(_call_of_array, name, self)
        return None

    def __array_function__(
        self, function: Any, types: Any, arguments: Any, keywords: Any
    ) -> Any:
        return apply(function.__name__, function, arguments, keywords)

    def __array_ufunc__(
        self, function: Any, method: str, *inputs: Any, **keywords: Any
    ) -> Any:
        name, compute = function.__name__, getattr(function, method)
        if method == "__call__" and set(keywords) <= {"out"}:
            result = apply(name, function, inputs, {})
            return _into(keywords.get("out"), result)
        # ``numpy.sum`` calls this method.
        if (name, method) == ("add", "reduce"):
            return apply("sum", compute, inputs, keywords)
        return plainly(compute, inputs, keywords, name)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, arguments: Any = (), keywords: Any = None
    ) -> Any:
        return ADAPTERS["torch"](function, arguments, keywords or {})


def _part_of(change: Callable[[Any], Any], number: int, array: Any) -> Any:
    return change(array)[number]


def _call_of_torch(method: Any, noise: Noise, *arguments: Any, **keywords: Any) -> Any:
    return ADAPTERS["torch"](method, (noise, *arguments), keywords)


def _call_of_array(name: str, noise: Noise, *arguments: Any, **keywords: Any) -> Any:
    def call(entries: Any, *others: Any, **options: Any) -> Any:
        return getattr(entries, name)(*others, **options)

    return apply(name, call, (noise, *arguments), keywords)


# -- functions -------------------------------------------------------------------------


def opened(value: Any) -> Any:
    """Return the ordinary number of noise that has ended; any other value as it is."""
    if type(value) is Noise and value.settled is not None:
        return value.settled[0]
    return value


def value_of(item: Any) -> Any:
    """Return the number or the array of noise; else the item as it is."""
    if type(item) is Noise:
        return item.value
    return item


def plain(value: Any, why: str) -> Any:
    """Return a value with ordinary numbers in place of noise, which ends.

    Noise in dicts, lists and tuples is replaced as well, at any depth. A list or a
    tuple without noise stays the same object, which the function may change.

    Args:
        value: Any value.
        why: Use that ends the noise, such as "is printed"; empty for a use that is
            understood.
    """
    if type(value) is Noise:
        return value.settle(why)
    if type(value) is dict:
        return {key: plain(item, why) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return rebuilt(value, [plain(item, why) for item in value])
    return value


def settled(values: Sequence[Any], why: str) -> list[Any]:
    """Return values with ordinary numbers in place of noise, which ends.

    Noise in lists stays noise.

    Args:
        values: Any values.
        why: Use that ends the noise, such as "is printed"; empty for a use that is
            understood.
    """
    return [value.settle(why) if type(value) is Noise else value for value in values]


def plainly(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    name: str,
) -> Any:
    """Call a library function with ordinary numbers in place of noise, which ends.

    Args:
        function: The function.
        arguments: Its positional arguments.
        keywords: Its keyword arguments.
        name: Its name, for the reason in the trace.
    """
    why = f"is used by {name}"
    given = [plain(value, why) for value in arguments]
    options = {key: plain(value, why) for key, value in keywords.items()}
    return function(*given, **options)


def apply(
    name: str,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    """Apply a function of a library to noise, by the rule of its name.

    If there is no rule, or the rule cannot follow the noise, the noise ends.

    Args:
        name: The key of the rule.
        function: The function, which takes ordinary numbers and arrays.
        arguments: Its positional arguments.
        keywords: Its keyword arguments.
    """
    given = [opened(argument) for argument in arguments]
    rule = RULES.get(name)
    result = None
    if rule is not None:
        result = rule(Call(function, given, keywords))
    if result is None:
        return plainly(function, given, keywords, name)
    return result


def _into(out: Any, result: Any) -> Any:
    """Return a result, written into an array if ``out`` has one.

    Args:
        out: Argument ``out`` of numpy: a tuple of one array, or None.
        result: The result.
    """
    if out is None:
        return result
    (target,) = out
    if isinstance(target, Noise):
        return target.become(result)
    if isinstance(result, Noise) and result.site in result.run.traced.constants:
        target[...] = result.value
        # As ``x += noise`` makes noise of an array x.
        return result
    target[...] = plain(result, WRITTEN)
    return target


def write(target: Any, numbers: Any) -> Any:
    """Write numbers into an array or a tensor, and return it."""
    if not hasattr(target, "detach"):
        np.copyto(target, numbers, casting="same_kind")
        return target
    with sys.modules["torch"].no_grad():
        return target.copy_(numbers)


# -- operators -------------------------------------------------------------------------


def added(first: Any, second: Any, *, sign: float = 1.0, held: bool = False) -> Any:
    """Return the sum, or the difference, of two values, one or both of them noise.

    Args:
        first: A number, an array, or noise.
        second: A number, an array, or noise.
        sign: 1 for the sum, −1 for the first minus the second.
        held: Whether a sum with a value stays noise until its first use other than
            ``+=`` or ``-=``.

    Returns:
        The result of ``Noise.summed``. Ordinary numbers if no value is noise, or if one
        is not numeric: then the noise ends.
    """
    compute = operator.add if sign > 0 else operator.sub
    # Noise that has ended is an ordinary number here.
    sides = [opened(first), opened(second)]
    noisy = [side for side in sides if type(side) is Noise]
    values = [value_of(side) for side in sides]
    # numpy also takes lists of numbers.
    if np.ndarray in map(type, values):
        values = [np.asarray(v) if type(v) in (list, tuple) else v for v in values]
    if not all(map(is_numeric, values)):
        return compute(*plain(sides, "is combined with something that is not a number"))
    if sign > 0 and type(first) is int and first == 0 and called_by_builtin():
        # ``sum`` begins with 0.
        return second

    # The result is that of the plain code, bit for bit; draws and offset are beside it.
    total = compute(*values)
    terms: tuple[Term, ...] = ()
    offset = None
    for side, value, factor in zip(sides, values, (1.0, sign), strict=True):
        if type(side) is Noise:
            terms += scaled(side.terms, factor)
            part = side.offset
        else:
            # Code may change the array later, in place.
            part = copy(number(value))
        if part is not None and offset is None:
            offset = part if factor > 0 else -part
        elif part is not None:
            offset = offset + factor * part
    if noisy:
        return noisy[0].summed(total, terms, offset, held)
    return total


def multiplied(first: Any, second: Any, *, divide: bool = False) -> Any:
    """Return the product, or the quotient, of two values, one or both of them noise.

    The noise ends if both are noise (see ``signed`` for an exception), if the noise is
    the divisor, if a divisor has a zero, and if the other value is not numeric.

    Args:
        first: A number, an array, or noise.
        second: A number, an array, or noise.
        divide: Whether the first is divided by the second.
    """
    compute = operator.truediv if divide else operator.mul
    first, second = opened(first), opened(second)
    is_first = type(first) is Noise
    noise, other = (first, second) if is_first else (second, first)

    def result(mine: Any, theirs: Any) -> Any:
        if is_first:
            return compute(mine, theirs)
        return compute(theirs, mine)

    if type(noise) is not Noise:
        return compute(first, second)
    are_both = type(other) is Noise
    if are_both and not divide:
        form = signed(noise, other)
        if form is not None:
            return form
    is_number = is_numeric(value_of(other))
    if are_both or not is_number or (divide and not is_first):
        why = "is multiplied with noise, or is divided by"
        mine = noise.settle(why if is_number else "repeats something")
        return result(mine, plain(other, "is multiplied with noise"))
    value = result(noise.value, other)
    with np.errstate(all="ignore"):
        factor = number(other)
        # The result has infinite entries, which no law describes.
        if divide and not all_of(factor):
            return compute(noise.settle("is divided by zero"), other)
        if divide:
            factor = 1 / factor
        offset = noise.offset
        if offset is not None:
            offset = offset * factor
        terms = joined(scaled(noise.terms, factor))
        return Noise(noise.run, value, terms, offset, noise.site)


def _product(first: Any, second: Any) -> Any:
    """Return the product of two matrices, one of them noise, the other maybe sparse."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value_of(first), torch.Tensor):
        return torch.matmul(first, second)
    return apply("matmul", operator.matmul, (first, second), {})


def _reflected(compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: compute(other, self)


def _in_place(name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return an in-place operator such as ``+=``, which changes the array itself.

    If a loop adds one value after another, only their sum is released.

    Args:
        name: Name of the operator, such as "add".
        compute: Function that returns the result without a change of the array.
    """

    def operate(self: Noise, other: Any) -> Any:
        # A multiple of a held sum is a use of it, which releases the sum.
        if self.is_held and name not in ("add", "sub"):
            self.settle("")
        ended = self._settled
        if ended is not None:
            return getattr(operator, f"i{name}")(ended[0], other)
        self.is_held = False
        result = compute(self, other)
        is_array = isinstance(self.value, np.ndarray) or hasattr(self.value, "detach")
        if is_array:
            return self.become(result)
        return result

    return operate


def _ending(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator that ends noise and computes with ordinary numbers.

    Args:
        name: Name of the operator, for the reason in the trace.
        function: The operator on ordinary numbers.
    """

    def operate(self: Noise, *others: Any) -> Any:
        others = plain(others, "is computed with")
        return function(self.settle(f"is used by {name}"), *others)

    return operate


def _conversion(function: Callable[[Any], Any], why: str) -> Callable[[Any], Any]:
    return lambda self: function(self.settle(why))


divided = partial(multiplied, divide=True)
subtracted = partial(added, sign=-1.0)
_FOLLOWED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (added, partial(added, held=True)),
    "sub": (subtracted, partial(subtracted, held=True)),
    "mul": (multiplied, multiplied),
    "truediv": (divided, divided),
}
"""The operator and its in-place form, by the name of each followed operator."""
for _name, (_compute, _held) in _FOLLOWED.items():
    setattr(Noise, f"__{_name}__", lambda self, other, f=_compute: f(self, other))
    setattr(Noise, f"__r{_name}__", _reflected(_compute))
    setattr(Noise, f"__i{_name}__", _in_place(_name, _held))

COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
"""The name in numpy of each comparison operator."""
for _name, _comparison in COMPARISONS.items():
    setattr(
        Noise,
        f"__{_name}__",
        lambda self, other, n=_comparison: compare(self, other, n),
    )

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

_ENDING: dict[str, Callable[..., Any]] = {
    "invert": operator.invert,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "complex": complex,
    "divmod": divmod,
}
for _name in ("floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    _ENDING[_name] = getattr(operator, f"__{_name}__")
for _name, _function in _ENDING.items():
    setattr(Noise, f"__{_name}__", _ending(_name, _function))
    setattr(Noise, f"__r{_name}__", _ending(_name, _reflected(_function)))


# -- draws -----------------------------------------------------------------------------


def places_of(value: Any) -> Any:
    """Return the flat index of each entry of a draw, in the shape of the draw."""
    shape = tuple(shape_of(value))
    if shape:
        return np.arange(math.prod(shape)).reshape(shape)
    return 0


def noise_of(run: WatchedRun, draw: WatchedDraw, location: Any = None) -> Any:
    """Return a draw as noise, or as an ordinary number that is released at once.

    A draw of integers is released if their range exceeds ``MAX_NOISE_RANGE``. A draw of
    any family is released if the sampler added a location, unless the family is unknown
    or a part of noise (see ``Family.is_part``).

    Args:
        run: The run.
        draw: The draw.
        location: The location that the sampler added; None for no location.
    """
    noise = Noise(run, draw.value, (Term(draw, places_of(draw.value)),), location)
    law = draw.law
    is_name = law.family == "integer" and any_of(law.parameter > MAX_NOISE_RANGE)
    is_whole = law.known is not None and not law.known.is_part
    is_release = location is not None and is_whole
    if is_name or is_release:
        return noise.settle("")
    return noise


def drawn_noise(
    run: WatchedRun,
    method: str,
    perform: Callable[[], Any],
    law: NoiseLaw,
    location: Any = 0.0,
    **options: Any,
) -> Any:
    """Call a sampler, and return noise, or a released number, in place of its result.

    Args:
        run: The run that records the draw.
        method: Name of the sampler.
        perform: Function without arguments that calls the sampler.
        law: Law of the draw without its location.
        location: Number or array that the sampler adds to the draw.
        options: Arguments ``shape`` and ``origin`` of ``WatchedRun.draw``.
    """
    site = here()
    draw = run.draw(method, perform, law, site, location=location, **options)
    if not run.locations.are_at(site, location):
        location = None
    return noise_of(run, draw, location)


def drawn_release(
    run: WatchedRun,
    method: str,
    perform: Callable[[], Any],
    kind: str,
    law: NoiseLaw,
    location: Any = None,
    *,
    names: tuple[Any, ...] | None = None,
    why: str = "",
    **options: Any,
) -> Any:
    """Call a sampler whose result is a release by itself, and return the result.

    Args:
        run: The run that records the draw and the release.
        method: Name of the sampler.
        perform: Function without arguments that calls the sampler.
        kind: Kind of the release: ``COIN``, ``CHOICE`` or ``ALONE``.
        law: Law of the draw.
        location: Probability of a coin, or table of a choice; None for noise alone.
        names: Texts of the items of a choice; None if they have no texts.
        why: Reason for which the trace does not understand the sampler; empty if it
            does.
        options: Arguments ``shape`` and ``origin`` of ``WatchedRun.draw``.
    """
    site = here()
    draw = run.draw(method, perform, law, site, **options)
    if kind == COIN:
        shape = shape_of(draw.value)
        location = np.broadcast_to(location, shape) if shape else float(location)
    terms: tuple[Term, ...] = ()
    if kind != ALONE:
        terms = (Term(draw, 0),)
    return run.release(
        kind, law, location, draw.value, site, terms, names=names, why=why
    )
