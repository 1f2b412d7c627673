"""Claims: refused numbers, and curves against the extreme pairs that attain them."""

import math

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm

from auditdp import ApproxDP, GaussianDP, PureDP
from auditdp.betting.wealth.levels import level_grid
from auditdp.errors import AuditError, ClaimError


@pytest.mark.parametrize(
    ("claim", "values"),
    [
        (PureDP, [-0.5, math.nan, math.inf, "1", None, 1j, [1.0]]),
        (lambda epsilon: ApproxDP(epsilon, 0.1), [-1, math.nan, math.inf, "1", None]),
        (lambda delta: ApproxDP(1.0, delta), [-1e-9, 1, math.nan, "0.1", None]),
        (GaussianDP, [0, -1, math.nan, math.inf, "1", None]),
    ],
)
def test_numbers_that_promise_nothing_are_refused(claim, values):
    for value in values:
        with pytest.raises(ClaimError) as caught:
            claim(value)
        assert repr(value) in str(caught.value)
        assert isinstance(caught.value, AuditError)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("kind", [int, np.float32, np.int64])
def test_levels_of_any_real_type_become_floats(kind):
    level = kind(1)
    for claim in (PureDP(level), ApproxDP(level, 0.0), GaussianDP(level)):
        assert claim.level == 1.0
        assert type(claim.level) is float


def test_levels_of_total_variation_begin_at_0():
    levels = level_grid(ApproxDP(0.0, 0.1))
    assert levels[:2].tolist() == pytest.approx([0.0, 1e-3])


@pytest.mark.parametrize("mu", [0.05, 1.0, 6.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
def test_the_gaussian_curve_is_the_integral_of_the_hockey_stick(mu, epsilon):
    # (φ(x - mu) - e^ε φ(x))₊ is positive beyond x = ε/mu + mu/2.
    def excess(x):
        return norm.pdf(x - mu) - math.exp(epsilon) * norm.pdf(x)

    start = epsilon / mu + mu / 2
    options = {"epsabs": 1e-14, "epsrel": 1e-12, "limit": 500}
    exact, _ = integrate.quad(excess, start, start + 12 + mu, **options)
    found = GaussianDP(mu).delta_at(epsilon)
    assert found == pytest.approx(exact, rel=1e-8, abs=1e-13)
    first, delta = GaussianDP(mu).statements()[0]
    assert delta == pytest.approx(GaussianDP(mu).delta_at(first), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 40.0])
def test_the_cap_is_the_posterior_of_randomised_response(epsilon):
    cap = PureDP(epsilon).posterior_cap()
    assert cap == pytest.approx(1 / (1 + math.exp(-epsilon)), rel=1e-15)
    assert ApproxDP(epsilon, 0.0).posterior_cap() == cap
    assert ApproxDP(epsilon + 1, 1e-9).posterior_cap() == 1.0
    assert GaussianDP(epsilon + 1).posterior_cap() == 1.0
