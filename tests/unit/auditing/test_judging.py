"""One audit: which evidence it gathers, and the verdict that it draws, with and without controls."""

import math
from fractions import Fraction

import numpy as np
import pytest

from auditdp.adjacency import AnyValues, Pair
from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.errors import AdjacencyError, CollectionError, MechanismError
from auditdp.mechanism.laws import FiniteLaw
from auditdp.record.budget import Budget
from auditdp.record.results import Verdict
from auditdp.testing import (
    GaussianMechanism,
    LaplaceMechanism,
    LeakyResponse,
    Response,
    SharedNoise,
)

CERTIFIED, VIOLATED = Verdict.CERTIFIED, Verdict.VIOLATED
NOT_REFUTED, INCONCLUSIVE = Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE
BIT = AnyValues((0, 1))
SETTINGS = Settings(alpha=1e-6, budget=Budget(3000), root_seed=0, key="test")
SAFE, UNSAFE = Response(1.0 - 1e-9), Response(2.0)


class Hidden:
    """A mechanism whose law is not stated."""

    def __init__(self, mechanism):
        self.mechanism = mechanism
        self.name = f"hidden {mechanism.name}"

    def __call__(self, data, size, *, rng):
        return self.mechanism(data, size, rng=rng)


class Pretender(Hidden):
    """A mechanism that states one law and draws from another."""

    def __init__(self, mechanism, stated):
        super().__init__(mechanism)
        self.distribution = stated.distribution


class LawAlone:
    """States a law whose pure epsilon is ln 9, and cannot be called."""

    name = "law alone"

    def __call__(self, data, size, *, rng):
        raise RuntimeError("must not be called")

    def distribution(self, data):
        masses = [Fraction(1, 10), Fraction(9, 10)]
        return FiniteLaw(np.array([0, 1]), masses[::-1] if data else masses)


def run(mechanism, claim=PureDP(1.0), settings=SETTINGS, **options):  # noqa: B008
    return run_audit(Audit(mechanism, claim, BIT, **options), settings)


def verdicts(result):
    return {evidence.kind: evidence.verdict for evidence in result.evidence}


def test_a_proof_outranks_a_clean_game():
    result = run(SAFE)
    clean = {"game": NOT_REFUTED, "counting": NOT_REFUTED}
    assert verdicts(result) == {"exact": CERTIFIED} | clean
    assert (result.verdict, result.counterexample) == (CERTIFIED, None)
    assert 0 <= result.epsilon_lower <= result.epsilon_upper
    assert result.epsilon_upper == pytest.approx(1.0, abs=1e-6)
    assert (result.id, result.alpha) == ("test", 1e-6)
    assert 0.9 * SETTINGS.budget.calls < result.calls <= SETTINGS.budget.calls
    assert (result.claim.kind, result.claim.epsilon) == ("PureDP", 1.0)
    assert (result.claim.delta, result.claim.mu) == (0.0, None)


ANOTHER_LAW = "does not draw from its stated law"


@pytest.mark.parametrize(
    ("code", "law", "claim", "found", "summary"),
    [
        (UNSAFE, SAFE, 1.0, {"exact": CERTIFIED, "game": VIOLATED}, ANOTHER_LAW),
        (
            UNSAFE,
            SAFE,
            3.0,
            {"exact": CERTIFIED, "game": NOT_REFUTED},
            "stated law at most 1: it does not draw from that law; what is certified is",
        ),
        # A code that loses less than its law is distinguished from it by counting alone.
        (SAFE, UNSAFE, 3.0, {"exact": CERTIFIED, "game": NOT_REFUTED}, ANOTHER_LAW),
        (SAFE, UNSAFE, 1.5, {"exact": VIOLATED}, f"The code {ANOTHER_LAW}"),
    ],
)
def test_a_code_with_another_law_is_not_certified(code, law, claim, found, summary):
    result = run(Pretender(code, law), PureDP(claim))
    found = found | {"counting": INCONCLUSIVE}
    assert found.items() <= verdicts(result).items()
    violated = VIOLATED in found.values()
    assert result.verdict is (VIOLATED if violated else INCONCLUSIVE)
    assert summary in result.summary
    assert (result.counterexample is not None) is violated


def test_only_counting_distinguishes_a_code_from_a_law_that_loses_more():
    mechanism = Pretender(SAFE, UNSAFE)
    assert run(mechanism, PureDP(3.0), evidence=["exact", "game"]).verdict is CERTIFIED


def test_an_exact_refutation_needs_no_game():
    result = run(UNSAFE, settings=Settings(1e-6, Budget(8), 0))
    assert result.verdict is VIOLATED
    assert result.evidence[1].verdict is INCONCLUSIVE
    assert "factor of" in result.counterexample.explanation


