"""The loop of the game: its calls, leaders and pairs, and a confirmation of it."""

from functools import partial
from math import ceil, inf, isfinite, log, nan

import numpy as np
import pytest

from auditdp import ApproxDP, GaussianDP, Neighbours, Pair, PureDP, Verdict
from auditdp.betting.forecasters.batches import Batch
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import LikelihoodRatio, Single
from auditdp.betting.game import BATCH_GROWTH, CATCHING_UP, FIRST_BATCH, checked_pairs
from auditdp.betting.pair_tables import ALLOCATION
from auditdp.betting.wealth.mixture import Wealth
from auditdp.errors import AdjacencyError
from auditdp.mechanism.calls import MOST_PROBED, PROBES
from auditdp.numerics.streams import stream
from auditdp.testing import GaussianMechanism, LaplaceMechanism, Response
from tests.unit.betting.toys import (
    CLAIM,
    OUTPUTS,
    PAIR,
    Constant,
    Counting,
    Leaky,
    StatedLeaky,
    new_game,
    play,
)

pytestmark = pytest.mark.dear


def test_the_texts_of_played_pairs_differ():
    """A report identifies a pair by its text, in which long inputs are cut."""
    rest = [{"city": "Ulm", "age": k} for k in range(40)]
    long = [Pair([*rest, last], rest) for last in ({"city": "Bonn"}, None)]
    assert str(long[0]) == str(long[1])
    played = checked_pairs(Neighbours([*long, Pair(0, 1)]))
    assert len(set(map(str, played))) == 3
    assert str(played[-1]) == "0 | 1"
    assert [pair.data for pair in played[:2]] == [pair.data for pair in long]


@pytest.mark.parametrize(
    ("mechanism", "forecasters", "pairs"),
    [
        (StatedLeaky(1.5, bool), None, 5),
        (StatedLeaky(1.5, bool), [LikelihoodRatio()], 1),
        (Counting(lambda data, size, *, rng: rng.random((size, 3))), None, 1),
    ],
)
def test_exactly_the_given_calls_are_made(mechanism, forecasters, pairs):
    listed = [Pair(1, 0, str(k)) for k in range(pairs)]
    game = new_game(mechanism, PureDP(2.0), forecasters, pairs=listed)
    looked_at = 2 * PROBES + min(2 * pairs, MOST_PROBED) - 2
    for calls in (1, 7, 9, 200, 1_001):
        game.play(calls, alpha=0.05)
        assert mechanism.calls - looked_at == game.wealth.calls == calls
        assert sum(table.calls for table in game.tables) == calls
        assert game.path[-1] == (calls, game.wealth.log_wealth)


def test_the_game_stops_at_its_refutation_or_plays_on():
    game = new_game(Response(3.0))
    game.play(5_000, alpha=0.05, stop_when_refuted=True)
    at = game.refuted_at
    assert at == game.wealth.calls < 5_000
    game.play(600, alpha=0.05)
    assert game.refuted_at == at
    assert game.wealth.calls == 600


class Diary:
    """A forecaster that records its outputs and what it had learned by then."""

    name = "diary"

    def __init__(self):
        self.learned = []
        self.pages = []

    def bind(self, mechanism, pair):
        return self

    def fit(self, outputs, labels):
        self.learned = sorted(outputs.tolist())
        return self

    def log_odds(self, outputs):
        self.pages.append((outputs.tolist(), self.learned))
        return np.zeros(len(outputs))


def test_a_batch_is_forecast_with_all_earlier_batches():
    diary = Diary()
    new_game(LaplaceMechanism(1.0), forecasters=[diary]).play(500, alpha=0.05)
    before = []
    for outputs, learned in diary.pages:
        assert learned == sorted(before)
        assert not set(outputs) & set(before)
        before += outputs
    assert len(before) == 500


def test_leaders_follow_the_largest_recent_gain_on_a_pair(monkeypatch):
    """Earlier gains fade by the square of their age's share; the prior is added."""
    bets = []
    bet = Wealth.bet

    def spy(self, forecasts, calls, leaders=None, *, pair=0):
        gained = bet(self, forecasts, calls, leaders, pair=pair)
        bets.append((gained, calls, leaders))
        return gained

    monkeypatch.setattr(Wealth, "bet", spy)
    forecasters = [Constant(1.4, "one"), Constant(-1.4, "other"), LikelihoodRatio()]
    game = new_game(Response(2.0), forecasters=forecasters, levels=True)
    game.play(400, alpha=0.05)
    score = 0.0
    played = 0
    best = None
    prior = np.log([1.0, 1.0, LikelihoodRatio.share])[:, None]
    for gained, calls, leaders in bets:
        assert np.array_equal(leaders, best)
        played += calls
        score = gained + score * (1 - calls / played) ** 2
        best = np.argmax(score.max(axis=2) + prior, axis=0)


