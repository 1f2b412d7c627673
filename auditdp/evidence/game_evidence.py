"""Game evidence: play, confirm on fresh randomness, and say what was and was not seen.

Null hypothesis: every pair that is played satisfies the claim. Guarantee: the verdict is VIOLATED, or ε_L exceeds the
truth, with probability at most alpha, for any forecasters, any adaptive choice of pairs, and any stopping. Assumes that
calls are independent runs of the mechanism, which is looked at before anything is believed (``request.py``).

A finding is confirmed on fresh randomness by calls that are made one by one: what outputs of one call share confirms
nothing. Where these do not confirm it, fresh calls of several outputs are played, too. If they refute the claim, the two
ways of calling differ: the mechanism leaks in such calls, or their outputs depend on each other. The evidence names both.
A refutation that was not confirmed is INCONCLUSIVE, and no run with it is clean (``Evidence.unconfirmed``).

The named pair, the best or the smallest, refuted the claim in a game of its own at alpha/2, so that a finding names
a pair that keeps the claim with probability at most alpha. Where runs are bounded, and so dear, a game that had one pair
from its first call on, chosen by runs of their own, and whose calls were single ones, is that game itself: it goes on until
it has won as much. A clean game is never evidence that a mechanism is private.
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
from auditdp.evidence.game_plan import PreparedGame, go_on, open_game, play
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
from auditdp.mechanism.calls.independence import SHARE_UNSEEDED
from auditdp.mechanism.protocol import Mechanism, is_seeded, is_vectorised, name_of
from auditdp.numerics.rounding import at_least, confidence, count, outwards
from auditdp.numerics.streams import Streams
from auditdp.record.details import ForecasterWealth, GameDetails, Part, PlayedPair
from auditdp.record.results import SYMBOLS, Counterexample, Evidence, Verdict

SINGLE_PATIENCE = 0.75
"""Share of a confirmation's calls after which single ones that have won nothing leave the others to calls of several."""
MOST_LISTED = 12
LONGEST_NAMED = 60
"""Characters of a pair that the power line names."""


def gathered(request: EvidenceRequest, alpha: float) -> Evidence:
    """Bets, with as many calls as find a fault where one is to be found."""
    options, adjacency = replace(request.game, alpha=alpha), request.adjacency
    return play_game(
        request.adapted, request.privacy, adjacency, options, streams=request.streams
    )


