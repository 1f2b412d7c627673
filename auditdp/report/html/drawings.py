"""The inputs of a pair and the telling output, read back from how a record writes them, for a template to draw.

A record has text alone. A graph is written as ``3 nodes, edges 01 12``, an array as NumPy writes it with commas; whatever is
neither, or was cut short, stays text. The templates draw what these classes hold; nothing here writes markup.
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

MOST_NODES = 24
MOST_CELLS = 24
"""Columns of an array that is drawn."""
MOST_ROWS = 8
LONGEST = 4_000
"""Characters of a pair or an output that is drawn."""
RADIUS = 42.0
CENTRE = 50.0

_EDGE = r"(?:\d+-\d+|\d\d)"
_GRAPH = rf"\d+ nodes, (?:no edges|edges none|edges {_EDGE}(?: {_EDGE})*)"
"""Records that are older have 'edges none'."""
_ARRAY = r"\[[-\d\s.,+e\[\]]*\]"
_NUMBER = r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?"
_VALUE = f"(?:{_GRAPH}|{_ARRAY}|{_NUMBER})"
_PAIR = re.compile(
    rf"(?:(?P<name>.*): )?(?P<first>{_VALUE}) \| (?P<second>{_VALUE})", re.DOTALL
)


@dataclass(frozen=True)
class Graph:
    """A graph on a circle, in a square of 100 by 100."""

    nodes: Sequence[tuple[float, float]]
    """The place of each node."""
    edges: Sequence[tuple[float, float, float, float, bool]]
    """Both places, and whether the other graph lacks the edge."""
    text: str


@dataclass(frozen=True)
class Cells:
    """An array in rows of (number, whether the other array has another one there)."""

    rows: Sequence[Sequence[tuple[str, bool]]]
    text: str


@dataclass(frozen=True)
class Words:
    """What is not drawn."""

    text: str


Drawing = Graph | Cells | Words


@dataclass(frozen=True)
class DrawnPair:
    """Both inputs of a pair, ready to be drawn, and what the pair is called."""

    name: str
    first: Drawing
    second: Drawing


def inputs(pair: str) -> DrawnPair | None:
    """Return the two inputs of a recorded pair; None where its text does not say where one ends and the other begins."""
    found = _PAIR.fullmatch(pair.strip()) if len(pair) <= LONGEST else None
    if found is None:
        return None
    first, second = found["first"], found["second"]
    return DrawnPair(
        found["name"] or "", drawing(first, second), drawing(second, first)
    )


def drawing(text: str, other: str = "") -> Drawing:
    """Return how one value is drawn, with what differs from another one marked."""
    if len(text) > LONGEST:
        return Words(text)
    if re.fullmatch(_GRAPH, text):
        return _graph(text, other) or Words(text)
    return _cells(text, other) or Words(text)


def _graph(text: str, other: str) -> Graph | None:
    nodes, edges = _parts(text)
    if not 0 < nodes <= MOST_NODES or any(
        end >= nodes for edge in edges for end in edge
    ):
        return None
    beside = _parts(other)[1] if re.fullmatch(_GRAPH, other) else edges
    turn = 2 * math.pi / nodes
    at = [
        (
            round(CENTRE + RADIUS * math.sin(k * turn), 1),
            round(CENTRE - RADIUS * math.cos(k * turn), 1),
        )
        for k in range(nodes)
    ]
    return Graph(at, [(*at[i], *at[j], (i, j) not in beside) for i, j in edges], text)


def _parts(text: str) -> tuple[int, list[tuple[int, int]]]:
    """The number of nodes and the edges of a written graph; single digits stand without a dash between them."""
    nodes, _, edges = text.partition(" nodes, ")
    ends = [
        edge.split("-") if "-" in edge else [edge[:1], edge[1:]]
        for edge in re.findall(_EDGE, edges)
    ]
    return int(nodes), [(int(i), int(j)) for i, j in ends]


def _cells(text: str, other: str) -> Cells | None:
    rows, beside = _rows(text), _rows(other)
    if (
        not rows
        or len(rows) > MOST_ROWS
        or any(not 0 < len(row) <= MOST_CELLS for row in rows)
    ):
        return None
    changed = _changed(rows, beside) if beside else [[False] * len(row) for row in rows]
    marked = [
        [
            (shorten(f"{value:g}", 9), mark)
            for value, mark in zip(row, marks, strict=True)
        ]
        for row, marks in zip(rows, changed, strict=True)
    ]
    return Cells(marked, text)


def _changed(rows: list[list[float]], beside: list[list[float]]) -> list[list[bool]]:
    """Which numbers others do not have: at their place, or where there are more of them, wherever they stand."""
    if [len(row) for row in beside] == [len(row) for row in rows]:
        return [
            [x != y for x, y in zip(row, line, strict=True)]
            for row, line in zip(rows, beside, strict=True)
        ]
    if len(rows) == len(beside) == 1:
        return [_added(rows[0], beside[0])]
    added = _added([tuple(row) for row in rows], [tuple(row) for row in beside])
    return [[new] * len(row) for new, row in zip(added, rows, strict=True)]


def _added(items: Sequence[Any], others: Sequence[Any]) -> list[bool]:
    """Which items are none of the longest run that both have in common, and so on beside it."""
    kept = SequenceMatcher(None, others, items, autojunk=False).get_matching_blocks()
    same = {block.b + k for block in kept for k in range(block.size)}
    return [k not in same for k in range(len(items))]


def _rows(text: str) -> list[list[float]]:
    """The rows of numbers of a written array; none where it is not one or two levels of them."""
    try:
        value = json_of(re.sub(r"(?<=\d)\.(?=[^\d]|$)", ".0", " ".join(text.split())))
    except ValueError:
        return []
    rows = (
        value
        if isinstance(value, list) and value and isinstance(value[0], list)
        else [value]
    )
    rows = [row if isinstance(row, list) else [row] for row in rows]
    return (
        rows
        if all(
            isinstance(n, int | float) and abs(n) < 1e300 for row in rows for n in row
        )
        else []
    )
