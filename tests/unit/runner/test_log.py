"""The log: what is read from it, wherever it was cut or changed; other writers, full disks, and files that are no logs."""

import errno
import hashlib
import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

from auditdp.errors import ConfigurationError
from auditdp.record.results import (
    SCHEMA,
    AuditResult,
    ClaimRecord,
    ControlResult,
    Counterexample,
    Evidence,
    LedgerEntry,
    RunRecord,
    Verdict,
)
from auditdp.runner.log import Log, RecordingError
from auditdp.runner.plan import Plan
from auditdp.runner.run_record import (
    failure,
    header,
    read_log,
    resumable,
    scan_log,
    scan_record,
)
from tests.adversary.records import without_digests

FULL = AuditResult(
    id="full",
    verdict=Verdict.VIOLATED,
    summary="ε = ∞, “quoted”\nand more",
    expected="violation",
    description="Line one.\n\nLine two.",
    mechanism="Response(inf)",
    parameters={"epsilon": 1.5, "nodes": 8, "strict": True, "mode": "x", "no": None},
    claim=ClaimRecord(
        "ApproxDP", "(1, 0.01)-DP", "two values", "a source", "epsilon", 1.0, 0.01
    ),
    evidence=[
        Evidence(
            kind="exact",
            verdict=Verdict.VIOLATED,
            statement="exact",
            assumptions=["one", "two"],
            epsilon_lower=math.inf,
            epsilon_upper=math.inf,
            log_e_value=-math.inf,
            calls=12,
            counterexample=Counterexample("1 | 0", "why", "output", confirmed=False),
            details={"curve": [[0.0, 1.0]], "text": "é", "none": None, "flag": False},
        )
    ],
    epsilon_lower=math.inf,
    epsilon_upper=math.inf,
    log_e_value=12.25,
    alpha=1e-300,
    calls=10**12,
    cpu_seconds=0.1 + 0.2,
    seconds=1e-9,
    controls=[ControlResult("twin", Verdict.VIOLATED, "refuted", 5, math.inf)],
    counterexample=Counterexample("1 | 0", "why"),
    reproduce="auditdp run",
)
END = "2026-05-03T10:00:00+00:00"
NO_ROOM = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def result(name: str, verdict: Verdict = Verdict.NOT_REFUTED) -> AuditResult:
    return AuditResult(id=name, verdict=verdict, summary=name, alpha=0.01)


def record(run: str = "one", names: str = "abc", **fields) -> RunRecord:
    ledger = [LedgerEntry(name, "verdict", 0.01) for name in names]
    versions = {"auditdp": "0.0.1"}
    made = RunRecord(
        2**63, "running", {"paths": ["audits"]}, versions, "abc", "cpu", ledger, []
    )
    return replace(made, run=run, **fields)


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".auditdp" / "run.jsonl"


def begun(path, run="one", names="", planned="abc"):
    """Begin a log with results of these names; return it, and where the log of before is kept."""
    log = Log(path)
    kept = log.start(record(run, planned))
    for name in names:
        log.add(result(name))
    return log, kept


def finished(path, names="a"):
    begun(path, names=names)[0].end("complete", 1.0, END)


def names_in(path):
    return "".join(each.id for each in read_log(path).results)


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True)


# records


def test_a_record_goes_to_json_and_back_without_loss():
    made = record(results=[FULL, failure("audits/audit_x.py", "does not import")])
    assert RunRecord.from_json(made.to_json()) == made
    assert RunRecord.from_json(made.to_json(indent=None).encode()) == made


def test_json_has_no_numbers_that_are_not_json():
    def refuse(token):
        raise AssertionError(token)

    plain = json.loads(record(results=[FULL]).to_json(), parse_constant=refuse)
    (found,) = plain["results"]
    assert (found["epsilon_lower"], found["epsilon_upper"]) == ("inf", "inf")
    assert found["evidence"][0]["log_e_value"] == "-inf"
    assert found["controls"][0]["epsilon_lower"] == "inf"


def test_a_header_has_the_digest_of_each_source_below_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_bytes(b"1")
    sources = iter([tmp_path / "a.py", tmp_path.parent / "elsewhere.py"])
    made = header(Plan([]), {}, 1, sources=sources)
    assert made.sources == {"a.py": hashlib.sha256(b"1").hexdigest()}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("root_seed", 3),
        ("arguments", {"paths": ["elsewhere"]}),
        ("alpha_ledger", [LedgerEntry("a", "verdict", 0.02)]),
        ("versions", {"python": "3.12"}),
        ("revision", "another"),
    ],
)
def test_another_question_is_not_resumed(name, value):
    with pytest.raises(ConfigurationError, match=f"cannot resume: {name} differs"):
        resumable(record(), record(**{name: value}))


def test_the_same_question_is_resumed_whatever_was_answered():
    resumable(record(results=[FULL], status="interrupted", seconds=3.0), record())
    long, longest = "a" * 121, "b" * 120
    message = rf"differs \({'a' * 119}… then, {longest} now\)"
    with pytest.raises(ConfigurationError, match=message):
        resumable(record(revision=long), record(revision=longest))


