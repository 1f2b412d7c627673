"""Forecasters: by a stated law, by laws from traces, and by views of outputs alone."""
