"""The one verdict: what each kind of evidence is about, what refutes a claim, and what only refutes its argument."""

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

SETTINGS = Settings(alpha=1e-6, budget=Budget(1000), root_seed=0, key="test")
BITS = AnyValues((0.0, 1.0))


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


@dataclass(frozen=True)
class Calibrated(Understated):
    """The same with noise of twice what its sensitivity needs."""

    sensitivity: float = 1.25

    def __call__(self, data, size, *, rng):
        return self.query(data) + rng.laplace(scale=2 * self.sensitivity, size=size)


def judge(mechanism, **kwargs):
    settings = replace(
        SETTINGS, budget=Budget(kwargs.pop("calls", SETTINGS.budget.calls))
    )
    return run_audit(
        Audit(mechanism, PureDP(1.0), kwargs.pop("pairs", BITS), **kwargs), settings
    )


# A refuted calibration is not a refuted claim.


def test_an_understated_sensitivity_under_noise_with_slack_is_no_violation():
    result = judge(Understated())
    assert result.verdict is Verdict.MISCALIBRATED
    assert {e.kind: e.verdict for e in result.evidence} == {
        "game": Verdict.NOT_REFUTED,
        "sensitivity": Verdict.MISCALIBRATED,
    }
    assert result.counterexample == result.evidence[1].counterexample
    assert result.summary.startswith(result.evidence[1].statement)
    assert (
        f"Of the claim itself: NOT_REFUTED, {result.evidence[0].statement}"
        in result.summary
    )
    assert (
        result.log_e_value is None
    )  # the game's bets are not what the verdict rests on
    assert result.is_finding


def test_where_the_claim_is_false_too_the_game_says_so_and_the_cause_is_named():
    result = judge(Understated(scale=0.25))
    assert result.verdict is Verdict.VIOLATED
    assert result.leading.kind == "game"
    assert result.counterexample == result.evidence[0].counterexample
    assert result.log_e_value == result.evidence[0].log_e_value
    assert f"sensitivity: {result.evidence[1].statement}" in result.summary


def test_a_law_that_is_certified_by_all_its_pairs_is_said_beside_the_calibration():
    result = judge(Stated(), pairs=AnyValues((0.0, 1.0), finite=True))
    assert {e.kind: e.verdict for e in result.evidence}["exact"] is Verdict.CERTIFIED
    assert result.verdict is Verdict.MISCALIBRATED
    assert (
        "Of the claim itself: CERTIFIED, Before post-processing the law loses ε = 1"
        in result.summary
    )
    assert (
        "slack for what the neighbours need, or is not that of such noise around this query"
        in result.summary
    )
    assert result.epsilon_upper == 1


def test_a_certificate_falls_with_the_sensitivity_that_it_is_given():
    result = judge(Stated(), pairs=Neighbours([(0.0, 1.0)]))
    law = next(e for e in result.evidence if e.kind == "exact")
    assert result.verdict is Verdict.MISCALIBRATED
    assert law.verdict is Verdict.NOT_REFUTED
    assert law.epsilon_upper is None
    assert result.epsilon_upper is None


def test_assert_private_warns_of_a_calibration_and_fails_for_a_claim():
    with pytest.warns(MiscalibrationWarning) as caught:
        result = assert_private(Understated(), PureDP(1.0), [(0.0, 1.0)], calls=500)
    assert result.verdict is Verdict.MISCALIBRATED
    text = str(caught[0].message)
    assert caught[0].filename == __file__
    for part in (
        "Understated",
        "pair: 0.0 | 1.0",
        "the l1 norm of the difference is 1.25",
        "the claim itself may still hold",
    ):
        assert part in text
    assert "Calibrate the noise to what neighbours need" in text
    with pytest.raises(PrivacyViolation):
        assert_private(Understated(scale=0.25), PureDP(1.0), [(0.0, 1.0)], calls=500)
    with warnings.catch_warnings(action="error"):
        assert_private(
            replace(Understated(), sensitivity=1.25),
            PureDP(1.0),
            [(0.0, 1.0)],
            calls=500,
        )


def test_a_control_of_the_sensitivity_alone_is_refuted_by_it():
    right = replace(Understated(), sensitivity=1.25)
    result = judge(right, evidence=["sensitivity"], controls=[Understated()])
    assert [c.verdict for c in result.controls] == [Verdict.MISCALIBRATED]
    assert result.surviving_controls == []
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.claim.text == "l1 sensitivity 1.25"
    assert result.claim.epsilon is None
    other = judge(right, evidence=["game", "sensitivity"], controls=[Understated()])
    assert other.surviving_controls == ["Understated"]


