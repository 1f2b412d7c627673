"""Attacks on planted leaks: AUC 1 without noise, about one half where the output does not depend on the secret."""

import networkx
import numpy as np
import pytest
import torch

from auditdp.errors import MechanismError
from gnn.attacks import (
    all_pairs,
    are_edges,
    cosine_similarities,
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

NODES = 60
RNG = np.random.default_rng(5)
EDGES = np.array(networkx.gnp_random_graph(NODES, 0.1, seed=3).edges).T
OTHER_EDGES = np.array(networkx.gnp_random_graph(NODES, 0.1, seed=4).edges).T
FEATURES = torch.as_tensor(RNG.random((NODES, 7)))
FIRST, SECOND = (torch.as_tensor(RNG.normal(size=shape)) for shape in ((7, 9), (9, 4)))


def operator(edges):
    matrix = torch.zeros(NODES, NODES, dtype=torch.float64)
    matrix[edges[0], edges[1]] = matrix[edges[1], edges[0]] = 1.0
    return propagation(matrix)


def one_layer(edges):
    return lambda x: operator(edges) @ x @ FIRST


def two_layers(edges):
    return lambda x: operator(edges) @ torch.tanh(operator(edges) @ x @ FIRST) @ SECOND


def rng():
    return np.random.default_rng(0)


# Figures


def test_figures_of_five_candidates_by_hand():
    """Of 6 pairs of a positive and a negative 4 are in order: AUC 2/3; the positives have ranks 1 and 4: AP (1 + 2/4)/2."""
    found = outcome([5, 4, 3, 2, 1], [True, False, False, True, False], rng=rng())
    assert found.auc == pytest.approx(4 / 6)
    assert found.average_precision == pytest.approx(0.75)
    assert (found.precision, found.recall, found.predicted) == (0.5, 0.5, 2)
    cut = outcome(
        [5, 4, 3, 2, 1], [True, False, False, True, False], threshold=2, rng=rng()
    )
    assert (cut.precision, cut.recall, cut.predicted) == (0.5, 1.0, 4)
    none = outcome(
        [5, 4, 3, 2, 1], [True, False, False, True, False], predicted=0, rng=rng()
    )
    assert (none.precision, none.recall, none.predicted) == (0.0, 0.0, 0)


def test_ties_are_broken_at_random_and_not_by_the_order_of_the_candidates():
    truth = np.arange(10_000) < 5_000
    found = outcome(np.zeros(10_000), truth, predicted=5_000, rng=rng())
    assert found.auc == 0.5
    assert (
        0.45 < found.precision < 0.55
    )  # 10 standard deviations of a hypergeometric number


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, np.nan], [True, False]), "1 that are not finite"),
        (([1.0, 2.0], [True, True]), "2 of 2 candidates are positive"),
        (([1.0], [True, False]), "2 candidates"),
    ],
)
def test_scores_that_say_nothing_are_refused(arguments, message):
    with pytest.raises(MechanismError, match=message):
        outcome(*arguments, rng=rng())
    with pytest.raises(MechanismError, match="not both"):
        outcome([1.0, 2.0], [True, False], predicted=1, threshold=1.0, rng=rng())
    with pytest.raises(MechanismError, match="predicted = 3"):
        outcome([1.0, 2.0], [True, False], predicted=3, rng=rng())


# Pairs


def test_pairs_and_edges_of_a_path():
    pairs = all_pairs(4)
    assert pairs.T.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert are_edges(pairs, [[1, 1, 2], [0, 2, 1]], nodes=4).tolist() == [
        True,
        False,
        False,
        True,
        False,
        False,
    ]
    assert are_edges([[2], [1]], [[1], [2]], nodes=4).tolist() == [True]
    assert not are_edges(pairs, np.empty((2, 0)), nodes=4).any()


def test_a_balanced_sample_has_as_many_edges_as_other_pairs():
    pairs = sampled_pairs(EDGES, nodes=NODES, size=80, rng=rng())
    assert are_edges(pairs, EDGES, nodes=NODES).tolist() == [True] * 80 + [False] * 80
    assert len(np.unique(pairs, axis=1).T) == 160
    assert (pairs[0] < pairs[1]).all()


