"""Game evidence: play, confirm on fresh randomness, and say what was and was not seen.

Null hypothesis: every pair that is played satisfies the claim. Guarantee: the verdict is VIOLATED, or ε_L exceeds the
truth, with probability at most alpha, for any forecasters, any adaptive choice of pairs, and any stopping. Assumes that
calls are independent runs of the mechanism, which is looked at before a game and again where a finding is not confirmed.

A finding is confirmed on fresh randomness by calls that are made one by one, each by a copy of the mechanism that no call
has changed: what outputs of one call share, or what an instance remembers, confirms nothing. The named pair, the best or
the smallest, refuted the claim in a game of its own at alpha/2, so that a finding names a pair that keeps the claim with
probability at most alpha. A clean game is never evidence that a mechanism is private.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from auditdp.adjacency import Adjacency, Pair
from auditdp.betting.forecasters import default_forecasters
from auditdp.betting.game import Game, checked_pairs
from auditdp.betting.levels import level_grid
from auditdp.betting.pairs import can_search, propose, smaller
from auditdp.betting.power import growths
from auditdp.betting.state import check_state
from auditdp.budgets import Fault, Goal
from auditdp.calls import Calls
from auditdp.calls.independence import check_calls, check_finding, check_share
from auditdp.calls.recording import Playback, Recorder
from auditdp.claims import Claim
from auditdp.details import Confirmation, ForecasterWealth, GameDetails, Part, PlayedPair
from auditdp.errors import ConfigurationError
from auditdp.evidence.power import calls_of_pair, detectable, rarely
from auditdp.evidence.wording import count, explained, notices
from auditdp.mechanism import Mechanism, is_seeded, name_of
from auditdp.randomness import Streams, prefixed
from auditdp.results import SYMBOLS, Evidence, Verdict
from auditdp.rounding import confidence, outwards
from auditdp.watching import going_on

CONFIRMATION_FACTOR = 8
CONFIRMATION_LEAST = 4_000
SHRINKING_ALPHA = 0.05
"""Level at which smaller pairs are looked for: what is found is confirmed at the audit's own."""
MOST_LISTED = 12
SEARCH_SHARE = 10
"""A tenth of the calls goes into the search for pairs."""


