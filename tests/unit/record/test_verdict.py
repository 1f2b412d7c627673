"""The one verdict: what each kind of evidence is about, what refutes a claim, and what only refutes its argument."""

import re
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp import (
    AnyValues,
    Audit,
    LaplaceLaw,
    Neighbours,
    PureDP,
    assert_private,
    audit,
)
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.errors import CollectionError, MiscalibrationWarning, PrivacyViolation
from auditdp.record.budget import Budget
from auditdp.record.details import KINDS, ExactDetails
from auditdp.record.results import (
    PRECEDENCE,
    AuditResult,
    ControlResult,
    Counterexample,
    Evidence,
    Verdict,
)
from auditdp.record.verdict import (
    beyond_its_law,
    bounds,
    conclude,
    without_fallen_certificates,
)
from auditdp.testing import LaplaceMechanism, Response

BITS = AnyValues((0.0, 1.0))
VIOLATED, MISCALIBRATED = Verdict.VIOLATED, Verdict.MISCALIBRATED
CERTIFIED, NOT_REFUTED = Verdict.CERTIFIED, Verdict.NOT_REFUTED
INCONCLUSIVE = Verdict.INCONCLUSIVE


@dataclass(frozen=True)
class Understated:
    """1.25·x + Lap(scale), with noise that is declared to be calibrated to 1: 1.25/scale-DP exactly."""

    scale: float = 1.25
    sensitivity: float = 1.0
    norm: str = "l1"
    name: str = "Understated"

    def query(self, data, rng=None):
        return 1.25 * data

    def __call__(self, data, size, *, rng):
        return self.query(data) + rng.laplace(scale=self.scale, size=size)


class Stated(Understated):
    """The same with its law."""

    def laplace(self, data):
        return LaplaceLaw(np.array([self.query(data)]), np.array([self.scale]))


RIGHT = replace(Understated(), sensitivity=1.25)


def judge(mechanism, pairs=BITS, calls=1000, **options):
    settings = Settings(alpha=1e-6, budget=Budget(calls), root_seed=0, key="test")
    return run_audit(Audit(mechanism, PureDP(1.0), pairs, **options), settings)


# A refuted calibration is not a refuted claim.


def test_an_understated_sensitivity_under_noise_with_slack_is_no_violation():
    result = judge(Understated())
    game, sensitivity = result.evidence
    assert [game.verdict, sensitivity.verdict] == [NOT_REFUTED, MISCALIBRATED]
    assert result.verdict is MISCALIBRATED
    assert result.counterexample == sensitivity.counterexample
    assert result.summary.startswith(sensitivity.statement)
    assert f"On the claim itself: NOT_REFUTED, {game.statement}" in result.summary
    # The verdict does not rest on the bets of the game.
    assert result.log_e_value is None
    assert result.is_finding


def test_a_claim_that_is_false_too_is_violated_and_the_cause_is_named():
    result = judge(Understated(scale=0.25))
    game, sensitivity = result.evidence
    assert (result.verdict, result.leading.kind) == (VIOLATED, "game")
    assert result.counterexample == game.counterexample
    assert result.log_e_value == game.log_e_value
    assert f"sensitivity: {sensitivity.statement}" in result.summary


def test_a_certificate_over_all_pairs_stands_beside_the_calibration():
    result = judge(Stated(), pairs=AnyValues((0.0, 1.0), finite=True))
    assert result.evidence[0].verdict is CERTIFIED
    assert result.verdict is MISCALIBRATED
    certified = "On the claim itself: CERTIFIED, Before post-processing the law loses"
    assert f"{certified} ε = 1" in result.summary
    assert "slack for what the neighbours need, or is not that" in result.summary
    assert result.epsilon_upper == 1


def test_a_certificate_falls_with_the_sensitivity_that_it_is_given():
    result = judge(Stated(), pairs=Neighbours([(0.0, 1.0)]))
    law = result.evidence[0]
    assert (law.kind, law.verdict, law.epsilon_upper) == ("exact", NOT_REFUTED, None)
    assert (result.verdict, result.epsilon_upper) == (MISCALIBRATED, None)


def asserted(mechanism):
    return assert_private(mechanism, PureDP(1.0), [(0.0, 1.0)], calls=500)


