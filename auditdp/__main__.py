"""``python -m auditdp``: the command line."""

from auditdp.cli import main

if __name__ == "__main__":
    main()
