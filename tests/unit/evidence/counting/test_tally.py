"""Counting outputs: what is one output, over all batches and inputs."""

import numpy as np

from auditdp.evidence import counted_events as module
from auditdp.evidence.counted_events import Tally, different
from auditdp.mechanism.calls import Calls
from auditdp.numerics.streams import stream


def streams(purpose, number):
    return stream(3, purpose, number)


def test_outputs_are_counted_on_each_input_over_batches(monkeypatch):
    monkeypatch.setattr(module.CountLimits, "batch", 7)
    tally = Tally(
        Calls(lambda data, size, *, rng: np.full(size, data, np.int8)),
        ["a", 0, 1][1:],
        streams,
        most=5,
    )
    rows = [
        np.concatenate(both) for both in zip(tally.add(20), tally.add(3), strict=True)
    ]
    assert tally.runs == 23
    assert tally.outputs.tolist() == [[0], [1]]
    assert tally.counts.tolist() == [[23, 0], [0, 23]]
    assert [each.shape for each in rows] == [(23, 1), (23, 1)]


def test_rows_are_counted_as_wholes():
    tally = Tally(
        Calls(lambda data, size, *, rng: rng.integers(0, 2, (size, 2, 2))),
        [0],
        streams,
        most=16,
    )
    tally.add(2_000)
    assert len(tally.outputs) == 16
    assert len({row.tobytes() for row in tally.outputs}) == 16
    assert tally.counts.sum() == 2_000


def test_numbers_that_look_the_same_are_one_output():
    rows = np.array([[1.0], [1.0], [np.nan], [-np.nan], [0.0]])
    tally = Tally(
        Calls(lambda data, size, *, rng: np.resize(rows, (size, 1))),
        [0, 1],
        streams,
        most=5,
    )
    tally.add(5)
    assert len(tally.outputs) == 3
    assert sorted(tally.counts[0].tolist()) == [1, 2, 2]


def test_a_shared_fingerprint_is_no_shared_output(monkeypatch):
    monkeypatch.setattr(module, "fingerprint", lambda rows: np.zeros(len(rows)))
    rows, times = different(np.array([[1, 0], [0, 1], [1, 0]]))
    assert dict(zip(map(tuple, rows.tolist()), times.tolist(), strict=True)) == {
        (1, 0): 2,
        (0, 1): 1,
    }


def test_more_outputs_than_are_counted_are_said_to_be_more():
    tally = Tally(
        Calls(lambda data, size, *, rng: rng.random(size)), [0, 1], streams, most=10
    )
    rows = tally.add(50)
    assert tally.full
    assert [len(each) for each in rows] == [50, 50]


def test_a_type_that_changes_is_another_output():
    tally = Tally(
        Calls(lambda data, size, *, rng: np.zeros(size, [np.int8, float][data])),
        [0, 1],
        streams,
        most=10,
    )
    tally.add(4)
    assert tally.counts.tolist() == [[4, 0], [0, 4]]


def test_zeros_of_either_sign_and_outputs_without_numbers_are_told_apart():
    drawn = [0.5] * 6 + [0.0, -0.0, None, "a", "b", float("nan")]
    tally = Tally(
        Calls(lambda data, size, *, rng: [drawn[k] for k in np.arange(size) % 12]),
        [0],
        streams,
        most=9,
    )
    tally.add(12)
    assert sorted(tally.counts[0].tolist()) == [1, 1, 1, 1, 1, 1, 6]
