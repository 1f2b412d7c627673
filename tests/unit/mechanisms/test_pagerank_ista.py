"""ISTA for ℓ₁-regularised PageRank: the paper's matrices, closed forms, optimality, and a graph of real size."""

import math
import os
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from auditdp.errors import MechanismError
from mechanisms.graphs import Graph, barabasi_albert, load_graph
from mechanisms.pagerank.ista import (
    Walk,
    gradient,
    ista,
    kkt_residual,
    lazy,
    objective,
    power_iteration,
    proximal_step,
    steps,
)

RNG = np.random.default_rng
EDGE = np.array([[0, 1], [1, 0]])


def some_graph(nodes, seed, *, loops=False):
    upper = np.triu(RNG(seed).random((nodes, nodes)) < 0.4, 0 if loops else 1).astype(
        int
    )
    for i in range(nodes - 1):
        upper[i, i + 1] = 1
    return np.maximum(upper, upper.T)


@pytest.mark.parametrize("loops", [False, True])
def test_gradient_and_objective_are_those_of_the_paper(loops):
    """f(q) = ½qᵀQq − αsᵀD^-½q with Q = D^-½(D − (1−α)/2·(D+A))D^-½, at p = D^½q."""
    graph, alpha, rho = some_graph(7, 1, loops=loops), 0.3, 0.01
    degrees = graph.sum(axis=1)
    root, inverse = np.diag(np.sqrt(degrees)), np.diag(1 / np.sqrt(degrees))
    q_matrix = (
        inverse
        @ (np.diag(degrees) - (1 - alpha) / 2 * (np.diag(degrees) + graph))
        @ inverse
    )
    q, start = RNG(2).random(7), np.eye(7)[3]
    row = (root @ q)[None]
    slope = q_matrix @ q - alpha * inverse @ start
    np.testing.assert_allclose(
        gradient(graph, row, [3], alpha=alpha)[0], root @ slope, atol=1e-12
    )
    value = (
        q @ q_matrix @ q / 2
        - alpha * start @ inverse @ q
        + rho * alpha * np.abs(root @ q).sum()
    )
    np.testing.assert_allclose(
        objective(graph, row, [3], alpha=alpha, rho=rho), [value], atol=1e-12
    )


def test_the_step_is_the_proximal_one():
    """The minimiser over q >= 0 of the linearisation at q plus ½‖q⁺ − q‖²: (q − ∇f − ραd^½)₊."""
    graph, alpha, rho = some_graph(6, 3), 0.25, 0.02
    walk = Walk.on(graph)
    root = np.sqrt(walk.degrees)
    row = RNG(4).random((1, 6))
    q = row[0] / root
    slope = gradient(graph, row, [2], alpha=alpha)[0] / root
    moved = proximal_step(walk, row, walk.starts([2]), alpha=alpha, rho=rho)
    np.testing.assert_allclose(
        moved[0], root * np.maximum(q - slope - rho * alpha * root, 0), atol=1e-12
    )


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.7])
def test_an_edge_by_hand(alpha):
    """All entries are positive, so p = p_exact − ρd; the plain walk restarts with a: p_exact = (1, 1−a)/(2−a)."""
    a = 2 * alpha / (1 + alpha)
    row = ista(EDGE, [0], alpha=alpha, rho=1e-3, tolerance=1e-9)
    np.testing.assert_allclose(
        row, [[1 / (2 - a) - 1e-3, (1 - a) / (2 - a) - 1e-3]], atol=1e-11
    )


def test_a_star_by_hand():
    """From a leaf, with b = 1 − a: the hub has ab/(1−b²), as many steps away as are odd, and p = p_exact − ρd."""
    star = np.zeros((6, 6), int)
    star[0, 1:] = star[1:, 0] = 1
    row = ista(star, [1], rho=1e-5, tolerance=1e-9)[0]
    assert row[0] == pytest.approx(0.4 * 0.6 / (1 - 0.36) - 5e-5, abs=1e-12)
    assert row[2] == pytest.approx(0.6 * 0.4 * 0.6 / (1 - 0.36) / 5 - 1e-5, abs=1e-12)


def test_nodes_that_are_not_there_and_nodes_by_themselves():
    graph = np.diag([1, 0, 1])
    np.testing.assert_allclose(
        ista(graph, [0, 1], rho=1e-3, tolerance=1e-9),
        [[1 - 1e-3, 0, 0], [0, 0, 0]],
        atol=1e-11,
    )
    assert not ista(np.zeros((2, 2)), [1]).any()


def test_support_is_local():
    """A path of 40 nodes with a large ρ: the row ends before the path does, and is 0 from there on."""
    path = np.eye(40, k=1) + np.eye(40, k=-1)
    row = ista(path, [0], rho=0.02)[0]
    ends = np.flatnonzero(row)[-1]
    assert 2 < ends < 20
    assert not row[ends + 1 :].any()
    assert path[row > 0].sum() <= 1 / 0.02


