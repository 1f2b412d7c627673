from __future__ import annotations

import json

import pytest

from auditdp import __version__

pytestmark = pytest.mark.dear

PRELUDE = """
def coin(data, size, *, rng):
    return rng.integers(0, 2, size)

def tell(data, size, *, rng):
    return np.full(size, data)

class Crowd:
    '''Tells the input in calls of many outputs and in no call of one, so that calls one by one cannot confirm it.'''

    name = "Crowd"

    def __call__(self, data, size, *, rng):
        return np.full(size, data if size > 1 else 0)

BITS = AnyValues((0, 1))
"""
HOLDS = """
@audit()
def holds():
    return Audit(coin, PureDP(1.0), BITS, controls=[tell], calls=600)
"""
CERTIFIED = """
@audit()
def certified():
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact"])
"""
VIOLATED = """
@audit()
def violated():
    return Audit(tell, PureDP(1.0), BITS, calls=600)
"""
TOOTHLESS = """
@audit()
def toothless():
    return Audit(coin, PureDP(1.0), BITS, controls=[coin], calls=600)
"""
DECLARED_AND_FOUND = """
@audit(expect="violation")
def declared():
    return Audit(tell, PureDP(1.0), BITS, calls=600)
"""
DECLARED_AND_MISSED = """
@audit(expect="violation")
def missed():
    return Audit(coin, PureDP(1.0), BITS, calls=600)
"""
CRASHES = """
@audit()
def crashes():
    return Audit(tell, PureDP(1.0), NeighbourList(1), calls=600)
"""
INCONCLUSIVE = """
@audit()
def inconclusive():
    return Audit(coin, PureDP(1.0), BITS, calls=10)
"""
UNCONFIRMED = """
@audit()
def unconfirmed():
    return Audit(Crowd(), PureDP(1.0), BITS, calls=600)
"""
UNCONFIRMED_AT_FIRST = """
class Larger:
    name = "Larger"

    def __call__(self, data, size, *, rng):
        return rng.integers(0, 2, size)

@audit(smallest={"n": [1, 2]})
def unconfirmed_at_first(n=1):
    if n == 2 and %r:
        raise Skip("too large for here")
    return Audit(Crowd() if n == 1 else Larger(), PureDP(1.0), BITS, calls=600)
"""
"""Two sizes, of which the larger is private, or is skipped."""
SKIPPED = """
@audit()
def skipped():
    raise Skip("needs a CUDA device")
"""
UNDERSTATED = """
class Understated:
    '''Noise that suffices, said to be calibrated to a sensitivity that does not.'''

    name, sensitivity, norm = "Understated", 1.0, "l1"

    def query(self, data, rng=None):
        return 1.25 * data

    def __call__(self, data, size, *, rng):
        return self.query(data) + rng.laplace(scale=1.25, size=size)
"""
MISCALIBRATED = (
    UNDERSTATED
    + """
@audit()
def miscalibrated():
    return Audit(Understated(), PureDP(1.0), BITS, calls=600)
"""
)
DECLARED_MISCALIBRATION = MISCALIBRATED.replace(
    "@audit()", '@audit(expect="miscalibration")'
)


@pytest.mark.parametrize(
    ("audits", "options", "verdicts", "code"),
    [
        (HOLDS, [], ["NOT_REFUTED"], 0),
        (CERTIFIED, [], ["CERTIFIED"], 0),
        (SKIPPED, [], ["SKIPPED"], 5),
        (
            SKIPPED + SKIPPED.replace("skipped", "another"),
            [],
            ["SKIPPED", "SKIPPED"],
            5,
        ),
        (SKIPPED + HOLDS, [], ["SKIPPED", "NOT_REFUTED"], 0),
        (SKIPPED + CRASHES, [], ["SKIPPED", "ERROR"], 3),
        (MISCALIBRATED, [], ["MISCALIBRATED"], 1),
        (DECLARED_MISCALIBRATION, [], ["MISCALIBRATED"], 0),
        (
            DECLARED_AND_MISSED.replace("violation", "miscalibration"),
            [],
            ["NOT_REFUTED"],
            1,
        ),
        (DECLARED_AND_FOUND, [], ["VIOLATED"], 0),
        (VIOLATED, [], ["VIOLATED"], 1),
        (TOOTHLESS, [], ["INCONCLUSIVE"], 1),
        (TOOTHLESS, ["--fail-on", "inconclusive"], ["INCONCLUSIVE"], 1),
        (DECLARED_AND_MISSED, [], ["NOT_REFUTED"], 1),
        (CRASHES, [], ["ERROR"], 3),
        (INCONCLUSIVE, [], ["INCONCLUSIVE"], 0),
        (UNCONFIRMED, [], ["INCONCLUSIVE"], 4),
        (UNCONFIRMED, ["--fail-on", "none"], ["INCONCLUSIVE"], 4),
        (UNCONFIRMED + HOLDS, [], ["INCONCLUSIVE", "NOT_REFUTED"], 4),
        (UNCONFIRMED_AT_FIRST % False, [], ["INCONCLUSIVE"], 4),
        (UNCONFIRMED_AT_FIRST % True, [], ["INCONCLUSIVE"], 4),
        (UNCONFIRMED + CRASHES, [], ["INCONCLUSIVE", "ERROR"], 3),
        (UNCONFIRMED + VIOLATED, [], ["INCONCLUSIVE", "VIOLATED"], 1),
        (INCONCLUSIVE, ["--fail-on", "inconclusive"], ["INCONCLUSIVE"], 4),
        (SKIPPED + HOLDS, ["--fail-on", "skipped"], ["SKIPPED", "NOT_REFUTED"], 4),
        (SKIPPED, ["--fail-on", "skipped"], ["SKIPPED"], 5),
        (SKIPPED + VIOLATED, ["--fail-on", "skipped"], ["SKIPPED", "VIOLATED"], 1),
        (SKIPPED + HOLDS, ["--fail-on", "none"], ["SKIPPED", "NOT_REFUTED"], 0),
        (
            SKIPPED + INCONCLUSIVE,
            ["--fail-on", "skipped", "--fail-on", "inconclusive"],
            ["SKIPPED", "INCONCLUSIVE"],
            4,
        ),
        (CRASHES + HOLDS, ["--fail-on", "error"], ["ERROR", "NOT_REFUTED"], 3),
        (CRASHES + HOLDS, ["--fail-on", "none"], ["ERROR", "NOT_REFUTED"], 3),
        (CRASHES + HOLDS, [], ["ERROR", "NOT_REFUTED"], 3),
        (CRASHES + VIOLATED, [], ["ERROR", "VIOLATED"], 1),
        (
            INCONCLUSIVE + CRASHES,
            ["--fail-on", "inconclusive"],
            ["INCONCLUSIVE", "ERROR"],
            3,
        ),
        (
            INCONCLUSIVE + VIOLATED,
            ["--fail-on", "inconclusive"],
            ["INCONCLUSIVE", "VIOLATED"],
            1,
        ),
    ],
)
def test_the_exit_code_of_a_run(project, audits, options, verdicts, code):
    project.audits(PRELUDE + audits)
    outcome = project.run(*options)
    assert ([r["verdict"] for r in outcome.record["results"]], outcome.code) == (
        verdicts,
        code,
    )


