"""Evidence of sensitivity: known sensitivities, planted mistakes, the pair that is shown, and what is not a violation."""

import dataclasses
import math
import re
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse

from auditdp.adjacency import Edges, NeighbourList, Neighbours, Pair
from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.claims.statements import PureDP
from auditdp.errors import AdjacencyError, CollectionError, MechanismError
from auditdp.evidence.sensitivity import EXAMPLES, MAX_ENUMERATED, sensitivity_evidence
from auditdp.mechanism.laws import LaplaceLaw
from auditdp.numerics.streams import stream
from auditdp.record.budget import Budget
from auditdp.record.results import Verdict

pytestmark = pytest.mark.dear


@dataclass
class Query:
    """Something that is only asked for what it computes before its noise."""

    function: Any
    sensitivity: Any = 1
    norm: Any = "l1"
    name: str = "Query"

    def query(self, data, rng):
        return self.function(data)


class RandomQuery(Query):
    """The same with randomness of its own."""

    def query(self, data, rng):
        return self.function(data, rng)


@dataclass(frozen=True)
class Replace:
    """Lists of ``n`` records of 0..top; neighbours differ in one record."""

    n: int
    top: int
    listed: bool = False

    @property
    def name(self):
        return f"{self.n} records of 0..{self.top}, one replaced"

    def check(self, pair):
        if sum(a != b for a, b in zip(pair.data, pair.neighbour, strict=True)) != 1:
            raise AdjacencyError(f"not one record replaced: {pair}")

    def pairs(self):
        return [Pair((1,) + (0,) * (self.n - 1), (0,) * self.n)]

    def exhaustive(self):
        if not self.listed:
            return None
        everything = product(range(self.top + 1), repeat=self.n)
        return [
            Pair((*low[:i], value, *low[i + 1 :]), low)
            for low in everything
            for i in range(self.n)
            for value in range(low[i] + 1, self.top + 1)
        ]

    def strategy(self):
        record = st.integers(0, self.top)
        drawn = st.tuples(
            st.lists(record, min_size=self.n, max_size=self.n),
            st.integers(0, self.n - 1),
            record,
        )
        return drawn.filter(lambda d: d[0][d[1]] != d[2]).map(
            lambda d: Pair((*d[0][: d[1]], d[2], *d[0][d[1] + 1 :]), tuple(d[0]))
        )


def look(mechanism, adjacency, *, root=0, **kwargs):
    return sensitivity_evidence(
        mechanism,
        adjacency,
        streams=lambda purpose, batch: stream(root, purpose, batch),
        **kwargs,
    )


def degrees(graph):
    return graph.sum(axis=0)


def top_two(items):
    return np.sort(np.bincount(items, minlength=3))[-2:]


# (what, query, norm, neighbours, sensitivity); every one is reached by some pair.
KNOWN = [
    ("the count of a list changes by the bit", np.sum, "l1", NeighbourList(6), 1),
    (
        "a list itself changes by the bit in every norm",
        np.asarray,
        "linf",
        NeighbourList(4),
        1,
    ),
    ("one edge changes two degrees by one: l1", degrees, "l1", Edges(4), 2),
    ("one edge changes two degrees by one: l2", degrees, "l2", Edges(4), math.sqrt(2)),
    ("one edge changes two degrees by one: linf", degrees, "linf", Edges(4), 1),
    ("one edge changes two degrees by one: l3", degrees, 3, Edges(4), 2 ** (1 / 3)),
    (
        "one edge changes the largest degree by at most one",
        lambda g: degrees(g).max(),
        "l1",
        Edges(4),
        1,
    ),
    (
        "one edge of K4 closes two triangles",
        lambda g: np.trace(g @ g @ g) // 6,
        "l1",
        Edges(4),
        2,
    ),
    (
        "an item moved between the two largest counts changes both",
        top_two,
        "l1",
        Replace(4, 2, listed=True),
        2,
    ),
    (
        "the mean of n records of 0..top changes by top/n",
        np.mean,
        "l2",
        Replace(4, 3, listed=True),
        3 / 4,
    ),
    (
        "a sparse matrix has the norm of its entries",
        sparse.csr_array,
        "l1",
        Edges(4),
        2,
    ),
]


