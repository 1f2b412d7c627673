"""The command line: one file per group of commands, and what they share in ``common``."""

import sys
import traceback
from importlib import import_module

from auditdp.cli.common import CRASHED, USAGE, app, say
from auditdp.errors import AuditError

__all__ = ["main"]

CALCULATORS = ("account", "bounds")
"""Groups of one command of that name; they need none of the rooms that audit, and start without them."""
GROUPS = (*CALCULATORS, "inspect", "mutate", "replay", "run", "selftest")


def main() -> None:
    """Run the command line; an error that a person can act on is one line on standard error and exit code 2."""
    command = sys.argv[1:2]
    for group in command if command and command[0] in CALCULATORS else GROUPS:
        import_module(f"auditdp.cli.{group}")  # which registers its commands
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
