"""The replayed ratio: exact if the output determines the noisy values, 0 otherwise."""

from functools import partial
from math import exp, inf, log, sin, sqrt, tanh

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.stats import laplace, norm

from auditdp import GaussianDP, Pair, PureDP
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.traced import ReplayedRatio, RunBudget
from auditdp.betting.forecasters.traced_replay import MAX_REPLAYED_OUTPUTS
from auditdp.mechanism.calls.representation import SeenAs
from auditdp.tracing import Trace
from tests.unit.betting.toys import CLAIM, looked, new_game


def template(mechanism, claim=CLAIM, seed=1, **options):
    return ReplayedRatio(Trace(mechanism), claim, seed=seed, **options)


def bound(function, pair, **options):
    """Return the forecaster of a pair, and the calls of the mechanism."""
    mechanism, calls = looked(function, pair)
    forecaster = template(mechanism, **options)
    return forecaster.bind(SeenAs(mechanism, calls.form), pair), calls


def drawn(calls, data, size):
    return calls(data, size, default_rng(3))


def together(x, size, *, rng):
    return x + rng.laplace(scale=2.0, size=size)


def in_their_own_range(values, rng):
    low = min(values)
    high = max(values)
    noisy = (np.mean(values) - low) / (high - low) + rng.laplace(scale=1 / 2)
    return low + (high - low) * noisy


def response(x, rng):
    return x if rng.random() < 0.75 else 1 - x


def adaptive(x, rng):
    first = x + rng.normal()
    return first, x * first + rng.normal()


def descent(data, rng, *, bound=inf, seeded=False):
    """Return noisy sums of gradients that depend on the noise before.

    With ``bound`` they are equal; with ``seeded`` the noise is the same in each step.
    """
    weight = 0.0
    noise = rng.normal(scale=2.0)
    steps = []
    for _ in range(3):
        if not seeded:
            noise = rng.normal(scale=2.0)
        gradients = np.clip((weight - data) ** 3, -bound, bound)
        steps.append(gradients.sum() + noise)
        weight -= 0.3 * steps[-1]
    return steps


# Log-densities of known outputs, shape (outputs, numbers), on one input.


def of_together(rows, x):
    return laplace.logpdf(rows[:, 0], x, 2.0)


def of_range(rows, values):
    width = max(values) - min(values)
    return laplace.logpdf(rows[:, 0], np.mean(values), width / 2)


def of_adaptive(rows, x):
    first, second = rows.T
    return norm.logpdf(first, x) + norm.logpdf(second, x * first)


def of_descent(rows, data):
    weight = np.zeros((len(rows), 1))
    density = 0.0
    for step in rows.T:
        mean = ((weight - data) ** 3).sum(axis=1)
        density = density + norm.logpdf(step, mean, 2.0)
        weight = weight - 0.3 * step[:, None]
    return density


def of_response(rows, x):
    return np.log(np.where(rows[:, 0] == x, 0.75, 0.25))


ONE = Pair(1.0, 0.0)
STEPS = Pair(np.array([1.5, 0.2]), np.array([0.2]))


BUDGET = {"claim": GaussianDP(0.5), "budget": RunBudget(1_000, 1_000)}


@pytest.mark.parametrize(
    ("function", "pair", "density", "options"),
    [
        (together, ONE, of_together, {}),
        (in_their_own_range, Pair([2.0, 4.0], [2.0, 4.0, 6.0]), of_range, {}),
        (adaptive, Pair(3.0, 0.0), of_adaptive, {}),
        (descent, STEPS, of_descent, BUDGET),
        (response, Pair(1, 0), of_response, {}),
    ],
)
def test_it_is_the_likelihood_ratio_of_the_noise(function, pair, density, options):
    forecaster, calls = bound(function, pair, **options)
    rows = drawn(calls, pair.data, 20)
    odds = forecaster.log_odds(rows)
    numbers = rows.reshape(20, -1)
    known = density(numbers, pair.data) - density(numbers, pair.neighbour)
    assert odds == pytest.approx(known, abs=1e-9)
    alone = [forecaster.log_odds(row[None])[0] for row in rows]
    assert alone == pytest.approx(odds), "no other output matters"