def test_an_assertion_warns_of_a_calibration_and_fails_for_a_claim():
    with pytest.warns(MiscalibrationWarning) as caught:
        assert asserted(Understated()).verdict is MISCALIBRATED
    text = str(caught[0].message)
    assert caught[0].filename == __file__
    assert "pair: 0.0 | 1.0" in text
    assert "Understated" in text
    assert "the l1 norm of the difference is 1.25" in text
    with pytest.raises(PrivacyViolation):
        asserted(Understated(scale=0.25))
    with warnings.catch_warnings(action="error"):
        asserted(RIGHT)


def test_a_control_of_the_sensitivity_alone_is_refuted_by_it():
    result = judge(RIGHT, evidence=["sensitivity"], controls=[Understated()])
    assert [control.verdict for control in result.controls] == [MISCALIBRATED]
    assert result.surviving_controls == []
    assert result.verdict is NOT_REFUTED
    assert result.claim.text == "l1 sensitivity 1.25"
    assert result.claim.epsilon is None
    other = judge(RIGHT, evidence=["game", "sensitivity"], controls=[Understated()])
    assert other.surviving_controls == ["Understated"]


AS_EXPECTED = {
    "holds": "NOT_REFUTED INCONCLUSIVE CERTIFIED",
    "miscalibration": "MISCALIBRATED",
    "violation": "VIOLATED",
}


@pytest.mark.parametrize("expected", AS_EXPECTED)
@pytest.mark.parametrize(
    "verdict", [VIOLATED, MISCALIBRATED, CERTIFIED, NOT_REFUTED, INCONCLUSIVE]
)
def test_a_declaration_has_to_be_met_and_by_nothing_else(expected, verdict):
    result = AuditResult("a.py::b", verdict, "", expected=expected)
    assert result.as_expected is (verdict in AS_EXPECTED[expected].split())
    assert result.is_finding is not result.as_expected


def test_an_unknown_declaration_is_refused():
    assert audit(expect="miscalibration")(lambda: None).expect == "miscalibration"
    declarations = "'holds', 'violation' or 'miscalibration', got 'nothing'"
    with pytest.raises(CollectionError, match=declarations):
        audit(expect="nothing")(lambda: None).build({})


# What follows where kinds of evidence contradict each other.

LAW = Evidence(
    "exact",
    CERTIFIED,
    "Exact ε = 1 over all 2 pairs",
    assumptions=["Noise draws from its stated law", "scope: all 2 pairs"],
    epsilon_lower=1.0,
    epsilon_upper=1.0,
)
GIVEN = replace(LAW, details=ExactDetails(given_sensitivity=1.0))
UNLABELLED = "the names of nodes do not matter"
SYMMETRIC = replace(LAW, assumptions=[*LAW.assumptions, UNLABELLED])
MODEL = Evidence(
    "accounting",
    CERTIFIED,
    "ε = 1",
    assumptions=["batches: Poisson", "given its sensitivity"],
    epsilon_upper=1.0,
)
PLAYED = Evidence(
    "game",
    VIOLATED,
    "The bets reached 1/α",
    epsilon_lower=1.5,
    log_e_value=20.0,
    counterexample=Counterexample("0 | 1", "the game's"),
)
CLEAN = replace(PLAYED, verdict=NOT_REFUTED, epsilon_lower=0.9, counterexample=None)
LARGER_LOSS = replace(CLEAN, epsilon_lower=1.2)
DROPPED = replace(CLEAN, verdict=INCONCLUSIVE, statement="not confirmed")
CALIBRATION = Evidence("sensitivity", MISCALIBRATED, "calibrated to 1")
WORST = replace(LAW, verdict=VIOLATED, epsilon_lower=2.0, epsilon_upper=2.0)
WITHOUT_NUMBERS = replace(WORST, epsilon_lower=None, epsilon_upper=None)
OTHER_MODEL = replace(MODEL, verdict=VIOLATED, epsilon_lower=2.0)
SENSITIVITY = "or two neighbours need more than the sensitivity 1 that the bound is"


@pytest.mark.parametrize(
    ("certificate", "reason"),
    [
        (LAW, "is certified, so the code does not draw from its stated law"),
        (GIVEN, f"so either the code does not draw .*, {SENSITIVITY} given"),
        (SYMMETRIC, f"so either the code .*, or this is not so: {UNLABELLED}"),
        (
            MODEL,
            "if all of this is true, and it is not: batches: Poisson; given its sensitivity",
        ),
    ],
)
def test_a_certificate_that_the_game_contradicts_has_a_false_assumption(
    certificate, reason
):

    verdict, summary = conclude([certificate, PLAYED], [])
    assert verdict is VIOLATED
    assert re.fullmatch(f"{PLAYED.statement}; .*{reason}", summary)


