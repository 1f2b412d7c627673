"""Contract of the accountants of DP-SGD, for every kind of batch.

They have known values and the Gaussian at the end of each family, and obey laws.
"""

import math
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditdp import GaussianDP
from auditdp.accountants import (
    RDP,
    FixedSizeLower,
    FixedSizeRDP,
    FixedSizeUpper,
    NodeLevelLower,
    NodeLevelRDP,
    NodeLevelUpper,
    PLDLower,
    PLDUpper,
    ShuffledLower,
    ShuffledUpper,
)

NODES = (8.0, 10_000, 21, 100, 100)
KNOWN = [
    (PLDLower(1.0, 0.01, 1000), 1.82822, 1e-4),
    (PLDUpper(1.0, 0.01, 1000), 1.82827, 1e-4),
    (RDP(1.0, 0.01, 1000), 2.101366, 1e-6),
    # Lebeda et al. (2024), arXiv:2405.20769, show ε ≈ 1 for Poisson and more than 10
    # for batches of a fixed size.
    (FixedSizeLower(1.0, 10_000, 100, 1000), 13.36, 0.01),
    (FixedSizeUpper(1.0, 10_000, 100, 1000), 14.82, 0.01),
    (FixedSizeRDP(1.0, 10_000, 100, 1000), 20.987, 0.01),
    # Chua et al. (2024), arXiv:2403.17673v2: Poisson batches lose 1.43 or less and
    # shuffled ones 7.99.
    (PLDUpper(0.6, 0.001, 1000), 1.4253, 0.001),
    (ShuffledLower(0.6, 1000), 7.9876, 2e-4),
    (ShuffledUpper(0.6, 1000), 8.0037, 1e-4),
    (NodeLevelLower(*NODES), 2.258, 0.002),
    (NodeLevelUpper(*NODES), 6.760, 0.002),
    (NodeLevelRDP(*NODES), 7.682, 0.002),
]


@pytest.mark.parametrize(
    ("accountant", "epsilon", "within"), KNOWN, ids=[each.name for each, *_ in KNOWN]
)
def test_known_values_at_a_delta_of_1e_5(accountant, epsilon, within):
    assert accountant.epsilon_at(1e-5) == pytest.approx(epsilon, abs=within)


POISSON = (PLDLower, PLDUpper, RDP)
FIXED = (FixedSizeLower, FixedSizeUpper, FixedSizeRDP)
SHUFFLED = (ShuffledLower, ShuffledUpper)
NODE_LEVEL = (NodeLevelLower, NodeLevelUpper, NodeLevelRDP)
GAUSSIAN = [
    (POISSON, (1.0, 1.0, 10), math.sqrt(10)),
    (POISSON, (20.0, 1.0, 1000), math.sqrt(1000) / 20),
    (SHUFFLED, (3.0, 1, 9), 1.0),
    # A replaced record moves the sum by twice the clipping norm.
    (FIXED, (2 * math.sqrt(1000), 50, 50, 1000), 1.0),
    (NODE_LEVEL, (10 * math.sqrt(20), 30, 7, 30, 20), 2 * 7 / 10),
]


@pytest.mark.parametrize(("kinds", "parameters", "mu"), GAUSSIAN)
def test_a_batch_of_everything_is_the_gaussian(kinds, parameters, mu):
    exact = GaussianDP(mu)
    lower, upper, *renyi = (kind(*parameters) for kind in kinds)
    for epsilon in (0.0, 0.5, 2.0, 6.0):
        delta = exact.delta_at(epsilon)
        assert lower.delta_at(epsilon) <= delta
        assert upper.delta_at(epsilon) >= delta * (1 - 1e-9)
    low, high = lower.epsilon_at(1e-6), upper.epsilon_at(1e-6)
    assert exact.delta_at(low) == pytest.approx(1e-6, rel=0.05)
    assert exact.delta_at(high) == pytest.approx(1e-6, rel=0.05)
    assert all(curve.epsilon_at(1e-6) > low for curve in renyi)


