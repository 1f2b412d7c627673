"""Every sampler has the law that its exact methods state, and the sparse forms have the law of the dense ones.

Each assertion has alpha = 1e-6: the null hypothesis is that the sampler is right, runs are independent, the number of
runs is fixed, and cells of a chi-square test are pooled until 20 are expected in each, where its approximation is good.
"""

import time
import tracemalloc
from math import comb

import numpy as np
import pytest
from scipy import stats

from mechanisms.cells import bernoulli_cells, distinct_cells
from mechanisms.edges import (
    DPRR,
    Customised,
    EdgeRand,
    LapGraph,
    LapGraphNoisy,
    LocalLaplaceGraph,
    LocalLaplaceMessage,
    LocalLaplaceMessages,
    LocalLaplaceRow,
    NoisyDegree,
    PerUser,
    RandomisedResponse,
    sparse,
)
from mechanisms.edges.sparse import top_noise
from mechanisms.graphs import Graph, barabasi_albert, erdos_renyi
from mechanisms.validation import rows_of
from tests.statistical.goodness import (
    ALPHA,
    LEAST_EXPECTED,
    check,
    chi_square_p,
    follows,
)

pytestmark = pytest.mark.statistical
SMALL = Graph(4, np.array([[0, 0, 1], [1, 2, 2]]))
LIST = np.array([1, 0, 0, 1, 0], np.int8)


def rng_of(*key):
    return np.random.default_rng([20240, *key])


def same_p(a, b):
    """P-value of two samples of integers under the hypothesis that they have one law."""
    values, inverse = np.unique(np.concatenate([a, b]), return_inverse=True)
    counts = np.stack(
        [
            np.bincount(part, minlength=len(values))
            for part in (inverse[: len(a)], inverse[len(a) :])
        ]
    )
    rare = counts.sum(axis=0) < 2 * LEAST_EXPECTED
    table = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2:
        return 1.0
    return stats.chi2_contingency(table, correction=False).pvalue


def _bits(noisy, graph):
    matrix = noisy.to_matrix()
    return (
        matrix[np.triu_indices(graph.nodes, 1)]
        if isinstance(noisy, Graph)
        else rows_of(matrix).ravel()
    )


def sparse_outputs(mechanism, graph, size, rng):
    return np.stack(
        [_bits(mechanism.whole_graph(graph, rng=rng), graph) for _ in range(size)]
    )


ROWS = [
    RandomisedResponse(0.8),
    DPRR(0.3, 0.9),
    DPRR(0.3, 0.9, clip_degree=False),
    DPRR(3.0, 2.0),
]


@pytest.mark.parametrize("mechanism", ROWS, ids=lambda m: m.name)
def test_noisy_lists_have_the_stated_law(mechanism):
    follows(
        mechanism(LIST, 100_000, rng=rng_of(1)),
        mechanism.distribution(LIST),
        mechanism.name,
    )


@pytest.mark.parametrize(
    ("sampled", "stated"),
    [
        (RandomisedResponse(0.9), RandomisedResponse(0.8)),
        (DPRR(0.3, 1.0), DPRR(0.3, 0.9)),
        (DPRR(0.4, 0.9), DPRR(0.3, 0.9)),
        (DPRR(0.3, 0.9, clip_degree=False), DPRR(0.3, 0.9)),
    ],
)
def test_the_goodness_test_sees_a_wrong_law(sampled, stated):
    """The check above can fail: a tenth more budget, or the other reading of the formula, is seen."""
    with pytest.raises(AssertionError, match="alpha=1e-06"):
        follows(
            sampled(LIST, 100_000, rng=rng_of(2)),
            stated.distribution(LIST),
            "a wrong law",
        )


@pytest.mark.parametrize(("bits", "degree"), [(40, 2), (40, 30)])
@pytest.mark.parametrize("clip", [True, False])
def test_noisy_degrees_have_the_law_of_the_quadrature(bits, degree, clip):
    mechanism = DPRR(0.2, 1.1, clip)
    k1, k0 = np.indices((degree + 1, bits - degree + 1)).reshape(2, -1)
    many = np.array(
        [
            float(comb(degree, a) * comb(bits - degree, b))
            for a, b in zip(k1, k0, strict=True)
        ]
    )
    law = np.bincount(
        k1 + k0, many * np.exp(mechanism.law(bits, degree).log_prob(k1, k0)), bits + 1
    )
    data = (np.arange(bits) < degree).astype(np.int8)
    degrees = NoisyDegree(mechanism)(data, 100_000, rng=rng_of(3))
    check(
        chi_square_p(np.bincount(degrees, minlength=bits + 1), law),
        f"degree of {mechanism.name}",
    )


