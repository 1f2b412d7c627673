"""``auditdp run`` and ``auditdp mutate``: collect audits, run them, record and report what was found."""

from __future__ import annotations

from dataclasses import replace

from auditdp.cli.common import app, settings, taking
from auditdp.cli.run.options import RunOptions, RunPlace


@app.command(short_help="Run audits, and report what was found.")
@taking(RunOptions)
def run(options: RunOptions) -> None:
    """Collect audits, run them, and report what was found."""
    from auditdp.runner.processes.starting import start_early

    if options.executor is RunPlace.processes:
        start_early(options.paths or settings(options.profile).paths)
    from auditdp.cli.run.running import carry_out

    carry_out(options)


@app.command(short_help="Would the audits notice if their mechanisms were broken?")
@taking(
    RunOptions,
    *("paths", "keyword", "parameters", "workers", "seed", "budget", "timeout", "data", "report", "output", "log_path"),
    *("resume", "profile", "sandbox", "network"),
)
def mutate(options: RunOptions) -> None:
    """Run the audits, and play each against broken twins derived from its mechanism; exit code 1 if one survives.

    The same as ``auditdp run --mutants``. A survivor is a fault that the audit does not see at this budget, or one that
    does not break the claim, which the audit may argue in ``equivalent_mutants={name: argument}``.
    """
    from auditdp.cli.run.running import carry_out

    carry_out(replace(options, mutants=True))
