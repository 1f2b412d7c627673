"""Calls of a mechanism: what is refused, inputs that stay as they are, rows of one kind, and calls one by one."""

import functools
import math

import numpy as np
import pytest

from auditdp.calls import Calls
from auditdp.errors import MechanismError, Timeout
from auditdp.mechanism import as_mechanism, unseeded
from auditdp.testing import LaplaceMechanism


def rng(seed=0):
    return np.random.default_rng(seed)


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
        Calls(function)("input", 5, rng())


def test_what_a_mechanism_raises_is_told_with_the_input():
    def broken(data, size, *, rng):
        raise KeyError("seven")

    with pytest.raises(MechanismError, match=r"broken raised KeyError: 'seven' \(on input \[1,2\]\)") as caught:
        Calls(broken)(np.array([1, 2]), 5, rng())
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("error", [Timeout("late"), MechanismError("mine"), KeyboardInterrupt()], ids=repr)
def test_reasons_to_stop_pass_through(error):
    def stops(data, size, *, rng):
        raise error

    with pytest.raises(type(error)) as caught:
        Calls(stops)(0, 5, rng())
    assert caught.value is error


def test_no_outputs_need_no_call():
    sizes = []
    calls = Calls(lambda data, size, *, rng: sizes.append(size) or np.zeros((size, 2), np.int16))
    calls(0, 7, rng())
    outputs = calls(0, 0, rng())
    assert (outputs.shape, outputs.dtype) == ((0, 2), np.int16)
    assert sizes == [7]


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint16, np.float32, np.float64], ids=lambda k: k.__name__)
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
def test_a_mechanism_that_changes_its_input_is_refused_and_the_input_is_as_it_was(function):
    data = np.array([2.0, 1.0, 3.0])
    calls = Calls(as_mechanism(function))
    with pytest.raises(MechanismError, match="changes its input in place"):
        calls(data, 200, rng())
    assert data.tolist() == [2.0, 1.0, 3.0]
    with pytest.raises(MechanismError, match="changes its input"):  # from a copy that nobody changed
        calls(data, 200, rng())


def test_where_a_nested_input_was_changed_is_told():
    def forgets(data, rng):
        data["ages"][1] = 0
        return rng.laplace()

    with pytest.raises(MechanismError, match=r"changes its input\['ages'\]\[1\] in place"):
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
    "arrays of several types": lambda x, rng: np.zeros(2) + 0.5 if rng.random() < 0.1 else np.zeros(2, np.int64),
    "text or a number": lambda x, rng: "none" if rng.random() < 0.1 else 3,
}


@pytest.mark.parametrize("function", MIXTURES.values(), ids=MIXTURES)
def test_whatever_mixture_comes_is_of_one_kind(function):
    """Also where the first outputs are all alike, whichever they are."""
    for seed in range(30):
        calls = Calls(as_mechanism(function))
        calls.look([0.0], rng(seed))
        rows = [calls(0.0, size, rng(seed + size)) for size in (1, 2, 50)]
        assert {(part.dtype, part.shape[1:]) for part in rows} == {(calls.like.dtype, calls.like.shape[1:])}


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


class Counting(LaplaceMechanism):
    """Adds how many calls it has answered."""

    made = 0

    def __call__(self, data, size, *, rng):
        object.__setattr__(self, "made", self.made + 1)
        return super().__call__(data, size, rng=rng) + 100 * self.made


class Tabled:
    """Computes a table once, which does not depend on the randomness."""

    tables = 0

    @functools.cached_property
    def table(self):
        type(self).tables += 1
        return np.arange(4.0)

    def __call__(self, data, size, *, rng):
        return self.table[0] + rng.laplace(size=size)


def shared_half(data, size, *, rng):
    return data + rng.normal(size=size) + rng.normal()


def test_calls_one_by_one_share_nothing():
    """Neither noise that a call shares, nor what an instance remembers."""
    rows = Calls(shared_half).singly()(0.0, 4_000, rng())
    assert abs(np.corrcoef(rows[:-1], rows[1:])[0, 1]) < 0.1  # within a call it is 1/2
    assert len(set(Calls(Remembering()).singly()(0.0, 50, rng()).tolist())) == 50
    assert np.abs(Calls(Counting(1.0)).singly()(0.0, 50, rng()) - 100).max() < 50


def test_what_does_not_depend_on_the_randomness_is_computed_once_for_all_single_calls():
    Calls(Tabled()).singly()(0.0, 500, rng())
    assert Tabled.tables == 2


def test_single_calls_of_what_draws_from_elsewhere_go_on_drawing():
    own = np.random.default_rng(0)
    assert len(set(Calls(unseeded(lambda x: own.laplace())).singly()(0, 50, rng()).tolist())) == 50


def test_single_calls_have_the_rows_of_the_others():
    calls = Calls(as_mechanism(lambda x, rng: ["yes"] * int(rng.integers(3))))
    calls.look([0], rng())
    assert calls.singly()(0, 20, rng()).tobytes() == calls(0, 20, rng()).tobytes()
