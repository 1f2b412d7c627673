"""The replayed ratio: exact if the output determines the noisy values, 0 otherwise."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import norm

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.traced import ReplayedRatio, RunBudget
from auditdp.betting.forecasters.traced_replay import MAX_REPLAYED_OUTPUTS
from auditdp.betting.game import Game
from auditdp.claims.statements import GaussianDP, PureDP
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.representation import SeenAs
from auditdp.mechanism.protocol import as_mechanism
from auditdp.tracing import Trace


def bound(function, pair, seed=1):
    mechanism = as_mechanism(function)
    calls = Calls(mechanism)
    calls.look((pair.data, pair.neighbour), np.random.default_rng(0))
    return ReplayedRatio(Trace(mechanism), PureDP(1.0), seed=seed).bind(
        SeenAs(mechanism, calls.form), pair
    ), calls


def noisy(x, rng):
    return x + rng.laplace(scale=2.0)


def together(x, size, *, rng):
    return x + rng.laplace(scale=2.0, size=size)


def mean_and_more(x, rng):
    return {"other": rng.normal(), "mean": (x + rng.laplace(scale=2.0)) / 4}


@pytest.mark.parametrize(
    ("function", "column", "factor"),
    [(noisy, 0, 1), (together, 0, 1), (mean_and_more, 2, 4)],
)
def test_it_is_the_likelihood_ratio_of_the_noise(function, column, factor):
    forecaster, calls = bound(function, Pair(1.0, 0.0))
    rows = calls(1.0, 50, np.random.default_rng(3))
    released = rows.reshape(len(rows), -1)[:, column] * factor
    expected = (np.abs(released) - np.abs(released - 1)) / 2
    assert forecaster.log_odds(rows) == pytest.approx(expected, abs=1e-9)


def test_noise_is_read_that_is_scaled_by_the_data_afterwards():
    def in_their_own_range(values, rng):
        low, high = min(values), max(values)
        return low + (high - low) * (
            (np.mean(values) - low) / (high - low) + rng.laplace(scale=1 / 2)
        )

    forecaster, calls = bound(in_their_own_range, Pair([2.0, 4.0, 6.0], [2.0, 4.0]))
    rows = calls([2.0, 4.0], 50, np.random.default_rng(3))
    expected = np.abs(rows - 3) - np.log(2) - np.abs(rows - 4) / 2
    assert forecaster.log_odds(rows) == pytest.approx(expected.ravel(), abs=1e-9)


def test_the_probabilities_of_what_chance_decides_are_known():
    forecaster, calls = bound(
        lambda x, rng: x if rng.random() < 0.75 else 1 - x, Pair(1, 0)
    )
    rows = calls(1, 50, np.random.default_rng(3))
    assert np.abs(forecaster.log_odds(rows)) == pytest.approx(np.full(50, math.log(3)))


def above(queries, rng):
    threshold = 1.0 + rng.laplace(scale=2.0)
    answers = []
    for query in queries:
        answers.append(query >= threshold)
        if answers[-1]:
            break
    return answers


def test_an_outcome_that_is_impossible_on_both_inputs_is_in_no_law():
    forecaster, _ = bound(above, Pair([0, 0, 1, 0, 1], [1, 1, 0, 1, 0]), seed=2)
    law = forecaster.stated
    assert law is not None
    assert not np.isnan(law.log_odds).any()
    assert (law.weights > 0).all()


def test_a_value_that_bypasses_the_noise_is_certain():
    def raw(x, rng):
        return x if rng.random() < 0.5 else x + rng.laplace()

    forecaster, _ = bound(raw, Pair(0.25, 0.75), seed=2)
    odds = forecaster.log_odds(np.array([0.25, 0.75, 0.5]))
    assert odds.tolist() == [math.inf, -math.inf, 0.0]


def adaptive(x, rng):
    first = x + rng.normal()
    return first, x * first + rng.normal()


def test_a_value_that_depends_on_earlier_noise_is_replayed_with_the_noise_of_the_output():
    forecaster, calls = bound(adaptive, Pair(3.0, 0.0))
    rows = calls(3.0, 20, np.random.default_rng(3))
    first, second = rows.reshape(len(rows), 2).T
    squares = first**2 - (first - 3) ** 2 + second**2 - (second - 3 * first) ** 2
    expected = squares / 2
    assert forecaster.log_odds(rows) == pytest.approx(expected, abs=1e-9)


def seeded_anew(x, rng):
    seed, released = int(rng.integers(2**32)), [0.0]
    for _ in range(2):
        released.append(
            math.tanh(x + released[-1]) + np.random.default_rng(seed).laplace()
        )
    return released[1:]


def test_noise_that_is_used_twice_makes_certain_log_odds():
    forecaster, calls = bound(seeded_anew, Pair(1.0, 0.0))
    for x, odds in ((1.0, math.inf), (0.0, -math.inf)):
        assert (
            forecaster.log_odds(calls(x, 5, np.random.default_rng(3))).tolist()
            == [odds] * 5
        )
    assert not forecaster.log_odds(np.array([[0.3, -2.0]])).any()


def curved(x, rng):
    first = rng.laplace()
    return first, x * math.sin(9 * first) + rng.laplace()


def multiplied(x, rng):
    return (x + 1) * rng.standard_cauchy()


@pytest.mark.parametrize("function", [curved, multiplied, lambda x, rng: rng.laplace()])
def test_it_abstains_where_noisy_values_cannot_be_read(function):
    forecaster, calls = bound(function, Pair(1.0, 0.0))
    assert not forecaster.log_odds(calls(1.0, 20, np.random.default_rng(3))).any()


def test_an_output_of_another_form_is_none_that_it_knows():
    def sometimes(x, rng):
        released = x + rng.laplace()
        return [released] if released < 9 else [released, released]

    forecaster, calls = bound(sometimes, Pair(1.0, 0.0))
    odds = forecaster.log_odds(calls.form.rows([[0.25], [9.5, 9.5]]))
    assert odds[0] != 0
    assert odds[1] == 0
    assert forecaster.abstained == 1


def test_the_odds_of_an_output_depend_on_no_other_output():
    forecaster, calls = bound(mean_and_more, Pair(1.0, 0.0))
    rows = calls(1.0, 20, np.random.default_rng(3))
    alone = np.concatenate([forecaster.log_odds(rows[[k]]) for k in range(20)])
    assert alone == pytest.approx(forecaster.log_odds(rows))


def signed(x, rng):
    size = rng.exponential(scale=2.0)
    return x + np.where(rng.random() < 0.5, size, -size)


def by_bits(x, size, *, rng):
    noise = rng.standard_exponential(size)
    bits = noise.view(np.uint64)
    bits ^= rng.integers(0, 2, size, dtype=np.uint64) << np.uint64(63)
    return x + 2 * noise


def rounded(x, rng):
    return round(x + rng.laplace(scale=2.0), 2)


@pytest.mark.parametrize("function", [signed, by_bits, rounded])
def test_noise_that_is_not_followed_is_read_off_by_its_shift(function):
    forecaster, _ = bound(function, Pair(1.0, 0.0))
    assert forecaster.log_odds(np.array([-9.0, 9.0])) == pytest.approx(
        [-0.5, 0.5], rel=0.3
    )


def running_sums(data, rng):
    return np.cumsum(np.asarray(data) + rng.laplace(scale=2.0, size=3))


def test_noisy_values_are_read_from_a_linear_function_of_the_whole_output():
    forecaster, _ = bound(running_sums, Pair([0, 1, 1], [0, 0, 0]))
    assert forecaster.log_odds(
        np.cumsum([[0, 9, -9], [5, 9, 9]], axis=1)
    ) == pytest.approx([0, 1])


def shuffled(ages, rng):
    first, second = np.asarray(ages)[rng.permutation(4)[:2]]
    return first * 10 + second + rng.laplace()


def test_the_density_is_averaged_over_an_order_that_is_hidden():
    forecaster, _ = bound(shuffled, Pair([0, 0, 0, 1], [0, 0, 0, 0]))
    density = lambda x: np.exp(-np.abs(x)) / 2  # noqa: E731
    outputs = np.array([0.0, 1.0, 10.0])
    expected = np.log(
        (2 * density(outputs) + density(outputs - 10) + density(outputs - 1))
        / (4 * density(outputs))
    )
    assert forecaster.log_odds(outputs) == pytest.approx(expected, abs=0.7)


def answers(bits, rng):
    return np.where(rng.random(len(bits)) < 0.75, bits, 1 - np.asarray(bits))


def bloom(bits, rng):
    return rng.random(len(bits)) < np.where(bits, 0.75, 0.25)


@pytest.mark.parametrize("function", [answers, bloom])
def test_events_that_decide_one_number_each_are_independent(function):
    forecaster, _ = bound(function, Pair([1] * 9 + [0], [0] * 9 + [0]))
    odds = forecaster.log_odds(np.array([[1] * 10, [0] * 10, [1] * 6 + [0] * 4]))
    assert odds == pytest.approx(np.array([9, -9, 3]) * math.log(3))


def test_the_law_of_its_log_odds_is_known_before_the_first_call():
    forecaster, _ = bound(
        lambda x, rng: x if rng.random() < 0.75 else 1 - x, Pair(1, 0)
    )
    zeros, ones = forecaster.stated.cells()
    assert (zeros, ones) == (pytest.approx([0.75, 0.25]), pytest.approx([0.25, 0.75]))


def two_sided(x, rng):
    return x + rng.geometric(1 - math.exp(-0.5)) - rng.geometric(1 - math.exp(-0.5))


@pytest.mark.parametrize(
    ("function", "distance"),
    [
        (noisy, 1 - math.exp(-1 / 4)),
        (
            lambda x, rng: (x + rng.normal(scale=2.0), x + rng.normal(scale=2.0)),
            2 * norm.cdf(math.sqrt(2) / 4) - 1,
        ),
        (
            lambda x, rng: rng.laplace(scale=1.0 + x),
            1 / 4,
        ),  # densities cross at 2 ln 2: e^(-ln 2) - e^(-2 ln 2)
        (two_sided, math.tanh(1 / 4)),
    ],
)
def test_the_law_of_the_log_odds_of_noise_is_known_before_the_first_call(
    function, distance
):
    forecaster, _ = bound(function, Pair(1, 0))
    zeros, ones = forecaster.stated.cells(256)
    assert np.abs(ones - zeros).sum() / 2 == pytest.approx(distance, abs=0.02)


def test_each_game_may_ask_as_often_what_noise_that_is_used_twice_was_added_to():
    mechanism, pair = as_mechanism(seeded_anew), Pair(1.0, 0.0)
    calls = Calls(mechanism)
    calls.look((1.0, 0.0), np.random.default_rng(0))
    made = ReplayedRatio(Trace(mechanism), PureDP(1.0), seed=1)
    assert made.reads_one_of([pair], calls.form)
    for _ in range(2):
        forecaster = made.bind(SeenAs(mechanism, calls.form), pair)
        assert np.isinf(
            forecaster.log_odds(
                calls(1.0, MAX_REPLAYED_OUTPUTS, np.random.default_rng(3))
            )
        ).all()


def descent(data, rng, *, bound=math.inf, seeded=False):
    """Noisy sums of gradients that depend on the noise before, unless they are cut; the noise is one, or one a step."""
    weight, noise = 0.0, rng.normal(scale=2.0)
    for _ in range(3):
        noised = np.clip((weight - data) ** 3, -bound, bound).sum() + (
            noise if seeded else rng.normal(scale=2.0)
        )
        weight -= 0.3 * noised
        yield noised


def bound_few(function, pair):
    mechanism = as_mechanism(lambda data, rng: [*function(data, rng)])
    calls = Calls(mechanism)
    calls.look((pair.data, pair.neighbour), np.random.default_rng(0))
    made = ReplayedRatio(
        Trace(mechanism), GaussianDP(0.5), seed=1, budget=RunBudget(1_000, 1_000)
    )
    return made.bind(SeenAs(mechanism, calls.form), pair), calls


def test_steps_that_are_released_have_the_exact_ratio_though_gradients_depend_on_noise():
    pair = Pair(np.array([1.5, 0.2]), np.array([0.2]))
    forecaster, calls = bound_few(descent, pair)
    outputs = calls(pair.data, 20, np.random.default_rng(3))

    def density(row, data):
        weight, log_density = 0.0, 0.0
        for noised in row:
            log_density += norm.logpdf(noised, ((weight - data) ** 3).sum(), 2.0)
            weight -= 0.3 * noised
        return log_density

    exact = [density(row, pair.data) - density(row, pair.neighbour) for row in outputs]
    assert forecaster.log_odds(outputs) == pytest.approx(exact)


def test_noise_that_is_used_twice_on_equal_changes_makes_uninformative_outputs():
    pair = Pair(np.array([1.5, 0.2]), np.array([0.2]))
    forecaster, calls = bound_few(partial(descent, bound=3.0, seeded=True), pair)
    odds = [
        forecaster.log_odds(calls(data, 30, np.random.default_rng(3)))
        for data in (pair.data, pair.neighbour)
    ]
    assert {*odds[0].tolist()} == {0.0, math.inf}
    assert {*odds[1].tolist()} == {0.0, -math.inf}
    assert forecaster.stated.weights[forecaster.stated.log_odds == 0].sum() > 0


def test_a_law_that_promises_a_finding_takes_no_runs_from_the_game():
    mechanism = as_mechanism(lambda x, rng: x + rng.normal())
    calls = Calls(mechanism)
    calls.look((1.0, 0.0), np.random.default_rng(0))
    made = ReplayedRatio(
        Trace(mechanism),
        PureDP(0.8),
        seed=1,
        ways=(ReplayedRatio._by_change,),
        budget=RunBudget(20_000, 60),
    )
    assert made.reads_one_of([Pair(1.0, 0.0)], calls.form)
    assert made.trace.runs <= 60


def test_frequencies_are_no_more_than_one_where_an_output_shows_several_numbers():
    def by_key(keys, rng):
        return {key: rng.laplace(scale=2.0) for key in keys} | {
            "all": len(keys) + rng.laplace(scale=2.0)
        }

    forecaster, _ = bound(by_key, Pair(["a", "b", "c"], []))
    assert forecaster.stated.weights.tolist() == [
        1.0,
        1.0,
        0.0,
    ]  # raw keys: [] is told as surely


def test_a_game_that_is_certain_ends_at_the_call_that_refutes():
    mechanism = as_mechanism(lambda x, rng: x + rng.laplace(scale=0.01))
    forecasters = [ViewExperts(), ReplayedRatio(Trace(mechanism), PureDP(1.0), seed=1)]
    game = Game(
        mechanism,
        PureDP(1.0),
        [Pair(1.0, 0.0)],
        forecasters,
        lambda *_: np.random.default_rng(2),
    )
    game.play(100, alpha=0.05, stop_when_refuted=True)
    assert game.refuted_at <= math.log(20) / -math.log(1 / (1 + math.exp(-1.0))) + 1.5
