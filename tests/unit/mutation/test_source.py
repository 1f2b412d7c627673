"""Mutants of code: what is changed, in what, and that nothing else is."""

from __future__ import annotations

import functools
import gc
import inspect
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from auditdp.errors import MechanismError
from auditdp.mutation.mutants import derive, mutants
from auditdp.mutation.reach import reached
from auditdp.mutation.source import Rewritten, changes
from auditdp.testing import LaplaceMechanism, Response


def found(mechanism, inputs=(0.0, 1.0)):
    """The changes of a mechanism's code, by name."""
    return {change.name: change for change in changes(mechanism, reached(mechanism, inputs, 8))[0]}


def by_name(mechanism, inputs=(0.0, 1.0)):
    return {mutant.name: mutant for mutant in mutants(mechanism, inputs)}


def run(mechanism, data=1.0, size=4):
    return mechanism(data, size, rng=np.random.default_rng(3))


def operators(data, size, *, rng):
    clipped = np.clip(data, 0, 1)
    scale = max(2.0, 1 / data) if size else 3.0
    noise = rng.laplace(size=size)
    noise *= scale
    if size > 2:
        noise += data
    if data > 9:
        raise ValueError(f"{data * 2}")
    return clipped + noise[: size + 0]


def test_every_kind_of_change_is_made_once_and_named_by_what_it_changes():
    assert list(found(operators, [1.0])) == [
        "clip left out in operators: np.clip(data, 0, 1) → data",
        "condition ignored in operators: max(2.0, 1 / data) if size else 3.0 → max(2.0, 1 / data)",
        "condition ignored in operators: max(2.0, 1 / data) if size else 3.0 → 3.0",
        "clip left out in operators: max(2.0, 1 / data) → 1 / data",
        "factor left out in operators: 1 / data → 1",
        "step left out in operators: noise *= scale → nothing",
        "parameter halved in operators: scale → scale / 2",
        "step left out in operators: if size > 2 → if False",
        "step left out in operators: noise += data → nothing",
        "term left out in operators: clipped + noise[:size + 0] → clipped",
        "term left out in operators: clipped + noise[:size + 0] → noise[:size + 0]",
    ]


def remaining(epsilon, spent):
    return epsilon - spent


def split(data, size, *, rng, epsilon=1.0):
    rest = remaining(epsilon, epsilon / 4)
    return data ^ (rng.random(size) < 1 / (1 + np.exp(rest)))


def test_budgets_are_split_factors_dropped_and_parameters_doubled_one_use_at_a_time():
    assert [mutant.name for mutant in mutants(split, [0, 1])][3:] == [
        "split left out in split: remaining(epsilon, epsilon / 4) → epsilon",
        "parameter doubled in split: epsilon → 2 * epsilon",
        "factor left out in split: epsilon / 4 → epsilon",
        "parameter doubled in split: epsilon → 2 * epsilon (place 2)",
        "term left out in split: data ^ (rng.random(size) < 1 / (1 + np.exp(rest))) → data",
        "term left out in split: data ^ (rng.random(size) < 1 / (1 + np.exp(rest))) → "
        "rng.random(size) < 1 / (1 + np.exp(rest))",
        "factor left out in split: 1 / (1 + np.exp(rest)) → 1",
        "term left out in split: 1 + np.exp(rest) → 1",
        "term left out in split: 1 + np.exp(rest) → np.exp(rest)",
        "term left out in remaining: epsilon - spent → epsilon",
        "parameter doubled in remaining: epsilon → 2 * epsilon",
    ]


@dataclass(frozen=True)
class Base:
    epsilon: float

    @cached_property
    def scale(self):
        return 1 / self.epsilon

    def __call__(self, data, size, *, rng):
        return data + self.scale * rng.laplace(size=size)

    def log_prob(self, outputs, data):
        return -np.abs(outputs - data) / self.scale


class Derived(Base):
    __hidden = 5.0

    def __call__(self, data, size, *, rng):
        return super().__call__(data, size, rng=rng) + self.__hidden


def test_a_change_reaches_inherited_code_properties_super_and_private_names():
    mechanism = Derived(2.0)
    changed = by_name(mechanism)
    half = changed["parameter doubled in Base.scale: self.epsilon → 2 * self.epsilon"]
    np.testing.assert_allclose(run(half) - 6, (run(mechanism) - 6) / 2)
    bare = changed["factor left out in Base.__call__: self.scale * rng.laplace(size=size) → rng.laplace(size=size)"]
    np.testing.assert_allclose(run(bare) - 6, 2 * (run(mechanism) - 6))
    name = "term left out in Derived.__call__: super().__call__(data, size, rng=rng) + self.__hidden → "
    np.testing.assert_allclose(run(changed[name + "super().__call__(data, size, rng=rng)"]), run(mechanism) - 5)


def test_a_mutant_leaves_the_mechanism_as_it_was():
    mechanism, fresh = Base(2.0), Base(2.0)
    before = run(mechanism)
    for mutant in mutants(fresh, [0.0, 1.0]):
        for _ in range(2):
            try:
                run(mutant)
            except Exception:
                continue
        np.testing.assert_array_equal(run(fresh), before)
    assert fresh.scale == 0.5