def play_game(
    mechanism: Mechanism,
    claim: Claim,
    adjacency: Adjacency,
    *,
    alpha: float,
    calls: int,
    streams: Streams,
    find: Fault | None = None,
    further: Sequence[Goal] = (),
    recorded: float | None = None,
    forecasters: Sequence[Any] | None = None,
    pairs: Sequence[Pair] | None = None,
    search: bool = True,
    stop_when_refuted: bool = False,
    bounded: bool = True,
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

    Args:
        mechanism: The mechanism to audit.
        claim: What it promises.
        adjacency: Which inputs are neighbours; every pair that is played is checked against it.
        alpha: Probability of a false VIOLATED verdict, and of a lower bound above the truth.
        calls: Calls of the mechanism for discovery, the search for pairs included; a finding spends more to be confirmed
            and made small.
        streams: Randomness by (purpose, batch).
        find: A fault that is to be found; there are then at least ``calls`` calls.
        further: How many calls there are altogether when the game has gone on, once for each time that it does.
        recorded: The log wealth before it goes on for the last time, if that is known.
        forecasters: Forecasters to average; ``default_forecasters(mechanism)`` unless given.
        pairs: The pairs to play, if not ``adjacency.pairs()``.
        search: Whether to look for further pairs, and for the smallest pair that shows a violation, where the adjacency
            generates any and no pairs are given.
        stop_when_refuted: Stop at the verdict instead of spending the budget on a better lower bound.
        bounded: Whether a lower bound is wanted. Without, only the claim's own level is bet against, in less time, and the
            bound is that level or 0.

    Raises:
        AdjacencyError: If a pair is not adjacent, or there is none.
        MechanismError: If the mechanism misbehaves.
        ConfigurationError: If the calls that find the fault are not known, or too many; or if the game cannot go on, or is
            not the one that is recorded.
    """
    if further and not is_seeded(mechanism):
        raise ConfigurationError(
            f"{name_of(mechanism)} draws its own randomness, so its game cannot be played again to go on from there; "
            "auditdp nightly adds up what games on fresh randomness win"
        )
    chosen = checked_pairs(adjacency, pairs)
    made = Calls(mechanism)
    checked = check_calls(made, [chosen[0].data, chosen[0].neighbour], streams, 0 if find else calls)
    templates = list(forecasters) if forecasters is not None else default_forecasters(mechanism)
    search = search and pairs is None and can_search(adjacency)
    game = Game(made, claim, chosen, templates, streams, levels=level_grid(claim) if bounded else None)
    least, each = calls, calls_of_pair(find, game, alpha) if find else 0
    if find:
        calls = max(least, each * len(game.tables))
        checked = check_share(made, chosen[0].data, streams, calls)
    spent = checked + (propose(game, adjacency, calls // SEARCH_SHARE) if search else 0)
    if find:  # in any of the pairs that were found, too
        calls = max(least, spent + each * len(game.tables))
    game.play(calls - spent, alpha=alpha, stop_when_refuted=stop_when_refuted, going_on=going_on)
    parts = [_part(game, spent)]
    for goal in further:
        if len(parts) == len(further) and recorded not in (None, game.wealth.log_wealth):
            raise ConfigurationError(
                f"the log wealth after {parts[-1].calls:,} calls is {game.wealth.log_wealth!r}, and {recorded!r} is "
                "recorded: the audit, the harness or a library has changed since, so this is another game; run it anew"
            )
        most = goal - spent if isinstance(goal, int) else calls_of_pair(goal, game, alpha) * len(game.tables)
        game.play(most, alpha=alpha, stop_when_refuted=not bounded, going_on=going_on)
        parts.append(_part(game, spent))
    details = replace(_details(game, alpha), search_calls=spent - checked, independence_calls=checked, parts=parts)
    if find:
        found = (
            f"{each:,} on each pair of {len(game.tables)}, for {find.description}, nine times in ten (--find {find})"
        )
        details = replace(details, calls_to_find=found)
    if further:
        stops = (
            f"after {part.calls:,} calls, with an e-value of {math.exp(min(part.log_e_value, 700.0)):.4g}"
            for part in parts[:-1]
        )
        details = replace(details, went_on="; ".join(stops))
    common: dict[str, Any] = {
        "kind": "game",
        "assumptions": _assumptions(made, adjacency),
        "epsilon_lower": game.wealth.lower_bound(alpha),
        "log_e_value": game.wealth.log_wealth,
    }
    symbol = SYMBOLS[claim.parameter]
    bound = f"{symbol} ≥ {outwards(common['epsilon_lower'], up=False)}, {confidence(alpha)}"
    used = game.wealth.calls + spent
    if not game.wealth.refuted(alpha):
        level, alternative = detectable(game, alpha)
        details = replace(
            details,
            detectable_epsilon=level,
            detectable_alternative=alternative,
            growths=growths(claim, level) if math.isfinite(level) else [],
            detectable_rarely=rarely(game, alpha) if claim.delta == 0 else None,
        )
        shown = f" ({bound})" if common["epsilon_lower"] > 0 else ""
        power = (
            f"nine times in ten they would have refuted {symbol} = {level:.4g} ({alternative})"
            if math.isfinite(level)
            else "they are too few to refute any violation nine times in ten"
        )
        return Evidence(
            verdict=Verdict.NOT_REFUTED,
            statement=f"{count(used)} did not refute the claim{shown}; {power}",
            calls=used,
            details=details,
            **common,
        )
    part, own = f" of part {len(parts)}" if further else "", alpha / 2 ** len(parts)
    fresh = _confirm(game, streams, f"confirmation{part}", own)
    used += fresh.wealth.calls
    details = replace(details, confirmation=_confirmation(fresh, own))
    assert game.refuted_at is not None  # it was
    seen = f"{count(game.refuted_at)} were enough to refute the claim ({bound})"
    if not fresh.wealth.refuted(own):
        used += check_state(game, streams, own)
        checked = check_finding(made, [game.best.pair.data, game.best.pair.neighbour], streams, calls)
        details = replace(details, independence_calls=(details.independence_calls or 0) + checked)
        used += checked
        return Evidence(
            verdict=Verdict.INCONCLUSIVE,
            statement=(
                f"{seen}, but {fresh.wealth.calls:,} fresh calls, made one by one, did not confirm it: a true claim is "
                f"refuted at most once in {1 / alpha:,.0f} audits, the outputs of one call may not be independent runs, or "
                "the violation is too small for so many calls; another seed with more calls tells which"
            ),
            calls=used,
            details=details,
            **common,
        )
    statement = f"{seen}, and {fresh.wealth.calls:,} fresh calls, made one by one, confirmed it"
    if search and not stop_when_refuted:
        small, spent = smaller(game, adjacency, SHRINKING_ALPHA)
        used += spent
        if small is not None:
            again = _confirm(small, streams, f"confirmation of the smallest pair{part}", own)
            used += again.wealth.calls
            if again.wealth.refuted(own):
                fresh = again
                statement += f"; {count(again.wealth.calls)} more confirmed it on the smaller pair that is shown"
                details = replace(details, smallest=replace(_confirmation(fresh, own), outputs=None))
    return Evidence(
        verdict=Verdict.VIOLATED,
        statement=statement,
        calls=used,
        counterexample=explained(fresh),
        details=details,
        **common,
    )


def play_again(
    mechanism: Mechanism,
    claim: Claim,
    adjacency: Adjacency,
    confirmation: Confirmation,
    *,
    streams: Streams,
    forecasters: Sequence[Any] | None = None,
    pairs: Sequence[Pair] | None = None,
) -> float:
    """Play the confirmation of a finding again on the outputs that were recorded, and return its log wealth.

    Args:
        mechanism: The mechanism, which is not run.
        claim: What it promises.
        adjacency: The neighbours.
        confirmation: What the evidence's details have of the confirmation.
        streams: The randomness of that audit, which gave the coins.
        forecasters: The forecasters of that audit.
        pairs: The pairs of that audit, if not ``adjacency.pairs()``.

    Raises:
        ConfigurationError: If the outputs were not kept, or their pair is not one that the audit lists.
    """
    listed = [pair for pair in checked_pairs(adjacency, pairs) if str(pair) == confirmation.pair]
    if not listed:
        raise ConfigurationError(
            f"the pair of this finding, {confirmation.pair}, is not one that the audit lists; give it with play="
        )
    templates = list(forecasters) if forecasters is not None else default_forecasters(mechanism)
    recorded = Playback(Calls(mechanism), confirmation.outputs or {})
    game = Game(recorded, claim, listed[:1], templates, prefixed(streams, "confirmation"))
    game.play(confirmation.calls, alpha=confirmation.alpha, stop_when_refuted=True)
    return game.wealth.log_wealth


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


def _part(game: Game, spent: int) -> Part:
    """Return what a game had played and won when it stopped, or went on."""
    return Part(calls=game.wealth.calls + spent, log_e_value=game.wealth.log_wealth)


def _details(game: Game, alpha: float) -> GameDetails:
    """Return what the report plots and lists of a game."""
    wealth = sorted(zip(game.wealth.log_by_forecaster.tolist(), game.names, strict=True), reverse=True)
    return GameDetails(
        wealth_path=list(game.path),
        bound_path=list(game.bounds),
        threshold=math.log(1 / alpha),
        refuted_at=game.refuted_at,
        forecasters=[ForecasterWealth(name=name, log_wealth=w) for w, name in wealth[:MOST_LISTED]],
        forecasters_played=len(game.names),
        pairs=[
            PlayedPair(pair=str(t.pair), calls=t.calls, growth=game.earned(t) / max(t.calls, 1)) for t in game.tables
        ],
        notices=notices(game),
    )


def _confirm(game: Game, streams: Streams, purpose: str, alpha: float) -> Game:
    """Replay the best pair on fresh randomness, with its own alpha, call by call, and return the game that was played.

    Where the mechanism draws from elsewhere, the game starts from nothing and its outputs are kept: they are all that it
    depends on, so that it can be played again from the record.
    """
    if game.calls.seeded:
        fresh = game.confirmation(prefixed(streams, purpose))
    else:
        calls = Recorder(game.calls.singly())
        fresh = Game(calls, game.claim, [game.best.pair], game.forecasters, prefixed(streams, purpose))
    budget = max(CONFIRMATION_LEAST, CONFIRMATION_FACTOR * (game.refuted_at or game.wealth.calls))
    fresh.play(budget, alpha=alpha, stop_when_refuted=True)
    return fresh


def _confirmation(fresh: Game, alpha: float) -> Confirmation:
    """Return what happened on fresh randomness."""
    right, wrong = fresh.wealth.record_of_best
    return Confirmation(
        pair=str(fresh.best.pair),
        calls=fresh.wealth.calls,
        log_e_value=fresh.wealth.log_wealth,
        alpha=alpha,
        confirmed=fresh.wealth.refuted(alpha),
        forecaster=fresh.best_forecaster,
        bets=right + wrong,
        right=right,
        outputs=fresh.calls.recorded() if isinstance(fresh.calls, Recorder) else None,
    )
