"""What is decided before a game: what outputs look like, by all pairs that are listed."""

import numpy as np
import pytest

from auditdp.accountants import PLDUpper
from auditdp.adjacency import Neighbours, Pair
from auditdp.betting.forecasters.traced import RunBudget
from auditdp.betting.pairs.traced_search import looked_by_trace
from auditdp.claims.curves import AccountedDP
from auditdp.claims.statements import PureDP
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.game_plan import _predicts_refutation
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.streams import stream
from auditdp.record.budget import AuditBudget
from auditdp.record.results import Verdict


def running(bits, rng):
    return np.cumsum(bits) + rng.laplace(size=len(bits))


def integers(bits, size, *, rng):
    return (
        np.cumsum(bits)
        + rng.geometric(0.5, (size, len(bits)))
        - rng.geometric(0.5, (size, len(bits)))
    )


@pytest.mark.parametrize("mechanism", [running, integers])
@pytest.mark.parametrize("order", [1, -1])
def test_outputs_as_long_as_their_input_are_seen_whichever_pair_comes_first(
    mechanism, order
):
    """Of the shorter pair alone one would think that an output is one number."""
    found = play_game(
        as_mechanism(mechanism),
        PureDP(1.0),
        Neighbours([([1], [0]), ([1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0])][::order]),
        GameOptions(alpha=0.05, budget=AuditBudget.of(600, stop_when_refuted=True)),
        streams=lambda purpose, number: stream(0, "opening", purpose, number),
    )
    assert found.verdict is Verdict.VIOLATED


@pytest.mark.parametrize(("norm", "promises"), [(1.0, False), (2.0, True)])
def test_more_runs_are_allowed_where_steps_cost_more_than_an_accountant_was_told(
    norm, promises
):
    def train(data, rng):
        batches = [data[rng.random(len(data)) < 0.5] for _ in range(6)]
        return sum(
            np.clip(batch, -norm, norm).sum() + rng.normal() for batch in batches
        )

    options = GameOptions(
        alpha=0.05,
        budget=AuditBudget.of(
            1_000, is_scarce=True, if_suspect=20_000, stop_when_refuted=True
        ),
    )
    claim, data = AccountedDP(PLDUpper(1.0, 0.5, 6)), np.array([2.0, -0.5, 0.3, 0.1])
    budget = RunBudget(total=20_000, before_game=360)
    look = looked_by_trace(
        train, claim, [Pair(data, data[1:])], None, calls=600, seed=0, budget=budget
    )
    assert _predicts_refutation(claim, options, look, None) == promises
