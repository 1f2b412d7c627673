"""Memory: the first outputs of either coin, in order, up to its size."""

from dataclasses import replace

import numpy as np
import pytest

from auditdp.betting.forecasters import batches as module
from auditdp.betting.forecasters.batches import Memory
from auditdp.betting.limits import LIMITS


def rows(start, count, width=2):
    return np.arange(start, start + count * width).reshape(count, width)


def test_outputs_are_kept_by_coin_and_in_order():
    memory, ones, zeros = Memory(), [], []
    random = np.random.default_rng(0)
    for batch in range(40):
        heads, tails = (int(n) for n in random.integers(0, 9, 2))
        ones.append(rows(1000 * batch, heads))
        zeros.append(rows(-1000 * batch, tails))
        memory.add(ones[-1], zeros[-1])
        assert memory.ones.tolist() == np.concatenate(ones).tolist()
        assert memory.zeros.tolist() == np.concatenate(zeros).tolist()
        assert memory.calls == sum(map(len, ones)) + sum(map(len, zeros))
    outputs, labels = memory.labelled()
    assert outputs.tolist() == np.concatenate(ones + zeros).tolist()
    assert labels.tolist() == [1] * sum(map(len, ones)) + [0] * sum(map(len, zeros))
    assert labels.dtype == np.int8


@pytest.mark.parametrize("kind", [bool, np.int8, np.float32])
def test_types_and_shapes_stay(kind):
    memory = Memory()
    memory.add(np.ones((3, 2, 4), kind), np.zeros((0, 2, 4), kind))
    assert (memory.ones.shape, memory.ones.dtype) == ((3, 2, 4), kind)
    assert (memory.zeros.shape, memory.zeros.dtype) == ((0, 2, 4), kind)


def test_what_is_kept_is_a_copy():
    memory, outputs = Memory(), np.ones((3, 1))
    memory.add(outputs, outputs)
    outputs[:] = 7
    assert memory.ones.tolist() == memory.zeros.tolist() == [[1.0]] * 3


def test_a_full_memory_keeps_counting_calls_and_nothing_else(monkeypatch):
    monkeypatch.setattr(module, "LIMITS", replace(LIMITS, memory_bytes=100))
    memory = Memory()
    memory.add(np.zeros(5), np.zeros(5))
    assert not memory.full
    memory.add(np.ones(3), np.ones(0))
    assert memory.full
    memory.add(np.full(50, 2.0), np.full(50, 2.0))
    assert memory.calls == 113
    assert memory.ones.tolist() == [0.0] * 5 + [1.0] * 3
    assert memory.zeros.tolist() == [0.0] * 5


def test_outputs_without_width_are_remembered_by_their_number():
    memory = Memory()
    memory.add(np.zeros((4, 0)), np.zeros((2, 0)))
    memory.add(np.zeros((1, 0)), np.zeros((2, 0)))
    assert (memory.ones.shape, memory.zeros.shape, memory.full) == (
        (5, 0),
        (4, 0),
        False,
    )
