"""Bounds over all events, distances from a stated law, and the counts of outputs.

Brute-force oracles and known values.
"""

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import multinomial

from auditdp import GaussianLaw, LaplaceLaw, StepLaw
from auditdp.evidence import counted_events
from auditdp.evidence.counted_events import (
    CountLimits,
    RegionLimits,
    Tally,
    cdf_of,
    different,
    kolmogorov,
    kolmogorov_margin,
    largest_losses,
    log_e_value,
    most_hits,
    nodes,
    radius,
    total_variation,
    unseen,
)
from auditdp.mechanism.calls import Calls
from auditdp.numerics.binomial import lower_limit, upper_limit
from auditdp.numerics.streams import stream

PAIR = np.array([[0], [1]])


def events(outputs):
    """All subsets of the outputs, one a row."""
    return np.array(list(product([False, True], repeat=outputs)))


def region(x, y, runs, error):
    """Points of the edge of an event's region, from its definition."""
    theta = np.linspace(0, np.pi / 2, 601)
    r = radius(error)
    p = upper_limit(x, runs, ndtr(-r * np.cos(theta)))
    return p, lower_limit(y, runs, ndtr(-r * np.sin(theta)))


# Bounds over all events.


@pytest.mark.parametrize("error", [0.5, 1e-4, 1e-12])
def test_two_normal_numbers_leave_the_radius_as_often_as_stated(error):
    r = radius(error)
    outside = ndtr(-r) + math.exp(-(r**2) / 2) / 4
    assert outside == pytest.approx(error, rel=1e-9)
    assert radius(1.0) == 0.0


def test_the_rarest_of_too_many_outputs_count_as_hits(monkeypatch):
    first, second = np.array([5, 3, 2]), np.array([6, 1, 3])
    exact = most_hits(first, second, 10)
    monkeypatch.setattr(CountLimits, "outputs", 2)

    assert (most_hits(first, second, 10) >= exact).all()
    assert most_hits(first, second, 10)[0] == 3


@pytest.mark.parametrize("seed", range(8))
def test_bounds_are_the_largest_over_all_subsets(seed):
    """Every subset of the outputs, in both orders.

    The limits are those of the definition of the region, on a fine grid of angles.
    """
    rng = np.random.default_rng(seed)
    outputs, runs = int(rng.integers(1, 6)), int(rng.integers(60, 3000))
    error = 10.0 ** rng.uniform(-6, -1)
    law = np.ones(outputs)
    counts = np.array([rng.multinomial(runs, rng.dirichlet(law)) for _ in range(2)])
    delta, epsilon = 3 * unseen(runs, error), 0.4
    (found,), (needed,) = largest_losses(
        counts, PAIR, runs, error=error, deltas=[delta], epsilons=[epsilon]
    )
    truth = least = 0.0
    for first, second in (counts, counts[::-1]):
        for event in events(outputs):
            p, q = region(first[event].sum(), second[event].sum(), runs, error)
            with np.errstate(divide="ignore"):
                losses = np.log(p[p > delta] - delta) - np.log(q[p > delta])
            truth = max(truth, losses.max(initial=0))
            least = max(least, np.max(p - math.exp(epsilon) * q))

    assert truth - 1e-9 <= found or found == truth == math.inf
    assert found <= truth * 1.02 + 0.01 or found == truth
    assert least - 1e-12 <= needed <= least * 1.02 + 1e-3


def test_rounded_limits_are_wider():
    limits, rng = RegionLimits(100_000, 1e-3), np.random.default_rng(1)
    x, y = rng.integers(0, 100_001, (2, 50))
    p, q = limits(x, y, CountLimits.coarse_grid)
    wide_p, wide_q = limits.rounded(x, y)

    assert (p <= wide_p + 1e-15).all()
    assert (q >= wide_q - 1e-15).all()


def test_nodes_hold_every_small_count_and_both_ends():
    found = nodes(1_000_000, 0.25).tolist()
    assert found[0] == 0
    assert found[-1] == 1_000_000
    assert set(range(16)) <= set(found)
    assert len(found) < 15_000
    assert nodes(1, 0.25).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("counts", "delta", "epsilon"),
    [
        # An output that never came costs δ.
        ([[500], [500]], 0.99 * unseen(500, 0.05), math.inf),
        ([[500], [500]], 1.01 * unseen(500, 0.05), 0.0),
        # An output that one input cannot give leaves no ε.
        ([[500, 0], [0, 500]], 0.5, math.inf),
    ],
)
def test_losses_of_outputs_that_never_came(counts, delta, epsilon):
    options = {"error": 0.05, "deltas": [delta], "epsilons": [800.0]}
    found = largest_losses(np.array(counts), PAIR, 500, **options)
    assert found[0] == [epsilon]
    assert found[1] == [1.0] or len(counts[0]) == 1


# Distances from a stated law.


@pytest.mark.parametrize("seed", range(6))
def test_total_variation_is_the_largest_over_all_subsets(seed):
    rng = np.random.default_rng(seed)
    outputs, runs = int(rng.integers(1, 7)), int(rng.integers(30, 900))
    x = rng.multinomial(runs, rng.dirichlet(np.ones(outputs)))
    q = rng.dirichlet(np.ones(outputs))
    truth = max(upper_limit(events(outputs) @ x, runs, 0.01) - events(outputs) @ q)
    found = total_variation(x[None], q[None], runs, 0.01)

    assert truth - 1e-12 <= found <= truth + 0.1 / math.sqrt(runs)