def test_a_finding_that_fresh_randomness_does_not_confirm_has_no_counterexample(
    project,
):
    project.audits(PRELUDE + UNCONFIRMED)
    found = project.run().audit("unconfirmed")
    assert found["counterexample"] is None
    assert "did not confirm" in found["summary"]


def test_a_refutation_that_is_not_confirmed_stays_unclean_in_every_command(project):
    project.audits(PRELUDE + UNCONFIRMED + HOLDS)
    outcome = project.run("--report", "junit=out.xml")
    (evidence,) = outcome.audit("unconfirmed")["evidence"]
    assert evidence["unconfirmed"]
    assert not evidence["details"]["confirmation"]["confirmed"]
    assert evidence["details"]["together"]["confirmed"]
    assert 'failures="1"' in project.root.joinpath("out.xml").read_text()
    shown = project("report", "-f", "terminal").out
    assert shown.index("1  claim refuted, not confirmed") < shown.index("0  findings")
    assert "A clean run means" not in shown
    assert project("replay", "unconfirmed").code == 4
    assert project("confirm", "unconfirmed", "--seed", "2").code == 4
    assert [
        line
        for line in project("run", "-q", "--last-failed").out.splitlines()
        if "holds" in line
    ] == []
    project.run()
    assert project("baseline", "update").code == 0
    checked = project("baseline", "check")
    assert checked.code == 6
    assert "weaker" in checked.out + checked.err


def test_a_run_that_audits_nothing_says_so_on_every_channel(project):
    project.audits(PRELUDE + SKIPPED)
    outcome = project.run(
        "--report",
        "html=out.html",
        "--report",
        "claims=claims.md",
        "--report",
        "claims-json=claims.json",
    )
    assert outcome.code == 5
    assert outcome.record["audited"] == 0
    text = "Nothing was audited, so this is not a clean run. 1 audit was skipped; nothing is known of what was to be audited"
    assert text in outcome.err
    page = project.root.joinpath("out.html").read_text()
    assert "<h1>Nothing was audited; 1 skipped</h1>" in page
    assert "0 findings" not in page
    assert text in project.root.joinpath("claims.md").read_text()
    stored = json.loads(project.root.joinpath("claims.json").read_text())
    assert (stored["audited"], stored["skipped"]) == (0, 1)
    shown = project("run", "--seed", "1", "--budget", "quick")
    assert shown.code == 5
    assert "1 audit of 0 privacy claims" in shown.out
    assert " · 1 skipped" in shown.out
    assert "     0  audited" in shown.out
    assert "Nothing was audited, so this is not a clean run." in shown.out
    assert "findings" not in shown.out
    assert "A clean run means" not in shown.out
    assert project("replay", "skipped").code == 5


@pytest.mark.full
def test_a_run_that_skips_some_counts_them(project):
    project.audits(PRELUDE + SKIPPED + HOLDS)
    shown = project("run", "--seed", "1", "--budget", "quick")
    assert shown.code == 0
    assert " · 1 skipped" in shown.out
    text = " ".join(shown.out.split())
    assert "mechanisms are private. " in text
    assert (
        " 1 audit was skipped; nothing is known of what was to be audited there."
        in text
    )


def test_nothing_collected_is_said_with_where_was_looked(project):
    project.root.joinpath("audits").mkdir()
    outcome = project.run()
    assert outcome.code == 5
    assert "audit_*.py" in outcome.err
    assert "audits" in outcome.err
    assert outcome.out == ""


def test_a_keyword_that_matches_nothing_is_nothing_collected(project):
    project.audits(PRELUDE + HOLDS)
    outcome = project.run("-k", "hold and nothing")
    assert outcome.code == 5
    assert "'hold and nothing'" in outcome.err


def test_the_version_is_printed(project):
    outcome = project("--version")
    assert (outcome.code, outcome.out) == (0, f"auditdp {__version__}\n")


@pytest.mark.full
def test_selftest_passes(project):
    outcome = project("selftest")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert len(lines) >= 20
    assert all(line.startswith("ok") for line in lines[:-1])
    assert sum("VIOLATED" in line for line in lines) >= 10
