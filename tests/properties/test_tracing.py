"""Watched runs return the outputs of plain runs, bit for bit, and so do replays."""

import math
import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from auditdp.tracing import Trace

# Methods of a generator with arguments.
DRAWS = [
    ("laplace", 0.0, 2.0, 3),
    ("normal", 5, 2),
    ("normal", 0.0, [1.0, 2.0, 3.0]),
    ("standard_normal", (3,)),
    ("gumbel", 0.0, 1.0, 3),
    ("logistic",),
    ("exponential", 2.0),
    ("uniform", -0.5, 0.5),
    ("random",),
    ("random", 3),
    ("geometric", 0.4),
    ("geometric", 0.4, 3),
    ("integers", 1, 7),
    ("binomial", 10, 0.5),
    ("binomial", 1, 0.3),
    ("poisson", 4.0, 3),
    ("choice", ["a", "b", "c"], None, True, [0.2, 0.3, 0.5]),
    ("choice", 5, 3, False),
    ("permutation", [4, 5, 6]),
]
ONE = {
    "python": lambda x: random.Random(7).gauss(0, 1),
    "legacy": lambda x: np.random.RandomState(3).laplace(size=3),
    "negative": lambda x: -x,
    "half": lambda x: x / 2,
    "arrays": lambda x: np.array([1.0, 2.0, 3.0]) * x,
    "less": lambda x: 1.5 - x,
    "zero": lambda x: 0 + x,
    "vector": lambda x: np.array([1, 2, 3]) + x,
    "above": lambda x: x >= 0.4,
    "round": np.round,
    "abs": abs,
    "clip": lambda x: np.clip(x, -1, 1),
    "exp": np.exp,
    "sign": np.sign,
    "float": lambda x: float(np.ravel(x)[0]),
    "int": lambda x: int(np.ravel(x)[0]),
    "text": lambda x: f"{np.ravel(x)[0]:.3f}",
    "sum": np.sum,
    "where": lambda x: np.where(np.asarray(x) > 0, x, 0),
    "list": lambda x: np.ravel(x).tolist(),
    "wrap": lambda x: {"x": [x, (x, 1)]},
    "floor": lambda x: math.floor(np.ravel(x)[0]),
    "power": lambda x: x**2,
    "matrix": lambda x: np.reshape(x, (-1, 1)),
}
TWO = {
    "plus": lambda x, y: x + y,
    "minus": lambda x, y: x - y,
    "times": lambda x, y: x * y,
    "larger": np.maximum,
    "exceeds": lambda x, y: x > y,
}


def program(steps):
    """Return a function that keeps a list of values, and returns all of them."""

    def run(data, rng):
        values = [data, rng.laplace(scale=1.0)]
        for name, i, j in steps:
            first = values[i % len(values)]
            second = values[j % len(values)]
            if name in DRAWS:
                method, *arguments = name
                values.append(getattr(rng, method)(*arguments))
            elif name in ONE:
                values.append(ONE[name](first))
            else:
                values.append(TWO[name](first, second))
        return values

    return run


def steps_of(table):
    return st.tuples(st.sampled_from([*table]), st.integers(0, 9), st.integers(0, 9))


programs = st.lists(steps_of(DRAWS) | steps_of(ONE) | steps_of(TWO), max_size=8).map(
    program
)


def exact(value):
    """Return a value with its types and bits."""
    if isinstance(value, list | tuple):
        return type(value).__name__, [exact(item) for item in value]
    if isinstance(value, dict):
        return {key: exact(item) for key, item in value.items()}
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.shape, [exact(item) for item in value.ravel().tolist()]
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return type(value).__name__, getattr(value, "hex", lambda: repr(value))()


def outcome(function, seed):
    try:
        return exact(function(3.0, np.random.default_rng(seed)))
    except Exception as error:
        return type(error).__name__


@given(programs, st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_watched_runs_and_replays_return_the_output_of_a_plain_run(program, seed):
    with np.errstate(all="ignore"):
        trace = Trace(program)
        recorded = trace.record(3.0, np.random.default_rng(seed))
        again = trace.replay(3.0, recorded)
        plain = outcome(program, seed)
    assert not recorded.untraceable
    assert not again.parted
    if hasattr(recorded.output, "error"):
        assert type(recorded.output.error).__name__ == plain
    else:
        assert exact(recorded.output) == exact(again.output) == plain
    kinds = [[release.kind for release in run.releases] for run in (recorded, again)]
    assert kinds[0] == kinds[1]
