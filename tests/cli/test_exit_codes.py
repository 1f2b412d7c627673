"""The exit code of a run, of every verdict and of several together; and that nothing audited is not clean."""

import json
from dataclasses import replace

import pytest

from auditdp import __version__
from auditdp.cli.run_scope import code_of
from auditdp.record.results import RunRecord
from tests.cli.conftest import RUN

AUDITS = """
class Crowd:
    '''Tells the input in calls of many outputs and in no call of one, so that calls one by one cannot confirm it.'''

    name = "Crowd"

    def __call__(self, data, size, *, rng):
        return np.full(size, data if size > 1 else 0)

class Larger:
    name = "Larger"

    def __call__(self, data, size, *, rng):
        return rng.integers(0, 2, size)

class Understated:
    '''Noise that suffices, said to be calibrated to a sensitivity that does not.'''

    name, sensitivity, norm = "Understated", 1.0, "l1"

    def query(self, data, rng=None):
        return 1.25 * data

    def __call__(self, data, size, *, rng):
        return self.query(data) + rng.laplace(scale=1.25, size=size)

@audit()
def holds():
    return Audit(coin, PureDP(1.0), BITS, controls=[tell], calls=600)

@audit()
def certified():
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact"])

@audit()
def violated():
    return Audit(tell, PureDP(1.0), BITS, calls=600)

@audit()
def toothless():
    return Audit(coin, PureDP(1.0), BITS, controls=[coin], calls=600)

@audit(expect="violation")
def declared():
    return Audit(tell, PureDP(1.0), BITS, calls=600)

@audit(expect="violation")
def missed():
    return Audit(coin, PureDP(1.0), BITS, calls=600)

@audit(expect="miscalibration")
def missed_miscalibration():
    return Audit(coin, PureDP(1.0), BITS, calls=600)

@audit()
def crashes():
    return Audit(tell, PureDP(1.0), NeighbourList(1), calls=600)

@audit()
def inconclusive():
    return Audit(coin, PureDP(1.0), BITS, calls=10)

@audit()
def unconfirmed():
    return Audit(Crowd(), PureDP(1.0), BITS, calls=600)

@audit(smallest={"n": [1, 2]})
def unconfirmed_at_first(n=1):
    return Audit(Crowd() if n == 1 else Larger(), PureDP(1.0), BITS, calls=600)

@audit(smallest={"n": [1, 2]})
def unconfirmed_then_skipped(n=1):
    if n == 2:
        raise Skip("too large for here")
    return Audit(Crowd(), PureDP(1.0), BITS, calls=600)

@audit()
def skipped():
    raise Skip("needs a CUDA device")

@audit()
def miscalibrated():
    return Audit(Understated(), PureDP(1.0), BITS, calls=600)

@audit(expect="miscalibration")
def declared_miscalibration():
    return Audit(Understated(), PureDP(1.0), BITS, calls=600)
"""
VERDICTS = """
holds NOT_REFUTED
certified CERTIFIED
violated VIOLATED
toothless INCONCLUSIVE
declared VIOLATED
missed NOT_REFUTED
missed_miscalibration NOT_REFUTED
crashes ERROR
inconclusive INCONCLUSIVE
unconfirmed INCONCLUSIVE
unconfirmed_at_first INCONCLUSIVE
unconfirmed_then_skipped INCONCLUSIVE
skipped SKIPPED
miscalibrated MISCALIBRATED
declared_miscalibration MISCALIBRATED
"""
CODES = """
0 holds
0 certified
5 skipped
0 skipped holds
3 skipped crashes
1 miscalibrated
0 declared_miscalibration
1 missed_miscalibration
0 declared
1 violated
1 toothless
1 missed
3 crashes
0 inconclusive
4 unconfirmed
4 unconfirmed holds
4 unconfirmed_at_first
4 unconfirmed_then_skipped
3 unconfirmed crashes
1 unconfirmed violated
3 crashes holds
1 crashes violated
1 --fail-on inconclusive : toothless
4 --fail-on none : unconfirmed
4 --fail-on inconclusive : inconclusive
4 --fail-on skipped : skipped holds
5 --fail-on skipped : skipped
1 --fail-on skipped : skipped violated
0 --fail-on none : skipped holds
4 --fail-on skipped --fail-on inconclusive : skipped inconclusive
3 --fail-on error : crashes holds
3 --fail-on none : crashes holds
3 --fail-on inconclusive : inconclusive crashes
1 --fail-on inconclusive : inconclusive violated
"""


