"""Records, strategies and inputs in short notation, which the tests of adjacencies share."""

import dataclasses
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from auditdp import Pair
from auditdp.adjacency.pair_search import first_values

NUMBER = st.integers(0, 1000)
FIELDS = {"age": NUMBER, "city": st.text(max_size=3), "ok": st.booleans()}
PERSON = st.fixed_dictionaries(
    {
        "age": st.integers(0, 120),
        "city": st.sampled_from("ABC"),
        "pay": st.floats(0, 1e5),
    }
)


@dataclasses.dataclass
class Person:
    age: int
    city: str
    ok: bool


class Row(NamedTuple):
    age: int
    city: str
    ok: bool


def both(pair):
    return pair.data, pair.neighbour


def lists(pair):
    return pair.data.tolist(), pair.neighbour.tolist()


def generated(adjacency, count=30):
    """Corner cases and a few values of the strategy."""
    return [*adjacency.corner_cases(), *first_values(adjacency.strategy(), count)]


def vectors(text):
    """The pair of vectors that is written as '0 1 | 1 1'."""
    sides = (np.array(side.split(), float) for side in text.split("|"))
    return Pair(*sides)


def matrix(text, nodes=4):
    """The matrix of edges, such as '01' between 0 and 1, and of arcs, such as '0>1'."""
    ones = np.zeros((nodes, nodes), np.int8)
    for each in text.split():
        first, last = int(each[0]), int(each[-1])
        ones[first, last] = 1
        if ">" not in each:
            ones[last, first] = 1
    return ones


def matrices(text):
    """The pair of matrices that is written as '01 12 | 01'."""
    return Pair(*map(matrix, text.split("|")))
