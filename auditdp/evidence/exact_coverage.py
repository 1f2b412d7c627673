"""Which pairs exact evidence looks at, and what is known of all others.

All pairs are covered where the adjacency enumerates them; where an ``Envelope`` bounds what any two inputs of a domain can
do; or by a declared model of additive noise (``noise.py``). Each of these can be contradicted by a pair that is looked at,
and then covers nothing: a law whose loss depends on the order of nodes, where the adjacency enumerates pairs up to that
order; a law that loses more than its envelope; a scale that depends on the data. Such pairs are searched for. What a search
did not find is not proved to be absent, and is written down as an assumption.

The ways in which exact evidence covers neighbours, each with what it assumes and what contradicts it.

``enumerated``: all pairs were looked at. ``enclosed``: an envelope bounds what any two inputs of a domain can do.
``additive``: a declared model of noise bounds all pairs by the sensitivity. ``searched``: some pairs, and nothing is known
of the others. A cover that is contradicted by a pair covers nothing, and then has neither a bound nor assumptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from auditdp.adjacency import Adjacency, AnyValues, Box, Pair
from auditdp.adjacency.adjacency import UpToOrder, offers
from auditdp.adjacency.pair_search import key, maximise
from auditdp.betting.game import checked_pairs
from auditdp.claims.claim import Claim
from auditdp.errors import AuditError
from auditdp.evidence.exact_losses import ROUNDING_TOLERANCE, PairLoss, envelope_losses
from auditdp.evidence.exact_noise import DeclaredNoise, declared_noise
from auditdp.evidence.stated_laws import Stated, asked_by, size
from auditdp.mechanism.capabilities import Capabilities
from auditdp.mechanism.laws import FLOAT_ABSOLUTE_ERROR, Envelope, FiniteLaw
from auditdp.numerics.rounding import count

EXAMPLES = 100
"""Pairs that a search for the largest loss generates, at most; one for a departure from a model, twice as many."""
BOX_EXAMPLES = 40
"""Pairs whose laws are compared with an envelope, beside those that are listed, at most."""
REORDERED = 200
"""Pairs that are compared with themselves in another order of the nodes, at most."""
REORDERED_EACH = 20
"""And at most so many for each pair that is enumerated."""
AGREEMENT = 1e-9
"""Relative difference of losses, and of probabilities, that is called rounding."""


@dataclass(frozen=True)
class Compared:
    """The pairs that were looked at, with the loss of each, and what is known of all others."""

    pairs: list[Pair]
    losses: list[PairLoss]
    coverage: Coverage
    """What is known of all pairs of which scope, and why."""
    searchable: bool = False
    """Whether other pairs may be looked for, among them the simplest that violates."""
    looked_at: int | None = None
    """How many pairs were enumerated; None where that is not how they are covered."""
    by_law: bool = True
    """Whether the losses are those of laws; else they are those of the outputs of an envelope."""

    @property
    def complete(self) -> bool:
        """Whether the losses, or the bound, cover every pair of the scope."""
        return not self.coverage.unchecked


def by_pairs(
    able: Capabilities,
    stated: Stated,
    claim: Claim,
    adjacency: Adjacency,
    given: Sequence[Pair] | None,
    *,
    seed: int,
    examples: int,
) -> Compared:
    """Compare all pairs where they can be enumerated; else the given or listed ones, and those that a search finds."""
    everything = adjacency.exhaustive() if given is None else None
    if everything is not None:
        return _enumerated(stated, adjacency, everything, seed)
    pairs = list(checked_pairs(adjacency, given))
    losses = [stated.loss_of(pair) for pair in pairs]
    seen = count(len(pairs), "pair")
    if given is not None:
        return Compared(pairs, losses, searched(adjacency, seen), looked_at=len(pairs))
    noise = declared_noise(able, stated, pairs[0].data)
    departures = (
        [] if noise is None else [d for pair in pairs if (d := noise.departure(pair))]
    )
    found = _search(stated, adjacency, noise, departures, seed=seed, examples=examples)
    listed = {key(each) for pair in pairs for each in (pair, pair.swapped())}
    new = [pair for pair in found if key(pair) not in listed]
    looked_at = len(pairs)
    if new:
        pairs.append(max(new, key=lambda pair: size(stated.loss_of(pair))))
        losses.append(stated.loss_of(pairs[-1]))
        seen = f"{seen} and {len(new):,} that a search came across"
    if noise is None:
        coverage = searched(adjacency, seen, offers(adjacency).remedy)
        return Compared(pairs, losses, coverage, searchable=True, looked_at=looked_at)
    if not departures and not new:
        departures = [
            "the adjacency generates no pairs beside those that it lists, which show nothing of other inputs"
        ]
    coverage = additive(
        adjacency, noise, noise.bound(asked_by(claim)), seen, next(iter(departures), "")
    )
    return Compared(
        pairs,
        losses,
        coverage,
        searchable=True,
        looked_at=looked_at if departures else None,
    )


def _search(
    stated: Stated,
    adjacency: Adjacency,
    noise: DeclaredNoise | None,
    departures: list[str],
    *,
    seed: int,
    examples: int,
) -> list[Pair]:
    """Return distinct pairs that searches for a large loss, and for a departure from a model, came across."""
    offered = offers(adjacency)
    if offered.generated is None:
        return []

    def loss(pair: Pair) -> float:
        if noise is not None and (departure := noise.departure(pair)):
            departures.append(departure)
        return max(size(stated.loss_of(pair))[:2])

    def departs(pair: Pair) -> float:
        assert noise is not None  # asked only where there is a model
        if departure := noise.departure(pair):
            departures.append(departure)
        return noise.size(pair)

    found = maximise(offered.generated, loss, examples=examples, seed=seed)
    if noise is not None and not departures:
        wide = offered.generated if offered.wide is None else offered.wide
        with suppress(
            AuditError
        ):  # inputs that a mechanism refuses, all of them, show nothing
            found += maximise(wide, departs, examples=2 * examples, seed=seed)
    distinct = {key(pair): pair for _, pair in found}
    return [pair for pair in distinct.values() if _states(stated, pair)]


def _states(stated: Stated, pair: Pair) -> bool:
    try:
        stated.loss_of(pair)
    except AuditError:
        return False
    return True


def _enumerated(
    stated: Stated, adjacency: Adjacency, pairs: list[Pair], seed: int
) -> Compared:
    """Compare all pairs; where they are listed up to the order of nodes, compare some of them in other orders as well."""
    losses = [stated.loss_of(pair) for pair in pairs]
    looked_at = len(pairs)
    if not isinstance(adjacency, UpToOrder) or not adjacency.unlabelled:
        return Compared(
            pairs, losses, enumerated(adjacency, looked_at), looked_at=looked_at
        )
    rng = np.random.default_rng(seed)
    unlike: list[tuple[Pair, Pair]] = []
    tried = min(REORDERED, REORDERED_EACH * looked_at)
    for number in range(tried):
        pair = pairs[int(rng.integers(looked_at))]
        other = adjacency.reordered(pair, number, rng)
        if not _alike(stated, pair, other):
            unlike.append((pair, other))
    if not unlike:
        return Compared(
            pairs, losses, enumerated(adjacency, looked_at, tried), looked_at=looked_at
        )
    found = max(
        (other for _, other in unlike), key=lambda pair: size(stated.loss_of(pair))
    )
    pair, other = unlike[0]
    depends = (
        f"the law depends on the order of the nodes ({pair} loses {stated.loss_of(pair)}, {other} loses "
        f"{stated.loss_of(other)}, or gives its outputs other probabilities); leave unlabelled=True out"
    )
    coverage = enumerated(adjacency, looked_at, tried, depends)
    return Compared(
        [*pairs, found], [*losses, stated.loss_of(found)], coverage, looked_at=looked_at
    )


def _alike(stated: Stated, pair: Pair, other: Pair) -> bool:
    """Return whether a pair in another order of the nodes loses the same, by outputs of the same probabilities."""
    one, two = stated.loss_of(pair), stated.loss_of(other)
    ends = [(one.lower, two.lower), (one.upper, two.upper)]
    for this, that in ((one.delta, two.delta), (one.mu, two.mu)):
        if this is not None and that is not None:
            ends.append((float(this.mid()), float(that.mid())))
    if not all(np.isclose(a, b, rtol=AGREEMENT, atol=AGREEMENT) for a, b in ends):
        return False
    first, second = stated.law_of(pair.data), stated.law_of(other.data)
    if not isinstance(first, FiniteLaw) or not isinstance(second, FiniteLaw):
        return type(first) is type(second)
    longest = max(len(law.floats) for law in (first, second))
    mine, theirs = (
        np.sort(np.pad(law.floats, (longest - len(law.floats), 0)))
        for law in (first, second)
    )
    rounded = first.left_out.floats or second.left_out.floats
    return np.allclose(
        mine, theirs, rtol=AGREEMENT, atol=FLOAT_ABSOLUTE_ERROR if rounded else 0
    )


def by_envelope(
    envelope: Envelope, stated: Stated | None, adjacency: Box, seed: int
) -> Compared:
    """Bound all pairs of a domain by an envelope, and compare it with the law of the output where one is stated.

    The bound rests on least <= P(y) <= most for all inputs. That the two are attained, and by all ``uses`` at once, is a
    statement of its own: the loss of a pair is what its law loses, where there is one.
    """
    pairs = [Pair(large, small) for large, small in envelope.inputs]
    for pair in pairs:
        adjacency.check(pair)
    bounds = envelope_losses(envelope)
    bound = max(bounds, key=lambda loss: (loss.upper, loss.lower))
    compared = (
        []
        if stated is None or not stated.of_output
        else _of_box(stated, adjacency, pairs, seed)
    )
    if stated is None or not compared:
        return Compared(pairs, bounds, enclosed(adjacency, bound), by_law=False)
    losses = [stated.loss_of(pair) for pair in compared]
    worst = max(range(len(compared)), key=lambda k: size(losses[k]))
    beyond = ""
    if losses[worst].lower > bound.upper * (1 + ROUNDING_TOLERANCE):
        beyond = (
            f"its law loses {losses[worst]} on {compared[worst]}, more than its envelope allows, {bound}: correct the "
            "envelope, such as its uses"
        )
    return Compared(compared, losses, enclosed(adjacency, bound, len(compared), beyond))


def _of_box(stated: Stated, adjacency: Box, pairs: list[Pair], seed: int) -> list[Pair]:
    """Return the pairs of a box that a law is stated for: those given, those listed, and those of a search."""
    candidates = [*pairs, *adjacency.pairs()]
    with suppress(AuditError):  # no law is stated for any
        found = maximise(
            adjacency.strategy(),
            lambda pair: stated.loss_of(pair).lower,
            examples=BOX_EXAMPLES,
            seed=seed,
        )
        candidates += [pair for _, pair in found]
    return [
        pair
        for pair in {key(pair): pair for pair in candidates}.values()
        if _states(stated, pair)
    ]


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


def enumerated(
    adjacency: Adjacency, pairs: int, reordered: int = 0, unlike: str = ""
) -> Coverage:
    """All pairs that the adjacency lists as its neighbours.

    Where they are listed up to the order of nodes, ``reordered`` of them were compared in another order, and ``unlike`` says
    how one of them lost something else there.
    """
    many = f"all {count(pairs, 'pair')}" if pairs > 1 else "the only pair"
    if unlike:
        return Coverage(
            f"{many} and {reordered} in another order of the nodes, of {adjacency.name}",
            unlike,
        )
    assumed = (
        ["scope: these values are the whole domain"]
        if isinstance(adjacency, AnyValues)
        else []
    )
    if reordered:
        tried = f"true on {reordered} pairs in another order of the nodes"
        assumed = [f"it treats nodes alike: {tried}, and not proved on all"]
    return Coverage(f"{many} of {adjacency.name}", assumptions=assumed)


def enclosed(
    adjacency: Adjacency, most: PairLoss, compared: int = 0, beyond: str = ""
) -> Coverage:
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


def additive(
    adjacency: Adjacency,
    noise: DeclaredNoise,
    most: PairLoss,
    seen: str,
    departure: str = "",
) -> Coverage:
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
    return Coverage(
        f"{seen} of {adjacency.name}",
        f"not all neighbouring pairs were covered{remedy and f'; {remedy}'}",
    )
