"""``auditdp mutate`` and ``auditdp run --mutants``: the score of every audit, its survivors, and the exit code."""

import re

import pytest

pytestmark = pytest.mark.dear

AUDITS = """\
@audit()
def seeing(epsilon=1.0):
    return Audit(Response(epsilon), PureDP(epsilon), BITS)

def second(data, size, *, rng):
    return (data[1] ^ (rng.random(size) >= 1 / (1 + math.exp(-1.0)))).astype(np.int8)

@audit()
def blind():
    pairs = [Pair((1, 0), (0, 0)), Pair((0, 1), (0, 0))]
    return Audit(second, PureDP(1.0), Neighbours(pairs), play=pairs[:1])

@audit(expect="violation")
def false():
    return Audit(Response(2.0), PureDP(1.0), BITS)
"""
MUTATE = "mutate --seed 1 --budget quick"


@pytest.fixture(scope="module")
def mutated(shared_project):
    """A run of an audit that sees every fault, one that sees none, and one of a false claim."""
    shared_project.audits(AUDITS)
    reports = "--report html=report.html --report json=run.json"
    return shared_project, shared_project(f"{MUTATE} {reports}")


def score(result):
    fates = [mutant["fate"] for mutant in result["mutation"]["mutants"]]
    return fates.count("killed"), fates.count("survived")


def test_survivors_fail_the_command_and_are_printed_with_the_reason(mutated):
    project, outcome = mutated
    assert outcome.code == 1, outcome.err
    words = ("3 of 3 killed", "0 of ", "survivor", "did not refute the claim")
    assert all(each in outcome.text for each in words)
    assert re.search(r"but this one does: \(0, [01]\) \| \(0, [01]\)", outcome.text)
    recorded = project("report run.json -f json")
    assert recorded.audit("false")["mutation"] is None
    assert score(recorded.audit("seeing")) == (3, 0)
    assert "Mutants killed" in (project.root / "report.html").read_text()
    pages = (project.root / "report_audits").glob("*.html")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert "3 of 3" in text
    assert "each the mechanism with one fault in its noise: 0 of " in text


@pytest.mark.full
def test_mutants_are_audited_only_where_that_is_asked_for(mutated):
    project, _ = mutated
    outcome = project(f"{MUTATE} -k seeing --format json")
    assert outcome.code == 0, outcome.err
    assert outcome.audit("seeing")["reproduce"].endswith(" --mutants")
    assert project.run("-k seeing").audit("seeing")["mutation"] is None
    assert project.run("-k seeing --mutants").untimed == outcome.untimed
    assert project(f"{MUTATE} -k other").code == 5
    assert project(f"{MUTATE} -k false").code == 0


def test_an_audit_that_cannot_be_built_has_no_mutants(project):
    project.audits("@audit()\ndef broken():\n    raise RuntimeError('no audit')\n")
    assert project(MUTATE).code == 3
