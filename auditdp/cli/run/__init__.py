"""``auditdp run``: its options, its course and what it prints."""