@pytest.mark.parametrize(
    ("query", "norm", "adjacency", "known"),
    [k[1:] for k in KNOWN],
    ids=[k[0] for k in KNOWN],
)
def test_a_known_sensitivity_holds_and_anything_less_is_refuted(
    query, norm, adjacency, known
):
    everything = adjacency.exhaustive()
    held = look(Query(query, known, norm), adjacency)
    assert held.verdict is Verdict.NOT_REFUTED
    assert held.counterexample is None
    assert held.details.largest_difference == pytest.approx(known, rel=1e-14)
    assert held.details.exhaustive is True
    assert f"holds for all {len(everything):,} pairs" in held.statement
    broken = look(Query(query, known * (1 - 1e-6), norm), adjacency)
    assert broken.verdict is Verdict.MISCALIBRATED
    assert broken.details.largest_difference == held.details.largest_difference


def test_the_first_violation_of_a_complete_list_is_shown():
    """A count of bits that is off by one from the third bit on: 3 | 2 is the first pair that shows it."""
    found = look(Query(lambda bits: bits.sum() + (bits.sum() >= 3)), NeighbourList(6))
    assert found.counterexample.pair.startswith("degree 3 | 2:")
    assert found.counterexample.confirmed
    assert found.counterexample.explanation == (
        "Before the noise the first input gives 4 and the second 2; the l1 norm of the difference is 2, and the noise is "
        "calibrated to 1"
    )
    assert (
        "calibrated to l1 sensitivity 1, but two neighbours need 2: the calibration is refuted"
        in found.statement
    )


def test_long_lists_of_pairs_are_searched_instead():
    assert len(Edges(5).exhaustive()) > MAX_ENUMERATED
    found = look(Query(degrees, 2), Edges(5))
    listed = len(Edges(5).pairs())
    assert found.details.scope.startswith(
        f"{listed} pairs and {EXAMPLES} generated ones of"
    )
    assert found.details.exhaustive is False
    assert "No difference above" in found.statement
    assert "holds" not in found.statement


def clipped(values, *, at):
    return sum(min(value, at) for value in values)


@pytest.mark.parametrize("root", range(10))
def test_a_clip_that_was_left_out_is_found_and_shrunk(root):
    """A sum of records of 0..10^6 that should have been clipped at 900,000; one random pair in a hundred shows it.

    The played pair differs by 1. With the clip the sensitivity is 900,000; without it 900,001 is the smallest change that
    exceeds it, from 0 in one record where all others are 0.
    """
    adjacency = Replace(3, 10**6)
    right = look(
        Query(lambda values: clipped(values, at=900_000), 900_000), adjacency, root=root
    )
    assert right.verdict is Verdict.NOT_REFUTED
    assert right.details.pairs_compared == 1 + EXAMPLES
    wrong = look(Query(sum, 900_000), adjacency, root=root)
    assert wrong.verdict is Verdict.MISCALIBRATED
    assert wrong.details.pairs_compared <= 1 + 2 * EXAMPLES
    first, second = (
        sorted(map(int, re.findall(r"\d+", side)))
        for side in wrong.counterexample.pair.split("|")
    )
    assert sorted([first, second]) == [[0, 0, 0], [0, 0, 900_001]]
    assert (
        "is 900001, and the noise is calibrated to 900000"
        in wrong.counterexample.explanation
    )


@pytest.mark.parametrize("root", range(10))
def test_the_search_climbs_to_what_random_pairs_do_not_show(root):
    """The sum of six records of 0..100 times the first: beyond 55,000 lies about one random pair in 10^6.

    The largest difference is 600·100 - 500·0 = 60,000.
    """
    found = look(
        Query(lambda values: sum(values) * values[0], 55_000),
        Replace(6, 100),
        root=root,
    )
    assert found.verdict is Verdict.MISCALIBRATED
    assert found.details.pairs_compared <= 1 + 2 * EXAMPLES


def test_the_same_streams_give_the_same_evidence():
    query = RandomQuery(lambda values, rng: sum(values) * rng.random(), 900_000)
    one, again, other = (
        look(query, Replace(3, 10**6), root=root) for root in (0, 0, 1)
    )
    assert one == again
    assert one != other