def raw_or_noisy(x, rng):
    return x if rng.random() < 0.5 else x + rng.laplace()


def signed(x, rng):
    size = rng.exponential(scale=2.0)
    return x + np.where(rng.random() < 0.5, size, -size)


def rounded(x, rng):
    return round(x + rng.laplace(scale=2.0), 2)


def running_sums(data, rng):
    return np.cumsum(np.asarray(data) + rng.laplace(scale=2.0, size=3))


def shuffled(ages, rng):
    first, second = np.asarray(ages)[rng.permutation(4)[:2]]
    return first * 10 + second + rng.laplace()


def bloom(bits, rng):
    return rng.random(len(bits)) < np.where(bits, 0.75, 0.25)


def of_orders(outputs):
    """Return the log-odds averaged over the hidden order of one 1 among three 0."""
    orders = laplace.pdf(outputs[:, None], [0, 0, 1, 10])
    return np.log(orders.mean(axis=1) / orders[:, 0])


AGES = Pair([0, 0, 0, 1], [0] * 4)
HIDDEN = np.array([0.0, 1.0, 10.0])
TENS = np.repeat([[1, 1], [0, 0], [1, 0]], [6, 4], axis=1)
BITS = Pair([1] * 9 + [0], [0] * 10)
BIT_ODDS = np.array([9, -9, 3]) * log(3)


@pytest.mark.parametrize(
    ("function", "pair", "outputs", "expected", "tolerance"),
    [
        # A value that bypasses the noise is certain.
        (raw_or_noisy, Pair(0.25, 0.75), [0.25, 0.75, 0.5], [inf, -inf, 0.0], {}),
        # Noise that is not followed is read off by its shift.
        (signed, ONE, [-9.0, 9.0], [-0.5, 0.5], {"rel": 0.3}),
        (rounded, ONE, [-9.0, 9.0], [-0.5, 0.5], {"rel": 0.3}),
        # Noisy values are linear functions of the whole output.
        (running_sums, Pair([0, 1, 1], [0] * 3), [[0, 9, 0], [5, 14, 23]], [0, 1], {}),
        # The density is averaged over an order that is hidden.
        (shuffled, AGES, HIDDEN, of_orders(HIDDEN), {"abs": 0.7}),
        # Events that decide one number each are independent.
        (bloom, BITS, TENS, BIT_ODDS, {}),
    ],
)
def test_log_odds_of_known_outputs(function, pair, outputs, expected, tolerance):
    forecaster, _ = bound(function, pair, seed=2 if function is raw_or_noisy else 1)
    odds = forecaster.log_odds(np.array(outputs))
    assert odds == pytest.approx(np.array(expected), **tolerance)


def curved(x, rng):
    first = rng.laplace()
    return first, x * sin(9 * first) + rng.laplace()


def multiplied(x, rng):
    return (x + 1) * rng.standard_cauchy()


@pytest.mark.parametrize("function", [curved, multiplied])
def test_it_abstains_if_noisy_values_do_not_follow_from_the_output(function):
    forecaster, calls = bound(function, ONE)
    assert not forecaster.log_odds(drawn(calls, 1.0, 20)).any()


def test_it_abstains_on_an_output_of_another_form():
    def sometimes_two(x, rng):
        released = x + rng.laplace()
        return [released] if released < 9 else [released, released]

    forecaster, calls = bound(sometimes_two, ONE)
    odds = forecaster.log_odds(calls.form.rows([[0.25], [9.5, 9.5]]))
    assert (odds != 0).tolist() == [True, False]
    assert forecaster.abstained == 1


