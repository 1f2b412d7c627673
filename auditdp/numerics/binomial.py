"""Confidence limits on the probability of an event, from how often it occurred.

Source: Clopper & Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of the binomial",
Biometrika 26: the lowest p at which so many successes or more are not rarer than the error probability, and the highest at
which so many or fewer are not. Each limit alone is wrong with at most that probability, whatever p is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv

from auditdp.numerics.arrays import Floats

NOT_NONE = 1e-300
"""In place of no success or no failure, for which the quantile is not defined and the limit is 0 or 1."""


def lower_limit(successes: ArrayLike, trials: ArrayLike, error: ArrayLike) -> Floats:
    """Return, elementwise, the lower limit of a binomial probability; 0 where there was no success.

    >>> round(float(lower_limit(5, 5, 0.05)), 6)  # p⁵ = .05
    0.54928
    """
    successes, trials = (
        np.asarray(successes, dtype=np.float64),
        np.asarray(trials, dtype=np.float64),
    )
    found = betaincinv(np.maximum(successes, NOT_NONE), trials - successes + 1, error)
    return np.where(successes > 0, found, 0.0)


def upper_limit(successes: ArrayLike, trials: ArrayLike, error: ArrayLike) -> Floats:
    """Return, elementwise, the upper limit of a binomial probability; 1 where there was no failure.

    >>> round(float(upper_limit(0, 5, 0.05)), 6)  # (1-p)⁵ = .05
    0.45072
    """
    successes, trials = (
        np.asarray(successes, dtype=np.float64),
        np.asarray(trials, dtype=np.float64),
    )
    found = betainccinv(successes + 1, np.maximum(trials - successes, NOT_NONE), error)
    return np.where(successes < trials, found, 1.0)
