"""What a trace saw of pairs before a game, and the forecaster by laws that are read off the pair that promises most.

How pairs rank by what a trace saw of them: what got round the noise and control flow that parted, then the loss.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from auditdp.adjacency import Pair
from auditdp.adjacency.pair_search import key
from auditdp.adjacency.remote_adjacency import MOST_PROMISED
from auditdp.betting.forecasters.traced import ReplayedRatio, ways_of
from auditdp.claims.claim import Claim
from auditdp.mechanism.calls.leaves import leaves
from auditdp.mechanism.calls.representation import Representation
from auditdp.tracing import PairTrace, Trace, in_full
from auditdp.tracing.chance import is_sample
from auditdp.tracing.draws import NOISY
from auditdp.tracing.training_steps import is_suspect

FULL = 6
"""Pairs that are looked at with other outcomes of chance at the end, at most."""
MOST_BROKEN = 2
"""Pairs that are proposed for a reason that the trace understood."""
BETTER = 1.05
"""A pair is worth its calls if it loses so many times what the listed ones lose."""
PROMISED, NOTABLE = MOST_PROMISED, 4.0
"""What a call of a pair promises to gain, relative to a listed one: where the trace understood why, and where it did not."""


@dataclass
class TraceLook:
    """What a trace saw before a game.

    Attributes:
        trace: Of the mechanism.
        seed: Of the runs.
        most: Runs that it may have.
        pairs: Pairs that were looked at.
        covers: Whether the loss of the releases bounds that of the output on all of them, as far as one run of each shows.
        is_compared: Whether outputs of pairs, or laws that are read off them, were compared.
        share: The largest loss, as a multiple of the claim.
        looked: Pairs that were looked at with other outcomes of chance: the listed ones, then the others.
        failed: Why the trace ended early; empty where it did not.
        proposed: Those that are to be played beside the listed ones, each with what it promises, the best first.
        candidates: Pairs that are compared by what is read off them, for what two runs do not tell.
        listed: So many of these are listed ones, the first.
        compared: Runs of pairs by their keys, which are not made again where runs are few.
    """

    trace: Trace
    seed: int
    most: int
    pairs: int = 0
    covers: bool = False
    is_compared: bool = False
    share: float = 0.0
    looked: list[TracedPair] = field(default_factory=list)
    failed: str = ""
    proposed: list[tuple[Pair, float]] = field(default_factory=list)
    candidates: list[Pair] = field(default_factory=list)
    listed: int = 0
    compared: dict[Any, list[PairTrace]] = field(default_factory=dict)

    @property
    def is_sampled(self) -> bool:
        """Whether records are drawn, so that two runs do not tell what a pair loses, and nothing else is broken."""
        drawn = any(
            is_sample(release)
            for each in self.looked
            for release in each.trace.first.releases
        )
        return drawn and not self.is_broken

    @property
    def is_summed(self) -> bool:
        """Whether outputs have fewer numbers than noise was added to, as a final model, on the first pair."""
        first = self.looked[0].trace.first
        noisy = sum(
            np.size(release.result)
            for release in first.releases
            if release.kind == NOISY
        )
        return noisy > sum(1 for _ in leaves(first.output))

    @property
    def runs(self) -> int:
        """Runs of the mechanism so far."""
        return self.trace.runs

    @property
    def is_traced(self) -> bool:
        """Whether the trace understands all of the code on some pair; else it says too little to choose pairs by."""
        return any(each.trace.extent == "full" for each in self.looked)

    @property
    def is_broken(self) -> bool:
        """Whether the trace proposes that the claim fails on some pair, for a reason that it understands."""
        return any(each.is_broken for each in self.looked)

    @property
    def is_suspect(self) -> bool:
        """Whether the claim fails on some pair, or a run was not what its accountant was told."""
        return self.is_broken or any(is_suspect(each.trace) for each in self.looked)

    def replayed(
        self,
        form: Representation,
        claim: Claim,
        *,
        few: int = 0,
        until: float = math.inf,
    ) -> ReplayedRatio | None:
        """Return the forecaster by the replayed ratio; None where no laws can be read off the pair that promises most.

        With ``few``, which are the runs of all kinds at most, in few runs; see there for ``until``.
        """
        ways = ways_of(understood=self.is_traced, runs=self.most, few=few > 0)
        if not self.looked or not ways:
            return None
        best = (
            self.proposed[0][0]
            if self.proposed
            else max(self.looked, key=lambda each: each.trace.share).pair
        )
        made = ReplayedRatio(
            self.trace, claim, seed=self.seed, ways=ways, few=few, until=until
        )
        made.compared = self.compared
        if not few and (won := self._most_won(made, form)) is not None:
            best = won
        if (
            few
            and self.is_sampled
            and (told := made.told_by_parts(self.candidates, form)) is not None
        ):
            best, self.is_compared = told, True
            if told is not self.candidates[0]:
                self.proposed = [(told, PROMISED)]
        read = made.reads_one_of(
            [pair for pair, _ in self.proposed] if few and self.proposed else [best],
            form,
        )
        if few and self.proposed:
            self.proposed = [(best if read is None else read, PROMISED)]
        return None if read is None else made

    def _most_won(self, made: ReplayedRatio, form: Representation) -> Pair | None:
        """Propose the pair on which a call wins most by the laws that are read off, in the place of those that win little.

        Return it, or None where these laws say nothing.
        """
        won = {
            place: gain
            for place, gain in enumerate(made.won(self.candidates, form))
            if gain is not None
        }
        place = max(won, key=won.__getitem__, default=None)
        if place is None or won[place] <= 0:
            return None
        best = self.candidates[place]
        less = {
            key(self.candidates[k])
            for k, gain in won.items()
            if gain <= won[place] / BETTER
        }
        others = [each for each in self.proposed if key(each[0]) not in less]
        if place < self.listed:
            self.proposed = others
        else:
            self.proposed = [
                (best, PROMISED),
                *(each for each in others if key(each[0]) != key(best)),
            ][:MOST_BROKEN]
            self.looked.append(
                TracedPair(best, in_full(self.trace, made.compare(best, 0), FULL))
            )
        return best


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
        return (
            trace.proposes
            and self.loss >= enough
            and (not scaled or trace.scales_apart >= enough)
        )

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
    def of(
        cls, pair: Pair, traces: Sequence[PairTrace], *, few: bool, apart: float = 0.0
    ) -> RunsOfPair:
        """Return it for some traces of a pair; with ``few``, of losses that have no bound, by what tells them apart."""
        looked = [TracedPair(pair, trace) for trace in traces]
        kinds, shares = zip(*(each.rank for each in looked), strict=True)
        if few:
            shares = tuple(
                LARGEST + each.trace.scales_apart + apart
                if each.loss == LARGEST
                else each.loss * each.trace.coherence
                for each in looked
            )
        least = min(shares)
        unbounded = few and least >= LARGEST
        steady = least > 1 and (unbounded or max(shares) - least <= CLOSE * least)
        known, kind = steady and not traces[0].is_hidden, math.fsum(kinds) / len(traces)
        told = (
            0.0 if few else told_apart(traces)
        )  # of few runs some share a number by chance
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
    only = [
        {x for x, n in mine.items() if n > 1 and x not in theirs}
        for mine, theirs in (counts, counts[::-1])
    ]
    told = [
        not own.isdisjoint(numbers)
        for own, side in zip(only, sides, strict=True)
        for numbers in side
    ]
    return sum(told) / len(told)


def by_reason(pairs: Sequence[TracedPair]) -> list[TracedPair]:
    """Return the first pair of every reason."""
    return list({each.reason: each for each in reversed(pairs)}.values())[::-1]
