"""One file, or a few files, for each kind of evidence about a claim.

The function ``gathered(request, alpha)`` of a kind returns its evidence, or None if the
kind does not apply. Each module's docstring states the guarantee and its limits.
"""