@pytest.mark.parametrize(
    "row", [RandomisedResponse(0.8), DPRR(0.5, 1.0)], ids=lambda m: m.name
)
def test_all_users_have_the_product_law(row):
    mechanism, matrix = PerUser(row, 4), SMALL.to_matrix()
    follows(
        mechanism(matrix, 100_000, rng=rng_of(4)),
        mechanism.distribution(matrix),
        mechanism.name,
    )


def test_lists_that_are_drawn_in_blocks_have_the_product_law(monkeypatch, repeats):
    monkeypatch.setattr(
        sparse, "BLOCK", 5
    )  # of four rows, some share a block and some have one of their own
    row = DPRR(0.5, 1.0)
    outputs = sparse_outputs(row, SMALL, repeats(4_000, least=2_000), rng_of(21))
    follows(outputs, PerUser(row, 4).distribution(SMALL.to_matrix()), "DPRR in blocks")


def test_edge_rand_has_the_stated_law():
    mechanism, matrix = EdgeRand(0.7, 4), SMALL.to_matrix()
    follows(
        mechanism(matrix, 100_000, rng=rng_of(5)),
        mechanism.distribution(matrix),
        mechanism.name,
    )


@pytest.mark.parametrize(
    ("mechanism", "data"),
    [
        (LocalLaplaceMessage(0.7, user=1), LIST),
        (LocalLaplaceMessages(0.7, 4), SMALL.to_matrix()),
        (LapGraphNoisy(0.7, 4), SMALL.to_matrix()),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_laplace_messages_have_the_stated_coordinates(mechanism, data):
    law, outputs = mechanism.distribution(data), mechanism(data, 20_000, rng=rng_of(6))
    for i, (centre, scale) in enumerate(zip(law.location, law.scale, strict=True)):
        p_value = stats.kstest(outputs[:, i], stats.laplace(centre, scale).cdf).pvalue
        check(p_value, f"coordinate {i} of {mechanism.name}")
    # Independent coordinates: signs of all noises together are fair coins.
    signs = (
        (outputs[:, :6] > law.location[:6]) @ (1 << np.arange(min(6, outputs.shape[1])))
    ).astype(int)
    cells = 2 ** min(6, outputs.shape[1])
    check(
        chi_square_p(np.bincount(signs, minlength=cells), np.full(cells, 1 / cells)),
        f"signs of {mechanism.name}",
    )


@pytest.mark.dear
@pytest.mark.parametrize(
    "row",
    [RandomisedResponse(0.8), DPRR(0.5, 1.0), DPRR(2.0, 3.0, False)],
    ids=lambda m: m.name,
)
def test_sparse_rows_have_the_exact_law(row, repeats):
    """Three users, 64 outcomes: the sparse sampler against the exact law, not against another sampler."""
    path = Graph(3, np.array([[0], [2]]))
    law = PerUser(row, 3).distribution(path.to_matrix())
    follows(
        sparse_outputs(row, path, repeats(20_000, least=2_000), rng_of(7)),
        law,
        f"sparse {row.name}",
    )


def test_sparse_edge_rand_has_the_exact_law(repeats):
    mechanism = EdgeRand(0.7, 4)
    law = mechanism.distribution(SMALL.to_matrix())
    follows(
        sparse_outputs(mechanism, SMALL, repeats(20_000, least=2_000), rng_of(8)),
        law,
        "sparse EdgeRand",
    )


def test_sparse_customised_has_the_exact_law(repeats):
    mechanism = Customised(DPRR(0.5, 1.0), 4, private=(1, 2))
    law = mechanism.distribution(SMALL.to_matrix())
    outputs = sparse_outputs(mechanism, SMALL, repeats(10_000, least=2_000), rng_of(9))
    follows(
        outputs, law, "sparse Customised"
    )  # which lists no output in which a published row changed


DENSE_AND_SPARSE = [
    (
        LapGraph(4.0, 4, share=0.5),
        LapGraph(4.0, 4, share=0.5),
    ),  # a share at which count and cells both matter
    (LapGraph(40.0, 4), LapGraph(40.0, 4)),
    (LocalLaplaceGraph(3.0, 4, share=0.5), LocalLaplaceGraph(3.0, 4, share=0.5)),
    (PerUser(LocalLaplaceRow(3.0, share=0.5), 4), LocalLaplaceRow(3.0, share=0.5)),
]


@pytest.mark.dear
@pytest.mark.parametrize(("dense", "sparse"), DENSE_AND_SPARSE, ids=lambda m: m.name)
def test_sparse_laplace_graphs_have_the_law_of_the_dense_ones(dense, sparse, repeats):
    """Whole outputs on four nodes, coded as integers."""
    a = dense(SMALL.to_matrix(), 20_000, rng=rng_of(10)).astype(np.int64)
    b = sparse_outputs(sparse, SMALL, repeats(20_000, least=2_000), rng_of(11)).astype(
        np.int64
    )
    weights = 1 << np.arange(a.shape[1])
    check(same_p(a @ weights, b @ weights), f"{dense.name}, all cells")


def test_the_two_sample_test_sees_another_budget(repeats):
    """The check above can fail: a quarter more budget is seen, by the short form twice as much."""
    a = LapGraph(4.0, 4, share=0.5)(SMALL.to_matrix(), 20_000, rng=rng_of(12)) @ (
        1 << np.arange(6)
    )
    budget = 5.0 if repeats.full else 8.0
    b = sparse_outputs(
        LapGraph(budget, 4, share=0.5), SMALL, repeats(20_000, least=2_000), rng_of(13)
    ) @ (1 << np.arange(6))
    assert same_p(a, b) < ALPHA


LARGER = barabasi_albert(24, 2, np.random.default_rng(5))


@pytest.mark.dear
@pytest.mark.parametrize(
    ("dense", "sparse"),
    [
        (PerUser(RandomisedResponse(1.5), 24), RandomisedResponse(1.5)),
        (PerUser(DPRR(0.5, 1.5), 24), DPRR(0.5, 1.5)),
        (PerUser(DPRR(0.3, 3.0, False), 24), DPRR(0.3, 3.0, False)),
        (PerUser(LocalLaplaceRow(4.0), 24), LocalLaplaceRow(4.0)),
        (EdgeRand(1.5, 24), EdgeRand(1.5, 24)),
        (LapGraph(4.0, 24), LapGraph(4.0, 24)),
        (LocalLaplaceGraph(4.0, 24), LocalLaplaceGraph(4.0, 24)),
    ],
    ids=lambda m: m.name,
)
def test_sparse_graphs_have_the_statistics_of_the_dense_ones(dense, sparse, repeats):
    """A graph of 24 nodes: number of ones, of true ones kept, in the hub's cells, one true edge, one non-edge."""
    a = dense(LARGER.to_matrix(), 6_000, rng=rng_of(14)).astype(np.int64)
    b = sparse_outputs(sparse, LARGER, repeats(6_000, least=1_500), rng_of(15)).astype(
        np.int64
    )
    truth = (
        _bits(LARGER, LARGER)
        if a.shape[1] == 24 * 23 // 2
        else rows_of(LARGER.to_matrix()).ravel()
    )
    hub = slice(0, 23)
    statistics = {
        "ones": lambda x: x.sum(axis=1),
        "true ones": lambda x: x[:, truth == 1].sum(axis=1),
        "first row": lambda x: x[:, hub].sum(axis=1),
        "an edge": lambda x: x[:, np.flatnonzero(truth)[3]],
        "a non-edge": lambda x: x[:, np.flatnonzero(truth == 0)[3]],
    }
    for what, statistic in statistics.items():
        check(same_p(statistic(a), statistic(b)), f"{what} of {dense.name}")


@pytest.mark.parametrize("population", [5, 1000, 10**9])
def test_order_statistics_of_laplace_noise(population):
    """The j-th largest of M uniforms is Beta(M − j + 1, j); Laplace noise is its quantile."""
    runs, take = 4_000, 5
    rng = rng_of(16, population)
    values = top_noise(
        np.full(runs, population), np.full(runs, take), 2.0, rng
    ).reshape(runs, take)
    for j in (1, 2, 5):
        survival = stats.laplace(0, 2.0).sf(
            values[:, j - 1]
        )  # Beta(j, M − j + 1), with digits where it is tiny
        check(
            stats.kstest(survival, stats.beta(j, population - j + 1).cdf).pvalue,
            f"rank {j} of {population}",
        )


def test_bernoulli_cells_hold_each_cell_independently(repeats):
    p, rng = 0.3, rng_of(17)
    codes = np.array(
        [
            (1 << bernoulli_cells(5, p, rng)).sum()
            for _ in range(repeats(20_000, least=5_000))
        ]
    )
    size = np.array([bin(code).count("1") for code in range(32)])
    check(
        chi_square_p(np.bincount(codes, minlength=32), p**size * (1 - p) ** (5 - size)),
        "subsets of five cells",
    )
    sizes = np.array(
        [
            len(bernoulli_cells(10**9, 2e-8, rng))
            for _ in range(repeats(10_000, least=5_000))
        ]
    )
    check(
        chi_square_p(
            np.bincount(sizes, minlength=80)[:80], stats.poisson(20).pmf(np.arange(80))
        ),
        "rare cells",
    )


def test_bernoulli_cells_drawn_in_several_batches_are_still_independent(repeats):
    """One batch is nearly always enough; here every batch has two gaps, so most sets need several."""

    class TwoAtATime:
        def __init__(self, rng):
            self.rng = rng

        def geometric(self, p, size):
            return self.rng.geometric(p, min(size, 2))

    rng = TwoAtATime(rng_of(21))
    codes = np.array(
        [
            (1 << bernoulli_cells(6, 0.6, rng)).sum()
            for _ in range(repeats(20_000, least=5_000))
        ]
    )
    size = np.array([bin(code).count("1") for code in range(64)])
    check(
        chi_square_p(np.bincount(codes, minlength=64), 0.6**size * 0.4 ** (6 - size)),
        "subsets of six cells",
    )


@pytest.mark.parametrize(
    ("sizes", "taken"), [((2, 1), (0, 7)), ((1, 3), (2, 8)), ((2, 2), ())]
)
def test_distinct_cells_are_uniform_sets(sizes, taken, repeats):
    """Both branches: rows drawn by rejection (at most half full) and rows drawn from a list of the free cells."""
    rng, capacity, taken = rng_of(18), 6, np.array(taken, np.int64)
    drawn = repeats(20_000, least=5_000)
    codes = [
        (1 << distinct_cells(np.array(sizes), capacity, rng, taken=taken)).sum()
        for _ in range(drawn)
    ]
    free = [capacity - (taken // capacity == row).sum() for row in (0, 1)]
    possible = comb(free[0], sizes[0]) * comb(free[1], sizes[1])
    _, counts = np.unique(codes, return_counts=True)
    assert len(counts) == possible
    check(
        chi_square_p(counts, np.full(possible, 1 / possible)), f"sets of sizes {sizes}"
    )


def test_erdos_renyi_edges_are_independent_coins(repeats):
    rng = rng_of(19)
    outputs = np.stack(
        [
            _bits(erdos_renyi(4, 0.4, rng), SMALL)
            for _ in range(repeats(20_000, least=5_000))
        ]
    )
    ones = np.array([bin(code).count("1") for code in range(64)])
    codes = outputs @ (1 << np.arange(6))
    check(
        chi_square_p(np.bincount(codes, minlength=64), 0.4**ones * 0.6 ** (6 - ones)),
        "graphs on four nodes",
    )


@pytest.fixture(scope="module")
def large_graph():
    return barabasi_albert(100_000, 2, np.random.default_rng(0))


@pytest.mark.dear
@pytest.mark.parametrize(
    "mechanism",
    [
        DPRR(0.1, 0.9),
        LocalLaplaceGraph(1.0, 100_000),
        LapGraph(1.0, 100_000),
        LocalLaplaceRow(1.0),
    ],
    ids=lambda m: m.name,
)
def test_whole_graphs_of_a_hundred_thousand_users_cost_their_output(
    mechanism, large_graph
):
    """n² bits would take 1.25 GB even packed; no randomness is asserted, so no alpha is spent."""
    tracemalloc.start()
    start = time.process_time()
    noisy = mechanism.whole_graph(large_graph, rng=rng_of(20))
    seconds, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert noisy.nodes == 100_000
    assert seconds < 10
    assert peak < 500e6
