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


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_two_nodes_show_their_edge(epsilon):
    """Nothing is drawn, so that different lists are an infinite loss."""
    assert published(2, {(0, 1)}, epsilon) != published(2, set(), epsilon)


def test_rounded_down_two_nodes_show_nothing_and_three_do():
    assert published(2, {(0, 1)}, 1.0, math.floor) == published(
        2, set(), 1.0, math.floor
    )
    graphs = [
        {p for p, bit in zip([(0, 1), (0, 2), (1, 2)], bits, strict=True) if bit}
        for bits in product((0, 1), repeat=3)
    ]
    lists = {frozenset(g): published(3, g, 1.0, math.floor) for g in graphs}
    assert lists[frozenset({(0, 1), (0, 2)})] != lists[frozenset({(0, 1)})]


def test_rounded_at_random_on_two_nodes():
    """E₁ = e/(e+1): both ends publish nobody with (1 − E₁)², where an empty graph always does."""
    e1, _ = counts(1.0, 1, 2)
    assert (1 - e1) ** 2 == pytest.approx(0.0723294881285)


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


def noisy_degree(degree, epsilon, largest):
    """P(m̃ = k) for k = 1..largest, m̃ = max{round(m + Lap(1/ε)), 1}; the rest is on ``largest``."""

    def below(x):
        z = x - degree
        return (
            0.5 * math.exp(epsilon * z) if z < 0 else 1 - 0.5 * math.exp(-epsilon * z)
        )

    found = [below(1.5), *(below(k + 0.5) - below(k - 0.5) for k in range(2, largest))]
    return [*found, 1 - sum(found)]


def test_noisy_degrees_never_publish_a_neighbour_that_is_not_there():
    """Two nodes, ε₁ = .5, ε₂ = 1: with the edge node 0 lists node 1; without it every list is made of others."""
    assert all(p > 0 for p in noisy_degree(1, 0.5, 4))
    assert published(2, {(0, 1)}, 1.0)[0] == frozenset({1})
    assert counts(1.0, 1, 2)[0] > 0.5 > counts(1.0, 1, 2)[1]


def test_the_reading_most_in_favour_of_noisy_degrees():
    """Two nodes: who has the edge lists the other with E₁(m̃), who has it not with E₂(m̃); the union is published.

    The smaller of the two probabilities of no edge is .02697, the other .63135: e^3.153.
    """
    mass = noisy_degree(1, 0.5, 200), noisy_degree(0, 0.5, 200)
    listed = []
    for which, law in zip((0, 1), mass, strict=True):
        rates = [
            min(max(counts(1.0, k, 2)[which], 0.0), 1.0) if k < 3 else None
            for k in range(1, 201)
        ]
        rates = [
            r if r is not None else limit(which, k)
            for r, k in zip(rates, range(1, 201), strict=True)
        ]
        listed.append(sum(p * r for p, r in zip(law, rates, strict=True)))
    none = [(1 - x) ** 2 for x in listed]
    assert none == pytest.approx([0.0269667391727, 0.631354269089], rel=1e-6)


def limit(which, degree):
    """What a node of two with m̃ >= 3 publishes: counts are cut to who is there."""
    return min(max(counts(1.0, degree, 2)[which], 0.0), 1.0)


def test_the_attack_table_is_consistent():
    rows = {
        "Cora": ((0.0265, 0.0402), (0.1592, 0.2221)),
        "Citeseer": ((0.0284, 0.0269), (0.1927, 0.1679)),
        "Polblogs": ((0.0362, 0.0369), (0.1488, 0.1487)),
    }
    ratios = [round((p / r) / (q / s), 2) for (q, s), (p, r) in rows.values()]
    assert ratios == [1.09, 1.09, 1.02]


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
