"""Numbers that several rooms share: limits, rounding, random streams, threads."""