def play_game(
    mechanism: Mechanism,
    claim: Claim,
    adjacency: Adjacency,
    options: GameOptions,
    *,
    streams: Streams,
) -> Evidence:
    """Audit a claim by betting and return the evidence.

    A fault that is to be found nine times in ten (``find``) decides how many calls there are. It may be in any pair, and how
    many calls a pair gets depends on what it shows; so there are as many as find it in one pair, times the pairs. Then the
    pair that is played most has no fewer, and the power line states that fault, or a smaller one. The search for pairs, with
    a tenth of what the listed pairs need, and the look at independence come on top.

    A game may go on (``further``): its wealth is a supermartingale under the claim, so one may stop, look, and go on as
    often as one likes. A seeded game is a function of its streams, so one that was stopped is played again as it was, with
    its own search for pairs, and then goes on; what is recorded of it tells whether it is still the same game. A finding is
    confirmed when the last part has been played, on randomness that no confirmation of an earlier part had, with half of the
    α of the part before: of all confirmations together, however often the game goes on, a pair that keeps the claim passes
    one with probability at most 2α.

    Raises:
        AdjacencyError: If a pair is not adjacent, or there is none.
        MechanismError: If the mechanism misbehaves.
        ConfigurationError: If the calls that find the fault are not known, or too many; or if the game cannot go on, or is
            not the one that is recorded.

    >>> from functools import partial
    >>> from auditdp.adjacency import as_adjacency
    >>> from auditdp.claims.statements import PureDP
    >>> from auditdp.numerics.streams import stream
    >>> from auditdp.testing import LaplaceMechanism
    >>> options, pairs = GameOptions(alpha=0.05, calls=2_000), as_adjacency([(0.0, 1.0)])
    >>> found = play_game(LaplaceMechanism(scale=0.5), PureDP(1.0), pairs, options, streams=partial(stream, 1))
    >>> found.verdict.name, found.epsilon_lower > 1.0
    ('VIOLATED', True)
    """
    if options.further and not is_seeded(mechanism):
        raise ConfigurationError(
            f"{name_of(mechanism)} draws its own randomness, so its game cannot be played again to go on from there; "
            "run it once more instead: e-values of independent runs may be multiplied"
        )
    chosen = checked_pairs(adjacency, options.play)
    options = replace(
        options,
        play=chosen,
        search=options.search and options.play is None and can_search(adjacency),
    )
    with allowing() as allowed:
        alpha = options.alpha
        try:
            opened = open_game(mechanism, claim, adjacency, options, streams)
        except ExhaustedError as error:
            few = f"calls={options.calls} is too small to look at the mechanism and to play: {error}"
            return Evidence(
                kind="game",
                verdict=Verdict.INCONCLUSIVE,
                statement=few,
                calls=allowed.made,
            )
        game = opened.game
        with allowing(share=MAIN):
            play(opened, options)
            parts = go_on(opened, options)
            if game.wealth.refuted(alpha) and _confirms_itself(opened):
                last = len(game.tables) - 1
                opened.advance(
                    allowed.most - opened.to_believe,
                    alpha=alpha / 2,
                    watched=None,
                    first=last,
                )
        with allowing(opened.to_try, share=ASIDE):
            details = _details(opened, alpha, parts)
        compared = details.trace.pairs if details.trace is not None else 0
        if isinstance(adjacency, GivenPairs) and max(compared, game.looked_at) > len(
            chosen
        ):
            details = replace(details, notices=[*details.notices, adjacency.searched])
        played = _Played(opened, alpha, _assumptions(game.calls, adjacency), details)
        if game.wealth.refuted(alpha):
            found = _refuted(played, streams)
        else:
            found = _not_refuted(
                played,
                unsearched(game, adjacency, searched=options.search, compared=compared),
            )
        budget = opened.used if opened.is_dear else opened.calls
        budget = int(min(budget, SHARE_UNSEEDED * allowed.affordable(ASIDE)))
        inputs = [game.best.pair.data, game.best.pair.neighbour]
        found = believed(found, game.calls, inputs, streams, budget, claim=claim)
        if found.verdict is Verdict.VIOLATED and opened.shrinks:
            found = _on_smaller_pair(found, played, adjacency, streams)
        return replace(found, calls=allowed.made)


def _confirms_itself(opened: PreparedGame) -> bool:
    """Return whether runs are bounded, and all calls of a game were single ones on its last pair, known by a seed."""
    game = opened.game
    single = game.calls.seeded and not is_vectorised(game.calls.mechanism)
    return opened.is_dear and game.tables[-1].calls == game.wealth.calls and single


@dataclass(frozen=True)
class _Played:
    """A game that has been played."""

    opened: PreparedGame
    alpha: float
    assumptions: list[str]
    details: GameDetails

    @property
    def game(self) -> Game:
        """The game."""
        return self.opened.game

    @property
    def part(self) -> str:
        """The part of the game that was the last, in words; empty where it has one."""
        parts = len(self.details.parts)
        return f" of part {parts}" if parts > 1 else ""

    @property
    def alpha_again(self) -> float:
        """The level of a confirmation."""
        return self.alpha * 0.5 ** len(self.details.parts)

    @property
    def symbol(self) -> str:
        """The letter of the claim's parameter."""
        return SYMBOLS[self.game.claim.parameter]

    @property
    def level(self) -> float:
        """The highest level that is refuted; 0 where none is."""
        return self.game.wealth.lower_bound(self.alpha)

    @property
    def bound(self) -> str:
        """What that level bounds, or else what is refuted, in words."""
        claim = self.game.claim
        shown = (
            f"{self.symbol} {at_least(self.level, claim.level)}"
            if is_bound(claim)
            else f"up to {claim.at(self.level)}"
        )
        return f"{shown}, {confidence(self.alpha)}"

    @property
    def most_played(self) -> str:
        """The pair that was played most, in words."""
        table, pairs = (
            max(self.game.tables, key=lambda table: table.calls),
            len(self.game.tables),
        )
        name = str(table.pair)
        which = (
            "the only pair played"
            if pairs == 1
            else f"the one of {pairs} pairs played most"
        )
        return f"{which}, {name}" if len(name) <= LONGEST_NAMED else which

    def evidence(
        self,
        verdict: Verdict,
        statement: str,
        details: GameDetails,
        *,
        counterexample: Counterexample | None = None,
    ) -> Evidence:
        """Return the evidence."""
        return Evidence(
            kind="game",
            verdict=verdict,
            statement=statement,
            assumptions=self.assumptions,
            epsilon_lower=self.level
            if is_bound(self.game.claim) and verdict is not Verdict.INCONCLUSIVE
            else None,
            log_e_value=self.game.wealth.log_wealth,
            calls=self.opened.used,
            counterexample=counterexample,
            details=details,
        )


