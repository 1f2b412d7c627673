"""Node-level accounting counts the reached nodes, and those of a batch."""

import math

import pytest
from scipy.stats import hypergeom

from auditdp import ApproxDP, Verdict
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
        claim, [record, *node_level_accountants(*WORKED)], about=NodeLevelRDP(*WORKED)
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


def test_a_node_that_hardly_any_batch_has():
    """Its batches are less likely than the mass that a grid for δ = 1e-3 leaves out.

    They are more likely than the smaller δ.
    """
    bounds = [kind(1.0, 10**12, 1, 1, 1) for kind in (NodeLevelLower, NodeLevelUpper)]
    assert [bound.epsilon_at(1e-5) for bound in bounds] == [0.0, 0.0]
    low, high = (bound.epsilon_at(1e-13) for bound in bounds)
    assert low <= high == pytest.approx(3.808, abs=0.01)
