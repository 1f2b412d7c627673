"""Code that is not what a game assumes: an order that tells, calls that depend, randomness from elsewhere."""

import contextlib
import math
from dataclasses import replace

import numpy as np
import pytest

from auditdp.adjacency import AnyValues, Neighbours, Pair, QueryAnswers
from auditdp.betting.forecasters.forecaster import Single, default_forecasters
from auditdp.betting.game import Game
from auditdp.claims.statements import GaussianDP, PureDP
from auditdp.errors import (
    AdjacencyError,
    AuditError,
    ConfigurationError,
    MechanismError,
)
from auditdp.evidence.confirmation import play_again
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.calls.recording import MOST_BYTES
from auditdp.mechanism.protocol import as_mechanism, unseeded
from auditdp.numerics.streams import stream
from auditdp.record.budget import AuditBudget
from auditdp.record.results import Verdict
from auditdp.testing import LaplaceMechanism, Response
from benchmarks.false_alarms_game import (
    Alternating,
    Drifting,
    Remembering,
    Smoothing,
    chain,
    shared_half,
)

pytestmark = pytest.mark.dear

BIT = AnyValues((0.0, 1.0))
CLAIM = PureDP(1.0)


def streams(seed=1):
    return lambda purpose, batch: stream(seed, purpose, batch)


def play(
    mechanism, claim=CLAIM, pairs=BIT, *, calls=2_000, alpha=0.05, seed=1, **options
):
    return play_game(
        as_mechanism(mechanism),
        claim,
        pairs,
        GameOptions(alpha=alpha, budget=AuditBudget.of(calls), **options),
        streams=streams(seed),
    )


@pytest.mark.full
def test_an_order_of_rows_tells_nothing():
    """Each refuted a tight claim every time while batches were sorted by coin; a rate is in the benchmark."""
    for seed in range(10):
        assert (
            play(LaplaceMechanism(1.0), forecasters=[Smoothing()], seed=seed).verdict
            is Verdict.NOT_REFUTED
        )
        assert play(Alternating(), seed=seed).verdict is Verdict.NOT_REFUTED


class Asked:
    """A mechanism whose score writes down how many outputs it is asked of."""

    def __init__(self):
        self.sizes = []

    def __call__(self, data, size, *, rng):
        return Response(1.0)(data, size, rng=rng)

    def score(self, outputs, pair):
        self.sizes.append(len(outputs))
        return outputs


def test_a_score_is_asked_once_of_a_whole_batch():
    asked = Asked()
    game = Game(asked, CLAIM, BIT.pairs(), default_forecasters(asked), streams())
    game.play(60, alpha=0.05)
    asked.sizes.clear()
    game.tables[0].players[0].forecast(
        game.draw(game.tables[0].pair, 37, np.random.default_rng(0))
    )
    assert asked.sizes == [37]


def test_forecasts_and_scores_are_one_for_every_output():
    class Short:
        def log_odds(self, outputs):
            return np.zeros(len(outputs) - 1)

    batch = Game(Response(1.0), CLAIM, BIT.pairs(), [Short()], streams()).draw(
        BIT.pairs()[0], 5, np.random.default_rng(0)
    )
    with pytest.raises(
        AuditError, match=r"one log-odds for each of 5 outputs, got shape \(4,\)"
    ):
        Single(Short()).forecast(batch)


@pytest.mark.parametrize(
    ("make", "claim"),
    [
        (lambda: shared_half, GaussianDP(1.0)),
        (lambda: chain, GaussianDP(1.0)),
        (Remembering, CLAIM),
        (Drifting, CLAIM),
    ],
    ids=["shared half", "chain", "remembering", "drifting"],
)
def test_dependent_calls_are_no_violation(make, claim, repeats):
    """A mechanism whose single runs keep the claim is not refuted by calls that depend on each other, but once in 1,000."""
    for seed in range(repeats(3, least=1)):
        with contextlib.suppress(MechanismError):
            assert (
                play(make(), claim, seed=seed, calls=4_000, alpha=1e-3).verdict
                is not Verdict.VIOLATED
            )


def test_a_finding_that_single_calls_do_not_confirm_decides_nothing(monkeypatch):
    """Where the tests of independence see nothing: the verdict rests on calls that were made one by one."""
    for check in ("check_seeded", "check_batch"):
        monkeypatch.setattr(
            f"auditdp.mechanism.calls.independence.{check}",
            lambda *args, **options: None,
        )
    monkeypatch.setattr(
        "auditdp.evidence.game_evidence.believed", lambda found, *args, **options: found
    )
    found = play(
        shared_half, GaussianDP(1.0), trace=False, calls=20_000
    )  # by the noise that a trace reads off nothing is found
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "made one by one, did not confirm it" in found.statement
    assert (
        "1 unit into 20, which has probability at most 1/20 if the claim is true"
        in found.statement
    )
    assert "refute" not in found.statement
    assert (found.epsilon_lower, found.details.bound_path) == (None, [])
    assert "ε ≥" not in found.statement


class Counting:
    """Laplace noise, which every hundredth call leaves out: the first run is 1-DP."""

    def __init__(self):
        self.calls = 0

    def __call__(self, data, rng):
        self.calls += 1
        return data if self.calls % 100 == 0 else data + rng.laplace()