def test_played_pairs_alone():
    query = Query(lambda bits: bits.sum() + (bits.sum() == 3))
    pairs = [Pair(np.array([1, 0, 0, 0, 0], np.int8), np.zeros(5, np.int8))]
    found = look(query, NeighbourList(6), play=pairs, examples=0)
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.details.pairs_compared == 1
    assert look(query, NeighbourList(6)).verdict is Verdict.MISCALIBRATED
    assert look(query, NeighbourList(6), examples=0).details.pairs_compared == len(
        NeighbourList(6).pairs()
    )


def test_played_pairs_are_compared_before_the_search():
    """The given pair alone shows the violation: a search of one example does not meet it again."""
    rare = Pair((17, 333_333), (17, 0))
    query = Query(lambda values: 10 * (tuple(values) == rare.data))
    found = look(query, Replace(2, 10**6), play=[rare], examples=1)
    assert found.counterexample.pair == str(rare)


def test_all_pairs_as_given_are_not_all_pairs():
    found = look(Query(float), Neighbours([(0, 1), (1, 2)]))
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.details.exhaustive is False


def test_long_values_are_told_apart_by_their_entries():
    zeros = np.zeros((20, 20), np.int8)
    edge = zeros.copy()
    edge[2, 7] = edge[7, 2] = 1
    for convert in (np.asarray, sparse.csr_matrix, sparse.coo_array):
        found = look(Query(convert), Neighbours([(edge, zeros)]))
        text = "(they differ in 2 of 400 entries: 1 and 0 at [2, 7]; 1 and 0 at [7, 2]); the l1 norm of the difference is 2"
        assert text in found.counterexample.explanation


# Randomness inside the query.


def sampled(scale):
    """Every record is kept with probability one half, and counts ``scale``."""
    return RandomQuery(
        lambda bits, rng: scale * bits[rng.random(bits.size) < 0.5].sum()
    )


def test_randomness_inside_is_the_same_on_both_sides():
    """One bit changes the sum by its scale if it is sampled, and by nothing otherwise; fresh coins would add more."""
    found = look(sampled(1), NeighbourList(6))
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.details.largest_difference == 1
    assert found.details.exhaustive is False
    assert "8 draws of the query's own randomness each" in found.statement
    assert any(
        "equal internal randomness" in assumption for assumption in found.assumptions
    )


def test_an_amplified_sample_is_refuted():
    """Records weighted by 1/rate change the sum by 2, whatever the rate does for privacy elsewhere."""
    found = look(sampled(2), NeighbourList(6))
    assert found.verdict is Verdict.MISCALIBRATED
    assert found.details.largest_difference == 2


def test_spawned_generators_are_randomness_too():
    spawning = RandomQuery(lambda bits, rng: bits.sum() * rng.spawn(1)[0].random())
    assert look(spawning, NeighbourList(4)).details.exhaustive is False
    assert look(Query(np.sum), NeighbourList(4)).details.exhaustive is True


def first_two(bits, rng):
    """The places of two ones chosen among those there are, after a draw for each of them."""
    rng.random(bits.sum())
    return np.sum(rng.permutation(np.flatnonzero(bits))[:2])


def first_two_by_key(bits, rng):
    """The same two ones, by one random key for every possible place."""
    keys = np.where(bits, rng.random(bits.size), 2.0)
    return np.sum(np.argsort(keys)[: min(2, bits.sum())])


def test_inputs_that_draw_unequally_much_are_not_held_against_a_query():
    """A bit more changes the sum of two places of 0..4 by at most 4, if the other place that is chosen stays.

    With one key a place it does: a new place comes in alone, or replaces one. After unequally many draws the choices have
    nothing to do with each other.
    """
    found = look(RandomQuery(first_two, 4), NeighbourList(6))
    assert found.verdict is Verdict.NOT_REFUTED
    assert "a larger one does not count" in found.statement
    assert "holds" not in found.statement
    assert found.details.largest_difference <= 4
    assert (
        "holds for all 80 pairs"
        in look(RandomQuery(first_two_by_key, 4), NeighbourList(6)).statement
    )
    assert (
        look(RandomQuery(first_two_by_key, 3), NeighbourList(6)).verdict
        is Verdict.MISCALIBRATED
    )


