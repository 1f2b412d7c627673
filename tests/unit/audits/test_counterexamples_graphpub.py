"""The counterexamples to statements of GraphPub, by another route than the audits."""

import math
from itertools import product

import pytest

CORA = {"nodes": 2708, "edges": 5429}


def counts(epsilon, degree, nodes):
    """E₁ and E₂ of Equation 11."""
    odds = math.exp(epsilon)
    total = odds * degree + nodes - degree
    return odds * degree**2 / total, (nodes - degree) * degree / total


def published(nodes, edges, epsilon, rounding=round):
    """Every node's list: its first E₁ neighbours and its first E₂ others, in the order of ids."""
    lists = []
    for node in range(nodes):
        real = [v for v in range(nodes) if (min(v, node), max(v, node)) in edges]
        others = [v for v in range(nodes) if v != node and v not in real]
        e1, e2 = (rounding(x) for x in counts(epsilon, len(real), nodes))
        lists.append(frozenset(real[:e1]) | frozenset(others[:e2]))
    return tuple(lists)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
def test_lists_are_as_long_as_degrees(epsilon):
    for nodes in (5, 2708):
        for degree in range(min(nodes, 40)):
            assert sum(counts(epsilon, degree, nodes)) == pytest.approx(degree)
    edges = {(0, 1), (0, 2), (0, 3), (3, 4)}
    degrees = [sum(node in edge for edge in edges) for node in range(5)]
    assert [len(found) for found in published(5, edges, epsilon)] == degrees
    scale = 1 / epsilon  # of the noise on each of the two degrees that one edge changes
    assert 2 * (1 / scale) == pytest.approx(2 * epsilon)


def test_a_published_edge_can_be_told():
    e1, e2 = counts(1.0, 4, CORA["nodes"])
    assert (round(e1, 3), round(e2, 2)) == (0.016, 3.98)
    assert (round(e1), round(e2)) == (0, 4)
    assert published(2, {(0, 1)}, 1.0) == (frozenset({1}), frozenset({0}))


def test_the_counts_are_expectations():
    """Means of randomised response on a row of N − 1 bits, scaled to m: the printed ones count one zero more."""
    nodes, degree, epsilon = 50, 6, 1.3
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    real, others = keep * degree, (1 - keep) * (nodes - 1 - degree)
    one_more = (1 - keep) * (nodes - degree)
    printed = counts(epsilon, degree, nodes)
    assert printed == pytest.approx(
        [degree * x / (real + one_more) for x in (real, one_more)]
    )
    assert printed[1] > degree * others / (real + others)


def test_no_function_of_a_noisy_graph_loses_more():
    """All maps of the two outputs of randomised response on one pair, and all of four on two pairs that differ in one."""
    epsilon = 1.0
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    one = [(keep, 1 - keep), (1 - keep, keep)]
    two = [[p * q for p in row for q in one[0]] for row in one]
    for first, second in (one, two):
        losses = []
        for function in product(range(len(first)), repeat=len(first)):
            mapped = [
                [
                    sum(p for p, y in zip(law, function, strict=True) if y == z)
                    for z in set(function)
                ]
                for law in (first, second)
            ]
            losses.append(
                max(abs(math.log(p / q)) for p, q in zip(*mapped, strict=True))
            )
        assert max(losses) == pytest.approx(epsilon)
