"""Runs on fresh randomness night after night, with one error probability for all of them."""
