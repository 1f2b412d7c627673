"""ISTA for ℓ₁-regularised PageRank: the paper's matrices, closed forms, optimality."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

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
close = np.testing.assert_allclose


def some_graph(nodes, seed, *, loops=False):
    """Connected, since it has a path."""
    drawn = RNG(seed).random((nodes, nodes)) < 0.4
    upper = np.triu(drawn, 0 if loops else 1) | np.eye(nodes, k=1, dtype=bool)
    return (upper | upper.T).astype(int)


@pytest.mark.parametrize("loops", [False, True])
def test_gradient_and_objective_are_those_of_the_paper(loops):
    """f(q) = ½qᵀQq − αsᵀD^-½q with Q = D^-½(D − (1−α)/2·(D+A))D^-½, at p = D^½q."""
    graph, alpha, rho = some_graph(7, 1, loops=loops), 0.3, 0.01
    degrees = graph.sum(axis=1)
    root = np.sqrt(degrees)
    middle = np.diag(degrees) * (1 + alpha) / 2 - (1 - alpha) / 2 * graph
    q_matrix = middle / np.outer(root, root)
    start = alpha / root * (np.arange(7) == 3)
    q = RNG(2).random(7)
    row = (root * q)[None]
    slope = root * (q_matrix @ q - start)
    close(gradient(graph, row, [3], alpha=alpha), slope[None], atol=1e-12)
    value = q @ q_matrix @ q / 2 - start @ q + rho * alpha * row.sum()
    close(objective(graph, row, [3], alpha=alpha, rho=rho), [value], atol=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.7])
def test_an_edge_by_hand(alpha):
    """All entries are positive, so p = p_exact − ρd; the plain walk restarts with a.

    p_exact = (1, 1−a)/(2−a).
    """
    a = 2 * alpha / (1 + alpha)
    row = ista(EDGE, [0], alpha=alpha, rho=1e-3, tolerance=1e-9)
    expected = np.array([[1, 1 - a]]) / (2 - a) - 1e-3
    close(row, expected, atol=1e-11)


def test_absent_and_isolated_nodes():
    row = ista(np.diag([1, 0, 1]), [0, 1], rho=1e-3, tolerance=1e-9)
    close(
        row,
        [
            [1 - 1e-3, 0, 0],
            [0, 0, 0],
        ],
        atol=1e-11,
    )
    assert not ista(np.zeros((2, 2)), [1]).any()


def test_the_residual_shows_a_row_that_is_not_optimal():
    graph = some_graph(8, 5)
    row = ista(graph, [0])
    shorter = row.copy()
    shorter[0, row[0].argmin()] = 0
    assert kkt_residual(graph, row, [0]) <= 1e-4
    assert kkt_residual(graph, row * 1.01, [0]) > 1
    assert kkt_residual(graph, shorter, [0]) > 1
    for scale in (0.99, 1.01):
        assert objective(graph, row, [0]) < objective(graph, row * scale, [0])


def test_the_number_of_steps_is_enough_and_not_idle():
    """ln(ρ·tolerance)/ln(1−α) = 64.03 for the defaults.

    A tenth fewer do not do on an edge, where nothing mixes faster.
    """
    assert steps() == 65
    walk = Walk.on(EDGE)
    rows = np.zeros((1, 2))
    for _ in range(58):
        rows = proximal_step(walk, rows, walk.starts([0]), alpha=0.25, rho=1e-4)
    assert kkt_residual(EDGE, rows, [0]) > 1e-4
    assert kkt_residual(EDGE, ista(EDGE, [0]), [0]) <= 1e-4


@pytest.mark.parametrize(
    "form", [sparse.csr_array, sparse.coo_matrix, Graph.from_matrix]
)
def test_dense_sparse_and_edge_lists_give_the_same_rows(form):
    graph, seeds = some_graph(12, 6), [4, 0, 4]
    other = form(graph)
    dense, rows = ista(graph, seeds), ista(other, seeds)
    assert sparse.issparse(rows)
    close(rows.toarray(), dense, atol=1e-15)
    for measure in (kkt_residual, objective):
        found = measure(other, rows, seeds)
        close(found, measure(graph, dense, seeds), atol=1e-8)


def test_power_iteration_solves_the_linear_system():
    graph = some_graph(9, 7, loops=True)
    system = np.eye(9) - 0.6 * graph / graph.sum(axis=0)
    exact = 0.4 * np.linalg.inv(system)[:, 5]
    close(power_iteration(graph, [5], teleport=0.4)[0], exact, atol=1e-11)


def test_lazy_and_plain_restarts():
    """P = αs + (1−α)(I + AD⁻¹)/2·p is p = as + (1−a)AD⁻¹p for α = a/(2−a)."""
    assert lazy(0.25) == pytest.approx(0.25 / 1.75)


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
    exact = power_iteration(graph, seeds[:1], teleport=0.4)
    behind = (exact - rows[:1].toarray()) / graph.degrees
    assert behind.min() > -1e-12
    assert behind.max() <= 1e-4 * (1 + 1e-4)


@st.composite
def graphs(draw):
    """Symmetric matrices of zeros and ones, with self-loops or without."""
    nodes = draw(st.integers(1, 8))
    bits = draw(st.lists(st.booleans(), min_size=nodes**2, max_size=nodes**2))
    square = np.array(bits).reshape(nodes, nodes)
    upper = np.triu(square, draw(st.integers(0, 1)))
    return (upper | upper.T).astype(np.int8)


@given(graphs(), st.floats(0.05, 0.9), st.floats(1e-6, 0.3))
def test_rows_are_optimal_local_and_below_the_exact_ones(graph, alpha, rho):
    everybody = range(len(graph))
    degrees = graph.sum(axis=1)
    rows = ista(graph, everybody, alpha=alpha, rho=rho, tolerance=1e-4)
    residual = kkt_residual(graph, rows, everybody, alpha=alpha, rho=rho)
    assert (residual <= 1e-4 * (1 + 1e-3)).all()
    behind = power_iteration(graph, everybody, teleport=2 * alpha / (1 + alpha)) - rows
    assert (behind >= -1e-11).all()
    assert (behind <= rho * degrees * (1 + 1e-4) + 1e-11).all()
    volumes = (rows > 0) @ degrees
    assert (volumes <= 1 / rho * (1 + 1e-9)).all()
    assert (rows.sum(axis=1) <= 1 + 1e-12).all()
    assert not rows[:, degrees == 0].any()
