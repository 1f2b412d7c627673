"""``auditdp bounds``: a certified lower bound from a file that another tool wrote."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from auditdp.cli.common import FOUND, OK, AnswerFormat, app, taking, tell


class Parameter(StrEnum):
    """What is bounded."""

    epsilon = "epsilon"
    mu = "mu"


@dataclass(frozen=True, kw_only=True)
class BoundsOptions:
    """What was recorded, where, and what is to be said of it."""

    file: Annotated[Path | None, typer.Argument(help="CSV, TSV, NPZ or Parquet file.")] = None
    scores: Annotated[str, typer.Option(help="Column of membership scores; larger is more like 'in'.")] = ""
    labels: Annotated[str, typer.Option(help="Column of labels: 1 for in, 0 for out.")] = ""
    guesses: Annotated[str, typer.Option(help="Column of guesses: 1 for in, 0 for out, empty for none.")] = ""
    first: Annotated[str, typer.Option(help="Outputs of one input: columns a,b,c of FILE, or a file.")] = ""
    second: Annotated[str, typer.Option(help="Outputs of its neighbour, in the same form.")] = ""
    design: Annotated[str, typer.Option(help="How labels of scores came about; without it, all are listed.")] = ""
    propensities: Annotated[str, typer.Option(help="Column of propensities: rows are in or out as they are.")] = ""
    parameter: Annotated[Parameter, typer.Option(help="Bound epsilon, or mu of Gaussian DP.")] = Parameter.epsilon
    delta: Annotated[float, typer.Option(help="The delta that goes with epsilon.")] = 0.0
    claim: Annotated[float | None, typer.Option(help="The claimed epsilon (or mu), to be tested.")] = None
    alpha: Annotated[float, typer.Option(help="Probability that the bound is wrong.")] = 0.05
    method: Annotated[str, typer.Option(help="The method that decides; 'auto' goes by the kind of record.")] = "auto"
    guess: Annotated[str, typer.Option(help="Guess the highest scores 'in', the lowest 'out', or 'both'.")] = "both"
    guess_count: Annotated[list[int] | None, typer.Option(help="One-run methods: how many guesses, fixed before.")] = (
        None
    )
    seed: Annotated[int, typer.Option(help="Seed of random splits, fixed before.", min=0)] = 0
    output: Annotated[AnswerFormat, typer.Option("--format", help="How to print the bounds.")] = AnswerFormat.text


@app.command(short_help="Bound ε from below by scores, guesses or outputs of any tool.")
@taking(BoundsOptions)
def bounds(options: BoundsOptions) -> None:
    """Certify a lower bound on epsilon from scores, guesses or outputs that were recorded by any tool.

    One method decides, chosen by the kind of record; the others are shown for comparison.

    The exit code is 1 if that method refutes the claim, else 0.
    """
    from auditdp.cli.calculators.bounds_answer import answer

    text, refuted = answer(options)
    tell(text)
    raise typer.Exit(FOUND if refuted else OK)
