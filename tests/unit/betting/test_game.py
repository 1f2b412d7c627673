"""The loop of the game: what is called, what is known when, who leads, which pair is played, and what a replay keeps."""

import itertools
import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auditdp.adjacency import AnyValues, Neighbours, Pair
from auditdp.betting.forecasters.batches import Batch
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import (
    LikelihoodRatio,
    Single,
    default_forecasters,
)
from auditdp.betting.forecasters.schedule import Schedule
from auditdp.betting.game import (
    BATCH_GROWTH,
    CATCHING_UP,
    FIRST_BATCH,
    Game,
    checked_pairs,
)
from auditdp.betting.pair_tables import ALLOCATION
from auditdp.betting.wealth.levels import level_grid
from auditdp.betting.wealth.mixture import Wealth
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.errors import AdjacencyError, MechanismError
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.calls import MOST_PROBED, PROBES
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.streams import stream
from auditdp.record.budget import AuditBudget
from auditdp.record.results import Verdict
from auditdp.testing import GaussianMechanism, LaplaceMechanism, LeakyResponse, Response

pytestmark = pytest.mark.dear

PAIR = Pair(1, 0)
CLAIM = PureDP(1.0)


def test_pairs_that_are_played_have_texts_of_their_own():
    """A report knows a pair by its text, in which long inputs are cut; so what is known of one is never said of another."""
    rest = [{"city": "Ulm", "age": k} for k in range(40)]
    given = [
        Pair([*rest, last], rest) for last in ({"city": "Bonn"}, {"city": "Köln"}, None)
    ]
    assert len(set(map(str, given))) == 1
    played = checked_pairs(Neighbours([*given, Pair(0, 1)]))
    assert len(set(map(str, played))) == 4
    assert str(played[-1]) == "0 | 1"
    assert [pair.data for pair in played[:3]] == [pair.data for pair in given]


