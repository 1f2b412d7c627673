"""``python -m gnn.experiments list | run NAME | report``.

Exit codes: 0 done; 2 usage; 3 a cell failed (its error is recorded, the others are done); 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, cast

import typer
from joblib import cpu_count
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from auditdp.cli.common import Data, ExitCode, say
from auditdp.errors import (
    AuditError,
    ConfigurationError,
    MissingExtraError,
    did_you_mean,
)
from auditdp.files import write
from auditdp.report.formats import writable
from auditdp.report.numbers import count, duration
from gnn.experiments import execute
from gnn.experiments.catalogue import Catalogue, catalogue
from gnn.experiments.execute import DATA_VARIABLE
from gnn.experiments.experiment import PROFILES, Experiment, Profile
from gnn.experiments.grid import GridCell, cells, plain
from gnn.experiments.record import CellRecord, read, record_path

SEED = 20240229
WRITTEN = ("experiments.html", "experiments.md", "experiments.json")

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Run the experiments of the five papers again.",
)
ProfileName = Annotated[
    str, typer.Option("--profile", help="quick (minutes) or paper (hours).")
]
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, help="Root seed; every cell's seed follows from it."),
]
Out = Annotated[
    Path,
    typer.Option("--out", help="Folder of reports; records are in its experiments/."),
]


def main(found: Catalogue | None = None) -> None:
    """Run the command line; an error that a person can act on is one line on standard error and exit code 2.

    Args:
        found: The experiments, those of ``gnn.experiments.catalogue`` by default.
    """
    try:
        app(obj=found or catalogue())
    except AuditError as error:
        say(f"error: {error}")
        sys.exit(ExitCode.USAGE)


@app.command("list")
def list_experiments(
    context: typer.Context,
    profile: ProfileName = "paper",
    out: Out = Path("reports"),
    seed: Seed = SEED,
) -> None:
    """List the experiments, with the number of cells that are recorded."""
    found: Catalogue = context.obj
    chosen = _profile(profile)
    for experiment in found.experiments.values():
        grid = cells(experiment, profile=chosen, root_seed=seed)
        done = len(execute.todo(grid, folder=out).recorded)
        factors = "; ".join(
            f"{factor.name} {', '.join(str(plain(value)) for value in factor.values(chosen))}"
            for factor in experiment.factors
        )
        typer.echo(f"{experiment.name}  {experiment.title} ({experiment.source})")
        typer.echo(f"    {done:,} of {count(len(grid), 'cell')} recorded; {factors}")
    for module, reason in found.unavailable.items():
        say(f"{module}: {reason}")


@app.command()
def run(
    context: typer.Context,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Experiments, or all.")
    ],
    profile: ProfileName = "quick",
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="FACTOR=VALUE; again for more values or factors."),
    ] = None,
    workers: Annotated[
        str, typer.Option("-n", help="Processes: a number, or auto.")
    ] = "1",
    device: Annotated[
        str, typer.Option("--device", help="Where torch computes: cpu, cuda, cuda:1.")
    ] = "cpu",
    data: Data = "",
    seed: Seed = SEED,
    out: Out = Path("reports"),
) -> None:
    """Run experiments; cells that are recorded are not run again, those that failed are."""
    experiments = cast(Catalogue, context.obj).chosen(names)
    processes = _processes(workers)
    chosen = _profile(profile)
    _known_device(device)
    if data:
        if not Path(data).is_dir():
            raise ConfigurationError(f"--data {data}: no such folder")
        os.environ[DATA_VARIABLE] = str(Path(data).resolve())
    plans = [
        (each, cells(each, profile=chosen, root_seed=seed, only=only or ()))
        for each in experiments
    ]
    for experiment, grid in plans:
        execute.require_files(experiment, execute.todo(grid, folder=out).open)
    failed = 0
    try:
        for experiment, grid in plans:
            failed += _run(
                experiment, grid, folder=out, workers=processes, device=device
            )
    except KeyboardInterrupt:
        say(
            "interrupted; what was finished is recorded, and the same command goes on from there"
        )
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    if failed:
        say(f"{count(failed, 'cell')} failed; the same command tries them again")
        raise typer.Exit(ExitCode.CRASHED)


def _run(
    experiment: Experiment,
    grid: list[GridCell],
    *,
    folder: Path,
    workers: int,
    device: str,
) -> int:
    todo = execute.todo(grid, folder=folder)
    say(
        f"{experiment.name}: {len(todo.recorded):,} of {count(len(grid), 'cell')} recorded, {len(todo.open):,} to run"
    )
    if not todo.open:
        return 0
    with _progress(experiment.name, len(todo.open)) as advance:

        def finished(record: CellRecord) -> None:
            setting = ", ".join(
                f"{name}={value}" for name, value in record.parameters.items()
            )
            result = (
                f"FAILED {record.error}" if record.error else duration(record.seconds)
            )
            advance(
                f"{experiment.name} {setting} #{record.repetition}: {result}",
                bool(record.error),
            )

        return execute.run(
            experiment,
            todo.open,
            folder=folder,
            workers=workers,
            device=device,
            finished=finished,
        )


@contextmanager
def _progress(name: str, total: int) -> Iterator[_Advance]:
    """A bar with the time left on a terminal, and a line for each cell elsewhere."""
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        yield _Advance(bar, bar.add_task(name, total=total), total)


class _Advance:
    """Counts finished cells."""

    def __init__(self, bar: Progress, task: object, total: int) -> None:
        self._bar, self._task, self._total, self._done = bar, task, total, 0

    def __call__(self, text: str, failed: bool) -> None:
        self._done += 1
        if failed or not self._bar.console.is_terminal:
            self._bar.console.print(f"{self._done}/{self._total} {text}")
        self._bar.advance(self._task)  # type: ignore[arg-type]


@app.command()
def report(
    context: typer.Context,
    profile: Annotated[
        str,
        typer.Option(
            "--profile", help="quick or paper; by default the one with more records."
        ),
    ] = "",
    seed: Seed = SEED,
    out: Out = Path("reports"),
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="Ledger of claims; OUT/claims.json by default."),
    ] = None,
) -> None:
    """Write experiments.html, experiments.md, experiments.json and their plots from the records."""
    from gnn.experiments import (
        cost,
        page,
        sections,
    )  # these load Matplotlib and scipy.stats, which no run needs
    from gnn.experiments.agreement import answers
    from gnn.experiments.agreement_json import as_json
    from gnn.experiments.plots import draw, draw_costs
    from gnn.experiments.privacy import Ledger
    from gnn.experiments.published.papers import PAPERS
    from gnn.experiments.summary import summary

    found: Catalogue = context.obj
    chosen = _profile(profile) if profile else None
    for name in WRITTEN:
        writable(out / name)
    claims = Ledger.read(ledger or out / "claims.json")
    written, unrecorded, costs = [], [], None
    contents = {
        name: summary(
            experiment, read(record_path(out, name)), root_seed=seed, profile=chosen
        )
        for name, experiment in found.experiments.items()
    }
    for name, content in contents.items():
        if name == cost.EXPERIMENT and (lines := cost.lines(content, contents)):
            figures = draw_costs(lines, folder=out / "experiments")
            costs = sections.Costs(
                content,
                lines,
                {paper: f"experiments/{file}" for paper, file in figures.items()},
                claims,
            )
        if content.rows:
            plots = [
                (f"experiments/{file}", caption)
                for file, caption in draw(content, folder=out / "experiments")
            ]
            written.append(sections.section(content, claims, plots))
        else:
            unrecorded.append(content.experiment)
    answered = {each.name: (each, answers(each, contents)) for each in PAPERS}
    papers = [sections.paper_page(*each, costs) for each in answered.values()]
    texts = (
        page.html(
            written, root_seed=seed, unrecorded=unrecorded, papers=papers, costs=costs
        ),
        page.markdown(
            written, root_seed=seed, unrecorded=unrecorded, papers=papers, costs=costs
        ),
        as_json(answered, seed),
    )
    for name, text in zip(WRITTEN, texts, strict=True):
        write(out / name, text)
    typer.echo(
        f"wrote {', '.join(WRITTEN)} in {out}: {count(len(written), 'experiment')}"
    )


def _profile(name: str) -> Profile:
    if name not in PROFILES:
        raise ConfigurationError(
            f"--profile {name}: no such profile; {did_you_mean(name, PROFILES)}"
        )
    return name


def _processes(text: str) -> int:
    if text == "auto":
        return int(cpu_count())
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise ConfigurationError(f"-n {text}: expected a number >= 1, or auto")
    return int(text)


def _known_device(name: str) -> None:
    if name == "cpu":
        return
    try:
        import torch
    except ModuleNotFoundError as error:
        raise (MissingExtraError.of(error) or error) from error
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigurationError(
            f"--device {name}: torch cannot use it here ({reason}); use cpu"
        ) from error
