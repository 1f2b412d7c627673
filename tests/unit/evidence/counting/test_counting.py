"""Counting as evidence: what it says of mechanisms whose loss and law are known, where it says nothing, and its place."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from auditdp import AnyValues, ApproxDP, Audit, GaussianDP, Pair, PureDP, StepLaw
from auditdp.auditing.gathering import COUNTING_ALPHA, Settings
from auditdp.auditing.judging import run_audit
from auditdp.errors import MechanismError
from auditdp.evidence.counting import FIRST_RUNS, counting_evidence
from auditdp.mechanism.laws import FiniteLaw, GaussianLaw
from auditdp.numerics.streams import stream
from auditdp.record.results import RESULT, RunRecord, Verdict
from auditdp.report import terminal
from auditdp.report.html import pages as html
from auditdp.report.sentences import counting_sentences
from auditdp.testing import LaplaceMechanism, LeakyResponse, Response

BIT = AnyValues((0, 1))
CALLS = 12_500


def streams(purpose, number):
    return stream(7, purpose, number)


def evidence(
    mechanism,
    claim=PureDP(1.0),  # noqa: B008
    adjacency=BIT,
    *,
    alpha=1e-3,
    calls=CALLS,
    **options,
):
    return counting_evidence(
        mechanism,
        claim,
        adjacency,
        alpha=alpha,
        calls=calls,
        streams=streams,
        **options,
    )


def audit(mechanism, claim=PureDP(1.0), pairs=BIT, budget=4_000, **options):  # noqa: B008
    return run_audit(
        Audit(mechanism, claim, pairs, **options),
        Settings(alpha=0.01, calls=budget, root_seed=5),
    )


@dataclass(frozen=True)
class Biased:
    """A fair bit by its law, and one of probability ½ + bias by its code."""

    bias: float

    def __call__(self, data, size, *, rng):
        return (rng.random(size) < 0.5 + self.bias).astype(np.int8)

    def distribution(self, data):
        return FiniteLaw(np.array([0, 1]), [0.5, 0.5])


@dataclass(frozen=True)
class Uniform:
    """A uniform number by its law, and its power by its code."""

    power: float = 1.0

    def __call__(self, data, size, *, rng):
        return rng.random(size) ** self.power

    def distribution(self, data):
        return StepLaw([0, 1], [1])


@pytest.mark.parametrize(
    ("mechanism", "truth", "within"),
    [
        (Response(1.0), 1.0, 1.12),
        (Response(0.1), 0.1, 2.0),
        (lambda data, size, *, rng: rng.integers(0, 8, size), 0.0, None),
    ],
    ids=["ε = 1", "ε = .1", "ε = 0"],
)
def test_the_loss_is_bounded_from_above(mechanism, truth, within):
    found = evidence(mechanism)
    assert found.verdict is Verdict.NOT_REFUTED
    assert truth <= found.epsilon_upper <= (0.5 if within is None else within * truth)
    assert 0 < found.details.delta_upper < 0.01
    assert 0 <= found.calls - CALLS - 2 * (CALLS // 50) <= 1
    assert "on the only pair of neighbours" in found.statement
    assert "confidence 99.9%" in found.statement
    assert found.details.followed is None


def test_pairs_that_are_not_all_pairs_are_said_to_be_those_counted():
    some = evidence(Response(1.0), adjacency=AnyValues((0, 1, 5)), play=[Pair(0, 1)])
    assert "on the counted pair" in some.statement
    everything = evidence(
        lambda data, size, *, rng: rng.integers(0, 2, size),
        adjacency=AnyValues((0, 1, 5)),
    )
    assert "all 3 pairs of neighbours" in everything.statement


def test_a_revealing_mechanism_has_no_upper_bound():
    found = evidence(Response(math.inf))
    assert found.epsilon_upper is None
    assert "they give no upper bound on ε" in found.statement
    assert found.verdict is Verdict.NOT_REFUTED, (
        "an upper bound is no evidence of a violation"
    )


def test_rare_outputs_of_infinite_ratio_are_paid_with_delta():
    """One output of probability 1e-4 that the other input cannot give: δ may be above that, ε is not infinite."""
    found = evidence(LeakyResponse(1.0, 1e-4))
    assert 1e-4 < found.details.delta_upper < 0.02
    assert 0.9 < found.epsilon_upper < 2


def test_geometric_noise_without_end_is_bounded():
    def noisy(data, size, *, rng):
        return (
            data
            + rng.geometric(1 - math.exp(-1), size)
            - rng.geometric(1 - math.exp(-1), size)
        )

    found = evidence(noisy)
    assert 0.9 < found.epsilon_upper < 2.5
    assert found.details.delta_upper < 0.05


def test_a_claim_with_delta_is_bounded_at_its_epsilon_and_at_its_delta():
    found = evidence(LeakyResponse(1.0, 0.05), ApproxDP(1.0, 0.05))
    assert 0.05 < found.details.delta_at_claim < 0.12
    assert [bound.delta for bound in found.details.upper_bounds] == [0.05, 0.1]
    assert found.details.upper_bounds[0].epsilon == math.inf, (
        "what is revealed may be a little more than .05"
    )
    assert found.details.delta_upper == 0.1
    assert 0.7 < found.epsilon_upper < 1.5
    tiny = evidence(Response(1.0), ApproxDP(1.0, 1e-9))
    assert tiny.details.delta_upper > 1e-9, "runs are too few for the claimed δ"


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (LaplaceMechanism(1.0), {}),
        (lambda data, size, *, rng: rng.integers(0, 100, size), {}),
        (Response(1.0), {"calls": 2 * FIRST_RUNS - 1}),
        (Response(1.0), {"claim": GaussianDP(1.0)}),
    ],
    ids=["real numbers", "100 outputs", "few calls", "Gaussian claim"],
)
def test_where_counting_says_nothing_it_ends_after_a_few_calls(mechanism, options):
    spent = []

    def watched(data, size, *, rng):
        spent.append(size)
        return mechanism(data, size, rng=rng)

    assert evidence(watched, **options) is None
    assert sum(spent) <= 2 * FIRST_RUNS + 64 + 64


def test_one_input_that_keeps_its_noise_is_an_error():
    with pytest.raises(MechanismError, match="independent"):
        evidence(lambda data, size, *, rng: np.full(size, rng.random()))


def test_a_finite_law_that_is_followed_has_a_distance():
    mechanism = Biased(0.0)
    found = evidence(mechanism, law=mechanism.distribution)
    assert found.verdict is Verdict.NOT_REFUTED
    assert 0 < found.details.law_distance < 0.035
    assert found.details.law_distance_is == "total variation"
    assert "within total variation" in found.details.followed


@pytest.mark.parametrize(
    ("mechanism", "reason"),
    [
        (Biased(0.05), "come out so at most once in 10^"),
        (Uniform(1.1), "of which chance explains"),
        (LeakyResponse(1.0, 0.01), "probability 0"),
    ],
    ids=["finite", "numbers", "excluded output"],
)
def test_a_law_that_is_not_followed_is_refuted(mechanism, reason):
    law = getattr(mechanism, "distribution", None)
    if isinstance(mechanism, LeakyResponse):
        law = Response(1.0).distribution
    found = evidence(mechanism, law=law)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.statement.startswith(
        "The code does not draw from the law that it states"
    )
    assert reason in found.statement
    assert found.details.followed is None


@pytest.mark.parametrize("claim", [PureDP(1.0), GaussianDP(1.0)], ids=str)
def test_numbers_are_compared_by_their_distribution_function(claim):
    found = evidence(Uniform(), claim, law=Uniform().distribution)
    assert found.epsilon_upper is None
    assert 0 < found.details.law_distance < 0.05
    assert "within Kolmogorov distance" in found.statement

    def normal(data, size, *, rng):
        return rng.normal(size=size)

    assert (
        evidence(normal, law=lambda data: GaussianLaw(np.zeros(1), 1.0)).verdict
        is Verdict.NOT_REFUTED
    )
    assert evidence(normal, law=lambda data: GaussianLaw(np.zeros(2), 1.0)) is None


def test_more_outputs_than_a_law_may_have_refute_it():
    found = evidence(
        lambda data, size, *, rng: rng.random(size), law=Biased(0.0).distribution
    )
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "different outputs" in found.statement


def test_a_certificate_says_how_well_the_code_was_seen_to_follow_its_law():
    result = audit(Response(1.0), PureDP(1.5))
    assert result.verdict is Verdict.CERTIFIED
    assert (
        "the code was seen to follow its law within total variation" in result.summary
    )
    assert [e.kind for e in result.evidence] == ["exact", "game", "counting"]


def test_a_certified_law_that_the_code_does_not_follow_is_no_certificate():
    """The code loses less than the claim and than its law, so no bet can see the fault; before, this was CERTIFIED."""
    result = audit(Biased(0.2), PureDP(1.0))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "does not draw from the law that it states" in result.summary


def test_the_bounds_of_an_audit_are_not_those_of_the_pairs_played():
    result = audit(
        lambda data, size, *, rng: Response(0.8)(data, size, rng=rng), PureDP(1.0)
    )
    assert result.epsilon_upper is None
    (played,) = [e for e in result.evidence if e.kind == "counting"]
    assert result.epsilon_lower < 0.8 < played.epsilon_upper
    assert sum(e.calls for e in result.evidence) <= result.calls <= 4_000


def test_alpha_is_shared_where_counting_applies_and_nowhere_else():
    def threshold(result):
        (game,) = [e for e in result.evidence if e.kind == "game"]
        return game.details.threshold

    assert threshold(audit(Response(1.0))) == pytest.approx(
        -math.log(0.01 * (1 - COUNTING_ALPHA))
    )
    assert threshold(audit(Response(1.0), evidence=["exact", "game"])) == pytest.approx(
        -math.log(0.01)
    )
    hidden = audit(
        lambda data, size, *, rng: LaplaceMechanism(1.0)(data, size, rng=rng)
    )
    assert threshold(hidden) == pytest.approx(-math.log(0.01))
    assert [e.kind for e in hidden.evidence] == ["game"]


def test_controls_are_not_counted():
    result = audit(Response(1.0), controls=[Response(4.0)])
    assert result.controls[0].verdict is Verdict.VIOLATED
    assert "counting" not in result.controls[0].statement


def test_reports_show_the_bound_with_its_scope():
    result = audit(
        lambda data, size, *, rng: Response(0.8)(data, size, rng=rng),
        PureDP(1.0),
        budget=20_000,
    )
    again = RESULT.validate_json(RESULT.dump_json(result))
    assert counting_sentences(again) == counting_sentences(result)
    line = terminal.line(result, width=120)
    assert "at most" in line
    assert "but for outputs of probability δ = " in line
    assert "the only pair of" in line
    record = RunRecord(1, "complete", {}, {}, "", "", [], [result])
    page = html.report(record)
    assert "but for outputs of probability δ = " in page
    assert "Upper bounds that hold together" in page
