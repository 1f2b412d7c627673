"""The file of a baseline: it is written for diffs, and refused with the place of a mistake."""

import re
from dataclasses import replace
from datetime import date

import pytest

from auditdp.errors import ConfigurationError
from auditdp.record.baseline import read_baseline, write_baseline
from auditdp.record.baseline_entries import Accepted, Entry
from auditdp.record.results import Verdict

HOLDS = Entry(
    id="audits/audit_b.py::holds",
    claim="1-DP",
    adjacency='value "LDP"\\',
    verdict=Verdict.NOT_REFUTED,
    evidence=("counting", "game"),
    controls=("Twin(ε=2)",),
    calls=62_000,
    at_least=0.81,
    numbers=(1.0, 1e-5),
    counted=(1.2, 0.013),
    told_apart=(0.66, 0.35),
)
FOUND = Entry(
    id="audits/audit_a.py::found",
    claim="0.226-DP",
    adjacency="edge DP",
    verdict=Verdict.VIOLATED,
    at_least=float("inf"),
    accepted=Accepted("repaired in release 3", date(2027, 1, 31)),
)
DECLARED = Entry(
    id="audits/audit_a.py::known",
    claim="1-DP",
    adjacency="edge DP",
    verdict=Verdict.VIOLATED,
    expect="violation",
)


def stored(tmp_path, text):
    path = tmp_path / "auditdp-baseline.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_entries_are_stored_in_the_order_of_their_ids(tmp_path):
    entries = read_baseline(stored(tmp_path, write_baseline([HOLDS, FOUND, DECLARED])))
    assert list(entries.items()) == [(e.id, e) for e in (FOUND, DECLARED, HOLDS)]


def test_it_is_written_for_diffs():
    text = write_baseline([HOLDS, FOUND])
    assert text == write_baseline([FOUND, HOLDS])
    assert 'at_least = "0.81"\n' in text
    assert "calls = 62_000\n" in text
    assert "expires = 2027-01-31\n" in text
    assert not re.search(r"^[^#\"]*= *-?\d+\.\d", text, re.M)  # no floats
    assert text.endswith("\n")


GOOD = write_baseline([HOLDS, FOUND])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "version = 3",
            "version = 4",
            "version 4 … reads versions 1 to 3 … auditdp baseline update",
        ),
        ("version = 3", "", "version None"),
        ("version = 3", "version = 3\nbudget = 3", "unknown key 'budget'"),
        ("claim = ", 'fingerprint = "0123"\nclaim = ', "unknown key 'fingerprint'"),
        (
            'numbers = "1 1e-05"',
            'numbers = "one"',
            "numbers = 'one' … numbers as a text",
        ),
        ('numbers = "1 1e-05"', 'numbers = ""', "numbers = '' … numbers as a text"),
        (
            'counted = "1.2 0.013"',
            'counted = "1.2"',
            "counted = '1.2' … two numbers as a text",
        ),
        (
            "claim = ",
            "claimed = ",
            "unknown key 'claimed' … did you mean 'claim'? … audit_a.py::found",
        ),
        (
            'verdict = "NOT_REFUTED"',
            'verdict = "NOT_REFUTD"',
            "'NOT_REFUTD' … did you mean 'NOT_REFUTED'?",
        ),
        ('verdict = "NOT_REFUTED"', 'verdict = "ERROR"', "'ERROR'"),
        ('verdict = "NOT_REFUTED"\n', "", "verdict is missing"),
        (
            'verdict = "NOT_REFUTED"',
            'verdict = "VIOLATED"',
            "not declared … accepted] with a reason",
        ),
        ("calls = 62_000", "calls = 62000.0", "calls = 62000.0 … an integer"),
        ("calls = 62_000", "calls = -1", "calls = -1"),
        ("calls = 62_000", "calls = true", "calls = True"),
        ('at_least = "0.81"', "at_least = 0.81", "at_least = 0.81 … a text"),
        ('at_least = "0.81"', 'at_least = "much"', "'much' … a number as a text"),
        ('["Twin(ε=2)"]', "[2]", "controls = [2] … a list of texts"),
        (
            'reason = "repaired in release 3"',
            'reason = " "',
            "reason = ' ' … give the reason",
        ),
        ('reason = "repaired in release 3"\n', "", "reason = None"),
        ("expires = 2027-01-31", 'expires = "2027-01-31"', "expected a date"),
        ("expires = 2027-01-31", "expires = 2027-13-31", "repair it, or write it anew"),
        ("expires = ", "expire = ", "unknown key 'expire' … did you mean 'expires'?"),
        (
            "claim = ",
            'expect = "vilation"\nclaim = ',
            "'vilation' … did you mean 'violation'?",
        ),
        (
            '[audit."audits/audit_b.py::holds"]',
            '[audit."audits/audit_a.py::found"]',
            "repair it, or write it anew",
        ),
        (
            "claim = ",
            "<<<<<<< HEAD\nclaim = ",
            "line 6 … a conflict of a merge … <<<<<<< HEAD",
        ),
        (GOOD, "", "version None"),
        (GOOD, "version = 2\naudit = 3\n", "audit = 3"),
        (GOOD, "version = 2\n[audit]\na = 3\n", "expected a table, got 3"),
        (GOOD, "not toml [", "repair it"),
    ],
)
def test_a_file_that_is_edited_wrongly_is_refused_with_the_place(
    tmp_path, before, after, message
):
    assert before in GOOD
    path = stored(tmp_path, GOOD.replace(before, after, 1))
    with pytest.raises(ConfigurationError) as error:
        read_baseline(path)
    assert str(path) in str(error.value)
    for part in message.split(" … "):
        assert part in str(error.value)


def test_a_file_of_version_1_gives_the_entries_that_it_has(tmp_path):
    """Its calls have those of counting, which depend on what was drawn; a digest of digits is compared with nothing."""
    names = ("version", "numbers", "counted", "told_apart")
    old = "\n".join(line for line in GOOD.split("\n") if not line.startswith(names))
    old = "version = 1\n" + old.replace(
        "adjacency = ", 'fingerprint = "0123456789ab"\nadjacency = '
    )
    assert read_baseline(stored(tmp_path, old)) == {
        FOUND.id: FOUND,
        HOLDS.id: replace(HOLDS, numbers=(), counted=None, told_apart=None, calls=0),
    }


def test_a_missing_and_an_unreadable_file(tmp_path):
    with pytest.raises(ConfigurationError, match="auditdp baseline update"):
        read_baseline(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"version = 1 # \xff")
    for unreadable in (tmp_path / "latin.toml", tmp_path):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            read_baseline(unreadable)
