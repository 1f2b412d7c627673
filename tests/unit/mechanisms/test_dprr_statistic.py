import numpy as np
import pytest

from mechanisms.edges import DPRR
from mechanisms.edges.dprr_statistic import DPRRStatistic


@pytest.mark.parametrize("degree", [0, 2, 4])
def test_the_statistic_has_the_law_of_the_whole_output(degree):
    """Adding the rigorous probabilities of all outputs with one value of the statistic gives its probability."""
    mechanism = DPRR(0.4, 0.9)
    statistic = DPRRStatistic(mechanism, 5, degree)
    for data in (statistic.pair.data, statistic.pair.neighbour):
        whole = mechanism.distribution(data)
        reduced = statistic.distribution(data)
        values = statistic.reduce(whole.outcomes)
        for outcome, probability in zip(reduced.outcomes, reduced.floats, strict=True):
            expected = whole.floats[(values == outcome).all(axis=1)].sum()
            assert np.isclose(probability, expected, rtol=1e-9)


def test_the_statistic_keeps_the_privacy_loss():
    """Sufficient: the largest ratio of the statistic's probabilities is that of the outputs themselves."""
    statistic = DPRRStatistic(DPRR(0.4, 0.9), 5, 1)
    high, low = (
        statistic.mechanism.distribution(x)
        for x in (statistic.pair.data, statistic.pair.neighbour)
    )
    full = np.abs(np.log(high.floats / low.floats)).max()
    reduced_high, reduced_low = (
        statistic.distribution(x)
        for x in (statistic.pair.data, statistic.pair.neighbour)
    )
    assert np.isclose(
        np.abs(np.log(reduced_high.floats / reduced_low.floats)).max(), full, rtol=1e-8
    )


def test_the_pair_differs_in_its_own_bit_only():
    statistic = DPRRStatistic(DPRR(0.4, 0.9), 50, 3)
    assert np.flatnonzero(statistic.pair.data != statistic.pair.neighbour).tolist() == [
        0
    ]
    assert statistic.pair.neighbour.sum() == 3
    assert statistic(statistic.pair.data, 7, rng=np.random.default_rng(0)).shape == (
        7,
        3,
    )
