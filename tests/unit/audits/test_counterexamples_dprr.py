"""The counterexamples to statements of the DPRR paper, by another route than the audits."""

import math

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

from mechanisms.edges import DPRR, Customised, RandomisedResponse

SIZES = {"REDDIT-MULTI-5K": 3782, "REDDIT-BINARY": 3648, "Github StarGazers": 957}


def allocation(epsilon, n_max):
    """Equation 8."""
    return max(math.sqrt(8 / (n_max - 1)), 0.1 * epsilon), 0.9 * epsilon


def log_probability(zeros_set, own, degree, bits, epsilon1, epsilon2):
    """Return log P of (own bit, zeros set) for a list of no ones but the own bit: an integral over the noisy degree."""
    p = math.exp(epsilon2) / (1 + math.exp(epsilon2))

    def rate(t):
        return min(max(t, 0) / (max(t, 0) * (2 * p - 1) + bits * (1 - p)), 1.0)

    def of(q):
        one = (p if degree else 1 - p) * q
        zero = (1 - p) * q
        rest = bits - 1
        choose = (
            gammaln(rest + 1) - gammaln(zeros_set + 1) - gammaln(rest - zeros_set + 1)
        )
        log = (
            choose + zeros_set * math.log(zero) + (rest - zeros_set) * math.log1p(-zero)
            if zero > 0
            else -math.inf
        )
        return (one if own else 1 - one) * math.exp(log)

    noise = stats.laplace(loc=degree, scale=1 / epsilon1)
    grid = np.concatenate([[1e-9], np.linspace(0.01, 150, 4_000)])
    inner = integrate.simpson([of(rate(t)) * noise.pdf(t) for t in grid], x=grid)
    inner += integrate.simpson(
        [of(rate(t)) * noise.pdf(t) for t in np.linspace(150, bits / 2, 201)],
        dx=(bits / 2 - 150) / 200,
    )
    at_zero = noise.cdf(0) * (1.0 if zeros_set == own == 0 else 0.0)
    return math.log(inner + at_zero + of(1.0) * noise.sf(bits / 2))


def test_the_allocation_loses_more_than_epsilon_on_github():
    """The audit's output (1, 0, 10) has a factor of e^.18147: here by Simpson's rule instead of enclosed quadrature."""
    epsilon1, epsilon2 = allocation(0.1, 957)
    loss = log_probability(10, 1, 1, 956, epsilon1, epsilon2) - log_probability(
        10, 1, 0, 956, epsilon1, epsilon2
    )
    assert loss == pytest.approx(0.181478, abs=2e-5)
    assert 0.1 < loss <= epsilon1 + epsilon2


def test_the_allocation_loses_more_than_epsilon_on_two_users():
    """One bit, ε = 2: P(1) is p or 1 − p times the mean of q, by a sum over the quantiles of the noise."""
    epsilon1, epsilon2 = allocation(2.0, 2)
    p = math.exp(epsilon2) / (1 + math.exp(epsilon2))
    found = []
    for bit in (1, 0):
        t = np.maximum(
            bit + stats.laplace.ppf((np.arange(400_000) + 0.5) / 400_000) / epsilon1, 0
        )
        q = np.minimum(t / (t * (2 * p - 1) + (1 - p)), 1)
        found.append((p if bit else 1 - p) * q.mean())
    assert found == pytest.approx([0.816341504942, 0.0492443211507], rel=1e-5)
    assert math.log(found[0] / found[1]) > 2.8


def test_the_allocation_exceeds_epsilon_where_the_card_says():
    above = {
        (name, epsilon): round(sum(allocation(epsilon, n)), 3)
        for name, n in SIZES.items()
        for epsilon in (0.1, 0.2, 0.5, 1.0, 2.0)
        if sum(allocation(epsilon, n)) > epsilon * (1 + 1e-12)
        and (name, epsilon) != ("REDDIT-BINARY", 0.1)
    }
    assert above == {
        ("REDDIT-MULTI-5K", 0.1): 0.136,
        ("REDDIT-MULTI-5K", 0.2): 0.226,
        ("REDDIT-BINARY", 0.2): 0.227,
        ("Github StarGazers", 0.1): 0.181,
        ("Github StarGazers", 0.2): 0.271,
        ("Github StarGazers", 0.5): 0.541,
    }


def mean_degree(degree, users, epsilon1, epsilon2, points):
    """E[d̃] by a sum over the quantiles of the Laplace law."""
    p, bits = math.exp(epsilon2) / (1 + math.exp(epsilon2)), users - 1
    t = np.maximum(
        degree + stats.laplace.ppf((np.arange(points) + 0.5) / points) / epsilon1, 0
    )
    q = np.minimum(t / (t * (2 * p - 1) + bits * (1 - p)), 1)
    return (degree * p + (bits - degree) * (1 - p)) * q.mean()


