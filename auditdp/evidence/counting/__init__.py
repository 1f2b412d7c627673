"""Counting evidence: how often each output came, and what that bounds from above."""
