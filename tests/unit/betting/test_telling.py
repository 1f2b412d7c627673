"""How far apart the outputs of pairs are."""

import numpy as np
import pytest

from auditdp.adjacency import Pair
from auditdp.betting.pairs.distances import farthest_pair, output_distance
from auditdp.tracing import Trace


def forgetful(data, rng):
    """Two steps, of which the last one forgets what the others in the data pull at."""
    first = data[0] + rng.normal()
    return 1e12, first / len(data) ** 2 + rng.normal()


def telling(trace, pair, seed, runs=6):
    return output_distance(trace, pair, [], [], seed, runs)


def test_pairs_are_put_in_order_by_what_the_output_shows():
    trace = Trace(forgetful)
    alone, among = Pair([3.0], [0.0]), Pair([3.0] + [1.0] * 9, [0.0] + [1.0] * 9)
    assert farthest_pair(trace, [among, alone], seed=0, runs=6, rounds=2) is alone
    assert 1.0 < telling(trace, alone, seed=0) < 9.0
    assert telling(trace, among, seed=0) < 0.1


def test_pairs_that_are_another_one_in_another_order_are_run_no_further():
    trace = Trace(forgetful)
    alone, among = (
        Pair([3.0], [0.0]),
        [
            Pair([3.0] + [1.0] * 9, [0.0] + [1.0] * k + [1.0] * (9 - k))
            for k in range(9)
        ],
    )
    assert farthest_pair(trace, [*among, alone], seed=0, runs=6, rounds=2) is alone
    assert trace.runs == 2 * (2 * 12 + 8 * 2)
    assert telling(trace, alone, seed=0, runs=12) > telling(
        trace, among[0], seed=0, runs=12
    )


def sampled(data, rng):
    """A final model: in each step a batch of records is drawn."""
    return sum(
        data[rng.random(len(data)) < 0.1].sum() + rng.normal() for _ in range(100)
    )


@pytest.mark.full
def test_where_records_are_drawn_few_runs_tell_how_far_apart_final_models_are():
    data = np.array([1.0, 0.0, 0.0, 0.0])
    told = [
        telling(Trace(sampled), Pair(data, data[1:]), seed=seed, runs=48)
        for seed in range(8)
    ]
    assert np.std(told) < 0.15  # with other draws on the other input, it is 0.29


def test_noise_of_another_size_counts_and_what_is_no_number_does_not():
    loud = Pair(10.0, 1.0)
    assert telling(Trace(lambda scale, rng: scale * rng.normal()), loud, seed=0) > 1.5
    assert telling(Trace(lambda scale, rng: "text"), loud, seed=0) == 0.0
    assert telling(Trace(lambda scale, rng: [1.0] * int(scale)), loud, seed=0) == 0.0
