"""Sensitivity evidence: what is computed before the noise."""
