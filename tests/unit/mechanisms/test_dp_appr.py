"""DP-APPR-GM and DP-APPR-EM.

Budgets as the theorems state them, distances, laws, candidates.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from auditdp import Nodes
from mechanisms.graphs import Graph
from mechanisms.pagerank import (
    DPApprEM,
    DPApprEMValues,
    DPApprGM,
    GivenRows,
    NoisyRows,
    PlainRows,
    PublicRows,
    SampledRows,
    SelectedValues,
    entry_epsilon,
    lazy,
    row_epsilon,
    share_of_row,
)
from tests.statistical.stated_laws import loss, losses, matrix, outputs_of

approx = pytest.approx
parametrize = pytest.mark.parametrize

close = np.testing.assert_allclose
same = np.testing.assert_array_equal

RNG = np.random.default_rng
CLIP = 0.001
EPSILON = 6.48
DELTA = 1e-4
EDGE = matrix(2, "01")
PATH = matrix(4, "01", "12")
GONE = np.diag([1, 1, 0, 0]).astype(np.int8)
"""Two isolated nodes, and two ids whose nodes are not there."""


def noisy_rows(nodes=2, seeds=(0,), alpha=0.25, **arguments):
    return NoisyRows(EPSILON, DELTA, PublicRows(nodes, seeds, alpha), **arguments)


def distance(mechanism, pair):
    """Between the rows of neighbours, in units of the clip."""
    first, second = (mechanism.query(x) for x in (pair.data, pair.neighbour))
    return float(np.linalg.norm(first - second)) / mechanism.clip


# Gaussian noise on rows.


@parametrize(
    ("slope", "largest", "slack", "printed"),
    [("0.4", "0.375", "0.00045", "0.15961"), ("0.7", "0.3", "0.017", "0.14625")],
    ids=["one edge", "more edges"],
)
def test_the_numbers_of_the_proof_that_a_row_has_sensitivity_c1(
    slope, largest, slack, printed
):
    """The bound on S at x = .4 and the largest m is below (x − e)², in exact arithmetic."""
    x, m, e = Fraction("0.4"), Fraction(largest), Fraction(slack)
    entering = Fraction("0.2") + Fraction(slope) * x - Fraction("0.6") * m
    n = entering / Fraction("1.6")
    bound = m**2 + n * (1 - x - m)
    assert bound <= Fraction(printed) < (x - e) ** 2


def test_rows_are_clipped_each():
    query = noisy_rows(seeds=(0, 1)).query(EDGE).reshape(2, 2)
    close(np.linalg.norm(query, axis=1), 0.01)
    close(query[0], query[1][::-1])
    unclipped = noisy_rows(clip=5.0).query(EDGE)
    close(unclipped, np.array([1, 0.6]) / 1.6 - 1e-4, atol=1e-8)


def test_sigma():
    """C₁√(2 ln 12500)/6.48 = .0067, as in the published code; √2 for any two rows.

    The exact σ is less.
    """
    sigma = noisy_rows().sigma
    assert sigma == approx(0.0067, rel=1e-3)
    assert noisy_rows(apart=2**0.5).sigma == approx(2**0.5 * sigma)
    assert noisy_rows(calibration="analytic").sigma < sigma
    assert noisy_rows(seeds=(0, 1, 0)).sensitivity == approx(3**0.5 * 0.01)


def test_the_smallest_stars_that_are_too_far_apart():
    """Five ids: δ(6.48) is 1.2e-4 if the plain walk restarts with .25, and less for the lazy walk."""
    pairs = {pair.name: pair for pair in Nodes(5).pairs()}
    pair = pairs["leaf of one hub | of another"]
    plain = noisy_rows(5, alpha=lazy(0.25))
    exact = loss(plain, pair.data, pair.neighbour, epsilon=EPSILON)
    assert distance(plain, pair) == approx(1.0525, abs=1e-4)
    assert float(exact.delta) > 1.2 * DELTA
    assert distance(noisy_rows(5), pair) < 1


def test_the_sensitivity_is_attained_by_a_seed_that_loses_its_edges():
    found = max(distance(noisy_rows(3), pair) for pair in Nodes(3).exhaustive())
    assert found == approx(1.0, abs=1e-12)


def test_a_release_of_all_entries_has_the_density_of_the_noisy_rows():
    noisy = noisy_rows(3, (0, 2))
    mechanism = DPApprGM(noisy, 3)
    path = matrix(3, "01", "12")
    outputs = outputs_of(mechanism, path, 5)
    assert outputs[:, :6].tolist() == [[0, 1, 2, 0, 1, 2]] * 5
    expected = noisy.distribution(path).log_prob(outputs[:, 6:])
    close(mechanism.log_prob(outputs, path), expected)


def test_the_largest_entry_has_its_density():
    """N(p_i, σ²) at y, times P(the other is below y)."""
    mechanism = DPApprGM(noisy_rows(), 1)
    first, second = mechanism.query(EDGE)
    sigma = mechanism.noisy.sigma
    found = mechanism.log_prob(np.array([[1, 0.012]]), EDGE)
    own = stats.norm.logpdf(0.012, second, sigma)
    assert found == approx(own + stats.norm.logcdf(0.012, first, sigma))


def test_rows_do_not_depend_on_the_form_of_a_graph():
    """A returned array is the caller's."""
    graph = matrix(3, "01", "12") + np.diag([1, 0, 0])
    public = PublicRows(3)
    expected = public.of(graph, (0, 2)).copy()
    public.of(graph, (0, 2))[0, 0] = 7.0
    for form in (graph, graph.tolist(), graph.astype(object), sparse.csr_array(graph)):
        assert public.of(form, (0, 2)) == approx(expected)


