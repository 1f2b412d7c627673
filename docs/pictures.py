"""The pictures of the pages on statistics, drawn from the code that audits run, anew whenever the site is built."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from scipy.stats import laplace

from auditdp import ApproxDP, GaussianDP, Pair, PureDP
from auditdp.betting.forecasters.forecaster import default_forecasters
from auditdp.betting.game import Game
from auditdp.betting.power import detectable_level
from auditdp.betting.wealth.forecasts import Law
from auditdp.betting.wealth.levels import level_grid
from auditdp.betting.wealth.nearest_region import nearest_regions
from auditdp.claims.dominating import DominatingPair, lines
from auditdp.numerics.streams import stream
from auditdp.report.guesses import allowed
from auditdp.report.html.plots import COLOURS
from auditdp.testing import LaplaceMechanism

ALPHA = 0.05
SEED = 20240229
CALLS = 2_000
GAMES_SHOWN = 3
GAMES = 4_000
"""Number of games of a true claim in the picture of Ville's inequality."""
CALLS_OF_EACH = 400
STYLE = {
    "font.family": "sans-serif",
    "font.size": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "auditdp",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": COLOURS["soft"],
    "axes.labelcolor": COLOURS["ink"],
    "xtick.color": COLOURS["soft"],
    "ytick.color": COLOURS["soft"],
    "legend.frameon": False,
}
FALSE, TRUE, LIMIT, GUIDE = (
    COLOURS[role] for role in ("violated", "not-refuted", "ink", "skipped")
)


def all_pictures() -> dict[str, str]:
    """Return every picture as SVG by its name."""
    return {draw.__name__.replace("_", "-"): svg(draw) for draw in PICTURES}


