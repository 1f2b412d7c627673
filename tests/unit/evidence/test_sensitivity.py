"""Evidence of sensitivity: known ones, planted mistakes, searches, and rounding."""

import math
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse

from auditdp import Edges, LaplaceLaw, NeighbourList, Neighbours, Pair, PureDP, Records
from auditdp.errors import AdjacencyError, CollectionError, MechanismError
from auditdp.evidence.sensitivity import EXAMPLES, MAX_ENUMERATED, sensitivity_evidence
from auditdp.numerics.streams import stream
from tests.unit.evidence.toys import (
    CERTIFIED,
    INCONCLUSIVE,
    MISCALIBRATED,
    NOT_REFUTED,
    audited,
)


@dataclass
class Query:
    """A mechanism of which only the value before its noise is used."""

    function: Any
    sensitivity: Any = 1
    norm: Any = "l1"
    name: str = "Query"

    def query(self, data, rng):
        return self.function(data)


class RandomQuery(Query):
    """A query with randomness of its own."""

    def query(self, data, rng):
        return self.function(data, rng)


@dataclass(frozen=True)
class Replace:
    """Tuples of ``n`` records of 0..top that differ in one record."""

    n: int
    top: int
    name: str = "one record replaced"

    def check(self, pair):
        if sum(a != b for a, b in zip(pair.data, pair.neighbour, strict=True)) != 1:
            raise AdjacencyError(f"not one record replaced: {pair}")

    def pairs(self):
        zeros = (0,) * self.n
        return [Pair((1, *zeros[1:]), zeros)]

    def exhaustive(self):
        return None

    def strategy(self):
        record = st.integers(0, self.top)

        @st.composite
        def pairs(draw):
            data = draw(st.tuples(*[record] * self.n))
            place = draw(st.integers(0, self.n - 1))
            other = draw(record.filter(lambda value: value != data[place]))
            return Pair((*data[:place], other, *data[place + 1 :]), data)

        return pairs()


def found(function, adjacency, sensitivity=1, *, root=0, kind=Query, norm="l1", **more):
    return sensitivity_evidence(
        kind(function, sensitivity, norm),
        adjacency,
        streams=partial(stream, root),
        **more,
    )


def degrees(graph):
    return graph.sum(axis=0)


BITS = NeighbourList(6)
FOUR = Edges(4)
ITEMS = Records(4, (0.0, 1.0, 2.0))
MILLION = Replace(3, 10**6)


@pytest.mark.parametrize(
    ("query", "norm", "adjacency", "known"),
    [
        (np.sum, "l1", BITS, 1),
        (np.asarray, "linf", NeighbourList(4), 1),
        (degrees, "l1", FOUR, 2),
        (degrees, "l2", FOUR, math.sqrt(2)),
        (degrees, "linf", FOUR, 1),
        (degrees, 3, FOUR, 2 ** (1 / 3)),
        (np.mean, "l2", ITEMS, 2 / 4),
        (sparse.csr_array, "l1", FOUR, 2),
    ],
)
def test_a_known_sensitivity_holds_and_less_is_refuted(query, norm, adjacency, known):
    held = found(query, adjacency, known, norm=norm)
    assert held.verdict is NOT_REFUTED
    assert held.counterexample is None
    assert held.details.largest_difference == pytest.approx(known, rel=1e-14)
    assert held.details.exhaustive is True
    assert f"all {len(adjacency.exhaustive()):,} pairs" in held.statement

    broken = found(query, adjacency, known * (1 - 1e-6), norm=norm)
    assert broken.verdict is MISCALIBRATED


def test_the_first_violation_of_a_complete_list_is_the_counterexample():
    """A count of bits that is off by one from the third bit on.

    The first pair that shows it is 3 | 2.
    """
    broken = found(lambda bits: bits.sum() + (bits.sum() >= 3), BITS)
    assert broken.counterexample.pair.startswith("degree 3 | 2:")
    assert broken.counterexample.confirmed

    explanation = broken.counterexample.explanation
    assert "the first input gives 4 and the second 2" in explanation
    assert "norm of the difference is 2" in explanation
    assert "to l1 sensitivity 1, but two neighbours need 2" in broken.statement


def test_long_values_are_shown_by_their_different_entries():
    zeros = np.zeros((20, 20), np.int8)
    edge = zeros.copy()
    edge[2, 7] = edge[7, 2] = 1
    for convert in (np.asarray, sparse.csr_matrix, sparse.coo_array):
        broken = found(convert, Neighbours([(edge, zeros)])).counterexample
        differ = "differ in 2 of 400 entries: 1 and 0 at [2, 7]; 1 and 0 at [7, 2]"
        assert differ in broken.explanation


# Searches.


def test_long_lists_of_pairs_are_searched():
    five = Edges(5)
    assert len(five.exhaustive()) > MAX_ENUMERATED

    held = found(degrees, five, 2)
    scope = f"{len(five.pairs())} pairs and {EXAMPLES} generated ones of"
    assert held.details.scope.startswith(scope)
    assert held.details.exhaustive is False
    assert "No difference above" in held.statement


