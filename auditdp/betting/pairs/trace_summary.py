"""Results of tracing pairs before a game, and the order of pairs by them.

Two runs of a pair show without statistics how far it moves the value that noise is
added to. A pair comes first if a number bypasses the noise, or control flow depends on
the data; then the traced loss counts.
"""

from __future__ import annotations

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
from auditdp.betting.forecasters.traced import ReplayedRatio, RunBudget, ways_of
from auditdp.claims.claim import Claim
from auditdp.mechanism.calls.leaves import leaves
from auditdp.mechanism.calls.representation import Representation
from auditdp.tracing import PairTrace, Trace, in_full
from auditdp.tracing.chance import is_sample
from auditdp.tracing.draws import NOISY
from auditdp.tracing.training_steps import is_suspect


class ProposalPolicy:
    """Numbers that decide which pairs a trace proposes."""

    full_comparisons = 6
    """Outcomes of random choices that are tried of a pair at the end of a search."""
    proposed = 2
    """Pairs that are proposed because the traced loss exceeds the claim."""
    min_gain = 1.05
    """Factor by which a pair has to lose more than the listed ones to be played."""
    sufficient_loss = 3.0
    """Traced loss, as a multiple of the claim, at which expensive runs go to the
    game."""
    largest_loss = 100.0
    """Traced losses are cut to this multiple of the claim: larger ones are as
    certain."""
    bypass = 2
    """The kind of a pair on which a number bypasses the noise, not by a random
    choice."""


PROMISED = MOST_PROMISED
"""Expected gain of a call, relative to a listed pair, if the trace explains a loss."""


@dataclass
class TraceLook:
    """Results of tracing pairs before a game.

    Attributes:
        trace: Of the mechanism.
        seed: The seed of the runs.
        max_runs: Runs that the trace may have.
        pairs: Number of pairs that were compared.
        covers: Whether the loss of the releases bounds that of the output on all pairs,
            as far as one run of each shows.
        is_compared: Whether outputs of pairs, or fitted laws, were compared.
        share: The largest loss, as a multiple of the claim.
        looked: Pairs that were compared with other outcomes of chance: the listed
            ones, then the others.
        failed: The reason why the trace ended early, or "".
        proposed: Pairs to be played beside the listed ones, the best first, with the
            expected gain of a call.
        candidates: Pairs that are compared by fitted laws, the listed ones first.
        listed: The number of listed ones among these.
        compared: Runs of pairs by their keys, which are reused with a run budget.
    """

    trace: Trace
    seed: int
    max_runs: int
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
        """True if records are sampled, so that two runs do not show the loss."""
        if self.is_broken:
            return False
        firsts = [each.trace.first for each in self.looked]
        return any(is_sample(release) for run in firsts for release in run.releases)

    @property
    def is_summed(self) -> bool:
        """True if an output has fewer numbers than noise, as a final model."""
        first = self.looked[0].trace.first
        noisy = [np.size(r.result) for r in first.releases if r.kind == NOISY]
        return sum(noisy) > sum(1 for _ in leaves(first.output))

    @property
    def runs(self) -> int:
        """Runs of the mechanism so far."""
        return self.trace.runs

    @property
    def is_traced(self) -> bool:
        """True if all code is understood on some pair, so that traces rank pairs."""
        return any(each.trace.extent == "full" for each in self.looked)

    @property
    def is_broken(self) -> bool:
        """True if an understood loss exceeds the claim on some pair."""
        return any(each.is_broken for each in self.looked)

    @property
    def is_suspect(self) -> bool:
        """True if that is so, or a run contradicts the parameters of an accountant."""
        return self.is_broken or any(is_suspect(each.trace) for each in self.looked)

    def replayed(
        self, form: Representation, claim: Claim, budget: RunBudget | None = None
    ) -> ReplayedRatio | None:
        """Read laws off the most promising pair, and propose this pair.

        Args:
            form: The representation of outputs as rows.
            claim: The claim of the game.
            budget: The run budget, or None if runs are cheap.

        Returns:
            The forecaster by these laws, or None if there are none.
        """
        ways = ways_of(understood=self.is_traced, runs=self.max_runs, budget=budget)
        if not self.looked or not ways:
            return None
        reader = ReplayedRatio(
            self.trace, claim, seed=self.seed, ways=ways, budget=budget
        )
        best = max(self.looked, key=lambda each: each.trace.share).pair
        pairs = [pair for pair, _ in self.proposed] or [best]
        reader.keep(self.compared)
        if budget is None:
            chosen = reader.reads_one_of([*pairs[:1], *self.candidates], form)
            self._propose_chosen(reader, chosen)
            return reader if chosen else None
        if self.is_sampled:
            sampled = reader.best_subsampled_pair(self.candidates, form)
            if sampled is not None:
                self.is_compared = True
                pairs = [sampled]
                if sampled is not self.candidates[0]:
                    self.proposed = [(sampled, PROMISED)]
        chosen = reader.reads_one_of(pairs, form)
        if self.proposed:
            self.proposed = [(chosen or pairs[0], PROMISED)]
        return reader if chosen else None

    def _propose_chosen(self, reader: ReplayedRatio, chosen: Pair | None) -> None:
        """Propose the chosen pair in the place of those that it was compared with."""
        if chosen is None or not self.candidates:
            return
        compared = {key(pair) for pair in self.candidates}
        others = [each for each in self.proposed if key(each[0]) not in compared]
        if any(chosen is pair for pair in self.candidates[: self.listed]):
            self.proposed = others
            return
        if key(chosen) not in {key(pair) for pair, _ in self.proposed}:
            trace = in_full(
                self.trace, reader.compare(chosen, 0), ProposalPolicy.full_comparisons
            )
            self.looked.append(TracedPair(chosen, trace))
        self.proposed = [(chosen, PROMISED), *others][: ProposalPolicy.proposed]


