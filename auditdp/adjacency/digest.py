"""A digest of everything that decides which inputs are neighbours and which pairs are played.

The name of an adjacency is a short text for a reader. A baseline compares this digest, so that no change of a domain, of a
given pair or of a relation is too long to be noticed.

The digest is the same in every process, with every seed of hashes, and on every processor: no address enters it, sets have
no order, and numbers have six digits. Code of the user counts by its source without comments, together with the variables
that it reads; code of a library counts by its name. An object that has neither a content nor a text of its own cannot be
compared: the digest names its type, and a comparison reports that a change of this object cannot be noticed.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import linecache
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from auditdp.adjacency.strategy_parts import Characters, StrategyPart
from auditdp.errors import ELSEWHERE
from auditdp.mechanism.calls.inputs import attributes, of_tensor
from auditdp.mechanism.protocol import ADDRESS, PLAIN, is_table

DIGITS = 6
"""Significant digits of a number: computed numbers have other last digits on other processors."""
MANTISSA = 2.0**20
"""Steps of the mantissa of a number in an array, which are six digits."""
HEXADECIMALS = 16
"""Length of a digest."""


def digest_of(*declared: Any) -> str:
    """Return the digest of an adjacency and of the inputs or pairs that an audit names beside it.

    >>> from auditdp.adjacency import Box
    >>> digest_of(Box(0.0, 1.0)) == digest_of(Box(0.0, 1.0)), digest_of(Box(0.0, 1.0)) == digest_of(Box(0.0, 2.0))
    (True, False)
    """
    text = _StableText()
    try:
        whole = text.of(declared)
    except Exception as error:  # whatever the objects of a user raise
        whole = ""
        text.opaque.add(f"a content that can be read ({type(error).__name__})")
    digest = hashlib.sha256(whole.encode()).hexdigest()[:HEXADECIMALS]
    return (
        f"{digest} without {', '.join(sorted(text.opaque))}" if text.opaque else digest
    )


class _StableText:
    """Writes values as texts that are the same in every process.

    Attributes:
        opaque: Types of the objects that have no such text.
    """

    def __init__(self) -> None:
        self.opaque: set[str] = set()
        self._inside: set[int] = set()
        self._source = cache(_source)  # for this digest alone: files change

    def of(self, value: Any) -> str:
        """Return the text of a value."""
        value = of_tensor(value.item() if isinstance(value, np.generic) else value)
        if isinstance(value, float):
            return f"{value:.{DIGITS}g}"
        if isinstance(value, PLAIN):
            return f"{type(value).__name__} {value!r}"
        if id(value) in self._inside:  # it holds itself
            return type(value).__name__
        self._inside.add(id(value))
        try:
            return f"{type(value).__name__}({', '.join(self._content(value))})"
        finally:
            self._inside.discard(id(value))

    def _content(self, value: Any) -> Iterator[str]:
        match value:
            case np.ndarray() if not value.dtype.hasobject:
                yield f"{value.dtype} {value.shape} {hashlib.sha256(_rounded(value).tobytes()).hexdigest()}"
            case np.ndarray():
                yield self.of(value.tolist())
            case list() | tuple():
                yield from map(self.of, value)
            case Mapping():
                yield from sorted(
                    f"{self.of(key)}: {self.of(item)}" for key, item in value.items()
                )
            case set() | frozenset():
                yield from sorted(map(self.of, value))
            case ModuleType():
                yield value.__name__
            case type() | FunctionType():
                yield from self._code(value)
            case _ if any(
                kind.__name__ == "SearchStrategy" for kind in type(value).__mro__
            ):  # without an import
                yield from self._strategy(value)
            case _ if is_table(value):
                yield from (
                    f"{name}: {self.of(value[name].to_numpy())}"
                    for name in value.columns
                )
            case _:
                yield from self._object(value)

    def _object(self, value: Any) -> Iterator[str]:
        """Yield the class of an object and its attributes that are not its defaults, and the pairs that it lists."""
        kind = type(value)
        yield from self._code(kind)
        fields = (
            {each.name: each for each in dataclasses.fields(value)}
            if dataclasses.is_dataclass(value)
            else {}
        )
        held = attributes(value)
        for name in sorted(held):
            field = fields.get(name)
            derived = isinstance(getattr(kind, name, None), cached_property) or (
                field is not None and not field.init
            )
            text = "" if derived else self.of(held[name])
            if text and (
                field is None
                or field.default is dataclasses.MISSING
                or text != self.of(field.default)
            ):
                yield f"{name}={text}"
        if not held:
            try:
                stored = value.__reduce_ex__(
                    2
                )  # of an object of C, such as a partial function
                yield self.of(
                    stored
                    if isinstance(stored, str)
                    else [*stored[:3], *map(list, filter(None, stored[3:]))]
                )
            except TypeError:
                yield self._repr(value, kind.__name__)
        if _is_own(kind) and callable(getattr(value, "pairs", None)):
            yield self.of(value.pairs())

    def _strategy(self, strategy: Any) -> Iterator[str]:
        """Yield the parts of a Hypothesis strategy; its own text where its parts are not known."""
        from auditdp.adjacency.hypothesis_internals import part_of

        part = part_of(strategy)
        if type(part) not in (StrategyPart, Characters):
            yield type(part).__name__
            yield from (
                self.of(getattr(part, f.name))
                for f in dataclasses.fields(part)
                if f.name != "strategy"
            )
            return
        yield self._repr(strategy, "a strategy")

    def _repr(self, value: Any, named: str) -> str:
        """Return what an object prints of itself, without its address: with one it prints no content."""
        shown = repr(value)
        if ADDRESS.search(shown):
            self.opaque.add(named)
        return ADDRESS.sub("", shown)

    def _code(self, thing: Any) -> Iterator[str]:
        """Yield the name of a function or class and of its library; of the user's own, its source and what that reads."""
        yield thing.__qualname__
        if not _is_own(thing):
            yield str(thing.__module__).partition(".")[
                0
            ]  # a library may move its files, and the claim stays
            return
        source = self._source(thing)
        yield source
        if not source:
            self.opaque.add(f"the source of {thing.__qualname__}")
        if isinstance(thing, FunctionType):
            read = {**inspect.getclosurevars(thing).nonlocals, **_globals(thing)}
            yield from map(self.of, (thing.__defaults__, thing.__kwdefaults__, read))