def _not_refuted(played: _Played, unsearched: list[str]) -> Evidence:
    """Say what the calls would have refuted, nine times in ten, and which neighbours were not looked for."""
    game, symbol, used = played.game, played.symbol, played.opened.used
    if untested := _untested(game, used):
        return played.evidence(
            Verdict.INCONCLUSIVE, f"Nothing was tested: {untested}", played.details
        )
    with allowing(
        max(played.opened.allowed.left - played.opened.to_believe, 0), share=ASIDE
    ):
        same = same_outputs(game)
    level, alternative = detectable(game, played.alpha)
    details = replace(
        played.details,
        notices=[
            *suspected(
                played.details.trace,
                partial(calls_to_show, game, played.alpha),
                game.wealth.calls,
            ),
            *played.details.notices,
            *unsearched,
            *shows_nothing(same),
        ],
        same_outputs=same,
        detectable_epsilon=level,
        detectable_alternative=alternative,
        detectable_rarely=rarely(game, played.alpha) if game.claim.delta == 0 else None,
    )
    if game.is_blind:
        failed = "; ".join(
            f"{name!r}, by {reason}" for name, reason in game.failures.items()
        )
        statement = f"Nothing was tested: every forecaster failed, so that nothing was bet ({failed})"
        return played.evidence(Verdict.INCONCLUSIVE, statement, played.details)
    shown = f" ({played.bound})" if played.level > 0 else ""
    power = (
        f"nine times in ten they would have refuted {symbol} = {outwards(level, up=True)} ({alternative}) on "
        f"{played.most_played}"
        if math.isfinite(level)
        else "no size of violation is known that they would have refuted nine times in ten"
    )
    statement = f"{count(used, 'call')} did not refute the claim{shown}; {power}"
    return played.evidence(Verdict.NOT_REFUTED, statement, details)


def _untested(game: Game, used: int) -> str:
    """Return why a game made no bets; empty where it made some."""
    if not game.wealth.calls:
        return f"nothing was left to play with, after {count(used, 'call')} that looked at the mechanism and its pairs"
    if not game.is_blind:
        return ""
    failed = "; ".join(
        f"{name!r}, by {reason}" for name, reason in game.failures.items()
    )
    return f"every forecaster failed, so that nothing was bet ({failed})"


def _refuted(played: _Played, streams: Streams) -> Evidence:
    """Confirm a finding on fresh randomness."""
    game, alpha = played.game, played.alpha_again
    itself, most = _confirms_itself(played.opened), played.opened.to_confirm
    patience = 1.0 if game.calls.raising else SINGLE_PATIENCE
    fresh = (
        game
        if itself
        else confirm(
            game, streams, f"confirmation{played.part}", alpha, most, patience=patience
        )
    )
    details = replace(played.details, confirmation=confirmation_of(fresh, alpha))
    assert game.refuted_at is not None  # it was
    if not fresh.wealth.refuted(alpha):
        return _unconfirmed(
            replace(played, details=replace(details, bound_path=[])), fresh, streams
        )
    how = "made one by one" + (
        ", on a pair that was chosen before them" if itself else ""
    )
    seen = f"{count(game.refuted_at, 'call')} were enough to refute the claim"
    statement = f"{seen} ({played.bound}), and {fresh.wealth.calls:,} fresh calls, {how}, confirmed it"
    return played.evidence(
        Verdict.VIOLATED, statement, details, counterexample=explained(fresh)
    )


