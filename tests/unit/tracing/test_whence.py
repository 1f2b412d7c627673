"""The line that makes what got round the noise: where a number is first held, or where inputs go other ways."""

import sys

import numpy as np
import pytest

from auditdp.claims.statements import PureDP
from auditdp.tracing import Trace, compare
from auditdp.tracing.origin import made_at
from auditdp.tracing.sites import NOWHERE


def logged(data, rng):
    total = sum(data) + rng.laplace()
    loss = float(np.square(data).mean())  # here
    return total, loss


def returned(data, rng):
    total = sum(data) + rng.laplace()
    return {"total": total, "middle": [float(np.mean(data))]}  # here


def yielded(data, rng):
    for k in range(2):
        yield {"total": sum(data) + rng.laplace(), "raw": k + 0.5 * max(data)}  # here


class Model:
    def __init__(self):
        self.running = np.zeros(2)

    def state_dict(self):
        return {"running": self.running}


def in_place(data, rng):
    model = Model()
    model.running += np.mean(data)  # here
    return sum(data) + rng.laplace(), model.running


def chosen(data, rng):
    share = 1 / 2
    cut = min((0.5, 0.125), key=lambda c: abs(c - data[0]))  # here
    return cut, sum(data) * share + rng.laplace()


def decomposed(data, rng):
    """Return what a named tuple holds, whose own code has a line 1."""
    noisy = sum(data) + rng.laplace()
    vectors = np.linalg.eigh([[1.0, data[0]], [data[0], 2.0]])[1]  # here
    return noisy, vectors


def stopped(data, rng):
    total = 0.0
    for _ in range(4):
        total += sum(data) + rng.laplace()
        if sum(data) > 1:  # here
            break
    return total


def record_by_record(data, rng):
    return [x + rng.laplace() for x in data]


def as_list(train):
    return lambda data, rng: (
        list(train(data, rng)) if train is yielded else train(data, rng)
    )


@pytest.mark.parametrize(
    "function", [logged, returned, yielded, in_place, chosen, decomposed, stopped]
)
def test_the_line_is_the_one_that_makes_it(function):
    code, before = function.__code__, sys.gettrace()
    trace = Trace(as_list(function))
    pair = compare(
        trace, [0.75, 0.3], [0.25, 0.3], np.random.default_rng(0), claim=PureDP(1.0)
    )
    found = made_at(trace, pair)
    with open(code.co_filename) as file:
        assert file.readlines()[found.line - 1].rstrip().endswith("# here")
    assert (found.file, found.function) == (code.co_filename, function.__name__)
    assert sys.gettrace() is before


def test_a_loop_over_records_that_is_longer_names_no_line():
    trace = Trace(record_by_record)
    pair = compare(
        trace, [0.75, 0.3], [0.25], np.random.default_rng(0), claim=PureDP(1.0)
    )
    assert made_at(trace, pair) == NOWHERE