def test_more_pairs_than_there_are_are_refused():
    with pytest.raises(MechanismError, match="use at most 1"):
        sampled_pairs([[0, 1], [1, 2]], nodes=3, size=3, rng=rng())
    with pytest.raises(MechanismError, match="ids 0 to 5"):
        are_edges(all_pairs(3), [[0], [5]], nodes=3)


# LinkTeller


def test_influence_of_a_path_by_hand():
    """With S the mean over a node and its neighbours, predict(X) = S X: moving row v moves row u by S_uv x_v."""
    mean = torch.tensor(
        [[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.0, 0.5, 0.5]], dtype=torch.float64
    )
    features = torch.tensor([[3.0, 4.0], [0.0, 2.0], [1.0, 0.0]], dtype=torch.float64)
    expected = [[2.5, 5 / 3, 0.0], [1.0, 2 / 3, 1.0], [0.0, 1 / 3, 0.5]]
    for method in ("differences", "exact"):
        assert influence(lambda x: mean @ x, features, method=method) == pytest.approx(
            np.array(expected), abs=1e-9
        )
    part = influence(lambda x: mean @ x, features, nodes=[2, 1], method="exact")
    assert part == pytest.approx(np.array([[0.5, 1 / 3], [1.0, 2 / 3]]))


def test_differences_tend_to_the_exact_derivative_at_their_first_order():
    exact = influence(two_layers(EDGES), FEATURES, method="exact")
    errors = [
        abs(influence(two_layers(EDGES), FEATURES, step=step) - exact).max()
        for step in (1e-2, 1e-3, 1e-4)
    ]
    assert errors[2] < 1e-3
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.15)
    assert errors[1] / errors[2] == pytest.approx(10, rel=0.15)


