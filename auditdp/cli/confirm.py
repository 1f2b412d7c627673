"""``auditdp confirm``: a finding once more, on randomness and an error probability of its own."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from auditdp.cli.again import options_of, task_of
from auditdp.cli.common import (
    CRASHED,
    FOUND,
    INCONCLUSIVE,
    OK,
    Data,
    app,
    budget_option,
    given,
    one_of,
    print_line,
    read_run,
    sandbox,
    say,
    settings,
    tell,
)
from auditdp.errors import ConfigurationError


@app.command(short_help="Test a finding again, with a fresh seed and a fresh α.")
def confirm(
    finding: Annotated[str, typer.Argument(help="The id of a finding of the last run, or enough of it to be unique.")],
    source: Annotated[Path | None, typer.Option("--run", callback=given, help="Log or JSON report of the run.")] = None,
    alpha: Annotated[float, typer.Option(help="Error probability of this test alone.")] = 0.05,
    seed: Annotated[int | None, typer.Option(help="Root seed; a fresh one is drawn and printed unless given.")] = None,
    budget: Annotated[list[str] | None, budget_option("that of the run")] = None,
    data: Data = "",
) -> None:
    """Test a finding again with a fresh seed and a fresh α; exit code 1 if it is found again, 0 if it is not.

    A refutation that the run did not confirm can be tested, too; where that happens again, the exit code is 4. The two tests
    are independent, so a true claim is refuted by both with probability at most the product of their error probabilities.
    One that is not found again is not withdrawn: a smaller budget, or chance, may have missed it. Its file
    has to be one that collection finds below the working folder.
    """
    from auditdp.cli.ending import interruptible
    from auditdp.record.results import REFUTATIONS, Verdict
    from auditdp.runner.processes.workers import Workers

    record = read_run(source)
    chosen = one_of(finding, record.results)
    if chosen.verdict not in REFUTATIONS and not chosen.is_unconfirmed:
        raise ConfigurationError(f"{chosen.id} ended {chosen.verdict}, so there is no finding to confirm")
    root_seed = seed if seed is not None else _other_than(record.root_seed)
    if root_seed == record.root_seed:
        raise ConfigurationError(
            f"--seed {seed} is that of the run, whose finding it would only repeat; give another, or none (to repeat it: "
            "auditdp replay)"
        )
    was = options_of(record, chosen, data)
    budget_now = "".join(budget or ()) or was.budget
    with interruptible(), Workers(overrides=was.overrides, sandbox=sandbox(settings())) as processes:
        options = replace(was, root_seed=root_seed, alpha=alpha, budget=budget_now)
        task = task_of(chosen, options, processes)
        (result,) = processes.run([task])
    tell(f"root seed {root_seed}")
    print_line(result)
    if result.verdict in (Verdict.ERROR, Verdict.SKIPPED):
        say(f"not confirmed: the audit ended {result.verdict}, which says nothing about the finding")
        raise typer.Exit(CRASHED)
    if result.verdict not in REFUTATIONS:
        say(f"not confirmed: {chosen.verdict} in the run, {result.verdict} on fresh randomness (α = {alpha:g})")
        raise typer.Exit(INCONCLUSIVE if result.is_unconfirmed else OK)
    if result.log_e_value is None:
        say("confirmed: what refutes it is computed and not drawn, so no seed changes it")
    else:
        from auditdp.numerics.rounding import outwards

        both = f"probability at most {outwards((chosen.alpha or 1) * alpha, up=True, digits=3)}"
        say(f"confirmed on fresh randomness with α = {alpha:g}; a true claim is refuted twice with {both}")
    raise typer.Exit(FOUND)


def _other_than(seed: int) -> int:
    drawn = secrets.randbelow(2**32 - 1)
    return drawn + (drawn >= seed)
