"""Estimators, against other people's libraries and brute force."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy.special import expit, logit
from scipy.stats import norm
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
CURVED = [name for name in SHAPED if BY_NAME[name].shapes == slice(0, 5)]
few = st.integers(0, 50)


def normal(size, seed=0):
    return default_rng(seed).normal(size=size)


def counted(partition, zeros, ones):
    """Return the counts of two lists of values."""
    counts = np.stack([partition.count(zeros), partition.count(ones)])
    return CellCounts([partition], counts.astype(float))


def odds_of(name, partition, counts):
    return BY_NAME[name].log_odds(CellCounts([partition], counts))


def random_counts(partition, seed):
    random = default_rng(seed)
    return random.integers(0, 40, (2, partition.size)).astype(float)


def one_cell(ones, zeros):
    """Return the log-odds of every estimator for a line that is one cell."""
    counts = np.array([[zeros], [ones]], float)
    odds = log_odds_of(CellCounts([Partition(np.zeros(1))], counts))
    return dict(zip(BY_NAME, odds[:, 0].tolist(), strict=True))


@given(few, few)
def test_odds_of_one_cell_are_those_of_known_estimates(ones, zeros):
    """The mean under Jeffreys' prior, and Wilson's interval with half a call added.

    Of the interval, the end that is nearer to one half counts, or one half.
    """
    odds = one_cell(ones, zeros)
    swapped = one_cell(zeros, ones)
    plain = odds["cells"]
    cautious = odds["cells, cautious"]
    mean = (ones + 0.5) / (ones + zeros + 1)
    assert plain == pytest.approx(logit(mean))
    low, high = proportion_confint(
        ones + 0.5, ones + zeros + 1, alpha=2 * norm.sf(1), method="wilson"
    )
    assert cautious == pytest.approx(logit(np.clip(0.5, low, high)), abs=1e-9)
    if ones and zeros:
        assert odds["cells, certain"] == 0
    else:
        assert abs(plain) <= abs(odds["cells, certain"])
    for name in BY_NAME:
        assert swapped[name] == pytest.approx(-odds[name], abs=1e-9)
        assert odds[name] * (ones - zeros) >= 0


def test_mirrored_odds_count_the_mirror_images_of_the_outputs():
    partition = Partition(np.arange(8.0))
    counts = random_counts(partition, 3)
    both = counts + counts[::-1, ::-1]  # the coin and the place exchanged
    odds = odds_of("quarters, mirrored", partition, counts)
    for cell, part in enumerate(partition.quarters):
        zeros, ones = both[:, partition.quarters == part].sum(axis=1)
        assert odds[cell] == pytest.approx(one_cell(ones, zeros)["cells"])
    assert odds == pytest.approx(-odds[::-1])


def test_only_estimators_of_names_bet_on_names():
    partition = Names(np.arange(6.0))
    counts = random_counts(partition, 1)
    # All names together differ, so that a coarser part would be bet on.
    counts[0] += counts[1].sum()
    counts[:, 0] = 0, 5
    odds = log_odds_of(CellCounts([partition], counts))
    bets = [len(np.unique(own[:-1])) > 1 for own in odds]
    assert bets == [estimator.of_names for estimator in ESTIMATORS]
    assert not odds[:, -1].any(), "outputs without a name"


def test_nested_odds_go_from_those_of_the_tail_to_those_of_a_full_cell():
    """The tail of a cell: it, the next one inwards, and all further out."""
    partition = Partition(np.arange(6.0))
    for cell in range(6):
        tail = slice(cell + 2) if cell < 3 else slice(cell - 1, None)
        counts = random_counts(partition, 2) + 1
        counts[:, cell] = 0
        zeros, ones = counts[:, tail].sum(axis=1) + 0.5
        odds = odds_of("cells, nested", partition, counts)[cell]
        assert odds == pytest.approx(log(ones / zeros))
        counts[:, cell] = 1e6, 3e6
        odds = odds_of("cells, nested", partition, counts)[cell]
        assert odds == pytest.approx(log(3), abs=1e-4)


@pytest.mark.parametrize("name", SHAPED)
def test_shaped_odds_are_a_ridge_logistic_regression_on_the_shapes(name):
    """Of every call, by scikit-learn; many weights are shrunk by a common factor."""
    values = normal(400)
    rng = default_rng(1)
    partition = Partition(values)
    estimator = BY_NAME[name]
    coins = rng.random(400) < expit(0.4 * values)
    shapes = partition.shapes[estimator.shapes]
    model = LogisticRegression(C=1 / estimator.ridge, fit_intercept=False, tol=1e-10)
    model.fit(shapes[:, partition.index(values)].T, coins)
    expected = model.coef_[0] @ shapes
    odds = estimator.log_odds(counted(partition, values[~coins], values[coins]))
    shrunk = odds @ expected / (expected @ expected)
    assert odds == pytest.approx(shrunk * expected, abs=2e-3)
    least = 0.998 if len(shapes) < 3 else 0.5
    assert least < shrunk < 1.002


@pytest.mark.parametrize("name", CURVED)
def test_many_weights_that_may_be_chance_are_not_bet_on(name):
    partition = Partition(normal(400))
    values = normal(400, seed=1)
    counts = counted(partition, values, values).counts
    counts[0, ::2] += 1  # less than a standard error
    assert not odds_of(name, partition, counts).any()


def test_several_partitions_are_estimated_as_each_by_itself():
    partitions = [
        Partition(normal(500)),
        Partition(np.arange(5.0)),
        Names(np.array([1.0, 2.0])),
        Partition(normal(90) ** 3),
    ]
    counts = [random_counts(each, seed) for seed, each in enumerate(partitions)]
    counts[1][:] = 0
    together = CellCounts(partitions, np.hstack(counts))
    odds = log_odds_of(together)
    for own, partition, cells in zip(counts, partitions, together.slices, strict=True):
        alone = log_odds_of(CellCounts([partition], own))
        assert odds[:, cells] == pytest.approx(alone, abs=1e-9)
        assert own.any() == alone.any()


@pytest.mark.statistical
@pytest.mark.parametrize("name", BY_NAME)
def test_plausible_probabilities_are_drawn_around_the_estimated_ones(name):
    """Means of 2,000 draws within six standard errors: 2e-9 each by normality.

    Probabilities of parts are Beta(n₁ + ½, n₀ + ½). Log-odds of shapes are drawn around
    the fitted ones; weights that are shrunk are the middle of their draws, too.
    """
    rng = default_rng(4)
    partitions = [Partition(rng.normal(size=1000)) for _ in range(2)]
    counts = []
    for each in partitions:
        sides = [rng.normal(centre, size=500) for centre in (0.0, 0.3)]
        counts.append(counted(each, *sides).counts)
    cell_counts = CellCounts(partitions, np.hstack(counts))
    odds = BY_NAME[name].log_odds(cell_counts)
    for k, cells in enumerate(cell_counts.slices):
        draws = []
        for _ in range(2_000):
            draw, shares = BY_NAME[name].plausible(cell_counts, k, rng)
            draws.append(draw)
        if name in SHAPED:
            draws = logit(draws)
            expected = odds[cells]
        else:
            group = np.arange(partitions[k].size)
            if name.startswith("quarters"):
                group = partitions[k].quarters
            zeros, ones = (np.bincount(group, side) for side in counts[k])
            expected = (ones + 0.5) / (ones + zeros + 1)
            assert shares == pytest.approx((ones + zeros) / 1_000)
        error = np.abs(np.mean(draws, axis=0) - expected)
        limit = 6 * np.std(draws, axis=0) / sqrt(2_000)
        assert (error <= limit + 1e-3).all()
