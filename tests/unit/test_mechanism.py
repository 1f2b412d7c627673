"""Adapting people's functions, guarding their outputs, and noticing noise that a call shares."""

import functools
import math

import numpy as np
import pytest
from scipy.stats import binom

from auditdp.errors import MechanismError, Timeout
from auditdp.laws import FiniteLaw
from auditdp.mechanism import Mechanism, PerCall, as_mechanism, brief, call, check_independence, name_of
from auditdp.testing import LaplaceMechanism, LeakyResponse, Response, SharedNoise


def rng(seed=0):
    return np.random.default_rng(seed)


def vectorised(data, size, *, rng):
    return data + rng.laplace(size=size)


def vectorised_positionally(data, size, rng):
    return data + rng.laplace(size=size)


def one_output(data, rng):
    return data + rng.laplace()


def one_output_by_keyword(data, *, rng):
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
    "one output by keyword": one_output_by_keyword,
    "lambda": lambda data, size, *, rng: data + rng.laplace(size=size),
    "extra options": lambda data, size, *, rng, scale=1.0: data + rng.laplace(scale=scale, size=size),
    "partial": functools.partial(lambda data, size, *, rng, scale: data + rng.laplace(scale=scale, size=size), scale=2),
    "instance": Vectorised(),
    "instance, one output": OneOutput(),
    "bound method": LaplaceMechanism(1.0).__call__,
}


@pytest.mark.parametrize("function", ADAPTABLE.values(), ids=ADAPTABLE)
def test_every_offered_form_runs_as_a_mechanism(function):
    adapted = as_mechanism(function)
    assert isinstance(adapted, Mechanism)
    outputs = call(adapted, 1.0, 50, rng())
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
    assert outputs.tolist() == [[1, 0], [2, 0], [3, 0], [4, 0]]


def test_an_adapted_mechanism_keeps_its_optional_methods():
    """Without them a mechanism of one output a call would be audited as a black box."""
    adapted = as_mechanism(OneOutput())
    assert adapted.distribution(1).floats.tolist() == [0.75, 0.25]
    assert name_of(adapted) == "one output"


def test_builtins_without_a_signature_are_taken_at_their_word():
    assert as_mechanism(max) is max
    with pytest.raises(MechanismError, match="max raised TypeError"):
        call(max, 0, 3, rng())


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


def test_names():
    assert name_of(vectorised) == "vectorised"
    assert name_of(as_mechanism(one_output)) == "one_output"
    assert name_of(Response(1.0)) == "Response(1)"
    assert name_of(PerCall(one_output)) == "one_output"


def returns(value):
    return lambda data, size, *, rng: value


BAD_OUTPUTS = {
    "too few": (returns(np.zeros(3)), r"\(3,\)"),
    "a number": (returns(0.5), r"shape \(\)"),
    "none": (returns(None), "dtype object"),
    "ragged": (returns([[1], [1, 2], [1], [1], [1]]), "ragged"),
    "strings": (returns(["a"] * 5), "dtype <U1"),
    "complex": (returns(np.zeros(5, complex)), "complex128"),
    "objects": (returns(np.array([object()] * 5)), "dtype object"),
}


@pytest.mark.parametrize(("function", "shown"), BAD_OUTPUTS.values(), ids=BAD_OUTPUTS)
def test_outputs_that_are_not_size_numbers_are_refused(function, shown):
    with pytest.raises(MechanismError, match=shown):
        call(function, "input", 5, rng())


def test_what_a_mechanism_raises_is_told_with_the_input():
    def broken(data, size, *, rng):
        raise KeyError("seven")

    with pytest.raises(MechanismError, match=r"broken raised KeyError: 'seven' \(on input \[1,2\]\)") as caught:
        call(broken, np.array([1, 2]), 5, rng())
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("error", [Timeout("late"), MechanismError("mine"), KeyboardInterrupt()], ids=repr)
def test_reasons_to_stop_pass_through(error):
    def stops(data, size, *, rng):
        raise error

    with pytest.raises(type(error)) as caught:
        call(stops, 0, 5, rng())
    assert caught.value is error


