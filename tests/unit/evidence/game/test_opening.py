"""What is decided before a game: what outputs look like, by all pairs that are listed."""

import numpy as np
import pytest

from auditdp.adjacency import Neighbours
from auditdp.claims.statements import PureDP
from auditdp.evidence.game.evidence import play_game
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.randomness import stream
from auditdp.record.results import Verdict


def running(bits, rng):
    return np.cumsum(bits) + rng.laplace(size=len(bits))


def integers(bits, size, *, rng):
    return np.cumsum(bits) + rng.geometric(0.5, (size, len(bits))) - rng.geometric(0.5, (size, len(bits)))


@pytest.mark.parametrize("mechanism", [running, integers])
@pytest.mark.parametrize("order", [1, -1])
def test_outputs_as_long_as_their_input_are_seen_whichever_pair_comes_first(mechanism, order):
    """Of the shorter pair alone one would think that an output is one number."""
    found = play_game(
        as_mechanism(mechanism),
        PureDP(1.0),
        Neighbours([([1], [0]), ([1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0])][::order]),
        GameOptions(alpha=0.05, calls=300, stop_when_refuted=True),
        streams=lambda purpose, number: stream(0, "opening", purpose, number),
    )
    assert found.verdict is Verdict.VIOLATED
