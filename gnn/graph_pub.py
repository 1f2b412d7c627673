"""GraphPub as published: train, learn A_s, encode, and select by L."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array
from gnn.gcn import GCN, UNLABELLED
from gnn.layers import propagation
from gnn.reverse_learning import ReverseLearning
from mechanisms.cells import Rng
from mechanisms.edges.graph_pub import GraphPub, Scores, score_matrix
from mechanisms.validation import bit_matrix, check_integer, check_positive

KEPT = 4096
"""Graphs whose L with a public seed is kept: an audit asks for the same few again in every batch."""


@dataclass(frozen=True)
class TrainedScores:
    """L = sigmoid(ZZᵀ), Z the hidden layer of a GCN trained on (A_s, X), A_s learned from a GCN M trained on (A, X).

    Features and labels are public here; the adjacency matrix A is private, and M, A_s and L all depend on it.

    Source: Xu et al. (2024), arXiv:2403.00030; with ``encode="private"`` its ablation without A_s.

    Note:
        Both networks are those of Kipf & Welling (2017), without dropout and weight decay, and Z is taken after the ReLU:
        none of this follows from the formulas above.

    Args:
        features: X, finite, shape (nodes, k); torch computes in this type.
        labels: Classes 0, 1, ..., shape (nodes,); -1 where there is none.
        encode: The graph that the encoder is trained on: A_s "learned" from M, or the "private" A.
        reverse: How A_s is learned.
        hidden: Units of the hidden layer.
        epochs: Steps of Adam for each network.
        learning_rate: Adam's.
        device: Where torch computes, such as "cpu" or "cuda"; initial weights are the same everywhere.

    Raises:
        MechanismError: If an argument is none of these.
    """

    features: Any = field(repr=False)
    labels: Any = field(repr=False)
    encode: Literal["learned", "private"] = "learned"
    reverse: ReverseLearning = field(default_factory=ReverseLearning)
    hidden: int = 16
    epochs: int = 200
    learning_rate: float = 0.01
    device: str = "cpu"

    def __post_init__(self) -> None:
        features, labels = np.asarray(self.features), np.asarray(self.labels)
        if (
            features.ndim != 2
            or features.dtype.kind != "f"
            or not np.isfinite(features).all()
        ):
            raise MechanismError(
                f"TrainedScores: expected finite floating-point features of shape (nodes, k), got {features.dtype} of "
                f"shape {features.shape}"
            )
        if (
            labels.shape != (len(features),)
            or labels.dtype.kind not in "iu"
            or (labels < UNLABELLED).any()
        ):
            raise MechanismError(
                f"TrainedScores: expected {len(features)} labels, integers >= 0 or -1 where there is none, got "
                f"{labels.dtype} of shape {labels.shape}"
            )
        if len(np.unique(labels[labels != UNLABELLED])) < 2:
            raise MechanismError(
                "TrainedScores: expected labels of two classes or more; else there is nothing to learn"
            )
        if self.encode not in ("learned", "private"):
            raise MechanismError(
                f"TrainedScores: expected encode, 'learned' or 'private', got {self.encode!r}"
            )
        check_integer("TrainedScores", "hidden", self.hidden, 1)
        check_integer("TrainedScores", "epochs", self.epochs, 0)
        check_positive("TrainedScores", "learning_rate", self.learning_rate)

    @property
    def nodes(self) -> int:
        """Number of nodes N."""
        return len(self.features)

    def embeddings(
        self, data: Array, size: int, *, generator: torch.Generator
    ) -> Tensor:
        """Return Z of ``size`` independent trainings on one private graph, shape (size, nodes, hidden).

        Args:
            data: Private adjacency matrix A, symmetric, shape (nodes, nodes).
            size: Number of trainings; they run together, each with its own weights.
            generator: The randomness of all initial weights, on the CPU.

        Raises:
            MechanismError: If A is not such a matrix.
        """
        features = torch.as_tensor(np.asarray(self.features), device=self.device)
        labels = torch.as_tensor(np.asarray(self.labels, np.int64), device=self.device)
        private = torch.as_tensor(
            bit_matrix("TrainedScores", data, self.nodes), device=self.device
        ).to(features.dtype)

        def trained(operator: Tensor) -> GCN:
            classes = int(labels.max()) + 1
            start = GCN.initial(
                size,
                features=features,
                hidden=self.hidden,
                classes=classes,
                generator=generator,
            )
            return start.fitted(
                operator,
                features,
                labels,
                epochs=self.epochs,
                learning_rate=self.learning_rate,
            )

        operator = propagation(private)
        if self.encode == "learned":
            model = trained(operator)
            predictions = model.logits(operator, features).argmax(dim=-1)
            operator = propagation(
                self.reverse.learned(model, features, predictions, labels)
            )
        return trained(operator).hidden(operator, features)

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return L of ``size`` independent trainings on one private graph, float64, shape (size, nodes, nodes)."""
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        embeddings = (
            self.embeddings(data, size, generator=generator)
            .cpu()
            .numpy()
            .astype(np.float64)
        )
        return np.stack([score_matrix(embedding) for embedding in embeddings])

    def with_seed(self, seed: int) -> Scores:
        """Return L as a function of the private graph: the training with this public seed, the same in every run."""

        @lru_cache(maxsize=KEPT)
        def trained(matrix: bytes) -> Array:
            data = np.frombuffer(matrix, np.int8).reshape(self.nodes, self.nodes)
            found: Array = self(data, 1, rng=np.random.default_rng(seed))[0]
            found.setflags(write=False)
            return found

        def scores(matrix: Array) -> Array:
            return trained(bit_matrix("TrainedScores", matrix, self.nodes).tobytes())

        return scores


