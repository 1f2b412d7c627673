"""DP-APPR-GM: clipped norms, σ, how far apart rows can be, densities, and errors."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, sparse, stats

from auditdp import Nodes
from auditdp.errors import MechanismError
from auditdp.evidence.loss_of_laws import gaussian_loss
from mechanisms.graphs import Graph
from mechanisms.pagerank import DPApprGM, NoisyRows, PublicRows, lazy

RNG = np.random.default_rng
EDGE = np.array([[0, 1], [1, 0]])
EPSILON, DELTA = 6.48, 1e-4


def rows_of(nodes=2, seeds=(0,), alpha=0.25, **arguments):
    return NoisyRows(EPSILON, DELTA, PublicRows(nodes, seeds, alpha), **arguments)


def distance(mechanism, pair):
    return (
        float(
            np.linalg.norm(mechanism.query(pair.data) - mechanism.query(pair.neighbour))
        )
        / mechanism.clip
    )


def test_rows_are_clipped_each():
    query = rows_of(seeds=(0, 1)).query(EDGE).reshape(2, 2)
    np.testing.assert_allclose(np.linalg.norm(query, axis=1), 0.01)
    np.testing.assert_allclose(query[0], query[1][::-1])
    np.testing.assert_allclose(
        rows_of(clip=5.0).query(EDGE), [1 / 1.6 - 1e-4, 0.6 / 1.6 - 1e-4], atol=1e-8
    )
    assert not rows_of().query(np.zeros((2, 2))).any()


def test_sigma():
    """C₁√(2 ln 12500)/6.48 = .0067, as in the published code; √2 for any two rows; and the exact σ is less at ε = 6.48."""
    assert rows_of().sigma == pytest.approx(0.0067, rel=1e-3)
    assert rows_of(apart=math.sqrt(2)).sigma == pytest.approx(
        math.sqrt(2) * rows_of().sigma
    )
    assert rows_of(calibration="analytic").sigma < rows_of().sigma
    assert rows_of(seeds=(0, 1, 0)).sensitivity == pytest.approx(math.sqrt(3) * 0.01)


def two_stars(hub, leaves):
    """A seed, 0, on one of two hubs, 1 and 2, each with leaves of its own."""
    ends = np.arange(3, 3 + 2 * leaves)
    edges = np.stack([np.r_[hub, 1 + (ends % 2)], np.r_[0, ends]])
    return Graph.of(3 + 2 * leaves, edges)


@pytest.mark.parametrize(
    ("teleport", "expected"), [(0.4, 0.96724), (0.25, 1.22155), (0.38197, 1.0)]
)
def test_how_far_a_change_of_hub_moves_a_row_in_large_stars(teleport, expected):
    """The seed has a, its hub h = (1−a)/(2−a), and leaves nothing each: ‖p − p′‖ = C₁√(2 − 2a²/(a² + h²))."""
    rows = PublicRows(4003, (0,), lazy(teleport), rho=1e-9)
    first, second = (
        NoisyRows(EPSILON, DELTA, rows).query(two_stars(hub, 2000)) for hub in (1, 2)
    )
    hub = (1 - teleport) / (2 - teleport)
    by_formula = math.sqrt(2 - 2 * teleport**2 / (teleport**2 + hub**2))
    assert by_formula == pytest.approx(expected, abs=2e-5)
    assert np.linalg.norm(first - second) / 0.01 == pytest.approx(by_formula, abs=2e-3)


def others_over_seed(graph, **arguments):
    """Return S/x² of the seed's row, of the theorem that bounds how far apart rows are; 0 where there is no row."""
    row = PublicRows(len(graph), (0,), 0.25, **arguments).of(graph, (0,))[0]
    return float(np.sum(row[1:] ** 2) / row[0] ** 2) if row.any() else 0.0


def all_graphs(nodes):
    """Every graph on so many ids."""
    rows, columns = np.triu_indices(nodes, 1)
    for chosen in itertools.product((0, 1), repeat=len(rows)):
        matrix = np.zeros((nodes, nodes), int)
        matrix[rows, columns] = matrix[columns, rows] = chosen
        yield matrix


def star(nodes):
    """The seed is one of the leaves."""
    matrix = np.zeros((nodes, nodes), int)
    matrix[1], matrix[:, 1], matrix[1, 1] = 1, 1, 0
    return matrix


def test_the_seed_outweighs_all_other_entries_together():
    """On all graphs of five ids; the star is the worst of them, and stars of any size stay below .375²/.4² = .879."""
    worst = max(others_over_seed(matrix) for matrix in all_graphs(5))
    assert worst == pytest.approx(others_over_seed(star(5)))
    ratios = [others_over_seed(star(nodes), rho=1e-9) for nodes in (5, 20, 100, 300)]
    assert ratios == sorted(ratios)
    assert 0.875 < ratios[-1] < 0.375**2 / 0.4**2


