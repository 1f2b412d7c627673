"""``auditdp run`` and ``auditdp mutate``."""

from __future__ import annotations

from dataclasses import replace

from auditdp.cli.common import app, taking
from auditdp.cli.run_options import RunOptions


@app.command()
@taking(RunOptions)
def run(options: RunOptions) -> None:
    """Run audits, and report their findings."""
    from auditdp.cli.running import carry_out

    carry_out(options)


@app.command()
@taking(
    RunOptions,
    *(
        "paths",
        "keyword",
        "parameters",
        "workers",
        "seed",
        "budget",
        "timeout",
        "data",
        "report",
        "output",
        "log_path",
    ),
    *("resume", "profile", "sandbox", "network"),
)
def mutate(options: RunOptions) -> None:
    """Test whether the audits detect faults in the noise of their mechanisms.

    Each audit is run, and then repeated on mutants of its mechanism. The exit code is 1
    if a mutant survives. A mutant is the mechanism with one fault in its noise: one
    draw is halved, removed, repeated or shared by all coordinates, or the seed is
    fixed. A mutant survives if the audit does not refute it. Then either the audit
    cannot detect the fault with this budget, or the fault does not break the claim. An
    audit may argue the latter in ``equivalent_mutants={name: argument}``.

    ``auditdp run --mutants`` does the same.
    """
    from auditdp.cli.running import carry_out

    carry_out(replace(options, mutants=True))
