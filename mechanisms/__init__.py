"""Reference implementations of mechanisms; each states the claim of its source."""