ONE_STEP = [
    (POISSON, (1.0, 0.1, 1), 1.0, 0.1),
    (POISSON, (0.4, 1e-3, 1), 2.5, 1e-3),
    (FIXED, (1.5, 100, 10, 1), 2 / 1.5, 0.1),
]


@pytest.mark.parametrize(("kinds", "parameters", "mu", "rate"), ONE_STEP)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0])
def test_one_step_is_the_amplified_gaussian(kinds, parameters, mu, rate, epsilon):
    """Balle, Barthe & Gaboardi (2018), Theorem 9.

    δ(ln(1 + q(e^ε − 1))) = q δ_Gauss(ε), attained.
    """
    exact = rate * GaussianDP(mu).delta_at(epsilon)
    amplified = math.log1p(rate * math.expm1(epsilon))
    low, high = (kind(*parameters).delta_at(amplified) for kind in kinds[:2])
    assert low <= exact <= high
    assert (low, high) == pytest.approx((exact, exact), rel=0.02, abs=1e-13)


@dataclass(frozen=True)
class Family:
    """Bounds of one kind, its parameters, and changes of them that lose less or more."""

    kinds: tuple
    parameters: st.SearchStrategy
    less: object
    more: object


def at_least_one(number):
    return max(1, int(number))


STEPS = st.integers(1, 100)
FAMILIES = {
    "Poisson": Family(
        POISSON,
        st.tuples(st.floats(0.5, 5), st.floats(0.01, 1), STEPS),
        lambda factor, noise, rate, steps: [
            (noise * factor, rate, steps),
            (noise, rate / factor, steps),
        ],
        lambda noise, rate, steps: [(noise, rate, steps + 7), (noise, 1.0, steps)],
    ),
    "fixed size": Family(
        FIXED,
        st.tuples(st.floats(0.6, 6), st.just(200), st.integers(1, 200), STEPS),
        lambda factor, noise, records, batch, steps: [
            (noise * factor, records, batch, steps),
            (noise, records, at_least_one(batch / factor), steps),
        ],
        lambda noise, records, batch, steps: [(noise, records, records, steps)],
    ),
    "shuffled": Family(
        SHUFFLED,
        st.tuples(st.floats(0.4, 5), st.integers(1, 5000), st.integers(1, 20)),
        lambda factor, noise, batches, epochs: [(noise * factor, batches, epochs)],
        lambda noise, batches, epochs: [(noise, batches, epochs + 1)],
    ),
    "node level": Family(
        NODE_LEVEL,
        st.tuples(
            st.floats(2, 20),
            st.just(300),
            st.integers(1, 40),
            st.integers(1, 60),
            st.integers(1, 50),
        ),
        lambda factor, noise, *rest: [(noise * factor, *rest)],
        lambda noise, nodes, reached, batch, steps: [
            (noise, nodes, reached + 1, batch, steps),
            (noise, nodes, reached, batch + 1, steps),
            (noise, nodes, reached, batch, steps + 1),
        ],
    ),
}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@settings(max_examples=6)
@given(
    data=st.data(), delta=st.sampled_from([1e-3, 1e-5, 1e-8]), factor=st.floats(1.01, 2)
)
def test_bounds_do_not_cross_are_monotone_and_have_inverses(
    family, data, delta, factor
):
    parameters = data.draw(family.parameters)
    curves = [kind(*parameters) for kind in family.kinds]
    epsilons = [curve.epsilon_at(delta) for curve in curves]
    lower, *uppers = epsilons
    assert 0 <= lower <= min(uppers) * (1 + 1e-9)
    lower_kind, upper_kind = family.kinds[:2]
    for changed in family.less(factor, *parameters):
        assert lower_kind(*changed).epsilon_at(delta) <= uppers[0]
    for changed in family.more(*parameters):
        assert upper_kind(*changed).epsilon_at(delta) >= lower
    for curve, epsilon in zip(curves, epsilons, strict=True):
        assert curve.epsilon_at(min(1.0, delta * factor)) <= epsilon
        # A lower bound of a tiny δ may be 0.
        assert curve.delta_at(1.0) >= curve.delta_at(factor) - 1e-30
        if epsilon > 0:
            assert curve.delta_at(epsilon) == pytest.approx(delta, rel=3e-3)
