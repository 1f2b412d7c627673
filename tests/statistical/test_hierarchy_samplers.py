"""Dendrograms and released graphs have the laws that are stated, whichever code draws them.

Each assertion has alpha = 1e-6: the null hypothesis is that the sampler is right, runs are independent, the number of runs
is fixed, and cells of a chi-square test are pooled until 20 are expected in each.
"""

import math

import numpy as np
import pytest

from mechanisms.graphs import Graph
from mechanisms.hierarchy import DendrogramStep, PrivHRG
from mechanisms.hierarchy.chain import exact_draw, run_chain
from mechanisms.hierarchy.dendrogram import Dendrogram, balanced, children_of, uniform
from mechanisms.hierarchy.exact_chain import states
from tests.statistical.goodness import follows

pytestmark = pytest.mark.statistical
NEVER = {"tau1": math.inf, "tau2": math.inf}


def rng_of(*key):
    return np.random.default_rng([20241, *key])


def matrix(nodes, *edges):
    found = np.zeros((nodes, nodes), np.int8)
    for i, j in edges:
        found[i, j] = found[j, i] = 1
    return found


HOUSE = matrix(5, (0, 1), (1, 2), (2, 3), (0, 3), (3, 4))
PAW = matrix(4, (0, 1), (0, 2), (1, 2), (2, 3))


STEPS = [
    {},
    {"steps": 1},
    {"steps": 7, "start": "uniform"},
    {"steps": 3, "factor": 1, "equation": "15"},
    {"moves": "alternating", "public": ((0, 4), (1, 3))},
    {"steps": 2, "moves": "alternating", "public": ((0, 4), (1, 3))},
    {"steps": 3, "moves": "joint", "public": ((0, 4), (1, 3))},
    {"steps": 3, "private_nodes": "data"},
]


@pytest.mark.dear
@pytest.mark.parametrize("readings", STEPS, ids=str)
def test_dendrograms_have_the_stated_law(readings):
    step = DendrogramStep(3.0, 5, **readings)
    follows(step(HOUSE, 40_000, rng=rng_of(1)), step.distribution(HOUSE), step.name)


@pytest.mark.dear
@pytest.mark.parametrize("readings", STEPS[1:4] + STEPS[5:], ids=str)
def test_the_chain_with_incremental_counts_has_the_law_of_the_table(readings, repeats):
    """Large graphs run this chain; the table of all dendrograms serves the small ones."""
    step = DendrogramStep(3.0, 5, **readings)
    layers = step.layers(step.private_edges(HOUSE))
    start = (
        balanced(5)
        if step.start in ("balanced", "uniform")
        else children_of(step.start)
    )
    rng, sizes = rng_of(2), []
    for _ in range(repeats(6_000, least=1_500)):
        children = uniform(5, rng) if step.start == "uniform" else start
        tree = Dendrogram(children, layers)
        run_chain(
            tree,
            step.stages(5 if step.private_nodes == "all" else len(layers[0].members)),
            step.steps,
            rng,
        )
        sizes.append(tree.pair_sizes())
    follows(np.array(sizes), step.distribution(HOUSE), f"run_chain of {step.name}")


@pytest.mark.parametrize(
    "readings", [{}, {"moves": "joint", "public": ((0, 4), (1, 3))}], ids=str
)
def test_exact_draws_have_the_stationary_law(readings, repeats):
    step = DendrogramStep(3.0, 5, **readings)
    layers, rng = step.layers(step.private_edges(HOUSE)), rng_of(3)
    drawn = [
        exact_draw(5, layers, step.stages(5)[0], rng).pair_sizes()
        for _ in range(repeats(1_500, least=500))
    ]
    follows(np.array(drawn), step.distribution(HOUSE), f"exact draws of {step.name}")


def test_uniform_dendrograms_are_uniform(repeats):
    rng, places = rng_of(4), states(5).pair_sizes
    drawn = np.array(
        [
            Dendrogram(uniform(5, rng)).pair_sizes()
            for _ in range(repeats(20_000, least=5_000))
        ]
    )
    law = DendrogramStep(1.0, 5, steps=0, start="uniform").distribution(HOUSE)
    np.testing.assert_allclose(law.floats, 1 / len(places))
    follows(drawn, law, "uniform dendrograms")


RELEASES = [
    PrivHRG(1.0, 1.0, 4),
    PrivHRG(2.0, 1.0, 4, **NEVER),
    PrivHRG(2.0, 1.0, 4, steps=2, **NEVER),
    PrivHRG(2.0, 1.0, 4, draws="fresh"),
    PrivHRG(2.0, 3.0, 4, draws="nested"),
    PrivHRG(2.0, 20.0, 4),
    PrivHRG(
        2.0,
        1.0,
        4,
        private_nodes=(0, 1, 2, 3),
        public=((0, 3),),
        moves="joint",
        **NEVER,
    ),
]


@pytest.mark.parametrize("mechanism", RELEASES, ids=lambda m: m.name)
def test_released_graphs_have_the_stated_law(mechanism):
    follows(
        mechanism(PAW, 60_000, rng=rng_of(5)),
        mechanism.distribution(PAW),
        mechanism.name,
    )


@pytest.mark.dear
@pytest.mark.parametrize(
    "mechanism", RELEASES[1:3] + RELEASES[4:5], ids=lambda m: m.name
)
def test_the_sparse_form_has_the_law_of_the_dense_one(mechanism, repeats):
    rng, graph, above = rng_of(6), Graph.from_matrix(PAW), np.triu_indices(4, 1)
    drawn = np.array(
        [
            mechanism.whole_graph(graph, rng=rng).to_matrix()[above]
            for _ in range(repeats(4_000, least=1_000))
        ]
    )
    follows(drawn, mechanism.distribution(PAW), f"whole_graph of {mechanism.name}")


@pytest.mark.parametrize(
    ("sampled", "stated", "graph"),
    [
        (DendrogramStep(3.6, 5), DendrogramStep(3.0, 5), HOUSE),
        (
            DendrogramStep(3.0, 5, steps=6, start="uniform"),
            DendrogramStep(3.0, 5, steps=2, start="uniform"),
            HOUSE,
        ),
        (PrivHRG(2.0, 1.3, 4, **NEVER), PrivHRG(2.0, 1.0, 4, **NEVER), PAW),
        (
            PrivHRG(2.0, 1.0, 4, draws="fresh"),
            PrivHRG(2.0, 1.0, 4, draws="nested"),
            PAW,
        ),
    ],
)
def test_the_goodness_test_sees_a_wrong_law(sampled, stated, graph):
    """The check above can fail: a fifth more budget, fewer steps, and the other reading are seen."""
    with pytest.raises(AssertionError, match="alpha=1e-06"):
        follows(
            sampled(graph, 60_000, rng=rng_of(7)),
            stated.distribution(graph),
            "a wrong law",
        )
