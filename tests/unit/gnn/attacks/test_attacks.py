"""Attacks on planted leaks: AUC 1 without noise, and ½ for independent outputs."""

import functools

import networkx
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from auditdp.errors import MechanismError
from gnn.attacks import (
    all_pairs,
    are_edges,
    embedding_similarity,
    feature_inversion,
    influence,
    known_member_attack,
    link_teller,
    membership,
    membership_scores,
    outcome,
    sampled_pairs,
)
from gnn.layers import propagation
from tests.unit.gnn.draws import generator, rng

parametrize = pytest.mark.parametrize

NODES = 60
DRAWS = rng(5)
EDGES = np.array(networkx.gnp_random_graph(NODES, 0.1, seed=3).edges).T
OTHER_EDGES = np.array(networkx.gnp_random_graph(NODES, 0.1, seed=4).edges).T
FEATURES = torch.as_tensor(DRAWS.random((NODES, 7)))
FIRST = torch.as_tensor(DRAWS.normal(size=(7, 9)))
SECOND = torch.as_tensor(DRAWS.normal(size=(9, 4)))


def operator(edges):
    matrix = torch.zeros(NODES, NODES, dtype=torch.float64)
    matrix[edges[0], edges[1]] = matrix[edges[1], edges[0]] = 1.0
    return propagation(matrix)


def one_layer(edges):
    return lambda x: operator(edges) @ x @ FIRST


def two_layers(edges):
    return lambda x: operator(edges) @ torch.tanh(one_layer(edges)(x)) @ SECOND


def figures(found):
    return found.auc, found.precision, found.recall


def is_near_a_half(area, pairs):
    """H0: AUC ½, whose deviation is at most 1/√pairs; α < 1e-6 at 5 of them."""
    return abs(area - 0.5) < 5 / np.sqrt(pairs)


both_methods = parametrize("method", ["differences", "exact"])


# Figures


@parametrize(
    ("cut", "precision", "recall", "predicted"),
    [
        ({}, 0.5, 0.5, 2),
        ({"threshold": 2}, 0.5, 1.0, 4),
        ({"predicted": 0}, 0.0, 0.0, 0),
    ],
)
def test_figures_of_five_candidates_by_hand(cut, precision, recall, predicted):
    """4 of 6 pairs are in order; the positives have ranks 1 and 4: AP (1 + 2/4)/2."""
    found = outcome([5, 4, 3, 2, 1], [1, 0, 0, 1, 0], rng=rng(), **cut)

    assert figures(found) == (pytest.approx(4 / 6), precision, recall)
    assert found.average_precision == pytest.approx(0.75)
    assert found.predicted == predicted


# Pairs


def test_pairs_and_edges_of_a_path():
    pairs = all_pairs(4)
    assert pairs.tolist() == [
        [0, 0, 0, 1, 1, 2],
        [1, 2, 3, 2, 3, 3],
    ]

    path = [
        [1, 1, 2],
        [0, 2, 1],
    ]
    for given in (pairs, pairs[::-1]):
        found = are_edges(given, path, nodes=4)
        assert found.tolist() == [True, False, False, True, False, False]

    assert not are_edges(pairs, np.empty((2, 0)), nodes=4).any()


def test_a_balanced_sample_has_equally_many_edges_and_other_pairs():
    pairs = sampled_pairs(EDGES, nodes=NODES, size=80, rng=rng())
    assert are_edges(pairs, EDGES, nodes=NODES).tolist() == [True] * 80 + [False] * 80
    assert len(np.unique(pairs, axis=1).T) == 160
    assert (pairs[0] < pairs[1]).all()


# LinkTeller


MEAN = (
    torch.tensor(
        [
            [3.0, 3.0, 0.0],
            [2.0, 2.0, 2.0],
            [0.0, 3.0, 3.0],
        ]
    ).double()
    / 6
)
LENGTHS = np.array([5.0, 2.0, 1.0])


@both_methods
def test_influence_of_a_path_by_hand(method):
    """Row u of S X moves by S_uv ‖x_v‖ if row v of X does."""
    features = torch.tensor(
        [
            [3.0, 4.0],
            [0.0, 2.0],
            [1.0, 0.0],
        ]
    ).double()
    expected = MEAN.numpy().T * LENGTHS[:, None]

    def found(**options):
        return influence(lambda x: MEAN @ x, features, method=method, **options)

    for batch in (1, 2):
        assert_allclose(found(batch=batch), expected, atol=1e-9)

    part = expected[[2, 1]][:, [2, 1]]
    assert_allclose(found(nodes=[2, 1]), part, atol=1e-9)


def teller(model, **options):
    return link_teller(model, FEATURES, EDGES, rng=rng(), **options)


