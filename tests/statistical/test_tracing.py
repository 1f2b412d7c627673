"""Likelihood ratios of traced runs have mean 1: under D, E[p(R | v′)/p(R | v)] = 1.

That holds for the releases of any run if and only if their laws are those that the
trace states. Ratios lie between e^−ε and e^ε here, so that Hoeffding's inequality
bounds the error of their mean.
"""

import math

import numpy as np
import pytest

from auditdp.tracing import Trace, replayed
from tests.unit.tracing.toys import log_ratio, two_sided

pytestmark = pytest.mark.statistical
ALPHA = 1e-6


def until_positive(v, rng):
    while True:
        noisy = v + rng.laplace(scale=8.0)
        if noisy > 0:
            return noisy


def chain_of_coins(limits, rng):
    u = rng.random()
    if u < limits[0]:
        return "a"
    return "b" if u < limits[1] else "c"


def several_releases(v, rng):
    return v + rng.laplace(scale=4.0), v + two_sided(0.25, rng), rng.random() < 0.5


# A function, an input, a neighbour, and the largest loss of its releases. Of the loop,
# which may go on for ever, it is the mean loss.
CASES = {
    "a vector": (
        lambda v, rng: 3 * (np.array(v) - 2 * rng.laplace(scale=[2.0, 1.0])) / 5,
        [0.0, 1.0],
        [1.0, 2.0],
        0.75,
    ),
    "rounded Laplace": (lambda v, rng: v + round(rng.laplace(scale=2.0)), 3, 4, 0.5),
    "a chain of coins": (chain_of_coins, (0.3, 0.6), (0.4, 0.7), 2 * math.log(4 / 3)),
    "several choices": (
        lambda p, rng: rng.choice(2, p=p, size=3).tolist(),
        (0.4, 0.6),
        (0.5, 0.5),
        3 * math.log(0.5 / 0.4),
    ),
    "a maximum": (
        lambda v, rng: int(np.argmax(np.array(v) + rng.gumbel(size=3))),
        (0.0, 1.0, 2.0),
        (1.0, 1.0, 2.0),
        1.0,
    ),
    "a maximum by comparisons": (
        lambda v, rng: max(range(3), key=lambda k: v[k] + rng.gumbel()),
        (0.0, 1.0, 2.0),
        (0.5, 1.0, 2.0),
        1.0,
    ),
    "a ticket": (lambda n, rng: int(rng.integers(1, 11)) <= n, 4, 6, math.log(1.5)),
    "a loop that retries": (until_positive, 4.0, 5.0, 1.0),
    "several releases": (several_releases, 1, 2, 0.5),
}


@pytest.mark.parametrize("name", CASES)
def test_the_likelihood_ratio_has_mean_one(name, repeats):
    function, data, neighbour, epsilon = CASES[name]
    runs = repeats(4_000, least=400)
    rng = np.random.default_rng(20240229)
    ratios = []
    with Trace(function) as trace:
        for _ in range(runs):
            recorded = trace.record(data, rng)
            pair = replayed(trace, recorded, neighbour, outcomes=0)
            ratios.append(math.exp(-log_ratio(pair)))
    span = math.exp(epsilon) - math.exp(-epsilon)
    slack = span * math.sqrt(math.log(2 / ALPHA) / (2 * runs))
    error = abs(float(np.mean(ratios)) - 1)
    assert error < slack, f"the mean is off by {error:.4f}; α = {ALPHA} at {slack:.4f}"
    if name != "a loop that retries":
        assert max(ratios) <= math.exp(epsilon) * (1 + 1e-9)
        assert min(ratios) >= math.exp(-epsilon) * (1 - 1e-9)
