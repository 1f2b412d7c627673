"""Evidence from the betting game, with a confirmation on fresh randomness.

Null hypothesis: every pair that is played satisfies the claim. Guarantee: the probability
that the verdict is VIOLATED, or that the lower bound ε_L exceeds the true privacy loss, is
at most alpha, for any forecasters, any adaptive choice of pairs, and any stopping rule.
Assumption: calls are independent runs of the mechanism. ``request.believed`` checks it.

A finding is confirmed on fresh randomness, by calls that are made one by one, because
outputs of one call may depend on each other. If these calls do not confirm the finding,
fresh calls of several outputs are played as well. If those calls refute the claim, then
the mechanism leaks in such calls, or their outputs depend on each other; the evidence
names both. A refutation that was not confirmed is INCONCLUSIVE, and a run with such a
refutation is not clean (``Evidence.unconfirmed``).

The named pair, the best or the smallest one, refuted the claim in a game of its own at
alpha/2. So a finding names a pair that satisfies the claim with probability at most alpha.
A scarce game (``game_plan.py``) may be its own confirmation: if its runs were single calls
on one pair, chosen by other runs, then the game continues to the level of a confirmation.
A clean game is never evidence that a mechanism is private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

from auditdp.adjacency import Adjacency
from auditdp.adjacency.adjacency import GivenPairs
from auditdp.betting.forecasters.traced import ReplayedRatio
from auditdp.betting.game import Game, checked_pairs
from auditdp.betting.pairs.search import can_search
from auditdp.betting.wealth.levels import is_bound
from auditdp.claims.claim import Claim
from auditdp.errors import ConfigurationError, ExhaustedError, Timeout
from auditdp.evidence.confirmation import confirm, confirm_smaller, confirmation_of
from auditdp.evidence.game_plan import PreparedGame, open_game, play, resume
from auditdp.evidence.game_sentences import (
    explained,
    notices,
    odds,
    shows_nothing,
    suspected,
    unsearched,
)
from auditdp.evidence.power_statement import (
    calls_to_show,
    detectable,
    rarely,
    same_outputs,
)
from auditdp.evidence.request import EvidenceRequest, GameOptions, believed
from auditdp.evidence.trace_records import game_trace
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.allowance import ASIDE, MAIN, allowing
from auditdp.mechanism.calls.independence import CheckLimits
from auditdp.mechanism.calls.phases import phase
from auditdp.mechanism.protocol import Mechanism, is_seeded, is_vectorised, name_of
from auditdp.numerics.rounding import at_least, confidence, count, outwards
from auditdp.numerics.streams import Streams
from auditdp.record.details import ForecasterWealth, GameDetails, Part, PlayedPair
from auditdp.record.results import SYMBOLS, Counterexample, Evidence, Verdict

SINGLE_CALLS = 0.75
"""Share of the calls of a confirmation after which single calls end unless the wealth
has grown. The other calls are then left for a confirmation by calls of several
outputs."""
MAX_FORECASTERS = 12
"""Largest number of forecasters that a record lists."""
MAX_PAIR_NAME = 60
"""Length, in characters, up to which a sentence about power names a pair."""


def gathered(request: EvidenceRequest, alpha: float) -> Evidence:
    """Return the evidence from a game at level ``alpha``."""
    return play_game(
        request.adapted,
        request.privacy,
        request.adjacency,
        replace(request.game, alpha=alpha),
        streams=request.streams,
    )


def play_game(
    mechanism: Mechanism,
    claim: Claim,
    adjacency: Adjacency,
    options: GameOptions,
    *,
    streams: Streams,
) -> Evidence:
    """Audit a claim by betting, and return the evidence.

    *Number of calls.* If the budget names a fault, its size decides the number. The
    fault may be in any pair, and bets decide how many calls a pair gets. So the number
    is the calls that find the fault in one pair, times the number of pairs. The calls
    for the search and for the check of independence are additional.

    *Continuation.* The wealth is a supermartingale under the claim, so one may stop,
    look, and continue any number of times (``AuditBudget.later``). A seeded game is a
    function of its streams, so a stopped game is played again in the same way before it
    continues. The recorded log wealth shows whether it is the same game. A finding is
    confirmed after the last part, on randomness of its own, at half the level that a
    confirmation of the part before had. Each part has at most two confirmations that
    name a pair: of the best and of the smallest pair. So the probability that any of
    them refutes a pair that satisfies the claim is at most 2 alpha.

    Args:
        mechanism: The mechanism.
        claim: Its claim.
        adjacency: The adjacency, which lists or generates pairs.
        options: The options of the game.
        streams: Random streams by purpose and batch.

    Returns:
        Evidence with the verdict VIOLATED or NOT_REFUTED. INCONCLUSIVE if the calls did
        not suffice to play, no bets were made, a refutation was not confirmed, or calls
        depend on each other.

    Raises:
        AdjacencyError: If a pair is not adjacent, or there is none.
        MechanismError: If the mechanism misbehaves.
        ConfigurationError: If the calls that find the fault are unknown or too many, if
            the game cannot continue, or if it is not the recorded game.

    >>> from functools import partial
    >>> from auditdp.adjacency import as_adjacency
    >>> from auditdp.claims.statements import PureDP
    >>> from auditdp.numerics.streams import stream
    >>> from auditdp.record.budget import AuditBudget
    >>> from auditdp.testing import LaplaceMechanism
    >>> options = GameOptions(alpha=0.05, budget=AuditBudget.of(2_000))
    >>> pairs = as_adjacency([(0.0, 1.0)])
    >>> streams = partial(stream, 1)
    >>> found = play_game(
    ...     LaplaceMechanism(scale=0.5), PureDP(1.0), pairs, options, streams=streams
    ... )
    >>> found.verdict.name, found.epsilon_lower > 1.0
    ('VIOLATED', True)
    """
    if options.budget.later and not is_seeded(mechanism):
        raise ConfigurationError(
            f"{name_of(mechanism)} draws its own randomness, so its game cannot be "
            "repeated and continued; run it again instead: e-values of independent "
            "runs may be multiplied"
        )
    chosen = checked_pairs(adjacency, options.play)
    options = replace(
        options,
        play=chosen,
        search=options.search and options.play is None and can_search(adjacency),
    )
    with allowing() as allowed:
        try:
            opened = open_game(mechanism, claim, adjacency, options, streams)
        except ExhaustedError as error:
            return Evidence(
                kind="game",
                verdict=Verdict.INCONCLUSIVE,
                statement=(
                    f"calls={options.budget.game_calls} is too small for a game and "
                    f"the checks before it: {error}"
                ),
                calls=allowed.made,
            )
        with allowing(share=MAIN):
            play(opened, stop_when_refuted=options.stop_when_refuted)
            parts = resume(opened)
            if opened.game.wealth.refuted(options.alpha):
                _continue_to_confirm(opened)
        with allowing(opened.to_predict, share=ASIDE):
            details = _details(opened, parts)
        played = _Played(opened, _assumptions(opened.game.calls, adjacency), details)
        evidence = _judged(played, adjacency, streams)
        return replace(evidence, calls=allowed.made)


def _judged(played: _Played, adjacency: Adjacency, streams: Streams) -> Evidence:
    """Return the evidence of a game that was played: confirmed, checked and explained."""
    opened, game = played.opened, played.game
    trace = played.details.trace
    compared = 0 if trace is None else trace.pairs
    listed = opened.options.play or ()
    if isinstance(adjacency, GivenPairs) and max(compared, game.looked_at) > len(
        listed
    ):
        notices = [*played.details.notices, adjacency.searched]
        played = replace(played, details=replace(played.details, notices=notices))
    if game.wealth.refuted(played.alpha):
        if opened.options.control:
            # A twin is broken on purpose, so its finding needs no second one.
            calls = count(game.refuted_at or 0, "call")
            statement = f"{calls} were enough to refute the claim ({played.bound})"
            return played.evidence(Verdict.VIOLATED, statement, played.details)
        evidence = _refuted(played, streams)
    else:
        searched = opened.options.search
        missing = unsearched(game, adjacency, searched=searched, compared=compared)
        evidence = _not_refuted(played, missing)

    budget = opened.used if opened.is_scarce else opened.calls
    affordable = CheckLimits.unseeded_share * opened.allowed.affordable(ASIDE)
    evidence = believed(
        evidence,
        game.calls,
        [game.best.pair.data, game.best.pair.neighbour],
        streams,
        int(min(budget, affordable)),
        claim=game.claim,
    )
    if evidence.verdict is Verdict.VIOLATED and opened.shrinks:
        evidence = _on_smaller_pair(evidence, played, adjacency, streams)
    return evidence


def _confirms_itself(opened: PreparedGame) -> bool:
    """Return True if a scarce game made single, seeded calls on its last pair alone."""
    game = opened.game
    has_single_calls = game.calls.seeded and not is_vectorised(game.calls.mechanism)
    has_one_pair = game.tables[-1].calls == game.wealth.calls
    return opened.is_scarce and has_one_pair and has_single_calls


def _continue_to_confirm(opened: PreparedGame) -> None:
    """Continue a game that confirms itself until it reaches the confirmation's level."""
    if _confirms_itself(opened):
        opened.advance(
            opened.allowed.most - opened.to_believe,
            alpha=opened.options.alpha / 2,
            watched=None,
            first=len(opened.game.tables) - 1,
        )


