"""Embeddings z in [0, 1] of raw records, by an extractor that is trained on public nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from auditdp.mechanism.protocol import Array
from gnn.randomness import seeded
from gnn.sparse import is_sparse
from gnn.validation import DataError, check_choice, check_count, check_number
from mechanisms.backend import backend_of
from mechanisms.features import LinearExtractor

MASKED = ("random", "telling")


@dataclass(frozen=True)
class ExtractorSettings:
    """The training of an extractor.

    Args:
        width: d, features of an embedding.
        sensitive: The share of the raw inputs that are sensitive, in [0, 1).
        masked: Which these are: "random" ones, or the most "telling", of the largest weights.
        epochs: Steps of Adam on all public nodes.
        learning_rate: Of Adam.
        weight_decay: Of Adam.

    Raises:
        ConfigurationError: If a setting is outside its range.
    """

    width: int = 50
    sensitive: float = 0.1
    masked: str = "random"
    epochs: int = 200
    learning_rate: float = 0.01
    weight_decay: float = 5e-4

    def __post_init__(self) -> None:
        check_count("ExtractorSettings", "width", self.width)
        check_number("ExtractorSettings", "sensitive", self.sensitive, below=1.0)
        check_choice("ExtractorSettings", "masked", self.masked, MASKED)
        check_count("ExtractorSettings", "epochs", self.epochs)
        check_number("ExtractorSettings", "learning_rate", self.learning_rate)
        check_number("ExtractorSettings", "weight_decay", self.weight_decay)


class _Network(nn.Module):
    """V clip(W x, 0, 1): the embedding, and a linear model of feature importance."""

    def __init__(self, inputs: int, width: int, classes: int) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, width, bias=False)
        self.second = nn.Linear(width, classes)
        nn.init.xavier_uniform_(self.first.weight)
        nn.init.constant_(self.first.weight[:, -1], 0.5)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.second(self.first(x).clamp(0, 1))
        return found


def raw_records(x: Tensor) -> Array:
    """Return the raw records of nodes, float64 in [0, 1], shape (nodes, inputs + 1): their features, clipped, and a 1.

    The last input is 1 for everybody, so that an extractor without a bias has one.
    """
    dense = x.to_dense() if is_sparse(x) else x
    ones = dense.new_ones(len(dense), 1)
    return np.asarray(
        torch.cat([dense.clamp(0, 1), ones], dim=1).double().cpu().numpy()
    )


def trained_extractor(
    records: Array,
    labels: Tensor,
    settings: ExtractorSettings | None = None,
    *,
    generator: torch.Generator,
) -> LinearExtractor:
    """Return an extractor z = clip(Wx, 0, 1), its sensitive inputs, and the importance of its features.

    W and a linear model V of the classes are trained together on public nodes; the importance of feature i is judged by
    the mean of |V_ci| over the classes.

    Source: Tran et al. (2022), arXiv:2211.05766, Section III-A: a network that was trained on other, public data, with
    scores of importance by SHAP, for a linear model in closed form, and of sensitivity by masked inputs.

    Args:
        records: Raw records of public nodes, shape (nodes, inputs), the last input 1.
        labels: Their classes, shape (nodes,).
        settings: ``ExtractorSettings()`` by default.
        generator: The randomness, on the CPU.

    Raises:
        DataError: If there are no public nodes, or one has no label.
    """
    settings = settings or ExtractorSettings()
    if not len(records) or len(labels) != len(records) or int(labels.min()) < 0:
        raise DataError(
            f"trained_extractor: expected public nodes with a label each, got {len(records)} records and {len(labels)} "
            "labels; take more public nodes"
        )
    x = torch.from_numpy(records).float()
    with seeded(generator):
        network = _Network(x.shape[1], settings.width, int(labels.max()) + 1)
    optimiser = torch.optim.Adam(
        network.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
    )
    for _ in range(settings.epochs):
        optimiser.zero_grad()
        functional.cross_entropy(network(x), labels).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    weights = network.first.weight.detach().double()
    count = round(settings.sensitive * (x.shape[1] - 1))
    if settings.masked == "random":
        chosen = torch.randperm(x.shape[1] - 1, generator=generator)[:count]
    else:
        chosen = weights[:, :-1].abs().sum(dim=0).argsort(descending=True)[:count]
    importance = network.second.weight.detach().double().abs().mean(dim=0)
    return LinearExtractor(
        tuple(map(tuple, weights.tolist())),
        tuple(chosen.sort().values.tolist()),
        tuple(importance.tolist()),
    )


def embedded(extractor: LinearExtractor, records: Array) -> Array:
    """Return z of raw records, float64 in [0, 1], shape (nodes, width)."""
    return np.asarray(extractor.features(records, backend_of(np.random.default_rng(0))))
