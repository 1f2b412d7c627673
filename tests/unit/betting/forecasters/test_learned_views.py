"""Learners: one number per output, and the right number where it is known."""

import warnings
from math import inf, nan

import numpy as np
import pytest

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.learned_views import (
    Above,
    Additive,
    Interaction,
    Learner,
    Linear,
    Screen,
    Smallest,
    Trees,
    Votes,
    learned_views,
)
from auditdp.betting.forecasters.views import views_of
from auditdp.betting.limits import LIMITS
from tests.unit.betting.toys import OUTPUTS

ROWS = 400


def rng(seed=0):
    return np.random.default_rng(seed)


def coins(size=ROWS):
    return rng(1).integers(0, 2, size, dtype=np.int8)


def parametrize_learners(*learners):
    return pytest.mark.parametrize("learner", learners, ids=lambda each: each.name)


every_learner = parametrize_learners(*learned_views(40))


@pytest.mark.parametrize(
    "kind", [kind for kind in OUTPUTS if OUTPUTS[kind](0, 1, rng()).ndim == 2]
)
def test_outputs_of_any_kind_give_a_number_per_row_and_no_warning(kind):
    rows = OUTPUTS[kind](0, ROWS, rng(2))
    width = rows.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error", category=Warning)
        for learner in learned_views(width):
            view = learner.fit(rows, coins())
            values = view(rows)
            assert values.shape == (ROWS,), learner.name
            assert not np.isnan(values).any(), learner.name
            assert view(rows[:1]).shape == (1,), learner.name


@pytest.mark.parametrize("coin", [0, 1])
@parametrize_learners(Screen(0), Screen(3), Votes())
def test_early_learners_prefer_nothing_with_calls_of_one_coin(learner, coin):
    rows = rng().normal(size=(16, 40))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = learner.fit(rows, np.full(16, coin, np.int8))(rows)
    expected = np.zeros(16)
    if isinstance(learner, Screen):
        expected = rows[:, learner.rank]
    assert values.tolist() == expected.tolist()


@every_learner
def test_two_rows_are_enough_and_a_view_stays_when_its_learner_learns_again(learner):
    rows = rng().normal(size=(ROWS, 40))
    early = learner.fit(rows[:2], np.array([0, 1], np.int8))
    assert np.isfinite(early(rows[:2])).all()
    view = learner.fit(rows, coins())
    before = view(rows).tolist()
    learner.fit(-rows, coins())
    assert view(rows).tolist() == before
    assert learner.fit(rows, coins())(rows).tolist() == before


def test_one_number_needs_no_learner_and_screens_are_for_long_outputs():
    assert learned_views(0) == learned_views(1) == []
    narrow, wide = ([type(each) for each in learned_views(k)] for k in (32, 33))
    assert {Linear, Additive, Trees} <= set(narrow)
    assert narrow.count(Screen) == 0
    assert wide.count(Screen) == 4
    assert [type(each) for each in learned_views(2) if each.heavy] == [Trees]
    names = [each.name for each in learned_views(50)]
    assert len(set(names)) == len(names)


def test_screens_rank_the_coordinates_that_tell_most():
    rows = rng().normal(size=(ROWS, 60))
    rows[:, 17] += 3 * coins()
    rows[:, 5] -= 2 * coins()
    new = rng(5).normal(size=(10, 60))
    assert Screen(0).fit(rows, coins())(new).tolist() == new[:, 17].tolist()
    assert Screen(1).fit(rows, coins())(new).tolist() == new[:, 5].tolist()


@pytest.mark.parametrize("value", [nan, -inf, 1e308, 0.1])
def test_a_constant_coordinate_tells_nothing_however_large(value):
    """Rounding errors of its mean are as large as its spread.

    The sum of 23 equal numbers is not exact.
    """
    rows = 1e-3 * rng().normal(size=(23, 40)) + coins(23)[:, None] * 1e-4
    rows[:, 7] = value
    new = np.zeros((1, 40))
    new[0, 7] = 77.0
    for rank in range(39):
        assert Screen(rank).fit(rows, coins(23))(new) != 77.0


def test_only_telling_coordinates_vote_and_every_vote_is_the_same():
    """Three of twenty columns are 3 larger under coin 1, and one is 1 smaller."""
    rows = rng().normal(size=(ROWS, 20))
    telling = [2, 9, 16, 5]
    rows[:, telling] += coins()[:, None] * [3, 3, 3, -1]
    view = Votes().fit(rows, coins())
    for others in (0.0, 50.0):
        new = np.full((3, 20), others)
        new[:, telling] = [[9, 9, 9, -9], [9, 9, -9, 9], [-9, -9, -9, 9]]
        assert view(new).tolist() == [3, 1, -1]


def test_differences_vote_if_they_tell_more():
    """Noise that all coordinates share hides each of them, and no difference."""
    rows = rng().normal(scale=0.1, size=(ROWS, 6)) + 50 * rng(5).normal(size=(ROWS, 1))
    rows[:, 3] += coins()
    view = Votes().fit(rows, coins())
    apart = np.zeros((1, 6))
    apart[0, 3] = 92
    assert view(apart - 43)[0] > view(7 - apart)[0]
    assert view(np.full((1, 6), 7.0)) == view(np.full((1, 6), 777.0))


@pytest.mark.parametrize("share", [0.3, 0.7])
@parametrize_learners(Votes(), Above("coordinates"))
def test_bits_vote_whichever_value_is_the_commoner(learner, share):
    """The median of bits is the commoner value: nothing is above it if that is 1."""
    rows = rng().random((ROWS, 5)) < share + 0.25 * coins()[:, None]
    view = learner.fit(rows.astype(np.int8), coins())
    ones, zeros = np.eye(2, dtype=np.int8)[:, :1].repeat(5, axis=1)
    assert view(ones[None]) == view(zeros[None]) + 5


