"""Graphs like a given pair: read in each form, changed as the given ones are and in nothing else, and of as many nodes."""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import make_dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from auditdp import GaussianDP, audit_training
from auditdp.adjacency import Alike, Pair
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
from auditdp.adjacency.pair_search import first_values
from auditdp.errors import AdjacencyError
from auditdp.record.results import Verdict
from auditdp.training import neighbours

X, Y = (
    np.array([[3.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.0], [0.0, 2.0]]),
    np.array([0, 1, 0, 1, 1]),
)
ARCS = np.array([[0, 1, 1, 2, 3, 4, 1, 4], [1, 0, 2, 1, 4, 3, 4, 1]])
NODE = 1
BESIDE = ARCS[:, (ARCS != NODE).all(axis=0)]
REMOVED = Pair(
    (X, Y, ARCS), (np.delete(X, NODE, 0), np.delete(Y, NODE), BESIDE - (BESIDE > NODE))
)
ONE_EDGE = Pair((X, Y, ARCS), (X, Y, ARCS[:, 2:]))
ONE_WAY = np.array([[0, 1, 3, 4], [1, 2, 4, 1]])
DIRECTED = Pair((X, ONE_WAY), (X, ONE_WAY[:, (ONE_WAY != NODE).all(axis=0)]))
ORDERED = Pair((X, np.sort(ARCS[:, ::2], axis=0)), (X, np.sort(ARCS[:, 2::2], axis=0)))
LOOPS = np.tile(np.arange(5), (2, 1))
OTHER, LESS, ZERO = X.copy(), X.copy(), X.copy()
OTHER[NODE], LESS[NODE], ZERO[NODE] = (2.0, 0.5), (0.0, 0.5), 0.0


def in_form(made: Callable, pair: Pair) -> Pair:
    return Pair(made(*pair.data), made(*pair.neighbour))


