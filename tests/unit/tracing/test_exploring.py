"""Other outcomes of what chance decides, and noisy values that one input alone has: their probabilities are exact."""

import math
from collections import Counter

import numpy as np
import pytest

from auditdp.claims.statements import ApproxDP, PureDP
from auditdp.tracing import Trace, compare


def of(function, data, neighbour, claim, seed=0, **keywords):
    return compare(
        Trace(function),
        data,
        neighbour,
        np.random.default_rng(seed),
        claim=claim,
        **keywords,
    )


def randomised(bit, rng):
    return bit if rng.random() < 0.75 else 1 - bit


def test_randomised_response_has_its_law_whatever_was_recorded():
    for seed in range(4):
        pair = of(randomised, 0, 1, PureDP(math.log(3)), seed)
        assert pair.outcomes.complete
        assert sorted(pair.outcomes.masses.values()) == [(0.25, 0.75), (0.75, 0.25)]
        assert pair.satisfies
        assert pair.level == pytest.approx(math.log(3))
        assert not pair.proposes
    assert of(randomised, 0, 1, PureDP(1.0)).findings[0].kind == "loss"


def test_the_law_of_three_sorted_bits_is_binomial():
    def ordered(bits, rng):
        return sorted(randomised(bit, rng) for bit in bits)

    pair = of(ordered, [1, 1, 1], [0, 1, 1], PureDP(math.log(3)))
    masses = sorted(pair.outcomes.masses.values())
    ones = [math.comb(3, k) * 0.75**k * 0.25 ** (3 - k) for k in range(4)]
    assert [p for p, _ in masses] == pytest.approx(sorted(ones))
    assert pair.level == pytest.approx(math.log(3))


def test_more_outcomes_than_the_budget_leave_the_law_unknown_and_propose_nothing():
    def many(bits, rng):
        return [randomised(bit, rng) for bit in bits]

    data = [0] * 12
    pair = of(many, data, [1, *data[1:]], PureDP(math.log(3)))
    assert not pair.outcomes.complete
    assert pair.outcomes.matched
    assert not pair.proposes


def test_an_array_of_coins_is_matched_by_turning_one():
    def noisy(bits, rng):
        return np.where(rng.random(len(bits)) < 0.75, bits, 1 - np.asarray(bits))

    pair = of(noisy, [0] * 9, [0] * 8 + [1], PureDP(math.log(3)))
    assert pair.outcomes.matched
    assert not pair.proposes


def test_what_one_input_alone_gives_has_its_probability():
    def leaks(v, rng):
        return v if rng.random() < 0.01 else v + rng.laplace(scale=1.0)

    assert not of(leaks, 0.0, 1.0, ApproxDP(1.0, 0.01)).proposes
    pair = of(leaks, 0.0, 1.0, ApproxDP(1.0, 0.009))
    assert pair.outcomes.delta == pytest.approx(0.01)
    assert any("probability 0.01" in finding.sentence for finding in pair.findings)


def test_noise_that_only_other_outcomes_draw_is_the_same_on_both_inputs():
    def rarely(v, rng):
        return v + rng.laplace(scale=1.0) if rng.random() < 0.999 else "nothing"

    for seed in range(3):
        pair = of(rarely, 0.0, 1.0, PureDP(1.0), seed)
        assert pair.outcomes.complete
        assert pair.outcomes.delta == 0


@pytest.mark.parametrize("threshold", [3, 4, 6])
def test_a_new_key_costs_the_tail_of_its_whole_noise(threshold):
    p = 1 - math.exp(-1)

    def histogram(rows, rng):
        noisy = {
            key: rows.count(key) + int(rng.geometric(p) - rng.geometric(p))
            for key in sorted(set(rows))
        }
        return {key: n for key, n in noisy.items() if n >= threshold}

    a = math.exp(-1)
    tail = a ** (threshold - 1) / (1 + a)
    pair = of(histogram, ["x"], ["x", "y"], ApproxDP(1.0, tail * 1.0001))
    assert [one.chance for one in pair.shown] == [pytest.approx(tail)]
    assert not pair.proposes
    assert of(histogram, ["x"], ["x", "y"], ApproxDP(1.0, tail * 0.999)).proposes
    assert of(histogram, ["x", "y"], ["x"], ApproxDP(1.0, tail * 0.999)).proposes
    assert of(histogram, ["x", "y"], ["x"], PureDP(1.0)).proposes


