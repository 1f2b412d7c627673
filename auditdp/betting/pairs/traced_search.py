"""Pairs that a trace proposes: two runs of a pair show without noise how far it moves what noise is added to.

The code runs on both inputs with the same draws and the same noisy values (``auditdp.tracing``). What it loses on the pair,
as far as the trace understands it, is a number without noise, so that hundreds of pairs are compared in as many runs as the
game has calls for one. What got round the noise and control flow that parted come first, then the largest loss. The pairs
that show most are looked at once more, with other outcomes of chance and the other way round.

That is no evidence: the game bets on outputs of its own runs, and a proposal that is wrong costs it calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from heapq import nlargest
from itertools import chain, islice
from typing import Any

import numpy as np

from auditdp.adjacency import Adjacency, Pair
from auditdp.adjacency.adjacency import offers
from auditdp.adjacency.pair_search import Drawn, changed, draws, key
from auditdp.betting.game import is_stopped
from auditdp.betting.pairs.distances import RUNS, apart_in, farthest
from auditdp.betting.pairs.search import attempted, generated, is_adjacent
from auditdp.betting.pairs.trace_summary import (
    BETTER,
    FULL,
    LARGEST,
    MOST_BROKEN,
    NOTABLE,
    PROMISED,
    ROUND,
    RunsOfPair,
    TracedPair,
    TraceLook,
    by_reason,
    told_apart,
)
from auditdp.claims.claim import Claim
from auditdp.errors import AuditError, Timeout
from auditdp.mechanism.calls.allowance import allowance
from auditdp.mechanism.calls.leaves import Raised
from auditdp.mechanism.protocol import is_vectorised
from auditdp.tracing import PairTrace, Trace, compare, in_full
from auditdp.tracing.chance import is_sample
from auditdp.tracing.outcomes import MOST_RUNS

SHARE, FEW_RUNS, MOST_RUNS_OF_ALL = 10, 600, 20_000
"""Runs for a tenth of a game's calls; but for a third of them, or so many, where that is more; and never more than that."""
FEWEST_RUNS = 32
"""Runs that are worth a trace."""
LISTED = 4
"""Listed pairs that are looked at with other outcomes of chance."""
RECORDED = 8
"""Recorded runs, which pairs have by turns: what happens seldom has to happen in some."""
FIRST = 3
"""Of the runs that are left then, the next such pair has this part."""
AGAIN = 3
"""Further runs of the pairs that show most: what is drawn may have a part in it."""
LEAST_AGAIN = 128
"""Of all runs, for each further run of a listed pair."""
LAST = 1 / 3
"""Of the runs, so many are for these, at most."""
CORNERS = 1 / 2
"""Of the pairs that are not listed, so many are corner cases, at most."""
FEWEST_CORNERS = 8
"""Of the corner cases, so many are looked at, whatever others have shown."""
MORE_TOLD, MOST_TOLD = 2, 4
"""How many times as many runs a comparison of outputs has where a search has more, and of the closest pairs."""
AFTERWARDS, FEW_AGAIN, FEW_TIMES = 32, 4, 1
"""Runs that are left where runs are bounded and a pair has shown enough, pairs that are looked at again, and how often."""
DRAWN = 1 / 2
"""Of the others, so many are drawn independently; the rest are made of the best."""
MOST_CHANGED = 8
"""Best pairs of which further ones are made."""
READ = 2
"""Of the pairs that show enough, laws of so many are read off until one promises a short game."""
SAMPLED, DRAWN_AMONG = 40, 8
"""Runs of a search where records are drawn, since two runs do not tell what a pair loses; of so many pairs one is played."""
OPAQUE, RUNS_OF_OPAQUE, MOST_OF_OPAQUE = 8, 50, 16
"""Corner cases of code that the trace does not understand, of which the one whose outputs are farthest apart is played, and
more where runs are many; of all runs, for so many each has one on either input, and at most so many."""
RUNS_OF_CORNER = 72
"""Of all runs, for each of these corner cases."""
FEWEST_LOSSY, MOST_LOSSY, RUNS_OF_LOSSY = 4, 12, 24
"""Of so many pairs that lose most by a trace, one for so many runs, that is played whose outputs are farthest apart."""
MOST_COMPARED = 12
"""Pairs that lose more than the claim by a trace, of which one is played: on which most is won by what is read off them."""


