"""What an edit of a log can do: it is named, and from there on no result counts, whoever reads it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from auditdp.cli.baseline_commands import check, compare, merge, update
from auditdp.cli.recorded import report_command
from auditdp.cli.run_options import RunOptions
from auditdp.cli.running import carry_out
from auditdp.errors import ConfigurationError, StoppedError
from auditdp.record.results import (
    RESULT,
    AuditResult,
    Evidence,
    LedgerEntry,
    RunRecord,
    Verdict,
)
from auditdp.runner.log import Log
from auditdp.runner.run_record import scan_log
from tests.adversary.records import with_digests, without_digests

NAMES = [f"audits/audit_it.py::{name}" for name in "abc"]
CLAIMED = {NAMES[1]: Verdict.VIOLATED}


def result(name, verdict=None):
    verdict = verdict or CLAIMED.get(name, Verdict.CERTIFIED)
    return AuditResult(
        name, verdict, "seen", evidence=[Evidence("exact", verdict, "seen")], alpha=0.01
    )


@pytest.fixture
def log(tmp_path, monkeypatch):
    """The log of a run of three audits, of which the second is violated."""
    monkeypatch.chdir(tmp_path)
    ledger = [LedgerEntry(name, "verdict", 0.01) for name in NAMES]
    path = Path("run.jsonl")
    log = Log(path)
    log.start(
        RunRecord(
            1, "running", {}, {"auditdp": "0.0.1"}, "abc", "cpu", ledger, [], run="this"
        )
    )
    for name in NAMES:
        log.add(result(name))
    log.end("complete", 1.0)
    return path


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True)


def certified(line):
    """The line with a violation turned into a certificate, as long as it was."""
    return line.replace(b'"VIOLATED"', b'"CERTIFIED"').replace(
        b'"verdict": "C', b'"verdict":"C'
    )


def forged(line, name):
    """A line of another result, without a digest."""
    content = {**json.loads(line), "result": {**json.loads(line)["result"], "id": name}}
    del content["digest"]
    return json.dumps(content).encode() + b"\n"


HEADER, A, B, C, END = range(5)
HELD = RESULT.dump_json(
    AuditResult(
        NAMES[1],
        Verdict.CERTIFIED,
        "",
        evidence=[Evidence("exact", Verdict.CERTIFIED, "")],
    )
)
EDITS = {
    "a violation certified, as long as before": (
        lambda r: [*r[:B], certified(r[B]), *r[C:]],
        3,
        "a",
    ),
    "the same, without its digest": (
        lambda r: [*r[:B], without_digests(certified(r[B])), *r[C:]],
        3,
        "a",
    ),
    "the same, with the digest of a log that begins there": (
        lambda r: [*r[:B], with_digests(certified(r[B])), *r[C:]],
        3,
        "a",
    ),
    "a line removed": (lambda r: [*r[:B], *r[C:]], 3, "a"),
    "two lines swapped": (lambda r: [r[HEADER], r[B], r[A], *r[C:]], 2, ""),
    "a line doubled": (lambda r: [*r[:C], r[B], *r[C:]], 4, "ab"),
    "a line put in": (lambda r: [*r[:B], forged(r[A], NAMES[1]), *r[C:]], 3, "a"),
    "an empty line put in": (lambda r: [*r[:B], b"\n", *r[B:]], 3, "a"),
    "a line appended before a kill": (
        lambda r: [*r[:B], forged(r[A], NAMES[1])],
        3,
        "a",
    ),
    "a line appended after the end": (lambda r: [*r, forged(r[A], NAMES[1])], 6, "abc"),
    "the closing line edited": (
        lambda r: [*r[:END], r[END].replace(b"complete", b"COMPLETE")],
        5,
        "abc",
    ),
    "all digests stripped from the middle on": (
        lambda r: [*r[:B], *map(without_digests, [certified(r[B]), *r[C:]])],
        3,
        "a",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_named_and_nothing_counts_from_there_on(log, edit):
    harm, number, counted = EDITS[edit]
    log.write_bytes(b"".join(harm(lines_of(log))))
    found = scan_log(log)
    assert [each.id[-1] for each in found.record.results] == list(counted)
    assert all(each == result(each.id) for each in found.record.results)
    assert [problem.split(" of ")[0] for problem in found.problems] == [
        f"line {number}"
    ]
    assert "the log was changed" in found.problems[0]
    assert found.record.status == ("complete" if number == 6 else "running")


@pytest.mark.parametrize(
    "harm",
    [
        lambda r: [r[HEADER].replace(b'"root_seed": 1', b'"root_seed": 2'), *r[A:]],
        lambda r: [
            without_digests(r[HEADER]).replace(
                b'"results": []', b'"results": [%s]' % HELD
            ),
            *r[A:],
        ],
        lambda r: [*map(without_digests, [r[HEADER], r[A], certified(r[B])]), *r[C:]],
        lambda r: [without_digests(r[HEADER]), forged(r[A], NAMES[1]), *r[A:]],
    ],
    ids=[
        "edited",
        "edited, its digest stripped",
        "digests stripped up to an edit",
        "its digest stripped, a line put in",
    ],
)
def test_of_a_log_whose_header_or_beginning_was_edited_nothing_counts(log, harm):
    edited = b"".join(harm(lines_of(log)))
    log.write_bytes(edited)
    with pytest.raises(
        ConfigurationError,
        match=r"line \d of run\.jsonl .* the log was changed, and none of it counts",
    ):
        scan_log(log)
    new = Log(log)
    kept = new.start(RunRecord(1, "running", {}, {}, "", "", [], [], run="new"))
    new.close()
    assert kept.read_bytes() == edited


def test_a_log_of_an_earlier_version_is_read_and_said_once_to_have_no_digests(log):
    log.write_bytes(without_digests(log.read_bytes()))
    found = scan_log(log)
    assert [each.id for each in found.record.results] == NAMES
    assert found.problems == [
        "run.jsonl has no digests, as logs of earlier versions: a change of it would not be seen"
    ]


def test_who_makes_all_digests_anew_is_not_seen(log):
    """What it is no protection against, as SECURITY.md states."""
    rows = lines_of(log)
    log.write_bytes(with_digests(b"".join([*rows[:B], certified(rows[B]), *rows[C:]])))
    assert scan_log(log).problems == []


def test_every_reader_says_so_and_none_takes_the_edit(log, capsys):
    rows = lines_of(log)
    edited = b"".join([*rows[:B], certified(rows[B]), *rows[C:]])
    assert len(edited) == log.stat().st_size
    log.write_bytes(edited)
    for conclude in (update, check, lambda log: compare(log, log)):
        with pytest.raises(StoppedError, match="is not whole"):
            conclude(log)
    assert not Path("auditdp-baseline.toml").exists()
    with pytest.raises(typer.Exit) as ended:
        merge([log], Path("merged.jsonl"))
    assert ended.value.exit_code == 3
    assert [each.id for each in scan_log(Path("merged.jsonl")).record.results] == NAMES[
        :1
    ]
    with pytest.raises(typer.Exit) as ended:
        report_command(log, output="json")
    assert ended.value.exit_code == 3
    out, err = capsys.readouterr()
    report = json.loads(out[out.index("{") :])
    assert [each["id"] for each in report["results"]] == NAMES[:1]
    assert len(re.findall(r"line 3 of run\.jsonl", err)) == 5


def test_an_edit_after_which_every_result_is_there_is_no_success(log, capsys):
    """A log without a finding, to which a line was added after its end."""
    rows = lines_of(log)
    log.write_bytes(
        with_digests(b"".join([*rows[:B], certified(rows[B]), *rows[C:]])) + b"{}\n"
    )
    for ending in (
        lambda: merge([log], Path("merged.jsonl")),
        lambda: report_command(log, output="json"),
    ):
        with pytest.raises(typer.Exit) as ended:
            ending()
        assert ended.value.exit_code == 3
    assert not scan_log(Path("merged.jsonl")).record.missing


AUDITS = """
import numpy as np
from auditdp import *

