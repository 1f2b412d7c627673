"""The samplers of DP-APPR-EM and DP-APPR-GM have the laws that they state.

Each assertion has alpha = 1e-6: the null hypothesis is that the sampler is right, runs are independent, the number of
runs is fixed, and cells of a chi-square test are pooled until 20 are expected in each, where its approximation is good.
"""

import numpy as np
import pytest
from scipy import stats

from mechanisms.pagerank import (
    DPApprEM,
    DPApprEMValues,
    DPApprGM,
    GivenRows,
    NoisyRows,
    PublicRows,
    SampledRows,
)
from tests.statistical.goodness import ALPHA, check, goodness_p

pytestmark = pytest.mark.statistical
RUNS = 60_000
CLIP = 0.001
STAR = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]], np.int8)
"""Three nodes with self-loops, and one id whose node is not there."""
ENTRIES = CLIP * np.array([0.0, 1.0, 0.3, 0.7, 5.0])


def rng_of(*key):
    return np.random.default_rng([20241, *key])


SELECTIONS = [
    (DPApprEM(1.0, 2, GivenRows(5)), ENTRIES),
    (DPApprEM(1.0, 3, GivenRows(5), ordered=True), ENTRIES),
    (DPApprEM(0.7, 1, PublicRows(4, (0, 3))), STAR),
    (DPApprEM(0.7, 2, PublicRows(4, (1, 2)), candidates="present"), STAR),
    (DPApprEM(1.5, 2, SampledRows(4, 2)), STAR),
    (DPApprEM(1.5, 1, SampledRows(4, 2, "universe"), candidates="present"), STAR),
    (DPApprEM(1.5, 1, SampledRows(4, 4), candidates="present", ordered=True), STAR),
]


@pytest.mark.parametrize(
    ("mechanism", "data"), SELECTIONS, ids=lambda value: getattr(value, "name", "")
)
def test_selections_have_the_stated_law(mechanism, data):
    check(
        goodness_p(mechanism(data, RUNS, rng=rng_of(1)), mechanism.distribution(data)),
        mechanism.name,
    )


@pytest.mark.parametrize(
    ("sampled", "stated"),
    [
        (DPApprEM(1.1, 2, GivenRows(5)), DPApprEM(1.0, 2, GivenRows(5))),
        (DPApprEM(1.0, 2, GivenRows(5), clip=2 * CLIP), DPApprEM(1.0, 2, GivenRows(5))),
    ],
)
def test_the_goodness_test_sees_a_wrong_law(sampled, stated):
    """The check above can fail: a tenth more budget, or another clip, is seen."""
    assert (
        goodness_p(sampled(ENTRIES, RUNS, rng=rng_of(2)), stated.distribution(ENTRIES))
        < ALPHA
    )


def test_values_are_laplace_around_the_clipped_entries():
    mechanism = DPApprEMValues(DPApprEM(1.0, 2, GivenRows(5)), 0.5)
    outputs = mechanism(ENTRIES, 20_000, rng=rng_of(3))
    centres = np.minimum(ENTRIES, CLIP)[outputs[:, :2].astype(int)]
    noise = (outputs[:, 2:] - centres) / mechanism.scale
    check(
        goodness_p(outputs[:, :2].astype(int), mechanism.select.distribution(ENTRIES)),
        "indices beside values",
    )
    for j in (0, 1):
        check(stats.kstest(noise[:, j], stats.laplace.cdf).pvalue, f"value {j}")
    # Both values are independent of each other and of the indices: by signs and by whether the largest was selected.
    cells = (
        (noise[:, 0] > 0) * 4
        + (noise[:, 1] > 0) * 2
        + (outputs[:, :2] == 4).any(axis=1)
    )
    table = np.bincount(cells, minlength=8).reshape(4, 2)
    check(stats.chi2_contingency(table, correction=False).pvalue, "signs and indices")
    check(stats.chisquare(table.sum(axis=1)).pvalue, "signs")


def test_the_largest_noisy_entries_have_the_stated_density():
    """The probability of each set of indices, by quadrature of the density over the values, against counts."""
    mechanism = DPApprGM(NoisyRows(0.5, 0.1, PublicRows(4)), 1)
    outputs = mechanism(STAR, RUNS, rng=rng_of(4))
    reach = np.linspace(-0.5, 0.5, 20_001)
    law = [
        np.exp(
            mechanism.log_prob(np.column_stack([np.full_like(reach, i), reach]), STAR)
        )
        for i in range(4)
    ]
    shares = np.array([np.trapezoid(density, reach) for density in law])
    assert shares.sum() == pytest.approx(1, abs=1e-6)
    counts = np.bincount(outputs[:, 0].astype(int), minlength=4)
    check(
        stats.chisquare(counts, shares / shares.sum() * RUNS).pvalue,
        "indices of the largest",
    )
    mine = outputs[outputs[:, 0] == 0, 1]
    below = (
        np.concatenate(
            [[0], np.cumsum((law[0][1:] + law[0][:-1]) / 2 * np.diff(reach))]
        )
        / shares[0]
    )
    check(stats.kstest(mine, lambda y: np.interp(y, reach, below)).pvalue, "its value")


def test_noisy_rows_are_gaussian():
    mechanism = NoisyRows(1.0, 1e-3, PublicRows(4, (0, 1)))
    law, outputs = mechanism.distribution(STAR), mechanism(STAR, 20_000, rng=rng_of(5))
    standard = (outputs - law.location) / law.sigma
    for i in range(8):
        check(stats.kstest(standard[:, i], stats.norm.cdf).pvalue, f"entry {i}")
    signs = (standard[:, :6] > 0) @ (1 << np.arange(6))
    check(
        stats.chisquare(np.bincount(signs, minlength=64)).pvalue, "signs of six entries"
    )
