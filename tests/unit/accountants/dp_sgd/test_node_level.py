"""Node-level accounting: how many nodes are reached, and how many of them a batch has."""

import math

import numpy as np
import pytest
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
from auditdp.claims.statements import ApproxDP
from auditdp.record.results import Verdict

WORKED = (8.0, 10_000, 21, 100, 100)


def test_reached_nodes():
    """N_T = (K^(r+1) − 1)/(K − 1) for K > 1, and r + 1 on a path."""
    assert reached_nodes(4, 2) == 21 == (4**3 - 1) // 3
    assert reached_nodes(1, 5) == 6
    with pytest.raises(AccountantError, match="layers >= 1"):
        reached_nodes(4, 0)


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


def test_one_gradient_of_sensitivity_2c_is_a_sampled_record_with_half_the_noise():
    node, record = NodeLevelLower(4.0, 1000, 1, 50, 30), PLDLower(2.0, 0.05, 30)
    assert node.epsilon_at(1e-5) == pytest.approx(record.epsilon_at(1e-5), rel=0.002)


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


def test_a_node_that_hardly_any_batch_has():
    """Its batches are less likely than what a grid for a δ of 1e-3 leaves out, and more likely than the smaller δ."""
    bounds = [kind(1.0, 10**12, 1, 1, 1) for kind in (NodeLevelLower, NodeLevelUpper)]
    assert [bound.epsilon_at(1e-5) for bound in bounds] == [0.0, 0.0]
    low, high = (bound.epsilon_at(1e-13) for bound in bounds)
    assert low <= high == pytest.approx(3.808, abs=0.01)
