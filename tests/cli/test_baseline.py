"""The baseline on the command line: what a project sees from the first update to a regression, and what is refused."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from tests.cli.test_exit_codes import PRELUDE

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


@pytest.fixture(scope="module")
def with_baseline(shared_project):
    """A project whose baseline has two audits that hold."""
    shared_project.audits(PRELUDE + REPAIRED)
    assert shared_project.run().code == 0
    assert shared_project("baseline", "update").code == 0
    return shared_project


@pytest.fixture
def repaired(project, with_baseline):
    """A copy of it."""
    shutil.copytree(with_baseline.root, project.root, dirs_exist_ok=True)
    return project


@pytest.mark.full
def test_from_a_finding_to_a_repair_and_back(project):
    project.audits(PRELUDE + TWO)
    assert project.run().code == 1
    missing = project("baseline", "check")
    assert (missing.code, "auditdp baseline update" in missing.err) == (2, True)
    refused = project("baseline", "update")
    assert (refused.code, "leaks" in refused.err, "--reason" in refused.err) == (
        2,
        True,
        True,
    )
    assert not (project.root / "auditdp-baseline.toml").exists()
    ident = "audits/audit_it.py::leaks"
    made = project(
        "baseline",
        "update",
        "--accept",
        ident,
        "--reason",
        "see 12",
        "--expires",
        "2999-01-31",
    )
    assert made.code == 0, made.err
    assert project("baseline", "check").code == 0
    assert "accepted" in project("baseline", "check").out
    assert project("run", "--seed", "1", "--budget", "quick", "--check").code == 0
    file = project.root / "auditdp-baseline.toml"
    file.write_text(file.read_text().replace("2999-01-31", "1999-01-31"))
    expired = project("baseline", "check")
    assert (expired.code, "accepted until 1999-01-31: see 12" in expired.out) == (
        1,
        True,
    )
    project.audits(PRELUDE + REPAIRED)
    checked = project("run", "--seed", "1", "--budget", "quick", "--check")
    assert (checked.code, "stale entry" in checked.out) == (6, True)
    assert project("baseline", "update").code == 0
    assert project("run", "--seed", "1", "--budget", "quick", "--check").code == 0
    project.audits(PRELUDE + TWO)
    broken = project(
        "run", "--seed", "1", "--budget", "quick", "--check", "--format", "json"
    )
    assert (broken.code, "new finding" in broken.err) == (1, True)
    assert json.loads(broken.out)["root_seed"] == 1


def test_a_baseline_of_version_1_is_checked_and_converted(project):
    project.audits(PRELUDE + TWO)
    project.run()
    ident = "audits/audit_it.py::leaks"
    project(
        "baseline",
        "update",
        "--accept",
        ident,
        "--reason",
        "see 12",
        "--expires",
        "2999-01-31",
    )
    file = project.root / "auditdp-baseline.toml"
    now = file.read_text()
    then = now.replace("version = 3", "version = 1").replace(
        'numbers = "1 0"', 'fingerprint = "0123456789ab"'
    )
    then = re.sub(r"digest = .*\n", "", then)
    assert then.count("fingerprint") == 2
    file.write_text(then)
    checked = project("baseline", "check")
    assert (
        checked.code,
        "1 not compared" in checked.out,
        "1 other audit" in checked.out,
    ) == (0, True, True)
    assert project("baseline", "update").code == 0
    assert file.read_text() == now


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (("controls=[tell], calls=600", "controls=[tell], calls=300"), "weaker"),
        (("def holds():", "def holds():\n    raise Skip('no data')"), "skipped"),
        (
            ("coin, PureDP(1.0), BITS, controls", "coin, PureDP(3.0), BITS, controls"),
            "claim changed",
        ),
    ],
)
def test_an_audit_that_became_weaker_ends_with_a_code_of_its_own(
    repaired, change, kind
):
    repaired.audits((PRELUDE + REPAIRED).replace(*change, 1))
    outcome = repaired("run", "--seed", "1", "--budget", "quick", "--check")
    assert (outcome.code, kind in " ".join(outcome.out.split())) == (6, True), (
        outcome.out
    )
    again = repaired("baseline", "check")
    assert again.code == 6
    assert outcome.out.endswith(again.out)


def test_a_domain_that_is_narrowed_behind_a_long_text_is_another_claim(project):
    text = (
        "import hypothesis.strategies as st\nfrom auditdp import Audit, PureDP, Rows, audit\n"
        "FIELDS = ('postal code', 'number of children', 'income')\n"
        "def total(rows, rng):\n    return sum(min(row['income'], 100) for row in rows) + rng.laplace(scale=100)\n"
        "@audit()\ndef paid():\n    row = st.fixed_dictionaries({name: st.integers(0, 100) for name in FIELDS})\n"
        "    return Audit(total, PureDP(1.0), Rows(row, 'add/remove', most=3), calls=200)\n"
    )
    project.audits(text)
    assert project.run().code == 0
    assert project("baseline", "update").code == 0
    assert project("run", "--seed", "2", "--budget", "quick", "--check").code == 0
    project.audits(
        text.replace("min(row['income'], 100)", "row['income']").replace(
            "integers(0, 100)", "integers(0, 5)"
        )
    )
    checked = project("run", "--seed", "1", "--budget", "quick", "--check")
    assert (checked.code, "1 claim changed" in checked.out) == (6, True), checked.out


def test_a_selection_says_nothing_of_the_rest(repaired):
    outcome = repaired(
        "run", "--seed", "1", "--budget", "quick", "-k", "holds", "--check"
    )
    assert (outcome.code, "1 not run" in outcome.out) == (0, True)


@pytest.mark.full
def test_a_crash_is_no_regression(repaired):
    repaired.audits(
        PRELUDE
        + REPAIRED.replace("return Audit(coin", "return 1 / 0 and Audit(coin", 1)
    )
    assert repaired("run", "--seed", "1", "--budget", "quick", "--check").code == 3


def test_a_baseline_that_cannot_be_read_is_refused_before_anything_runs(repaired):
    text, message = "<<<<<<< HEAD\nversion = 1\n", "a conflict of a merge"
    repaired.write("auditdp-baseline.toml", text)
    log = (repaired.root / ".auditdp" / "run.jsonl").read_bytes()
    for command in (["run", "--check"], ["baseline", "check"], ["baseline", "update"]):
        outcome = repaired(*command)
        assert (outcome.code, message in outcome.err) == (2, True)
    assert (repaired.root / ".auditdp" / "run.jsonl").read_bytes() == log
    assert (repaired.root / "auditdp-baseline.toml").read_text() == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["baseline", "update", "--reason", "so"], "--accept"),
        (["baseline", "update", "--accept", "a"], "--reason"),
        (
            [
                "baseline",
                "update",
                "--accept",
                "a",
                "--reason",
                "so",
                "--expires",
                "soon",
            ],
            "expected a date",
        ),
        (
            ["baseline", "update", "--accept", "a", "--reason", "so"],
            "no finding of this id",
        ),
        (["baseline", "check", "none.json"], "no such record"),
        (["compare", "none.json", "none.json"], "no such record"),
        (["baseline", "chekc"], "check"),
    ],
)
def test_what_cannot_be_asked(repaired, arguments, message):
    outcome = repaired(*arguments)
    assert (outcome.code, message in " ".join(outcome.err.split())) == (2, True), (
        outcome.err
    )


@pytest.mark.full
def test_two_runs_are_compared_like_a_run_with_a_baseline(repaired):
    def report(name):
        return repaired(
            "run", "--seed", "1", "--budget", "quick", "--report", f"json={name}"
        )

    report("a.json")
    repaired.audits(PRELUDE + TWO)
    report("b.json")
    assert repaired("compare", "a.json", "a.json").code == 0
    worse = repaired("compare", "a.json", "b.json")
    assert (worse.code, "new finding" in worse.out) == (1, True)
    assert "asked otherwise: revision" in worse.err
    assert repaired("compare", "b.json", "b.json").code == 0
    better = repaired("compare", "b.json", "a.json")
    assert (better.code, "it was a finding before" in better.out) == (0, True)


@pytest.mark.full
def test_a_finding_is_confirmed_with_a_seed_and_an_alpha_of_its_own(project):
    project.audits(PRELUDE + TWO)
    project.run()
    found = project("confirm", "leaks", "--alpha", "0.01")
    assert found.code == 1
    assert "root seed 1\n" not in found.out
    assert "VIOLATED" in found.out
    assert "with probability at most 0.00025" in found.err
    refused = project("confirm", "holds")
    assert (refused.code, "no finding to confirm" in refused.err) == (2, True)
    same = project("confirm", "leaks", "--seed", "1")
    assert (same.code, "that of the run" in same.err) == (2, True)
    project.audits(PRELUDE + REPAIRED)
    assert project("confirm", "leaks").code == 0


@pytest.mark.full
def test_what_nobody_has_to_look_at_is_cut_short(project):
    """Twelve audits that are new are ten and a number; all that is worse is listed."""
    audit = (
        "@audit()\ndef {0}{1}():\n    return Audit(coin, PureDP(1.0), BITS, calls=50)\n"
    )
    project.audits(PRELUDE + audit.format("first", ""))
    project.run()
    project("baseline", "update")
    project.audits(PRELUDE + "".join(audit.format("new", k) for k in range(12)))
    outcome = project("run", "--seed", "1", "--budget", "quick", "-q", "--check")
    assert outcome.code == 6
    assert outcome.out.count("new audit          ") == 10
    assert "gone " in outcome.out
    assert "1 gone, 12 new audit" in outcome.out


def test_a_baseline_is_the_same_for_the_same_run_and_sorted(repaired):
    file = repaired.root / "auditdp-baseline.toml"
    before = file.read_text()
    repaired.run()
    assert repaired("baseline", "update").code == 0
    assert file.read_text() == before
    assert before.index("::holds") < before.index("::leaks")
