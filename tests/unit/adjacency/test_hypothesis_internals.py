"""What auditdp uses of Hypothesis' private modules, and what it does without them.

If a test fails with another version of Hypothesis, adapt
`adjacency/hypothesis_internals.py`: the search goes on, and finds less.
"""

import re
from collections import Counter
from itertools import islice
from operator import eq
from pathlib import Path
from random import Random

import hypothesis
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from auditdp.adjacency import hypothesis_internals as internals
from auditdp.adjacency.corner_cases import Domain, ends, values, with_extremes
from auditdp.adjacency.pair_search import (
    changed,
    draws,
    first_values,
    maximise,
    smallest,
)

PRIVATE = re.compile(
    r"hypothesis\.(_settings|control|internal|strategies\._internal)\b"
)


as_known = pytest.mark.skipif(
    hypothesis.__version_info__ < (6, 150),
    reason="before 6.150 Hypothesis keeps in other places what auditdp uses",
)


def even(x):
    return x % 2 == 0


def no_four(x):  # Hypothesis reads a condition such as x > 0, and makes it an end
    return "4" not in str(x)


def drawn(strategy, prefix=(), seed=0):
    return internals.drawn_by(strategy, Random(seed), prefix)


@pytest.fixture(params=[pytest.param("as known", marks=as_known), "documented"])
def way(request, monkeypatch):
    """With what is private, and without any of it, as if it were somewhere else in this version."""
    if request.param == "documented":
        for name in (
            "local_settings",
            "unwrap_strategies",
            "build_context",
            "conjecture_data",
            "providers",
        ):
            monkeypatch.setattr(internals, name, None)
    internals.knows_choices.cache_clear()
    yield request.param
    internals.knows_choices.cache_clear()


LISTED = {"elements": [2, 3]}
EVENS = st.integers(0, 999).filter(even).filter(no_four)
KNOWN = [
    (st.integers(-3, 9), internals.Integers, {"low": -3, "high": 9}),
    (st.integers(), internals.Integers, {"low": None, "high": None}),
    (
        st.floats(-1, 2),
        internals.Floats,
        {"low": -1.0, "high": 2.0, "allow_nan": False},
    ),
    (
        st.floats(allow_subnormal=False),
        internals.Floats,
        {"allow_nan": True, "smallest": 2.0**-1022},
    ),
    (st.booleans(), internals.Booleans, {}),
    (st.sampled_from([2, 3]), internals.ListedValues, LISTED),
    (st.text(min_size=2), internals.Texts, {"least": 2}),
    (st.integers().map(str), internals.Mapped, {"function": str}),
    (EVENS, internals.Filtered, {"conditions": (even, no_four)}),
]


@pytest.mark.parametrize(("strategy", "family", "expected"), KNOWN)
def test_the_structure_of_a_strategy_is_read(strategy, family, expected):
    part = internals.part_of(strategy)
    assert type(part) is family
    assert {name: getattr(part, name) for name in expected} == expected
    assert drawn(part.strategy) is not None


def families(strategies):
    return [type(internals.part_of(strategy)) for strategy in strategies]


def test_strategies_of_parts_have_those_parts():
    numbers, bits = st.integers(), st.booleans()
    both = [internals.Integers, internals.Booleans]
    pair = internals.part_of(st.tuples(numbers, bits))
    choice = internals.part_of(numbers | bits)
    record = internals.part_of(st.fixed_dictionaries({"x": numbers, "y": bits}))
    built = internals.part_of(st.builds(complex, numbers, imag=bits))
    assert families(pair.parts) == families(choice.parts) == both
    assert families(record.fields.values()) == both
    assert families([*built.arguments, *built.named.values()]) == both
    assert (built.target, list(built.named)) == (complex, ["imag"])
    assert list(record.fields) == ["x", "y"]


def test_lists_are_read():
    lists = internals.part_of(st.lists(st.booleans(), min_size=1, max_size=3))
    assert families([lists.element]) == [internals.Booleans]
    assert (lists.least, lists.most, lists.keys) == (1, 3, ())
    unique = internals.part_of(st.lists(st.integers(), unique=True))
    assert len(unique.keys) == 1


