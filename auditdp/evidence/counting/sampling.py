"""How far what a mechanism draws is from the law that it states, on the inputs that were run.

A certificate is about the law. This is what can be seen of the code: an upper bound on the distance of what it draws from
the law, and a test of the law.

- **Finite laws**: the total variation distance, sup P(S) - L(S) over events S. It is attained by the event of the outputs
  that are likelier than the law says, which is fixed before anything is drawn; so, as in ``events``, the upper
  Clopper-Pearson limit of that one event suffices, and the largest limit minus L(S) of all events is no less. The law
  is tested by the e-value of a mixture of multinomial laws around it (see ``log_e_value``).
- **Laws of one number**: the Kolmogorov distance, the largest difference of two distribution functions, by the inequality
  of Dvoretzky, Kiefer & Wolfowitz (1956) with the constant of Massart (1990, Corollary 1): the empirical function is further
  than √(ln(2/error)/2n) from the true one with probability at most the error. It is no bound on the total variation, which
  no number of runs bounds for such laws.

Probabilities of laws are read as doubles; what that rounds, below 1e-9, is less than any of these can tell.
Assumption: runs are independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import gammaln, logsumexp, ndtr

from auditdp.evidence.counting.events import Counts, nodes
from auditdp.mechanism.laws import GaussianLaw, StepLaw
from auditdp.numerics.arrays import Floats
from auditdp.numerics.binomial import upper_limit

SPACING = 0.1
"""Steps, in standard deviations of a count, in which the total variation is searched."""
MOST_EXACT = 64
"""Outputs whose sets are all looked at."""
CONCENTRATIONS = 4.0 ** np.arange(14)
"""How narrowly the alternatives of the test lie around the law: a Dirichlet law of this sum of parameters."""


def total_variation(counts: Counts, law: Floats, runs: int, error: float) -> float:
    """Return an upper bound on the total variation distance from the law, over all inputs.

    The input with the largest distance, and its event, are fixed by the laws, so no correction for inputs is needed either.

    Args:
        counts: How often each output came on each input, shape (inputs, outputs): all outputs that came.
        law: Probability of each of these outputs by the law of each input, same shape.
        runs: Runs on each input.
        error: Probability that the distance is larger.
    """
    ends = nodes(runs, SPACING)
    largest = 0.0
    for x, q in zip(counts, law, strict=True):
        hits, mass = _least_mass(x[x > 0], q[x > 0], runs)
        part = np.searchsorted(ends, hits, side="right")
        starts = np.flatnonzero(
            np.diff(part, prepend=-1)
        )  # of all sets between two ends, the most runs and the least mass
        most = hits[np.append(starts[1:], len(hits)) - 1]
        limits = upper_limit(most, runs, error)
        largest = max(largest, float(np.max(limits - np.minimum.reduceat(mass, starts))))
    return largest


def _least_mass(x: Counts, q: Floats, runs: int) -> tuple[Counts, Floats]:
    """Return (X, m): every set of outputs has at most the X and at least the mass m of one entry; X ascends from 0.

    Few outputs are a knapsack, solved exactly; of many, no set has less than the convex hull of the largest ratios.
    """
    if len(x) > MOST_EXACT:
        order = np.argsort(q / x)
        hits = np.arange(runs + 1)
        return hits, np.interp(hits, np.append(0, np.cumsum(x[order])), np.append(0.0, np.cumsum(q[order])))
    least = np.full(runs + 1, np.inf)
    least[0] = 0.0
    for times, mass in zip(x, q, strict=True):
        np.minimum(least[times:], least[:-times] + mass, out=least[times:])
    hits = np.flatnonzero(np.isfinite(least))
    return hits, least[hits]


def log_e_value(counts: Counts, law: Floats) -> float:
    """Return the logarithm of an e-value against the laws of all inputs; at least ln(1/α) with probability at most α.

    Per input: the mean, over ``CONCENTRATIONS`` c, of the probability of the counts if the outputs' probabilities are drawn
    from a Dirichlet law with parameters c times the law, divided by their probability under the law. Each has expectation 1
    under the law, because both are probabilities of counts; so has the mean, and the mean over inputs. P(e >= 1/α) <= α by
    Markov's inequality. Infinite where an output came that the law excludes. Where the law is known up to rounding, its
    largest probabilities make the divisor the largest, and the expectation at most 1.

    ``counts`` and ``law`` are of shape (inputs, outputs): how often each output came, all that came, and its largest
    probability by the law.
    """
    return float(logsumexp([_log_e_value(x, q) for x, q in zip(counts, law, strict=True)]) - math.log(len(counts)))


def _log_e_value(x: Counts, q: Floats) -> float:
    q, x = q[x > 0], x[x > 0]
    if (q <= 0).any():
        return math.inf
    c = CONCENTRATIONS[:, None] / max(1.0, float(q.sum()))
    outputs = (gammaln(c * q + x) - gammaln(c * q) - x * np.log(q)).sum(axis=1)
    mixed = outputs + gammaln(CONCENTRATIONS) - gammaln(CONCENTRATIONS + x.sum())
    return float(logsumexp(mixed) - math.log(len(CONCENTRATIONS)))


def cdf_of(law: object) -> Callable[[Floats], Floats] | None:
    """Return the distribution function of a law of one number, elementwise; None for any other law."""
    if isinstance(law, StepLaw):
        return law.cdf
    if isinstance(law, GaussianLaw) and len(law.location) == 1:
        centre, sigma = float(law.location[0]), law.sigma
        return lambda y: np.asarray(ndtr((y - centre) / sigma))
    return None


def kolmogorov(values: Floats, cdf: Callable[[Floats], Floats]) -> float:
    """Return the Kolmogorov distance between runs and a law with or without atoms; 1 where a run gave no number.

    ``cdf`` is the law's probability of at most y, elementwise.
    """
    if np.isnan(values).any():
        return 1.0
    points, times = np.unique(values, return_counts=True)
    until = np.cumsum(times) / len(values)
    before = np.append(0.0, until[:-1])
    return float(max(np.max(until - cdf(points)), np.max(cdf(np.nextafter(points, -np.inf)) - before)))


def kolmogorov_margin(runs: int, error: float) -> float:
    """Return what the Kolmogorov distance of runs from their own law exceeds with probability at most ``error``."""
    return math.sqrt(math.log(2 / error) / (2 * runs))
