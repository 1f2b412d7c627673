"""Planning, executing and recording a run."""
