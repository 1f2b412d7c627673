"""What is said beside a verdict: a meaning and a remedy for each, and one command where nothing was decided."""

from dataclasses import replace

import pytest

from auditdp import PureDP, check
from auditdp.record.results import Verdict
from auditdp.report.guesses import MEANINGS, REMEDIES
from auditdp.report.machine_readable import HELP, RULES
from auditdp.report.sentences import next_command


def test_every_verdict_and_rule_has_a_remedy():
    assert {*REMEDIES} == {*MEANINGS} == {*Verdict}
    assert [*HELP] == [*RULES]


def test_a_result_is_printed_as_a_run_prints_it():
    text = str(
        check(
            lambda x, rng: x + rng.laplace(scale=0.3),
            PureDP(1.0),
            [(0, 1)],
            calls=400,
            trace=False,
        )
    )
    assert text.startswith("VIOLATED ")
    assert "    pair         0 | 1\n    because " in text


@pytest.fixture(scope="module")
def undecided():
    clean = check(
        lambda x, rng: rng.random(), PureDP(1.0), [(0, 1)], calls=200, trace=False
    )
    return replace(
        clean,
        id="a.py::f",
        verdict=Verdict.INCONCLUSIVE,
        reproduce="auditdp run a.py::f --seed 0 --budget quick",
    )


def test_what_is_undecided_has_one_command(undecided):
    (game,) = undecided.evidence
    unconfirmed = replace(
        undecided, evidence=[replace(game, verdict=Verdict.INCONCLUSIVE)]
    )
    assert next_command(unconfirmed) == "auditdp run a.py::f --seed 0 --budget standard"
    assert (
        next_command(undecided) == "auditdp trace a.py::f"
    )  # its kinds of evidence disagree
    assert next_command(replace(undecided, reproduce="")) == ""
