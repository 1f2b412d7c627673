"""The search finds values at a known cost, independently of process and folder."""

import math
import random
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import strategies as st

from auditdp import NeighbourList
from auditdp.adjacency.pair_search import maximise, smallest
from auditdp.errors import AuditError, MechanismError, Timeout

NUMBERS = st.integers(0, 10**6)
PEAK = 777_777


def nearness(x):
    return -abs(x - PEAK)


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, value):
        self.calls += 1
        return self.function(value)


def test_pairs_are_distinguished_by_their_inputs():
    """NeighbourList(3) has four pairs, in two orders each."""
    pairs = NeighbourList(3).strategy()
    found = maximise(pairs, lambda pair: pair.data.sum(), examples=100, seed=0)
    assert len(found) == 8


def test_values_without_a_score_are_left_out():
    def score(x):
        if x % 4 == 0:
            raise MechanismError("not on this input")
        return (-math.inf, math.nan, x)[x % 4 - 1]

    found = maximise(st.integers(0, 20), score, examples=100, seed=0)
    assert [x for _, x in found] == [19, 15, 11, 7, 3]


def test_an_infinite_score_comes_first():
    def score(x):
        return math.inf if x == 13 else x

    found = maximise(st.integers(0, 20), score, examples=100, seed=0)
    assert found[:2] == [(math.inf, 13), (20, 20)]


def test_if_no_value_can_be_scored_the_reason_is_raised():
    def score(x):
        raise MechanismError(f"the mechanism raised on {x}")

    with pytest.raises(MechanismError, match="the mechanism raised on 0"):
        maximise(NUMBERS, score, examples=20, seed=0)


def test_a_strategy_without_values_finds_nothing():
    for strategy in (st.nothing(), st.integers().filter(lambda x: False)):
        assert maximise(strategy, nearness, examples=20, seed=0) == []
        assert smallest(strategy, bool, examples=20, seed=0) is None


def smallest_by_score(strategy, score, **options):
    return smallest(strategy, bool, score=score, **options)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, Timeout])
@pytest.mark.parametrize("search", [maximise, smallest, smallest_by_score])
def test_any_other_error_ends_the_search_at_once(search, error):
    def fails(x):
        raise error

    fails = Counted(fails)
    with pytest.raises(error) as caught:
        search(NUMBERS, fails, examples=20, seed=0)
    assert fails.calls == 1
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("strategy", "holds", "simplest"),
    [
        (st.lists(st.integers(0, 10**4)), lambda xs: sum(xs) >= 1000, [1000]),
        (
            st.lists(st.booleans(), min_size=5, max_size=5),
            lambda xs: sum(xs) >= 2,
            [False] * 3 + [True] * 2,
        ),
    ],
)
def test_a_value_that_holds_is_shrunk(strategy, holds, simplest):
    assert smallest(strategy, holds, examples=200, seed=0) == simplest


def test_a_pair_is_shrunk_in_the_order_of_its_strategy():
    """The simplest list of 11 bits of which at least 4 are ones has them at the end."""
    pair = smallest(
        NeighbourList(12).strategy(),
        lambda p: p.neighbour.sum() >= 4,
        examples=200,
        seed=0,
    )
    assert pair.neighbour.tolist() == [0] * 7 + [1] * 4
    assert np.abs(pair.data - pair.neighbour).tolist() == [1] + [0] * 10


@pytest.mark.parametrize(
    ("least", "start", "expected"),
    [(10**6 + 1, None, None), (10**6 + 1, 2 * 10**6, 2 * 10**6), (10, 10**6, 10)],
)
def test_a_search_that_finds_nothing_returns_its_start(least, start, expected):
    options = {"examples": 50, "seed": 0, "start": start}
    assert smallest(NUMBERS, lambda x: x >= least, **options) == expected


def rare(x):
    return abs(x - PEAK) < 2


@pytest.mark.dear
@pytest.mark.parametrize("seed", range(5))
def test_a_score_leads_to_rare_values(seed):
    """Three values of a million: 400 uniform draws meet one with probability 0.12%."""
    assert smallest(NUMBERS, rare, examples=400, seed=seed) is None
    assert rare(smallest(NUMBERS, rare, score=nearness, examples=400, seed=seed))


@pytest.mark.dear
@pytest.mark.parametrize("seed", range(20))
def test_a_value_that_was_found_by_its_score_is_found_again(seed):
    """The same strategy, score, examples and seed take the same path."""

    def score(x):
        return math.nan if x % 3 == 0 else nearness(x)

    best = maximise(NUMBERS, score, examples=60, seed=seed)[0][0]
    again = smallest(
        NUMBERS, lambda x: score(x) >= best, score=score, examples=60, seed=seed
    )
    assert score(again) >= best


def test_an_answer_that_changes_gives_the_last_value_that_held():
    calls = Counted(lambda x: calls.calls == 5)
    held = []
    found = smallest(
        NUMBERS, lambda x: calls(x) and (held.append(x) or True), examples=50, seed=0
    )
    assert held == [found]


@pytest.mark.parametrize("examples", [0, -3])
def test_a_search_needs_examples(examples):
    with pytest.raises(AuditError, match=f"examples={examples}"):
        maximise(NUMBERS, nearness, examples=examples, seed=0)


def test_global_randomness_is_unchanged():
    before, numpy_before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    maximise(NUMBERS, nearness, examples=50, seed=0)
    assert random.getstate() == before
    assert np.random.get_state()[1].tolist() == numpy_before  # noqa: NPY002


SCRIPT = """
    import sys
    sys.path.insert(0, {folder!r})
    {load}
    from hypothesis import settings, strategies as st
    from auditdp.adjacency.pair_search import maximise, smallest
    settings.register_profile("theirs", derandomize=True, max_examples=3, print_blob=True)
    settings.load_profile("theirs")
    found = maximise(st.tuples(st.integers(), st.floats(), st.binary()), lambda v: v[0] % 1000, examples=300, seed=7)
    small = smallest(st.lists(st.integers()), lambda xs: sum(xs) >= 1000, examples=100, seed=7)
    sys.stderr.write(repr((found, small)))
"""


def test_neither_the_process_nor_its_folder_matters(tmp_path):
    """Hypothesis would draw the constants of local modules and keep them in a folder.

    It would follow the loaded profile.
    """
    code = tmp_path / "code"
    code.mkdir()
    constants = [10**6 + k for k in range(200)]
    (code / "local.py").write_text(f"CONSTANTS = {constants}")
    found = set()
    for name, load in (("without", ""), ("with", "import local")):
        folder = tmp_path / name
        folder.mkdir()
        script = textwrap.dedent(SCRIPT).format(folder=str(code), load=load)
        command = [sys.executable, "-W", "error", "-c", script]
        options = {"cwd": folder, "text": True, "capture_output": True}
        done = subprocess.run(command, check=True, **options)
        assert done.stdout == ""
        assert list(folder.iterdir()) == []
        found.add(done.stderr)
    (one,) = found
    assert "1000" in one
