"""Graphs like a given pair have its form, and change as it does."""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from auditdp import Alike, GaussianDP, Pair, Verdict, audit_training
from auditdp.adjacency.graph_symmetry import (
    EDGE_ADDED,
    EDGES_ADDED,
    EDGES_REPLACED,
    EDGES_UNCHANGED,
    ISOLATED_ADDED,
    NODE_ADDED,
    AlikeGraph,
    graph_of,
)
from auditdp.errors import AdjacencyError
from auditdp.training import neighbours
from tests.unit.adjacency.toys import both, generated

X = np.array([[3.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.0], [0.0, 2.0]])
Y = np.array([0, 1, 0, 1, 1])
ARCS = np.array([[0, 1, 1, 2, 3, 4, 1, 4], [1, 0, 2, 1, 4, 3, 4, 1]])
NODE = 1


def without_node(arcs):
    return arcs[:, (arcs != NODE).all(axis=0)]


BESIDE = without_node(ARCS)
FEWER_NODES = np.delete(X, NODE, 0), BESIDE - (BESIDE > NODE)
REMOVED = Pair((X, Y, ARCS), (FEWER_NODES[0], np.delete(Y, NODE), FEWER_NODES[1]))
ONE_EDGE = Pair((X, Y, ARCS), (X, Y, ARCS[:, 2:]))
ONE_WAY = np.array([[0, 1, 3, 4], [1, 2, 4, 1]])
DIRECTED = Pair((X, ONE_WAY), (X, without_node(ONE_WAY)))
ORDERED = Pair((X, np.sort(ARCS[:, ::2], axis=0)), (X, np.sort(ARCS[:, 2::2], axis=0)))
LOOPS = np.tile(np.arange(5), (2, 1))
OTHER, LESS, ZERO = X.copy(), X.copy(), X.copy()
OTHER[NODE], LESS[NODE], ZERO[NODE] = (2.0, 0.5), (0.0, 0.5), 0.0


def in_form(form: Callable, pair: Pair) -> Pair:
    return Pair(form(*pair.data), form(*pair.neighbour))


@dataclass(frozen=True)
class Sized:
    """A graph with a property, and with a field that is computed when it is constructed."""

    x: Any
    y: Any
    edge_index: Any

    def __post_init__(self):
        object.__setattr__(self, "edges", len(self.edge_index[0]))

    @property
    def num_nodes(self):
        return len(self.x)


EDGES_FIRST = namedtuple("EdgesFirst", ["edges", "y", "x"])
FORMS = {
    "object": lambda x, y, edges: SimpleNamespace(
        x=x, y=y, edge_index=edges, num_nodes=len(x)
    ),
    "frozen": make_dataclass("Frozen", ["x", "y", "edges"], frozen=True),
    "computed": Sized,
    "named tuple": lambda x, y, edges: EDGES_FIRST(edges, y, x),
    "dict": lambda x, y, edges: {
        "edges": edges,
        "y": y,
        "x": x,
        "num_nodes": len(x),
        "name": "ring",
    },
    "lists": lambda x, y, edges: (
        x.tolist(),
        y.tolist(),
        list(map(tuple, edges.T.tolist())),
    ),
    "masked": lambda x, y, edges: SimpleNamespace(
        x=x, train=np.ones(len(x), bool), edge_index=edges, y=y
    ),
    "loops": lambda x, y, edges: (
        x,
        y,
        np.concatenate([edges, LOOPS[:, : len(x)]], axis=1),
    ),
}
FEATURES = "and of the features"
ONE_PART = "1 of 2 parts of one record"
PAIRS = {
    f"{EDGE_ADDED}, features unchanged": Pair((X, ARCS), (X, ARCS[:, 2:])),
    f"{EDGES_ADDED}, features unchanged": DIRECTED,
    f"{EDGES_REPLACED}, features unchanged": Pair((X, ARCS), (X, ARCS[:, 4:])),
    f"{EDGES_UNCHANGED}, {FEATURES} one record replaced": Pair(
        (X, ARCS), (OTHER, ARCS)
    ),
    f"{EDGES_UNCHANGED}, {FEATURES} {ONE_PART} replaced, the others unchanged": Pair(
        (X, ARCS), (LESS, ARCS)
    ),
    f"{EDGES_ADDED}, {FEATURES} {ONE_PART} put to 0, the others unchanged": Pair(
        (X, ARCS), (ZERO, BESIDE)
    ),
    NODE_ADDED: REMOVED,
    ISOLATED_ADDED: Pair((X, BESIDE), FEWER_NODES),
}
MOST_EDGES = {EDGE_ADDED: 1, EDGES_UNCHANGED: 0}