@dataclass(frozen=True)
class GraphPubTrained:
    """GraphPub's selection by an L that is trained on the private graph, anew in every run.

    Input: symmetric matrix, shape (nodes, nodes). Output: the published lists, as of ``GraphPub``. For trainings with a
    public seed, which make L a function of the graph and the law exact, give ``training.with_seed(seed)`` to ``GraphPub``.

    Claimed: ε-edge DP; with noisy degrees (Section 3.6) (ε₁+ε₂)-edge DP. False, as of ``GraphPub``.

    Source: Xu et al. (2024), arXiv:2403.00030.

    Args:
        epsilon: ε, or ε₂ with noisy degrees, in nats, finite and > 0.
        training: How L is trained, with the public features and labels.
        rounding: How counts are rounded, as of ``GraphPub``.
        degree_epsilon: ε₁ of the noisy degrees; the true degrees are used by default.
    """

    epsilon: float
    training: TrainedScores = field(repr=False)
    rounding: Literal["round", "floor", "random"] = "round"
    degree_epsilon: float | None = None

    def __post_init__(self) -> None:
        self._selection(np.zeros((self.training.nodes,) * 2))

    @property
    def name(self) -> str:
        """The mechanism, its budget, and the readings."""
        return self._selection(np.zeros((self.training.nodes,) * 2)).name.replace(
            "GraphPub", "GraphPubTrained"
        )

    def _selection(self, scores: Array) -> GraphPub:
        return GraphPub(
            self.epsilon,
            self.training.nodes,
            scores,
            rounding=self.rounding,
            degree_epsilon=self.degree_epsilon,
        )

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent releases, each by an L of its own, int8."""
        scores = self.training(data, size, rng=rng)
        # The selection reads the order of the scores in each row and nothing else, and few nodes have few orders.
        ranks = (-scores).argsort(axis=-1, kind="stable").argsort(axis=-1)
        orders, order_of = np.unique(ranks, axis=0, return_inverse=True)
        outputs = np.empty(
            (size, self.training.nodes * (self.training.nodes - 1)), np.int8
        )
        for number, order in enumerate(orders):
            runs = np.flatnonzero(order_of.ravel() == number)
            outputs[runs] = self._selection(-order)(data, len(runs), rng=rng)
        return outputs
