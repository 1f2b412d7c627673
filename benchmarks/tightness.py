"""The certified lower bound beside that of an oracle, in twelve rows of the field.

Every row is played as a black box, with the same settings: the claim is the field's nominal ε₀ = .1 whatever the truth,
the pairs are the patterns, in no order of merit, and the forecasters are those that look only at outputs.
"""

from __future__ import annotations

import time
from functools import partial

from auditdp import PureDP
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.game import Game
from auditdp.betting.wealth.levels import level_grid
from auditdp.numerics.streams import stream
from auditdp.report.numbers import number
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
    grouped,
    median,
    spread,
)
from benchmarks.rows import EPSILON, ROWS, Row

MOST_CALLS = 100_000_000
CPU_SECONDS = 55.0
ALLOWED_SECONDS = 60.0
SLICE = 1 << 18
"""Calls between two looks at the clock."""
SEEDS = 3
BAR = 0.95
PEERS = ("DP-Sniper", "StatDP", "DP-Auditorium")


def play(
    name: str, seed: int, *, calls: int = MOST_CALLS, cpu_seconds: float = CPU_SECONDS
) -> Result:
    """Play one row up to a number of calls or of CPU seconds.

    Args:
        name: The row.
        seed: Root of the randomness.
        calls: Calls of the mechanism, over all pairs.
        cpu_seconds: User and system time, the mechanism's included.

    Returns:
        The bound, the oracle's, and what was spent.
    """
    row = _row(name)
    mechanism, claim, started = (
        BlackBox(row.mechanism),
        PureDP(EPSILON),
        time.process_time(),
    )
    game = Game(
        mechanism,
        claim,
        row.pairs,
        [ViewExperts()],
        lambda purpose, batch: stream(seed, name, purpose, batch),
        levels=level_grid(claim),
    )
    while game.wealth.calls < calls and time.process_time() - started < cpu_seconds:
        game.play(min(game.wealth.calls + SLICE, calls), alpha=ALPHA)
    spent = time.process_time() - started
    bound, oracle = game.wealth.lower_bound(ALPHA), row.best_event.bound
    return {
        "bound": bound,
        "oracle": oracle,
        "ratio": bound / oracle,
        "calls": game.wealth.calls,
        "cpu_seconds": spent,
        "mechanism_seconds": mechanism.cpu_seconds,
        "refuted_at": game.refuted_at,
        "best_forecaster": game.best_forecaster,
        "pair": game.best.pair.name,
        "seed": seed,
    }


def units(options: Options) -> dict[str, partial[Result]]:
    """One game for each row and seed; ``repeats`` is the number of seeds."""
    seeds = options.repeats or (1 if options.quick else SEEDS)
    return {
        f"{row.name}/{k}": partial(play, row.name, options.seed + k)
        for k in range(seeds)
        for row in ROWS
    }


def view(results: Results) -> View:
    """Compare every row with the oracle and with the peers' published figures."""
    groups = grouped(results)
    shown = [(row, groups[row.name]) for row in ROWS if row.name in groups]
    passed = [row.name for row, runs in shown if _passes(runs)]
    failed = [row.name for row, _ in shown if row.name not in passed]
    columns = [
        "Mechanism",
        "True ε",
        "Oracle",
        "auditdp ε_L",
        "Ratio",
        "Calls",
        "CPU s",
        "in mechanism",
        "Best view",
    ]
    table = Table(
        "Certified lower bound on ε over the oracle's",
        [*columns, *PEERS],
        [_line(row, runs) for row, runs in shown],
        note=(
            f"Medians over seeds, with the extremes where they differ. Each run stops at {MOST_CALLS:,} calls or "
            f"{CPU_SECONDS:g} CPU seconds. Peers: ratio and CPU seconds as published; a dash was not run."
        ),
    )
    bar = Bar(
        f"Tightness ≥ {BAR:g} on every row, at ≤ {MOST_CALLS:,} calls and ≤ {ALLOWED_SECONDS:g} CPU seconds",
        None if len(shown) < len(ROWS) else not failed,
        f"{len(passed)} of {len(ROWS)} rows"
        + (f"; not: {', '.join(failed)}" if failed else ""),
    )
    bars = {name: [_ratio(row, name) for row, _ in shown] for name in PEERS}
    ours = [median([run["ratio"] for run in runs]) for _, runs in shown]
    plot = Plot(
        lambda: figures.ratios(
            [row.name for row, _ in shown], {"auditdp": ours} | bars, BAR
        ),
        "Lower bound as a share of the oracle's, which knows the best event. A missing mark was not run; a mark at 0 found "
        "nothing.",
    )
    levels = Plot(
        lambda: figures.bounds(
            [row.name for row, _ in shown],
            {
                "auditdp": [
                    median([run["bound"] for run in runs]) for _, runs in shown
                ],
                **{name: [_bound(row, name) for row, _ in shown] for name in PEERS},
            },
            [row.best_event.bound for row, _ in shown],
        ),
        "The same bounds in nats, logarithmic; the bar is the oracle's.",
    )
    return View([bar], [table], [plot, levels] if shown else [])


def _row(name: str) -> Row:
    return next(row for row in ROWS if row.name == name)


def _passes(runs: list[Result]) -> bool:
    return (
        median([run["ratio"] for run in runs]) >= BAR
        and max(run["cpu_seconds"] for run in runs) <= ALLOWED_SECONDS
    )


def _ratio(row: Row, name: str) -> float | None:
    return None if name not in row.peers else (row.peers[name].ratio or 0.0)


def _bound(row: Row, name: str) -> float | None:
    return row.peers[name].bound if name in row.peers else None


def _line(row: Row, runs: list[Result]) -> list[str]:
    return [
        row.name,
        number(row.true_epsilon),
        number(row.best_event.bound),
        number(median([run["bound"] for run in runs])),
        spread([run["ratio"] for run in runs], lambda value: f"{value:.3f}"),
        f"{median([run['calls'] for run in runs]):.2g}",
        f"{median([run['cpu_seconds'] for run in runs]):.0f}",
        f"{median([run['mechanism_seconds'] for run in runs]):.0f}",
        runs[0]["best_forecaster"],
        *(
            "–"
            if name not in row.peers
            else f"{row.peers[name].ratio or 0:.2f}, {row.peers[name].cpu_seconds:.0f} s"
            for name in PEERS
        ),
    ]


PART = Part("tightness", "Tightness", units, view)
