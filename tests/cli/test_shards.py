"""A run in parts, each with a log of its own, and one run of them."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import RESPONSES, untimed

pytestmark = pytest.mark.dear

AUDITS = f"""{RESPONSES}
@audit()
def third(epsilon=1.0):
    return Audit(made(.7), PureDP(epsilon), BITS, calls=600)
"""
RUN = ("run", "--seed", "5", "--budget", "quick")


@pytest.fixture
def shards(project):
    """The record of the whole run, and a function that runs a shard."""
    project.audits(AUDITS)
    whole = project(*RUN, "--format", "json", "--log", "whole.jsonl")
    assert whole.code == 1

    def shard(number, of=2, *more):
        return project(
            *RUN, "--shard", f"{number}/{of}", "--log", f"{number}.jsonl", *more
        )

    return whole.untimed, shard


def record(project, log=".auditdp/run.jsonl"):
    return json.loads(project("report", log, "--format", "json").out)


def test_merged_shards_are_the_run_of_one_machine(project, shards):
    whole, shard = shards
    one, two = shard(1), shard(2)
    assert (one.code, two.code) == (0, 1)  # the second audit is in the second shard
    assert "first" in one.out
    assert "second" not in one.out
    assert "this run is shard 1 of 2: audits are missing" in one.out
    merged = project("merge", "2.jsonl", "1.jsonl")
    assert merged.code == 1
    assert "1  finding" in merged.out
    found = untimed(record(project))
    assert found == whole
    assert [result["id"].partition("::")[2] for result in found["results"]] == [
        "first",
        "second",
        "third",
    ]


@pytest.mark.full
def test_a_lost_shard_is_said_and_its_audits_are_run_by_resuming(project, shards):
    whole, shard = shards
    shard(2)
    merged = project("merge", "2.jsonl", "--log", "all.jsonl")
    assert merged.code == 3
    assert "2 audits without a result" in merged.err
    assert "--resume" in merged.err
    resumed = project(*RUN, "--resume", "--log", "all.jsonl")
    assert resumed.code == 1
    assert untimed(record(project, "all.jsonl")) == whole


@pytest.mark.full
def test_a_shard_that_was_cut_off_is_resumed_by_itself(project, shards):
    whole, shard = shards
    shard(1)
    log = project.root / "1.jsonl"
    log.write_bytes(
        b"".join(log.read_bytes().splitlines(keepends=True)[:2])
    )  # killed after its first audit
    assert project("merge", "1.jsonl", "--log", "half.jsonl").code == 3
    shard(1, 2, "--resume")
    shard(2)
    assert project("merge", "1.jsonl", "2.jsonl").code == 1
    assert untimed(record(project)) == whole


@pytest.mark.full
def test_shards_of_different_runs_are_not_merged(project, shards):
    _, shard = shards
    shard(1)
    project(
        "run", "--seed", "6", "--budget", "quick", "--shard", "2/2", "--log", "2.jsonl"
    )
    merged = project("merge", "1.jsonl", "2.jsonl")
    assert merged.code == 2
    assert "root_seed differs (5 there, 6 here)" in merged.err
    assert project("merge", "1.jsonl", "nothing.jsonl").code == 2


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("--seed", "1", "--shard", "3/2"), "1 <= NUMBER <= OF"),
        (("--seed", "1", "--shard", "two"), "such as 2/8"),
        (("--seed", "1", "--shard", "1/9"), "there are 3 audits"),
        (("--shard", "1/2"), "needs --seed"),
        (
            ("--seed", "1", "--shard", "1/2", "--last-failed"),
            "does not go with --last-failed",
        ),
    ],
)
def test_what_is_no_shard_is_refused(shared_project, arguments, shown):
    shared_project.audits(AUDITS)
    found = shared_project("run", *arguments)
    assert found.code == 2
    assert shown in " ".join(found.err.split())