# Budgets of selections.


def test_corollary_1_by_hand():
    """K = 2, ε = .25: 2·min{.5, .5·tanh .25 + .25·√(4 ln 1000)} = 1; and if the second term is less."""
    assert row_epsilon(0.25, 2, 1e-3) == 1.0
    mean = 5 * math.tanh(0.01)
    by_formula = 2 * (mean + 0.01 * math.sqrt(1000 * math.log(1e6)))
    assert row_epsilon(0.01, 500, 1e-6) == approx(by_formula, rel=1e-12)
    assert row_epsilon(0.5, 3, 1e-3, each=1) == 1.5


def test_theorem_1_by_hand():
    """ε_g = 8 and M = 70 at δ = 1e-4 leave ε₁ = 8/(2√(70 ln(e + 8/.014))) = 4/√(70·6.35289) for a row."""
    expected = 4 / math.sqrt(70 * 6.35289)
    assert share_of_row(8.0, 70, 1e-4) == approx(expected, rel=1e-6)


@given(st.floats(1e-3, 8.0), st.integers(1, 1000), st.floats(1e-9, 0.1))
def test_budgets_are_monotone_and_invert(epsilon, k, delta):
    base = row_epsilon(epsilon, k, delta)
    assert base <= row_epsilon(1.1 * epsilon, k, delta)
    assert base <= row_epsilon(epsilon, k + 1, delta)
    assert base <= row_epsilon(epsilon, k, delta / 2)
    spent = row_epsilon(entry_epsilon(epsilon, k, delta), k, delta)
    assert epsilon * (1 - 1e-8) < spent <= epsilon
    share = share_of_row(epsilon, k, delta)
    assert share_of_row(epsilon, k + 1, delta) <= share < epsilon / 2
    assert share <= share_of_row(1.1 * epsilon, k, delta)


def of_outcomes(law):
    return dict(zip(map(tuple, law.outcomes.tolist()), law.floats, strict=True))


def test_one_selection_loses_nearly_twice_epsilon():
    """One entry rises and m fall.

    The odds of the one change by e^ε(me^ε + 1)/(m + e^ε), which comes to e^2ε.
    """
    epsilon, m = 0.7, 8
    mechanism = DPApprEM(epsilon, 1, GivenRows(m + 1))
    low = CLIP * (np.arange(m + 1) == 0)
    exact = loss(mechanism, low, CLIP - low)
    growth = math.exp(epsilon)
    expected = math.log(growth * (m * growth + 1) / (m + growth))
    assert exact.lower == approx(expected, rel=1e-9)
    assert epsilon < exact.upper < 2 * epsilon


def test_rows_are_clipped_and_compared_by_indices_only():
    row = DPApprEM(1.0, 2, PublicRows(4)).query(PATH, RNG(0))
    close(row, [[CLIP, CLIP, CLIP, 0]])
    law = of_outcomes(DPApprEM(1.0, 1, PublicRows(4)).distribution(PATH))
    assert law[(3,)] == approx(1 / (1 + 3 * math.e), rel=1e-9)


def test_candidates_are_the_universe_or_the_nodes():
    universe = DPApprEM(1.0, 2, PublicRows(4)).distribution(GONE)
    assert len(universe.outcomes) == 6
    present = DPApprEM(1.0, 3, PublicRows(4), candidates="present")
    assert of_outcomes(present.distribution(GONE)) == {(-1, 0, 1): 1.0}
    assert outputs_of(present, GONE, 2).tolist() == [[-1, 0, 1]] * 2


