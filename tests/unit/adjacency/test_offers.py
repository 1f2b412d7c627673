"""Adjacencies may offer more than listed pairs, and wrong offers are refused."""

import numpy as np
import pytest
from hypothesis import strategies as st

from auditdp import AnyValues, Box, Edges, FiniteLaw, Pair, PureDP, Verdict, check
from auditdp.adjacency import as_adjacency
from auditdp.adjacency.adjacency import offers
from auditdp.adjacency.values import of_size
from auditdp.errors import AdjacencyError
from auditdp.evidence.exact import exact_evidence
from auditdp.evidence.sensitivity import sensitivity_evidence
from auditdp.numerics.streams import stream

VIOLATED = Verdict.VIOLATED


class Least:
    """Numbers one apart: only what every adjacency has."""

    name = "numbers one apart"

    def check(self, pair):
        if abs(pair.data - pair.neighbour) != 1:
            raise AdjacencyError(f"{pair} are not one apart")

    def pairs(self):
        return [Pair(1, 0), Pair(3, 2)]

    def exhaustive(self):
        return None


def test_an_adjacency_may_offer_nothing_but_its_pairs():
    offered = offers(Least())
    assert offered.generated is offered.wide is offered.corner_cases is None
    assert offered.remedy == ""


def test_an_adjacency_of_this_package_offers_more():
    box, edges = offers(Box(0.0, 1.0)), offers(Edges(4))
    assert box.generated is not None
    assert box.wide is not None
    assert all(isinstance(pair, Pair) for pair in box.corner_cases)
    assert edges.wide is not None
    assert edges.corner_cases is None
    values = offers(AnyValues((0.5, 1.5)))
    assert values.wide is None
    assert "finite=True" in values.remedy
    assert offers(of_size(AnyValues(((0.5,), (1.5,))), 1)).remedy == values.remedy


STRATEGY = "to return a Hypothesis strategy"
ONE_PAIR = Pair(1, 0)


@pytest.mark.parametrize(
    ("method", "value", "message"),
    [
        ("strategy", st.just(ONE_PAIR), "a method strategy"),
        ("strategy", lambda self: [ONE_PAIR], f"strategy.. {STRATEGY}"),
        ("wide", lambda self: ONE_PAIR, f"wide.. {STRATEGY}"),
        ("corner_cases", lambda self: [(1, 0)], "corner_cases.. to return a list of"),
        ("corner_cases", [ONE_PAIR], "a method corner_cases"),
    ],
)
def test_a_wrong_method_is_refused_by_name(method, value, message):
    adjacency = type("More", (Least,), {method: value})()
    part = "generated" if method == "strategy" else method
    refusal = f"numbers one apart: expected {message}.*, got .*correct or rename it"
    with pytest.raises(AdjacencyError, match=refusal):
        getattr(offers(adjacency), part)


class Answer:
    """Releases its input up to noise of one of three values, and has the law and the query of that."""

    name, sensitivity, norm = "answer", 2, "l1"

    def __call__(self, data, size, *, rng):
        return data + rng.integers(0, 3, size)

    def query(self, data, rng):
        return data

    def distribution(self, data):
        return FiniteLaw(np.arange(data, data + 3), [1 / 3] * 3)


def test_evidence_needs_no_strategy():
    exact = exact_evidence(Answer(), PureDP(1.0), Least())
    assert exact.verdict is VIOLATED
    assert exact.counterexample.pair == "1 | 0"
    calibrated = sensitivity_evidence(
        Answer(), Least(), streams=lambda purpose, batch: stream(0, purpose, batch)
    )
    assert calibrated.verdict is Verdict.NOT_REFUTED
    assert calibrated.details.pairs_compared == 2
    assert check(Answer(), PureDP(1.0), Least(), calls=2_000).verdict is VIOLATED


def test_pairs_of_a_size_generate_nothing_where_the_adjacency_does_not():
    class Texts(Least):
        def check(self, pair):
            pass

        def pairs(self):
            return [Pair("ab", "a"), Pair("abc", "ab")]

    sized = of_size(Texts(), 2)
    assert [str(pair) for pair in sized.pairs()] == ["'abc' | 'ab'"]
    assert sized.strategy().is_empty
    assert sized.wide().is_empty
    assert sized.corner_cases() == []


def test_an_adjacency_that_lacks_a_method_is_refused_by_name():
    class Unfinished:
        name = "unfinished"

        def check(self, pair):
            pass

        def pairs(self):
            return []

    with pytest.raises(
        AdjacencyError, match="but no exhaustive, which every adjacency has"
    ):
        as_adjacency(Unfinished())
