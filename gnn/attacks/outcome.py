"""Figures for scores that separate positives from negatives; every attack reports them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array


@dataclass(frozen=True)
class AttackOutcome:
    """The outcome of an attack.

    Attributes:
        auc: Area under the ROC curve: the probability that a positive scores above a negative, ties counted half.
        average_precision: Mean precision over the ranks of the positives, in the order of the scores.
        precision: Share of true positives among what was predicted positive; 0 where nothing was.
        recall: Share of the positives that was predicted.
        predicted: How many candidates were predicted positive.
        positives: How many are positive.
        candidates: How many there are.
    """

    auc: float
    average_precision: float
    precision: float
    recall: float
    predicted: int
    positives: int
    candidates: int

    def metrics(self) -> dict[str, float]:
        """Return the four figures by name, as an experiment records them."""
        return {
            "AUC": self.auc,
            "average precision": self.average_precision,
            "precision": self.precision,
            "recall": self.recall,
        }


def outcome(
    scores: Any,
    truth: Any,
    *,
    predicted: int | None = None,
    threshold: float | None = None,
    rng: np.random.Generator,
) -> AttackOutcome:
    """Return the figures of an attack from its scores.

    Positive is what is predicted: the candidates with the ``predicted`` largest scores, or those that reach ``threshold``.

    Args:
        scores: Larger is more likely positive, finite, shape (candidates,).
        truth: Which candidates are positive, bool, shape (candidates,), some and not all.
        predicted: How many are predicted positive; by default as many as there are.
        threshold: Predict what scores at least this, in place of ``predicted``.
        rng: Breaks ties at the edge of the ``predicted`` largest, so that the order of the candidates tells nothing.

    Raises:
        MechanismError: If scores are not finite, the truth is all of one kind, or both cuts are given.
    """
    scores, truth = np.asarray(scores, float).ravel(), np.asarray(truth, bool).ravel()
    positives = int(truth.sum())
    if scores.shape != truth.shape or not np.isfinite(scores).all():
        raise MechanismError(
            f"outcome: expected a finite score for each of {len(truth)} candidates, got shape {scores.shape} with "
            f"{int((~np.isfinite(scores)).sum())} that are not finite"
        )
    if not 0 < positives < len(truth):
        raise MechanismError(
            f"outcome: {positives} of {len(truth)} candidates are positive; an attack is measured on both kinds"
        )
    if predicted is not None and threshold is not None:
        raise MechanismError(
            f"outcome: give predicted ({predicted}) or threshold ({threshold}), not both"
        )
    chosen = (
        scores >= threshold
        if threshold is not None
        else _largest(scores, _number(predicted, truth), rng)
    )
    found = int((chosen & truth).sum())
    return AttackOutcome(
        auc=float(roc_auc_score(truth, scores)),
        average_precision=float(average_precision_score(truth, scores)),
        precision=found / max(int(chosen.sum()), 1),
        recall=found / positives,
        predicted=int(chosen.sum()),
        positives=positives,
        candidates=len(truth),
    )


def _number(predicted: int | None, truth: Array) -> int:
    number = int(truth.sum()) if predicted is None else int(predicted)
    if not 0 <= number <= len(truth):
        raise MechanismError(
            f"outcome: predicted = {number}, expected 0 to {len(truth)} candidates"
        )
    return number


def _largest(scores: Array, number: int, rng: np.random.Generator) -> Array:
    chosen = np.zeros(len(scores), bool)
    if number:
        cut = np.partition(scores, len(scores) - number)[len(scores) - number]
        above, ties = scores > cut, np.flatnonzero(scores == cut)
        chosen[above] = True
        chosen[rng.choice(ties, number - int(above.sum()), replace=False)] = True
    return chosen
