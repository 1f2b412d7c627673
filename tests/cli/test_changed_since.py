"""Audits of what changed, and a change beside the revision that it parted from: in a repository, and outside of one."""

import pytest

from tests.cli.conftest import git

pytestmark = pytest.mark.dear

AUDITS = """
from one import one
from two import two

@audit()
def first():
    return Audit(one, PureDP(1.0), BITS, calls=50)

@audit()
def second():
    return Audit(two, PureDP(1.0), BITS, calls=50)
"""
COIN = "def {0}(data, size, *, rng):\n    return rng.integers(0, 2, size)\n"
OTHER = COIN.replace("size)\n", "size) + 0\n")


@pytest.fixture
def repository(project):
    project.audits(AUDITS)
    for name in ("one", "two"):
        project.write(f"{name}.py", COIN.format(name))
    project.write(".gitignore", ".auditdp/\n")
    git(project.root, "init -q -b main")
    git(project.root, "add .")
    git(project.root, "commit -qm first")
    return project


def test_only_what_a_branch_and_the_working_tree_change_is_run(repository):
    since = "--changed-since main"
    nothing = repository.run(since)
    assert (nothing.code, nothing.out) == (0, "")
    assert "no audit is concerned" in nothing.err
    git(repository.root, "checkout -qb branch")
    repository.write("one.py", COIN.format("one") + "# a comment is no code\n")
    assert "no audit is concerned" in repository.run(since).err
    repository.write("one.py", OTHER.format("one"))
    uncommitted = repository.run(since)
    assert uncommitted.names == ["first"]
    assert "run audits/audit_it.py::first: one.py changed" in uncommitted.err
    left_out = "left out, since nothing that it reaches changed: audits/audit_it.py::"
    assert f"{left_out}second" in uncommitted.err
    assert uncommitted.record["arguments"]["left_out"] == ["audits/audit_it.py::second"]
    git(repository.root, "commit -qam second")
    git(repository.root, "checkout -q main")
    repository.write("two.py", OTHER.format("two"))
    git(repository.root, "commit -qam third")
    git(repository.root, "checkout -q branch")
    # Not what main changed since they parted.
    assert repository.run(since).names == ["first"]
    repository.write("notes.txt", "")
    assert "not Python: notes.txt" in repository.run(since).err
    assert repository.run().names == ["first", "second"]
    for revision in ("nowhere", "-x", "HEAD~99"):
        unknown = repository.run(f"--changed-since={revision}")
        assert unknown.refuses("revision"), revision
    assert repository.run("--compare nowhere").refuses(
        "revision nowhere: git knows no such"
    )


@pytest.mark.full
def test_a_baseline_is_silent_on_what_was_left_out(repository):
    assert repository.run().code == 0
    assert repository("baseline update").code == 0
    git(repository.root, "add .")
    git(repository.root, "commit -qm baseline")
    repository.write("one.py", OTHER.format("one"))
    check = "--changed-since HEAD --check"
    outcome = repository.run(check)
    assert (outcome.code, "1 not run" in outcome.err) == (0, True)
    text = (repository.root / "audits" / "audit_it.py").read_text()
    without = text.partition("@audit()\ndef second")[0]
    repository.write("audits/audit_it.py", without)
    gone = repository.run(check)
    assert (gone.code, "there is no such audit any more" in gone.err) == (6, True)
    repository.write("one.py", COIN.format("one"))
    silent = repository.run(check)
    assert silent.code == 6
    assert "gone, and in the baseline: audits/audit_it.py::second" in silent.err


def test_without_git_a_change_is_refused(project):
    project.audits(AUDITS)
    without = project("run --changed-since main", PATH="/nowhere")
    assert without.refuses("needs git, which is not installed")


def test_a_shallow_clone_says_how_to_fetch_the_rest(repository, tmp_path):
    repository.write("one.py", OTHER.format("one"))
    git(repository.root, "commit -qam second")
    first = git(repository.root, "rev-parse HEAD~1").strip()
    whole = repository.root.rename(tmp_path / "whole")
    git(tmp_path, "clone -q --depth 1", whole.as_uri(), str(repository.root))
    outcome = repository.run(f"--changed-since {first}")
    assert outcome.refuses("not in this shallow clone", "git fetch --unshallow")
    git(repository.root, "fetch -q --unshallow")
    assert repository.run(f"--changed-since {first}").names == ["first"]


COUNTS = """
def other(rows, rng):
    return len(rows) + rng.laplace(scale=1.0)

def count(rows, rng):
    return len(rows) + rng.laplace(scale={0})
"""
COMPARED = """
from counts import count, other

@audit()
def counted():
    return Audit(count, PureDP(2.0), [([1, 2], [1])])

@audit()
def left():
    return Audit(other, PureDP(2.0), [([1, 2], [1])])
"""


def test_what_loses_more_than_the_claim_fails_and_another_law_does_not(repository):
    repository.audits(COMPARED)
    repository.write("counts.py", COUNTS.format(1.0))
    git(repository.root, "add .")
    git(repository.root, "commit -qm counts")
    unchanged = repository.run("--compare main")
    assert (unchanged.code, "no audit is concerned" in unchanged.err) == (0, True)
    repository.write("counts.py", COUNTS.format(3.0))
    quieter = repository.run("--compare main")
    assert (quieter.code, "law changed" in quieter.err) == (0, True)
    assert quieter.names == ["counted"]
    assert quieter.audit("counted")["versions"]["change"] == "changed"
    assert "--compare" in quieter.audit("counted")["reproduce"]
    failed = repository.run("--compare main --fail-on changed")
    assert (failed.code, "a changed law fails" in failed.err) == (6, True)
    for fail_on, code in (('"changed"', 6), ("", 0)):
        repository.write("pyproject.toml", f"[tool.auditdp]\nfail_on = [{fail_on}]\n")
        assert repository("baseline update").code == 0
        assert repository("baseline check").code == code
    repository.write("counts.py", COUNTS.format(0.45))
    louder = repository.run("--compare main -q --format pull-request")
    assert louder.code in (1, 6)
    assert "loses more" in louder.err
    assert "the scale is 0.45 and was 1" in louder.out
    assert len(git(repository.root, "worktree list").splitlines()) == 1
