"""``python -m benchmarks``: run parts of the benchmark, record them, and write the table and the page.

Every unit of work is recorded as soon as it is done, so a run that is cut off, or a unit that fails, loses nothing else;
``--resume`` does what is missing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import Parallel, cpu_count, delayed
from rich.console import Console
from rich.table import Table as RichTable
from threadpoolctl import threadpool_limits

from benchmarks import (
    ablation,
    accountants,
    alarms,
    calls,
    curves,
    gnn,
    limit,
    one_run,
    ordinary,
    peers,
    speed,
    tightness,
    traced,
    trainers,
)
from benchmarks.page import Section, markdown, page
from benchmarks.parts import Options, Part, Result, row_of
from benchmarks.record import Fragment, Fragments, is_current, results_of, stamp
from benchmarks.sound import part as sound
from benchmarks.verdicts import part as verdicts

PARTS = {
    part.name: part
    for part in (
        tightness.PART,
        calls.PART,
        limit.PART,
        curves.PART,
        ordinary.PART,
        traced.PART,
        sound.PART,
        alarms.PART,
        verdicts.PART,
        peers.PART,
        speed.PART,
        gnn.PART,
        trainers.PART,
        one_run.PART,
        accountants.PART,
        ablation.PART,
    )
}
FAILED = 1
Name = StrEnum("Name", [*PARTS, "all", "report"])  # type: ignore[misc]  # the members are the parts


def main(
    names: Annotated[
        list[Name] | None,
        typer.Argument(help="Parts to run; 'report' writes the page again."),
    ] = None,
    row: Annotated[str, typer.Option(help="Only rows whose name contains this.")] = "",
    repeats: Annotated[
        int | None,
        typer.Option(
            "--repeats",
            "--cases",
            min=1,
            help="Repeats, or cases, in place of each part's own number.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option(help="Fewer repeats and smaller budgets.")
    ] = False,
    resume: Annotated[
        bool, typer.Option(help="Keep what was recorded with the same options.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Root seed.")] = 20240229,
    workers: Annotated[
        int,
        typer.Option(
            "-n", help="Processes; 0 for one a core. Speed is always measured alone."
        ),
    ] = 0,
    out: Annotated[
        Path, typer.Option(help="Folder for bench.json, bench.html and bench/.")
    ] = Path("reports"),
    case: Annotated[
        int | None,
        typer.Option(
            min=0, help="Of verdicts: carry out this case alone, and show it."
        ),
    ] = None,
    tables: Annotated[
        Path | None, typer.Option("--markdown", help="File for the tables as Markdown.")
    ] = None,
) -> None:
    """Measure how good the auditor is."""
    if case is not None:
        said, wrong = verdicts.replay(seed, case)
        typer.echo(said)
        raise typer.Exit(FAILED if wrong else 0)
    options = Options(seed, repeats, quick)
    fragments = Fragments(out)
    asked = [str(name) for name in names or ["all"]]
    chosen = (
        list(PARTS) if "all" in asked else [name for name in asked if name in PARTS]
    )
    console = Console(width=None if os.isatty(1) else 160)
    units = {name: _selected(PARTS[name], options, row) for name in chosen}
    if row and not any(units.values()):
        rows = sorted(
            {row_of(key) for name in chosen for key in PARTS[name].units(options)}
        )
        raise typer.BadParameter(
            f"no row contains {row!r}; the rows are: {', '.join(rows)}"
        )
    for name, todo in units.items():
        if todo:
            run(
                PARTS[name],
                todo,
                options,
                fragments,
                workers or cpu_count(),
                console,
                keep=bool(row),
                resume=resume,
            )
    sections = [section(part, fragments.read(part)) for part in PARTS.values()]
    _print(
        console,
        [found for found in sections if found.part.name in chosen or not chosen],
    )
    bars = {
        found.part.name: [asdict(bar) for bar in found.view.bars]
        for found in sections
        if found.view
    }
    joined = fragments.join(PARTS.values(), bars)
    html = out / "bench.html"
    html.write_text(page(sections), encoding="utf-8")
    console.print(f"wrote {joined} and {html}", highlight=False)
    if tables is not None:
        tables.write_text(
            markdown(found for found in sections if found.part.name in chosen),
            encoding="utf-8",
        )
    if any(found.failures for found in sections if found.part.name in chosen):
        raise typer.Exit(FAILED)


def _selected(
    part: Part, options: Options, row: str
) -> dict[str, Callable[[], Result]]:
    units = part.units(options)
    return {
        key: unit
        for key, unit in units.items()
        if row.casefold() in row_of(key).casefold()
    }


def run(
    part: Part,
    units: Mapping[str, Callable[[], Result]],
    options: Options,
    fragments: Fragments,
    workers: int,
    console: Console,
    *,
    keep: bool,
    resume: bool,
) -> None:
    """Run the units of a part and record each when it is done.

    Args:
        part: The part.
        units: Its units that are to be run.
        options: What they were made with.
        fragments: Where results go.
        workers: Processes.
        console: Where progress is shown.
        keep: Keep whatever else is recorded; otherwise the record of the part starts anew.
        resume: Keep, and do not run again, what was recorded with the same options.
    """
    fragment = fragments.read(part)
    if resume:
        units = {
            key: unit
            for key, unit in units.items()
            if not _done(fragment, key, options)
        }
    elif not keep:
        fragment = {"part": part.name, "stamps": [], "units": {}}
    if resume and not keep:
        fragment["units"] = {
            key: unit
            for key, unit in fragment["units"].items()
            if is_current(unit, fragment, options)
        }
    fragment["stamps"].append(stamp(options))
    number = len(fragment["stamps"]) - 1
    started = time.monotonic()
    jobs = Parallel(
        n_jobs=1 if part.alone else workers,
        return_as="generator_unordered",
        batch_size=1,
    )
    for done, (key, found) in enumerate(
        jobs(delayed(attempt)(key, unit) for key, unit in units.items()), start=1
    ):
        fragment["units"][key] = found | {"stamp": number}
        fragments.write(part, fragment)
        state = found.get("error", f"{found['cpu_seconds']:.1f} CPU s")
        elapsed = time.monotonic() - started
        console.print(
            f"{part.name} {done}/{len(units)} {key}: {state} ({elapsed:.0f} s in all)",
            highlight=False,
            markup=False,
        )


def _done(fragment: Fragment, key: str, options: Options) -> bool:
    return key in fragment["units"] and is_current(
        fragment["units"][key], fragment, options
    )


def attempt(key: str, unit: Callable[[], Result]) -> tuple[str, dict[str, Any]]:
    """Run one unit on one thread; an error is recorded in place of its result."""
    started = time.process_time()
    with threadpool_limits(limits=1):
        try:
            found: dict[str, Any] = {"result": unit()}
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"}
    return key, found | {"cpu_seconds": time.process_time() - started}


def section(part: Part, fragment: Fragment) -> Section:
    """Return the results of a part, ready to be written; a reduced run decides no bar."""
    used = {unit["stamp"] for unit in fragment["units"].values()}
    stamps = [made for k, made in enumerate(fragment["stamps"]) if k in used]
    results = _in_order(part, results_of(fragment), stamps)
    reduced = any(
        made["options"]["quick"] or made["options"]["repeats"] for made in stamps
    )
    view = part.view(results) if results else None
    if view and reduced:
        view = replace(view, bars=[replace(bar, met=None) for bar in view.bars])
    return Section(
        part=part,
        view=view,
        stamps=stamps,
        failures={
            key: unit["error"]
            for key, unit in fragment["units"].items()
            if "error" in unit
        },
        cpu_seconds=sum(unit["cpu_seconds"] for unit in fragment["units"].values()),
        reduced=reduced,
    )


def _in_order(
    part: Part, results: Mapping[str, Result], stamps: Sequence[Mapping[str, Any]]
) -> dict[str, Result]:
    """Results in the order of the part's units: they were recorded as they finished."""
    order = [key for made in stamps for key in part.units(Options(**made["options"]))]
    return {key: results[key] for key in dict.fromkeys(order) if key in results}


def _print(console: Console, sections: Sequence[Section]) -> None:
    for found in sections:
        if found.view is None:
            continue
        for content in found.view.tables:
            table = RichTable(
                title=content.title,
                title_justify="left",
                show_edge=False,
                pad_edge=False,
            )
            for place, column in enumerate(content.columns):
                table.add_column(
                    column, justify="left" if place == 0 else "right", overflow="fold"
                )
            for line in content.rows:
                table.add_row(*line)
            console.print(table)
        for bar in found.view.bars:
            verdict = {True: "met", False: "NOT MET", None: "not measured in full"}[
                bar.met
            ]
            console.print(
                f"{verdict}: {bar.text}: {bar.found}", highlight=False, markup=False
            )


if __name__ == "__main__":
    typer.run(main)
