"""Numerical tools: confidence limits, error bounds, decimals, random streams."""
