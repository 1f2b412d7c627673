"""Numbers that several rooms share: confidence limits, outward rounding, keyed randomness, threads."""