def trace_runs(calls: int, *, vectorised: bool) -> int:
    """Return how many runs a trace may have of so many calls; a run alone costs more where many make one call.

    >>> [trace_runs(calls, vectorised=False) for calls in (200, 2_000, 50_000, 1_000_000)]
    [66, 600, 5000, 20000]
    """
    most = max(min(calls // 3, FEW_RUNS), min(calls // SHARE, MOST_RUNS_OF_ALL))
    return most // 2 if vectorised else most


_Made = tuple[TracedPair, Drawn[Pair]]
"""A pair that was generated, with the choices for it."""


class TraceSearch:
    """Looks at pairs by two runs each, and counts the runs.

    Args:
        mechanism: What is traced.
        claim: What it promises.
        runs: Runs at most, but for those of the last pair that is looked at with other outcomes.
        seed: Of the pairs, and of the one recorded run that all of them have.
        enough: The loss, as a multiple of the claim, from which on no other pairs are looked at.
        more: Runs where a pair loses more than the claim, if these are more.
    """

    def __init__(
        self,
        mechanism: Any,
        claim: Claim,
        *,
        runs: int,
        seed: int,
        enough: float = math.inf,
        more: int = 0,
    ) -> None:
        self.trace = Trace(mechanism)
        self.enough, self.more, self.few = (
            enough,
            max(more, runs),
            math.isfinite(enough),
        )
        self.claim, self.most, self.seed = claim, runs, seed
        self.look = TraceLook(self.trace, seed, runs)
        self._seen: dict[Any, TracedPair] = {}
        self._runs: dict[Any, list[PairTrace]] = {}
        self._usual: dict[Any, RunsOfPair] = {}
        self._listed: set[Any] = set()
        self._is_certain = False

    def __call__(
        self, listed: Sequence[Pair], adjacency: Adjacency | None
    ) -> TraceLook:
        """Look at the listed pairs and, in an adjacency, at others; say which of them are to be played."""
        if self.most < FEWEST_RUNS:
            return self.look
        self._listed = {key(pair) for pair in listed}
        with self.trace:
            most = min(self.most, FEW_RUNS // 2) if self.few else self.most
            for pair in listed[:LISTED]:
                self._in_full(pair, most // 4 // LISTED)
            alone = self.few and (
                not self.look.is_traced
                or (self.look.is_sampled and self.look.is_summed)
            )
            if alone and adjacency is not None:
                self._by_outputs(listed, adjacency)
            elif self.look.is_traced:
                for pair in listed[LISTED:]:
                    self._score(pair)
                if self.look.is_sampled and self.few:
                    self.most = min(self.most, self.trace.runs + SAMPLED)
                certain = self._is_certain and self.few
                if adjacency is not None and not certain:
                    self._search(adjacency)
                if self._shows_enough():
                    self.most = min(self.most, self.trace.runs + AFTERWARDS)
                self._finish(listed)
                self.look.candidates = self._candidates(listed)
                if self._shows_enough():
                    broken = [
                        each
                        for each in self._others(self.look.looked)
                        if each.is_broken
                    ]
                    self.look.proposed = [
                        (each.pair, PROMISED) for each in broken[:READ]
                    ]
                elif self.few and not certain:
                    self._ordered_by_outputs()
            if self.look.is_traced:
                self.look.share = max(each.trace.share for each in self._seen.values())
                self.look.covers = all(
                    each.trace.covers for each in self._seen.values()
                )
        if self.few:
            self.look.compared = {
                name: [each.trace] for name, each in self._seen.items()
            } | self._runs
        return self.look

    def _left(self, share: float = 1.0) -> int:
        """Return how many pairs can still be looked at by two runs each, of a share of all runs."""
        return (
            0 if is_stopped() else max(int(self.most * share) - self.trace.runs, 0) // 2
        )

    def _search(self, adjacency: Adjacency) -> None:
        offered, share = offers(adjacency), 1 - LAST
        corners = offered.corner_cases or []
        for number, pair in enumerate(corners[: int(CORNERS * self._left(share))]):
            if number >= FEWEST_CORNERS and self._shows_enough():
                break
            attempted(partial(self._checked, adjacency, pair))
        if offered.generated is None or self._shows_enough():
            return
        if self.few and self._broken():
            self.most = self.more  # a game on a worse pair saves more
        strategy, ranked, lossy = generated(adjacency), list[_Made](), list[_Made]()

        def look(drawn: Drawn[Pair] | None) -> None:
            if (
                drawn is not None
                and (found := self._checked(adjacency, drawn.value)) is not None
            ):
                made = found, drawn
                ranked[:] = nlargest(
                    MOST_CHANGED, [*ranked, made], key=lambda each: self._order(each[0])
                )
                lossy[:] = nlargest(
                    MOST_CHANGED,
                    [*lossy, made],
                    key=lambda each: self._order(each[0])[1:],
                )

        def look_at_change(parent: Drawn[Pair], seed: int) -> None:
            look(changed(strategy, parent, seed=seed))

        for drawn in islice(
            draws(strategy, seed=self.seed), int(DRAWN * self._left(share))
        ):
            attempted(partial(look, drawn))
        for k in range(
            self._left(share)
        ):  # of those that come first, and of those that lose most, by turns
            best = [
                drawn for both in zip(ranked, lossy, strict=True) for _, drawn in both
            ]
            if best:
                parent = best[k % len(best)]
                seed = self.seed + k
                attempted(partial(look_at_change, parent, seed))

    def _candidates(self, listed: Sequence[Pair]) -> list[Pair]:
        """Return some listed pairs, and others that are compared by what is read off them."""
        if self.few:
            lossy = sorted(
                self._others(self._seen.values()),
                key=lambda each: each.loss,
                reverse=True,
            )
            return [*listed[:1], *(each.pair for each in lossy)][:DRAWN_AMONG]
        known = [pair for pair in listed[:LISTED] if key(pair) in self._seen]
        self.look.listed = len(known)
        first = self._others(self._broken())  # the least ones, of all kinds
        most = sorted(
            first, key=lambda each: (each.rank, each.trace.scales_apart), reverse=True
        )
        others = dict.fromkeys(chain.from_iterable(zip(most, first, strict=True)))
        return (
            [*known, *(each.pair for each in islice(others, MOST_COMPARED))]
            if first
            else []
        )

    def _by_outputs(self, listed: Sequence[Pair], adjacency: Adjacency) -> None:
        """Propose the pair whose outputs are farthest apart, where a trace does not say what moves them, and how far."""
        corners = offers(adjacency).corner_cases or []
        few = min(max(OPAQUE, self.most // RUNS_OF_CORNER), self.most // (2 * RUNS) - 1)
        checked = [
            pair for pair in corners[: max(few, 1)] if is_adjacent(adjacency, pair)
        ]
        runs = max(RUNS, min(self.most // RUNS_OF_OPAQUE, MOST_OF_OPAQUE))
        again = runs * (MOST_TOLD if few > OPAQUE else MORE_TOLD)
        best = farthest(
            self.trace, [*listed[:1], *checked], seed=self.seed, runs=runs, again=again
        )
        self.look.is_compared = True
        if best is not listed[0]:
            self.look.proposed = [(best, PROMISED)]
            if self.look.is_traced and not self.look.looked[0].trace.is_notable:
                self._in_full(best, 1)

    def _ordered_by_outputs(self) -> None:
        """Propose, of the pairs that lose most by the trace, the one whose outputs are farthest apart."""
        first, promise = (
            self._broken(),
            PROMISED,
        )  # the corner cases, which are of all kinds
        if not first and not any(each.trace.is_notable for each in self.look.looked):
            first, promise = (
                nlargest(MOST_LOSSY, self._seen.values(), key=self._order),
                1.0,
            )
        broken = sorted(
            first,
            key=lambda each: (self._telling(each)[1:], self._order(each)),
            reverse=True,
        )
        most = min(max(self.most // RUNS_OF_LOSSY, FEWEST_LOSSY), MOST_LOSSY)
        lossy = [
            each.pair
            for each in dict.fromkeys([*broken[: most - most // 2], *first, *broken])
        ][:most]
        if len(lossy) > 1 and not (promise == PROMISED and broken[0].trace.is_visible):
            runs = MORE_TOLD * RUNS if self.most > self.look.most else RUNS
            best = farthest(
                self.trace, lossy, seed=self.seed, runs=runs, again=MOST_TOLD * runs
            )
            others = [] if key(best) in self._listed else [best]
            for pair in others:
                self._in_full(pair, FULL)
            self.look.proposed = [(pair, promise) for pair in others]

    def _shows_enough(self) -> bool:
        return self.enough <= LARGEST and any(
            each.shows(self.enough) for each in self._broken()
        )

    def _broken(self) -> list[TracedPair]:
        """Return the pairs that two runs show to lose more than the claim: none where they do not tell, of samples."""
        return (
            []
            if self.look.is_sampled
            else [each for each in self._seen.values() if each.is_broken]
        )

    def _others(self, pairs: Iterable[TracedPair]) -> list[TracedPair]:
        """Return those that are not listed."""
        return [each for each in pairs if key(each.pair) not in self._listed]

    def _order(self, each: TracedPair) -> tuple[float, ...]:
        """Return by what a pair is put in order: where runs are few, by what a final model keeps, and by moves."""
        if not self.few:
            return each.rank
        return (
            each.rank[0],
            attempted(lambda: each.loss * each.trace.coherence) or 0.0,
            each.trace.scales_apart,
        )

    def _checked(self, adjacency: Adjacency, pair: Pair) -> TracedPair | None:
        adjacency.check(pair)
        return self._score(pair)

    def _score(self, pair: Pair) -> TracedPair | None:
        """Look at a pair by two runs; None where it was looked at, or it is no candidate."""
        if (name := key(pair)) in self._seen:
            return None
        return self._keep(name, pair, self._compared(pair, self.look.pairs % RECORDED))

    def _in_full(self, pair: Pair, outcomes: int) -> None:
        """Look at a pair with other outcomes of chance, beside the run in which it shows most."""
        again = min(AGAIN, self.most // LEAST_AGAIN)
        numbers = range(
            1 + (min(again, 1) if self.few and key(pair) not in self._listed else again)
        )
        runs = self._runs.get(key(pair)) or [
            self._compared(pair, number) for number in numbers
        ]
        certain = len(runs) > 1 and told_apart(runs) == 1
        best = max(range(len(runs)), key=lambda k: TracedPair(pair, runs[k]).rank)
        alone = self.few and (
            certain or any(map(is_sample, runs[best].first.releases))
        )  # of samples there are too many
        outcomes = 1 if alone else min(max(outcomes, 1), MOST_RUNS)
        runs[best] = trace = in_full(self.trace, runs[best], outcomes)
        self._runs[key(pair)] = runs
        self._is_certain |= certain or bool(trace.fixed)
        if (found := self._keep(key(pair), pair, trace)) is not None:
            self.look.looked.append(found)

    def _compared(self, pair: Pair, number: int) -> PairTrace:
        rng = np.random.default_rng([self.seed, number])
        return compare(
            self.trace, pair.data, pair.neighbour, rng, claim=self.claim, outcomes=0
        )

    def _keep(self, name: Any, pair: Pair, trace: PairTrace) -> TracedPair | None:
        self.look.pairs += name not in self._seen
        raised = [
            run.output.error
            for run in (trace.first, trace.second)
            if isinstance(run.output, Raised)
        ]
        if len(raised) == 2 or any(
            isinstance(error, AuditError) for error in raised
        ):  # it refuses the input
            return None
        self._seen[name] = found = TracedPair(pair, trace)
        return found

    def _finish(self, listed: Sequence[Pair]) -> None:
        """Look at the pairs that show most in full, and propose some."""
        others = [each for name, each in self._seen.items() if name not in self._listed]
        found = self._again(sorted(others, key=self._order, reverse=True))
        largest = sorted(
            found, key=lambda each: self._usual[key(each.pair)][-3:], reverse=True
        )
        chosen = (
            found[:READ]
            if self._shows_enough()
            else [*by_reason(found)[: FULL - 1], *largest[:1]]
        )
        for number, each in enumerate(dict.fromkeys(chosen)):
            if number and not self._left():
                break
            outcomes = self._left() // FIRST
            attempted(partial(self._in_full, each.pair, outcomes))
            if not self._seen[key(each.pair)].is_broken:
                attempted(partial(self._in_full, each.pair.swapped(), outcomes))
        self.look.proposed = list(
            self._proposed({*self._listed, *(key(pair.swapped()) for pair in listed)})
        )

    def _again(self, pairs: Sequence[TracedPair]) -> list[TracedPair]:
        """Look at pairs again, by other draws, the better half of them each time; return them by how they rank over all.

        What a pair loses may depend on what is drawn, as with rows in random order: the luckiest of many runs shows little.
        """
        runs = self._runs
        runs |= {key(each.pair): [each.trace] for each in pairs}

        def ranked(some: Sequence[TracedPair]) -> list[TracedPair]:
            names = [key(each.pair) for each in some]
            apart = (
                apart_in([runs[name] for name in names])
                if self.few
                else [0.0] * len(names)
            )
            self._usual |= {
                name: RunsOfPair.of(each.pair, runs[name], few=self.few, apart=far)
                for name, each, far in zip(names, some, apart, strict=True)
            }
            return sorted(
                some, key=lambda each: self._usual[key(each.pair)], reverse=True
            )

        best = ranked(pairs) if self.few else pairs
        most = self._left() // (2 * AGAIN)
        if self._shows_enough():
            most = FEW_AGAIN if best and best[0].rank[0] == ROUND else 2
        found = list(dict.fromkeys([*by_reason(best), *best]))[: max(most, 1)]
        for k in range(FEW_TIMES if self._shows_enough() else AGAIN):
            for each in found[: max(len(found) >> k, 1)]:
                trace = attempted(partial(self._compared, each.pair, RECORDED + k))
                runs[key(each.pair)] += [] if trace is None else [trace]
            found = ranked(found)
        return found

    def _telling(self, each: TracedPair) -> tuple[Any, ...]:
        """Return how much a pair tells in several runs, either way round."""
        usual = [
            self._usual[key(pair)]
            for pair in (each.pair, each.pair.swapped())
            if key(pair) in self._usual
        ]
        return max(
            ((one.told, *one[-3:]) for one in usual), default=(0.0, False, False, 0.0)
        )

    def _proposed(self, known: set[Any]) -> Iterator[tuple[Pair, float]]:
        """Yield the pairs to play: first those that break the claim as the trace has it, then what it cannot judge."""
        before = [each for each in self.look.looked if key(each.pair) in known]
        others = {
            frozenset((key(e.pair), key(e.pair.swapped()))): e
            for e in self.look.looked
            if key(e.pair) not in known
        }
        new = sorted(
            others.values(),
            key=lambda each: (each.rank, self._telling(each)),
            reverse=True,
        )
        broken = sorted(
            (each for each in new if each.is_broken), key=self._telling, reverse=True
        )
        for each in broken[:MOST_BROKEN]:
            yield each.pair, PROMISED
        rest = [each for each in new if not each.is_broken]
        if not broken and not any(each.is_broken for each in before):
            for each in [each for each in rest if each.trace.is_notable][:1]:
                yield each.pair, NOTABLE
        most = max((each.trace.share for each in before), default=0.0)
        plain = [
            each
            for each in rest
            if not each.trace.is_notable and each.trace.share > BETTER * most
        ]
        if plain and not broken:
            yield max(plain, key=lambda each: self._order(each)[1:]).pair, 1.0


def looked_by_trace(
    mechanism: Any,
    claim: Claim,
    listed: Sequence[Pair],
    adjacency: Adjacency | None,
    *,
    calls: int,
    seed: int,
    enough: float = math.inf,
    more: int = 0,
) -> TraceLook:
    """Return what a trace saw of a mechanism.

    Args:
        mechanism: What is traced.
        claim: What it promises.
        listed: The pairs that are played.
        adjacency: Where to look for others; None for nowhere.
        calls: Calls of the game.
        seed: Of the pairs and of the runs.
        enough: The loss, as a multiple of the claim, from which on no other pairs are looked at.
        more: Runs where a pair loses more than the claim, if these are more.
    """
    runs = int(
        min(trace_runs(calls, vectorised=is_vectorised(mechanism)), allowance().left)
    )
    search = TraceSearch(
        mechanism, claim, runs=runs, seed=seed, enough=enough, more=more
    )
    try:
        return search(listed, adjacency)
    except (
        Exception,
        SystemExit,
        Timeout,
    ) as error:  # a trace is no evidence: an audit goes on without it, and says why
        search.look.failed = f"the trace ended with {type(error).__name__}: {error}"
        return search.look