def _rounded(array: Any) -> Any:
    """Return an array without the last digits of its numbers."""
    if array.dtype.kind not in "f":
        return np.ascontiguousarray(array)
    mantissa, exponent = np.frexp(array.astype(np.float64))
    return np.ldexp(np.round(mantissa * MANTISSA), exponent) + 0.0


def _is_own(thing: Any) -> bool:
    """Return whether a function or class is Python code of the user, and not of a library."""
    try:
        return not inspect.getfile(thing).startswith(ELSEWHERE)
    except TypeError:  # builtins have no file
        return False


def _source(thing: Any) -> str:
    """Return the source of a function or class without comments; empty where there is none.

    Several lambdas that begin on one line and have the same arguments are not told apart: all of them are returned.
    """
    try:
        if thing.__name__ != "<lambda>":
            return ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(thing))))
        tree = ast.parse("".join(linecache.getlines(thing.__code__.co_filename)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return ""
    code = thing.__code__
    begun = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
    )
    names = list(code.co_varnames[: code.co_argcount])
    found = [
        node
        for node in begun
        if [each.arg for each in (*node.args.posonlyargs, *node.args.args)] == names
    ]
    return "\n".join(map(ast.unparse, found))


def _globals(function: FunctionType) -> dict[str, Any]:
    """Return the global variables that a function names, in its inner functions too."""
    names: set[str] = set()
    waiting = [function.__code__]
    while waiting:
        code = waiting.pop()
        names.update(code.co_names)
        waiting += [
            constant for constant in code.co_consts if isinstance(constant, CodeType)
        ]
    return {
        name: value for name, value in function.__globals__.items() if name in names
    }
