"""What Markdown is made of beside text: commands, tables and drawings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from auditdp.report.text import shell

_GRAPH = re.compile(r"(?<!\d)(10|\d) nodes, (?:edges (\d\d(?: \d\d)*)|no edges|edges none)")


def block(text: str) -> list[str]:
    """Return a command as an indented block, which needs no fence that the text could end."""
    return ["    " + shell(text)]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table whose cells are Markdown already."""
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *(f"| {' | '.join(row)} |" for row in rows)]


def graphs(pair: str, output: str = "") -> list[str]:
    """Return a Mermaid drawing of the two graphs of a pair, of at most ten nodes; nothing of any other pair."""
    found = _GRAPH.findall(pair)
    if len(found) != 2:
        return []
    lines = ["```mermaid", "graph LR"]
    for letter, title, (nodes, edges) in zip("ab", ("first input", "second input"), found, strict=True):
        lines.append(f"  subgraph {letter}[{title}]")
        lines += [f"    {letter}{node}(({node}))" for node in range(int(nodes))]
        lines += [f"    {letter}{e[0]} --- {letter}{e[1]}" for e in edges.split()]
        lines.append("  end")
    return [*lines, "```"]
