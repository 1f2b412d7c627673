"""Dominating pairs: known atoms, the envelope computed naively, and Gaussian curves that lose next to nothing."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import brentq

from auditdp.claims.dominating import DominatingPair, lines
from auditdp.claims.statements import GaussianDP
from auditdp.errors import ClaimError

curve_points = st.lists(
    st.tuples(st.floats(0.0, 12.0), st.floats(0.0, 0.95)), min_size=1, max_size=7
)


def pair_of(*statements):
    return DominatingPair.of(np.array(statements, dtype=float))


def envelope(statements, a):
    """T(a) by its definition: the smallest of 1 and of both lines of every statement."""
    values = [np.ones_like(a)]
    for epsilon, delta in statements:
        slope = math.exp(epsilon)
        values += [delta + slope * a, 1 - np.maximum(1 - delta - a, 0.0) / slope]
    return np.min(values, axis=0)


def roc(pair, a):
    """The largest probability under q of an event of probability a under p: straight between sums of atoms."""
    return np.interp(
        a, np.append(0.0, np.cumsum(pair.p)), np.append(0.0, np.cumsum(pair.q))
    )


def test_pure_claims_have_randomised_response():
    pair = pair_of((math.log(3), 0.0))
    assert pair.p == pytest.approx([0.25, 0.75], abs=1e-15)
    assert pair.q == pytest.approx([0.75, 0.25], abs=1e-15)
    assert pair.log_odds == pytest.approx([math.log(3), -math.log(3)])


def test_approximate_claims_have_the_four_outputs_of_kairouz_oh_and_viswanath():
    pair = pair_of((math.log(3), 0.2))
    assert pair.p == pytest.approx([0.0, 0.2, 0.6, 0.2], abs=1e-15)
    assert pair.q == pytest.approx([0.2, 0.6, 0.2, 0.0], abs=1e-15)
    assert pair.log_odds.tolist()[::3] == [math.inf, -math.inf]


def test_two_statements_have_the_segments_of_their_envelope():
    # T(a) = .1 + 4a up to .1, then .3 + 2a up to the axis a + b = 1, at .7/3; from there on its mirror image.
    pair = pair_of((math.log(4), 0.1), (math.log(2), 0.3))
    axis = 0.7 / 3
    half_p, half_q = [0.0, 0.1, axis - 0.1], [0.1, 0.4, 2 * (axis - 0.1)]
    assert pair.p == pytest.approx(half_p + half_q[::-1], abs=1e-15)
    assert pair.q == pytest.approx(half_q + half_p[::-1], abs=1e-15)


def test_total_variation_alone():
    assert pair_of((0.0, 0.25)).p == pytest.approx([0.0, 0.375, 0.375, 0.25], abs=1e-15)


@pytest.mark.parametrize(
    "more",
    [
        [(2.0, 0.05)],
        [(2.0, 0.01)],
        [(0.5, 0.9)],
        [(1.0, 0.02)],
        [(0.0, 1.0)],
        [(1.0, 0.01)] * 3,
    ],
    ids=[
        "larger epsilon",
        "larger epsilon, same delta",
        "implied below",
        "implied at it",
        "nothing",
        "again",
    ],
)
def test_implied_statements_change_nothing_in_whatever_order(more):
    plain = pair_of((1.0, 0.01))
    for given_so in ([(1.0, 0.01), *more], [*more, (1.0, 0.01)]):
        pair = pair_of(*given_so)
        assert pair.p == pytest.approx(plain.p, abs=1e-15)
        assert pair.q == pytest.approx(plain.q, abs=1e-15)


def test_statements_that_promise_nothing_reveal_everything():
    for statements in ([(1.0, 1.0)], [(1000.0, 0.5)], [(0.0, 1.0), (2000.0, 0.0)]):
        pair = pair_of(*statements)
        assert (pair.p.tolist(), pair.q.tolist()) == ([0.0, 1.0], [1.0, 0.0])


@given(curve_points)
@example([(0.0, 0.3), (1.0, 0.3), (1.0, 0.2), (3.0, 0.0)])
@example([(12.0, 0.0), (0.0, 0.95)])
def test_the_roc_is_the_lower_envelope(statements):
    pair = pair_of(*statements)
    grid = np.unique(
        np.concatenate(
            [
                np.linspace(0, 1, 201),
                np.logspace(-9, 0, 100),
                np.cumsum(pair.p).clip(0, 1),
            ]
        )
    )
    assert pair.p.sum() == pytest.approx(1.0, abs=1e-12)
    assert pair.q.sum() == pytest.approx(1.0, abs=1e-12)
    assert pair.p == pytest.approx(pair.q[::-1], abs=1e-15)
    assert (np.diff(pair.log_odds) <= 1e-9).all()
    # np.interp takes the last value at a = 0, as the envelope does.
    assert roc(pair, grid) == pytest.approx(
        np.minimum(envelope(statements, grid), 1.0), abs=1e-9
    )


@given(curve_points)
def test_the_pair_satisfies_every_statement_and_attains_those_that_no_others_imply(
    statements,
):
    pair = pair_of(*statements)
    for epsilon, delta in statements:
        assert pair.hockey_stick(epsilon) <= delta + 1e-12 * math.exp(epsilon)
    # What one statement promises alone, several promise as well.
    for statement in statements:
        for epsilon in (0.0, 0.3, 1.0, 4.0):
            alone = pair_of(statement).hockey_stick(epsilon)
            assert pair.hockey_stick(epsilon) <= alone + 1e-12 * math.exp(epsilon)


@given(curve_points, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_lines_are_the_envelope_too(statements, a, b):
    bounds = lines(np.array(statements))
    room = bounds[:, 1] * a + bounds[:, 2] - bounds[:, 0] * b
    assert (room >= -1e-12).all() == (
        b <= envelope_unclipped(statements, a) + 1e-12
    ) or abs(room.min()) < 1e-9
    slopes = bounds[:, 1] / bounds[:, 0]
    assert (np.diff(slopes) >= 0).all()


def envelope_unclipped(statements, a):
    return min(
        min(delta + math.exp(epsilon) * a, 1 - (1 - delta - a) * math.exp(-epsilon))
        for epsilon, delta in statements
    )


def test_lines_stay_finite_where_e_to_the_epsilon_does_not():
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(lines(np.array([[0.0, 0.5], [800.0, 0.1]]))).all()


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 3.0, 8.0])
def test_little_of_a_gaussian_curve_is_lost(mu):
    """Between two statements the pair allows what a mu less than .1 % larger does."""
    pair = DominatingPair.of(GaussianDP(mu).statements())
    for epsilon in mu * np.arange(0.025, mu / 2 + 3, 0.1):
        allowed = pair.hockey_stick(epsilon)
        equal = brentq(
            lambda m, e=epsilon, d=allowed: GaussianDP(m).delta_at(e) - d,
            0.9 * mu,
            1.1 * mu,
            xtol=1e-9 * mu,
        )
        assert equal < 1.001 * mu


@pytest.mark.parametrize("mu", [33.0, 64.0, 200.0])
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
        np.array([1.0, 0.1]),
        [[-0.1, 0.1]],
        [[1.0, -0.1]],
        [[1.0, 1.1]],
        [[math.inf, 0.1]],
        [[1.0, math.nan]],
    ],
    ids=str,
)
def test_bad_statements_are_refused_and_shown(bad):
    with pytest.raises(ClaimError, match="expected statements") as caught:
        DominatingPair.of(np.array(bad))
    assert str(np.array(bad).tolist())[:20] in str(caught.value)