def _unconfirmed(played: _Played, single: Game, streams: Streams) -> Evidence:
    """Say what bets won on fresh calls that did not confirm a finding, and on calls of several outputs where there are."""
    game, alpha, details = played.game, played.alpha_again, played.details
    together = None
    most = played.opened.to_confirm
    if most and not game.calls.raising:
        purpose = f"confirmation by calls of several outputs{played.part}"
        together = confirm(game, streams, purpose, alpha, most, singly=False)
        details = replace(details, together=confirmation_of(together, alpha))
    assert game.refuted_at is not None  # it was
    games = odds(-math.log(played.alpha))
    late = " until the time limit" if single.is_late else ""
    statement = (
        f"after {count(game.refuted_at, 'call')} bets had multiplied their stake by {games}, as they do in at most 1 of "
        f"{games} games of a true claim; {single.wealth.calls:,} fresh calls, made one by one{late}, did not confirm it "
        f"({_won(single)})"
    )
    if together is not None and together.wealth.refuted(alpha):
        statement = (
            f"outputs of one call are not as those of many: {statement}, and {together.wealth.calls:,} fresh calls of "
            f"several outputs did ({_won(together)}). Either the mechanism breaks the claim in calls of several outputs, or "
            "outputs of one call depend on each other, which is why calls are made one by one"
        )
    else:
        if together is not None:
            statement += f", nor did {together.wealth.calls:,} of several outputs ({_won(together)})"
        statement += (
            ". Calls are made one by one since outputs of one call may depend on each other. Either this is such a game, or "
            "the outputs of one call are not independent runs, or the mechanism behaves in single calls, or the violation "
            "is too small for so many calls; another seed with more calls tells which"
        )
    return replace(
        played.evidence(Verdict.INCONCLUSIVE, statement, details), unconfirmed=True
    )


def _won(game: Game) -> str:
    """Return what bets won against a claim."""
    return f"e-value {math.exp(min(game.wealth.log_wealth, 700.0)):.3g}"


def _on_smaller_pair(
    found: Evidence, played: _Played, adjacency: Adjacency, streams: Streams
) -> Evidence:
    """Show a finding on a smaller pair, where there is one on which fresh calls confirm it."""
    purpose, alpha = (
        f"confirmation of the smallest pair{played.part}",
        played.alpha_again,
    )
    try:
        again = confirm_smaller(played.game, adjacency, streams, purpose, alpha)
    except (
        Exception,
        SystemExit,
        Timeout,
    ) as error:  # a finding stands, whatever comes after it
        late = f"the look for a smaller pair ended with {type(error).__name__}"
        return replace(found, statement=f"{found.statement}; {late}")
    if again is None:
        return found
    assert isinstance(found.details, GameDetails)
    smallest = replace(confirmation_of(again, alpha), outputs=None)
    confirmed = f"{count(again.wealth.calls, 'call')} more confirmed it on the smaller pair that is shown"
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
            "the mechanism draws its randomness from elsewhere, so a re-run repeats the test and not its numbers"
        )
    if calls.raised:
        made.append("whoever calls the mechanism sees what type of exception it raises")
    if calls.inputs.kept:
        made.append(
            f"inputs of type {', '.join(sorted(calls.inputs.kept))} cannot be copied; that the mechanism leaves them as "
            "they are is not checked"
        )
    return made


def _details(opened: PreparedGame, alpha: float, parts: list[Part]) -> GameDetails:
    """Return what the report plots and lists of a game."""
    game = opened.game
    wealth = sorted(
        zip(game.wealth.log_by_forecaster.tolist(), game.names, strict=True),
        reverse=True,
    )
    stops = (
        f"after {part.calls:,} calls, with an e-value of {math.exp(min(part.log_e_value, 700.0)):.4g}"
        for part in parts[:-1]
    )
    return GameDetails(
        wealth_path=list(game.path),
        bound_path=list(game.bounds) if is_bound(game.claim) else [],
        threshold=math.log(1 / alpha),
        refuted_at=game.refuted_at,
        forecasters=[
            ForecasterWealth(name=name, log_wealth=w)
            for w, name in wealth[:MOST_LISTED]
        ],
        forecasters_played=len(game.names),
        pairs=[
            PlayedPair(
                pair=str(t.pair), calls=t.calls, growth=game.gained(t) / max(t.calls, 1)
            )
            for t in game.tables
        ],
        notices=notices(game),
        search_calls=opened.searched,
        calls_to_find=opened.to_find,
        calls_lacking=opened.lacking or None,
        parts=parts,
        went_on="; ".join(stops) or None,
        trace=None
        if opened.look is None
        else game_trace(
            opened.look,
            game.claim,
            played=ReplayedRatio.name in game.names,
            abstained=game.abstained,
        ),
    )