def parts(data):
    graph = graph_of(data)
    return graph.records.rows, set(map(tuple, graph.arcs.T.tolist()))


def arcs_of(data):
    return parts(data)[1]


def most_edges(data):
    sources = [source for source, _ in arcs_of(data)]
    return max(np.bincount(sources), default=0)


@pytest.mark.parametrize("reading", PAIRS)
def test_pairs_change_no_more_kinds_of_things_than_the_given_one(reading):
    adjacency = AlikeGraph([PAIRS[reading].swapped()])
    assert f"neighbours searched: {reading}" in adjacency.name
    assert len(adjacency.corner_cases()) >= 4
    for each in generated(adjacency):
        sides = sorted(map(parts, both(each)), key=lambda side: -len(side[0]))
        (rows, before), (others, after) = sides
        assert len(rows) == len(X)
        assert rows.min() >= X.min()
        assert np.linalg.norm(rows[:, :2], axis=1).max() <= 3 + 1e-9
        if reading in (NODE_ADDED, ISOLATED_ADDED):
            assert len(others) == len(X) - 1
            assert reading in AlikeGraph([each]).readings
            continue
        edges = {frozenset(edge) for edge in before ^ after}
        assert len(edges) <= MOST_EDGES.get(reading.split(",")[0], len(X))
        nodes = set(np.flatnonzero((rows != others).any(axis=1)).tolist())
        assert nodes <= ({NODE} if FEATURES in reading else set())
        shared = set(range(len(X))).intersection(*edges)
        assert shared & (nodes or shared)
        if "features unchanged" in reading:
            assert np.array_equal(rows, X)
        if "put to 0" in reading:
            assert not others[NODE].any()
        if ONE_PART in reading:
            assert np.array_equal(rows[:, 0], others[:, 0])
        if EDGES_ADDED in reading and edges:
            without = shared - {node for edge in after for node in edge}
            assert without


@pytest.mark.parametrize("reading", PAIRS)
def test_no_node_has_more_edges_than_one_of_the_given_graphs(reading):
    most = most_edges(PAIRS[reading].data)
    for each in generated(AlikeGraph([PAIRS[reading]])):
        assert max(map(most_edges, both(each))) <= most


def test_a_user_may_name_a_wider_change():
    pair = Pair((X, ARCS), (X, ARCS[:, 4:]))
    wide = f"{EDGES_REPLACED}, {FEATURES} one record replaced"
    pairs = generated(AlikeGraph([pair], wide))
    assert not all(np.array_equal(each.data[0], each.neighbour[0]) for each in pairs)
    assert neighbours(pair, search=wide) == AlikeGraph([pair], wide)
    with pytest.raises(AdjacencyError, match="change='node'") as refused:
        neighbours(pair, search="node")
    assert wide in str(refused.value)
    with pytest.raises(AdjacencyError, match="search='node'"):
        neighbours(AlikeGraph([pair]), search="node")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pair", [REMOVED, ONE_EDGE])
def test_graphs_have_the_form_of_the_given_one(form, pair):
    given = in_form(FORMS[form], pair)
    for data in [
        side for each in AlikeGraph([given]).corner_cases() for side in both(each)
    ]:
        assert type(data) is type(given.data)
        rows, edges = parts(data)
        assert {(b, a) for a, b in edges} == edges
        fields = data if isinstance(data, dict) else getattr(data, "__dict__", {})
        assert fields.get("num_nodes", len(rows)) == len(rows)
        for name in {"x", "y", "train"} & set(fields):
            assert len(fields[name]) == len(rows)
        if form == "computed":
            assert data.edges == data.edge_index.shape[1]
        if form == "loops":
            loops = set(map(tuple, LOOPS[:, : len(rows)].T))
            assert loops <= set(map(tuple, data[2].T))


