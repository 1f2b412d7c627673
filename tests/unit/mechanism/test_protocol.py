"""Adapting people's functions to the Mechanism protocol, and rendering inputs."""

import functools
import random

import numpy as np
import pytest

from auditdp.errors import MechanismError
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import (
    Mechanism,
    PerCall,
    as_mechanism,
    brief,
    is_seeded,
    name_of,
    unseeded,
)
from auditdp.testing import LaplaceMechanism, Response


def rng(seed=0):
    return np.random.default_rng(seed)


def vectorised(data, size, *, rng):
    return data + rng.laplace(size=size)


def vectorised_positionally(data, size, rng):
    return data + rng.laplace(size=size)


def one_output(data, rng):
    return data + rng.laplace()


class Vectorised:
    def __call__(self, data, size, *, rng):
        return data + rng.laplace(size=size)


class OneOutput:
    name = "one output"

    def __call__(self, data, rng):
        return int(rng.random() < (0.75 if data else 0.25))

    def distribution(self, data):
        return FiniteLaw(np.array([data, 1 - data]), [0.75, 0.25])


ADAPTABLE = {
    "vectorised": vectorised,
    "vectorised positionally": vectorised_positionally,
    "one output": one_output,
    "one output by keyword": lambda data, *, rng: data + rng.laplace(),
    "lambda": lambda data, size, *, rng: data + rng.laplace(size=size),
    "extra options": lambda data, size, *, rng, scale=1.0: (
        data + rng.laplace(scale=scale, size=size)
    ),
    "partial": functools.partial(
        lambda data, size, *, rng, scale: data + rng.laplace(scale=scale, size=size),
        scale=2,
    ),
    "instance": Vectorised(),
    "instance, one output": OneOutput(),
    "bound method": LaplaceMechanism(1.0).__call__,
}


@pytest.mark.parametrize("function", ADAPTABLE.values(), ids=ADAPTABLE)
def test_every_offered_form_runs_as_a_mechanism(function):
    adapted = as_mechanism(function)
    assert isinstance(adapted, Mechanism)
    outputs = Calls(adapted)(1.0, 50, rng())
    assert outputs.shape == (50,)
    assert len(np.unique(outputs)) > 1


def test_a_vectorised_mechanism_is_used_as_it_is():
    for function in (vectorised, vectorised_positionally, ADAPTABLE["instance"]):
        assert as_mechanism(function) is function


def test_a_function_of_one_output_is_called_size_times_in_order():
    calls = []

    def counting(data, rng):
        calls.append(data)
        return [len(calls), 0]

    outputs = as_mechanism(counting)("x", 4, rng=rng())
    assert calls == ["x"] * 4
    assert outputs == [[1, 0], [2, 0], [3, 0], [4, 0]]


def test_an_adapted_mechanism_keeps_its_optional_methods():
    """Without them a mechanism of one output a call would be audited as a black box."""
    adapted = as_mechanism(OneOutput())
    assert adapted.distribution(1).floats.tolist() == [0.75, 0.25]
    assert name_of(adapted) == "one output"


def rows_of(data, rng, epsilon=1.0, size=3):
    return [data + rng.laplace(scale=1 / epsilon) for _ in range(size)]


def named_rows(data, *, rng, size=3):
    return rows_of(data, rng, size=size)


@pytest.mark.parametrize(
    "function", [rows_of, named_rows, functools.partial(rows_of, size=2)]
)
def test_a_size_of_its_own_is_an_argument_like_any_other(function):
    outputs = as_mechanism(function)(0.0, 5, rng=np.random.default_rng(1))
    assert len(outputs) == 5
    assert {len(output) for output in outputs} == {
        2 if isinstance(function, functools.partial) else 3
    }
    assert not unseeded(lambda data, rows=1, size=3: [0] * size).takes_size
    assert unseeded(lambda data, *, size: [0] * size).takes_size


