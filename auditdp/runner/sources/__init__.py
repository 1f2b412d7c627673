"""Which files of a repository an audit is made of, read from the source without importing any of it."""
