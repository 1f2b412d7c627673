"""What the record of a game says of its trace."""

import pytest

from auditdp import Pair, PureDP, check
from auditdp.record.details import GameDetails
from auditdp.record.results import details


def twice_if_large(x, rng):
    released = x + rng.laplace()
    return [released] if released < 4 else [released, released]


def noisy(x, rng):
    return [x + rng.laplace()]


@pytest.mark.parametrize(
    ("mechanism", "otherwise"), [(twice_if_large, True), (noisy, False)]
)
def test_outputs_that_look_otherwise_than_traced_ones_are_said(mechanism, otherwise):
    """Of 400 outputs some 7 are above 4, with probability 1 - exp(-7) at least; no traced run's is, at this seed."""
    found = check(mechanism, PureDP(1.0), Pair(1.0, 0.0), calls=400, seed=3)
    (game,) = details(found.evidence, GameDetails)
    assert game.trace.played
    said = [
        each
        for each in game.trace.opaque
        if each.startswith("outputs of the game that do not look like")
    ]
    assert len(said) == otherwise
    assert not otherwise or 0 < int(said[0].split(": ")[1].split(";")[0]) < 40
