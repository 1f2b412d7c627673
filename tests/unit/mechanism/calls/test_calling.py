"""Calls of a mechanism: outputs as rows, exceptions, inputs that stay, single calls."""

import numpy as np
import pytest

from auditdp.errors import MechanismError, RaisedError, Timeout
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.protocol import as_mechanism, unseeded
from tests.unit.mechanism.toys import calls_of, generator, returns


@pytest.mark.parametrize(
    ("value", "fragment"),
    [
        (np.zeros(3), r"\(3,\)"),
        (None, "returned None, expected first dimension size=5"),
        ([[1], [1, 2], [1]], r"ragged outputs .* expected 5"),
        ({"a": np.zeros(5), "b": np.zeros(4)}, r"'b': returned shape \(4,\)"),
        (np.array([object()] * 5), "<lambda>: cannot read an output of type object"),
    ],
)
def test_other_numbers_of_outputs_are_refused(value, fragment):
    with pytest.raises(MechanismError, match=fragment):
        Calls(returns(value))("input", 5, generator())


@pytest.mark.parametrize(
    ("rows", "single"),
    [
        ([[1], [1, 2], [1]], [[1], [1, 2], [1]]),
        (
            {"n": np.arange(3), "w": ["x", "y", "z"]},
            [{"n": n, "w": w} for n, w in enumerate("xyz")],
        ),
        ((np.arange(3), np.ones((3, 2))), [(n, np.ones(2)) for n in range(3)]),
    ],
    ids=["ragged", "columns", "parts"],
)
def test_many_outputs_of_one_call_are_those_of_single_calls(rows, single):
    one_by_one = iter(single)
    expected = calls_of(lambda data, rng: next(one_by_one))(0, 3, generator())
    found = Calls(returns(rows))(0, 3, generator())
    assert np.array_equal(found, expected, equal_nan=True)


def different(rows):
    """Return the number of different rows, where NaN is equal to NaN."""
    return len({row.tobytes() for row in rows})


def raises_on(*inputs, rate=1.0):
    def function(data, rng):
        if data in inputs and rng.random() < rate:
            raise ValueError(data)
        return rng.random()

    return function


def many(function):
    """Return the same function as one of many outputs a call."""

    def vectorised(data, size, *, rng):
        return np.array([function(data, rng) for _ in range(size)])

    return vectorised


@pytest.mark.parametrize("form", [as_mechanism, many])
def test_an_exception_on_some_inputs_is_an_output(form):
    calls = Calls(form(raises_on(1)))
    calls.look([0, 1], generator())
    good = calls(0, 50, generator())
    bad = calls(1, 50, generator())
    assert different(bad) == 1
    assert different(good) == 50
    assert calls.raised["ValueError"] >= 50
    single = calls.singly()(1, 4, generator())
    assert np.array_equal(single, bad[:4], equal_nan=True)
    message = r"raised ValueError on every tested input: 0"
    with pytest.raises(RaisedError, match=message):
        Calls(form(raises_on(0, 1))).look([0, 1], generator())


def test_a_call_of_many_outputs_that_raises_later_is_no_output():
    # The outputs of the calls that do not raise would have another law.
    calls = Calls(many(raises_on(0, 1, rate=1e-3)))
    calls.look([0, 1], generator())
    message = r"as a function f\(data, rng\) of one output, it may raise"
    with pytest.raises(RaisedError, match=message):
        calls(0, 20_000, generator())


def test_exceptions_differ_by_their_types_and_not_by_their_messages():
    def function(data, rng):
        if data == 0:
            return rng.random()
        error = KeyError if rng.random() < 0.5 else ValueError
        raise error(rng.random())

    calls = calls_of(function)
    calls.look([0, 1], generator())
    assert different(calls(1, 60, generator())) == 2


def test_an_error_names_the_input():
    def broken(data, size, *, rng):
        raise KeyError("seven")

    message = r"broken raised KeyError on input \[1,2\]: 'seven'"
    with pytest.raises(MechanismError, match=message) as caught:
        Calls(broken)(np.array([1, 2]), 5, generator())
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    "error", [Timeout("late"), MechanismError("mine"), KeyboardInterrupt()]
)
def test_reasons_to_stop_pass_through(error):
    def stops(data, size, *, rng):
        raise error

    with pytest.raises(type(error)) as caught:
        Calls(stops)(0, 5, generator())
    assert caught.value is error


