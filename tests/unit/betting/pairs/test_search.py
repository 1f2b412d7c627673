"""Pairs that nobody listed: proposed ones, and the smallest that shows a violation."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import strategies as st

from auditdp import (
    AnyValues,
    Audit,
    Box,
    Fields,
    NeighbourList,
    Neighbours,
    Pair,
    QueryAnswers,
    Records,
    Rows,
    Verdict,
)
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.pairs.search import (
    FEWEST_CALLS,
    MOST_PROPOSED,
    can_search,
    propose,
    smaller,
)
from auditdp.errors import AdjacencyError
from auditdp.mechanism.calls.allowance import allowing
from auditdp.record.budget import Budget
from auditdp.testing import LaplaceMechanism
from tests.unit.betting.toys import CLAIM, Leaky, StatedLeaky, new_game, play

pytestmark = pytest.mark.dear

LEAKING = 20
LISTED = Pair(0, 1)
FOUND = st.integers(0, 62).map(lambda k: (k + 1, k)) | st.just((0, 5))


def numbers(found=FOUND):
    """Return numbers that differ by one, of which 0 and 1 alone are listed."""
    return Neighbours([LISTED], relation=lambda a, b: abs(a - b) == 1, search=found)


def sometimes(leak=3.0, kind=Leaky):
    return kind(leak, lambda data: data >= LEAKING)


def searched(mechanism, adjacency, calls, seed=0):
    """Return a game with the found pairs, and the runs of the search."""
    game = new_game(mechanism, pairs=adjacency.pairs(), seed=seed)
    with allowing() as allowed:
        propose(game, adjacency, calls)
    return game, allowed.made


def found_by(game):
    return [(table.pair.data, table.pair.neighbour) for table in game.tables]


@pytest.mark.parametrize("kind", [Leaky, StatedLeaky])
def test_leaking_pairs_are_proposed(kind):
    mechanism = sometimes(kind=kind)
    game = new_game(mechanism, pairs=[LISTED])
    before = mechanism.calls
    with allowing() as allowed:
        propose(game, numbers(), 7_000)
    assert 0 < allowed.made == mechanism.calls - before <= 7_000
    pairs = found_by(game)
    assert 1 < len(pairs) <= 1 + MOST_PROPOSED
    assert all(abs(a - b) == 1 for a, b in pairs)
    assert len(set(map(frozenset, pairs))) == len(pairs), "in one direction each"
    assert sum(min(pair) >= LEAKING for pair in pairs) >= len(pairs) - 2
    assert {table.pair.name for table in game.tables[1:]} == {"found"}


def test_the_seed_determines_proposals_which_are_no_evidence():
    (one, spent), (same, again) = (
        searched(sometimes(), numbers(), 5_000) for _ in range(2)
    )
    assert spent == again
    assert found_by(one) == found_by(same)
    assert one.wealth.calls == 0
    assert one.path == [(0, 0.0)]


def laplace(data, size, *, rng):
    return data + rng.laplace(size=(size, 1))


@pytest.mark.parametrize(
    ("mechanism", "adjacency", "calls", "searches"),
    [
        (laplace, Box(0.0, 1.0), 1_600, True),
        # More listed pairs than the calls suffice for.
        (laplace, AnyValues(tuple(range(8))), FEWEST_CALLS, True),
        (sometimes(), numbers(), FEWEST_CALLS - 1, False),
    ],
)
def test_few_calls_are_no_error(mechanism, adjacency, calls, searches):
    game, spent = searched(mechanism, adjacency, calls)
    assert (spent > 0) == searches
    assert searches or len(game.tables) == 1


@pytest.mark.parametrize(
    ("adjacency", "searches"),
    [
        (numbers(), True),
        (NeighbourList(nodes=30), True),
        (Neighbours([(0, 1)]), False),
        (AnyValues((0, 1)), False),  # both of its pairs are listed
    ],
)
def test_an_adjacency_with_unlisted_pairs_can_be_searched(adjacency, searches):
    assert can_search(adjacency) == searches


def refuted(mechanism):
    game = new_game(mechanism, pairs=[Pair(61, 60)])
    game.play(5_000, alpha=0.05, stop_when_refuted=True)
    assert game.refuted_at
    return game


def test_the_smallest_pair_with_a_violation_is_found_and_played():
    game = refuted(sometimes(leak=6.0))
    with allowing() as allowed:
        small = smaller(game, numbers(), 0.05)
    assert allowed.made > 0
    assert small.refuted_at is not None
    (table,) = small.tables
    assert LEAKING <= table.pair.data < 61


def test_a_pair_that_is_smallest_already_stays():
    assert smaller(refuted(sometimes()), numbers(st.just((61, 60))), 0.05) is None


@pytest.mark.parametrize("runs", [100, 10_000])
def test_the_search_for_a_smaller_pair_makes_only_the_allowed_runs(runs):
    mechanism = sometimes()
    game = refuted(mechanism)
    before = mechanism.calls
    with allowing(runs):
        smaller(game, numbers(), 0.05)
    assert mechanism.calls - before <= runs


def test_an_unlisted_violation_is_found_and_reported_by_its_smallest_pair():
    mechanism = sometimes(leak=6.0)
    found = play(mechanism, pairs=numbers(), calls=12_000, alpha=1e-3, trace=False)
    assert found.verdict is Verdict.VIOLATED
    assert found.details.search_calls > 0
    assert 1.0 <= found.epsilon_lower <= 6.0
    # Some calls were made in processes of their own.
    assert mechanism.calls <= found.calls <= 12_000
    smallest = found.details.smallest
    assert found.counterexample.pair == smallest.pair
    assert smallest.confirmed


@pytest.mark.parametrize("options", [{"play": [LISTED]}, {"search": False}])
def test_a_search_can_be_switched_off(options):
    found = play(sometimes(), pairs=numbers(), alpha=1e-3, trace=False, **options)
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.details.search_calls == 0
    assert [pair.pair for pair in found.details.pairs] == [str(LISTED)]


def test_found_pairs_that_are_not_adjacent_are_an_error():
    """Only a relation that a user gives leaves them out."""
    given = numbers()
    own = SimpleNamespace(
        name="own",
        check=given.check,
        pairs=given.pairs,
        exhaustive=given.exhaustive,
        strategy=lambda: st.just(Pair(0, 5)),
    )
    with pytest.raises(AdjacencyError, match="not neighbours"):
        searched(sometimes(), own, 5_000)


def noisy(query, scale=1.0):
    return lambda data, size, *, rng: query(data) + rng.laplace(scale=scale, size=size)


def overflow(dtype):
    return lambda data: float(np.sum(data, dtype=np.int64).astype(dtype))


def silent_at_the_top(data, size, *, rng):
    return max(data) + rng.laplace(size=size) * (max(data) < 1000)


def rows_of(relation, most=100):
    return Rows(st.integers(0, 1000), relation, most=most)


FAULTS = {
    "count in a byte": (noisy(overflow(np.int8)), QueryAnswers(1, largest=1000)),
    "sum of records": (noisy(overflow(np.int16), 1000), Records(50, range(1001))),
    "sum of replaced rows": (noisy(overflow(np.uint16), 1000), rows_of("replace")),
    "number of rows": (
        noisy(lambda rows: float(np.int8(len(rows) % 256 - 128))),
        rows_of("add/remove", most=300),
    ),
    "no noise at the top": (silent_at_the_top, QueryAnswers(3, largest=1000)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_at_limits_and_extremes_are_proposed_first(fault):
    """One pair of thousands shows the fault, with a search of 5,000 calls."""
    mechanism, adjacency = FAULTS[fault]
    game, spent = searched(mechanism, adjacency, 5_000)
    assert spent <= 5_000
    first = game.tables[len(adjacency.pairs())].pair
    rng = np.random.default_rng(0)
    ones, zeros = (
        mechanism(data, 2_000, rng=rng) for data in (first.data, first.neighbour)
    )
    gap = abs(np.median(ones) - np.median(zeros))
    small, large = sorted((ones.std(), zeros.std()))
    assert gap > 20 * large or small == 0 < large


class Noisy:
    """A query with Laplace noise: a pair loses the ℓ₁ distance of its answers."""

    def __init__(self, query):
        self.query = query

    def __call__(self, data, size, *, rng):
        answer = self.query(data)
        return answer + rng.laplace(size=(size, *answer.shape))

    def level(self, pair):
        return float(np.abs(self.query(pair.data) - self.query(pair.neighbour)).sum())


def times(factor, place):
    """Return a query of answers of which one is multiplied."""
    return lambda data: data * np.where(np.arange(len(data)) == place, factor, 1.0)


def weighed(rows):
    total = 0.0
    for row in rows:
        heavy = row["city"] == "Rome" and row["old"]
        total += row["sum"] * (1.9 if heavy else 1) / 100
    return np.array(total)


ROW = {
    "sum": st.integers(0, 100),
    "city": st.sampled_from(["Oslo", "Rome", "Riga", "Bern"]),
    "old": st.booleans(),
}
SUBTLE = {
    "one answer of seven": (times(1.6, 4), QueryAnswers(7), 1.6),
    "one bit of eleven": (times(1.8, 7), NeighbourList(nodes=12), 1.8),
    "a tenth of the domain": (
        lambda x: x + 0.7 * np.clip(x - 300, 0, 100),
        QueryAnswers(1, largest=1000),
        1.7,
    ),
    "opposite changes": (
        lambda x: (x[::2] - x[1::2]).sum() / 2,
        QueryAnswers(4, "all"),
        2.0,
    ),
    "a combination in a row": (
        weighed,
        Rows(st.fixed_dictionaries(ROW), "add/remove"),
        1.7,
    ),
    "a combination of fields": (lambda row: weighed([row]), Fields(ROW, "one"), 1.7),
    "long lists": (
        lambda rows: np.array(len(rows) + 0.7 * max(len(rows) - 12, 0)),
        Rows(st.integers(0, 9), "add/remove"),
        1.7,
    ),
}
"""A query, the adjacency, and the largest loss of a pair that has to be proposed."""


@pytest.mark.parametrize("fault", SUBTLE)
def test_a_pair_that_loses_less_than_twice_the_claim_is_proposed(fault):
    """With a search of 5,000 calls; no listed pair loses more than the claim."""
    query, adjacency, level = SUBTLE[fault]
    mechanism = Noisy(query)
    listed = adjacency.pairs()
    if fault not in ("opposite changes", "a combination of fields"):
        assert max(map(mechanism.level, listed)) <= 1 + 1e-9
    for seed in (1, 2):
        game, spent = searched(mechanism, adjacency, 5_000, seed)
        assert spent <= 5_000
        found = [mechanism.level(table.pair) for table in game.tables[len(listed) :]]
        assert max(found) >= level - 1e-9


def audited(mechanism, adjacency, runs):
    audit = Audit(mechanism, CLAIM, adjacency)
    return run_audit(audit, Settings(0.05, Budget(runs), 1))


def test_a_finding_is_not_lost_to_candidates_that_cannot_be_played():
    """The mechanism raises if a row is a text."""

    def counted(rows, rng):
        return sum(row >= 0 for row in rows) + rng.laplace(scale=0.2)

    rows = Rows(st.integers(0, 100) | st.text(max_size=3), "add/remove")
    assert audited(counted, rows, 8_000).verdict is Verdict.VIOLATED


def test_a_failure_after_a_finding_does_not_take_it_away(monkeypatch):
    def fails(*args, **options):
        raise RuntimeError("no more")

    monkeypatch.setattr("auditdp.evidence.game_evidence.confirm_smaller", fails)
    monkeypatch.setattr("auditdp.evidence.sensitivity.sensitivity_evidence", fails)
    result = audited(LaplaceMechanism(0.2), numbers(), 2_000)
    assert result.verdict is Verdict.VIOLATED
    text = "smaller pair ended with RuntimeError"
    assert any(text in found.statement for found in result.evidence)
