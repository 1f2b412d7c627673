"""Noisy labels, and learning from them: forward correction, and Drop with early stopping."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gnn.datasets.splits import Split
from gnn.pipelines.lpgnn.propagation import propagated
from gnn.training.record import Criterion, Epoch
from mechanisms.labels import LabelRR


def noisy_labels(
    labels: Tensor, split: Split, response: LabelRR | None, *, rng: np.random.Generator
) -> Tensor:
    """Return the server's noisy labels, -1 elsewhere; int64, shape (nodes,).

    Args:
        labels: The true ones.
        split: Of the nodes.
        response: What a node runs on its label; None sends it as it is.
        rng: The randomness of the users.
    """
    nodes = torch.cat([split.training, split.validation])
    sent = labels[nodes]
    if response is not None:
        sent = torch.from_numpy(
            response.perturb(sent.numpy(), rng=rng).astype(np.int64)
        )
    return torch.full_like(labels, -1).index_copy(0, nodes, sent)


def transition(response: LabelRR | None, classes: int) -> Tensor:
    """Return T with T_ij the probability that a node with label i sends j, float32, shape (classes, classes)."""
    if response is None:
        return torch.eye(classes)
    other = float(response.other)
    return torch.full((classes, classes), other).fill_diagonal_(float(response.true))


def denoised_labels(
    operator: Tensor, noisy: Tensor, classes: int, steps: int
) -> Tensor:
    """Return ỹ: the class of the largest entry of KProp on one-hot noisy labels, int64, shape (nodes,).

    -1 where no label is within reach of a walk of K steps: isolated nodes, among others.

    Args:
        operator: S, the normalised adjacency.
        noisy: Labels, -1 where there is none, shape (nodes,).
        classes: Number of classes.
        steps: K >= 0; with 0 the noisy labels themselves.
    """
    one_hot = functional.one_hot(noisy.clamp(min=0), classes).float() * (
        noisy >= 0
    ).unsqueeze(1)
    mass = propagated(operator, one_hot, steps)
    return torch.where(mass.sum(dim=1) > 0, mass.argmax(dim=1), -1)


def log_corrected(logits: Tensor, law: Tensor | None) -> Tensor:
    """Return log p̂(y′|x): forward correction through the law of the noisy label, or log p̂(y|x) without one.

    Source: Patrini et al. (2017), arXiv:1609.03683, Theorem 2: −log (Tᵀp̂)_y′.

    Args:
        logits: Shape (nodes, classes).
        law: T, as of ``transition``.
    """
    if law is None:
        return logits.log_softmax(dim=1)
    return (logits.softmax(dim=1) @ law).clamp(min=torch.finfo(logits.dtype).tiny).log()


def log_denoised(
    logits: Tensor, law: Tensor, operator: Tensor, steps: int, reach: Tensor
) -> Tensor:
    """Return log p̂(ỹ|x): predictions after randomised response and then KProp.

    Note:
        S^K is divided by its row sums, so that this is a probability; without them the loss differs by a constant, and no
        gradient does.

    Args:
        logits: Shape (nodes, classes).
        law: T, as of ``transition``.
        operator: S, the normalised adjacency.
        steps: K >= 0.
        reach: S^K 1, shape (nodes, 1).
    """
    found = propagated(operator, logits.softmax(dim=1) @ law, steps)
    tiny = torch.finfo(logits.dtype).tiny
    return (found / reach.clamp(min=tiny)).clamp(min=tiny).log()


def below_ceiling(ceiling: float) -> Criterion:
    """Return Drop's early stopping: which epoch is kept.

    Source: Sajadmanesh & Gatica-Perez (2021), arXiv:2006.05535: noisy labels agree with the true ones with probability
    Acc* at most, so a model that agrees more often with noisy labels has absorbed their noise. An epoch is kept if its
    validation loss is lower and its accuracy on noisy validation labels higher than those of the epoch kept before, and this
    accuracy is at most Acc*. The first epoch is kept whatever it is.

    Args:
        ceiling: Acc*, the probability that a label is sent as it is.
    """

    def better(epoch: Epoch, best: Epoch | None) -> bool:
        if best is None:
            return True
        loss, score, least, most = (
            math.nan if value is None else value
            for value in (
                epoch.validation_loss,
                epoch.validation_score,
                best.validation_loss,
                best.validation_score,
            )
        )
        return loss < least and most < score <= ceiling

    return better
