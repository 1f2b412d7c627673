"""The quick budget: the same few calls for every audit, and what needs more is undecided instead of a finding."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.dear

PRELUDE = """
def coin(data, size, *, rng):
    return rng.integers(0, 2, size)

BITS = AnyValues((0, 1))
"""
SMALL_VIOLATION = """
@audit(expect="violation")
def small():
    return Audit(Response(1.05), PureDP(1.0), BITS, evidence=["game"], calls=500_000)
"""
UNDERSTATED = """
class Understated:
    sensitivity, norm, name = 1.0, "l1", "understated"

    def query(self, data, rng):
        return 1.25 * data

    def __call__(self, data, size, *, rng):
        return self.query(data, rng) + rng.laplace(scale=1.19, size=size)

@audit(expect="violation")
def understated():
    return Audit(Understated(), PureDP(1.0), BITS, evidence=["game", "sensitivity"], calls=500_000)
"""
SMALL_CONTROL = """
@audit()
def with_twin():
    return Audit(Response(1.0), PureDP(1.0), BITS, controls=[Response(1.05)], evidence=["game"], calls=500_000)
"""
BLIND_LAW = """
@audit()
def blind_law():
    return Audit(Response(1.0), PureDP(1.0), BITS, controls=[Response(0.5)], evidence=["exact", "game"], calls=500_000)
"""
PROVED = """
@audit(expect="violation")
def proved():
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact", "game"], calls=500_000)
"""
LEAKS = """
@audit()
def leaks():
    return Audit(lambda data, size, *, rng: np.full(size, data), PureDP(1.0), BITS, calls=500_000)
"""


@pytest.mark.parametrize(
    ("audit", "wanted"),
    [
        (SMALL_VIOLATION, "find the declared violation"),
        (UNDERSTATED, "find the declared violation"),
        (SMALL_CONTROL, "refute the broken"),
    ],
)
@pytest.mark.full
def test_what_needs_more_calls_than_the_budget_has_is_undecided(project, audit, wanted):
    project.audits(PRELUDE + audit)
    shown = project("run", "--seed", "1", "--budget", "quick")
    text = " ".join(shown.out.split())
    assert shown.code == 0
    assert f"The budget is too small to {wanted}" in text
    assert "it leaves out 498,000 of the calls that the audit names" in text
    assert "1 undecided with so few calls" in text
    assert "mechanisms are private. " in text
    assert " 1 audit is undecided with so few calls." in text
    assert (
        project(
            "run", "--seed", "1", "--budget", "quick", "--fail-on", "inconclusive"
        ).code
        == 4
    )


@pytest.mark.full
def test_no_game_has_more_calls_than_the_quick_budget(project):
    project.audits(PRELUDE + SMALL_CONTROL)
    (found,) = project.run().record["results"]
    assert found["calls"] <= 2_000
    assert found["controls"][0]["blind"] == ["game"]


@pytest.mark.parametrize("audit", [BLIND_LAW, PROVED, LEAKS])
def test_what_calls_do_not_decide_is_a_finding_as_before(project, audit):
    """A twin that the exact law does not refute, a declared violation that is disproved, and an undeclared one."""
    project.audits(PRELUDE + audit)
    shown = project("run", "--seed", "1", "--budget", "quick")
    assert shown.code == 1
    assert "undecided" not in shown.out


@pytest.mark.full
def test_the_report_lists_what_is_undecided(project):
    project.audits(PRELUDE + SMALL_VIOLATION)
    project.run("--report", "html=out.html")
    page = project.root.joinpath("out.html").read_text()
    assert "Undecided: more calls are needed than this budget has" in page
    assert "The budget is too small to find the declared violation" in page
    assert (
        "what this budget leaves undecided is below, and elsewhere no control survived"
        in page
    )
    assert "miscalibration, no surviving control" not in page


TO_FIND = """
@audit()
def played():
    return Audit(Response(1.0), PureDP(1.0), BITS, evidence=["game"])

@audit()
def without_power():
    return Audit(Response(1.0), ApproxDP(1.0, 0.1), BITS, evidence=["game"])
"""


def test_the_fault_to_be_found_decides_how_many_calls_there_are(project):
    project.audits(PRELUDE + TO_FIND)
    found = project(
        "run",
        "--seed",
        "1",
        "--find",
        "tail:0.2",
        "--format",
        "json",
        "--report",
        "html=out.html",
    )
    assert found.code == 3
    assert (
        "every game has as many calls as find outputs of probability 0.2 that lose twice the claim"
        in found.err
    )
    played, refused = found.audit("played"), found.audit("without_power")
    assert played["evidence"][0]["details"]["detectable_rarely"][0] <= 0.2
    assert played["calls"] not in (2_000, 50_000)
    assert "--budget tail:0.2" in played["reproduce"]
    assert (
        "known for claims with δ = 0 alone, and this one is (1, 0.1)-DP; find a level"
        in refused["summary"]
    )
    assert found.record["arguments"]["budget"] == "tail:0.2"
    page = "".join(file.read_text() for file in project.root.glob("out*/*.html"))
    assert "Calls to find" in page
    assert (
        "for outputs of probability 0.2 that lose twice the claim, nine times in ten"
        in page
    )
    again = project("replay", "played")
    assert (again.code, "same outcome as the recorded run" in again.err) == (0, True)


@pytest.mark.full
def test_the_settings_take_a_fault_or_a_number_and_a_command_one_budget(project):
    project.audits(PRELUDE + TO_FIND)
    project.write("pyproject.toml", "[tool.auditdp]\nbudget = 'level:2'\n")
    record = project("run", "--seed", "1", "--format", "json").record
    assert [
        r["evidence"][0]["details"]["detectable_epsilon"] <= 2
        for r in record["results"]
    ] == [True, True]
    fewer = project("run", "--seed", "1", "--format", "json", "--calls", "300")
    assert [r["calls"] for r in fewer.record["results"]] == [300, 300]
    twice = project("run", "--find", "tail:0.2", "--calls", "300")
    assert (twice.code, "tail:0.2 and 300 are two budgets; give one" in twice.err) == (
        2,
        True,
    )
