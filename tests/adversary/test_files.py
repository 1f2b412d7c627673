"""What a file can do: every reader refuses what it cannot use with an error of its own, and writes nothing elsewhere."""

import base64
import io
import json
import os
import time
import zipfile
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auditdp.bounds import data as files
from auditdp.bounds.data import column, read
from auditdp.cli.again import data_of
from auditdp.cli.baseline_commands import merge, update
from auditdp.cli.recorded import report_command
from auditdp.cli.run_options import RunOptions
from auditdp.configuration import Configuration, load
from auditdp.errors import AuditError, ConfigurationError
from auditdp.files import write
from auditdp.mechanism.calls.calling import Calls
from auditdp.mechanism.calls.recording import Playback
from auditdp.record.baseline import read_baseline, write_baseline
from auditdp.record.baseline_entries import Entry
from auditdp.record.results import (
    AuditResult,
    ControlResult,
    Evidence,
    LedgerEntry,
    RunRecord,
    Verdict,
)
from auditdp.report.formats import FORMATS, render
from auditdp.report.html.drawings import drawing, inputs
from auditdp.runner.log import Log
from auditdp.runner.run_record import read_log, scan_log, scan_record
from audits.ledger.pages import graphs
from tests.adversary.records import record, text_in, with_digests, without_digests

ID = "audits/audit_a.py::b"
DEEP, LONG = b"[" * 200_000, b"1" * 4_500
VALUES = (
    *(
        LONG,
        DEEP,
        b"1" + b"0" * 400,
        b"-1",
        b"0",
        b"1e999",
        b"-1e308",
        b"NaN",
        b"null",
        b"true",
        b'"inf"',
    ),
    *(
        b'"x"',
        b'"\\ud800"',
        b'"\\u001b[2J"',
        b"[]",
        b"{}",
        b"[1, 2]",
        b'{"a": [[1e308, 1]]}',
        b'"2 nodes, edges 01"',
    ),
)
"""Values of JSON, which take the place of any other."""
LIGHT = [name for name in FORMATS if name not in ("html", "json")]


def evidence(verdict, **more):
    return Evidence("game", verdict, "seen", **more)


def result(verdict=Verdict.NOT_REFUTED, name=ID, **more):
    return AuditResult(
        name, verdict, "seen", evidence=[evidence(verdict)], alpha=0.01, **more
    )


def run(*results, **more):
    ledger = [
        LedgerEntry(name, "verdict", 0.01)
        for name in dict.fromkeys(each.id for each in results)
    ]
    return RunRecord(
        1, "complete", {}, {}, "", "", ledger, list(results), run="this", **more
    )


def used(found):
    """Do with a record what commands do with it."""
    for name in LIGHT:
        assert render(found, name)
    assert RunRecord.from_json(found.to_json()).to_json() == found.to_json()


def _log(path):
    found = scan_log(path)
    used(found.record)


class Reader(NamedTuple):
    """A reader of files: what it reads, a file that is right, and the reader."""

    name: str
    content: bytes
    read: Any


def table(values):
    file = io.BytesIO()
    np.savez_compressed(file, **values)
    return file.getvalue()


FILLED = replace(record(text_in("x", real=True)), status="complete")
LOG = [
    {
        "run": "this",
        "kind": "header",
        "record": json.loads(replace(FILLED, results=[], run="this").to_json()),
    },
    *(
        {"run": "this", "kind": "result", "result": each}
        for each in json.loads(FILLED.to_json())["results"][:3]
    ),
    {"run": "this", "kind": "end", "status": "complete", "seconds": 1.0},
]
SETTINGS = b"""[project]
name = "x"
[tool.auditdp]
paths = ["audits"]
alpha = 0.05
seed = 1
timeout = 60
workers = 2
fail_on = ["skipped"]
[tool.auditdp.profiles.ci]
budget = "quick"
"""
BASELINE = write_baseline(
    [
        Entry(
            id=ID,
            claim="1-DP",
            adjacency="one row",
            verdict=Verdict.CERTIFIED,
            evidence=("exact", "game"),
            calls=12,
            numbers=(1.0,),
            at_least=0.5,
            at_most=1.0,
        )
    ]
).encode()
CSV = b"score,label\n" + b"".join(b"%d.5,%d\n" % (k, k % 2) for k in range(30))
NPZ = table({"score": np.arange(30.0), "label": np.arange(30) % 2})
READERS = (
    Reader(
        "run.json",
        FILLED.to_json(indent=None).encode(),
        lambda path: used(scan_record(path).record),
    ),
    Reader(
        "run.jsonl", b"".join(json.dumps(line).encode() + b"\n" for line in LOG), _log
    ),
    Reader(
        "with-digests.jsonl",
        with_digests(b"".join(json.dumps(line).encode() + b"\n" for line in LOG)),
        _log,
    ),
    Reader(
        "auditdp-baseline.toml",
        BASELINE,
        lambda path: write_baseline(read_baseline(path).values()),
    ),
    Reader("pyproject.toml", SETTINGS, lambda path: load(path.parent, "ci", {})),
    Reader(
        "table.csv",
        CSV,
        lambda path: [column(read(path), name, path) for name in read(path)],
    ),
    Reader(
        "table.npz",
        NPZ,
        lambda path: [column(read(path), name, path) for name in read(path)],
    ),
)


