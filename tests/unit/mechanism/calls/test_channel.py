"""Questions and answers between two processes, and the state that they leave."""

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
from tests.unit.mechanism.toys import generator


@contextmanager
def in_a_thread(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    yield
    thread.join()


@contextmanager
def answering(answers):
    """Answer questions in a thread, and yield the end of who asks."""
    here, there = Pipe()
    with in_a_thread(answer, there, __file__, answers):
        yield Channel(here)
        here.close()


def test_values_and_arrays_arrive_unchanged():
    rows = [
        np.arange(6.0).reshape(2, 3),
        np.array([True, False]),
        np.zeros((0, 2), np.int32),
        np.array([np.nan, -np.inf]),
    ]

    def answers(question, given):
        return {"question": question, "given": list(given), "inf": np.inf}, rows

    with answering(answers) as channel:
        value, arrays = channel.ask("x", 1, "two")
    assert value == {"question": "x", "given": [1, "two"], "inf": np.inf}
    for found, sent in zip(arrays, rows, strict=True):
        assert found.dtype == sent.dtype
        assert found.shape == sent.shape
        assert found.tobytes() == sent.tobytes()


def test_errors_of_the_harness_are_raised_here_and_others_by_name():
    errors = {
        "ours": AdjacencyError("no pair"),
        "theirs": KeyError("missing"),
        "exits": SystemExit(3),
    }

    def answers(question, given):
        raise errors[question]

    with answering(answers) as channel:
        with pytest.raises(AdjacencyError, match="no pair"):
            channel.ask("ours")
        with pytest.raises(ForeignError, match="missing") as raised:
            channel.ask("theirs")
        assert type(raised.value).__name__ == "KeyError"
        assert raised.value.place.startswith("test_channel.py")
        with pytest.raises(ForeignError, match="3"):
            channel.ask("exits")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b'{"ticket": "0", "cpu": 0}',
        b"\x80\x04N.",
        b"[" * 100_000,
        b'{"ticket": "T", "cpu": -1}',
        b'{"ticket": "T", "cpu": 0}\nx',
        b'{"ticket": "T", "cpu": 0, "arrays": [["<f8", [1]]]}\n1234567',
        b'{"ticket": "T", "cpu": 0, "arrays": [["|O8", [1]]]}\n12345678',
        b'{"ticket": "T", "cpu": 0, "arrays": [["<f8", [-1]]]}\n',
        b'{"ticket": "T", "cpu": 0, "arrays": [["<f3", [1]]]}\n123',
        b'{"ticket": "T", "cpu": 0, "value": "%s"}' % (b"x" * 1_000),
    ],
    ids=lambda sent: str(sent)[:40],
)
def test_anything_else_ends_the_conversation(sent, monkeypatch):
    monkeypatch.setattr(channel_module.FileLimits, "message_bytes", 1_000)
    here, there = Pipe()
    channel = Channel(here)

    def reply():
        ticket, *_ = pickle.loads(there.recv_bytes())
        there.send_bytes(sent.replace(b'"T"', json.dumps(ticket).encode()))

    with (
        in_a_thread(reply),
        pytest.raises(LostError, match="something other than the answer"),
    ):
        channel.ask("x")
    with pytest.raises(LostError):
        channel.ask("x")


def test_an_answer_after_a_time_limit_is_no_answer_to_the_next_question():
    here, there = Pipe()
    channel = Channel(here)
    waits = []

    class Late:
        def poll(self):
            waits.append(1)
            if len(waits) == 1:
                raise Timeout("stopped")

    channel._ready = Late()
    with pytest.raises(Timeout):
        channel.ask("first")
    with in_a_thread(answer, there, __file__, lambda question, given: (question, ())):
        assert channel.ask("second") == ("second", [])
        here.close()


@pytest.mark.parametrize(
    "draws",
    [lambda rng: rng.normal(size=3), lambda rng: rng.spawn(2)[1].normal(size=3)],
    ids=["drawn", "spawned"],
)
def test_a_generator_continues_where_the_other_process_left_it(draws):
    here, one = (generator(np.random.SeedSequence(5, spawn_key=(7,))) for _ in range(2))
    calls = Calls(lambda data, size, *, rng: draws(rng))
    for _ in range(3):
        there = pickle.loads(pickle.dumps(Seed.of(here))).generator()
        assert draws(there).tolist() == draws(one).tolist()
        After(**After.of(calls, there, calls.raised)).left(here)
        assert here.bit_generator.state == one.bit_generator.state
        assert here.integers(9, dtype=np.int32) == one.integers(9, dtype=np.int32)