def leaks(data, size, *, rng):
    return np.full(size, data)

@audit(expect="violation")
def a():
    return Audit(leaks, PureDP(1.0), AnyValues((0, 1)), calls=200)

@audit(expect="violation")
def b():
    return Audit(leaks, PureDP(1.0), AnyValues((0, 1)), calls=200)
"""


def test_a_resumed_run_takes_over_no_line_that_it_did_not_write(
    tmp_path, monkeypatch, capsys
):
    """A mechanism appends the result of another audit and kills the run: that audit runs, and the log is whole again."""
    monkeypatch.chdir(tmp_path)
    Path("audits").mkdir()
    Path("audits/audit_it.py").write_text(AUDITS)
    path = Path(".auditdp/run.jsonl")
    asked = RunOptions(seed=1, budget=["quick"], log_path=path, workers="1")
    with pytest.raises(typer.Exit):
        carry_out(asked)
    header, first, *_ = lines_of(path)
    whole = scan_log(path).record
    other = forged(certified(first), NAMES[1])
    path.write_bytes(header + first + other)
    with pytest.raises(typer.Exit) as ended:
        carry_out(replace(asked, resume=True))
    found = scan_log(path)
    assert (
        ended.value.exit_code == 3
    )  # 0 if nobody had changed it: what is found is what is expected
    assert found.problems == []
    assert [each.verdict for each in found.record.results] == [
        each.verdict for each in whole.results
    ]
    assert found.record.status == "complete"
    assert other not in path.read_bytes()
    assert Path(".auditdp/run.1.jsonl").read_bytes() == header + first + other
    err = " ".join(capsys.readouterr().err.split())
    assert "line 3 of .auditdp/run.jsonl is not what was written" in err
    assert "the log as it was found is kept: " in err
