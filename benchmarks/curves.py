"""The distance of the game from its limit for claims with a delta or a curve.

Three questions: how large the certified level of a tight claim is after a number of calls, how many calls a false claim
takes compared with the growth of the best bet (no sequential test is faster, see ``auditdp/betting/wealth/regions.py``), and
whether claims are decided that are hard to decide: small violations, and what an accountant says of many steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from auditdp import AccountedDP, ApproxDP, GaussianDP, Pair, PureDP
from auditdp.accountants import PLDLower, PLDUpper
from auditdp.adjacency import as_adjacency
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.betting.game import Game
from auditdp.betting.power import growth
from auditdp.betting.wealth.levels import level_grid
from auditdp.claims.claim import Claim
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.protocol import Array
from auditdp.numerics.streams import stream
from auditdp.record.budget import AuditBudget
from auditdp.record.results import Verdict
from auditdp.report.numbers import number
from auditdp.testing import GaussianMechanism, LaplaceMechanism, LeakyResponse
from benchmarks import kernel_test
from benchmarks.parts import (
    ALPHA,
    Bar,
    Options,
    Part,
    Result,
    Results,
    Table,
    View,
    grouped,
    median,
    spread,
)

BITS = [Pair(1, 0)]
WHITE, BLACK = "white box", "black box"
GAMES = {WHITE: 31, BLACK: 11}
"""Number of games of a bound."""
PASSAGES = {WHITE: 10, BLACK: 4}
"""Number of units of a refutation, of several games each, since calls vary much."""
UNIT = 25
CLAIM = ApproxDP(1.0, 0.01)


@dataclass(frozen=True)
class SampledSteps:
    """The noised sums of Poisson-sampled DP-SGD, where one record's clipped gradient is the first unit vector.

    Args:
        sigma: Noise over the clipping norm.
        rate: Probability that the record takes part in a step.
        steps: Steps of a run.
        parameters: Numbers in a sum.
    """

    sigma: float
    rate: float
    steps: int = 1
    parameters: int = 1

    def __call__(self, data: int, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` runs, shape (size, steps, parameters)."""
        sums = self.sigma * rng.standard_normal((size, self.steps, self.parameters))
        sums[:, :, 0] += data * (rng.random((size, self.steps)) < self.rate)
        return sums

    def log_prob(self, outputs: Array, data: int) -> Array:
        """Return the log density of each run over that of noise alone, shape (size,)."""
        seen = outputs.reshape(len(outputs), self.steps, self.parameters)[:, :, 0]
        ratio = (seen - 0.5) / self.sigma**2
        return np.asarray(
            data
            * np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + ratio).sum(
                axis=1
            )
        )


@dataclass(frozen=True)
class Bound:
    """A tight claim, and the bar of its certified level.

    Attributes:
        mechanism: The mechanism.
        claim: Makes the claim.
        truth: The level that holds.
        least: What part of it should be certified after so many calls, by what is known of the mechanism.
        games: How many are played.
    """

    mechanism: Any
    claim: Callable[[], Claim]
    truth: Callable[[], float]
    least: Mapping[str, Mapping[int, float]]
    games: Mapping[str, int]


@dataclass(frozen=True)
class Refuted:
    """A false claim.

    Attributes:
        mechanism: The mechanism.
        claim: What is claimed.
        truth: The claim that its worst pair meets exactly.
        most: Calls that the median game may take, by what is known of the mechanism; None for 1.15 times the limit.
    """

    mechanism: Any
    claim: Claim
    truth: Claim
    most: Mapping[str, float | None]


@dataclass(frozen=True)
class Decided:
    """A false claim that is near the truth, or false in a part of the curve that is hard to see.

    Attributes:
        mechanism: The mechanism.
        claim: What is claimed.
        calls: The budget of an audit, within which every one should refute it.
    """

    mechanism: Any
    claim: Claim
    calls: int = 100_000


STEPS = partial(SampledSteps, rate=0.1, steps=100, parameters=10)
QUOTED = 1e-5


@cache
def _accounted() -> AccountedDP:
    return AccountedDP(
        PLDUpper(2.0, 0.1, 100),
        quoted=QUOTED,
        family=lambda factor: PLDUpper(2.0 * factor, 0.1, 100),
    )


@cache
def _optimistic() -> float:
    return PLDLower(2.0, 0.1, 100).epsilon_at(QUOTED)


