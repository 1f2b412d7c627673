"""``python -m auditdp``: the command line."""

from auditdp.cli import main

main()