@pytest.mark.parametrize(
    ("law", "end"),
    [
        (LAW, "at most 1: it does not draw from that law"),
        (GIVEN, f"either it does not draw from that law, {SENSITIVITY} given"),
    ],
)
def test_a_loss_beyond_the_law_has_its_possible_reasons(law, end):
    assert beyond_its_law([law, LARGER_LOSS]).endswith(end)
    assert conclude([law, LARGER_LOSS], [])[0] is INCONCLUSIVE
    assert beyond_its_law([law, CLEAN]) is None


def test_a_model_that_loses_more_than_a_certified_law_is_another_model():
    """Then a violation of the accountants' model is none of the mechanism."""
    verdict, summary = conclude([LAW, OTHER_MODEL, CLEAN], [])
    assert verdict is INCONCLUSIVE
    assert "the law that is stated is not that of the accountants’ model" in summary
    assert conclude([OTHER_MODEL], [])[0] is VIOLATED
    assert conclude([LAW, OTHER_MODEL, PLAYED], [])[0] is VIOLATED


def test_certificates_and_upper_bounds_fall_with_a_refuted_sensitivity():
    evidence = [GIVEN, MODEL, LAW, CALIBRATION]
    law, model, own, calibration = without_fallen_certificates(evidence)
    for fallen in (law, model):
        assert (fallen.verdict, fallen.epsilon_upper) == (NOT_REFUTED, None)
        assert "the sensitivity on which it rests is refuted" in fallen.statement
    assert (own, calibration) == (LAW, CALIBRATION)
    assert without_fallen_certificates([GIVEN, MODEL, CLEAN]) == [GIVEN, MODEL, CLEAN]
    undecided = replace(GIVEN, verdict=NOT_REFUTED)
    (fallen, _) = without_fallen_certificates([undecided, CALIBRATION])
    assert fallen == replace(undecided, epsilon_upper=None)


@pytest.mark.parametrize(
    ("evidence", "verdict", "end"),
    [
        ([PLAYED, CALIBRATION], VIOLATED, "1/α; sensitivity: calibrated to 1"),
        (
            [DROPPED, CALIBRATION],
            MISCALIBRATED,
            "calibrated to 1. On the claim itself: INCONCLUSIVE, not confirmed",
        ),
        (
            [CALIBRATION],
            MISCALIBRATED,
            "that rests on this calibration was not audited",
        ),
    ],
)
def test_the_order_of_verdicts(evidence, verdict, end):
    found, summary = conclude(evidence, [])
    assert found is verdict
    assert summary.endswith(end)
    surviving = ControlResult("broken", NOT_REFUTED)
    assert conclude(evidence, [surviving])[0] is INCONCLUSIVE


@pytest.mark.parametrize(
    ("evidence", "verdict", "expected"),
    [
        ([WORST, PLAYED], VIOLATED, (2.0, 2.0)),
        ([WORST, CLEAN], VIOLATED, (2.0, 2.0)),
        ([LAW, CLEAN], CERTIFIED, (0.9, 1.0)),
        ([WITHOUT_NUMBERS, PLAYED], VIOLATED, (1.5, None)),
        ([CLEAN, CALIBRATION], MISCALIBRATED, (0.9, None)),
        # An upper bound that the game exceeds is none of the code.
        ([LAW, PLAYED], VIOLATED, (1.5, None)),
        ([LAW, LARGER_LOSS], INCONCLUSIVE, (None, None)),
        ([PLAYED, CALIBRATION], INCONCLUSIVE, (None, None)),
    ],
)
def test_the_bounds_are_those_of_the_evidence_that_leads(evidence, verdict, expected):
    assert bounds(evidence, verdict) == expected


def test_wealth_and_counterexample_are_those_of_the_evidence_that_leads():
    """Of noise that is added in floating point the last bits show the input, and the game does not."""
    result = judge(LaplaceMechanism(1.0), evidence=["game", "support"], calls=2_000)
    game, support = result.evidence
    assert [game.verdict, support.verdict] == [NOT_REFUTED, VIOLATED]
    assert result.leading.kind == "support"
    assert result.log_e_value == support.log_e_value
    assert result.counterexample == support.counterexample
    ratio = [LikelihoodRatio()]
    by_law = judge(Response(2.0), AnyValues((0, 1)), forecasters=ratio, calls=8)
    assert (by_law.leading.kind, by_law.log_e_value) == ("exact", None)


