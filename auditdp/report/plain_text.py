"""Escaping of text from other people's code: one function for each place of display.

Names, pairs, exceptions and whole records come from others. The returned text moves no
cursor, draws nothing, notifies nobody and runs nothing. There are functions for a
terminal and the log of a CI service (``terminal``), comments (``markdown``,
``markdown_code``), commands of a workflow (``workflow``), SARIF (``sarif``), XML
(``xml``), and commands to paste into a shell (``shell``). In HTML, Jinja escapes the
markup and ``printable`` the control characters.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence

_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Unicode categories of characters that are escaped.

They are control, format and private characters, surrogates, and separators of lines.
"""
_RUNNER = re.compile(r"^((?:\x1b\[[\d;]*m|[^\S\n])*):(?=:)|#(?=#\w*\[)", re.MULTILINE)
"""Beginnings of commands to CI services in the output of a step.

They are ``::`` at the start of a line, after spaces and colours, and ``##[``,
``##vso[`` or ``##teamcity[`` anywhere (``ActionCommand.cs`` of actions/runner, Azure
Pipelines, TeamCity).
"""
_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_CALLING = re.compile(
    r"(?i)([@#]|\bGH-(?=\d)|\bwww(?=\.)|\b(?:https?|ftp|mailto|xmpp):)"
)
"""Beginnings of text that GitHub turns into links, or for which it notifies somebody.

They are mentions, issues and addresses without markup. To write a character of them as
an HTML entity does not help, since GitHub searches the rendered text.
"""
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
"""Options of recorded commands, with the number of their values."""
_REMARK = re.compile(r"  # [\w ,.:]+")


def printable(text: str, *, keep: str = "") -> str:
    r"""Return text whose control and formatting characters are escaped.

    Characters of ``keep`` are not escaped.

    >>> printable("a\x1b[31m")
    'a\\x1b[31m'
    """
    if text.isprintable():
        return text
    escaped = []
    for character in text:
        if character not in keep and unicodedata.category(character) in _INVISIBLE:
            character = repr(character)[1:-1]
        escaped.append(character)
    return "".join(escaped)


def without_commands(lines: str) -> str:
    r"""Return lines in which the beginnings of commands to CI services are escaped.

    Colours are kept. The escape is that of JSON, so that JSON keeps its meaning.

    >>> without_commands("audit\n  ::error::x")
    'audit\n  \\u003a:error::x'
    """
    return _RUNNER.sub(
        lambda found: f"{found[1] or ''}\\u{ord(found[0][-1]):04x}", lines
    )


def terminal(text: str) -> str:
    """Return text for a terminal, or for the log of a CI service; lines are kept."""
    return without_commands(printable(text, keep="\n"))


def markdown(text: str) -> str:
    r"""Return text as one line of Markdown that has no markup, HTML, link or mention.

    >>> markdown("a|b\n<i>*c*</i>"), markdown("@octocat")
    ('a\\|b &lt;i&gt;\\*c\\*&lt;/i&gt;', '@&#8203;octocat')
    """
    line = (
        one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    )
    line = _CALLING.sub(r"\1&#8203;", _SPECIAL.sub(r"\\\1", line))
    # At the start of a line these begin a list or underline a heading.
    line = re.sub(r"^([+=-]+)(?=\s|$)", r"\\\1", line)
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", line)


def markdown_code(text: str) -> str:
    """Return text as a Markdown code span on one line.

    Bars are not escaped, so it cannot be used in a table.

    >>> markdown_code("a `b`")
    '`` a `b` ``'
    """
    line = re.sub(r"\s*\n\s*", " ", printable(text, keep="\n")).strip()
    # A fence that is longer than every run of backticks ends at none of them.
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    if longest or not line:
        return f"{fence} {line} {fence}"
    return f"{fence}{line}{fence}"


def workflow(text: str) -> str:
    """Return text for a workflow command, escaped as in GitHub's toolkit."""
    return (
        printable(text, keep="\n")
        .replace("%", "%25")
        .replace("\r", "%0D")
        .replace("\n", "%0A")
    )


def sarif(text: str) -> str:
    """Return text for a SARIF message, without links (section 3.11.6 of 2.1.0)."""
    return printable(text, keep="\n").replace("](", "] (")


def xml(text: str) -> str:
    """Return text of characters that XML 1.0 allows; the writer escapes the markup."""
    return _NOT_XML.sub("\ufffd", printable(text, keep="\n"))


def shell(command: str) -> str:
    """Return a recorded command with each word quoted, to be pasted into a shell.

    Returns:
        The command; empty if it is not a command of auditdp or pytest about one audit.

    >>> shell("auditdp run 'a`b`.py::c' --seed 1"), shell("auditdp run a.py; rm -r x")
    ("auditdp run 'a`b`.py::c' --seed 1", '')
    >>> shell("curl x | sh")
    ''
    """
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        return ""
    start = int(words[:1] == ["pytest"])
    if words[:1] == ["auditdp"] and words[1:2]:
        start = 2 * (words[1] in ("run", "replay", "trace", "confirm"))
    names = []
    rest = iter(words[start:])
    for word in rest:
        if word not in _OPTIONS:
            names.append(word)
        elif _OPTIONS[word]:
            # The next word is the value of the option.
            next(rest, "")
    # A recorded command has the id of one audit.
    if not start or len(names) != 1 or names[0][:1] in ("", "-"):
        return ""
    remark = _REMARK.fullmatch(command.removeprefix(shlex.join(words)))
    return shlex.join(map(printable, words)) + (remark[0] if remark else "")


def shorten(text: str, length: int) -> str:
    """Return a text of at most ``length`` characters.

    The middle of a longer text is replaced by "…".
    """
    if len(text) <= length:
        return text
    head = (length - 1) // 2
    return f"{text[:head]}…{text[head + 1 - length :]}"


def one_line(text: str) -> str:
    """Return text in one line, with single spaces, and escaped as by ``printable``."""
    return " ".join(printable(text, keep="\n").split())


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table; the cells have to be Markdown already."""
    return [
        f"| {' | '.join(columns)} |",
        "|---" * len(columns) + "|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
