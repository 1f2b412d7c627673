"""Two versions of the code, release by release."""

import numpy as np
import pytest

from auditdp import PureDP
from auditdp.tracing import compare_versions


def old(values, rng):
    total = sum(min(v, 10) for v in values)
    return total + rng.laplace(scale=10.0)


def halved(values, rng):
    total = sum(min(v, 10) for v in values)
    return total + rng.laplace(scale=5.0)


def uncapped(values, rng):
    return sum(values) + rng.laplace(scale=10.0)


def one_more(values, rng):
    total = sum(min(v, 10) for v in values) + rng.laplace(scale=10.0)
    return total, len(values) + rng.laplace(scale=1.0)


def gaussian(values, rng):
    return sum(min(v, 10) for v in values) + rng.normal(scale=10.0)


def reworded(rows, rng):
    capped = [10 if row > 10 else row for row in rows]

    noise = rng.laplace(0.0, 10.0)
    return noise + sum(capped)


def with_raw_count(values, rng):
    return old(values, rng) + len(values)


def versions(first, second, values=(3, 20), **options):
    rng = np.random.default_rng(0)
    return compare_versions(first, second, list(values), rng, **options)


@pytest.mark.parametrize(
    ("new", "fragments"),
    [
        (halved, ["the scale is 5 and was 10"]),
        (uncapped, ["the value is 23 and was 13"]),
        (gaussian, ["Gaussian noise of scale 10", "the old version"]),
        (with_raw_count, ["outputs differ"]),
        (reworded, ["no release differs on this input and run"]),
    ],
)
def test_a_change_is_described(new, fragments):
    found = versions(old, new)
    assert found.differs == (new is not reworded)
    assert bool(found.changes) == (new not in (reworded, with_raw_count))
    assert all(fragment in str(found) for fragment in fragments)


def test_a_value_that_moves_further():
    claim = PureDP(1.0)
    found = versions(old, uncapped, (3, 5), neighbour=[3, 5, 60], claim=claim)
    (change,) = found.changes
    assert change.sentence.endswith(
        "): the inputs differ by 60 in it and differed by 10"
    )
    assert [pair.satisfies for pair in found.pairs] == [True, False]


def test_one_release_more_and_one_less():
    (change,) = versions(old, one_more).changes
    assert change.before is None
    assert change.sentence[:4] == "new:"
    (change,) = versions(one_more, old).changes
    assert change.after is None
    assert change.sentence[:5] == "gone:"


def test_both_versions_get_the_same_draws_and_the_generator_moves_once():
    rng = np.random.default_rng(1)
    plain = np.random.default_rng(1)
    found = compare_versions(old, reworded, [3], rng, neighbour=[4])
    old([3], plain)
    assert not found.differs
    assert rng.bit_generator.state == plain.bit_generator.state
    assert found.old.output == found.new.output
