"""Watched runs return what plain runs return, bit for bit, and nothing stays behind."""

import math
import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from auditdp.tracing import Trace

DRAWS = {
    "laplace": lambda rng: rng.laplace(scale=2.0),
    "laplaces": lambda rng: rng.laplace(size=3),
    "located": lambda rng: rng.normal(5, 2),
    "normal": lambda rng: rng.normal(0.0, [1.0, 2.0, 3.0]),
    "standard": lambda rng: rng.standard_normal((3,)),
    "gumbel": lambda rng: rng.gumbel(size=3),
    "logistic": lambda rng: rng.logistic(),
    "exponential": lambda rng: rng.exponential(2.0),
    "uniform": lambda rng: rng.uniform(-0.5, 0.5),
    "random": lambda rng: rng.random(),
    "randoms": lambda rng: rng.random(3),
    "geometric": lambda rng: rng.geometric(0.4),
    "geometrics": lambda rng: rng.geometric(0.4, size=3),
    "integers": lambda rng: rng.integers(1, 7),
    "binomial": lambda rng: rng.binomial(10, 0.5),
    "event": lambda rng: rng.binomial(1, 0.3),
    "poisson": lambda rng: rng.poisson(4.0, 3),
    "choice": lambda rng: rng.choice(["a", "b", "c"], p=[0.2, 0.3, 0.5]),
    "places": lambda rng: rng.choice(5, size=3, replace=False),
    "permutation": lambda rng: rng.permutation([4, 5, 6]),
    "python": lambda rng: random.Random(7).gauss(0, 1),
    "legacy": lambda rng: np.random.RandomState(3).laplace(size=3),
}
ONE = {
    "negative": lambda x: -x,
    "double": lambda x: 2 * x,
    "half": lambda x: x / 2,
    "arrays": lambda x: np.array([1.0, 2.0, 3.0]) * x,
    "value": lambda x: 3 + x,
    "less": lambda x: 1.5 - x,
    "zero": lambda x: 0 + x,
    "vector": lambda x: np.array([1, 2, 3]) + x,
    "below": lambda x: x < 0.4,
    "above": lambda x: x >= 0.4,
    "round": lambda x: np.round(x),
    "abs": abs,
    "clip": lambda x: np.clip(x, -1, 1),
    "exp": np.exp,
    "sign": np.sign,
    "float": lambda x: float(np.ravel(x)[0]),
    "int": lambda x: int(np.ravel(x)[0]),
    "text": lambda x: f"{np.ravel(x)[0]:.3f}",
    "sum": np.sum,
    "first": lambda x: np.ravel(x)[0],
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
    "larger": lambda x, y: np.maximum(x, y),
    "exceeds": lambda x, y: x > y,
}


def program(steps):
    """A function that keeps a list of values, and returns all of them."""

    def run(data, rng):
        values = [data, rng.laplace(scale=1.0)]
        for kind, name, i, j in steps:
            first, second = values[i % len(values)], values[j % len(values)]
            if kind == "draw":
                values.append(DRAWS[name](rng))
            else:
                values.append(
                    ONE[name](first) if kind == "one" else TWO[name](first, second)
                )
        return values

    return run


places = st.integers(0, 9)
steps = st.one_of(
    st.tuples(st.just("draw"), st.sampled_from(sorted(DRAWS)), places, places),
    st.tuples(st.just("one"), st.sampled_from(sorted(ONE)), places, places),
    st.tuples(st.just("two"), st.sampled_from(sorted(TWO)), places, places),
)


def outcome(function):
    try:
        return exact(function())
    except Exception as error:
        return type(error).__name__


def exact(value):
    """A value with its types and bits."""
    if isinstance(value, list | tuple):
        return (type(value).__name__, [exact(item) for item in value])
    if isinstance(value, dict):
        return {key: exact(item) for key, item in value.items()}
    if isinstance(value, np.ndarray) and value.dtype != object:
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, np.ndarray):
        return (
            "objects",
            value.shape,
            [exact(item) for item in value.ravel().tolist()],
        )
    return (
        type(value).__name__,
        value.hex() if isinstance(value, float) else repr(value),
    )


@given(program=st.lists(steps, max_size=8).map(program), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=300, deadline=None)
def test_a_watched_run_returns_what_a_plain_run_returns(program, seed):
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        plain = outcome(lambda: program(3.0, np.random.default_rng(seed)))
        watched = Trace(program).record(3.0, rng)
    found = (
        type(watched.output.error).__name__
        if hasattr(watched.output, "error")
        else exact(watched.output)
    )
    assert found == plain
    assert not watched.untraceable


@given(program=st.lists(steps, max_size=8).map(program), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None)
def test_a_replay_on_the_same_input_is_the_recorded_run(program, seed):
    with np.errstate(all="ignore"):
        trace = Trace(program)
        recorded = trace.record(3.0, np.random.default_rng(seed))
        again = trace.replay(3.0, recorded)
    assert not again.parted
    if not hasattr(recorded.output, "error"):
        assert exact(again.output) == exact(recorded.output)
    assert [release.kind for release in again.releases] == [
        release.kind for release in recorded.releases
    ]