def test_a_small_difference_counts_however_much_is_drawn():
    """Equal seeds are a coupling of anything; the k-th one is sampled by the k-th draw."""
    found = look(
        RandomQuery(lambda bits, rng: (rng.random(bits.sum()) < 0.5).sum()),
        NeighbourList(6),
    )
    assert "holds for all 80 pairs" in found.statement


def test_a_query_that_never_couples_is_an_error():
    unequal = RandomQuery(
        lambda bits, rng: 100 * bits.sum() + rng.random(bits.sum()).sum()
    )
    with pytest.raises(
        MechanismError, match="draws unequally much randomness on neighbours"
    ):
        look(unequal, NeighbourList(4))


def test_randomness_from_elsewhere_is_an_error():
    elsewhere = np.random.default_rng(0)
    with pytest.raises(
        MechanismError, match=r"Query\.query: gave .* and .* on one input with one seed"
    ):
        look(Query(lambda bits: elsewhere.random()), NeighbourList(4))


# Rounding.


def test_rounding_is_not_a_violation():
    """0.1 + 0.1 + 0.1 is 0.30000000000000004, and less 0.2 it is more than 0.1."""
    found = look(Query(lambda bits: sum([0.1] * bits.sum()), 0.1), NeighbourList(5))
    assert found.details.largest_difference > 0.1
    assert found.verdict is Verdict.NOT_REFUTED
    assert "above it by rounding alone" in found.statement
    assert "rounding" not in look(Query(np.sum), NeighbourList(5)).statement


@pytest.mark.parametrize(
    ("excess", "verdict"), [(1e-8, Verdict.MISCALIBRATED), (1e-10, Verdict.NOT_REFUTED)]
)
def test_rounding_is_small(excess, verdict):
    assert look(Query(float, 1.0), Neighbours([(1 + excess, 0)])).verdict is verdict


@pytest.mark.parametrize(
    ("convert", "verdict"),
    [
        (int, Verdict.MISCALIBRATED),
        (float, Verdict.NOT_REFUTED),
        (np.float32, Verdict.NOT_REFUTED),
    ],
)
def test_rounding_goes_with_the_values_and_integers_have_none(convert, verdict):
    """Doubles near 10^15 are 0.125 apart, so that 256 of them may hide a 2; integers below 2^53 hide nothing."""
    assert (
        look(Query(convert, 1), Neighbours([(10**15 + 2, 10**15)])).verdict is verdict
    )


def test_integers_beyond_doubles_are_rounded():
    assert (
        look(Query(lambda x: x, 1), Neighbours([(2**60 + 1024, 2**60)])).verdict
        is Verdict.NOT_REFUTED
    )
    assert (
        look(Query(lambda x: x, 1), Neighbours([(2**62, 2**60)])).verdict
        is Verdict.MISCALIBRATED
    )


def test_unsigned_and_boolean_values_do_not_wrap():
    assert (
        look(
            Query(lambda x: np.uint8(x)), Neighbours([(0, 1)])
        ).details.largest_difference
        == 1
    )
    assert (
        look(
            Query(lambda x: np.array([x > 0, x > 1])), Neighbours([(0, 2)])
        ).details.largest_difference
        == 2
    )


