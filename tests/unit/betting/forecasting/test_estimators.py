"""Estimators: what each makes of counts, against other people's libraries and brute force."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import beta, norm
from sklearn.linear_model import LogisticRegression
from statsmodels.stats.proportion import proportion_confint

from auditdp.betting.forecasters.estimators import (
    ESTIMATORS,
    CellCounts,
    Shaped,
    log_odds_of,
)
from auditdp.betting.forecasters.partitions import Names, Partition

BY_NAME = {estimator.name: estimator for estimator in ESTIMATORS}
SHAPED = [name for name, estimator in BY_NAME.items() if isinstance(estimator, Shaped)]
few = st.integers(0, 50)


def made(values, seed, most=40):
    """Random counts in the cells of values."""
    partition = Partition(np.asarray(values, dtype=float))
    return partition, np.random.default_rng(seed).integers(
        0, most, (2, partition.size)
    ).astype(float)


def one_cell(ones, zeros):
    """What every estimator makes of the counts of a line that is one cell."""
    odds = log_odds_of(
        CellCounts([Partition(np.array([0.0]))], np.array([[zeros], [ones]], float))
    )
    return dict(zip(BY_NAME, odds[:, 0].tolist(), strict=True))


def test_every_estimator_has_a_name_of_its_own_and_a_positive_weight():
    assert len(BY_NAME) == len(ESTIMATORS)
    assert all(estimator.weight > 0 for estimator in ESTIMATORS)


@given(few, few)
def test_plain_odds_are_those_of_the_mean_under_jeffreys_prior(ones, zeros):
    assert one_cell(ones, zeros)["cells"] == pytest.approx(
        logit(beta(ones + 0.5, zeros + 0.5).mean())
    )


@given(few, few)
def test_cautious_odds_are_the_end_of_an_interval_of_wilson(ones, zeros):
    """Of the share of ones, with half a call of either coin added: the end that is nearer to one half, or one half."""
    low, high = proportion_confint(
        ones + 0.5, ones + zeros + 1, alpha=2 * norm.sf(1), method="wilson"
    )
    assert one_cell(ones, zeros)["cells, cautious"] == pytest.approx(
        logit(np.clip(0.5, low, high)), abs=1e-9
    )


@given(few, few)
def test_the_surer_an_estimate_must_be_the_nearer_to_0_it_is_and_coins_can_be_exchanged(
    ones, zeros
):
    odds, swapped = one_cell(ones, zeros), one_cell(zeros, ones)
    assert 0 <= abs(odds["cells, cautious"]) <= abs(odds["cells"]) + 1e-12
    if ones and zeros:
        assert odds["cells, certain"] == 0
    else:
        assert abs(odds["cells"]) <= abs(odds["cells, certain"])
    for name in BY_NAME:
        assert swapped[name] == pytest.approx(-odds[name], abs=1e-9)
        assert odds[name] * (ones - zeros) >= 0


def test_mirrored_odds_are_plain_odds_of_the_outputs_and_their_mirror_images():
    partition, counts = made([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 3)
    both = counts + counts[::-1, ::-1]  # the coin and the place exchanged
    odds = BY_NAME["quarters, mirrored"].log_odds(CellCounts([partition], counts))
    for cell, part in enumerate(partition.quarters):
        zeros, ones = (side[partition.quarters == part].sum() for side in both)
        assert odds[cell] == pytest.approx(one_cell(ones, zeros)["cells"])
    assert odds == pytest.approx(-odds[::-1])


def test_only_estimators_that_see_something_in_names_bet_on_them():
    partition = Names(np.arange(6.0))
    counts = np.random.default_rng(1).integers(0, 40, (2, partition.size)).astype(float)
    counts[0] += counts[
        1
    ].sum()  # so that all names together tell something, which a coarser part would bet on
    counts[:, 0] = 0, 5
    odds = log_odds_of(CellCounts([partition], counts))
    assert [len(np.unique(own[:-1])) > 1 for own in odds] == [
        estimator.of_names for estimator in ESTIMATORS
    ]


def test_nested_odds_are_those_of_the_tail_where_a_cell_is_empty_and_its_own_where_it_is_full():
    """The tail of a cell: it, the next one towards the middle, and all further out; here of six cells."""
    partition = Partition(np.arange(6.0))
    tails = [[0, 1], [0, 1, 2], [0, 1, 2, 3], [2, 3, 4, 5], [3, 4, 5], [4, 5]]
    counts = np.random.default_rng(2).integers(1, 9, (2, 6)).astype(float)
    for cell, tail in enumerate(tails):
        empty, full = counts.copy(), counts.copy()
        empty[:, cell] = 0
        full[:, cell] = 1e6, 3e6
        odds = BY_NAME["cells, nested"].log_odds(CellCounts([partition], empty))
        zeros, ones = empty[:, tail].sum(axis=1)
        assert odds[cell] == pytest.approx(math.log((ones + 0.5) / (zeros + 0.5)))
        odds = BY_NAME["cells, nested"].log_odds(CellCounts([partition], full))
        assert odds[cell] == pytest.approx(math.log(3), abs=1e-4)


@pytest.mark.parametrize("name", SHAPED)
def test_shaped_odds_are_a_ridge_logistic_regression_on_the_shapes(name):
    """Of every call, by scikit-learn; many weights are then shrunk, by the same factor for all cells."""
    values = np.random.default_rng(0).normal(size=400)
    partition = Partition(values)
    estimator, rng = BY_NAME[name], np.random.default_rng(1)
    coins = rng.random(400) < expit(0.4 * values)
    cells = partition.index(values)
    counts = np.stack(
        [np.bincount(cells[coins == coin], minlength=partition.size) for coin in (0, 1)]
    ).astype(float)
    shapes = partition.shapes[estimator.shapes]
    model = LogisticRegression(C=1 / estimator.ridge, fit_intercept=False, tol=1e-10)
    expected = model.fit(shapes[:, cells].T, coins).coef_[0] @ shapes
    odds = estimator.log_odds(CellCounts([partition], counts))
    factor = float(odds @ expected / (expected @ expected))
    assert odds == pytest.approx(factor * expected, abs=2e-3)
    assert factor == pytest.approx(1, abs=2e-3) if len(shapes) < 3 else 0.5 < factor < 1


@pytest.mark.parametrize(
    "name", [name for name in SHAPED if BY_NAME[name].shapes == slice(0, 5)]
)
def test_many_weights_that_may_be_chance_are_not_bet_on(name):
    partition = Partition(np.random.default_rng(0).normal(size=400))
    counts = np.tile(
        partition.count(np.random.default_rng(1).normal(size=400)), (2, 1)
    ).astype(float)
    counts[0, ::2] += 1  # less than a standard error
    assert not BY_NAME[name].log_odds(CellCounts([partition], counts)).any()


@pytest.mark.parametrize(
    "name", [name for name in SHAPED if BY_NAME[name].shapes == slice(0, 5)]
)
def test_curved_odds_find_those_of_extremes_in_few_calls(name):
    """Values are uniform under coin 0 and the smaller of two such under coin 1, whose density is 2(1-v).

    Then v is below the share 2v - v² of both coins' values with log-odds ln 2(1-v): not among the shapes, but near. Alpha:
    the largest error below, of 8,000 calls and a fixed seed, is four times the standard error at each of the nine points.
    """
    rng = np.random.default_rng(5)
    zeros, ones = rng.random(4000), rng.random((4000, 2)).min(axis=1)
    partition = Partition(np.concatenate([zeros, ones]))
    counts = CellCounts(
        [partition],
        np.stack([partition.count(zeros), partition.count(ones)]).astype(float),
    )
    points = np.arange(1, 10) / 10
    assert BY_NAME[name].log_odds(counts)[partition.index(points)] == pytest.approx(
        np.log(2 * (1 - points)), abs=0.2
    )


def test_several_partitions_are_estimated_as_each_by_itself():
    """Nobody's counts leak into another's odds."""
    random = np.random.default_rng(1)
    values = [
        random.normal(size=500),
        random.integers(0, 5, 500),
        random.normal(size=90) ** 3,
    ]
    partitions, counts = zip(
        *(made(v, seed) for seed, v in enumerate(values)), strict=True
    )
    partitions, counts = (
        [*partitions, Names(np.array([1.0, 2.0]))],
        [*counts, np.array([[1.0, 2, 3], [4, 5, 6]])],
    )
    together = CellCounts(partitions, np.hstack(counts))
    odds = log_odds_of(together)
    for own, partition, cells in zip(counts, partitions, together.slices, strict=True):
        assert odds[:, cells] == pytest.approx(
            log_odds_of(CellCounts([partition], own)), abs=1e-9
        )


def test_before_anything_is_counted_no_odds_are_bet_on():
    partition = Partition(np.arange(5.0))
    assert not log_odds_of(CellCounts([partition], np.zeros((2, partition.size)))).any()


def test_nothing_is_bet_on_outputs_that_have_no_name():
    odds = log_odds_of(
        CellCounts(
            [Names(np.array([1.0, 2.0, 2.0]))],
            np.array([[0.0, 9.0, 50.0], [9.0, 0.0, 0.0]]),
        )
    )
    assert not odds[:, -1].any()
    assert odds[[*BY_NAME].index("cells"), :2].tolist() == pytest.approx(
        [math.log(19), -math.log(19)]
    )


@pytest.mark.dear
@pytest.mark.statistical
@pytest.mark.parametrize("name", SHAPED)
def test_plausible_sums_of_shapes_are_drawn_around_what_was_fitted(name):
    """Means of 4,000 draws of the log-odds of two partitions, within six standard errors: at most 2e-9 each by normality.

    What many weights are shrunk to is the middle of their draws, too.
    """
    rng = np.random.default_rng(4)
    partitions = [Partition(rng.normal(size=1000)) for _ in range(2)]
    counts = np.hstack(
        [
            np.stack([p.count(rng.normal(loc, size=500)) for loc in (0.0, 0.3)])
            for p in partitions
        ]
    )
    cell_counts = CellCounts(partitions, counts.astype(float))
    odds = BY_NAME[name].log_odds(cell_counts)
    for k, cells in enumerate(cell_counts.slices):
        draws = np.array(
            [
                logit(BY_NAME[name].plausible(cell_counts, k, rng)[0])
                for _ in range(4_000)
            ]
        )
        assert (
            abs(draws.mean(axis=0) - odds[cells])
            <= 6 * draws.std(axis=0) / math.sqrt(4_000) + 1e-3
        ).all()


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in SHAPED])
def test_plausible_probabilities_are_drawn_from_the_posterior_of_the_parts(name):
    """Means of 4,000 draws of Beta(n₁ + ½, n₀ + ½), within six standard errors: at most 2e-9 each by normality."""
    partition, counts = made(np.random.default_rng(0).normal(size=300), 3)
    cell_counts, rng = CellCounts([partition], counts), np.random.default_rng(0)
    group = np.arange(partition.size)
    if name.startswith("quarters"):
        group = partition.quarters
    zeros, ones = (
        np.array([side[group == part].sum() for part in range(group[-1] + 1)])
        for side in counts
    )
    draws, shares = zip(
        *(BY_NAME[name].plausible(cell_counts, 0, rng) for _ in range(4_000)),
        strict=True,
    )
    law = beta(ones + 0.5, zeros + 0.5)
    assert (
        abs(np.mean(draws, axis=0) - law.mean()) <= 6 * law.std() / math.sqrt(4_000)
    ).all()
    assert shares[0] == pytest.approx((ones + zeros) / counts.sum())
