"""Scores of logits: accuracy, area under the ROC curve, F1; and whether all predictions are one class."""

from __future__ import annotations

import math

import numpy as np
import torch
from sklearn.metrics import f1_score, roc_auc_score
from torch import Tensor

from gnn.validation import check_choice


def predicted(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the classes with the largest logits, or, of targets of several classes each, those with logits > 0."""
    return (
        logits.argmax(dim=-1) if targets.ndim == 1 else (logits > 0).to(targets.dtype)
    )


def accuracy(logits: Tensor, targets: Tensor) -> float:
    """Return the share of right predictions, in [0, 1]; NaN of no target.

    Args:
        logits: Shape (count, classes).
        targets: Classes, int64, shape (count,), or zeros and ones, shape (count, classes): the share over all entries.
    """
    right = predicted(logits, targets) == targets
    return float(right.sum()) / right.numel() if right.numel() else math.nan


def largest_share(logits: Tensor, targets: Tensor) -> float:
    """Return the share of predictions that the most frequent class has: 1 of a constant predictor; NaN of no target.

    Args:
        logits: Shape (count, classes).
        targets: Classes, int64, shape (count,); not read.
    """
    return (
        float(predicted(logits, targets).bincount().max()) / len(targets)
        if len(targets)
        else math.nan
    )


def f1(logits: Tensor, targets: Tensor, *, average: str) -> float:
    """Return F1; a class that is neither among predictions nor targets is left out.

    Args:
        logits: Shape (count, classes).
        targets: As of ``accuracy``.
        average: "macro", the mean over classes, or "micro", of all counts together (for one class each: the accuracy).
    """
    check_choice("f1", "average", average, ("macro", "micro"))
    guesses = predicted(logits, targets)
    return float(
        f1_score(
            targets.cpu().numpy(),
            guesses.cpu().numpy(),
            average=average,
            zero_division=0.0,
        )
    )


def macro_f1(logits: Tensor, targets: Tensor) -> float:
    """Return the mean of F1 over classes."""
    return f1(logits, targets, average="macro")


def micro_f1(logits: Tensor, targets: Tensor) -> float:
    """Return F1 of all counts together."""
    return f1(logits, targets, average="micro")


def area_under_roc(logits: Tensor, targets: Tensor) -> float:
    """Return the area under the ROC curve, in [0, 1]; the mean of one class against the rest where there are more than two.

    A class whose curve is not defined, because all targets or none are of it, is left out; NaN if no curve is.

    Args:
        logits: Shape (count, classes).
        targets: As of ``accuracy``.
    """
    values = logits.detach().double().cpu().numpy()
    labels = targets.cpu().numpy()
    if labels.ndim == 1:
        labels = labels[:, None] == np.arange(values.shape[1])
        values = torch.from_numpy(values).softmax(dim=-1).numpy()
        if values.shape[1] == 2:
            # The difference of the logits orders as the probability does, and does not round to ties at 0 and 1.
            difference = logits.detach().double().cpu()
            values, labels = (
                (difference[:, 1:] - difference[:, :1]).numpy(),
                labels[:, 1:],
            )
    areas = [
        roc_auc_score(y, v)
        for y, v in zip(labels.T, values.T, strict=True)
        if 0 < y.sum() < len(y)
    ]
    return float(np.mean(areas)) if areas else math.nan