def test_the_code_is_put_back_when_a_mutant_fails():
    code = operators.__code__
    mutant = by_name(operators, [1.0])["clip left out in operators: np.clip(data, 0, 1) → data"]
    with pytest.raises(TypeError):
        mutant("no number", 4, rng=np.random.default_rng(0))
    assert operators.__code__ is code


def test_what_a_mutant_states_is_the_law_of_the_mechanism():
    mechanism = Base(2.0)
    outputs = np.array([0.0, 1.0, 4.0])
    for mutant in mutants(mechanism, [0.0, 1.0]):
        np.testing.assert_array_equal(mutant.log_prob(outputs, 0.0), mechanism.log_prob(outputs, 0.0))
        assert not hasattr(mutant, "distribution")


@dataclass(frozen=True)
class Clipped:
    sensitivity: float = 1.0
    norm = "l1"

    def query(self, data, rng=None):
        return np.clip(data, 0.0, 1.0)

    def __call__(self, data, size, *, rng):
        return self.query(data) + rng.laplace(scale=self.sensitivity, size=size)


def test_the_query_of_a_mutant_is_the_broken_one():
    changed = by_name(Clipped())
    assert changed["clip left out in Clipped.query: np.clip(data, 0.0, 1.0) → data"].query(7.0) == 7.0
    assert changed["parameter halved: sensitivity = 0.5"].sensitivity == 0.5
    assert not hasattr(changed["noise halved: draw 1, laplace in Clipped.__call__"], "query")  # it is as it was


def make(scale):
    def closed(data, size, *, rng):
        return data + rng.laplace(scale=scale, size=size)

    return closed


def test_a_closure_is_changed_though_a_variable_of_it_is_no_longer_used():
    mechanism = make(2.0)
    changed = by_name(mechanism)
    name = "term left out in closed: data + rng.laplace(scale=scale, size=size) → data"
    assert run(changed[name]) == 1.0
    half = changed["parameter halved in closed: scale → scale / 2"]
    np.testing.assert_allclose(run(half) - 1, (run(mechanism) - 1) / 2)


def test_what_has_no_source_is_said_and_its_draws_are_still_spoiled():
    mechanism = lambda data, size, *, rng: data + rng.laplace(size=size)  # noqa: E731
    mutated, unread = derive(mechanism, [0.0, 1.0])
    assert unread == ["test_what_has_no_source_is_said_and_its_draws_are_still_spoiled.<locals>.<lambda>"]
    assert {m.operator for m in mutated} == {"noise halved", "noise left out", "seed fixed"}


def test_compiled_text_has_no_source_either():
    space = {}
    exec("def f(data, size, *, rng):\n    return data + rng.normal(size=size)", space)
    mutated, unread = derive(space["f"], [0.0])
    assert unread == ["f"]
    assert {m.operator for m in mutated} == {"noise halved", "noise left out", "seed fixed"}


@functools.cache
def cached(epsilon):
    return 1 / epsilon


def uses_cache(data, size, *, rng):
    return data + rng.laplace(scale=cached(2.0), size=size)


def test_a_cached_function_is_left_alone():
    cached.cache_clear()
    assert "cached" not in {change.function for change in found(uses_cache).values()}
    cached.cache_clear()
    assert changes(uses_cache, reached(uses_cache, [0.0], 8))[1] == ["cached"]


def test_functions_are_found_where_the_collector_does_not_look():
    gc.freeze()
    try:
        assert len(found(Response(1.0), [0, 1])) == 5
    finally:
        gc.unfreeze()


class Uncopied:
    """A mechanism that cannot be copied, as one that holds a lock or a handle."""

    name = "Uncopied"

    def __deepcopy__(self, memo):
        raise TypeError("cannot be copied")

    def __call__(self, data, size, *, rng):
        return data + rng.laplace(size=size)


def test_the_code_of_what_cannot_be_copied_is_left_alone():
    mutated, left_alone = derive(Uncopied(), [0.0])
    assert left_alone == ["Uncopied"]
    assert {m.operator for m in mutated} == {"noise halved", "noise left out", "seed fixed"}


def test_a_mechanism_that_cannot_run_has_no_mutants():
    def failing(data, size, *, rng):
        raise KeyError(data)

    with pytest.raises(MechanismError, match=r"failing raised KeyError: 0\.0 while its mutants were derived"):
        mutants(failing, [0.0])


@dataclass(frozen=True)
class Offering:
    """States its law only while its code is in order."""

    epsilon: float = 1.0

    @property
    def distribution(self):
        if not 1 / self.epsilon < 2:
            raise ZeroDivisionError(self.epsilon)
        return lambda data: data

    def __call__(self, data, size, *, rng):
        _ = self.distribution
        return data + rng.laplace(size=size)