class Counting:
    """A mechanism that counts its outputs."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, data, size, *, rng):
        self.calls += size
        return self.function(data, size, rng=rng)


def streams(seed=0):
    return lambda purpose, batch: stream(seed, "game", purpose, batch)


def new_game(
    mechanism, claim=CLAIM, forecasters=None, *, pairs=(PAIR,), seed=0, levels=False
):
    chosen = default_forecasters(mechanism) if forecasters is None else forecasters
    return Game(
        mechanism,
        claim,
        list(pairs),
        chosen,
        streams(seed),
        levels=level_grid(claim) if levels else None,
    )


PLAYED = {
    "posterior": (Response(1.5), [LikelihoodRatio()], 1),
    "default": (Response(1.5), None, 1),
    "black box": (Response(1.5), [ViewExperts()], 1),
    "vectors": (lambda data, size, *, rng: rng.random((size, 3)), None, 1),
    "five pairs": (Response(1.5), None, 5),
}


@pytest.mark.parametrize(
    ("mechanism", "forecasters", "pairs"), PLAYED.values(), ids=PLAYED
)
@pytest.mark.parametrize("calls", [1, 7, 9, 200, 1_001])
def test_as_many_calls_are_made_as_were_asked_for(mechanism, forecasters, pairs, calls):
    counting = Counting(mechanism)
    chosen = default_forecasters(mechanism) if forecasters is None else forecasters
    game = Game(
        counting,
        PureDP(2.0),
        [Pair(1, 0, str(k)) for k in range(pairs)],
        _bound(chosen, mechanism),
        streams(),
    )
    game.play(calls, alpha=0.05)
    looked_at = 2 * PROBES + min(2 * pairs, MOST_PROBED) - 2
    assert counting.calls - looked_at == game.wealth.calls == calls
    assert sum(table.calls for table in game.tables) == calls
    assert game.path[-1] == (calls, game.wealth.log_wealth)
    game.play(calls + 50, alpha=0.05)
    assert game.wealth.calls == calls + 50


class _Bound:
    """A white-box forecaster that takes its law from somewhere else than the mechanism."""

    name = "bound"

    def __init__(self, template, mechanism):
        self.template, self.mechanism = template, mechanism

    def bind(self, mechanism, pair):
        return self.template.bind(self.mechanism, pair)


def _bound(forecasters, mechanism):
    return [
        _Bound(f, mechanism) if isinstance(f, LikelihoodRatio) else f
        for f in forecasters
    ]


class Soon(Schedule):
    """A schedule for which there are soon many calls."""

    many_calls = 200


def test_calls_are_counted_when_every_view_sees_a_part():
    """A clean game of many calls, in which nobody gains and all views are thinned."""
    counting = Counting(LaplaceMechanism(2.0))
    game = new_game(counting, PureDP(30.0), forecasters=[ViewExperts(schedule=Soon)])
    game.tables[0].next_ranking = 100
    game.play(1_500, alpha=0.05)
    assert set(game.tables[0].players[0].schedule.thinning) == {Schedule.late_part}
    assert counting.calls - 2 * PROBES == game.wealth.calls == 1_500


def test_the_game_stops_at_its_refutation_or_plays_on():
    game = new_game(Response(3.0))
    game.play(5_000, alpha=0.05, stop_when_refuted=True)
    assert game.refuted_at == game.wealth.calls < 5_000
    at = game.refuted_at
    game.play(600, alpha=0.05)
    assert (game.refuted_at, game.wealth.calls) == (at, 600)


class Diary:
    """A forecaster that writes down what it was asked and what it had learned by then."""

    name = "diary"

    def __init__(self):
        self.learned, self.asked = [], []

    def bind(self, mechanism, pair):
        return self

    def fit(self, outputs, labels):
        self.learned = sorted(zip(outputs.tolist(), labels.tolist(), strict=True))
        return self

    def log_odds(self, outputs):
        self.asked.append((outputs.tolist(), self.learned))
        return np.zeros(len(outputs))


def test_a_batch_is_forecast_with_what_was_learned_before_it():
    diary = Diary()
    game = new_game(LaplaceMechanism(1.0), forecasters=[diary])
    game.play(500, alpha=0.05)
    before = []
    for outputs, learned in diary.asked:
        assert [output for output, _ in learned] == sorted(before)
        assert not set(outputs) & set(before)
        before += outputs
    assert len(before) == 500


class Says:
    """A forecaster that says one thing."""

    def __init__(self, value, name):
        self.value, self.name = value, name

    def fit(self, outputs, labels):
        return self

    def log_odds(self, outputs):
        return np.full(len(outputs), self.value)


def test_leaders_follow_who_has_won_most_on_this_pair_lately(monkeypatch):
    """Recomputed from what was won before: faded by the square of the age's share, plus the log of the prior share."""
    won, led = [], []
    bet = Wealth.bet

    def spy(self, forecasts, calls, leaders=None, *, pair=0):
        led.append(leaders)
        won.append((bet(self, forecasts, calls, leaders, pair=pair), calls))
        return won[-1][0]

    monkeypatch.setattr(Wealth, "bet", spy)
    game = new_game(
        Response(2.0),
        forecasters=[Says(1.4, "one"), Says(-1.4, "other"), LikelihoodRatio()],
        levels=True,
    )
    game.play(400, alpha=0.05)
    assert led[0] is None
    score, seen, prior = 0.0, 0, np.log([1.0, 1.0, LikelihoodRatio.share])[:, None]
    for (gained, calls), leaders in zip(won, [*led[1:], None], strict=True):
        seen += calls
        score = gained + score * (1 - calls / seen) ** 2
        if leaders is not None:
            assert (
                leaders.tolist()
                == np.argmax(score.max(axis=2) + prior, axis=0).tolist()
            )


@pytest.mark.parametrize(
    "mechanism",
    [Response(2.0), LaplaceMechanism(0.4), LeakyResponse(1.0, 0.3)],
    ids=lambda m: m.name,
)
@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.05)], ids=str)
def test_the_seed_determines_everything(mechanism, claim):
    def record(seed):
        game = new_game(
            mechanism,
            claim,
            seed=seed,
            levels=True,
            pairs=[Pair(1, 0, str(k)) for k in range(3)],
        )
        game.play(150, alpha=0.05)
        return (
            game.path,
            game.wealth.lower_bound(0.05),
            [table.calls for table in game.tables],
            game.best_forecaster,
        )

    assert record(0) == record(0)
    assert record(0) != record(1)


class OneOfMany:
    """Randomised response that leaks more on one of the pairs (2k+1, 2k), and states its law if asked to."""

    def __init__(self, leaking):
        self.leaking = leaking

    def __call__(self, data, size, *, rng):
        return Response(2.5 if data // 2 == self.leaking else 1.0)(
            data % 2, size, rng=rng
        )


PAIRS = [Pair(2 * k + 1, 2 * k, str(k)) for k in range(12)]


