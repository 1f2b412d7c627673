"""A likelihood ratio of D against D′ has, under D, the mean 1 when it is turned round: E[p(R | v′)/p(R | v)] = 1.

That holds for the releases of any run if and only if their laws are those that the trace says, whatever the code is. Ratios
lie between e^−ε and e^ε here, so that Hoeffding's inequality bounds how far their mean may be off.
"""

import math

import numpy as np
import pytest

from auditdp.tracing import Trace
from tests.unit.tracing.ratios import log_ratio

pytestmark = pytest.mark.statistical
ALPHA = 1e-6


def two_sided(epsilon, rng):
    p = -math.expm1(-epsilon)
    return int(rng.geometric(p)) - int(rng.geometric(p))


def until_positive(v, rng):
    while True:
        noisy = v + rng.laplace(scale=8.0)
        if noisy > 0:
            return noisy


# A function, an input, a neighbour, and the largest loss of its releases; of a loop that may go on, in the mean.
CASES = {
    "Laplace": (lambda v, rng: v + rng.laplace(scale=2.0), 0.0, 1.0, 0.5),
    "a vector": (
        lambda v, rng: np.array(v) + rng.laplace(scale=[4.0, 2.0]),
        [0.0, 1.0],
        [1.0, 2.0],
        0.75,
    ),
    "scaled and shifted": (
        lambda v, rng: 3 * (v - 2 * rng.laplace(scale=1.0)) / 5,
        0.0,
        1.0,
        0.5,
    ),
    "logistic": (lambda v, rng: v + rng.logistic(scale=2.0), 0.0, 1.0, 0.5),
    "two geometric draws": (lambda v, rng: v + two_sided(0.5, rng), 3, 5, 1.0),
    "rounded Laplace": (lambda v, rng: v + round(rng.laplace(scale=2.0)), 3, 4, 0.5),
    "logarithms": (
        lambda v, rng: v + 2 * (math.log(rng.random()) - math.log(rng.random())),
        0.0,
        1.0,
        0.5,
    ),
    "inverse transform": (
        lambda v, rng: (lambda u: v - 2.0 * np.sign(u) * np.log(1 - 2 * abs(u)))(
            rng.random() - 0.5
        ),
        0.0,
        1.0,
        0.5,
    ),
    "a coin": (lambda p, rng: bool(rng.random() < p), 0.3, 0.4, math.log(0.4 / 0.3)),
    "a chain of coins": (
        lambda t, rng: (lambda u: "a" if u < t[0] else "b" if u < t[1] else "c")(
            rng.random()
        ),
        (0.3, 0.6),
        (0.4, 0.7),
        2 * math.log(4 / 3),
    ),
    "a choice": (
        lambda p, rng: int(rng.choice(3, p=p)),
        (0.2, 0.3, 0.5),
        (0.3, 0.3, 0.4),
        math.log(1.5),
    ),
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
    "many": (
        lambda v, rng: (
            v + rng.laplace(scale=4.0),
            v + two_sided(0.25, rng),
            rng.random() < 0.5,
        ),
        1,
        2,
        0.5,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_likelihood_ratio_has_the_mean_one_under_its_law(name, repeats):
    from auditdp.tracing import replayed

    function, data, neighbour, epsilon = CASES[name]
    runs, trace = repeats(4_000, least=400), Trace(function)
    rng, ratios = np.random.default_rng(20240229), []
    with trace:
        for _ in range(runs):
            recorded = trace.record(data, rng)
            ratios.append(
                math.exp(-log_ratio(replayed(trace, recorded, neighbour, outcomes=0)))
            )
    slack = (math.exp(epsilon) - math.exp(-epsilon)) * math.sqrt(
        math.log(2 / ALPHA) / (2 * runs)
    )
    off = float(np.mean(ratios)) - 1
    assert abs(off) < slack, (
        f"mean off by {off:.4f}, more than {slack:.4f}, which chance exceeds once in {1 / ALPHA:g}"
    )
    if name != "a loop that retries":
        assert max(ratios) <= math.exp(epsilon) * (1 + 1e-9)
        assert min(ratios) >= math.exp(-epsilon) * (1 - 1e-9)
