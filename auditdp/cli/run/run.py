"""``auditdp run``: collect audits, run them, record and report what was found."""

from __future__ import annotations

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