def test_a_later_call_must_look_like_the_first():
    like = np.zeros((0, 2), np.int8)
    assert call(returns(np.ones((3, 2), np.int8)), 0, 3, rng(), like=like).shape == (3, 2)
    with pytest.raises(MechanismError, match="float64 after int8"):
        call(returns(np.ones((3, 2))), 0, 3, rng(), like=like)
    with pytest.raises(MechanismError, match=r"\(3,\) after \(2,\)"):
        call(returns(np.ones((3, 3), np.int8)), 0, 3, rng(), like=like)


def test_no_outputs_need_no_call():
    outputs = call(lambda data, size, *, rng: pytest.fail("called"), 0, 0, rng(), like=np.zeros((7, 2), np.int16))
    assert (outputs.shape, outputs.dtype) == ((0, 2), np.int16)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint16, np.float32, np.float64], ids=lambda k: k.__name__)
def test_numbers_of_every_kind_pass_unchanged(kind):
    given = np.array([0, 1, 1], kind)
    assert call(returns(given), 0, 3, rng()).dtype == given.dtype
    assert call(returns(list(given)), 0, 3, rng()).tolist() == given.tolist()


def test_infinities_and_what_is_no_number_are_outputs():
    outputs = call(returns(np.array([0.0, math.inf, math.nan])), 0, 3, rng())
    assert np.isposinf(outputs[1])
    assert np.isnan(outputs[2])


HONEST = {
    "constant": lambda data, size, *, rng: np.zeros(size),
    "constant, no number": lambda data, size, *, rng: np.full((size, 2), math.nan),
    "no width": lambda data, size, *, rng: np.zeros((size, 0)),
    "constant vectors": lambda data, size, *, rng: np.tile(data, (size, 3)),
    "skewed bit": lambda data, size, *, rng: rng.random(size) < 0.15,
    "very skewed bit": lambda data, size, *, rng: rng.random(size) < 0.01,
    "noise": LaplaceMechanism(1.0),
    "randomised response": Response(3.0),
    "leaky": LeakyResponse(1.0, 0.01),
    "vectors": lambda data, size, *, rng: rng.random((size, 4)).round(),
    "one a call": as_mechanism(one_output),
}


@pytest.mark.parametrize("mechanism", HONEST.values(), ids=HONEST)
def test_independent_outputs_pass(mechanism):
    for seed in range(40):
        check_independence(mechanism, 1, rng(seed))


SHARED = {
    "shared scalar": SharedNoise(1.0),
    "shared vector": lambda data, size, *, rng: np.tile(rng.laplace(size=3), (size, 1)),
    "shared fair bit": lambda data, size, *, rng: np.full(size, rng.random() < 0.5),
    "repeated": lambda data, size, *, rng: np.repeat(rng.integers(0, 10, 1), size),
}


@pytest.mark.parametrize("mechanism", SHARED.values(), ids=SHARED)
def test_shared_noise_is_noticed(mechanism):
    for seed in range(10):
        with pytest.raises(MechanismError, match="independent runs"):
            check_independence(mechanism, 1, rng(seed))


def test_the_false_alarm_rate_is_as_stated():
    """The bound of the docstring: the batch agrees on an atom of probability p, and 48 or fewer single calls do."""
    p = np.linspace(0.5, 1, 100_001)
    assert (p**64 * binom.cdf(48, 64, p)).max() <= 1.25e-6


def test_graphs_are_rendered_by_their_edges():
    matrix = np.zeros((4, 4), np.int8)
    assert brief(matrix) == "4 nodes, edges none"
    matrix[0, 1] = matrix[1, 0] = matrix[1, 3] = matrix[3, 1] = 1
    assert brief(matrix) == "4 nodes, edges 01 13"
    assert "edges" not in brief(matrix.astype(float))
    large = np.zeros((12, 12), np.int8)
    large[1, 11] = large[11, 1] = 1
    assert brief(large) == "12 nodes, edges 1-11"
    for i, j, value in ((0, 2, 1), (2, 2, 1), (0, 1, 2)):  # one direction only, a loop, not a bit
        other = matrix.copy()
        other[i, j] = value
        assert "edges" not in brief(other)


def test_long_inputs_are_rendered_briefly_in_one_line():
    assert brief(np.array([1, 0, 1])) == "[1,0,1]"
    text = brief(np.arange(1000).reshape(10, 100))
    assert "\n" not in text
    assert len(text) <= 60
    assert brief("x" * 100).endswith("…")
