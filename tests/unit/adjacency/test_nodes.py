"""Node DP: the pairs it lists are neighbours, all of them where it says so, and nothing else passes."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import find

from auditdp import Nodes, Pair
from auditdp.errors import AdjacencyError

SMALL = [
    Nodes(n, change, loops)
    for n in (2, 3)
    for change in ("replaced", "removed")
    for loops in (False, True)
]


def unordered(pair):
    return frozenset((pair.data.tobytes(), pair.neighbour.tobytes()))


def symmetric(nodes):
    """All symmetric matrices of zeros and ones."""
    cells = [(i, j) for i in range(nodes) for j in range(i, nodes)]
    for bits in product((0, 1), repeat=len(cells)):
        matrix = np.zeros((nodes, nodes), np.int8)
        for (i, j), bit in zip(cells, bits, strict=True):
            matrix[i, j] = matrix[j, i] = bit
        yield matrix


def belongs(adjacency, graph):
    """Whether a matrix is an input: the definition, in other words than the code's."""
    there, connected = (
        np.diagonal(graph) == 1,
        (graph - np.diag(np.diagonal(graph))).any(axis=1),
    )
    if not adjacency.loops:
        return not there.any()
    return (
        there.all()
        if adjacency.change == "replaced"
        else not (connected & ~there).any()
    )


def neighbours(adjacency, a, b):
    """Whether some node's removal (its row and column set to 0) makes the two inputs equal, one of them being removed."""
    for node in range(adjacency.nodes):
        without = [graph.copy() for graph in (a, b)]
        for graph in without:
            graph[node] = graph[:, node] = 0
        same = (without[0] == without[1]).all() and (a != b).any()
        if same and (
            adjacency.change == "replaced"
            or any((graph == without[0]).all() for graph in (a, b))
        ):
            return True
    return False


@pytest.mark.parametrize(
    "adjacency", [*SMALL, Nodes(1, "removed", loops=True)], ids=lambda a: a.name
)
def test_exhaustive_is_what_brute_force_finds(adjacency):
    inputs = [
        graph for graph in symmetric(adjacency.nodes) if belongs(adjacency, graph)
    ]
    brute = {
        unordered(Pair(a, b))
        for a, b in combinations(inputs, 2)
        if neighbours(adjacency, a, b)
    }
    found = adjacency.exhaustive()
    assert {unordered(pair) for pair in found} == brute
    assert len(found) == len(brute)
    for a, b in combinations(inputs, 2):
        if unordered(Pair(a, b)) not in brute:
            with pytest.raises(AdjacencyError, match=r"share no node|is not removed"):
                adjacency.check(Pair(a, b))


def test_generated_pairs_have_every_change():
    degree = {
        "replaced": lambda graph: graph[0].sum(),
        "removed": lambda graph: graph[3].sum(),
    }
    for change, of in degree.items():
        strategy = Nodes(4, change).strategy()
        assert find(
            strategy, lambda pair, of=of: of(pair.data) == 3 and of(pair.neighbour) == 0
        )
        assert find(
            strategy, lambda pair, of=of: of(pair.data) == 0 and of(pair.neighbour) == 3
        )
    moved = Nodes(4).strategy().filter(lambda pair: 0 < pair.data[0].sum() < 3)
    assert find(
        moved, lambda pair: (pair.data[0] + pair.neighbour[0])[1:].tolist() == [1, 1, 1]
    )
    removed = Nodes(4, "removed", loops=True).strategy()
    assert find(
        removed, lambda pair: pair.neighbour.trace() == 1 and pair.data.trace() == 2
    )
    assert find(
        removed, lambda pair: pair.neighbour.trace() == 1 and pair.data.trace() == 0
    )