def test_sampled_rows_name_their_nodes():
    """A node has e of e + 3 weights in its own row."""
    mechanism = DPApprEM(1.0, 1, SampledRows(4, 1))
    law = of_outcomes(mechanism.distribution(GONE))
    assert {who for who, _ in law} == {0, 1}
    assert law[(0, 0)] == approx(math.e / (math.e + 3) / 2)
    anybody = DPApprEM(1.0, 1, SampledRows(4, 1, "universe")).distribution(GONE)
    assert of_outcomes(anybody)[(3, 0)] == approx(1 / 16)


def test_more_rows_than_nodes():
    mechanism = DPApprEM(1.0, 2, SampledRows(4, 3))
    outputs = outputs_of(mechanism, GONE, 20)
    for rows in (outputs, mechanism.distribution(GONE).outcomes):
        assert (np.sort(rows[:, :3]) == [-1, 0, 1]).all()
        assert (rows[:, [2, 7, 8]] == -1).all()


def test_a_graph_without_nodes_has_no_row():
    nobody = DPApprEM(1.0, 1, SampledRows(4, 1), candidates="present")
    assert of_outcomes(nobody.distribution(0 * GONE)) == {(-1, -1): 1.0}
    assert outputs_of(nobody, 0 * GONE, 2).tolist() == [[-1, -1]] * 2


def test_plain_rows_are_the_rows():
    mechanism = PlainRows(PublicRows(4, (0, 1)))
    rows = PublicRows(4).of(PATH, (0, 1)).ravel().tolist()
    assert outputs_of(mechanism, PATH, 2).tolist() == [rows] * 2
    assert mechanism.distribution(PATH).outcomes.tolist() == [rows]


def test_a_released_node_is_there():
    """M/N for the sample and (1 − M/N)·K/N for the other rows.

    With K = 2 more than 2M/N.
    """
    mechanism = DPApprEM(1e-6, 2, SampledRows(4, 1), candidates="present")
    exact = loss(mechanism, np.eye(4), np.diag([1, 1, 1, 0]), epsilon=1.0)
    assert float(exact.delta) == approx(1 / 4 + 3 / 4 * 2 / 4, abs=1e-5)


@parametrize(
    ("rows", "graph", "chosen", "other"),
    [
        (PublicRows(4), PATH, [3], [0]),
        (SampledRows(4, 1), GONE, [0, 0], [1, 0]),
    ],
    ids=["public", "sampled"],
)
def test_values_have_the_density_of_their_steps(rows, graph, chosen, other):
    """The law of the index, and Laplace noise of scale C₂/ε around the clipped entry."""
    select = DPApprEM(1.0, 1, rows)
    mechanism = DPApprEMValues(select, 2.0)
    law = of_outcomes(select.distribution(graph))
    entries = {(3,): 0.0, (0,): CLIP, (0, 0): CLIP, (1, 0): 0.0}
    for ids in (chosen, other):
        distance = abs(0.002 - entries[tuple(ids)]) * 2 / CLIP
        expected = math.log(law[tuple(ids)] / CLIP) - distance
        found = mechanism.log_prob(np.array([[*ids, 0.002]]), graph)
        assert found == approx(expected)


def test_values_of_padding_are_no_numbers():
    select = DPApprEM(1.0, 3, PublicRows(4), candidates="present")
    mechanism = DPApprEMValues(select, 1.0)
    outputs = outputs_of(mechanism, GONE, 3)
    assert np.isnan(outputs[:, 3]).all()
    assert np.isfinite(outputs[:, 4:]).all()
    assert np.isfinite(mechanism.log_prob(outputs, GONE)).all()


def test_given_values_spend_their_budget():
    mechanism = SelectedValues(1.0, (1,), PublicRows(3))
    found = losses(mechanism, Nodes(3))
    assert max(each.lower for each in found) == approx(1.0)
    assert max(each.upper for each in found) <= 1.0


@parametrize("rows", [PublicRows(50, (0, 5)), SampledRows(50, 2)])
def test_lists_of_edges_are_taken_as_their_matrix(rows):
    path = Graph(50, np.stack([np.arange(49), np.arange(1, 50)]))
    mechanism = DPApprEM(60.0, 3, rows)
    found = outputs_of(mechanism, path, 5)
    expected = outputs_of(mechanism, path.to_matrix(), 5)
    assert (found == expected).all()


@given(Nodes(6).strategy(), st.floats(0.05, 0.9))
def test_clipped_rows_are_at_most_as_far_apart_as_declared(pair, alpha):
    rows = PublicRows(6, (0, 3), alpha)
    gaussian = NoisyRows(1.0, 0.1, rows, apart=math.sqrt(2))
    apart = distance(gaussian, pair) * gaussian.clip
    assert apart <= gaussian.sensitivity * (1 + 1e-9)
    selection = DPApprEM(1.0, 1, rows)
    first, second = (selection.query(x, RNG(0)) for x in (pair.data, pair.neighbour))
    assert np.abs(first - second).max() <= selection.sensitivity
