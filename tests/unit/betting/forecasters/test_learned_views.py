"""Learners: one number per output, and the right number where it is known."""

from math import inf, nan

import numpy as np
import pytest
from numpy.random import default_rng
from sklearn.metrics import roc_auc_score

from auditdp import Pair
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
    return default_rng(seed)


def normal(*shape, seed=0):
    return rng(seed).normal(size=shape)


def coins(size=ROWS):
    return rng(1).integers(0, 2, size, dtype=np.int8)


def parametrize_learners(*learners):
    return pytest.mark.parametrize("learner", learners, ids=lambda each: each.name)


every_learner = parametrize_learners(*learned_views(40))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "kind", [kind for kind in OUTPUTS if OUTPUTS[kind](0, 1, rng()).ndim == 2]
)
def test_outputs_of_any_kind_give_a_number_per_row_and_no_warning(kind):
    rows = OUTPUTS[kind](0, ROWS, rng(2))
    for learner in learned_views(rows.shape[1]):
        values = learner.fit(rows, coins())(rows)
        assert values.shape == (ROWS,), learner.name
        assert not np.isnan(values).any(), learner.name


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("coin", [0, 1])
def test_early_learners_prefer_nothing_with_calls_of_one_coin(coin):
    rows = normal(16, 40)
    labels = np.full(16, coin, np.int8)
    for rank in (0, 3):
        values = Screen(rank).fit(rows, labels)(rows)
        assert values.tolist() == rows[:, rank].tolist()
    assert not Votes().fit(rows, labels)(rows).any()


@every_learner
def test_two_rows_are_enough_and_a_view_stays_when_its_learner_learns_again(learner):
    rows = normal(ROWS, 40)
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
    assert Trees not in map(type, learned_views(2))
    assert narrow.count(Screen) == 0
    assert wide.count(Screen) == 4
    names = {each.name for each in learned_views(33)}
    assert len(names) == len(wide)


def test_screens_rank_the_coordinates_that_differ_most():
    rows = normal(ROWS, 60)
    rows[:, 17] += 3 * coins()
    rows[:, 5] -= 2 * coins()
    new = normal(10, 60, seed=5)
    for rank, column in enumerate((17, 5)):
        values = Screen(rank).fit(rows, coins())(new)
        assert values.tolist() == new[:, column].tolist()


@pytest.mark.parametrize("value", [nan, -inf, 1e308, 0.1])
def test_a_constant_coordinate_is_the_last_however_large(value):
    """Rounding errors of its mean are as large as its spread.

    The sum of 23 equal numbers is not exact.
    """
    rows = 1e-3 * normal(23, 40) + coins(23)[:, None] * 1e-4
    rows[:, 7] = value
    new = 77.0 * (np.arange(40) == 7)
    for rank in range(39):
        assert Screen(rank).fit(rows, coins(23))(new[None]) != 77.0


def test_only_coordinates_that_differ_vote_and_every_vote_is_the_same():
    """Three of twenty columns are 3 larger under coin 1, and one is 1 smaller."""
    rows = normal(ROWS, 20)
    voters = [2, 9, 16, 5]
    rows[:, voters] += coins()[:, None] * [3, 3, 3, -1]
    view = Votes().fit(rows, coins())
    for others in (0.0, 50.0):
        new = np.full((4, 20), others)
        new[:, voters] = 9 - 18 * np.eye(4)
        assert view(new).tolist() == [1, 1, 1, 3]


def test_differences_vote_if_they_differ_more():
    """Noise that all coordinates share hides each of them, and no difference."""
    rows = 0.1 * normal(ROWS, 6) + 50 * normal(ROWS, 1, seed=5)
    rows[:, 3] += coins()
    view = Votes().fit(rows, coins())
    apart = 92.0 * (np.arange(6) == 3)
    low, high, all_low, all_high = view(
        np.stack([7 - apart, apart - 43, np.full(6, 7.0), np.full(6, 777.0)])
    )
    assert low < high
    assert all_low == all_high


