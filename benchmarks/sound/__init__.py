"""A standing set of mechanisms whose privacy is known, by which false statements of the auditor are counted."""