def _gaussian(
    mu: float, white: tuple[float, float, float], black: tuple[float, float, float]
) -> Bound:
    at = (2_000, 5_000, 20_000)
    least = {
        WHITE: dict(zip(at, white, strict=True)),
        BLACK: dict(zip(at, black, strict=True)),
    }
    return Bound(
        GaussianMechanism(1 / mu), lambda: GaussianDP(mu), lambda: mu, least, GAMES
    )


def _black(epsilon: float, delta: float, least: float) -> Bound:
    """A Gaussian at an (ε, δ) that it meets exactly."""
    sigma = _sigma(epsilon, delta)
    known = {BLACK: {1_000_000: least}}
    return Bound(
        GaussianMechanism(sigma),
        lambda: ApproxDP(epsilon, delta),
        lambda: epsilon,
        known,
        {BLACK: 3},
    )


def _sigma(epsilon: float, delta: float) -> float:
    """Return the noise at which a sensitivity of 1 is exactly (ε, δ)-DP, to 1e-9."""
    low, high = 1e-3, 1e3
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (
            (low, middle)
            if GaussianDP(1 / middle).delta_at(epsilon) <= delta
            else (middle, high)
        )
    return high


BOUNDS = {
    "Gaussian, μ = .5": _gaussian(0.5, (0.74, 0.84, 0.91), (0.48, 0.68, 0.82)),
    "Gaussian, μ = 1": _gaussian(1.0, (0.84, 0.91, 0.95), (0.68, 0.82, 0.90)),
    "Gaussian, μ = 2": _gaussian(2.0, (0.91, 0.95, 0.97), (0.82, 0.90, 0.94)),
    "DP-SGD, its accountant's curve": Bound(
        STEPS(2.0), _accounted, _optimistic, {WHITE: {20_000: 0.85}}, {WHITE: 3}
    ),
    "DP-SGD, one (ε, 1e-5) of it": Bound(
        STEPS(2.0),
        lambda: ApproxDP(_accounted().level, QUOTED),
        _optimistic,
        {WHITE: {20_000: 0.0}},
        {WHITE: 3},
    ),
    "Gaussian, (1, .01)": _black(1.0, 0.01, 0.9),
    "Gaussian, (1, 1e-5)": _black(1.0, 1e-5, 0.6),
}
LIMIT = 1.15
REFUTED = {
    "1-GDP claimed .8": Refuted(
        GaussianMechanism(1.0),
        GaussianDP(0.8),
        GaussianDP(1.0),
        {WHITE: None, BLACK: 1_400},
    ),
    "2-GDP claimed 1.6": Refuted(
        GaussianMechanism(0.5),
        GaussianDP(1.6),
        GaussianDP(2.0),
        {WHITE: None, BLACK: 600},
    ),
    "1-GDP claimed .9": Refuted(
        GaussianMechanism(1.0), GaussianDP(0.9), GaussianDP(1.0), {WHITE: None}
    ),
    ".5-GDP claimed .4": Refuted(
        GaussianMechanism(2.0), GaussianDP(0.4), GaussianDP(0.5), {WHITE: None}
    ),
    "2-GDP claimed 1.8": Refuted(
        GaussianMechanism(0.5), GaussianDP(1.8), GaussianDP(2.0), {WHITE: None}
    ),
    "(1.5, .01) claimed (1, .01)": Refuted(
        LeakyResponse(1.5, 0.01), CLAIM, ApproxDP(1.5, 0.01), {WHITE: None}
    ),
    "(1, .05) claimed (1, .01)": Refuted(
        LeakyResponse(1.0, 0.05), CLAIM, ApproxDP(1.0, 0.05), {WHITE: None}
    ),
    "(1, .02) claimed (1, .01)": Refuted(
        LeakyResponse(1.0, 0.02), CLAIM, ApproxDP(1.0, 0.02), {WHITE: None}
    ),
}
DECIDED = {
    "2-DP Laplace claimed ½-GDP": Decided(LaplaceMechanism(0.5), GaussianDP(0.5)),
    "sampled Gaussian, q = .1, claimed .01": Decided(
        SampledSteps(1.0, 0.1), AccountedDP(PLDUpper(1.0, 0.01, 1), quoted=QUOTED)
    ),
}
SEQUENTIAL = {
    "1-GDP claimed .1": Refuted(
        GaussianMechanism(1.0), GaussianDP(0.1), GaussianDP(1.0), {}
    ),
    "1-GDP claimed .5": Refuted(
        GaussianMechanism(1.0), GaussianDP(0.5), GaussianDP(1.0), {}
    ),
    "1-GDP claimed .8": REFUTED["1-GDP claimed .8"],
    "1-DP Laplace claimed .1": Refuted(
        LaplaceMechanism(1.0), PureDP(0.1), PureDP(1.0), {}
    ),
    "1-DP Laplace claimed .5": Refuted(
        LaplaceMechanism(1.0), PureDP(0.5), PureDP(1.0), {}
    ),
}
"""Claims for the peer that tests sequentially, too."""
PEER_CALLS = 6_000
PEER_GAMES = 20
MOST_CALLS = 10
"""Length of games, as a multiple of the limit."""
RUNS = 10