def test_builtins_without_a_signature_are_taken_at_their_word():
    assert as_mechanism(max) is max
    with pytest.raises(MechanismError, match="max raised TypeError"):
        Calls(max)(0, 3, rng())


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (3, "got 3"),
        (None, "got None"),
        ("laplace", "'laplace'"),
        (lambda data: data, "takes data"),
        (lambda: 0, "takes nothing"),
        (lambda data, size: data, "takes data, size"),
        (lambda data, **options: data, "takes data"),
        (lambda data, generator: data, "data, generator"),
        (Response, "takes epsilon"),
    ],
)
def test_what_takes_no_randomness_is_refused(function, shown):
    with pytest.raises(MechanismError, match=shown):
        as_mechanism(function)


class Library:
    """What a library offers: its own randomness, and a law."""

    def __init__(self):
        self.random = random.Random(0)

    def __call__(self, data):
        return data + self.random.gauss(0, 1)

    def distribution(self, data):
        return FiniteLaw(np.array([data, 1 - data]), [0.75, 0.25])


def test_what_draws_from_elsewhere_is_declared():
    functions = [
        Library(),
        lambda data, size: np.full(size, data),
        lambda data, rng: data,
        lambda data, size, rng: [data] * size,
    ]
    for function in functions:
        declared = unseeded(function)
        assert as_mechanism(declared) is declared
        assert not is_seeded(declared)
        assert Calls(declared)(1.0, 5, rng()).shape == (5,)
    assert unseeded(Library()).distribution(1).floats.tolist() == [0.75, 0.25]
    assert name_of(unseeded(one_output)) == "one_output"
    assert is_seeded(one_output)
    with pytest.raises(MechanismError, match="got 3"):
        unseeded(3)


def test_who_takes_no_randomness_is_told_of_unseeded():
    with pytest.raises(MechanismError, match=r"auditdp\.unseeded"):
        as_mechanism(lambda data: data)


def test_names():
    assert name_of(vectorised) == "vectorised"
    assert name_of(as_mechanism(one_output)) == "one_output"
    assert name_of(Response(1.0)) == "Response(1)"
    assert name_of(PerCall(one_output)) == "one_output"
    given = functools.partial(one_output, np.ones(30), epsilon=2.0, of=object())
    assert (
        name_of(given) == "one_output([1.,1.,1.,...,1.,1.…, epsilon=2.0, of=<object>)"
    )


def test_graphs_are_rendered_by_their_edges():
    matrix = np.zeros((4, 4), np.int8)
    assert brief(matrix) == "4 nodes, no edges"
    matrix[0, 1] = matrix[1, 0] = matrix[1, 3] = matrix[3, 1] = 1
    assert brief(matrix) == "4 nodes, edges 01 13"
    assert "edges" not in brief(matrix.astype(float))
    large = np.zeros((12, 12), np.int8)
    large[1, 11] = large[11, 1] = 1
    assert brief(large) == "12 nodes, edges 1-11"
    cycle = np.roll(np.eye(90, dtype=np.int8), 1, axis=0)
    cycle += cycle.T
    assert brief(cycle) == "90 nodes, 90 edges"  # too many to be listed
    for i, j, value in (
        (0, 2, 1),
        (2, 2, 1),
        (0, 1, 2),
    ):  # one direction only, a loop, not a bit
        other = matrix.copy()
        other[i, j] = value
        assert "edges" not in brief(other)


class Plain:
    def __init__(self, value):
        self.value = value


def test_no_rendering_holds_an_address():
    assert brief(Plain(3)) == "Plain(value=3)"
    assert "0x" not in brief([Plain(3), Plain])
    assert "0x" not in brief({"a": object()})
    assert brief(np.array([object()], dtype=object)) == "[<object>]"
    assert brief("look at 0x12") == "'look at 0x12'"


def test_long_inputs_are_rendered_briefly_in_one_line():
    assert brief(np.array([1, 0, 1])) == "[1,0,1]"
    text = brief(np.arange(1000).reshape(10, 100))
    assert "\n" not in text
    assert len(text) <= 60
    assert brief("x" * 100).endswith("…")
