"""Calls of int and float in the caller's code keep noise what it is; all other uses of the names are untouched."""

import functools
import importlib
import sys
import types

import numpy as np
import pytest

from auditdp.tracing import Trace
from auditdp.tracing.conversions import converted

MODULE = "mechanism_of_a_test"


def two_sided(rng):
    return int(rng.geometric(0.4)) - int(rng.geometric(0.4))


def other_uses(v, rng):
    kinds = {int: "whole", float: "broken"}
    table = np.zeros(3).astype(int)
    return (
        isinstance(v, int),
        kinds[type(v)],
        int("12", 8),
        float("1.5"),
        int(2.7),
        table.dtype == int,
        [*map(int, "12")],
    )


def nested(v, rng):
    def inside():
        return [float(rng.laplace()) for _ in range(2)]

    noise = inside()
    return [v + noise[0], v + (lambda: float(noise[1]))()]


def with_default(v, rng, convert=int):
    return v + convert(rng.geometric(0.4))


def test_a_helper_keeps_its_draws():
    traced = Trace(lambda v, rng: v + two_sided(rng)).record(
        3, np.random.default_rng(0)
    )
    assert [release.law.family for release in traced.releases] == [
        "two-sided geometric"
    ]
    assert type(traced.output) is int


def test_other_uses_of_the_names():
    traced = Trace(other_uses).record(1, np.random.default_rng(0))
    assert traced.output == other_uses(1, np.random.default_rng(0))
    assert not traced.untraceable


def test_nested_functions_and_comprehensions():
    traced = Trace(nested).record(1.0, np.random.default_rng(0))
    assert [release.location for release in traced.releases] == [1.0, 1.0]
    assert traced.output == nested(1.0, np.random.default_rng(0))


def test_a_name_that_is_handed_on_is_the_builtin_and_ends_noise():
    traced = Trace(with_default).record(1, np.random.default_rng(0))
    assert traced.output == with_default(1, np.random.default_rng(0))
    assert traced.opaque


def test_code_without_such_calls_is_the_same_object():
    code = (lambda x: isinstance(x, int)).__code__
    assert converted(code) is code
    assert converted(two_sided.__code__) is not two_sided.__code__
    assert converted(two_sided.__code__) is converted(two_sided.__code__)


def test_a_module_that_has_its_own_int_keeps_it():
    space = {"__name__": "own", "int": lambda x: 7}
    exec("def f(v, rng):\n    return v + int(rng.geometric(0.5))", space)
    assert Trace(space["f"]).record(1, np.random.default_rng(0)).output == 8


def test_functions_of_many_names_are_converted():
    lines = [f"    a{k} = len(str({k}))\n    n{k} = abs" for k in range(3)]
    names = ", ".join(f"x{k}" for k in range(140))
    source = f"def f(v, rng):\n{chr(10).join(lines)}\n    return v + int(rng.geometric(0.5)) - int(rng.geometric(0.5))\n"
    space = {"__name__": "many"}
    exec(
        source
        + f"def g(v, rng):\n    global {names}\n    "
        + "; ".join(f"x{k} = {k}" for k in range(140))
        + "\n    return f(v, rng)",
        space,
    )
    traced = Trace(space["g"]).record(1, np.random.default_rng(0))
    assert [release.law.family for release in traced.releases] == [
        "two-sided geometric"
    ]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: functools.partial(f, scale=2.0),
        lambda f: functools.wraps(f)(lambda v, rng: f(v, rng, scale=2.0)),
        lambda f: types.SimpleNamespace(call=lambda v, rng: f(v, rng, 2.0)).call,
    ],
)
def test_partial_and_wrapped_functions_are_followed(wrap):
    def noisy(v, rng, scale):
        return v + int(rng.geometric(0.5)) - int(rng.geometric(0.5)) + scale * 0

    traced = Trace(wrap(noisy)).record(1, np.random.default_rng(0))
    assert [release.law.family for release in traced.releases] == [
        "two-sided geometric"
    ]


@pytest.mark.parametrize(
    ("how", "call"),
    [
        ("from helpers_of_a_test import noise", "noise"),
        ("import helpers_of_a_test as h", "h.noise"),
    ],
)
def test_helpers_of_another_module_of_the_caller_are_followed(
    how, call, tmp_path, monkeypatch
):
    (tmp_path / "helpers_of_a_test.py").write_text(
        "def noise(rng):\n    return int(rng.geometric(0.5)) - int(rng.geometric(0.5))\n"
    )
    (tmp_path / "mechanism_of_a_test.py").write_text(
        f"{how}\n\ndef count(v, rng):\n    return v + {call}(rng)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        traced = Trace(importlib.import_module(MODULE).count).record(
            1, np.random.default_rng(0)
        )
        assert [
            (release.law.family, release.site.line) for release in traced.releases
        ] == [("two-sided geometric", 4)]
    finally:
        for name in ("helpers_of_a_test", "mechanism_of_a_test"):
            sys.modules.pop(name, None)
