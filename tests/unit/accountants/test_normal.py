"""Normal probabilities in doubles: enclosed, and nearly as tight as doubles can be."""

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from auditdp.accountants.normal_quantiles import gaussian_cells, log_cdf, upper_tail
from auditdp.mechanism.laws import precision

GRID = np.concatenate(
    [
        np.linspace(0, 37, 4001),
        np.arange(0, 37, 1 / 256),
        np.nextafter(np.arange(1, 37) / 256, 0),
    ]
)


def exact_tail(z):
    return (arb(float(z)) / arb(2).sqrt()).erfc() / 2


def test_tails_are_enclosed_at_the_nodes_and_between_them():
    low, high = upper_tail(GRID)
    with precision(200):
        for z, a, b in zip(GRID, low, high, strict=True):
            assert arb(float(a)) <= exact_tail(z)
            assert exact_tail(z) <= arb(float(b))
    assert np.all(high <= low * (1 + 1e-11))


@given(z=st.floats(-40, 40), way=st.sampled_from([-1, 0, 1]))
def test_probabilities_are_enclosed_even_where_z_was_rounded(z, way):
    moved = z * (1 + way * 2.0**-52)  # by 2u, and u for the product
    (log_low,), (log_high,) = log_cdf(np.array([moved]))
    with precision(
        4000
    ):  # what is nearly 1 and its logarithm have to be told apart from 1 and 0
        exact = exact_tail(-z)
        assert arb(float(log_low)) <= exact.log()
        assert exact.log() <= arb(float(log_high))


def test_infinite_ends():
    low, high = log_cdf(np.array([-np.inf, np.inf]))
    assert low[0] == -np.inf
    assert high[0] < np.log(1e-299)
    assert -1e-15 < low[1] <= high[1] == 0


@pytest.mark.parametrize("mean", [0.0, 1.0])
@pytest.mark.parametrize("sigma", [0.3, 5.0])
def test_gaussian_cells_enclose_the_probabilities(mean, sigma):
    edges = mean + sigma * np.array(
        [-9.5, -9.4999, -3, -0.01, 0, 1e-6, 0.5, 0.50001, 9.4, 9.5]
    )
    lower, upper = gaussian_cells(edges, mean, sigma)
    with precision(200):
        z = [(arb(float(e)) - arb(mean)) / (arb(sigma) * arb(2).sqrt()) for e in edges]
        below = [arb(0), *[(-x).erfc() / 2 for x in z], arb(1)]
        for k in range(len(edges) + 1):
            exact = below[k + 1] - below[k]
            assert arb(lower[k]) <= exact
            assert exact <= arb(upper[k])
            assert float(upper[k]) <= float(exact.mid()) * (1 + 1e-8)
