"""Ablation of the views, estimators and leaders of the game.

Every row is played by a black box on one pair, and for every batch it is written down what each expert won against the
claim. From that record the calls to refute are computed for the mixture, leaders included, without each view, each
estimator and each start of a leader in turn: the other experts win what they won, so no game is played again. That is exact
for pure claims. Against curves the leaders' regions are made for who leads, and a leader is taken to win what it won by the
learned region.

A cost is the factor of the calls to refute, interpolated within batches; a row's is the median over its games. What is
dropped together is found by backward elimination: whatever costs least is dropped as long as both sets of rows lose less
than 2 % in geometric mean, and no row more than 10 %, compared with everything. Constants are changed one at a time, to
half and to double, and fewer games are played again with the same outputs. `python -m benchmarks.ablation REPORTS` prints
what is recorded as a page.
"""

from __future__ import annotations

import importlib
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp import Pair
from auditdp.betting.forecasters.estimators import ESTIMATOR_NAMES, ESTIMATORS
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.repeated_outputs import Repeating
from auditdp.betting.game import LEADER, Game
from auditdp.betting.wealth import mixture
from auditdp.claims.claim import Claim
from auditdp.evidence.output_support import BitPatterns
from auditdp.numerics.arrays import Floats
from auditdp.numerics.streams import stream
from benchmarks import calls
from benchmarks.ablation_mechanisms import SHAPES
from benchmarks.parts import (
    ALPHA,
    BlackBox,
    Options,
    Part,
    Result,
    Results,
    Table,
    View,
)
from benchmarks.record import Fragments, results_of

GAMES = 5
CALLS = 50_000
"""Length of a game. A claim that is not refuted by then is left out, or counts as twice as
expensive."""
SURE = 1e-6
"""A game goes on until it would refute the claim at this level, so that a mixture without its best part refutes it too."""
LATER = 2.0
MOST_IN_MEAN, MOST_IN_ROW = 1.02, 1.10
CONSTANT_GAMES = 5
CONSTANT_CALLS = 1_000
"""Rows whose median is beyond are not played again for constants."""
CONSTANTS = (
    "forecasters.estimators.NESTED",
    "forecasters.estimators.CERTAIN",
    "forecasters.partitions.FEWEST_IN_TAIL",
    "forecasters.partitions.MAX_ATOMS",
    "forecasters.views.TOGETHER",
    "forecasters.views.BY_INPUTS",
    "forecasters.repeated_outputs.SHARE",
    "forecasters.repeated_outputs.PRIOR",
    "forecasters.experts.FIRST_CUT",
    "game.BATCH_GROWTH",
    "game.LANDING",
    "game.LEADER",
    "wealth.plans.STRETCH",
    "wealth.plans.RENEWED",
    "wealth.plans.UNTRIED",
)
"""Constants that change the game, by module; the others limit work or memory."""

BENCHMARK, OTHER = "benchmark", "other shapes"


@dataclass(frozen=True)
class Row:
    """A false claim that is played on one pair.

    Attributes:
        name: Its name.
        kind: Which set it belongs to.
        mechanism: The mechanism, whose law is hidden.
        claim: The claim.
        pair: The pair.
        bits: Whether bit patterns are looked at.
    """

    name: str
    kind: str
    mechanism: Any
    claim: Claim
    pair: Pair
    bits: bool = False


def rows(seed: int) -> Iterable[Callable[[], Row]]:
    """Yield the makers of the rows; the search for the best pair of a row takes time."""
    for case in calls.cases():
        yield partial(_of_case, case, seed)
    for shape in SHAPES:
        yield partial(Row, shape.name, OTHER, shape, shape.claim, shape.pair)


def _of_case(case: calls.Case, seed: int) -> Row:
    return Row(
        case.name,
        BENCHMARK,
        case.mechanism,
        case.claim,
        calls.best_pair(case, seed),
        case.bits,
    )


