"""The ablation computes from the record of a game what the game would have been."""

import math
from functools import partial

import numpy as np
import pytest

from auditdp import Pair, PureDP
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.repeated_outputs import Repeating
from auditdp.betting.game import Game
from auditdp.numerics.streams import stream
from auditdp.testing import LaplaceMechanism, Response
from benchmarks import ablation
from benchmarks.ablation import OTHER, Costs, Played, Row, crossing, eliminate, kind_of
from benchmarks.ablation_mechanisms import SHAPES
from benchmarks.parts import BlackBox


@pytest.mark.parametrize(
    "mechanism", [LaplaceMechanism(0.5), Response(1.7)], ids=["Laplace", "response"]
)
def test_the_mixture_that_is_computed_with_everything_is_the_one_that_was_played(
    mechanism,
):
    row = Row("row", OTHER, mechanism, PureDP(1.0), Pair(1, 0))
    played = ablation.play(row, 5, 0)
    streams = partial(stream, 5, "row", "ablation", 0)
    game = Game(
        BlackBox(mechanism),
        row.claim,
        [row.pair],
        [ViewExperts(), Repeating()],
        streams,
    )
    game.play(ablation.CALLS, alpha=ablation.SURE, stop_when_refuted=True)
    after, wealth = zip(*game.path[1:], strict=True)
    assert played.calls.tolist() == list(after)
    assert played.log_wealth(frozenset()) == pytest.approx(wealth, abs=1e-9)
    without = played.log_wealth(frozenset({"fingerprint", "cells"}))
    assert without != pytest.approx(wealth, abs=1e-3)


@pytest.mark.parametrize(
    ("view", "kind"),
    [
        ("[1, 2]", "single numbers"),
        ("output['a'][2] - output['a'][1]", "differences of neighbours"),
        ("telling coordinate 3", "telling coordinates"),
        ("[3] beyond the steps of its noise", "beyond the steps of its noise"),
    ],
)
def test_views_of_one_kind_are_dropped_together(view, kind):
    assert kind_of(view) == kind


def steady(**growth):
    """A game of 100 batches of ten calls in which each view wins so many nats a batch."""
    batches = np.arange(1, 101)
    own = np.stack([k * batches for k in growth.values()], axis=1) + math.log(
        1 / len(growth)
    )
    flat = np.tile(list(growth.values()), (100, 1))
    parts = [(0, name, "cells") for name in growth]
    return Played(
        10 * batches,
        parts,
        [1.0],
        np.full(len(growth), 1 / len(growth)),
        own,
        own,
        flat,
    )


def test_what_wins_nothing_goes_and_one_of_two_that_win_the_same_but_not_both():
    games = {(OTHER, "row"): [steady(idle=0.0, good=0.2, twin=0.2, bad=-0.1)]}
    costs = Costs(games)
    assert costs.of(["good"])[OTHER, "row"] == pytest.approx(1, abs=0.05)
    assert costs.of(["good", "twin"])[OTHER, "row"] > 1.5
    gone = [item for item, _ in eliminate(costs, ["idle", "good", "twin", "bad"])]
    assert {"idle", "bad"} <= set(gone)
    assert len({"good", "twin"} & set(gone)) == 1


@pytest.mark.parametrize(
    ("calls", "wealth", "level", "crossed"),
    [
        ([4, 8, 16], [1.0, 2.0, 4.0], 3.0, 12),
        ([4, 8], [1.0, 2.0], 0.5, 2),
        ([4, 8], [1.0, 2.0], 5.0, 16),
    ],
)
def test_wealth_crosses_where_a_line_between_batches_does(
    calls, wealth, level, crossed
):
    assert crossing(np.array(calls), np.array(wealth), level) == crossed


def test_there_are_twenty_shapes_and_each_runs():
    assert len(SHAPES) >= 20
    assert len({shape.name for shape in SHAPES}) == len(SHAPES)
    for shape in SHAPES:
        for data in (shape.pair.data, shape.pair.neighbour):
            assert len(shape(data, 3, rng=np.random.default_rng(0))) == 3
