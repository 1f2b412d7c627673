"""Audits of what changed: in a repository, outside of one, and in a clone that is too shallow."""

from __future__ import annotations

import subprocess

import pytest

pytestmark = pytest.mark.dear

AUDITS = """
from one import one
from two import two
BITS = AnyValues((0, 1))

@audit()
def first():
    return Audit(one, PureDP(1.0), BITS, calls=50)

@audit()
def second():
    return Audit(two, PureDP(1.0), BITS, calls=50)
"""
OTHER = "def {0}(data, size, *, rng):\n    return rng.integers(0, 2, size) + 0\n"
COIN = "def {0}(data, size, *, rng):\n    return rng.integers(0, 2, size)\n"


def git(folder, *arguments):
    settings = [
        "-c",
        "user.name=n",
        "-c",
        "user.email=e@example.org",
        "-c",
        "commit.gpgsign=false",
    ]
    return subprocess.run(
        ["git", *settings, *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.fixture
def repository(project):
    project.audits(AUDITS)
    for name in ("one", "two"):
        project.write(f"{name}.py", COIN.format(name))
    project.write(".gitignore", ".auditdp/\n")
    git(project.root, "init", "-q", "-b", "main")
    git(project.root, "add", ".")
    git(project.root, "commit", "-qm", "first")
    return project


def ran(outcome):
    return [result["id"].rpartition("::")[2] for result in outcome.record["results"]]


def test_only_what_a_branch_and_the_working_tree_change_is_run(repository):
    nothing = repository.run("--changed-since", "main")
    assert (nothing.code, nothing.out) == (0, "")
    assert "no audit is concerned" in nothing.err
    git(repository.root, "checkout", "-qb", "branch")
    repository.write("one.py", COIN.format("one") + "# more\n")
    assert (
        "no audit is concerned" in repository.run("--changed-since", "main").err
    )  # a comment is no code
    repository.write("one.py", OTHER.format("one"))
    uncommitted = repository.run("--changed-since", "main")
    assert ran(uncommitted) == ["first"]
    assert "run audits/audit_it.py::first: one.py changed" in uncommitted.err
    assert (
        "left out, since nothing that it reaches changed: audits/audit_it.py::second"
        in uncommitted.err
    )
    assert uncommitted.record["arguments"]["left_out"] == ["audits/audit_it.py::second"]
    git(repository.root, "commit", "-qam", "second")
    git(repository.root, "checkout", "-q", "main")
    repository.write("two.py", OTHER.format("two"))
    git(repository.root, "commit", "-qam", "third")
    git(repository.root, "checkout", "-q", "branch")
    assert ran(repository.run("--changed-since", "main")) == [
        "first"
    ]  # not what main changed since they parted
    repository.write("notes.txt", "")
    assert "not Python: notes.txt" in repository.run("--changed-since", "main").err
    assert ran(repository.run()) == ["first", "second"]


@pytest.mark.full
def test_a_baseline_is_silent_on_what_was_left_out(repository):
    assert repository.run().code == 0
    assert repository("baseline", "update").code == 0
    git(repository.root, "add", ".")
    git(repository.root, "commit", "-qm", "baseline")
    repository.write("one.py", OTHER.format("one"))
    outcome = repository.run("--changed-since", "HEAD", "--check")
    assert (outcome.code, "1 not run" in outcome.err) == (0, True)
    text = (repository.root / "audits" / "audit_it.py").read_text()
    without = text.partition("@audit()\ndef second")[0]
    repository.write("audits/audit_it.py", without)
    gone = repository.run("--changed-since", "HEAD", "--check")
    assert (gone.code, "there is no such audit any more" in gone.err) == (6, True)
    repository.write("one.py", COIN.format("one"))
    silent = repository.run("--changed-since", "HEAD", "--check")
    assert (
        silent.code,
        "gone, and in the baseline: audits/audit_it.py::second" in silent.err,
    ) == (6, True)


@pytest.mark.parametrize("revision", ["nowhere", "-x", "HEAD~99"])
def test_a_revision_that_is_unknown(repository, revision):
    outcome = repository.run(f"--changed-since={revision}")
    assert outcome.code == 2
    assert (
        "expected a revision" in outcome.err or "knows no such revision" in outcome.err
    )


def test_without_a_repository_and_without_git(project):
    project.audits(
        "@audit()\ndef first():\n    return Audit(Response(1.0), PureDP(1.0), AnyValues((0, 1)), evidence=['exact'])\n"
    )
    outcome = project.run("--changed-since", "main")
    assert (
        outcome.code,
        "run inside a repository, or without this option" in outcome.err,
    ) == (2, True)
    without = project("run", "--changed-since", "main", PATH="/nowhere")
    assert (without.code, "needs git, which is not installed" in without.err) == (
        2,
        True,
    )


def test_a_shallow_clone_says_how_to_fetch_the_rest(repository, tmp_path):
    repository.write("one.py", OTHER.format("one"))
    git(repository.root, "commit", "-qam", "second")
    first = git(repository.root, "rev-parse", "HEAD~1").strip()
    whole = repository.root.rename(tmp_path / "whole")
    git(tmp_path, "clone", "-q", "--depth", "1", whole.as_uri(), str(repository.root))
    outcome = repository.run("--changed-since", first)
    assert outcome.code == 2
    assert (
        "not in this shallow clone; fetch the whole history: git fetch --unshallow"
        in outcome.err
    )
    git(repository.root, "fetch", "-q", "--unshallow")
    assert ran(repository.run("--changed-since", first)) == ["first"]
