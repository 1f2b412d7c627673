"""LinkTeller: the influence of one node's features on another node's prediction betrays the edge between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array
from gnn.attacks.outcome import AttackOutcome, outcome
from gnn.attacks.pairs import all_pairs, are_edges
from mechanisms.validation import check_integer, check_positive

Predict = Callable[[Tensor], Tensor]
"""Maps features, shape (nodes, k), to the answers of a model, shape (nodes, outputs).
"""

Method = Literal["differences", "exact"]


def influence(
    predict: Predict,
    features: Tensor,
    *,
    nodes: Any = None,
    method: Method = "differences",
    step: float = 1e-4,
    batch: int = 1,
) -> Array:
    """Return the influence of each node's features on each node's prediction.

    Entry (v, u) is ‖∂ predict(X)_u / ∂t‖₂ at t = 0 where row v of X is scaled by 1 + t. With "differences" the derivative
    is (predict(X with row v scaled by 1 + step) − predict(X)) / step, as published; with "exact" it is the Jacobian-vector
    product in the direction of x_v, by forward-mode differentiation.

    Source: Wu, Long, Zhang & Li (2022), "LinkTeller: Recovering Private Edges from Graph Neural Networks via Influence
    Analysis", arXiv:2108.06504, Algorithm 1.

    Args:
        predict: The model, a function of the features alone; without dropout, and deterministic. "exact" differentiates it.
        features: X, floating point, shape (nodes, k).
        nodes: Ids of the nodes that are looked at, all by default.
        method: How the derivative is taken.
        step: Δ of the differences. In float32 the rounding error is about 1e-7·|prediction|/Δ.
        batch: Nodes whose rows are moved in one call of ``torch.func.vmap``; 1 calls ``predict`` once for each node, and
            works with any function.

    Returns:
        float64, shape (len(nodes), len(nodes)); row v is of the features that move, column u of the prediction.

    Raises:
        MechanismError: If an argument is out of range, or a prediction is not finite.
    """
    if features.ndim != 2 or not features.is_floating_point():
        raise MechanismError(
            f"influence: expected floating-point features of shape (nodes, k), got {features.dtype} of shape "
            f"{tuple(features.shape)}"
        )
    if method not in ("differences", "exact"):
        raise MechanismError(
            f"influence: expected method 'differences' or 'exact', got {method!r}"
        )
    check_positive("influence", "step", step)
    check_integer("influence", "batch", batch, 1)
    ids = (
        torch.arange(len(features))
        if nodes is None
        else torch.as_tensor(np.asarray(nodes), dtype=torch.int64)
    )
    ids = ids.to(features.device)
    base = None if method == "exact" else predict(features)[ids]

    def moved(node: Tensor) -> Tensor:
        chosen = (torch.arange(len(features), device=features.device) == node).to(
            features.dtype
        )[:, None]
        direction = chosen * features
        if base is None:
            return torch.func.jvp(predict, (features,), (direction,))[1][ids]  # type: ignore[no-any-return]
        return (predict(features + step * direction)[ids] - base) / step

    rows = []
    with torch.no_grad():
        for some in torch.split(ids, batch):
            found = torch.func.vmap(moved)(some) if batch > 1 else moved(some[0])[None]
            rows.append(found.double().norm(dim=-1).cpu())
    values: Array = torch.cat(rows).numpy()
    if not np.isfinite(values).all():
        raise MechanismError(
            "influence: the model's predictions are not finite; look at its features and weights"
        )
    return values


def link_teller(
    predict: Predict,
    features: Tensor,
    edge_index: Any,
    *,
    rng: np.random.Generator,
    pairs: Any = None,
    predicted: int | None = None,
    method: Method = "differences",
    step: float = 1e-4,
    batch: int = 1,
) -> AttackOutcome:
    """Return how well influence distinguishes the edges of a graph from other pairs.

    The score of a pair is the larger of its two influences.

    Source: Wu, Long, Zhang & Li (2022), arXiv:2108.06504, Algorithm 1; Tran et al. (2022), arXiv:2211.05766, report its AUC.

    Note:
        The source predicts ordered pairs; here an undirected pair is predicted once, by the larger of both directions.

    Args:
        predict: The model, from features to logits, for the private graph.
        features: X, shape (nodes, k).
        edge_index: The edges that the attack looks for, shape (2, any), in one direction or both.
        rng: Breaks ties between scores.
        pairs: Candidates, shape (2, pairs), all pairs of nodes by default.
        predicted: How many pairs are predicted as edges: the attacker's belief. By default as many as there are.
        method: As of ``influence``.
        step: As of ``influence``.
        batch: As of ``influence``.
    """
    candidates = (
        all_pairs(len(features)) if pairs is None else np.asarray(pairs, np.int64)
    )
    nodes = np.unique(candidates)
    values = influence(
        predict, features, nodes=nodes, method=method, step=step, batch=batch
    )
    low, high = np.searchsorted(nodes, candidates)
    scores = np.maximum(values[low, high], values[high, low])
    return outcome(
        scores,
        are_edges(candidates, edge_index, nodes=len(features)),
        predicted=predicted,
        rng=rng,
    )
