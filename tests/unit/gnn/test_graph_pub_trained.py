"""Reverse learning, L of the whole pipeline, the trained mechanism, and what L alone gives away."""

import math

import numpy as np
import pytest
import torch

from auditdp.errors import MechanismError
from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.independence import check_batch
from gnn.gcn import GCN
from gnn.graph_pub import GraphPubTrained, TrainedScores
from gnn.layers import propagation
from gnn.reverse_learning import ReverseLearning, projected
from mechanisms.edges.graph_pub import GraphPub, linear_scores, score_matrix

RNG = np.random.default_rng
QUICK = ReverseLearning(steps=10)


def circle(nodes):
    angles = np.arange(nodes)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def quick(nodes, **arguments):
    arguments = {"reverse": QUICK, "epochs": 10} | arguments
    return TrainedScores(circle(nodes), np.arange(nodes) % 2, **arguments)


def communities(nodes=16):
    """Two cliques of equally many nodes, joined by one edge; features are the identity."""
    labels = np.arange(nodes) * 2 // nodes
    matrix = (labels[:, None] == labels).astype(np.int8) - np.eye(nodes, dtype=np.int8)
    matrix[nodes // 2 - 1, nodes // 2] = matrix[nodes // 2, nodes // 2 - 1] = 1
    return matrix, np.eye(nodes), labels


def model_of_communities(size=3, device="cpu"):
    """M with random weights on the communities, its predictions, and the arguments of reverse learning."""
    matrix, features, labels = (
        torch.as_tensor(each, device=device) for each in communities()
    )
    generator = torch.Generator().manual_seed(0)
    model = GCN.initial(
        size, features=features, hidden=8, classes=2, generator=generator
    )
    model = model.fitted(
        propagation(matrix.double()), features, labels, epochs=30, learning_rate=0.01
    )
    predictions = model.logits(propagation(matrix.double()), features).argmax(dim=-1)
    return model, features, predictions, labels


def fives(chosen, edge):
    """Five nodes: the chosen edges among nodes 2, 3 and 4, and edge 01 or not."""
    matrix = np.zeros((5, 5), np.int8)
    for i, j in (*chosen, *([(0, 1)] if edge else [])):
        matrix[i, j] = matrix[j, i] = 1
    return matrix


TRIANGLE = ((2, 3), (2, 4), (3, 4))
PATHS = [tuple(edge for edge in TRIANGLE if edge != left_out) for left_out in TRIANGLE]


def test_projection_is_the_nearest_such_matrix():
    """No matrix of a dense grid of such matrices is nearer: for two nodes they have one free entry."""
    for seed in range(20):
        matrix = torch.as_tensor(RNG(seed).normal(0.5, 1, size=(2, 2)))
        found = projected(matrix)
        grid = torch.linspace(0, 1, 1001, dtype=torch.float64)
        distances = (grid - matrix[0, 1]) ** 2 + (grid - matrix[1, 0]) ** 2
        assert found[0, 1] == found[1, 0]
        assert abs(found[0, 1] - grid[distances.argmin()]) <= 0.5e-3 + 1e-12
        assert (found.diagonal() == 0).all()


def test_projection_of_a_batch_by_hand():
    matrix = torch.tensor(
        [[[5.0, 0.2], [0.6, -1.0]], [[0.0, -3.0], [1.0, 0.0]], [[0.0, 9.0], [1.0, 0.0]]]
    )
    expected = torch.tensor(
        [[[0.0, 0.4], [0.4, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]]
    )
    torch.testing.assert_close(projected(matrix), expected)


def test_gradient_descent_lowers_its_objective_within_the_constraints():
    arguments = model_of_communities()
    before = None
    for steps in (0, 1, 10, 100):
        reverse = ReverseLearning(steps=steps)
        adjacency = reverse.learned(*arguments)
        objective = reverse.objective(adjacency, *arguments)
        assert adjacency.shape == (3, 16, 16)
        assert ((adjacency >= 0) & (adjacency <= 1)).all()
        assert (adjacency == adjacency.mT).all()
        assert (adjacency.diagonal(dim1=1, dim2=2) == 0).all()
        assert before is None or (objective < before).all()
        before = objective
    assert (adjacency > 0).any(dim=(1, 2)).all()


def test_the_objective_by_hand():
    """Weights 0 make every class equally likely: ln 2, and β‖A_s‖_F = .1·√2 for one edge of weight 1."""
    features, labels = torch.eye(2, dtype=torch.float64), torch.tensor([0, 1])
    model = GCN(
        torch.zeros(1, 2, 3, dtype=torch.float64),
        torch.zeros(1, 3, 2, dtype=torch.float64),
    )
    edge = 1 - torch.eye(2, dtype=torch.float64)[None]
    objective = ReverseLearning(beta=0.1).objective(
        edge, model, features, labels[None], labels
    )
    assert objective.item() == pytest.approx(math.log(2) + 0.1 * math.sqrt(2))


def test_alpha_weighs_predictions_against_labels():
    """An affine function of α: its ends are the cross-entropies with the predictions, here all wrong, and the labels."""
    model, features, _, labels = model_of_communities()
    flat = torch.zeros(3, 16, 16, dtype=torch.float64)
    wrong = (1 - labels).expand(3, 16)
    values = {
        a: ReverseLearning(alpha=a).objective(flat, model, features, wrong, labels)
        for a in (0.0, 0.25, 1.0)
    }
    torch.testing.assert_close(values[0.25], 0.25 * values[1.0] + 0.75 * values[0.0])
    torch.testing.assert_close(
        values[0.0],
        ReverseLearning().objective(
            flat, model, features, labels.expand(3, 16), labels
        ),
    )
    assert (values[1.0] > values[0.0]).all()


def test_one_step_follows_the_gradient():
    """The first step from 0, against differences of the objective: A_s = projection of −η times the gradient."""
    arguments = model_of_communities(size=1)
    reverse = ReverseLearning(steps=1, eta=1e-3)
    learned = reverse.learned(*arguments)[0]
    i, j = np.unravel_index(learned.argmax().item(), learned.shape)
    step = torch.zeros(1, 16, 16, dtype=torch.float64)
    step[0, i, j] = step[0, j, i] = h = 1e-5
    change = reverse.objective(step, *arguments) - reverse.objective(
        torch.zeros_like(step), *arguments
    )
    slope = (
        change.item() - reverse.beta * h * math.sqrt(2)
    ) / h  # the norm has subgradient 0 at 0
    assert learned[i, j].item() == pytest.approx(-reverse.eta * slope / 2, rel=1e-3)


def test_scores_tell_communities_apart():
    """L is symmetric, in [1/2, 1], and larger inside the communities than across, whichever graph is encoded."""
    matrix, features, labels = communities()
    same = labels[:, None] == labels
    for encode in ("learned", "private"):
        scores = TrainedScores(features, labels, encode=encode, epochs=60)(
            matrix, 2, rng=RNG(0)
        )
        assert scores.shape == (2, 16, 16)
        np.testing.assert_array_equal(scores, scores.transpose(0, 2, 1))
        assert scores.min() >= 0.5
        assert scores.max() <= 1
        assert (
            scores[:, same].mean(axis=1) > scores[:, ~same].mean(axis=1) + 0.05
        ).all()


def test_published_graph_joins_communities_inside():
    """Of those shown as others, at ε = .1, three quarters are of the own community; 7 of 15 would be chance."""
    matrix, features, labels = communities()
    upper = np.triu_indices(16, 1)
    sparse = matrix * (RNG(0).random((16, 16)) < 0.3)
    sparse = np.maximum(sparse, sparse.T)
    scores = TrainedScores(features, labels, epochs=60).with_seed(0)
    published = GraphPub(0.1, 16, scores, union=True)(sparse, 1, rng=RNG(0))[0].astype(
        bool
    )
    added = published & (sparse[upper] == 0)
    assert added.sum() >= 20
    assert (labels[upper[0]] == labels[upper[1]])[added].mean() > 0.75


def test_a_seed_makes_l_a_function_of_the_graph():
    scores, graph = quick(5).with_seed(7), fives(TRIANGLE, True)
    np.testing.assert_array_equal(scores(graph), scores(graph))
    assert (scores(graph) != quick(5).with_seed(8)(graph)).any()
    assert (scores(graph) != scores(fives(TRIANGLE, False))).any()


def test_l_is_sigmoid_of_the_hidden_layer():
    """Without training of either network or A_s the encoder is a random layer on no edges, Z = ReLU(XW₁)."""
    training = quick(5, epochs=0, reverse=ReverseLearning(steps=0))
    embedding = training.embeddings(
        fives(TRIANGLE, True), 1, generator=torch.Generator().manual_seed(3)
    )
    generator = torch.Generator().manual_seed(3)
    features = torch.as_tensor(circle(5))
    for _ in ("M", "encoder"):
        drawn = GCN.initial(
            1, features=features, hidden=16, classes=2, generator=generator
        )
    torch.testing.assert_close(embedding, (features @ drawn.first).relu())
    seed = int(RNG(3).integers(2**63))
    embedding = training.embeddings(
        fives((), False), 1, generator=torch.Generator().manual_seed(seed)
    )[0].numpy()
    np.testing.assert_allclose(
        training.with_seed(3)(fives((), False)), score_matrix(embedding)
    )


def test_the_pipeline_is_its_steps():
    """M on A, its predictions on A, A_s from them and the labels, the encoder on A_s; half of the nodes are unlabelled."""
    matrix, features, labels = communities()
    labels = np.where(np.arange(16) % 2 == 0, labels, -1)
    training = TrainedScores(
        features, labels, epochs=20, reverse=ReverseLearning(steps=20, eta=5.0)
    )
    found = training.embeddings(matrix, 2, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(0)
    features, labels, private = (
        torch.as_tensor(features),
        torch.as_tensor(labels),
        torch.as_tensor(matrix).double(),
    )
    model, encoder = (
        GCN.initial(2, features=features, hidden=16, classes=2, generator=generator)
        for _ in ("M", "encoder")
    )
    steps = {"epochs": 20, "learning_rate": 0.01}
    model = model.fitted(propagation(private), features, labels, **steps)
    predictions = model.logits(propagation(private), features).argmax(dim=-1)
    operator = propagation(
        ReverseLearning(steps=20, eta=5.0).learned(model, features, predictions, labels)
    )
    torch.testing.assert_close(
        found,
        encoder.fitted(operator, features, labels, **steps).hidden(operator, features),
    )


def test_without_training_the_ablation_is_the_untrained_layer():
    """The encoder on A with 0 epochs: Z = ReLU(D^-½(A+I)D^-½ X W₁); with XW₁ >= 0 that is ``linear_scores`` of XW₁."""
    training = quick(5, epochs=0, encode="private")
    graph = fives(PATHS[0], True)
    generator = torch.Generator().manual_seed(int(RNG(4).integers(2**63)))
    drawn = GCN.initial(
        1,
        features=torch.as_tensor(circle(5)),
        hidden=16,
        classes=2,
        generator=generator,
    )
    positive = (circle(5) @ drawn.first[0].numpy()).clip(0)
    spread = propagation(torch.as_tensor(graph).double()).numpy()
    expected = score_matrix((spread @ circle(5) @ drawn.first[0].numpy()).clip(0))
    np.testing.assert_allclose(training.with_seed(4)(graph), expected)
    np.testing.assert_allclose(
        linear_scores(positive)(graph), score_matrix(spread @ positive)
    )


@pytest.mark.parametrize(
    "arguments", [{}, {"rounding": "floor"}, {"degree_epsilon": 0.5}]
)
def test_runs_share_nothing_and_agree_with_the_selection(arguments):
    """Each run is one of the lists that the selection publishes by the L of its own training."""
    training, graph = quick(5), fives(TRIANGLE, True)
    mechanism = GraphPubTrained(1.0, training, **arguments)
    outputs = mechanism(graph, 12, rng=RNG(0))
    assert outputs.shape == (12, 20)
    assert outputs.dtype == np.int8
    check_batch(Calls(mechanism), graph, RNG(1), size=16)
    for scores, output in zip(training(graph, 12, rng=RNG(0)), outputs, strict=True):
        law = GraphPub(1.0, 5, scores, **arguments).distribution(graph)
        assert (law.outcomes == output).all(axis=1).any()
    assert len(np.unique(outputs, axis=0)) > 1


def test_the_name_tells_the_readings():
    name = GraphPubTrained(1.0, quick(3), rounding="floor", degree_epsilon=0.5).name
    assert (
        name
        == "GraphPubTrained(epsilon=1, nodes=3, degree_epsilon=0.5, floor, largest)"
    )


@pytest.mark.parametrize("chosen", [TRIANGLE, *PATHS])
def test_a_public_l_keeps_what_a_trained_one_gives_away(chosen):
    """Edge 01 is never published, E₁(1) and E₂(1) being below 1: no public L changes anything, whatever its order."""
    for seed in range(10):
        mechanism = GraphPub(1.0, 5, RNG(seed).random((5, 5)), rounding="floor")
        laws = [mechanism.distribution(fives(chosen, edge)) for edge in (True, False)]
        assert pair_loss(*laws).upper == 0


def test_a_trained_l_tells_of_an_edge_elsewhere():
    """Of 12 public seeds some train another order of nodes 2, 3 and 4 if 01 is an edge, and then the loss is infinite."""
    training = quick(5, epochs=100, reverse=ReverseLearning(steps=50))
    outputs = []
    for edge in (True, False):
        scores = training(fives(TRIANGLE, edge), 12, rng=RNG(0))
        published = [GraphPub(1.0, 5, each, rounding="floor") for each in scores]
        outputs.append(
            np.concatenate(
                [each(fives(TRIANGLE, edge), 1, rng=RNG(0)) for each in published]
            )
        )
    assert (outputs[0].sum(axis=1) == 3).all()
    assert (outputs[0] != outputs[1]).any(axis=1).sum() >= 3


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_learns_what_the_cpu_learns():
    reverse = ReverseLearning(steps=50)
    learned = {
        device: reverse.learned(*model_of_communities(device=device)).cpu()
        for device in ("cpu", "cuda")
    }
    torch.testing.assert_close(learned["cuda"], learned["cpu"], rtol=0, atol=1e-4)
    assert learned["cpu"].max() > 1e-3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: TrainedScores(np.ones(3), np.arange(3)),
            r"features of shape \(nodes, k\), got float64 of shape \(3,\)",
        ),
        (
            lambda: TrainedScores(np.ones((3, 1), int), np.arange(3)),
            r"floating-point features .*, got int64",
        ),
        (
            lambda: TrainedScores(np.full((3, 1), np.nan), np.arange(3)),
            r"expected finite floating-point features",
        ),
        (
            lambda: TrainedScores(circle(3), np.arange(2)),
            r"expected 3 labels, .* of shape \(2,\)",
        ),
        (
            lambda: TrainedScores(circle(3), np.array([0, 1, -2])),
            r"integers >= 0 or -1 where there is none",
        ),
        (
            lambda: TrainedScores(circle(3), np.array([0, 0, -1])),
            r"two classes or more",
        ),
        (lambda: quick(3, encode="both"), r"'learned' or 'private', got 'both'"),
        (lambda: quick(3, hidden=0), r"expected hidden, an integer >= 1, got 0"),
        (lambda: quick(3, epochs=-1), r"expected epochs, an integer >= 0, got -1"),
        (
            lambda: quick(3, learning_rate=0.0),
            r"expected learning_rate, a finite number > 0",
        ),
        (lambda: ReverseLearning(steps=-1), r"expected steps, an integer >= 0, got -1"),
        (
            lambda: ReverseLearning(alpha=1.5),
            r"expected alpha in \[0, 1\] and beta >= 0, got 1\.5 and 0\.0001",
        ),
        (lambda: ReverseLearning(eta=0.0), r"expected eta, a finite number > 0"),
        (
            lambda: quick(3)(np.zeros((4, 4)), 1, rng=RNG(0)),
            r"adjacency matrix of shape \(3, 3\), got \(4, 4\)",
        ),
        (
            lambda: GraphPubTrained(0.0, quick(3)),
            r"expected epsilon, a finite number > 0",
        ),
        (
            lambda: GraphPubTrained(1.0, quick(3), rounding="up"),
            r"expected rounding to be one of .*, got 'up'",
        ),
    ],
)
def test_errors_show_the_value_and_the_remedy(make, message):
    with pytest.raises(MechanismError, match=message):
        make()
