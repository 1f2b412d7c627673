"""What is replaced while code is watched, and put back whatever happens.

The caller's code: its functions and the names in its modules that hold a source of randomness.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from auditdp.errors import ELSEWHERE
from auditdp.mechanism.protocol import PerCall
from auditdp.tracing.conversions import converted, own_names
from auditdp.tracing.generators import WatchedGenerator, WatchedState
from auditdp.tracing.sites import _is_callers
from auditdp.tracing.watched_run import Active, in_run

MISSING: Any = object()


class Patches:
    """Replacements that are undone in reverse order.

    Attributes:
        replaced: By the identity of an original, what took its place: for names that the caller's modules imported.
        around: What makes the contexts that each watched run is in; a plain run is in none, and as fast as ever.
    """

    def __init__(self) -> None:
        self._undo = ExitStack()
        self.replaced: dict[int, tuple[Any, Any]] = {}
        self.around: list[Callable[[], AbstractContextManager[Any]]] = []

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of a module or class."""
        before = vars(owner).get(name, MISSING)
        if before is not MISSING:
            self.replaced[id(before)] = (before, value)
        self._undo.callback(
            lambda: (
                delattr(owner, name)
                if before is MISSING
                else setattr(owner, name, before)
            )
        )
        setattr(owner, name, value)

    def sampler(
        self, owner: Any, name: str, active: Active, draw: Callable[..., Any]
    ) -> None:
        """Replace a function or a method by ``draw(run, function, …)`` with the arguments of a call."""
        function = getattr(owner, name)
        in_a_run = functools.partial(_with_run, draw, function)
        self.attribute(owner, name, in_run(function, active, in_a_run))

    def item(self, owner: dict[str, Any], name: str, value: Any) -> None:
        """Set an entry of a namespace."""
        before = owner.get(name, MISSING)

        def undo() -> None:
            if (
                owner.get(name, MISSING) is not value
            ):  # the code itself has rebound the name
                return
            if before is MISSING:
                owner.pop(name, None)
            else:
                owner[name] = before

        self._undo.callback(undo)
        owner[name] = value

    def cell(self, cell: Any, value: Any) -> None:
        """Set a variable of a closure."""
        before = cell.cell_contents

        def undo() -> None:
            if cell.cell_contents is value:
                cell.cell_contents = before

        self._undo.callback(undo)
        cell.cell_contents = value

    def code(self, function: Any, code: Any) -> None:
        """Set the code of a function."""
        self._undo.callback(setattr, function, "__code__", function.__code__)
        function.__code__ = code

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Enter the contexts of a watched run."""
        with ExitStack() as stack:
            for make in self.around:
                stack.enter_context(make())
            yield

    def undo(self) -> None:
        """Put everything back."""
        try:
            self._undo.close()
        finally:
            self.replaced.clear()
            self.around.clear()


def _with_run(draw: Any, function: Any, run: Any, *given: Any, **options: Any) -> Any:
    return draw(run, function, *given, **options)


GENERATOR, STATE = np.random.Generator, np.random.RandomState
"""The classes themselves: while code is watched, others have their names."""
MOST_FUNCTIONS = 2000
"""Functions that are followed, at most."""


@dataclass
class Caller:
    """What of the caller's code is watched.

    Attributes:
        codes: Functions with the code that they have while they are watched.
        spaces: Namespaces: of modules, of objects.
        cells: Variables of closures.
    """

    codes: list[tuple[FunctionType, CodeType]] = field(default_factory=list)
    spaces: list[dict[str, Any]] = field(default_factory=list)
    cells: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, function: Any) -> Caller:
        """Return what a function reaches: functions and classes of its module, and of the caller's that it uses."""
        found, seen = cls(), set[int]()
        waiting = [function]
        while waiting and len(seen) < MOST_FUNCTIONS:
            item = waiting.pop()
            if id(item) in seen:
                continue
            seen.add(id(item))
            for owner in _functions(item):
                if id(owner) not in seen or owner is item:
                    seen.add(id(owner))
                    waiting.extend(found._follow(owner, seen))
            attributes = getattr(item, "__dict__", None)
            if type(attributes) is dict and not isinstance(
                item, FunctionType | type | ModuleType
            ):
                found.spaces.append(attributes)
                waiting.extend(
                    value for value in attributes.values() if callable(value)
                )
        return found

    def _follow(self, function: FunctionType, seen: set[int]) -> Iterator[Any]:
        if not _is_callers(function.__code__):
            return
        space = function.__globals__
        code = converted(function.__code__, own_names(space))
        if code is not function.__code__:
            self.codes.append((function, code))
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # not bound yet
                continue
            self.cells.append(cell)
            if callable(value):
                yield value
        if id(space) in seen:
            return
        seen.add(id(space))
        self.spaces.append(space)
        for value in list(space.values()):
            if isinstance(value, ModuleType) and not _lies_elsewhere(value):
                yield from (
                    part for part in list(vars(value).values()) if _may_be_callers(part)
                )
            elif isinstance(value, functools.partial) or _may_be_callers(value):
                yield value

    def watch(
        self, patches: Patches, replaced: Mapping[int, tuple[Any, Any]], active: Active
    ) -> None:
        """Install the codes, and put watched sources into the places of plain ones."""
        for function, code in self.codes:
            patches.code(function, code)
        for space in self.spaces:
            for name, value in list(space.items()):
                if (made := _watched(value, replaced, active)) is not None:
                    patches.item(space, name, made)
        for cell in self.cells:
            if (made := _watched(cell.cell_contents, replaced, active)) is not None:
                patches.cell(cell, made)


def _lies_elsewhere(module: Any) -> bool:
    return (getattr(module, "__file__", None) or ELSEWHERE[0]).startswith(ELSEWHERE)


def _may_be_callers(value: Any) -> bool:
    """Whether it is a function or a class, but for the classes of libraries, whose methods are many."""
    if isinstance(value, type):
        return not _lies_elsewhere(sys.modules.get(value.__module__))
    return isinstance(value, FunctionType)


def _functions(item: Any) -> Iterator[FunctionType]:
    """Yield the Python functions that something callable consists of."""
    if isinstance(item, PerCall):
        item = item.function
    while isinstance(item, functools.partial):
        item = item.func
    if isinstance(item, MethodType):
        item = item.__func__
    wrapped = getattr(item, "__wrapped__", None)
    if isinstance(wrapped, FunctionType):
        yield wrapped
    if isinstance(item, FunctionType):
        yield item
        return
    kind = item if inspect.isclass(item) else type(item)
    for base in kind.__mro__[:-1]:
        for value in vars(base).values():
            value = getattr(value, "__func__", getattr(value, "fget", value))
            if isinstance(value, FunctionType):
                yield value


def _watched(
    value: Any, replaced: Mapping[int, tuple[Any, Any]], active: Active
) -> Any:
    """Return what takes the place of a source of randomness; None for anything else."""
    if type(value) is GENERATOR:
        return WatchedGenerator(value, active)
    if type(value) is STATE:
        return WatchedState(value, active)
    found = replaced.get(id(value))
    if found is not None and found[0] is value:
        return found[1]
    owner = getattr(value, "__self__", None)
    if type(owner) in (GENERATOR, STATE):
        return getattr(_watched(owner, replaced, active), value.__name__)
    if (
        isinstance(value, MethodType)
        and (found := replaced.get(id(value.__func__))) is not None
    ):
        return MethodType(found[1], owner)
    return None
