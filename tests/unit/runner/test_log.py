"""The log against other writers, full disks and files that are no logs."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from auditdp.errors import ConfigurationError
from auditdp.record.results import SCHEMA, AuditResult, LedgerEntry, RunRecord, Verdict
from auditdp.runner.log import Log, RecordingError
from auditdp.runner.run_record import read_log, scan_log
from tests.adversary.records import without_digests


def result(name: str) -> AuditResult:
    return AuditResult(id=name, verdict=Verdict.NOT_REFUTED, summary=name, alpha=0.01)


def record(run: str = "one") -> RunRecord:
    ledger = [LedgerEntry(name, "verdict", 0.01) for name in "abc"]
    return RunRecord(
        1, "running", {}, {"auditdp": "0.0.1"}, "abc", "cpu", ledger, [], run=run
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".auditdp" / "run.jsonl"


def begun(path, run="one", *names):
    log = Log(path)
    kept = log.start(record(run))
    for name in names:
        log.add(result(name))
    return log, kept


def test_every_line_names_its_run_and_its_time(path):
    log, _ = begun(path, "one", "a")
    log.end("complete", 1.0)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [(line["kind"], line["run"]) for line in lines] == [
        (kind, "one") for kind in ("header", "result", "end")
    ]
    assert read_log(path).finished == lines[-1]["time"]


def test_the_folder_of_logs_ignores_itself(path):
    begun(path)[0].close()
    assert (path.parent / ".gitignore").read_text() == "*\n"


def test_a_second_writer_is_refused_until_the_first_has_ended(path):
    log, _ = begun(path)
    with pytest.raises(ConfigurationError, match="another run is writing the log"):
        Log(path)
    log.end("complete", 1.0)
    begun(path, "two")[0].close()


def test_an_unfinished_log_is_kept_and_a_finished_one_is_not(path):
    begun(path, "one", "a")[0].end("interrupted", 1.0)
    log, kept = begun(path, "two", "b")
    log.end("complete", 1.0)
    assert [r.id for r in read_log(kept).results] == ["a"]
    log, kept_again = begun(path, "three")
    log.close()
    assert kept_again is None
    assert kept.name == "run.1.jsonl"


def test_a_finished_log_is_kept_where_that_is_asked_for(path):
    begun(path, "one", "a")[0].end("complete", 1.0)
    log = Log(path)
    free = log.free_name()
    assert log.start(record("two"), keep=True) == free
    log.close()
    assert (read_log(free).run, read_log(path).run) == ("one", "two")
    new = Log(path.with_name("new.jsonl"))
    assert new.start(record("three"), keep=True) is None
    new.close()


@pytest.mark.parametrize(
    "harm",
    [
        Path.unlink,
        lambda path: os.truncate(path, 5),
        lambda path: path.write_text("mine\n"),
        lambda path: path.write_bytes(
            path.read_bytes().replace(b"NOT_REFUTED", b"not_refuted")
        ),
    ],
)
def test_a_log_that_others_change_is_written_anew_at_its_end(path, harm):
    log, _ = begun(path, "one", "a")
    harm(path)
    log.add(result("b"))
    assert log.end("complete", 2.0)
    found = read_log(path)
    assert ([r.id for r in found.results], found.status) == (["a", "b"], "complete")


def test_a_short_write_is_completed(path, monkeypatch):
    log, _ = begun(path)
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:7]))
    log.add(result("a"))
    monkeypatch.undo()
    log.close()
    assert [r.id for r in read_log(path).results] == ["a"]


@pytest.mark.parametrize("where", ["write", "fsync"])
def test_an_interrupt_in_the_midst_of_a_line_loses_no_result(path, monkeypatch, where):
    log, _ = begun(path, "one")
    real = getattr(os, where)

    def interrupted(file, *content):
        monkeypatch.undo()
        real(file, *[data[:9] for data in content])
        raise KeyboardInterrupt

    monkeypatch.setattr(os, where, interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.add(result("a"))
    log.end("interrupted", 1.0)
    found = scan_log(path)
    assert [r.id for r in found.record.results] == ["a"]
    assert found.problems == []


def test_a_full_disk_leaves_whole_lines_and_says_how_to_go_on(path, monkeypatch):
    log, _ = begun(path, "one", "a")
    before, real = path.read_bytes(), os.write

    def full(file, data):
        if len(data) < 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(RecordingError, match=r"No space left on device.*--resume"):
        log.add(result("b"))
    monkeypatch.undo()
    log.close()
    assert path.read_bytes() == before


def test_a_log_that_cannot_be_read_is_kept(path):
    log, _ = begun(path, "one")
    log.close()
    foreign = path.read_bytes().replace(b'"schema": ', b'"schema": 9')
    path.write_bytes(foreign)
    log, kept = begun(path)
    log.close()
    assert kept is not None
    assert kept.read_bytes() == foreign


@pytest.mark.parametrize(
    "content", ["import os\n", "{}\n", '{"root_seed": 1}\n', "\x00\x01"]
)
def test_a_file_that_is_no_log_is_left_alone(tmp_path, content):
    file = tmp_path / "theirs"
    file.write_text(content)
    with pytest.raises(
        ConfigurationError, match="is not the log of a run and is left as it is"
    ):
        Log(file)
    assert file.read_text() == content


def test_bad_lines_of_a_log_without_digests_are_named_by_number_and_the_rest_is_kept(
    path,
):
    begun(path, "one", "a", "b")[0].end("complete", 1.0)
    lines = path.read_text().splitlines(keepends=True)
    other = json.dumps({**json.loads(lines[2]), "run": "another"}) + "\n"
    damaged = [
        lines[0],
        "junk\n",
        lines[1],
        '{"kind": "result", "result": {}}\n',
        other,
        lines[3],
    ]
    path.write_bytes(without_digests("".join(damaged).encode()))
    found = scan_log(path)
    assert [r.id for r in found.record.results] == ["a"]
    assert found.record.status == "complete"
    assert [problem.split()[1] for problem in found.problems[:-1]] == ["2", "4", "5"]
    assert "belongs to another run" in found.problems[2]
    assert "has no digests" in found.problems[-1]


def test_a_line_has_a_digest_of_itself_and_of_the_one_before(path):
    begun(path, "one", "a")[0].end("complete", 1.0)
    assert scan_log(path).problems == []
    before = ""
    for line in path.read_bytes().splitlines():
        digest = json.loads(line)["digest"]
        inner = line.removesuffix(f', "digest": "{digest}"}}'.encode())
        assert digest == hashlib.sha256(before.encode() + inner).hexdigest()
        before = digest


def test_what_cannot_be_written_leaves_the_chain_as_it_was(path, monkeypatch):
    log, _ = begun(path, "one", "a")

    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RecordingError):
            log.add(result("b"))
    log.add(result("c"))
    log.close()
    found = scan_log(path)
    assert ([r.id for r in found.record.results], found.problems) == (["a", "c"], [])


def test_a_log_without_digests_is_resumed_and_what_it_held_then_is_covered(path):
    begun(path, "one", "a")[0].close()
    path.write_bytes(without_digests(path.read_bytes()))
    log = Log(path)
    assert log.resume(log.before) is None
    log.add(result("b"))
    log.end("complete", 1.0)
    found = scan_log(path)
    assert ([r.id for r in found.record.results], found.problems) == (["a", "b"], [])
    path.write_bytes(path.read_bytes().replace(b'"summary": "a"', b'"summary": "z"'))
    with pytest.raises(
        ConfigurationError,
        match=r"line 3 of .* the log was changed, and none of it counts",
    ):
        scan_log(path)


def test_another_version_is_refused_with_what_differs(path):
    log = Log(path)
    log.start(replace(record(), schema=SCHEMA + 1))
    log.close()
    with pytest.raises(
        ConfigurationError,
        match=rf"written by auditdp 0\.0\.1 with schema {SCHEMA + 1}.*schema {SCHEMA}",
    ):
        read_log(path)
