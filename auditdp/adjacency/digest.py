"""Digest of everything that decides which inputs are neighbours and which are run.

The name of an adjacency is a short text for a reader. A baseline compares this digest
instead, so that it notices every change of a domain, of a given pair or of a relation.

The digest is the same in every process, with every hash seed, and on every processor:
it contains no address, sorts the items of sets, and rounds floating-point numbers to
six digits. Code of the user enters it as source without comments; a function also with
the variables that it reads. Code of a library enters it by its name. If an object has
neither attributes nor a text without an address, its content cannot be compared. Then
the digest ends with the type of the object, and a comparison reports that it cannot
notice a change of this object.
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


def digest_of(*declared: Any) -> str:
    """Return the digest of an adjacency, and of inputs or pairs that an audit names.

    Returns:
        16 hexadecimal digits, followed by 'without' and a list of the things that
        cannot be compared, if there are any.

    >>> from auditdp.adjacency import Box
    >>> digest_of(Box(0.0, 1.0)) == digest_of(Box(0.0, 1.0))
    True
    >>> digest_of(Box(0.0, 1.0)) == digest_of(Box(0.0, 2.0))
    False
    """
    text = _StableText()
    try:
        content = text.of(declared)
    except Exception as error:
        # The objects of a user may raise any exception.
        content = ""
        text.opaque.add(f"a content that can be read ({type(error).__name__})")
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    if text.opaque:
        return f"{digest} without {', '.join(sorted(text.opaque))}"
    return digest


class _StableText:
    """Writer of values as texts that are the same in every process.

    Attributes:
        opaque: Names of the types, and of the sources, that have no such text.
    """

    def __init__(self) -> None:
        self.opaque: set[str] = set()
        self._inside: set[int] = set()
        # The cache belongs to one digest, because files may change later.
        self._source = cache(_source)

    def of(self, value: Any) -> str:
        """Return the text of a value."""
        if isinstance(value, np.generic):
            value = value.item()
        value = of_tensor(value)
        if isinstance(value, float):
            return f"{value:.6g}"
        kind = type(value).__name__
        if isinstance(value, PLAIN):
            return f"{kind} {value!r}"
        if id(value) in self._inside:
            # The value contains itself.
            return kind
        self._inside.add(id(value))
        try:
            return f"{kind}({', '.join(self._content(value))})"
        finally:
            self._inside.discard(id(value))

    def _content(self, value: Any) -> Iterator[str]:
        # A strategy is recognised by the name of its class, so that Hypothesis need not
        # be imported.
        names = {kind.__name__ for kind in type(value).__mro__}
        match value:
            case np.ndarray() if not value.dtype.hasobject:
                digest = hashlib.sha256(_rounded(value).tobytes()).hexdigest()
                yield f"{value.dtype} {value.shape} {digest}"
            case np.ndarray():
                yield self.of(value.tolist())
            case list() | tuple():
                yield from map(self.of, value)
            case Mapping():
                items = value.items()
                yield from sorted(f"{self.of(k)}: {self.of(v)}" for k, v in items)
            case set() | frozenset():
                yield from sorted(map(self.of, value))
            case ModuleType():
                yield value.__name__
            case type() | FunctionType():
                yield from self._code(value)
            case _ if "SearchStrategy" in names:
                yield from self._strategy(value)
            case _ if is_table(value):
                for name in value.columns:
                    yield f"{name}: {self.of(value[name].to_numpy())}"
            case _:
                yield from self._object(value)

    def _object(self, value: Any) -> Iterator[str]:
        """Yield the class and the attributes of an object.

        If its class is a user's adjacency, its pairs follow. Attributes with default
        values are left out, so that a new option with a default does not change the
        digest.
        """
        kind = type(value)
        yield from self._code(kind)
        fields: Any = {}
        if dataclasses.is_dataclass(value):
            fields = {each.name: each for each in dataclasses.fields(value)}
        held = attributes(value)
        for name in sorted(held):
            field = fields.get(name)
            is_derived = isinstance(getattr(kind, name, None), cached_property)
            if is_derived or (field is not None and not field.init):
                continue
            text = self.of(held[name])
            has_default = field is not None and field.default is not dataclasses.MISSING
            if not has_default or text != self.of(field.default):
                yield f"{name}={text}"
        if not held:
            try:
                # An object of C, such as a partial function, has a stored form.
                stored = value.__reduce_ex__(2)
                if not isinstance(stored, str):
                    stored = [*stored[:3], *map(list, filter(None, stored[3:]))]
                yield self.of(stored)
            except TypeError:
                yield self._repr(value, kind.__name__)
        # The source of a user's adjacency may not contain all that its pairs depend on.
        if _is_own(kind) and callable(getattr(value, "pairs", None)):
            yield self.of(value.pairs())

    def _strategy(self, strategy: Any) -> Iterator[str]:
        """Yield the parts of a strategy, or its text if its structure is unknown."""
        from auditdp.adjacency.hypothesis_internals import part_of

        part = part_of(strategy)
        if type(part) in (StrategyPart, Characters):
            yield self._repr(strategy, "a strategy")
            return
        yield type(part).__name__
        for field in dataclasses.fields(part):
            if field.name != "strategy":
                yield self.of(getattr(part, field.name))

    def _repr(self, value: Any, name: str) -> str:
        """Return the ``repr`` of an object without its address.

        A ``repr`` with an address does not depend on the content, so ``name`` is added
        to ``opaque``.
        """
        text = repr(value)
        if ADDRESS.search(text):
            self.opaque.add(name)
        return ADDRESS.sub("", text)

    def _code(self, code: Any) -> Iterator[str]:
        """Yield the name of a function or class, and the name of its library.

        For code of the user, its source and its variables replace the library.
        """
        yield code.__qualname__
        if not _is_own(code):
            # A library may move its files without a change of behaviour.
            yield str(code.__module__).partition(".")[0]
            return
        source = self._source(code)
        yield source
        if not source:
            self.opaque.add(f"the source of {code.__qualname__}")
        if isinstance(code, FunctionType):
            variables = {**inspect.getclosurevars(code).nonlocals, **_globals(code)}
            yield from map(self.of, (code.__defaults__, code.__kwdefaults__, variables))


def _rounded(array: Any) -> Any:
    """Return an array with about six digits of each number that may be a fraction.

    The last digits of computed numbers differ between processors.
    """
    if array.dtype.kind == "c":
        return np.stack([_rounded(array.real), _rounded(array.imag)])
    if array.dtype.kind != "f":
        return np.ascontiguousarray(array)
    mantissa, exponent = np.frexp(array.astype(np.float64))
    steps = 2.0**20
    return np.ldexp(np.round(mantissa * steps), exponent) + 0.0


def _is_own(code: Any) -> bool:
    """Return True if a function or class is Python code of the user.

    Code of Python, of installed libraries and of this package is not the user's.
    """
    try:
        return not inspect.getfile(code).startswith(ELSEWHERE)
    except TypeError:
        # A class or function of C has no file.
        return False


def _source(code: Any) -> str:
    """Return the source of a function or class without comments, or '' if not found.

    The source of a lambda is found by its first line and its arguments, so it includes
    all lambdas on that line with these arguments.
    """
    try:
        if code.__name__ != "<lambda>":
            return ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(code))))
        compiled = code.__code__
        tree = ast.parse("".join(linecache.getlines(compiled.co_filename)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return ""
    names = list(compiled.co_varnames[: compiled.co_argcount])
    sources = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) and node.lineno == compiled.co_firstlineno:
            arguments = (*node.args.posonlyargs, *node.args.args)
            if [each.arg for each in arguments] == names:
                sources.append(ast.unparse(node))
    return "\n".join(sources)


def _globals(function: FunctionType) -> dict[str, Any]:
    """Return the global variables that a function or its inner functions name."""
    names: set[str] = set()
    waiting: list[Any] = [function.__code__]
    while waiting:
        code = waiting.pop()
        if isinstance(code, CodeType):
            names.update(code.co_names)
            waiting += code.co_consts
    values = function.__globals__
    return {name: value for name, value in values.items() if name in names}
