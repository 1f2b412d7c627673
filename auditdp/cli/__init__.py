"""The command line: one file per group of commands, and what they share in ``common``."""

import sys
import traceback

from auditdp.cli import bounds, inspect, mutate, replay, run, selftest  # noqa: F401 - importing them registers their commands
from auditdp.cli.common import CRASHED, USAGE, app, say
from auditdp.errors import AuditError

__all__ = ["main"]


def main() -> None:
    """Run the command line; an error that a person can act on is one line on standard error and exit code 2."""
    try:
        app()
    except AuditError as error:
        say(f"error: {error}")
        sys.exit(USAGE)
    except Exception:
        # Python's own exit code for an uncaught exception is 1, which here means that a violation was found.
        traceback.print_exc()
        say("error: auditdp itself failed; this says nothing about any mechanism. Please report the lines above.")
        sys.exit(CRASHED)
