"""The command line: one file per group of commands, and what they share in ``common``."""

from auditdp.cli.common import main

__all__ = ["main"]
