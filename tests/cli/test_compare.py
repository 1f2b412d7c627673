"""A change beside the revision that it parted from: in a repository, without a baseline."""

from __future__ import annotations

import subprocess

import pytest

pytestmark = pytest.mark.dear

AUDITS = """
from counts import count, other

@audit()
def counted():
    return Audit(count, PureDP(2.0), [([1, 2], [1])])

@audit()
def left():
    return Audit(other, PureDP(2.0), [([1, 2], [1])])
"""
COUNTS = """
def other(rows, rng):
    return len(rows) + rng.laplace(scale=1.0)

def count(rows, rng):
    return len(rows) + rng.laplace(scale={0})
"""


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
    project.write("counts.py", COUNTS.format(1.0))
    project.write(".gitignore", ".auditdp/\n")
    git(project.root, "init", "-q", "-b", "main")
    git(project.root, "add", ".")
    git(project.root, "commit", "-qm", "first")
    return project


def test_what_loses_more_than_the_claim_fails_and_another_law_does_not(repository):
    run = ("--compare", "main")
    unchanged = repository.run(*run)
    assert (unchanged.code, "no audit is concerned" in unchanged.err) == (0, True)
    repository.write("counts.py", COUNTS.format(3.0))
    quieter = repository.run(*run)
    assert (quieter.code, "law changed" in quieter.err) == (0, True)
    (result,) = quieter.record["results"]
    assert (result["id"].rpartition("::")[2], result["versions"]["change"]) == (
        "counted",
        "changed",
    )
    assert "--compare" in result["reproduce"]
    failed = repository.run(*run, "--fail-on", "changed")
    assert (failed.code, "a changed law fails" in failed.err) == (6, True)
    for fail_on, code in (('"changed"', 6), ("", 0)):
        repository.write("pyproject.toml", f"[tool.auditdp]\nfail_on = [{fail_on}]\n")
        assert repository("baseline", "update").code == 0
        assert repository("baseline", "check").code == code
    repository.write("counts.py", COUNTS.format(0.45))
    louder = repository.run(*run, "-q", "--format", "pull-request")
    assert louder.code in (1, 6)
    assert "loses more" in louder.err
    assert "the scale is 0.45 and was 1" in louder.out
    assert len(git(repository.root, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize(
    "more",
    [
        ("--changed-since", "main"),
        ("--executor", "dask", "--scheduler", "tcp://nowhere:1"),
    ],
)
def test_what_a_comparison_does_not_go_with(repository, more):
    outcome = repository.run("--compare", "main", *more)
    assert (outcome.code, "--compare does not go with" in outcome.err) == (2, True)


def test_a_revision_that_is_unknown(repository):
    outcome = repository.run("--compare", "nowhere")
    assert (outcome.code, "revision nowhere: git knows no such" in outcome.err) == (
        2,
        True,
    )