@pytest.mark.parametrize(
    ("expected", "verdict", "as_expected"),
    [
        ("holds", Verdict.MISCALIBRATED, False),
        ("holds", Verdict.NOT_REFUTED, True),
        ("holds", Verdict.INCONCLUSIVE, True),
        ("miscalibration", Verdict.MISCALIBRATED, True),
        ("miscalibration", Verdict.VIOLATED, False),
        ("miscalibration", Verdict.NOT_REFUTED, False),
        ("miscalibration", Verdict.CERTIFIED, False),
        ("violation", Verdict.VIOLATED, True),
        ("violation", Verdict.MISCALIBRATED, False),
        ("violation", Verdict.INCONCLUSIVE, False),
        ("violation", Verdict.NOT_REFUTED, False),
    ],
)
def test_what_is_declared_has_to_be_found_and_nothing_else(
    expected, verdict, as_expected
):
    result = AuditResult("a.py::b", verdict, "", expected=expected)
    assert result.as_expected is as_expected
    assert result.is_finding is not as_expected


def test_what_can_be_declared():
    declared = audit(expect="miscalibration")(lambda: None)
    assert declared.expect == "miscalibration"
    with pytest.raises(
        CollectionError, match="'holds', 'violation' or 'miscalibration', got 'nothing'"
    ):
        audit(expect="nothing")(lambda: None).build({})


# What follows where kinds of evidence contradict each other.

LAW = Evidence(
    "exact",
    Verdict.CERTIFIED,
    "Exact ε = 1 over all 2 pairs",
    assumptions=["Noise draws from the law that it states", "scope: all 2 pairs"],
    epsilon_lower=1.0,
    epsilon_upper=1.0,
)
GIVEN = replace(LAW, details=ExactDetails(given_sensitivity=1.0))
SYMMETRIC = replace(
    LAW, assumptions=[*LAW.assumptions, "the names of nodes do not matter"]
)
MODEL = Evidence(
    "accounting",
    Verdict.CERTIFIED,
    "ε = 1",
    assumptions=["batches: Poisson", "given its sensitivity"],
    epsilon_upper=1.0,
)
PLAYED = Evidence(
    "game",
    Verdict.VIOLATED,
    "The bets reached 1/α",
    epsilon_lower=1.5,
    log_e_value=20.0,
    counterexample=Counterexample("0 | 1", "the game's"),
)
CLEAN = replace(
    PLAYED,
    verdict=Verdict.NOT_REFUTED,
    statement="not refuted",
    epsilon_lower=0.9,
    counterexample=None,
)
CALIBRATION = Evidence(
    "sensitivity",
    Verdict.MISCALIBRATED,
    "calibrated to 1",
    counterexample=Counterexample("0 | 1", "the query's"),
)
DRAWS = "the code does not draw from the law that it states"


@pytest.mark.parametrize(
    ("certificate", "expected_text"),
    [
        (LAW, f"the stated law is certified, so {DRAWS}"),
        (
            GIVEN,
            f"the stated law is certified, so either {DRAWS}, or two neighbours need more than the sensitivity 1 that the "
            "bound is given",
        ),
        (
            SYMMETRIC,
            f"the stated law is certified, so either {DRAWS}, or this is not so: the names of nodes do not matter",
        ),
        (
            MODEL,
            "accounting certifies the claim where all of this is so, and it is not: batches: Poisson; given its sensitivity",
        ),
    ],
)
def test_a_certificate_that_the_game_contradicts_rests_on_something_that_is_not_so(
    certificate, expected_text
):
    assert conclude([certificate, PLAYED], []) == (
        Verdict.VIOLATED,
        f"The bets reached 1/α; {expected_text}",
    )


@pytest.mark.parametrize(
    ("law", "expected_text"),
    [
        (LAW, "at most 1: it does not draw from that law"),
        (
            GIVEN,
            "at most 1: either it does not draw from that law, or two neighbours need more than the sensitivity 1 that the "
            "bound is given",
        ),
    ],
)
def test_a_loss_beyond_the_law_says_what_may_be_wrong(law, expected_text):
    more = replace(CLEAN, epsilon_lower=1.2)
    assert beyond_its_law([law, more]).endswith(expected_text)
    assert conclude([law, more], [])[0] is Verdict.INCONCLUSIVE
    assert beyond_its_law([law, CLEAN]) is None


