"""Printed results of the five papers: tables as numbers, figures as statements.

One module a paper. Nothing here was measured by this project.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A number that a paper prints.

    Attributes:
        mean: The number, in the paper's unit.
        source: Table or section.
        sd: The standard deviation (or what follows ±) where it is printed.
    """

    mean: float
    source: str
    sd: float | None = None


@dataclass(frozen=True)
class Statement:
    """A statement of a paper about a figure, in this project's words.

    Attributes:
        source: Figure or section.
        text: What it says.
        verified: Whether the paper's text says so; a figure's own points cannot be read in the text.
    """

    source: str
    text: str
    verified: bool = True
