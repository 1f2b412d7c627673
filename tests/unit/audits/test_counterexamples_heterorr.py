"""The counterexamples to statements of HeteroRR, by another route than the audits."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import integrate

from mechanisms.backend import backend_of
from mechanisms.features import LinearExtractor


def table(budget, bins):
    """P(u | t) as printed."""
    rows = np.exp(
        -budget
        * np.abs(np.subtract.outer(np.arange(bins), np.arange(bins)))
        / (bins - 1)
    )
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("bins", [2, 3, 7, 20])
@pytest.mark.parametrize("budget", [0.1, 1.0, 5.0])
def test_one_feature_loses_exactly_its_budget(bins, budget):
    law = np.log(table(budget, bins))
    assert (law.max(axis=0) - law.min(axis=0)).max() == pytest.approx(budget)


def test_the_scores_of_equation_7_lose_their_sum():
    importance, sensitivity, gamma = (0.5, 0.5, 0.0), (1.0, 0.0, 0.0), 0.5
    scores = [
        gamma * a + (1 - gamma) * (min(sensitivity) + max(sensitivity) - b)
        for a, b in zip(importance, sensitivity, strict=True)
    ]
    loss = sum(math.log(table(s, 3)[0, 0] / table(s, 3)[2, 0]) for s in scores)
    assert (sum(scores), loss) == (pytest.approx(1.5), pytest.approx(1.5))


def test_shares_from_the_record_lose_more_than_their_budget():
    """[1/2, 1] against [0, 0] in 4 bins: budgets (0, 4) against (2, 2) at ε = 4."""
    extractor = LinearExtractor(((1.0, 0.0), (0.0, 1.0)))
    records = np.array([[0.5, 1.0], [0.0, 0.0]])
    given = extractor.shares(records, 0.5, backend_of(np.random.default_rng(0)))
    first, second = (
        [
            table(4.0 * share, 4)[max(1, math.ceil(4 * z)) - 1]
            for share, z in zip(theta, record, strict=True)
        ]
        for theta, record in zip(np.asarray(given), records, strict=True)
    )
    losses = [
        abs(math.log(first[0][u] * first[1][v] / (second[0][u] * second[1][v])))
        for u in range(4)
        for v in range(4)
    ]
    assert max(losses) == pytest.approx(4.39076743838)


def test_shares_that_equations_5_and_6_define_lose_more_too():
    """[1/2, 0] against [1, 1]: no 0/0. Importance |z − 1/2| is (0, 1) or (1/2, 1/2); the first answer alone is sensitive."""
    laws = []
    for record in ((0.5, 0.0), (1.0, 1.0)):
        importance = np.abs(np.array(record) - 0.5)
        scores = importance / importance.sum() / 2 + (1 - np.array([1.0, 0.0])) / 2
        laws.append(
            [
                table(4.0 * s, 4)[max(1, math.ceil(4 * z)) - 1]
                for s, z in zip(scores, record, strict=True)
            ]
        )
    loss = sum(np.log(p / q).max() for p, q in zip(*laws, strict=True))
    other = sum(np.log(q / p).max() for p, q in zip(*laws, strict=True))
    assert max(loss, other) == pytest.approx(4.2925673021)


def test_population_scaling_before_feature_rr():
    """Two users with value 1/2 and 0 or 1: scaled to (1, 0) or (0, 1), so that both reports change bins."""
    law = table(1.0, 5)
    losses = [
        math.log(law[4, u] * law[0, v] / (law[0, u] * law[4, v]))
        for u, v in product(range(5), repeat=2)
    ]
    assert max(losses) == pytest.approx(2.0)


def test_errors_of_feature_rr_and_of_an_unbiased_mechanism():
    law, values = table(0.1, 10), np.arange(1, 11) / 10
    middle, high = (
        float(law[t] @ (values - value) ** 2) for t, value in ((4, 0.5), (9, 1.0))
    )
    assert (round(middle, 2), round(high, 2)) == (0.08, 0.28)
    bias = float(law[9] @ values) - 1.0
    assert (round(bias, 2), round(float(law[0] @ values), 2)) == (-0.44, 0.54)
    duchi = (0.5 / math.tanh(0.05)) ** 2 - 0.5**2  # of 1, half a range from the middle
    assert duchi == pytest.approx(100, rel=0.01)
    neighbours = next(
        n for n in range(1, 5000) if duchi / n < bias**2 + (high - bias**2) / n
    )
    assert neighbours == 514


# Dendrograms of three nodes: which pair is joined last does not matter, only which two leaves are siblings.

PAIRS = [(0, 1), (0, 2), (1, 2)]


def log_likelihood(siblings, edges):
    """Log L of the dendrogram whose siblings are these two leaves: one pair below, two across the root."""
    across = sum(edge != siblings for edge in edges)
    return 2 * math.log(1 / 2) if across == 1 else 0.0


def kernel(edges, weight):
    """One move: one of the two other dendrograms, accepted with min(1, exp(weight·Δ log L))."""
    step = np.zeros((3, 3))
    for i, j in product(range(3), repeat=2):
        if i != j:
            step[i, j] = (
                min(
                    1.0,
                    math.exp(
                        weight
                        * (
                            log_likelihood(PAIRS[j], edges)
                            - log_likelihood(PAIRS[i], edges)
                        )
                    ),
                )
                / 2
            )
    return step + np.diag(1 - step.sum(axis=1))


def stationary(step):
    """The law that a step leaves as it is, by running it."""
    return np.linalg.matrix_power(step, 4096)[0]


DELTA = 2 * math.log(2)  # both printed sensitivities for three nodes


@pytest.mark.parametrize(
    ("factor", "public_moves", "loss"),
    [(2, 1, 0.10397), (2, 10, 0.17821), (1, 10, 0.32255)],
)
def test_alternating_moves_on_three_nodes(factor, public_moves, loss):
    public = np.linalg.matrix_power(kernel([(0, 1), (0, 2)], 1.0), public_moves)
    first, second = (
        stationary(public @ kernel(edges, 0.1 / (factor * DELTA)))
        for edges in ([(1, 2)], [])
    )
    assert np.abs(np.log(first / second)).max() == pytest.approx(loss, abs=2e-5)


def test_the_alternating_chain_is_not_reversible():
    step = kernel([(0, 1)], 1.0) @ kernel([(0, 2)], 0.1 / (2 * DELTA))
    flow = stationary(step)[:, None] * step
    assert np.abs(flow - flow.T).max() > 1e-3
    assert (step > 0).all()  # ergodic
    for part in (kernel([(0, 1)], 1.0), kernel([(0, 2)], 0.1)):
        flow = stationary(part)[:, None] * part
        assert np.abs(flow - flow.T).max() < 1e-12


# Dendrograms of any number of leaves, by inserting leaves one at a time.


def dendrograms(leaves):
    """Every dendrogram over 0..leaves−1 as its set of (left, right) splits."""
    trees = [0]
    for leaf in range(1, leaves):
        trees = [new for tree in trees for new in inserted(tree, leaf)]
    return trees


def inserted(tree, leaf):
    """Every tree that arises from adding a leaf beside some node."""
    found = [(tree, leaf)]
    if isinstance(tree, tuple):
        found += [(new, tree[1]) for new in inserted(tree[0], leaf)] + [
            (tree[0], new) for new in inserted(tree[1], leaf)
        ]
    return found


def leaves_of(tree):
    return (
        leaves_of(tree[0]) + leaves_of(tree[1]) if isinstance(tree, tuple) else [tree]
    )


def tree_likelihood(tree, edges):
    """Log L of a dendrogram, by recursion."""
    if not isinstance(tree, tuple):
        return 0.0
    left, right = leaves_of(tree[0]), leaves_of(tree[1])
    pairs = len(left) * len(right)
    count = sum((min(a, b), max(a, b)) in edges for a in left for b in right)
    here = sum(n * math.log(n / pairs) for n in (count, pairs - count) if n)
    return here + tree_likelihood(tree[0], edges) + tree_likelihood(tree[1], edges)


def test_the_number_of_dendrograms():
    assert [len(dendrograms(n)) for n in (3, 4, 5, 6)] == [3, 15, 105, 945]


def delta(private, equation):
    pairs = private**2 // 4
    step = math.log(1 + 1 / (pairs - 1))
    return math.log(pairs) + (step if equation == 15 else (pairs - 1) * step)


def loss(nodes, one, other, weight):
    """The largest log ratio of the exponential weights of two graphs."""
    logs = []
    for edges in (one, other):
        values = weight * np.array(
            [tree_likelihood(tree, edges) for tree in dendrograms(nodes)]
        )
        logs.append(
            values - values.max() - math.log(np.exp(values - values.max()).sum())
        )
    return np.abs(logs[0] - logs[1]).max()


@pytest.mark.parametrize(
    ("nodes", "one", "other", "equation", "epsilon", "found"),
    [
        (4, {(0, 1), (0, 2)}, {(0, 1)}, 15, 0.5, 0.630318),
        (4, {(0, 1), (0, 2), (1, 3)}, {(0, 1), (0, 2)}, 19, 5.0, 5.796891),
        (
            5,
            {(0, 2), (0, 4), (2, 3), (3, 4)},
            {(0, 4), (2, 3), (3, 4)},
            15,
            0.1,
            0.1378,
        ),
    ],
)
def test_the_exponent_without_the_2(nodes, one, other, equation, epsilon, found):
    assert loss(nodes, one, other, epsilon / delta(nodes, equation)) == pytest.approx(
        found, rel=1e-3
    )


def test_one_edge_changes_more_than_equation_15():
    change = max(abs(tree_likelihood(tree, {(0, 1)})) for tree in dendrograms(4))
    assert change == pytest.approx(delta(4, 19))
    assert delta(4, 15) < 0.75 * change


def test_both_sensitivities_grow():
    for equation in (15, 19):
        values = [delta(n, equation) for n in range(4, 60)]
        assert all(a < b for a, b in pairwise(values))


def test_private_nodes_from_the_data():
    """Six nodes: a clique of four, and edge 45 that makes two more nodes private; N_r and Δ change with them."""
    logs = []
    members = {True: range(6), False: range(4)}
    base = {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
    for with_edge in (True, False):
        edges = base | ({(4, 5)} if with_edge else set())
        rate = 0.1 / (2 * delta(len(members[with_edge]), 19))
        values = rate * np.array(
            [
                likelihood_among(tree, edges, set(members[with_edge]))
                for tree in dendrograms(6)
            ]
        )
        logs.append(
            values - values.max() - math.log(np.exp(values - values.max()).sum())
        )
    assert np.abs(logs[0] - logs[1]).max() == pytest.approx(0.119995641958, rel=1e-6)


def likelihood_among(tree, edges, members):
    """Log L with pairs of members only."""
    if not isinstance(tree, tuple):
        return 0.0
    left, right = ([v for v in leaves_of(side) if v in members] for side in tree)
    pairs = len(left) * len(right)
    count = sum((min(a, b), max(a, b)) in edges for a in left for b in right)
    here = sum(n * math.log(n / pairs) for n in (count, pairs - count) if n)
    return (
        here
        + likelihood_among(tree[0], edges, members)
        + likelihood_among(tree[1], edges, members)
    )


def test_a_lone_private_edge_shows():
    """Two nodes, ε₂ = .5: with the edge it is drawn with E[clip(1 + Lap(2))] = e^(−1/2); without it V_pri is empty."""
    assert moment(1, 1, 1, 0, 0.5) == pytest.approx(math.exp(-0.5))


def test_fresh_draws_for_the_same_count():
    """Two Laplace numbers of scale 1/ε around 1 or 0: the log ratio of densities reaches 2ε."""
    assert (
        max(
            (abs(x) + abs(y)) - (abs(x - 1) + abs(y - 1))
            for x, y in product(np.linspace(-3, 4, 29), repeat=2)
        )
        == 2
    )


def moment(count, pairs, ones, zeros, epsilon):
    """E[p^ones (1−p)^zeros] for p = clip((count + Lap(1/ε))/pairs, 0, 1), by quadrature."""

    def density(p):
        return pairs * epsilon / 2 * math.exp(-epsilon * abs(p * pairs - count))

    def inside(p):
        return p**ones * (1 - p) ** zeros * density(p)

    kink = min(max(count / pairs, 0.0), 1.0)
    between = integrate.quad(inside, 0, kink)[0] + integrate.quad(inside, kink, 1)[0]
    at_one = 0.5 * math.exp(-epsilon * (pairs - count))
    at_zero = 0.5 * math.exp(-epsilon * count)
    return between + at_one * (zeros == 0) + at_zero * (ones == 0)


def across(tree):
    """The pairs across each internal node."""
    if not isinstance(tree, tuple):
        return []
    here = [
        (min(a, b), max(a, b)) for a in leaves_of(tree[0]) for b in leaves_of(tree[1])
    ]
    return [here, *across(tree[0]), *across(tree[1])]


def released(nodes, edges, weight, epsilon, pooled):
    """P(graph) of every graph: dendrogram by its weight, then a probability for each internal node.

    Pooled: every internal node draws its own noise for the number of all edges, of all pairs.
    """
    trees = dendrograms(nodes)
    law = np.exp(weight * np.array([tree_likelihood(tree, edges) for tree in trees]))
    every = [(i, j) for i in range(nodes) for j in range(i + 1, nodes)]
    known = {}

    def of(group, graph):
        ones = sum(pair in graph for pair in group)
        count = len(edges) if pooled else sum(pair in edges for pair in group)
        key = (count, len(every) if pooled else len(group), ones, len(group) - ones)
        if key not in known:
            known[key] = moment(*key, epsilon)
        return known[key]

    graphs = [
        {p for p, bit in zip(every, bits, strict=True) if bit}
        for bits in product((0, 1), repeat=len(every))
    ]
    groups = [across(tree) for tree in trees]
    return [
        sum(
            w * math.prod(of(group, graph) for group in node)
            for w, node in zip(law / law.sum(), groups, strict=True)
        )
        for graph in graphs
    ]


@pytest.mark.parametrize(
    ("nodes", "one", "other", "weight", "epsilon", "pooled", "loss_of_graph"),
    [
        (
            4,
            {(0, 1), (0, 2)},
            {(0, 1)},
            0.5 / delta(4, 15),
            0.01,
            False,
            0.628328063922,
        ),
        (3, {(0, 1)}, set(), 0.25 / (2 * delta(3, 19)), 0.75, True, 1.40106523385),
    ],
)
def test_the_released_graph(nodes, one, other, weight, epsilon, pooled, loss_of_graph):
    """EdgeRR with hardly any ε₂ shows its dendrogram; with fresh draws for a pooled subtree it shows the count twice."""
    first, second = (
        np.log(released(nodes, edges, weight, epsilon, pooled))
        for edges in (one, other)
    )
    assert np.abs(first - second).max() == pytest.approx(loss_of_graph, rel=1e-6)


def test_the_published_pm_sub_shows_its_input():
    """(C − g₂)g₂ in place of a number of [g₂, C], for two values; each has it with its own probability P₃ > 0."""
    e, t = math.exp(1.0), math.exp(1 / 3)
    unit = (e + t) / (t * (e - 1))
    atoms = {
        x: (unit * (t + 1) - unit * (x * t + 1)) * unit * (x * t + 1)
        for x in (0.0, 0.5)
    }
    chance = {x: (1 - x) * t / (2 * t + 2 * e) for x in atoms}
    assert (round(atoms[0.0], 2), round(chance[0.0], 2)) == (4.11, 0.17)
    assert chance[0.5] > 0
    for x, other in ((0.0, 0.5), (0.5, 0.0)):
        assert atoms[other] not in (
            atoms[x],
            *np.linspace(-unit * (t + 1), unit * (x * t + 1), 2),
        )
        assert atoms[other] > unit * (x * t + 1)  # beyond both intervals that x has
