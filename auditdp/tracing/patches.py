"""Replacements while code is watched, which are undone whatever happens.

`Patches` replaces and restores. `Caller` finds the parts of the caller's code to
replace: functions that call ``int`` or ``float``, and names that hold a source of
randomness.
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
        replaced: Each replaced original and its replacement, by the identity of the
            original. ``Caller.watch`` replaces other names of the same originals.
        around: Functions that return a context manager. A watched run enters all of
            these contexts, and a plain run none.
    """

    def __init__(self) -> None:
        self._undo = ExitStack()
        self.replaced: dict[int, tuple[Any, Any]] = {}
        self.around: list[Callable[[], AbstractContextManager[Any]]] = []

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """Replace or add an attribute of a module or class."""
        before = vars(owner).get(name, MISSING)
        if before is MISSING:
            self._undo.callback(delattr, owner, name)
        else:
            self.replaced[id(before)] = (before, value)
            self._undo.callback(setattr, owner, name, before)
        setattr(owner, name, value)

    def sampler(
        self, owner: Any, name: str, active: Active, draw: Callable[..., Any]
    ) -> None:
        """Replace a function or method by one that calls ``draw`` during runs.

        Outside of runs the replacement calls the original.

        Args:
            owner: The module or class that has the function.
            name: Its name there.
            active: Function that returns the run under way in this thread, or None.
            draw: Function ``draw(run, function, …)``, which gets the run, the original,
                and the arguments of the call.
        """
        function = getattr(owner, name)
        in_a_run = functools.partial(_with_run, draw, function)
        self.attribute(owner, name, in_run(function, active, in_a_run))

    def item(self, owner: dict[str, Any], name: str, value: Any) -> None:
        """Replace an entry of a namespace.

        It is not restored if the code itself has replaced the entry since.
        """
        before = owner[name]

        def undo() -> None:
            # The code itself may have given the name to another value.
            if owner.get(name, MISSING) is value:
                owner[name] = before

        self._undo.callback(undo)
        owner[name] = value

    def cell(self, cell: Any, value: Any) -> None:
        """Replace the value of a closure's variable.

        It is not restored if the code itself has replaced the value since.
        """
        before = cell.cell_contents

        def undo() -> None:
            if cell.cell_contents is value:
                cell.cell_contents = before

        self._undo.callback(undo)
        cell.cell_contents = value

    def code(self, function: Any, code: Any) -> None:
        """Replace the code object of a function."""
        self._undo.callback(setattr, function, "__code__", function.__code__)
        function.__code__ = code

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Enter the contexts that the functions in ``around`` return."""
        with ExitStack() as stack:
            for make in self.around:
                stack.enter_context(make())
            yield

    def undo(self) -> None:
        """Undo all replacements, and forget them."""
        try:
            self._undo.close()
        finally:
            self.replaced.clear()
            self.around.clear()


def _with_run(draw: Any, function: Any, run: Any, *given: Any, **options: Any) -> Any:
    return draw(run, function, *given, **options)


GENERATOR = np.random.Generator
"""numpy's own class ``Generator``.

While code is watched, numpy's name of the class stands for a watched class.
"""
STATE = np.random.RandomState
"""numpy's own class ``RandomState``, whose name in numpy is replaced likewise."""
MAX_FUNCTIONS = 2000
"""Largest number of functions, classes and namespaces that are followed.

Reading each one takes time.
"""