@dataclass(frozen=True, eq=False)
class Played:
    """A finished game, with experts of one player grouped by kind of view and estimator.

    Attributes:
        calls: Calls after each batch, shape (batches,).
        parts: Player, kind of view and estimator of each part.
        shares: The share of each player.
        weights: Sum of the prior weights of the experts of each part, as far as shares do not depend on it, shape (parts,).
        own: Log wealth of each part, weighted by these, after each batch, shape (batches, parts).
        standing: What the best of each part has won lately with the log of its weight, before each batch.
        gained: What that one wins as a leader in each batch, in logarithms.
    """

    calls: NDArray[np.intp]
    parts: list[tuple[int, str, str]]
    shares: list[float]
    weights: Floats
    own: Floats
    standing: Floats
    gained: Floats

    def to_refute(self, dropped: frozenset[str]) -> float:
        """Return after how many calls the mixture refutes the claim without some kinds of views, estimators or starts.

        Twice as many as the game had where it does not.
        """
        return crossing(self.calls, self.log_wealth(dropped), math.log(1 / ALPHA))

    def log_wealth(self, dropped: frozenset[str]) -> Floats:
        """Return the log wealth of that mixture after each batch."""
        player = np.array([p for p, _, _ in self.parts])
        kept = np.array(
            [not dropped & {kind, estimator} for _, kind, estimator in self.parts]
        )
        scale = np.zeros(len(kept))  # log of the factor from a weight to a share
        for k, share in enumerate(self.shares):
            if weight := self.weights[kept & (player == k)].sum():
                scale[player == k] = math.log(share / weight)
        if not kept.any():
            return np.full(len(self.calls), -np.inf)
        leading = np.argmax(np.where(kept, self.standing + scale, -np.inf), axis=1)
        gained = np.take_along_axis(self.gained, leading[:, None], axis=1)[:, 0]
        gained[0] = 0.0  # nobody leads in the first batch
        before = np.concatenate([[0], self.calls[:-1]])
        starts = {
            start: part
            for start, part in mixture.STARTS.items()
            if start_name(start) not in dropped
        }
        led = [
            np.cumsum(np.where(before >= start, gained, 0.0))
            + math.log(LEADER * part / sum(starts.values()))
            for start, part in starts.items()
        ]
        present = {p for p, keeps in zip(player, kept, strict=True) if keeps}
        total = sum(self.shares[p] for p in present) + LEADER
        wealth = np.logaddexp.reduce(
            np.concatenate(
                [(self.own + scale)[:, kept], np.stack(led, axis=1)], axis=1
            ),
            axis=1,
        )
        return np.asarray(wealth - math.log(total))


def crossing(after: NDArray[np.intp], wealth: Floats, needed: float) -> float:
    """Return the calls at which log wealth reaches a threshold, linear within batches."""
    reached = np.flatnonzero(wealth >= needed)
    if not len(reached):
        return LATER * float(after[-1])
    k = int(reached[0])
    start, low = (float(after[k - 1]), float(wealth[k - 1])) if k else (0.0, 0.0)
    return start + (float(after[k]) - start) * (needed - low) / (float(wealth[k]) - low)


def start_name(start: int) -> str:
    """Return the name of a leader's start."""
    return f"leader from call {start:,}"


def kind_of(view: str) -> str:
    """Return the kind of a view: views of single numbers and their differences are one each."""
    if view.endswith("seen before"):
        return "seen before"
    if view.endswith("beyond the steps of its noise"):
        return "beyond the steps of its noise"
    if view.startswith("telling coordinate"):
        return "telling coordinates"
    if view == "value" or re.fullmatch(r".*\[\d+(, \d+)*\]", view):
        return "differences of neighbours" if " - " in view else "single numbers"
    return view


def play(row: Row, seed: int, number: int) -> Played:
    """Play one game of a row, and return what each part won in each batch."""
    forecasters: list[Any] = (
        [BitPatterns()] if row.bits else [ViewExperts(), Repeating()]
    )
    game = Game(
        BlackBox(row.mechanism),
        row.claim,
        [row.pair],
        forecasters,
        partial(stream, seed, row.name, "ablation", number),
    )
    sizes: list[int] = []
    factors: list[Floats] = []
    bet = game.wealth.bet

    def noted(
        forecasts: Any, size: int, leaders: Any = None, *, pair: int = 0
    ) -> Floats:
        found = bet(forecasts, size, leaders, pair=pair)
        sizes.append(size)
        factors.append(found[:, 0])
        return found

    game.wealth.bet = noted  # type: ignore[assignment,method-assign]  # what it returns is all that leaders are chosen from
    game.play(CALLS, alpha=SURE, stop_when_refuted=True)
    return _parts(game, np.array(sizes), np.stack(factors))


