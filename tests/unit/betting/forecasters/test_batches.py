"""Batches and memory: outputs by coin, in an order that does not tell the coins."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.random import default_rng

from auditdp.betting.forecasters import batches as module
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.limits import LIMITS


def batch(ones, zeros, seed=0):
    return Batch(ones, zeros, default_rng(seed))


def test_outputs_are_mixed_with_their_coins_and_sorted_back():
    ones = np.arange(5.0) + 100
    zeros = np.arange(3.0)
    mixed = batch(ones, zeros)
    assert len(mixed) == 8
    assert (mixed.mixed >= 100).tolist() == (mixed.labels == 1).tolist()
    back = mixed.by_coin(mixed.mixed)
    assert [sorted(side.tolist()) for side in back] == [ones.tolist(), zeros.tolist()]


def test_every_order_of_the_coins_is_as_likely():
    """Two and two coins have 6 patterns; the 1e-6 quantile of chi-square is 35.9."""
    counts = Counter()
    for seed in range(1_200):
        counts[tuple(batch(np.ones(2), np.zeros(2), seed).labels.tolist())] += 1
    assert len(counts) == 6
    assert sum((count - 200) ** 2 / 200 for count in counts.values()) < 35.9


def test_batch_and_memory_copy_their_outputs():
    ones = np.ones((3, 1))
    memory = Memory()
    mixed = batch(ones, np.zeros((3, 1)))
    memory.add(ones, ones)
    mixed.mixed[:] = 7
    assert ones.tolist() == [[1.0]] * 3
    assert set(mixed.mixed.ravel().tolist()) == {0, 1}
    ones[:] = 7
    assert memory.ones.tolist() == memory.zeros.tolist() == [[1.0]] * 3


def test_a_memory_has_outputs_by_coin_and_in_order():
    memory = Memory()
    ones = []
    zeros = []
    random = default_rng(0)
    for start in range(0, 40_000, 1_000):
        heads, tails = random.integers(0, 9, 2)
        batch = start + np.arange(heads + tails)[:, None]
        memory.add(batch[:heads], batch[heads:])
        ones += batch[:heads].tolist()
        zeros += batch[heads:].tolist()
        assert memory.ones.tolist() == ones
        assert memory.zeros.tolist() == zeros
        assert memory.calls == len(ones) + len(zeros)
    outputs, labels = memory.labelled()
    assert outputs.tolist() == ones + zeros
    assert labels.tolist() == [1] * len(ones) + [0] * len(zeros)
    assert labels.dtype == np.int8


@pytest.mark.parametrize(
    "shape",
    [
        (3, 2, 4),
        (3, 0),
    ],
)
def test_a_memory_has_outputs_of_their_type_and_shape(shape):
    memory = Memory()
    outputs = np.ones(shape, np.float32)
    for _ in range(2):
        memory.add(outputs, outputs[:0])
    assert memory.ones.shape == (6, *shape[1:])
    assert memory.zeros.shape == (0, *shape[1:])
    assert memory.ones.dtype == memory.zeros.dtype == np.float32
    assert not memory.full


def test_a_full_memory_counts_calls_and_keeps_no_more_outputs(monkeypatch):
    monkeypatch.setattr(module, "LIMITS", replace(LIMITS, memory_bytes=100))
    memory = Memory()
    for value, ones, zeros in ((0.0, 5, 5), (1.0, 3, 0), (2.0, 50, 50)):
        assert memory.full == (value == 2)
        memory.add(np.full(ones, value), np.full(zeros, value))
    assert memory.calls == 113
    assert memory.ones.tolist() == [0.0] * 5 + [1.0] * 3
    assert memory.zeros.tolist() == [0.0] * 5
