"""A search for pairs by traces, which compute the loss of a pair from two runs.

The code runs on both inputs with the same draws and the same noisy values
(``auditdp.tracing``). The traced loss of a pair has no statistical error, so hundreds
of pairs are compared with the number of runs that a game on one pair takes. The pairs
that rank first are compared again with other draws. Then they are *compared in full*:
with other outcomes of random choices, and some with the inputs swapped.

A trace is no evidence: the game bets on outputs of its own runs, and a wrong proposal
costs the game calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np

from auditdp.adjacency import Adjacency, Pair
from auditdp.adjacency.adjacency import offers
from auditdp.adjacency.pair_search import Drawn, changed, draws, key
from auditdp.betting.forecasters.traced import RunBudget
from auditdp.betting.game import is_stopped
from auditdp.betting.pairs.distances import bypassing_distances, farthest_pair
from auditdp.betting.pairs.search import attempted, generated, is_adjacent
from auditdp.betting.pairs.trace_summary import (
    PROMISED,
    PairRank,
    ProposalPolicy,
    TracedPair,
    TraceLook,
    by_reason,
    separable_share,
)
from auditdp.claims.claim import Claim
from auditdp.errors import AuditError, Timeout
from auditdp.mechanism.calls.allowance import allowance
from auditdp.mechanism.calls.leaves import Raised
from auditdp.mechanism.protocol import is_vectorised
from auditdp.tracing import PairTrace, Trace, compare, in_full
from auditdp.tracing.chance import is_sample
from auditdp.tracing.outcomes import MOST_RUNS


@dataclass(frozen=True)
class SearchLimits:
    """Numbers of runs and pairs of a search by traces.

    Attributes:
        min_runs: Smallest number of runs of a trace; with fewer runs there is none.
        listed: Largest number of listed pairs that are compared in full.
        recorded: Number of seeds of recorded runs, which pairs use in turn: a rare
            event may occur with some of them only.
        repetitions: Number of further comparisons of the pairs that rank first.
        final_share: Share of the runs that is reserved for the last comparisons.
        corner_share: Largest share of corner cases among the compared pairs.
        min_corners: Number of corner cases that are always compared, even after a
            sufficient loss.
        fresh_share: Share of generated pairs that are drawn independently; the others
            are changed copies of the best pairs.
        parents: Number of best pairs that are changed.
        fitted: Largest number of pairs with a loss above the claim that are compared by
            fitted laws.
        after_sufficient: Largest number of runs after a sufficient loss, with a run
            budget.
        sampled: Number of runs of a search if records are sampled, with a run budget.
            It is small, since two runs do not give the loss then.
        by_outputs: Number of pairs whose outputs are compared, with a run budget.
    """

    min_runs: int = 32
    listed: int = 4
    recorded: int = 8
    repetitions: int = 3
    final_share: float = 1 / 3
    corner_share: float = 1 / 2
    min_corners: int = 8
    fresh_share: float = 1 / 2
    parents: int = 8
    fitted: int = 12
    after_sufficient: int = 32
    sampled: int = 40
    by_outputs: int = 8


LIMITS = SearchLimits()


def trace_runs(calls: int, *, vectorised: bool) -> int:
    """Return the largest number of runs of a trace before a game.

    This is a tenth of the calls, at least 600 and at most 20,000, and never more than a
    third. It is half of that for a vectorised mechanism: a traced run is a call of its
    own, which is slow in comparison.

    >>> [trace_runs(n, vectorised=False) for n in (200, 2_000, 50_000, 1_000_000)]
    [66, 600, 5000, 20000]
    """
    runs = max(min(calls // 3, 600), min(calls // 10, 20_000))
    return runs // (1 + vectorised)


class TraceSearch:
    """The search: it compares pairs by two traced runs each, and counts the runs.

    Args:
        mechanism: The mechanism.
        claim: The claim about the mechanism.
        runs: Largest number of runs; the last full comparison may exceed it, and so may
            the search for a worse pair with a run budget.
        seed: The seed of the pairs and of the recorded runs.
        budget: The run budget, or None if runs are cheap.
    """

    def __init__(
        self,
        mechanism: Any,
        claim: Claim,
        *,
        runs: int,
        seed: int,
        budget: RunBudget | None,
    ) -> None:
        self.trace = Trace(mechanism)
        self.claim, self.seed, self.budget = claim, seed, budget
        self.max_runs = runs
        self.look = TraceLook(self.trace, seed, runs)
        self._compared: dict[Any, TracedPair] = {}
        self._traces: dict[Any, list[PairTrace]] = {}
        self._ranks: dict[Any, PairRank] = {}
        self._listed: set[Any] = set()
        self._is_certain = False

    def __call__(
        self, listed: Sequence[Pair], adjacency: Adjacency | None
    ) -> TraceLook:
        """Compare listed pairs and pairs of an adjacency; propose some for the game.

        With fewer than 32 runs, nothing is compared.

        Args:
            listed: The pairs that the game plays in any case.
            adjacency: The source of other pairs; None to compare listed pairs alone.
        """
        if self.max_runs < LIMITS.min_runs:
            return self.look
        self._listed = {key(pair) for pair in listed}
        with self.trace:
            runs = self.max_runs
            if self.budget is not None:
                # A quarter of 300 runs is enough for the listed pairs; all others are
                # for the search and for the game.
                runs = min(runs, 300)
            for pair in listed[: LIMITS.listed]:
                self._compare_in_full(pair, runs // 4 // LIMITS.listed)
            look = self.look
            by_outputs = not look.is_traced or (look.is_sampled and look.is_summed)
            if self.budget is not None and by_outputs and adjacency is not None:
                self._compare_outputs(listed, adjacency)
            elif look.is_traced:
                self._compare_traces(listed, adjacency)
            if look.is_traced:
                traces = [each.trace for each in self._compared.values()]
                look.share = max(trace.share for trace in traces)
                look.covers = all(trace.covers for trace in traces)
        if self.budget is not None:
            single = {name: [each.trace] for name, each in self._compared.items()}
            look.compared = single | self._traces
        return look

    def _compare_traces(
        self, listed: Sequence[Pair], adjacency: Adjacency | None
    ) -> None:
        """Search by traced losses, and propose the pairs with the largest loss."""
        for pair in listed[LIMITS.listed :]:
            self._score(pair)
        if self.look.is_sampled and self.budget is not None:
            self.max_runs = min(self.max_runs, self.trace.runs + LIMITS.sampled)
        is_certain = self._is_certain and self.budget is not None
        if adjacency is not None and not is_certain:
            self._search(adjacency)
        if self._suffices():
            most = self.trace.runs + LIMITS.after_sufficient
            self.max_runs = min(self.max_runs, most)
        self._finish(listed)
        self._choose_candidates(listed)
        if self._suffices():
            broken = [each for each in self.look.looked if each.is_broken]
            others = self._unlisted(broken)[: ProposalPolicy.proposed]
            self.look.proposed = [(each.pair, PROMISED) for each in others]
        elif self.budget is not None and not is_certain:
            self._order_by_outputs()

    def _search(self, adjacency: Adjacency) -> None:
        """Compare corner cases and generated pairs by two runs each."""
        offered, share = offers(adjacency), 1 - LIMITS.final_share
        corners = offered.corner_cases or []
        most = int(LIMITS.corner_share * self._affordable_pairs(share))
        for number, pair in enumerate(corners[:most]):
            if number >= LIMITS.min_corners and self._suffices():
                break
            attempted(partial(self._checked, adjacency, pair))
        if offered.generated is None or self._suffices():
            return
        if self.budget is not None and self._broken():
            # A game on a worse pair saves more runs than the search for it takes.
            self.max_runs = max(self.max_runs, self.budget.for_worse_pair)
        strategy = generated(adjacency)
        best: list[tuple[PairRank, Drawn[Pair]]] = []

        def score(drawn: Drawn[Pair] | None) -> None:
            if drawn is None:
                return
            found = self._checked(adjacency, drawn.value)
            if found is not None:
                best.append((found.rank(self.budget), drawn))
                best.sort(key=lambda each: each[0], reverse=True)
                del best[LIMITS.parents :]

        def score_change(parent: Drawn[Pair], seed: int) -> None:
            score(changed(strategy, parent, seed=seed))

        fresh = int(LIMITS.fresh_share * self._affordable_pairs(share))
        for drawn in islice(draws(strategy, seed=self.seed), fresh):
            attempted(partial(score, drawn))
        for number in range(self._affordable_pairs(share)):
            if best:
                parent = best[number % len(best)][1]
                attempted(partial(score_change, parent, self.seed + number))

    def _choose_candidates(self, listed: Sequence[Pair]) -> None:
        """Choose the pairs for the comparison by fitted laws."""
        if self.budget is not None:
            others = self._unlisted(self._compared.values())
            others.sort(key=lambda each: each.loss, reverse=True)
            pairs = [*listed[:1], *(each.pair for each in others)]
            self.look.candidates = pairs[: LIMITS.by_outputs]
            return
        known = [
            pair for pair in listed[: LIMITS.listed] if key(pair) in self._compared
        ]
        self.look.listed = len(known)
        # Pairs with the largest loss and pairs in the order of the search take turns:
        # the latter begin with the simplest ones and are of all kinds.
        simple = self._unlisted(self._broken())
        if simple:
            lossy = sorted(
                simple,
                key=lambda each: (each.rank(None), each.trace.scales_apart),
                reverse=True,
            )
            turns = dict.fromkeys(chain.from_iterable(zip(lossy, simple, strict=True)))
            others = list(turns)[: LIMITS.fitted]
            self.look.candidates = [*known, *(each.pair for each in others)]

    def _compare_outputs(self, listed: Sequence[Pair], adjacency: Adjacency) -> None:
        """Propose the corner case with the most distant outputs.

        No pair is proposed if the first listed pair has the most distant outputs.
        """
        corners = offers(adjacency).corner_cases or []
        # A distance needs at least six runs on each input.
        most = max(LIMITS.by_outputs, self.max_runs // 72)
        affordable = max(min(most, self.max_runs // 12 - 1), 1)
        checked = [p for p in corners[:affordable] if is_adjacent(adjacency, p)]
        runs = max(6, min(self.max_runs // 50, 16))
        pairs = [*listed[:1], *checked]
        rounds = 3 if affordable > LIMITS.by_outputs else 2
        best = farthest_pair(
            self.trace, pairs, seed=self.seed, runs=runs, rounds=rounds
        )
        self.look.is_compared = True
        if best is not listed[0]:
            self.look.proposed = [(best, PROMISED)]
            if self.look.is_traced and not self.look.looked[0].trace.is_notable:
                self._compare_in_full(best, 1)

    def _order_by_outputs(self) -> None:
        """Propose the pair with the most distant outputs instead of all other pairs.

        It is chosen among the pairs with a loss above the claim. If there is none, and
        no pair differs notably, it is chosen among all compared pairs. If it is listed,
        no pair is proposed. Outputs are compared, since a final model may forget the
        change of a step. The proposals stay as they are with fewer than two such pairs.
        They also stay if the best of them exceeds the claim, and its output contains
        every noisy value with a loss.
        """
        compared, promise = self._broken(), PROMISED
        if not compared and not any(e.trace.is_notable for e in self.look.looked):
            compared, promise = list(self._compared.values()), 1.0
        ranked = sorted(compared, key=self._best_rank, reverse=True)
        is_visible = promise == PROMISED and bool(ranked) and ranked[0].trace.is_visible
        if len(ranked) < 2 or is_visible:
            return
        most = min(max(self.max_runs // 24, 4), 12)
        if promise == PROMISED:
            # Half of them have the largest losses, and half are corner cases, which are
            # of all kinds.
            ranked = list(dict.fromkeys([*ranked[: most - most // 2], *compared]))
        lossy = [each.pair for each in ranked[:most]]
        # A longer search, after a loss above the claim, affords better distances.
        runs = 12 if self.max_runs > self.look.max_runs else 6
        best = farthest_pair(self.trace, lossy, seed=self.seed, runs=runs, rounds=3)
        self.look.proposed = []
        if key(best) not in self._listed:
            self._compare_in_full(best, ProposalPolicy.full_comparisons)
            self.look.proposed = [(best, promise)]

    def _affordable_pairs(self, share: float = 1.0) -> int:
        """Return the number of pairs that can still be compared.

        Args:
            share: The share of all runs that may be used.
        """
        if is_stopped():
            return 0
        return max(int(self.max_runs * share) - self.trace.runs, 0) // 2

    def _suffices(self) -> bool:
        """Return True if a loss is so large that no further search is needed.

        This needs a run budget: if runs are cheap, the search always goes on.
        """
        if self.budget is None:
            return False
        return any(each.suffices() for each in self._broken())

    def _broken(self) -> list[TracedPair]:
        """Return the pairs with a loss above the claim; [] if records are sampled."""
        if self.look.is_sampled:
            return []
        return [each for each in self._compared.values() if each.is_broken]

    def _unlisted(self, pairs: Iterable[TracedPair]) -> list[TracedPair]:
        return [each for each in pairs if key(each.pair) not in self._listed]

    def _checked(self, adjacency: Adjacency, pair: Pair) -> TracedPair | None:
        adjacency.check(pair)
        return self._score(pair)

    def _score(self, pair: Pair) -> TracedPair | None:
        """Compare a pair by two runs.

        Returns:
            The pair; None if it was compared before, or if the mechanism fails on it.
        """
        if key(pair) in self._compared:
            return None
        return self._keep(pair, self._traced(pair, self.look.pairs % LIMITS.recorded))

    def _compare_in_full(self, pair: Pair, outcomes: int) -> None:
        """Compare a pair in full: change the outcomes of chance in its best run.

        The best run has the largest ``PairRank``.

        Args:
            pair: The pair.
            outcomes: Largest number of outcomes that are tried.
        """
        name, is_listed = key(pair), key(pair) in self._listed
        # There is one further comparison for every 128 runs, three at most. With a run
        # budget, an unlisted pair has one at most.
        further = min(LIMITS.repetitions, self.max_runs // 128)
        if self.budget is not None and not is_listed:
            further = min(further, 1)
        traces = self._traces.get(name) or [
            self._traced(pair, number) for number in range(1 + further)
        ]
        is_certain = len(traces) > 1 and separable_share(traces) == 1
        ranks = [PairRank.of([trace], self.budget) for trace in traces]
        best = max(range(len(traces)), key=ranks.__getitem__)
        outcomes = min(max(outcomes, 1), MOST_RUNS)
        if self.budget is not None:
            # There are too many samples of records to try all of them.
            samples = any(map(is_sample, traces[best].first.releases))
            if is_certain or samples:
                outcomes = 1
        traces[best] = trace = in_full(self.trace, traces[best], outcomes)
        self._traces[name] = traces
        self._is_certain |= is_certain or bool(trace.fixed)
        found = self._keep(pair, trace)
        if found is not None:
            self.look.looked.append(found)

    def _traced(self, pair: Pair, number: int) -> PairTrace:
        rng = np.random.default_rng([self.seed, number])
        inputs = (pair.data, pair.neighbour)
        return compare(self.trace, *inputs, rng, claim=self.claim, outcomes=0)

    def _keep(self, pair: Pair, trace: PairTrace) -> TracedPair | None:
        name = key(pair)
        self.look.pairs += name not in self._compared
        outputs = (trace.first.output, trace.second.output)
        errors = [output.error for output in outputs if isinstance(output, Raised)]
        # The mechanism refuses the input, or raises on both.
        if len(errors) == 2 or any(isinstance(error, AuditError) for error in errors):
            return None
        self._compared[name] = found = TracedPair(pair, trace)
        return found

    def _finish(self, listed: Sequence[Pair]) -> None:
        """Compare the unlisted pairs that rank first in full, and propose some."""
        others = self._unlisted(self._compared.values())
        others.sort(key=lambda each: each.rank(self.budget), reverse=True)
        found = self._repeated(others)
        chosen = found[: ProposalPolicy.proposed]
        if not self._suffices():
            lossiest = sorted(found, key=lambda each: -self._best_rank(each).loss)
            chosen = [
                *by_reason(found)[: ProposalPolicy.full_comparisons - 1],
                *lossiest[:1],
            ]
        for number, each in enumerate(dict.fromkeys(chosen)):
            if number and not self._affordable_pairs():
                break
            # A third of the remaining runs is for the next pair.
            outcomes = self._affordable_pairs() // 3
            attempted(partial(self._compare_in_full, each.pair, outcomes))
            if not self._compared[key(each.pair)].is_broken:
                swapped = each.pair.swapped()
                attempted(partial(self._compare_in_full, swapped, outcomes))
        self._propose({*self._listed, *(key(pair.swapped()) for pair in listed)})

    def _repeated(self, pairs: Sequence[TracedPair]) -> list[TracedPair]:
        """Compare pairs again with other draws, each time the better half of them.

        The loss of a pair may depend on the draws, for example on a random order of
        records. The pair with the largest loss in a single run is then often not the
        best.

        Returns:
            The pairs that were compared again, in the order of their ranks by all runs.
        """
        traces = {key(each.pair): [each.trace] for each in pairs}
        self._traces |= traces

        def ranked(some: Sequence[TracedPair]) -> list[TracedPair]:
            names = [key(each.pair) for each in some]
            distances = [0.0] * len(names)
            if self.budget is not None:
                distances = bypassing_distances([traces[name] for name in names])
            for name, distance in zip(names, distances, strict=True):
                self._ranks[name] = PairRank.of(traces[name], self.budget, distance)
            return sorted(some, key=self._best_rank, reverse=True)

        best = ranked(pairs)
        repetitions = LIMITS.repetitions
        most = self._affordable_pairs() // repetitions // 2
        if self._suffices():
            # All these pairs are equally good for the game, except those that bypass
            # the noise.
            repetitions, most = 1, 2
            if best and best[0].kind == ProposalPolicy.bypass:
                most = 4
        repeated = list(dict.fromkeys([*by_reason(best), *best]))[: max(most, 1)]
        for k in range(repetitions):
            for each in repeated[: max(len(repeated) >> k, 1)]:
                number = LIMITS.recorded + k
                trace = attempted(partial(self._traced, each.pair, number))
                if trace is not None:
                    traces[key(each.pair)].append(trace)
            # Pairs with more runs stay before pairs of the worse half.
            half = max(len(repeated) >> k, 1)
            repeated = [*ranked(repeated[:half]), *repeated[half:]]
        return repeated

    def _best_rank(self, each: TracedPair) -> PairRank:
        """Return the rank of a pair by all its runs, in the better order of inputs."""
        names = (key(each.pair), key(each.pair.swapped()))
        ranks = [self._ranks[name] for name in names if name in self._ranks]
        return max(ranks, default=each.rank(self.budget))

    def _propose(self, known: set[Any]) -> None:
        """Propose pairs with a loss above the claim, or else other promising pairs.

        Args:
            known: The keys of pairs that are listed, in both orders of the inputs.
        """
        before = [each for each in self.look.looked if key(each.pair) in known]
        others: dict[Any, TracedPair] = {}
        for each in self.look.looked:
            if key(each.pair) not in known:
                both = frozenset((key(each.pair), key(each.pair.swapped())))
                others[both] = each
        new = sorted(others.values(), key=self._best_rank, reverse=True)
        broken = [each for each in new if each.is_broken]
        proposed = [(each.pair, PROMISED) for each in broken[: ProposalPolicy.proposed]]
        if not broken:
            notable = [each for each in new if each.trace.is_notable]
            plain = [each for each in new if not each.trace.is_notable]
            if notable and not any(each.is_broken for each in before):
                # The trace does not understand the difference: a smaller gain is
                # expected.
                proposed.append((notable[0].pair, 4.0))
            most = max((each.trace.share for each in before), default=0.0)
            worse = [
                each
                for each in plain
                if each.trace.share > ProposalPolicy.min_gain * most
            ]
            if worse:
                proposed.append((max(worse, key=lambda each: each.loss).pair, 1.0))
        self.look.proposed = proposed


def looked_by_trace(
    mechanism: Any,
    claim: Claim,
    listed: Sequence[Pair],
    adjacency: Adjacency | None,
    *,
    calls: int,
    seed: int,
    budget: RunBudget | None = None,
) -> TraceLook:
    """Trace a mechanism on pairs before a game, and return the results.

    An error ends the trace, and is the ``failed`` of the results.

    Args:
        mechanism: The mechanism.
        claim: The claim about the mechanism.
        listed: The listed pairs, which are played in any case.
        adjacency: The source of other pairs, or None to compare listed pairs alone.
        calls: Number of calls of the game, which limits the runs (``trace_runs``).
        seed: The seed of the pairs and of the runs.
        budget: The run budget, or None if runs are cheap.
    """
    runs = trace_runs(calls, vectorised=is_vectorised(mechanism))
    runs = int(min(runs, allowance().left))
    search = TraceSearch(mechanism, claim, runs=runs, seed=seed, budget=budget)
    try:
        return search(listed, adjacency)
    except (Exception, SystemExit, Timeout) as error:
        # A trace is no evidence: an audit goes on without it, and reports the reason.
        search.look.failed = f"the trace ended with {type(error).__name__}: {error}"
        return search.look
