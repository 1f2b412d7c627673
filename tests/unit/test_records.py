"""Neighbours among populations of records."""

import numpy as np
import pytest
from hypothesis import given, settings

from auditdp import Pair, Records
from auditdp.errors import AdjacencyError

POPULATIONS = [Records(1, (0.0, 1.0)), Records(3, (-1.0, 0.0, 1.0)), Records(2, (0.0, 0.5, 2.0), 2)]


@pytest.mark.parametrize("records", POPULATIONS, ids=lambda records: records.name)
def test_listed_enumerated_and_generated_pairs_belong(records):
    for pair in [*records.pairs(), *records.exhaustive()]:
        records.check(pair)

    @settings(max_examples=60)
    @given(records.strategy())
    def generated(pair):
        records.check(pair)

    generated()


def test_every_pair_is_enumerated_once():
    """Of 3² populations of two records each has 2 others for either record: 9·2·2/2 pairs."""
    pairs = Records(2, (-1.0, 0.0, 1.0)).exhaustive()
    assert len(pairs) == 18
    assert len({frozenset((p.data.tobytes(), p.neighbour.tobytes())) for p in pairs}) == 18
    assert Records(9, (0.0, 1.0, 2.0)).exhaustive() is None


@pytest.mark.parametrize(
    ("data", "neighbour", "shown"),
    [
        (np.zeros((2, 1)), np.zeros((2, 1)), "0 records"),
        (np.zeros((2, 1)), np.ones((2, 1)), "2 records"),
        (np.zeros((2, 1)), np.full((2, 1), 0.5), "not such a population"),
        (np.zeros((1, 1)), np.ones((1, 1)), "not such a population"),
    ],
)
def test_what_is_no_pair_is_refused(data, neighbour, shown):
    with pytest.raises(AdjacencyError, match=shown):
        Records(2, (0.0, 1.0)).check(Pair(data, neighbour))


@pytest.mark.parametrize(
    "arguments", [(0, (0.0, 1.0)), (1, (0.0,)), (1, (1.0, 0.0)), (1, (0.0, 0.0)), (1, (0.0, 1.0), 0)]
)
def test_what_is_no_population_is_refused(arguments):
    with pytest.raises(AdjacencyError, match="expected"):
        Records(*arguments)
