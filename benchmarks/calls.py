"""Calls to refute a false claim, relative to a forecaster with the true posterior.

For every false claim the same verdict is reached in seven ways, from the one that knows most to the one that knows least:
the true posterior on the best pair (the reference: one forecaster, no lower bound to pay for), the default forecasters of
a white box and those of a black box on that pair and on all pairs, a black box on that pair with the ratio that a trace
replays where it can be read off the code, and a black box with the search for pairs. All but the
reference play as an audit does. A game that goes on for 20 times the reference's median is cut off and counted as more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq

from auditdp import ApproxDP, GaussianDP, Pair, PureDP
from auditdp.adjacency import Adjacency, as_adjacency
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import LikelihoodRatio, default_forecasters
from auditdp.betting.forecasters.traced import ReplayedRatio
from auditdp.betting.game import Game
from auditdp.betting.pairs.search import can_search
from auditdp.betting.wealth.levels import level_grid
from auditdp.betting.wealth.regions import log_cap
from auditdp.claims.claim import Claim
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.output_support import BitPatterns
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.representation import Representation
from auditdp.mechanism.protocol import Mechanism
from auditdp.numerics.streams import Streams, stream
from auditdp.record.budget import AuditBudget
from auditdp.report.numbers import as_float, number
from auditdp.testing import GaussianMechanism, LaplaceMechanism, LeakyResponse, Response
from auditdp.tracing import Trace
from benchmarks import figures
from benchmarks.parts import (
    ALPHA,
    Bar,
    BlackBox,
    Options,
    Part,
    Plot,
    Result,
    Results,
    Table,
    View,
)
from benchmarks.rows import FALSE_CLAIMS
from mechanisms.classic import Gaussian, NaiveLaplace

REFERENCE = "true posterior, best pair"
GIVEN = ("white box, best pair", "black box, best pair")
REPLAYED = "black box with its trace, best pair"
ALL_PAIRS = ("white box, all pairs", "black box, all pairs")
SEARCHED = "black box, pairs searched"
BARS = {
    "white box, best pair": 1.2,
    "black box, best pair": 5.0,
    REPLAYED: 1.25,
    "white box, all pairs": 15.0,
    "black box, all pairs": 15.0,
    SEARCHED: 15.0,
}
"""The largest factor that a row that counts may need."""

FACTOR = 20
MOST_CALLS = 10_000_000
DEEP = 100_000
"""Number of calls of the true posterior from which a claim is a deep tail: as expensive to
find as to verify."""
CLEAR = 1.5
"""The true level over the claim's from which on a row counts."""
REPEATS = ((10_000, 31), (100_000, 21), (math.inf, 3))
"""Repeats up to a median of the reference: long games are repeated less."""
CHEAP = 6
"""Factor of the repeats for the reference and the white box on one pair, where a bar is
nearest."""
FEWEST = 3
SCORING_DRAWS = 1 << 16