class Stated(OneOfMany):
    def distribution(self, data):
        return Response(2.5 if data // 2 == self.leaking else 1.0).distribution(
            data % 2
        )


@pytest.mark.parametrize(
    ("kind", "calls"),
    [(Stated, 2_000), (OneOfMany, 4_000)],
    ids=["law stated", "black box"],
)
def test_the_pair_that_shows_most_is_played_most_and_every_pair_once(kind, calls):
    game = new_game(kind(7), pairs=PAIRS)
    game.play(calls, alpha=1e-9)
    played = [table.calls for table in game.tables]
    assert min(played) >= 4
    assert np.argmax(played) == 7
    assert played[7] > calls / 2
    assert game.best.pair.name == "7"


def test_three_batches_of_four_go_to_the_pair_that_earns():
    """Beyond the share that every pair gets: all twelve pairs leak alike, and one of them is learned and not each anew."""
    game = new_game(
        lambda data, size, *, rng: Response(2.0)(data % 2, size, rng=rng), pairs=PAIRS
    )
    game.play(4_000, alpha=1e-9)
    most = max(game.tables, key=lambda table: table.calls)
    assert most.calls > 0.75 * (1 - 1 / ALLOCATION.neglect) * game.wealth.calls
    assert game.best is most


def test_the_pair_that_refuted_is_the_best_until_another_gains_as_much(monkeypatch):
    game = new_game(as_mechanism(lambda x, rng: x), pairs=[Pair(1, 0), Pair(2, 0)])
    game.play(200, alpha=0.05, stop_when_refuted=True)
    best = game.best
    (other,) = (table for table in game.tables if table is not best)
    for gained, expected in ((1.0, best), (math.log(20) + 0.1, other)):
        monkeypatch.setattr(
            game,
            "gained",
            lambda table, gained=gained: gained if table is other else 0.0,
        )
        assert game.best is expected


def test_whoever_earns_at_a_low_level_only_is_not_followed_while_the_claim_may_be_refuted():
    """Eleven of twelve pairs leak 1.0 against a claim of 1, and gain at every level below it; one leaks 2.5."""
    game = new_game(OneOfMany(7), pairs=PAIRS, levels=True)
    game.play(4_000, alpha=0.05, stop_when_refuted=True)
    assert game.best.pair.name == "7"
    assert game.refuted_at is not None


def test_a_pair_that_fell_behind_is_played_in_batches_of_what_pairs_have_on_average(
    monkeypatch,
):
    game = new_game(Response(2.0), pairs=[PAIR, Pair(1, 0, "late")])
    sizes, draw = [], game.draw
    game.choose = lambda tables, wealth, **_: int(wealth.calls >= 2_000)
    monkeypatch.setattr(
        game,
        "draw",
        lambda pair, size, rng: (
            sizes.append((pair.name, game.wealth.calls, size)) or draw(pair, size, rng)
        ),
    )
    game.play(4_000, alpha=1e-300)  # no verdict is near, or batches would be smaller
    calls = dict.fromkeys(["", "late"], 0)
    for name, played, size in sizes[:-1]:
        share = max(calls[name], CATCHING_UP * played / 2)
        assert size == max(FIRST_BATCH, math.ceil(BATCH_GROWTH * share))
        calls[name] += size
    late = [size for name, _, size in sizes if name == "late"]
    assert late[0] > 0.1 * 0.5 * 1_000 > 10 * FIRST_BATCH


def test_round_robin_plays_all_pairs_alike():
    game = Game(OneOfMany(7), CLAIM, PAIRS, [ViewExperts()], streams())
    game.choose = lambda tables, wealth, **_: int(
        np.argmin([table.calls for table in tables])
    )
    game.play(2_000, alpha=1e-9)
    played = [table.calls for table in game.tables]
    assert max(played) - min(played) <= FIRST_BATCH + BATCH_GROWTH * max(played)
    assert game.best.pair.name == "7"


def test_a_pair_may_be_added_to_a_game_that_goes_on():
    game = new_game(Stated(1), pairs=[PAIR])
    game.play(100, alpha=1e-9)
    game.add(Pair(3, 2))
    game.play(600, alpha=1e-9)
    assert [table.calls > 0 for table in game.tables] == [True, True]
    assert (game.best.pair.data, game.best.pair.neighbour) == (3, 2)


