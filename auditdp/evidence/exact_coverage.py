"""The pairs that exact evidence compares, and the statement about all other pairs.

There are three ways to cover all pairs. The adjacency enumerates them (``enumerated``).
An ``Envelope`` bounds the probabilities of any two inputs of a domain (``enclosed``). A
declared model of additive noise bounds the loss of all pairs by the sensitivity
(``additive``, and ``exact_noise.py``). Otherwise some pairs were compared, and nothing
is stated about the others (``searched``). ``Coverage`` is the resulting statement.

A compared pair can contradict each of these ways: by a law whose loss depends on the
order of nodes, if the adjacency enumerates pairs up to that order; by a law that loses
more than its envelope; by a scale that depends on the data. Such pairs are searched
for. After a contradiction, the coverage has neither a bound nor assumptions. A search
that finds no contradiction is no proof, so it is recorded as an assumption.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditdp.adjacency import Adjacency, AnyValues, Box, Pair
from auditdp.adjacency.adjacency import UpToOrder, offers
from auditdp.adjacency.pair_search import key, maximise
from auditdp.betting.game import checked_pairs
from auditdp.claims.claim import Claim
from auditdp.errors import AuditError
from auditdp.evidence.exact_losses import ROUNDING_TOLERANCE, PairLoss, envelope_losses
from auditdp.evidence.exact_noise import DeclaredNoise, declared_noise
from auditdp.evidence.loss_of_laws import Stated, claimed_point, size
from auditdp.mechanism.capabilities import Capabilities
from auditdp.mechanism.laws import FLOAT_ABSOLUTE_ERROR, Envelope, FiniteLaw
from auditdp.numerics.rounding import count

EXAMPLES = 100
"""Largest number of pairs that a search for the largest loss generates.