def svg(draw: Callable[[Any], None]) -> str:
    """Return a drawing as SVG text, the same every time."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        draw(figure.add_subplot())
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def _legend(axes: Any) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)


@cache
def _played(scale: float, seed: int) -> Game:
    """A game against ε = 1 of a number with Laplace noise of this scale, as a black box."""
    claim, mechanism = PureDP(1.0), _Sampler(scale)
    streams = partial(stream, SEED + seed)
    game = Game(
        mechanism,
        claim,
        [Pair(0.0, 1.0)],
        default_forecasters(mechanism),
        streams,
        levels=level_grid(claim),
    )
    game.play(CALLS, alpha=ALPHA)
    return game


class _Sampler:
    """Laplace noise that states no law."""

    def __init__(self, scale: float) -> None:
        self._mechanism = LaplaceMechanism(scale)

    def __call__(self, data: float, size: int, *, rng: np.random.Generator) -> Any:
        return self._mechanism(data, size, rng=rng)


def wealth(axes: Any) -> None:
    """Draw the wealth of a few games against a false claim and against a true one."""
    for scale, colour, label in (
        (0.5, FALSE, "the claim is false: half of the noise"),
        (1.0, TRUE, "the claim is true"),
    ):
        for seed in range(GAMES_SHOWN):
            calls, log_wealth = np.array(_played(scale, seed).path).T
            axes.plot(
                calls,
                log_wealth / math.log(10),
                color=colour,
                linewidth=1.2,
                label=label if seed == 0 else None,
            )
    axes.axhline(-math.log10(ALPHA), color=LIMIT, linestyle="--", linewidth=1)
    axes.annotate(
        "1/α = 20: refuted",
        (CALLS, -math.log10(ALPHA)),
        ha="right",
        va="bottom",
        color=LIMIT,
    )
    axes.set(
        xlabel="calls of the mechanism",
        ylabel="log₁₀ wealth",
        xlim=(0, CALLS),
        ylim=(-3, 15),
    )
    _legend(axes)


def levels(axes: Any) -> None:
    """Draw the highest wealth against each level of ε in one game, and the bound that follows."""
    game = _played(0.5, 0)
    grid, bound = game.wealth.levels, game.wealth.lower_bound(ALPHA)
    shown = (grid > 0.3) & (grid < 3)
    axes.plot(
        grid[shown],
        game.wealth._highest[shown] / math.log(10),
        color=FALSE,
        linewidth=1.6,
    )
    axes.axhline(-math.log10(ALPHA), color=LIMIT, linestyle="--", linewidth=1)
    axes.annotate(
        "1/α = 20: crossed",
        (3, -math.log10(ALPHA)),
        ha="right",
        va="bottom",
        color=LIMIT,
    )
    for at, text in (
        (1.0, "claim"),
        (bound, f"bound {math.floor(100 * bound) / 100:.2f}"),
        (2.0, "truth"),
    ):
        axes.axvline(at, color=GUIDE, linewidth=0.8)
        axes.annotate(
            text,
            (at, 1),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="bottom",
            color=GUIDE,
        )
    axes.set(
        xlabel="level of ε that is bet against",
        ylabel="log₁₀ of the highest wealth",
        xlim=(0.3, 3),
    )


def claims(axes: Any) -> None:
    """Draw what three claims allow: how often a test may be right when the one input was used, and wrong with the other."""
    allowing = (
        (PureDP(1.0), "1-DP", TRUE),
        (ApproxDP(1.0, 0.05), "(1, .05)-DP", COLOURS["certified"]),
        (GaussianDP(1.0), "1-Gaussian DP", COLOURS["error"]),
    )
    for claim, label, colour in allowing:
        pair = DominatingPair.of(claim.statements())
        axes.plot(
            np.cumsum([0, *pair.p]),
            np.cumsum([0, *pair.q]),
            color=colour,
            label=label,
            linewidth=1.5,
        )
    beyond = np.linspace(-5, 6, 400)
    halved = "Laplace noise, scale .5"
    axes.plot(
        laplace.sf(beyond, 0, 0.5),
        laplace.sf(beyond, 1, 0.5),
        "--",
        color=FALSE,
        label=halved,
        linewidth=1.5,
    )
    axes.plot([0, 1], [0, 1], color=GUIDE, linewidth=0.8)
    axes.set(
        xlabel="probability of an event on one input",
        ylabel="probability on its neighbour",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    axes.set_aspect("equal")
    axes.legend(loc="center left", bbox_to_anchor=(1.04, 0.5))


def false_alarms(axes: Any) -> None:
    """Draw how often the wealth ever reaches a height where the claim is true and tight, and the limit of the theorem."""
    claim = GaussianDP(1.0)
    truth, believed = (
        DominatingPair.of(GaussianDP(mu).statements()) for mu in (1.0, 1.5)
    )
    zeros, ones = Law(believed.log_odds, believed.p + believed.q).cells()
    (region,) = nearest_regions(
        zeros[None], ones[None], lines(claim.statements())[None]
    )
    gains = region.choose(1.5 * truth.log_odds) - region.price(truth)
    rng = stream(SEED, "false alarms")
    coins = rng.integers(2, size=(GAMES, CALLS_OF_EACH))
    drawn = [
        rng.choice(len(law), size=coins.shape, p=law / law.sum())
        for law in (truth.p, truth.q)
    ]
    path = np.cumsum(np.where(coins, gains[1][drawn[1]], gains[0][drawn[0]]), axis=1)
    highest = np.sort(np.exp(path.max(axis=1)))
    share = 1 - np.arange(GAMES) / GAMES
    heights = np.geomspace(1, 100)
    axes.loglog(
        heights,
        1 / heights,
        "--",
        color=LIMIT,
        linewidth=1,
        label="the theorem's limit, 1/w",
    )
    axes.loglog(
        highest,
        share,
        color=TRUE,
        linewidth=1.5,
        label=f"{GAMES:,} games of a true and tight claim",
    )
    axes.set(
        xlabel="height w of the wealth",
        ylabel="share of games that ever reach w",
        xlim=(1, 100),
        ylim=(5e-3, 1.3),
    )
    _legend(axes)


def power(axes: Any) -> None:
    """Draw the smallest ε that a clean game would have refuted nine times in ten, by its calls."""
    calls = np.unique(np.geomspace(100, 1e6, 25).astype(int))
    claim = PureDP(1.0)
    for white_box, colour, label in (
        (False, FALSE, "black box"),
        (True, TRUE, "the mechanism states its law"),
    ):
        found = [
            detectable_level(
                claim, calls=int(n), alpha=ALPHA, share=0.5, white_box=white_box
            )[0]
            for n in calls
        ]
        axes.semilogx(calls, found, color=colour, linewidth=1.5, label=label)
    axes.axhline(1.0, color=LIMIT, linestyle="--", linewidth=1)
    axes.annotate("the claim", (1e6, 1.0), ha="right", va="bottom", color=LIMIT)
    axes.set(
        xlabel="calls of one pair",
        ylabel="smallest ε found 9 times in 10",
        ylim=(0.8, 3),
    )
    _legend(axes)


def guesses(axes: Any) -> None:
    """Draw how often somebody who sees one output may be right about the input, by ε and δ."""
    epsilons = np.linspace(0, 6, 200)
    for delta, colour in ((0.0, TRUE), (0.05, COLOURS["certified"])):
        share = [100 * allowed([(float(epsilon), delta)]) for epsilon in epsilons]
        axes.plot(epsilons, share, color=colour, linewidth=1.5, label=f"δ = {delta:g}")
    for epsilon in (0.1, 1, 3):
        right = 100 * allowed([(epsilon, 0.0)])
        axes.plot(epsilon, right, "o", color=TRUE, markersize=4)
        axes.annotate(
            f"ε = {epsilon:g}: {right:.1f}",
            (epsilon, right),
            (6, -10),
            textcoords="offset points",
            color=TRUE,
        )
    axes.set(
        xlabel="ε", ylabel="right guesses of 100, at most", xlim=(0, 6), ylim=(50, 101)
    )
    _legend(axes)


PICTURES = (wealth, levels, claims, false_alarms, power, guesses)
