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

from auditdp.adjacency import Adjacency, Pair
from auditdp.betting.forecasters import LikelihoodRatio, default_forecasters
from auditdp.betting.game import Game, Streams, checked_pairs
from auditdp.betting.power import detectable_level
from auditdp.betting.wealth import level_grid
from auditdp.claims import Claim, GaussianDP, PureDP
from auditdp.errors import AdjacencyError
from auditdp.mechanism import Mechanism, check_independence
from auditdp.results import Counterexample, Evidence, Verdict

CONFIRMATION_ALPHA = 0.05
CONFIRMATION_FACTOR = 4
CONFIRMATION_LEAST = 1_000


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
    stop_when_refuted: bool = False,
) -> Evidence:
    """Audit a claim by betting and return the evidence.

    Args:
        mechanism: The mechanism to audit.
        claim: What it promises.
        adjacency: Which inputs are neighbours; every pair that is played is checked against it.
        alpha: Probability of a false VIOLATED verdict, and of a lower bound above the truth.
        calls: Calls of the mechanism for discovery; a finding spends up to four times its calls more to be confirmed.
        streams: Randomness by (purpose, batch).
        forecasters: Forecasters to average; ``default_forecasters(mechanism)`` unless given.
        pairs: The pairs to play, if not ``adjacency.pairs()``.
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
    levels = level_grid(claim)
    game = Game(mechanism, claim, chosen, templates, streams, levels=levels)
    game.play(calls, alpha=alpha, stop_when_refuted=stop_when_refuted)
    details = _details(game, alpha)
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
    if not game.wealth.refuted(alpha):
        level, alternative = _detectable(game, alpha)
        details |= {"detectable_epsilon": level, "detectable_alternative": alternative}
        return Evidence(
            verdict=Verdict.NOT_REFUTED,
            statement=(
                f"{game.wealth.calls:,} calls did not refute the claim ({bound}); this budget would have refuted "
                f"{alternative} {level:.4g} nine times in ten"
            ),
            calls=game.wealth.calls,
            **common,
        )
    confirmed = _confirm(game, streams, details)
    fresh = details["confirmation"]["calls"]
    seen = f"The bets reached 1/α = {1 / alpha:,.4g} after {details['refuted_at']:,} calls and show {bound}"
    if not confirmed:
        return Evidence(
            verdict=Verdict.INCONCLUSIVE,
            statement=f"{seen}, but {fresh:,} calls on fresh randomness did not confirm it",
            calls=game.wealth.calls + fresh,
            **common,
        )
    return Evidence(
        verdict=Verdict.VIOLATED,
        statement=f"{seen}; confirmed on fresh randomness in {fresh:,} calls",
        calls=game.wealth.calls + fresh,
        counterexample=_counterexample(game, details),
        **common,
    )


def _details(game: Game, alpha: float) -> dict[str, Any]:
    """Return what the report plots and lists of a game."""
    wealth = zip(game.names, game.wealth.log_by_forecaster, strict=True)
    played = zip(game.pairs, game.allocation.calls, game.allocation.growth, strict=True)
    return {
        "wealth_path": [[n, w] for n, w in game.path],
        "threshold": math.log(1 / alpha),
        "refuted_at": game.refuted_at if game.wealth.refuted(alpha) else None,
        "forecasters": [{"name": name, "log_wealth": float(w)} for name, w in wealth],
        "pairs": [{"pair": str(pair), "calls": int(n), "growth": float(g)} for pair, n, g in played],
        "confirmation": None,
    }


def _detectable(game: Game, alpha: float) -> tuple[float, str]:
    """Return the smallest level that the calls of the best-played pair would have refuted nine times in ten."""
    return detectable_level(
        game.claim,
        calls=int(game.allocation.calls.max()),
        alpha=alpha,
        forecasters=len(game.names),
        white_box=LikelihoodRatio.name in game.names,
    )


def _confirm(game: Game, streams: Streams, details: dict[str, Any]) -> bool:
    """Replay the best pair on fresh randomness, with its own alpha, and record what happened."""
    fresh = game.confirmation(lambda purpose, batch: streams(f"confirmation {purpose}", batch))
    budget = max(CONFIRMATION_LEAST, CONFIRMATION_FACTOR * (game.refuted_at or game.wealth.calls))
    fresh.play(budget, alpha=CONFIRMATION_ALPHA, stop_when_refuted=True)
    confirmed = fresh.wealth.refuted(CONFIRMATION_ALPHA)
    right, bets = (int(count) for count in fresh.guesses[0, fresh.best_forecaster])
    details["confirmation"] = {
        "calls": fresh.wealth.calls,
        "log_e_value": fresh.wealth.log_wealth,
        "alpha": CONFIRMATION_ALPHA,
        "confirmed": confirmed,
        "bets": bets,
        "right": right,
    }
    return confirmed


def _counterexample(game: Game, details: dict[str, Any]) -> Counterexample:
    """Spell the finding out: the pair, and how often the forecaster was right on fresh calls."""
    fresh = details["confirmation"]
    claim, name = game.claim, game.names[game.best_forecaster]
    epsilon, delta = claim.tangents()[0]
    if isinstance(claim, GaussianDP):
        allowed = f"at most {(1 + delta) / 2:.2%} of all calls, and less among its surest"
    else:
        allowed = f"{PureDP(epsilon).posterior_cap():.2%}"
        allowed += "" if delta == 0 else f", and on δ = {delta:.3g} of all calls anything"
    return Counterexample(
        pair=str(game.pairs[game.best_pair]),
        explanation=(
            f"On {fresh['calls']:,} fresh calls the {name} forecaster bet {fresh['bets']:,} times on which of the two "
            f"inputs was used and was right {fresh['right']:,} times "
            f"({fresh['right'] / max(fresh['bets'], 1):.2%}); the claim allows {allowed}"
        ),
    )
