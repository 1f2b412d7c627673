"""Pairs that a trace proposes: two runs of a pair show without noise how far it moves what noise is added to.

The code runs on both inputs with the same draws and the same noisy values (``auditdp.tracing``). What it loses on the pair,
as far as the trace understands it, is a number without noise, so that hundreds of pairs are compared in as many runs as the
game has calls for one. What got round the noise and control flow that parted come first, then the largest loss. The pairs
that show most are looked at once more, with other outcomes of chance and the other way round.

That is no evidence: the game bets on outputs of its own runs, and a proposal that is wrong costs it calls.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from heapq import nlargest
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from auditdp.adjacency import Adjacency, Pair
from auditdp.adjacency.drawing import Drawn, changed, draws
from auditdp.adjacency.elsewhere import MOST_PROMISED
from auditdp.adjacency.offers import offers
from auditdp.adjacency.search import key
from auditdp.betting.forecasting.replayed import ReplayedRatio, ways_of
from auditdp.betting.pairs import attempted, generated
from auditdp.betting.telling import RUNS, apart_in, by_outputs
from auditdp.betting.watching import is_stopped
from auditdp.claims.base import Claim
from auditdp.errors import AuditError
from auditdp.mechanism.calls.leaves import Raised, leaves
from auditdp.mechanism.calls.representation import Representation
from auditdp.mechanism.protocol import is_vectorised
from auditdp.tracing import PairTrace, Trace, compare, replayed
from auditdp.tracing.exploring import MOST_RUNS
from auditdp.tracing.steps import is_sample

SHARE, FEW_RUNS, MOST_RUNS_OF_ALL = 10, 600, 20_000
"""Runs for a tenth of a game's calls; but for a third of them, or so many, where that is more; and never more than that."""
FEWEST_RUNS = 32
"""Runs that are worth a trace."""
LISTED = 4
"""Listed pairs that are looked at with other outcomes of chance."""
LARGEST = 100.0
"""A larger loss, as a multiple of the claim, is no better by itself: what is then better is how far apart the laws are."""
RECORDED = 8
"""Recorded runs, which pairs have by turns: what happens seldom has to happen in some."""
AGAIN = 3
"""Further runs of the pairs that show most: what is drawn may have a part in it."""
LEAST_AGAIN = 128
"""Of all runs, for each further run of a listed pair."""
CLOSE = 1e-9
"""How far losses in two runs are apart by rounding, relatively."""
FULL, FIRST = 6, 3
"""Pairs that are looked at with other outcomes of chance at the end, at most, and the part of the runs that the next has."""
LAST = 1 / 3
"""Of the runs, so many are for these, at most."""
CORNERS = 1 / 2
"""Of the pairs that are not listed, so many are corner cases, at most."""
FEWEST_CORNERS = 8
"""Of the corner cases, so many are looked at, whatever others have shown."""
MORE_TOLD = 2
"""How many times as many runs a comparison of outputs has where a search has more."""
AFTERWARDS, FEW_AGAIN, FEW_TIMES = 32, 4, 2
"""Runs that are left where runs are bounded and a pair has shown enough, pairs that are looked at again, and how often."""
DRAWN = 1 / 2
"""Of the others, so many are drawn independently; the rest are made of the best."""
MOST_CHANGED = 8
"""Best pairs of which further ones are made."""
READ = 2
"""Of the pairs that show enough, laws of so many are read off until one promises a short game."""
MOST_BROKEN = 2
"""Pairs that are proposed for a reason that the trace understood."""
SAMPLED, DRAWN_AMONG = 40, 8
"""Runs of a search where records are drawn, since two runs do not tell what a pair loses; of so many pairs one is played."""
OPAQUE = 8
"""Corner cases of code that the trace does not understand, of which the one whose outputs are farthest apart is played."""
FEWEST_LOSSY, MOST_LOSSY, RUNS_OF_LOSSY = 4, 12, 24
"""Of so many pairs that lose most by a trace, one for so many runs, that is played whose outputs are farthest apart."""
MOST_COMPARED = 12
"""Pairs that lose more than the claim by a trace, of which one is played: on which most is won by what is read off them."""
BETTER = 1.05
"""A pair is worth its calls if it loses so many times what the listed ones lose."""
ROUND = 2
"""The kind of a pair on which something got round the noise that chance cannot have decided."""
PROMISED, NOTABLE = MOST_PROMISED, 4.0
"""What a call of a pair promises to gain, relative to a listed one: where the trace understood why, and where it did not."""


