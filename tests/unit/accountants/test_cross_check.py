"""A claim against accountants: the three verdicts, and what is found about accountants without deciding anything."""

import math
import time
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.accountants.base import AccountantError, Soundness
from auditdp.accountants.composition import OptimalComposition
from auditdp.accountants.cross_check import cross_check
from auditdp.accountants.dp_sgd import poisson_accountants
from auditdp.accountants.gaussian import GaussianCurve
from auditdp.accountants.zcdp import ZCDP
from auditdp.claims import ApproxDP, GaussianDP, PureDP
from auditdp.results import Verdict

CLAIM = ApproxDP(1.0, 1e-5)


@dataclass(frozen=True)
class Says:
    """An accountant that says one ε for every δ."""

    soundness: Soundness
    epsilon: float
    name: str = "it"
    adjacency: str = "add or remove one record"
    sampling: str = "Poisson"
    source: str = "test"

    def epsilon_at(self, delta):
        return self.epsilon

    def delta_at(self, epsilon):
        return 0.0


class Raises(Says):
    def epsilon_at(self, delta):
        raise ValueError("different signs")


def upper(epsilon, name="upper", **others):
    return Says(Soundness.UPPER, epsilon, name, **others)


def lower(epsilon, name="lower", **others):
    return Says(Soundness.LOWER, epsilon, name, **others)


@given(
    claimed=st.floats(0.01, 10),
    lowers=st.lists(st.floats(0, 4.9), max_size=3),
    uppers=st.lists(st.floats(5, 9), max_size=3),
)
def test_the_verdict_is_where_the_claim_lies(claimed, lowers, uppers):
    accountants = [
        *(lower(e, f"lower {k}") for k, e in enumerate(lowers)),
        *(upper(e, f"upper {k}") for k, e in enumerate(uppers)),
        Says(Soundness.APPROXIMATION, 5.0, "approximation"),
    ]
    check = cross_check(ApproxDP(claimed, 1e-5), accountants)
    least, most = max(lowers, default=0), min(uppers, default=math.inf)
    if claimed < least * (1 - 1e-9):
        assert check.verdict is Verdict.VIOLATED
    elif claimed >= most:
        assert check.verdict is Verdict.CERTIFIED
    elif claimed > least:
        assert check.verdict is Verdict.NOT_REFUTED
    assert not check.findings
    assert (check.lower.epsilon if check.lower else None) == (max(lowers) if lowers else None)
    assert (check.upper.epsilon if check.upper else None) == (min(uppers) if uppers else None)


@pytest.mark.parametrize(
    ("odd", "finding"),
    [
        (upper(-0.05, "odd"), "ε = -0.05 at δ = 1e-05 is no ε"),
        (upper(math.nan, "odd"), "ε = nan at δ = 1e-05 is no ε"),
        (lower(math.nan, "odd"), "ε = nan at δ = 1e-05 is no ε"),
        (Raises(Soundness.UPPER, 0.0, "odd"), "raised ValueError: different signs"),
        (Raises(Soundness.LOWER, 0.0, "odd"), "raised ValueError: different signs"),
        (
            Says(Soundness.APPROXIMATION, 0.7, "odd"),
            "underestimates: ε = 0.7, but lower shows at least 0.9",
        ),
        (
            upper(0.1, "odd", adjacency="zero one record out"),
            "is for neighbours that zero one record out; the claim's add or remove one record",
        ),
        (lower(5.0, "odd", sampling="shuffled"), "is for shuffled batches; the claim is for Poisson"),
    ],
)
def test_findings_about_an_accountant_change_nothing(odd, finding):
    sound = [lower(0.9), upper(1.2)]
    for claimed, verdict in ((0.8, Verdict.VIOLATED), (1.0, Verdict.NOT_REFUTED), (1.3, Verdict.CERTIFIED)):
        claim = ApproxDP(claimed, 1e-5)
        check = cross_check(claim, [*sound, odd], adjacency="add or remove one record", sampling="Poisson")
        assert check.verdict is verdict is cross_check(claim, sound).verdict
        assert check.findings == [f"odd: {finding}"]


def test_an_accountant_that_is_alone_and_odd_decides_nothing():
    check = cross_check(CLAIM, [Raises(Soundness.UPPER, 0.0)])
    assert check.verdict is Verdict.NOT_REFUTED
    assert "what is proved is nothing" in check.statement
    assert check.lower is check.upper is None


def test_proofs_that_contradict_each_other_do_not_count():
    check = cross_check(CLAIM, [lower(2.0), upper(1.5), upper(3.0, "other")])
    assert check.verdict is Verdict.NOT_REFUTED
    assert check.findings == [
        "lower: contradiction: ε is at most 1.5 (upper) and at least 2 (lower); neither counts",
        "upper: contradiction: ε is at most 1.5 (upper) and at least 2 (lower); neither counts",
    ]
    assert cross_check(ApproxDP(3.0, 1e-5), [lower(2.0), upper(1.5), upper(3.0, "other")]).verdict is Verdict.CERTIFIED