def _forecasters(known: str) -> list[Any]:
    return [LikelihoodRatio()] if known == WHITE else [ViewExperts()]


def _bound(name: str, known: str, seed: int) -> Result:
    row, started = BOUNDS[name], time.process_time()
    claim = row.claim()
    game = Game(
        row.mechanism,
        claim,
        BITS,
        _forecasters(known),
        partial(stream, seed, name),
        levels=level_grid(claim),
    )
    parts = {}
    for calls in row.least[known]:
        game.play(calls, alpha=ALPHA)
        parts[str(calls)] = game.wealth.lower_bound(ALPHA) / row.truth()
    return {"parts": parts, "cpu_seconds": time.process_time() - started}


def _refuted(name: str, known: str, seed: int) -> Result:
    row, calls = REFUTED[name], []
    most = math.ceil(MOST_CALLS * _limit(row))
    for k in range(UNIT):
        game = Game(
            row.mechanism,
            row.claim,
            BITS,
            _forecasters(known),
            partial(stream, seed, name, k),
        )
        game.play(most, alpha=ALPHA, stop_when_refuted=True)
        calls.append(game.refuted_at)
    return {"calls": calls}


def _decided(name: str, seed: int) -> Result:
    row = DECIDED[name]
    evidence = play_game(
        row.mechanism,
        row.claim,
        as_adjacency(BITS[0]),
        GameOptions(alpha=ALPHA, budget=AuditBudget.of(row.calls)),
        streams=partial(stream, seed, name),
    )
    return {
        "violated": evidence.verdict is Verdict.VIOLATED,
        "refuted_at": evidence.details.refuted_at,
    }


def _sequential(name: str, seed: int) -> Result:
    """The peer and a black box on the same claim."""
    row = SEQUENTIAL[name]
    game = Game(
        row.mechanism, row.claim, BITS, [ViewExperts()], partial(stream, seed, name)
    )
    game.play(PEER_CALLS, alpha=ALPHA, stop_when_refuted=True)
    rng = stream(seed, name, "kernel test")
    peer = kernel_test.refuted_at(
        row.mechanism, row.claim, BITS[0], calls=PEER_CALLS, alpha=ALPHA, rng=rng
    )
    return {"calls": game.refuted_at, "peer": peer}


def _limit(row: Refuted) -> float:
    """Return ln(1/α) over the growth of the best bet."""
    return math.log(1 / ALPHA) / growth(row.claim, row.truth)[0]


def units(options: Options) -> dict[str, partial[Result]]:
    """One unit for each bound and audit, and for 25 refutations; ``repeats`` are units of every row."""
    fewer = options.repeats or (2 if options.quick else None)
    made: dict[str, partial[Result]] = {}
    for name, row in BOUNDS.items():
        for known in row.least:
            for k in range(fewer or row.games[known]):
                made[f"{name}, {known}/{k}"] = partial(
                    _bound, name, known, options.seed + k
                )
    for name, false in REFUTED.items():
        for known in false.most:
            for k in range(fewer or PASSAGES[known]):
                made[f"{name}, {known}/{k}"] = partial(
                    _refuted, name, known, options.seed + k
                )
    for name in SEQUENTIAL:
        for k in range(fewer or PEER_GAMES):
            made[f"kernel test: {name}/{k}"] = partial(
                _sequential, name, options.seed + k
            )
    for name in DECIDED:
        for k in range(fewer or RUNS):
            made[f"{name}/{k}"] = partial(_decided, name, options.seed + k)
    return made


