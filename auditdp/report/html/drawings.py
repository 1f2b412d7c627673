"""Drawings of recorded inputs and outputs, for a template.

A record has inputs and outputs as text. A graph is written as ``3 nodes, edges 01 12``,
and an array as NumPy writes it, with commas. The classes here describe the drawing of
such a text, and the templates make markup of them. Other text, and text that was
shortened, is not drawn (``Words``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from auditdp.files import json_of
from auditdp.report.plain_text import shorten


@dataclass(frozen=True)
class DrawingLimits:
    """Largest sizes of values that are drawn; larger ones stay text."""

    nodes: int = 24
    """Largest number of nodes of a graph."""
    columns: int = 24
    """Largest number of columns of an array."""
    rows: int = 8
    """Largest number of rows of an array."""
    characters: int = 4_000
    """Largest number of characters of the text of a pair or an output."""


LIMITS = DrawingLimits()

_EDGE = r"(?:\d+-\d+|\d\d)"
# Older records have 'edges none'.
_GRAPH = rf"\d+ nodes, (?:no edges|edges none|edges {_EDGE}(?: {_EDGE})*)"
_ARRAY = r"\[[-\d\s.,+e\[\]]*\]"
_NUMBER = r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?"
_VALUE = f"(?:{_GRAPH}|{_ARRAY}|{_NUMBER})"
_PAIR = re.compile(
    rf"(?:(?P<name>.*): )?(?P<first>{_VALUE}) \| (?P<second>{_VALUE})", re.DOTALL
)


@dataclass(frozen=True)
class Graph:
    """A graph with its nodes on a circle, in a square of 100 by 100."""

    nodes: Sequence[tuple[float, float]]
    """(x, y) of each node."""
    edges: Sequence[tuple[float, float, float, float, bool]]
    """(x, y, x, y) of both ends of each edge, and True if the other graph lacks it."""
    text: str
    """The recorded text."""


@dataclass(frozen=True)
class Cells:
    """An array of numbers, in rows."""

    rows: Sequence[Sequence[tuple[str, bool]]]
    """(number, True if the other array differs there), by row and column."""
    text: str
    """The recorded text."""


@dataclass(frozen=True)
class Words:
    """A recorded text that is displayed as it is."""

    text: str


Drawing = Graph | Cells | Words


@dataclass(frozen=True)
class DrawnPair:
    """The drawings of both inputs of a pair, and the name of the pair."""

    name: str
    first: Drawing
    second: Drawing


def inputs(pair: str) -> DrawnPair | None:
    """Return the drawings of both inputs of a recorded pair.

    ``pair`` is text such as 'name: [1, 2] | [1, 3]'.

    Returns:
        The drawings; None if the text is too long, or is not of two graphs, arrays or
        numbers.
    """
    if len(pair) > LIMITS.characters:
        return None
    match = _PAIR.fullmatch(pair.strip())
    if match is None:
        return None
    first, second = match["first"], match["second"]
    name = match["name"] or ""
    return DrawnPair(name, drawing(first, second), drawing(second, first))


def drawing(text: str, other: str = "") -> Drawing:
    """Return the drawing of a recorded value, or ``Words`` if it is not drawn.

    Differences from the recorded value ``other`` are marked; none if it is empty.
    """
    if len(text) > LIMITS.characters:
        return Words(text)
    if re.fullmatch(_GRAPH, text):
        return _graph(text, other) or Words(text)
    return _cells(text, other) or Words(text)


def _graph(text: str, other: str) -> Graph | None:
    nodes, edges = _parts(text)
    ends = [end for edge in edges for end in edge]
    if not max([0, *ends]) < nodes <= LIMITS.nodes:
        return None
    common = edges
    if re.fullmatch(_GRAPH, other):
        _, common = _parts(other)
    # The circle has radius 42 around the centre of the square.
    places = []
    for node in range(nodes):
        angle = 2 * math.pi * node / nodes
        across, up = 50 + 42 * math.sin(angle), 50 - 42 * math.cos(angle)
        places.append((round(across, 1), round(up, 1)))
    drawn = [(*places[i], *places[j], (i, j) not in common) for i, j in edges]
    return Graph(places, drawn, text)


def _parts(text: str) -> tuple[int, list[tuple[int, int]]]:
    """Return the number of nodes of a recorded graph, and its edges."""
    nodes, _, edges = text.partition(" nodes, ")
    pairs = []
    for edge in re.findall(_EDGE, edges):
        # Nodes of one digit stand beside each other, without a dash.
        first, second = edge.split("-") if "-" in edge else edge
        pairs.append((int(first), int(second)))
    return int(nodes), pairs


def _cells(text: str, other: str) -> Cells | None:
    rows = _rows(text)
    longest = max(map(len, rows), default=0)
    is_small = len(rows) <= LIMITS.rows and longest <= LIMITS.columns
    if not is_small or not rows or not all(rows):
        return None
    changed = _changed(rows, _rows(other) or rows)
    marked = []
    for row, marks in zip(rows, changed, strict=True):
        values = [shorten(f"{value:g}", 9) for value in row]
        marked.append(list(zip(values, marks, strict=True)))
    return Cells(marked, text)


def _changed(rows: list[list[float]], beside: list[list[float]]) -> list[list[bool]]:
    """Return a flag for each number of ``rows``: True if it differs from ``beside``.

    If the shapes agree, numbers at the same place are compared. Otherwise the arrays
    are aligned, and the flag is True for numbers that ``beside`` lacks.
    """
    if [len(row) for row in beside] == [len(row) for row in rows]:
        pairs = zip(rows, beside, strict=True)
        return [[x != y for x, y in zip(*pair, strict=True)] for pair in pairs]
    # Single rows are aligned by common runs of numbers, other arrays by common rows.
    if len(rows) == len(beside) == 1:
        return [_added(rows[0], beside[0])]
    added = _added([tuple(row) for row in rows], [tuple(row) for row in beside])
    return [[new] * len(row) for new, row in zip(added, rows, strict=True)]


def _added(items: Sequence[Any], others: Sequence[Any]) -> list[bool]:
    """Return a flag for each of ``items``: True if it is in no common block.

    A common block is a sequence of neighbouring items that ``others`` has as well.
    """
    added = [True] * len(items)
    matcher = SequenceMatcher(None, others, items, autojunk=False)
    for block in matcher.get_matching_blocks():
        added[block.b : block.b + block.size] = [False] * block.size
    return added


def _rows(text: str) -> list[list[float]]:
    """Return the rows of a recorded number, or array of one or two dimensions.

    The list is empty for any other text.
    """
    try:
        # NumPy writes "1." for 1.0, which JSON does not read.
        value = json_of(re.sub(r"(?<=\d)\.(?=[^\d]|$)", ".0", " ".join(text.split())))
    except ValueError:
        return []
    is_nested = isinstance(value, list) and value and isinstance(value[0], list)
    rows = []
    for row in value if is_nested else [value]:
        numbers = row if isinstance(row, list) else [row]
        # Larger integers have no double, so they cannot be written.
        if not all(isinstance(n, int | float) and abs(n) < 1e300 for n in numbers):
            return []
        rows.append(numbers)
    return rows
