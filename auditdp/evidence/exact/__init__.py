"""Exact evidence: the losses of stated laws, and which neighbours they cover."""
