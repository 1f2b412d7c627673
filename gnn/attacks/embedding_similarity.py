"""Link inference by embedding similarity: nodes whose hidden representations point the same way are taken as neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array
from gnn.attacks.outcome import AttackOutcome, outcome
from gnn.attacks.pairs import all_pairs, are_edges

PAIRS_AT_ONCE = 2**20


def cosine_similarities(embeddings: Tensor, pairs: Any) -> Array:
    """Return the cosine of the angle between the rows of each pair, float64, shape (pairs,); 0 beside a zero row.

    Args:
        embeddings: Finite, shape (nodes, k).
        pairs: Node ids, shape (2, pairs).

    Raises:
        MechanismError: If embeddings are not of that form.
    """
    if embeddings.ndim != 2 or not bool(embeddings.isfinite().all()):
        raise MechanismError(
            f"cosine_similarities: expected finite embeddings of shape (nodes, k), got shape {tuple(embeddings.shape)}"
        )
    unit = torch.nn.functional.normalize(embeddings.detach().double(), dim=1)
    low, high = (
        torch.as_tensor(np.asarray(ends), device=unit.device) for ends in pairs
    )
    ends = zip(
        torch.split(low, PAIRS_AT_ONCE), torch.split(high, PAIRS_AT_ONCE), strict=True
    )
    parts = [(unit[i] * unit[j]).sum(dim=1) for i, j in ends]
    values: Array = torch.cat(parts).cpu().numpy()
    return values


def embedding_similarity(
    embeddings: Tensor,
    edge_index: Any,
    *,
    rng: np.random.Generator,
    pairs: Any = None,
    predicted: int | None = None,
) -> AttackOutcome:
    """Return how well cosine similarities of embeddings identify the edges.

    The ``predicted`` most similar pairs are taken as edges. GraphPub's Table 3 compares them once with the original graph
    A and once with the published graph Ã: two calls with the same embeddings, of a model trained on Ã.

    Source: Xu et al. (2024), arXiv:2403.00030, Section 4.2, RQ5.

    Note:
        The source takes the first n pairs, n being a "conjectured number of edges" close to that of the original graph. If
        n were the number of edges, precision and recall would be equal; its Table 3 has them apart by a factor that is
        n over the number of edges (1.52 for Cora, .95 for Citeseer, 1.02 for Polblogs). Give n as ``predicted``.

    Args:
        embeddings: Hidden representation of the nodes, such as the output of a first layer, shape (nodes, k).
        edge_index: The edges that the attack is compared with, shape (2, any), in one direction or both.
        rng: Breaks ties between scores.
        pairs: Candidates, shape (2, pairs), all pairs of nodes by default.
        predicted: n; by default as many as there are edges among the candidates.
    """
    nodes = len(embeddings)
    candidates = all_pairs(nodes) if pairs is None else np.asarray(pairs, np.int64)
    scores = cosine_similarities(embeddings, candidates)
    return outcome(
        scores,
        are_edges(candidates, edge_index, nodes=nodes),
        predicted=predicted,
        rng=rng,
    )
