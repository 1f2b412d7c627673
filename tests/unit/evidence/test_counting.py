"""Counting as evidence: bounds on known losses, and laws that code follows or not."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from auditdp import AnyValues, ApproxDP, GaussianDP, Pair, PureDP, StepLaw
from auditdp.auditing.gathering import UNCERTAIN_SHARE
from auditdp.errors import MechanismError
from auditdp.evidence.counting import FIRST_RUNS, counting_evidence
from auditdp.numerics.streams import stream
from auditdp.record.results import RESULT, RunRecord
from auditdp.report import terminal
from auditdp.report.html import pages as html
from auditdp.report.sentences import counting_sentences
from auditdp.testing import LaplaceMechanism, LeakyResponse, Response
from tests.unit.evidence.toys import (
    BIT,
    CERTIFIED,
    INCONCLUSIVE,
    NOT_REFUTED,
    VIOLATED,
    audited,
    finite,
)

CALLS = 12_500
PURE = PureDP(1.0)


def evidence(mechanism, claim=PURE, adjacency=BIT, *, calls=CALLS, **options):
    return counting_evidence(
        mechanism,
        claim,
        adjacency,
        alpha=1e-3,
        calls=calls,
        streams=partial(stream, 7),
        **options,
    )


@dataclass(frozen=True)
class Biased:
    """A fair bit by its law, and one of probability ½ + bias by its code."""

    bias: float

    def __call__(self, data, size, *, rng):
        return (rng.random(size) < 0.5 + self.bias).astype(np.int8)

    def distribution(self, data):
        return finite(0.5, 0.5)


@dataclass(frozen=True)
class Uniform:
    """A uniform number by its law, and its power by its code."""

    power: float = 1.0

    def __call__(self, data, size, *, rng):
        return rng.random(size) ** self.power

    def distribution(self, data):
        return StepLaw([0, 1], [1])


def integers(most):
    return lambda data, size, *, rng: rng.integers(0, most, size)


def geometric(data, size, *, rng):
    first, second = rng.geometric(1 - math.exp(-1), (2, size))
    return data + first - second


def uniform(data, size, *, rng):
    return rng.random(size)


# Upper bounds.


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "delta"),
    [
        (Response(1.0), (1.0, 1.12), (0, 0.01)),
        (geometric, (0.9, 2.5), (0, 0.05)),
        # One output of probability 1e-4 that the other input cannot give costs δ.
        (LeakyResponse(1.0, 1e-4), (0.9, 2.0), (1e-4, 0.02)),
    ],
)
def test_the_loss_is_bounded_from_above(mechanism, epsilon, delta):
    found = evidence(mechanism)
    assert found.verdict is NOT_REFUTED
    assert epsilon[0] <= found.epsilon_upper <= epsilon[1]
    assert delta[0] < found.details.delta_upper < delta[1]
    assert 0 <= found.calls - CALLS - 2 * (CALLS // 50) <= 1
    assert "on the only pair of neighbours" in found.statement
    assert "confidence 99.9%" in found.statement
    assert found.details.followed is None


def test_a_revealing_mechanism_has_no_upper_bound_and_is_not_refuted():
    found = evidence(Response(math.inf))
    assert found.epsilon_upper is None
    assert "they give no upper bound on ε" in found.statement
    assert found.verdict is NOT_REFUTED


def test_the_statement_names_the_counted_pairs():
    three = AnyValues((0, 1, 5))
    some = evidence(Response(1.0), adjacency=three, play=[Pair(0, 1)], calls=3_000)
    assert "on the counted pair" in some.statement

    everything = evidence(integers(2), adjacency=three, calls=3_000)
    assert "all 3 pairs of neighbours" in everything.statement


def test_a_claim_with_delta_is_bounded_at_its_epsilon_and_at_its_delta():
    found = evidence(LeakyResponse(1.0, 0.05), ApproxDP(1.0, 0.05))
    assert 0.05 < found.details.delta_at_claim < 0.12

    at_claim, above = found.details.upper_bounds
    # The revealed share may be a little more than .05.
    assert (at_claim.delta, at_claim.epsilon) == (0.05, math.inf)
    assert above.delta == found.details.delta_upper == 0.1
    assert 0.7 < found.epsilon_upper < 1.5
    # There are not enough runs for the claimed δ.
    assert evidence(Response(1.0), ApproxDP(1.0, 1e-9)).details.delta_upper > 1e-9


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (LaplaceMechanism(1.0), {}),
        (Response(1.0), {"calls": 2 * FIRST_RUNS - 1}),
        (Response(1.0), {"claim": GaussianDP(1.0)}),
    ],
)
def test_counting_that_bounds_nothing_ends_after_its_first_runs(mechanism, options):
    sizes = []

    def watched(data, size, *, rng):
        sizes.append(size)
        return mechanism(data, size, rng=rng)

    assert evidence(watched, **options) is None
    assert sum(sizes) <= 2 * FIRST_RUNS + 64 + 64


def test_an_input_that_keeps_its_noise_is_an_error():
    with pytest.raises(MechanismError, match="independent"):
        evidence(lambda data, size, *, rng: np.full(size, rng.random()))


# Laws.


@pytest.mark.parametrize(
    ("mechanism", "claim", "distance", "text"),
    [
        (Biased(0.0), PURE, 0.035, "within total variation"),
        (Uniform(), PURE, 0.05, "within Kolmogorov distance"),
    ],
)
def test_a_law_that_code_follows_has_a_distance(mechanism, claim, distance, text):
    found = evidence(mechanism, claim, law=mechanism.distribution)
    assert found.verdict is NOT_REFUTED
    assert 0 < found.details.law_distance < distance
    assert found.details.law_distance_is in text
    assert text in found.details.followed


@pytest.mark.parametrize(
    ("mechanism", "law", "reason"),
    [
        (Biased(0.05), Biased(0.0), "The code does not draw from its stated law"),
        (Uniform(1.1), Uniform(), "of which chance explains at most"),
        (LeakyResponse(1.0, 0.01), Response(1.0), "probability 0"),
        (uniform, Biased(0.0), "different outputs"),
    ],
)
def test_a_law_that_code_does_not_follow_is_refuted(mechanism, law, reason):
    found = evidence(mechanism, law=law.distribution)
    assert found.verdict is INCONCLUSIVE
    assert reason in found.statement
    assert found.details.followed is None


# In an audit.


def kinds(result):
    return [each.kind for each in result.evidence]


def hidden(mechanism):
    """The same code without its law."""
    return lambda data, size, *, rng: mechanism(data, size, rng=rng)


def test_a_certificate_states_how_well_the_code_follows_its_law():
    result = audited(Response(1.0), PureDP(1.5), BIT)
    assert result.verdict is CERTIFIED
    assert "was observed to follow its law within total variation" in result.summary
    assert kinds(result) == ["exact", "game", "counting"]


def test_a_certified_law_that_the_code_does_not_follow_is_no_certificate():
    """The code loses less than the claim and than its law, so no bet shows the fault.

    This was CERTIFIED once.
    """
    result = audited(Biased(0.2), PURE, BIT)
    assert result.verdict is INCONCLUSIVE
    assert "does not draw from its stated law" in result.summary


def test_a_bound_on_counted_pairs_is_no_bound_of_the_audit():
    result = audited(hidden(Response(0.8)), PURE, BIT)
    assert result.epsilon_upper is None

    (counted,) = (each for each in result.evidence if each.kind == "counting")
    assert result.epsilon_lower < 0.8 < counted.epsilon_upper
    assert sum(each.calls for each in result.evidence) <= result.calls <= 4_000


@pytest.mark.parametrize(
    ("mechanism", "options", "share"),
    [
        (Response(1.0), {}, 1 - UNCERTAIN_SHARE),
        (Response(1.0), {"evidence": ["exact", "game"]}, 1.0),
    ],
)
def test_alpha_is_shared_only_if_counting_applies(mechanism, options, share):
    result = audited(mechanism, PURE, BIT, **options)
    (game,) = (each for each in result.evidence if each.kind == "game")
    assert game.details.threshold == pytest.approx(-math.log(0.01 * share))
    assert ("counting" in kinds(result)) == (share < 1)


def test_controls_are_not_counted():
    result = audited(Response(1.0), PURE, BIT, controls=[Response(4.0)])
    assert result.controls[0].verdict is VIOLATED
    assert "counting" not in result.controls[0].statement


def test_reports_show_the_bound_with_its_scope():
    result = audited(hidden(Response(0.8)), PURE, BIT, budget=12_000)
    again = RESULT.validate_json(RESULT.dump_json(result))
    assert counting_sentences(again) == counting_sentences(result)

    line = terminal.line(result, width=120)
    page = html.report(RunRecord(1, "complete", {}, {}, "", "", [], [result]))
    for text in ("at most", "the only pair of"):
        assert text in line
    for shown in (line, page):
        assert "but for outputs of probability δ = " in shown

    assert "Upper bounds that hold together" in page