def test_a_sure_draw_of_what_a_call_may_earn_is_a_number():
    """A beta draw may round to 0 or 1 exactly, where p ln p is none; nobody could be chosen by it."""

    class Extreme:
        def __init__(self, value):
            self.value = value

        def beta(self, a, b):
            return self.value

    single = Single(Says(2.0, "sure"))
    single.forecast(Batch(np.ones(5), np.zeros(0), np.random.default_rng(0)))
    for value in (0.0, 1.0):
        assert math.isfinite(single.plausible_growth(1.0, Extreme(value), 0))


def test_a_confirmation_is_a_fresh_game_of_what_was_learned():
    game = new_game(Response(2.0), pairs=[PAIR, Pair(1, 0, "again")], levels=True)
    game.play(2_000, alpha=0.05)
    before = game.wealth.log_wealth, game.wealth.lower_bound(0.05), list(game.path)
    fresh = game.confirmation(
        game.calls.singly(), lambda purpose, batch: stream(1, "fresh", purpose, batch)
    )
    assert (
        fresh.wealth.log_wealth,
        fresh.wealth.calls,
        fresh.path,
        fresh.refuted_at,
    ) == (0.0, 0, [(0, 0.0)], None)
    assert [table.pair for table in fresh.tables] == [game.best.pair]
    assert not fresh.wealth.right.any()
    fresh.play(1_000, alpha=0.05, stop_when_refuted=True)
    assert fresh.wealth.refuted(0.05)
    assert (game.wealth.log_wealth, game.wealth.lower_bound(0.05), game.path) == before
    assert 0 < fresh.wealth.right[fresh.wealth.best] <= fresh.wealth.calls


@pytest.mark.statistical
def test_a_confirmation_of_a_true_claim_refutes_rarely(repeats):
    """What was learned is no evidence: replays at a tight claim, from games that never saw a violation."""
    refuted, games = 0, repeats(200)
    for seed in range(games):
        game = new_game(Response(1.0), forecasters=[ViewExperts()], seed=seed)
        game.play(60, alpha=0.05)
        fresh = game.confirmation(
            game.calls.singly(),
            lambda purpose, batch, seed=seed: stream(seed, "again", purpose, batch),
        )
        fresh.play(100, alpha=0.05, stop_when_refuted=True)
        refuted += fresh.wealth.refuted(0.05)
    assert refuted <= repeats.most(games, 0.05), (
        f"{refuted} of {games} confirmed a true claim at alpha = .05"
    )


class Mean:
    """A plain forecaster of one's own: fit and predict_proba, nothing else."""

    def fit(self, outputs, labels):
        self.middle = (outputs[labels == 1].mean() + outputs[labels == 0].mean()) / 2

    def predict_proba(self, outputs):
        p = np.where(outputs[:, 0] > self.middle, 0.95, 0.05)
        return np.stack([1 - p, p], axis=1)


