"""Nights of a stream on the command line."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.dear

AUDITS = """
from mine import mechanism

@audit()
def one():
    return Audit(mechanism, PureDP(1.0), AnyValues((0, 1)), calls=2000)
"""
FINE = "def mechanism(data, size, *, rng):\n    return data ^ (rng.random(size) < 0.3)\n"
LEAKS = "def mechanism(data, size, *, rng):\n    return data ^ (rng.random(size) < 0.1)\n"


@pytest.fixture
def nights(project):
    project.audits(AUDITS)
    project.write("mine.py", FINE)
    return project


def state(project):
    return json.loads((project.root / "auditdp-stream.json").read_text())


def test_nights_follow_each_other_and_capital_is_carried_over_until_the_code_changes(nights):
    first = nights("nightly", "--alpha", "0.1", "--log", "a.jsonl")
    assert first.code == 0, first.err
    assert "this is night 1 of a new one, with α = 0.1" in first.err
    assert "α = 0.0304 for its verdicts, of 0.1 for all nights" in first.err
    assert "in one night" in first.out
    assert "0 of 1 audits carried over" in first.out
    one = state(nights)
    second = nights("nightly", "-q")
    assert (second.code, "1 of 1 audits carried over" in second.out) == (0, True)
    two = state(nights)
    (account,) = two["accounts"].values()
    assert (two["night"], account["since"], two["root_seed"]) == (2, 1, one["root_seed"])
    nights.write("auditdp-stream.json", json.dumps(one))
    assert nights("nightly").code == 0
    assert state(nights) == two  # the same night again is the same
    nights.write("mine.py", FINE + "# changed\n")
    assert "0 of 1 audits carried over" in nights("nightly").out
    nights.write("mine.py", LEAKS)
    found = nights("nightly")
    assert (found.code, "VIOLATED" in found.out) == (1, True)
    assert state(nights)["night"] == 4


@pytest.mark.full
def test_capital_alone_reports_what_no_night_reports(nights):
    assert nights("nightly").code == 0
    content = state(nights)
    (account,) = content["accounts"].values()
    account["log_capital"] = 100.0  # as if it had grown over many nights
    nights.write("auditdp-stream.json", json.dumps(content))
    found = nights("nightly")
    assert (found.code, "REFUTED OVER NIGHTS  audits/audit_it.py::one" in found.out) == (1, True)
    assert "reported tonight; ends when its sources change" in " ".join(found.out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--alpha", "0.2"], "has α = 0.05, which holds for all of its nights"),
        (["--budget", "quik"], "did you mean 'quick'?"),
        (["--file", "mine.py"], "is no stream of nights"),
        (["no/such"], "no such file or folder"),
    ],
)
def test_what_cannot_be_asked_leaves_the_stream_as_it_was(nights, arguments, message):
    assert nights("nightly").code == 0
    before = state(nights)
    outcome = nights("nightly", *arguments)
    assert (outcome.code, message in outcome.err) == (2, True), outcome.err
    assert state(nights) == before


def test_a_night_of_nothing_is_no_night(project):
    (project.root / "audits").mkdir()
    outcome = project("nightly")
    assert outcome.code == 5
    assert not (project.root / "auditdp-stream.json").exists()