def test_a_model_that_loses_more_than_a_certified_law_is_another_model():
    """A violation of the accountants' model is none of the mechanism where the mechanism's own law is certified."""
    model = replace(
        MODEL, verdict=Verdict.VIOLATED, statement="ε = 2 is lost", epsilon_lower=2.0
    )
    verdict, summary = conclude([LAW, model, CLEAN], [])
    assert verdict is Verdict.INCONCLUSIVE
    assert summary.endswith(
        "so the law that is stated is not that of the accountants’ model"
    )
    assert conclude([model], [])[0] is Verdict.VIOLATED
    assert conclude([LAW, model, PLAYED], [])[0] is Verdict.VIOLATED


def test_certificates_and_upper_bounds_that_are_given_a_refuted_sensitivity_fall():
    law, model, own, calibration = without_fallen_certificates(
        [GIVEN, MODEL, LAW, CALIBRATION]
    )
    for fallen in (law, model):
        assert (fallen.verdict, fallen.epsilon_upper) == (Verdict.NOT_REFUTED, None)
        assert fallen.statement.startswith(
            "Not certified, since the sensitivity that this is given is refuted: "
        )
    assert (own, calibration) == (LAW, CALIBRATION)
    assert without_fallen_certificates([GIVEN, MODEL, CLEAN]) == [GIVEN, MODEL, CLEAN]
    undecided = replace(GIVEN, verdict=Verdict.NOT_REFUTED)
    assert without_fallen_certificates([undecided, CALIBRATION])[0] == replace(
        undecided, epsilon_upper=None
    )


def test_the_order_of_verdicts():
    unconfirmed = replace(
        PLAYED,
        verdict=Verdict.INCONCLUSIVE,
        statement="not confirmed",
        counterexample=None,
    )
    assert conclude([PLAYED, CALIBRATION], []) == (
        Verdict.VIOLATED,
        "The bets reached 1/α; sensitivity: calibrated to 1",
    )
    verdict, summary = conclude([unconfirmed, CALIBRATION], [])
    assert (verdict, summary) == (
        Verdict.MISCALIBRATED,
        "calibrated to 1. Of the claim itself: INCONCLUSIVE, not confirmed",
    )
    verdict, summary = conclude([CALIBRATION], [])
    assert verdict is Verdict.MISCALIBRATED
    assert summary.endswith(
        "whether a claim that rests on this calibration holds all the same was not audited"
    )
    surviving = ControlResult("broken", Verdict.NOT_REFUTED)
    assert conclude([PLAYED, CALIBRATION], [surviving])[0] is Verdict.INCONCLUSIVE


# Numbers come from the evidence that leads.


def test_the_bounds_are_those_of_the_evidence_that_leads():
    worst = replace(LAW, verdict=Verdict.VIOLATED, epsilon_lower=2.0, epsilon_upper=2.0)
    assert bounds([worst, PLAYED], Verdict.VIOLATED) == (2.0, 2.0)
    assert bounds([worst, CLEAN], Verdict.VIOLATED) == (2.0, 2.0)
    assert bounds([LAW, CLEAN], Verdict.CERTIFIED) == (0.9, 1.0)
    assert bounds(
        [replace(worst, epsilon_lower=None, epsilon_upper=None), PLAYED],
        Verdict.VIOLATED,
    ) == (1.5, None)
    assert bounds([CLEAN, CALIBRATION], Verdict.MISCALIBRATED) == (0.9, None)


def test_an_upper_bound_that_the_game_exceeds_is_no_bound_on_the_code():
    assert bounds([LAW, PLAYED], Verdict.VIOLATED) == (1.5, None)


def test_an_inconclusive_audit_has_no_bounds():
    for evidence in ([LAW, replace(CLEAN, epsilon_lower=1.2)], [PLAYED, CALIBRATION]):
        assert bounds(evidence, Verdict.INCONCLUSIVE) == (None, None)


def test_wealth_and_counterexample_are_those_of_the_evidence_that_leads():
    """Noise that is added in floating point: the game sees nothing, the last bits show the input."""
    result = judge(LaplaceMechanism(1.0), evidence=["game", "support"], calls=2_000)
    assert [e.verdict for e in result.evidence] == [
        Verdict.NOT_REFUTED,
        Verdict.VIOLATED,
    ]
    assert result.leading.kind == "support"
    assert result.log_e_value == result.evidence[1].log_e_value
    assert result.counterexample == result.evidence[1].counterexample
    by_law = judge(
        Response(2.0), pairs=AnyValues((0, 1)), forecasters=[LikelihoodRatio()], calls=8
    )
    assert (by_law.leading.kind, by_law.log_e_value) == ("exact", None)


# What more calls may show is undecided, and no finding.