@pytest.mark.parametrize("method", ["differences", "exact"])
def test_batches_change_nothing(method):
    alone, together = (
        influence(two_layers(EDGES), FEATURES, method=method, batch=size)
        for size in (1, 17)
    )
    assert together == pytest.approx(alone, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("method", ["differences", "exact"])
def test_one_layer_gives_away_every_edge(method):
    found = link_teller(one_layer(EDGES), FEATURES, EDGES, method=method, rng=rng())
    assert (found.auc, found.average_precision, found.precision, found.recall) == (
        1,
        1,
        1,
        1,
    )
    assert found.predicted == found.positives == EDGES.shape[1]


def test_two_layers_give_away_nearly_all_edges():
    assert 0.9 < link_teller(two_layers(EDGES), FEATURES, EDGES, rng=rng()).auc < 1


@pytest.mark.statistical
def test_another_graphs_model_gives_away_nothing():
    """H0: AUC ½. Its standard deviation is at most 1/√(4 · 170); α < 1e-6 at 5 of them. The graphs are independent."""
    found = link_teller(
        two_layers(OTHER_EDGES), FEATURES, EDGES, method="exact", rng=rng()
    )
    assert abs(found.auc - 0.5) < 5 / np.sqrt(4 * EDGES.shape[1])


def test_a_graph_convolution_of_torch_geometric_is_attacked_like_its_dense_form():
    """The sparse layer as users write it: both methods give the dense layer's influence."""
    conv = pytest.importorskip("torch_geometric.nn").GCNConv(7, 9, bias=False).double()
    both = torch.as_tensor(np.concatenate([EDGES, EDGES[::-1]], axis=1))
    weight = conv.lin.weight.detach().T
    dense = influence(lambda x: operator(EDGES) @ x @ weight, FEATURES, method="exact")
    for method in ("differences", "exact"):
        assert influence(
            lambda x: conv(x, both), FEATURES, method=method
        ) == pytest.approx(dense, abs=1e-8)


def test_link_teller_on_chosen_pairs():
    pairs = sampled_pairs(EDGES, nodes=NODES, size=20, rng=rng())
    found = link_teller(
        one_layer(EDGES), FEATURES, EDGES, pairs=pairs, predicted=10, rng=rng()
    )
    assert (found.candidates, found.auc, found.precision, found.recall) == (
        40,
        1,
        1,
        0.5,
    )


def test_a_model_that_answers_nan_is_refused():
    with pytest.raises(MechanismError, match="not finite"):
        influence(lambda x: x * float("nan"), FEATURES)
    with pytest.raises(MechanismError, match="floating-point features"):
        influence(lambda x: x, torch.ones(3, 2, dtype=torch.int64))
    with pytest.raises(MechanismError, match="method"):
        influence(lambda x: x, FEATURES, method="central")


# Embedding similarity


def test_cosines_by_hand():
    embeddings = torch.tensor([[3.0, 4.0], [4.0, 3.0], [-3.0, -4.0], [0.0, 0.0]])
    assert cosine_similarities(embeddings, all_pairs(4)) == pytest.approx(
        [0.96, -1, 0, -0.96, 0, 0]
    )


def test_cliques_with_a_direction_each_are_found():
    """The pairs inside cliques are the edges; every clique has a direction of its own, so the attack finds all of them."""
    group = np.arange(NODES) // 6
    pairs = all_pairs(NODES)
    edges = pairs[:, group[pairs[0]] == group[pairs[1]]]
    embeddings = torch.as_tensor(np.eye(10)[group] * RNG.uniform(1, 2, (NODES, 1)))
    found = embedding_similarity(embeddings, edges, rng=rng())
    assert (found.auc, found.precision, found.recall) == (1, 1, 1)
    twice = embedding_similarity(
        embeddings, edges, predicted=2 * edges.shape[1], rng=rng()
    )
    assert (twice.precision, twice.recall) == (0.5, 1)


@pytest.mark.statistical
def test_embeddings_of_noise_give_away_nothing():
    """As for LinkTeller: α < 1e-6 at 5 standard deviations of at most 1/√(4 · edges)."""
    found = embedding_similarity(
        torch.as_tensor(RNG.normal(size=(NODES, 8))), EDGES, rng=rng()
    )
    assert abs(found.auc - 0.5) < 5 / np.sqrt(4 * EDGES.shape[1])


# Membership


def planted(leak, nodes=400):
    """Logits that give a member's own class ``leak`` more, beside noise; the labels; who is a member."""
    generator = np.random.default_rng(8)
    labels, members = generator.integers(3, size=nodes), generator.random(nodes) < 0.5
    logits = generator.normal(size=(nodes, 3))
    logits[np.arange(nodes), labels] += leak * members
    return torch.as_tensor(logits), labels, members


def test_scores_of_one_node_by_hand():
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64))
    scores = {
        s: membership_scores(logits, [1], score=s)[0]
        for s in ("label", "largest", "entropy", "modified entropy")
    }
    assert scores["label"] == pytest.approx(0.3)
    assert scores["largest"] == pytest.approx(0.5)
    assert scores["entropy"] == pytest.approx(
        0.5 * np.log(0.5) + 0.3 * np.log(0.3) + 0.2 * np.log(0.2)
    )
    assert scores["modified entropy"] == pytest.approx(
        0.7 * np.log(0.3) + 0.5 * np.log(0.5) + 0.2 * np.log(0.8)
    )


@pytest.mark.parametrize("score", ["label", "largest", "entropy", "modified entropy"])
def test_a_model_that_is_sure_of_its_members_gives_all_of_them_away(score):
    logits, labels, members = planted(60)
    found = membership(
        lambda x: logits, logits, labels=labels, members=members, score=score, rng=rng()
    )
    assert (found.auc, found.precision, found.recall) == (1, 1, 1)


def test_a_threshold_separates_planted_members():
    logits, labels, members = planted(60)
    found = membership(
        lambda x: logits,
        logits,
        labels=labels,
        members=members,
        threshold=1 - 1e-9,
        rng=rng(),
    )
    assert (found.predicted, found.precision, found.recall) == (members.sum(), 1, 1)
    some = np.arange(len(members)) < 100
    assert (
        membership(
            lambda x: logits,
            logits,
            labels=labels,
            members=members,
            candidates=some,
            rng=rng(),
        ).candidates
        == 100
    )


