"""A standing set of mechanisms with known privacy, to count false statements."""