def test_a_strategy_of_unknown_structure_belongs_to_no_family():
    optional = st.fixed_dictionaries({"a": st.none()}, optional={"b": st.none()})
    for strategy in (optional, st.dates(), st.nothing()):
        assert type(internals.part_of(strategy)) is internals.StrategyPart


def test_a_strategy_of_another_version_belongs_to_no_family():
    class IntegersStrategy(st.SearchStrategy):  # as one of another version might be
        pass

    assert type(internals.part_of(IntegersStrategy())) is internals.StrategyPart


@as_known
def test_this_version_is_known():
    assert internals.knows_choices()


@as_known
def test_a_value_follows_from_its_choices():
    strategy = st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.booleans())
    value, choices = drawn(strategy, seed=1)
    assert choices == value
    assert drawn(strategy, choices, seed=2) == (value, choices)
    (first, *_), _ = drawn(strategy, (7,), seed=2)
    assert first == 7
    assert drawn(strategy, seed=1) == (value, choices)


def test_a_refused_value_is_none():
    assert drawn(st.integers().filter(lambda x: False)) is None


@as_known
def test_constants_of_loaded_modules_are_not_drawn():
    from hypothesis.internal.conjecture import providers

    assert callable(providers._get_local_constants)
    assert hasattr(providers, "CONSTANTS_CACHE")
    before = providers._get_local_constants
    with internals.undisturbed(settings(max_examples=3)):
        assert providers._get_local_constants is not before
        assert tuple(providers._get_local_constants().set_for_type("integer")) == ()
        assert settings().max_examples == 3
    assert providers._get_local_constants is before


def test_no_other_module_names_private_modules():
    package = Path(internals.__file__).parents[1]
    naming = [
        path
        for path in package.rglob("*.py")
        if PRIVATE.search(path.read_text(encoding="utf-8"))
    ]
    assert [path.relative_to(package).as_posix() for path in naming] == [
        "adjacency/hypothesis_internals.py"
    ]


PAIRS = st.tuples(st.integers(0, 10**6), st.lists(st.integers(0, 99), max_size=8))


def test_values_are_drawn_independently_and_follow_from_the_seed(way):
    assert internals.knows_choices() == (way == "as known")
    one, again, other = (
        [each.value for each in islice(draws(PAIRS, seed=seed), 200)]
        for seed in (1, 1, 2)
    )
    assert one == again != other
    assert len({number for number, _ in one}) > 150
    assert {len(items) for _, items in one} == set(range(9))


def test_one_choice_of_a_value_is_drawn_anew(way):
    """Each result is a value of the strategy, of which mostly one part differs."""
    strategy = st.tuples(*[st.integers(0, 255)] * 6)
    before = next(draws(strategy, seed=1))
    places, kept = set(), Counter()
    for seed in range(100):
        after = changed(strategy, before, seed=seed)
        if after is not None:
            same = list(map(eq, before.value, after.value))
            places |= {k for k in range(6) if not same[k]}
            kept[sum(same)] += 1
    assert kept.total() > 90
    assert kept[5] > 50
    assert places == set(range(6))


def test_refused_values_are_not_drawn(way):
    assert list(draws(st.integers().filter(lambda x: False), seed=1)) == []
    filtered = st.integers(0, 99).filter(lambda x: x % 3)
    found = islice(draws(filtered, seed=1), 50)
    assert {each.value % 3 for each in found} == {1, 2}


def test_a_search_climbs_and_shrinks(way):
    numbers = st.integers(0, 10**6)
    best, *_ = maximise(numbers, lambda x: -abs(x - 777_777), examples=400, seed=0)
    assert best == (0.0, 777_777)
    found = smallest(numbers, lambda x: x >= 123_456, examples=200, seed=0)
    assert found == 123_456


def test_a_strategy_of_unknown_structure_has_ends_of_its_own(way):
    cities = st.sampled_from(["Oslo", "Riga"])
    strategy = st.fixed_dictionaries({"age": st.integers(18, 120), "city": cities})
    low, high = ends(strategy)
    assert low != high
    extreme = first_values(with_extremes(strategy), 20)
    for value in (low, high, *values(strategy), *extreme):
        assert 18 <= value["age"] <= 120
        assert value["city"] in ("Oslo", "Riga")
    known = Domain(0, 9, whole=True) if way == "as known" else None
    assert Domain.of(st.integers(0, 9)) == known
