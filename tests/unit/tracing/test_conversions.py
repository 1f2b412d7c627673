"""Calls of int and float in the caller's code keep noise; other uses are untouched."""

import functools
import importlib
import sys
from collections import Counter, defaultdict

import numpy as np
import pytest

from auditdp.tracing.conversions import converted
from tests.unit.tracing.toys import families, record


def two_sided(rng):
    return int(rng.geometric(0.4)) - int(rng.geometric(0.4))


def with_a_helper(v, rng):
    return v + two_sided(rng)


def other_uses(v, rng):
    kinds = {int: "whole", float: "broken"}
    table = np.zeros(3).astype(int)
    texts = int("12", 8), float("1.5"), int(2.7), [*map(int, "12")]
    return isinstance(v, int), kinds[type(v)], table.dtype == int, texts


def nested(v, rng):
    def inside():
        return [float(rng.laplace()) for _ in range(2)]

    noise = inside()
    return [v + noise[0], v + (lambda: float(noise[1]))()]


def with_default(v, rng, convert=int):
    return v + convert(rng.geometric(0.4))


def counted(v, rng):
    return Counter({v + rng.laplace(): 2})


def keyed(v, rng):
    found = defaultdict(int)
    found[v + rng.laplace(), 1] += 2
    return found


def collected(v, rng):
    return {(v + rng.laplace(), 1)}


@pytest.mark.parametrize(
    ("function", "expected", "is_opaque"),
    [
        (counted, ["Laplace"], False),
        (keyed, ["Laplace"], False),
        (collected, ["Laplace"], False),
        (with_a_helper, ["two-sided geometric"], False),
        (other_uses, [], False),
        (nested, ["Laplace", "Laplace"], False),
        (with_default, ["geometric"], True),
    ],
)
def test_outputs_are_those_of_plain_runs(function, expected, is_opaque):
    traced = record(function, 1)
    plain = function(1, np.random.default_rng(0))
    assert traced.output == plain
    assert type(traced.output) is type(plain)
    assert families(traced) == expected
    assert bool(traced.opaque) == is_opaque
    assert not traced.untraceable


def test_code_is_converted_once_and_only_if_it_has_such_calls():
    code = (lambda x: isinstance(x, int)).__code__
    assert converted(code) is code
    again = converted(two_sided.__code__)
    assert converted(two_sided.__code__) is again is not two_sided.__code__


def test_a_module_that_has_its_own_int_keeps_it():
    space = {"__name__": "own", "int": lambda x: 7}
    exec("def f(v, rng):\n    return v + int(rng.geometric(0.5))", space)
    assert record(space["f"], 1).output == 8


@pytest.mark.parametrize(
    ("number", "expected"),
    [(100, ["two-sided geometric"]), (300, ["geometric", "geometric"])],
)
def test_functions_of_up_to_127_names_are_converted(number, expected):
    names = [f"x{k}" for k in range(number)]
    lines = [f"global {', '.join(names)}", *(f"{name} = len('a')" for name in names)]
    lines.append("return v + int(rng.geometric(0.5)) - int(rng.geometric(0.5))")
    space = {}
    exec("def f(v, rng):\n    " + "\n    ".join(lines), space)
    traced = record(space["f"], 1)
    assert families(traced) == expected
    assert traced.output == space["f"](1, np.random.default_rng(0))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: functools.partial(f, scale=2.0),
        lambda f: functools.wraps(f)(lambda v, rng: f(v, rng, scale=2.0)),
    ],
    ids=["partial", "wraps"],
)
def test_wrapped_functions_are_followed(wrap):
    def noisy(v, rng, scale):
        return v + int(rng.geometric(0.5)) - int(rng.geometric(0.5)) + scale * 0

    assert families(record(wrap(noisy), 1)) == ["two-sided geometric"]


def test_helpers_of_another_module_are_followed(tmp_path, monkeypatch):
    (tmp_path / "helpers_of_a_test.py").write_text(
        "def noise(rng):\n    return int(rng.geometric(.5)) - int(rng.geometric(.5))\n"
    )
    (tmp_path / "mechanism_of_a_test.py").write_text(
        "import helpers_of_a_test as h\n\n"
        "def count(v, rng):\n    return v + h.noise(rng)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    written = ["mechanism_of_a_test", "helpers_of_a_test"]
    try:
        module = importlib.import_module(written[0])
        (release,) = record(module.count, 1).releases
    finally:
        for name in written:
            sys.modules.pop(name, None)
    assert release.law.family == "two-sided geometric"
    assert release.site.line == 4