@pytest.fixture(scope="module")
def every(shared_project):
    """A run of one audit of each kind."""
    shared_project.audits(AUDITS)
    return shared_project.run("--report junit=out.xml")


def rows():
    for row in CODES.strip().splitlines():
        code, _, rest = row.partition(" ")
        options, _, names = rest.rpartition(" : ")
        yield int(code), options, names.split()


def test_the_exit_code_of_every_verdict_and_of_several_together(every):
    verdicts = dict(row.split() for row in VERDICTS.strip().splitlines())
    assert {name: every.audit(name)["verdict"] for name in every.names} == verdicts
    record = RunRecord.from_json(every.out)
    results = dict(zip(every.names, record.results, strict=True))
    for code, options, names in rows():
        some = replace(record, results=[results[n] for n in names], alpha_ledger=[])
        assert code_of(some, options.split()) == code, (options, names)


@pytest.mark.full
def test_a_run_ends_with_that_code(every, shared_project):
    for code, options, names in rows():
        ids = " ".join(f"audits/audit_it.py::{name}" for name in names)
        assert shared_project.run(f"{ids} {options}").code == code, (options, names)


@pytest.mark.dear
def test_a_refutation_that_is_not_confirmed_stays_unclean_in_every_command(project):
    project.audits(AUDITS)
    both = f"{RUN} -k 'unconfirmed and not first and not then or holds'"
    outcome = project(f"{both} --format json --report junit=out.xml")
    found = outcome.audit("unconfirmed")
    (evidence,) = found["evidence"]
    assert evidence["unconfirmed"]
    assert found["counterexample"] is None
    assert "did not confirm" in found["summary"]
    assert not evidence["details"]["confirmation"]["confirmed"]
    assert evidence["details"]["together"]["confirmed"]
    assert 'failures="1"' in project.root.joinpath("out.xml").read_text()
    shown = project("report -f terminal").out
    assert shown.index("1  claim refuted, not confirmed") < shown.index("0  findings")
    assert "A clean run means" not in shown
    assert project("replay unconfirmed").code == 4
    assert project("confirm unconfirmed --seed 2").code == 4
    assert project("baseline update").code == 0
    checked = project("baseline check")
    assert (checked.code, "weaker" in checked.text) == (6, True)
    assert "::holds" not in project("run -q --last-failed").out


@pytest.mark.dear
def test_a_run_that_audits_nothing_says_so_on_every_channel(project):
    project.audits(AUDITS)
    reports = ["html=out.html", "claims=claims.md", "claims-json=claims.json"]
    options = " ".join(f"--report {each}" for each in reports)
    outcome = project.run(f"-k 'skipped and not then' {options}")
    assert (outcome.code, outcome.record["audited"]) == (5, 0)
    text = "Nothing was audited, so this is not a clean run. 1 audit was skipped"
    assert text in outcome.err
    page, claims, stored = (
        project.root.joinpath(each.partition("=")[2]).read_text() for each in reports
    )
    assert "<h1>Nothing was audited; 1 skipped</h1>" in page
    assert "0 findings" not in page
    assert text in claims
    assert json.loads(stored)["audited"] == 0
    assert json.loads(stored)["skipped"] == 1
    shown = project("report -f terminal").out
    for line in ("1 audit of 0 privacy claims", " · 1 skipped", "     0  audited"):
        assert line in shown
    assert "Nothing was audited, so this is not a clean run." in shown
    assert "findings" not in shown
    assert "A clean run means" not in shown
    assert project("replay skipped").code == 5


def test_nothing_collected_is_said_with_where_was_looked(project):
    project.root.joinpath("audits").mkdir()
    outcome = project.run()
    assert (outcome.code, outcome.out) == (5, "")
    assert "audit_*.py" in outcome.err
    assert "audits" in outcome.err
    project.audits(AUDITS)
    unmatched = project.run("-k 'hold and nothing'")
    assert (unmatched.code, "'hold and nothing'" in unmatched.err) == (5, True)


def test_the_version_is_printed(project):
    outcome = project("--version")
    assert (outcome.code, outcome.out) == (0, f"auditdp {__version__}\n")
    assert project.script("--version").out == outcome.out


@pytest.mark.full
def test_selftest_passes(project):
    outcome = project("selftest")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert len(lines) >= 20
    assert all(line.startswith("ok") for line in lines[:-1])
    assert sum("VIOLATED" in line for line in lines) >= 10