@pytest.mark.dear
@pytest.mark.parametrize("root", range(10))
def test_a_clip_that_was_left_out_is_found_and_shrunk(root):
    """A sum of records that should have been clipped at 900,000.

    One random pair in a hundred shows it.

    The listed pair differs by 1. Without the clip 900,001 is the smallest change that
    exceeds the sensitivity, in one record where all others are 0.
    """

    def clipped(values):
        return sum(min(value, 900_000) for value in values)

    right = found(clipped, MILLION, 900_000, root=root)
    assert right.verdict is NOT_REFUTED
    assert right.details.pairs_compared == 1 + EXAMPLES

    wrong = found(sum, MILLION, 900_000, root=root)
    assert wrong.verdict is MISCALIBRATED
    assert wrong.details.pairs_compared <= 1 + 2 * EXAMPLES

    numbers = map(int, re.findall(r"\d+", wrong.counterexample.pair))
    assert sorted(numbers) == [0] * 5 + [900_001]


@pytest.mark.dear
@pytest.mark.parametrize("root", range(10))
def test_the_search_climbs_to_pairs_that_are_rare(root):
    """The sum of six records of 0..100 times the first.

    One random pair in 10^6 is beyond 55,000.

    The largest difference is 600·100 - 500·0 = 60,000.
    """
    query = Replace(6, 100)
    broken = found(lambda x: sum(x) * x[0], query, 55_000, root=root)
    assert broken.verdict is MISCALIBRATED
    assert broken.details.pairs_compared <= 1 + 2 * EXAMPLES


def test_given_pairs_are_compared_alone_or_before_the_search():
    played = [Pair(np.array([1, 0, 0, 0, 0], np.int8), np.zeros(5, np.int8))]

    def off_at_3(bits):
        return bits.sum() + (bits.sum() == 3)

    alone = found(off_at_3, BITS, play=played, examples=0)
    assert alone.verdict is NOT_REFUTED
    assert alone.details.pairs_compared == 1

    listed = found(off_at_3, BITS, examples=0)
    assert listed.details.pairs_compared == len(BITS.pairs())
    assert found(off_at_3, BITS).verdict is MISCALIBRATED

    # The given pair alone shows the violation: a search of one example does not find
    # it.
    rare = Pair((17, 333_333), (17, 0))
    broken = found(
        lambda x: 10 * (x == rare.data), Replace(2, 10**6), play=[rare], examples=1
    )
    assert broken.counterexample.pair == str(rare)


# Randomness inside the query.


def sampled(scale):
    """Every record is kept with probability one half, and counts ``scale``."""
    return lambda bits, rng: scale * bits[rng.random(bits.size) < 0.5].sum()


def spawning(bits, rng):
    return bits.sum() * rng.spawn(1)[0].random()


def first_two(bits, rng):
    """The places of two ones, chosen after a draw for each one.

    The choices are not coupled.
    """
    rng.random(bits.sum())
    return np.sum(rng.permutation(np.flatnonzero(bits))[:2])


@pytest.mark.parametrize(
    ("query", "sensitivity", "verdict", "text"),
    [
        (sampled(1), 1, NOT_REFUTED, "8 draws of the query's own randomness each"),
        (sampled(2), 1, MISCALIBRATED, "need 2"),
        (spawning, 1, NOT_REFUTED, "8 draws"),
        (first_two, 4, NOT_REFUTED, "a larger one does not count"),
    ],
)
def test_equal_randomness_is_used_on_both_sides(query, sensitivity, verdict, text):
    """With the same draws one bit changes these queries by ``sensitivity`` at most."""
    compared = found(query, BITS, sensitivity, kind=RandomQuery)
    assert compared.verdict is verdict
    assert text in compared.statement
    assert compared.details.exhaustive is False
    assert "equal internal randomness" in " ".join(compared.assumptions)
    if verdict is NOT_REFUTED:
        assert compared.details.largest_difference <= sensitivity


# Rounding.


@pytest.mark.parametrize(
    ("convert", "data", "neighbour", "verdict"),
    [
        (float, 1 + 1e-8, 0, MISCALIBRATED),
        # Doubles near 10^15 are 0.125 apart; integers below 2^53 are exact.
        (int, 10**15 + 2, 10**15, MISCALIBRATED),
        (float, 10**15 + 2, 10**15, NOT_REFUTED),
        (int, 2**60 + 1024, 2**60, NOT_REFUTED),
        # Unsigned and boolean values do not wrap.
        (np.uint8, 0, 1, NOT_REFUTED),
        (lambda x: np.array([x > 0, x > 1]), 0, 2, MISCALIBRATED),
    ],
)
def test_rounding_of_values(convert, data, neighbour, verdict):
    assert found(convert, Neighbours([(data, neighbour)])).verdict is verdict