def test_a_hidden_law_is_refuted_by_the_game():
    result = run(Hidden(UNSAFE))
    assert list(verdicts(result)) == ["game", "counting"]
    assert result.verdict is VIOLATED
    assert 1.0 <= result.epsilon_lower <= 2.0
    assert result.epsilon_upper is None
    assert result.log_e_value > math.log(1e6)


def test_a_clean_game_states_its_power():
    result = run(Hidden(SAFE))
    assert result.verdict is NOT_REFUTED
    assert result.evidence[0].details.detectable_epsilon > 1.0
    assert "with probability 9 in 10" in result.summary


def test_controls_that_are_refuted_leave_the_verdict_alone():
    result = run(SAFE, controls=[UNSAFE, Hidden(Response(3.0))])
    assert result.verdict is CERTIFIED
    found = {control.name: control.verdict for control in result.controls}
    assert found == {"Response(2)": VIOLATED, "hidden Response(3)": VIOLATED}
    assert result.surviving_controls == []


@pytest.mark.dear
@pytest.mark.parametrize(
    ("mechanism", "verdict"),
    [(SAFE, CERTIFIED), (UNSAFE, VIOLATED), (Hidden(SAFE), NOT_REFUTED)],
)
def test_a_surviving_control_makes_the_audit_inconclusive(mechanism, verdict):
    result = run(mechanism, controls=[UNSAFE, Hidden(Response(1.0))], calls=800)
    assert (result.verdict, result.counterexample) == (INCONCLUSIVE, None)
    assert result.surviving_controls == ["hidden Response(1)"]
    assert result.is_finding
    assert "no power" in result.summary
    assert "hidden Response(1)" in result.summary
    assert "Response(2)," not in result.summary
    assert f"for the mechanism itself: {verdict}" in result.summary


def test_a_control_is_audited_with_the_same_evidence():
    played = run(SAFE, evidence=["game"], controls=[UNSAFE])
    assert list(verdicts(played)) == ["game"]
    assert played.controls[0].calls > 0
    exact = run(SAFE, evidence=["exact"], controls=[LawAlone()])
    (control,) = exact.controls
    assert control.verdict is VIOLATED
    assert exact.calls == control.calls == 0


OUTSIDE = [Pair(0, 7)]


@pytest.mark.parametrize(
    ("mechanism", "options", "error"),
    [
        (Hidden(SAFE), {"evidence": ["exact"]}, CollectionError),
        (Hidden(SAFE), {"play": OUTSIDE}, AdjacencyError),
        (SAFE, {"play": OUTSIDE, "exhaustive": False}, AdjacencyError),
        (SharedNoise(1.0), {}, MechanismError),
    ],
)
def test_an_audit_that_cannot_be_judged_raises(mechanism, options, error):
    """It has no evidence, plays inputs that are not neighbours, or its runs are not independent."""
    with pytest.raises(error, match=r"no evidence|7|independent"):
        run(mechanism, **options)


def test_played_pairs_alone_do_not_certify():
    assert run(SAFE, exhaustive=False).verdict is NOT_REFUTED


@pytest.mark.full
@pytest.mark.parametrize(
    ("mechanism", "claim", "verdict"),
    [
        (LeakyResponse(1.0 - 1e-9, 0.01), ApproxDP(1.0, 0.01), CERTIFIED),
        (LeakyResponse(1.0, 0.2), ApproxDP(1.0, 0.01), VIOLATED),
        (LaplaceMechanism(1.0), ApproxDP(1.0, 0.01), CERTIFIED),
        (GaussianMechanism(0.5), GaussianDP(1.0), VIOLATED),
    ],
)
def test_other_claims_are_audited_too(mechanism, claim, verdict):
    assert run(mechanism, claim).verdict is verdict


@pytest.mark.dear
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_a_log_ratio_that_leaves_the_cap_by_its_last_bit_is_no_violation(scale):
    """Half of all Laplace outputs sit exactly at the cap: rounding must not make everything be staked on them."""
    claim = ApproxDP(1 / scale, 0.01)
    result = run(LaplaceMechanism(scale), claim, evidence=["game"])
    assert result.verdict is NOT_REFUTED


def test_a_figure_joins_the_details_of_the_last_evidence():
    def points(rng):
        return {"points": rng.integers(0, 9, 2).tolist()}

    first, *_, last = run(SAFE, figure=points).evidence
    assert len(last.details.more["points"]) == 2
    assert "points" not in first.details.more


def test_the_seed_and_the_key_determine_the_outcome():
    outcomes = []
    for seed, key in ((0, "test"), (0, "test"), (1, "test"), (0, "other")):
        result = run(Hidden(SAFE), settings=Settings(1e-6, Budget(500), seed, key))
        outcomes.append((result.epsilon_lower, result.log_e_value))
    assert outcomes[0] == outcomes[1]
    assert len(set(outcomes)) == 3