def seventh(data):
    return data // 2 == 7


PAIRS = [Pair(2 * k + 1, 2 * k, str(k)) for k in range(12)]


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        (Leaky, 4_000),
        (StatedLeaky, 2_000),
    ],
)
def test_the_pair_that_leaks_is_played_most_and_every_pair_once(kind, calls):
    game = new_game(kind(2.5, seventh), pairs=PAIRS)
    game.play(calls, alpha=1e-9)
    played = [table.calls for table in game.tables]
    assert min(played) >= 4
    assert played[7] > calls / 2
    assert game.best.pair.name == "7"


def test_three_batches_of_four_go_to_the_pair_that_gains():
    """Beyond the share that every pair gets: all twelve pairs leak alike."""
    game = new_game(Leaky(2.0, lambda data: True), pairs=PAIRS)
    game.play(4_000, alpha=1e-9)
    most = max(game.tables, key=lambda table: table.calls)
    assert most.calls > 0.75 * (1 - 1 / ALLOCATION.neglect) * game.wealth.calls
    assert game.best is most


def test_the_pair_that_refuted_is_the_best_until_another_gains_as_much(monkeypatch):
    game = new_game(Response(inf), pairs=PAIRS[:2])
    game.play(200, alpha=0.05, stop_when_refuted=True)
    best = game.best
    (other,) = (table for table in game.tables if table is not best)
    for gained, expected in ((1.0, best), (log(20) + 0.1, other)):
        gains = {id(best): 0.0, id(other): gained}
        monkeypatch.setattr(game, "gained", lambda table, gains=gains: gains[id(table)])
        assert game.best is expected


def test_gains_at_low_levels_alone_are_not_followed_before_the_refutation():
    """Eleven of twelve pairs leak 1.0 and gain at every level below; one leaks 2.5."""
    game = new_game(Leaky(2.5, seventh), pairs=PAIRS, levels=True)
    game.play(4_000, alpha=0.05, stop_when_refuted=True)
    assert game.best.pair.name == "7"
    assert game.refuted_at is not None


def test_a_pair_that_fell_behind_is_played_in_batches_of_the_average(monkeypatch):
    game = new_game(Response(2.0), pairs=[PAIR, Pair(1, 0, "late")])
    sizes = []
    draw = game.draw
    game.choose = lambda tables, wealth, **_: int(wealth.calls >= 2_000)

    def recorded(pair, size, rng):
        sizes.append((pair.name, size))
        return draw(pair, size, rng)

    monkeypatch.setattr(game, "draw", recorded)
    game.play(4_000, alpha=1e-300)  # no verdict is near, or batches would be smaller
    calls = {"": 0, "late": 0}
    for name, size in sizes[:-1]:
        share = max(calls[name], CATCHING_UP * sum(calls.values()) / 2)
        assert size == max(FIRST_BATCH, ceil(BATCH_GROWTH * share))
        calls[name] += size
    late = dict(reversed(sizes))["late"]
    assert late > 50 > 10 * FIRST_BATCH


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_the_plausible_growth_is_finite_for_a_sure_draw(value):
    """A beta draw may round to 0 or 1, where p ln p is not a number."""

    class Extreme:
        def beta(self, a, b):
            return value

    single = Single(Constant(2.0))
    single.forecast(Batch(np.ones(5), np.zeros(0), np.random.default_rng(0)))
    assert isfinite(single.plausible_growth(1.0, Extreme(), 0))


def confirmation_of(game, seed, calls):
    fresh = game.confirmation(game.calls.singly(), partial(stream, seed, "fresh"))
    assert fresh.wealth.calls == 0
    assert fresh.path == [(0, 0.0)]
    assert fresh.refuted_at is None
    assert not fresh.wealth.right.any()
    fresh.play(calls, alpha=0.05, stop_when_refuted=True)
    return fresh


def test_a_confirmation_is_a_fresh_game_with_the_learned_forecasters():
    game = new_game(Response(2.0), pairs=[PAIR, Pair(1, 0, "again")], levels=True)
    game.play(2_000, alpha=0.05)
    before = game.wealth.log_wealth, game.wealth.lower_bound(0.05), list(game.path)
    fresh = confirmation_of(game, seed=1, calls=1_000)
    assert [table.pair for table in fresh.tables] == [game.best.pair]
    assert fresh.wealth.refuted(0.05)
    assert 0 < fresh.wealth.right[fresh.wealth.best] <= fresh.wealth.calls
    assert before == (game.wealth.log_wealth, game.wealth.lower_bound(0.05), game.path)


