"""Node membership inference: a model is surer of the nodes that it was trained on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array
from gnn.attacks.outcome import AttackOutcome, outcome

Score = Literal["label", "largest", "entropy", "modified entropy"]
SCORES: tuple[Score, ...] = ("label", "largest", "entropy", "modified entropy")
TINY = 1e-12  # what a probability counts as, at least, inside a logarithm


def membership_scores(logits: Tensor, labels: Any, *, score: Score = "label") -> Array:
    """Return a score of each node that is larger the surer the model is, float64, shape (nodes,).

    With p the softmax of the logits and y the node's label: "label" is p_y (Yeom et al. 2018, arXiv:1709.01604v5, whose
    loss is −log p_y), "largest" is max p (Salem et al. 2019, arXiv:1806.01246v2), "entropy" is Σ p log p, and "modified
    entropy" is (1−p_y) log p_y + Σ_{i≠y} p_i log(1−p_i) (Song & Mittal 2021, arXiv:2003.10595v2), the last two with the
    sign that makes certainty large. "largest" and "entropy" read no label.

    Args:
        logits: Shape (nodes, classes).
        labels: Classes, shape (nodes,); -1 where there is none.
        score: Which of them.

    Raises:
        MechanismError: If an argument is none of these.
    """
    if score not in SCORES:
        raise MechanismError(
            f"membership_scores: expected score, one of {', '.join(SCORES)}, got {score!r}"
        )
    if logits.ndim != 2 or not bool(logits.isfinite().all()):
        raise MechanismError(
            f"membership_scores: expected finite logits of shape (nodes, classes), got shape {tuple(logits.shape)}"
        )
    p = logits.detach().double().softmax(dim=1).cpu().numpy()
    if score == "largest":
        return np.asarray(p.max(axis=1))
    if score == "entropy":
        return np.asarray((p * np.log(np.maximum(p, TINY))).sum(axis=1))
    classes = np.asarray(labels)
    if (
        classes.shape != (len(p),)
        or classes.min(initial=0) < 0
        or classes.max(initial=0) >= p.shape[1]
    ):
        raise MechanismError(
            f"membership_scores: {score!r} needs a label from 0 to {p.shape[1] - 1} of each of {len(p)} nodes; leave out "
            "the nodes without one, or use 'largest' or 'entropy'"
        )
    of_label = p[np.arange(len(p)), classes]
    if score == "label":
        return np.asarray(of_label)
    others = p * np.log(np.maximum(1 - p, TINY))
    others[np.arange(len(p)), classes] = 0
    return np.asarray(
        (1 - of_label) * np.log(np.maximum(of_label, TINY)) + others.sum(axis=1)
    )


def membership(
    predict: Callable[[Tensor], Tensor],
    features: Tensor,
    *,
    labels: Any,
    members: Any,
    rng: np.random.Generator,
    candidates: Any = None,
    score: Score = "label",
    threshold: float | None = None,
) -> AttackOutcome:
    """Return how well a model's certainty identifies its training nodes.

    With a ``threshold``, members are the candidates that score at least so much. Without one, they are as many candidates
    as there are members, those of largest scores: the attacker knows how many took part and nothing else.

    Args:
        predict: The model, from features to logits, shape (nodes, classes).
        features: X, shape (nodes, k).
        labels: Classes, shape (nodes,).
        members: Which nodes the model was trained on, bool, shape (nodes,).
        rng: Breaks ties between scores.
        candidates: Which nodes are guessed at, bool, shape (nodes,), all by default.
        score: As of ``membership_scores``.
        threshold: The score from which on a node is called a member.
    """
    chosen = (
        np.ones(len(features), bool)
        if candidates is None
        else np.asarray(candidates, bool)
    )
    with torch.no_grad():
        logits = predict(features)
    scores = membership_scores(
        logits[torch.as_tensor(chosen)], np.asarray(labels)[chosen], score=score
    )
    return outcome(
        scores, np.asarray(members, bool)[chosen], threshold=threshold, rng=rng
    )


def known_member_attack(
    predict: Callable[[Tensor], Tensor],
    features: Tensor,
    *,
    labels: Any,
    members: Any,
    known: Any,
    rng: np.random.Generator,
) -> AttackOutcome:
    """Return the success of an attacker who knows the membership of some nodes.

    A logistic regression on the four scores of ``membership_scores`` and the sorted probabilities is fitted to the known
    nodes and judged on all others; it predicts a member where its probability reaches one half.

    Source: the setting of Nasr, Shokri & Houmansadr (2019), arXiv:1812.00910v2 (the attacker knows part of the training
    data), with a linear model.

    Args:
        predict: The model, from features to logits, shape (nodes, classes).
        features: X, shape (nodes, k).
        labels: Classes, shape (nodes,), without -1.
        members: Which nodes the model was trained on, bool, shape (nodes,).
        known: Of which nodes the attacker knows it, bool, shape (nodes,); of both kinds.
        rng: Breaks ties between scores.

    Raises:
        MechanismError: If the known nodes, or the others, are all members or none.
    """
    truth, seen = np.asarray(members, bool), np.asarray(known, bool)
    if len(np.unique(truth[seen])) < 2:
        raise MechanismError(
            f"known_member_attack: {int(truth[seen].sum())} of {int(seen.sum())} known nodes are members; name some of both"
        )
    with torch.no_grad():
        logits = predict(features)
    ordered = (
        logits.double().softmax(dim=1).sort(dim=1, descending=True).values.cpu().numpy()
    )
    table = np.column_stack(
        [ordered, *(membership_scores(logits, labels, score=score) for score in SCORES)]
    )
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(
        table[seen], truth[seen]
    )
    scores = model.predict_proba(table[~seen])[:, 1]
    return outcome(scores, truth[~seen], threshold=0.5, rng=rng)
