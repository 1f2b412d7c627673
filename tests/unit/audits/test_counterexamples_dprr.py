"""The counterexamples to statements of the DPRR paper, by another route than the audits."""

import math

import numpy as np
import pytest
from scipy.special import gammaln

from mechanisms.edges import DPRR, Customised, RandomisedResponse


def test_the_variance_bound_holds_over_the_figures():
    """E[V] + V[E] by quadrature over degrees and all ε of the figures.

    The sum is at most .954 of (n_max − 1)/2.
    """
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
    """Two users, of whom the second publishes their list.

    The output is possible on one of the two graphs alone.
    """
    customised = Customised(RandomisedResponse(1.0), 2, private=(0,))
    joined, apart = (
        customised.distribution(np.array([[0, bit], [bit, 0]])) for bit in (1, 0)
    )
    assert not {tuple(np.ravel(x)) for x in joined.outcomes} & {
        tuple(np.ravel(x)) for x in apart.outcomes
    }
