"""Calls of a mechanism: what is refused, inputs that stay as they are, rows of one kind, and calls one by one."""

import math

import numpy as np
import pytest

from auditdp.errors import MechanismError, RaisedError, Timeout
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.protocol import as_mechanism, unseeded


def rng(seed=0):
    return np.random.default_rng(seed)


def returns(value):
    return lambda data, size, *, rng: value


BAD_OUTPUTS = {
    "too few": (returns(np.zeros(3)), r"\(3,\)"),
    "a number": (returns(0.5), r"shape \(\)"),
    "none": (returns(None), "returned None, expected first dimension size=5"),
    "ragged, too few": (returns([[1], [1, 2], [1]]), r"ragged outputs .* expected 5"),
    "columns, too few": (
        returns({"a": np.zeros(5), "b": np.zeros(4)}),
        r"'b': returned shape \(4,\)",
    ),
    "objects": (
        returns(np.array([object()] * 5)),
        "<lambda>: cannot read an output of type object",
    ),
}


@pytest.mark.parametrize(("function", "shown"), BAD_OUTPUTS.values(), ids=BAD_OUTPUTS)
def test_outputs_that_are_not_size_numbers_are_refused(function, shown):
    with pytest.raises(MechanismError, match=shown):
        Calls(function)("input", 5, rng())


MANY_OUTPUTS = {
    "ragged": ([[1], [1, 2], [1]], [[1], [1, 2], [1]]),
    "text": (["a", "bc", "a"], ["a", "bc", "a"]),
    "an array of text": (np.array(["a", "bc", "a"]), ["a", "bc", "a"]),
    "complex": (np.array([1j, 2.0 + 0j, 3.0 + 1j]), [1j, 2.0 + 0j, 3.0 + 1j]),
    "columns": (
        {"n": np.arange(3), "w": ["x", "y", "z"]},
        [{"n": n, "w": w} for n, w in enumerate("xyz")],
    ),
    "arrays of parts": (
        (np.arange(3), np.ones((3, 2))),
        [(n, np.ones(2)) for n in range(3)],
    ),
    "booleans and None": ([True, None, False], [True, None, False]),
}


@pytest.mark.parametrize(("given", "meant"), MANY_OUTPUTS.values(), ids=MANY_OUTPUTS)
def test_many_outputs_of_one_call_are_as_good_as_single_ones(given, meant):
    one_by_one = iter(meant)
    single = Calls(as_mechanism(lambda data, rng: next(one_by_one)))(0, 3, rng())
    assert np.array_equal(Calls(returns(given))(0, 3, rng()), single, equal_nan=True)


def raises_on(*inputs, rarely=1.0):
    def function(data, rng):
        if data in inputs and rng.random() < rarely:
            raise ValueError(data)
        return rng.random()

    return function


def different(rows):
    """How many rows are different, NaN being like NaN."""
    return len({row.tobytes() for row in rows})


def many(function):
    """The same, many outputs a call."""
    return lambda data, size, *, rng: np.array(
        [function(data, rng) for _ in range(size)]
    )


@pytest.mark.parametrize("form", [as_mechanism, many], ids=["one", "many"])
def test_that_it_raises_on_some_inputs_is_an_output(form):
    calls = Calls(form(raises_on(1)))
    calls.look([0, 1], rng())
    good, bad = calls(0, 50, rng()), calls(1, 50, rng())
    assert different(bad) == 1
    assert different(good) == 50
    assert calls.raised["ValueError"] >= 50
    assert np.array_equal(calls.singly()(1, 4, rng()), bad[:4], equal_nan=True)


@pytest.mark.parametrize("form", [as_mechanism, many], ids=["one", "many"])
def test_what_raises_on_every_input_is_broken(form):
    with pytest.raises(
        RaisedError, match=r"raised ValueError: 0 \(on every input that was tried\)"
    ):
        Calls(form(raises_on(0, 1))).look([0, 1], rng())


def test_a_call_of_many_outputs_that_raises_later_is_no_output():
    """What was kept of calls that did not raise would not have the law of single runs."""
    calls = Calls(many(raises_on(0, 1, rarely=1e-3)))
    calls.look([0, 1], rng())
    with pytest.raises(
        RaisedError, match=r"as a function f\(data, rng\) of one output, it may raise"
    ):
        calls(0, 20_000, rng())


def test_types_of_exceptions_are_told_apart_and_their_messages_are_not():
    def function(data, rng):
        raise (
            (KeyError, ValueError)[int(rng.integers(2))](rng.random())
            if data
            else rng.random()
        )

    calls = Calls(
        as_mechanism(
            lambda data, rng: rng.random() if data == 0 else function(data, rng)
        )
    )
    calls.look([0, 1], rng())
    assert different(calls(1, 60, rng())) == 2


def test_what_a_mechanism_raises_is_told_with_the_input():
    def broken(data, size, *, rng):
        raise KeyError("seven")

    with pytest.raises(
        MechanismError, match=r"broken raised KeyError: 'seven' \(on input \[1,2\]\)"
    ) as caught:
        Calls(broken)(np.array([1, 2]), 5, rng())
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    "error", [Timeout("late"), MechanismError("mine"), KeyboardInterrupt()], ids=repr
)
def test_reasons_to_stop_pass_through(error):
    def stops(data, size, *, rng):
        raise error

    with pytest.raises(type(error)) as caught:
        Calls(stops)(0, 5, rng())
    assert caught.value is error


def test_no_outputs_need_no_call():
    sizes = []
    calls = Calls(
        lambda data, size, *, rng: sizes.append(size) or np.zeros((size, 2), np.int16)
    )
    calls(0, 7, rng())
    outputs = calls(0, 0, rng())
    assert (outputs.shape, outputs.dtype) == ((0, 2), np.int16)
    assert sizes == [7]