@pytest.mark.statistical
def test_a_confirmation_of_a_true_claim_refutes_rarely(repeats):
    """After games at a tight claim, which never observed a violation."""
    refuted = 0
    games = repeats(200)
    for seed in range(games):
        game = new_game(Response(1.0), forecasters=[ViewExperts()], seed=seed)
        game.play(60, alpha=0.05)
        refuted += confirmation_of(game, seed, calls=100).wealth.refuted(0.05)
    assert refuted <= repeats.most(games, 0.05), f"{refuted} of {games} at alpha = .05"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "kind",
    ["no width", "missing", "large integers", "nearly overflowing", "matrix", "number"],
)
def test_a_true_claim_stands_whatever_the_outputs_are(kind):
    """Their laws do not depend on the input; each refutes with probability 1e-6."""
    tight = [ApproxDP(1e-4, 0.9), PureDP(1e-6), GaussianDP(1e-5)]
    for claim in [PureDP(0.5), ApproxDP(0.5, 0.01), GaussianDP(50.0), *tight]:
        found = play(of_coin(OUTPUTS[kind], 0), claim, calls=300, alpha=1e-6)
        assert found.verdict is Verdict.NOT_REFUTED
        assert found.calls <= 300
        assert found.epsilon_lower <= claim.level


def of_coin(function, coin=None):
    """Return a function of the coin as a mechanism, with a fixed coin if one is given."""

    def mechanism(data, size, *, rng):
        return function(data if coin is None else coin, size, rng)

    return mechanism


LEAKING = {
    "no number": lambda data, n, rng: np.where(rng.random(n) < data, nan, 1.0),
    "large integers": lambda data, n, rng: np.full((n, 2), 2**60) + data,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", LEAKING)
def test_a_leak_of_any_kind_is_found(kind):
    found = play(of_coin(LEAKING[kind]), calls=1_500, alpha=1e-3)
    assert found.verdict is Verdict.VIOLATED
    assert found.details.confirmation.confirmed


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "no pairs to play"),
        ([Pair(0, 7)], "7"),
    ],
)
def test_unplayable_games_are_errors(pairs, message):
    with pytest.raises(AdjacencyError, match=message):
        play(Response(1.0), play=pairs)


def test_evidence_reports_the_game():
    found = play(Response(2.0), alpha=0.01, calls=3_000)
    details = found.details
    assert found.verdict is Verdict.VIOLATED
    first = details.pairs[0].calls
    others = details.independence_calls + details.confirmation.calls
    assert first + others < found.calls <= 3_000
    assert details.wealth_path[0] == (0, 0.0)
    assert details.wealth_path[-1] == (first, found.log_e_value)
    assert details.threshold == pytest.approx(log(100))
    assert details.refuted_at <= first
    wealths = [forecaster.log_wealth for forecaster in details.forecasters]
    assert wealths[0] == max(wealths)
    confirmation = details.confirmation
    assert confirmation.alpha == 0.005
    assert confirmation.log_e_value >= log(1 / 0.005)
    assert f"{confirmation.calls:,} fresh" in found.counterexample.explanation
    assert confirmation.right / confirmation.bets > CLAIM.posterior_cap()


@pytest.mark.parametrize(
    ("claim", "leaky"),
    [
        (PureDP(1.0), LaplaceMechanism(0.4)),
        (GaussianDP(1.0), GaussianMechanism(0.4)),
    ],
)
def test_a_game_of_a_control_has_no_bound_and_refutes_no_later(claim, leaky):
    bounded, control = (
        play(leaky, claim, calls=5_000, seed=3, stop=True, control=control)
        for control in (False, True)
    )
    assert control.verdict is bounded.verdict is Verdict.VIOLATED
    assert control.epsilon_lower == claim.level
    assert control.details.refuted_at <= bounded.details.refuted_at


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda data, rng: 7, "outputs were the same, whatever the input"),
        (lambda data, rng: data, "drew nothing from the given rng"),
        (lambda data, rng: 1 // data + rng.random(), "raised ZeroDivisionError"),
        (LaplaceMechanism(1.0), None),
    ],
)
def test_notices_of_the_calls(function, message):
    details = play(function, calls=306).details
    other = [text for text in details.notices if "both inputs of every" not in text]
    assert len(details.notices) - len(other) == (details.same_outputs is not None)
    assert len(other) == (message is not None)
    assert all(message in text for text in other)