# what is written


def test_a_log_adds_up_to_its_record_in_the_order_of_the_plan(path):
    log = Log(path)
    broken = failure("audits/audit_x.py", "does not import")
    log.start(replace(record(names=["a", "full", "b"]), results=[broken]))
    for each in (result("b"), FULL, result("a")):
        log.add(each)
    assert read_log(path).status == "running"
    log.end("complete", 1.5, END)
    found = read_log(path)
    assert [each.id for each in found.results] == [broken.id, "a", "full", "b"]
    assert found.results[2] == FULL
    assert (found.status, found.seconds, found.root_seed) == ("complete", 1.5, 2**63)
    as_json = path.with_suffix(".json")
    as_json.write_text(found.to_json(), encoding="utf-8")
    assert scan_record(path).record == scan_record(as_json).record == found


def test_every_line_names_its_run_and_is_one_write_with_a_digest(path, monkeypatch):
    """Each line has a digest of itself and of the one before, and is on disk at once."""
    written, real = [], os.write
    monkeypatch.setattr(
        os, "write", lambda file, data: written.append(data) or real(file, data)
    )
    log = Log(path)
    written.clear()
    for k, write in enumerate(
        (
            lambda: log.start(record()),
            lambda: log.add(FULL),
            lambda: log.end("complete", 1.0, END),
        )
    ):
        write()
        assert len(written) == k + 1
        assert lines_of(path) == written
    assert (path.parent / ".gitignore").read_text() == "*\n"
    before = ""
    for line, kind in zip(written, ("header", "result", "end"), strict=True):
        content = json.loads(line)
        assert (content["kind"], content["run"]) == (kind, "one")
        digest = content["digest"]
        inner = line.removesuffix(f', "digest": "{digest}"}}\n'.encode())
        assert digest == hashlib.sha256(before.encode() + inner).hexdigest()
        before = digest
    assert read_log(path).finished == content["time"] == END


def test_a_second_writer_is_refused_until_the_first_has_ended(path):
    log, _ = begun(path)
    with pytest.raises(ConfigurationError, match="another run is writing the log"):
        Log(path)
    log.end("complete", 1.0, END)
    begun(path, "two")[0].close()
    found = read_log(path)
    assert (found.run, found.results, found.status) == ("two", [], "running")


def test_an_unfinished_log_is_kept_and_a_finished_one_where_that_is_asked_for(path):
    begun(path, "one", "a")[0].end("interrupted", 1.0, END)
    log, kept = begun(path, "two", "b")
    log.end("complete", 1.0, END)
    assert (kept.name, names_in(kept)) == ("run.1.jsonl", "a")
    log, kept_again = begun(path, "three")
    assert kept_again is None
    log.end("complete", 1.0, END)
    log = Log(path)
    free = log.free_name()
    assert log.start(record("four"), keep=True) == free
    log.close()
    assert (read_log(free).run, read_log(path).run) == ("three", "four")
    new = Log(path.with_name("new.jsonl"))
    assert new.start(record("five"), keep=True) is None
    new.close()
    log, _ = begun(new.path, "six", "a")
    log.end("shard 1 of 2", 1.0, END)
    assert Log(new.path).held == "shard 1 of 2"


# harm


@pytest.mark.parametrize(
    "harm",
    [
        Path.unlink,
        lambda path: os.truncate(path, 5),
        lambda path: path.write_text("mine\n"),
        lambda path: path.write_bytes(path.read_bytes().replace(b"NOT", b"not")),
    ],
)
def test_a_log_that_others_change_is_written_anew_at_its_end(path, harm):
    log, _ = begun(path, "one", "a")
    harm(path)
    log.add(result("b"))
    assert log.end("complete", 2.0, END)
    assert (names_in(path), read_log(path).status) == ("ab", "complete")


def test_a_short_write_is_completed(path, monkeypatch):
    log, _ = begun(path)
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:7]))
    log.add(result("a"))
    monkeypatch.undo()
    log.close()
    assert names_in(path) == "a"


