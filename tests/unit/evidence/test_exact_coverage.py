"""Covers of exact evidence: envelopes, searches, domains, orders of nodes.

Pairs that contradict them are found.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from auditdp import AnyValues, ApproxDP, Box, Edges, Envelope, FiniteLaw, PureDP
from auditdp.errors import AdjacencyError
from auditdp.evidence.exact import has_exact_law
from tests.unit.evidence.toys import (
    BIT,
    CERTIFIED,
    NOT_REFUTED,
    VIOLATED,
    exact,
)

LOG3 = math.log(3)
HALF = Fraction(1, 2)
QUARTER = Fraction(1, 4)

# Envelopes.


class Coins:
    """Answers each of d bits with probability 3/4 for x = 1 and 1/4 for x = -1.

    The loss is d ln 3.

    The envelope states ``uses`` coordinates and the probability ``least``.
    """

    name = "coins"

    def __init__(self, dimension=1, uses=1, least=QUARTER):
        self.dimension, self.uses, self.least = dimension, uses, least

    def probability(self, x):
        return HALF + Fraction(float(x)) / 4

    def distribution(self, data):
        ps = [self.probability(x) for x in data]
        outputs = list(itertools.product((0, 1), repeat=len(ps)))
        chances = [
            math.prod(p if y else 1 - p for p, y in zip(ps, ys, strict=True))
            for ys in outputs
        ]
        return FiniteLaw(np.array(outputs), chances)

    def envelope(self):
        high = np.ones(self.dimension)
        ends = [(-high, high), (high, -high)]
        probabilities = [self.least] * 2, [Fraction(3, 4)] * 2
        return Envelope([0, 1], *probabilities, ends, self.uses)


class Alone(Coins):
    """An envelope without a law."""

    distribution = None


class Bulge(Coins):
    """Exceeds its envelope between the ends."""

    def probability(self, x):
        return Fraction(9, 10) if abs(x) < 0.3 else super().probability(x)


def boxed(mechanism, claim):
    return exact(mechanism, claim, Box(-1, 1, mechanism.dimension))


@pytest.mark.parametrize(
    ("mechanism", "claim", "verdict", "bounds"),
    [
        (Coins(), PureDP(LOG3 * (1 + 1e-15)), CERTIFIED, (LOG3, LOG3)),
        (Coins(5, 5), PureDP(5.5), CERTIFIED, (5 * LOG3, 5 * LOG3)),
        # The law loses more than the envelope states.
        (Coins(5, 1), PureDP(1.2), VIOLATED, (5 * LOG3, None)),
        (Bulge(), PureDP(1.2), VIOLATED, None),
        # No pair attains the envelope.
        (Coins(1, 2), PureDP(1.2), NOT_REFUTED, (LOG3, 2 * LOG3)),
        (Coins(1, 2), PureDP(2.5), CERTIFIED, (LOG3, 2 * LOG3)),
        # No law contradicts the envelope.
        (Alone(2, 2), PureDP(1.0), VIOLATED, (2 * LOG3, 2 * LOG3)),
        (Alone(2, 2), ApproxDP(2.5, 1e-9), CERTIFIED, None),
        (Alone(2, 2), ApproxDP(2.0, 1e-9), NOT_REFUTED, None),
    ],
)
def test_envelopes(mechanism, claim, verdict, bounds):
    found = boxed(mechanism, claim)
    assert found.verdict is verdict
    if bounds is not None:
        lower, upper = bounds
        assert found.epsilon_lower == pytest.approx(lower, rel=1e-14)
        assert found.epsilon_upper == (upper and pytest.approx(upper, rel=1e-14))


@pytest.mark.parametrize(
    ("mechanism", "claim", "text"),
    [
        (Coins(), PureDP(1.1), "and that is searched, not proved, for all others"),
        (Alone(), PureDP(1.1), "no law was there to compare"),
        (Coins(5, 1), PureDP(6.0), "allows, 1.09861228867: correct the envelope"),
        (Coins(1, 2), PureDP(1.2), "no compared pair attains"),
    ],
)
def test_statements_about_envelopes(mechanism, claim, text):
    found = boxed(mechanism, claim)
    assert text in " ".join([found.statement, *found.assumptions])


def test_an_envelope_refutes_by_its_two_inputs():
    law = boxed(Coins(2, 2), PureDP(1.0)).counterexample
    envelope = boxed(Alone(2, 2), PureDP(1.0)).counterexample
    assert law.pair == envelope.pair == "[-1.,-1.] | [1.,1.]"
    assert "a factor of 9 = e^2.197" in law.explanation
    assert "2 coordinates lose as much each" in envelope.explanation


def test_an_envelope_is_of_one_domain():
    with pytest.raises(AdjacencyError, match="outside the box"):
        exact(Coins(), PureDP(1.0), Box(-0.5, 0.5))
    assert has_exact_law(Alone(), Box(-1, 1))
    assert not has_exact_law(Alone(), BIT)
    assert has_exact_law(Coins(), BIT)


# Searches and domains.


def knee(data):
    p = HALF + Fraction(min(float(data[0]), 0.0)) / 3
    return [1 - p, p]


def test_a_continuum_without_an_envelope_is_searched():
    clean = exact(knee, PureDP(2.0), Box(-1, 1))
    assert clean.verdict is NOT_REFUTED
    assert "that a search found" in clean.statement
    assert clean.epsilon_lower == pytest.approx(math.log(3))
    assert clean.epsilon_upper is None

    broken = exact(knee, PureDP(0.1), Box(-1, 1))
    assert broken.verdict is VIOLATED
    assert broken.epsilon_lower == pytest.approx(math.log(3))


def corner(data):
    """Only records whose second coordinate is in (0.75, 1) differ from the others."""
    inside = len(data) > 1 and 0.75 < data[1] < 1
    p = Fraction(9, 10) if inside else HALF
    return [1 - p, p]


def test_a_search_finds_a_pair_that_is_not_listed_and_simplifies_it():
    found = exact(corner, PureDP(1.0), Box(0, 1, 3, shortest=1), seed=3)
    assert found.verdict is VIOLATED
    assert found.epsilon_lower == pytest.approx(math.log(5))
    assert len(found.counterexample.pair.split("|")[0].split(",")) == 2


def eighths(data):
    p = HALF + Fraction(float(np.ravel(data)[0])) / 8
    return [1 - p, p]


def test_floating_point_values_are_a_domain_if_they_are_declared_to_be():
    grid = (0.0, 0.5, 1.0)
    found = exact(eighths, PureDP(1.0), AnyValues(grid))
    assert found.verdict is NOT_REFUTED
    assert "give AnyValues(..., finite=True)" in found.statement
    assert "at 3 values" in found.statement

    whole = exact(eighths, PureDP(1.0), AnyValues(grid, finite=True))
    assert whole.verdict is CERTIFIED
    assert "scope: these values are the whole domain" in whole.assumptions


@pytest.mark.parametrize(
    ("values", "listed"),
    [
        ([np.zeros(1), np.ones(1)], False),
        ((0, 1), True),
    ],
)
def test_which_values_are_a_domain(values, listed):
    assert (AnyValues(values).exhaustive() is not None) is listed
    assert AnyValues(values, finite=False).exhaustive() is None


# Orders of nodes.


def edge(a):
    return Fraction(int(a[1, 3]))


def weighted_edges(a):
    weights = np.arange(1, len(a) + 1) @ np.triu(a)
    return Fraction(10 + int(weights.sum()), 1000)


def edges(a):
    return Fraction(1 + int(a.sum()) // 2, 2 + len(a) ** 2)


def of_nodes(probability):
    """A bit with a probability that depends on a graph."""

    def law(data):
        p = probability(np.asarray(data))
        return [1 - p, p]

    return law


@pytest.mark.parametrize("probability", [edge, weighted_edges])
@pytest.mark.parametrize("among", [None, (1, 2, 3)])
def test_a_law_of_the_names_of_nodes_is_not_certified_up_to_their_order(
    probability, among
):
    law = of_nodes(probability)
    labelled = exact(law, PureDP(20.0), Edges(4, among=among))
    found = exact(law, PureDP(20.0), Edges(4, unlabelled=True, among=among))

    assert found.epsilon_lower == pytest.approx(labelled.epsilon_upper, rel=1e-9)
    if math.isinf(found.epsilon_lower):
        assert found.verdict is VIOLATED
    else:
        assert found.verdict is NOT_REFUTED
        assert "the law depends on the order of the nodes" in found.statement
        assert found.epsilon_upper is None


def test_a_law_of_the_number_of_edges_is_certified_with_its_assumption():
    unlabelled = Edges(5, unlabelled=True)
    found = exact(of_nodes(edges), PureDP(1.0), unlabelled)
    assert found.verdict is CERTIFIED
    assert "nodes alike: true on 200 pairs" in " ".join(found.assumptions)
    assert found.details.pairs_enumerated == len(unlabelled.exhaustive())


@pytest.mark.parametrize("among", [None, (0, 2, 3)])
def test_reordered_pairs_are_neighbours_and_change_every_edge(among):
    adjacency = Edges(5, among=among, unlabelled=True)
    rng = np.random.default_rng(0)
    changing = list(itertools.combinations(range(5) if among is None else among, 2))
    for pair in adjacency.exhaustive()[::7]:
        for number, changed in enumerate(changing):
            other = adjacency.reordered(pair, number, rng)
            adjacency.check(other)
            difference = np.argwhere(np.triu(other.data != other.neighbour))
            assert tuple(difference[0]) == changed
            assert sorted(other.data.sum(axis=0)) == sorted(pair.data.sum(axis=0))