@dataclass(frozen=True, eq=False)
class TracedPair:
    """A pair and the comparison of its two traced runs."""

    pair: Pair
    trace: PairTrace

    @property
    def is_broken(self) -> bool:
        """True if the trace understands a loss that exceeds the claim."""
        return self.trace.proposes

    @property
    def loss(self) -> float:
        """The traced loss, as a multiple of the claim, cut to ``ProposalPolicy.largest_loss``."""
        return min(self.trace.share, ProposalPolicy.largest_loss)

    @cached_property
    def kind(self) -> int:
        """``ProposalPolicy.bypass``, or 1 if outputs or control flow differ otherwise, or else 0."""
        trace = self.trace
        if trace.differ is not None and not trace.by_chance:
            return ProposalPolicy.bypass
        parted = trace.second.parted and not trace.reordered
        return int(trace.differ is not None or bool(parted))

    def rank(self, budget: RunBudget | None) -> PairRank:
        """Return the sort key of the pair by this comparison alone."""
        return PairRank.of([self.trace], budget)

    def suffices(self) -> bool:
        """True if the loss is ``ProposalPolicy.sufficient_loss``, in units of noise as well."""
        trace = self.trace
        # Noise of another scale shows in tails, unless the scale differs as much.
        is_scaled = any(moved.why == "scale" for moved in trace.moved)
        is_apart = not is_scaled or trace.scales_apart >= ProposalPolicy.sufficient_loss
        return (
            self.is_broken and self.loss >= ProposalPolicy.sufficient_loss and is_apart
        )

    @property
    def reason(self) -> tuple[Any, ...]:
        """A value that is equal for pairs that differ at the same lines."""
        trace = self.trace
        parted = frozenset(site for site, _ in trace.second.parted)
        moved = frozenset(moved.first.site for moved in trace.moved if moved.distance)
        return self.kind, trace.is_hidden, parted, moved


class PairRank(NamedTuple):
    """The sort key of a pair by one or more traced runs; larger is more promising.

    Attributes:
        kind: The least kind of the runs.
        loss: The least loss. With a run budget, the part that a final model keeps.
    """

    kind: int
    loss: float

    @classmethod
    def of(
        cls, traces: Sequence[PairTrace], budget: RunBudget | None, apart: float = 0.0
    ) -> PairRank:
        """Return the key for traces of a pair.

        Args:
            traces: The traces.
            budget: The run budget, or None if runs are cheap.
            apart: The distance of the outputs beside the noise.
        """
        pairs = [TracedPair(Pair(None, None), trace) for trace in traces]
        losses = []
        for each in pairs:
            is_bounded = each.loss < ProposalPolicy.largest_loss
            if budget is None:
                losses.append(each.loss + (not is_bounded) * each.trace.apart)
            elif is_bounded:
                losses.append(each.loss * each.trace.coherence)
            else:
                losses.append(
                    ProposalPolicy.largest_loss + each.trace.scales_apart + apart
                )
        return cls(min(each.kind for each in pairs), min(losses))


def separable_share(traces: Sequence[PairTrace]) -> float:
    """Return the share of outputs with a number that occurs on their input only.

    It has to occur in two runs of this input at least.
    """
    try:
        sides = [
            [set(leaves(trace.first.output)) for trace in traces],
            [set(leaves(trace.second.output)) for trace in traces],
        ]
    except Exception:
        # Numbers of a user's own type may not be hashable.
        return 0.0
    counts = [Counter(chain.from_iterable(side)) for side in sides]
    separable = 0
    for side, mine, theirs in zip(sides, counts, counts[::-1], strict=True):
        own = {x for x, n in mine.items() if n > 1 and x not in theirs}
        separable += sum(not own.isdisjoint(numbers) for numbers in side)
    return separable / (2 * len(traces))


def by_reason(pairs: Sequence[TracedPair]) -> list[TracedPair]:
    """Return the first pair of every reason."""
    first: dict[Any, TracedPair] = {}
    for each in pairs:
        first.setdefault(each.reason, each)
    return list(first.values())
