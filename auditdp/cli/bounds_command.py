"""``auditdp bounds``: a certified lower bound from data that another tool recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from auditdp.bounds import (
    METHODS,
    Bound,
    data,
    from_labelled_guesses,
    from_observed,
    from_outputs,
    from_scores,
    methods,
)
from auditdp.bounds.data import Columns, column, read, refuse_histogram
from auditdp.bounds.result import rounded_down, rounded_up
from auditdp.bounds.stated_assumptions import Assumed, assuming_gaussian
from auditdp.cli.common import AnswerFormat, ExitCode, app, taking, tell
from auditdp.errors import ConfigurationError
from auditdp.numerics.rounding import confidence


class Parameter(StrEnum):
    """The parameter that is bounded."""

    epsilon = "epsilon"
    mu = "mu"


@dataclass(frozen=True, kw_only=True)
class BoundsOptions:
    """The options of ``auditdp bounds``: the recorded data, and what to bound."""

    file: Annotated[
        Path | None, typer.Argument(help="CSV, TSV, NPZ or Parquet file.")
    ] = None
    scores: Annotated[
        str, typer.Option(help="Column of membership scores; larger is more like 'in'.")
    ] = ""
    labels: Annotated[
        str, typer.Option(help="Column of labels: 1 for in, 0 for out.")
    ] = ""
    guesses: Annotated[
        str,
        typer.Option(help="Column of guesses: 1 for in, 0 for out, empty for none."),
    ] = ""
    first: Annotated[
        str,
        typer.Option(help="Outputs of one input: columns a,b,c of FILE, or a file."),
    ] = ""
    second: Annotated[
        str, typer.Option(help="Outputs of its neighbour, in the same form.")
    ] = ""
    design: Annotated[
        str,
        typer.Option(
            help="How labels of scores came about; without it, all are listed."
        ),
    ] = ""
    propensities: Annotated[
        str,
        typer.Option(help="Column of propensities: rows are in or out as they are."),
    ] = ""
    parameter: Annotated[
        Parameter, typer.Option(help="Bound epsilon, or mu of Gaussian DP.")
    ] = Parameter.epsilon
    delta: Annotated[float, typer.Option(help="The delta that goes with epsilon.")] = (
        0.0
    )
    claim: Annotated[
        float | None, typer.Option(help="The claimed epsilon (or mu), to be tested.")
    ] = None
    alpha: Annotated[
        float, typer.Option(help="Probability that the bound is wrong.")
    ] = 0.05
    method: Annotated[
        str,
        typer.Option(
            help="The method that decides; 'auto' goes by the kind of record."
        ),
    ] = "auto"
    guess: Annotated[
        str,
        typer.Option(
            help="Guess the highest scores 'in', the lowest 'out', or 'both'."
        ),
    ] = "both"
    guess_count: Annotated[
        list[int] | None,
        typer.Option(help="One-run methods: how many guesses, fixed before."),
    ] = None
    seed: Annotated[
        int, typer.Option(help="Seed of random splits, fixed before.", min=0)
    ] = 0
    output: Annotated[
        AnswerFormat, typer.Option("--format", help="How to print the bounds.")
    ] = AnswerFormat.text


@app.command()
@taking(BoundsOptions)
def bounds(options: BoundsOptions) -> None:
    """Bound ε from below by scores, guesses or outputs of any tool.

    One method decides, chosen by the kind of data; the others are printed for
    comparison.

    The exit code is 1 if that method refutes the claim, else 0.
    """
    text, refuted = answer(options)
    tell(text)
    raise typer.Exit(ExitCode.FOUND if refuted else ExitCode.OK)


Maker = Callable[[str], Bound]
ALWAYS = {"file", "alpha", "claim", "output"}
LEVEL = {*ALWAYS, "parameter", "delta", "method"}
TAKEN = {
    "scores": {*LEVEL, "scores", "labels", "design", "guess", "guess_count", "seed"},
    "scores with propensities": {
        *ALWAYS,
        "scores",
        "labels",
        "propensities",
        "guess",
        "seed",
    },
    "guesses": {*LEVEL, "guesses", "labels", "design"},
    "outputs": {*LEVEL, "first", "second", "seed"},
}
"""The options that apply to each kind of recorded data."""


def answer(asked: BoundsOptions) -> tuple[str, bool]:
    """Return the bounds as text or JSON, and True if the claim is refuted.

    Only the deciding method refutes. All other methods for the same kind of data are
    computed for comparison.

    Raises:
        ConfigurationError: If the options contradict each other, or the file does not
            have the data.
    """
    record = {
        "scores": asked.scores,
        "guesses": asked.guesses,
        "outputs": asked.first or asked.second,
    }
    kinds = [name for name, given in record.items() if given]
    if len(kinds) != 1:
        raise ConfigurationError(
            "give one kind of record: --scores COLUMN --labels COLUMN; --guesses COLUMN --labels COLUMN; "
            f"--first COLUMNS --second COLUMNS; got {' and '.join(kinds) or 'none'}"
        )
    kind = (
        "scores with propensities"
        if kinds == ["scores"] and asked.propensities
        else kinds[0]
    )
    _check_options(asked, kind)
    question: dict[str, Any] = {
        "delta": asked.delta,
        "parameter": asked.parameter.value,
        "alpha": asked.alpha,
        "claim": asked.claim,
    }
    if kind == "outputs":
        make = _of_outputs(asked, {**question, "seed": asked.seed})
    elif asked.file is None or not asked.labels:
        raise ConfigurationError(
            f"--{kinds[0]} needs {'FILE' if asked.file is None else '--labels COLUMN'}"
        )
    elif asked.propensities:
        make = _of_observed(asked, asked.file)
    else:
        make = (_of_guesses if asked.guesses else _of_scores)(
            asked, asked.file, {**question, "design": asked.design}
        )
    deciding = make(asked.method)
    counted = "counts" if asked.design == "arms" else kind
    fits = {"guesses": counted, "scores": asked.design}.get(kind, kind)
    known_methods = (
        ()
        if asked.propensities
        else methods(fits, parameter=asked.parameter.value, delta=asked.delta)
    )
    others = []
    for name in known_methods:
        if name != deciding.method:
            try:
                others.append(make(name))
            except ConfigurationError:
                # An example is dkw on outputs of several numbers.
                continue
    assumed = _assumed(asked, question) if fits == "one-run" else None
    text = (
        _as_json(deciding, others, assumed)
        if asked.output == "json"
        else _as_text(deciding, others, asked.method)
    )
    if assumed is not None and asked.output != "json":
        text += (
            f"\n\n{assumed.statement(deciding.parameter, confidence(deciding.alpha))}"
        )
    return text, deciding.refuted


def _check_options(asked: BoundsOptions, kind: str) -> None:
    """Check that every given option applies to the kind of recorded data.

    Raises:
        ConfigurationError: If one does not apply.
    """
    for option in fields(asked):
        value = getattr(asked, option.name)
        if value != option.default and option.name not in TAKEN[kind]:
            name = option.name.replace("_", "-")
            raise ConfigurationError(
                f"--{name} {value} does not apply to {kind}; leave out --{name}"
            )


def _assumed(asked: BoundsOptions, options: dict[str, Any]) -> Assumed | None:
    """Return the bound under the assumption that scores have normal laws.

    It is None for pure ε-DP, with fewer than 20 scores of a label, or if all scores of
    a label are equal. ``options`` has the arguments of ``data.question_of``.
    """
    # The options were checked before.
    assert asked.file is not None
    scores, labels = data.scores_and_labels(
        *_columns(asked.file, asked.scores, asked.labels)
    )
    return assuming_gaussian(scores, labels, data.question_of(**options))


def _of_scores(asked: BoundsOptions, file: Path, question: dict[str, Any]) -> Maker:
    options = {
        **question,
        "guess": asked.guess,
        "guesses": asked.guess_count,
        "seed": asked.seed,
    }
    values, truth = _columns(file, asked.scores, asked.labels)
    return lambda name: from_scores(values, truth, method=name, **options)


def _of_observed(asked: BoundsOptions, file: Path) -> Maker:
    columns = _columns(file, asked.scores, asked.labels, asked.propensities)
    options: dict[str, Any] = {
        "alpha": asked.alpha,
        "claim": asked.claim,
        "guess": asked.guess,
        "seed": asked.seed,
    }
    return lambda _: from_observed(*columns, **options)


def _of_guesses(asked: BoundsOptions, file: Path, question: dict[str, Any]) -> Maker:
    guessed, truth = _columns(file, asked.guesses, asked.labels)
    return lambda method: from_labelled_guesses(
        guessed, truth, method=method, **question
    )


def _columns(file: Path, *names: str) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    table = read(file)
    return [column(table, name, file) for name in names]


def _of_outputs(asked: BoundsOptions, options: dict[str, Any]) -> Maker:
    file, first, second = asked.file, asked.first, asked.second
    if not first or not second:
        raise ConfigurationError(
            f"{'--second' if first else '--first'} is missing; outputs of two inputs are compared"
        )
    if file is None:
        tables = [(Path(name), read(Path(name))) for name in (first, second)]
        arrays = [_joined(table, list(table), path) for path, table in tables]
    else:
        table = read(file)
        refuse_histogram(table, [*first.split(","), *second.split(",")], file)
        arrays = [_joined(table, names.split(","), file) for names in (first, second)]
    return lambda method: from_outputs(arrays[0], arrays[1], method=method, **options)


def _joined(
    table: Columns, names: list[str], path: Path
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return columns side by side, shape (rows, columns), without empty last rows.

    Raises:
        ConfigurationError: If a column is missing or a histogram, or if the columns
            have different lengths.
    """
    refuse_histogram(table, names, path)
    parts = [column(table, name.strip(), path) for name in names]
    if len({len(part) for part in parts}) > 1:
        raise ConfigurationError(
            f"{path}: {', '.join(names)} have different lengths; one row is one output"
        )
    joined = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
    filled = np.flatnonzero(~np.isnan(joined).all(axis=1))
    return joined[: filled[-1] + 1 if len(filled) else 0]