def seeded_anew(x, rng):
    seed = int(rng.integers(2**32))
    released = [0.0]
    for _ in range(2):
        noise = default_rng(seed).laplace()
        released.append(tanh(x + released[-1]) + noise)
    return released[1:]


def test_noise_that_is_used_twice_makes_certain_log_odds():
    """Each game has its own budget of replays."""
    mechanism, calls = looked(seeded_anew, ONE)
    made = template(mechanism)
    assert made.reads_one_of([ONE], calls.form)
    for x, odds in ((1.0, inf), (0.0, -inf)):
        forecaster = made.bind(SeenAs(mechanism, calls.form), ONE)
        rows = drawn(calls, x, MAX_REPLAYED_OUTPUTS)
        assert (forecaster.log_odds(rows) == odds).all()
    forecaster = made.bind(SeenAs(mechanism, calls.form), ONE)
    assert not forecaster.log_odds(np.array([[0.3, -2.0]])).any()


def test_noise_that_is_used_twice_on_equal_changes_makes_uninformative_outputs():
    function = partial(descent, bound=3.0, seeded=True)
    forecaster, calls = bound(function, STEPS, **BUDGET)
    for data, certain in ((STEPS.data, inf), (STEPS.neighbour, -inf)):
        odds = forecaster.log_odds(drawn(calls, data, 30))
        assert {*odds.tolist()} == {0.0, certain}
    assert forecaster.stated.weights[forecaster.stated.log_odds == 0].sum() > 0


def two_sided(x, rng):
    return x + rng.geometric(1 - exp(-0.5)) - rng.geometric(1 - exp(-0.5))


@pytest.mark.parametrize(
    ("function", "distance"),
    [
        (
            lambda x, rng: (x + rng.normal(scale=2.0), x + rng.normal(scale=2.0)),
            2 * norm.cdf(sqrt(2) / 4) - 1,
        ),
        # Densities cross at 2 ln 2: e^(-ln 2) - e^(-2 ln 2).
        (lambda x, rng: rng.laplace(scale=1.0 + x), 1 / 4),
        (two_sided, tanh(1 / 4)),
        (response, 0.5),
    ],
)
def test_the_law_of_the_log_odds_is_stated(function, distance):
    """Its total variation is that of the noise."""
    forecaster, _ = bound(function, Pair(1, 0))
    zeros, ones = forecaster.stated.cells(256)
    assert np.abs(ones - zeros).sum() / 2 == pytest.approx(distance, abs=0.02)


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
    assert not np.isnan(forecaster.stated.log_odds).any()
    assert (forecaster.stated.weights > 0).all()


def test_frequencies_are_at_most_one_if_an_output_shows_several_numbers():
    def by_key(keys, rng):
        noisy = {key: rng.laplace(scale=2.0) for key in keys}
        return noisy | {"all": len(keys) + rng.laplace(scale=2.0)}

    forecaster, _ = bound(by_key, Pair(["a", "b", "c"], []))
    # Raw keys: the empty list is as certain.
    assert forecaster.stated.weights.tolist() == [1.0, 1.0, 0.0]


def test_a_law_that_promises_a_finding_takes_no_runs_from_the_game():
    mechanism, calls = looked(lambda x, rng: x + rng.normal(), ONE)
    ways = (ReplayedRatio._by_change,)
    budget = RunBudget(20_000, 60)
    made = template(mechanism, PureDP(0.8), ways=ways, budget=budget)
    assert made.reads_one_of([ONE], calls.form)
    assert made.trace.runs <= 60


def test_a_game_that_is_certain_ends_at_the_call_that_refutes():
    mechanism, _ = looked(lambda x, rng: x + rng.laplace(scale=0.01), ONE)
    forecasters = [ViewExperts(), template(mechanism)]
    game = new_game(mechanism, CLAIM, forecasters, pairs=[ONE], seed=2)
    game.play(100, alpha=0.05, stop_when_refuted=True)
    gain = log(1 + exp(-1.0))
    assert game.refuted_at <= log(20) / gain + 1.5
