"""Reports on a terminal: the run, its progress and its differences."""