@st.composite
def spoilt(draw, content: bytes) -> bytes:
    """A file with a value replaced, where it is JSON, or with bytes changed, dropped, doubled or cut off."""
    lines = content.split(b"\n")
    k = draw(st.integers(0, len(lines) - 1))
    with_value = draw(st.booleans())
    try:
        tree = json.loads(lines[k]) if with_value else None
    except ValueError:
        tree = None
    if tree is not None:
        places = list(_places(tree))
        way = draw(st.sampled_from(places))
        inner = tree
        for key in way[:-1]:
            inner = inner[key]
        inner[way[-1]] = "@@"
        value = draw(st.sampled_from(VALUES))
        return b"\n".join(
            [
                *lines[:k],
                json.dumps(tree).encode().replace(b'"@@"', value),
                *lines[k + 1 :],
            ]
        )
    if with_value and b"= " in lines[k]:
        name, _, _ = lines[k].partition(b"= ")
        value = draw(
            st.sampled_from(
                (*VALUES, b"0x" + b"f" * 5_000, b"1979-05-27", b"'''", b"[[a]]")
            )
        )
        return b"\n".join([*lines[:k], name + b"= " + value, *lines[k + 1 :]])
    start, length = draw(st.integers(0, len(content))), draw(st.integers(0, 40))
    put = draw(
        st.sampled_from((b"", content[start : start + length] * 2, *VALUES))
        | st.binary(max_size=9)
    )
    return (
        content[:start]
        + put
        + (b"" if draw(st.integers(0, 7)) == 7 else content[start + length :])
    )


