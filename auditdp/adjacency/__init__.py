"""Neighbouring inputs: the pairs that an audit plays, and strategies for more.

An adjacency is a set of pairs. It checks whether a pair belongs to it (``check``),
lists the pairs that usually matter (``pairs``), enumerates the whole set if it is small
(``exhaustive``), and generates arbitrary pairs of the set (``strategy``). Every pair is
checked before it is played, because a violation on inputs that are not neighbours is a
false alarm.

``adjacency.py`` has the interface. The adjacencies stand in ``edges``, ``nodes``,
``rows``, ``tables``, ``values`` and ``vectors``. ``symmetry`` and ``graph_symmetry``
make more pairs from a given pair.
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
    """Return pairs as an adjacency; an adjacency is returned as it is.

    Pairs are one pair or a sequence of pairs. A pair is a ``Pair`` or a tuple (data,
    neighbour). A list is a sequence of pairs, and so is a tuple that holds a ``Pair``.
    Any other tuple of two items is one pair. It is refused if its two items could be
    pairs themselves.

    Raises:
        AdjacencyError: If the argument is none of these, is empty, is an adjacency
            without a method that every adjacency has, or can be read as one pair and as
            two pairs.

    >>> as_adjacency(((0, 0), (0, 1))).pairs()  # (0, 0) is no pair, as nothing changes
    [Pair(data=(0, 0), neighbour=(0, 1), name='')]
    """
    if is_adjacency(pairs):
        return pairs  # type: ignore[no-any-return]
    if isinstance(pairs, Pair) or _is_one_pair(pairs):
        return Neighbours([pairs])
    if isinstance(pairs, tuple | list):
        return Neighbours(list(pairs))
    raise AdjacencyError(
        "expected an adjacency such as NeighbourList(nodes=8) or pairs "
        f"(data, neighbour), got {pairs!r}"
    )


def _is_one_pair(pairs: Any) -> bool:
    """Return True if an object is a tuple of two inputs, and not of two pairs.

    Raises:
        AdjacencyError: If it could be either.
    """
    if not isinstance(pairs, tuple) or len(pairs) != 2:
        return False
    if any(isinstance(item, Pair) for item in pairs):
        return False
    for item in pairs:
        if not isinstance(item, tuple) or len(item) != 2:
            return True
        if identity_key(item[0]) == identity_key(item[1]):
            # As a pair, the item would have no change.
            return True
    first, second = map(brief, pairs)
    as_two = " and ".join(str(Pair(*item)) for item in pairs)
    raise AdjacencyError(
        f"pairs=({first}, {second}) can be read as one pair, {Pair(*pairs)}, and as two, "
        f"{as_two}: write Pair({first}, {second}) for the one, or a list, "
        f"[{first}, {second}], for the two"
    )
