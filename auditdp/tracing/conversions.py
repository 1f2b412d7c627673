"""Calls of ``int`` and ``float`` in the caller's code, which return noise for noise.

``int(x)`` returns an exact ``int`` whatever ``x`` is, so ``int(rng.geometric(p)) -
int(rng.geometric(p))`` would lose its draws. While code is watched, its functions have
another code object. In it, a *call* of these two names calls `watched_int` or
`watched_float`. Every other use of the names, as in ``isinstance(x, int)``, is
untouched. CPython's bytecode marks a call by one bit: a name that is loaded to be
called is pushed together with a null.
"""

from __future__ import annotations

import builtins
import dis
from functools import lru_cache
from types import CodeType
from typing import Any

from auditdp.tracing.noise import Noise

NAMES = {"int": "__watched_int__", "float": "__watched_float__"}
LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]
EXTENDED_ARG = dis.opmap["EXTENDED_ARG"]
MAX_NAMES = 127
"""Largest number of names of a function, with the names that are added to it.

Calls in a function with this many names or more are not replaced: the bytecode has 7
bits for the number of a name.
"""


def watched_int(*arguments: Any, **keywords: Any) -> Any:
    """Return ``int(...)``; whole noise on one number stays noise."""
    if len(arguments) == 1 and not keywords and type(arguments[0]) is Noise:
        return arguments[0].as_number(int)
    return int(*arguments, **keywords)


def watched_float(*arguments: Any) -> Any:
    """Return ``float(...)``; noise on one number stays noise."""
    if len(arguments) == 1 and type(arguments[0]) is Noise:
        return arguments[0].as_number(float)
    return float(*arguments)


FUNCTIONS = {NAMES["int"]: watched_int, NAMES["float"]: watched_float}


@lru_cache(maxsize=4096)
def converted(code: CodeType, own: frozenset[str] = frozenset()) -> CodeType:
    """Return code whose calls of ``int`` and ``float`` are watched.

    Args:
        code: The code of a function.
        own: Names among ``int`` and ``float`` that its module defines itself. Their
            calls stay as they are.

    Returns:
        The code; the same object if no call is replaced.
    """
    constants = tuple(
        converted(part, own) if isinstance(part, CodeType) else part
        for part in code.co_consts
    )
    # A name at the end of the table leaves the numbers of all others as they are.
    body, names = bytearray(code.co_code), list(code.co_names)
    for name, watched in NAMES.items():
        if name in own or name not in names or len(names) >= MAX_NAMES:
            continue
        called = (names.index(name) << 1) | 1
        # An instruction takes two bytes. After EXTENDED_ARG its argument is a part of a
        # number.
        places = [
            at
            for at in range(0, len(body), 2)
            if body[at] == LOAD_GLOBAL
            and body[at + 1] == called
            and not (at and body[at - 2] == EXTENDED_ARG)
        ]
        if places:
            names.append(watched)
        for at in places:
            body[at + 1] = ((len(names) - 1) << 1) | 1
    is_same = all(
        new is old for new, old in zip(constants, code.co_consts, strict=True)
    )
    if is_same and len(names) == len(code.co_names):
        return code
    return code.replace(co_code=bytes(body), co_names=tuple(names), co_consts=constants)


def own_names(namespace: dict[str, Any]) -> frozenset[str]:
    """Return the names among ``int`` and ``float`` that a module defines itself."""
    return frozenset(
        name
        for name in NAMES
        if namespace.get(name, getattr(builtins, name)) is not getattr(builtins, name)
    )