@pytest.mark.parametrize(
    "estimator",
    [
        Mean(),
        BernoulliNB(),
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda e: type(e).__name__,
)
def test_a_classifier_of_ones_own_is_a_forecaster(estimator):
    game = new_game(
        Response(3.0), forecasters=[estimator], pairs=[PAIR, Pair(0, 1)], levels=True
    )
    game.play(3_000, alpha=1e-6)
    assert game.wealth.refuted(1e-6)
    assert 1.0 <= game.wealth.lower_bound(1e-6) <= 3.0
    assert not hasattr(estimator, "classes_")
    assert not hasattr(estimator, "middle")
    one, other = (table.players[0].forecaster.estimator for table in game.tables)
    assert one is not other


@pytest.mark.parametrize(
    "forecasters", [[LikelihoodRatio()], None], ids=["alone", "default"]
)
def test_a_forecaster_alone_has_a_lower_bound_on_either_side_of_the_claim(forecasters):
    for truth, low in ((2.0, 1.6), (0.5, 0.3)):
        game = new_game(Response(truth), forecasters=forecasters, levels=True)
        game.play(20_000, alpha=0.01)
        assert low <= game.wealth.lower_bound(0.01) <= truth


NAN, INF = math.nan, math.inf
WEIRD = {
    "constant": lambda data, size, *, rng: np.zeros(size),
    "no width": lambda data, size, *, rng: np.zeros((size, 0)),
    "no width within": lambda data, size, *, rng: np.zeros((size, 3, 0), np.int8),
    "large integers": lambda data, size, *, rng: 2**60 + rng.integers(0, 9, size),
    "unsigned integers": lambda data, size, *, rng: rng.integers(
        2**63, 2**64 - 1, (size, 2), dtype=np.uint64
    ),
    "booleans": lambda data, size, *, rng: rng.random((size, 5)) < 0.5,
    "no number": lambda data, size, *, rng: np.full((size, 3), NAN),
    "one no number": lambda data, size, *, rng: np.full(size, NAN),
    "often no number": lambda data, size, *, rng: np.where(
        rng.random((size, 3)) < 0.5, NAN, rng.random((size, 3))
    ),
    "infinite": lambda data, size, *, rng: np.where(
        rng.random((size, 2)) < 0.5, INF, -INF
    ),
    "three dimensions": lambda data, size, *, rng: rng.random((size, 2, 3)),
    "column order": lambda data, size, *, rng: rng.random((3, size)).T,
    "half precision": lambda data, size, *, rng: rng.normal(size=(size, 4)).astype(
        np.float16
    ),
    "long double": lambda data, size, *, rng: rng.normal(size=(size, 2)).astype(
        np.longdouble
    ),
    "nearly overflowing": lambda data, size, *, rng: np.where(
        rng.random((size, 40)) < 0.5, 1e308, -1e308
    ),
    "read only": lambda data, size, *, rng: np.broadcast_to(np.arange(3.0), (size, 3)),
    "long": lambda data, size, *, rng: rng.random((size, 2_000)),
}
CLAIMS = [
    PureDP(1.0),
    PureDP(1e-6),
    PureDP(300.0),
    ApproxDP(1.0, 0.01),
    ApproxDP(1e-4, 0.9),
    GaussianDP(50.0),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", WEIRD)
def test_whatever_outputs_are_made_of_a_true_claim_stands(kind):
    """Their laws do not depend on the input, so every claim is true; each refutes with probability at most 1e-6."""
    for claim, calls in itertools.product(
        [PureDP(0.5), ApproxDP(0.5, 0.01)], [300] if kind == "long" else [300, 600]
    ):
        found = play_game(
            WEIRD[kind],
            claim,
            AnyValues((0, 1)),
            GameOptions(alpha=1e-6, budget=AuditBudget.of(calls)),
            streams=streams(),
        )
        assert found.verdict is Verdict.NOT_REFUTED
        assert found.calls <= calls
        assert found.epsilon_lower <= 0.5


@pytest.mark.parametrize(
    "claim", [*CLAIMS, GaussianDP(1e-5), ApproxDP(40.0, 0.0)], ids=str
)
def test_whatever_is_claimed_a_coin_does_not_refute_it(claim):
    for mechanism in (
        lambda data, size, *, rng: rng.random(size) < 0.5,
        lambda data, size, *, rng: rng.normal(size=size),
    ):
        found = play_game(
            mechanism,
            claim,
            AnyValues((0, 1)),
            GameOptions(alpha=1e-6, budget=AuditBudget.of(200)),
            streams=streams(),
        )
        assert found.verdict is Verdict.NOT_REFUTED
        assert not math.isnan(found.log_e_value)


LEAKING = {
    "large integers": lambda data, size, *, rng: np.full((size, 2), 2**60) + data,
    "no number": lambda data, size, *, rng: np.where(
        rng.random(size) < 0.1 + 0.8 * data, NAN, rng.random(size)
    ),
    "one of many bits": lambda data, size, *, rng: (
        rng.integers(0, 2, (size, 40)) * ~((np.arange(40) == 17) & (data == 1))
    ),
    "the width that is used": lambda data, size, *, rng: np.where(
        np.arange(6) < 2 + 2 * data, rng.random((size, 6)), NAN
    ),
    "infinity": lambda data, size, *, rng: np.where(
        rng.random(size) < 0.1 + 0.8 * data, INF, -INF
    ),
    "equal coordinates": lambda data, size, *, rng: (
        rng.random((size, 1)) + data * np.array([0.0, 0.5])
    ),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", LEAKING)
def test_a_leak_is_found_wherever_it_is(kind):
    found = play_game(
        LEAKING[kind],
        PureDP(1.0),
        AnyValues((0, 1)),
        GameOptions(alpha=1e-3, budget=AuditBudget.of(1_500)),
        streams=streams(),
    )
    assert found.verdict is Verdict.VIOLATED
    assert found.details.confirmation.confirmed


def test_what_cannot_be_played_is_an_error():
    def game(mechanism, adjacency, **options):
        return play_game(
            mechanism,
            PureDP(1.0),
            adjacency,
            GameOptions(alpha=0.05, budget=AuditBudget.of(500), **options),
            streams=streams(),
        )

    with pytest.raises(AdjacencyError, match="no pairs to play"):
        game(Response(1.0), AnyValues((0, 1)), play=[])
    with pytest.raises(AdjacencyError):
        game(Response(1.0), AnyValues((0, 1)), play=[Pair(0, 7)])
    with pytest.raises(MechanismError, match="independent runs"):
        game(
            lambda data, size, *, rng: np.full(size, rng.random()), Neighbours([(0, 1)])
        )


def test_evidence_reports_what_happened():
    found = play_game(
        Response(2.0),
        PureDP(1.0),
        AnyValues((0, 1)),
        GameOptions(alpha=0.01, budget=AuditBudget.of(3_000)),
        streams=streams(),
    )
    details = found.details
    assert found.verdict is Verdict.VIOLATED
    first = details.pairs[0].calls
    assert (
        first + details.independence_calls + details.confirmation.calls
        < found.calls
        <= 3_000
    )
    assert details.wealth_path[0] == (0, 0.0)
    assert details.wealth_path[-1] == (first, found.log_e_value)
    assert details.threshold == pytest.approx(math.log(100))
    assert details.refuted_at <= first
    assert details.forecasters[0].log_wealth == max(
        f.log_wealth for f in details.forecasters
    )
    assert sum(pair.calls for pair in details.pairs) == first
    right, bets = details.confirmation.right, details.confirmation.bets
    assert found.counterexample.explanation.startswith(
        f"In {details.confirmation.calls:,} fresh calls, bets on which"
    )
    assert right / bets > PureDP(1.0).posterior_cap()


def test_a_gaussian_finding_is_told_in_its_own_terms():
    found = play_game(
        GaussianMechanism(0.5),
        GaussianDP(1.0),
        AnyValues((0, 1)),
        GameOptions(alpha=0.01, budget=AuditBudget.of(3_000)),
        streams=streams(),
    )
    assert found.verdict is Verdict.VIOLATED
    assert "μ ≥" in found.statement
    assert "ε" not in found.statement
    # The total variation of 1-GDP is 2 Φ(1/2) - 1 = .3829, so one is right (1 + .3829)/2 = 69.15 % of the time at most.
    right, bets, calls = (
        getattr(found.details.confirmation, key) for key in ("right", "bets", "calls")
    )
    assert bets == calls
    assert right / bets > 0.6915


@pytest.mark.parametrize("claim", [PureDP(1.0), GaussianDP(1.0)], ids=str)
def test_a_game_without_a_bound_refutes_no_later_and_says_so(claim):
    leaky = LaplaceMechanism(0.4) if claim.delta == 0 else GaussianMechanism(0.4)
    budget = AuditBudget.of(5_000, stop_when_refuted=True)
    with_bound, without = (
        play_game(
            leaky,
            claim,
            AnyValues((0, 1)),
            GameOptions(alpha=0.05, budget=budget, control=not bounded),
            streams=streams(3),
        )
        for bounded in (True, False)
    )
    assert without.verdict is with_bound.verdict is Verdict.VIOLATED
    assert without.epsilon_lower == claim.level
    assert without.details.refuted_at <= with_bound.details.refuted_at


NOTICES = {
    "a constant": (lambda data, rng: 7, "outputs were the same, whatever the input"),
    "no noise": (lambda data, rng: data, "drew nothing from the rng"),
    "an exception": (
        lambda data, rng: 1 // data + rng.random(),
        "raised ZeroDivisionError",
    ),
}


@pytest.mark.parametrize(("function", "message"), NOTICES.values(), ids=NOTICES)
def test_what_a_person_should_know_of_the_calls_is_noticed(function, message):
    found = play_game(
        as_mechanism(function),
        CLAIM,
        AnyValues((0, 1)),
        GameOptions(alpha=0.05, budget=AuditBudget.of(306)),
        streams=streams(),
    )
    notice, *others = found.details.notices
    assert message in notice
    assert [other[:33] for other in others] == ["both inputs of every pair gave th"] * (
        found.details.same_outputs is not None
    )


def test_of_an_ordinary_mechanism_nothing_is_noticed():
    for mechanism in (Response(1.0), LaplaceMechanism(1.0)):
        assert (
            play_game(
                mechanism,
                CLAIM,
                AnyValues((0, 1)),
                GameOptions(alpha=0.05, budget=AuditBudget.of(200)),
                streams=streams(),
            ).details.notices
            == []
        )
