"""Confidence limits on the probability of an event, from the number of its occurrences.

Source: Clopper & Pearson (1934), "The use of confidence or fiducial limits illustrated
in the case of the binomial", Biometrika 26. The lower limit is the smallest p at which
the observed number of successes, or a larger one, has at least the error probability.
The upper limit is the largest p at which the observed number, or a smaller one, has at
least this probability. For every p, each limit alone is wrong with at most the error
probability.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv

from auditdp.numerics.arrays import Floats

NOT_ZERO = 1e-300
"""Replaces a count of 0, for which the quantile is not defined."""


def lower_limit(successes: ArrayLike, trials: ArrayLike, error: ArrayLike) -> Floats:
    """Return the lower limits of binomial probabilities; 0 without a success.

    ``error`` is the largest probability that a limit is wrong. The arguments are
    broadcast.

    >>> round(float(lower_limit(5, 5, 0.05)), 6)  # p⁵ = .05
    0.54928
    """
    successes = np.asarray(successes, dtype=np.float64)
    trials = np.asarray(trials, dtype=np.float64)
    # The limit is a quantile of a beta distribution.
    limit = betaincinv(np.maximum(successes, NOT_ZERO), trials - successes + 1, error)
    return np.where(successes > 0, limit, 0.0)


def upper_limit(successes: ArrayLike, trials: ArrayLike, error: ArrayLike) -> Floats:
    """Return the upper limits of binomial probabilities; 1 without a failure.

    ``error`` is the largest probability that a limit is wrong. The arguments are
    broadcast.

    >>> round(float(upper_limit(0, 5, 0.05)), 6)  # (1-p)⁵ = .05
    0.45072
    """
    successes = np.asarray(successes, dtype=np.float64)
    trials = np.asarray(trials, dtype=np.float64)
    limit = betainccinv(successes + 1, np.maximum(trials - successes, NOT_ZERO), error)
    return np.where(successes < trials, limit, 1.0)
