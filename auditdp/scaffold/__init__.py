"""First files for somebody's own repository: an audit of a function, settings, and a job for CI."""