def test_graphs_of_torch_geometric_have_all_attributes_of_nodes():
    torch = pytest.importorskip("torch")
    graph = pytest.importorskip("torch_geometric.data").Data
    fields = {"x": X, "train_mask": np.ones(5, bool), "y": Y}
    tensors = {name: torch.as_tensor(value) for name, value in fields.items()}
    whole = graph(edge_index=torch.as_tensor(ARCS), **tensors)
    fewer = {name: value[1:] for name, value in tensors.items()}
    without = graph(edge_index=torch.as_tensor(ARCS[:, 2:] - 1), **fewer)
    for each in AlikeGraph([Pair(whole, without)]).corner_cases():
        for data, nodes in ((each.data, 5), (each.neighbour, 4)):
            assert {len(data[name]) for name in fields} == {nodes} == {data.num_nodes}
            assert data.edge_index.dtype == torch.int64
            assert data.x.dtype == torch.float64


def sums(graph, rng):
    """Sums of neighbours' features of norm 1, which are sqrt(2)/4-Gaussian DP.

    One undirected edge changes two rows.
    """
    rows = graph.x / np.linalg.norm(graph.x, axis=1, keepdims=True)
    total = np.zeros(graph.x.shape)
    np.add.at(total, graph.edges[1], rows[graph.edges[0]])
    return total + rng.normal(scale=4.0, size=total.shape)


def test_a_trainer_that_protects_edges_is_not_accused_and_the_search_is_reported():
    pair = in_form(FORMS["frozen"], ONE_EDGE)
    kept = audit_training(sums, GaussianDP(2**0.5 / 4), pair, calls=300)
    assert kept.verdict is Verdict.NOT_REFUTED
    assert kept.evidence[0].details.trace.share == pytest.approx(1.0)
    searched = f"neighbours searched: {EDGE_ADDED}, features unchanged"
    assert any(notice.startswith(searched) for notice in kept.notices)
    assert audit_training(sums, GaussianDP(0.2), pair).verdict is Verdict.VIOLATED


def reverse(edges):
    return {(b, a) for a, b in edges}


def test_edges_have_the_directions_of_the_given_graphs():
    for pair in AlikeGraph([REMOVED]).corner_cases():
        edges = arcs_of(pair.data)
        assert reverse(edges) == edges
    for pair in generated(AlikeGraph([ORDERED])):
        assert all(a < b for a, b in arcs_of(pair.data))
    hubs = set()
    for pair in generated(AlikeGraph([DIRECTED])):
        edges = arcs_of(pair.data)
        assert not reverse(edges) & edges
        hubs |= edges if pair.name.endswith(" a hub") else set()
    assert reverse(hubs) & hubs
    sending = np.array([[1, 1, 3, 4], [0, 2, 4, 3]])
    changed = set()
    for pair in generated(AlikeGraph([Pair((X, sending), (X, sending[:, 2:]))])):
        changed |= arcs_of(pair.data) - arcs_of(pair.neighbour)
    assert {source for source, _ in changed} == {NODE}


def test_data_that_is_no_graph_is_left_to_its_records():
    assert graph_of((X, Y)) is None
    assert graph_of((X, np.array([[0, 9], [1, 2]]))) is None
    # The weights of edges that are not in the data are unknown.
    assert graph_of({"x": X, "edges": ARCS, "weights": np.ones(8)}) is None
    records = [(20, 1), (31, 0), (40, 1)]
    for kind, pair in (
        (Alike, Pair((X, Y), (X[:-1], Y[:-1]))),
        (Alike, Pair(records, records[1:])),
        (AlikeGraph, REMOVED),
    ):
        assert isinstance(neighbours(pair, search=True), kind)
    # Copies of an edge, or loops, would be no edges.
    edges = [(0, 1), (1, 2), (0, 2)]
    for either in (edges, np.array(edges)):
        found = neighbours(Pair(either, either[1:]), search=True)
        assert "edges or records" in found.unsearched
    with pytest.raises(AdjacencyError, match="differ in one node or one edge"):
        AlikeGraph([Pair((X, ARCS), (X, ARCS[:, :3]))])
