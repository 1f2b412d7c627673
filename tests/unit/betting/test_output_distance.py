"""Distances of the outputs of pairs, for a search with a run budget."""

import numpy as np
import pytest

from auditdp.adjacency import Pair
from auditdp.betting.pairs.distances import farthest_pair, output_distance
from auditdp.tracing import Trace


def forgetful(data, rng):
    """Two steps; the second one divides the change of the first one by the records."""
    first = data[0] + rng.normal()
    return 1e12, first / len(data) ** 2 + rng.normal()


def distance_of(trace, pair, seed, runs=6):
    return output_distance(trace, pair, [], [], seed, runs)


def test_pairs_are_ordered_by_the_distance_of_their_outputs():
    trace = Trace(forgetful)
    alone, among = Pair([3.0], [0.0]), Pair([3.0] + [1.0] * 9, [0.0] + [1.0] * 9)
    assert farthest_pair(trace, [among, alone], seed=0, runs=6, rounds=2) is alone
    assert 1.0 < distance_of(trace, alone, seed=0) < 9.0
    assert distance_of(trace, among, seed=0) < 0.1


def test_pairs_with_equal_outputs_count_once():
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
    assert distance_of(trace, alone, seed=0, runs=12) > distance_of(
        trace, among[0], seed=0, runs=12
    )


def sampled(data, rng):
    """A final model: in each step a batch of records is drawn."""
    return sum(
        data[rng.random(len(data)) < 0.1].sum() + rng.normal() for _ in range(100)
    )


@pytest.mark.full
def test_the_distance_of_sampled_models_varies_little_with_the_seed():
    data = np.array([1.0, 0.0, 0.0, 0.0])
    distances = [
        distance_of(Trace(sampled), Pair(data, data[1:]), seed=seed, runs=48)
        for seed in range(8)
    ]
    assert np.std(distances) < 0.15  # with other draws on the other input, it is 0.29


def test_noise_of_another_size_counts_and_outputs_without_numbers_do_not():
    loud = Pair(10.0, 1.0)
    assert (
        distance_of(Trace(lambda scale, rng: scale * rng.normal()), loud, seed=0) > 1.5
    )
    assert distance_of(Trace(lambda scale, rng: "text"), loud, seed=0) == 0.0
    assert (
        distance_of(Trace(lambda scale, rng: [1.0] * int(scale)), loud, seed=0) == 0.0
    )
