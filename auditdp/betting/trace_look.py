"""What a trace saw of pairs before a game, and the forecaster by laws that are read off the pair that promises most."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditdp.adjacency import Pair
from auditdp.adjacency.elsewhere import MOST_PROMISED
from auditdp.adjacency.search import key
from auditdp.betting.forecasting.replayed import ReplayedRatio, ways_of
from auditdp.betting.trace_ranks import TracedPair
from auditdp.claims.base import Claim
from auditdp.mechanism.calls.leaves import leaves
from auditdp.mechanism.calls.representation import Representation
from auditdp.tracing import PairTrace, Trace, in_full
from auditdp.tracing.draws import NOISY
from auditdp.tracing.steps import is_sample, is_suspect

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
        drawn = any(is_sample(release) for each in self.looked for release in each.trace.first.releases)
        return drawn and not self.is_broken

    @property
    def is_summed(self) -> bool:
        """Whether outputs have fewer numbers than noise was added to, as a final model, on the first pair."""
        first = self.looked[0].trace.first
        noisy = sum(np.size(release.result) for release in first.releases if release.kind == NOISY)
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
        self, form: Representation, claim: Claim, *, few: int = 0, until: float = math.inf
    ) -> ReplayedRatio | None:
        """Return the forecaster by the replayed ratio; None where no laws can be read off the pair that promises most.

        With ``few``, which are the runs of all kinds at most, in few runs; see there for ``until``.
        """
        ways = ways_of(understood=self.is_traced, runs=self.most, few=few > 0)
        if not self.looked or not ways:
            return None
        best = self.proposed[0][0] if self.proposed else max(self.looked, key=lambda each: each.trace.share).pair
        made = ReplayedRatio(self.trace, claim, seed=self.seed, ways=ways, few=few, until=until)
        made.compared = self.compared
        if not few and (won := self._most_won(made, form)) is not None:
            best = won
        if few and self.is_sampled and (told := made.told_by_parts(self.candidates, form)) is not None:
            best, self.is_compared = told, True
            if told is not self.candidates[0]:
                self.proposed = [(told, PROMISED)]
        read = made.reads_one_of([pair for pair, _ in self.proposed] if few and self.proposed else [best], form)
        if few and self.proposed:
            self.proposed = [(best if read is None else read, PROMISED)]
        return None if read is None else made

    def _most_won(self, made: ReplayedRatio, form: Representation) -> Pair | None:
        """Propose the pair on which a call wins most by the laws that are read off, in the place of those that win little.

        Return it, or None where these laws say nothing.
        """
        won = {place: gain for place, gain in enumerate(made.won(self.candidates, form)) if gain is not None}
        place = max(won, key=won.__getitem__, default=None)
        if place is None or won[place] <= 0:
            return None
        best = self.candidates[place]
        less = {key(self.candidates[k]) for k, gain in won.items() if gain <= won[place] / BETTER}
        others = [each for each in self.proposed if key(each[0]) not in less]
        if place < self.listed:
            self.proposed = others
        else:
            self.proposed = [(best, PROMISED), *(each for each in others if key(each[0]) != key(best))][:MOST_BROKEN]
            self.looked.append(TracedPair(best, in_full(self.trace, made.compare(best, 0), FULL)))
        return best
