"""What is replaced while code is watched, and put back whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

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
        self._undo.callback(lambda: delattr(owner, name) if before is MISSING else setattr(owner, name, before))
        setattr(owner, name, value)

    def item(self, owner: dict[str, Any], name: str, value: Any) -> None:
        """Set an entry of a namespace."""
        before = owner.get(name, MISSING)

        def undo() -> None:
            if owner.get(name, MISSING) is not value:  # the code itself has rebound the name
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