@dataclass(frozen=True)
class Case:
    """A false claim.

    Attributes:
        name: What is wrong.
        mechanism: The mechanism, which states its law.
        claim: The claim.
        adjacency: The neighbours.
        true_level: The smallest level at which the claim would be true over the pairs.
        bits: Whether only the bits of floating-point numbers leak: black boxes are then watched as support evidence does.
    """

    name: str
    mechanism: Any
    claim: Claim
    adjacency: Adjacency
    true_level: float
    bits: bool = False


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return ε of μ-GDP at δ, by its curve (Dong, Roth & Su 2022, arXiv:1905.02383v3, Corollary 2.13)."""
    return float(
        brentq(
            lambda epsilon: GaussianDP(mu).delta_at(epsilon) - delta,
            0.0,
            100 * mu + 100,
        )
    )


def cases() -> list[Case]:
    """Return the textbook violations, and every false claim of the classic mechanisms."""
    bits = as_adjacency((1, 0))
    return [
        Case("Randomised response 1.5", Response(1.5), PureDP(1.0), bits, 1.5),
        Case("Laplace 1.5", LaplaceMechanism(1 / 1.5), PureDP(1.0), bits, 1.5),
        Case(
            "Gaussian, μ = 1.5", GaussianMechanism(1 / 1.5), GaussianDP(1.0), bits, 1.5
        ),
        Case(
            "Leaky response (1.5, .01)",
            LeakyResponse(1.5, 0.01),
            ApproxDP(1.0, 0.01),
            bits,
            1.5,
        ),
        Case(
            "Leaky response (1, .05)",
            LeakyResponse(1.0, 0.05),
            ApproxDP(1.0, 0.01),
            bits,
            math.inf,
        ),
        *(
            Case(
                false.name,
                false.mechanism,
                false.claim,
                false.adjacency,
                gaussian_epsilon(1 / false.mechanism.sigma, false.claim.delta)
                if isinstance(false.mechanism, Gaussian)
                else false.true_epsilon,
                isinstance(false.mechanism, NaiveLaplace),
            )
            for false in FALSE_CLAIMS
        ),
    ]


def best_pair(case: Case, seed: int) -> Pair:
    """Return the pair on which the true posterior gains most a call, by its mean over outputs of either input."""

    def growth(k: int, pair: Pair) -> float:
        rng = stream(seed, case.name, "best pair", k)
        calls = Calls(case.mechanism)
        outputs = np.concatenate(
            [calls(x, SCORING_DRAWS, rng) for x in (pair.data, pair.neighbour)]
        )
        odds = np.abs(LikelihoodRatio().bind(case.mechanism, pair).log_odds(outputs))
        return float(posterior_growth(odds, case.claim.tangents()[0][0]).mean())

    pairs = case.adjacency.pairs()
    return pairs[int(np.argmax([growth(k, pair) for k, pair in enumerate(pairs)]))]


def posterior_growth(odds: Any, epsilon: float) -> Any:
    """Return kl(posterior ‖ its clip to the cap) for log-odds >= 0, in nats a call."""
    log_q, log_1q = log_cap(epsilon)
    log_p, log_1p = -np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds)
    with np.errstate(invalid="ignore"):
        doubt = np.where(np.isfinite(odds), np.exp(log_1p) * (log_1p - log_1q), 0.0)
    return np.where(odds > epsilon, np.exp(log_p) * (log_p - log_q) + doubt, 0.0)


def calls_of_game(
    mechanism: Mechanism,
    claim: Claim,
    pairs: Sequence[Pair],
    forecasters: Sequence[Any],
    streams: Streams,
    cap: int,
    *,
    bound: bool = True,
) -> int | None:
    """Return after how many calls a game refutes the claim, None where ``cap`` calls do not."""
    game = Game(
        mechanism,
        claim,
        pairs,
        forecasters,
        streams,
        levels=level_grid(claim) if bound else None,
    )
    game.play(cap, alpha=ALPHA, stop_when_refuted=True)
    return game.refuted_at


def _searched(case: Case, streams: Streams, cap: int) -> int | None:
    """Count the calls of the search for pairs too; the game alone decides, without its confirmation."""
    evidence = play_game(
        BlackBox(case.mechanism),
        case.claim,
        case.adjacency,
        GameOptions(alpha=ALPHA, budget=AuditBudget.of(cap, stop_when_refuted=True)),
        streams=streams,
    )
    refuted_at = evidence.details.refuted_at
    return (
        None if refuted_at is None else int(refuted_at + evidence.details.search_calls)
    )


def looked_at(mechanism: Mechanism, pair: Pair) -> Representation:
    """Return the representation of the outputs of a mechanism as rows."""
    calls = Calls(mechanism)
    calls.look((pair.data, pair.neighbour), np.random.default_rng(0))
    return calls.form


def measure(
    name: str, seed: int, *, repeats: int | None = None, most_calls: int = MOST_CALLS
) -> Result:
    """Play one false claim in every way.

    Args:
        name: The case.
        seed: Root of the randomness.
        repeats: Games of every way, or None for the number in ``REPEATS``.
        most_calls: Where even the reference is cut off.

    Returns:
        The reference's median, and for every way the calls of each game, None where it was cut off.
    """
    case = next(case for case in cases() if case.name == name)
    pair = best_pair(case, seed)

    def play(
        way: str, games: range, refute: Callable[[Streams], int | None]
    ) -> list[int | None]:
        coins = (
            GIVEN[0] if way == REFERENCE else way
        )  # the same coins and outputs: what differs is the forecasters alone
        return [refute(partial(stream, seed, name, coins, k)) for k in games]

    def reference(streams: Streams) -> int | None:
        return calls_of_game(
            case.mechanism,
            case.claim,
            [pair],
            [LikelihoodRatio()],
            streams,
            most_calls,
            bound=False,
        )

    first = play(REFERENCE, range(repeats or FEWEST), reference)
    games = repeats or next(count for limit, count in REPEATS if middle(first) <= limit)
    cheap = games if repeats or middle(first) > DEEP else CHEAP * games
    known = first + play(REFERENCE, range(len(first), cheap), reference)
    median = middle(known)
    result: Result = {
        "claim": str(case.claim),
        "level": case.claim.level,
        "true_level": case.true_level,
        "pair": str(pair),
        "pairs": len(case.adjacency.pairs()),
        "reference": median,
        "seed": seed,
        "calls": {REFERENCE: known},
        "cap": most_calls,
    }
    if math.isinf(median):
        return result
    result["cap"] = cap = math.ceil(FACTOR * median)
    black: list[Any] = [BitPatterns()] if case.bits else [ViewExperts()]
    white, pairs = default_forecasters(case.mechanism), case.adjacency.pairs()
    mechanism, claim, hidden = case.mechanism, case.claim, BlackBox(case.mechanism)
    ways: dict[str, Callable[[Streams], int | None]] = {
        GIVEN[0]: lambda streams: calls_of_game(
            mechanism, claim, [pair], white, streams, cap
        ),
        GIVEN[1]: lambda streams: calls_of_game(
            hidden, claim, [pair], black, streams, cap
        ),
    }
    traced = ReplayedRatio(Trace(hidden), claim, seed=seed)
    if not case.bits and traced.reads_one_of([pair], looked_at(hidden, pair)):
        ways[REPLAYED] = lambda streams: calls_of_game(
            hidden, claim, [pair], [*black, traced], streams, cap
        )
    if len(pairs) > 1:
        ways[ALL_PAIRS[0]] = lambda streams: calls_of_game(
            mechanism, claim, pairs, white, streams, cap
        )
        ways[ALL_PAIRS[1]] = lambda streams: calls_of_game(
            hidden, claim, pairs, black, streams, cap
        )
    if can_search(case.adjacency) and not case.bits:
        ways[SEARCHED] = lambda streams: _searched(case, streams, cap)
    for way, refute in ways.items():
        result["calls"][way] = play(
            way, range(cheap if way == GIVEN[0] else games), refute
        )
    return result


def middle(calls: Sequence[int | None]) -> float:
    """Return the median of calls, where None is a game that was cut off; infinite if the median is one of these."""
    return float(np.median([math.inf if value is None else value for value in calls]))


def units(options: Options) -> dict[str, partial[Result]]:
    """One unit for each false claim."""
    repeats = options.repeats or (3 if options.quick else None)
    most = DEEP if options.quick else MOST_CALLS
    return {
        case.name: partial(
            measure, case.name, options.seed, repeats=repeats, most_calls=most
        )
        for case in cases()
    }


def counts_for_the_bar(result: Result) -> bool:
    """Return True if the true level is at least 1.5 claims, and the claim no deep tail."""
    level, reference = as_float(result["true_level"]), as_float(result["reference"])
    assert level is not None  # always recorded
    assert reference is not None
    return level >= CLEAR * result["level"] and reference < DEEP


def factor(result: Result, way: str) -> float | None:
    """Return the median calls of a way over the reference's; infinite if cut off, None if it was not played."""
    reference = as_float(result["reference"])
    if way not in result["calls"] or reference is None or math.isinf(reference):
        return None
    return middle(result["calls"][way]) / reference


