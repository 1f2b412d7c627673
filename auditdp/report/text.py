"""Names and pairs as a reader can safely see them; they come from other people's code."""

from __future__ import annotations

import unicodedata

_INVISIBLE = ("Cc", "Cf", "Cs", "Co")


def printable(text: str, *, keep: str = "") -> str:
    r"""Return text that moves no cursor and reorders no letters: control and formatting characters become escapes.

    >>> printable("a\x1b[31m")
    'a\\x1b[31m'
    """
    return "".join(
        repr(character)[1:-1] if character not in keep and unicodedata.category(character) in _INVISIBLE else character
        for character in text
    )


def shorten(text: str, length: int) -> str:
    """Return ``text`` with its middle cut out where it is too long."""
    if len(text) <= length:
        return text
    head = (length - 1) // 2
    return f"{text[:head]}…{text[head + 1 - length :]}"
