"""One audit: how it is declared, its evidence gathered and judged; as a test, in a notebook, from a file."""