@pytest.mark.parametrize("where", ["write", "fsync"])
def test_an_interrupt_in_the_midst_of_a_line_loses_no_result(path, monkeypatch, where):
    log, _ = begun(path)
    real = getattr(os, where)

    def interrupted(file, *content):
        monkeypatch.undo()
        real(file, *[data[:9] for data in content])
        raise KeyboardInterrupt

    monkeypatch.setattr(os, where, interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.add(result("a"))
    log.end("interrupted", 1.0, END)
    assert (names_in(path), scan_log(path).problems) == ("a", [])


def test_a_full_disk_leaves_whole_lines_and_says_how_to_go_on(path, monkeypatch):
    log, _ = begun(path, "one", "a")
    before, real = path.read_bytes(), os.write

    def full(file, data):
        if len(data) < 20:
            raise NO_ROOM
        return real(file, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(RecordingError, match=r"No space left on device.*--resume"):
        log.add(result("b"))
    monkeypatch.undo()
    assert path.read_bytes() == before

    def not_synchronised(file):
        raise NO_ROOM

    monkeypatch.setattr(os, "fsync", not_synchronised)
    with pytest.raises(RecordingError):
        log.add(result("b"))
    monkeypatch.undo()
    # The chain of digests is as it was.
    log.add(result("c"))
    log.close()
    assert (names_in(path), scan_log(path).problems) == ("ac", [])


def test_every_prefix_of_a_log_resumes_to_the_whole(tmp_path, monkeypatch):
    """Wherever a kill cuts the log, what is read from it and what is added to it are all of the results, once each."""
    monkeypatch.setattr(os, "fsync", lambda file: None)
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    finished(whole, "ab")
    content, wrong = whole.read_bytes(), []
    for length in range(content.index(b"\n") + 1, len(content) + 1, 3):
        cut.write_bytes(content[:length])
        missing = set("ab") - set(names_in(cut))
        log = Log(cut)
        log.resume(log.before)
        for name in sorted(missing):
            log.add(result(name))
        log.end("complete", 2.0, END)
        if (names_in(cut), read_log(cut).status) != ("ab", "complete"):
            wrong.append(length)
    assert wrong == []


@pytest.mark.parametrize(
    "junk",
    [b'{"kind": "result", "resu', b"\x00\x00\x00\x00", b"\xff\xfe\xfd", b"{", b""],
)
def test_an_unreadable_last_line_is_ignored(path, junk):
    begun(path, "one", "a")[0].close()
    path.write_bytes(path.read_bytes() + junk)
    assert names_in(path) == "a"
    log = Log(path)
    log.resume(log.before)
    log.add(result("b"))
    assert names_in(path) == "ab"
    assert len(lines_of(path)) == 3


def test_of_two_verdicts_of_an_audit_none_counts(path):
    log, _ = begun(path, "one", "ab", "ab")
    log.add(result("a", Verdict.VIOLATED))
    log.close()
    found = scan_log(path)
    assert found.record.missing == ["a"]
    assert "line 4" in found.problems[0]
    assert "of which none counts" in found.problems[0]


def test_a_log_of_another_version_is_kept_and_refused(path):
    log = Log(path)
    log.start(record(schema=SCHEMA + 1))
    log.close()
    message = rf"written by auditdp 0\.0\.1 with schema {SCHEMA + 1}.*schema {SCHEMA}"
    with pytest.raises(ConfigurationError, match=message):
        read_log(path)
    foreign = path.read_bytes()
    log, kept = begun(path)
    log.close()
    assert kept.read_bytes() == foreign


@pytest.mark.parametrize(
    "content",
    [
        "import os\n",
        "{}\n",
        '{"root_seed": 1}\n',
        "\x00\x01",
        "\n",
        "3\n",
        "[]\n",
        '{"kind": "header"}\n',
        '{"kind": "end"}\n',
    ],
)
def test_a_file_that_is_no_log_is_refused_and_left_alone(tmp_path, content):
    file = tmp_path / "run.jsonl"
    file.write_text(content)
    with pytest.raises(ConfigurationError, match=r"run\.jsonl is not the log of a run"):
        read_log(file)
    if "kind" not in content and content.strip():
        with pytest.raises(ConfigurationError, match="and is left as it is"):
            Log(file)
    assert file.read_text() == content


def test_what_cannot_be_read_or_written_says_what_to_do(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "run.json").write_text('{"root_seed": "three"}')
    for reader, name, message in (
        (read_log, "none.jsonl", "start one with: auditdp run"),
        (Log, "file/run.jsonl", "give another --log"),
        (scan_record, "run.json", r"run\.json is not a run record: root_seed"),
        (scan_record, "none.json", "no such record"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            reader(tmp_path / name)


# logs without digests


def test_bad_lines_of_a_log_without_digests_are_named_and_the_rest_is_kept(path):
    finished(path, "ab")
    first, a, b, end = (line.decode() for line in lines_of(path))
    other = json.dumps({**json.loads(b), "run": "another"}) + "\n"
    no_result = '{"kind": "result", "result": {}}\n'
    damaged = [first, "junk\n", a, no_result, other, end]
    path.write_bytes(without_digests("".join(damaged).encode()))
    found = scan_log(path)
    assert (names_in(path), found.record.status) == ("a", "complete")
    *lines, digests = found.problems
    assert [problem.split()[1] for problem in lines] == ["2", "4", "5"]
    assert "belongs to another run" in lines[2]
    assert "has no digests" in digests


def test_a_log_without_digests_is_resumed_and_what_it_held_then_is_covered(path):
    begun(path, "one", "a")[0].close()
    path.write_bytes(without_digests(path.read_bytes()))
    log = Log(path)
    assert log.resume(log.before) is None
    log.add(result("b"))
    log.end("complete", 1.0, END)
    assert (names_in(path), scan_log(path).problems) == ("ab", [])
    path.write_bytes(path.read_bytes().replace(b'"summary": "a"', b'"summary": "z"'))
    message = r"line 3 of .* the log was changed, and none of it counts"
    with pytest.raises(ConfigurationError, match=message):
        scan_log(path)