def test_the_distance_of_many_outputs_is_bounded_no_lower(monkeypatch):
    x, q = np.array([[30, 50, 20]]), np.array([[0.3, 0.4, 0.3]])
    exact = total_variation(x, q, 100, 0.01)
    monkeypatch.setattr(CountLimits, "exact_outputs", 0)
    assert total_variation(x, q, 100, 0.01) >= exact


def test_an_output_that_never_came_may_still_come():
    found = total_variation(np.array([[1_000]]), np.array([[1.0]]), 1_000, 0.01)
    assert found == pytest.approx(1 - 0.01 ** (1 / 1_000))


def test_the_distance_is_that_of_the_worst_input():
    counts, law = np.array([[50, 50], [90, 10]]), np.full((2, 2), 0.5)
    worst = total_variation(counts[1:], law[1:], 100, 0.01)
    assert worst > 0.4
    for rows in (counts, counts[::-1]):
        assert total_variation(rows, law, 100, 0.01) == worst


def test_an_e_value_has_expectation_one_under_the_law():
    """Every outcome of 6 runs on two inputs, weighted with its probability."""
    law = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    pairs = [(a, b) for a, b in product(range(7), repeat=2) if a + b <= 6]
    outcomes = [np.array([a, b, 6 - a - b]) for a, b in pairs]
    total = 0.0
    for x, y in product(outcomes, repeat=2):
        chance = multinomial.pmf(x, 6, law[0]) * multinomial.pmf(y, 6, law[1])
        total += chance * math.exp(log_e_value(np.array([x, y]), law))

    assert total == pytest.approx(1, rel=1e-7)


def test_an_output_that_the_law_excludes_refutes_it():
    assert log_e_value(np.array([[999, 1]]), np.array([[1.0, 0.0]])) == math.inf
    assert log_e_value(np.array([[999, 0]]), np.array([[1.0, 0.0]])) <= 0


@pytest.mark.parametrize(("runs", "bias"), [(2_000, 0.08), (200_000, 0.008)])
def test_a_biased_bit_is_refuted(runs, bias):
    """About seven standard deviations: refuted at 1e-4 with expected counts."""
    counts = np.rint(runs * np.array([[0.5 + bias, 0.5 - bias]])).astype(int)
    assert log_e_value(counts, np.full((1, 2), 0.5)) > math.log(1e4)


UNIFORM = StepLaw([0, 1], [1])
COIN = StepLaw(atoms=[0, 1], probabilities=[0.5, 0.5])


@pytest.mark.parametrize(
    ("law", "numbers", "distance"),
    [
        (UNIFORM, [0.25, 0.75], 0.25),
        (UNIFORM, [0.5, np.nan], 1.0),
        (COIN, [0.0, 0.0], 0.5),
    ],
)
def test_kolmogorov_distances(law, numbers, distance):
    assert kolmogorov(np.array(numbers), law.cdf) == pytest.approx(distance)


def test_laws_of_one_number_have_a_distribution_function():
    cdf = cdf_of(GaussianLaw(np.array([2.0]), 3.0))
    assert cdf(np.array([2.0, 5.0])) == pytest.approx(ndtr([0, 1]))
    assert cdf_of(GaussianLaw(np.zeros(2), 1.0)) is None
    # A Laplace law is one before post-processing.
    assert cdf_of(LaplaceLaw(np.zeros(1), np.ones(1))) is None


def test_the_margin_is_that_of_massart():
    assert kolmogorov_margin(200, 0.05) == pytest.approx(math.sqrt(math.log(40) / 400))


# Counts of outputs.


def tally(mechanism, inputs, most, runs):
    """The counts of outputs, and the outputs themselves."""
    made = Tally(Calls(mechanism), inputs, lambda *key: stream(3, *key), most=most)
    rows = [made.add(each) for each in runs]
    return made, rows


def test_outputs_are_counted_on_each_input_over_batches(monkeypatch):
    monkeypatch.setattr(CountLimits, "batch", 7)
    counted, rows = tally(
        lambda data, size, *, rng: np.full(size, data, np.int8), [0, 1], 5, [20, 3]
    )
    assert counted.runs == 23
    assert counted.outputs.tolist() == [[0], [1]]
    assert counted.counts.tolist() == [[23, 0], [0, 23]]
    assert [[len(each) for each in both] for both in rows] == [[20, 20], [3, 3]]


def cycled(outputs):
    return lambda data, size, *, rng: [outputs[k % len(outputs)] for k in range(size)]


def test_which_outputs_are_equal():
    outputs = [*[0.5] * 6, 0.0, -0.0, None, "a", "b", math.nan]
    counted, _ = tally(cycled(outputs), [0], 9, [len(outputs)])
    assert sorted(counted.counts[0].tolist()) == [1, 1, 1, 1, 1, 1, 6]


def test_an_output_of_another_type_is_another_output():
    counted, _ = tally(
        lambda data, size, *, rng: np.zeros(size, [np.int8, float][data]),
        [0, 1],
        9,
        [4],
    )
    assert counted.counts.tolist() == [[4, 0], [0, 4]]


def test_rows_with_one_fingerprint_are_compared(monkeypatch):
    monkeypatch.setattr(counted_events, "fingerprint", lambda rows: np.zeros(len(rows)))
    rows, times = different(np.array([[1, 0], [0, 1], [1, 0]]))
    counted = dict(zip(map(tuple, rows.tolist()), times.tolist(), strict=True))
    assert counted == {(1, 0): 2, (0, 1): 1}


def test_more_outputs_than_the_limit_fill_the_tally():
    counted, rows = tally(lambda data, size, *, rng: rng.random(size), [0, 1], 10, [50])
    assert counted.full
    assert [len(each) for each in rows[0]] == [50, 50]
