"""The baseline on the command line: what a project sees from the first update to a regression, and what is refused."""

import json
import re
import shutil

import pytest

from tests.cli.conftest import RUN

pytestmark = pytest.mark.dear

TWO = """
@audit()
def holds():
    return Audit(coin, PureDP(1.0), BITS, controls=[tell], calls=600)

@audit()
def leaks():
    return Audit(tell, PureDP(1.0), BITS, calls=600)
"""
REPAIRED = TWO.replace("Audit(tell", "Audit(coin")
ACCEPT = "baseline update --accept audits/audit_it.py::leaks --reason 'see 12' --expires 2999-01-31"
CHECK = f"{RUN} --check"


@pytest.fixture(scope="module")
def with_baseline(shared_project):
    """A project whose baseline has two audits that hold."""
    shared_project.audits(REPAIRED)
    assert shared_project.run().code == 0
    assert shared_project("baseline update").code == 0
    return shared_project


@pytest.fixture
def repaired(project, with_baseline):
    """A copy of it."""
    shutil.copytree(with_baseline.root, project.root, dirs_exist_ok=True)
    project.file = project.root / "auditdp-baseline.toml"
    return project


@pytest.mark.full
def test_from_a_finding_to_a_repair_and_back(project):
    project.audits(TWO)
    assert project.run().code == 1
    assert project("baseline check").refuses("auditdp baseline update")
    assert project("baseline update").refuses("leaks", "--reason")
    file = project.root / "auditdp-baseline.toml"
    assert not file.exists()
    assert project(ACCEPT).code == 0
    checked = project("baseline check")
    assert (checked.code, "accepted" in checked.out) == (0, True)
    assert project(CHECK).code == 0
    file.write_text(file.read_text().replace("2999-01-31", "1999-01-31"))
    expired = project("baseline check")
    assert expired.code == 1
    assert "accepted until 1999-01-31: see 12" in expired.out
    project.audits(REPAIRED)
    stale = project(CHECK)
    assert (stale.code, "stale entry" in stale.out) == (6, True)
    assert project("baseline update").code == 0
    assert project(CHECK).code == 0
    project.audits(TWO)
    broken = project(f"{CHECK} --format json")
    assert (broken.code, "new finding" in broken.err) == (1, True)
    assert json.loads(broken.out)["root_seed"] == 1


def test_a_baseline_of_version_1_is_checked_and_converted(project):
    project.audits(TWO)
    project.run()
    project(ACCEPT)
    file = project.root / "auditdp-baseline.toml"
    now = file.read_text()
    then = now.replace("version = 3", "version = 1")
    then = then.replace('numbers = "1 0"', 'fingerprint = "0123456789ab"')
    assert then.count("fingerprint") == 2
    file.write_text(re.sub(r"digest = .*\n", "", then))
    checked = project("baseline check")
    assert checked.code == 0
    assert "1 not compared" in checked.out
    assert "1 other audit" in checked.out
    assert project("baseline update").code == 0
    assert file.read_text() == now


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("controls=[tell], calls=600", "controls=[tell], calls=300", "weaker"),
        ("def holds():", "def holds():\n    raise Skip('no data')", "skipped"),
        ("PureDP(1.0), BITS, controls", "PureDP(2.0), BITS, controls", "claim changed"),
    ],
)
def test_an_audit_that_became_weaker_ends_with_a_code_of_its_own(
    repaired, old, new, kind
):
    repaired.audits(REPAIRED.replace(old, new, 1))
    outcome = repaired(CHECK)
    assert (outcome.code, kind in outcome.text) == (6, True), outcome.out
    again = repaired("baseline check")
    assert again.code == 6
    assert outcome.out.endswith(again.out)


def test_a_domain_that_is_narrowed_behind_a_long_text_is_another_claim(project):
    text = """
    import hypothesis.strategies as st
    FIELDS = ('postal code', 'number of children', 'income')

    def total(rows, rng):
        return sum(min(row['income'], 100) for row in rows) + rng.laplace(scale=100)

    @audit()
    def paid():
        row = st.fixed_dictionaries({name: st.integers(0, 100) for name in FIELDS})
        return Audit(total, PureDP(1.0), Rows(row, 'add/remove', most=3), calls=200)
    """
    project.audits(text)
    assert project.run().code == 0
    assert project("baseline update").code == 0
    assert project(CHECK, "--seed", "2").code == 0
    unclipped = text.replace("min(row['income'], 100)", "row['income']")
    project.audits(unclipped.replace("integers(0, 100)", "integers(0, 5)"))
    checked = project(CHECK)
    assert (checked.code, "1 claim changed" in checked.out) == (6, True), checked.out


@pytest.mark.full
def test_a_selection_says_nothing_of_the_rest_and_a_crash_is_no_regression(repaired):
    outcome = repaired(f"{CHECK} -k holds")
    assert (outcome.code, "1 not run" in outcome.out) == (0, True)
    repaired.audits(
        REPAIRED.replace("return Audit(coin", "return 1 / 0 and Audit(coin", 1)
    )
    assert repaired(CHECK).code == 3


@pytest.mark.full
def test_two_runs_are_compared_like_a_run_with_a_baseline(repaired):
    repaired(f"{RUN} --report json=a.json")
    repaired.audits(TWO)
    repaired(f"{RUN} --report json=b.json")
    assert repaired("compare a.json a.json").code == 0
    worse = repaired("compare a.json b.json")
    assert (worse.code, "new finding" in worse.out) == (1, True)
    assert "asked otherwise: revision" in worse.err
    assert repaired("compare b.json b.json").code == 0
    better = repaired("compare b.json a.json")
    assert (better.code, "it was a finding before" in better.out) == (0, True)


@pytest.mark.full
def test_a_finding_is_confirmed_with_a_seed_and_an_alpha_of_its_own(project):
    project.audits(TWO)
    project.run()
    found = project("confirm leaks --alpha 0.01")
    assert found.code == 1
    assert "root seed 1\n" not in found.out
    assert "VIOLATED" in found.out
    assert "with probability at most 0.00025" in found.err
    assert project("confirm leaks --seed 1").refuses("that of the run")
    project.audits(REPAIRED)
    assert project("confirm leaks").code == 0


@pytest.mark.full
def test_what_nobody_has_to_look_at_is_cut_short(project):
    """Twelve audits that are new are ten and a number; all that is worse is listed."""
    audit = (
        "@audit()\ndef {0}{1}():\n    return Audit(coin, PureDP(1.0), BITS, calls=50)\n"
    )
    project.audits(audit.format("first", ""))
    project.run()
    project("baseline update")
    project.audits("".join(audit.format("new", k) for k in range(12)))
    outcome = project(f"{CHECK} -q")
    assert outcome.code == 6
    assert outcome.out.count("new audit          ") == 10
    assert "gone " in outcome.out
    assert "1 gone, 12 new audit" in outcome.out


@pytest.mark.full
def test_a_baseline_is_the_same_for_the_same_run_and_sorted(repaired):
    before = repaired.file.read_text()
    repaired.run()
    assert repaired("baseline update").code == 0
    assert repaired.file.read_text() == before
    assert before.index("::holds") < before.index("::leaks")
