"""Which inputs are neighbours, which pairs an audit plays, and Hypothesis strategies that generate more.

An adjacency is a set of pairs. It can say whether a pair belongs to it (``check``), list the pairs that usually matter
(``pairs``), enumerate all of them when there are few (``exhaustive``), and generate any of them (``strategy``). Every
pair that is played is checked first: a violation shown on inputs that are not neighbours is a false alarm.
"""

from __future__ import annotations

from typing import Any

from auditdp.adjacency.base import Adjacency, Pair
from auditdp.adjacency.box import Box
from auditdp.adjacency.edges import EdgeDP, EdgeLDP, ListsLDP, Relationship
from auditdp.adjacency.nodes import NodeDP
from auditdp.adjacency.records import Records
from auditdp.adjacency.values import AnyValues, Neighbours
from auditdp.adjacency.vectors import QueryAnswers
from auditdp.errors import AdjacencyError

__all__ = [
    "Adjacency",
    "AnyValues",
    "Box",
    "EdgeDP",
    "EdgeLDP",
    "ListsLDP",
    "Neighbours",
    "NodeDP",
    "Pair",
    "QueryAnswers",
    "Records",
    "Relationship",
    "as_adjacency",
]


def as_adjacency(pairs: Any) -> Adjacency:
    """Return an adjacency: itself, one pair, or a sequence of pairs (data, neighbour).

    Raises:
        AdjacencyError: If it is none of these.
    """
    if all(hasattr(pairs, attribute) for attribute in ("check", "pairs", "exhaustive", "name")):
        return pairs  # type: ignore[no-any-return]
    if isinstance(pairs, Pair):
        return Neighbours([pairs])
    if isinstance(pairs, tuple | list):
        if isinstance(pairs, tuple) and len(pairs) == 2 and not all(isinstance(p, tuple | Pair) for p in pairs):
            return Neighbours([pairs])
        return Neighbours(list(pairs))
    raise AdjacencyError(f"expected an adjacency such as EdgeLDP(nodes=8) or pairs (data, neighbour), got {pairs!r}")