def test_no_outputs_need_no_call():
    sizes = []

    def counting(data, size, *, rng):
        sizes.append(size)
        return np.zeros((size, 2), np.int16)

    calls = Calls(counting)
    calls(0, 7, generator())
    outputs = calls(0, 0, generator())
    assert outputs.shape == (0, 2)
    assert outputs.dtype == np.int16
    assert sizes == [7]


def noise_in_place(x, rng):
    x += rng.laplace(size=3)
    return float(x[0])


def now_and_then(x, rng):
    return x.fill(9) if rng.random() < 0.05 else rng.laplace()


@pytest.mark.parametrize(
    "function", [noise_in_place, now_and_then, lambda x, rng: x.sort()]
)
def test_a_mechanism_that_changes_its_input_is_refused(function):
    data = np.array([2.0, 1.0, 3.0])
    calls = calls_of(function)
    # The second time it gets a copy that nobody changed.
    for _ in range(2):
        with pytest.raises(MechanismError, match="changes its input in place"):
            calls(data, 200, generator())
        assert data.tolist() == [2.0, 1.0, 3.0]


def test_the_place_of_a_change_is_named():
    def forgets(data, rng):
        data["ages"][1] = 0

    message = r"changes its input\['ages'\]\[1\] in place"
    with pytest.raises(MechanismError, match=message):
        calls_of(forgets)({"ages": [30, 40]}, 1, generator())


def test_inputs_that_cannot_be_copied_are_lent_and_named():
    calls = calls_of(lambda data, rng: next(data[0]))
    data = [iter([5, 6]), (k for k in range(3))]
    assert calls(data, 2, generator()).tolist() == [5, 6]
    assert calls.inputs.kept == {"list"}


MIXTURES = {
    "an int or a float": lambda x, rng: max(0, x + rng.laplace()),
    "a number or None": lambda x, rng: None if rng.random() < 0.1 else rng.laplace(),
    "arrays of several types": lambda x, rng: np.zeros(
        2, float if rng.random() < 0.1 else int
    ),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_the_rows_of_any_mixture_are_of_one_kind(name):
    """Also if the first outputs are all alike."""
    for seed in range(15):
        calls = calls_of(MIXTURES[name])
        calls.look([0.0], generator(seed))
        expected = calls.like.dtype, calls.like.shape[1:]
        for size in (1, 2, 50):
            rows = calls(0.0, size, generator(seed + size))
            assert (rows.dtype, rows.shape[1:]) == expected


def test_inputs_of_different_widths_have_rows_of_one_width():
    calls = Calls(lambda x, size, *, rng: x + rng.laplace(size=(size, len(x))))
    calls.look([np.zeros(2), np.zeros(4)], generator())
    narrow, wide = (calls(np.zeros(width), 3, generator()) for width in (2, 4))
    assert narrow.shape == wide.shape == (3, 6)
    assert narrow[:, 0].tolist() == [2] * 3
    assert wide[:, 0].tolist() == [4] * 3
    assert np.isnan(narrow[:, 3:]).all()


def test_calls_one_by_one_share_no_noise():
    def shared(data, size, *, rng):
        return data + rng.normal(size=size) + rng.normal()

    rows = Calls(shared).singly()(0.0, 4_000, generator())
    # Within a call the correlation is 1/2.
    assert abs(np.corrcoef(rows[:-1], rows[1:])[0, 1]) < 0.1


def test_single_calls_of_a_generator_elsewhere_go_on_drawing():
    own = generator()
    calls = Calls(unseeded(lambda x: own.laplace()))
    assert different(calls.singly()(0, 50, generator())) == 50


def test_draws_of_a_spawned_generator_are_draws():
    calls = calls_of(lambda data, rng: data + rng.spawn(1)[0].laplace())
    calls.look([1.0], generator())
    assert calls.drew