@dataclass
class Caller:
    """The parts of the caller's code that are replaced while it is watched.

    Attributes:
        codes: Functions, each with the code object that it has while it is watched.
        spaces: Namespaces of modules and objects. Names in them may hold a source of
            randomness.
        cells: Variables of closures, which may hold a source of randomness.
    """

    codes: list[tuple[FunctionType, CodeType]] = field(default_factory=list)
    spaces: list[dict[str, Any]] = field(default_factory=list)
    cells: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, function: Any) -> Caller:
        """Return the parts of the caller's code that a function may use.

        At most ``MAX_FUNCTIONS`` functions, classes and namespaces are followed.
        """
        caller, followed = cls(), set[int]()
        waiting = [function]
        while waiting and len(followed) < MAX_FUNCTIONS:
            item = waiting.pop()
            if id(item) in followed:
                continue
            followed.add(id(item))
            for owner in _functions(item):
                if id(owner) not in followed or owner is item:
                    followed.add(id(owner))
                    waiting.extend(caller._follow(owner, followed))
            attributes = getattr(item, "__dict__", None)
            is_object = not isinstance(item, FunctionType | type | ModuleType)
            if type(attributes) is dict and is_object:
                caller.spaces.append(attributes)
                waiting.extend(filter(callable, attributes.values()))
        return caller

    def _follow(self, function: FunctionType, followed: set[int]) -> Iterator[Any]:
        """Add a function to the parts, and yield callables that it may call.

        These are functions and classes in its closure and in its module.

        Args:
            function: The function. One outside of the caller's code is left out.
            followed: Identities of the objects that were followed before.
        """
        if not _is_callers(function.__code__):
            return
        space = function.__globals__
        code = converted(function.__code__, own_names(space))
        if code is not function.__code__:
            self.codes.append((function, code))
        # Variables of enclosing functions may hold generators and helpers.
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:
                # The variable of the cell has no value yet.
                continue
            self.cells.append(cell)
            if callable(value):
                yield value
        # Functions of one module share its namespace, which is followed once.
        if id(space) in followed:
            return
        followed.add(id(space))
        self.spaces.append(space)
        for value in list(space.values()):
            if isinstance(value, ModuleType) and not _lies_elsewhere(value):
                yield from filter(_may_be_callers, list(vars(value).values()))
            elif isinstance(value, functools.partial) or _may_be_callers(value):
                yield value

    def watch(
        self, patches: Patches, replaced: Mapping[int, tuple[Any, Any]], active: Active
    ) -> None:
        """Replace the code objects, and the sources of randomness that names hold.

        Args:
            patches: The replacements, which later undo these.
            replaced: Original samplers and their replacements, as in ``Patches``.
            active: Function that returns the run under way in this thread, or None.
        """
        for function, code in self.codes:
            patches.code(function, code)
        for space in self.spaces:
            for name, value in list(space.items()):
                replacement = _watched(value, replaced, active)
                if replacement is not None:
                    patches.item(space, name, replacement)
        for cell in self.cells:
            replacement = _watched(cell.cell_contents, replaced, active)
            if replacement is not None:
                patches.cell(cell, replacement)


def _lies_elsewhere(module: Any) -> bool:
    return (getattr(module, "__file__", None) or ELSEWHERE[0]).startswith(ELSEWHERE)


def _may_be_callers(value: Any) -> bool:
    """Return True for a Python function, or for a class of the caller's code."""
    # The methods of the classes of libraries are too many to be followed.
    if isinstance(value, type):
        return not _lies_elsewhere(sys.modules.get(value.__module__))
    return isinstance(value, FunctionType)


def _functions(item: Any) -> Iterator[FunctionType]:
    """Yield the Python functions that a callable or a class consists of."""
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
    """Return the replacement of a source of randomness, or None for anything else.

    Args:
        value: The value of a name.
        replaced: Original samplers and their replacements, as in ``Patches``.
        active: Function that returns the run under way in this thread, or None.
    """
    if type(value) is GENERATOR:
        return WatchedGenerator(value, active)
    if type(value) is STATE:
        return WatchedState(value, active)
    # An identity may be that of another object once the original is gone.
    original, replacement = replaced.get(id(value), (None, None))
    if original is value and original is not None:
        return replacement
    # A method that the code holds by a name of its own, as in ``draw = rng.laplace``.
    owner = getattr(value, "__self__", None)
    if type(owner) in (GENERATOR, STATE):
        return getattr(_watched(owner, replaced, active), value.__name__)
    if isinstance(value, MethodType) and id(value.__func__) in replaced:
        return MethodType(replaced[id(value.__func__)][1], owner)
    return None
