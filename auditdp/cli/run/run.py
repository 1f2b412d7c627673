"""``auditdp run``: collect audits, run them, record and report what was found."""

from __future__ import annotations

from auditdp.cli.common import app, taking
from auditdp.cli.run.options import RunOptions


@app.command(short_help="Run audits, and report what was found.")
@taking(RunOptions)
def run(options: RunOptions) -> None:
    """Collect audits, run them, and report what was found."""
    from auditdp.cli.run.running import carry_out

    carry_out(options)
