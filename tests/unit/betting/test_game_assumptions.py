"""Code that breaks the assumptions of a game.

Its order of outputs tells, its calls depend on each other, or its randomness comes from
elsewhere.
"""

from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.random import default_rng

from auditdp import Neighbours, QueryAnswers, Verdict, unseeded
from auditdp.errors import AdjacencyError, ConfigurationError
from auditdp.evidence.confirmation import play_again
from auditdp.mechanism.calls.recording import MOST_BYTES
from auditdp.numerics.streams import stream
from auditdp.testing import LaplaceMechanism, Response
from tests.unit.betting.toys import BIT, CLAIM, new_game, play

pytestmark = pytest.mark.dear


class Scored:
    """A mechanism whose score records the number of outputs of each call."""

    def __init__(self):
        self.sizes = []

    def __call__(self, data, size, *, rng):
        return Response(1.0)(data, size, rng=rng)

    def score(self, outputs, pair):
        self.sizes.append(len(outputs))
        return outputs


def test_a_score_is_computed_once_for_a_whole_batch():
    mechanism = Scored()
    game = new_game(mechanism)
    game.play(60, alpha=0.05)
    mechanism.sizes.clear()
    table = game.tables[0]
    table.players[0].forecast(game.draw(table.pair, 37, default_rng(0)))
    assert mechanism.sizes == [37]


def by_size(data, size, *, rng):
    """Add noise that is private in calls of one output alone."""
    return data + rng.laplace(scale=1.0 if size == 1 else 0.2, size=size)


def test_a_finding_that_single_calls_do_not_confirm_decides_nothing():
    # A trace would read the noise off the code.
    found = play(by_size, trace=False)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "made one by one, did not confirm the refutation" in found.statement
    assert (
        "a stake of 1 had become 20, which has probability at most 1/20"
        in found.statement
    )
    assert "ε ≥" not in found.statement
    assert found.epsilon_lower is None
    assert found.details.bound_path == []


@pytest.mark.full
def test_an_explanation_counts_bets_of_the_confirmation():
    """Also if the leaders had not bet: never 0 bets of which 0 were right."""
    for seed in range(20):
        found = play(LaplaceMechanism(0.4), alpha=0.01, seed=seed, stop=True)
        assert found.verdict is Verdict.VIOLATED
        confirmation = found.details.confirmation
        assert 0 < confirmation.right <= confirmation.bets <= confirmation.calls
        assert "a stake of 1 became" in found.counterexample.explanation


@pytest.mark.parametrize(
    "data",
    [
        1,
        np.ones(3),
        {"a": [1]},
    ],
)
def test_two_equal_inputs_are_refused(data):
    pairs = Neighbours([(data, deepcopy(data))])
    with pytest.raises(AdjacencyError, match="both inputs of a pair are"):
        play(lambda data, rng: rng.random(), pairs=pairs)


def library(scale, seed=0):
    own = default_rng(seed)
    return unseeded(lambda x: x + own.laplace(scale=scale))


again = partial(play_again, streams=partial(stream, 1))


def test_outputs_with_randomness_from_elsewhere_are_stored_and_bet_on_again():
    found = play(library(0.3))
    assert any("repeats the test and not its" in text for text in found.assumptions)
    confirmation = found.details.confirmation
    assert confirmation.outputs["kept"] == confirmation.calls
    log_e_value = again(library(0.3, seed=99), CLAIM, BIT, confirmation)
    assert log_e_value == pytest.approx(confirmation.log_e_value, abs=1e-9)
    other = replace(confirmation, pair="5 | 6")
    with pytest.raises(ConfigurationError, match="not one that the audit lists"):
        again(library(0.3), CLAIM, BIT, other)


@pytest.mark.parametrize(
    ("bound", "most"),
    [
        ("MOST_BYTES", 64),
        ("FileLimits.result_bytes", 128),
    ],
)
def test_too_many_outputs_are_not_stored(monkeypatch, bound, most):
    """Half of the room of a result is for other things."""
    monkeypatch.setattr(f"auditdp.mechanism.calls.recording.{bound}", most)
    assert MOST_BYTES > 64
    confirmation = play(library(0.3)).details.confirmation
    assert confirmation.outputs["kept"] == 0
    with pytest.raises(ConfigurationError, match="bytes are more than 64"):
        again(library(0.3), CLAIM, BIT, confirmation)


def noisy(x, size, *, rng):
    return x + rng.laplace(scale=0.4, size=(size, len(x)))


def test_a_search_over_inputs_of_several_widths_goes_on():
    found = play(noisy, pairs=QueryAnswers(5, shortest=2), calls=6_000)
    assert found.verdict is Verdict.VIOLATED
    assert len(found.details.smallest.pair) <= len(found.details.pairs[0].pair)
