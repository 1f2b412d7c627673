"""Which inputs are neighbours, which pairs an audit plays, and Hypothesis strategies that generate more.

An adjacency is a set of pairs. It can say whether a pair belongs to it (``check``), list the pairs that usually matter
(``pairs``), enumerate all of them when there are few (``exhaustive``), and generate any of them (``strategy``). Every
pair that is played is checked first: a violation shown on inputs that are not neighbours is a false alarm.
"""

from __future__ import annotations

from typing import Any

from auditdp.adjacency.adjacency import Adjacency, Pair, is_adjacency
from auditdp.adjacency.edges import Edges, NeighbourList, NeighbourLists, Relationship
from auditdp.adjacency.nodes import Canaries, Nodes
from auditdp.adjacency.rows import Rows
from auditdp.adjacency.symmetry import Alike
from auditdp.adjacency.tables import Fields, Records
from auditdp.adjacency.values import AnyValues, Neighbours
from auditdp.adjacency.vectors import Box, QueryAnswers
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief, identity_key

__all__ = [
    "Adjacency",
    "Alike",
    "AnyValues",
    "Box",
    "Canaries",
    "Edges",
    "Fields",
    "NeighbourList",
    "NeighbourLists",
    "Neighbours",
    "Nodes",
    "Pair",
    "QueryAnswers",
    "Records",
    "Relationship",
    "Rows",
    "as_adjacency",
]


def as_adjacency(pairs: Any) -> Adjacency:
    """Return an adjacency: itself, one pair, or a sequence of pairs (data, neighbour).

    A list is a sequence of pairs, and so is a tuple that holds a ``Pair``. Another tuple of two is one pair; where its two
    items could be pairs themselves, it is refused.

    Raises:
        AdjacencyError: If it is none of these, has a part of what an adjacency has, or could be two of them.

    >>> as_adjacency(((0, 0), (0, 1))).pairs()  # no pairs 0 | 0 and 0 | 1: the first has no change
    [Pair(data=(0, 0), neighbour=(0, 1), name='')]
    """
    if is_adjacency(pairs):
        return pairs  # type: ignore[no-any-return]
    if isinstance(pairs, Pair):
        return Neighbours([pairs])
    if isinstance(pairs, tuple) and len(pairs) == 2 and _is_one_pair(*pairs):
        return Neighbours([pairs])
    if isinstance(pairs, tuple | list):
        return Neighbours(list(pairs))
    raise AdjacencyError(
        f"expected an adjacency such as NeighbourList(nodes=8) or pairs (data, neighbour), got {pairs!r}"
    )


def _is_one_pair(first: Any, second: Any) -> bool:
    """Return whether a tuple of two is a pair of inputs, and not two pairs."""
    if isinstance(first, Pair) or isinstance(second, Pair):
        return False
    if not all(isinstance(item, tuple) and len(item) == 2 for item in (first, second)):
        return True
    if any(
        identity_key(data) == identity_key(neighbour)
        for data, neighbour in (first, second)
    ):
        return True  # as two pairs, one of them would have no change
    one, two = Pair(first, second), f"{Pair(*first)} and {Pair(*second)}"
    raise AdjacencyError(
        f"pairs=({brief(first)}, {brief(second)}) can be read as one pair, {one}, and as two, {two}: "
        f"write Pair({brief(first)}, {brief(second)}) for the one, or a list, [{brief(first)}, {brief(second)}], for the two"
    )
