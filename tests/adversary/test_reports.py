"""What a report can do to its reader: every format, with hostile text in every field, is parsed as its reader parses it."""

import ast
import functools
import json
import re
import shlex
import unicodedata
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from markdown_it import MarkdownIt

import auditdp
from auditdp.cli.common import print_report
from auditdp.record.differences import Difference, Kind
from auditdp.record.results import Verdict
from auditdp.report import terminal
from auditdp.report.formats import FORMATS, render, report_files
from auditdp.report.html.notebook import printed, printed_markdown
from auditdp.report.plain_text import markdown, markdown_code, shell
from auditdp.report.terminal import differences_text
from auditdp.runner.plan import Task
from tests.adversary.records import number_in, record, text_in

SEEN = "zqx"
"""A word of every attack, by which a test sees that the text has come through."""
ATTACKS = {
    "runner": "zqx\n::error file=a::b\n \t::stop-commands::t\n##[error]c ##vso[task.x]y ##teamcity[z]\r::notice::d",
    "wrapped": "a" * 190 + "::error::zqx " + "b" * 61 + "::warning::c ::debug::d",
    "terminal": "zqx\x1b[2J\x1b]0;t\x07\x9b31m\r\b\u202e\u2028\u2029\u200b\x7f\x00\x85",
    "calls": "zqx @octocat @org/team #1 o/r#2 GH-3 www.evil.example https://evil.example mailto:a@b.example ftp://c",
    "markup": "zqx <img src=x onerror=alert(1)> [l](javascript:alert(1)) ![i](http://e/x) **b** $y$ | c | ~~d~~ `e",
    "blocks": "# zqx\n- i\n1. j\n\n    k\n```\nl\n```\n***\n| a | b |\n|---|---|\n> [!NOTE]\n<details>\n</details>\n---",
    "start": "- zqx",
    "xml": "zqx ]]> <!-- --> &amp; &#0; \ufffe <x/> \" '",
    "shell": "zqx `touch X` $(touch Y) '; touch Z; ' \" & | > <",
}
COLOURS = re.compile(r"\x1b\[[\d;]*m")
CALLING = re.compile(
    r"(?i)(?<!\w)@\w|#\d|\bGH-\d|\bwww\.\w|\b(?:https?|ftp)://|\bmailto:\w|\w@\w"
)
"""What GitHub links, or sends somebody a message for, where it finds it in rendered text outside code."""
CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")
OWN_TAGS = {"details", "/details", "summary", "/summary", "sub", "/sub", "br"}
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def runs_no_command(text):
    """No line is a command of GitHub's runner, of Azure Pipelines or of TeamCity, by the rules of their parsers."""
    for line in re.split(r"[\r\n]", text):
        assert not COLOURS.sub("", line).lstrip().startswith("::"), line
        assert not re.search(r"##\w*\[", line), line


def moves_no_cursor(text):
    wrong = {
        character
        for character in text
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    }
    assert wrong <= {"\n"}, wrong


def on_a_terminal(text, record):
    moves_no_cursor(text)
    runs_no_command(text)


def as_data(text, record):
    moves_no_cursor(
        re.sub(r"[\u0080-\U0010ffff]|\x7f", "", text)
    )  # JSON escapes the rest where it has to
    json.loads(text)


def as_sarif(text, record):
    (run,) = json.loads(text)["runs"]
    texts = [found["message"]["text"] for found in run["results"]]
    texts += [
        found["message"]["text"]
        for found in run["invocations"][0]["toolExecutionNotifications"]
    ]
    assert len(texts) > 4
    for found in texts:
        moves_no_cursor(found)
        assert "](" not in found


def as_markdown(text, record):
    moves_no_cursor(text)
    assert "$" not in re.sub(r"\\.", "", CODE.sub("", text))  # formulas
    for token in MARKDOWN.parse(text):
        assert token.type not in ("fence", "code_block", "blockquote_open", "hr"), token
        if token.type == "html_block":
            tags(token.content)
        rest = ""
        for inside in token.children or ():
            assert inside.type not in ("image", "link_open", "em_open", "s_open"), (
                inside
            )
            if inside.type == "html_inline":
                tags(inside.content)
            rest += inside.content if inside.type == "text" else "\n"
        assert not CALLING.search(rest), rest


def tags(html):
    for tag in re.findall(r"<(?!!--)([^>]*)>", html):
        assert tag in OWN_TAGS, html