# What more calls may show is undecided, and no finding.


@pytest.mark.parametrize(
    ("expected", "verdict", "undecided"),
    [
        ("violation", NOT_REFUTED, True),
        ("violation", MISCALIBRATED, True),
        ("violation", CERTIFIED, False),
        ("miscalibration", NOT_REFUTED, True),
        ("miscalibration", VIOLATED, False),
        ("holds", MISCALIBRATED, False),
        ("holds", VIOLATED, False),
    ],
)
def test_a_missed_declaration_is_undecided_if_more_calls_may_meet_it(
    expected, verdict, undecided
):
    brief = AuditResult("a.py::a", verdict, "", expected=expected, lacking=100)
    whole = replace(brief, lacking=0)
    assert (brief.is_undecided, brief.is_finding) == (undecided, not undecided)
    assert (whole.is_undecided, whole.is_finding) == (False, True)


@pytest.mark.parametrize("blind", [["game"], ["game", "exact"]])
def test_a_control_that_calls_may_refute_is_undecided_beside_the_declared_violation(
    blind,
):
    control = ControlResult("broken", NOT_REFUTED, blind=blind)
    found = AuditResult("it", VIOLATED, "", expected="violation", lacking=100)
    found = replace(found, controls=[control])
    assert found.is_undecided is (blind == ["game"])
    assert found.is_finding is not found.is_undecided


EVIDENCE = st.builds(
    Evidence,
    kind=st.sampled_from(list(KINDS)),
    verdict=st.sampled_from(PRECEDENCE),
    statement=st.just("s"),
    epsilon_lower=st.none() | st.floats(0),
    epsilon_upper=st.none() | st.floats(0),
)
CONTROLS = st.builds(ControlResult, st.just("twin"), st.sampled_from(PRECEDENCE))


@given(
    evidence=st.lists(EVIDENCE, min_size=1, max_size=4),
    controls=st.lists(CONTROLS, max_size=2),
)
def test_a_conclusion_does_not_contradict_its_evidence(evidence, controls):
    verdict, summary = conclude(evidence, controls)
    result = AuditResult("a", verdict, summary, evidence=evidence, controls=controls)
    low, high = bounds(evidence, verdict)
    result = replace(result, epsilon_lower=low, epsilon_upper=high)
    assert result.contradiction == ""


REFUTED = Evidence("game", VIOLATED, "seen")
UNCONFIRMED = Evidence("game", INCONCLUSIVE, "not confirmed", unconfirmed=True)
CONTRADICTED = [LAW, Evidence("accounting", VIOLATED, "refuted")]
PROVED = Evidence("exact", VIOLATED, "proved")
SURVIVOR = {"controls": [ControlResult("twin", NOT_REFUTED, blind=["game"])]}
BRIEF = {"lacking": 100}
MISSED = {"expected": "violation"}
CALIBRATED = {"expected": "miscalibration"}


@pytest.mark.parametrize(
    ("verdict", "evidence", "more", "unconfirmed", "finding"),
    [
        (INCONCLUSIVE, [UNCONFIRMED], {}, True, False),
        (INCONCLUSIVE, CONTRADICTED, {}, True, False),
        (MISCALIBRATED, [CALIBRATION, UNCONFIRMED], CALIBRATED, True, False),
        (INCONCLUSIVE, [REFUTED], SURVIVOR | BRIEF, True, True),
        (INCONCLUSIVE, [UNCONFIRMED], SURVIVOR | BRIEF, True, True),
        (MISCALIBRATED, [CALIBRATION], CALIBRATED, False, False),
        (INCONCLUSIVE, [UNCONFIRMED], MISSED | BRIEF, False, False),
        (INCONCLUSIVE, [UNCONFIRMED], MISSED, False, True),
        (VIOLATED, [REFUTED], {}, False, True),
        (VIOLATED, [PROVED, UNCONFIRMED], {}, False, True),
        (INCONCLUSIVE, [DROPPED], {}, False, False),
    ],
)
def test_a_refutation_on_which_the_verdict_does_not_rest_is_not_lost(
    verdict, evidence, more, unconfirmed, finding
):
    result = AuditResult("a.py::a", verdict, "it ended", evidence=evidence, **more)
    assert (result.is_unconfirmed, result.is_finding) == (unconfirmed, finding)
    assert result.needs_a_look == (unconfirmed or finding)
