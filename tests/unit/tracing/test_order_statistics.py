"""Noisy values whose order alone is in the output lose less than released ones."""

import numpy as np
import pytest

from auditdp import PureDP
from tests.unit.tracing.toys import pair_of

ALIKE = ([1] * 6, [2] * 6)
UP = ([1, 5, 2, 4, 3, 1], [2, 6, 3, 5, 4, 2])
MIXED = ([1, 5, 2, 4, 3, 1], [2, 4, 3, 5, 2, 2])


def noisy_scores(scores, rng):
    return [score + rng.laplace(scale=2.0) for score in scores]


def largest(scores, rng):
    return int(np.argmax(np.array(scores) + rng.laplace(scale=2.0, size=len(scores))))


def first_largest(scores, rng):
    noisy = noisy_scores(scores, rng)
    return noisy.index(max(noisy))


def smallest(scores, rng):
    noisy = noisy_scores(scores, rng)
    return noisy.index(min(noisy))


def largest_and_its_score(scores, rng):
    noisy = noisy_scores(scores, rng)
    return noisy.index(max(noisy)), max(noisy)


def first_above(counts, rng, show=lambda place, noisy: place):
    threshold = 4 + rng.laplace(scale=2.0)
    for place, count in enumerate(counts):
        noisy = count + rng.laplace(scale=4.0)
        if noisy >= threshold:
            return show(place, noisy)
    return None


def above_and_its_count(counts, rng):
    return first_above(counts, rng, lambda place, noisy: noisy)


def all_above(counts, rng):
    threshold = 4 + rng.laplace(scale=2.0)
    return [bool(count + rng.laplace(scale=4.0) >= threshold) for count in counts]


def of(function, pair, seed=0):
    return pair_of(function, *pair, PureDP(0.4), seed)


@pytest.mark.parametrize("function", [largest, first_largest, smallest])
@pytest.mark.parametrize(
    ("pair", "level"), [(UP, 0.0), (MIXED, 1.0), (([3, 1], [4, 1]), 0.5)]
)
def test_the_name_of_the_largest_loses_the_spread_of_the_moves(function, pair, level):
    found = of(function, pair)
    assert found.is_bound
    assert found.level == pytest.approx(level)


def test_the_largest_and_its_score_are_charged_as_released():
    assert of(largest_and_its_score, MIXED).level == pytest.approx(3.0)


def test_answers_below_a_threshold_are_free():
    pairs = [of(first_above, ALIKE, seed) for seed in range(9)]
    answers = [len(pair.first.releases) - 1 for pair in pairs]
    assert max(answers) > 4
    expected = [min(number / 4, 0.5 + 0.25) for number in answers]
    assert [pair.level for pair in pairs] == pytest.approx(expected)


def test_each_answer_on_the_rarer_side_is_charged():
    found = of(all_above, MIXED)
    rarer = min(sum(found.first.output), 6 - sum(found.first.output))
    assert found.level == pytest.approx(0.5 + rarer * 2 / 4)


def test_an_answer_that_is_released_is_charged_for_all():
    pairs = [of(above_and_its_count, ALIKE, seed) for seed in range(9)]
    released = [pair for pair in pairs if pair.first.output is not None]
    answers = [len(pair.first.releases) - 1 for pair in released]
    assert max(answers) > 2
    for pair, number in zip(released, answers, strict=True):
        if number > 2:
            assert pair.level == pytest.approx(number / 4)
