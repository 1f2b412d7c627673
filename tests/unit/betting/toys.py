"""Games, traces and small mechanisms that the tests of betting share."""

from functools import partial
from math import inf, nan

import numpy as np

from auditdp import AnyValues, Pair, PureDP
from auditdp.betting.forecasters.forecaster import default_forecasters
from auditdp.betting.game import Game
from auditdp.betting.wealth.levels import level_grid
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.streams import stream
from auditdp.record.budget import AuditBudget
from auditdp.testing import Response

PAIR = Pair(1, 0)
BIT = AnyValues((0, 1))
CLAIM = PureDP(1.0)


def new_game(
    mechanism, claim=CLAIM, forecasters=None, *, pairs=(PAIR,), seed=0, levels=False
):
    """Return a game with the default forecasters, and with a lower bound if asked."""
    if forecasters is None:
        forecasters = default_forecasters(mechanism)
    grid = level_grid(claim) if levels else None
    streams = partial(stream, seed)
    return Game(mechanism, claim, list(pairs), forecasters, streams, levels=grid)


def play(
    mechanism,
    claim=CLAIM,
    pairs=BIT,
    *,
    calls=2_000,
    alpha=0.05,
    seed=1,
    stop=False,
    **options,
):
    """Return the evidence of a game; ``stop`` ends it at its refutation."""
    budget = AuditBudget.of(calls, stop_when_refuted=stop)
    options = GameOptions(alpha=alpha, budget=budget, **options)
    streams = partial(stream, seed)
    return play_game(as_mechanism(mechanism), claim, pairs, options, streams=streams)


def looked(function, pair):
    """Return a function as a mechanism, and its calls after a look at the outputs."""
    mechanism = as_mechanism(function)
    calls = Calls(mechanism)
    calls.look((pair.data, pair.neighbour), np.random.default_rng(0))
    return mechanism, calls


def _rarely(n, width, rng, value):
    noise = rng.normal(size=(n, width))
    return np.where(rng.random((n, width)) < 0.3, value, noise)


OUTPUTS = {
    "number": lambda coin, n, rng: rng.normal(size=n) + coin,
    "bit": lambda coin, n, rng: rng.random(n) < 0.5 + 0.2 * coin,
    "no number": lambda coin, n, rng: rng.choice([0.5, nan, inf, -1.0], n),
    "vector": lambda coin, n, rng: rng.normal(size=(n, 3)) + 0.3 * coin,
    "bits": lambda coin, n, rng: (rng.random((n, 4)) < 0.5 + 0.2 * coin).astype("i1"),
    "matrix": lambda coin, n, rng: rng.integers(0, 3, (n, 2, 2)),
    "half new": lambda coin, n, rng: _rarely(n, 2, rng, 7.0),
    "long": lambda coin, n, rng: rng.random((n, 40)) < 0.5,
    "no width": lambda coin, n, rng: np.zeros((n, 0)),
    "constant": lambda coin, n, rng: np.full((n, 2), 3),
    "missing": lambda coin, n, rng: _rarely(n, 40, rng, nan),
    "infinite": lambda coin, n, rng: rng.choice([inf, -inf, 0.0], (n, 3)),
    "large integers": lambda coin, n, rng: rng.integers(-(2**62), 2**62, (n, 2)),
    "nearly overflowing": lambda coin, n, rng: rng.choice([1e308, -1e308], (n, 40)),
    "half precision": lambda coin, n, rng: rng.normal(size=(4, n)).T.astype("f2"),
    "never a number": lambda coin, n, rng: np.full((n, 3), nan),
}
"""Functions of the coin, the number of outputs and the rng.

The coin makes a small difference or none.
"""


class Leaky:
    """Randomised response on the last bit at 1, and at ``leak`` on some inputs.

    It counts its outputs.
    """

    def __init__(self, leak, where):
        self.leak = leak
        self.where = where
        self.calls = 0

    def respond(self, data):
        return Response(self.leak if self.where(data) else 1.0)

    def __call__(self, data, size, *, rng):
        self.calls += size
        return self.respond(data)(data % 2, size, rng=rng)


class StatedLeaky(Leaky):
    """The same mechanism with its law."""

    def distribution(self, data):
        return self.respond(data).distribution(data % 2)


class Counting:
    """A vectorised mechanism that counts its outputs."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, data, size, *, rng):
        self.calls += size
        return self.function(data, size, rng=rng)


class Constant:
    """A forecaster whose odds are the same for every output."""

    def __init__(self, log_odds, name="constant"):
        self.value = log_odds
        self.name = name
        self.fits = 0

    def fit(self, outputs, labels):
        self.fits += 1
        return self

    def log_odds(self, outputs):
        return np.full(len(outputs), self.value)
