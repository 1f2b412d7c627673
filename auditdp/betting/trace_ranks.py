"""How pairs rank by what a trace saw of them: what got round the noise and control flow that parted, then the loss."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from auditdp.adjacency import Pair
from auditdp.mechanism.calls.leaves import leaves
from auditdp.tracing import PairTrace

LARGEST = 100.0
"""A larger loss, as a multiple of the claim, is no better by itself: what is then better is how far apart the laws are."""
CLOSE = 1e-9
"""How far losses in two runs are apart by rounding, relatively."""
ROUND = 2
"""The kind of a pair on which something got round the noise that chance cannot have decided."""


@dataclass(frozen=True, eq=False)
class TracedPair:
    """A pair and what a trace says of it."""

    pair: Pair
    trace: PairTrace

    @property
    def is_broken(self) -> bool:
        """Whether the trace proposes that the claim fails, for a reason that it understands."""
        return self.trace.proposes

    @property
    def loss(self) -> float:
        """What it loses, as a multiple of the claim."""
        return min(self.trace.share, LARGEST)

    @cached_property
    def rank(self) -> tuple[int, float]:
        """By which pairs are put in order, the largest first."""
        trace = self.trace
        if trace.differ is not None and not trace.by_chance:
            return ROUND, self.loss
        parted = trace.second.parted and not trace.reordered
        apart = trace.apart if self.loss == LARGEST else 0.0
        return int(trace.differ is not None or bool(parted)), self.loss + apart

    def shows(self, enough: float) -> bool:
        """Return whether it shows so many times what the claim allows: noise whose scale moves has to move as much."""
        trace = self.trace
        scaled = any(moved.why == "scale" for moved in trace.moved)
        return trace.proposes and self.loss >= enough and (not scaled or trace.scales_apart >= enough)

    @property
    def reason(self) -> tuple[Any, ...]:
        """What pairs share that show the same kind of thing."""
        sites = frozenset(site for site, _ in self.trace.second.parted)
        return (
            self.rank[0],
            self.trace.is_hidden,
            sites,
            frozenset(moved.first.site for moved in self.trace.moved if moved.distance),
        )


class RunsOfPair(NamedTuple):
    """How a pair ranks over several runs, first by how many it was worth.

    Attributes:
        runs: How many there were.
        is_round: Whether something got round the noise in all of them, whatever chance decides.
        told: In what part of the runs an output has a number that one input gave several times, and the other never.
        kind: The mean of the first part of its ranks.
        is_known: Whether it does so by noise alone, not by an order or a sample of rows that may be another one.
        is_steady: Whether the pair loses the same in all of them, more than the claim.
        least: The least loss.
    """

    runs: int
    is_round: bool
    told: float
    kind: float
    is_known: bool
    is_steady: bool
    least: float

    @classmethod
    def of(cls, pair: Pair, traces: Sequence[PairTrace], *, few: bool, apart: float = 0.0) -> RunsOfPair:
        """Return it for some traces of a pair; with ``few``, of losses that have no bound, by what tells them apart."""
        looked = [TracedPair(pair, trace) for trace in traces]
        kinds, shares = zip(*(each.rank for each in looked), strict=True)
        if few:
            shares = tuple(
                LARGEST + each.trace.scales_apart + apart if each.loss == LARGEST else each.loss * each.trace.coherence
                for each in looked
            )
        least = min(shares)
        unbounded = few and least >= LARGEST
        steady = least > 1 and (unbounded or max(shares) - least <= CLOSE * least)
        known, kind = steady and not traces[0].is_hidden, math.fsum(kinds) / len(traces)
        told = 0.0 if few else told_apart(traces)  # of few runs some share a number by chance
        return cls(len(traces), min(kinds) == ROUND, told, kind, known, steady, least)


def told_apart(traces: Sequence[PairTrace]) -> float:
    """Return in what part of the runs an output has a number that one input gave several times and the other never."""
    try:
        sides = [
            [set(leaves(run.output)) for run in runs]
            for runs in zip(*((t.first, t.second) for t in traces), strict=True)
        ]
    except Exception:  # of a type that no output of an audit may have
        return 0.0
    counts = [Counter(chain.from_iterable(side)) for side in sides]
    only = [{x for x, n in mine.items() if n > 1 and x not in theirs} for mine, theirs in (counts, counts[::-1])]
    told = [not own.isdisjoint(numbers) for own, side in zip(only, sides, strict=True) for numbers in side]
    return sum(told) / len(told)


def by_reason(pairs: Sequence[TracedPair]) -> list[TracedPair]:
    """Return the first pair of every reason."""
    return list({each.reason: each for each in reversed(pairs)}.values())[::-1]
