"""A run in parts, each with a log of its own, and one run of them."""

import pytest

from auditdp.runner.run_record import read_log
from tests.cli.conftest import RESPONSES

pytestmark = pytest.mark.dear

AUDITS = f"""{RESPONSES}
@audit()
def third(epsilon=1.0):
    return Audit(made(.7), PureDP(epsilon), BITS, calls=600)
"""
RUN = "run --seed 5 --budget quick"


@pytest.fixture
def shards(project):
    """The record of the whole run, and a function that runs a shard."""
    project.audits(AUDITS)
    whole = project(f"{RUN} --format json --log whole.jsonl")
    assert whole.code == 1

    def shard(number, more=""):
        return project(f"{RUN} --shard {number}/2 --log {number}.jsonl {more}")

    return whole.untimed, shard


def record(project, log=".auditdp/run.jsonl"):
    return project(f"report {log} --format json").untimed


def test_merged_shards_are_the_run_of_one_machine(project, shards):
    whole, shard = shards
    one, two = shard(1), shard(2)
    assert (one.code, two.code) == (0, 1)  # the second audit is in the second shard
    assert "first" in one.out
    assert "second" not in one.out
    assert "this run is shard 1 of 2: audits are missing" in one.out
    merged = project("merge 2.jsonl 1.jsonl")
    assert (merged.code, "1  finding" in merged.out) == (1, True)
    assert record(project) == whole
    ends = [
        read_log(project.root / log).finished
        for log in ("1.jsonl", "2.jsonl", ".auditdp/run.jsonl")
    ]
    assert ends[-1] == max(ends[:-1]), "it ended with its last shard"
    names = [result["id"].partition("::")[2] for result in whole["results"]]
    assert names == ["first", "second", "third"]
    with (project.root / "1.jsonl").open("a") as log:
        log.write("not a line of the run\n")
    assert project("merge 2.jsonl 1.jsonl").code == 3


@pytest.mark.full
def test_a_lost_shard_is_said_and_its_audits_are_run_by_resuming(project, shards):
    whole, shard = shards
    shard(2)
    merged = project("merge 2.jsonl --log all.jsonl")
    assert merged.code == 3
    assert "2 audits without a result" in merged.err
    assert "--resume" in merged.err
    assert project(f"{RUN} --resume --log all.jsonl").code == 1
    assert record(project, "all.jsonl") == whole


@pytest.mark.full
def test_a_shard_that_was_cut_off_is_resumed_by_itself(project, shards):
    whole, shard = shards
    shard(1)
    log = project.root / "1.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:2]))  # it was killed after its first audit
    assert project("merge 1.jsonl --log half.jsonl").code == 3
    shard(1, "--resume")
    shard(2)
    assert project("merge 1.jsonl 2.jsonl").code == 1
    assert record(project) == whole


@pytest.mark.full
def test_shards_of_different_runs_are_not_merged(project, shards):
    _, shard = shards
    shard(1)
    shard(2, "--seed 6")
    merged = project("merge 1.jsonl 2.jsonl")
    assert merged.code == 2
    assert "root_seed differs (5 there, 6 here)" in merged.err
    assert project("merge 1.jsonl nothing.jsonl").code == 2
