"""Certified lower bounds on a privacy level, from data that other tools recorded.

    >>> from auditdp.bounds import from_guesses
    >>> print(from_guesses(90, 100, claim=1.0).statement)
    epsilon >= 1.63 with 95 % confidence; the claim epsilon = 1 is refuted (p <= 2.8e-05)

``methods(kind)`` lists the methods that fit a kind of record. ``METHODS`` has a
one-line summary of each method by its name.
"""

from auditdp.bounds.answers import TESTS
from auditdp.bounds.api import (
    DESIGNS,
    KINDS,
    from_counts,
    from_guesses,
    from_labelled_guesses,
    from_observed,
    from_outputs,
    from_scores,
    methods,
)
from auditdp.bounds.result import Bound

__all__ = [
    "DESIGNS",
    "KINDS",
    "METHODS",
    "Bound",
    "from_counts",
    "from_guesses",
    "from_labelled_guesses",
    "from_observed",
    "from_outputs",
    "from_scores",
    "methods",
]

METHODS = {name: test.summary for name, test in TESTS.items()}