# What is refused.


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (
            lambda bits: np.zeros(bits.sum()),
            r"returned shape \(1,\) on \[1,0,0\] and \(0,\) on its neighbour \[0,0,0\]",
        ),
        (lambda bits: math.nan, "returned NaN or an infinity on input"),
        (
            lambda bits: [1.0, math.inf * bits.sum() if bits.any() else 0.0],
            r"infinity on input \[1,0,0\]",
        ),
        (
            lambda bits: sparse.csr_matrix([[math.nan, 0]]),
            "returned NaN or an infinity",
        ),
        (lambda bits: {"count": 3}, "returned dtype object .* encode it as numbers"),
        (lambda bits: 1 / bits.sum(), "NaN or an infinity"),
        (
            lambda bits: 1 // int(bits.sum()),
            r"Query\.query raised ZeroDivisionError: .*on input \[0,0,0\]",
        ),
        (lambda bits: [[1], [1, 2]], r"Query\.query raised ValueError"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_query_that_does_not_give_numbers_is_refused(function, shown):
    with pytest.raises(MechanismError, match=shown):
        look(Query(function), NeighbourList(4))


def test_pairs_that_are_not_neighbours_are_refused():
    far = Pair(np.ones(3, np.int8), np.zeros(3, np.int8))
    with pytest.raises(AdjacencyError, match="differ in 3 bits"):
        look(Query(np.sum), NeighbourList(4), play=[far], examples=0)
    wrong = dataclasses.make_dataclass("Wrong", [], bases=(Replace,), frozen=True)
    wrong.strategy = lambda self: st.just(Pair((0, 0), (1, 1)))
    with pytest.raises(AdjacencyError, match="not one record"):
        look(Query(sum), wrong(2, 5))


def test_no_pairs_at_all_are_refused():
    with pytest.raises(AdjacencyError, match="lists no pairs"):
        look(Query(np.sum), NeighbourList(4), play=[], examples=0)


# In an audit.


@dataclass(frozen=True)
class Counting:
    """The sum of the bits times ``weight``, plus Lap(sensitivity/epsilon): epsilon·weight/sensitivity-DP exactly."""

    epsilon: float = 1.0
    weight: float = 1.0
    sensitivity: float = 1.0
    norm: str = "l1"

    @property
    def name(self):
        return f"Counting({self.epsilon:g}, {self.weight:g})"

    def query(self, data, rng):
        return self.weight * data.sum()

    def __call__(self, data, size, *, rng):
        return self.query(data, rng) + rng.laplace(
            scale=self.sensitivity / self.epsilon, size=size
        )


class Stated(Counting):
    """The same with its law stated, as if there were no weight."""

    def distribution(self, data):
        return LaplaceLaw(
            np.array([float(data.sum())]), np.array([self.sensitivity / self.epsilon])
        )


def judge(mechanism, **kwargs):
    audit = Audit(mechanism, PureDP(1.0), NeighbourList(4), **kwargs)
    return run_audit(
        audit, Settings(alpha=1e-6, budget=Budget(3000), root_seed=0, key="test")
    )


def test_it_is_gathered_where_it_applies_and_certifies_nothing():
    result = judge(Counting())
    assert [e.kind for e in result.evidence] == ["game", "sensitivity"]
    assert result.evidence[1].details.exhaustive is True
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.summary == result.evidence[0].statement
    assert [e.kind for e in judge(Stated()).evidence] == [
        "exact",
        "game",
        "sensitivity",
    ]
    assert judge(Stated()).verdict is Verdict.CERTIFIED


def test_it_can_be_named():
    result = judge(Counting(weight=1.25), evidence=["sensitivity"])
    assert [e.kind for e in result.evidence] == ["sensitivity"]
    assert result.verdict is Verdict.MISCALIBRATED
    assert result.counterexample.explanation.endswith(
        "is 1.25, and the noise is calibrated to 1"
    )
    assert (result.calls, result.epsilon_lower) == (0, None)
    with pytest.raises(CollectionError, match="did you mean 'sensitivity'"):
        judge(Counting(), evidence=["sensitivty"])
    with pytest.raises(CollectionError, match="states no law or query"):
        judge(lambda data, size, *, rng: rng.random(size), evidence=["sensitivity"])


def test_a_control_that_is_broken_in_its_noise_is_left_to_other_evidence():
    result = judge(Counting(), controls=[Counting(epsilon=3.0), Counting(weight=3.0)])
    assert result.surviving_controls == []
    assert result.verdict is Verdict.NOT_REFUTED


def test_alone_it_has_to_refute_the_controls_itself():
    alone = {"evidence": ["sensitivity"]}
    assert (
        judge(Counting(), controls=[Counting(weight=1.01)], **alone).verdict
        is Verdict.NOT_REFUTED
    )
    blind = judge(Counting(), controls=[Counting(epsilon=3.0)], **alone)
    assert blind.verdict is Verdict.INCONCLUSIVE
    assert blind.surviving_controls == ["Counting(3, 1)"]


def test_an_audit_of_played_pairs_compares_those():
    assert judge(Counting(), exhaustive=False).evidence[
        1
    ].details.pairs_compared == len(NeighbourList(4).pairs())
