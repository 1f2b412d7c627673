"""The duration and speed of training, the kept epoch, and the record of a training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from gnn.validation import check_choice, check_count, check_number, check_positive


@dataclass(frozen=True)
class Settings:
    """Settings of ``fit`` besides the model and the data.

    Args:
        epochs: The most epochs, >= 1.
        learning_rate: Of the optimiser, > 0.
        weight_decay: λ of the L2 penalty, added to the gradient, >= 0.
        decayed: Whether the penalty is on all weights or on those of the first layer alone, as in Kipf & Welling (2017).
        batch: Nodes or graphs in a batch; by default all nodes at once, or 64 graphs.
        patience: Training ends after so many epochs in a row that are no better than the best; by default never.
        optimiser: "adam" or "sgd".
        halving: The learning rate is halved after every so many epochs; by default never.

    Raises:
        ConfigurationError: If a setting is outside its range.
    """

    epochs: int = 200
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    decayed: Literal["all", "first"] = "all"
    batch: int | None = None
    patience: int | None = None
    optimiser: Literal["adam", "sgd"] = "adam"
    halving: int | None = None

    def __post_init__(self) -> None:
        check_count("Settings", "epochs", self.epochs)
        check_positive("Settings", "learning_rate", self.learning_rate)
        check_number("Settings", "weight_decay", self.weight_decay)
        check_choice("Settings", "decayed", self.decayed, ("all", "first"))
        check_choice("Settings", "optimiser", self.optimiser, ("adam", "sgd"))
        for name, value in (
            ("batch", self.batch),
            ("patience", self.patience),
            ("halving", self.halving),
        ):
            if value is not None:
                check_count("Settings", name, value)

    def optimiser_of(self, model: nn.Module) -> torch.optim.Optimizer:
        """Return the optimiser of a model's weights."""
        weights = [p for p in model.parameters() if p.requires_grad]
        groups = [{"params": weights, "weight_decay": self.weight_decay}]
        if self.decayed == "first":
            layers = model.layers
            assert isinstance(layers, nn.ModuleList)  # of every model of gnn.models
            first = {id(p) for p in layers[0].parameters()}
            groups = [
                {
                    "params": [p for p in weights if id(p) in first],
                    "weight_decay": self.weight_decay,
                },
                {
                    "params": [p for p in weights if id(p) not in first],
                    "weight_decay": 0.0,
                },
            ]
        if self.optimiser == "sgd":
            return torch.optim.SGD(groups, lr=self.learning_rate)
        return torch.optim.Adam(groups, lr=self.learning_rate, fused=True)


@dataclass(frozen=True)
class Epoch:
    """The measurements after an epoch.

    Attributes:
        number: From 1.
        training_loss: Mean over the epoch's batches, weighted by their sizes, with dropout, before each step.
        training_score: The score on the same logits.
        validation_loss: Without dropout, after the epoch; None where there is no validation part.
        validation_score: The score on the same logits.
    """

    number: int
    training_loss: float
    training_score: float
    validation_loss: float | None = None
    validation_score: float | None = None


@dataclass(frozen=True)
class Record:
    """The record of a training.

    Attributes:
        epochs: All epochs, also those after the chosen one.
        chosen: Number of the epoch whose weights were kept.
        seconds: Wall time.
        device: Where it ran.
        untrained_classes: Classes with labels of which no training node or graph has one: the model cannot learn them.
    """

    epochs: tuple[Epoch, ...]
    chosen: int
    seconds: float
    device: str
    untrained_classes: tuple[int, ...] = ()

    @property
    def best(self) -> Epoch:
        """The epoch whose weights were kept."""
        return self.epochs[self.chosen - 1]


Criterion: TypeAlias = Callable[[Epoch, Epoch | None], bool]
"""Returns True if an epoch is better than the best one (None before the first)."""
Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""The mean loss of logits, shape (count, classes), at targets, shape (count,) or (count, classes)."""
Score: TypeAlias = Callable[[Tensor, Tensor], float]
"""Returns the quality of logits at targets of the same shape; higher is better."""
Hook: TypeAlias = Callable[[Epoch, nn.Module], Tensor | None]
"""Called after each epoch; may return targets, shaped as ``data.y``, for later epochs.
"""


def lower_loss(epoch: Epoch, best: Epoch | None) -> bool:
    """Keep the epoch with the lowest validation loss, the first of several."""
    assert (
        epoch.validation_loss is not None
    )  # the loop refuses this criterion without a validation part
    return (
        best is None
        or best.validation_loss is None
        or epoch.validation_loss < best.validation_loss
    )


def higher_score(epoch: Epoch, best: Epoch | None) -> bool:
    """Keep the epoch with the highest validation score, and of these the one with the lowest loss."""
    assert epoch.validation_loss is not None
    assert epoch.validation_score is not None
    if best is None or best.validation_loss is None or best.validation_score is None:
        return True
    return (epoch.validation_score, -epoch.validation_loss) > (
        best.validation_score,
        -best.validation_loss,
    )


def last(epoch: Epoch, best: Epoch | None) -> bool:
    """Keep the last epoch."""
    return True