@pytest.mark.parametrize(
    ("expected", "verdict", "undecided"),
    [
        ("violation", Verdict.NOT_REFUTED, True),
        ("violation", Verdict.MISCALIBRATED, True),
        ("violation", Verdict.CERTIFIED, False),
        ("miscalibration", Verdict.NOT_REFUTED, True),
        ("miscalibration", Verdict.VIOLATED, False),
        ("holds", Verdict.MISCALIBRATED, False),
        ("holds", Verdict.VIOLATED, False),
    ],
)
def test_a_missed_declaration_is_undecided_where_calls_were_left_out_unless_calls_cannot_show_it(
    expected, verdict, undecided
):
    brief = AuditResult("audit_it.py::it", verdict, "", expected=expected, lacking=100)
    whole = replace(brief, lacking=0)
    assert (brief.is_undecided, brief.is_finding) == (undecided, not undecided)
    assert (whole.is_undecided, whole.is_finding) == (False, True)


@pytest.mark.parametrize(
    ("blind", "undecided"), [(["game"], True), (["game", "exact"], False)]
)
def test_a_control_that_calls_may_refute_is_undecided_beside_the_declared_violation(
    blind, undecided
):
    control = ControlResult("broken", Verdict.NOT_REFUTED, blind=blind)
    found = AuditResult(
        "it",
        Verdict.VIOLATED,
        "",
        expected="violation",
        lacking=100,
        controls=[control],
    )
    assert (found.is_undecided, found.is_finding) == (undecided, not undecided)


@given(
    st.lists(
        st.builds(
            Evidence,
            kind=st.sampled_from(list(KINDS)),
            verdict=st.sampled_from(PRECEDENCE),
            statement=st.just("s"),
            epsilon_lower=st.none() | st.floats(0),
            epsilon_upper=st.none() | st.floats(0),
        ),
        min_size=1,
        max_size=4,
    ),
    st.lists(
        st.builds(
            ControlResult, name=st.just("twin"), verdict=st.sampled_from(PRECEDENCE)
        ),
        max_size=2,
    ),
)
def test_no_conclusion_contradicts_its_evidence(evidence, controls):
    """What a record is refused for is nothing that an audit concludes."""
    verdict, summary = conclude(evidence, controls)
    low, high = bounds(evidence, verdict)
    made = AuditResult(
        "a",
        verdict,
        summary,
        evidence=evidence,
        controls=controls,
        epsilon_lower=low,
        epsilon_upper=high,
    )
    assert made.contradiction == ""


REFUTED = Evidence("game", Verdict.VIOLATED, "seen")
DROPPED = Evidence("game", Verdict.INCONCLUSIVE, "not confirmed", unconfirmed=True)
CONTRADICTED = [
    Evidence("exact", Verdict.CERTIFIED, "proved"),
    Evidence("accounting", Verdict.VIOLATED, "refuted"),
]
SURVIVOR = ControlResult("twin", Verdict.NOT_REFUTED, blind=["game"])


@pytest.mark.parametrize(
    ("verdict", "evidence", "more", "unconfirmed", "finding"),
    [
        (Verdict.INCONCLUSIVE, [DROPPED], {}, True, False),
        (Verdict.INCONCLUSIVE, CONTRADICTED, {}, True, False),
        (
            Verdict.MISCALIBRATED,
            [CALIBRATION, DROPPED],
            {"expected": "miscalibration"},
            True,
            False,
        ),
        (
            Verdict.INCONCLUSIVE,
            [REFUTED],
            {"controls": [SURVIVOR], "lacking": 100},
            True,
            True,
        ),
        (
            Verdict.INCONCLUSIVE,
            [DROPPED],
            {"controls": [SURVIVOR], "lacking": 100},
            True,
            True,
        ),
        (
            Verdict.MISCALIBRATED,
            [CALIBRATION],
            {"expected": "miscalibration"},
            False,
            False,
        ),
        (
            Verdict.INCONCLUSIVE,
            [DROPPED],
            {"expected": "violation", "lacking": 100},
            False,
            False,
        ),
        (Verdict.INCONCLUSIVE, [DROPPED], {"expected": "violation"}, False, True),
        (Verdict.VIOLATED, [REFUTED], {}, False, True),
        (
            Verdict.VIOLATED,
            [Evidence("exact", Verdict.VIOLATED, "proved"), DROPPED],
            {},
            False,
            True,
        ),
        (Verdict.INCONCLUSIVE, [replace(DROPPED, unconfirmed=False)], {}, False, False),
    ],
)
def test_a_refutation_on_which_the_verdict_does_not_rest_is_not_lost(
    verdict, evidence, more, unconfirmed, finding
):
    result = AuditResult("a.py::a", verdict, "it ended", evidence=evidence, **more)
    assert (result.is_unconfirmed, result.is_finding) == (unconfirmed, finding)
    assert result.needs_a_look == (unconfirmed or finding)