def test_equal_bounds_do_not_contradict_each_other():
    check = cross_check(CLAIM, [lower(1.5), upper(1.5 * (1 - 1e-12))])
    assert check.verdict is Verdict.VIOLATED
    assert not check.findings


def test_what_is_exact_for_a_wider_class_is_no_lower_bound():
    """Twenty ε-DP parts compose to 1.79, but these parts are better ones, of which a proof says 1.014."""
    exact, proof = OptimalComposition(0.1, 0.0, 20), ZCDP(20 * 0.1**2 / 8)
    assert exact.epsilon_at(1e-6) == pytest.approx(1.79, abs=0.01)
    assert proof.epsilon_at(1e-6) < 1.1
    claim = ApproxDP(1.2, 1e-6)
    assert cross_check(claim, [exact]).verdict is Verdict.VIOLATED
    check = cross_check(claim, [exact, proof])
    assert check.verdict is Verdict.CERTIFIED
    assert check.lower is None
    assert not check.findings


def test_what_is_exact_without_sampling_is_no_lower_bound_with_it():
    whole = GaussianCurve(1.0, count=10)
    assert cross_check(CLAIM, [whole]).verdict is Verdict.VIOLATED
    assert cross_check(CLAIM, [whole], sampling="Poisson").verdict is Verdict.NOT_REFUTED
    assert cross_check(ApproxDP(100.0, 1e-5), [whole], sampling="Poisson").verdict is Verdict.CERTIFIED


@given(sigma=st.floats(0.3, 10), delta=st.floats(1e-12, 0.1), change=st.sampled_from([1e-6, -1e-6, 0.0]))
def test_exact_accountants_decide_up_to_rounding(sigma, delta, change):
    curve = GaussianCurve(sigma)
    epsilon = curve.epsilon_at(delta)
    if epsilon < 1e-3:
        return
    verdict = cross_check(ApproxDP(epsilon * (1 + change), delta), [curve]).verdict
    assert verdict is (Verdict.VIOLATED if change < 0 else Verdict.CERTIFIED)
    assert cross_check(ApproxDP(epsilon * (1 - 1e-15), delta), [curve]).verdict is not Verdict.VIOLATED


def test_a_claim_that_is_the_closed_form_but_for_rounding():
    exact = OptimalComposition(0.1, 0.0, 3)
    level = exact.epsilon_at(0.0)
    check = cross_check(PureDP(level * (1 - 1e-12)), [exact])
    assert check.verdict is Verdict.NOT_REFUTED
    assert "but for rounding" in check.statement


def test_pure_claims_of_gaussian_noise_are_violated():
    assert cross_check(PureDP(50.0), [GaussianCurve(1.0)]).verdict is Verdict.VIOLATED


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_gaussian_claims_can_be_refuted_but_not_certified(mu):
    curve = GaussianCurve(1 / mu)
    assert cross_check(GaussianDP(mu), [curve]).verdict is Verdict.NOT_REFUTED
    assert cross_check(GaussianDP(0.999 * mu), [curve]).verdict is Verdict.VIOLATED
    check = cross_check(GaussianDP(1.1 * mu), [curve])
    assert check.verdict is Verdict.NOT_REFUTED
    assert "a few points of a curve do not certify it" in check.statement


def test_different_neighbours_have_to_be_told_apart():
    both = [upper(1.0), upper(1.0, adjacency="replace one record")]
    with pytest.raises(AccountantError, match="expected accountants of one adjacency"):
        cross_check(CLAIM, both)
    assert cross_check(CLAIM, both, adjacency="replace one record").verdict is Verdict.CERTIFIED
    with pytest.raises(AccountantError, match="expected accountants of one sampling"):
        cross_check(CLAIM, [upper(1.0), upper(1.0, sampling="shuffled")])
    with pytest.raises(AccountantError, match="at least one accountant"):
        cross_check(CLAIM, [])


def test_a_training_run_in_under_ten_seconds():
    """The whole of DP-SGD's accountants, those of Opacus too where it is installed."""
    started = time.process_time()
    check = cross_check(ApproxDP(1.7, 1e-5), poisson_accountants(1.0, 0.01, 1000))
    assert time.process_time() - started < 10
    assert check.verdict is Verdict.VIOLATED
    assert check.statement.startswith("The claimed ε = 1.7 at δ = 1e-05 is below 1.828")


def test_opacus_underestimates_and_goes_below_zero():
    pytest.importorskip("opacus")
    check = cross_check(ApproxDP(1.7, 1e-5), poisson_accountants(1.0, 0.01, 1000))
    assert [finding.split("(")[0] for finding in check.findings] == ["OpacusGDP"]
    assert "underestimates: ε = 1.61771" in check.findings[0]
    tiny = cross_check(ApproxDP(1.7, 0.05), poisson_accountants(5.0, 0.001, 10))
    assert tiny.verdict is Verdict.CERTIFIED
    assert [finding.split("(")[0] for finding in tiny.findings] == ["OpacusPRV", "OpacusRDP", "OpacusGDP"]
    assert tiny.findings[1].endswith("ε = -0.0512892 at δ = 0.05 is no ε")
