"""The counterexamples to statements about DPAR and what it is compared with, by another route than the audits."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from auditdp.accountants import OptimalComposition, corollary_budget
from mechanisms.pagerank import DPApprEM, GivenRows, row_epsilon
from mechanisms.pagerank.dp_appr_gm import DPApprGM, NoisyRows
from mechanisms.pagerank.rows import PublicRows
from tests.statistical.stated_laws import matrix

GRID = np.linspace(-12, 14, 200_001)
ZERO = stats.norm.pdf(GRID)
MOVED = stats.norm.pdf(GRID, 0.8)


def chi_square(density):
    """The chi-square distance of a density from N(0, 1)."""
    return np.trapezoid((density - ZERO) ** 2 / ZERO, GRID)


TRAINING = {
    "Cora-ML": (2995, 2e-3),
    "MS": (18_333, 8e-4),
    "CS": (18_333, 8e-4),
    "Reddit": (116_713, 1e-4),
    "Physics": (34_493, 1e-4),
}


def test_the_algebra_of_equation_9():
    """And the second moment of (μ_τ − μ₀)/μ₀ under μ₀ = N(0, σ²), by integration."""
    x = np.array([0.01, 0.5, 1.0, 2.0])
    assert (np.exp(x) > x + 1).all()
    assert math.exp(1) > 2.718 > 2
    small = np.linspace(0, 1.25, 100)
    assert (np.expm1(small) <= 2 * small).all()
    assert math.expm1(1.26) > 2 * 1.26
    assert math.sqrt(1 / 1.25) < 0.9
    assert chi_square(MOVED) == pytest.approx(math.expm1(0.64), rel=1e-6)


def test_delta_against_the_number_of_training_nodes():
    """Rounded to three digits."""
    ratios = [delta * nodes * 0.8 for nodes, delta in TRAINING.values()]
    for ratio, printed in zip(ratios, (4.79, 11.7, 11.7, 9.34, 2.76), strict=True):
        unit = 0.01 if printed < 10 else 0.1
        assert ratio == pytest.approx(printed, abs=unit / 2)
    subsample = [delta * nodes * 0.8 * 0.09 for nodes, delta in TRAINING.values()]
    assert [0.8 < x < 1.1 for x in subsample] == [False, True, True, True, False]


def test_sigma_grows_as_the_root_of_the_batch():
    def sigma(batch, nodes=216, epochs=200):
        return batch / nodes * math.sqrt(epochs * nodes / batch)

    assert sigma(120) / sigma(30) == pytest.approx(2)


def test_clipped_entries_lie_within_c2():
    """Power iteration on a star, entries clipped at .001.

    They are between 0 and C₂, both attained with an isolated node.
    """
    walk = np.zeros((5, 5))
    walk[0, 1:4] = 1 / 3
    walk[1:4, 0] = 1
    row = 0.25 * sum(np.linalg.matrix_power(0.75 * walk, k)[0] for k in range(200))
    clipped = np.minimum(row, 0.001)
    assert (clipped.min(), clipped.max()) == (0, 0.001)


def test_the_k_largest_are_a_function_of_the_noisy_row():
    """With the same numbers drawn, the release for K is a part of the one that keeps all entries: σ does not depend on K."""
    noisy = NoisyRows(0.5, 0.1, PublicRows(4))
    for graph in (matrix(4, (0, 1), (0, 2)), matrix(4, (1, 2))):
        whole = noisy(graph, 20, rng=np.random.default_rng(0))
        for k in (1, 2, 3):
            released = DPApprGM(noisy, k)(graph, 20, rng=np.random.default_rng(0))
            largest = np.sort(np.argsort(-whole, axis=1)[:, :k], axis=1)
            values = np.take_along_axis(whole, largest, axis=1)
            assert (released == np.hstack([largest, values])).all()


def test_who_is_in_a_batch_does_not_depend_on_the_weights():
    """M = 6 rows, batches of 2, a node in R = 3 rows.

    The chance is 1 − binom(3, 2)/binom(6, 2) = .8, with weights 1/2 or 1/4 alike.
    """
    for weight in (0.5, 0.25):
        column = np.array([weight] * 3 + [0.0] * 3)
        batches = list(combinations(range(6), 2))
        assert sum(column[list(batch)].any() for batch in batches) / len(
            batches
        ) == pytest.approx(0.8)


def test_twice_as_many_nodes_and_features_cost_four_times_as_much():
    """200 epochs of batches of 60 of the 9 % that are drawn; N + D grows twofold alone."""

    def entries_read(nodes: int, features: int) -> int:
        steps = 200 * math.ceil(0.09 * nodes / 60)
        return steps * 60 * features

    assert entries_read(200_000, 2_000) == 4 * entries_read(100_000, 1_000)


def test_a_reversed_feature_changes_every_gradient_by_2c():
    """Two classes, W = 0: the gradient of cross-entropy is ∓h/2.

    −x for x turns all rows of the node around. Without the node, its own row is gone, and the rows that another feature
    turns around move by 2C as well.
    """
    weights, feature, clip = np.array([0.02, 0.001]), np.array([1e6, 0.0]), 1.0

    def clipped(sums):
        gradients = 0.5 * np.array(sums)
        lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
        return gradients * (clip / np.maximum(lengths, clip))

    with_x, with_minus_x = (
        clipped([weight * sign * feature for weight in weights]) for sign in (1, -1)
    )
    change = np.linalg.norm((with_x - with_minus_x).sum(axis=0))
    assert change == pytest.approx(2 * len(weights) * clip)
    assert weights.sum() * clip < 0.03

    others = -100 * np.eye(2)[0]
    there = clipped([weight * feature + others for weight in weights])
    gone = clipped([others])
    change = np.linalg.norm(there.sum(axis=0) - gone.sum(axis=0))
    assert change == pytest.approx((2 * len(weights) - 1) * clip)


def test_a_sampler_that_fills_places_is_not_stable():
    """D = 1, 100 nodes with out-neighbours v and w.

    w's sum is Binomial(100, 1/2) with v, and 100 without.
    """
    rng = np.random.default_rng(0)
    with_v = rng.integers(2, size=(2000, 100)).sum(axis=1)
    assert abs(100 - with_v.mean() - 50) < 1
    assert (100 - with_v).min() > 10


@pytest.mark.parametrize("epsilon", [0.05, 0.65, 2.0])
def test_the_published_code_has_the_noise_of_corollary_1(epsilon):
    """The code spends half of the sum that Corollary 1 states, at twice the ε, with the same scale of noise."""
    k = 2
    twice = 2 * epsilon
    mean = k * twice * math.expm1(twice) / (math.exp(twice) + 1)
    root = twice * math.sqrt(2 * k * math.log(1 / 1e-4))
    assert min(k * twice, mean + root) == pytest.approx(row_epsilon(epsilon, k, 1e-4))
    scale = 2 * 0.001 / twice
    assert DPApprEM(epsilon, k, GivenRows(3)).sensitivity / epsilon == pytest.approx(
        scale
    )


@pytest.mark.parametrize(
    ("share", "delta", "lost", "holds"),
    [
        (0.5, 0.022, 45.2306, False),
        (0.5, 0.011, 43.8951, True),
        (0.53, 0.011, 47.6318, False),
    ],
)
def test_the_formula_at_a_share_of_eight_of_the_whole(share, delta, lost, holds):
    """DP-APPR's share of ε = 8, if that is of the whole graph: 8/q is that of the subgraph."""
    budget = share * 8 / 0.09
    parts = OptimalComposition(*corollary_budget(budget, delta, 70), 70)
    found = parts.epsilon_at(delta)
    assert found == pytest.approx(lost, abs=1e-4)
    assert (found <= budget) == holds


