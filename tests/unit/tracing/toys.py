"""Helpers of the tests of traces: one comparison, its findings, and its densities."""

import math

import numpy as np

from auditdp.tracing import Trace, compare
from auditdp.tracing.chance import tables_of
from auditdp.tracing.draws import CHOICE, COIN, MAXIMUM


def pair_of(function, data=0.0, neighbour=1.0, claim=None, seed=0, **options):
    """Trace a function on two inputs with the draws of one seed."""
    rng = np.random.default_rng(seed)
    return compare(Trace(function), data, neighbour, rng, claim=claim, **options)


def record(function, data=1.0, seed=0):
    return Trace(function).record(data, np.random.default_rng(seed))


def kinds(pair):
    return [finding.kind for finding in pair.findings]


def certain_kinds(pair):
    """Return the kinds of the findings that rest on nothing opaque."""
    return [finding.kind for finding in pair.findings if finding.is_read_off]


def families(run):
    return [release.law.family for release in run.releases]


def two_sided(epsilon, rng):
    """Draw two-sided geometric noise that loses epsilon for a value that moves by 1."""
    p = -math.expm1(-epsilon)
    return int(rng.geometric(p)) - int(rng.geometric(p))


def log_ratio(pair):
    """Return ln p(R | v)/p(R | v′) of all recorded results, by the traced laws."""
    return math.fsum(_log_ratio(moved.first, moved.second) for moved in pair.moved)


def _log_ratio(first, second):
    if first.kind not in (COIN, CHOICE, MAXIMUM):
        one = first.law.log_likelihood(first.centre, first.result)
        two = second.law.log_likelihood(second.centre, first.result)
        if math.isinf(one) and math.isinf(two):
            return math.nan
        return one - two
    results = np.atleast_1d(np.asarray(first.result, int)).ravel()
    rows = np.arange(len(results))
    with np.errstate(all="ignore"):
        one, two = (
            np.log(np.broadcast_to(table, (len(results), table.shape[-1])))
            for table in map(tables_of, (first, second))
        )
    one, two = one[rows, results], two[rows, results]
    return math.fsum((one - two)[one != two])