def _parts(game: Game, sizes: NDArray[np.intp], factors: Floats) -> Played:
    """Join experts to parts.

    Args:
        game: The game.
        sizes: Calls of each batch.
        factors: Log factors, shape (batches, experts, ways).
    """
    after = np.cumsum(sizes)
    recent, own = np.zeros(factors.shape), np.cumsum(factors, axis=0)
    for k in range(1, len(sizes)):
        recent[k] = (
            factors[k - 1] + recent[k - 1] * (1 - sizes[k - 1] / after[k - 1]) ** 2
        )
    shares = [np.asarray(player.shares) for player in game.tables[0].players]
    log_shares = np.log(np.concatenate(shares))
    by_expert = (
        np.logaddexp.reduce(own + np.log(game.wealth.way_shares), axis=2) + log_shares
    )
    standing = recent.max(axis=2) + log_shares
    player = np.repeat(np.arange(len(shares)), [len(own) for own in shares])
    named = [
        _named(p, name) for p, name in zip(player.tolist(), game.names, strict=True)
    ]
    parts = list(dict.fromkeys(named))
    place = np.array([parts.index(part) for part in named])
    weights = np.bincount(place, weights=np.exp(log_shares)).astype(np.float64)
    joined = []
    for k in range(len(parts)):
        members = np.flatnonzero(place == k)
        best = members[np.argmax(standing[:, members], axis=1)][:, None]
        joined.append(
            (
                np.logaddexp.reduce(by_expert[:, members], axis=1),
                np.take_along_axis(standing, best, axis=1)[:, 0],
                np.take_along_axis(factors[:, :, 0], best, axis=1)[:, 0],
            )
        )
    columns = [np.stack(column, axis=1) for column in zip(*joined, strict=True)]
    return Played(after, parts, [float(own.sum()) for own in shares], weights, *columns)


def _named(player: int, name: str) -> tuple[int, str, str]:
    view, _, estimator = name.rpartition(" in ")
    found = (view, estimator) if estimator in ESTIMATOR_NAMES else (name, "")
    return player, kind_of(found[0].removeprefix("bits: ")), found[1]


class Costs:
    """Costs of dropping things, from games.

    Args:
        played: The games of each row, by (kind, name).
    """

    def __init__(self, played: Mapping[tuple[str, str], Sequence[Played]]) -> None:
        self._played = played
        self._whole = self._calls(frozenset())
        self.rows = {
            row: median for row, median in self._whole.items() if median < CALLS
        }
        """Median calls to refute of the rows that are refuted."""

    def _calls(self, dropped: frozenset[str]) -> dict[tuple[str, str], float]:
        return {
            row: float(np.median([game.to_refute(dropped) for game in games]))
            for row, games in self._played.items()
        }

    def of(self, dropped: Iterable[str]) -> dict[tuple[str, str], float]:
        """Return by which factor every row takes more calls when some things are dropped."""
        found = self._calls(frozenset(dropped))
        return {row: found[row] / whole for row, whole in self.rows.items()}


def summary(costs: Mapping[tuple[str, str], float]) -> Result:
    """Return geometric means over both sets of rows, and the row that loses most."""
    worst = max(costs, key=lambda row: costs[row])

    def mean(kind: str) -> float:
        return math.exp(
            float(
                np.mean(
                    [math.log(cost) for (own, _), cost in costs.items() if own == kind]
                    or [0.0]
                )
            )
        )

    return {
        BENCHMARK: mean(BENCHMARK),
        OTHER: mean(OTHER),
        "worst": costs[worst],
        "row": worst[1],
    }


def may_go(found: Result) -> bool:
    """Return True if a loss is acceptable."""
    return max(found[BENCHMARK], found[OTHER]) < MOST_IN_MEAN and bool(
        found["worst"] < MOST_IN_ROW
    )


def eliminate(costs: Costs, items: Iterable[str]) -> list[tuple[str, Result]]:
    """Drop the cheapest part again and again, while the total loss is small."""
    gone: list[tuple[str, Result]] = []
    left = set(items)
    while left:
        found = {
            item: summary(costs.of([*(name for name, _ in gone), item]))
            for item in sorted(left)
        }
        able = {item: each for item, each in found.items() if may_go(each)}
        if not able:
            break
        item = min(able, key=lambda item: able[item][BENCHMARK] * able[item][OTHER])
        gone.append((item, able[item]))
        left.discard(item)
    return gone


def ablate(seed: int, games: int) -> Result:
    """Play all rows and return what dropping each thing costs, and what may be dropped together."""
    played: dict[tuple[str, str], list[Played]] = {}
    for make in rows(seed):
        row = make()
        found = [play(row, seed, 0)]
        if found[0].to_refute(frozenset()) < CALLS:
            found += [play(row, seed, k) for k in range(1, games)]
        played[row.kind, row.name] = found
    costs = Costs(played)
    kinds = {
        kind for found in played.values() for game in found for _, kind, _ in game.parts
    }
    starts = [start_name(start) for start in mixture.STARTS if 0 < start < CALLS]
    items = [*sorted(kinds), *(estimator.name for estimator in ESTIMATORS), *starts]
    return {
        "rows": [
            {"kind": kind, "name": name, "calls": median}
            for (kind, name), median in costs.rows.items()
        ],
        "left_out": [name for kind, name in played if (kind, name) not in costs.rows],
        "alone": {item: summary(costs.of([item])) for item in items},
        "together": [[item, found] for item, found in eliminate(costs, items)],
    }


