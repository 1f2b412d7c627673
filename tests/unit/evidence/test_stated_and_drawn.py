"""What a law lists and what code returns are compared by one representation, whatever kinds of outputs there are."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from auditdp import AnyValues, Audit, PureDP
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.evidence.counting import counting_evidence
from auditdp.evidence.exact import exact_evidence
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.recording import Playback, Recorder
from auditdp.mechanism.calls.representation import Representation
from auditdp.mechanism.laws import FiniteLaw, StepLaw
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.streams import stream
from auditdp.record.budget import AuditBudget, Budget
from auditdp.record.results import Verdict

pytestmark = pytest.mark.dear

NAN, INF = math.nan, math.inf
BIT = AnyValues((0, 1))
Colour = enum.Enum("Colour", "RED GREEN BLUE")


@dataclass(frozen=True)
class Point:
    x: Any
    y: Any


DRAWN_AND_STATED = {
    "none": ([None, 0.5, 1.5], None),
    "none, stated as no number": ([None, 0.5, 1.5], np.array([NAN, 0.5, 1.5])),
    "half beside integers": ([0.5, 0, 1], np.array([0.5, 0, 1])),
    "clipped at an integer": ([0, 1.25, 2.5], np.array([0, 1.25, 2.5])),
    "an integer that is rare": ([0.1, 1 / 3, 0], np.array([0.1, 1 / 3, 0.0])),
    "a double that is rare": ([1, 2, 0.1], np.array([1, 2, 0.1])),
    "truth beside integers": ([True, 0, 2], [1, 0, 2]),
    "truth and one": ([True, 1, 0], None),
    "texts": (["yes", "no", "3 of 4"], None),
    "text beside numbers": (["none", 1, 2.5], None),
    "tuples": ([(0, 1), (1, 0.5), (1, None)], None),
    "arrays, stated as tuples": (
        [np.array([0, 1]), np.array([1, 1]), np.array([1, 0])],
        [(0, 1), (1, 1), (1, 0)],
    ),
    "lists, stated as an array": (
        [[0, 1.5], [0.5, 1], [0, 1]],
        np.array([[0, 1.5], [0.5, 1], [0, 1]]),
    ),
    "a vector that is rarely of another kind": (
        [[0.1, 1.5], [0.5, 1.1], [0, 1.5]],
        None,
    ),
    "nested": ([(1, (2, 3)), (1, (2, None)), ((), 5)], None),
    "sets": ([frozenset({1, 2}), frozenset({3}), frozenset()], None),
    "numbers of numpy": ([np.float32(0.5), np.int8(2), np.bool_(True)], [0.5, 2, True]),
    "dictionaries": ([{"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 1}], None),
    "dictionaries in an order of their own": (
        [{"b": 2, "a": 1}, {"a": 2, "b": 1}, {"a": 1}],
        [{"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 1}],
    ),
    "dictionaries of any order": (
        [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 1}],
        None,
    ),
    "no numbers and infinities": ([NAN, INF, -INF], None),
    "zeros of either sign": ([0.0, -0.0, 1.0], None),
    "minus zero": ([-0.0, 1.0, 2.0], np.array([0, 1, 2])),
    "names": ([Colour.RED, Colour.GREEN, Colour.BLUE], None),
    "bytes beside text": ([b"a", "a", b""], None),
    "objects": ([Point(1, 2), Point(2.5, 1), Point(None, 1)], None),
    "large integers": ([2**60, 2**60 + 1, 0.5], None),
    "exceptions": ([ValueError("!"), 1.5, 2], [ValueError, 1.5, 2]),
    "lists that are long": ([[1] * 40, [2] * 40, []], None),
}
CASES = pytest.mark.parametrize(
    "vectorised", [False, True], ids=["one by one", "together"]
)
OUTPUTS = pytest.mark.parametrize(
    ("drawn", "stated"), DRAWN_AND_STATED.values(), ids=DRAWN_AND_STATED
)


@dataclass(frozen=True)
class Listed:
    """Draws one of three outputs; ``moved`` is what its code gives the last one less than its law."""

    drawn: Any
    stated: Any = None
    moved: float = 0.0

    def law(self, data):
        return [0.55, 0.43, 0.02] if data == 0 else [0.41, 0.53, 0.06]

    def distribution(self, data):
        return FiniteLaw(
            self.drawn if self.stated is None else self.stated, self.law(data)
        )

    def draw(self, data, size, rng):
        first, second, last = self.law(data)
        return rng.choice(
            3, size, p=[first + self.moved * last, second, last - self.moved * last]
        )


class One(Listed):
    def __call__(self, data, rng):
        output = self.drawn[self.draw(data, None, rng)]
        if isinstance(output, Exception):
            raise output
        return output


class Together(Listed):
    def __call__(self, data, size, *, rng):
        return [self.drawn[k] for k in self.draw(data, size, rng)]


def mechanism(drawn, stated, vectorised, moved=0.0):
    return as_mechanism((Together if vectorised else One)(drawn, stated, moved))


def counted(made, seed, calls=2_048):
    return counting_evidence(
        made,
        PureDP(1.1),
        BIT,
        alpha=1e-3,
        calls=calls,
        streams=partial(stream, seed),
        law=made.distribution,
    )


def played(made, claim, **options):
    streams = partial(stream, 3)
    return play_game(
        made,
        claim,
        BIT,
        GameOptions(
            alpha=0.05, budget=AuditBudget.of(3_000, stop_when_refuted=True), **options
        ),
        streams=streams,
    )


@CASES
@OUTPUTS
def test_code_that_draws_from_its_law_follows_it_and_its_likelihood_ratio_takes_part(
    drawn, stated, vectorised
):
    if vectorised and isinstance(drawn[0], Exception):
        pytest.skip("outputs of one call raise together")
    made = mechanism(drawn, stated, vectorised)
    followed = counted(made, 1)
    assert followed.verdict is Verdict.NOT_REFUTED, followed.statement
    assert followed.details.outputs == 3
    exact = exact_evidence(made, PureDP(1.1), BIT)
    assert exact.verdict is Verdict.CERTIFIED
    assert exact.epsilon_upper == pytest.approx(math.log(3))
    game = played(made, PureDP(0.1), forecasters=[LikelihoodRatio()])
    assert game.verdict is Verdict.VIOLATED, game.statement
    assert not [notice for notice in game.details.notices if "law" in notice]


@OUTPUTS
def test_code_that_draws_from_another_law_is_found(drawn, stated):
    raised = isinstance(drawn[0], Exception)  # and outputs of one call raise together
    found = counted(mechanism(drawn, stated, not raised, moved=0.7), 1, calls=6_000)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "does not draw from the law" in found.statement


FORMS = {
    "a type": (
        lambda data, rng: [0.5, 0, 0.0][rng.integers(3)],
        [0.5, 0],
        [1 / 3, 2 / 3],
    ),
    "the sign of zero": (lambda data, rng: -0.0 if data else 0.0, [0.0], [1]),
    "an order of keys": (
        lambda data, rng: {"b": 1, "a": 2} if data else {"a": 2, "b": 1},
        [{"a": 2, "b": 1}],
        [1],
    ),
}


@pytest.mark.parametrize(("function", "stated", "chances"), FORMS.values(), ids=FORMS)
def test_a_law_of_part_of_the_output_certifies_nothing(function, stated, chances):
    made = as_mechanism(function)
    made.distribution = lambda data: FiniteLaw(stated, chances)
    result = run_audit(
        Audit(made, PureDP(1.1), BIT),
        Settings(alpha=0.01, budget=Budget(3_000), root_seed=5),
    )
    assert result.verdict is not Verdict.CERTIFIED
    found = next(e for e in result.evidence if e.kind == "counting")
    assert found.verdict is Verdict.INCONCLUSIVE
    assert f"what it lists as {stated[-1]} came in 2 forms" in found.statement


def test_an_output_that_the_law_does_not_list_is_named_and_the_power_is_that_of_others():
    stated = played(mechanism([None, 0.5, 1.5], None, False), PureDP(2.0))
    made = mechanism([None, 0.5, 1.5], [7, 0.5, 1.5], False)
    game = played(made, PureDP(2.0))
    assert any("gives no probability to" in notice for notice in game.details.notices)
    assert game.details.detectable_epsilon > stated.details.detectable_epsilon
    found = counted(made, 1)
    assert "does not draw from the law that it states" in found.statement


class Clipped:
    """A uniform number from -1 to 3, or to 30, and the integer 0 where that is below 0."""

    def top(self, data):
        return (3, 30)[data]

    def __call__(self, data, rng):
        return max(0, rng.uniform(-1, self.top(data)))


class WithSteps(Clipped):
    def distribution(self, data):
        share = Fraction(1, self.top(data) + 1)
        return StepLaw(
            (0, self.top(data)), (share,), atoms=(0,), probabilities=(share,)
        )


class WithLogProb(Clipped):
    def log_prob(self, outputs, data):
        assert outputs.ndim == 1
        return np.where(outputs <= self.top(data), -math.log(self.top(data) + 1), -INF)


def test_numbers_of_several_kinds_are_compared_with_a_law_of_numbers():
    made = as_mechanism(WithSteps())
    assert counted(made, 2, calls=4_000).verdict is Verdict.NOT_REFUTED
    for each in (made, as_mechanism(WithLogProb())):
        game = played(each, PureDP(1.0), forecasters=[LikelihoodRatio()])
        assert game.verdict is Verdict.VIOLATED
        assert not [
            notice for notice in game.details.notices if "probability" in notice
        ]


def ordered_by(secret, data, rng):
    """Noisy counts, those first that were largest before the noise, or with it."""
    raw = {"a": 10 + data, "b": 11 - data, "c": 5}
    noisy = {key: count + rng.laplace(scale=2) for key, count in raw.items()}
    first = raw if secret else noisy
    return {key: noisy[key] for key in sorted(noisy, key=lambda key: -first[key])}


class Series:
    """What columns of pandas offer."""

    iloc = dtype = None

    def __init__(self, labels, values):
        self.index, self.values = labels, values

    def __iter__(self):
        return iter(self.values)


def minus_zero(data, size, *, rng):
    rows = rng.laplace(size=(size, 3))
    rows[:, 1] = np.where(rows[:, 1] < 0, -0.0 if data else 0.0, rows[:, 1])
    return rows


SEEN = {
    "order of keys": partial(ordered_by, True),
    "labels": lambda data, rng: Series(
        ["a", "b"] if data else ["b", "a"], list(rng.laplace(size=2))
    ),
    "sign of zero": minus_zero,
    "type of a number": lambda data, rng: [1.5, 2.5, np.float32(0.5) if data else 0.5][
        rng.integers(3)
    ],
    "type of a later number": lambda data, rng: [
        *map(float, rng.integers(0, 2, 12)),
        1 if data else 1.0,
    ],
    "list or tuple": lambda data, rng: {"kept": (list, tuple)[data](rng.random(2))},
    "an order that is rare": lambda data, rng: (
        {"b": 1, "a": 1} if data and rng.random() < 0.04 else {"a": 1, "b": 1}
    ),
}


@pytest.mark.parametrize("function", SEEN.values(), ids=SEEN)
def test_whatever_a_reader_sees_of_an_output_is_looked_at(function):
    assert played(as_mechanism(function), PureDP(1.0)).verdict is Verdict.VIOLATED


def test_order_by_noisy_counts_keeps_a_claim():
    assert (
        played(as_mechanism(partial(ordered_by, False)), PureDP(1.0)).verdict
        is Verdict.NOT_REFUTED
    )


def test_an_order_of_keys_that_some_outputs_lack_is_one_order():
    def names(*outputs):
        return Representation.of([list(outputs)]).names(outputs[0])

    assert not [
        name
        for name in names({"z": 1, "a": 2}, {"a": 3}, {"z": 2}, {})
        if "place" in name
    ]
    assert "the place of output['a']" in names({"z": 1, "a": 2}, {"a": 3, "z": 1})


def test_outputs_that_were_recorded_are_compared_with_the_law_as_when_they_were_drawn():
    calls = Recorder(Calls(mechanism([None, 0.5, 0], None, False)))
    calls.look((0, 1), np.random.default_rng(1))
    rows = calls(0, 50, np.random.default_rng(2))
    again = Playback(Calls(calls.mechanism), calls.recorded())
    assert again.form == calls.form
    law = calls.mechanism.distribution(0)
    assert (
        law.places(again(0, 50, None), again.form) == law.places(rows, calls.form)
    ).all()
