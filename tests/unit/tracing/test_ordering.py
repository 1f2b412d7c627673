"""Noisy values of which the output shows the order alone lose what the theorems say, and others what they are charged."""

import numpy as np
import pytest

from auditdp.claims.statements import PureDP
from auditdp.tracing import Trace, compare

ALIKE = ([1] * 6, [2] * 6)
UP, MIXED = (
    ([1, 5, 2, 4, 3, 1], [2, 6, 3, 5, 4, 2]),
    ([1, 5, 2, 4, 3, 1], [2, 4, 3, 5, 2, 2]),
)


def largest(scores, rng):
    return int(np.argmax(np.array(scores) + rng.laplace(scale=2.0, size=len(scores))))


def first_largest(scores, rng):
    noisy = [score + rng.laplace(scale=2.0) for score in scores]
    return noisy.index(max(noisy))


def smallest(scores, rng):
    noisy = [score + rng.laplace(scale=2.0) for score in scores]
    return noisy.index(min(noisy))


def largest_and_its_score(scores, rng):
    noisy = [score + rng.laplace(scale=2.0) for score in scores]
    return noisy.index(max(noisy)), max(noisy)


def first_above(counts, rng):
    threshold = 4 + rng.laplace(scale=2.0)
    for place, count in enumerate(counts):
        if count + rng.laplace(scale=4.0) >= threshold:
            return place
    return None


def all_above(counts, rng):
    threshold = 4 + rng.laplace(scale=2.0)
    return [bool(count + rng.laplace(scale=4.0) >= threshold) for count in counts]


def above_and_its_count(counts, rng):
    threshold = 4 + rng.laplace(scale=2.0)
    for count in counts:
        if (noisy := count + rng.laplace(scale=4.0)) >= threshold:
            return noisy
    return None


def of(function, pair, seed=0):
    return compare(
        Trace(function), *pair, np.random.default_rng(seed), claim=PureDP(0.4)
    )


@pytest.mark.parametrize("function", [largest, first_largest, smallest])
@pytest.mark.parametrize(
    ("pair", "level"), [(UP, 0.0), (MIXED, 1.0), (([3, 1], [4, 1]), 0.5)]
)
def test_the_name_of_the_largest_loses_the_spread_of_the_moves(function, pair, level):
    found = of(function, pair)
    assert found.is_bound
    assert found.level == pytest.approx(level)


def test_what_shows_more_is_charged_as_released():
    assert of(largest_and_its_score, MIXED).level == pytest.approx(3.0)


def test_the_largest_loses_no_more_than_that():
    """The exact law of which of two scores is largest, by integration."""
    from scipy import integrate, stats

    def first_wins(a, b):
        below = lambda x: stats.laplace.pdf(x, a, 2.0) * stats.laplace.cdf(x, b, 2.0)  # noqa: E731
        return integrate.quad(below, -80, 80, points=[a, b], limit=200)[0]

    for d in ((1, 0), (1, -1), (0.5, 1)):
        p, q = first_wins(0.0, -9.0), first_wins(d[0], d[1] - 9.0)
        bound = (max(d) - min(d)) / 2
        assert abs(np.log(1 - p) - np.log(1 - q)) <= bound * (1 + 1e-5)
        assert abs(np.log(1 - p) - np.log(1 - q)) >= 0.8 * bound


def test_answers_below_a_threshold_are_free():
    found = [of(first_above, ALIKE, seed) for seed in range(9)]
    for pair in found:
        assert pair.level == pytest.approx(
            min((len(pair.first.releases) - 1) / 4, 0.5 + 0.25)
        )
    assert any(len(pair.first.releases) > 5 for pair in found)


def test_each_answer_on_the_rarer_side_is_charged():
    found = of(all_above, MIXED)
    rarer = min(sum(found.first.output), 6 - sum(found.first.output))
    assert found.level == pytest.approx(0.5 + rarer * 2 / 4)


def test_an_answer_that_is_shown_is_charged_for_all():
    found = [of(above_and_its_count, ALIKE, seed) for seed in range(9)]
    shown = [
        pair
        for pair in found
        if pair.first.output is not None and len(pair.first.releases) > 3
    ]
    assert shown
    for pair in shown:
        assert pair.level == pytest.approx((len(pair.first.releases) - 1) / 4)
