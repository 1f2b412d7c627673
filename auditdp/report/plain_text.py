"""Where text of other people's code goes: one function for each kind of reader, through which all of it passes.

Names, pairs, exceptions and whole records come from others. What is returned here moves no cursor, draws nothing, calls
nobody and runs nothing, wherever it is read: on a terminal or in the log of a CI service (``terminal``), in a comment
(``markdown``, ``markdown_code``), as a command of a workflow (``workflow``), in XML (``xml``), or pasted into a shell
(``shell``). Jinja escapes HTML, of which ``printable`` escapes the rest.

What Markdown is made of beside text: commands, tables and drawings.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice

_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
_RUNNER = re.compile(r"^((?:\x1b\[[\d;]*m|[^\S\n])*):(?=:)|#(?=#\w*\[)", re.MULTILINE)
"""What a service takes for a command in what a step prints: ``::`` at the start of a line, spaces and colours aside, and
``##[``, ``##vso[`` or ``##teamcity[`` anywhere (``ActionCommand.cs`` of actions/runner, Azure Pipelines, TeamCity)."""
_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_CALLING = re.compile(
    r"(?i)([@#]|\bGH-(?=\d)|\bwww(?=\.)|\b(?:https?|ftp|mailto|xmpp):)"
)
"""Beginnings of what GitHub links, or sends somebody a message for, in text that has no markup: mentions, issues, addresses.
An entity does not help, since GitHub looks for them in what was rendered."""
_APART = "&#8203;"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OPTIONS = {
    "--seed": 1,
    "--alpha": 1,
    "--budget": 1,
    "-P": 1,
    "--mutants": 0,
    "--no-trace": 0,
    "--auditdp-seed": 1,
    "--auditdp-budget": 1,
}
"""Options of the commands that a run records, and how many values they take."""
_REMARK = re.compile(r"  # [\w ,.:]+")


def printable(text: str, *, keep: str = "") -> str:
    r"""Return text that moves no cursor and reorders no letters: control and formatting characters become escapes.

    >>> printable("a\x1b[31m")
    'a\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(
        repr(character)[1:-1]
        if character not in keep and unicodedata.category(character) in _INVISIBLE
        else character
        for character in text
    )


def without_commands(lines: str) -> str:
    r"""Return lines of which a CI service takes none for a command of its own; colours stay, and JSON says the same.

    >>> without_commands("audit\n  ::error::x")
    'audit\n  \\u003a:error::x'
    """
    return _RUNNER.sub(
        lambda found: f"{found[1] or ''}\\u{ord(found[0][-1]):04x}", lines
    )


def terminal(text: str) -> str:
    """Return text for a terminal, or for what a step of a workflow prints."""
    return without_commands(printable(text, keep="\n"))


def markdown(text: str) -> str:
    r"""Return text for a table or a paragraph: one line, without markup, HTML, links or mentions.

    >>> markdown("a|b\n<i>*c*</i>"), markdown("@octocat")
    ('a\\|b &lt;i&gt;\\*c\\*&lt;/i&gt;', '@&#8203;octocat')
    """
    line = (
        one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    )
    line = _CALLING.sub(rf"\1{_APART}", _SPECIAL.sub(r"\\\1", line))
    line = re.sub(r"^([+=-]+)(?=\s|$)", r"\\\1", line)
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", line)


def markdown_code(text: str) -> str:
    """Return text as a code span on one line, in which nothing is changed; not for tables, whose bars it could add.

    >>> markdown_code("a `b`")
    '`` a `b` ``'
    """
    line = re.sub(r"\s*\n\s*", " ", printable(text, keep="\n")).strip()
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}" if longest or not line else f"{fence}{line}{fence}"


def workflow(text: str) -> str:
    """Return the text of a workflow command, escaped as the toolkit of GitHub does it: no line of it is another command."""
    return (
        printable(text, keep="\n")
        .replace("%", "%25")
        .replace("\r", "%0D")
        .replace("\n", "%0A")
    )


def sarif(text: str) -> str:
    """Return the text of a message of SARIF, in which ``[a](b)`` would be a link (section 3.11.6 of its version 2.1.0)."""
    return printable(text, keep="\n").replace("](", "] (")


def xml(text: str) -> str:
    """Return text that XML 1.0 can hold, for what writes XML and escapes markup by itself."""
    return _NOT_XML.sub("\ufffd", printable(text, keep="\n"))


def shell(command: str) -> str:
    """Return a recorded command for a person to paste, each word quoted; empty where it is none that a run records.

    >>> shell("auditdp run 'a`b`.py::c' --seed 1"), shell("auditdp run a.py; rm -r x"), shell("curl x | sh")
    ("auditdp run 'a`b`.py::c' --seed 1", '', '')
    """
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        return ""
    is_ours = words[:1] == ["auditdp"] and words[1:2] in (
        ["run"],
        ["replay"],
        ["trace"],
        ["confirm"],
    )
    start = 2 if is_ours else int(words[:1] == ["pytest"])
    names, rest = [], iter(words[start:])
    for word in rest:
        if word in _OPTIONS:
            list(islice(rest, _OPTIONS[word]))  # its value
        else:
            names.append(word)
    if not start or len(names) != 1 or names[0][:1] in ("", "-"):
        return ""
    remark = _REMARK.fullmatch(command.removeprefix(shlex.join(words)))
    return shlex.join(map(printable, words)) + (remark[0] if remark else "")


def shorten(text: str, length: int) -> str:
    """Return ``text`` with its middle cut out where it is too long."""
    if len(text) <= length:
        return text
    head = (length - 1) // 2
    return f"{text[:head]}…{text[head + 1 - length :]}"


def one_line(text: str) -> str:
    """Return printable text in one line."""
    return " ".join(printable(text, keep="\n").split())


_GRAPH = re.compile(
    r"(?<!\d)(10|\d) nodes, (?:edges (\d\d(?: \d\d)*)|no edges|edges none)"
)


def block(text: str) -> list[str]:
    """Return a command as an indented block, which needs no fence that the text could end."""
    return ["    " + shell(text)]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table whose cells are Markdown already."""
    return [
        f"| {' | '.join(columns)} |",
        "|---" * len(columns) + "|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def graphs(pair: str, output: str = "") -> list[str]:
    """Return a Mermaid drawing of the two graphs of a pair, of at most ten nodes; nothing of any other pair."""
    found = _GRAPH.findall(pair)
    if len(found) != 2:
        return []
    lines = ["```mermaid", "graph LR"]
    for letter, title, (nodes, edges) in zip(
        "ab", ("first input", "second input"), found, strict=True
    ):
        lines.append(f"  subgraph {letter}[{title}]")
        lines += [f"    {letter}{node}(({node}))" for node in range(int(nodes))]
        lines += [f"    {letter}{e[0]} --- {letter}{e[1]}" for e in edges.split()]
        lines.append("  end")
    return [*lines, "```"]