@pytest.mark.statistical
@parametrize_learners(Linear(), Additive(), Trees())
def test_a_shift_along_many_coordinates_is_learned(learner):
    """The learned number separates new outputs nearly as the sum does, which is best.

    Shift .6 along 10 coordinates of N(0, 1): the area under the curve is at best
    Φ(.6 √10/√2) = .91. Over 4,000 new rows its standard error is below .01; .75 is 6 of
    them and the cost of learning from 1,000 rows.
    """
    known, new = coins(1_000), coins(4_000)
    rows = rng().normal(size=(1_000, 10)) + 0.6 * known[:, None]
    view = learner.fit(rows, known)
    values = view(rng(4).normal(size=(4_000, 10)) + 0.6 * new[:, None])
    ranks = values.argsort().argsort() + 1.0
    n1, n0 = int(new.sum()), int((1 - new).sum())
    area = (ranks[new == 1].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)
    assert area > 0.75


def test_steps_are_learned_from_a_clipped_ramp():
    """The log-likelihood ratio of Laplace noise goes from -2 to 2 and is flat outside."""
    rows = rng().laplace(size=(20_000, 2))
    rows[:, 0] += 2 * coins(20_000)
    view = Additive().fit(rows, coins(20_000))
    low, high, higher = view(np.array([[-5.0, 0.0], [5.0, 0.0], [50.0, 0.0]]))
    assert high == higher
    assert high - low == pytest.approx(4.0, abs=0.8)


@parametrize_learners(Interaction(), Trees())
def test_the_parity_of_two_bits_is_learned(learner):
    first = rng().integers(0, 2, 2_000, dtype=np.int8)
    rows = np.stack([first, first ^ coins(2_000)], axis=1)
    view = learner.fit(rows, coins(2_000))
    sign = 1 if isinstance(learner, Trees) else -1
    same = sign * view(np.array([[0, 0], [1, 1]], np.int8))
    different = sign * view(np.array([[0, 1], [1, 0]], np.int8))
    assert same.max() < 0 < different.min()


def test_two_of_many_numbers_are_found_by_the_sign_of_their_product():
    """In 200 calls, of 20 heavy-tailed numbers of any scale.

    Of the two, the number that is nearer to its middle limits the value.
    """
    rows, scales = rng().standard_cauchy((200, 20)), 10.0 ** np.arange(20)
    rows[:, 13] = np.abs(rows[:, 13]) * np.sign(rows[:, 4]) * (1 - 2 * coins(200))
    view = Interaction().fit(rows * scales - 7, coins(200))
    new = np.zeros((4, 20))
    new[:, 4], new[:, 13] = [9, -9, 9, 9], [9, -9, -9, 2]
    sure, also_sure, opposite, unsure = view(new * scales - 7)
    assert opposite < 0 < unsure < min(sure, also_sure)


def test_the_smallest_is_of_scaled_numbers_that_grow_with_the_coin():
    scales = np.array([1.0, -50.0, 1e-3])
    rows = rng().normal(size=(ROWS, 3)) + coins()[:, None]
    view = Smallest().fit(rows * scales, coins())
    values = view(np.array([[3.0, 3, 3], [3, -3, 3], [-3, 3, -3]]) * scales)
    assert values[0] > 1
    assert values[1:].max() < -1


class Memoriser(Learner):
    """Returns 1 for the rows that it was fitted on, and 0 for all others."""

    name, start, most = "memoriser", 8, 1 << 20

    def __init__(self, *, blind=False):
        self.blind = blind

    def fit(self, rows, labels):
        known = rows[:, 0]
        assert labels.shape == (len(rows),)
        return lambda new: np.isin(new[:, 0], known).astype(float)


@pytest.mark.parametrize("size", [10, 11, 2 * LIMITS.few_rows])
def test_no_call_is_counted_by_a_view_that_was_learned_from_it(size):
    """Only a learner that ignores the coins may count the rows that it learned from."""
    rows = np.arange(2.0 * size)[:, None]
    sides = rows[:size], rows[size:]
    values = Memoriser().learn(sides)
    assert not np.concatenate(values).any()
    assert all(size // 2 <= len(side) <= size for side in values)
    view = Memoriser(blind=True)
    assert np.concatenate(view.learn(sides)).all()
    assert view.values(sides[0]).all()


@pytest.mark.parametrize(
    ("calls", "stalled", "ready"),
    [(8_191, True, False), (8_192, False, False), (8_192, True, True)],
)
def test_a_heavy_view_is_learned_only_if_the_claim_still_stands(calls, stalled, ready):
    (trees,) = (view for view in learned_views(2) if view.heavy)
    assert trees.is_ready(calls, stalled) == ready


@pytest.mark.dear
@pytest.mark.parametrize("width", [3, 17, 40])
@pytest.mark.parametrize("middle", [0.0, 1e9])
def test_the_value_of_an_output_does_not_depend_on_the_others_beside_it(width, middle):
    """To the last bit, or equal outputs are in different cells.

    Far from 0 most of the bits of a number are its middle's.
    """
    rows = middle + rng(1).normal(size=(2001, width))
    order = rng(2).permutation(2001)
    pair = Pair(middle + np.zeros(width), middle + rng(3).random(width))
    learned = learned_views(width)
    for view in learned:
        view.learn((rows[::2], rows[1::2] + 0.1))
    for view in [*views_of(rows, pair, with_inputs=True), *learned]:
        values = view.values(rows)
        assert np.array_equal(view.values(rows[order]), values[order]), view.name
        assert np.array_equal(view.values(rows[1::3]), values[1::3]), view.name
        for k in range(0, 2001, 50):
            assert view.values(rows[k : k + 1])[0] == values[k], view.name
