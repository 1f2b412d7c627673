"""Nested data of any ordinary kind, too long to be printed whole.

It has texts, digests, other data like it, and reports.
"""

from collections import OrderedDict
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from auditdp import Alike, Pair, PureDP, audit_training, check
from auditdp.adjacency.adjacency import is_data
from auditdp.adjacency.digest import digest_of
from auditdp.mechanism.calls.inputs import difference
from auditdp.record.results import RunRecord, Verdict
from auditdp.report.formats import FORMATS, render
from tests.unit.adjacency.toys import both, generated

MANY = 24
WORDS = ["lorem", "ipsum", "dolor", "sit", "amet", "consectetur"]


@dataclass(frozen=True)
class Visit:
    place: str
    minutes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bill:
    amount: float
    visit: Visit
    spent: Any


class Stay(NamedTuple):
    nights: int
    guests: list[str]


class Account:
    """A record without declared fields."""

    def __init__(self, owner, balance):
        self.owner, self.balance = owner, balance


ROW = [WORDS[:3], WORDS[3:]]
KINDS = {
    "lists of lists of words": lambda k: [WORDS[: k % 5 + 1], WORDS[k % 5 :]],
    "frozen records": lambda k: Visit("Ulm", tuple(range(k % 5, 12))),
    "slotted records with arrays": lambda k: Bill(
        k / 7, Visit("Bonn", (k,)), np.arange(12.0) + k % 5
    ),
    "named tuples": lambda k: Stay(k % 5, WORDS[: k % 6]),
    "shared rows": lambda k: [ROW, ROW, [str(k % 5)]],
    "mixed": lambda k: [{"a": (k % 5, "x", None, b"y")}, [[True, k / 3]], {k % 5}],
    "arrays in dicts": lambda k: {"features": np.full((3, 4), k % 5), "label": k % 2},
    "ordered dicts": lambda k: OrderedDict(a=[WORDS[k % 5]] * 7, b=k % 5),
    "objects": lambda k: Account(WORDS[k % 5] * 9, [k % 5] * 5),
}
CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "dict by name": lambda rows: {f"user {k}": row for k, row in enumerate(rows)},
}
of_each_kind = pytest.mark.parametrize("kind", KINDS)
of_each_change = pytest.mark.parametrize("change", ["replaced", "removed"])


def inputs(kind, change):
    """Two lists of records of which the last differs or is absent, constructed separately."""
    first, second = [[KINDS[kind](k) for k in range(MANY)] for _ in range(2)]
    second[-1:] = [KINDS[kind](MANY + 2)] if change == "replaced" else []
    return first, second


@of_each_change
@of_each_kind
def test_a_pair_has_a_short_text_and_a_digest(kind, change):
    for contain in CONTAINERS.values():
        pair = Pair(*map(contain, inputs(kind, change)))
        text = str(pair)
        assert 10 < len(text) < 400
        assert " at 0x" not in text
        assert not pair.python or is_data(pair.python)
        assert difference(pair.data, pair.neighbour) is not None
        copy = deepcopy(pair)
        assert difference(pair.data, copy.data) is None
        assert digest_of(pair) == digest_of(copy) != digest_of(pair.swapped())


@of_each_kind
def test_a_place_that_differs_late_is_named(kind):
    text = str(Pair(*inputs(kind, "replaced")))
    assert f"([{MANY - 1}]" in text
    assert text.partition(" is ")[2].count(" | ") == 1


@of_each_change
@of_each_kind
def test_alike_pairs_have_the_same_kind_and_number_of_records(kind, change):
    first, second = inputs(kind, change)
    if kind == "objects":
        # Two of these that are constructed separately differ, whatever they hold.
        second[: MANY - 1] = first[: MANY - 1]
    found = generated(Alike([Pair(first, second)]), 5)
    assert len(found) > 5
    for data, neighbour in map(both, found):
        assert {type(row) for row in (*data, *neighbour)} == {type(first[0])}
        assert abs(len(data) - len(neighbour)) == len(first) - len(second)
        assert len(str(Pair(data, neighbour))) < 400


def noisy_count(data, rng):
    return len(data) + rng.laplace(scale=1.0)


def last_record(data, rng):
    return repr(vars(data[-1]) if isinstance(data[-1], Account) else data[-1])


def test_every_report_is_rendered_from_it():
    named = []
    for number, kind in enumerate(KINDS):
        data = inputs(kind, ["replaced", "removed"][number % 2])
        results = [
            check(noisy_count, PureDP(1.0), Pair(*data), calls=60, seed=3),
            check(last_record, PureDP(0.1), Pair(*data), calls=200, seed=3),
            audit_training(noisy_count, PureDP(1.0), data, calls=120),
        ]
        verdicts = [result.verdict for result in results]
        clean, violated = Verdict.NOT_REFUTED, Verdict.VIOLATED
        assert verdicts == [clean, violated, clean], kind
        named += [
            replace(result, id=f"audits/audit_a.py::{kind}, {k}")
            for k, result in enumerate(results)
        ]
    record = RunRecord(1, "complete", {}, {}, "", "", [], named)
    for name in FORMATS:
        assert render(record, name)