@pytest.mark.parametrize(
    "kind", [bool, np.int8, np.uint16, np.float32, np.float64], ids=lambda k: k.__name__
)
def test_numbers_of_every_kind_pass_unchanged(kind):
    given = np.array([0, 1, 1], kind)
    assert Calls(returns(given))(0, 3, rng()).dtype == given.dtype
    assert Calls(returns(list(given)))(0, 3, rng()).tolist() == given.tolist()


def test_infinities_and_what_is_no_number_are_outputs():
    outputs = Calls(returns(np.array([0.0, math.inf, math.nan])))(0, 3, rng())
    assert np.isposinf(outputs[1])
    assert np.isnan(outputs[2])


CHANGING = {
    "noise in place": lambda x, rng: float(np.add(x, rng.laplace(size=3), out=x)[0]),
    "emptied": lambda x, rng: [x.sum(), x.fill(0)][0] + rng.laplace(),
    "sorted": lambda x, rng: x.sort() or x[0] + rng.laplace(),
    "now and then": lambda x, rng: x.fill(9) if rng.random() < 0.05 else rng.laplace(),
}


@pytest.mark.parametrize("function", CHANGING.values(), ids=CHANGING)
def test_a_mechanism_that_changes_its_input_is_refused_and_the_input_is_as_it_was(
    function,
):
    data = np.array([2.0, 1.0, 3.0])
    calls = Calls(as_mechanism(function))
    with pytest.raises(MechanismError, match="changes its input in place"):
        calls(data, 200, rng())
    assert data.tolist() == [2.0, 1.0, 3.0]
    with pytest.raises(
        MechanismError, match="changes its input"
    ):  # from a copy that nobody changed
        calls(data, 200, rng())


def test_where_a_nested_input_was_changed_is_told():
    def forgets(data, rng):
        data["ages"][1] = 0
        return rng.laplace()

    with pytest.raises(
        MechanismError, match=r"changes its input\['ages'\]\[1\] in place"
    ):
        Calls(as_mechanism(forgets))({"ages": [30, 40]}, 1, rng())


def test_inputs_that_cannot_be_copied_are_lent_and_named():
    calls = Calls(as_mechanism(lambda data, rng: next(data[0])))
    data = [iter([5, 6]), (k for k in range(3))]
    assert calls(data, 2, rng()).tolist() == [5, 6]
    assert calls.inputs.kept == {"list"}


MIXTURES = {
    "an int or a float": lambda x, rng: max(0, x + rng.laplace()),
    "a trace that is rarely longer": lambda x, rng: [1] * int(rng.geometric(0.9)),
    "a number or nothing": lambda x, rng: None if rng.random() < 0.1 else rng.laplace(),
    "arrays of several lengths": lambda x, rng: np.zeros(1 + int(rng.random() < 0.1)),
    "arrays of several types": lambda x, rng: (
        np.zeros(2) + 0.5 if rng.random() < 0.1 else np.zeros(2, np.int64)
    ),
    "text or a number": lambda x, rng: "none" if rng.random() < 0.1 else 3,
}


@pytest.mark.parametrize("function", MIXTURES.values(), ids=MIXTURES)
def test_whatever_mixture_comes_is_of_one_kind(function):
    """Also where the first outputs are all alike, whichever they are."""
    for seed in range(30):
        calls = Calls(as_mechanism(function))
        calls.look([0.0], rng(seed))
        rows = [calls(0.0, size, rng(seed + size)) for size in (1, 2, 50)]
        assert {(part.dtype, part.shape[1:]) for part in rows} == {
            (calls.like.dtype, calls.like.shape[1:])
        }


def test_inputs_of_different_widths_have_rows_of_one_width():
    calls = Calls(lambda x, size, *, rng: x + rng.laplace(size=(size, len(x))))
    calls.look([np.zeros(2), np.zeros(4)], rng())
    narrow, wide = calls(np.zeros(2), 3, rng()), calls(np.zeros(4), 3, rng())
    assert narrow.shape == wide.shape == (3, 6)
    assert narrow[:, 0].tolist() == [2, 2, 2]
    assert wide[:, 0].tolist() == [4, 4, 4]
    assert np.isnan(narrow[:, 3:]).all()


class Remembering:
    """Remembers its first answer."""

    def __init__(self):
        self.answer = None

    def __call__(self, data, size, *, rng):
        if self.answer is None:
            self.answer = rng.laplace()
        return np.full(size, data + self.answer)


def test_calls_one_by_one_share_nothing():
    """Not even noise that the outputs of one call share."""
    rows = Calls(
        lambda data, size, *, rng: data + rng.normal(size=size) + rng.normal()
    ).singly()(0.0, 4_000, rng())
    assert abs(np.corrcoef(rows[:-1], rows[1:])[0, 1]) < 0.1  # within a call it is 1/2


def test_single_calls_of_what_draws_from_elsewhere_go_on_drawing():
    own = np.random.default_rng(0)
    assert (
        len(
            set(
                Calls(unseeded(lambda x: own.laplace())).singly()(0, 50, rng()).tolist()
            )
        )
        == 50
    )


def test_single_calls_have_the_rows_of_the_others():
    calls = Calls(as_mechanism(lambda x, rng: ["yes"] * int(rng.integers(3))))
    calls.look([0], rng())
    assert calls.singly()(0, 20, rng()).tobytes() == calls(0, 20, rng()).tobytes()


def test_what_is_drawn_from_a_spawned_generator_is_drawn():
    calls = Calls(as_mechanism(lambda data, rng: data + rng.spawn(1)[0].laplace()))
    calls.look([1.0], np.random.default_rng(0))
    assert calls.drew