NAMES = ("x", "y", "edge_index")
FORMS = {
    "object": lambda x, y, edges: SimpleNamespace(
        x=x, y=y, edge_index=edges, num_nodes=len(x)
    ),
    "frozen": make_dataclass("Frozen", ["x", "y", "edges"], frozen=True),
    "slotted": make_dataclass("Slotted", NAMES, slots=True),
    "frozen and slotted": make_dataclass(
        "FrozenSlotted", NAMES, slots=True, frozen=True
    ),
    "named tuple": namedtuple("Named", ["edges", "y", "x"]),
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
        [tuple(edge) for edge in edges.T.tolist()],
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
NAMED = FORMS["named tuple"]
FORMS["named tuple"] = lambda x, y, edges: NAMED(x=x, y=y, edges=edges)
PAIRS = {
    f"{EDGE_ADDED}, features unchanged": Pair((X, ARCS), (X, ARCS[:, 2:])),
    f"{EDGES_ADDED}, features unchanged": DIRECTED,
    f"{EDGES_REPLACED}, features unchanged": Pair((X, ARCS), (X, ARCS[:, 4:])),
    f"{EDGES_UNCHANGED}, and of the features one record replaced": Pair(
        (X, ARCS), (OTHER, ARCS)
    ),
    f"{EDGES_UNCHANGED}, and of the features 1 of 2 parts of one record replaced, the others unchanged": Pair(
        (X, ARCS), (LESS, ARCS)
    ),
    f"{EDGES_ADDED}, and of the features 1 of 2 parts of one record put to 0, the others unchanged": Pair(
        (X, ARCS), (ZERO, BESIDE)
    ),
    NODE_ADDED: REMOVED,
    ISOLATED_ADDED: Pair(
        (X, BESIDE), (np.delete(X, NODE, 0), BESIDE - (BESIDE > NODE))
    ),
}


def parts(data):
    graph = graph_of(data)
    return graph.records.rows, set(map(tuple, graph.arcs.T.tolist()))


def made(adjacency):
    return [*adjacency.corner_cases(), *first_values(adjacency.strategy(), 30)]


@pytest.mark.parametrize("reading", PAIRS)
def test_pairs_change_no_more_kinds_of_things_than_the_given_one(reading):
    adjacency = AlikeGraph([PAIRS[reading].swapped()])
    assert f"neighbours searched: {reading}" in adjacency.name
    pairs = made(adjacency)
    assert len(adjacency.corner_cases()) >= 4
    for each in pairs:
        (rows, edges), (others, kept) = sorted(
            map(parts, (each.data, each.neighbour)), key=lambda side: -len(side[0])
        )
        changed = {frozenset(edge) for edge in edges ^ kept}
        assert len(rows) == len(X)
        assert rows.min() >= X.min()
        assert np.linalg.norm(rows[:, :2], axis=1).max() <= 3 + 1e-9
        if reading in (NODE_ADDED, ISOLATED_ADDED):
            assert len(others) == len(X) - 1
            assert reading in AlikeGraph([each]).readings
            continue
        nodes = set(np.flatnonzero((rows != others).any(axis=1)).tolist())
        assert nodes <= ({NODE} if "and of the features" in reading else set())
        assert any(
            all(node in edge for edge in changed) for node in nodes or range(len(X))
        )
        if "features unchanged" in reading:
            assert np.array_equal(rows, X)
        if "put to 0" in reading:
            assert not others[NODE].any()
        if "1 of 2 parts" in reading:
            assert np.array_equal(rows[:, 0], others[:, 0])
        if EDGES_ADDED in reading and changed:
            assert any(
                all(node not in edge for edge in kept)
                for node in set.intersection(*map(set, changed))
            )
        assert len(changed) <= {EDGE_ADDED: 1, EDGES_UNCHANGED: 0}.get(
            reading.split(",")[0], len(X)
        )


@pytest.mark.parametrize("reading", PAIRS)
def test_no_node_has_more_edges_than_one_of_the_given_graphs(reading):
    most = max(
        np.bincount(
            parts(PAIRS[reading].data)[1]
            and np.array([*parts(PAIRS[reading].data)[1]])[:, 0]
        )
    )
    for each in made(AlikeGraph([PAIRS[reading]])):
        for data in (each.data, each.neighbour):
            sources = [a for a, _ in parts(data)[1]]
            assert max(np.bincount(sources), default=0) <= most


def test_a_user_may_name_a_wider_change():
    pair = Pair((X, ARCS), (X, ARCS[:, 4:]))
    wide = f"{EDGES_REPLACED}, and of the features one record replaced"
    assert any(
        not np.array_equal(each.data[0], each.neighbour[0])
        for each in made(AlikeGraph([pair], wide))
    )
    assert neighbours(pair, search=wide) == AlikeGraph([pair], wide)
    with pytest.raises(AdjacencyError, match="change='node'") as refused:
        neighbours(pair, search="node")
    assert wide in str(refused.value)
    with pytest.raises(AdjacencyError, match="search='node'"):
        neighbours(AlikeGraph([pair]), search="node")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pair", [REMOVED, ONE_EDGE])
def test_graphs_are_made_in_the_form_of_the_given_one(form, pair):
    shown = in_form(FORMS[form], pair)
    for each in AlikeGraph([shown]).corner_cases():
        for data in (each.data, each.neighbour):
            assert type(data) is type(shown.data)
            rows, edges = parts(data)
            fields = data if isinstance(data, dict) else getattr(data, "__dict__", {})
            assert {len(rows)} >= {
                fields[name] for name in ("num_nodes",) if name in fields
            }
            assert {len(rows)} >= {
                len(fields[name]) for name in ("x", "y", "train") if name in fields
            }
            assert {(b, a) for a, b in edges} == edges
            written = data[2] if form == "loops" else LOOPS[:, : len(rows)]
            assert set(map(tuple, LOOPS[:, : len(rows)].T)) <= set(
                map(tuple, written.T)
            )


def test_graphs_of_torch_geometric_are_made_with_all_that_nodes_have():
    torch, of = (
        pytest.importorskip("torch"),
        pytest.importorskip("torch_geometric.data").Data,
    )
    made_of = {"x": X, "train_mask": np.ones(5, bool), "y": Y, "edge_index": ARCS}
    whole = of(**{name: torch.as_tensor(value) for name, value in made_of.items()})
    without = of(
        x=whole.x[1:],
        y=whole.y[1:],
        train_mask=whole.train_mask[1:],
        edge_index=torch.as_tensor(ARCS[:, 2:] - 1),
    )
    for each in AlikeGraph([Pair(whole, without)]).corner_cases():
        for data, nodes in ((each.data, 5), (each.neighbour, 4)):
            assert [len(data.x), len(data.y), len(data.train_mask), data.num_nodes] == [
                nodes
            ] * 4
            assert (data.edge_index.dtype, data.x.dtype) == (torch.int64, torch.float64)


def sums(graph, rng):
    """Sums of neighbours' features of norm 1, of which one undirected edge changes two rows: sqrt(2)/4-Gaussian DP."""
    rows, out = (
        graph.x / np.linalg.norm(graph.x, axis=1, keepdims=True),
        np.zeros(graph.x.shape),
    )
    np.add.at(out, graph.edges[1], rows[graph.edges[0]])
    return out + rng.normal(scale=4.0, size=out.shape)


def test_a_trainer_that_protects_edges_is_not_accused_and_the_result_says_what_was_searched():
    pair = in_form(FORMS["frozen"], ONE_EDGE)
    kept = audit_training(sums, GaussianDP(2**0.5 / 4), pair, calls=300)
    details = kept.evidence[0].details
    assert kept.verdict is Verdict.NOT_REFUTED
    assert details.trace.share == pytest.approx(1.0)
    assert any(
        notice.startswith(f"neighbours searched: {EDGE_ADDED}, features unchanged")
        for notice in kept.notices
    )
    assert audit_training(sums, GaussianDP(0.2), pair).verdict is Verdict.VIOLATED


def test_edges_of_an_undirected_graph_come_both_ways_and_of_a_directed_one_either_way():
    both = [parts(pair.data)[1] for pair in AlikeGraph([REMOVED]).corner_cases()]
    assert all({(b, a) for a, b in edges} == edges for edges in both)
    assert all(
        a < b for pair in made(AlikeGraph([ORDERED])) for a, b in parts(pair.data)[1]
    )
    hubs = [
        parts(pair.data)[1]
        for pair in AlikeGraph([DIRECTED]).corner_cases()
        if pair.name.endswith(" a hub")
    ]
    assert {edge[::-1] for edges in hubs for edge in edges} & {
        edge for edges in hubs for edge in edges
    }
    shown = [parts(pair.data)[1] for pair in made(AlikeGraph([DIRECTED]))]
    assert not any(
        (b, a) in edges for edges in shown for a, b in edges
    )  # as in the given graphs
    sending = np.array([[1, 1, 3, 4], [0, 2, 4, 3]])
    pairs = made(AlikeGraph([Pair((X, sending), (X, sending[:, 2:]))]))
    assert {
        a for pair in pairs for a, _ in parts(pair.data)[1] - parts(pair.neighbour)[1]
    } == {NODE}


def test_what_is_no_graph_is_left_to_its_records():
    assert graph_of((X, Y)) is None
    assert graph_of((X, np.array([[0, 9], [1, 2]]))) is None
    assert (
        graph_of({"x": X, "edges": ARCS, "weights": np.ones(8)}) is None
    )  # of other edges there are none
    assert isinstance(neighbours(((X, Y), (X[:-1], Y[:-1])), search=True), Alike)
    assert isinstance(neighbours(REMOVED, search=True), AlikeGraph)
    for edges in (
        [(0, 1), (1, 2), (0, 2)],
        np.array([[0, 1], [1, 2], [0, 2]]),
    ):  # copies of one, or loops, would be none
        assert (
            "edges or records"
            in neighbours(Pair(edges, edges[1:]), search=True).unsearched
        )
    assert isinstance(
        neighbours(Pair([(20, 1), (31, 0), (40, 1)], [(31, 0), (40, 1)]), search=True),
        Alike,
    )
    with pytest.raises(AdjacencyError, match="differ in one node or one edge"):
        AlikeGraph([Pair((X, ARCS), (X, ARCS[:, :3]))])
