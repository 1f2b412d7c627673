"""The laws of halved noise, for all thresholds and all probabilities."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from auditdp.auditing.mutated_draws import Spoiled, sites


def halved(mechanism):
    (site,) = sites(mechanism, [0])
    return Spoiled(mechanism, site, "noise halved")


@given(epsilon=st.floats(-8, 8), seed=st.integers(0, 2**32 - 1))
@example(epsilon=0.0, seed=0)
def test_a_comparison_with_any_probability_has_squared_odds(epsilon, seed):
    """It is below p exactly where u < s(p), s/(1-s) = (p/(1-p))^2: randomised response with ε becomes that with 2ε."""
    p, squared = 1 / (1 + np.exp(-epsilon)), 1 / (1 + np.exp(-2 * epsilon))
    u = np.random.default_rng(seed).random(200)
    below = halved(lambda data, size, *, rng: rng.random(size) < p)(
        0, 200, rng=np.random.default_rng(seed)
    )
    clear = np.abs(u - squared) > 1e-12  # rounding may decide either way in between
    assert (below == (u < squared))[clear].all()


@given(p=st.floats(0.01, 0.99), seed=st.integers(0, 2**32 - 1))
def test_half_a_geometric_count_is_its_half_rounded_up(p, seed):
    counts = np.random.default_rng(seed).geometric(p, 50)
    half = halved(lambda data, size, *, rng: rng.geometric(p, size))(
        0, 50, rng=np.random.default_rng(seed)
    )
    assert (half == np.ceil(counts / 2)).all()


@given(
    location=st.floats(-100, 100),
    scale=st.floats(0.01, 100),
    seed=st.integers(0, 2**32 - 1),
)
def test_half_of_laplace_noise_is_laplace_noise_of_half_the_scale(
    location, scale, seed
):
    half = halved(lambda data, size, *, rng: rng.laplace(location, scale, size))(
        0, 50, rng=np.random.default_rng(seed)
    )
    expected = np.random.default_rng(seed).laplace(location, scale / 2, 50)
    np.testing.assert_allclose(
        half, expected, rtol=1e-9, atol=1e-9 * (abs(location) + scale)
    )
