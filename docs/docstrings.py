"""Differences between plain docstrings and Markdown, for the reference."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> (?:.+\n?)+", flags=re.M)
STARRED = re.compile(r"(?<=[α-ω])\*(?=[\s,.;])")
"""A symbol such as ε*, whose star is no emphasis."""


def as_markdown(docstring: str) -> str:
    """Return a docstring with fences around its doctests, and with stars of symbols that stay stars."""
    fenced = EXAMPLE.sub(
        lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", docstring
    )
    return STARRED.sub(r"\\*", fenced)


class AsMarkdown(griffe.Extension):
    """Turns docstrings into Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)