@dataclass(frozen=True)
class _Played:
    """A game that has been played, with the details of its record."""

    opened: PreparedGame
    assumptions: list[str]
    details: GameDetails

    @property
    def game(self) -> Game:
        return self.opened.game

    @property
    def alpha(self) -> float:
        return self.opened.options.alpha

    @property
    def part(self) -> str:
        """Phrase for the last part of the game; empty if the game has one part."""
        parts = len(self.details.parts)
        return f" of part {parts}" if parts > 1 else ""

    @property
    def confirmation_alpha(self) -> float:
        """The level of a confirmation."""
        return self.alpha * 0.5 ** len(self.details.parts)

    @property
    def symbol(self) -> str:
        """The letter of the claim's parameter."""
        return SYMBOLS[self.game.claim.parameter]

    @property
    def level(self) -> float:
        """The highest level of the claim that is refuted; 0 if none is."""
        return self.game.wealth.lower_bound(self.alpha)

    @property
    def bound(self) -> str:
        """Phrase for the lower bound on the parameter.

        For a claim of a finite family, it names the highest refuted claim.
        """
        claim = self.game.claim
        if is_bound(claim):
            bounded = f"{self.symbol} {at_least(self.level, claim.level)}"
        else:
            bounded = f"up to {claim.at(self.level)}"
        return f"{bounded}, {confidence(self.alpha)}"

    @property
    def most_played(self) -> str:
        """Phrase for the pair with the most calls."""
        tables = self.game.tables
        name = str(max(tables, key=lambda table: table.calls).pair)
        phrase = "the only tested pair"
        if len(tables) > 1:
            phrase = f"the pair with most calls of {len(tables)}"
        return f"{phrase}, {name}" if len(name) <= MAX_PAIR_NAME else phrase

    def evidence(
        self,
        verdict: Verdict,
        statement: str,
        details: GameDetails,
        *,
        counterexample: Counterexample | None = None,
    ) -> Evidence:
        is_bounded = is_bound(self.game.claim) and verdict is not Verdict.INCONCLUSIVE
        return Evidence(
            kind="game",
            verdict=verdict,
            statement=statement,
            assumptions=self.assumptions,
            epsilon_lower=self.level if is_bounded else None,
            log_e_value=self.game.wealth.log_wealth,
            calls=self.opened.used,
            counterexample=counterexample,
            details=details,
        )