def test_broken_code_that_fails_offers_nothing():
    change = found(Offering())["parameter doubled in Offering.distribution: self.epsilon → 2 * self.epsilon"]
    assert hasattr(Rewritten(Offering(), change), "distribution")
    assert not hasattr(Rewritten(Offering(0.4), change), "nothing")
    assert not hasattr(Rewritten(Offering(0.2), change), "distribution")


def test_only_code_beside_the_mechanism_is_changed():
    names = " ".join(found(Response(1.0), [0, 1]))
    assert "Response.keep" in names
    assert "as_mechanism" not in names
    assert "exp in" not in names


def test_mutants_are_the_same_every_time_and_have_names_of_their_own():
    for mechanism in (Response(1.0), Derived(2.0), LaplaceMechanism(1.0), operators):
        names = [mutant.name for mutant in mutants(mechanism, [1, 2])]
        assert names == [mutant.name for mutant in mutants(mechanism, [1, 2])]
        assert len(set(names)) == len(names)


def test_the_mutants_of_laplace_noise():
    assert [(m.name, m.description) for m in mutants(LaplaceMechanism(2.0), [0.0, 1.0])] == [
        (
            "noise halved: draw 1, laplace in LaplaceMechanism.__call__",
            "what laplace draws in LaplaceMechanism.__call__ (draw 1 of a call) has half its scale, or squared odds",
        ),
        (
            "noise left out: draw 1, laplace in LaplaceMechanism.__call__",
            "what laplace draws in LaplaceMechanism.__call__ (draw 1 of a call) is constant",
        ),
        ("seed fixed: LaplaceMechanism(scale=2)", "every run starts from the same seed"),
        ("parameter halved: scale = 1", "scale is 1 instead of 2"),
        (
            "term left out in LaplaceMechanism.__call__: data + rng.laplace(scale=self.scale, size=size) → data",
            "in LaplaceMechanism.__call__, data + rng.laplace(scale=self.scale, size=size) is replaced by data",
        ),
        (
            "term left out in LaplaceMechanism.__call__: data + rng.laplace(scale=self.scale, size=size) → "
            "rng.laplace(scale=self.scale, size=size)",
            "in LaplaceMechanism.__call__, data + rng.laplace(scale=self.scale, size=size) is replaced by "
            "rng.laplace(scale=self.scale, size=size)",
        ),
        (
            "parameter halved in LaplaceMechanism.__call__: self.scale → self.scale / 2",
            "in LaplaceMechanism.__call__, self.scale is replaced by self.scale / 2",
        ),
    ]


@dataclass(frozen=True)
class Pair:
    part: Base
    delta: float = 0.75

    def __post_init__(self):
        if self.delta >= 1:
            raise ValueError(self.delta)

    def __call__(self, data, size, *, rng):
        return self.part(data, size, rng=rng)


def test_parameters_of_parts_are_changed_and_refused_values_left_out():
    altered = [m for m in mutants(Pair(Base(2.0)), [0.0]) if m.name.startswith("parameter doubled: ")]
    assert [m.name for m in altered] == ["parameter doubled: part.epsilon = 4"]
    assert altered[0].broken == Pair(Base(4.0))


def test_a_mutant_follows_the_protocol():
    for mutant in mutants(Response(1.0), [0, 1]):
        assert list(inspect.signature(mutant.__call__).parameters) == ["data", "size", "rng"]


def renamed(data, size, *, rng):
    inside = np.clip(data, 0, 1)
    scale = max(2.0, 1 / data) if size else 3.0
    drawn = rng.laplace(size=size)
    drawn *= scale
    if size > 2:
        drawn += data
    if data > 9:
        raise ValueError(f"{data * 2}")
    return inside + drawn[: size + 0]


def test_ids_are_those_of_the_code_whatever_its_variables_are_called():
    before, after = (list(found(function, [1.0]).values()) for function in (operators, renamed))
    assert [change.id for change in before] == [change.id.replace("renamed", "operators") for change in after]
    assert before[-2].id == "term left out in operators: _4 + _6[:_2 + 0] → _4"
    assert before[0].id == "clip left out in operators: np.clip(_1, 0, 1) → _1"
    assert len({change.id for change in before}) == len({change.name for change in before}) == len(before)


def test_ids_tell_other_code_apart():
    def first(data, size, *, rng):
        return data + rng.laplace(size=size)

    def second(data, size, *, rng):
        return size + rng.laplace(size=size)

    one, two = ({change.id for change in found(function, [1.0]).values()} for function in (first, second))
    assert not one & {text.replace("second", "first") for text in two}


def test_variables_of_a_comprehension_and_of_a_function_inside_are_numbered_too():
    def summed(data, size, *, rng):
        def shifted(by):
            return by + data

        return np.array([shifted(k) - data for k in range(size)]) + rng.laplace(size=size)

    ids = {change.name: change.id for change in found(summed, [1.0]).values()}
    assert ids["term left out in summed: by + data → by"] == "term left out in summed: _4 + _1 → _4"
    assert ids["term left out in summed: shifted(k) - data → shifted(k)"].endswith(": shifted(_5) - _1 → shifted(_5)")
