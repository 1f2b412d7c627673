from __future__ import annotations

import pytest

from auditdp import __version__

PRELUDE = """
def coin(data, size, *, rng):
    return rng.integers(0, 2, size)

def tell(data, size, *, rng):
    return np.full(size, data)

class Tiring:
    '''Tells the input for its first calls and nothing afterwards, so that what was seen cannot be confirmed.'''

    name = "Tiring"

    def __init__(self):
        self.calls = 0

    def __call__(self, data, size, *, rng):
        self.calls += size
        return np.full(size, data if self.calls <= 328 else 0)

BITS = AnyValues((0, 1))
"""
HOLDS = """
@audit()
def holds():
    return Audit(coin, PureDP(1.0), BITS, controls=[tell], calls=200)
"""
CERTIFIED = """
@audit()
def certified():
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact"])
"""
VIOLATED = """
@audit()
def violated():
    return Audit(tell, PureDP(1.0), BITS, calls=200)
"""
TOOTHLESS = """
@audit()
def toothless():
    return Audit(coin, PureDP(1.0), BITS, controls=[coin], calls=200)
"""
DECLARED_AND_FOUND = """
@audit(expect="violation")
def declared():
    return Audit(tell, PureDP(1.0), BITS, calls=200)
"""
DECLARED_AND_MISSED = """
@audit(expect="violation")
def missed():
    return Audit(coin, PureDP(1.0), BITS, calls=200)
"""
CRASHES = """
@audit()
def crashes():
    return Audit(tell, PureDP(1.0), EdgeLDP(1), calls=200)
"""
INCONCLUSIVE = """
@audit()
def inconclusive():
    return Audit(Tiring(), PureDP(1.0), BITS, calls=200)
"""
SKIPPED = """
@audit()
def skipped():
    raise Skip("needs a CUDA device")
"""


@pytest.mark.parametrize(
    ("audits", "options", "verdicts", "code"),
    [
        (HOLDS, [], ["NOT_REFUTED"], 0),
        (CERTIFIED, [], ["CERTIFIED"], 0),
        (SKIPPED, [], ["SKIPPED"], 0),
        (DECLARED_AND_FOUND, [], ["VIOLATED"], 0),
        (VIOLATED, [], ["VIOLATED"], 1),
        (TOOTHLESS, [], ["INCONCLUSIVE"], 1),
        (TOOTHLESS, ["--fail-on", "inconclusive"], ["INCONCLUSIVE"], 1),
        (DECLARED_AND_MISSED, [], ["NOT_REFUTED"], 1),
        (CRASHES, [], ["ERROR"], 3),
        (INCONCLUSIVE, [], ["INCONCLUSIVE"], 0),
        (INCONCLUSIVE, ["--fail-on", "inconclusive"], ["INCONCLUSIVE"], 4),
        (CRASHES + HOLDS, [], ["ERROR", "NOT_REFUTED"], 3),
        (CRASHES + VIOLATED, [], ["ERROR", "VIOLATED"], 1),
        (INCONCLUSIVE + CRASHES, ["--fail-on", "inconclusive"], ["INCONCLUSIVE", "ERROR"], 3),
        (INCONCLUSIVE + VIOLATED, ["--fail-on", "inconclusive"], ["INCONCLUSIVE", "VIOLATED"], 1),
    ],
)
def test_the_exit_code_of_a_run(project, audits, options, verdicts, code):
    project.audits(PRELUDE + audits)
    outcome = project.run(*options)
    assert ([r["verdict"] for r in outcome.record["results"]], outcome.code) == (verdicts, code)


def test_a_finding_that_fresh_randomness_does_not_confirm_has_no_counterexample(project):
    project.audits(PRELUDE + INCONCLUSIVE)
    found = project.run().audit("inconclusive")
    assert found["counterexample"] is None
    assert "did not confirm" in found["summary"]


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


def test_the_installed_script_ends_with_the_same_code(project):
    project.audits(PRELUDE + VIOLATED)
    outcome = project.script("run", "--seed", "1", "--budget", "quick")
    assert outcome.code == 1
    assert "VIOLATED" in outcome.out
    assert "root seed 1" in outcome.out


def test_the_version_is_printed(project):
    outcome = project("--version")
    assert (outcome.code, outcome.out) == (0, f"auditdp {__version__}\n")


def test_an_error_inside_the_harness_does_not_look_like_a_finding(project):
    """Python ends with 1 after an uncaught exception, and 1 is what a violation ends with."""
    project.audits(
        """
        @audit()
        def plotted():
            bits = AnyValues((0, 1))
            return Audit(Response(0.5), PureDP(1.0), bits, evidence=["exact"], figure=lambda rng: {"x": object()})
        """
    )
    outcome = project.run()
    assert outcome.code == 3
    assert "plotted" in outcome.out + outcome.err


def test_selftest_passes(project):
    outcome = project("selftest")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert len(lines) >= 20
    assert all(line.startswith("ok") for line in lines[:-1])
    assert sum("VIOLATED" in line for line in lines) >= 10
