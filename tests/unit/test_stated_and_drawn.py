"""What a law lists and what code returns are compared by one representation, whatever kinds of outputs there are."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from auditdp import AnyValues, Audit, PureDP
from auditdp.betting.forecasters import LikelihoodRatio
from auditdp.evidence.counting import counting_evidence
from auditdp.evidence.exact import exact_evidence
from auditdp.evidence.game import play_game
from auditdp.judgement import Settings, run_audit
from auditdp.laws import FiniteLaw, StepLaw
from auditdp.mechanism import as_mechanism
from auditdp.randomness import stream
from auditdp.results import Verdict

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
    "arrays, stated as tuples": ([np.array([0, 1]), np.array([1, 1]), np.array([1, 0])], [(0, 1), (1, 1), (1, 0)]),
    "lists, stated as an array": ([[0, 1.5], [0.5, 1], [0, 1]], np.array([[0, 1.5], [0.5, 1], [0, 1]])),
    "a vector that is rarely of another kind": ([[0.1, 1.5], [0.5, 1.1], [0, 1.5]], None),
    "nested": ([(1, (2, 3)), (1, (2, None)), ((), 5)], None),
    "sets": ([frozenset({1, 2}), frozenset({3}), frozenset()], None),
    "numbers of numpy": ([np.float32(0.5), np.int8(2), np.bool_(True)], [0.5, 2, True]),
    "dictionaries": ([{"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 1}], None),
    "dictionaries in an order of their own": (
        [{"b": 2, "a": 1}, {"a": 2, "b": 1}, {"a": 1}],
        [{"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 1}],
    ),
    "dictionaries of any order": ([{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 1}], None),
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
CASES = pytest.mark.parametrize("vectorised", [False, True], ids=["one by one", "together"])
OUTPUTS = pytest.mark.parametrize(("drawn", "stated"), DRAWN_AND_STATED.values(), ids=DRAWN_AND_STATED)


@dataclass(frozen=True)
class Listed:
    """Draws one of three outputs; ``moved`` is what its code gives the last one less than its law."""

    drawn: Any
    stated: Any = None
    moved: float = 0.0

    def law(self, data):
        return [0.55, 0.43, 0.02] if data == 0 else [0.41, 0.53, 0.06]

    def distribution(self, data):
        return FiniteLaw(self.drawn if self.stated is None else self.stated, self.law(data))

    def draw(self, data, size, rng):
        first, second, last = self.law(data)
        return rng.choice(3, size, p=[first + self.moved * last, second, last - self.moved * last])


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
    return play_game(made, claim, BIT, alpha=0.05, calls=3_000, streams=streams, stop_when_refuted=True, **options)


@CASES
@OUTPUTS
def test_code_that_draws_from_its_law_follows_it_and_its_likelihood_ratio_takes_part(drawn, stated, vectorised):
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


@CASES
@OUTPUTS
def test_code_that_draws_from_another_law_is_found(drawn, stated, vectorised):
    if vectorised and isinstance(drawn[0], Exception):
        pytest.skip("outputs of one call raise together")
    found = counted(mechanism(drawn, stated, vectorised, moved=0.7), 1, calls=6_000)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "does not draw from the law" in found.statement
