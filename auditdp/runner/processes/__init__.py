"""The processes of a run, and what each of them does."""
