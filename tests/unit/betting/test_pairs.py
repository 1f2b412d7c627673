"""Pairs that nobody listed: those that are proposed, and the smallest that still shows a violation."""

import numpy as np
import pytest
from hypothesis import strategies as st

from auditdp import Audit
from auditdp.adjacency import (
    AnyValues,
    Box,
    Fields,
    NeighbourList,
    Neighbours,
    Pair,
    QueryAnswers,
    Records,
    Rows,
)
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.forecasters.forecaster import default_forecasters
from auditdp.betting.game import Game
from auditdp.betting.pairs.search import (
    FEWEST_CALLS,
    MOST_PROPOSED,
    can_search,
    propose,
    smaller,
)
from auditdp.claims.statements import PureDP
from auditdp.errors import AdjacencyError
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.calls.allowance import allowing
from auditdp.numerics.streams import stream
from auditdp.record.budget import AuditBudget, Budget
from auditdp.record.results import Verdict
from auditdp.testing import LaplaceMechanism, Response

pytestmark = pytest.mark.dear

LEAKING = 20
CLAIM = PureDP(1.0)


class Numbers:
    """Numbers from 0 to 63 that differ by one; lists 0 and 1 alone."""

    name = "numbers that differ by 1"

    def check(self, pair):
        if abs(pair.data - pair.neighbour) != 1:
            raise AdjacencyError(f"not neighbours: {pair}")

    def pairs(self):
        return [Pair(0, 1)]

    def exhaustive(self):
        return None

    def strategy(self):
        return st.integers(0, 62).map(lambda k: Pair(k + 1, k))


class Sometimes:
    """Randomised response on the last bit, which leaks more for numbers from 20 on; it counts its calls."""

    def __init__(self, leak=3.0):
        self.leak = leak
        self.calls = 0

    def __call__(self, data, size, *, rng):
        self.calls += size
        return Response(self.leak if data >= LEAKING else 1.0)(data % 2, size, rng=rng)


class Stated(Sometimes):
    def distribution(self, data):
        return Response(self.leak if data >= LEAKING else 1.0).distribution(data % 2)


def new_game(mechanism, pairs=None, seed=0):
    listed = Numbers().pairs() if pairs is None else pairs
    return Game(
        mechanism,
        CLAIM,
        listed,
        default_forecasters(mechanism),
        lambda purpose, batch: stream(seed, purpose, batch),
    )


def searched(game, adjacency, calls):
    """Search pairs for a game, and return how many runs of the mechanism that took."""
    with allowing() as allowed:
        propose(game, adjacency, calls)
    return allowed.made


def found(game):
    return [(table.pair.data, table.pair.neighbour) for table in game.tables]


@pytest.mark.parametrize(
    "mechanism", [Sometimes(), Stated()], ids=["black box", "law stated"]
)
def test_pairs_that_leak_are_proposed(mechanism):
    game = new_game(mechanism)
    spent = searched(game, Numbers(), 7_000)
    assert 0 < spent <= 7_000
    assert 1 < len(game.tables) <= 1 + MOST_PROPOSED
    assert all(abs(a - b) == 1 for a, b in found(game))
    assert len(set(map(frozenset, found(game)))) == len(game.tables), (
        "no pair twice, whichever way round"
    )
    assert sum(min(pair) >= LEAKING for pair in found(game)) >= len(game.tables) - 2
    assert [table.pair.name for table in game.tables[1:]] == ["found"] * (
        len(game.tables) - 1
    )


def test_what_is_spent_is_what_was_called():
    mechanism = Sometimes()
    game = new_game(mechanism)
    before = mechanism.calls
    spent = searched(game, Numbers(), 2_500)
    assert mechanism.calls - before == spent


def test_proposals_are_determined_by_the_seed_and_are_no_evidence():
    one, same = new_game(Sometimes()), new_game(Sometimes())
    spent = [searched(game, Numbers(), 5_000) for game in (one, same)]
    assert spent[0] == spent[1]
    assert found(one) == found(same)
    assert (one.wealth.calls, one.wealth.log_wealth, one.path) == (0, 0.0, [(0, 0.0)])


