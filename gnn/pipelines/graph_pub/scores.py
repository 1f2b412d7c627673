"""Z, whose products are the scores L by which GraphPub selects: M, reverse learning of A_s, and the encoder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional
from torch_geometric.data import Data

from gnn.datasets.splits import Split
from gnn.pipelines.graph_pub.constructors import (
    CONSTRUCTORS,
    Constructor,
    Features,
    constructor,
)
from gnn.pipelines.graph_pub.weights import (
    EdgeWeights,
    FixedWeights,
    LearnedWeights,
    ListedEdges,
)
from gnn.randomness import deterministic, device_of
from gnn.reverse_learning import ReverseLearning
from gnn.training import accuracy, last
from gnn.training.checks import check_data
from gnn.training.loop import check_finite, run_epochs
from gnn.validation import check_choice, check_count, check_number, check_positive

ENCODED = ("learned", "private")
LABELS = ("all", "training", "training and validation")


@dataclass(frozen=True)
class ScoreSettings:
    """The computation of Z.

    Args:
        constructor: The network of M and of the encoder, one of ``CONSTRUCTORS``.
        encode: The graph that the encoder is trained on: A_s "learned" from M, or the "private" A, the ablation without
            reverse learning.
        labels: Whose labels A_s is learned from: "all", as the source's Equation 6 sums over all nodes, or those of
            "training" nodes, or of these and those of validation. M and the encoder have those of training nodes.
        edges: Whether M is trained on the private edges. Without them nothing private is used, beside ``encode`` "learned".
        reverse: How A_s is learned.
        epochs: Of M and of the encoder.
        learning_rate: Of Adam.
        weight_decay: Of both networks.

    Raises:
        ConfigurationError: If a setting is outside its range.
    """

    constructor: Literal["GCN", "GAT", "GraphSAGE"] = "GCN"
    encode: Literal["learned", "private"] = "learned"
    labels: Literal["all", "training", "training and validation"] = "all"
    edges: bool = True
    reverse: ReverseLearning = field(default_factory=lambda: ReverseLearning(steps=100))
    epochs: int = 200
    learning_rate: float = 0.01
    weight_decay: float = 5e-4

    def __post_init__(self) -> None:
        owner = "ScoreSettings"
        check_choice(owner, "constructor", self.constructor, CONSTRUCTORS)
        check_choice(owner, "encode", self.encode, ENCODED)
        check_choice(owner, "labels", self.labels, LABELS)
        check_count(owner, "epochs", self.epochs)
        check_positive(owner, "learning_rate", self.learning_rate)
        check_number(owner, "weight_decay", self.weight_decay)


def embedding(
    data: Data,
    settings: ScoreSettings | None = None,
    *,
    split: Split,
    generator: torch.Generator,
    device: str | torch.device = "cpu",
) -> Tensor:
    """Return Z, float32 on the CPU, shape (nodes, hidden); L = sigmoid(ZZᵀ) is ``mechanisms.edges.graph_pub.score_matrix``.

    M is trained on the private graph; A_s is learned by projected gradient descent such that M predicts on it what it
    predicts on the private graph, and the labels; the encoder is trained on A_s, and Z is its hidden layer.

    Source: Xu et al. (2024), arXiv:2403.00030v2, Sections 3.3 and 3.4.

    Note:
        ``gnn.graph_pub.TrainedScores`` is the same for batches of small graphs, as audits need them. The source states
        neither the steps of reverse learning nor the training of M.

    Args:
        data: The private graph with ``x``, ``y`` and ``edge_index``.
        settings: ``ScoreSettings()`` by default.
        split: Training nodes of M and of the encoder.
        generator: The randomness of initial weights, on the CPU.
        device: Where to compute.

    Raises:
        ConfigurationError: If the device does not exist.
        DataError: If there is nothing to train on.
        TrainingError: If a loss is no number.
    """
    settings = settings or ScoreSettings()
    check_data(data, split)
    place = device_of(device)
    x, labels, nodes = (
        Features(data.x.to(place)),
        data.y.to(place),
        int(data.num_nodes or 0),
    )
    classes = int(labels.max()) + 1
    training = split.training.to(place)
    arcs = data.edge_index if settings.edges else data.edge_index[:, :0]
    private = ListedEdges(arcs.to(place), nodes)

    def trained(edges: EdgeWeights) -> Constructor:
        model = constructor(
            settings.constructor, x.x.shape[1], classes, generator=generator
        ).to(place)
        _train(model, edges, x, labels, training, settings)
        return model.requires_grad_(False)

    with deterministic(place):
        edges: EdgeWeights = private
        if settings.encode == "learned":
            model = trained(private)
            known = {
                "all": (labels >= 0).nonzero().squeeze(1),
                "training": training,
                "training and validation": torch.cat(
                    [training, split.validation.to(place)]
                ),
            }[settings.labels]
            targets = torch.full_like(labels, -1)
            targets[known] = labels[known]
            predictions = model(private, x).argmax(dim=1)
            edges = FixedWeights(
                learned_adjacency(settings.reverse, model, x, predictions, targets)
            )
        return trained(edges).hidden(edges, x).cpu()


def learned_adjacency(
    reverse: ReverseLearning,
    model: Constructor,
    x: Features,
    predictions: Tensor,
    labels: Tensor,
) -> Tensor:
    """Return A_s, float32, shape (nodes, nodes), as of ``ReverseLearning.learned``, for one model of any constructor.

    Args:
        reverse: Steps, step size and weights.
        model: M, whose weights need no gradient.
        x: X.
        predictions: M's classes on the private graph, shape (nodes,).
        labels: Classes, shape (nodes,); -1 where there is none.
    """
    nodes = len(labels)
    adjacency = torch.zeros(nodes, nodes, device=labels.device)
    for step in range(reverse.steps):
        edges = LearnedWeights(adjacency)
        logits = model(edges, x)
        loss = reverse.alpha * functional.cross_entropy(logits, predictions)
        loss = loss + (1 - reverse.alpha) * functional.cross_entropy(
            logits, labels, ignore_index=-1
        )
        check_finite(
            loss.item(), f"loss of step {step + 1} of reverse learning", reverse.eta
        )
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            _descend(adjacency, edges, reverse)
    return adjacency


def _descend(
    adjacency: Tensor, edges: LearnedWeights, reverse: ReverseLearning
) -> None:
    """Take a projected step in place.

    The projection takes the mean with the transpose; A_s is symmetric already, so here that of the gradient is taken.
    """
    norm = float(torch.linalg.matrix_norm(adjacency))
    kept = 1 - reverse.eta * reverse.beta / norm if norm else 1.0
    left, right = edges.columns
    both, mirrored = torch.cat([left, right], dim=1), torch.cat([right, left], dim=1)
    adjacency.addmm_(both, mirrored.t(), beta=kept, alpha=-reverse.eta / 2)
    if edges.dense.grad is not None:
        adjacency.sub_(edges.dense.grad + edges.dense.grad.t(), alpha=reverse.eta / 2)
    adjacency.clamp_(0, 1).fill_diagonal_(0)


def _train(
    model: Constructor,
    edges: EdgeWeights,
    x: Features,
    labels: Tensor,
    nodes: Tensor,
    settings: ScoreSettings,
) -> None:
    optimiser = torch.optim.Adam(
        model.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
    )

    def epoch(number: int) -> tuple[float, float]:
        logits = model(edges, x)[nodes]
        loss = functional.cross_entropy(logits, labels[nodes])
        check_finite(
            loss.item(), f"training loss of epoch {number}", settings.learning_rate
        )
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        return loss.item(), accuracy(logits.detach(), labels[nodes])

    run_epochs(
        model,
        epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        patience=None,
        train=epoch,
        assess=None,
        better=last,
        after=lambda _: None,
        device=labels.device,
    )