def as_html(text, record):
    seen = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attributes):
            seen.append(tag)
            assert tag not in (
                "base",
                "embed",
                "form",
                "iframe",
                "object",
                "template",
            ), tag
            for name, value in attributes:
                assert not name.startswith("on"), (tag, name)
                if name == "src":
                    assert value.startswith("data:image/svg+xml"), value
                if name == "href":
                    assert re.fullmatch(r"(\.\./)?[\w./-]*(#[\w-]+)?", value), value

    Parser(convert_charrefs=True).feed(text)
    assert seen.count("html") == 1
    assert seen.count("script") <= 1  # the search of the index
    moves_no_cursor(text)


def as_xml(text, record):
    moves_no_cursor(text)
    root = ElementTree.fromstring(text)
    assert len(list(root.iter("testcase"))) == len(record.results) + len(record.missing)
    assert {each.tag for each in root.iter()} <= {
        *(
            "testsuites",
            "testsuite",
            "properties",
            "property",
            "testcase",
            "failure",
            "error",
            "skipped",
            "system-out",
        )
    }


def as_commands(text, record):
    """One command a line, each with a title and a message, of the levels that there are, and nothing else."""
    moves_no_cursor(text)
    lines = text.splitlines()
    assert 0 < len(lines) <= 30
    for line in lines:
        assert re.fullmatch(
            r"::(error|warning|notice) (file=[^,:]*,line=\d+,)?title=[^,:]*::.*", line
        ), line


PARSED = {
    "terminal": on_a_terminal,
    "json": as_data,
    "html": as_html,
    "claims": as_markdown,
    "claims-json": as_data,
    "junit": as_xml,
    "sarif": as_sarif,
    "github": as_commands,
    "pull-request": as_markdown,
}
"""How the reader of each format reads it; a new format has its line here."""


@functools.cache
def hostile(attack, *, real=True):
    return record(
        text_in(ATTACKS[attack], real=real),
        name=lambda k: f"{ATTACKS[attack]}{k}.py::{ATTACKS[attack]}",
    )


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "html"])
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("real", [True, False])
def test_hostile_text_in_every_field_does_nothing(name, attack, real):
    made = hostile(attack, real=real)
    text = render(made, name)
    PARSED[name](text, made)
    assert SEEN in text


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "html"])
def test_a_report_on_standard_output_runs_no_command(name, capsys):
    made = hostile("runner")
    print_report(render(made, name), name)
    printed = capsys.readouterr().out
    PARSED[name](printed, made)
    if name != "github":
        runs_no_command(printed)


@pytest.mark.parametrize("attack", ["terminal", "markup"])
def test_hostile_text_in_every_field_does_nothing_on_the_pages(attack):
    made = hostile(attack)
    for path, text in report_files(made, "html", Path("report.html")).items():
        assert not path.is_absolute()
        assert ".." not in path.parts
        if path.suffix == ".html":
            as_html(text, made)


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_text_in_every_field_of_a_trace_comes_through_as_text(attack):
    """In what a person is shown of a finding, of clean code, and of a trace in a notebook."""
    made = hostile(attack)
    for verdict in (Verdict.VIOLATED, Verdict.MISCALIBRATED, Verdict.NOT_REFUTED):
        results = [
            replace(result, verdict=verdict, expected="holds")
            for result in made.results
        ]
        shown = replace(made, results=results)
        for name in (
            ("sarif", "github", "pull-request")
            if verdict is not Verdict.NOT_REFUTED
            else ()
        ):
            text = render(shown, name)
            PARSED[name](text, shown)
            marker = "%0ATrace: " if name == "github" else "race: "
            assert marker in text
        (game, *_) = [
            result
            for result in results
            if any(evidence.kind == "game" for evidence in result.evidence)
        ]
        text = terminal.line(game, verbose=True, width=61)
        on_a_terminal(text, shown)
        assert "releases" in text
        assert ("    trace   " in text) == (verdict is not Verdict.NOT_REFUTED)
        as_part_of_a_page(game._repr_html_())
    as_part_of_a_page(printed(ATTACKS[attack]))
    as_markdown(printed_markdown(ATTACKS[attack]), None)


def as_part_of_a_page(text):
    as_html(f"<html>{text}</html>", None)


@pytest.mark.parametrize("attack", ["runner", "wrapped", "terminal"])
@pytest.mark.parametrize("width", [20, 61, 100])
def test_no_width_of_a_terminal_makes_a_command_of_a_text(attack, width):
    on_a_terminal(terminal.report(hostile(attack), width=width), None)
    coloured = terminal.report(hostile(attack), width=width, colour=True)
    runs_no_command(coloured)
    moves_no_cursor(COLOURS.sub("", coloured))


@pytest.mark.parametrize("attack", ATTACKS)
def test_differences_and_a_baseline_do_nothing_either(attack):
    text, made = ATTACKS[attack], hostile(attack)
    found = [
        Difference(text, kind, text, result)
        for kind, result in zip(Kind, made.results, strict=False)
    ]
    on_a_terminal(differences_text(found, known=3, against=text, width=61), None)
    for name in ("junit", "sarif", "github", "pull-request"):
        PARSED[name](
            render(made, name, differences=found),
            replace(made, results=[*made.results, made.results[0]]),
        )


