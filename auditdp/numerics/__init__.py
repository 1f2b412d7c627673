"""Numerical tools of several rooms: limits, error bounds, decimals, random streams."""