def test_the_mixture_of_equation_6():
    rate = 60 / 216
    assert np.trapezoid(ZERO + rate * MOVED, GRID) == pytest.approx(1 + rate)
    right = (1 - rate) * ZERO + rate * MOVED
    assert np.trapezoid(right, GRID) == pytest.approx(1)
    expected = rate**2 * math.expm1(0.64)
    assert chi_square(right) == pytest.approx(expected, rel=1e-6)


def test_equation_10_at_the_noise_and_batch_of_the_code():
    """The log moment of (1 − q)N(0, σ²) + qN(1, σ²) against N(0, σ²) as a binomial sum, and one by integration."""
    rate, sigma = 60 / 216, 0.95

    def moment(order, rate=rate):
        k = np.arange(order + 2)
        terms = stats.binom.pmf(k, order + 1, rate)
        return math.log(terms @ np.exp(k * (k - 1) / (2 * sigma**2)))

    zero = stats.norm.pdf(GRID, 0, sigma)
    ratio = ((1 - rate) * zero + rate * stats.norm.pdf(GRID, 1, sigma)) / zero
    by_integration = math.log(np.trapezoid(zero * ratio**3, GRID))
    assert by_integration == pytest.approx(moment(2), rel=1e-6)
    for order, first, exact in (
        (1, 0.171, 0.145),
        (2, 0.513, 0.649),
        (6, 3.591, 14.326),
    ):
        printed = rate**2 * order * (order + 1) / sigma**2
        assert (printed, moment(order)) == pytest.approx((first, exact), abs=5e-4)
    assert rate > 1 / (16 * sigma)
    of_the_code = 60 / 210
    first = 6 * of_the_code**2 / sigma**2
    assert (first, moment(2, of_the_code)) == pytest.approx((0.543, 0.683), abs=5e-4)
