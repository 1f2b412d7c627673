"""Two versions of the code, release by release."""

import numpy as np

from auditdp.claims.statements import PureDP
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


def renamed(rows, rng):
    """The same with other names."""
    capped = [10 if row > 10 else row for row in rows]

    noise = rng.laplace(0.0, 10.0)
    return noise + sum(capped)


def raw(values, rng):
    return old(values, rng) + len(values)


def sentences(new, **keywords):
    return str(
        compare_versions(old, new, [3, 20], np.random.default_rng(0), **keywords)
    )


def test_a_scale_that_changed():
    assert sentences(halved).splitlines()[0].endswith("the scale is 5 and was 10")


def test_a_value_that_changed():
    assert "the value is 23 and was 13" in sentences(uncapped)


def test_a_value_that_moves_further():
    found = compare_versions(
        old,
        uncapped,
        [3, 5],
        np.random.default_rng(0),
        neighbour=[3, 5, 60],
        claim=PureDP(1.0),
    )
    assert [change.sentence.partition("): ")[2] for change in found.changes] == [
        "it moves by 60 and moved by 10"
    ]
    assert found.pairs[0].satisfies
    assert not found.pairs[1].satisfies


def test_one_release_more_and_one_less():
    more = compare_versions(old, one_more, [3], np.random.default_rng(0))
    assert [(change.before, change.sentence[:4]) for change in more.changes] == [
        (None, "new:")
    ]
    less = compare_versions(one_more, old, [3], np.random.default_rng(0))
    assert [(change.after, change.sentence[:5]) for change in less.changes] == [
        (None, "gone:")
    ]


def test_another_family():
    assert "Gaussian noise of scale 10" in sentences(gaussian)
    assert "the old version" in sentences(gaussian)


def test_the_same_law_in_other_words():
    found = compare_versions(
        old, renamed, [3, 20], np.random.default_rng(0), neighbour=[3]
    )
    assert not found.differs
    assert str(found) == "no release differs on this input and run"


def test_what_is_added_after_the_noise_shows_in_the_output():
    found = compare_versions(old, raw, [3, 20], np.random.default_rng(0))
    assert not found.changes
    assert found.differs
    assert "outputs differ" in str(found)


def test_both_versions_get_the_same_draws_and_the_generator_moves_once():
    rng, plain = np.random.default_rng(1), np.random.default_rng(1)
    found = compare_versions(old, renamed, [3], rng)
    old([3], plain)
    assert rng.bit_generator.state == plain.bit_generator.state
    assert found.old.output == found.new.output
