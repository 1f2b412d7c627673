"""PageRank rows and the mechanisms that release them, for any small graph: optimality, bounds, invariances, budgets."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from auditdp import Nodes
from auditdp.evidence.loss_of_laws import pair_loss
from mechanisms.pagerank import (
    DPApprEM,
    DPApprGM,
    GivenRows,
    NoisyRows,
    PublicRows,
    SampledRows,
    entry_epsilon,
    ista,
    kkt_residual,
    power_iteration,
    row_epsilon,
    share_of_row,
)

budgets = st.floats(1e-3, 8.0)
alphas = st.floats(0.05, 0.9)
seeds = st.integers(0, 2**32 - 1)
CLIP = 0.001


@st.composite
def graphs(draw, most=8):
    """Symmetric matrices of zeros and ones, with self-loops or without."""
    nodes = draw(st.integers(1, most))
    upper = np.triu(
        np.array(
            draw(st.lists(st.booleans(), min_size=nodes**2, max_size=nodes**2))
        ).reshape(nodes, nodes)
    )
    if not draw(st.booleans()):
        np.fill_diagonal(upper, False)
    return np.maximum(upper, upper.T).astype(np.int8)


entries = st.lists(st.sampled_from((0.0, CLIP / 3, CLIP)), min_size=2, max_size=5).map(
    np.array
)


@given(graphs(), alphas, st.floats(1e-6, 0.3))
def test_rows_are_optimal_local_and_below_the_exact_ones(graph, alpha, rho):
    everybody, degrees = range(len(graph)), graph.sum(axis=1)
    rows = ista(graph, everybody, alpha=alpha, rho=rho, tolerance=1e-4)
    assert (
        kkt_residual(graph, rows, everybody, alpha=alpha, rho=rho) <= 1e-4 * (1 + 1e-3)
    ).all()
    behind = power_iteration(graph, everybody, teleport=2 * alpha / (1 + alpha)) - rows
    assert (behind >= -1e-11).all()
    assert (behind <= rho * degrees * (1 + 1e-4) + 1e-11).all()
    assert (((rows > 0) * degrees).sum(axis=1) <= 1 / rho * (1 + 1e-9)).all()
    assert (rows.sum(axis=1) <= 1 + 1e-12).all()
    assert not rows[:, degrees == 0].any()


@given(graphs(), st.data())
def test_relabelling_nodes_relabels_rows(graph, data):
    order = np.array(data.draw(st.permutations(range(len(graph)))))
    rows, renamed = (
        ista(graph, order),
        ista(graph[np.ix_(order, order)], range(len(graph))),
    )
    np.testing.assert_allclose(renamed, rows[:, order], atol=1e-13)


@given(graphs())
def test_rows_do_not_depend_on_form_or_on_other_rows(graph):
    everybody = range(len(graph))
    rows = ista(graph, everybody)
    np.testing.assert_allclose(
        ista(sparse.csr_array(graph), everybody).toarray(), rows, atol=1e-15
    )
    for seed in everybody:
        np.testing.assert_allclose(ista(graph, [seed])[0], rows[seed], atol=1e-15)


@given(graphs(), st.floats(1e-5, 0.1), st.floats(1.5, 10))
def test_more_regularisation_gives_smaller_rows(graph, rho, times):
    everybody = range(len(graph))
    small, large = (
        ista(graph, everybody, rho=r, tolerance=1e-9) for r in (rho * times, rho)
    )
    assert (small <= large + 1e-12).all()


@given(entries, st.integers(1, 4), budgets, st.booleans())
def test_laws_sum_to_one_and_prefer_larger_entries(row, k, epsilon, ordered):
    k = min(k, len(row) - 1)
    law = DPApprEM(epsilon, k, GivenRows(len(row)), ordered=ordered).distribution(row)
    assert math.isclose(law.floats.sum(), 1, rel_tol=1e-12)
    assert len(law.outcomes) == (math.perm if ordered else math.comb)(len(row), k)
    shares = np.array(
        [law.floats[(law.outcomes == i).any(axis=1)].sum() for i in range(len(row))]
    )
    for i in range(len(row)):
        assert (shares[i] >= shares[row <= row[i]] - 1e-12).all()


@given(entries, st.data(), budgets)
def test_any_entries_keep_corollary_1(row, data, epsilon):
    """For any change of all entries, at δ too small for anything but the first term: 2Kε."""
    k = data.draw(st.integers(1, len(row)))
    other = data.draw(
        st.lists(
            st.sampled_from((0.0, CLIP / 2, CLIP)), min_size=len(row), max_size=len(row)
        )
    )
    mechanism = DPApprEM(epsilon, k, GivenRows(len(row)), ordered=True)
    exact = pair_loss(
        mechanism.distribution(row), mechanism.distribution(np.array(other))
    )
    assert exact.upper <= row_epsilon(epsilon, k, 1e-300)


@given(entries, st.data(), st.floats(0.1, 3.0))
def test_the_order_costs_no_less_than_the_set(row, data, epsilon):
    """The set is post-processing of the order."""
    k = data.draw(st.integers(1, len(row)))
    losses = []
    for ordered in (False, True):
        mechanism = DPApprEM(epsilon, k, GivenRows(len(row)), ordered=ordered)
        losses.append(
            pair_loss(
                mechanism.distribution(row),
                mechanism.distribution(CLIP - row),
                epsilon=0.5,
            )
        )
    assert losses[0].lower <= losses[1].upper
    assert float(losses[0].delta.mid()) <= float(losses[1].delta.mid()) + 1e-15


@given(budgets, st.integers(1, 100), st.floats(1e-9, 0.1))
def test_budgets_are_monotone_and_invert(epsilon, k, delta):
    assert row_epsilon(epsilon, k, delta) <= row_epsilon(1.1 * epsilon, k, delta)
    assert row_epsilon(epsilon, k, delta) <= row_epsilon(epsilon, k + 1, delta)
    assert row_epsilon(epsilon, k, delta) <= row_epsilon(epsilon, k, delta / 2)
    assert math.isclose(
        row_epsilon(entry_epsilon(epsilon, k, delta), k, delta), epsilon, rel_tol=1e-8
    )
    assert share_of_row(epsilon, k, delta) <= share_of_row(1.1 * epsilon, k, delta)
    assert share_of_row(epsilon, k + 1, delta) <= share_of_row(epsilon, k, delta)
    assert share_of_row(epsilon, k, delta) < epsilon / 2


@given(Nodes(6).strategy(), alphas)
def test_clipped_rows_are_at_most_as_far_apart_as_declared(pair, alpha):
    rows = PublicRows(6, (0, 3), alpha)
    gaussian, selection = (
        NoisyRows(1.0, 0.1, rows, apart=math.sqrt(2)),
        DPApprEM(1.0, 1, rows),
    )
    assert np.linalg.norm(
        gaussian.query(pair.data) - gaussian.query(pair.neighbour)
    ) <= gaussian.sensitivity * (1 + 1e-9)
    rng = np.random.default_rng(0)
    apart = np.abs(
        selection.query(pair.data, rng) - selection.query(pair.neighbour, rng)
    ).max()
    assert apart <= selection.sensitivity


@given(
    Nodes(5, "removed", loops=True).strategy(),
    st.integers(1, 3),
    st.integers(1, 4),
    seeds,
)
def test_releases_name_candidates_only(pair, count, k, seed):
    rng = np.random.default_rng(seed)
    there = np.append(np.diagonal(pair.data) == 1, True)  # −1, nobody, is last
    outputs = DPApprEM(1.0, k, SampledRows(5, count), candidates="present")(
        pair.data, 20, rng=rng
    )
    assert outputs.shape == (20, count * (k + 1))
    assert there[outputs].all()
    indices = outputs[:, count:].reshape(20, count, k)
    for row in indices.reshape(-1, k):
        named = row[row >= 0]
        assert len(np.unique(named)) == len(named)
        assert (np.diff(row) >= 0).all()
    assert ((outputs[:, :count] == -1) == (indices == -1).all(axis=2)).all()


@given(graphs(), st.integers(1, 8), seeds)
def test_gaussian_releases_are_indices_and_values(graph, k, seed):
    k = min(k, len(graph))
    mechanism = DPApprGM(NoisyRows(1.0, 0.1, PublicRows(len(graph), (0,))), k)
    outputs = mechanism(graph, 7, rng=np.random.default_rng(seed))
    assert outputs.shape == (7, 2 * k)
    assert (np.diff(outputs[:, :k]) >= 1).all()
    assert np.isin(outputs[:, :k], range(len(graph))).all()
    assert np.isfinite(mechanism.log_prob(outputs, graph)).all()