def test_a_difference_by_rounding_alone_is_named():
    """0.1 + 0.1 + 0.1 is 0.30000000000000004, and less 0.2 it is more than 0.1."""
    held = found(lambda bits: sum([0.1] * bits.sum()), BITS, 0.1)
    assert held.details.largest_difference > 0.1
    assert held.verdict is NOT_REFUTED
    assert "above it by rounding alone" in held.statement
    assert "rounding" not in found(np.sum, BITS).statement


# Errors.

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda bits: np.zeros(bits.sum()), r"shape \(1,\) on \[1,0,0\] and \(0,\) on"),
        (lambda bits: math.nan, "returned NaN or an infinity on input"),
        (lambda bits: [1.0, math.inf if bits.any() else 0.0], r"on input \[1,0,0\]"),
        (lambda bits: {"count": 3}, "returned dtype object .* encode it as numbers"),
        (
            lambda bits: 1 // int(bits.sum()),
            r"Query\.query raised ZeroDivisionError on input \[0,0,0\]: integer",
        ),
        (lambda bits: [[1], [1, 2]], r"Query\.query raised ValueError"),
        (lambda bits: RNG.random(), r"gave .* and .* on one input with one seed"),
    ],
)
def test_a_query_that_returns_no_numbers_is_an_error(function, message):
    with pytest.raises(MechanismError, match=message):
        found(function, NeighbourList(4))


def test_a_query_whose_draws_never_agree_is_an_error():
    def unequal(bits, rng):
        return 100 * bits.sum() + rng.random(bits.sum()).sum()

    with pytest.raises(
        MechanismError, match="draws another amount of randomness on the neighbour"
    ):
        found(unequal, NeighbourList(4), kind=RandomQuery)


FAR = [Pair(np.ones(5, np.int8), np.zeros(5, np.int8))]


class Wrong(Replace):
    def strategy(self):
        return st.just(Pair((0, 0), (1, 1)))


@pytest.mark.parametrize(
    ("adjacency", "options", "message"),
    [
        (BITS, {"play": FAR, "examples": 0}, "differ in 5 bits"),
        (BITS, {"play": [], "examples": 0}, "lists no pairs"),
        (Wrong(2, 5), {}, "not one record"),
    ],
)
def test_pairs_that_are_not_neighbours_are_an_error(adjacency, options, message):
    with pytest.raises(AdjacencyError, match=message):
        found(sum, adjacency, **options)


# In an audit.


@dataclass(frozen=True)
class Counting:
    """The sum of the bits times ``weight``, plus Lap(1/epsilon).

    It is exactly epsilon·weight-DP.
    """

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
        return self.query(data, rng) + rng.laplace(scale=1 / self.epsilon, size=size)


class CountingLaw(Counting):
    def distribution(self, data):
        return LaplaceLaw(np.array([float(data.sum())]), np.ones(1))


def result(mechanism, **options):
    return audited(mechanism, PureDP(1.0), NeighbourList(4), budget=1_000, **options)


def kinds(judged):
    return [each.kind for each in judged.evidence]


def test_it_is_gathered_for_a_query_and_certifies_nothing():
    counted = result(Counting())
    assert kinds(counted) == ["game", "sensitivity"]
    assert counted.evidence[1].details.exhaustive is True
    assert counted.verdict is NOT_REFUTED
    assert counted.summary == counted.evidence[0].statement

    stated = result(CountingLaw())
    assert kinds(stated) == ["exact", "game", "sensitivity"]
    assert stated.verdict is CERTIFIED

    played = result(Counting(), exhaustive=False).evidence[1]
    assert played.details.pairs_compared == len(NeighbourList(4).pairs())


def test_it_is_gathered_alone_by_its_name():
    broken = result(Counting(weight=1.25), evidence=["sensitivity"])
    assert kinds(broken) == ["sensitivity"]
    assert broken.verdict is MISCALIBRATED
    assert (broken.calls, broken.epsilon_lower) == (0, None)

    with pytest.raises(CollectionError, match="did you mean 'sensitivity'"):
        result(Counting(), evidence=["sensitivty"])
    with pytest.raises(CollectionError, match="states no law or query"):
        result(lambda data, size, *, rng: rng.random(size), evidence=["sensitivity"])


def test_a_control_with_too_little_noise_is_left_to_other_evidence():
    controls = [Counting(epsilon=3.0), Counting(weight=3.0)]
    assert result(Counting(), controls=controls).verdict is NOT_REFUTED

    alone = {"evidence": ["sensitivity"]}
    heavier = result(Counting(), controls=[Counting(weight=1.01)], **alone)
    assert heavier.verdict is NOT_REFUTED

    louder = result(Counting(), controls=[Counting(epsilon=3.0)], **alone)
    assert louder.verdict is INCONCLUSIVE
    assert louder.surviving_controls == ["Counting(3, 1)"]
