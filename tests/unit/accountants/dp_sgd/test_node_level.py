"""Node-level accounting: the worked case, the closed form of full batches, and the claim without constants."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from auditdp.accountants import (
    AccountantError,
    NodeLevelLower,
    NodeLevelRDP,
    NodeLevelUpper,
    PLDLower,
    PLDUpper,
    cross_check,
    node_level_accountants,
    reached_nodes,
)
from auditdp.claims.statements import ApproxDP, GaussianDP
from auditdp.record.results import Verdict

WORKED = (8.0, 10_000, 21, 100, 100)
SETTINGS = st.tuples(
    st.floats(2, 20),
    st.just(300),
    st.integers(1, 40),
    st.integers(1, 60),
    st.integers(1, 50),
)


def test_reached_nodes():
    """N_T = (K^(r+1) − 1)/(K − 1) for K > 1, and r + 1 on a path."""
    assert reached_nodes(4, 2) == 21 == (4**3 - 1) // 3
    assert reached_nodes(1, 5) == 6
    with pytest.raises(AccountantError, match="layers >= 1"):
        reached_nodes(4, 0)


def test_the_worked_case():
    """N = 1e4, N_T = 21, batch 100, σ/C = 8, 100 steps, δ = 1e-5: records .036, nodes between 2.26 and 6.76."""
    assert NodeLevelUpper(*WORKED).epsilon_at(1e-5) == pytest.approx(6.760, abs=0.002)
    assert NodeLevelRDP(*WORKED).epsilon_at(1e-5) == pytest.approx(7.682, abs=0.002)
    assert NodeLevelLower(*WORKED).epsilon_at(1e-5) == pytest.approx(2.258, abs=0.002)
    assert PLDUpper(8.0, 0.01, 100).epsilon_at(1e-5) == pytest.approx(0.03571, abs=1e-5)


def test_record_level_accounting_of_nodes_is_violated():
    record = PLDUpper(8.0, 0.01, 100)
    claim = ApproxDP(record.epsilon_at(1e-5), 1e-5)
    check = cross_check(
        claim,
        [record, *node_level_accountants(*WORKED)],
        about=NodeLevelRDP(*WORKED),
    )
    assert check.verdict is Verdict.VIOLATED
    assert len(check.findings) == 1
    assert "is about DP-SGD in 100 Poisson batches" in check.findings[0]


def test_renyi_divergence_is_the_sum_over_how_many_are_affected():
    orders, divergences = NodeLevelRDP(8.0, 100, 5, 20, 1).divergences()
    for k in (3, 50, 90):
        alpha = float(orders[k])
        total = sum(
            hypergeom.pmf(rho, 100, 5, 20)
            * math.exp(alpha * (alpha - 1) * 2 * rho**2 / 8.0**2)
            for rho in range(6)
        )
        assert divergences[k] == pytest.approx(math.log(total) / (alpha - 1), rel=1e-9)


@pytest.mark.parametrize("steps", [1, 20])
def test_all_nodes_in_the_batch_is_the_gaussian_of_all_gradients(steps):
    noise = 10 * math.sqrt(steps)
    exact = GaussianDP(2 * 7 * math.sqrt(steps) / noise)
    lower, upper = (
        NodeLevelLower(noise, 30, 7, 30, steps),
        NodeLevelUpper(noise, 30, 7, 30, steps),
    )
    for epsilon in (0.0, 1.0, 4.0):
        assert (
            lower.delta_at(epsilon)
            <= exact.delta_at(epsilon)
            <= upper.delta_at(epsilon)
        )
    assert lower.epsilon_at(1e-5) == pytest.approx(upper.epsilon_at(1e-5), rel=0.01)


def test_one_gradient_of_sensitivity_2c_is_a_sampled_record_with_half_the_noise():
    node, record = NodeLevelLower(4.0, 1000, 1, 50, 30), PLDLower(2.0, 0.05, 30)
    assert node.epsilon_at(1e-5) == pytest.approx(record.epsilon_at(1e-5), rel=0.002)


@settings(max_examples=5)
@given(parameters=SETTINGS, delta=st.sampled_from([1e-3, 1e-6]), factor=st.floats(1, 2))
def test_bounds_do_not_cross_and_more_reach_loses_more(parameters, delta, factor):
    noise, nodes, reached, batch, steps = parameters
    curves = [
        kind(*parameters) for kind in (NodeLevelLower, NodeLevelUpper, NodeLevelRDP)
    ]
    lower, upper, renyi = (curve.epsilon_at(delta) for curve in curves)
    assert lower <= upper * (1 + 1e-9)
    assert lower <= renyi
    assert lower <= NodeLevelUpper(noise, nodes, reached + 1, batch, steps).epsilon_at(
        delta
    )
    assert lower <= NodeLevelUpper(noise, nodes, reached, batch + 1, steps).epsilon_at(
        delta
    )
    assert (
        NodeLevelLower(noise * factor, nodes, reached, batch, steps).epsilon_at(delta)
        <= upper
    )
    assert (
        NodeLevelRDP(noise, nodes, reached, batch, steps + 1).epsilon_at(delta) >= renyi
    )
    for curve, epsilon in zip(curves, (lower, upper, renyi), strict=True):
        assert curve.epsilon_at(min(1.0, factor * delta)) <= epsilon
        if epsilon > 0:
            assert curve.delta_at(epsilon) == pytest.approx(delta, rel=3e-3)


def test_simulated_batches_have_the_hypergeometric_number():
    """4,000 batches; the mean is within 6 standard errors, so a false alarm has probability below 1e-8."""
    rng = np.random.default_rng(20240229)
    counts, weights = NodeLevelRDP(1.0, 60, 9, 20, 1).affected
    drawn = np.array(
        [np.sum(rng.choice(60, 20, replace=False) < 9) for _ in range(4000)]
    )
    mean = float(np.dot(counts, weights))
    deviation = math.sqrt(float(np.dot((counts - mean) ** 2, weights)))
    assert weights.sum() == pytest.approx(1)
    assert abs(drawn.mean() - mean) < 6 * deviation / math.sqrt(4000)


def test_parameters_are_checked():
    for parameters, message in [
        ((1.0, 10, 11, 5, 1), "reached <= nodes=10, got 11"),
        ((1.0, 10, 2, 11, 1), "batch <= nodes=10, got 11"),
    ]:
        with pytest.raises(AccountantError, match=message):
            NodeLevelRDP(*parameters)
    accountants = node_level_accountants(*WORKED)
    assert (
        accountants[0].name
        == "NodeLevelUpper(noise=8, nodes=10000, reached=21, batch=100, steps=100)"
    )


def test_a_node_that_hardly_any_batch_has():
    """Its batches are less likely than what a grid for a δ of 1e-3 leaves out, and more likely than the smaller δ."""
    lower, upper = (
        NodeLevelLower(1.0, 10**12, 1, 1, 1),
        NodeLevelUpper(1.0, 10**12, 1, 1, 1),
    )
    assert lower.epsilon_at(1e-5) == upper.epsilon_at(1e-5) == 0.0
    assert (
        lower.epsilon_at(1e-13)
        <= upper.epsilon_at(1e-13)
        == pytest.approx(3.808, abs=0.01)
    )
