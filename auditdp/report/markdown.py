"""Text for Markdown: whatever it holds, it is shown as it is, on one line, and draws or runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from auditdp.report.text import printable

_SPECIAL = re.compile(r"([\\`*_\[\]|~])")
_GRAPH = re.compile(r"(\d+) nodes, (?:edges ((?:\d\d ?)+)|no edges|edges none)")


def cell(text: str) -> str:
    r"""Return text for a table or a paragraph: one line, without markup, HTML or control characters.

    >>> cell("a|b\n<i>*c*</i>")
    'a\\|b &lt;i&gt;\\*c\\*&lt;/i&gt;'
    """
    line = " ".join(printable(text, keep="\n").split())
    line = _SPECIAL.sub(r"\\\1", line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    line = re.sub(r"(?i)\b(https?|ftp|mailto)(:)", r"\1&#58;", line)
    line = re.sub(r"^([#+=-]+)(?=\s|$)", r"\\\1", line)
    return re.sub(r"^(\d+)([.)])(?=\s)", r"\1\\\2", line)


def code(text: str) -> str:
    """Return text as a code span on one line, whatever backticks it holds; not for tables, whose bars it could add.

    >>> code("a `b`")
    "`a 'b'`"
    """
    line = " ".join(printable(text, keep="\n").split())
    return "`" + line.replace("`", "'") + "`"


def block(text: str) -> list[str]:
    """Return a command as an indented block, which needs no fence that the text could end."""
    return ["    " + " ".join(printable(text, keep="\n").split())]


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
