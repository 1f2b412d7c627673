"""What auditdp relies on in Hypothesis' private modules. Where this fails, adapt `adjacency/hypothesis_internals.py`."""

import ast
from pathlib import Path
from random import Random

import hypothesis
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from auditdp.adjacency import hypothesis_internals as internals
from auditdp.errors import AuditError

CHANGED = f"Hypothesis {hypothesis.__version__} changed: adapt auditdp/adjacency/hypothesis_internals.py"
PRIVATE = ("hypothesis._settings", "hypothesis.control", "hypothesis.internal", "hypothesis.strategies._internal")


def even(x):
    return x % 2 == 0


def no_four(x):  # Hypothesis reads a condition such as x > 0, and makes it an end
    return "4" not in str(x)


def drawn(strategy, prefix=(), seed=0):
    return internals.drawn_by(strategy, Random(seed), prefix)


KNOWN = [
    (st.integers(-3, 9), internals.Integers, {"low": -3, "high": 9}),
    (st.integers(), internals.Integers, {"low": None, "high": None}),
    (st.floats(-1, 2), internals.Floats, {"low": -1.0, "high": 2.0, "allow_nan": False}),
    (st.floats(allow_subnormal=False), internals.Floats, {"smallest": 2.2250738585072014e-308, "allow_nan": True}),
    (st.booleans(), internals.Booleans, {}),
    (st.sampled_from("abc"), internals.ListedValues, {"elements": ["a", "b", "c"]}),
    (st.text(min_size=2), internals.Texts, {"least": 2}),
    (st.integers().map(str), internals.Mapped, {"function": str}),
    (st.integers().filter(even).filter(no_four), internals.Filtered, {"conditions": (even, no_four)}),
]


@pytest.mark.parametrize(
    ("strategy", "family", "expected"), KNOWN, ids=[family.__name__ + str(k) for k, (_, family, _) in enumerate(KNOWN)]
)
def test_the_structure_of_a_strategy_is_read(strategy, family, expected):
    part = internals.part_of(strategy)
    assert type(part) is family, CHANGED
    assert {name: getattr(part, name) for name in expected} == expected, CHANGED
    assert drawn(part.strategy) is not None, CHANGED


def test_strategies_of_parts_have_those_parts():
    a, b = st.sampled_from([2, 3]), st.booleans()
    tuples, choice, records = (internals.part_of(s) for s in (st.tuples(a, b), a | b, st.fixed_dictionaries({"x": a})))
    built = internals.part_of(st.builds(complex, a, imag=b))
    for parts in (tuples.parts, choice.parts, [*records.fields.values(), b], [*built.arguments, *built.named.values()]):
        one, two = map(internals.part_of, parts)
        assert (one.elements, type(two)) == ([2, 3], internals.Booleans), CHANGED
    assert (built.target, list(records.fields), list(built.named)) == (complex, ["x"], ["imag"]), CHANGED


def test_lists_are_read():
    lists = internals.part_of(st.lists(st.booleans(), min_size=1, max_size=3))
    assert (type(internals.part_of(lists.element)), lists.least, lists.most, lists.keys) == (
        internals.Booleans,
        1,
        3,
        (),
    ), CHANGED
    assert len(internals.part_of(st.lists(st.integers(), unique=True)).keys) == 1, CHANGED


def test_what_has_no_known_structure_is_a_part_of_no_family():
    optional = st.fixed_dictionaries({"a": st.none()}, optional={"b": st.none()})
    for strategy in (optional, st.dates(), st.nothing()):
        assert type(internals.part_of(strategy)) is internals.StrategyPart, CHANGED


def test_a_strategy_without_what_is_read_is_refused_with_the_version():
    class IntegersStrategy(st.SearchStrategy):  # as one of another version might be
        pass

    with pytest.raises(AuditError, match=rf"Hypothesis {hypothesis.__version__} keeps .* IntegersStrategy .* install"):
        internals.part_of(IntegersStrategy())


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


def test_nothing_else_imports_what_is_private():
    package = Path(internals.__file__).parents[1]
    wrong = [
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PRIVATE)
    ]
    assert set(wrong) == {"adjacency/hypothesis_internals.py"}
