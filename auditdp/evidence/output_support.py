"""Support evidence: the last bits of floating-point outputs may reveal the input.

They may do so whatever the size of the noise. The sum of a value and noise is rounded
to the lattice of doubles of its size, and generators reach only part of the doubles. So
the possible outputs of one input are other doubles than those of another input. An
output that one input cannot give refutes any claim with delta = 0, however well the
noise is calibrated (Mironov 2012, "On Significance of the Least Significant Bits for
Differential Privacy", CCS). Nearly every textbook implementation has this leak. The
evidence of kind "game" bets on the numbers of an output, and does not search for this
leak. This evidence bets on their bit patterns, with the guarantee of the game.
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
    """Return the evidence of a game that bets on bit patterns.

    This game is never continued, and gets no additional calls to find a fault. If the
    mechanism has ``possible(outputs, data)``, which tests whether an input can give
    exactly these outputs, a forecaster uses it.
    """
    forecasters: list[Any] = [BitPatterns()]
    if capabilities(request.adapted).possible is not None:
        forecasters = [Possible(), *forecasters]
    # The pairs are the played ones: neither search nor trace is about bits.
    game = GameOptions(
        alpha=alpha,
        budget=AuditBudget.of(
            request.calls, stop_when_refuted=request.game.stop_when_refuted
        ),
        forecasters=forecasters,
        play=request.game.play,
        search=False,
        trace=False,
    )
    streams = prefixed(request.streams, "support")
    evidence = play_game(
        request.adapted, request.privacy, request.adjacency, game, streams=streams
    )
    assumption = "an adversary has all bits of the outputs"
    return replace(
        evidence,
        kind="support",
        statement=f"Bit patterns: {evidence.statement}",
        assumptions=[*evidence.assumptions, assumption],
    )


class Possible:
    """Forecaster that is certain of an input if the other cannot give the output.

    The mechanism's own ``possible(outputs, data)`` decides which input can give it.
    """

    name = "possible outputs"
    share = 16.0
    calibrated = True
    _possible: Any = None

    def bind(self, mechanism: Any, pair: Pair) -> Self:
        """Return the forecaster for one pair of inputs."""
        bound, inputs, able = copy.copy(self), Inputs(), capabilities(mechanism)
        # A mechanism without a law is not played by this forecaster.
        assert able.possible is not None
        of_mechanism, name = able.possible, f"{able.name}.possible"

        def possible(outputs: Array) -> list[Array]:
            with inputs.lent(name, pair.data, pair.neighbour) as lent:
                return [np.asarray(of_mechanism(outputs, x), dtype=bool) for x in lent]

        bound._possible = possible
        return bound

    def log_odds(self, outputs: Array) -> Floats:
        """Return one log-odds for each output: ±infinity or 0.

        It is infinity if only the first input can give the output, minus infinity if
        only the second one can, else 0.
        """
        ones, zeros = self._possible(outputs)
        odds = np.where(zeros & ~ones, -np.inf, 0.0)
        return np.asarray(np.where(ones & ~zeros, np.inf, odds))


class BitPatterns:
    """Forecaster by the lowest set bit of each number, and by outputs that repeat."""

    name = "bit patterns"

    def player(self, mechanism: Any, pair: Pair) -> Player:
        """Return the player that bets on ``patterns`` of the outputs on one pair."""
        return ViewExperts("bits: ", prepare=patterns).player(mechanism, pair)


def patterns(outputs: Array) -> Floats:
    """Return the place of the lowest set bit of each number, and each row's fingerprint.

    The place of 0.75 = 3 * 2^-2 is -2. For zero, infinities and NaN it is NaN. Outputs
    of d numbers give an array of shape (n, d + 1); the fingerprint is the last column.
    Equal outputs have equal fingerprints.

    >>> patterns(np.array([[0.75, 8.0, 0.0]]))[:, :3].tolist()
    [[-2.0, 3.0, nan]]
    """
    rows = as_rows(outputs)
    fraction, exponent = np.frexp(rows.astype(np.float64))
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = np.where(np.isfinite(rows), np.abs(fraction) * 2.0**53, 0.0)
        # The 53 bits of the fraction are an integer, whose lowest set bit is x & -x.
        whole = scaled.astype(np.int64)
        place = exponent - 53 + np.log2((whole & -whole).astype(np.float64))
    return np.column_stack([np.where(whole > 0, place, np.nan), fingerprint(rows)])
