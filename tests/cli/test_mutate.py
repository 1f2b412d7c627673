"""``auditdp mutate`` and ``auditdp run --mutants``: the score of every audit, its survivors, and the exit code."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.conftest import Project, untimed

pytestmark = pytest.mark.dear

AUDITS = """\
@audit()
def seeing(epsilon=1.0):
    return Audit(Response(epsilon), PureDP(epsilon), AnyValues((0, 1)))

def second(data, size, *, rng):
    return (data[1] ^ (rng.random(size) >= 1 / (1 + math.exp(-1.0)))).astype(np.int8)

@audit()
def blind():
    pairs = [Pair((1, 0), (0, 0)), Pair((0, 1), (0, 0))]
    return Audit(second, PureDP(1.0), Neighbours(pairs), play=pairs[:1])

@audit(expect="violation")
def false():
    return Audit(Response(2.0), PureDP(1.0), AnyValues((0, 1)))
"""


@pytest.fixture(scope="module")
def mutated(shared_project: Project) -> Project:
    """A project with an audit that sees every fault, one that sees none, and one of a false claim."""
    shared_project.audits(AUDITS)
    return shared_project


MUTATE = ("mutate", "--seed", "1", "--budget", "quick")


def score(result):
    fates = [mutant["fate"] for mutant in result["mutation"]["mutants"]]
    return fates.count("killed"), fates.count("survived")


def test_survivors_fail_the_command_and_are_printed_with_the_reason(mutated):
    outcome = mutated(*MUTATE)
    assert outcome.code == 1, outcome.err
    assert "3 of 3 killed" in outcome.out
    assert "0 of " in outcome.out
    assert "survivor" in outcome.out
    assert "did not refute the claim" in " ".join(outcome.out.split())
    assert re.search(
        r"but this one does: \(0, [01]\) \| \(0, [01]\)", " ".join(outcome.out.split())
    )


@pytest.mark.full
def test_an_audit_that_kills_all_passes(mutated):
    outcome = mutated(*MUTATE, "-k", "seeing", "--format", "json")
    assert outcome.code == 0, outcome.err
    assert score(outcome.audit("seeing")) == (3, 0)
    assert outcome.audit("seeing")["reproduce"].endswith(" --mutants")


def test_a_false_claim_has_no_score(mutated):
    outcome = mutated(*MUTATE, "-k", "false", "--format", "json")
    assert outcome.code == 0, outcome.err
    assert outcome.audit("false")["mutation"] is None


@pytest.mark.full
def test_run_audits_mutants_only_when_asked(mutated):
    assert mutated.run("-k", "seeing").audit("seeing")["mutation"] is None
    asked = mutated.run("-k", "seeing", "--mutants")
    told = mutated(*MUTATE, "-k", "seeing", "--format", "json")
    assert asked.untimed == told.untimed


@pytest.mark.full
def test_the_report_shows_the_score_beside_the_audit(mutated):
    report = mutated.root / "report.html"
    mutated(
        *MUTATE,
        "--report",
        f"html={report}",
        "--report",
        f"json={mutated.root / 'run.json'}",
    )
    assert "Mutants killed" in report.read_text(encoding="utf-8")
    pages = "".join(
        page.read_text(encoding="utf-8")
        for page in (mutated.root / "report_audits").glob("*.html")
    )
    assert "3 of 3" in pages
    assert "each the mechanism with one fault in its noise: 0 of " in pages
    record = json.loads((mutated.root / "run.json").read_text(encoding="utf-8"))
    again = mutated("report", mutated.root / "run.json", "-f", "json")
    assert untimed(json.loads(again.out)) == untimed(record)


def test_nothing_to_mutate_and_nothing_that_can_be(project):
    project.audits("@audit()\ndef broken():\n    raise RuntimeError('no audit')\n")
    assert project(*MUTATE).code == 3
    assert project(*MUTATE, "-k", "other").code == 5
    assert project(*MUTATE, "--budget", "enormous").code == 2
