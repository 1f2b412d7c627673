"""Correlated noise: the sensitivity against all uses of a record, and the Gaussian curve."""

from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest

from auditdp.accountants.base import AccountantError
from auditdp.accountants.description import within
from auditdp.accountants.gaussian import GaussianCurve
from auditdp.accountants.matrix import MatrixCurve, MatrixNoise, square_root
from auditdp.accountants.zcdp import ZCDP


def every_use(coefficients, steps, separation, participations):
    """The largest ‖C u‖², u having ±1 in at most so many steps that are so far apart: tried one by one."""
    strategy = sum(np.diag(np.full(steps - lag, c), -lag) for lag, c in enumerate(coefficients[:steps]))
    return max(
        np.sum((strategy[:, list(used)] @ np.array(signs)) ** 2)
        for count in range(1, participations + 1)
        for used in combinations(range(steps), count)
        if all(later - former >= separation for former, later in pairwise(used))
        for signs in product((1, -1), repeat=count)
    )


@pytest.mark.parametrize(
    ("coefficients", "steps", "separation", "participations"),
    [
        (square_root(7), 7, 2, 3),  # falling, and longer than the separation
        ((1.0, 1.0, 1.0), 7, 1, 3),
        ((1.0, -0.9), 6, 2, 3),  # banded, of either sign
        ((0.5, 2.0, -1.0), 7, 3, 3),
        ((1.0, -2.0, 3.0), 5, 2, 1),
        ((1.0, 0.25, 0.125), 2, 5, 4),
    ],
)
def test_the_sensitivity_is_that_of_the_worst_use(coefficients, steps, separation, participations):
    found = MatrixNoise(1.0, coefficients, steps, separation, participations).squared_sensitivity
    assert float(found) == pytest.approx(every_use(coefficients, steps, separation, participations), rel=1e-12)


def test_the_curve_is_gaussian():
    """Independent noise, and a release of all prefix sums by noise on their increments."""
    assert MatrixCurve(2.0, (1.0,), 9, 1, 9).epsilon_at(1e-5) == pytest.approx(
        GaussianCurve(2.0, 1.0, 9).epsilon_at(1e-5)
    )
    correlated = MatrixCurve(2.0, (3.0, 4.0), 20, 2, 4)
    assert (correlated.squared_sensitivity, correlated.zcdp) == (100, Fraction(25, 2))
    assert correlated.delta_at(1.0) == pytest.approx(GaussianCurve(0.2).delta_at(1.0), rel=1e-12)
    assert within(correlated.describes, ZCDP(12.5))
    assert not within(correlated.describes, ZCDP(12.4))


def test_the_square_root_is_one():
    """Its square has ones on and below the diagonal: c ∗ c = 1."""
    assert np.convolve(square_root(9), square_root(9))[:9] == pytest.approx(np.ones(9))


def test_parameters_are_checked():
    for wrong in ((1.0, 2.0), (1.0, -0.5)):
        with pytest.raises(AccountantError, match="of others no exact sensitivity is known"):
            MatrixNoise(1.0, wrong, 5, 1, 2)
    with pytest.raises(AccountantError, match="the first > 0"):
        MatrixNoise(1.0, (), 5, 1)
    with pytest.raises(AccountantError, match="got 10,000,000,001"):
        MatrixNoise(1.0, (1.0,), 10**10, 10**7)
    with pytest.raises(AccountantError, match="got 1,000,001,000,000"):
        MatrixNoise(1.0, (1.0,) * 10**6, 10**6, 1, 10**6)
    with pytest.raises(AccountantError, match="bands=1,000,000,000"):
        square_root(10**9)