def _as_json(deciding: Bound, others: list[Bound], assumed: Assumed | None) -> str:
    shown = {
        "deciding": {**json.loads(deciding.to_json()), "statement": deciding.statement},
        "comparison": [json.loads(bound.to_json()) for bound in others],
        **({} if assumed is None else {"assumed": asdict(assumed)}),
    }
    return json.dumps(shown, indent=2, ensure_ascii=False)


def _as_text(deciding: Bound, others: list[Bound], asked: str) -> str:
    why = (
        "the first choice for this kind of record, whatever the numbers"
        if asked == "auto"
        else "requested by --method"
    )
    lines = [
        f"{deciding.statement}",
        "",
        f"by {deciding.method} ({METHODS[deciding.method]}), {why}",
    ]
    lines += [f"  observed {deciding.statistic}"]
    lines += [f"  assumes  {assumption}" for assumption in deciding.assumptions]
    lines += [f"  source   {deciding.source}"]
    if others:
        lines += ["", "for comparison, not corrected for choosing among them:"]
    for bound in others:
        p_value = (
            "" if bound.p_value is None else f"  p <= {rounded_up(bound.p_value):<8}"
        )
        lines += [
            f"  {bound.method:<21} {bound.parameter} >= {rounded_down(bound.lower):<7}{p_value}  {METHODS[bound.method]}"
        ]
        lines += [
            f"  {'':<21}   assumes {a}"
            for a in bound.assumptions
            if a not in deciding.assumptions
        ]
    return "\n".join(lines)
