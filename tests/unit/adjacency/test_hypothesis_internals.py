"""What auditdp uses of Hypothesis' private modules, and what it does without them.

Where a test fails that says CHANGED, adapt `adjacency/hypothesis_internals.py`: the search goes on, and finds less.
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

CHANGED = f"Hypothesis {hypothesis.__version__} changed: adapt auditdp/adjacency/hypothesis_internals.py"
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
        {"smallest": 2.2250738585072014e-308, "allow_nan": True},
    ),
    (st.booleans(), internals.Booleans, {}),
    (st.sampled_from("abc"), internals.ListedValues, {"elements": ["a", "b", "c"]}),
    (st.text(min_size=2), internals.Texts, {"least": 2}),
    (st.integers().map(str), internals.Mapped, {"function": str}),
    (
        st.integers(0, 999).filter(even).filter(no_four),
        internals.Filtered,
        {"conditions": (even, no_four)},
    ),
]


@pytest.mark.parametrize(
    ("strategy", "family", "expected"),
    KNOWN,
    ids=[family.__name__ + str(k) for k, (_, family, _) in enumerate(KNOWN)],
)
def test_the_structure_of_a_strategy_is_read(strategy, family, expected):
    part = internals.part_of(strategy)
    assert type(part) is family, CHANGED
    assert {name: getattr(part, name) for name in expected} == expected, CHANGED
    assert drawn(part.strategy) is not None, CHANGED


def test_strategies_of_parts_have_those_parts():
    a, b = st.sampled_from([2, 3]), st.booleans()
    tuples, choice, records = (
        internals.part_of(s)
        for s in (st.tuples(a, b), a | b, st.fixed_dictionaries({"x": a}))
    )
    built = internals.part_of(st.builds(complex, a, imag=b))
    for parts in (
        tuples.parts,
        choice.parts,
        [*records.fields.values(), b],
        [*built.arguments, *built.named.values()],
    ):
        one, two = map(internals.part_of, parts)
        assert (one.elements, type(two)) == ([2, 3], internals.Booleans), CHANGED
    assert (built.target, list(records.fields), list(built.named)) == (
        complex,
        ["x"],
        ["imag"],
    ), CHANGED


def test_lists_are_read():
    lists = internals.part_of(st.lists(st.booleans(), min_size=1, max_size=3))
    assert (
        type(internals.part_of(lists.element)),
        lists.least,
        lists.most,
        lists.keys,
    ) == (
        internals.Booleans,
        1,
        3,
        (),
    ), CHANGED
    assert len(internals.part_of(st.lists(st.integers(), unique=True)).keys) == 1, (
        CHANGED
    )


def test_what_has_no_known_structure_is_a_part_of_no_family():
    optional = st.fixed_dictionaries({"a": st.none()}, optional={"b": st.none()})
    for strategy in (optional, st.dates(), st.nothing()):
        assert type(internals.part_of(strategy)) is internals.StrategyPart, CHANGED


def test_a_strategy_whose_structure_is_kept_elsewhere_is_a_part_of_no_family():
    class IntegersStrategy(st.SearchStrategy):  # as one of another version might be
        pass

    assert type(internals.part_of(IntegersStrategy())) is internals.StrategyPart


@as_known
def test_this_version_is_known():
    assert internals.knows_choices(), CHANGED


@as_known
def test_a_value_follows_from_its_choices():
    strategy = st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.booleans())
    value, choices = drawn(strategy, seed=1)
    assert choices == value, CHANGED
    assert drawn(strategy, choices, seed=2) == (value, choices), CHANGED
    (first, *_), _ = drawn(strategy, (7,), seed=2)
    assert first == 7, CHANGED
    assert drawn(strategy, seed=1) == (value, choices)


def test_a_refused_value_is_none():
    assert drawn(st.integers().filter(lambda x: False)) is None, CHANGED


@as_known
def test_constants_of_loaded_modules_are_kept_out():
    from hypothesis.internal.conjecture import providers

    assert callable(providers._get_local_constants), CHANGED
    assert hasattr(providers, "CONSTANTS_CACHE"), CHANGED
    before = providers._get_local_constants
    with internals.undisturbed(settings(max_examples=3)):
        assert providers._get_local_constants is not before
        assert tuple(providers._get_local_constants().set_for_type("integer")) == ()
        assert settings().max_examples == 3, CHANGED
    assert providers._get_local_constants is before


def test_nothing_else_names_what_is_private():
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


def test_one_choice_of_a_value_is_made_anew(way):
    """Each is a value of the strategy; mostly all else is as it was."""
    strategy = st.tuples(*[st.integers(0, 255)] * 6)
    before = next(draws(strategy, seed=1))
    after = [
        found
        for seed in range(100)
        if (found := changed(strategy, before, seed=seed)) is not None
    ]
    kept = [sum(map(eq, before.value, each.value)) for each in after]
    assert len(after) > 90
    assert Counter(kept)[5] > 50
    assert {
        k for each in after for k in range(6) if each.value[k] != before.value[k]
    } == set(range(6))


def test_what_is_refused_is_not_drawn(way):
    assert list(draws(st.integers().filter(lambda x: False), seed=1)) == []
    assert {
        each.value % 3
        for each in islice(
            draws(st.integers(0, 99).filter(lambda x: x % 3), seed=1), 50
        )
    } == {1, 2}


def test_a_search_climbs_and_shrinks(way):
    assert maximise(
        st.integers(0, 10**6), lambda x: -abs(x - 777_777), examples=400, seed=0
    )[0] == (0.0, 777_777)
    assert (
        smallest(st.integers(0, 10**6), lambda x: x >= 123_456, examples=200, seed=0)
        == 123_456
    )


def test_a_strategy_that_is_not_taken_apart_has_ends_of_its_own(way):
    strategy = st.fixed_dictionaries(
        {"age": st.integers(18, 120), "city": st.sampled_from(["Oslo", "Riga"])}
    )
    low, high = ends(strategy)
    assert low != high
    for value in (
        low,
        high,
        *values(strategy),
        *first_values(with_extremes(strategy), 20),
    ):
        assert 18 <= value["age"] <= 120
        assert value["city"] in ("Oslo", "Riga")
    assert Domain.of(st.integers(0, 9)) == (
        Domain(0, 9, whole=True) if way == "as known" else None
    )
