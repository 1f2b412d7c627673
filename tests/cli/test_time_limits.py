"""A time limit ends an audit with the verdict of what was played."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.dear

LIMIT = 12.0
AUDITS = """
def slow(scale):
    def count(value, rng):
        time.sleep(0.005)
        return value + rng.laplace(scale=scale)

    return count

def hangs(value, rng):
    if rng.random() < 0.002:
        time.sleep(3600)
    return value + rng.laplace(scale=1.5)

def transcript(value, rng):
    answers = []
    for _ in range(200):  # each question depends on the answers before
        shift = 1.0 if sum(answers[-3:]) > 15 else 0.0
        answers.append(value + shift + rng.laplace(scale=30.0))
    return sorted(answers)

@audit()
def leaks():
    return Audit(slow(0.2), PureDP(1.0), [(5, 6)])

@audit()
def holds():
    return Audit(slow(1.5), PureDP(1.0), [(5, 6)], controls=[slow(0.2)])

@audit()
def hangs_at_times():
    return Audit(hangs, PureDP(1.0), [(5, 6)], evidence=["game"])

@audit()
def fifty_answers():
    return Audit(transcript, PureDP(1.0), [(5, 8)])
"""


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("leaks", "VIOLATED"),
        ("holds", "NOT_REFUTED"),
        ("hangs_at_times", "NOT_REFUTED"),
        ("fifty_answers", "VIOLATED"),
    ],
)
def test_what_was_played_stands(project: Any, name: str, verdict: str) -> None:
    project.audits(AUDITS)
    outcome = project(
        "run",
        f"audits/audit_it.py::{name}",
        "--timeout",
        str(LIMIT),
        "--seed",
        "4",
        "--format",
        "json",
    )
    (result,) = outcome.record["results"]
    assert result["verdict"] == verdict, result
    (game,) = (each for each in result["evidence"] if each["kind"] == "game")
    assert 0 < game["calls"] <= result["calls"] < 50_000
    assert result["seconds"] < LIMIT + 1
    if verdict == "NOT_REFUTED":
        assert any(
            "time limit ended the game" in notice
            for notice in game["details"]["notices"]
        )
