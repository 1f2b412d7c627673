"""People's functions as mechanisms, and inputs as text."""

import functools
import random

import numpy as np
import pytest

from auditdp import FiniteLaw
from auditdp.errors import MechanismError
from auditdp.mechanism.calls import Calls
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
from tests.unit.mechanism.toys import generator, noisy, noisy_rows


class OneOutput:
    name = "one output"

    def __call__(self, data, rng):
        return int(rng.random() < (0.75 if data else 0.25))

    def distribution(self, data):
        return FiniteLaw(np.array([data, 1 - data]), [0.75, 0.25])


class Library(OneOutput):
    """A mechanism with a law and its own randomness."""

    source = random.Random(0)

    def __call__(self, data):
        return data + self.source.gauss(0, 1)


def with_options(data, size, *, rng, scale=1.0):
    return data + rng.laplace(scale=scale, size=size)


@pytest.mark.parametrize(
    "function",
    [
        noisy_rows,
        noisy,
        functools.partial(with_options, scale=2),
        OneOutput(),
        LaplaceMechanism(1.0).__call__,
        unseeded(Library()),
    ],
)
def test_every_form_runs_as_a_mechanism(function):
    adapted = as_mechanism(function)
    assert isinstance(adapted, Mechanism)
    outputs = Calls(adapted)(1.0, 50, generator())
    assert outputs.shape == (50,)
    assert len(np.unique(outputs)) > 1


def test_a_vectorised_mechanism_is_used_as_it_is():
    for function in (noisy_rows, with_options, unseeded(Library()), max):
        assert as_mechanism(function) is function


def test_a_function_of_one_output_is_called_size_times_in_order():
    calls = []

    def counting(data, rng):
        calls.append(data)
        return [len(calls), 0]

    outputs = as_mechanism(counting)("x", 3, rng=generator())
    assert calls == ["x"] * 3
    assert outputs == [[1, 0], [2, 0], [3, 0]]


def test_an_adapted_mechanism_keeps_its_optional_methods():
    for adapted in (as_mechanism(OneOutput()), unseeded(Library())):
        assert adapted.distribution(1).floats.tolist() == [0.75, 0.25]
        assert name_of(adapted) == "one output"


def test_functions_are_seeded_unless_they_are_declared():
    assert is_seeded(noisy)
    for function in (Library(), lambda data, rng: data, noisy_rows):
        assert not is_seeded(unseeded(function))
    assert not unseeded(lambda data, rows=1, size=3: [0] * size).takes_size
    assert unseeded(lambda data, *, size: [0] * size).takes_size


def rows_of(data, rng, epsilon=1.0, size=3):
    return [data + rng.laplace(scale=1 / epsilon) for _ in range(size)]


def named_rows(data, *, rng, size=3):
    return rows_of(data, rng, size=size)


@pytest.mark.parametrize(
    ("function", "width"),
    [(rows_of, 3), (named_rows, 3), (functools.partial(rows_of, size=2), 2)],
)
def test_a_size_with_a_default_is_an_option_of_the_function(function, width):
    outputs = as_mechanism(function)(0.0, 5, rng=generator(1))
    assert [len(output) for output in outputs] == [width] * 5


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: as_mechanism(3), "got 3"),
        (lambda: as_mechanism(lambda data: data), r"takes data.*auditdp\.unseeded"),
        (lambda: as_mechanism(lambda: 0), "takes nothing"),
        (lambda: as_mechanism(Response), "takes epsilon"),
        (lambda: unseeded(3), "got 3"),
        (lambda: Calls(max)(0, 3, generator()), "max raised TypeError"),
    ],
)
def test_other_callables_are_refused(call, fragment):
    with pytest.raises(MechanismError, match=fragment):
        call()


def test_names():
    adapted = as_mechanism(noisy), PerCall(noisy), unseeded(noisy), noisy
    assert {name_of(each) for each in adapted} == {"noisy"}
    assert name_of(Response(1.0)) == "Response(1)"
    given = functools.partial(noisy, np.ones(30), epsilon=2.0, of=object())
    assert name_of(given) == "noisy([1.,1.,1.,...,1.,1.…, epsilon=2.0, of=<object>)"


def graph(nodes, *edges):
    matrix = np.zeros((nodes, nodes), np.int8)
    for i, j in edges:
        matrix[i, j] = matrix[j, i] = 1
    return matrix


def changed(place, value):
    matrix = graph(4, (0, 1))
    matrix[place] = value
    return matrix


@pytest.mark.parametrize(
    ("matrix", "text"),
    [
        (graph(4), "4 nodes, no edges"),
        (graph(4, (0, 1), (1, 3)), "4 nodes, edges 01 13"),
        (graph(90, *((k, k + 1) for k in range(89))), "90 nodes, 89 edges"),
    ],
)
def test_graphs_are_rendered_by_their_edges(matrix, text):
    assert brief(matrix) == text


@pytest.mark.parametrize(
    "matrix",
    [
        graph(4, (0, 1)).astype(float),
        changed((0, 2), 1),
        changed((2, 2), 1),
        changed((0, 1), 2),
    ],
    ids=["floats", "one direction", "a loop", "no bit"],
)
def test_other_matrices_are_no_graphs(matrix):
    assert "edges" not in brief(matrix)


class Plain:
    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Plain(3), "Plain(value=3)"),
        (np.array([object()], dtype=object), "[<object>]"),
        ("look at 0x12", "'look at 0x12'"),
        (np.array([1, 0, 1]), "[1,0,1]"),
    ],
)
def test_values_are_rendered_without_addresses(value, text):
    assert brief(value) == text
    assert "0x" not in brief([Plain(3), Plain, {"a": object()}])


def test_long_inputs_are_rendered_briefly_in_one_line():
    text = brief(np.arange(1000).reshape(10, 100))
    assert "\n" not in text
    assert len(text) <= 60
    assert brief("x" * 100).endswith("…")
