"""Limits of a trace that protect time and memory, and its tolerances of arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

ROUNDING = 1e-9
"""Largest relative difference of two doubles that is taken for rounding."""
ROUNDING_OF_SUMS = 1e-6
"""Largest relative difference of sums of many doubles that is taken for rounding."""
ABSOLUTE_ROUNDING = 1e-12
"""Largest difference of two numbers of size 1 that is taken for rounding."""
SINGLE = 1e-5
"""Largest relative difference in single precision that is taken for rounding."""


@dataclass(frozen=True)
class TraceLimits:
    """Limits that protect time and memory, and the numbers of runs of each test."""

    # Largest number of outcomes of one release that are forced.
    outcomes: int = 16
    # Largest number of items for which every order is forced.
    permuted_items: int = 3
    # Largest number of pairs of releases of a line whose values are compared.
    compared_releases: int = 10_000
    # Largest number of entries of releases whose shared noise is one dense matrix.
    shared_entries: int = 1_024
    # Largest ε that is composed. A larger one counts as unbounded.
    composed_epsilon: float = 600.0
    # Largest number whose exponential is a double.
    exponent: float = 700.0
    # Halvings of an interval, at one end of which outputs differ and at the other not.
    bisections: int = 30

    # Runs of each kind on each input that test a statement.
    runs: int = 2
    # Runs with moved or new noisy values before a loss is called a bound.
    runs_for_bound: int = 24
    # Runs with moved or new noisy values before an output is stated to show a noisy
    # value.
    runs_for_output: int = 8
    # Runs whose orders of noisy values are compared.
    runs_for_order: int = 5
    # Runs with other values in the same order.
    runs_in_order: int = 4

    # Largest depth of an output in which noise is replaced by numbers.
    output_depth: int = 12
    # Largest number of characters of a value in a sentence.
    text_length: int = 40
    # Largest number of lines, or of keys, that one sentence names.
    named: int = 3

    # Entries of one container, and depth of containers, that a search for the line of a
    # difference reads.
    read_entries: int = 2_048
    read_depth: int = 3
    # Numbers that such a search reads in all, which takes about half a second. A loop
    # over many records may hold all of them at every line.
    read_numbers: int = 1_000_000


LIMITS = TraceLimits()