def test_the_residual_sees_what_is_not_optimal():
    graph = some_graph(8, 5)
    row = ista(graph, [0])
    assert kkt_residual(graph, row, [0])[0] <= 1e-4
    assert kkt_residual(graph, row * 1.01, [0])[0] > 1
    wider = row.copy()
    wider[0, row[0].argmin()] = 0
    assert kkt_residual(graph, wider, [0])[0] > 1
    before = objective(graph, row, [0])[0]
    assert all(objective(graph, row * scale, [0])[0] > before for scale in (0.99, 1.01))


def test_the_number_of_steps_is_enough_and_not_idle():
    """ln(ρ·tolerance)/ln(1−α) = 64.03 for the defaults; a tenth fewer do not do on an edge, where nothing mixes faster."""
    assert steps() == 65
    rows = 0.0 * EDGE[:1]
    walk = Walk.on(EDGE)
    for _ in range(58):
        rows = proximal_step(walk, rows, walk.starts([0]), alpha=0.25, rho=1e-4)
    assert (
        kkt_residual(EDGE, rows, [0])[0]
        > 1e-4
        >= kkt_residual(EDGE, ista(EDGE, [0]), [0])[0]
    )


def test_dense_sparse_and_edge_lists_give_the_same_rows():
    graph = some_graph(12, 6)
    dense = ista(graph, [4, 0, 4])
    for other in (
        sparse.csr_array(graph),
        sparse.coo_matrix(graph),
        Graph.from_matrix(graph),
    ):
        rows = ista(other, [4, 0, 4])
        assert sparse.issparse(rows)
        np.testing.assert_allclose(rows.toarray(), dense, atol=1e-15)
        np.testing.assert_allclose(
            kkt_residual(other, rows, [4, 0, 4]),
            kkt_residual(graph, dense, [4, 0, 4]),
            atol=1e-8,
        )
        np.testing.assert_allclose(
            objective(other, rows, [4, 0, 4]),
            objective(graph, dense, [4, 0, 4]),
            atol=1e-14,
        )


def test_power_iteration_solves_the_linear_system():
    graph = some_graph(9, 7, loops=True)
    transition = graph / graph.sum(axis=0)
    exact = 0.4 * np.linalg.inv(np.eye(9) - 0.6 * transition)[:, 5]
    np.testing.assert_allclose(
        power_iteration(graph, [5], teleport=0.4)[0], exact, atol=1e-11
    )


def test_lazy_and_plain_restarts():
    """The solutions of p = αs + (1−α)(I + AD⁻¹)/2·p and of p = as + (1−a)AD⁻¹p agree for α = a/(2−a)."""
    graph = some_graph(6, 8)
    walk = (np.eye(6) + graph / graph.sum(axis=0)) / 2
    exact = lazy(0.25) * np.linalg.inv(np.eye(6) - (1 - lazy(0.25)) * walk)[:, 1]
    np.testing.assert_allclose(
        power_iteration(graph, [1], teleport=0.25)[0], exact, atol=1e-11
    )


def large_graph():
    """Coauthor Physics where its file is given, else a preferential attachment graph of its size."""
    path = Path(os.environ.get("AUDITDP_DATA", "")) / "coauthor_physics.npz"
    return load_graph(path) if path.is_file() else barabasi_albert(34_493, 7, RNG(0))


def test_seventy_rows_of_a_large_graph():
    """34,493 nodes in less than 5 seconds, within ρd of the exact PageRank, and optimal."""
    graph = large_graph()
    seeds = RNG(1).choice(graph.nodes, 70, replace=False)
    started = time.process_time()
    rows = ista(graph, seeds)
    assert time.process_time() - started < 5
    assert kkt_residual(graph, rows, seeds).max() <= 1e-4
    few = seeds[:3]
    behind = (
        power_iteration(graph, few, teleport=0.4) - rows[:3].toarray()
    ) / graph.degrees
    assert behind.min() > -1e-12
    assert behind.max() <= 1e-4 * (1 + 1e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ista(np.eye(3, k=1), [0]), "a symmetric matrix of zeros and ones"),
        (lambda: ista(2 * EDGE, [0]), "a symmetric matrix of zeros and ones"),
        (lambda: ista(np.zeros(3), [0]), "expected a graph"),
        (lambda: ista(sparse.csr_array(np.eye(3, k=1)), [0]), "expected a graph"),
        (lambda: ista(EDGE, [2]), "node ids from 0 to 1"),
        (lambda: ista(EDGE, [-1]), "node ids from 0 to 1"),
        (lambda: ista(EDGE, [0], alpha=1.0), r"alpha and rho in \(0, 1\), got 1\.0"),
        (
            lambda: ista(EDGE, [0], rho=math.nan),
            "expected rho, a finite number > 0, got nan",
        ),
        (lambda: ista(EDGE, [0], tolerance=0.0), "expected tolerance"),
    ],
)
def test_errors_show_the_value_and_the_remedy(make, message):
    with pytest.raises(MechanismError, match=message):
        make()