@both_methods
def test_one_layer_reveals_every_edge(method):
    found = teller(one_layer(EDGES), method=method)
    assert figures(found) == (1, 1, 1)
    assert found.average_precision == 1
    assert found.predicted == found.positives == EDGES.shape[1]


def test_two_layers_reveal_most_edges():
    assert 0.9 < teller(two_layers(EDGES)).auc < 1


@pytest.mark.statistical
def test_another_graphs_model_reveals_nothing():
    found = teller(two_layers(OTHER_EDGES), method="exact")
    assert is_near_a_half(found.auc, 4 * EDGES.shape[1])


# Embedding similarity


@pytest.mark.statistical
def test_cliques_with_a_direction_each_are_found_and_noise_reveals_nothing():
    group = np.arange(NODES) // 6
    first, second = group[all_pairs(NODES)]
    cliques = all_pairs(NODES)[:, first == second]
    lengths = DRAWS.uniform(1, 2, (NODES, 1))
    found = similarity(np.eye(10)[group] * lengths, cliques)

    assert figures(found) == (1, 1, 1)

    found = similarity(DRAWS.normal(size=(NODES, 8)), EDGES)
    assert is_near_a_half(found.auc, 4 * EDGES.shape[1])


def similarity(embeddings, edges):
    return embedding_similarity(torch.as_tensor(embeddings), edges, rng=rng())


# Membership


def planted(leak, nodes=400):
    """An attack on logits that are larger by ``leak`` at a member's own class."""
    draws = rng(8)
    labels, members = draws.integers(3, size=nodes), draws.random(nodes) < 0.5
    logits = draws.normal(size=(nodes, 3))
    logits[np.arange(nodes), labels] += leak * members
    logits = torch.as_tensor(logits)

    def attacked(attack, **options):
        given = {"labels": labels, "members": members, "rng": rng()}
        return attack(lambda x: logits, logits, **given | options)

    return attacked


KNOWN = np.arange(400) < 100


ENTROPY = 0.5 * np.log(0.5) + 0.3 * np.log(0.3) + 0.2 * np.log(0.2)
MODIFIED = 0.7 * np.log(0.3) + 0.5 * np.log(0.5) + 0.2 * np.log(0.8)


@parametrize(
    ("score", "expected"),
    [
        ("label", 0.3),
        ("largest", 0.5),
        ("entropy", ENTROPY),
        ("modified entropy", MODIFIED),
    ],
)
def test_membership_scores(score, expected):
    """The score of one node by hand, and an attack on a model that is sure of its members."""
    logits = torch.tensor([[0.5, 0.3, 0.2]]).double().log()
    assert membership_scores(logits, [1], score=score) == pytest.approx(expected)
    assert figures(planted(60)(membership, score=score)) == (1, 1, 1)


def test_attacks_find_planted_members():
    """The attacker's fitted half may lie beside the gap between members and others."""
    attacked = planted(60)
    found = attacked(membership, threshold=1 - 1e-9, candidates=KNOWN)

    assert (found.candidates, *figures(found)) == (100, 1, 1, 1)

    found = attacked(known_member_attack, known=KNOWN)
    assert (found.candidates, found.auc, found.recall) == (300, 1, 1)
    assert found.precision > 0.95


@pytest.mark.statistical
def test_a_model_that_treats_members_alike_reveals_nobody():
    attacked = planted(0)
    for found in (attacked(membership), attacked(known_member_attack, known=KNOWN)):
        assert is_near_a_half(found.auc, 12 * 75)


# Inversion

invert = functools.partial(feature_inversion, generator=generator(3))


def test_an_invertible_representation_reveals_the_features():
    """Seven features through an injective map to nine; S is invertible, and tanh is."""
    mixing = torch.eye(NODES, dtype=torch.float64) + 0.1 * operator(EDGES)
    found = invert(lambda x: torch.tanh(mixing @ x @ FIRST / 3), FEATURES, steps=800)

    assert found.mismatch < 1e-3
    assert found.error < 0.02
    assert found.cosine > 0.99

    bits = (FEATURES > 0.5).double()
    found = invert(lambda x: x @ FIRST, bits, steps=200)

    assert outcome(found.features.numpy(), bits.numpy(), rng=rng()).auc == 1


# Refusals


@parametrize(
    ("call", "message"),
    [
        (lambda: outcome([1, np.nan], [1, 0], rng=rng()), "1 that are not finite"),
        (
            lambda: sampled_pairs([[0, 1], [1, 2]], nodes=3, size=3, rng=rng()),
            "use at most 1",
        ),
        (lambda: influence(lambda x: x * np.nan, FEATURES), "not finite"),
        (
            lambda: planted(0)(known_member_attack, known=KNOWN, members=KNOWN),
            "name some of both",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(MechanismError, match=message):
        call()