def view(results: Results) -> View:
    """Compare every way with the reference, and the rows that count with the bars."""
    counting = {
        name: result for name, result in results.items() if counts_for_the_bar(result)
    }
    bars = []
    for way, most in BARS.items():
        factors = {
            name: value
            for name, result in counting.items()
            if (value := factor(result, way)) is not None
        }
        failed = [name for name, value in factors.items() if value > most]
        bars.append(
            Bar(
                f"Calls to refute, {way}: ≤ {most:g} times the true posterior's",
                None if len(results) < len(cases()) or not factors else not failed,
                f"{len(factors) - len(failed)} of {len(factors)} rows that count"
                + (f"; not: {'; '.join(failed)}" if failed else ""),
            )
        )
    table = Table(
        "Median calls to refute a false claim at α = .05, as factors of the true posterior's",
        [
            "False claim",
            "Claim",
            "True level",
            "Counts",
            "Games",
            "True posterior",
            *BARS,
        ],
        [_line(name, result) for name, result in results.items()],
        note=(
            f"Games of the true posterior and of the white box on one pair are {CHEAP} times as many where that is cheap. "
            "Naive floating-point noise is watched for its bit patterns, as support evidence does. "
            f"A row counts where the true level is at least {CLEAR:g} times the claim's and the true posterior needs fewer "
            f"than {DEEP:,} calls. “> {FACTOR}” was cut off. Calls of the search for pairs are included in the last column; "
            "it is given the cut-off as its budget, of which a tenth is for the search."
        ),
    )
    plot = Plot(
        lambda: figures.factors(
            list(results),
            {way: [factor(result, way) for result in results.values()] for way in BARS},
            [counts_for_the_bar(result) for result in results.values()],
            FACTOR,
        ),
        "Factors of the true posterior's calls, logarithmic. Rows in grey do not count. A mark at the right edge was cut "
        f"off at {FACTOR} times.",
    )
    return View(bars, [table], [plot] if results else [])


def _line(name: str, result: Result) -> list[str]:
    reference = as_float(result["reference"])
    shown = (
        f"> {result['cap']:,}"
        if reference is None or math.isinf(reference)
        else f"{reference:,.0f}"
    )
    return [
        name,
        result["claim"].replace("-", "\N{NON-BREAKING HYPHEN}"),
        number(result["true_level"]),
        "yes" if counts_for_the_bar(result) else "no",
        str(min(map(len, result["calls"].values()))),
        shown,
        *(_factor_text(factor(result, way)) for way in BARS),
    ]


def _factor_text(value: float | None) -> str:
    if value is None:
        return "–"
    return f"> {FACTOR}" if math.isinf(value) else f"{value:.2f}"


PART = Part("calls", "Calls to refute", units, view)
