"""A generator that reports every draw of a mechanism to a listener.

The code of the mechanism is not changed. It receives a generator on the same stream,
which calls the listener with every draw and its place in the code.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from auditdp.mechanism.protocol import PerCall, as_mechanism

Position = tuple[int | None, int | None, int | None, int | None]
"""First and last line, first and last column; each is None if it is unknown."""
Key = tuple[tuple[CodeType, Position], ...]
"""A place in the code: the chain of calls, from the drawing function outwards."""
BYTES = 2
"""Length of a bytecode instruction, in bytes."""


@dataclass(frozen=True)
class Draw:
    """One draw of a mechanism, before it is performed."""

    method: str
    """Name of the generator's method."""
    arguments: Sequence[Any]
    """Positional arguments that the mechanism gives to the method."""
    keywords: dict[str, Any]
    """Keyword arguments that the mechanism gives to the method."""
    perform: Callable[..., Any]
    """Performs the draw with the given arguments, and returns the result."""
    key: Key
    """The place in the code that draws."""
    size: int | None
    """Number of independent runs along the first axis; None if a call is one run."""
    earlier: Any
    """State of the bit generator before the first draw of this method in the call; None
    for the first draw."""
    generator: np.random.Generator

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """Return the argument at ``position`` or with ``name``, or else ``default``."""
        return (
            self.arguments[position]
            if position < len(self.arguments)
            else self.keywords.get(name, default)
        )

    def with_argument(self, position: int, name: str, value: Any) -> Any:
        """Perform the draw with one argument replaced, and return the result."""
        arguments, keywords = list(self.arguments), dict(self.keywords)
        if position < len(arguments):
            arguments[position] = value
        else:
            keywords[name] = value
        return self.perform(*arguments, **keywords)

    def as_is(self) -> Any:
        """Perform the draw with the mechanism's arguments, and return the result."""
        return self.perform(*self.arguments, **self.keywords)


class Watched(np.random.Generator):
    """A generator on the stream of another generator, with a listener.

    The listener gets each draw, performs it, and returns its result. So it may change
    the draw.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        listener: Callable[[Draw], Any],
        size: int | None,
    ) -> None:
        super().__init__(rng.bit_generator)
        self._listener = listener
        self._size = size
        self._first: dict[str, Any] = {}
        self._inside = False

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Return children that are watched as well."""
        children = np.random.Generator(self.bit_generator).spawn(n_children)
        return [Watched(child, self._listener, self._size) for child in children]

    def _draw(
        self, method: str, arguments: Sequence[Any], keywords: dict[str, Any]
    ) -> Any:
        perform = functools.partial(getattr(np.random.Generator, method), self)
        # A method may call others; only the outer call is a draw of the mechanism.
        if self._inside:
            return perform(*arguments, **keywords)
        earlier = self._first.get(method)
        if earlier is None:
            self._first[method] = self.bit_generator.state
        self._inside = True
        try:
            return self._listener(
                Draw(
                    method,
                    arguments,
                    keywords,
                    perform,
                    _key(),
                    self._size,
                    earlier,
                    self,
                )
            )
        finally:
            self._inside = False


def _watch(method: str) -> Callable[..., Any]:
    def draw(self: Watched, *arguments: Any, **keywords: Any) -> Any:
        return self._draw(method, arguments, keywords)

    return draw


METHODS = tuple(
    name
    for name in dir(np.random.Generator)
    if not name.startswith("_")
    and name != "spawn"
    and callable(getattr(np.random.Generator, name))
)
for _method in METHODS:
    setattr(Watched, _method, _watch(_method))


def _enter(run: Callable[..., Any], *arguments: Any, rng: np.random.Generator) -> Any:
    """Call a mechanism; the frames between this one and a draw are the mechanism's."""
    return run(*arguments, rng=rng)


def _key() -> Key:
    """Return the place in the mechanism's code, from the drawing function outwards."""
    frame, found = sys._getframe(), []
    while frame is not None and frame.f_code is not _enter.__code__:
        if frame.f_code.co_filename != __file__:
            found.append(
                (frame.f_code, _positions(frame.f_code)[frame.f_lasti // BYTES])
            )
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def _positions(code: CodeType) -> list[Position]:
    """Return the position of each instruction in the source.

    The instruction alone does not identify a place: after many executions, Python makes
    the same call by another instruction.
    """
    return list(code.co_positions())


def watched_call(
    mechanism: Any,
    data: Any,
    size: int,
    rng: np.random.Generator,
    listener: Callable[[Draw], Any],
) -> Any:
    """Call a mechanism and return its outputs; ``listener`` performs every draw."""
    adapted = as_mechanism(mechanism)
    if not isinstance(adapted, PerCall):
        return _enter(adapted, data, size, rng=Watched(rng, listener, size))
    single = adapted.function

    def one(data: Any, rng: np.random.Generator) -> Any:
        return _enter(single, data, rng=Watched(rng, listener, None))

    return PerCall(one)(data, size, rng=rng)
