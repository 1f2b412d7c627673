"""The likelihood ratio of what a trace recorded, by the laws that it read off: what tests compare with known densities."""

import math

import numpy as np

from auditdp.tracing.chance import tables_of
from auditdp.tracing.draws import CHOICE, COIN, MAXIMUM


def log_ratio(pair):
    """Return ln p(R | v)/p(R | v′) of all recorded results."""
    return math.fsum(_log_ratio(moved.first, moved.second) for moved in pair.moved)


def _log_ratio(first, second):
    if first.kind not in (COIN, CHOICE, MAXIMUM):
        one, two = (
            each.law.log_likelihood(each.centre, first.result)
            for each in (first, second)
        )
        return one - two if math.isfinite(one) or math.isfinite(two) else math.nan
    results = np.atleast_1d(np.asarray(first.result, int)).ravel()
    with np.errstate(all="ignore"):
        one, two = (
            np.log(np.broadcast_to(t, (len(results), t.shape[-1])))
            for t in map(tables_of, (first, second))
        )
    return math.fsum(
        one[k, r] - two[k, r] if one[k, r] != two[k, r] else 0.0
        for k, r in enumerate(results)
    )