@pytest.mark.parametrize(
    ("less", "steepness", "highest", "largest"),
    [(0.00045, 0.4, 0.375, 0.1596), (0.017, 0.7, 0.3, 0.1463)],
    ids=["one edge", "more edges"],
)
def test_the_cases_of_the_proof_that_the_seed_outweighs_them(
    less, steepness, highest, largest
):
    """The bound on S of each case, on a grid over all (x, m) that the case leaves, is below (x − e)²."""
    x, m = np.meshgrid(np.linspace(0.4, 0.47, 701), np.linspace(0.24, highest, 1351))
    second = (0.2 + steepness * x - 0.6 * m) / 1.6
    bound = m**2 + second * (1 - x - m)
    left = m > (x - less) ** 2 / (1 - x)
    assert left.any()
    assert (bound < (x - less) ** 2)[left].all()
    assert bound[left].max() == pytest.approx(largest, abs=1e-4)


def test_the_smallest_stars_that_are_too_far_apart():
    """Five ids, where the plain walk restarts with .25: δ(6.48) is 1.2e-4; the lazy walk's .25 keeps them closer."""
    (pair,) = (
        pair for pair in Nodes(5).pairs() if pair.name == "leaf of one hub | of another"
    )
    plain = rows_of(5, alpha=lazy(0.25))
    assert distance(plain, pair) == pytest.approx(1.0525, abs=1e-4)
    exact = gaussian_loss(
        *(plain.distribution(x) for x in (pair.data, pair.neighbour)), epsilon=EPSILON
    )
    assert float(exact.delta.mid()) > 1.2 * DELTA
    assert distance(rows_of(5), pair) < 1


def test_the_sensitivity_is_attained_where_a_seed_loses_its_edges():
    adjacency, mechanism = Nodes(3), rows_of(3)
    assert max(
        distance(mechanism, pair) for pair in adjacency.exhaustive()
    ) == pytest.approx(1.0, abs=1e-12)


def test_all_entries_kept_have_the_density_of_all_entries():
    noisy = rows_of(3, (0, 2))
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    outputs = DPApprGM(noisy, 3)(path, 5, rng=RNG(0))
    np.testing.assert_array_equal(outputs[:, :6], [[0, 1, 2, 0, 1, 2]] * 5)
    np.testing.assert_allclose(
        DPApprGM(noisy, 3).log_prob(outputs, path),
        noisy.distribution(path).log_prob(outputs[:, 6:]),
    )


def test_the_largest_entry_has_its_density():
    """N(p_i, σ²) at y times P(the other is below y); over both indices it integrates to 1."""
    mechanism = DPApprGM(rows_of(), 1)
    p, sigma = mechanism.query(EDGE), mechanism.noisy.sigma
    found = mechanism.log_prob(np.array([[1, 0.012]]), EDGE)[0]
    assert found == pytest.approx(
        stats.norm.logpdf(0.012, p[1], sigma) + stats.norm.logcdf(0.012, p[0], sigma)
    )
    total = sum(
        integrate.quad(
            lambda y, i=i: math.exp(mechanism.log_prob(np.array([[i, y]]), EDGE)[0]),
            -0.1,
            0.1,
        )[0]
        for i in (0, 1)
    )
    assert total == pytest.approx(1, abs=1e-8)


def test_rows_do_not_depend_on_how_a_graph_is_written():
    graph = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 0]])
    rows = PublicRows(3).of(graph, (0, 2))
    rows[0, 0] = 7.0  # what is returned is the caller's
    forms = (graph, graph.tolist(), graph.astype(object), sparse.csr_array(graph))
    found = [PublicRows(3).of(form, (0, 2)) for form in forms]
    assert all(each == pytest.approx(found[0]) for each in found)
    assert found[0][0, 0] < 1


def test_the_k_largest_are_kept():
    mechanism = DPApprGM(rows_of(5, (0, 1)), 2)
    graph = np.ones((5, 5)) - np.eye(5)
    every = mechanism.noisy(graph, 4, rng=RNG(3)).reshape(4, 2, 5)
    kept = mechanism(graph, 4, rng=RNG(3))
    indices, values = (
        kept[:, :4].reshape(4, 2, 2).astype(int),
        kept[:, 4:].reshape(4, 2, 2),
    )
    np.testing.assert_array_equal(np.take_along_axis(every, indices, axis=2), values)
    np.testing.assert_array_equal(
        np.sort(values, axis=2), np.sort(every, axis=2)[:, :, -2:]
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rows_of(clip=0.0), "expected clip, a finite number > 0"),
        (lambda: rows_of(apart=-1.0), "expected apart"),
        (
            lambda: rows_of(calibration="laplace"),
            "'analytic' or 'classic', got 'laplace'",
        ),
        (
            lambda: NoisyRows(1.0, 0.0, PublicRows(2)).sigma,
            r"delta in \(0, 1\), got 0\.0",
        ),
        (lambda: DPApprGM(rows_of(), 3), "k of at most 2 ids, got 3"),
        (lambda: DPApprGM(rows_of(), 0), "expected k, an integer >= 1"),
    ],
)
def test_errors_show_the_value_and_the_remedy(make, message):
    with pytest.raises(MechanismError, match=message):
        make()
