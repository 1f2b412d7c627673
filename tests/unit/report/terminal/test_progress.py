import io
from dataclasses import replace

import pytest
from rich.console import Console

from auditdp.record.results import AuditResult, Verdict
from auditdp.report.progress_bar import Watch, seconds_left


@pytest.mark.parametrize(
    ("finished", "before", "workers", "expected"),
    [
        ({}, {}, 1, None),  # nothing is known
        ({"x": 3.0}, {}, 1, 9.0),  # as long as those that are known
        ({"x": 3.0, "y": 5.0}, {}, 1, 12.0),
        ({}, {"a": 1.0, "b": 2.0, "c": 4.0}, 1, 7.0),  # as long as before
        (
            {"x": 6.0},
            {"x": 3.0, "a": 1.0, "b": 2.0, "c": 4.0},
            1,
            14.0,
        ),  # on a machine that is half as fast now
        ({}, {"a": 1.0, "b": 2.0, "c": 40.0}, 2, 40.0),  # the longest one at least
        ({}, {"a": 3.0}, 3, 3.0),  # what was never run takes the mean
    ],
)
def test_what_is_left(finished, before, workers, expected):
    assert (
        seconds_left(["a", "b", "c"], finished, before=before, workers=workers)
        == expected
    )


def test_nothing_is_left_at_the_end_and_what_ran_already_is_taken_off():
    assert seconds_left([], {}, before={}, workers=4) == 0.0
    assert seconds_left(["a"], {"x": 5.0}, before={}, workers=1, running=2.0) == 3.0
    assert seconds_left(["a"], {"x": 5.0}, before={}, workers=1, running=9.0) == 0.0


def shown(width, screen=None, **options):
    console = Console(
        file=screen or io.StringIO(),
        force_terminal=True,
        width=width,
        color_system=None,
    )
    return Watch(
        [f"audits/audit_a.py::{name}" for name in ("one", "two", "three", "four")],
        console,
        **options,
    )


def done(name, seconds):
    return AuditResult(
        f"audits/audit_a.py::{name}", Verdict.NOT_REFUTED, "", seconds=seconds
    )


def test_the_line_says_what_runs_and_what_is_left():
    with shown(100, workers=2) as watch:
        assert watch.as_line() == "0 of 4 · running one, two"
        watch.finished(done("two", 65.0))
        assert watch.as_line() == "1 of 4 · about 2 min left · running one, three"
        watch.finished(done("one", 65.0))
        watch.finished(done("three", 65.0))
        assert watch.as_line() == "3 of 4 · about 60 s left · running four"
        watch.finished(done("four", 65.0))
        assert watch.as_line() == "4 of 4"


def test_a_hostile_name_writes_no_control_characters():
    console = Console(
        file=io.StringIO(), force_terminal=True, width=80, color_system=None
    )
    with Watch(["a.py::\x1b[31mred[bold]"], console) as watch:
        assert "\x1b" not in watch.as_line()
        assert "[bold]" in watch.as_line()


@pytest.mark.parametrize("width", [20, 47, 101, 200])
def test_the_line_fits_every_width(width):
    screen = io.StringIO()
    with shown(width, screen, workers=4) as watch:
        watch.finished(replace(done("one", 3.0)))
        watch.refresh()
    text = screen.getvalue()
    rows = [row for part in text.split("\n") for row in part.split("\r")]
    visible = [row for row in rows if "of 4" in row]
    assert visible
    assert all(len(row.replace("\x1b[2K", "").rstrip()) <= width for row in visible)


def test_nothing_is_written_where_there_is_no_terminal():
    console = Console(file=io.StringIO(), force_terminal=False)
    with Watch(["a"], console) as watch:
        watch.finished(AuditResult("a", Verdict.NOT_REFUTED, ""))
    assert console.file.getvalue() == ""
