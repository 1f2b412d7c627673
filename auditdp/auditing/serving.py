"""The process of a mechanism: it answers the judging process and decides nothing.

Each public method of ``Served`` answers one request, and returns plain data and arrays.
Methods about calls are requested through ``of_calls``.
``remote_audit`` is the other end of the channel. Objects stay in this process. The
judging process refers to mechanisms, pairs, calls and laws by their number in a list
here, and to an input by its *place*: the number of the pair, and side 0 or 1.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from auditdp.adjacency import Pair
from auditdp.adjacency.remote_adjacency import MOST_COUNTED
from auditdp.auditing.declaration import Audit
from auditdp.auditing.decorator import Declared
from auditdp.auditing.gathering import Settings, gathered_here, kinds_of, request_for
from auditdp.auditing.judging import claim_record, described
from auditdp.auditing.remote_audit import (
    AS_DECLARED,
    DECLARED,
    EVIDENCE,
    HELD,
    MUTATION,
    VERSIONS,
    AuditHeld,
    DeclaredHeld,
    MechanismNamed,
    names_of,
    parameters_of,
)
from auditdp.betting.forecasters.forecaster import LikelihoodRatio, default_forecasters
from auditdp.betting.forecasters.traced import ReplayedRatio
from auditdp.betting.forecasters.traced_noise import Ratio
from auditdp.betting.game import Game, checked_pairs
from auditdp.betting.pairs.search import can_search, propose, smaller
from auditdp.betting.pairs.trace_summary import TraceLook
from auditdp.betting.pairs.traced_search import looked_by_trace
from auditdp.evidence.request import EvidenceRequest
from auditdp.evidence.trace_records import GAME_TRACE, game_trace
from auditdp.mechanism.calls.calling import Calls, Run
from auditdp.mechanism.calls.inputs import Inputs
from auditdp.mechanism.calls.remote_mechanism import After, Seed
from auditdp.mechanism.calls.representation import Representation, SeenAs
from auditdp.mechanism.calls.untouched import starting_untouched, untouched
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.protocol import Array, is_seeded, is_vectorised, name_of
from auditdp.record.results import Evidence, Place

Answered = tuple[Any, Sequence[Array]]
"""Reply to a request: plain data, and arrays that are sent beside them."""
MOST_NUMBERS = 1 << 20
"""Largest number of entries of an input that is sent for a comparison with outputs."""


@dataclass
class Served:
    """One audit in the process of its mechanism; each method answers one request."""

    find: Callable[[], Declared]
    """Returns the declaration of the audit from its file."""
    untouched_now: ExitStack
    """Ends the process in which the mechanism has never been called
    (``mechanism.calls.untouched``), if one was started."""
    place: Callable[[Any], Place | None]
    """Returns the place of an object in the code, or None."""
    mutation: Callable[..., Any]
    """Audits the mutants of the mechanism, as ``mutant_score.mutation`` does."""
    compared: Callable[[Audit, Settings], Any] | None
    """Compares the audit with another version of its code.

    None if no other version is given.
    """
    plain: Callable[[Any], Any]
    """Converts the value of a parameter to plain data."""
    declared: Declared = field(init=False)
    """The declaration, which the first request finds."""
    built: Audit = field(init=False)
    """The audit, from the request ``build`` on; ``compare`` may add pairs to it."""
    as_declared: Audit = field(init=False)
    """The audit without the pairs that ``compare`` adds."""
    requests: dict[int, EvidenceRequest] = field(init=False, default_factory=dict)
    """The request for evidence about the current mechanism, keyed by its number."""
    _pairs: list[Pair] = field(init=False, default_factory=list)
    _calls: list[Calls] = field(init=False, default_factory=list)
    _laws: list[LikelihoodRatio] = field(init=False, default_factory=list)
    _inputs: Inputs = field(init=False, default_factory=Inputs)
    _look: TraceLook = field(init=False)
    _replayed: ReplayedRatio | None = field(init=False)
    _ratios: list[Ratio] = field(init=False, default_factory=list)
    _versions: Any = field(init=False, default=None)

    def answered(self, what: str, arguments: tuple[Any, ...]) -> Answered:
        """Return the answer of the method with the name ``what``.

        The judging process is trusted, so any method may be named.
        """
        found: Answered = getattr(self, what)(*arguments)
        return found

    def told(self, overrides: Mapping[str, str]) -> Answered:
        """Find the declaration and return its options, as ``DeclaredHeld``.

        Args:
            overrides: Values of the factory's parameters, as text.
        """
        self.declared = said = self.find()
        held = DeclaredHeld(
            said.description,
            said.source,
            said.row,
            said.reading,
            said.repairs,
            list(said.smallest),
            said.sizes(overrides),
            self.place(said.factory),
        )
        return DECLARED.dump_python(held, mode="json"), ()

    def build(self, overrides: Mapping[str, str]) -> Answered:
        """Make the audit and return the data that describe it, as ``AuditHeld``.

        Args:
            overrides: Values of the factory's parameters, as text.
        """
        self.built, parameters = self.declared.build(overrides)
        self.as_declared = self.built
        built, claim = self.built, parameters_of(self.built.claim)
        own = built.forecasters is not None and names_of(built.forecasters) is None
        mechanisms = [
            MechanismNamed(name_of(each), is_seeded(each))
            for each in [built.mechanism, *built.controls]
        ]
        if built.is_formula:
            mechanisms = [MechanismNamed(described(built).text, True)]
        whole = claim is not None and not built.is_formula and not built.is_sensitivity
        held = AuditHeld(
            parameters={name: self.plain(value) for name, value in parameters.items()},
            mechanisms=mechanisms,
            kinds=list(kinds_of(built)),
            claim=claim if not built.is_formula else None,
            record=None if whole else claim_record(built),
            adjacency=None if built.pairs is None else built.adjacency.name,
            digest=built.digest,
            plays=built.play is not None,
            forecasters=None
            if own or built.forecasters is None
            else names_of(built.forecasters),
            own_forecasters=own,
            asked=list(built.asked),
            figure=built.figure is not None,
            is_promise=built.is_promise,
            is_formula=built.is_formula,
            is_sensitivity=built.is_sensitivity,
            at=None if built.is_formula else self.place(built.mechanism),
            **{name: getattr(built, name) for name in AS_DECLARED},
        )
        return HELD.dump_python(held, mode="json"), ()

    def gather(
        self,
        number: int,
        settings: Settings,
        purpose: str,
        control: bool,
    ) -> Answered:
        """Prepare evidence about a mechanism; return its properties.

        Args:
            number: 0 for the audit's mechanism, k for its k-th control.
            settings: The settings of the run.
            purpose: Name that keys the random streams.
            control: Whether the mechanism is a control.

        Returns:
            The fields of ``MechanismHeld``, which are bools.
        """
        mechanism = [self.built.mechanism, *self.built.controls][number]
        request = request_for(self.built, mechanism, settings, purpose, control=control)
        self.requests = {number: request}
        self._calls, self._laws, self._replayed, self._ratios = [], [], None, []
        self.untouched_now.close()
        self.untouched_now.enter_context(
            nullcontext()
            if self.built.is_formula
            else starting_untouched(request.adapted)
        )
        held = {
            "per_call": False,
            "knows_odds": False,
            "scores": False,
            "tells_possible": False,
        }
        if not self.built.is_formula:
            able = request.able
            held["per_call"] = not is_vectorised(request.adapted)
            if set(request.kinds) & {"game", "support"}:
                held |= {
                    "knows_odds": able.knows_odds,
                    "scores": able.score is not None,
                }
                held["tells_possible"] = able.possible is not None
        return held, ()

    def evidence(self, number: int, kind: str, alpha: float) -> Answered:
        """Return evidence of one kind; None if that kind does not apply."""
        found: Evidence | None = gathered_here(kind, self.requests[number], alpha)
        return None if found is None else EVIDENCE.dump_python(found, mode="json"), ()

    def pairs(self) -> Answered:
        """Check the pairs to play; return the number and the text of each, in order.

        Raises:
            AdjacencyError: If one of them is no pair of neighbours, or there are none.
        """
        return [
            self._held(pair)
            for pair in checked_pairs(self.built.adjacency, self.built.play)
        ], ()

    def exhaustive(self) -> Answered:
        """Return the number of all pairs, or None if they cannot be enumerated.

        Pairs beyond ``MOST_COUNTED`` are not counted.
        """
        every = self.built.adjacency.exhaustive()
        return None if every is None else min(len(every), MOST_COUNTED), ()

    def can_search(self) -> Answered:
        """Return True if the adjacency generates pairs that it does not list."""
        return can_search(self.built.adjacency), ()

    def python(self, pair: int) -> Answered:
        """Return a pair as Python source text, or '' (``Pair.python``)."""
        return self._pairs[pair].python, ()

    def numbers(self, place: tuple[int, int]) -> Answered:
        """Return the entries of an input if they are at most ``MOST_NUMBERS`` numbers.

        Returns:
            The entries as one array of doubles, shape (entries,); no array if there are
            too many, or if they are not numbers.
        """
        try:
            found = np.asarray(self._input(place), dtype=np.float64).ravel()
        except (TypeError, ValueError):
            return None, ()
        return None, [found] if found.size <= MOST_NUMBERS else []

    def calls(self, number: int) -> Answered:
        """Make a ``Calls`` of a mechanism and return its number."""
        return self._kept(Calls(self.requests[number].adapted)), ()

    def anew(self, number: int) -> Answered:
        """Copy a ``Calls`` without its representation; return the copy's number."""
        return self._kept(self._calls[number].anew()), ()

    def of_calls(
        self, number: int, what: str, raising: bool, seed: Seed | None, *arguments: Any
    ) -> Answered:
        """Run a method about calls; return its value and the effects of the calls.

        Args:
            number: Number of the ``Calls``.
            what: Name of the method: 'look', 'repeated', 'rows' or 'runs'.
            raising: Whether exceptions count as outputs (``Calls.raising``).
            seed: The generator of the calls; None for a method that needs none.
            *arguments: Further arguments of the method.

        Returns:
            The effects (``After``) and the value, with the arrays of the method.
        """
        calls, rng = self._calls[number], None if seed is None else seed.generator()
        calls.raising = raising
        before = Counter(calls.raised)
        value, arrays = getattr(self, what)(calls, rng, *arguments)
        return (After.of(calls, rng, before), value), arrays

    def look(
        self, calls: Calls, rng: np.random.Generator, places: Sequence[tuple[int, int]]
    ) -> Answered:
        """Run first calls to fix the representation of outputs, unless it is fixed.

        Args:
            calls: The calls.
            rng: Their generator.
            places: The places of the inputs of the calls.

        Returns:
            The representation, with an array of its rows as an example.
        """
        calls.look(map(self._input, places), rng)
        # The representation of outputs was fixed before.
        assert calls.like is not None
        seen = {"labels": calls.labels, "drew": calls.drew, "shown": calls.shown}
        return calls.form.recorded() | seen, [calls.like]

    def repeated(
        self, calls: Calls, rng: None, place: tuple[int, int], seed: int, size: int
    ) -> Answered:
        """Call twice with one seed, and compare both calls.

        Returns:
            Two bools: whether the outputs are equal, and whether the generators end in
            the same state.
        """
        return calls.repeated(self._input(place), seed, size), ()

    def rows(
        self,
        calls: Calls,
        rng: np.random.Generator,
        wanted: Sequence[tuple[tuple[int, int], int]],
        singly: bool,
    ) -> Answered:
        """Return the rows of outputs of several calls.

        Args:
            calls: The calls.
            rng: Generator of all calls, in their order.
            wanted: Place of the input and number of outputs, for each call.
            singly: Whether each output is made by a call of its own.
        """
        made = calls.singly() if singly else calls
        return None, [made(self._input(place), size, rng) for place, size in wanted]

    def runs(
        self, calls: Calls, rng: None, wanted: Sequence[Any], singly: bool
    ) -> Answered:
        """Return the rows of outputs of several calls, each with a seed of its own.

        ``wanted`` has (place of the input, number of outputs, seed) for each call. With
        ``singly``, each output is made by a call of its own.
        """
        return None, [(calls.singly() if singly else calls).runs(self._runs(wanted))]

    def untouched(self, number: int) -> Answered:
        """Start the process in which the mechanism has never been called."""
        untouched(self.requests[number].adapted).start()
        return None, ()

    def in_untouched(
        self,
        number: int,
        calls: int,
        raising: bool,
        parts: Sequence[Sequence[Any]],
        seconds: float,
        afresh: bool,
    ) -> Answered:
        """Return rows of outputs from new processes, one for each part of the runs.

        They are forks of a process in which the mechanism has never been called.

        Args:
            number: Number of the mechanism.
            calls: Number of the ``Calls``, which decides how outputs are represented.
            raising: Whether exceptions count as outputs (``Calls.raising``).
            parts: For each process its calls, each as (place of the input, number of
                outputs, seed).
            seconds: Time after which a process is given up.
            afresh: Whether all generators of a process get new random states.

        Returns:
            One array for each part; no array if the runs could not be made.
        """
        made = self._calls[calls]
        made.raising = raising
        process = untouched(self.requests[number].adapted)
        found = process.rows(
            made, [self._runs(part) for part in parts], seconds, afresh=afresh
        )
        return None, found or ()

    def law(self, number: int, form: Representation, pair: int) -> Answered:
        """Bind the stated law of outputs to a pair.

        Returns:
            The number of the bound law, and the largest log probability of an output
            that a finite law does not list, or −∞. If the laws of both inputs are
            finite, two arrays: the log-odds of the outputs and their weights.
        """
        bound = LikelihoodRatio().bind(
            SeenAs(self.requests[number].adapted, form), self._pairs[pair]
        )
        self._laws.append(bound)
        stated = (
            ()
            if bound.stated is None
            else (bound.stated.log_odds, bound.stated.weights)
        )
        return (len(self._laws) - 1, float(bound._unlisted)), stated

    def log_probs(self, number: int, outputs: Array) -> Answered:
        """Return the stated log probabilities of outputs on both inputs of a pair.

        ``number`` is the number of the law, as ``law`` returned it. There are two
        arrays, for data and neighbour.
        """
        return None, [
            np.asarray(side, dtype=float)
            for side in self._laws[number]._log_probs(outputs)
        ]

    def score(self, number: int, outputs: Array, pair: int) -> Answered:
        """Return the mechanism's own scores for a pair, one per output."""
        able, given = capabilities(self.requests[number].adapted), self._pairs[pair]
        # The judging process requests it only if it exists.
        assert able.score is not None
        with self._inputs.lent(f"{able.name}.score", given.data, given.neighbour) as (
            data,
            neighbour,
        ):
            return None, [able.score(outputs, Pair(data, neighbour, given.name))]

    def possible(self, number: int, outputs: Array, place: tuple[int, int]) -> Answered:
        """Return one bool per output: whether the input at ``place`` can give it."""
        able = capabilities(self.requests[number].adapted)
        # The judging process requests it only if it exists.
        assert able.possible is not None
        with self._inputs.lent(f"{able.name}.possible", self._input(place)) as (data,):
            return None, [able.possible(outputs, data)]

    def trace(
        self, number: int, played: Sequence[int], most: int, seed: int, search: bool
    ) -> Answered:
        """Trace the code; return the pairs that it proposes, with their promises.

        Args:
            number: Number of the mechanism.
            played: Numbers of the pairs to play.
            most: Number of calls of the game.
            seed: Seed of the trace.
            search: Whether the trace may take further pairs from the adjacency.
        """
        request, listed = self.requests[number], [self._pairs[pair] for pair in played]
        among = self.built.adjacency if search else None
        self._look = looked_by_trace(
            request.adapted, request.privacy, listed, among, calls=most, seed=seed
        )
        return {"pairs": self._proposed()}, ()

    def reads(self, number: int, calls: int) -> Answered:
        """Fit laws to the trace; return whether a law fits, and the proposed pairs.

        ``calls`` is the number of the ``Calls`` whose outputs the laws are about.
        """
        self._replayed = self._look.replayed(
            self._calls[calls].form, self.requests[number].privacy
        )
        return {"pairs": self._proposed(), "reads": self._replayed is not None}, ()

    def _proposed(self) -> list[tuple[tuple[int, str], float]]:
        found = [
            (replace(pair, name=pair.name or "traced"), promise)
            for pair, promise in self._look.proposed
        ]
        return [(self._held(pair), promise) for pair, promise in found]

    def traced(self, number: int, played: bool, abstained: int) -> Answered:
        """Return the record of the trace, or None if nothing was traced.

        Args:
            number: Number of the mechanism.
            played: Whether a law of the trace was a forecaster of the game.
            abstained: Number of outputs for which this forecaster gave no odds.
        """
        found = game_trace(
            self._look,
            self.requests[number].privacy,
            played=played,
            abstained=abstained,
        )
        return GAME_TRACE.dump_python(found, mode="json"), ()

    def read(self, number: int, form: Representation, pair: int) -> Answered:
        """Bind the law fitted to the trace to a pair; it is fixed from then on.

        Returns:
            The number of the bound law, or None if no law fits the pair. If the law of
            its log-odds is known, two arrays: the log-odds and their weights.
        """
        # The judging process requests it only if it exists.
        assert self._replayed is not None
        bound = self._replayed.bind(
            SeenAs(self.requests[number].adapted, form), self._pairs[pair]
        )
        if bound._ratio is None:
            return None, ()
        self._ratios.append(bound._ratio)
        return len(self._ratios) - 1, () if bound.stated is None else (
            bound.stated.log_odds,
            bound.stated.weights,
        )

    def odds(self, number: int, outputs: Array) -> Answered:
        """Return the log-odds of outputs by a fitted law.

        ``number`` is the number of the law, as ``read`` returned it.
        """
        return None, [self._ratios[number](outputs)]

    def compare(self, settings: Settings) -> Answered:
        """Compare with another version of the code; return the comparison's record.

        Later games also play the pairs that the comparison adds.
        """
        # The judging process requests it only if it exists.
        assert self.compared is not None
        self._versions = self._versions or self.compared(self.built, settings)
        self.built = self._versions.audit(self.built)
        return VERSIONS.dump_python(self._versions.result, mode="json"), ()

    def propose(
        self, number: int, calls: int, played: Sequence[int], first: int, most: int
    ) -> Answered:
        """Search for further pairs to play.

        Args:
            number: Number of the mechanism.
            calls: Number of the ``Calls``.
            played: Numbers of the pairs of the game.
            first: The game began with the first ``first`` of these pairs.
            most: Limit of the calls of the search.

        Returns:
            The number and the text of each found pair, with its promise
            (``PairTable.promise``); and the number of compared pairs.
        """
        pairs = [self._pairs[pair] for pair in played]
        game = self._game(number, calls, pairs[:first])
        for pair in pairs[first:]:
            game.add(pair)
        propose(game, self.built.adjacency, most)
        found = [
            (self._held(table.pair), table.promise)
            for table in game.tables[len(played) :]
        ]
        return (found, game.looked_at), ()

    def smaller(
        self, number: int, calls: int, pair: int, refuted_at: int, alpha: float
    ) -> Answered:
        """Search for a smaller pair that refutes the claim.

        Args:
            number: Number of the mechanism.
            calls: Number of the ``Calls``.
            pair: Number of the pair with the finding.
            refuted_at: Number of calls that refuted the claim.
            alpha: Level at which the smaller pair has to refute the claim.

        Returns:
            The number and the text of the smallest pair that was found, or None.
        """
        game = self._game(
            number,
            calls,
            [self._pairs[pair]],
            *([] if self._replayed is None else [self._replayed]),
        )
        game.refuted_at = refuted_at
        found = smaller(game, self.built.adjacency, alpha)
        return None if found is None else self._held(found.best.pair), ()

    def figure(self, rng: np.random.Generator) -> Answered:
        """Return the data of the audit's figure."""
        # The judging process requests it only if it exists.
        assert self.built.figure is not None
        return json.loads(
            json.dumps(self.built.figure(rng), default=lambda value: value.tolist())
        ), ()

    def mutants(self, settings: Settings, exact: Evidence | None) -> Answered:
        """Return the fates of mutants; ``exact`` is the mechanism's exact evidence."""
        return MUTATION.dump_python(
            self.mutation(self.as_declared, settings, exact=exact), mode="json"
        ), ()

    def _game(
        self, number: int, calls: int, pairs: Sequence[Pair], *more: ReplayedRatio
    ) -> Game:
        """Return a new game with the audit's forecasters, which has made no calls."""
        request = self.requests[number]
        given = request.game.forecasters
        forecasters = (
            default_forecasters(request.adapted) if given is None else list(given)
        )
        return Game(
            self._calls[calls],
            request.privacy,
            pairs,
            [*forecasters, *more],
            request.streams,
        )

    def _held(self, pair: Pair) -> tuple[int, str]:
        self._pairs.append(pair)
        return len(self._pairs) - 1, str(pair)

    def _kept(self, calls: Calls) -> int:
        self._calls.append(calls)
        return len(self._calls) - 1

    def _input(self, place: tuple[int, int]) -> Any:
        number, side = place
        return (self._pairs[number].data, self._pairs[number].neighbour)[side]

    def _runs(self, wanted: Sequence[tuple[tuple[int, int], int, int]]) -> list[Run]:
        return [Run(self._input(place), size, seed) for place, size, seed in wanted]
