"""The benchmark has fifty correct trainers, ten for each kind of pair.

A tenth of their games is played here.
"""

from collections import Counter

import pytest

from auditdp.adjacency.adjacency import GivenPairs
from auditdp.training import neighbours
from benchmarks import trainers_correct
from benchmarks.parts import Options
from benchmarks.trainers_correct import CASES, KINDS, ROW

TOLD = {  # whose claims are false where more differs than in the given pair
    "record replaced, labels",
    "record replaced, pay",
    "edge added, sums",
    "edge added, triangles",
    "node added or changed, edges there or not",
    "node added or changed, sums over public edges",
    "node added or changed, sums beside a lonely node",
    "user added, a row of a user",
    "user added, words",
    "record added, directions",
}


def test_there_are_ten_of_each_kind_and_all_have_neighbours_derived():
    assert Counter(case.kind for case in CASES.values()) == dict.fromkeys(KINDS, 10)
    assert all(
        isinstance(neighbours(case.pair, search=True), GivenPairs)
        for case in CASES.values()
    )
    assert len(trainers_correct.units(Options(seed=1))) == len(CASES)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in TOLD else pytest.mark.full)
        for name in CASES
    ],
)
def test_none_is_accused(name):
    """Each game accuses a trainer whose claim is true with probability 0.05 at most.

    Seeds are fixed.
    """
    assert trainers_correct.accused(name, range(1, 2), calls=150)["accused"] == 0


def test_bars_count_games_by_kind():
    groups = {
        f"{ROW}{name}": [{"verdicts": ["NOT_REFUTED"] * 10, "accused": 0}]
        for name in CASES
    }
    assert all(bar.met for bar in trainers_correct.bars(groups))
    groups[f"{ROW}edge added, sums"][0]["accused"] = 1
    assert [bar.met for bar in trainers_correct.bars(groups)] == [
        kind != "edge added" for kind in KINDS
    ]
    assert {bar.met for bar in trainers_correct.bars({})} == {None}