@pytest.mark.parametrize("calls", [1_024, 1_600, 2_200])
def test_calls_that_screening_leaves_too_few_of_are_no_error(calls):
    adjacency = Box(0.0, 1.0)
    game = new_game(
        lambda data, size, *, rng: data + rng.laplace(size=(size, 1)), adjacency.pairs()
    )
    assert searched(game, adjacency, calls) > 0


def test_more_listed_pairs_than_the_calls_look_at_are_no_error():
    adjacency = AnyValues(tuple(range(8)))
    game = new_game(
        lambda data, size, *, rng: data + rng.laplace(size=(size, 1)), adjacency.pairs()
    )
    assert searched(game, adjacency, FEWEST_CALLS) > 0


def test_few_calls_are_not_spent_on_a_search():
    game = new_game(Sometimes())
    assert searched(game, Numbers(), FEWEST_CALLS - 1) == 0
    assert len(game.tables) == 1


def test_where_there_is_something_to_search():
    assert can_search(Numbers())
    assert can_search(NeighbourList(nodes=30))
    assert not can_search(Neighbours([(0, 1)]))
    assert can_search(
        Neighbours([(0, 1)], search=st.tuples(st.integers(), st.integers()))
    )
    assert not can_search(AnyValues((0, 1)))  # both of its pairs are listed


def refuted(pair, mechanism):
    game = new_game(mechanism, pairs=[pair])
    game.play(5_000, alpha=0.05, stop_when_refuted=True)
    assert game.refuted_at
    return game


def test_the_smallest_pair_that_shows_it_is_found_and_played():
    game = refuted(Pair(61, 60), Sometimes(leak=6.0))
    with allowing() as allowed:
        small = smaller(game, Numbers(), 0.05)
    assert small is not None
    assert allowed.made > 0
    assert small.refuted_at is not None
    (table,) = small.tables
    assert LEAKING <= table.pair.data < 61
    fresh = small.confirmation(
        small.calls.singly(), lambda purpose, batch: stream(9, purpose, batch)
    )
    fresh.play(2_000, alpha=0.05, stop_when_refuted=True)
    assert fresh.wealth.refuted(0.05)


def test_a_pair_that_is_smallest_already_stays():
    class Alone(Numbers):
        def strategy(self):
            return st.just(Pair(61, 60))

    assert smaller(refuted(Pair(61, 60), Sometimes()), Alone(), 0.05) is None


@pytest.mark.parametrize("runs", [100, 2_000, 10_000])
def test_the_look_for_a_smaller_pair_makes_no_more_runs_than_it_may(runs):
    mechanism = Sometimes()
    game = refuted(Pair(61, 60), mechanism)
    before = mechanism.calls
    with allowing(runs):
        smaller(game, Numbers(), 0.05)
    assert mechanism.calls - before <= runs


def test_a_violation_that_no_listed_pair_shows_is_found_and_told_by_its_smallest_pair():
    mechanism = Sometimes(leak=6.0)
    evidence = play_game(
        mechanism,
        CLAIM,
        Numbers(),
        GameOptions(alpha=1e-3, budget=AuditBudget.of(30_000), trace=False),
        streams=lambda purpose, batch: stream(1, purpose, batch),
    )
    assert evidence.verdict is Verdict.VIOLATED
    assert evidence.details.search_calls > 0
    assert 1.0 <= evidence.epsilon_lower <= 6.0
    assert (
        mechanism.calls <= evidence.calls <= 30_000
    )  # some calls were made in processes of their own
    smallest = evidence.details.smallest
    assert evidence.counterexample.pair == smallest.pair
    assert smallest.confirmed


@pytest.mark.parametrize(
    "options",
    [{"play": [Pair(0, 1)]}, {"search": False}],
    ids=["given pairs", "no search"],
)
def test_nothing_is_searched_where_pairs_are_given_or_nobody_asks(options):
    evidence = play_game(
        Sometimes(),
        CLAIM,
        Numbers(),
        GameOptions(alpha=1e-3, budget=AuditBudget.of(5_000), trace=False, **options),
        streams=lambda purpose, batch: stream(1, purpose, batch),
    )
    assert evidence.verdict is Verdict.NOT_REFUTED
    assert evidence.details.search_calls == 0
    assert [pair.pair for pair in evidence.details.pairs] == [str(Pair(0, 1))]