@pytest.mark.parametrize("share", [0.3, 0.7])
@parametrize_learners(Votes(), Above("coordinates"))
def test_bits_vote_whichever_value_is_the_commoner(learner, share):
    """The median of bits is the commoner value: nothing is above it if that is 1."""
    rows = rng().random((ROWS, 5)) < share + 0.25 * coins()[:, None]
    view = learner.fit(rows.astype(np.int8), coins())
    ones, zeros = (np.full((1, 5), bit, np.int8) for bit in (1, 0))
    assert view(ones) == view(zeros) + 5


@pytest.mark.statistical
@parametrize_learners(Linear(), Additive(), Trees())
def test_a_shift_along_many_coordinates_is_learned(learner):
    """The learned number separates new outputs nearly as the sum does, which is best.

    Shift .6 along 10 coordinates of N(0, 1): the area under the curve is at best
    Φ(.6 √10/√2) = .91. Over 4,000 new rows its standard error is below .01; .75 is 6 of
    them and the cost of learning from 1,000 rows.
    """
    known = coins(1_000)
    new = coins(4_000)
    view = learner.fit(normal(1_000, 10) + 0.6 * known[:, None], known)
    values = view(normal(4_000, 10, seed=4) + 0.6 * new[:, None])
    assert roc_auc_score(new, values) > 0.75


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
    values = learner.fit(rows, coins(2_000))(rows)
    if isinstance(learner, Interaction):
        values = -values
    assert values[coins(2_000) == 0].max() < 0 < values[coins(2_000) == 1].min()


def test_two_of_many_numbers_are_found_by_the_sign_of_their_product():
    """In 200 calls, of 20 heavy-tailed numbers of any scale.

    Of the two, the number that is nearer to its middle limits the value.
    """
    rows = rng().standard_cauchy((200, 20))
    scales = 10.0 ** np.arange(20)
    rows[:, 13] = np.abs(rows[:, 13]) * np.sign(rows[:, 4]) * (1 - 2 * coins(200))
    view = Interaction().fit(rows * scales - 7, coins(200))
    new = np.zeros((4, 20))
    new[:, [4, 13]] = [[9, 9], [-9, -9], [9, -9], [9, 2]]
    sure, also_sure, opposite, unsure = view(new * scales - 7)
    assert opposite < 0 < unsure < min(sure, also_sure)


def test_the_smallest_is_of_scaled_numbers_that_grow_with_the_coin():
    scales = np.array([1.0, -50.0, 1e-3])
    rows = normal(ROWS, 3) + coins()[:, None]
    view = Smallest().fit(rows * scales, coins())
    new = np.array([[3.0, 3, 3], [3, -3, 3], [-3, 3, -3]])
    high, *low = view(new * scales)
    assert high > 1
    assert max(low) < -1


class Memoriser(Learner):
    """Returns 1 for the rows that it was fitted on, and 0 for all others."""

    name = "memoriser"
    start = 8
    most = 1 << 20

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
    [
        (8_191, True, False),
        (8_192, False, False),
        (8_192, True, True),
    ],
)
def test_a_heavy_view_is_learned_only_if_the_claim_still_stands(calls, stalled, ready):
    (trees,) = (view for view in learned_views(3) if view.heavy)
    assert isinstance(trees, Trees)
    assert trees.is_ready(calls, stalled) == ready


@pytest.mark.dear
@pytest.mark.parametrize("width", [3, 17, 40])
@pytest.mark.parametrize("middle", [0.0, 1e9])
def test_the_value_of_an_output_does_not_depend_on_the_others_beside_it(width, middle):
    """To the last bit, or equal outputs are in different cells.

    Far from 0 most of the bits of a number are its middle's.
    """
    rows = middle + normal(2001, width, seed=1)
    pair = Pair(middle + np.zeros(width), middle + rng(3).random(width))
    learned = learned_views(width)
    for view in learned:
        view.learn((rows[::2], rows[1::2] + 0.1))
    orders = [rng(2).permutation(2001), slice(1, None, 3)]
    orders += [slice(k, k + 1) for k in range(0, 2001, 50)]
    for view in [*views_of(rows, pair, with_inputs=True), *learned]:
        values = view.values(rows)
        for order in orders:
            again = view.values(rows[order])
            assert np.array_equal(again, values[order]), view.name