def test_an_attacker_who_knows_some_members_finds_the_others():
    logits, labels, members = planted(60)
    known = np.arange(len(members)) < 100
    found = known_member_attack(
        lambda x: logits, logits, labels=labels, members=members, known=known, rng=rng()
    )
    assert (found.candidates, found.auc, found.recall) == (300, 1, 1)
    assert (
        found.precision > 0.95
    )  # the fitted half may lie beside the gap between the kinds


@pytest.mark.statistical
def test_a_model_that_treats_members_alike_gives_nobody_away():
    """H0: AUC ½, with standard deviation about 1/√(12 · 75); α < 1e-6 at 5 of them, four times."""
    logits, labels, members = planted(0)
    known = np.arange(len(members)) < 100
    trained = known_member_attack(
        lambda x: logits, logits, labels=labels, members=members, known=known, rng=rng()
    )
    plain = membership(
        lambda x: logits, logits, labels=labels, members=members, rng=rng()
    )
    assert abs(trained.auc - 0.5) < 5 / np.sqrt(12 * 75)
    assert abs(plain.auc - 0.5) < 5 / np.sqrt(12 * 75)


def test_membership_refuses_what_it_cannot_score():
    logits, labels, members = planted(0)
    with pytest.raises(MechanismError, match="leave out the nodes without one"):
        membership_scores(logits, np.full(len(labels), -1))
    with pytest.raises(MechanismError, match="expected score"):
        membership_scores(logits, labels, score="loss")
    with pytest.raises(MechanismError, match="name some of both"):
        known_member_attack(
            lambda x: logits,
            logits,
            labels=labels,
            members=members,
            known=members,
            rng=rng(),
        )


# Inversion


def generator():
    return torch.Generator().manual_seed(3)


def test_an_invertible_representation_gives_the_features_back():
    """Seven features through an injective map to nine; S is invertible, and tanh is."""
    mixing = torch.eye(NODES, dtype=torch.float64) + 0.1 * operator(EDGES)
    found = feature_inversion(
        lambda x: torch.tanh(mixing @ x @ FIRST / 3),
        FEATURES,
        generator=generator(),
        steps=800,
    )
    assert found.mismatch < 1e-3
    assert found.error < 0.02
    assert found.cosine > 0.99


def test_a_bit_of_each_feature_is_read_off_an_inversion():
    bits = (FEATURES > 0.5).double()
    found = feature_inversion(
        lambda x: x @ FIRST, bits, generator=generator(), steps=400
    )
    assert outcome(found.features.numpy(), bits.numpy(), rng=rng()).auc == 1


@pytest.mark.statistical
def test_what_is_seen_of_other_nodes_tells_nothing():
    """The features are uniform and independent of what is seen: AUC ½, α < 1e-6 at 5 of 1/√(12·200) and a little."""
    other = torch.as_tensor(np.random.default_rng(77).random((NODES, 7))) @ FIRST
    found = feature_inversion(
        lambda x: x @ FIRST, FEATURES, observed=other, generator=generator(), steps=400
    )
    assert found.error > 1.2
    assert abs(
        outcome(found.features.numpy(), (FEATURES > 0.5).numpy(), rng=rng()).auc - 0.5
    ) < 5 / np.sqrt(12 * 200)


def test_inversion_leaves_the_models_gradients_alone_and_is_the_same_for_a_seed():
    layer = torch.nn.Linear(7, 5).double()
    first, second = (
        feature_inversion(layer, FEATURES, generator=generator(), steps=5)
        for _ in range(2)
    )
    assert torch.equal(first.features, second.features)
    assert layer.weight.grad is None


def test_inversion_refuses_what_cannot_be_searched():
    with pytest.raises(MechanismError, match="low < high"):
        feature_inversion(
            lambda x: x, FEATURES, generator=generator(), bounds=(1.0, 1.0)
        )
    with pytest.raises(MechanismError, match="the loss is nan"):
        feature_inversion(lambda x: x * float("nan"), FEATURES, generator=generator())
    with pytest.raises(MechanismError, match="the same features"):
        feature_inversion(lambda x: x, torch.ones(4, 2), generator=generator(), steps=1)
