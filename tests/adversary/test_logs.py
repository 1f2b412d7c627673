"""What an edit of a log can do: it is named, and from there on no result counts, whoever reads it."""

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
from tests.adversary.projects import proved
from tests.adversary.records import with_digests, without_digests
from tests.unit.runner.test_log import lines_of

NAMES = [f"audits/audit_it.py::{name}" for name in "abc"]
CLAIMED = {NAMES[1]: Verdict.VIOLATED}


def result(name):
    verdict = CLAIMED.get(name, Verdict.CERTIFIED)
    evidence = [Evidence("exact", verdict, "seen")]
    return AuditResult(name, verdict, "seen", evidence=evidence, alpha=0.01)


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
    log.end("complete", 1.0, "2026-05-03T10:00:00+00:00")
    return path


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
HELD = RESULT.dump_json(proved(NAMES[1]))


def pieces(lines):
    """Return the lines of the log, and what harm makes of each, by letters."""
    whole = dict(zip("HABCE", lines, strict=True))
    b = certified(whole["B"])
    no_digest = without_digests(whole["H"])
    return {
        **whole,
        **{f"{name}-": without_digests(line) for name, line in whole.items()},
        "b": b,
        "b-": without_digests(b),
        "b+": with_digests(b),
        "+": forged(whole["A"], NAMES[1]),
        "0": b"\n",
        "e": whole["E"].replace(b"complete", b"COMPLETE"),
        "h": whole["H"].replace(b'_seed": 1', b'_seed": 2'),
        "h-": no_digest.replace(b'"results": []', b'"results": [%s]' % HELD),
    }


# Each edit, the lines of the log after it, the line that is named, and the results that count.
EDITS = """
a violation certified, as long as before | H A b C E | 3 | a
the same, without its digest | H A b- C E | 3 | a
the same, with the digest of a log that begins there | H A b+ C E | 3 | a
a line removed | H A C E | 3 | a
two lines swapped | H B A C E | 2 |
a line doubled | H A B B C E | 4 | ab
a line put in | H A + C E | 3 | a
an empty line put in | H A 0 B C E | 3 | a
a line appended before a kill | H A + | 3 | a
a line appended after the end | H A B C E + | 6 | abc
the closing line edited | H A B C e | 5 | abc
all digests stripped from the middle on | H A b- C- E- | 3 | a
"""
HARMED_BEGINNINGS = """
edited | h A B C E
edited, its digest stripped | h- A B C E
digests stripped up to an edit | H- A- b- C E
its digest stripped, a line put in | H- + A B C E
"""


def rows(table):
    return [
        tuple(cell.strip() for cell in row.split("|"))
        for row in table.strip().splitlines()
    ]


def edited(log, letters):
    """Write the lines with these letters."""
    found = pieces(lines_of(log))
    log.write_bytes(b"".join(found[letter] for letter in letters.split()))


@pytest.mark.parametrize(("edit", "letters", "number", "counted"), rows(EDITS))
def test_an_edit_is_named_and_nothing_counts_from_there_on(
    log, edit, letters, number, counted
):
    edited(log, letters)
    found = scan_log(log)
    assert [each.id[-1] for each in found.record.results] == list(counted)
    assert all(each == result(each.id) for each in found.record.results)
    (problem,) = found.problems
    assert problem.startswith(f"line {number} of ")
    assert "the log was changed" in problem
    assert found.record.status == ("complete" if number == "6" else "running")


@pytest.mark.parametrize(("harm", "letters"), rows(HARMED_BEGINNINGS))
def test_of_a_log_whose_header_or_beginning_was_edited_nothing_counts(
    log, harm, letters
):
    whole = log.read_bytes()
    edited(log, letters)
    harmed = log.read_bytes()
    assert harmed != whole
    message = r"line \d of run\.jsonl .* the log was changed, and none of it counts"
    with pytest.raises(ConfigurationError, match=message):
        scan_log(log)
    new = Log(log)
    kept = new.start(RunRecord(1, "running", {}, {}, "", "", [], [], run="new"))
    new.close()
    assert kept.read_bytes() == harmed


def test_a_log_of_an_earlier_version_is_read_and_said_once_to_have_no_digests(log):
    log.write_bytes(without_digests(log.read_bytes()))
    found = scan_log(log)
    assert [each.id for each in found.record.results] == NAMES
    assert found.problems == [
        "run.jsonl has no digests, as logs of earlier versions: a change of it would not be detected"
    ]


def violation_certified(rows):
    return b"".join([*rows[:B], certified(rows[B]), *rows[C:]])


def test_who_makes_all_digests_anew_is_not_seen(log):
    """What it is no protection against, as SECURITY.md states."""
    log.write_bytes(with_digests(violation_certified(lines_of(log))))
    assert scan_log(log).problems == []


def ended_with(command):
    """Return the exit code of a command, which is not 0."""
    with pytest.raises(typer.Exit) as ended:
        command()
    return ended.value.exit_code


def merge_it(log):
    merge([log], Path("merged.jsonl"))


def test_every_reader_says_so_and_none_takes_the_edit(log, capsys):
    edited = violation_certified(lines_of(log))
    assert len(edited) == log.stat().st_size
    log.write_bytes(edited)
    for conclude in (update, check, lambda log: compare(log, log)):
        with pytest.raises(StoppedError, match="is incomplete"):
            conclude(log)
    assert not Path("auditdp-baseline.toml").exists()
    assert ended_with(lambda: merge_it(log)) == 3
    merged = scan_log(Path("merged.jsonl")).record
    assert [each.id for each in merged.results] == NAMES[:1]
    assert ended_with(lambda: report_command(log, output="json")) == 3
    out, err = capsys.readouterr()
    report = json.loads(out[out.index("{") :])
    assert [each["id"] for each in report["results"]] == NAMES[:1]
    assert len(re.findall(r"line 3 of run\.jsonl", err)) == 5


def test_an_edit_after_which_every_result_is_there_is_no_success(log, capsys):
    """A log without a finding, to which a line was added after its end."""
    log.write_bytes(with_digests(violation_certified(lines_of(log))) + b"{}\n")
    assert ended_with(lambda: merge_it(log)) == 3
    assert ended_with(lambda: report_command(log, output="json")) == 3
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
    # 0 if nobody had changed it: what is found is what is expected.
    assert ended_with(lambda: carry_out(replace(asked, resume=True))) == 3
    found = scan_log(path)
    assert found.problems == []
    verdicts = [each.verdict for each in found.record.results]
    assert verdicts == [each.verdict for each in whole.results]
    assert found.record.status == "complete"
    assert other not in path.read_bytes()
    kept = Path(".auditdp/run.1.jsonl")
    assert kept.read_bytes() == header + first + other
    err = " ".join(capsys.readouterr().err.split())
    assert "line 3 of .auditdp/run.jsonl is not what was written" in err
    assert "the log as it was found is kept: " in err
