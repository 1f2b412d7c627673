"""A digest differs where neighbours or played pairs differ.

It is the same in every process.
"""

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

from auditdp import AnyValues, Box, Fields, Neighbours, Pair, Rows
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


ZEROS = np.zeros(500)


def given_pair(data, neighbour, **options):
    return Neighbours([(data, neighbour)], **options)


def replaced(rows):
    return Rows(rows, "replace")


NUMBERS = st.integers(0, 500)
KINDS = {
    "a long table": lambda most: Rows(table(most), "add/remove"),
    "mapped by a lambda": lambda most: replaced(
        NUMBERS.map(lambda age: min(age, most))
    ),
    "filtered": lambda most: replaced(NUMBERS.filter(within(most))),
    "chosen after another": lambda most: replaced(
        st.integers(1, most).flatmap(lambda k: st.integers(0, k))
    ),
    "listed values": lambda most: replaced(
        st.sampled_from([np.arange(2000), np.full(2000, most)])
    ),
    "fields": record,
    "values": lambda most: AnyValues([0, 1, most]),
    "a box to six digits": lambda most: Box(0.0, 1000.0 + most / 1000),
    # The texts of both inputs are cut before they differ.
    "given lists": lambda most: given_pair([*range(1000)], [*range(999), most]),
    "given arrays": lambda most: given_pair(ZEROS, np.append(ZEROS[1:], most)),
    "given records": lambda most: given_pair([Person(3)], [Person(3), Person(most)]),
    "a relation": lambda most: given_pair(
        0, 1, relation=lambda one, other: abs(one - other) < most
    ),
    "a partial relation": lambda most: given_pair(0, 1, relation=partial(apart, most)),
    "a search": lambda most: given_pair(
        0, 1, search=st.tuples(st.just(0), st.integers(1, most))
    ),
    "of a user": Own,
}


def is_complete(digest):
    return re.fullmatch(r"[0-9a-f]{16}", digest) is not None


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_a_narrowed_domain_has_another_digest(make):
    assert digest_of(make(500)) == digest_of(make(500)) != digest_of(make(5))
    assert is_complete(digest_of(make(500)))


def test_a_variable_that_a_function_reads_is_part_of_it(monkeypatch):
    before = digest_of(Rows(drawn_below_the_limit(), "replace"))
    monkeypatch.setattr(sys.modules[__name__], "LIMIT", 5)
    assert digest_of(Rows(drawn_below_the_limit(), "replace")) != before


def test_pairs_that_are_played_and_inputs_are_part_of_it():
    adjacency = Box(0.0, 1.0)
    digests = {
        digest_of(adjacency, None, None),
        digest_of(adjacency, [Pair(0.0, 1.0)], None),
        digest_of(adjacency, [Pair(0.0, 0.5)], None),
        digest_of(adjacency, None, {"small": [1.0]}),
    }
    assert len(digests) == 4


def test_a_lambda_beside_another_one_is_distinguished_by_its_arguments():
    near, far = (lambda one, other: one == other), (lambda data, rng: data)
    assert digest_of(near) == digest_of(deepcopy(near)) != digest_of(far)


def used(adjacency, attribute):
    """The adjacency after one of its cached attributes was computed."""
    value = getattr(adjacency, attribute)
    if callable(value):
        value()
    return adjacency


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (used(AnyValues([0, 1, 2]), "pairs"), AnyValues([0, 1, 2])),
        (used(record(9), "_ends"), record(9)),
        (Box(0.0, 0.1 + 0.2), Box(0.0, 0.3)),
        (np.array([0.1 + 0.2, 1j]), np.array([0.3, 1j])),
        ({"a": 1, "b": {1, 2}}, {"b": {2, 1}, "a": 1}),
    ],
)
def test_caches_defaults_last_digits_and_orders_are_left_out(one, other):
    assert digest_of(one) == digest_of(other)


def test_values_without_content_are_named():
    lock = digest_of(Neighbours([(threading.Lock(), 1)]))
    assert lock.split()[1:] == ["without", "lock"]
    source = digest_of(given_pair(0, 1, relation=eval("lambda one, other: True")))
    assert "source" in source.partition(" ")[2]

    class Raising:
        def __reduce_ex__(self, protocol):
            raise ValueError

    assert "ValueError" in digest_of(Raising())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (re.compile("a"), re.compile("b")),
        (deque([1, 2]), deque([1, 3])),
        (partial(max, 3), partial(max, 4)),
        (np.random.default_rng(1), np.random.default_rng(2)),
        (len, max),
        (Person(1).__eq__, Person(2).__eq__),
    ],
)
def test_objects_of_libraries_are_compared_by_content(one, other):
    assert digest_of(one) == digest_of(deepcopy(one)) != digest_of(other)
    assert is_complete(digest_of(one))


def test_a_list_that_contains_itself_has_a_digest():
    data = [1]
    data.append(data)
    assert is_complete(digest_of(data))


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
        path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path}
        command = [sys.executable, "-c", EVERYWHERE]
        printed.add(subprocess.check_output(command, env=environment, text=True))
    (one,) = printed
    assert len(set(one.split())) == len(KINDS) + 1