def _not_refuted(played: _Played, unsearched: list[str]) -> Evidence:
    """Return the evidence of a game that did not refute the claim.

    It states the smallest violation that the calls would probably have refuted.

    Args:
        played: The game.
        unsearched: Notices about neighbours that were not searched.
    """
    game, used = played.game, played.opened.used
    if untested := _untested(game, used):
        statement = f"Nothing was tested: {untested}"
        return played.evidence(Verdict.INCONCLUSIVE, statement, played.details)
    # The check of independence comes last, and needs the calls that are kept for it.
    left = played.opened.allowed.left - played.opened.to_believe
    with allowing(max(left, 0), share=ASIDE):
        same = same_outputs(game)
    level, alternative = detectable(game, played.alpha)
    suspicions = suspected(
        played.details.trace,
        partial(calls_to_show, game, played.alpha),
        game.wealth.calls,
    )
    details = replace(
        played.details,
        notices=[
            *suspicions,
            *played.details.notices,
            *unsearched,
            *shows_nothing(same),
        ],
        same_outputs=same,
        detectable_epsilon=level,
        detectable_alternative=alternative,
        detectable_rarely=rarely(game, played.alpha) if game.claim.delta == 0 else None,
    )
    bound = f" ({played.bound})" if played.level > 0 else ""
    power = "no size of violation is known that they would have refuted with probability 9 in 10"
    if math.isfinite(level):
        power = (
            f"with probability 9 in 10 they would have refuted {played.symbol} = "
            f"{outwards(level, up=True)} ({alternative}) on {played.most_played}"
        )
    statement = f"{count(used, 'call')} did not refute the claim{bound}; {power}"
    return played.evidence(Verdict.NOT_REFUTED, statement, details)


