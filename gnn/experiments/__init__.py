"""Experiments of the five papers as declared grids: ``python -m gnn.experiments list | run NAME | report``."""
