"""The loop over epochs that ``fit`` and ``fit_private`` share: measuring, choosing, stopping early."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import torch
from torch import Tensor, nn

from auditdp.errors import ConfigurationError
from gnn.training.record import Criterion, Epoch, Record, last
from gnn.validation import TrainingError


def weighted_mean(pairs: Iterable[tuple[float, int]]) -> float:
    """Return the mean of values with weights; NaN without any."""
    listed = [(value, count) for value, count in pairs if count]
    total = sum(count for _, count in listed)
    return sum(value * count for value, count in listed) / total if total else math.nan


def check_finite(loss: float, what: str, learning_rate: float) -> None:
    """Raise if a loss is no number."""
    if not math.isfinite(loss):
        raise TrainingError(
            f"the {what} is {loss}: the training diverged, or the loss is not defined on these logits; use a learning "
            f"rate smaller than {learning_rate:g}, scale the features, or check the loss"
        )


def run_epochs(
    model: nn.Module,
    *,
    epochs: int,
    learning_rate: float,
    patience: int | None,
    train: Callable[[int], tuple[float, float]],
    assess: Callable[[], tuple[float, float]] | None,
    better: Criterion,
    after: Callable[[Epoch], None],
    device: torch.device,
) -> Record:
    """Train a model for some epochs, leave it with the weights of the chosen one, and return the record.

    Args:
        model: On the device.
        epochs: The most epochs.
        learning_rate: For the message of an error.
        patience: As of ``Settings``.
        train: Trains the epoch of a number, and returns loss and score; raises where the loss is no number.
        assess: Returns loss and score on what the model is validated on.
        better: Which epoch is kept.
        after: Called after each epoch.
        device: Where the model is.

    Raises:
        ConfigurationError: If the criterion needs a validation part and there is none.
        TrainingError: If a loss is no number, or no epoch was good enough to be kept.
    """
    if assess is None and better is not last:
        raise ConfigurationError(
            "no validation part to choose an epoch by; give one, or keep the last epoch: better=gnn.training.last"
        )
    start = time.perf_counter()
    kept: list[Epoch] = []
    best: Epoch | None = None
    weights: dict[str, Tensor] = {}
    for number in range(1, epochs + 1):
        epoch = Epoch(number, *train(number))
        if assess is not None:
            loss, score = assess()
            check_finite(loss, f"validation loss of epoch {number}", learning_rate)
            epoch = replace(epoch, validation_loss=loss, validation_score=score)
        kept.append(epoch)
        if better(epoch, best):
            best = epoch
            if better is not last:
                weights = {
                    name: value.detach().clone()
                    for name, value in model.state_dict().items()
                }
        after(epoch)
        if patience is not None and number - (best.number if best else 0) >= patience:
            break
    if best is None:
        raise TrainingError(
            f"none of {len(kept)} epochs met the criterion {getattr(better, '__name__', better)!r}; train for more "
            "epochs, or use another criterion"
        )
    if weights:
        model.load_state_dict(weights)
    model.eval()
    return Record(tuple(kept), best.number, time.perf_counter() - start, str(device))
