"""A digest differs where neighbours or played pairs differ, and is the same in every process."""

import os
import re
import subprocess
import sys
import threading
from collections import deque
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from auditdp.adjacency import (
    AnyValues,
    Box,
    Fields,
    Neighbours,
    Pair,
    QueryAnswers,
    Rows,
)
from auditdp.adjacency.digest import digest_of

LIMIT = 500
LONG = ("age", "city", "income", "number of children", "postal code")


@dataclass(frozen=True)
class Person:
    """A record."""

    age: int
    name: str = ""


class Colour(Enum):
    """A value of a record."""

    RED = 1
    GREEN = 2


@st.composite
def ages(draw, most):
    return min(draw(st.integers(0, 500)), most)


@st.composite
def drawn_below_the_limit(draw):
    return draw(st.integers(0, LIMIT))


def within(most):
    return lambda age: age <= most


def apart(most, one, other):
    return abs(one - other) <= most


class Own:
    """An adjacency of a user, with one pair."""

    name = "own"

    def __init__(self, most):
        self.most = most

    def check(self, pair):
        """Accept every pair."""

    def pairs(self):
        """Return the pair."""
        return [Pair(0, self.most)]

    def exhaustive(self):
        """Return nothing."""


def table(most):
    """Return a strategy of rows whose text is long."""
    return st.fixed_dictionaries({name: st.integers(0, most) for name in LONG})


def record(most):
    return Fields({name: st.integers(0, most) for name in LONG}, "any")


def users(last):
    """Return two inputs whose texts are cut before they differ."""
    return [list(range(1000)), [*range(999), last]]


KINDS = {
    "a long table": lambda most: Rows(table(most), "add/remove"),
    "mapped by a lambda": lambda most: Rows(
        st.integers(0, 500).map(lambda age: min(age, most)), "replace"
    ),
    "filtered": lambda most: Rows(st.integers(0, 500).filter(within(most)), "replace"),
    "drawn by a function": lambda most: Rows(ages(most), "replace"),
    "chosen after another": lambda most: Rows(
        st.integers(1, most).flatmap(lambda k: st.integers(0, k)), "replace"
    ),
    "built": lambda most: Rows(st.builds(Person, age=st.integers(0, most)), "replace"),
    "an array of lists": lambda most: Rows(
        st.lists(st.tuples(st.integers(0, most), st.booleans())), "replace"
    ),
    "listed values": lambda most: Rows(
        st.sampled_from([np.arange(2000), np.full(2000, most)]), "replace"
    ),
    "one of several": lambda most: Rows(
        st.one_of(st.just(0), st.integers(0, most)), "replace"
    ),
    "fields": record,
    "values": lambda most: AnyValues([0, 1, most]),
    "a box to six digits": lambda most: Box(0.0, 1000.0 + most / 1000),
    "answers": lambda most: QueryAnswers(3, sensitivity=1.0, largest=most),
    "given lists": lambda most: Neighbours([Pair(*users(most))]),
    "given arrays": lambda most: Neighbours(
        [(np.zeros(500), np.append(np.zeros(499), most))]
    ),
    "given records": lambda most: Neighbours(
        [([Person(3)], [Person(3), Person(most)])]
    ),
    "a relation": lambda most: Neighbours(
        [(0, 1)], relation=lambda one, other: abs(one - other) < most
    ),
    "a partial relation": lambda most: Neighbours(
        [(0, 1)], relation=partial(apart, most)
    ),
    "a search": lambda most: Neighbours(
        [(0, 1)], search=st.tuples(st.just(0), st.integers(1, most))
    ),
    "of a user": Own,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_narrowed_domain_has_another_digest(kind):
    made = KINDS[kind]
    assert digest_of(made(500)) == digest_of(made(500))
    assert digest_of(made(500)) != digest_of(made(5))
    assert re.fullmatch(r"[0-9a-f]{16}", digest_of(made(500)))


def test_a_variable_that_a_function_reads_is_part_of_it(monkeypatch):
    before = digest_of(Rows(drawn_below_the_limit(), "replace"))
    monkeypatch.setattr(sys.modules[__name__], "LIMIT", 5)
    assert digest_of(Rows(drawn_below_the_limit(), "replace")) != before


def test_pairs_that_are_played_and_inputs_are_part_of_it():
    adjacency = Box(0.0, 1.0)
    digests = [
        digest_of(adjacency, None, None),
        digest_of(adjacency, [Pair(0.0, 1.0)], None),
        digest_of(adjacency, [Pair(0.0, 0.5)], None),
        digest_of(adjacency, None, {"small": [1.0]}),
    ]
    assert len(set(digests)) == len(digests)


def test_a_lambda_beside_another_one_is_told_apart_by_its_arguments():
    near, far = (lambda one, other: one == other), (lambda data, rng: data)
    assert digest_of(near) != digest_of(far)
    assert digest_of(near) == digest_of(deepcopy(near))


def test_what_decides_nothing_is_left_out():
    looked_at = AnyValues([0, 1, 2])
    before = digest_of(looked_at)
    looked_at.pairs()
    used = record(9)
    _ = used._ends
    assert digest_of(looked_at) == before
    assert digest_of(used) == digest_of(record(9))
    assert digest_of(Box(0.0, 1.0)) == digest_of(Box(0.0, 1.0, 1))  # as by default
    assert digest_of(Box(0.0, 0.1 + 0.2)) == digest_of(Box(0.0, 0.3))  # the last digits
    assert digest_of(np.array([0.1 + 0.2])) == digest_of(np.array([0.3]))
    assert digest_of({"a": 1, "b": {1, 2}}) == digest_of({"b": {2, 1}, "a": 1})


def test_what_has_no_content_is_named():
    _, without, named = digest_of(Neighbours([(threading.Lock(), 1)])).split(" ", 2)
    assert (without, named) == ("without", "lock")
    source = digest_of(Neighbours([(0, 1)], relation=eval("lambda one, other: True")))
    assert "source" in source.partition(" ")[2]

    class Raising:
        def __reduce_ex__(self, protocol):
            raise ValueError

    assert "ValueError" in digest_of(Raising())


def test_objects_of_libraries_are_compared_by_what_they_hold():
    for one, other in [
        (re.compile("a"), re.compile("b")),
        (deque([1, 2]), deque([1, 3])),
        (partial(max, 3), partial(max, 4)),
        (range(3), range(4)),
        (Path("a"), Path("b")),
        (np.random.default_rng(1), np.random.default_rng(2)),
        (np.add, np.subtract),
        (len, max),
        (Person(1).__eq__, Person(2).__eq__),
    ]:
        assert digest_of(one) == digest_of(deepcopy(one)) != digest_of(other)
        assert re.fullmatch(r"[0-9a-f]{16}", digest_of(one))


def test_what_holds_itself_has_a_digest():
    data = [1]
    data.append(data)
    assert re.fullmatch(r"[0-9a-f]{16}", digest_of(data))


EVERYWHERE = """
from hypothesis import strategies as st
from test_digest import KINDS, Colour
from auditdp.adjacency.digest import digest_of
for made in KINDS.values():
    print(digest_of(made(7)))
print(digest_of({"a", "b", "c"}, frozenset({Colour.RED, Colour.GREEN}), st.sampled_from(Colour)))
"""


def test_every_process_has_the_same_digests():
    printed = set()
    for seed in ("1", "2"):
        environment = os.environ | {
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
        }
        found = subprocess.run(
            [sys.executable, "-c", EVERYWHERE],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        printed.add(found.stdout)
    (one,) = printed
    assert len(set(one.split())) == len(KINDS) + 1