@pytest.mark.parametrize(
    "adjacency", [Nodes(4), Nodes(4, "removed", loops=True)], ids=lambda a: a.name
)
def test_hubs_and_isolated_nodes_are_played(adjacency):
    by_name = {pair.name: pair for pair in adjacency.pairs()}
    hub = by_name["hub | no hub"]
    assert (hub.data[3, :3] == 1).all()
    assert not hub.neighbour[3, :3].any()
    shared = by_name["two hubs share all leaves | one hub"].data
    assert (shared[0] - shared[3])[1:3].tolist() == [0, 0]
    if adjacency.loops:
        isolated = by_name["isolated node | no node"]
        assert (isolated.data - isolated.neighbour).sum() == isolated.data[3, 3] == 1
    else:
        moved = by_name["leaf of one hub | of another"]
        assert moved.data[0].tolist() == [0, 1, 0, 0]
        assert moved.neighbour[0].tolist() == [0, 0, 1, 0]


def graph(nodes, *edges, there=()):
    matrix = np.zeros((nodes, nodes), np.int8)
    for i, j in edges:
        matrix[i, j] = matrix[j, i] = 1
    matrix[list(there), list(there)] = 1
    return matrix


EMPTY = graph(4)
ASYMMETRIC = np.eye(4, k=1, dtype=np.int8)
NOT_NEIGHBOURS = [
    (Nodes(4), graph(4, (0, 1), (2, 3)), EMPTY, "share no node"),
    (Nodes(4), EMPTY, EMPTY, "equal"),
    (Nodes(4), graph(3, (0, 1)), EMPTY, r"shape \(4, 4\)"),
    (Nodes(4), ASYMMETRIC, EMPTY, "symmetric"),
    (Nodes(4), 2 * graph(4, (0, 1)), EMPTY, "zeros and ones"),
    (Nodes(4), graph(4, (0, 1), there=(0,)), EMPTY, "loops=True"),
    (
        Nodes(4, "removed"),
        graph(4, (0, 1), (1, 2)),
        graph(4, (0, 1), (1, 3)),
        "edges in both",
    ),
    (
        Nodes(4, loops=True),
        graph(4, there=(0, 1, 2)),
        graph(4, there=range(4)),
        "zeros on the diagonal",
    ),
    (
        Nodes(4, "removed", loops=True),
        graph(4, (0, 1), there=(0,)),
        graph(4, there=(0,)),
        "not there",
    ),
    (Nodes(4, "removed", loops=True), graph(4, there=(0, 1)), EMPTY, "share no node"),
]


@pytest.mark.parametrize(("adjacency", "data", "neighbour", "shown"), NOT_NEIGHBOURS)
def test_inputs_that_are_not_neighbours_are_refused_with_what_is_wrong(
    adjacency, data, neighbour, shown
):
    for pair in (Pair(data, neighbour), Pair(neighbour, data)):
        with pytest.raises(AdjacencyError, match=shown):
            adjacency.check(pair)


def test_a_removed_node_may_leave_others_without_edges():
    star = graph(4, (0, 1), (0, 2), (0, 3))
    Nodes(4, "removed").check(Pair(star, EMPTY))
    Nodes(4, "removed", loops=True).check(
        Pair(star + np.eye(4, dtype=np.int8), graph(4, there=(1, 2, 3)))
    )


@pytest.mark.parametrize("nodes", [1, 0, -3, 2.0, "8", None], ids=repr)
def test_numbers_of_nodes_that_make_no_pairs_are_refused(nodes):
    with pytest.raises(AdjacencyError, match="an integer >= 2"):
        Nodes(nodes)


def test_the_change_is_one_of_two():
    with pytest.raises(
        AdjacencyError, match="change='replaced' or 'removed', got 'moved'"
    ):
        Nodes(4, "moved")


def test_names_say_what_changes():
    assert Nodes(4).name == "node DP (the edges of one node replaced), 4 ids"
    assert (
        Nodes(1, "removed", loops=True).name
        == "node DP (one node added or removed), 1 id, self-loops"
    )
