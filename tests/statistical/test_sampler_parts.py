"""Parts of samplers, large graphs, and releases whose law is no row of `stated_laws`.

Each assertion has alpha = 1e-6; `tests.statistical.goodness` states the null
hypothesis.
"""

import math
import time
import tracemalloc
from math import comb

import numpy as np
import pytest
from scipy import stats

from mechanisms.backend import backend_of
from mechanisms.cells import bernoulli_cells, distinct_cells
from mechanisms.classic import SVT3, BatchSums, NumericSVT
from mechanisms.classic.noise import laplace_noise
from mechanisms.edges import (
    DPRR,
    EdgeRand,
    LapGraph,
    LocalLaplaceGraph,
    LocalLaplaceRow,
    PerUser,
    RandomisedResponse,
    sparse,
)
from mechanisms.edges.sparse import top_noise
from mechanisms.graphs import Graph, barabasi_albert, erdos_renyi
from mechanisms.hierarchy import DendrogramStep
from mechanisms.hierarchy.chain import exact_draw, run_chain
from mechanisms.hierarchy.dendrogram import Dendrogram, balanced, uniform
from mechanisms.pagerank import (
    DPApprEM,
    DPApprEMValues,
    DPApprGM,
    GivenRows,
    NoisyRows,
    PublicRows,
)
from tests.statistical.goodness import (
    LEAST_EXPECTED,
    check,
    chi_square_p,
    follows,
)
from tests.statistical.stated_laws import (
    ANSWERS,
    CLIP,
    DENDROGRAMS,
    ENTRIES,
    HOUSE,
    PAW,
    STAR,
    TWO_PUBLIC,
    torch_generator,
)
from tests.statistical.test_stated_laws import sparse_outputs

parametrize = pytest.mark.parametrize

pytestmark = pytest.mark.statistical


def rng_of(*key):
    return np.random.default_rng([20241, *key])


def uniform_p(codes, cells):
    """P-value of integers that are uniform below ``cells``."""
    return chi_square_p(np.bincount(codes, minlength=cells), np.full(cells, 1 / cells))


def coins_p(bits, p):
    """P-value of rows of independent coins."""
    width = bits.shape[1]
    codes = bits @ (1 << np.arange(width))
    ones = np.array([code.bit_count() for code in range(1 << width)])
    law = p**ones * (1.0 - p) ** (width - ones)
    return chi_square_p(np.bincount(codes, minlength=1 << width), law)


def follows_density(numbers, grid, logs, what):
    """Check numbers against a density that is given on an even grid."""
    cdf = np.cumsum(np.exp(logs))
    half = (grid[1] - grid[0]) / 2
    found = stats.kstest(numbers, lambda y: np.interp(y, grid + half, cdf / cdf[-1]))
    check(found.pvalue, what)


# Noise and sets of cells.


def test_laplace_noise_is_laplace_and_its_signs_are_independent_coins():
    """An odd number of draws: the last byte of sign bits is cut."""
    noise = laplace_noise(400_001, rng_of(10), scale=3.0)
    check(stats.kstest(noise / 3, "laplace").pvalue, "laplace_noise")
    positive = noise > 0
    large = np.abs(noise) > 3 * math.log(2)
    for other in (large, np.roll(positive, 1), np.roll(positive, 8)):
        check(uniform_p(2 * positive + other, 4), "sign and size, or an earlier sign")


@parametrize("population", [5, 1000, 10**9])
def test_order_statistics_of_laplace_noise(population):
    """The j-th largest of M uniforms is Beta(M − j + 1, j).

    Laplace noise is its quantile.
    """
    runs = 4_000
    counts = np.full(runs, population), np.full(runs, 5)
    values = top_noise(*counts, 2.0, rng_of(16, population)).reshape(runs, 5)
    for j in (1, 2, 5):
        survival = stats.laplace(0, 2.0).sf(values[:, j - 1])
        law = stats.beta(j, population - j + 1)
        check(stats.kstest(survival, law.cdf).pvalue, f"rank {j} of {population}")


