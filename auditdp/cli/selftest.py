"""``auditdp selftest``: does this installation find what is broken, and only that?"""

from __future__ import annotations

from typing import Annotated

import typer

from auditdp.cli.common import FOUND, OK, app, tell


@app.command(short_help="Does this installation find what is broken, and only that?")
def selftest(seed: Annotated[int, typer.Option(help="Root seed.")] = 0) -> None:
    """Prove in under a minute that this installation refutes broken mechanisms and leaves correct ones alone."""
    from auditdp.testing.selftest import selftest as check

    failures = 0
    for name, expected, verdict, calls in check(seed):
        good = verdict == expected
        failures += not good
        tell(f"{'ok  ' if good else 'FAIL'}  {name:<58} {verdict:<12} {calls:>9,} calls")
    tell(f"{failures} failures" if failures else "the auditor refutes every broken twin and no correct mechanism")
    raise typer.Exit(FOUND if failures else OK)