def _untested(game: Game, used: int) -> str:
    """Return the reason for which a game made no bets; empty if it made some.

    ``used`` is the number of runs so far, in all phases.
    """
    if not game.wealth.calls:
        return (
            f"no calls were left for the game, after {count(used, 'call')} that "
            "looked at the mechanism and its pairs"
        )
    if not game.is_blind:
        return ""
    reasons = [f"{name!r}, by {reason}" for name, reason in game.failures.items()]
    return f"every forecaster failed, so no bets were made ({'; '.join(reasons)})"


def _refuted(played: _Played, streams: Streams) -> Evidence:
    """Confirm a refutation on fresh randomness, and return the evidence."""
    game, alpha = played.game, played.confirmation_alpha
    assert game.refuted_at is not None
    fresh, how = game, "made one by one, on a pair that was chosen before them"
    if not _confirms_itself(played.opened):
        # Calls of several outputs confirm nothing if the mechanism raises in them.
        patience = 1.0 if game.calls.raising else SINGLE_CALLS
        purpose, calls = f"confirmation{played.part}", played.opened.to_confirm
        fresh = confirm(game, streams, purpose, alpha, calls, patience=patience)
        how = "made one by one"
    details = replace(played.details, confirmation=confirmation_of(fresh, alpha))
    if not fresh.wealth.refuted(alpha):
        details = replace(details, bound_path=[])
        return _unconfirmed(replace(played, details=details), fresh, streams)
    statement = (
        f"{count(game.refuted_at, 'call')} were enough to refute the claim "
        f"({played.bound}), and {fresh.wealth.calls:,} fresh calls, {how}, confirmed the refutation"
    )
    counterexample = explained(fresh)
    return played.evidence(
        Verdict.VIOLATED, statement, details, counterexample=counterexample
    )


def _unconfirmed(played: _Played, single: Game, streams: Streams) -> Evidence:
    """Return evidence of a refutation that single fresh calls did not confirm.

    Fresh calls of several outputs are played as well, unless the mechanism raises in them.
    """
    game, alpha, details = played.game, played.confirmation_alpha, played.details
    together = None
    most = played.opened.to_confirm
    if most and not game.calls.raising:
        purpose = f"confirmation by calls of several outputs{played.part}"
        together = confirm(game, streams, purpose, alpha, most, singly=False)
        details = replace(details, together=confirmation_of(together, alpha))
    # The claim was refuted before.
    assert game.refuted_at is not None
    games = odds(-math.log(played.alpha))
    late = " until the time limit" if single.is_late else ""
    statement = (
        f"after {count(game.refuted_at, 'call')}, a stake of 1 had become {games}, "
        f"which has probability at most 1/{games} if the claim is true; "
        f"{single.wealth.calls:,} fresh calls, made one by one{late}, did not confirm the refutation "
        f"({_e_value(single)})"
    )
    if together is not None and together.wealth.refuted(alpha):
        statement = (
            f"outputs of one call differ from outputs of many calls: {statement}, and "
            f"{together.wealth.calls:,} fresh calls of several outputs did ({_e_value(together)}). "
            "Either the mechanism breaks the claim in calls of several outputs, "
            "or outputs of one call depend on each other, which is why calls are made one by one"
        )
    else:
        if together is not None:
            statement += f", nor did {together.wealth.calls:,} of several outputs ({_e_value(together)})"
        statement += (
            ". Calls are made one by one since outputs of one call may depend on "
            "each other. Either this happened by chance, or the outputs of one call "
            "are not independent runs, or the mechanism keeps its claim in single "
            "calls only, or the violation is too small for this number of calls; "
            "another seed with more calls decides"
        )
    return replace(
        played.evidence(Verdict.INCONCLUSIVE, statement, details), unconfirmed=True
    )


