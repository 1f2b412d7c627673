from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import replace

import pytest

from auditdp.errors import ConfigurationError
from auditdp.record.results import (
    AuditResult,
    ClaimRecord,
    ControlResult,
    Counterexample,
    Evidence,
    LedgerEntry,
    RunRecord,
    Verdict,
)
from auditdp.runner.log import Log
from auditdp.runner.plan import Plan
from auditdp.runner.run_record import (
    failure,
    header,
    read_log,
    resumable,
    scan_log,
    scan_record,
)


def result_named(name: str, verdict: Verdict = Verdict.NOT_REFUTED) -> AuditResult:
    return AuditResult(
        id=f"audits/audit_it.py::{name}",
        verdict=verdict,
        summary=f"summary of {name}",
        alpha=0.01,
    )


FULL = AuditResult(
    id="audits/audit_it.py::full",
    verdict=Verdict.VIOLATED,
    summary="ε = ∞, “quoted”\nand more",
    expected="violation",
    description="Line one.\n\nLine two.",
    mechanism="Response(inf)",
    parameters={
        "epsilon": 1.5,
        "nodes": 8,
        "strict": True,
        "mode": "fast",
        "nothing": None,
    },
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
            details={
                "curve": [[0.0, 1.0], [0.1, 0.9]],
                "text": "é",
                "none": None,
                "flag": False,
            },
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


def run_of(*names: str) -> RunRecord:
    return RunRecord(
        root_seed=2**63,
        status="running",
        arguments={"paths": ["audits"], "parameters": {}},
        versions={"python": "3.11"},
        revision="abc, sources def",
        device="cpu",
        alpha_ledger=[
            LedgerEntry(f"audits/audit_it.py::{name}", "verdict", 0.01)
            for name in names
        ],
        results=[],
        run="this",
    )


def logged(path, names, *results, end=None):
    log = Log(path)
    log.start(run_of(*names))
    for result in results:
        log.add(result)
    if end is None:
        log.close()
    else:
        log.end(*end)


def test_a_record_goes_to_json_and_back_without_loss():
    record = replace(
        run_of("full"), results=[FULL, failure("audits/audit_x.py", "does not import")]
    )
    assert RunRecord.from_json(record.to_json()) == record
    assert RunRecord.from_json(record.to_json(indent=None).encode()) == record


def test_a_header_has_the_digest_of_each_source_below_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_bytes(b"1")
    made = header(
        Plan([]),
        {},
        1,
        sources=iter([tmp_path / "a.py", tmp_path.parent / "elsewhere.py"]),
    )
    assert made.sources == {"a.py": hashlib.sha256(b"1").hexdigest()}


def test_json_has_no_numbers_that_are_not_json():
    def refuse(token):
        raise AssertionError(token)

    found = json.loads(
        replace(run_of("full"), results=[FULL]).to_json(), parse_constant=refuse
    )["results"][0]
    assert (found["epsilon_lower"], found["epsilon_upper"]) == ("inf", "inf")
    assert found["evidence"][0]["log_e_value"] == "-inf"
    assert found["controls"][0]["epsilon_lower"] == "inf"


def test_a_log_adds_up_to_its_record_in_the_order_of_the_plan(tmp_path):
    path = tmp_path / "deep" / "run.jsonl"
    logged(
        path,
        ["a", "full", "b"],
        result_named("b"),
        FULL,
        result_named("a"),
        end=("complete", 1.5),
    )
    record = read_log(path)
    assert [r.id for r in record.results] == [
        f"audits/audit_it.py::{name}" for name in ("a", "full", "b")
    ]
    assert record.results[1] == FULL
    assert (record.status, record.seconds, record.root_seed) == ("complete", 1.5, 2**63)


def test_a_log_without_an_end_is_of_a_running_run(tmp_path):
    logged(tmp_path / "run.jsonl", ["a", "b"], result_named("a"))
    record = read_log(tmp_path / "run.jsonl")
    assert (record.status, len(record.results)) == ("running", 1)


def test_failures_of_collection_come_first(tmp_path):
    log = Log(tmp_path / "run.jsonl")
    log.start(
        replace(run_of("a"), results=[failure("audits/audit_x.py", "does not import")])
    )
    log.add(result_named("a"))
    assert [r.id for r in read_log(tmp_path / "run.jsonl").results] == [
        "audits/audit_x.py",
        "audits/audit_it.py::a",
    ]


def test_of_two_verdicts_of_an_audit_none_counts(tmp_path):
    logged(
        tmp_path / "run.jsonl",
        ["a", "b"],
        result_named("a"),
        result_named("b"),
        result_named("a", Verdict.VIOLATED),
    )
    record, problems, *_ = scan_log(tmp_path / "run.jsonl")
    assert record.missing == ["audits/audit_it.py::a"]
    assert "line 4" in problems[0]
    assert "of which none counts" in problems[0]


def test_starting_again_forgets_the_last_run(tmp_path):
    logged(tmp_path / "run.jsonl", ["a"], result_named("a"), end=("complete", 1.0))
    logged(tmp_path / "run.jsonl", ["a", "b"])
    record = read_log(tmp_path / "run.jsonl")
    assert (record.results, len(record.alpha_ledger), record.status) == (
        [],
        2,
        "running",
    )


def test_every_prefix_of_a_log_resumes_to_the_whole(tmp_path, monkeypatch):
    """Wherever a kill cuts the log, what is read from it and what is added to it are all of the results, once each."""
    monkeypatch.setattr(os, "fsync", lambda file: None)
    whole = tmp_path / "whole.jsonl"
    expected = [result_named("a"), result_named("b")]
    logged(whole, ["a", "b"], *expected, end=("complete", 1.0))
    content = whole.read_bytes()
    cut = tmp_path / "cut.jsonl"
    wrong = []
    for length in range(content.index(b"\n") + 1, len(content) + 1):
        cut.write_bytes(content[:length])
        finished = {r.id for r in read_log(cut).results}
        log = Log(cut)
        log.resume(log.before)
        for result in expected:
            if result.id not in finished:
                log.add(result)
        log.end("complete", 2.0)
        if read_log(cut).results != expected or read_log(cut).status != "complete":
            wrong.append(length)
    assert wrong == []


@pytest.mark.parametrize(
    "junk",
    [b'{"kind": "result", "resu', b"\x00\x00\x00\x00", b"\xff\xfe\xfd", b"{", b""],
)
def test_an_unreadable_last_line_is_ignored(tmp_path, junk):
    path = tmp_path / "run.jsonl"
    logged(path, ["a", "b"], result_named("a"))
    path.write_bytes(path.read_bytes() + junk)
    assert [r.id for r in read_log(path).results] == ["audits/audit_it.py::a"]
    log = Log(path)
    log.resume(log.before)
    log.add(result_named("b"))
    assert len(read_log(path).results) == 2
    assert [json.loads(line)["kind"] for line in path.read_bytes().splitlines()] == [
        "header",
        "result",
        "result",
    ]


@pytest.mark.parametrize(
    "content",
    ["", "\n", "text\n", "3\n", "[]\n", '{"kind": "header"}\n', '{"kind": "end"}\n'],
)
def test_a_file_that_is_no_log_is_refused_by_name(tmp_path, content):
    (tmp_path / "run.jsonl").write_text(content)
    with pytest.raises(ConfigurationError, match=r"run\.jsonl is not the log of a run"):
        read_log(tmp_path / "run.jsonl")


def test_a_missing_log_says_how_to_make_one(tmp_path):
    with pytest.raises(ConfigurationError, match="start one with: auditdp run"):
        read_log(tmp_path / "run.jsonl")


def test_a_log_that_cannot_be_written_names_the_option(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="give another --log"):
        Log(tmp_path / "file" / "run.jsonl")


def test_each_line_is_on_disk_as_soon_as_it_is_written(tmp_path):
    log = Log(tmp_path / "run.jsonl")
    for k, write in enumerate(
        (lambda: log.start(run_of("a")), lambda: log.add(result_named("a")))
    ):
        write()
        lines = (tmp_path / "run.jsonl").read_bytes()
        assert lines.count(b"\n") == k + 1
        assert lines.endswith(b"\n")


def test_each_line_is_one_write(tmp_path, monkeypatch):
    log = Log(tmp_path / "run.jsonl")
    written = []
    real = os.write
    monkeypatch.setattr(
        os, "write", lambda file, data: written.append(data) or real(file, data)
    )
    log.start(run_of("full"))
    log.add(FULL)
    monkeypatch.undo()
    assert len(written) == 2
    assert all(data.count(b"\n") == 1 and data.endswith(b"\n") for data in written)


def test_a_record_is_read_from_json_or_from_a_log(tmp_path):
    logged(tmp_path / "run.jsonl", ["full"], FULL, end=("complete", 1.0))
    from_log = scan_record(tmp_path / "run.jsonl").record
    (tmp_path / "run.json").write_text(from_log.to_json(), encoding="utf-8")
    assert scan_record(tmp_path / "run.json").record == from_log


def test_json_that_is_no_record_says_what_is_missing(tmp_path):
    (tmp_path / "run.json").write_text('{"root_seed": "three"}')
    with pytest.raises(
        ConfigurationError, match=r"run\.json is not a run record: root_seed"
    ):
        scan_record(tmp_path / "run.json")
    with pytest.raises(ConfigurationError, match="no such record"):
        scan_record(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("root_seed", 3),
        ("arguments", {"paths": ["elsewhere"]}),
        ("alpha_ledger", [LedgerEntry("audits/audit_it.py::a", "verdict", 0.02)]),
        ("versions", {"python": "3.12"}),
        ("revision", "another"),
    ],
)
def test_another_question_is_not_resumed(name, value):
    with pytest.raises(ConfigurationError, match=f"cannot resume: {name} differs"):
        resumable(run_of("a"), replace(run_of("a"), **{name: value}))


def test_of_a_long_difference_the_beginning_is_said():
    long, longest = "a" * 121, "b" * 120
    with pytest.raises(
        ConfigurationError, match=rf"differs \({'a' * 119}… then, {longest} now\)"
    ):
        resumable(
            replace(run_of("a"), revision=long), replace(run_of("a"), revision=longest)
        )


def test_the_same_question_is_resumed_whatever_was_answered():
    resumable(
        replace(
            run_of("a"), results=[result_named("a")], status="interrupted", seconds=3.0
        ),
        run_of("a"),
    )
