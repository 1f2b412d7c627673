"""Decisions before a game: the form of outputs, and the number of runs."""

from functools import partial

import numpy as np
import pytest

from auditdp import AccountedDP, Pair, PureDP
from auditdp.accountants import PLDUpper
from auditdp.betting.forecasters.traced import RunBudget
from auditdp.betting.pairs.traced_search import looked_by_trace
from auditdp.evidence.game_plan import _predicts_refutation
from auditdp.evidence.request import GameOptions
from auditdp.numerics.streams import stream
from auditdp.record.budget import AuditBudget
from tests.unit.evidence.toys import VIOLATED, played


def running(bits, rng):
    return np.cumsum(bits) + rng.laplace(size=len(bits))


def integers(bits, size, *, rng):
    first, second = rng.geometric(0.5, (2, size, len(bits)))
    return np.cumsum(bits) + first - second


@pytest.mark.parametrize("mechanism", [running, integers])
@pytest.mark.parametrize("order", [1, -1])
def test_outputs_as_long_as_their_input_are_compared_whichever_pair_is_first(
    mechanism, order
):
    """The shorter pair alone has outputs of one number."""
    pairs = [([1], [0]), ([1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0])][::order]
    streams = partial(stream, 0, "opening")
    found = played(
        mechanism, PureDP(1.0), pairs, 600, streams=streams, stop_when_refuted=True
    )
    assert found.verdict is VIOLATED


@pytest.mark.parametrize(("norm", "predicted"), [(1.0, False), (2.0, True)])
def test_steps_that_lose_more_than_the_accountant_states_allow_more_runs(
    norm, predicted
):
    def train(data, rng):
        total = 0.0
        for _ in range(6):
            batch = data[rng.random(len(data)) < 0.5]
            total += np.clip(batch, -norm, norm).sum() + rng.normal()
        return total

    budget = AuditBudget.of(
        1_000, is_scarce=True, if_suspect=20_000, stop_when_refuted=True
    )
    claim, data = AccountedDP(PLDUpper(1.0, 0.5, 6)), np.array([2.0, -0.5, 0.3, 0.1])
    pairs, runs = [Pair(data, data[1:])], RunBudget(total=20_000, before_game=360)
    trace = looked_by_trace(train, claim, pairs, None, calls=600, seed=0, budget=runs)
    options = GameOptions(alpha=0.05, budget=budget)

    assert _predicts_refutation(claim, options, trace, None) == predicted