@pytest.mark.filterwarnings(
    "ignore:Attempting to set identical"
)  # of Matplotlib, for a plot of one point
@pytest.mark.parametrize(
    "number",
    [0.0, 5e-324, 1e308, -1e308, 2.0**63, float("inf"), float("-inf"), float("nan")],
)
def test_no_number_in_any_field_ends_a_report(number):
    made = record(number_in(number))
    for name in FORMATS:
        if name != "html" or number == 2.0**63:
            assert render(made, name)


NAMES = (
    "audits/audit_`touch X`.py::f",
    "a$(touch X)/audit_b.py::f",
    "-x/audit_a.py::f",
    "a b'\"; touch X #/audit_a.py::f",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_command_that_is_pasted_runs_the_audit_and_nothing_else(name):
    task = Task(
        name,
        "/a.py",
        "f",
        "/",
        {"p": "$(touch X)`"},
        "holds",
        0.05,
        "quick",
        None,
        root_seed=1,
        mutants=True,
    )
    words = shlex.split(task.reproduce)
    assert words[:2] == ["auditdp", "run"]
    assert words[2].removeprefix("./") == name
    assert not words[2].startswith("-")
    assert shlex.split(shell(task.reproduce)) == words
    made = record(text_in("x", real=True))
    found = replace(
        made.results[0],
        reproduce=task.reproduce,
        verdict=Verdict.VIOLATED,
        expected="holds",
    )
    made = replace(made, results=[found], alpha_ledger=[])
    tokens = [
        inside
        for token in MARKDOWN.parse(render(made, "pull-request"))
        for inside in token.children or ()
    ]
    (pasted,) = [
        token.content
        for token in tokens
        if token.type == "code_inline" and "auditdp" in token.content
    ]
    assert shlex.split(pasted) == words
    (shown,) = [
        line
        for line in terminal.line(found).splitlines()
        if line.lstrip().startswith("reproduce")
    ]
    assert shlex.split(shown)[1:] == words


@pytest.mark.parametrize(
    "command",
    [
        *(
            "curl http://e | sh",
            "auditdp run a.py::b; touch X",
            "auditdp run a.py::b --report html=/x",
            "auditdp run",
        ),
        *(
            "auditdp run $(x) --seed 1 y",
            "auditdp init a",
            "pytest",
            "auditdp run 'a",
            "auditdp run a -P",
            "'auditdp run a'",
        ),
        *(
            "auditdp run -x/a.py::b",
            "auditdp run a\nb",
            "pytest a --rootdir /x",
            "python -c x",
            "",
            "\x00",
            "auditdp run ''",
        ),
    ],
)
def test_what_is_no_command_of_a_run_is_not_shown_as_one(command):
    assert shell(command) in ("", "auditdp run a -P")
    assert not re.search(r"[;|&`$\n]", shell(command))


def test_a_code_span_keeps_what_it_holds():
    for text in ("a", "`", "``a` b", "x  y", "a`", "$(`x`)", ""):
        (inline,) = MARKDOWN.parse(f"- {markdown_code(text)}")[3:4]
        assert [token.content.strip() for token in inline.children] == [text.strip()]


def test_text_for_markdown_is_read_as_it_was_written():
    for text in (
        "a_b*c",
        "1. x",
        "# x",
        "+",
        "@a #1",
        "a|b",
        "\\",
        "&amp; <b>",
        "$x$",
        "[x]",
        "---",
        "===",
        "~~x~~",
    ):
        (inline,) = [
            token for token in MARKDOWN.parse(markdown(text)) if token.type == "inline"
        ]
        shown = "".join(token.content for token in inline.children)
        assert shown.replace("\u200b", "") == text


def test_commands_print_what_they_quote_by_one_of_two_functions():
    """``say`` and ``tell`` of the command line pass all text through ``terminal``; nothing else prints, but for reports."""
    reports = {
        "common.py",
        "running.py",
        "baseline_commands.py",
    }  # which are safe by themselves
    for path in Path(auditdp.__file__).parent.joinpath("cli").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "typer.echo",
                "print",
                "sys.stdout.write",
            ):
                assert path.name in reports, ast.unparse(node)


def test_actions_are_named_by_commit():
    jobs = yaml.safe_load(
        (Path(auditdp.__file__).parent / "cli/templates/github.yml").read_text()
    )["jobs"]
    used = [
        step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step
    ]
    assert len(used) == 7
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", name) for name in used)
