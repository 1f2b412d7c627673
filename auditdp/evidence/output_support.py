"""Support evidence: do the last bits of floating-point outputs show the input, whatever the size of the noise?

Noise that is added in floating point lands on other numbers from one input than from another: the sum is rounded to the
lattice of doubles of its own size, and generators reach only part of the doubles. An output that one input cannot give
refutes any claim with delta = 0, however well the noise is calibrated (Mironov 2012, "On Significance of the Least
Significant Bits for Differential Privacy", CCS). Nearly every textbook implementation has this leak, and the game does
not look for it: there, outputs are numbers. Here they are bit patterns. The bets and their guarantee are the game's.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.players import Player
from auditdp.betting.forecasters.views import as_rows, fingerprint
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.request import EvidenceRequest, GameOptions
from auditdp.mechanism.calls.inputs import Inputs
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.numerics.streams import prefixed
from auditdp.record.budget import AuditBudget
from auditdp.record.results import Evidence


def gathered(request: EvidenceRequest, alpha: float) -> Evidence:
    """Bets on bit patterns, which never go on, nor have more calls to find a fault; the guarantee is that of a game.

    A mechanism's own ``possible(outputs, data)`` is used where it has one: whether an input can give exactly that output.
    """
    game = GameOptions(
        alpha=alpha,
        budget=AuditBudget.of(
            request.calls, stop_when_refuted=request.game.stop_when_refuted
        ),
        forecasters=[
            *([] if capabilities(request.adapted).possible is None else [Possible()]),
            BitPatterns(),
        ],
        play=request.game.play,
        search=False,
        trace=False,
    )
    streams = prefixed(request.streams, "support")
    evidence = play_game(
        request.adapted, request.privacy, request.adjacency, game, streams=streams
    )
    return replace(
        evidence,
        kind="support",
        statement=f"Bit patterns: {evidence.statement}",
        assumptions=[
            *evidence.assumptions,
            "whoever sees the outputs sees all of their bits",
        ],
    )


class Possible:
    """Is certain of an input when the other cannot give the output, by the mechanism's own ``possible(outputs, data)``."""

    name = "possible outputs"
    share = 16.0
    calibrated = True

    def bind(self, mechanism: Any, pair: Pair) -> Self:
        """Return the forecaster of one pair."""
        bound, inputs, able = copy.copy(self), Inputs(), capabilities(mechanism)
        assert able.possible is not None  # else it is not played
        asked = able.possible

        def possible(outputs: Array) -> list[Array]:
            with inputs.lent(
                f"{able.name}.possible", pair.data, pair.neighbour
            ) as lent:
                return [asked(outputs, x) for x in lent]

        bound._possible = possible
        return bound

    def log_odds(self, outputs: Array) -> Floats:
        """Return plus or minus infinity where only one of the inputs can give the output, else 0."""
        ones, zeros = (np.asarray(side, dtype=bool) for side in self._possible(outputs))
        return np.asarray(
            np.where(ones & ~zeros, np.inf, np.where(zeros & ~ones, -np.inf, 0.0))
        )

    _possible: Any = None


class BitPatterns:
    """Watches how fine the lattice is that each number lies on, and which exact values come again."""

    name = "bit patterns"

    def player(self, mechanism: Any, pair: Pair) -> Player:
        """Return the player of one pair."""
        return ViewExperts("bits: ", prepare=patterns).player(mechanism, pair)


def patterns(outputs: Array) -> Floats:
    """Return the place of the lowest set bit of every number, and a name for the whole output, shape (n, d + 1).

    The place of 0.75 = 3 * 2^-2 is -2. Zero, infinities and NaN have none.

    >>> patterns(np.array([[0.75, 8.0, 0.0]]))[:, :3].tolist()
    [[-2.0, 3.0, nan]]
    """
    rows = as_rows(outputs)
    fraction, exponent = np.frexp(rows.astype(np.float64))
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = np.where(np.isfinite(rows), np.abs(fraction) * 2.0**53, 0.0).astype(
            np.int64
        )
        place = exponent - 53 + np.log2((whole & -whole).astype(np.float64))
    return np.column_stack([np.where(whole > 0, place, np.nan), fingerprint(rows)])