def trace_runs(calls: int, *, vectorised: bool) -> int:
    """Return how many runs a trace may have beside so many calls; a run alone costs more where many make one call.

    >>> [trace_runs(calls, vectorised=False) for calls in (200, 2_000, 50_000, 1_000_000)]
    [66, 600, 5000, 20000]
    """
    most = max(min(calls // 3, FEW_RUNS), min(calls // SHARE, MOST_RUNS_OF_ALL))
    return most // 2 if vectorised else most


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


_Made = tuple[TracedPair, Drawn[Pair]]
"""A pair that was generated, with the choices for it."""


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
        told = 0.0 if few else _told(traces)  # of few runs some share a number by chance
        return cls(len(traces), min(kinds) == ROUND, told, kind, known, steady, least)


def _told(traces: Sequence[PairTrace]) -> float:
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


@dataclass
class TraceLook:
    """What a trace saw before a game.

    Attributes:
        trace: Of the mechanism.
        seed: Of the runs.
        most: Runs that it may have.
        pairs: Pairs that were looked at.
        is_bound: Whether the loss of the releases bounds that of the output on all of them, as far as a trace shows.
        share: The largest loss, as a multiple of the claim.
        looked: Pairs that were looked at with other outcomes of chance: the listed ones, then the others.
        failed: Why the trace ended early; empty where it did not.
        proposed: Those that are to be played beside the listed ones, each with what it promises, the best first.
        candidates: Pairs that are compared by what is read off them, for what two runs do not tell.
        listed: So many of these are listed ones, the first.
    """

    trace: Trace
    seed: int
    most: int
    pairs: int = 0
    is_bound: bool = False
    share: float = 0.0
    looked: list[TracedPair] = field(default_factory=list)
    failed: str = ""
    proposed: list[tuple[Pair, float]] = field(default_factory=list)
    candidates: list[Pair] = field(default_factory=list)
    listed: int = 0

    @property
    def is_sampled(self) -> bool:
        """Whether records are drawn, so that two runs do not tell what a pair loses, and nothing else is broken."""
        drawn = any(is_sample(release) for each in self.looked for release in each.trace.first.releases)
        return drawn and not self.is_broken

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
        if not few and (won := self._most_won(made, form)) is not None:
            best = won
        if few and self.is_sampled and (told := made.told_by_parts(self.candidates, form)) is not None:
            best = told
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
            self.looked.append(TracedPair(best, made._compared(best, 0, FULL)))
        return best


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
        self, mechanism: Any, claim: Claim, *, runs: int, seed: int, enough: float = math.inf, more: int = 0
    ) -> None:
        self.trace = Trace(mechanism)
        self.enough, self.more = enough, max(more, runs)
        self.claim, self.most, self.seed = claim, runs, seed
        self.look = TraceLook(self.trace, seed, runs)
        self._seen: dict[Any, TracedPair] = {}
        self._runs: dict[Any, list[PairTrace]] = {}
        self._usual: dict[Any, RunsOfPair] = {}
        self._is_certain = False

    def __call__(self, listed: Sequence[Pair], adjacency: Adjacency | None) -> TraceLook:
        """Look at the listed pairs and, in an adjacency, at others; say which of them are to be played."""
        if self.most < FEWEST_RUNS:
            return self.look
        with self.trace:
            most = self.most if math.isinf(self.enough) else min(self.most, FEW_RUNS // 2)
            for pair in listed[:LISTED]:
                self._in_full(pair, most // 4 // LISTED)
            if not self.look.is_traced and math.isfinite(self.enough) and adjacency is not None:
                self._by_outputs(listed, adjacency)
            if self.look.is_traced:
                for pair in listed[LISTED:]:
                    self._score(pair)
                if self.look.is_sampled and math.isfinite(self.enough):
                    self.most = min(self.most, self.trace.runs + SAMPLED)
                certain = self._is_certain and math.isfinite(self.enough)
                if adjacency is not None and not certain:
                    self._search(adjacency)
                if self._shows_enough():
                    self.most = min(self.most, self.trace.runs + AFTERWARDS)
                self._finish(listed)
                self.look.candidates = self._candidates(listed)
                if self._shows_enough():
                    known = {key(pair) for pair in listed}
                    broken = [each.pair for each in self.look.looked if each.is_broken and key(each.pair) not in known]
                    self.look.proposed = [(pair, PROMISED) for pair in broken[:READ]]
                elif math.isfinite(self.enough) and not certain:
                    self._ordered_by_outputs(listed)
        return self.look

    def _left(self, share: float = 1.0) -> int:
        """Return how many pairs can still be looked at by two runs each, of a share of all runs."""
        return 0 if is_stopped() else max(int(self.most * share) - self.trace.runs, 0) // 2

    def _search(self, adjacency: Adjacency) -> None:
        offered, share = offers(adjacency), 1 - LAST
        corners = offered.corner_cases or []
        for number, pair in enumerate(corners[: int(CORNERS * self._left(share))]):
            if number >= FEWEST_CORNERS and self._shows_enough():
                break
            attempted(partial(self._checked, adjacency, pair))
        if offered.generated is None or self._shows_enough():
            return
        if math.isfinite(self.enough) and self._broken():
            self.most = self.more  # a game on a worse pair saves more
        strategy, ranked, lossy = generated(adjacency), list[_Made](), list[_Made]()

        def look(drawn: Drawn[Pair] | None) -> None:
            if drawn is not None and (found := self._checked(adjacency, drawn.value)) is not None:
                made = found, drawn
                ranked[:] = nlargest(MOST_CHANGED, [*ranked, made], key=lambda each: self._order(each[0]))
                lossy[:] = nlargest(MOST_CHANGED, [*lossy, made], key=lambda each: self._order(each[0])[1:])

        for drawn in islice(draws(strategy, seed=self.seed), int(DRAWN * self._left(share))):
            attempted(partial(look, drawn))
        for k in range(self._left(share)):  # of those that come first, and of those that lose most, by turns
            best = [drawn for both in zip(ranked, lossy, strict=True) for _, drawn in both]
            if best:
                attempted(lambda: look(changed(strategy, best[k % len(best)], seed=self.seed + k)))  # noqa: B023

    def _candidates(self, listed: Sequence[Pair]) -> list[Pair]:
        """Return some listed pairs, and others that are compared by what is read off them."""
        if math.isfinite(self.enough):
            lossy = sorted(self._seen.values(), key=lambda each: each.loss, reverse=True)
            return [*listed[:1], *(each.pair for each in lossy)][:DRAWN_AMONG]
        known = [pair for pair in listed[:LISTED] if key(pair) in self._seen]
        self.look.listed = len(known)
        names = {key(pair) for pair in listed}
        first = [each for each in self._broken() if key(each.pair) not in names]  # the least ones, of all kinds
        most = sorted(first, key=lambda each: (each.rank, each.trace.scales_apart), reverse=True)
        others = dict.fromkeys(chain.from_iterable(zip(most, first, strict=True)))
        return [*known, *(each.pair for each in islice(others, MOST_COMPARED))] if first else []

    def _by_outputs(self, listed: Sequence[Pair], adjacency: Adjacency) -> None:
        """Propose the pair whose outputs are farthest apart, where a trace does not say what moves."""
        corners = offers(adjacency).corner_cases or []
        few = min(OPAQUE, self.most // (2 * RUNS) - 1)
        checked = [pair for pair in corners[: max(few, 1)] if attempted(partial(_is_adjacent, adjacency, pair))]
        best = by_outputs(self.trace, [*listed[:1], *checked], seed=self.seed)[0]
        if best is not listed[0]:
            self.look.proposed = [(best, PROMISED)]

    def _ordered_by_outputs(self, listed: Sequence[Pair]) -> None:
        """Propose, of the pairs that lose most by the trace, the one whose outputs are farthest apart."""
        first, promise = self._broken(), PROMISED  # the corner cases, which are of all kinds
        if not first and not any(each.trace.is_notable for each in self.look.looked):
            first, promise = nlargest(MOST_LOSSY, self._seen.values(), key=self._order), 1.0
        broken = sorted(first, key=lambda each: (self._telling(each)[1:], self._order(each)), reverse=True)
        most = min(max(self.most // RUNS_OF_LOSSY, FEWEST_LOSSY), MOST_LOSSY)
        lossy = [each.pair for each in dict.fromkeys([*broken[: most - most // 2], *first, *broken])][:most]
        if len(lossy) > 1 and not broken[0].trace.is_visible:
            runs = MORE_TOLD * RUNS if self.most > self.look.most else RUNS
            best = by_outputs(self.trace, lossy, seed=self.seed, runs=runs)[0]
            known = {key(pair) for pair in listed}
            if key(best) not in known:
                self._in_full(best, FULL)
            self.look.proposed = [] if key(best) in known else [(best, promise)]

    def _shows_enough(self) -> bool:
        return self.enough <= LARGEST and any(each.shows(self.enough) for each in self._broken())

    def _broken(self) -> list[TracedPair]:
        """Return the pairs that two runs show to lose more than the claim: none where they do not tell, of samples."""
        return [] if self.look.is_sampled else [each for each in self._seen.values() if each.is_broken]

    def _order(self, each: TracedPair) -> tuple[float, ...]:
        """Return by what a pair is put in order: where runs are few, by what a final model keeps, and by moves."""
        if not math.isfinite(self.enough):
            return each.rank
        return each.rank[0], attempted(lambda: each.loss * each.trace.coherence) or 0.0, each.trace.scales_apart

    def _checked(self, adjacency: Adjacency, pair: Pair) -> TracedPair | None:
        adjacency.check(pair)
        return self._score(pair)

    def _score(self, pair: Pair) -> TracedPair | None:
        """Look at a pair by two runs; None where it was looked at, or it is no candidate."""
        if (name := key(pair)) in self._seen:
            return None
        return self._keep(name, pair, self._compared(pair, 0, self.look.pairs % RECORDED))

    def _in_full(self, pair: Pair, outcomes: int) -> None:
        """Look at a pair with other outcomes of chance, beside the run in which it shows most."""
        numbers = range(1 + min(AGAIN, self.most // LEAST_AGAIN))
        runs = self._runs.get(key(pair)) or [self._compared(pair, 0, number) for number in numbers]
        certain = len(runs) > 1 and _told(runs) == 1
        recorded = max(runs, key=lambda trace: TracedPair(pair, trace).rank).first
        few = certain and math.isfinite(self.enough)
        outcomes = 1 if few else min(max(outcomes, 1), MOST_RUNS)
        trace = replayed(self.trace, recorded, pair.neighbour, claim=self.claim, outcomes=outcomes)
        self._is_certain |= certain or bool(trace.fixed)
        if (found := self._keep(key(pair), pair, trace)) is not None:
            self.look.looked.append(found)

    def _compared(self, pair: Pair, outcomes: int, number: int = 0) -> PairTrace:
        rng = np.random.default_rng([self.seed, number])
        return compare(self.trace, pair.data, pair.neighbour, rng, claim=self.claim, outcomes=outcomes)

    def _keep(self, name: Any, pair: Pair, trace: PairTrace) -> TracedPair | None:
        self.look.pairs += name not in self._seen
        raised = [run.output.error for run in (trace.first, trace.second) if isinstance(run.output, Raised)]
        if len(raised) == 2 or any(isinstance(error, AuditError) for error in raised):  # it refuses the input
            return None
        self._seen[name] = found = TracedPair(pair, trace)
        return found

    def _finish(self, listed: Sequence[Pair]) -> None:
        """Look at the pairs that show most in full, and propose some."""
        known = {key(pair) for pair in listed}
        others = sorted((each for name, each in self._seen.items() if name not in known), key=self._order, reverse=True)
        found = self._again(others)
        largest = sorted(found, key=lambda each: self._usual[key(each.pair)][-3:], reverse=True)
        chosen = found[:READ] if self._shows_enough() else [*_by_reason(found)[: FULL - 1], *largest[:1]]
        for number, each in enumerate(dict.fromkeys(chosen)):
            if number and not self._left():
                break
            outcomes = self._left() // FIRST
            attempted(partial(self._in_full, each.pair, outcomes))
            if not self._seen[key(each.pair)].is_broken:
                attempted(partial(self._in_full, each.pair.swapped(), outcomes))
        self.look.share = max(each.trace.share for each in self._seen.values())
        self.look.is_bound = all(each.trace.is_bound for each in self._seen.values())
        self.look.proposed = list(self._proposed({*known, *(key(pair.swapped()) for pair in listed)}))

    def _again(self, pairs: Sequence[TracedPair]) -> list[TracedPair]:
        """Look at pairs again, by other draws, the better half of them each time; return them by how they rank over all.

        What a pair loses may depend on what is drawn, as with rows in random order: the luckiest of many runs shows little.
        """
        few = math.isfinite(self.enough)
        self._runs = runs = {key(each.pair): [each.trace] for each in pairs}

        def ranked(some: Sequence[TracedPair]) -> list[TracedPair]:
            names = [key(each.pair) for each in some]
            apart = apart_in([runs[name] for name in names]) if few else [0.0] * len(names)
            self._usual |= {
                name: RunsOfPair.of(each.pair, runs[name], few=few, apart=far)
                for name, each, far in zip(names, some, apart, strict=True)
            }
            return sorted(some, key=lambda each: self._usual[key(each.pair)], reverse=True)

        best = ranked(pairs) if few else pairs
        most = self._left() // (2 * AGAIN)
        if self._shows_enough():
            most = FEW_AGAIN if best and best[0].rank[0] == ROUND else 2
        found = list(dict.fromkeys([*_by_reason(best), *best]))[: max(most, 1)]
        for k in range(FEW_TIMES if self._shows_enough() else AGAIN):
            for each in found[: max(len(found) >> k, 1)]:
                trace = attempted(partial(self._compared, each.pair, 0, RECORDED + k))
                runs[key(each.pair)] += [] if trace is None else [trace]
            found = ranked(found)
        return found

    def _telling(self, each: TracedPair) -> tuple[Any, ...]:
        """Return how much a pair tells in several runs, either way round."""
        usual = [self._usual[key(pair)] for pair in (each.pair, each.pair.swapped()) if key(pair) in self._usual]
        return max(((one.told, *one[-3:]) for one in usual), default=(0.0, False, False, 0.0))

    def _proposed(self, known: set[Any]) -> Iterator[tuple[Pair, float]]:
        """Yield the pairs to play: first those that break the claim as the trace has it, then what it cannot judge."""
        before = [each for each in self.look.looked if key(each.pair) in known]
        others = {
            frozenset((key(e.pair), key(e.pair.swapped()))): e for e in self.look.looked if key(e.pair) not in known
        }
        new = sorted(others.values(), key=lambda each: each.rank, reverse=True)
        broken = sorted((each for each in new if each.is_broken), key=self._telling, reverse=True)
        for each in broken[:MOST_BROKEN]:
            yield each.pair, PROMISED
        rest = [each for each in new if not each.is_broken]
        if not broken and not any(each.is_broken for each in before):
            for each in [each for each in rest if each.trace.is_notable][:1]:
                yield each.pair, NOTABLE
        most = max((each.trace.share for each in before), default=0.0)
        plain = [each for each in rest if not each.trace.is_notable and each.trace.share > BETTER * most]
        if plain and not broken:
            yield max(plain, key=lambda each: self._order(each)[1:]).pair, 1.0


def _is_adjacent(adjacency: Adjacency, pair: Pair) -> bool:
    adjacency.check(pair)
    return True


def _by_reason(pairs: Sequence[TracedPair]) -> list[TracedPair]:
    """Return the first pair of every reason."""
    return list({each.reason: each for each in reversed(pairs)}.values())[::-1]


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
    runs = trace_runs(calls, vectorised=is_vectorised(mechanism))
    search = TraceSearch(mechanism, claim, runs=runs, seed=seed, enough=enough, more=more)
    try:
        return search(listed, adjacency)
    except (Exception, SystemExit) as error:  # a trace is no evidence: an audit goes on without it, and says why
        search.look.failed = f"the trace ended with {type(error).__name__}: {error}"
        return search.look