class TwoAtATime:
    """A generator whose batches hold two gaps, so that most sets need several."""

    def __init__(self, rng):
        self.rng = rng

    def geometric(self, p, size):
        return self.rng.geometric(p, min(size, 2))


@parametrize(
    ("wrapper", "p"),
    [
        (lambda rng: rng, 0.3),
        (TwoAtATime, 0.6),
    ],
)
def test_bernoulli_cells_hold_each_cell_independently(wrapper, p, repeats):
    rng = wrapper(rng_of(17))
    bits = np.zeros((repeats(20_000, least=3_000), 5), int)
    for row in bits:
        row[bernoulli_cells(5, p, rng)] = 1
    check(coins_p(bits, p), "subsets of five cells")


def test_rare_cells_are_as_many_as_poisson(repeats):
    runs = repeats(10_000, least=3_000)
    rng = rng_of(18)
    sizes = [len(bernoulli_cells(10**9, 2e-8, rng)) for _ in range(runs)]
    law = stats.poisson(20).pmf(np.arange(80))
    check(chi_square_p(np.bincount(sizes, minlength=80)[:80], law), "rare cells")


@parametrize(
    ("sizes", "taken"),
    [
        ((2, 1), (0, 7)),
        ((1, 3), (2, 8)),
        ((2, 2), ()),
    ],
)
def test_distinct_cells_are_uniform_sets(sizes, taken, repeats):
    """Rows at most half full are drawn by rejection, other rows from a list of free cells."""
    rng = rng_of(18)
    taken = np.array(taken, np.int64)
    codes = []
    for _ in range(repeats(20_000, least=3_000)):
        keys = distinct_cells(np.array(sizes), 6, rng, taken=taken)
        codes.append((1 << keys).sum())
    free = 6 - np.bincount(taken // 6, minlength=2)
    possible = math.prod(map(comb, free, sizes))
    _, found = np.unique(codes, return_inverse=True)
    assert found.max() + 1 == possible
    check(uniform_p(found, possible), f"sets of sizes {sizes}")


def test_erdos_renyi_edges_are_independent_coins(repeats):
    rng = rng_of(19)
    above = np.triu_indices(4, 1)
    bits = np.zeros((repeats(20_000, least=3_000), 6), int)
    for row in bits:
        row[:] = erdos_renyi(4, 0.4, rng).to_matrix()[above]
    check(coins_p(bits, 0.4), "graphs on four nodes")


LIBRARIES = ["numpy", "cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@parametrize("library", LIBRARIES)
def test_subsets_and_integers_are_uniform(library):
    generator = rng_of(11) if library == "numpy" else torch_generator(library, 11)
    backend = backend_of(generator)
    subsets = np.array(backend.subsets(40_000, 6, 3).tolist())
    integers = np.array(backend.integers(7, 40_000).tolist())
    _, subset = np.unique(subsets @ (1 << np.arange(6)), return_inverse=True)
    check(uniform_p(subset, 20), f"subsets, {library}")
    check(uniform_p(integers, 7), f"integers, {library}")


# Sparse forms of larger graphs.


def same_p(a, b):
    """P-value of two samples of integers under the hypothesis that they have one law."""
    values, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    second = np.arange(len(codes)) >= len(a)
    table = np.bincount(2 * codes + second, minlength=2 * len(values)).reshape(-1, 2)
    rare = table.sum(axis=1) < 2 * LEAST_EXPECTED
    if rare.any():
        table = np.vstack([table[~rare], table[rare].sum(axis=0)])
    if len(table) < 2:
        return 1.0
    return stats.chi2_contingency(table, correction=False).pvalue


def test_lists_that_are_drawn_in_blocks_have_the_product_law(monkeypatch, repeats):
    """Of four rows, some share a block and some have one of their own."""
    monkeypatch.setattr(sparse, "BLOCK", 5)
    mechanism = PerUser(DPRR(0.5, 1.0), 4)
    graph = Graph.from_matrix(PAW)
    outputs = sparse_outputs(mechanism, graph, repeats(4_000, least=1_000), rng_of(21))
    follows(outputs, mechanism.distribution(PAW), "DPRR in blocks")


LARGER = barabasi_albert(24, 2, np.random.default_rng(5))
BY_USER = [
    RandomisedResponse(1.5),
    DPRR(0.5, 1.5),
    DPRR(0.3, 3.0, clip_degree=False),
    LocalLaplaceRow(4.0),
]


def statistics_of(outputs):
    """Ones, true ones kept, one true edge, one non-edge."""
    cells = ~np.eye(24, dtype=bool)
    if outputs.shape[1] < cells.sum():
        cells = np.triu(cells)
    truth = LARGER.to_matrix()[cells] == 1
    outputs = outputs.astype(np.int64)
    return (
        outputs.sum(axis=1),
        outputs[:, truth].sum(axis=1),
        outputs[:, truth][:, 3],
        outputs[:, ~truth][:, 3],
    )


@pytest.mark.dear
@parametrize(
    "mechanism",
    [
        *(PerUser(row, 24) for row in BY_USER),
        EdgeRand(1.5, 24),
        LapGraph(4.0, 24),
        LocalLaplaceGraph(4.0, 24),
    ],
    ids=lambda m: m.name,
)
def test_sparse_graphs_have_the_statistics_of_the_dense_ones(mechanism, repeats):
    dense = mechanism(LARGER.to_matrix(), 6_000, rng=rng_of(14))
    runs = repeats(6_000, least=1_500)
    drawn = sparse_outputs(mechanism, LARGER, runs, rng_of(15))
    for a, b in zip(statistics_of(dense), statistics_of(drawn), strict=True):
        check(same_p(a, b), mechanism.name)


def test_the_two_sample_test_refuses_another_budget():
    ones = []
    for epsilon in (1.5, 1.6):
        graphs = EdgeRand(epsilon, 24)(LARGER.to_matrix(), 1_500, rng=rng_of(12))
        ones.append(graphs.sum(axis=1))
    assert same_p(*ones) < 1e-6


@pytest.mark.dear
@parametrize(
    "mechanism",
    [
        DPRR(0.1, 0.9),
        LocalLaplaceGraph(1.0, 100_000),
        LapGraph(1.0, 100_000),
        LocalLaplaceRow(1.0),
    ],
    ids=lambda m: m.name,
)
def test_whole_graphs_of_a_hundred_thousand_users_cost_their_output(mechanism):
    """n² bits would take 1.25 GB even packed; no randomness is asserted."""
    graph = barabasi_albert(100_000, 2, np.random.default_rng(0))
    tracemalloc.start()
    start = time.process_time()
    noisy = mechanism.whole_graph(graph, rng=rng_of(20))
    seconds = time.process_time() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert noisy.nodes == 100_000
    assert seconds < 10
    assert peak < 500e6


# Numbers beside selections, and batches.


@parametrize(
    "mechanism",
    [SVT3(0.8, 1, 0.5), NumericSVT(0.8, 1, 0.5)],
    ids=lambda m: m.name,
)
def test_numbers_of_the_numeric_techniques(mechanism):
    """If the third query is the first above, its number has the stated density."""
    outputs = mechanism(ANSWERS, 100_000, rng=rng_of(3))
    numbers = outputs[outputs[:, 2] == 1, 6]
    assert len(numbers) > 10_000
    grid = np.linspace(-60, 80, 28_001)
    rows = np.full((len(grid), 8), np.nan)
    rows[:, :4] = [0, 0, 1, -1]
    rows[:, 6] = grid
    follows_density(numbers, grid, mechanism.log_prob(rows, ANSWERS), mechanism.name)


@parametrize("sampling", ["poisson", "shuffled"])
def test_batch_sums(sampling):
    """Both batches in 20 x 20 cells, whose probabilities are the density summed over points."""
    mechanism = BatchSums(0.5, 2, sampling)
    records = np.array([-1.0, -1.0, -1.0, 1.0])
    outputs = mechanism(records, 100_000, rng=rng_of(9))
    grid = -7 + 0.04 * (np.arange(300) + 0.5)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    density = np.exp(mechanism.log_prob(points.reshape(-1, 2), records))
    mass = 0.04**2 * density.reshape(20, 15, 20, 15).sum(axis=(1, 3))
    assert mass.sum() == pytest.approx(1, abs=1e-6)
    cells = np.floor((outputs + 7) / 0.6).astype(int)
    assert ((cells >= 0) & (cells < 20)).all()
    counts = np.bincount(cells @ [20, 1], minlength=400)
    check(chi_square_p(counts, mass.ravel()), mechanism.name)


def test_values_are_laplace_around_the_clipped_entries():
    mechanism = DPApprEMValues(DPApprEM(1.0, 2, GivenRows(5)), 0.5)
    outputs = mechanism(ENTRIES, 20_000, rng=rng_of(3))
    chosen = outputs[:, :2].astype(int)
    follows(chosen, mechanism.select.distribution(ENTRIES), "indices beside values")
    centres = np.minimum(ENTRIES, CLIP)[chosen]
    noise = (outputs[:, 2:] - centres) / mechanism.scale
    for column in noise.T:
        check(stats.kstest(column, "laplace").pvalue, "value")
    # Signs of both values are independent coins, whether or not the largest is chosen.
    signs = (noise > 0) @ [1, 2]
    largest = (chosen == 4).any(axis=1)
    check(same_p(signs[largest], signs[~largest]), "signs and indices")
    check(uniform_p(signs, 4), "signs")


def test_the_largest_noisy_entries_have_the_stated_density():
    """Counts of indices and values against quadrature of the density."""
    mechanism = DPApprGM(NoisyRows(0.5, 0.1, PublicRows(4)), 1)
    outputs = mechanism(STAR, 60_000, rng=rng_of(4))
    reach = np.linspace(-0.5, 0.5, 20_001)
    logs = []
    for i in range(4):
        points = np.column_stack([np.full_like(reach, i), reach])
        logs.append(mechanism.log_prob(points, STAR))
    shares = np.trapezoid(np.exp(logs), reach)
    assert shares.sum() == pytest.approx(1, abs=1e-6)
    indices = outputs[:, 0].astype(int)
    counts = np.bincount(indices, minlength=4)
    check(chi_square_p(counts, shares / shares.sum()), "indices of the largest")
    follows_density(outputs[indices == 0, 1], reach, logs[0], "its value")


# Dendrograms.


@pytest.mark.dear
@parametrize("number", [1, 2, 3, 5, 6, 7])
def test_the_chain_with_incremental_counts_has_the_law_of_the_table(number, repeats):
    """Large graphs run this chain; the table of all dendrograms serves the small ones."""
    step = DENDROGRAMS[number].mechanism
    layers = step.layers(step.private_edges(HOUSE))
    private = 5 if step.private_nodes == "all" else len(layers[0].members)
    rng = rng_of(2)
    sizes = []
    for _ in range(repeats(6_000, least=1_500)):
        start = uniform(5, rng) if step.start == "uniform" else balanced(5)
        tree = Dendrogram(start, layers)
        run_chain(tree, step.stages(private), step.steps, rng)
        sizes.append(tree.pair_sizes())
    follows(np.array(sizes), step.distribution(HOUSE), f"run_chain of {step.name}")


@pytest.mark.dear
@parametrize("readings", [{"moves": "joint", **TWO_PUBLIC}, {}], ids=str)
def test_exact_draws_have_the_stationary_law(readings, repeats):
    step = DendrogramStep(3.0, 5, **readings)
    layers = step.layers(step.private_edges(HOUSE))
    (stage,) = step.stages(5)
    rng = rng_of(3)
    sizes = []
    for _ in range(repeats(1_500, least=300)):
        sizes.append(exact_draw(5, layers, stage, rng).pair_sizes())
    follows(np.array(sizes), step.distribution(HOUSE), f"exact draws of {step.name}")


def test_uniform_dendrograms_are_uniform(repeats):
    rng = rng_of(4)
    runs = repeats(20_000, least=4_000)
    drawn = [Dendrogram(uniform(5, rng)).pair_sizes() for _ in range(runs)]
    step = DendrogramStep(1.0, 5, steps=0, start="uniform")
    law = step.distribution(HOUSE)
    np.testing.assert_allclose(law.floats, 1 / 105)
    follows(np.array(drawn), law, "uniform dendrograms")
