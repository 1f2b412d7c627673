"""The sequential kernel test that the benchmark compares with."""

import math

import numpy as np
import pytest

from auditdp import ApproxDP, GaussianDP, Pair, PureDP
from auditdp.testing import GaussianMechanism, LaplaceMechanism
from benchmarks.kernel_test import refuted_at, threshold

PAIR = Pair(1, 0)


@pytest.mark.parametrize(
    ("claim", "tau"),
    [
        (PureDP(1.0), math.sqrt(2) * (math.e - 1) / (math.e + 1)),
        (ApproxDP(1.0, 0.1), math.sqrt(2) * (math.e - 1 + 0.2) / (math.e + 1)),
        (
            GaussianDP(1.0),
            math.sqrt(2) * math.erf(0.5 / math.sqrt(2)),
        ),  # total variation 2 Φ(1/2) - 1, at ε = 0
    ],
    ids=str,
)
def test_the_threshold_is_that_of_the_theorem(claim, tau):
    assert threshold(claim) == pytest.approx(tau, rel=1e-3)


def test_a_clear_violation_is_refuted_and_a_true_claim_hardly_ever():
    rng = np.random.default_rng(0)
    wrong = [
        refuted_at(
            LaplaceMechanism(1.0), PureDP(0.1), PAIR, calls=1_000, alpha=0.05, rng=rng
        )
        for _ in range(10)
    ]
    assert all(count is not None and count > 40 for count in wrong)
    true = [
        refuted_at(
            GaussianMechanism(1.0),
            GaussianDP(1.0),
            PAIR,
            calls=400,
            alpha=0.05,
            rng=rng,
        )
        for _ in range(40)
    ]
    assert sum(count is not None for count in true) <= 8