REDDIT = [(0, 4.96), (2, 6.05), (5, 7.99), (40, 40.02), (80, 79.93)]


@pytest.mark.parametrize(
    ("degree", "users", "n_max", "mean"),
    [
        *((degree, 3782, 3782, mean) for degree, mean in REDDIT),
        (70, 957, 957, 69.755),
        (50, 130, 957, 48.53),
    ],
)
def test_the_mean_of_the_noisy_degree(degree, users, n_max, mean):
    """At ε = 1."""
    epsilon1, epsilon2 = allocation(1.0, n_max)
    found = mean_degree(degree, users, epsilon1, epsilon2, 200_000)
    assert found == pytest.approx(mean, abs=0.02)
    assert (
        abs(found - degree - math.exp(-epsilon1 * degree) / (2 * epsilon1)) < 0.1
    ) == (users == 3782)


def test_from_five_scales_to_two_fifths_of_the_users_the_mean_is_near_the_degree():
    """Graphs of n_max users; worst at 200 users, ε = 2 and degree 25, the least of its range."""
    apart = []
    for users in (30, 100, 200, 957, 3782):
        for epsilon in (0.2, 0.5, 1.0, 2.0):
            budgets = allocation(epsilon, users)
            for degree in (
                np.linspace(5 / budgets[0], 2 * users / 5, 3)
                if 5 / budgets[0] <= 2 * users / 5
                else ()
            ):
                apart.append(abs(mean_degree(degree, users, *budgets, 5_000) - degree))
    assert len(apart) > 40
    assert 0.45 < max(apart) < 0.5


def test_the_variance_bound_holds_over_the_figures():
    """E[V] + V[E] by quadrature over degrees and all ε of the figures: at most .954 of (n_max − 1)/2."""
    worst = max(
        DPRR.allocated(epsilon, n).degree_variance(int(degree), n - 1) / ((n - 1) / 2)
        for n in (957, 3782)
        for epsilon in (0.1, 0.2, 0.5, 1.0, 2.0)
        for degree in (
            0,
            1,
            2,
            5,
            20,
            *np.linspace(50, n - 1, 13).astype(int),
            1732 if n == 3782 else 398,
        )
    )
    assert 0.95 < worst < 0.954


def test_memory_of_orkut():
    nodes, edges = 3_072_441, 117_185_083
    pairs = nodes * (nodes - 1) // 2
    least_bits = (
        gammaln(pairs + 1) - gammaln(edges + 1) - gammaln(pairs - edges + 1)
    ) / math.log(2)
    assert least_bits / 8 > 245e6 > 30e6
    assert 2 * edges / 8 == pytest.approx(29.3e6, rel=1e-3)
    assert nodes**2 / 8 == pytest.approx(1.18e12, rel=1e-2)
    assert edges * 64 / 8 == pytest.approx(0.94e9, rel=1e-2)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.0])
def test_arcs_that_the_server_gets(epsilon):
    """E[d̃] <= d + 1 + 1/(2ε₁), at degrees across the range of a graph."""
    mechanism = DPRR.allocated(epsilon, 957)
    for degree in (0, 1, 2, 5, 20, 100, 400, 700, 956):
        assert mechanism.expected_degree(degree, 956) <= degree + 1 + 1 / (
            2 * mechanism.epsilon1
        )


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 0.99, 3.0])
def test_geometric_noise_has_the_smaller_variance(epsilon):
    k = np.arange(1, int(60 / epsilon))
    a = math.exp(-epsilon)
    geometric = 2 * np.sum(k**2 * (1 - a) / (1 + a) * a**k)
    laplace = 2 / epsilon**2
    assert geometric == pytest.approx(1 / (2 * math.sinh(epsilon / 2) ** 2), rel=1e-6)
    assert geometric < laplace
    assert (laplace - geometric) / laplace < epsilon**2 / 12


def test_a_non_private_user_publishes_the_edge():
    """Two users, of whom the second publishes their list: the output is possible on one of the two graphs alone."""
    customised = Customised(RandomisedResponse(1.0), 2, private=(0,))
    joined, apart = (
        customised.distribution(np.array([[0, bit], [bit, 0]])) for bit in (1, 0)
    )
    assert not {tuple(np.ravel(x)) for x in joined.outcomes} & {
        tuple(np.ravel(x)) for x in apart.outcomes
    }