def _places(tree, way=()):
    items = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, value in items:
        yield (*way, key)
        yield from _places(value, (*way, key))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_spoilt_file_is_read_or_refused(reader, tmp_path, repeats):
    path = tmp_path / reader.name
    path.write_bytes(reader.content)
    reader.read(path)

    @settings(
        max_examples=repeats(5_000, least=50),
        derandomize=not repeats.full,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(spoilt(reader.content))
    def refused_or_read(content):
        path.write_bytes(content)
        with suppress(AuditError):
            reader.read(path)

    refused_or_read()


def packed(array):
    file = io.BytesIO()
    np.save(file, array)
    return base64.b85encode(zlib.compress(file.getvalue())).decode()


@pytest.mark.parametrize(
    "outputs",
    [
        *(
            {},
            {"rows": 1},
            {"rows": "!", "like": "!"},
            {"rows": [], "like": []},
            {"kept": 0, "why": "x"},
        ),
        {"rows": packed(np.zeros(3)), "like": packed(np.zeros((1, 1))), "form": []},
        {
            "rows": packed(np.zeros(3)),
            "like": packed(np.zeros((1, 1))),
            "form": {"flat": False, "x": 1},
        },
        {"rows": packed(np.array("x")), "like": packed(np.zeros((1, 1)))},
        {"rows": packed(np.zeros(3))[:-4], "like": packed(np.zeros((1, 1)))},
    ],
)
def test_recorded_outputs_that_are_none_are_refused(outputs):
    with pytest.raises(ConfigurationError):
        Playback(Calls(lambda data, size, rng: data), outputs)


def test_recorded_outputs_are_unpacked_no_further_than_any_are_kept():
    """380 kB that unpack to 400 MB: refused before there is room for them."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (50_000_000,)}
    )
    squeeze = zlib.compressobj(1)
    parts = [
        squeeze.compress(head.getvalue()),
        *(squeeze.compress(bytes(1 << 22)) for _ in range(100)),
        squeeze.flush(),
    ]
    text = base64.b85encode(b"".join(parts)).decode()
    assert len(text) < 4_000_000
    with pytest.raises(ConfigurationError, match="more than 67,108,864 bytes"):
        Playback(Calls(lambda data, size, rng: data), {"rows": text, "like": text})


def test_a_table_is_unpacked_no_further_than_files_are_read(tmp_path):
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(64))
    content = bytearray(path.read_bytes())
    place = content.index(b"PK\x01\x02") + 24
    content[place : place + 4] = (0xFFFFFFF0).to_bytes(
        4, "little"
    )  # what its directory says that it is long
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="unpacks to"):
        read(path)
    with zipfile.ZipFile(path, "w") as archive:
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            head, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
        )
        archive.writestr("a.npy", head.getvalue())
    with pytest.raises(ConfigurationError, match="an array of shape"):
        read(path)


def test_a_table_that_says_that_it_is_small_is_read_no_further_than_what_it_unpacks_to(
    tmp_path, monkeypatch
):
    """Of equal values a Parquet file has one, and its own sizes are those of what it has; texts are not unpacked at all."""
    pyarrow, parquet = (
        pytest.importorskip("pyarrow"),
        pytest.importorskip("pyarrow.parquet"),
    )
    path = tmp_path / "t.parquet"
    parquet.write_table(
        pyarrow.table({"y": [0.0] * 1_000_000}), path, compression="zstd"
    )
    monkeypatch.setattr(files.FileLimits, "file_bytes", 1 << 22)
    assert path.stat().st_size < 1 << 16
    with pytest.raises(
        ConfigurationError, match="unpacks to more than 4,194,304 bytes"
    ):
        read(path)
    parquet.write_table(
        pyarrow.table({"x": ["a" * 1_000] * 100_000, "y": [0.0] * 100_000}),
        path,
        compression="zstd",
    )
    columns = read(path)
    assert list(column(columns, "y", path)) == [0.0] * 100_000
    with pytest.raises(
        ConfigurationError, match="expected a number, got 'a text or a nested value'"
    ):
        column(columns, "x", path)


@pytest.mark.parametrize(
    "values",
    [[1 + 2j], np.array(["2026-01-01"], "datetime64[D]"), np.zeros(1, "i4,i4")],
)
def test_a_column_of_which_a_part_would_be_dropped_is_refused(tmp_path, values):
    path = tmp_path / "t.npz"
    np.savez(path, score=values)
    with pytest.raises(ConfigurationError, match=r"'score' is .*, expected numbers"):
        column(read(path), "score", path)


@pytest.mark.parametrize(
    "text",
    [
        '"a\nb",label\n1\n',
        '"a\nb","a\nb"\n1,2\n',
        '"a\nb",label\n1,2\n',
        '"\x1b[2J",label\n1,2\n',
    ],
)
def test_names_of_columns_with_newlines_are_shown_in_one_line(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as refused:
        column(read(path), "score", path)
    assert str(refused.value).isprintable()


def test_a_long_cell_is_refused_in_few_words_and_little_memory(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("score,label\n" + "9" * 120_000 + ",0\n" + "1,x\n" * 2_000)
    table = read(path)
    assert sum(each.nbytes for each in table.values()) < 1_000_000
    with pytest.raises(ConfigurationError) as refused:
        column(table, "label", path)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("has_digests", [True, False])
def test_a_deep_line_makes_no_log_unreadable(has_digests, tmp_path):
    path = tmp_path / "run.jsonl"
    log = Log(path)
    log.start(
        replace(
            run(result(), result(name="audits/audit_a.py::c")),
            status="running",
            results=[],
        )
    )
    log.add(result())
    log.close()
    if not has_digests:
        path.write_bytes(without_digests(path.read_bytes()))
    with path.open("ab") as file:
        file.write(
            DEEP
            + b"\n"
            + LONG
            + b"\n"
            + b'{"kind": "result", "result": {"id": "\\ud800"}}\n'
        )
    found = scan_log(path)
    assert [each.id for each in found.record.results] == [ID]
    assert [p.split()[1] for p in found.problems if p.startswith("line")] == (
        ["3"] if has_digests else ["3", "4", "5"]
    )


CONTRADICTIONS = {
    "two results": run(result(), result(Verdict.INCONCLUSIVE)),
    "certified over a violation": run(
        replace(result(Verdict.CERTIFIED), evidence=[evidence(Verdict.VIOLATED)])
    ),
    "skipped over a violation": run(
        replace(result(Verdict.SKIPPED), evidence=[evidence(Verdict.VIOLATED)])
    ),
    "certified by a clean game": run(
        replace(result(Verdict.CERTIFIED), evidence=[evidence(Verdict.NOT_REFUTED)])
    ),
    "certified by nothing": run(replace(result(Verdict.CERTIFIED), evidence=[])),
    "a control that survived": run(
        replace(result(), controls=[ControlResult("twin", Verdict.NOT_REFUTED)])
    ),
    "bounds that cross": run(replace(result(), epsilon_lower=2.0, epsilon_upper=1.0)),
    "more than all of alpha": replace(
        run(result()),
        alpha_ledger=[LedgerEntry(ID, f"part {k}", 0.9) for k in range(2)],
    ),
}


@pytest.mark.parametrize("made", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_record_that_contradicts_itself_enters_nothing(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_text(made.to_json())
    with pytest.raises(ConfigurationError, match="contradicts itself"):
        update(Path("run.json"))
    assert not Path("auditdp-baseline.toml").exists()


OUT_OF_BOUNDS = """
results.0.calls = -1
results.0.alpha = -0.1
results.0.seconds = "x"
results.0.audit_at = {"file": "a", "line": 0}
results.0.evidence.0.details = {"more": HUGE}
results.0.evidence.0.details = {"wealth_path": [[HUGE, 1.0]]}
results.0.evidence.0.details = {"scatter": {"series": [{"points": [[HUGE, 1]]}]}}
results.0.evidence.0.details = {"detectable_rarely": [0, 0]}
alpha_ledger.0.alpha = 2
root_seed = -1
root_seed = HUGE
seconds = -1
status = "complete\\n::error::x"
arguments = {"parameters": []}
arguments = {"parameters": {"a": 1}}
arguments = {"timeout": "1"}
arguments = {"paths": "a"}
"""


@pytest.mark.parametrize("change", OUT_OF_BOUNDS.strip().splitlines())
def test_a_number_or_an_argument_out_of_bounds_is_refused(change, tmp_path):
    tree = json.loads(run(result(mechanism="m")).to_json())
    way, _, value = change.partition(" = ")
    *way, last = (int(key) if key.isdigit() else key for key in way.split("."))
    inner = tree
    for key in way:
        inner = inner[key]
    assert last == "audit_at" or last in inner
    inner[last] = json.loads(value.replace("HUGE", f"1{'0' * 400}"))
    path = tmp_path / "run.json"
    path.write_text(json.dumps(tree))
    with pytest.raises(ConfigurationError):
        scan_record(path)


@pytest.mark.parametrize(
    "text",
    ["3 nodes, edges " + "012 " * 5_000 + "x", "3 nodes, edges " + "01 " * 60 + "0"],
)
def test_no_text_of_a_pair_takes_long_to_read(text):
    started = time.process_time()
    for pair in (f"{text} | {text}", f"a: {text} | {text}", text):
        inputs(pair)
        graphs(pair)
        drawing(text)
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "text",
    [
        "[" * 3_000,
        "[[" + "1" * 3_999,
        f"[{10**400}]",
        f"{10**3000} nodes, no edges",
        "[1e999]",
    ],
)
def test_no_array_of_a_pair_ends_a_report(text):
    assert drawing(text, text).text == text
    inputs(f"{text} | {text}")
    assert graphs(f"99999999999 nodes, no edges | {text}") == []


@pytest.mark.parametrize(
    "line",
    [
        *(
            "seed = 0x" + "f" * 5_000,
            "timeout = 1" + "0" * 400,
            "timeout = 1e300",
            "workers = '" + "9" * 5_000 + "'",
        ),
        *(
            "seed = " + "9" * 4_500,
            "x = " + "[" * 100_000,
            "baseline = 'a/../../x.toml'",
        ),
        *("baseline = '/etc/x'", "alpha = nan", "budget = '" + "9" * 5_000 + "'"),
    ],
    ids=lambda line: line[:20],
)
def test_settings_out_of_bounds_are_refused(line, tmp_path):
    (tmp_path / "pyproject.toml").write_text(f"[tool.auditdp]\n{line}\n")
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, environment={})
    assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize(
    "asked",
    [
        {"workers": "9" * 5_000},
        {"max_memory": "9" * 5_000 + "G"},
        {"shard": "1/" + "9" * 5_000},
        {"collection_timeout": 1e300},
    ],
    ids=str,
)
def test_options_out_of_bounds_are_refused(asked):
    with pytest.raises(ConfigurationError):
        [
            getattr(RunOptions(**{"workers": "1", **asked}), name)
            for name in ("count", "memory", "part", "import_limit")
        ]


def test_a_record_does_not_choose_whose_data_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ConfigurationError, match="a record must not choose what is read"
    ):
        data_of(replace(run(result()), arguments={"data": "/etc"}), "")
    here = replace(run(result()), arguments={"data": str(tmp_path / "data")})
    assert data_of(here, "") == str(tmp_path / "data")
    assert data_of(replace(here, arguments={"data": "/etc"}), "/usr") == "/usr"
    monkeypatch.setenv("AUDITDP_DATA", "/etc")
    assert data_of(replace(here, arguments={"data": "/etc"}), "") == "/etc"
    with pytest.raises(ConfigurationError):
        RunOptions(resume=True).resumed(replace(here, arguments={"data": "/usr"}))


@pytest.mark.parametrize("path", ["/etc", "../audits", "../a.py::b"])
def test_a_record_does_not_choose_what_a_resumed_run_imports(
    path, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    theirs = replace(run(result()), arguments={"paths": [path]})
    with pytest.raises(
        ConfigurationError, match="a record must not choose what is imported"
    ):
        RunOptions(resume=True).resumed(theirs)
    assert RunOptions(resume=True, paths=[path]).resumed(theirs).paths == [path]
    ours = replace(theirs, arguments={"paths": ["audits", "audits/a.py::b"]})
    assert RunOptions(resume=True).resumed(ours).paths == ["audits", "audits/a.py::b"]


@pytest.fixture
def received(tmp_path, monkeypatch):
    """A folder from somebody else in the working folder, with a run; and what lies outside of both."""
    (tmp_path / "here" / "received").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("received/run.json").write_text(run(result()).to_json())
    yield tmp_path / "outside"
    assert list((tmp_path / "outside").rglob("*")) in (
        [],
        [tmp_path / "outside" / "kept"],
    )


LINKS = {
    "the report": ("received/report.html", "new.html"),
    "a folder above it": ("received/sub", ""),
    "the folder of its pages": ("received/report_audits", ""),
    "its temporary file": ("received/.report.html.part", "kept"),
    "the temporary file of a page": ("received/report_audits/.report.css.part", "kept"),
}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("absolute", [False, True])
def test_no_link_leads_a_report_out_of_its_folder(link, absolute, received):
    place, target = LINKS[link]
    (received / "kept").write_text("mine")
    Path(place).parent.mkdir(exist_ok=True)
    Path(place).symlink_to(received / target)
    path = Path(
        "received/sub/report.html"
        if link == "a folder above it"
        else "received/report.html"
    )
    with suppress(ConfigurationError):  # a temporary file is replaced, all else refused
        report_command(
            Path("received/run.json"),
            "html",
            Path.cwd() / path if absolute else path,
            "",
            None,
            False,
        )
    assert (received / "kept").read_text() == "mine"


def begun(path, made):
    log = Log(path)
    log.start(made)
    log.close()


@pytest.mark.parametrize(
    "link", [".gitignore", "run.jsonl", ".run.jsonl.part", "run.1.jsonl"]
)
def test_no_link_leads_a_log_out_of_its_folder(link, received):
    folder = Path("received/.auditdp")
    folder.mkdir()
    (received / "kept").write_text("mine")
    parts = replace(run(result()), status="running")
    begun(Path("part.jsonl"), parts)
    if link == "run.1.jsonl":  # where an unfinished run would be kept
        begun(
            folder / "run.jsonl", replace(parts, results=[result(Verdict.INCONCLUSIVE)])
        )
    (folder / link).symlink_to(received / ("kept" if link != "run.1.jsonl" else "new"))
    with pytest.raises((ConfigurationError, typer.Exit)) as ended:
        merge([Path("part.jsonl")], folder / "run.jsonl")
    assert "by a link" in str(ended.value) or ended.type.__name__ == "Exit"
    assert (received / "kept").read_text() == "mine"


def test_a_link_within_its_folder_stays_and_a_circle_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("latest.txt").symlink_to("first.txt")
    write(Path("latest.txt"), "x")
    assert Path("latest.txt").is_symlink()
    assert Path("first.txt").read_text() == "x"
    Path("circle").symlink_to("circle")
    with pytest.raises(ConfigurationError, match="cannot write"):
        write(Path("circle"), "x")
    with pytest.raises(ConfigurationError, match="cannot write"):
        write(Path("half.txt"), "\ud800")
    assert sorted(os.listdir()) == ["circle", "first.txt", "latest.txt"]


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "run.jsonl")
    for reader in (read_log, read_baseline):
        with pytest.raises(ConfigurationError):
            reader(tmp_path / "run.jsonl")


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    for reader in (read_log, read_baseline):
        with pytest.raises(ConfigurationError, match="1,099,511,627,776 bytes"):
            reader(path)
    path.rename(tmp_path / "t.csv")
    with pytest.raises(ConfigurationError, match="bytes; at most"):
        read(tmp_path / "t.csv")
    assert Configuration().alpha == 0.05
