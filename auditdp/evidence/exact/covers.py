"""The ways in which exact evidence covers neighbours, each with what it assumes and what contradicts it.

``enumerated``: all pairs were looked at. ``enclosed``: an envelope bounds what any two inputs of a domain can do.
``additive``: a declared model of noise bounds all pairs by the sensitivity. ``searched``: some pairs, and nothing is known
of the others. A cover that is contradicted by a pair covers nothing, and then has neither a bound nor assumptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditdp.adjacency import Adjacency, AnyValues
from auditdp.evidence.exact.noise import DeclaredNoise
from auditdp.evidence.exact.pair_loss import PairLoss
from auditdp.numerics.rounding import count


@dataclass(frozen=True)
class Coverage:
    """What is known of the pairs of a scope."""

    scope: str
    """Which pairs these are, in words."""
    unchecked: str = ""
    """Why other neighbours are not covered, in words; empty where all of them are."""
    bound: PairLoss | None = None
    """A bound on the loss of every pair of the scope; None where there is none but the losses that were computed."""
    assumptions: Sequence[str] = ()
    """What the cover rests on."""


def enumerated(adjacency: Adjacency, pairs: int, reordered: int = 0, unlike: str = "") -> Coverage:
    """All pairs that the adjacency lists as its neighbours.

    Where they are listed up to the order of nodes, ``reordered`` of them were compared in another order, and ``unlike`` says
    how one of them lost something else there.
    """
    many = f"all {count(pairs, 'pair')}" if pairs > 1 else "the only pair"
    if unlike:
        return Coverage(f"{many} and {reordered} in another order of the nodes, of {adjacency.name}", unlike)
    assumed = ["scope: these values are the whole domain"] if isinstance(adjacency, AnyValues) else []
    if reordered:
        tried = f"true on {reordered} pairs in another order of the nodes"
        assumed = [f"it treats nodes alike: {tried}, and not proved on all"]
    return Coverage(f"{many} of {adjacency.name}", assumptions=assumed)


def enclosed(adjacency: Adjacency, most: PairLoss, compared: int = 0, beyond: str = "") -> Coverage:
    """All pairs of a domain, whose loss is at most that of an envelope.

    The law, if one is stated, was compared with it on so many pairs; ``beyond`` says how it loses more on one of them.
    """
    if beyond:
        return Coverage(f"{count(compared, 'pair')} of {adjacency.name}", beyond)
    assumed = "its envelope is the least and the most of every output"
    if compared:
        searched = "and that is searched, not proved, for all others"
        assumed += f": its law lost no more on {count(compared, 'pair')}, {searched}"
    else:
        assumed += ", attained as stated: no law was there to compare"
    return Coverage(f"all pairs of {adjacency.name}", "", most, [assumed])


def additive(adjacency: Adjacency, noise: DeclaredNoise, most: PairLoss, seen: str, departure: str = "") -> Coverage:
    """All neighbours of a declared sensitivity, by the model of noise of one scale and shape.

    They lose at most what answers do that are as far apart as the sensitivity. ``seen`` says in words which pairs were
    looked at, and ``departure`` how one of them contradicts the model.
    """
    if departure:
        return Coverage(f"{seen} of {adjacency.name}", departure)
    apart = f"at most {noise.sensitivity:g} apart in {noise.norm}"
    around = " around its query" if noise.able.query is not None else ""
    others = f"true on {seen}, and searched, not proved, on all others"
    return Coverage(
        f"all neighbours with queries {apart}, as declared, of noise of one scale{around}; {adjacency.name}",
        "",
        most,
        [
            f"the noise has one scale and shape{around}, whatever the data: {others}",
            f"the answers of neighbours are {apart}: declared; {others}",
        ],
    )


def searched(adjacency: Adjacency, seen: str, remedy: str = "") -> Coverage:
    """Some pairs, which ``seen`` says in words; ``remedy`` says how all could be covered."""
    return Coverage(f"{seen} of {adjacency.name}", f"not all neighbouring pairs were covered{remedy and f'; {remedy}'}")
