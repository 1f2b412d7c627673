"""Results of traces of pairs before a game, and the order of pairs by these results.

Two runs of a pair, without statistics, give the change of each value that noise is
added to. Pairs come first if a number of the output bypasses the noise, and next if
outputs or control flow differ otherwise. Pairs of one kind are ordered by the traced
loss.
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
    """Largest number of pairs that are compared in full at the end of a search, and of
    outcomes of chance that are tried on a chosen pair."""
    proposed = 2
    """Largest number of proposed pairs whose traced loss exceeds the claim."""
    min_gain = 1.05
    """Smallest loss of a proposed pair that satisfies the claim, as a multiple of the
    largest loss of listed pairs."""
    sufficient_loss = 3.0
    """Traced loss, as a multiple of the claim, after which a search soon ends if runs
    are expensive (``SearchLimits.after_sufficient``)."""
    largest_loss = 100.0
    """Largest loss that ranks a pair, as a multiple of the claim. A larger loss counts
    as this one, since outputs with either loss are separated with certainty."""
    bypass = 2
    """``TracedPair.kind`` if a number of the output bypasses the noise in a run without
    random events or choices."""


PROMISED = MOST_PROMISED
"""Expected gain of a call, relative to a listed pair, if the trace explains a loss."""


@dataclass
class TraceLook:
    """Results of traces of pairs before a game.

    Attributes:
        trace: Trace of the mechanism.
        seed: The seed of the runs.
        max_runs: Largest number of runs of the trace.
        pairs: Number of pairs that were compared.
        covers: True if in all compared runs the losses of the releases bound the loss
            of the output.
        is_compared: Whether pairs were compared by outputs, or by laws for sampled
            records.
        share: The largest loss of a compared pair, as a multiple of the claim, possibly
            infinite.
        looked: Pairs that were compared in full, with other outcomes of chance: the
            listed pairs, then the others.
        failed: The reason why the trace ended early, or "".
        proposed: Pairs to be played beside the listed ones, the best first, each with
            its promise: the expected gain of a call, relative to a listed pair.
        candidates: Pairs for the comparison by fitted laws, the listed pairs first.
        listed: Number of listed pairs among the candidates. With a run budget they are
            not counted, and it is 0.
        compared: Comparisons of pairs by their keys, for reuse with a run budget; empty
            without one.
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
        """True if the code samples records, so that two runs do not give the loss.

        It is False if an understood loss already exceeds the claim.
        """
        if self.is_broken:
            return False
        firsts = [each.trace.first for each in self.looked]
        return any(is_sample(release) for run in firsts for release in run.releases)

    @property
    def is_summed(self) -> bool:
        """True if outputs have fewer numbers than noisy values, as final models do."""
        first = self.looked[0].trace.first
        noisy = [np.size(r.result) for r in first.releases if r.kind == NOISY]
        return sum(noisy) > sum(1 for _ in leaves(first.output))

    @property
    def runs(self) -> int:
        """Number of runs of the mechanism so far."""
        return self.trace.runs

    @property
    def is_traced(self) -> bool:
        """True if the trace understands all code on some pair: then it ranks pairs."""
        return any(each.trace.extent == "full" for each in self.looked)

    @property
    def is_broken(self) -> bool:
        """True if the trace understands a loss above the claim on some pair."""
        return any(each.is_broken for each in self.looked)

    @property
    def is_suspect(self) -> bool:
        """True if a loss exceeds the claim, or a run deviates from its accountant."""
        return self.is_broken or any(is_suspect(each.trace) for each in self.looked)

    def replayed(
        self, form: Representation, claim: Claim, budget: RunBudget | None = None
    ) -> ReplayedRatio | None:
        """Derive laws for the most promising pair, and update ``proposed`` by them.

        Args:
            form: The representation of outputs as rows.
            claim: The claim of the game.
            budget: The run budget, or None if runs are cheap.

        Returns:
            The forecaster by these laws. None if no law can be derived, or if no pair
            was compared in full.
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
        """Propose the chosen pair instead of the other candidates.

        A listed pair needs no proposal. If no pair was chosen, nothing changes.
        """
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
        """True if the trace understands a loss above the claim."""
        return self.trace.proposes

    @property
    def loss(self) -> float:
        """The traced loss as a multiple of the claim, at most 100."""
        return min(self.trace.share, ProposalPolicy.largest_loss)

    @cached_property
    def kind(self) -> int:
        """The kind of difference: 2, 1 or 0; a larger one is more promising.

        It is 2 (``ProposalPolicy.bypass``) if a number of the output bypasses the
        noise, in a run without random events or choices. It is 1 if outputs or control
        flow differ in another way, and otherwise 0.
        """
        trace = self.trace
        if trace.differ is not None and not trace.by_chance:
            return ProposalPolicy.bypass
        parted = trace.second.parted and not trace.reordered
        return int(trace.differ is not None or bool(parted))

    def rank(self, budget: RunBudget | None) -> PairRank:
        """Return the sort key of the pair by this comparison alone.

        Args:
            budget: The run budget, or None if runs are cheap; ``PairRank.loss`` depends
                on it.
        """
        return PairRank.of([self.trace], budget)

    def suffices(self) -> bool:
        """Return True if the trace understands a loss of three times the claim or more.

        If the scale of noise differs between the inputs, the noisy values also have to
        be three standard scales apart.
        """
        trace = self.trace
        # A difference of scales is visible in the tails only, unless it is large.
        is_scaled = any(moved.why == "scale" for moved in trace.moved)
        is_apart = not is_scaled or trace.scales_apart >= ProposalPolicy.sufficient_loss
        return (
            self.is_broken and self.loss >= ProposalPolicy.sufficient_loss and is_apart
        )

    @property
    def reason(self) -> tuple[Any, ...]:
        """A value that is equal for pairs that differ alike at the same lines."""
        trace = self.trace
        parted = frozenset(site for site, _ in trace.second.parted)
        moved = frozenset(moved.first.site for moved in trace.moved if moved.distance)
        return self.kind, trace.is_hidden, parted, moved


class PairRank(NamedTuple):
    """The sort key of a pair by one or more traced runs; larger is more promising.

    Attributes:
        kind: The smallest ``TracedPair.kind`` of the runs.
        loss: The smallest loss of the runs, as a multiple of the claim. With a run
            budget, it is multiplied by the part of the change that a final model keeps.
            From 100 on it is replaced by 100 plus the distance of the laws.
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
            apart: The pair's result of ``bypassing_distances``; used with a run budget.
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
    """Return the share of outputs with a number that only their input gives.

    The number has to occur in at least two runs on this input.
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
    """Return the first pair of each ``TracedPair.reason``."""
    first: dict[Any, TracedPair] = {}
    for each in pairs:
        first.setdefault(each.reason, each)
    return list(first.values())
