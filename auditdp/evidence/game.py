"""Game evidence: play, confirm on fresh randomness, and say what was and was not seen.

Null hypothesis: every pair that is played satisfies the claim. Guarantee: the verdict is VIOLATED, or ε_L exceeds the
truth, with probability at most alpha, for any forecasters, any adaptive choice of pairs, and any stopping; a finding
must also be confirmed on fresh randomness, which makes false findings rarer still. Assumes that the outputs of one call
are independent runs. A clean game is never evidence that a mechanism is private.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from auditdp.adjacency import Adjacency, Pair
from auditdp.betting.forecasters import LikelihoodRatio, default_forecasters
from auditdp.betting.game import Game, Streams, checked_pairs
from auditdp.betting.pairs import can_search, propose, smaller
from auditdp.betting.power import detectable_level
from auditdp.betting.wealth import level_grid
from auditdp.claims import Claim, GaussianDP, PureDP
from auditdp.errors import AdjacencyError
from auditdp.mechanism import Mechanism, check_independence
from auditdp.results import Counterexample, Evidence, Verdict

CONFIRMATION_ALPHA = 0.05
CONFIRMATION_FACTOR = 8
CONFIRMATION_LEAST = 4_000
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
    forecasters: Sequence[Any] | None = None,
    pairs: Sequence[Pair] | None = None,
    search: bool = True,
    stop_when_refuted: bool = False,
) -> Evidence:
    """Audit a claim by betting and return the evidence.

    Args:
        mechanism: The mechanism to audit.
        claim: What it promises.
        adjacency: Which inputs are neighbours; every pair that is played is checked against it.
        alpha: Probability of a false VIOLATED verdict, and of a lower bound above the truth.
        calls: Calls of the mechanism for discovery, the search for pairs included; a finding spends more to be confirmed
            and made small.
        streams: Randomness by (purpose, batch).
        forecasters: Forecasters to average; ``default_forecasters(mechanism)`` unless given.
        pairs: The pairs to play, if not ``adjacency.pairs()``.
        search: Whether to look for further pairs, and for the smallest pair that shows a violation, where the adjacency
            generates any and no pairs are given.
        stop_when_refuted: Stop at the verdict instead of spending the budget on a better lower bound.

    Raises:
        AdjacencyError: If a pair is not adjacent, or there is none.
        MechanismError: If the mechanism misbehaves.
    """
    chosen = checked_pairs(adjacency, pairs)
    if not chosen:
        raise AdjacencyError(f"{adjacency.name}: lists no pairs to play")
    check_independence(mechanism, chosen[0].data, streams("independence", 0))
    templates = list(forecasters) if forecasters is not None else default_forecasters(mechanism)
    search = search and pairs is None and can_search(adjacency)
    game = Game(mechanism, claim, chosen, templates, streams, levels=level_grid(claim))
    spent = propose(game, adjacency, calls // SEARCH_SHARE) if search else 0
    game.play(calls - spent, alpha=alpha, stop_when_refuted=stop_when_refuted)
    details = _details(game, alpha) | {"search_calls": spent}
    common: dict[str, Any] = {
        "kind": "game",
        "assumptions": [
            "the outputs of one call are independent runs of the mechanism",
            f"neighbours: {adjacency.name}",
        ],
        "epsilon_lower": game.wealth.lower_bound(alpha),
        "log_e_value": game.wealth.log_wealth,
        "details": details,
    }
    symbol = "μ" if isinstance(claim, GaussianDP) else "ε"
    bound = f"{symbol} ≥ {common['epsilon_lower']:.4g} with confidence {1 - alpha:.6g}"
    used = game.wealth.calls + spent
    if not game.wealth.refuted(alpha):
        level, alternative = _detectable(game, alpha)
        details |= {"detectable_epsilon": level, "detectable_alternative": alternative}
        return Evidence(
            verdict=Verdict.NOT_REFUTED,
            statement=(
                f"{used:,} calls did not refute the claim ({bound}); this budget would have refuted "
                f"{alternative} {level:.4g} nine times in ten"
            ),
            calls=used,
            **common,
        )
    fresh = _confirm(game, streams, "confirmation")
    used += fresh.wealth.calls
    details["confirmation"] = _confirmation(fresh)
    seen = f"The bets reached 1/α = {1 / alpha:,.4g} after {details['refuted_at']:,} calls and show {bound}"
    if not fresh.wealth.refuted(CONFIRMATION_ALPHA):
        return Evidence(
            verdict=Verdict.INCONCLUSIVE,
            statement=f"{seen}, but {fresh.wealth.calls:,} calls on fresh randomness did not confirm it",
            calls=used,
            **common,
        )
    statement = f"{seen}; confirmed on fresh randomness in {fresh.wealth.calls:,} calls"
    if search and not stop_when_refuted:
        small, spent = smaller(game, adjacency, CONFIRMATION_ALPHA)
        used += spent
        if small is not None:
            again = _confirm(small, streams, "confirmation of the smallest pair")
            used += again.wealth.calls
            if again.wealth.refuted(CONFIRMATION_ALPHA):
                fresh = again
                details["smallest"] = {"pair": str(fresh.best.pair), "calls": spent} | _confirmation(fresh)
    return Evidence(
        verdict=Verdict.VIOLATED, statement=statement, calls=used, counterexample=_counterexample(fresh), **common
    )


def _details(game: Game, alpha: float) -> dict[str, Any]:
    """Return what the report plots and lists of a game."""
    wealth = sorted(zip(game.wealth.log_by_forecaster.tolist(), game.names, strict=True), reverse=True)
    return {
        "wealth_path": [[n, w] for n, w in game.path],
        "threshold": math.log(1 / alpha),
        "refuted_at": game.refuted_at,
        "forecasters": [{"name": name, "log_wealth": w} for w, name in wealth[:MOST_LISTED]],
        "forecasters_played": len(game.names),
        "pairs": [
            {"pair": str(t.pair), "calls": t.calls, "growth": game.earned(t) / max(t.calls, 1)} for t in game.tables
        ],
        "confirmation": None,
    }


def _detectable(game: Game, alpha: float) -> tuple[float, str]:
    """Return the smallest level that the calls of the best-played pair would have refuted nine times in ten."""
    white_box = game.names[0] == LikelihoodRatio.name
    shares = game.wealth.shares
    return detectable_level(
        game.claim,
        calls=max(table.calls for table in game.tables),
        alpha=alpha,
        share=(shares[0] if white_box else float(np.median(shares))) / (sum(shares) + game.wealth.leader),
        white_box=white_box,
    )


def _confirm(game: Game, streams: Streams, purpose: str) -> Game:
    """Replay the best pair on fresh randomness, with its own alpha, and return the game that was played."""
    fresh = game.confirmation(lambda kind, batch: streams(f"{purpose} {kind}", batch))
    budget = max(CONFIRMATION_LEAST, CONFIRMATION_FACTOR * (game.refuted_at or game.wealth.calls))
    fresh.play(budget, alpha=CONFIRMATION_ALPHA, stop_when_refuted=True)
    return fresh


def _confirmation(fresh: Game) -> dict[str, Any]:
    """Return what happened on fresh randomness."""
    return {
        "calls": fresh.wealth.calls,
        "log_e_value": fresh.wealth.log_wealth,
        "alpha": CONFIRMATION_ALPHA,
        "confirmed": fresh.wealth.refuted(CONFIRMATION_ALPHA),
        "bets": fresh.best.bets,
        "right": fresh.best.right,
    }


def _counterexample(fresh: Game) -> Counterexample:
    """Spell the finding out: the pair, and how often the leading forecaster was right on fresh calls."""
    claim, table = fresh.claim, fresh.best
    epsilon, delta = claim.tangents()[0]
    if isinstance(claim, GaussianDP):
        allowed = f"at most {(1 + delta) / 2:.2%} of all calls, and less among its surest"
    else:
        allowed = f"{PureDP(epsilon).posterior_cap():.2%}"
        allowed += "" if delta == 0 else f", and on δ = {delta:.3g} of all calls anything"
    return Counterexample(
        pair=str(table.pair),
        explanation=(
            f"On {fresh.wealth.calls:,} fresh calls the forecasters (best: {fresh.best_forecaster}) bet "
            f"{table.bets:,} times on which of the two inputs was used and were right {table.right:,} times "
            f"({table.right / max(table.bets, 1):.2%}); the claim allows {allowed}"
        ),
    )