def test_pairs_that_are_not_adjacent_are_never_scored():
    class Wrong(Numbers):
        def strategy(self):
            return st.just(Pair(0, 5))

    with pytest.raises(AdjacencyError, match="not neighbours"):
        searched(new_game(Sometimes()), Wrong(), 5_000)


@pytest.mark.full
def test_a_list_of_neighbours_can_be_searched():
    """One list of 30 where only the last cell is not noisy; the pairs that are listed differ in the first."""

    def respond(data, size, *, rng):
        noisy = np.where(rng.random((size, len(data))) < 0.7, data, 1 - data).astype(
            np.int8
        )
        noisy[:, -1] = data[-1]
        return noisy

    evidence = play_game(
        respond,
        CLAIM,
        NeighbourList(nodes=12),
        GameOptions(alpha=1e-3, budget=AuditBudget.of(30_000), trace=False),
        streams=lambda purpose, batch: stream(1, purpose, batch),
    )
    assert evidence.verdict is Verdict.VIOLATED


def noisy(query, scale=1.0):
    return lambda data, size, *, rng: query(data) + rng.laplace(scale=scale, size=size)


def overflow(dtype):
    return lambda data: float(np.sum(data, dtype=np.int64).astype(dtype))


def silent_at_the_top(data, size, *, rng):
    return max(data) + rng.laplace(size=size) * (max(data) < 1000)