def test_a_new_key_costs_the_tail_of_its_laplace_noise():
    def histogram(rows, rng):
        noisy = {
            key: rows.count(key) + rng.laplace(scale=1.0) for key in sorted(set(rows))
        }
        return {key: n for key, n in noisy.items() if n > 5.5}

    pair = of(histogram, ["x"], ["x", "y"], ApproxDP(1.0, 0.01))
    tail = math.exp(-4.5) / 2
    assert [one.chance for one in pair.shown] == [pytest.approx(tail, rel=1e-5)]
    assert pair.proposes == (tail > 0.01)


def test_two_new_keys_that_always_show_do_so_with_probability_1():
    pair = of(
        lambda rows, rng: {key: 1 + rng.laplace() for key in rows},
        ["x"],
        ["x", "y", "z"],
        PureDP(1.0),
    )
    assert any("with probability 1:" in finding.sentence for finding in pair.findings)


def test_small_orders_and_samples_are_tried():
    def shuffled(rows, rng):
        return [rows[k] for k in rng.permutation(len(rows))]

    pair = of(shuffled, ["a", "b", "b"], ["b", "a", "b"], PureDP(0.0))
    assert pair.outcomes.complete
    assert pair.satisfies
    assert not pair.proposes
    assert of(shuffled, ["a", "b", "b"], ["a", "a", "b"], PureDP(1.0)).proposes


def test_a_choice_among_other_items_is_compared_by_name():
    def synthetic(rows, rng):
        names = sorted(set(rows))
        weights = np.array([rows.count(name) for name in names], float)
        return str(rng.choice(names, p=weights / weights.sum()))

    pair = of(synthetic, ["b", "b"], ["a", "b", "b"], PureDP(1.0))
    assert pair.outcomes.delta == pytest.approx(1 / 3)
    assert pair.proposes


def keyed(rows, rng):
    return sorted(
        (key, rows.count(key) + rng.laplace(scale=1.0)) for key in dict.fromkeys(rows)
    )


def numbered(rows, rng):
    counts = Counter(rows)
    return sorted(n + rng.laplace(scale=1.0) for n in counts.values())


@pytest.mark.parametrize("function", [keyed, numbered])
def test_releases_of_a_loop_over_keys_are_put_together_whatever_comes_first(function):
    rows = ["b", *["a"] * 5, "b", "c", "c", "c"]
    pair = of(function, rows, rows[1:], PureDP(1.0))
    assert pair.level == pytest.approx(1.0)
    assert not pair.proposes


def test_a_new_key_that_comes_first_leaves_the_others_where_they_are():
    rows = ["a"] * 5 + ["b"] * 3
    pair = of(numbered, ["c", *rows], rows, PureDP(1.0))
    assert [moved.distance for moved in pair.moved] == [0.0, 0.0]
    assert len(pair.first.releases) == 3


def test_the_order_of_the_data_in_the_output_is_no_other_coupling():
    def listed(rows, rng):
        return [
            (key, rows.count(key) + rng.laplace(scale=1.0))
            for key in dict.fromkeys(rows)
        ]

    rows = ["b", *["a"] * 5, "b"]
    assert any(
        finding.kind == "round"
        for finding in of(listed, rows, rows[1:], PureDP(1.0)).findings
    )


@pytest.mark.parametrize(
    ("show", "visible"),
    [(lambda x: {"x": [x]}, True), (round, False), (lambda x: f"{x:.1f}", False)],
)
def test_whether_the_noisy_value_is_in_the_output(show, visible):
    pair = of(lambda v, rng: show(v + rng.laplace()), 0.0, 1.0, PureDP(1.0))
    assert pair.is_visible is visible
