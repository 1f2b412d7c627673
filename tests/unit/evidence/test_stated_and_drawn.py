"""Outcomes of a law and outputs of code are compared by one representation."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from auditdp import FiniteLaw, PureDP, StepLaw
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.evidence.counting import counting_evidence
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.recording import Playback, Recorder
from auditdp.mechanism.calls.representation import Representation
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.streams import stream
from tests.unit.evidence.toys import (
    BIT,
    CERTIFIED,
    INCONCLUSIVE,
    NOT_REFUTED,
    VIOLATED,
    audited,
    exact,
    played,
)

NAN, INF = math.nan, math.inf


@dataclass(frozen=True)
class Point:
    x: Any
    y: Any


SAME = None
"""The law lists the outputs as the code returns them."""

OUTPUTS = pytest.mark.parametrize(
    ("drawn", "stated"),
    [
        ([None, 0.5, 1.5], np.array([NAN, 0.5, 1.5])),
        ([0.5, 0, 1], np.array([0.5, 0, 1])),
        (
            [np.array([0, 1]), np.array([1, 1]), np.array([1, 0])],
            [(0, 1), (1, 1), (1, 0)],
        ),
        ([np.float32(0.5), np.int8(2), np.bool_(True)], [0.5, 2, True]),
        (
            [{"b": 2, "a": 1}, {"a": 2}, {"a": 1}],
            [{"a": 1, "b": 2}, {"a": 2}, {"a": 1}],
        ),
        ([NAN, INF, -INF], SAME),
        ([0.0, -0.0, 1.0], SAME),
        ([Point(1, 2), Point(2.5, 1), Point(None, 1)], SAME),
        ([ValueError("!"), 1.5, 2], [ValueError, 1.5, 2]),
    ],
)


@dataclass(frozen=True)
class Listed:
    """Draws one of three outputs.

    ``moved`` is the share of the last one that its code moves to the first.
    """

    drawn: Any
    stated: Any = SAME
    moved: float = 0.0

    def law(self, data):
        return [0.55, 0.43, 0.02] if data == 0 else [0.41, 0.53, 0.06]

    def distribution(self, data):
        outputs = self.drawn if self.stated is SAME else self.stated
        return FiniteLaw(outputs, self.law(data))

    def draw(self, data, size, rng):
        first, second, last = self.law(data)
        moved = self.moved * last
        return rng.choice(3, size, p=[first + moved, second, last - moved])


class One(Listed):
    def __call__(self, data, rng):
        output = self.drawn[self.draw(data, None, rng)]
        if isinstance(output, Exception):
            raise output
        return output


class Together(Listed):
    def __call__(self, data, size, *, rng):
        return [self.drawn[k] for k in self.draw(data, size, rng)]


def kinds(drawn):
    """Mechanisms of one output and of many; outputs of one call raise together."""
    return [One] if isinstance(drawn[0], Exception) else [Together, One]


def counted(mechanism, calls=2_048, seed=1):
    return counting_evidence(
        as_mechanism(mechanism),
        PureDP(1.1),
        BIT,
        alpha=1e-3,
        calls=calls,
        streams=partial(stream, seed),
        law=mechanism.distribution,
    )


def play(mechanism, epsilon=1.0, **options):
    options = {"streams": partial(stream, 3), "stop_when_refuted": True, **options}
    return played(mechanism, PureDP(epsilon), BIT, 3_000, **options)


@pytest.mark.dear
@OUTPUTS
def test_code_that_draws_from_its_law_follows_it_and_is_refuted_by_its_likelihood_ratio(
    drawn, stated
):
    for kind in kinds(drawn):
        mechanism = kind(drawn, stated)
        followed = counted(mechanism)
        assert followed.verdict is NOT_REFUTED, followed.statement
        assert followed.details.outputs == 3
        law = exact(mechanism, PureDP(1.1))
        assert law.verdict is CERTIFIED
        assert law.epsilon_upper == pytest.approx(math.log(3))
        game = play(mechanism, 0.1, forecasters=[LikelihoodRatio()])
        assert game.verdict is VIOLATED, game.statement
        assert "law" not in " ".join(game.details.notices)


@pytest.mark.dear
@OUTPUTS
def test_code_that_draws_from_another_law_is_found(drawn, stated):
    found = counted(kinds(drawn)[0](drawn, stated, 0.7), calls=6_000)
    assert found.verdict is INCONCLUSIVE
    assert "does not draw from its stated law" in found.statement


@pytest.mark.dear
@pytest.mark.parametrize(
    ("function", "stated", "chances"),
    [
        (
            lambda data, rng: [0.5, 0, 0.0][rng.integers(3)],
            [0.5, 0],
            [1 / 3, 2 / 3],
        ),
        (lambda data, rng: -0.0 if data else 0.0, [0.0], [1]),
        (
            lambda data, rng: {"b": 1, "a": 2} if data else {"a": 2, "b": 1},
            [{"a": 2, "b": 1}],
            [1],
        ),
    ],
    ids=["type", "sign of zero", "order of keys"],
)
def test_a_law_of_part_of_the_output_certifies_nothing(function, stated, chances):
    mechanism = as_mechanism(function)
    mechanism.distribution = lambda data: FiniteLaw(stated, chances)
    result = audited(mechanism, PureDP(1.1), BIT, seed=5, budget=3_000)

    assert result.verdict is not CERTIFIED
    found = next(each for each in result.evidence if each.kind == "counting")
    assert found.verdict is INCONCLUSIVE
    assert f"the listed output {stated[-1]} occurred in 2 forms" in found.statement


def test_an_output_that_the_law_does_not_list_is_named_and_costs_power():
    followed = play(One([None, 0.5, 1.5]), 2.0)
    mechanism = One([None, 0.5, 1.5], [7, 0.5, 1.5])
    game = play(mechanism, 2.0)

    assert "gives no probability to" in " ".join(game.details.notices)
    assert game.details.detectable_epsilon > followed.details.detectable_epsilon
    assert "does not draw from its stated law" in counted(mechanism).statement


class Clipped:
    """A uniform number from -1 to 3 or 30, and the integer 0 instead of less."""

    def top(self, data):
        return (3, 30)[data]

    def __call__(self, data, rng):
        return max(0, rng.uniform(-1, self.top(data)))


class WithSteps(Clipped):
    def distribution(self, data):
        top = self.top(data)
        share = (Fraction(1, top + 1),)
        return StepLaw((0, top), share, atoms=(0,), probabilities=share)


class WithLogProb(Clipped):
    def log_prob(self, outputs, data):
        assert outputs.ndim == 1
        top = self.top(data)
        return np.where(outputs <= top, -math.log(top + 1), -INF)


def test_numbers_of_several_kinds_are_compared_with_a_law_of_numbers():
    assert counted(WithSteps(), calls=4_000, seed=2).verdict is NOT_REFUTED
    for mechanism in (WithSteps(), WithLogProb()):
        game = play(mechanism, forecasters=[LikelihoodRatio()])
        assert game.verdict is VIOLATED
        assert "probability" not in " ".join(game.details.notices)


def by_raw_counts(data, rng, noisy_order=False):
    """Noisy counts, those first that are largest before the noise, or with it."""
    raw = {"a": 10 + data, "b": 11 - data, "c": 5}
    noisy = {key: count + rng.laplace(scale=2) for key, count in raw.items()}
    first = noisy if noisy_order else raw
    return {key: noisy[key] for key in sorted(noisy, key=lambda key: -first[key])}


def type_of_a_number(data, rng):
    return [1.5, 2.5, np.float32(0.5) if data else 0.5][rng.integers(3)]


def type_of_a_later_number(data, rng):
    return [*map(float, rng.integers(0, 2, 12)), 1 if data else 1.0]


def list_or_tuple(data, rng):
    return {"kept": (list, tuple)[data](rng.random(2))}


def rare_order(data, rng):
    rare = data and rng.random() < 0.04
    return {"b": 1, "a": 1} if rare else {"a": 1, "b": 1}


@pytest.mark.dear
@pytest.mark.parametrize(
    "function",
    [
        by_raw_counts,
        type_of_a_number,
        type_of_a_later_number,
        list_or_tuple,
        rare_order,
    ],
)
def test_everything_that_a_reader_can_distinguish_is_part_of_the_output(function):
    assert play(function).verdict is VIOLATED


def test_an_order_by_noisy_counts_keeps_a_claim():
    mechanism = partial(by_raw_counts, noisy_order=True)
    assert play(mechanism).verdict is NOT_REFUTED


@pytest.mark.parametrize(
    ("outputs", "has_places"),
    [
        ([{"z": 1, "a": 2}, {"a": 3}, {"z": 2}, {}], False),
        ([{"z": 1, "a": 2}, {"a": 3, "z": 1}], True),
    ],
)
def test_an_order_of_keys_that_some_outputs_lack_is_one_order(outputs, has_places):
    names = Representation.of([outputs]).names(outputs[0])
    assert any("place" in name for name in names) is has_places


def test_recorded_outputs_are_compared_with_the_law_as_when_they_were_drawn():
    calls = Recorder(Calls(as_mechanism(One([None, 0.5, 0]))))
    calls.look((0, 1), np.random.default_rng(1))
    rows = calls(0, 50, np.random.default_rng(2))
    again = Playback(Calls(calls.mechanism), calls.recorded())

    assert again.form == calls.form
    law = calls.mechanism.distribution(0)
    drawn = law.places(rows, calls.form)

    assert (law.places(again(0, 50, None), again.form) == drawn).all()