NUMBER = st.integers(0, 1000)
FAULTS = {
    "count in a byte": (noisy(overflow(np.int8)), QueryAnswers(1, largest=1000)),
    "sum of records": (noisy(overflow(np.int16), 1000), Records(50, range(1001))),
    "sum of rows": (
        noisy(overflow(np.int16), 1000),
        Rows(NUMBER, "add/remove", most=100),
    ),
    "sum of replaced rows": (
        noisy(overflow(np.uint16), 1000),
        Rows(NUMBER, "replace", most=100),
    ),
    "number of rows": (
        noisy(lambda rows: float(np.int8(len(rows) % 256 - 128))),
        Rows(NUMBER, "add/remove", most=300),
    ),
    "no noise at the top": (silent_at_the_top, QueryAnswers(3, largest=1000)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_at_limits_and_extremes_are_proposed_first(fault):
    """A fault that one pair of thousands shows, with the calls of the search of 50,000."""
    mechanism, adjacency = FAULTS[fault]
    pairs = adjacency.pairs()
    game = Game(
        mechanism,
        CLAIM,
        pairs,
        default_forecasters(mechanism),
        lambda purpose, n: stream(0, purpose, n),
    )
    spent = searched(game, adjacency, 5_000)
    assert spent <= 5_000
    first = game.tables[len(pairs)].pair
    ones, zeros = (
        mechanism(data, 2_000, rng=np.random.default_rng(0))
        for data in (first.data, first.neighbour)
    )
    gap, spread = (
        abs(np.median(ones) - np.median(zeros)),
        sorted((ones.std(), zeros.std())),
    )
    assert gap > 20 * spread[1] or spread[0] == 0 < spread[1]


def test_pairs_of_a_users_own_relation_are_searched():
    """The given pair shows nothing: the fault is where a user has more than nine."""

    def leaks(data, size, *, rng):
        return data + rng.laplace(size=size) + 50 * (data > 9)

    numbers = st.integers(0, 20)
    adjacency = Neighbours(
        [(0, 1)],
        relation=lambda a, b: abs(a - b) == 1,
        search=numbers.map(lambda x: (x, x + 1)) | st.just((0, 5)),
    )
    game = Game(
        leaks,
        CLAIM,
        adjacency.pairs(),
        default_forecasters(leaks),
        lambda purpose, n: stream(0, purpose, n),
    )
    searched(game, adjacency, 5_000)
    assert (9, 10) in found(game)
    assert (0, 5) not in found(game)


class Noisy:
    """A query with Laplace noise: on a pair it loses the ℓ₁ distance of the two answers."""

    def __init__(self, query):
        self.query = query

    def __call__(self, data, size, *, rng):
        answer = self.query(data)
        return answer + rng.laplace(size=(size, *answer.shape))

    def level(self, pair):
        return float(np.abs(self.query(pair.data) - self.query(pair.neighbour)).sum())


def times(factor, place):
    """Answers of which one is multiplied."""
    return lambda data: data * np.where(np.arange(len(data)) == place, factor, 1.0)


def weighed(rows):
    return np.array(
        sum(r["sum"] * (1.9 if r["city"] == "Rome" and r["old"] else 1) for r in rows)
        / 100
    )


ROW = {
    "sum": st.integers(0, 100),
    "city": st.sampled_from(["Oslo", "Rome", "Riga", "Bern"]),
    "old": st.booleans(),
}
SUBTLE = {
    "one answer of seven": (Noisy(times(1.6, 4)), QueryAnswers(7), 1.6),
    "one bit of eleven": (Noisy(times(1.8, 7)), NeighbourList(nodes=12), 1.8),
    "one record of twelve": (
        Noisy(lambda m: times(1.8, 3)(m[:, 0]).sum() / 5),
        Records(12, range(6)),
        1.6,
    ),
    "a tenth of the domain": (
        Noisy(lambda x: x + 0.7 * np.clip(x - 300, 0, 100)),
        QueryAnswers(1, largest=1000),
        1.7,
    ),
    "opposite changes": (
        Noisy(lambda x: (x[::2] - x[1::2]).sum() / 2),
        QueryAnswers(4, "all"),
        2.0,
    ),
    "a combination in a row": (
        Noisy(weighed),
        Rows(st.fixed_dictionaries(ROW), "add/remove"),
        1.7,
    ),
    "a combination of fields": (
        Noisy(lambda row: weighed([row])),
        Fields(ROW, "one"),
        1.7,
    ),
    "long lists": (
        Noisy(lambda rows: np.array(len(rows) + 0.7 * max(len(rows) - 12, 0))),
        Rows(st.integers(0, 9), "add/remove"),
        1.7,
    ),
}


@pytest.mark.parametrize("fault", SUBTLE)
def test_a_pair_that_loses_less_than_twice_the_claim_is_proposed(fault):
    """With the calls of the search of 50,000; no listed pair loses more than the claim."""
    mechanism, adjacency, level = SUBTLE[fault]
    pairs = adjacency.pairs()
    assert (
        fault in ("opposite changes", "a combination of fields")
        or max(map(mechanism.level, pairs)) <= 1 + 1e-9
    )
    found = []
    for seed in (1, 2):
        game = Game(
            mechanism,
            CLAIM,
            pairs,
            default_forecasters(mechanism),
            lambda purpose, n, seed=seed: stream(seed, purpose, n),
        )
        assert searched(game, adjacency, 5_000) <= 5_000
        found.append(
            max(mechanism.level(table.pair) for table in game.tables[len(pairs) :])
        )
    assert min(found) >= level - 1e-9


def counted_numbers(rows, rng):
    """Noise of a count that is too small, which raises where a row is a text."""
    return sum(row >= 0 for row in rows) + rng.laplace(scale=0.2)


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in (2, 3, 4))]
)
def test_a_finding_is_not_lost_to_candidates_that_cannot_be_played(seed):
    rows = Rows(st.one_of(st.integers(0, 100), st.text(max_size=3)), "add/remove")
    settings = Settings(alpha=0.05, budget=Budget(20_000), root_seed=seed)
    assert (
        run_audit(Audit(counted_numbers, PureDP(1.0), rows), settings).verdict
        is Verdict.VIOLATED
    )


def test_what_comes_after_a_finding_does_not_take_it_away(monkeypatch):
    def fails(*args, **options):
        raise RuntimeError("no more")

    monkeypatch.setattr("auditdp.evidence.game_evidence.confirm_smaller", fails)
    monkeypatch.setattr("auditdp.evidence.sensitivity.sensitivity_evidence", fails)
    result = run_audit(
        Audit(LaplaceMechanism(0.2), PureDP(1.0), Numbers()),
        Settings(0.05, Budget(2_000), 1),
    )
    assert result.verdict is Verdict.VIOLATED
    assert any(
        "the look for a smaller pair ended with RuntimeError" in found.statement
        for found in result.evidence
    )
