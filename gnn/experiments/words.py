"""Counts in words."""

from __future__ import annotations

from collections.abc import Sequence


def are(number: int) -> str:
    """Return "is" for 1 and "are" otherwise."""
    return "is" if number == 1 else "are"


def counted(*parts: tuple[int, str]) -> list[str]:
    """Return "NUMBER are WORD" for each number that is not 0."""
    return [f"{number:,} {are(number)} {word}" for number, word in parts if number]


def joined(parts: Sequence[str]) -> str:
    """Return "A, B and C"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