def _refute(row: Row, seed: int, number: int) -> float:
    forecasters: list[Any] = (
        [BitPatterns()] if row.bits else [ViewExperts(), Repeating()]
    )
    game = Game(
        BlackBox(row.mechanism),
        row.claim,
        [row.pair],
        forecasters,
        partial(stream, seed, row.name, "constant", number),
    )
    game.play(2 * CONSTANT_CALLS, alpha=ALPHA, stop_when_refuted=True)
    after, wealth = (np.array(each) for each in zip(*game.path[1:], strict=True))
    return crossing(after, wealth, math.log(1 / ALPHA))


@cache
def _cheap(seed: int) -> list[Row]:
    return [
        row
        for row in (make() for make in rows(seed))
        if _refute(row, seed, 0) < CONSTANT_CALLS
    ]


def _logs(seed: int, games: int) -> dict[tuple[str, str], float]:
    """Return the mean logarithm of the calls to refute of every cheap row."""
    return {
        (row.kind, row.name): float(
            np.mean([math.log(_refute(row, seed, k)) for k in range(games)])
        )
        for row in _cheap(seed)
    }


_logs_as_they_are = cache(_logs)


def constant(name: str, seed: int, games: int) -> Result:
    """Return by which factor calls to refute change when a constant is halved and doubled, over rows that are cheap."""
    whole = _logs_as_they_are(seed, games)
    module_name, _, attribute = name.rpartition(".")
    module = importlib.import_module(f"auditdp.betting.{module_name}")
    value = getattr(module, attribute)
    found: Result = {"value": value}
    for label, factor in (("half", 0.5), ("double", 2)):
        setattr(module, attribute, type(value)(value * factor))
        try:
            found[label] = summary(
                {
                    row: math.exp(log - whole[row])
                    for row, log in _logs(seed, games).items()
                }
            )
        finally:
            setattr(module, attribute, value)
    return found


def units(options: Options) -> dict[str, partial[Result]]:
    """All games in one unit, since what may go together depends on all; and one for each constant."""
    games = options.repeats or (1 if options.quick else GAMES)
    few = 1 if options.quick else CONSTANT_GAMES
    found: dict[str, partial[Result]] = {
        "experts and leaders": partial(ablate, options.seed, games)
    }
    return found | {
        name: partial(constant, name, options.seed, few) for name in CONSTANTS
    }


def _percent(factor: float) -> str:
    return f"{100 * (factor - 1):+.1f} %"


def _cells(found: Result) -> list[str]:
    return [
        _percent(found[BENCHMARK]),
        _percent(found[OTHER]),
        f"{_percent(found['worst'])} ({found['row']})",
    ]


def view(results: Results) -> View:
    """Tabulate what each thing costs."""
    columns = ["Benchmark's rows", "Other shapes", "Worst row"]
    tables = []
    if found := results.get("experts and leaders"):
        tables += [
            Table(
                "Calls to refute without one thing",
                ["Without", *columns],
                [[item, *_cells(cost)] for item, cost in found["alone"].items()],
                note=f"{len(found['rows'])} rows; left out, because {CALLS:,} calls do not refute them: "
                f"{', '.join(found['left_out']) or 'none'}.",
            ),
            Table(
                "Dropped one after the other, as long as little is lost",
                ["Also without", *columns],
                [[item, *_cells(cost)] for item, cost in found["together"]],
            ),
        ]
    constants = {name: result for name, result in results.items() if "value" in result}
    if constants:
        tables.append(
            Table(
                "Calls to refute with one constant at half or double",
                [
                    "Constant",
                    "Value",
                    *(f"Half: {c}" for c in columns),
                    *(f"Double: {c}" for c in columns),
                ],
                [
                    [
                        name,
                        f"{result['value']:g}",
                        *_cells(result["half"]),
                        *_cells(result["double"]),
                    ]
                    for name, result in constants.items()
                ],
            )
        )
    return View([], tables)


PART = Part(
    "ablation", "What each view, estimator and leader gains its place by", units, view
)


def markdown(results: Results, command: str) -> str:
    """Return the tables as a page of the documentation.

    Args:
        results: The results of the units.
        command: What made them.
    """
    lines = [
        "# What each part of the game gains its place by",
        "",
        __doc__.partition("\n\n")[2].strip(),
        "",
    ]
    lines += [f"Made by `{command}`.", ""]
    for table in view(results).tables:
        rows = [
            table.columns,
            ["---", *["---:"] * (len(table.columns) - 1)],
            *table.rows,
        ]
        lines += [
            f"## {table.title}",
            "",
            *("| " + " | ".join(row) + " |" for row in rows),
            "",
        ]
        lines += [table.note, ""] if table.note else []
    return "\n".join(lines)


if __name__ == "__main__":
    recorded = Fragments(Path(sys.argv[1])).read(PART)
    print(markdown(results_of(recorded), recorded["stamps"][-1]["command"]))
