"""``python -m benchmarks.sound``: count false statements without a record of them; ``benchmarks sound`` keeps one."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer
from joblib import Parallel, delayed

from benchmarks.parts import Options
from benchmarks.sound.part import KINDS, units, view


def main(
    kinds: Annotated[
        list[str] | None,
        typer.Argument(help=f"Of {', '.join(KINDS)}; all unless given."),
    ] = None,
    row: Annotated[str, typer.Option(help="Only cases whose name contains this.")] = "",
    verbose: Annotated[
        bool,
        typer.Option(help="Print the name of each case, with the false statement."),
    ] = False,
    quick: Annotated[bool, typer.Option(help="One seed and a few calls.")] = False,
    every: Annotated[int, typer.Option(min=1, help="Only every so many-th case.")] = 1,
    seed: Annotated[int, typer.Option(help="Root seed.")] = 1,
    workers: Annotated[int, typer.Option("-n", help="Processes.")] = 1,
) -> None:
    """Count false statements about mechanisms whose privacy is known."""
    wanted = tuple(f"{kind}: " for kind in kinds or KINDS)
    chosen = {
        key: unit
        for key, unit in units(Options(seed, quick=quick)).items()
        if key.startswith(wanted)
    }
    keys = [key for key in chosen if row in key][::every]
    results = dict(
        zip(
            keys,
            Parallel(n_jobs=workers)(delayed(chosen[key])() for key in keys),
            strict=True,
        )
    )
    found = view(results)
    for bar in found.bars:
        if not bar.found.endswith(" of 0"):
            typer.echo(
                f"{bar.found}  {bar.text}{'' if bar.met in (True, None) else '  NOT MET'}"
            )
    for table in found.tables if verbose else ():
        typer.echo(f"\n{table.title}")
        for name, statement in table.rows:
            typer.echo(f"  {name}: {statement[:160]}")


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    typer.run(main)