def _e_value(game: Game) -> str:
    return f"e-value {math.exp(min(game.wealth.log_wealth, 700.0)):.3g}"


@phase("smaller pair")
def _on_smaller_pair(
    found: Evidence, played: _Played, adjacency: Adjacency, streams: Streams
) -> Evidence:
    """Return the finding with a smaller pair if fresh calls confirm one."""
    purpose = f"confirmation of the smallest pair{played.part}"
    alpha = played.confirmation_alpha
    try:
        again = confirm_smaller(played.game, adjacency, streams, purpose, alpha)
    except (Exception, SystemExit, Timeout) as error:
        # The finding stands, whatever happens to a later search.
        late = f"the search for a smaller pair ended with {type(error).__name__}"
        return replace(found, statement=f"{found.statement}; {late}")
    if again is None:
        return found
    assert isinstance(found.details, GameDetails)
    smallest = replace(confirmation_of(again, alpha), outputs=None)
    confirmed = f"{count(again.wealth.calls, 'call')} more confirmed the refutation on the smaller pair given here"
    return replace(
        found,
        statement=f"{found.statement}; {confirmed}",
        details=replace(found.details, smallest=smallest),
        counterexample=explained(again),
    )


def _assumptions(calls: Calls, adjacency: Adjacency) -> list[str]:
    made = [
        "the outputs of one call, and those of different calls, are independent runs of the mechanism",
        f"neighbours: {adjacency.name}",
    ]
    if not calls.seeded:
        made.append(
            "the mechanism draws its randomness from elsewhere, so a re-run repeats "
            "the test and not its numbers"
        )
    if calls.raised:
        made.append("an adversary has the type of an exception")
    if calls.inputs.kept:
        made.append(
            f"inputs of type {', '.join(sorted(calls.inputs.kept))} cannot be copied; "
            "that the mechanism leaves them as "
            "they are is not checked"
        )
    return made


def _details(opened: PreparedGame, parts: list[Part]) -> GameDetails:
    """Return the details of a game for its record."""
    game = opened.game
    by_wealth = sorted(
        zip(game.wealth.log_by_forecaster.tolist(), game.names, strict=True),
        reverse=True,
    )
    forecasters = [
        ForecasterWealth(name=name, log_wealth=log_wealth)
        for log_wealth, name in by_wealth[:MAX_FORECASTERS]
    ]
    pairs = [
        PlayedPair(
            pair=str(table.pair),
            calls=table.calls,
            growth=game.gained(table) / max(table.calls, 1),
        )
        for table in game.tables
    ]
    stops = [
        f"after {part.calls:,} calls, with an e-value of {math.exp(min(part.log_e_value, 700.0)):.4g}"
        for part in parts[:-1]
    ]
    trace = None
    # The record of a control has no trace.
    if opened.look is not None and not opened.options.control:
        trace = game_trace(
            opened.look,
            game.claim,
            played=ReplayedRatio.name in game.names,
            abstained=game.abstained,
        )
    return GameDetails(
        wealth_path=list(game.path),
        bound_path=list(game.bounds) if is_bound(game.claim) else [],
        threshold=math.log(1 / opened.options.alpha),
        refuted_at=game.refuted_at,
        forecasters=forecasters,
        forecasters_played=len(game.names),
        pairs=pairs,
        notices=notices(game),
        search_calls=opened.searched,
        calls_to_find=opened.to_find,
        calls_lacking=opened.lacking or None,
        parts=parts,
        went_on="; ".join(stops) or None,
        trace=trace,
    )
