"""The distance of first findings from the limit ln(1/α)/growth of sequential tests.

Ten false claims of ten shapes, each played on one pair that is given, until it is refuted: with the law of the mechanism
(white box), with nothing but its outputs (black box), and with what a trace of its code replays, where that can be read.
The twin of each, which just meets its claim or another one, is played as a black box as well: it is refuted in at most α of
the games. The sequential kernel test (`kernel_test.py`) is the peer that can be played where outputs are single numbers and
few are enough; those of a fixed sample size (`hindsight.py`) have the best one in hindsight. Games without a verdict at ten
times the limit count as more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom, binomtest, norm

from auditdp import ApproxDP, GaussianDP, Pair, PureDP
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import LikelihoodRatio, default_forecasters
from auditdp.betting.forecasters.repeated_outputs import Repeating
from auditdp.betting.forecasters.traced import ReplayedRatio
from auditdp.betting.wealth.forecasts import Law
from auditdp.betting.wealth.nearest_region import nearest_regions
from auditdp.claims.claim import Claim
from auditdp.claims.dominating import DominatingPair, lines
from auditdp.mechanism.protocol import Array
from auditdp.numerics.streams import Streams, stream
from auditdp.report.numbers import number
from auditdp.testing import GaussianMechanism, LaplaceMechanism, Response
from auditdp.tracing import Trace
from benchmarks import calls, hindsight, kernel_test
from benchmarks.parts import (
    ALPHA,
    Bar,
    BlackBox,
    Options,
    Part,
    Result,
    Results,
    Rng,
    Table,
    View,
    grouped,
)
from benchmarks.tight_nulls import Product
from mechanisms.classic import ExponentialMechanism, NoisyHistogram1

BITS = Pair(1, 0)
GAMES, TWINS, CHUNK = 21, 1_000, 25
"""Games of every way, games of every twin, and games of a twin in one unit."""
BAR, CUT, LATE = 2.0, 10.0, 4.0
"""Times the limit: the median of a black box, where a game is cut off, and what most games of ``PRODUCT`` take."""
FEW = 1_000
"""Calls of a limit up to which the kernel test is played: its time grows with their square."""
DRAWS = 1 << 17
CONFIDENCE = 0.999
PRODUCT, MOST = "sign of a product", 19
"""A row, and how many of its 21 games should end within ``LATE`` times the limit."""
WHITE, BLACK, TRACED, KERNEL = (
    "white box",
    "black box",
    "black box with its trace",
    "kernel test",
)
WAYS = WHITE, BLACK, TRACED, KERNEL, hindsight.SPLIT, hindsight.BEST
TWIN = "twin"


@dataclass(frozen=True)
class SampledSum:
    """The last sum of ``steps`` noisy gradients, of which each has the example in it with a probability of ``rate``."""

    steps: int = 30
    rate: float = 0.1
    sigma: float = 1.0

    @property
    def scale(self) -> float:
        """The standard deviation of the sum's noise."""
        return self.sigma * math.sqrt(self.steps)

    def __call__(self, data: int, size: int, *, rng: Rng) -> Array:
        """Return ``size`` sums."""
        return data * rng.binomial(
            self.steps, self.rate, size
        ) + self.scale * rng.standard_normal(size)

    def log_prob(self, outputs: Array, data: int) -> Array:
        """Return the log density of each sum."""
        counts = np.arange(self.steps + 1)
        weights = binom.logpmf(counts, self.steps, self.rate if data else 0.0)
        return np.asarray(
            np.logaddexp.reduce(
                weights + norm.logpdf(outputs[:, None], counts, self.scale), axis=1
            )
        )

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest ε at a δ, by its densities on a grid."""
        grid = np.linspace(-10 * self.scale, self.steps + 10 * self.scale, 10_001)
        p, q = (
            np.exp(self.log_prob(grid, data)) * (grid[1] - grid[0]) for data in (1, 0)
        )

        def excess(epsilon: float) -> float:
            beyond = (
                np.maximum(a - math.exp(epsilon) * b, 0.0).sum()
                for a, b in ((p, q), (q, p))
            )
            return float(max(beyond)) - delta

        return float(brentq(excess, 0.0, 20.0))


@dataclass(frozen=True)
class Mixed:
    """Five normal numbers, of which two have signs that agree under input 1 and differ under input 0."""

    shift: float = 0.84

    def __call__(self, data: int, size: int, *, rng: Rng) -> Array:
        """Return ``size`` rows."""
        rows, sign = rng.normal(size=(size, 5)), rng.choice([-1, 1], size)
        rows[:, 0] += self.shift * sign
        rows[:, 3] += self.shift * (sign if data else -sign)
        return rows

    def log_prob(self, outputs: Array, data: int) -> Array:
        """Return the log probability of each row, up to a common term."""
        return np.asarray(
            np.log(
                np.cosh(
                    self.shift * (outputs[:, 0] + (1 if data else -1) * outputs[:, 3])
                )
            )
        )


@dataclass(frozen=True)
class Look:
    """A false claim on one pair, and a twin of which its own claim is true.

    Attributes:
        mechanism: The mechanism, which states its law.
        claim: The claim.
        pair: The pair.
        twin: A mechanism of the same kind.
        met: What the twin meets exactly, or nearly so.
    """

    mechanism: Any
    claim: Claim
    pair: Pair
    twin: Any
    met: Claim


def _of_case(name: str, twin: Any = None) -> Look:
    """Return a false claim of the classic mechanisms, with the mechanism against its true level as the twin."""
    case = next(case for case in calls.cases() if case.name == name)
    met = case.claim if twin is not None else PureDP(case.true_level)
    return Look(
        case.mechanism,
        case.claim,
        calls.best_pair(case, 1),
        twin or case.mechanism,
        met,
    )


def _gaussian() -> Look:
    claim = ApproxDP(1.0, 0.01)
    sigma = 1 / float(
        brentq(
            lambda mu: GaussianDP(mu).delta_at(claim.epsilon) - claim.delta, 0.01, 10.0
        )
    )
    return Look(
        GaussianMechanism(sigma / 1.5), claim, BITS, GaussianMechanism(sigma), claim
    )


def _sampled() -> Look:
    tight = ApproxDP(SampledSum().epsilon_at(0.01), 0.01)
    return Look(
        SampledSum(), ApproxDP(tight.epsilon / 1.5, 0.01), BITS, SampledSum(), tight
    )


def _histogram() -> Look:
    pair = Pair(np.eye(20)[7], np.zeros(20))
    return Look(
        NoisyHistogram1(1.5), PureDP(1.0), pair, NoisyHistogram1(1.0), PureDP(1.0)
    )


LOOKS: dict[str, Callable[[], Look]] = {
    "Laplace": lambda: Look(
        LaplaceMechanism(1 / 1.5), PureDP(1.0), BITS, LaplaceMechanism(1.0), PureDP(1.0)
    ),
    "Gaussian, σ ÷ 1.5": _gaussian,
    "randomised response": lambda: Look(
        Response(1.5), PureDP(1.0), BITS, Response(1.0), PureDP(1.0)
    ),
    "noisy max by value": partial(_of_case, "NoisyMax3"),
    "SVT6": partial(_of_case, "SVT6"),
    "RAPPOR, half the hashes": partial(_of_case, "OneTimeRAPPOR, half the hashes"),
    "exponential mechanism, half Δ": partial(
        _of_case,
        "ExponentialMechanism, half the sensitivity",
        ExponentialMechanism(0.1, 1.0),
    ),
    "histogram in 20 dimensions": _histogram,
    "DP-SGD score": _sampled,
    PRODUCT: lambda: Look(Mixed(), PureDP(1.0), BITS, Product(1.0), PureDP(1.0)),
}
look = cache(lambda name: LOOKS[name]())


def growth(found: Look) -> float:
    """Return the growth of the best bet in nats a call, over draws of either input."""
    odds = _odds(found)
    if found.claim.delta == 0:
        return float(
            calls.posterior_growth(np.abs(odds), found.claim.tangents()[0][0]).mean()
        )
    zeros, ones = Law(odds, np.ones(len(odds))).cells(200)
    pair = DominatingPair.of(found.claim.statements())
    (region,) = nearest_regions(
        zeros[None], ones[None], lines(found.claim.statements())[None]
    )
    on_zeros, on_ones = region.choose(np.log(ones) - np.log(zeros))
    return float(zeros @ on_zeros + ones @ on_ones) / 2 - region.price(pair)


def _odds(found: Look) -> Array:
    return np.concatenate(_odds_of_either(found, DRAWS, np.random.default_rng(0)))


def _odds_of_either(found: Look, size: int, rng: Rng) -> tuple[Array, Array]:
    ratio = LikelihoodRatio().bind(found.mechanism, found.pair)
    first, second = (
        np.asarray(ratio.log_odds(found.mechanism(x, size, rng=rng)))
        for x in (found.pair.data, found.pair.neighbour)
    )
    return first, second


@cache
def limit(name: str) -> float:
    """Return ln(1/α) over the growth of the best bet: calls."""
    return math.log(1 / ALPHA) / growth(look(name))


def ways(name: str) -> dict[str, Callable[[Streams], int | None]]:
    """Return the calls to refute one game in each way; None without a refutation."""
    found, most = look(name), math.ceil(CUT * limit(name))
    black, hidden = [ViewExperts(), Repeating()], BlackBox(found.mechanism)
    traced = ReplayedRatio(Trace(hidden), found.claim, seed=1)

    def refute(
        mechanism: Any, forecasters: Sequence[Any]
    ) -> Callable[[Streams], int | None]:
        return lambda streams: calls.calls_of_game(
            mechanism, found.claim, [found.pair], forecasters, streams, most
        )

    played = {
        WHITE: refute(found.mechanism, default_forecasters(found.mechanism)),
        BLACK: refute(hidden, black),
        TWIN: lambda streams: calls.calls_of_game(
            BlackBox(found.twin),
            found.met,
            [found.pair],
            black,
            streams,
            math.ceil(limit(name)),
        ),
    }
    if traced.reads_one_of([found.pair], calls.looked_at(hidden, found.pair)):
        played[TRACED] = refute(hidden, [*black, traced])
    if limit(name) <= FEW and _single(found):
        played[KERNEL] = lambda streams: kernel_test.refuted_at(
            found.mechanism,
            found.claim,
            found.pair,
            calls=most,
            alpha=ALPHA,
            rng=streams("outputs", 0),
        )
    return played


def measure(name: str, way: str, seed: int, games: range) -> Result:
    """Play some games of a row in one way.

    Returns:
        The claim, the limit, the way, and the calls of each game, None where it was cut off; no calls where a row has no
        such way.
    """
    if way in (hindsight.SPLIT, hindsight.BEST):
        rngs = [stream(seed, name, way, k) for k in games]
        return {
            "claim": str(look(name).claim),
            "limit": limit(name),
            "way": way,
            "calls": _in_hindsight(name, way, rngs),
        }
    play = ways(name).get(way)
    # All ways but the twin's see the same coins and outputs.
    calls_of = (
        []
        if play is None
        else [play(partial(stream, seed, name, way == TWIN, k)) for k in games]
    )
    return {
        "claim": str(look(name).claim),
        "limit": limit(name),
        "way": way,
        "calls": calls_of,
    }


def _in_hindsight(name: str, way: str, rngs: Sequence[Rng]) -> list[int | None]:
    """Return the calls of a peer with a fixed sample size; None if it cannot play."""
    found = look(name)
    epsilon, delta = found.claim.statements()[0]
    if way == hindsight.BEST:
        known = _odds_of_either(found, DRAWS, np.random.default_rng(0))
        bound = partial(hindsight.best_event, delta=float(delta), known=known)
        return hindsight.calls_of(
            bound, partial(_odds_of_either, found), float(epsilon), limit(name), rngs
        )
    if not _single(found):
        return []

    def scores(size: int, rng: Rng) -> tuple[Array, Array]:
        first, second = (
            np.asarray(found.mechanism(x, size, rng=rng), float)
            for x in (found.pair.data, found.pair.neighbour)
        )
        return first, second

    return hindsight.calls_of(
        partial(hindsight.split, delta=float(delta)),
        scores,
        float(epsilon),
        limit(name),
        rngs,
    )


def _single(found: Look) -> bool:
    """Return True if outputs are single numbers."""
    return (
        np.ndim(found.mechanism(found.pair.data, 1, rng=np.random.default_rng(0))) == 1
    )


def units(options: Options) -> dict[str, partial[Result]]:
    """Return one unit for each row and way, and one for several games of a twin."""
    games = options.repeats or (3 if options.quick else GAMES)
    twins = options.repeats or (CHUNK if options.quick else TWINS)
    made = {}
    for name in LOOKS:
        for way in WAYS:
            made[f"{name}/{way}"] = partial(
                measure, name, way, options.seed, range(games)
            )
        for first in range(0, twins, CHUNK):
            chunk = range(first, min(first + CHUNK, twins))
            made[f"{name}/{TWIN} {first}"] = partial(
                measure, name, TWIN, options.seed, chunk
            )
    return made


def view(results: Results) -> View:
    """Compare every way with the limit, and the twins with α."""
    rows = {
        name: {way: _factors(units, way) for way in WAYS}
        for name, units in grouped(results).items()
    }
    black = {
        name: float(np.median(found))
        for name, ways in rows.items()
        if len(found := ways[BLACK]) >= GAMES
    }
    slow = [
        f"{name} ({number(middle, 3)})"
        for name, middle in black.items()
        if middle > BAR
    ]
    bars = [
        Bar(
            f"Black box, the pair given: median ≤ {BAR:g} times the limit",
            None if len(black) < len(LOOKS) else not slow,
            f"{len(black) - len(slow)} of {len(black)} rows"
            + (f"; not: {'; '.join(slow)}" if slow else ""),
        )
    ]
    if len(product := rows.get(PRODUCT, {}).get(BLACK, [])) >= GAMES:
        late = sum(factor <= LATE for factor in product)
        text = f"{PRODUCT.capitalize()}: ≤ {LATE:g} times the limit in {MOST} of {GAMES} games"
        bars.append(
            Bar(text, late * GAMES >= MOST * len(product), f"{late} of {len(product)}")
        )
    games, alarms = _alarms(list(results.values()))
    if games:
        upper = float(
            binomtest(alarms, games, alternative="less").proportion_ci(CONFIDENCE).high
        )
        text = f"Twins of all rows: refuted in at most {ALPHA:.0%} of the games, at confidence {CONFIDENCE:g}"
        bars.append(
            Bar(
                text,
                upper <= ALPHA,
                f"{alarms} of {games:,}; at most {100 * upper:.2f} %",
            )
        )
    table = Table(
        "Calls to refute over the limit: the median, and what nine games in ten take",
        [
            "False claim",
            "Claim",
            "Limit",
            *(way.capitalize() for way in WAYS),
            "Twin refuted",
        ],
        [
            [
                name,
                found["claim"],
                number(found["limit"], 3),
                *map(_shown, rows[name].values()),
                _twin(units),
            ]
            for name, units in grouped(results).items()
            for found in units[:1]
        ],
        note=f"{GAMES} games of each way, of the same outputs. A twin is played as long as the limit.",
    )
    return View(bars, [table] if table.rows else [])


def _factors(units: Sequence[Result], way: str) -> list[float]:
    """Return the calls of all games of a way over the limit."""
    found = [
        (calls, unit["limit"])
        for unit in units
        if unit["way"] == way
        for calls in unit["calls"]
    ]
    return [math.inf if calls is None else calls / limit for calls, limit in found]


def _shown(factors: Sequence[float]) -> str:
    if not factors:
        return "–"
    cut = [
        f"> {CUT:g}" if math.isinf(q) else f"{q:.2f}"
        for q in np.quantile(factors, (0.5, 0.9), method="higher")
    ]
    return ", ".join(cut)


def _alarms(units: Sequence[Result]) -> tuple[int, int]:
    """Return the numbers of games of twins, and of refutations."""
    ends = [calls for unit in units if unit["way"] == TWIN for calls in unit["calls"]]
    return len(ends), sum(calls is not None for calls in ends)


def _twin(units: Sequence[Result]) -> str:
    games, alarms = _alarms(units)
    return f"{alarms} of {games:,}" if games else "–"


PART = Part("limit", "First looks beside the limit", units, view)
