"""``python -m gnn.experiments``."""

from gnn.experiments.cli import main

if __name__ == "__main__":
    main()
