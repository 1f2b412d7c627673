"""Dominating pairs: known atoms, the naive envelope, and Gaussian curves."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from auditdp import GaussianDP
from auditdp.claims.dominating import DominatingPair, lines
from auditdp.errors import ClaimError

curve_points = st.lists(
    st.tuples(st.floats(0.0, 12.0), st.floats(0.0, 0.95)), min_size=1, max_size=7
)


def pair_of(*statements):
    return DominatingPair.of(np.array(statements, dtype=float))


def envelope(statements, a):
    """The smallest of both lines of every statement, by its definition."""
    values = []
    for epsilon, delta in statements:
        slope = math.exp(epsilon)
        values += [delta + slope * a, 1 - (1 - delta - a) / slope]
    return np.min(values, axis=0)


def roc(pair, a):
    """The largest probability under q of an event of probability a under p.

    It is linear between sums of atoms.
    """
    p = np.append(0.0, np.cumsum(pair.p))
    q = np.append(0.0, np.cumsum(pair.q))
    return np.interp(a, p, q)


LOG3 = math.log(3)


@pytest.mark.parametrize(
    ("statements", "half_p", "half_q"),
    [
        # Randomised response.
        ([(LOG3, 0.0)], [0.25], [0.75]),
        # The four outputs of Kairouz, Oh & Viswanath.
        ([(LOG3, 0.2)], [0.0, 0.2], [0.2, 0.6]),
        # Total variation alone.
        ([(0.0, 0.25)], [0.0, 0.375], [0.25, 0.375]),
        # Statements that promise nothing.
        ([(1.0, 1.0)], [0.0], [1.0]),
        ([(1000.0, 0.5)], [0.0], [1.0]),
        ([(0.0, 1.0), (2000.0, 0.0)], [0.0], [1.0]),
    ],
)
def test_known_atoms(statements, half_p, half_q):
    """The second half is the mirror image of the first."""
    pair = pair_of(*statements)
    assert pair.p == pytest.approx(half_p + half_q[::-1], abs=1e-15)
    assert pair.q == pytest.approx(half_q + half_p[::-1], abs=1e-15)
    with np.errstate(divide="ignore"):
        assert pair.log_odds == pytest.approx(np.log(pair.q) - np.log(pair.p))


@given(curve_points)
@example([(0.0, 0.3), (1.0, 0.3), (1.0, 0.2), (3.0, 0.0)])
@example([(12.0, 0.0), (0.0, 0.95)])
def test_the_roc_is_the_lower_envelope(statements):
    pair = pair_of(*statements)
    sums = np.cumsum(pair.p).clip(0, 1)
    grid = np.concatenate([np.linspace(0, 1, 201), np.logspace(-9, 0, 100), sums])

    assert pair.p.sum() == pytest.approx(1.0, abs=1e-12)
    assert pair.p == pytest.approx(pair.q[::-1], abs=1e-15)
    assert (np.diff(pair.log_odds) <= 1e-9).all()

    expected = np.clip(envelope(statements, grid), 0.0, 1.0)
    assert roc(pair, grid) == pytest.approx(expected, abs=1e-9)


@given(curve_points, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_lines_are_the_envelope(statements, a, b):
    bounds = lines(np.array(statements))
    room = bounds @ [-b, a, 1.0]
    below = b <= envelope(statements, a) + 1e-12
    assert (room >= -1e-12).all() == below or abs(room.min()) < 1e-9
    assert (np.diff(bounds[:, 1] / bounds[:, 0]) >= 0).all()


def test_lines_stay_finite_where_e_to_the_epsilon_does_not():
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(lines(np.array([[0.0, 0.5], [800.0, 0.1]]))).all()


@pytest.mark.parametrize("mu", [0.01, 1.0, 8.0])
def test_little_of_a_gaussian_curve_is_lost(mu):
    """Between two statements the pair allows less than a mu .1 % larger does."""
    pair = DominatingPair.of(GaussianDP(mu).statements())
    larger = GaussianDP(1.001 * mu)
    for epsilon in mu * np.arange(0.025, mu / 2 + 3, 0.1):
        assert pair.hockey_stick(epsilon) < larger.delta_at(epsilon)


@pytest.mark.parametrize("mu", [33.0, 200.0])
def test_gaussian_levels_beyond_all_doubles_reveal_more_and_not_less(mu):
    with np.errstate(all="raise", under="ignore"):
        pair = DominatingPair.of(GaussianDP(mu).statements())
    assert pair.p.sum() == pytest.approx(1.0, abs=1e-12)
    for epsilon in (0.0, 10.0, 500.0):
        assert pair.hockey_stick(epsilon) >= GaussianDP(mu).delta_at(epsilon) - 1e-12


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((0, 2)),
        [1.0, 0.1],
        [[-0.1, 0.1]],
        [[1.0, -0.1]],
        [[1.0, 1.1]],
        [[math.inf, 0.1]],
        [[1.0, math.nan]],
    ],
)
def test_bad_statements_are_refused_and_shown(bad):
    with pytest.raises(ClaimError, match="expected statements") as caught:
        DominatingPair.of(np.array(bad))
    assert str(np.array(bad).tolist())[:20] in str(caught.value)
