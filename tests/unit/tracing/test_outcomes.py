"""Other outcomes of draws that decide, and releases of one input alone."""

import math
from collections import Counter

import numpy as np
import pytest

from auditdp import ApproxDP, PureDP
from tests.unit.tracing.toys import kinds, pair_of, two_sided

ODDS = PureDP(math.log(3))
PURE = PureDP(1.0)


def randomised(bit, rng):
    return bit if rng.random() < 0.75 else 1 - bit


@pytest.mark.parametrize("seed", range(3))
def test_randomised_response_has_its_law_whatever_was_recorded(seed):
    pair = pair_of(randomised, 0, 1, ODDS, seed)
    assert pair.outcomes.complete
    assert sorted(pair.outcomes.masses.values()) == [(0.25, 0.75), (0.75, 0.25)]
    assert pair.level == pytest.approx(math.log(3))
    assert pair.satisfies
    assert not pair.proposes


def test_the_law_of_three_sorted_bits_is_binomial():
    def ordered(bits, rng):
        return sorted(randomised(bit, rng) for bit in bits)

    pair = pair_of(ordered, [1, 1, 1], [0, 1, 1], ODDS)
    masses = sorted(p for p, _ in pair.outcomes.masses.values())
    ones = [math.comb(3, k) * 0.75**k * 0.25 ** (3 - k) for k in range(4)]
    assert masses == pytest.approx(sorted(ones))
    assert pair.level == pytest.approx(math.log(3))


def twelve_bits(bits, rng):
    return [randomised(bit, rng) for bit in bits]


def array_of_bits(bits, rng):
    return np.where(rng.random(12) < 0.75, bits, 1 - np.asarray(bits))


@pytest.mark.parametrize("function", [twelve_bits, array_of_bits])
def test_with_too_many_outcomes_one_coin_is_turned(function):
    pair = pair_of(function, [0] * 12, [1] + [0] * 11, ODDS)
    assert pair.outcomes.matched
    assert not pair.outcomes.complete
    assert not pair.proposes


def test_an_output_of_one_input_alone_has_its_probability():
    def leaks(v, rng):
        return v if rng.random() < 0.01 else v + rng.laplace(scale=1.0)

    assert not pair_of(leaks, claim=ApproxDP(1.0, 0.01)).proposes
    pair = pair_of(leaks, claim=ApproxDP(1.0, 0.009))
    assert pair.outcomes.delta == pytest.approx(0.01)
    assert any("probability 0.01" in finding.sentence for finding in pair.findings)


def test_noise_of_other_outcomes_is_the_same_on_both_inputs():
    def rarely(v, rng):
        return v + rng.laplace(scale=1.0) if rng.random() < 0.999 else "nothing"

    for seed in range(3):
        pair = pair_of(rarely, claim=PURE, seed=seed)
        assert pair.outcomes.complete
        assert pair.outcomes.delta == 0


def histogram(noise, threshold):
    def code(rows, rng):
        noisy = {key: rows.count(key) + noise(rng) for key in sorted(set(rows))}
        return {key: n for key, n in noisy.items() if n >= threshold}

    return code


A = math.exp(-1)


@pytest.mark.parametrize(
    ("noise", "threshold", "tail"),
    [
        (lambda rng: two_sided(1.0, rng), 3, A**2 / (1 + A)),
        (lambda rng: rng.laplace(scale=1.0), 5.5, math.exp(-4.5) / 2),
    ],
)
def test_a_new_key_costs_the_tail_of_its_noise(noise, threshold, tail):
    code = histogram(noise, threshold)
    inputs = (["x"], ["x", "y"])
    pair = pair_of(code, *inputs, ApproxDP(1.0, tail * 1.0001))
    assert [one.chance for one in pair.shown] == [pytest.approx(tail, rel=1e-5)]
    assert not pair.proposes
    for ordered in (inputs, inputs[::-1]):
        assert pair_of(code, *ordered, ApproxDP(1.0, tail * 0.999)).proposes
    assert pair_of(code, ["x", "y"], ["x"], PURE).proposes


def keyed(rows, rng):
    return {key: rows.count(key) + rng.laplace() for key in dict.fromkeys(rows)}


def test_all_orders_of_three_rows_are_tried():
    def shuffled(rows, rng):
        return [rows[k] for k in rng.permutation(len(rows))]

    rows = ["a", "b", "b"]
    pair = pair_of(shuffled, rows, ["b", "a", "b"], PureDP(0.0))
    assert pair.outcomes.complete
    assert pair.satisfies
    assert not pair.proposes
    assert pair_of(shuffled, rows, ["a", "a", "b"], PURE).proposes


def test_a_choice_among_other_items_is_compared_by_name():
    def synthetic(rows, rng):
        names = sorted(set(rows))
        weights = np.array([rows.count(name) for name in names], float)
        return str(rng.choice(names, p=weights / weights.sum()))

    pair = pair_of(synthetic, ["b", "b"], ["a", "b", "b"], PURE)
    assert pair.outcomes.delta == pytest.approx(1 / 3)
    assert pair.proposes


def by_key(rows, rng):
    return sorted(keyed(rows, rng).items())


def by_number(rows, rng):
    return sorted(n + rng.laplace(scale=1.0) for n in Counter(rows).values())


ROWS = ["b", *["a"] * 5, "b", "c", "c", "c"]


@pytest.mark.parametrize("function", [by_key, by_number])
def test_releases_of_a_loop_over_keys_are_aligned_by_their_values(function):
    pair = pair_of(function, ROWS, ROWS[1:], PURE)
    assert pair.level == pytest.approx(1.0)
    assert not pair.proposes


def test_a_new_key_that_comes_first_leaves_the_others_where_they_are():
    rows = ["a"] * 5 + ["b"] * 3
    pair = pair_of(by_number, ["c", *rows], rows, PURE)
    assert [moved.distance for moved in pair.moved] == [0.0, 0.0]
    assert len(pair.first.releases) == 3


def test_the_order_of_keys_in_the_output_is_a_difference():
    assert "round" in kinds(pair_of(keyed, ROWS, ROWS[1:], PURE))


@pytest.mark.parametrize(
    ("show", "visible"),
    [(lambda x: {"x": [x]}, True), (round, False), (lambda x: f"{x:.1f}", False)],
)
def test_whether_the_noisy_value_is_in_the_output(show, visible):
    pair = pair_of(lambda v, rng: show(v + rng.laplace()), claim=PURE)
    assert pair.is_visible is visible
