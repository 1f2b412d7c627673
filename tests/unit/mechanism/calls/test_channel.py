"""Questions and answers: what is asked is what is answered, in the state in which one process would be."""

from __future__ import annotations

import json
import pickle
import threading
from contextlib import contextmanager
from multiprocessing import Pipe

import numpy as np
import pytest

from auditdp.errors import AdjacencyError, Timeout
from auditdp.mechanism.calls import channel as channel_module
from auditdp.mechanism.calls.calling import Calls
from auditdp.mechanism.calls.channel import Channel, ForeignError, LostError, answer
from auditdp.mechanism.calls.remote_mechanism import After, Seed


@contextmanager
def answering(answers):
    """Answer questions in a thread; yield the end of who asks."""
    here, there = Pipe()
    thread = threading.Thread(target=answer, args=(there, __file__, answers))
    thread.start()
    yield Channel(here)
    here.close()
    thread.join()


def test_data_and_arrays_come_as_they_were_given():
    rows = [
        np.arange(6.0).reshape(2, 3),
        np.array([True, False]),
        np.zeros((0, 2), np.int32),
        np.array([np.nan, -np.inf]),
    ]
    with answering(
        lambda what, given: ({"what": what, "given": list(given), "inf": np.inf}, rows)
    ) as channel:
        value, arrays = channel.ask("x", 1, "two")
    assert value == {"what": "x", "given": [1, "two"], "inf": np.inf}
    assert [(each.dtype, each.shape, each.tobytes()) for each in arrays] == [
        (each.dtype, each.shape, each.tobytes()) for each in rows
    ]


def test_errors_of_the_harness_are_raised_here_and_others_by_name():
    def answers(what, given):
        raise {
            "ours": AdjacencyError("no pair"),
            "theirs": KeyError("missing"),
            "exits": SystemExit(3),
        }[what]

    with answering(answers) as channel:
        with pytest.raises(AdjacencyError, match="no pair"):
            channel.ask("ours")
        with pytest.raises(ForeignError, match="missing") as raised:
            channel.ask("theirs")
        assert (type(raised.value).__name__, raised.value.place[:15]) == (
            "KeyError",
            "test_channel.py",
        )
        with pytest.raises(ForeignError, match="3"):
            channel.ask("exits")


@pytest.mark.parametrize(
    "sent",
    [
        *(
            b"",
            b"[]",
            b'{"ticket": 1}',
            b'{"ticket": "0", "cpu": 0}',
            b"\x80\x04N.",
            b"[" * 100_000,
        ),
        *(
            b'{"ticket": "T", "cpu": -1}',
            b'{"ticket": "T", "cpu": 0, "arrays": [["<f8", [1]]]}\n1234567',
        ),
        *(
            b'{"ticket": "T", "cpu": 0}\nx',
            b'{"ticket": "T", "cpu": 0, "arrays": [["|O8", [1]]]}\n12345678',
        ),
        *(
            b'{"ticket": "T", "cpu": 0, "arrays": [["<f8", [-1]]]}\n',
            b'{"ticket": "T", "cpu": 0, "arrays": [["<f3", [1]]]}\n123',
        ),
        b'{"ticket": "T", "cpu": 0, "value": "%s"}' % (b"x" * 1_000),
    ],
    ids=lambda sent: str(sent)[:40],
)
def test_what_is_no_answer_ends_the_conversation(sent, monkeypatch):
    monkeypatch.setattr(channel_module.FileLimits, "message_bytes", 1_000)
    here, there = Pipe()
    channel = Channel(here)

    def reply():
        ticket, *_ = pickle.loads(there.recv_bytes())
        there.send_bytes(sent.replace(b'"T"', json.dumps(ticket).encode()))

    thread = threading.Thread(target=reply)
    thread.start()
    with pytest.raises(LostError, match="something else than was asked"):
        channel.ask("x")
    thread.join()
    with pytest.raises(LostError):
        channel.ask("x")


def test_an_answer_that_comes_after_a_time_limit_is_no_answer_to_the_next_question():
    here, there = Pipe()
    channel, waits = Channel(here), []

    class Late:
        def poll(self):
            waits.append(1)
            if len(waits) == 1:
                raise Timeout("stopped")

    channel._ready = Late()
    with pytest.raises(Timeout):
        channel.ask("first")
    thread = threading.Thread(
        target=answer, args=(there, __file__, lambda what, given: (what, ()))
    )
    thread.start()
    assert channel.ask("second") == ("second", [])
    here.close()
    thread.join()


@pytest.mark.parametrize(
    "draws",
    [lambda rng: rng.normal(size=3), lambda rng: rng.spawn(2)[1].normal(size=3)],
)
def test_a_generator_goes_on_where_the_other_process_left_it(draws):
    """Also what is spawned from it: else every call would spawn the same."""
    here, one = (
        np.random.default_rng(np.random.SeedSequence(5, spawn_key=(7,)))
        for _ in range(2)
    )
    calls = Calls(lambda data, size, *, rng: draws(rng))
    for _ in range(3):
        there = pickle.loads(pickle.dumps(Seed.of(here))).generator()
        assert draws(there).tolist() == draws(one).tolist()
        After(**After.of(calls, there, calls.raised)).left(here)
        assert here.bit_generator.state == one.bit_generator.state
        assert here.integers(9, dtype=np.int32) == one.integers(9, dtype=np.int32)
