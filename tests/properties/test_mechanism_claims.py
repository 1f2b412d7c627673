"""No pair of inputs of any mechanism loses more than its claim, by the exact laws."""

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from auditdp import QueryAnswers
from auditdp.adjacency import Edges, NeighbourList
from auditdp.mechanism.laws import FiniteLaw, precision
from mechanisms.classic import (
    SVT1,
    SVT2,
    SVT4,
    SVT6,
    ExponentialMechanism,
    NoisyMax1,
    NoisyMax2,
)
from mechanisms.edges import DPRR
from mechanisms.edges.graph_pub_response import GraphPubResponse
from mechanisms.features import FeatureRR, MultiBit
from mechanisms.numeric import (
    Duchi,
    Hybrid,
    Piecewise,
    PMSub,
    ThreeOutput,
    every_feature,
)
from mechanisms.pagerank import DPApprEM, GivenRows, row_epsilon
from tests.statistical.stated_laws import law_of, loss

CLIP = 0.001
ROUNDED = 1 + 1e-12
"""The excess of a claim that is computed in floating point."""
budgets = st.floats(1e-3, 8.0)
numbers = st.one_of(st.floats(-1, 1), st.sampled_from([-1.0, 0.0, 1.0]))
units = st.floats(0.0, 1.0)
entries = st.sampled_from((0.0, CLIP / 3, CLIP))


def vectors(elements, size):
    return st.lists(elements, min_size=size, max_size=size).map(np.array)


def of_pair(mechanism, claim, adjacency):
    """Rows of a fixed mechanism: neighbours of an adjacency."""
    return adjacency.strategy().map(
        lambda pair: (mechanism, pair.data, pair.neighbour, claim * ROUNDED)
    )


ALL = QueryAnswers(4, "all", shortest=1)
ONE = QueryAnswers(4, "one", shortest=1)
PROVED = [
    (SVT1(0.7, 1, 0.5), 0.7, ALL),
    (SVT1(0.7, 2, 1.0), 0.7, ALL),
    (SVT2(0.7, 2, 1.0), 0.7, ALL),
    (SVT4(0.7, 1), 7 / 4 * 0.7, ALL),
    (SVT4(0.7, 2), 13 / 4 * 0.7, ALL),
    (SVT6(0.7), 4 * 0.7 / 2, ALL),
    (NoisyMax1(0.7), 0.7, ALL),
    (NoisyMax2(0.7), 0.7, ALL),
    (ExponentialMechanism(0.7), 0.7, ALL),
    (ExponentialMechanism(0.7, 0.5), 1.4, ALL),
    (SVT4(0.7, 1), 0.7, ONE),
    (NoisyMax1(1.4), 0.7, ONE),
    (NoisyMax2(1.4), 0.7, ONE),
    (DPRR(0.4, 1.1), 1.5, NeighbourList(5)),
    (GraphPubResponse(0.7, 4, np.ones((4, 4)), 1.3), 0.7, Edges(4)),
]
claims = {mechanism.name: of_pair(mechanism, *rest) for mechanism, *rest in PROVED}


def named(draw):
    """Enter what draws a row into the table."""
    claims[draw.__name__] = st.composite(draw)()
    return draw


@named
def numeric_mechanisms(draw):
    kind = draw(st.sampled_from([Duchi, Piecewise, PMSub, Hybrid, ThreeOutput]))
    epsilon = draw(st.floats(1e-6, 30.0))
    return kind(epsilon), draw(numbers), draw(numbers), epsilon


@named
def records_of_numbers(draw):
    """Two records that differ in j of d features lose at most jε/d."""
    epsilon = draw(budgets)
    d = draw(st.integers(1, 3))
    vector = every_feature(draw(st.sampled_from([Duchi, ThreeOutput])), epsilon, d)
    first = draw(vectors(numbers, d))
    second = draw(vectors(numbers, d))
    agree = draw(vectors(st.booleans(), d))
    second = np.where(agree, first, second)
    differing = int(np.sum(first != second))
    claim = min(differing * vector.one.epsilon * ROUNDED, epsilon)
    return vector, first, second, claim


@named
def multi_bit_encoders(draw):
    d = draw(st.integers(1, 4))
    low = draw(st.floats(-10, 10))
    high = low + draw(st.floats(0.1, 10))
    encoder = MultiBit(draw(budgets), d, low, high, draw(st.integers(1, d)))
    records = low + draw(vectors(units, 2 * d)) * (high - low)
    first, second = records.clip(low, high).reshape(2, d)
    return encoder, first, second, encoder.epsilon


@named
def feature_responses(draw):
    d = draw(st.integers(1, 3))
    shares = draw(st.lists(units, min_size=d, max_size=d).filter(any))
    mechanism = FeatureRR(draw(budgets), tuple(shares), draw(st.integers(2, 4)))
    first, second = draw(vectors(units, 2 * d)).reshape(2, d)
    return mechanism, first, second, mechanism.epsilon


@named
def selections_of_entries(draw):
    """Corollary 1 for any change of all entries, at δ too small for all but its first term."""
    epsilon = draw(budgets)
    size = draw(st.integers(2, 5))
    k = draw(st.integers(1, size))
    mechanism = DPApprEM(epsilon, k, GivenRows(size), ordered=True)
    first, second = draw(vectors(entries, 2 * size)).reshape(2, size)
    return mechanism, first, second, row_epsilon(epsilon, k, 1e-300)


@pytest.mark.parametrize("rows", claims.values(), ids=claims)
def test_no_pair_of_inputs_loses_more_than_the_claim(rows):
    @given(rows)
    def holds(row):
        mechanism, first, second, claim = row
        assert loss(mechanism, first, second).upper <= claim
        law = law_of(mechanism, first)
        if isinstance(law, FiniteLaw):
            with precision():
                assert sum(law.balls, arb(0)).contains(1)
            if hasattr(mechanism, "log_prob"):
                found = mechanism.log_prob(law.outcomes, first)
                expected = law.log_prob(law.outcomes)
                np.testing.assert_allclose(found, expected, atol=1e-9)

    holds()
