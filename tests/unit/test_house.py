"""The size and the density of the harness: a feature that needs more raises a limit here.

Change a limit only together with a reason in the commit: what the feature is worth, and
what it makes unnecessary. The limits lie a little above the present figures.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from pathlib import Path

import pytest

from tests.unit.parsed import parsed

HARNESS = Path(__file__).resolve().parents[2] / "auditdp"
FILES = sorted(HARNESS.rglob("*.py"))
TESTS = sorted(HARNESS.with_name("tests").rglob("*.py"))
COUNTED = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
UNCLEAR = re.compile(
    r"^(What|Which|How|Where|By|Of|Between|At|And|In|From|After|Beyond|With|To|On|For|As)\b"
    r"|\bwhat (is|was|it|the|they|a|an|of|this)\b"
    r"|\b(so|as) (many|much|often)\b"
)
"""Beginnings without a subject, "what" as a noun, and numbers without a name."""


def measure(files):
    count = Counter()
    for path in files:
        text = path.read_text(encoding="utf-8")
        facts = parsed(path)
        lines = text.splitlines()
        count["files"] += 1
        count["lines"] += len(lines)
        count["comments"] += sum(line.lstrip().startswith("#") for line in lines)
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        count["tokens"] += sum(token.type in COUNTED for token in tokens)
        for target, is_number in facts.targets:
            if isinstance(target, ast.Tuple):
                count["constants in tuples"] += len(target.elts)
            elif is_number and CONSTANT.fullmatch(ast.unparse(target)):
                count["numeric constants"] += 1
        for paragraph in facts.paragraphs:
            count["docstrings"] += 1
            count["unclear docstrings"] += UNCLEAR.search(paragraph) is not None
    return count


@pytest.fixture(scope="module")
def measured():
    return measure(FILES)


LIMITS = {
    "files": 280,
    "tokens": 397_500,
    "numeric constants": 200,
    "constants in tuples": 0,
}


@pytest.mark.parametrize("figure", LIMITS)
def test_the_harness_does_not_grow_unnoticed(measured, figure):
    assert measured[figure] <= LIMITS[figure]


def test_a_line_has_few_tokens_and_hard_code_has_comments(measured):
    assert measured["tokens"] / measured["lines"] <= 5.3
    assert 1_000 * measured["comments"] / measured["lines"] >= 20


def test_the_tests_do_not_grow_unnoticed():
    measured = measure(TESTS)
    assert measured["tokens"] <= 435_000
    assert measured["tokens"] / measured["lines"] <= 7.0


def test_docstrings_begin_with_a_subject_and_name_their_quantities(measured):
    assert measured["unclear docstrings"] / measured["docstrings"] <= 0.03


def test_a_file_name_occurs_once():
    names = Counter(path.stem for path in FILES if path.stem != "__init__")
    names -= Counter(["__main__"])
    assert [name for name, times in names.items() if times > 1] == []


def test_each_figure_counts_what_it_says(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        '"""What is read."""\nA, B = 1, 2\nC = -3.0\n# Why.\nd = 4\n'
        'def f():\n    """Return one."""\n    return 1\n'
    )
    assert measure([path]) == Counter(
        {
            "files": 1,
            "lines": 8,
            "comments": 1,
            "tokens": 23,
            "constants in tuples": 2,
            "numeric constants": 1,
            "docstrings": 2,
            "unclear docstrings": 1,
        }
    )
