"""The line that makes a value beside the noise, or where the two inputs part."""

import sys

import numpy as np
import pytest

from auditdp import PureDP
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


# The code of the named tuple has a line 1 of its own.
def decomposed(data, rng):
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


def origin_of(function, first, second):
    trace = Trace(function)
    rng = np.random.default_rng(0)
    return made_at(trace, compare(trace, first, second, rng, claim=PureDP(1.0)))


@pytest.mark.parametrize(
    "function", [logged, returned, yielded, in_place, chosen, decomposed, stopped]
)
def test_the_origin_is_the_line_that_makes_the_value(function):
    def code(data, rng):
        released = function(data, rng)
        return list(released) if function is yielded else released

    before = sys.gettrace()
    found = origin_of(code, [0.75, 0.3], [0.25, 0.3])
    assert sys.gettrace() is before
    assert found.file == __file__
    assert found.function == function.__name__
    with open(__file__) as file:
        assert "# here" in file.readlines()[found.line - 1]


def test_a_loop_over_records_that_is_longer_has_no_origin():
    def record_by_record(data, rng):
        return [x + rng.laplace() for x in data]

    assert origin_of(record_by_record, [0.75, 0.3], [0.25]) == NOWHERE