def view(results: Results) -> View:
    """Compare every row with its bar."""
    groups = grouped(results)
    whole = len(results) >= len(units(Options(0)))
    bounds, refuted, decided = _bounds(groups), _refutations(groups), _decisions(groups)
    bars = [
        _bar("Certified part of a tight level", bounds, whole),
        _bar(
            f"Calls to refute: ≤ {LIMIT:g} times the limit, or the number given",
            refuted,
            whole,
        ),
        _bar("Refuted within the budget in all runs", decided, whole),
    ]
    tables = [
        Table(
            "Certified level over the true one, where the claim is tight",
            [
                "Mechanism and claim",
                "Calls",
                "Median",
                "Wanted",
                "Games",
                "CPU s a game",
            ],
            [line for line, _ in bounds],
            note=f"At α = {ALPHA:g}, medians with the extremes. A white box knows its law (`log_prob`).",
        ),
        Table(
            "Median calls to refute a false claim",
            ["False claim", "Limit", "Calls", "Over the limit", "Wanted", "Games"],
            [line for line, _ in refuted],
            note="The limit is ln(1/α) over the growth of the best bet. Without a lower bound, which costs nothing here.",
        ),
        Table(
            "Calls to refute, beside the sequential kernel test",
            [
                "False claim",
                "auditdp, black box: refuted",
                "Median calls",
                "Kernel test: refuted",
                "Median calls",
            ],
            _beside(groups),
            note=f"{PEER_CALLS:,} calls at most. The kernel test is González et al. (arXiv:2509.07055), from its text.",
        ),
        Table(
            "Claims that are hard to decide",
            ["False claim", "Refuted", "Median calls"],
            [line for line, _ in decided],
        ),
    ]
    return View(bars, tables)


Lines = list[tuple[list[str], bool]]
"""Lines of a table, each with whether it meets its bar."""


def _bounds(groups: Mapping[str, list[Result]]) -> Lines:
    lines: Lines = []
    for name, row in BOUNDS.items():
        for known, wanted in row.least.items():
            runs = groups.get(f"{name}, {known}", [])
            for calls, least in wanted.items() if runs else ():
                parts = [run["parts"][str(calls)] for run in runs]
                seconds = f"{median([run['cpu_seconds'] for run in runs]):.1f}"
                shown = [
                    f"{calls:,}",
                    spread(parts, "{:.3f}".format),
                    f"{least:g}",
                    str(len(runs)),
                    seconds,
                ]
                lines.append(
                    ([f"{name}, {known}", *shown], round(median(parts), 3) >= least)
                )
    return lines


def _refutations(groups: Mapping[str, list[Result]]) -> Lines:
    lines: Lines = []
    for name, row in REFUTED.items():
        for known, most in row.most.items():
            if runs := groups.get(f"{name}, {known}"):
                limit = _limit(row)
                games = [
                    math.inf if count is None else count
                    for run in runs
                    for count in run["calls"]
                ]
                calls = float(np.median(games))
                wanted = LIMIT * limit if most is None else most
                shown = [
                    f"{limit:,.0f}",
                    f"{calls:,.0f}",
                    f"{calls / limit:.2f}",
                    f"{wanted:,.0f}",
                    str(len(games)),
                ]
                lines.append(([f"{name}, {known}", *shown], calls <= wanted))
    return lines


def _decisions(groups: Mapping[str, list[Result]]) -> Lines:
    lines: Lines = []
    for name in DECIDED:
        if runs := groups.get(name):
            violated = sum(run["violated"] for run in runs)
            calls = [run["refuted_at"] for run in runs if run["refuted_at"] is not None]
            shown = number(median(calls)) if calls else "–"
            lines.append(
                ([name, f"{violated} of {len(runs)}", shown], violated == len(runs))
            )
    return lines


def _beside(groups: Mapping[str, list[Result]]) -> list[list[str]]:
    lines = []
    for name in SEQUENTIAL:
        if runs := groups.get(f"kernel test: {name}"):
            line = [name]
            for who in ("calls", "peer"):
                calls = [run[who] for run in runs]
                middle = float(
                    np.median([math.inf if count is None else count for count in calls])
                )
                found = sum(count is not None for count in calls)
                line += [
                    f"{found} of {len(calls)}",
                    f"{middle:,.0f}" if math.isfinite(middle) else "–",
                ]
            lines.append(line)
    return lines


def _bar(text: str, lines: Lines, whole: bool) -> Bar:
    failed = [f"{line[0]} ({line[1]})" for line, met in lines if not met]
    found = f"{len(lines) - len(failed)} of {len(lines)}" + (
        f"; not: {'; '.join(failed)}" if failed else ""
    )
    return Bar(text, not failed if whole else None, found)


PART = Part("curves", "Claims with a curve", units, view)
