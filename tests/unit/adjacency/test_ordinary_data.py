"""Contract: nested data of any ordinary kind, too long to be printed whole, goes through all that is derived from a pair."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from auditdp import PureDP, audit_training, check
from auditdp.adjacency import Alike, Pair, Rows
from auditdp.adjacency.adjacency import is_data
from auditdp.adjacency.digest import digest_of
from auditdp.adjacency.graph_symmetry import AlikeGraph
from auditdp.adjacency.pair_search import first_values
from auditdp.mechanism.calls.inputs import difference
from auditdp.record.results import RunRecord, Verdict
from auditdp.report.formats import FORMATS, render
from auditdp.training import neighbours

MANY = 40
WORDS = ["lorem", "ipsum", "dolor", "sit", "amet", "consectetur"]


@dataclass(frozen=True)
class Visit:
    """A frozen record."""

    place: str
    minutes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bill:
    """A slotted record that holds another one and an array."""

    amount: float
    visit: Visit
    spent: Any


class Stay(NamedTuple):
    """A record that is a tuple."""

    nights: int
    guests: list[str]


class Account:
    """A record without fields that are declared."""

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
    "texts": lambda k: " ".join(WORDS * 9) + f" {k % 5}",
    "dicts of lists": lambda k: {
        "words": WORDS[: k % 5],
        "ages": [k % 5, 3],
        "none": None,
    },
    "mixed": lambda k: [{"a": (k % 5, "x", None, b"y")}, [[True, k / 3]], {k % 5}],
    "arrays in dicts": lambda k: {"features": np.full((3, 4), k % 5), "label": k % 2},
    "dicts of dicts": lambda k: {
        "home": {"city": "Köln", "rooms": {"all": [k % 5] * 9}}
    },
    "ordered dicts": lambda k: OrderedDict(a=[WORDS[k % 5]] * 7, b=k % 5),
    "objects": lambda k: Account(WORDS[k % 5] * 9, [k % 5] * 5),
    "tuples of tuples": lambda k: (((k % 5,),), ((WORDS[k % 5],) * 9,)),
}
CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "dict by name": lambda rows: {f"user {k}": row for k, row in enumerate(rows)},
}


@pytest.fixture(params=KINDS)
def made(request):
    """What makes a record of a number; its records differ where the numbers do so modulo 5."""
    return KINDS[request.param]


@pytest.fixture(params=["replaced", "removed"])
def rows(request, made):
    """Two lists of records of which the last differs or is absent, made apart from each other."""
    first, second = [[made(k) for k in range(MANY)] for _ in range(2)]
    second[-1:] = [made(MANY + 2)] if request.param == "replaced" else []
    return first, second


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_pair_has_a_text_and_a_digest(rows, container):
    pair = Pair(*map(CONTAINERS[container], rows))
    text = str(pair)
    assert 10 < len(text) < 400
    assert " at 0x" not in text
    assert not pair.python or is_data(pair.python)
    assert difference(pair.data, pair.neighbour) is not None
    assert difference(pair.data, deepcopy(pair.data)) is None
    assert digest_of(pair) == digest_of(deepcopy(pair)) != digest_of(pair.swapped())


def test_a_place_that_differs_late_is_named(made):
    first, second = [[made(k) for k in range(MANY)] for _ in range(2)]
    second[MANY - 1] = made(MANY + 2)
    text = str(Pair(first, second))
    assert f"([{MANY - 1}]" in text
    assert text.partition(" is ")[2].count(" | ") == 1


def test_others_are_derived_of_it(rows):
    first, second = rows
    if isinstance(
        first[0], Account
    ):  # two that are made apart are different, whatever they hold
        second[: MANY - 1] = first[: MANY - 1]
    alike = Alike([Pair(first, second)])
    found = [*alike.corner_cases(), *first_values(alike.strategy(), 5)]
    assert len(found) > 5
    for pair in found:
        assert {type(row) for row in (*pair.data, *pair.neighbour)} == {type(first[0])}
        assert abs(len(pair.data) - len(pair.neighbour)) == len(first) - len(second)
        assert len(str(pair)) < 400


class Parts(NamedTuple):
    """Features and labels, by name."""

    features: Any
    labels: Any


@pytest.mark.parametrize(
    "together",
    [
        lambda x, y: (x, y),
        Parts,
        lambda x, y: {"x": x, "y": y},
        lambda x, y: defaultdict(list, x=x, y=y),
        lambda x, y: OrderedDict(x=x, y=y),
    ],
)
@pytest.mark.parametrize("as_array", [True, False])
def test_parts_of_records_stay_in_what_holds_them(together, as_array):
    x, y = np.random.default_rng(0).normal(size=(MANY, 3)), np.arange(MANY) % 2
    features, labels = (
        (x, y)
        if as_array
        else ([" ".join(WORDS[: k % 5]) for k in range(MANY)], y.tolist())
    )
    given = Pair(together(features, labels), together(features[:-1], labels[:-1]))
    alike = Alike([given])
    for pair in [*alike.corner_cases(), *first_values(alike.strategy(), 3)]:
        assert {type(pair.data), type(pair.neighbour)} == {type(given.data)}
        assert getattr(pair.data, "_fields", None) == getattr(
            given.data, "_fields", None
        )
        if isinstance(given.data, dict):
            assert list(pair.data) == ["x", "y"]


@dataclass(frozen=True)
class Frozen:
    """A graph."""

    x: Any
    edge_index: Any


@dataclass(slots=True)
class Slotted:
    """A graph."""

    x: Any
    edge_index: Any


@dataclass(frozen=True)
class Sized:
    """A graph that knows how many nodes it has, and what was computed when it was made."""

    x: Any
    edge_index: Any

    def __post_init__(self):
        object.__setattr__(self, "edges", len(self.edge_index[0]))

    @property
    def num_nodes(self):
        return len(self.x)


class Named(NamedTuple):
    """A graph, its edges first."""

    edge_index: Any
    x: Any


class ByPlace(NamedTuple):
    """A graph, its edges last and under a name of their own."""

    x: Any
    arcs: Any


class Plain:
    """A graph that may be changed."""

    def __init__(self, x, edge_index):
        self.x, self.edge_index, self.num_nodes = x, edge_index, len(x)


@pytest.mark.parametrize(
    "kind", [Frozen, Slotted, Sized, Named, ByPlace, Plain, lambda x, arcs: (x, arcs)]
)
def test_a_graph_of_any_kind_has_others_like_it(kind):
    rng = np.random.default_rng(0)
    x, half = rng.normal(size=(30, 4)), np.stack([np.arange(29), np.arange(1, 30)])
    arcs = np.concatenate([half, half[::-1]], axis=1)
    without = arcs[:, (arcs != 7).all(axis=0)]
    graphs = [
        kind(edge_index=a, x=x) if kind is Named else kind(x, a)
        for a in (arcs, without)
    ]
    adjacency = neighbours(tuple(graphs), search=True)
    assert isinstance(adjacency, AlikeGraph)
    for pair in adjacency.corner_cases():
        for graph in (pair.data, pair.neighbour):
            assert type(graph) is type(graphs[0])
            features = (
                getattr(graph, "x", None) if type(graph) is not tuple else graph[0]
            )
            assert features.shape == x.shape
            if kind is Sized:
                assert graph.edges == graph.edge_index.shape[1]
            if kind is Plain:
                assert graph.num_nodes == 30
    assert pair.data is not graphs[0]


STRATEGIES = {
    "frozen records": st.builds(
        Visit, st.sampled_from(WORDS), st.tuples(st.integers(0, 9))
    ),
    "slotted records": st.builds(
        Bill,
        st.floats(0, 9),
        st.just(Visit("Ulm", (1,))),
        st.lists(st.integers(0, 3), max_size=3),
    ),
    "named tuples": st.builds(
        Stay, st.integers(0, 9), st.lists(st.sampled_from(WORDS), max_size=3)
    ),
    "lists of words": st.lists(
        st.lists(st.sampled_from(WORDS), min_size=2, max_size=4), min_size=2, max_size=4
    ),
    "texts": st.text("abc", min_size=70, max_size=90),
    "dicts of lists": st.fixed_dictionaries(
        {"ages": st.lists(st.integers(0, 99), max_size=4), "name": st.text("ab")}
    ),
    "mixed": st.one_of(
        st.none(),
        st.booleans(),
        st.text("ab"),
        st.tuples(st.integers(0, 3), st.text("ab")),
    ),
}


@pytest.mark.parametrize("change", ["add/remove", "replace"])
@pytest.mark.parametrize("kind", STRATEGIES)
def test_rows_of_any_kind_are_generated(kind, change):
    adjacency = Rows(STRATEGIES[kind], change, least=8, most=MANY)
    found = [
        *adjacency.pairs(),
        *adjacency.corner_cases(),
        *first_values(adjacency.strategy(), 5),
    ]
    found += first_values(adjacency.wide(), 5)
    for pair in found:
        adjacency.check(pair)
        assert len(str(pair)) < 400


def released(data, rng):
    """Return a noisy number of records."""
    return len(data) + rng.laplace(scale=1.0)


def told(data, rng):
    """Return the text of the last record."""
    return repr(vars(data[-1]) if isinstance(data[-1], Account) else data[-1])


@pytest.mark.parametrize(
    ("change", "kind"),
    [*zip(["replaced", "removed"] * len(KINDS), KINDS, strict=False)],
)
def test_every_report_is_made_of_it(change, kind):
    first, second = ([KINDS[kind](k) for k in range(MANY)] for _ in range(2))
    second[-1:] = [KINDS[kind](MANY + 2)] if change == "replaced" else []
    pair = Pair(first, second)
    results = [
        check(released, PureDP(1.0), pair, calls=60, seed=3),
        check(told, PureDP(0.1), pair, calls=200, seed=3),
        audit_training(released, PureDP(1.0), (first, second), calls=120),
    ]
    assert [result.verdict for result in results] == [
        Verdict.NOT_REFUTED,
        Verdict.VIOLATED,
        Verdict.NOT_REFUTED,
    ]
    named = [
        replace(result, id=f"audits/audit_a.py::{k}")
        for k, result in enumerate(results)
    ]
    record = RunRecord(1, "complete", {}, {}, "", "", [], named)
    for name in FORMATS:
        assert render(record, name)
