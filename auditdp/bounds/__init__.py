"""Certified lower bounds from recorded data: what other tools measured, with the tests that it supports.

    >>> from auditdp.bounds import from_guesses
    >>> print(from_guesses(90, 100, claim=1.0).statement)
    epsilon >= 1.63 with 95 % confidence; the claim epsilon = 1 is refuted (p <= 2.8e-05)

Which method fits which record is ``methods(kind)``; ``METHODS`` says in a few words what each does and assumes.
"""

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

METHODS = {
    "exact": "exact unconditional test of the counts of one event",
    "clopper-pearson": "Clopper-Pearson limits of one event, alpha/2 each",
    "binomial": "exact test of the number of right guesses",
    "one-run": "one training run: Steinke, Nasr & Jagielski (2023)",
    "one-run-curve": "one training run: Mahloujifar, Melis & Chaudhuri (2024)",
    "scan": "every number of guesses at once, exact law of the maximum",
    "split-exact": "event chosen on some rows, exact unconditional test on the rest",
    "split-clopper-pearson": "event chosen on some rows, Clopper-Pearson on the rest",
    "dkw": "every threshold at once by uniform bands of the distribution functions",
    "propensities": "right guesses against what propensities and epsilon allow",
    "bets": "all outputs played as a game against the whole privacy curve",
}