A search for a contradiction of the noise model generates twice that number.
"""


@dataclass(frozen=True)
class Coverage:
    """The neighbouring pairs about which the evidence makes a statement."""

    scope: str
    """The pairs, in words."""
    unchecked: str = ""
    """The reason why other neighbours are not covered; empty if all are covered."""
    bound: PairLoss | None = None
    """A bound on the loss of every pair of the scope, by an envelope or a noise model.

    None if the losses of the compared pairs are the only ones.
    """
    assumptions: Sequence[str] = ()
    """The assumptions under which all pairs of the scope are covered."""


@dataclass(frozen=True)
class Compared:
    """The compared pairs, with the loss of each, and the statement about all others."""

    pairs: list[Pair]
    losses: list[PairLoss]
    coverage: Coverage
    """The statement about all pairs of a scope."""
    searchable: bool = False
    """True if a search may replace a violating pair by a simpler one."""
    looked_at: int | None = None
    """Number of listed pairs that were compared.

    None if an envelope was used, or if a noise model covers all pairs.
    """
    by_law: bool = True
    """True if the losses are those of laws; else they are those of an envelope."""

    @property
    def complete(self) -> bool:
        """True if the losses or the bound cover all neighbours; see ``unchecked``."""
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
    """Compare the stated laws on pairs of the adjacency.

    If pairs are given, only these are compared. Otherwise, if the adjacency enumerates
    its pairs, all are compared. Otherwise the listed pairs are compared, and the worst
    pair that a search finds. All other pairs are then covered if the mechanism declares
    a noise model that no pair contradicts.
    """
    everything = adjacency.exhaustive() if given is None else None
    if everything is not None:
        return _enumerated(stated, adjacency, everything, seed)
    pairs = list(checked_pairs(adjacency, given))
    losses = [stated.loss_of(pair) for pair in pairs]
    looked_at, compared = len(pairs), count(len(pairs), "pair")
    if given is not None:
        coverage = searched(adjacency, compared)
        return Compared(pairs, losses, coverage, looked_at=looked_at)
    # A model of noise covers all pairs, unless one contradicts it.
    noise = declared_noise(able, stated, pairs[0].data)
    departures = []
    if noise is not None:
        departures = list(filter(None, map(noise.departure, pairs)))
    found = _search(stated, adjacency, noise, departures, seed=seed, examples=examples)
    # A pair and its reverse have the same loss.
    listed = {key(each) for pair in pairs for each in (pair, pair.swapped())}
    new = [pair for pair in found if key(pair) not in listed]
    if new:
        pairs.append(max(new, key=lambda pair: size(stated.loss_of(pair))))
        losses.append(stated.loss_of(pairs[-1]))
        compared += f" and {len(new):,} that a search found"
    if noise is None:
        coverage = searched(adjacency, compared, offers(adjacency).remedy)
        return Compared(pairs, losses, coverage, True, looked_at)
    # A model that was tested on listed pairs alone is not tested at all.
    if not departures and not new:
        departures = [
            "the adjacency only lists pairs and generates no others, so nothing "
            "is known about other inputs"
        ]
    bound = noise.bound(claimed_point(claim))
    departure = departures[0] if departures else ""
    coverage = additive(adjacency, noise, bound, compared, departure)
    return Compared(pairs, losses, coverage, True, looked_at if departures else None)


def _search(
    stated: Stated,
    adjacency: Adjacency,
    noise: DeclaredNoise | None,
    departures: list[str],
    *,
    seed: int,
    examples: int,
) -> list[Pair]:
    """Return the distinct pairs that two searches find.

    The first is for a large loss. The second is for a contradiction of the noise model,
    if there is a model and none was found before. A sentence on each contradiction is
    added to ``departures``. Without generated pairs the list is empty.
    """
    offered = offers(adjacency)
    if offered.generated is None:
        return []

    def check(pair: Pair) -> None:
        departure = "" if noise is None else noise.departure(pair)
        if departure:
            departures.append(departure)

    def loss(pair: Pair) -> float:
        check(pair)
        return max(size(stated.loss_of(pair))[:2])

    def departs(pair: Pair) -> float:
        # It is called only with a model.
        assert noise is not None
        check(pair)
        return noise.size(pair)

    found = maximise(offered.generated, loss, examples=examples, seed=seed)
    if noise is not None and not departures:
        # A contradiction may be found on inputs far from those of a large loss.
        wide = offered.generated if offered.wide is None else offered.wide
        # If a mechanism refuses all inputs, they show nothing.
        with suppress(AuditError):
            found += maximise(wide, departs, examples=2 * examples, seed=seed)
    return _distinct(stated, (pair for _, pair in found))


def _distinct(stated: Stated, pairs: Any) -> list[Pair]:
    """Return the distinct pairs whose laws are stated."""
    distinct = []
    for pair in {key(pair): pair for pair in pairs}.values():
        with suppress(AuditError):
            stated.loss_of(pair)
            distinct.append(pair)
    return distinct


def _enumerated(
    stated: Stated, adjacency: Adjacency, pairs: list[Pair], seed: int
) -> Compared:
    """Compare all pairs of an adjacency.

    If the adjacency lists its pairs up to the order of nodes, some pairs are compared
    again with their nodes in another order.
    """
    losses = [stated.loss_of(pair) for pair in pairs]
    looked_at, tried = len(pairs), 0
    unlike: list[tuple[Pair, Pair]] = []
    if isinstance(adjacency, UpToOrder) and adjacency.unlabelled:
        rng = np.random.default_rng(seed)
        # Twenty orders of each pair, and 200 altogether, protect time.
        tried = min(200, 20 * looked_at)
        for number in range(tried):
            pair = pairs[int(rng.integers(looked_at))]
            other = adjacency.reordered(pair, number, rng)
            if not _alike(stated, pair, other):
                unlike.append((pair, other))
    depends = ""
    if unlike:
        pair, other = unlike[0]
        depends = (
            f"the law depends on the order of the nodes ({pair} loses {stated.loss_of(pair)}, {other} loses "
            f"{stated.loss_of(other)}, or gives its outputs other probabilities); leave unlabelled=True out"
        )
        others = [other for _, other in unlike]
        found = max(others, key=lambda pair: size(stated.loss_of(pair)))
        pairs, losses = [*pairs, found], [*losses, stated.loss_of(found)]
    coverage = enumerated(adjacency, looked_at, tried, depends)
    return Compared(pairs, losses, coverage, looked_at=looked_at)


def _alike(stated: Stated, pair: Pair, other: Pair) -> bool:
    """Return True if a pair in another order of the nodes has the same loss and law.

    Losses and probabilities are compared up to rounding. The probabilities of a law are
    sorted before.
    """
    rounding = 1e-9
    one, two = stated.loss_of(pair), stated.loss_of(other)
    ends = [(one.lower, two.lower), (one.upper, two.upper)]
    for this, that in ((one.delta, two.delta), (one.mu, two.mu)):
        if this is not None and that is not None:
            ends.append((float(this.mid()), float(that.mid())))
    if not all(np.isclose(a, b, rtol=rounding, atol=rounding) for a, b in ends):
        return False
    first, second = stated.law_of(pair.data), stated.law_of(other.data)
    if not isinstance(first, FiniteLaw) or not isinstance(second, FiniteLaw):
        return type(first) is type(second)
    # Outputs of probability 0 may be listed or not.
    longest = max(len(first.floats), len(second.floats))
    mine, theirs = (
        np.sort(np.pad(law.floats, (longest - len(law.floats), 0)))
        for law in (first, second)
    )
    floats = first.left_out.floats or second.left_out.floats
    return np.allclose(mine, theirs, rtol=rounding, atol=floats * FLOAT_ABSOLUTE_ERROR)


def by_envelope(
    envelope: Envelope, stated: Stated | None, adjacency: Box, seed: int
) -> Compared:
    """Bound the loss of all pairs of a domain by an envelope.

    An envelope states a least and a largest probability of each output over all inputs,
    and the bound follows from both. It also states a pair of inputs that attains both.
    If the law of the output is not stated, these pairs are the compared ones, with the
    losses of the envelope. Otherwise the losses of pairs are computed from the law, and
    a loss above the bound contradicts the envelope.
    """
    pairs = [Pair(large, small) for large, small in envelope.inputs]
    for pair in pairs:
        adjacency.check(pair)
    bounds = envelope_losses(envelope)
    bound = max(bounds, key=lambda loss: (loss.upper, loss.lower))
    compared: list[Pair] = []
    if stated is not None and stated.of_output:
        compared = _of_box(stated, adjacency, pairs, seed)
    if stated is None or not compared:
        return Compared(pairs, bounds, enclosed(adjacency, bound), by_law=False)
    losses = [stated.loss_of(pair) for pair in compared]
    worst = max(range(len(compared)), key=lambda k: size(losses[k]))
    beyond = ""
    # A law that loses more than its envelope shows that the envelope is wrong.
    if losses[worst].lower > bound.upper * (1 + ROUNDING_TOLERANCE):
        beyond = (
            f"its law loses {losses[worst]} on {compared[worst]}, more than its "
            f"envelope allows, {bound}: correct the "
            "envelope, such as its uses"
        )
    return Compared(compared, losses, enclosed(adjacency, bound, len(compared), beyond))


def _of_box(stated: Stated, adjacency: Box, pairs: list[Pair], seed: int) -> list[Pair]:
    """Return given, listed and searched pairs of a box whose laws are stated."""
    candidates = [*pairs, *adjacency.pairs()]

    def loss(pair: Pair) -> float:
        return stated.loss_of(pair).lower

    # The search fails if no pair has a stated law.
    with suppress(AuditError):
        found = maximise(adjacency.strategy(), loss, examples=40, seed=seed)
        candidates += [pair for _, pair in found]
    return _distinct(stated, candidates)


def enumerated(
    adjacency: Adjacency, pairs: int, reordered: int = 0, unlike: str = ""
) -> Coverage:
    """Return the coverage of an adjacency all of whose pairs were compared.

    Args:
        adjacency: The neighbours.
        pairs: Number of pairs.
        reordered: Number of pairs that were compared in another order of the nodes.
        unlike: Sentence on a pair whose law depends on this order; empty if none does.
            If given, it is the reason why other orders are not covered.
    """
    many = f"all {count(pairs, 'pair')}" if pairs > 1 else "the only pair"
    if unlike:
        scope = (
            f"{many} and {reordered} in another order of the nodes, of {adjacency.name}"
        )
        return Coverage(scope, unlike)
    assumed = []
    if isinstance(adjacency, AnyValues):
        assumed = ["scope: these values are the whole domain"]
    if reordered:
        tried = f"true on {reordered} pairs in another order of the nodes"
        assumed = [f"it treats nodes alike: {tried}, and not proved on all"]
    return Coverage(f"{many} of {adjacency.name}", assumptions=assumed)


def enclosed(
    adjacency: Adjacency, largest: PairLoss, compared: int = 0, beyond: str = ""
) -> Coverage:
    """Return the coverage of all pairs of a domain by the loss of an envelope.

    Args:
        adjacency: The domain.
        largest: The loss of the envelope.
        compared: Number of pairs whose law was compared with the envelope.
        beyond: Sentence on a pair that loses more than the envelope; empty if none
            does. If given, only the compared pairs are covered.
    """
    if beyond:
        return Coverage(f"{count(compared, 'pair')} of {adjacency.name}", beyond)
    assumed = "its envelope is the least and the most of every output"
    if compared:
        assumed += (
            f": its law lost no more on {count(compared, 'pair')}, and that is "
            "searched, not proved, for all others"
        )
    else:
        assumed += ", attained as stated: no law was there to compare"
    return Coverage(f"all pairs of {adjacency.name}", "", largest, [assumed])


def additive(
    adjacency: Adjacency,
    noise: DeclaredNoise,
    largest: PairLoss,
    compared_pairs: str,
    departure: str = "",
) -> Coverage:
    """Return the coverage of all neighbours by the declared model of additive noise.

    Args:
        adjacency: The neighbours.
        noise: The model: noise of one scale and shape around answers of a declared
            sensitivity.
        largest: The loss of answers that are as far apart as the sensitivity.
        compared_pairs: The compared pairs, in words.
        departure: Sentence on a contradiction of the model; empty if there is none. If
            given, only the compared pairs are covered.
    """
    if departure:
        return Coverage(f"{compared_pairs} of {adjacency.name}", departure)
    apart = f"at most {noise.sensitivity:g} apart in {noise.norm}"
    around = " around its query" if noise.able.query is not None else ""
    others = f"true on {compared_pairs}, and searched, not proved, on all others"
    return Coverage(
        f"all neighbours with queries {apart}, as declared, of noise of one scale{around}; {adjacency.name}",
        "",
        largest,
        [
            f"the noise has one scale and shape{around}, whatever the data: {others}",
            f"the answers of neighbours are {apart}: declared; {others}",
        ],
    )


def searched(adjacency: Adjacency, compared_pairs: str, remedy: str = "") -> Coverage:
    """Return the coverage of the compared pairs alone.

    ``remedy`` is a phrase for a change that would cover all pairs, or empty.
    """
    more = f"; {remedy}" if remedy else ""
    unchecked = f"not all neighbouring pairs were covered{more}"
    return Coverage(f"{compared_pairs} of {adjacency.name}", unchecked)
