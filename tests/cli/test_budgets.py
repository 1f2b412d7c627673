"""The quick budget: the same few calls for every audit, and what needs more is undecided instead of a finding."""

import pytest

from tests.cli.conftest import RUN

UNDECIDED = """
class Understated:
    sensitivity, norm, name = 1.0, "l1", "understated"

    def query(self, data, rng):
        return 1.25 * data

    def __call__(self, data, size, *, rng):
        return self.query(data, rng) + rng.laplace(scale=1.19, size=size)

@audit(expect="violation")
def small():
    return Audit(Response(1.05), PureDP(1.0), BITS, evidence=["game"], calls=500_000)

@audit(expect="violation")
def understated():
    return Audit(Understated(), PureDP(1.0), BITS, evidence=["game", "sensitivity"], calls=500_000)

@audit()
def with_twin():
    return Audit(Response(1.0), PureDP(1.0), BITS, controls=[Response(1.05)], evidence=["game"], calls=500_000)
"""
DECIDED = """
@audit()
def blind_law():
    return Audit(Response(1.0), PureDP(1.0), BITS, controls=[Response(0.5)], evidence=["exact", "game"], calls=500_000)

@audit(expect="violation")
def proved():
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact", "game"], calls=500_000)

@audit()
def leaks():
    return Audit(tell, PureDP(1.0), BITS, calls=500_000)
"""
TO_FIND = """
@audit()
def played():
    return Audit(Response(1.0), PureDP(1.0), BITS, evidence=["game"])

@audit()
def without_power():
    return Audit(Response(1.0), ApproxDP(1.0, 0.1), BITS, evidence=["game"])
"""


@pytest.mark.full
def test_what_needs_more_calls_than_the_budget_has_is_undecided(project):
    project.audits(UNDECIDED)
    shown = project(f"{RUN} --report html=out.html --report json=run.json")
    assert shown.code == 0
    assert shown.text.count("The budget is too small to find the declared") == 2
    assert "The budget is too small to refute the broken" in shown.text
    left_out = "it leaves out 498,000 of the calls that the audit names"
    assert shown.text.count(left_out) == 3
    assert "3 undecided with so few calls" in shown.text
    assert " 3 audits are undecided, for want of calls." in shown.text
    assert project(f"{RUN} --fail-on inconclusive").code == 4
    page = project.root.joinpath("out.html").read_text()
    assert "what this budget leaves undecided is below, and elsewhere no" in page
    assert "miscalibration, no surviving control" not in page
    found = project("report run.json -f json").audit("with_twin")
    assert found["calls"] <= 2_000
    assert found["controls"][0]["blind"] == ["game"]


@pytest.mark.dear
def test_what_calls_do_not_decide_is_a_finding_as_before(project):
    """A twin that the exact law does not refute, a declared violation that is disproved, and an undeclared one."""
    project.audits(DECIDED)
    shown = project(RUN)
    assert (shown.code, "     3  findings" in shown.out) == (1, True)
    assert "undecided" not in shown.out


@pytest.mark.dear
def test_the_fault_to_be_found_decides_how_many_calls_there_are(project):
    project.audits(TO_FIND)
    reports = "--format json --report html=out.html"
    found = project(f"run --seed 1 --find tail:0.2 {reports}")
    assert found.code == 3
    assert "find outputs of probability 0.2 that lose twice the claim" in found.err
    played, refused = found.audit("played"), found.audit("without_power")
    assert played["evidence"][0]["details"]["detectable_rarely"][0] <= 0.2
    assert played["calls"] not in (2_000, 50_000)
    assert "--budget tail:0.2" in played["reproduce"]
    assert "known for claims with δ = 0 alone" in refused["summary"]
    assert found.record["arguments"]["budget"] == "tail:0.2"
    page = "".join(file.read_text() for file in project.root.glob("out*/*.html"))
    assert "Calls to find" in page
    assert "outputs of probability 0.2 that lose twice the claim" in page
    again = project("replay played")
    assert (again.code, "same outcome as the recorded run" in again.err) == (0, True)


@pytest.mark.full
def test_the_settings_take_a_fault_or_a_number(project):
    project.audits(TO_FIND)
    project.write("pyproject.toml", "[tool.auditdp]\nbudget = 'level:2'\n")
    record = project("run --seed 1 --format json").record
    for result in record["results"]:
        assert result["evidence"][0]["details"]["detectable_epsilon"] <= 2
    fewer = project("run --seed 1 --format json --calls 300").record
    assert all(250 < result["calls"] <= 300 for result in fewer["results"])