def test_a_finding_that_rests_on_a_counter_names_it():
    found = play(Counting(), calls=8_000)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert (
        "outputs depend on the calls before: by a cache, a counter" in found.statement
    )


class Harmless(Counting):
    """Counts its calls, and does nothing with that."""

    def __call__(self, data, rng):
        self.calls += 1
        return data + rng.laplace(scale=0.4)


def test_a_counter_that_nothing_depends_on_is_no_error():
    assert play(Harmless(), alpha=0.01).verdict is Verdict.VIOLATED


def test_a_finding_is_confirmed_at_the_level_of_the_audit():
    found = play(Response(2.5), alpha=1e-4)
    assert found.verdict is Verdict.VIOLATED
    confirmation = found.details.confirmation
    assert confirmation.alpha == 0.5e-4
    assert confirmation.log_e_value >= math.log(1 / 0.5e-4)


@pytest.mark.full
def test_an_explanation_shows_the_bets_that_were_made():
    """Also where those who led had not bet: nobody is told of 0 bets of which 0 were right."""
    for seed in range(20):
        found = play(
            LaplaceMechanism(0.4), alpha=0.01, seed=seed, stop_when_refuted=True
        )
        assert found.verdict is Verdict.VIOLATED
        confirmation = found.details.confirmation
        assert 0 < confirmation.right <= confirmation.bets <= confirmation.calls
        assert "turned 1 unit into" in found.counterexample.explanation


def test_two_inputs_that_are_the_same_are_refused():
    for pair in [(1, 1), (np.ones(3), np.ones(3)), ({"a": [1]}, {"a": [1]})]:
        with pytest.raises(AdjacencyError, match="both inputs of a pair are"):
            play(lambda data, rng: rng.random(), pairs=Neighbours([pair]))
    with pytest.raises(AdjacencyError, match="lists no pairs"):
        play_game(
            Response(1.0),
            CLAIM,
            BIT,
            GameOptions(alpha=0.05, budget=AuditBudget.of(10), play=[]),
            streams=streams(),
        )


def library(scale, seed=0):
    own = np.random.default_rng(seed)
    return unseeded(lambda x: x + own.laplace(scale=scale))


def test_what_draws_from_elsewhere_is_audited_as_it_is():
    clean, broken = play(library(1.0), alpha=1e-6), play(library(0.3), alpha=1e-6)
    assert clean.verdict is Verdict.NOT_REFUTED
    assert broken.verdict is Verdict.VIOLATED
    assert any(
        "repeats the test and not its numbers" in text for text in broken.assumptions
    )
    assert clean.details.confirmation is None


def test_the_outputs_of_such_a_finding_are_kept_and_give_the_same_bets_again():
    found = play(library(0.3))
    confirmation = found.details.confirmation
    assert confirmation.outputs["kept"] == confirmation.calls
    options = {"streams": streams(1)}
    again = play_again(library(0.3, seed=99), CLAIM, BIT, confirmation, **options)
    assert again == pytest.approx(confirmation.log_e_value, abs=1e-9)
    other = replace(confirmation, pair="5 | 6")
    with pytest.raises(ConfigurationError, match="not one that the audit lists"):
        play_again(library(0.3), CLAIM, BIT, other, **options)


@pytest.mark.parametrize(
    ("bound", "most"), [("MOST_BYTES", 64), ("FileLimits.result_bytes", 128)]
)
def test_too_many_outputs_are_not_kept_and_said_to_be(monkeypatch, bound, most):
    """Neither as they are, nor as a result has them, which needs half of its room for the rest."""
    monkeypatch.setattr(f"auditdp.mechanism.calls.recording.{bound}", most)
    assert MOST_BYTES > 64
    confirmation = play(library(0.3)).details.confirmation
    assert confirmation.outputs["kept"] == 0
    with pytest.raises(
        ConfigurationError, match=r"were not kept: .* bytes are more than 64"
    ):
        play_again(library(0.3), CLAIM, BIT, confirmation, streams=streams(1))


def test_pairs_of_different_widths_are_played_in_one_game():
    def noisy(x, size, *, rng):
        return x + rng.laplace(scale=0.4, size=(size, len(x)))

    narrow, wide = Pair(np.zeros(2), np.eye(2)[0]), Pair(np.zeros(4), np.eye(4)[0])
    for pairs in ([narrow, wide], [wide, narrow]):
        found = play(noisy, pairs=Neighbours(pairs), calls=6_000)
        assert found.verdict is Verdict.VIOLATED
        assert all(row.calls > 0 for row in found.details.pairs)


def test_a_search_over_inputs_of_several_widths_goes_on():
    """Vectors of 2 to 5 answers are inputs, and outputs are as wide."""
    found = play(
        lambda x, size, *, rng: x + rng.laplace(scale=0.4, size=(size, len(x))),
        pairs=QueryAnswers(5, shortest=2),
        calls=6_000,
    )
    assert found.verdict is Verdict.VIOLATED
    assert len(found.details.smallest.pair) <= len(found.details.pairs[0].pair)
