"""Edge and node DP: enumerations are those of brute force, up to the order of nodes."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import find

from auditdp import Edges, Nodes, Pair
from auditdp.errors import AdjacencyError


def unordered(pair):
    return frozenset((pair.data.tobytes(), pair.neighbour.tobytes()))


def symmetric(nodes):
    """All symmetric matrices of zeros and ones."""
    cells = [(i, j) for i in range(nodes) for j in range(i, nodes)]
    for ones in product((0, 1), repeat=len(cells)):
        graph = np.zeros((nodes, nodes), np.int8)
        graph[tuple(zip(*cells, strict=True))] = ones
        yield np.maximum(graph, graph.T)


def belongs(adjacency, graph):
    """The definition of an input, in other words than the code's."""
    there = np.diagonal(graph) == 1
    connected = (graph - np.diag(np.diagonal(graph))).any(axis=1)
    if not adjacency.loops:
        return not there.any()
    if adjacency.change == "replaced":
        return there.all()
    return not (connected & ~there).any()


def are_neighbours(adjacency, a, b):
    """Return whether the removal of one node makes both inputs equal.

    If nodes are removed, the result has to be one of both inputs.
    """
    for node in range(adjacency.nodes):
        without = [graph.copy() for graph in (a, b)]
        for graph in without:
            graph[node] = graph[:, node] = 0
        if (without[0] != without[1]).any():
            continue
        removed = any((graph == without[0]).all() for graph in (a, b))
        if removed or adjacency.change == "replaced":
            return True
    return False


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("change", ["replaced", "removed"])
@pytest.mark.parametrize("nodes", [2, 3])
def test_an_enumeration_is_what_brute_force_finds(nodes, change, loops):
    adjacency = Nodes(nodes, change, loops)
    inputs = [graph for graph in symmetric(nodes) if belongs(adjacency, graph)]
    true_pairs = set()
    for a, b in combinations(inputs, 2):
        if are_neighbours(adjacency, a, b):
            true_pairs.add(unordered(Pair(a, b)))
            continue
        with pytest.raises(AdjacencyError, match=r"share no node|is not removed"):
            adjacency.check(Pair(a, b))
    assert {unordered(pair) for pair in adjacency.exhaustive()} == true_pairs


GENERATED = {
    "an edge": (Edges(4), lambda a, b: a.sum() > b.sum()),
    "all edges": (Nodes(4), lambda a, b: a[0].sum() == 3 and not b[0].any()),
    "a hub": (Nodes(4, "removed"), lambda a, b: a[3].sum() == 3 and not b[3].any()),
    "a loop": (
        Nodes(4, "removed", loops=True),
        lambda a, b: (a.trace(), b.trace()) == (2, 1),
    ),
}


@pytest.mark.parametrize(("adjacency", "holds"), GENERATED.values(), ids=GENERATED)
def test_each_change_is_generated_in_both_orders(adjacency, holds):
    assert find(adjacency.strategy(), lambda pair: holds(pair.data, pair.neighbour))
    assert find(adjacency.strategy(), lambda pair: holds(pair.neighbour, pair.data))


def listed(adjacency):
    return {pair.name: pair for pair in adjacency.pairs()}


def test_hubs_and_isolated_nodes_are_played():
    for adjacency in (Nodes(4), Nodes(4, "removed", loops=True)):
        hub = listed(adjacency)["hub | no hub"]
        assert hub.data[3, :3].all()
        assert not hub.neighbour[3, :3].any()
        shared = listed(adjacency)["two hubs share all leaves | one hub"].data
        assert (shared[0, 1:3] == shared[3, 1:3]).all()
    isolated = listed(adjacency)["isolated node | no node"]
    assert (isolated.data - isolated.neighbour).sum() == isolated.data[3, 3] == 1
    moved = listed(Nodes(4))["leaf of one hub | of another"]
    assert moved.data[0].tolist() == [0, 1, 0, 0]
    assert moved.neighbour[0].tolist() == [0, 0, 1, 0]


def smallest_form(pair, inner):
    """The first of all orders of the nodes that map the inner ones to themselves."""
    forms = []
    for order in permutations(range(len(pair.data))):
        if {order[i] for i in inner} == set(inner):
            at = np.ix_(order, order)
            forms.append((pair.data[at].tobytes(), pair.neighbour[at].tobytes()))
    return min(forms)


@pytest.mark.parametrize(
    ("nodes", "among"), [(2, None), (4, None), (4, (0, 1)), (4, (1, 2, 3))]
)
def test_unlabelled_pairs_differ_in_more_than_the_order_of_nodes(nodes, among):
    every = Edges(nodes, among=among)
    one_of_each = Edges(nodes, among=among, unlabelled=True).exhaustive()
    inner = among or range(nodes)
    forms = [smallest_form(pair, inner) for pair in one_of_each]
    assert len(forms) == len(set(forms))
    assert set(forms) == {smallest_form(pair, inner) for pair in every.exhaustive()}
    for pair in one_of_each:
        every.check(pair)
