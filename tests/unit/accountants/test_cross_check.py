"""A claim against accountants: the three verdicts, and what is found about accountants without deciding anything."""

import math
import time
from dataclasses import dataclass
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.accountants import (
    ZCDP,
    AccountantError,
    BasicComposition,
    Composition,
    Description,
    FixedSize,
    FixedSizeUpper,
    GaussianCurve,
    OptimalComposition,
    PLDUpper,
    Poisson,
    Soundness,
    TopK,
    TopKNonAdaptive,
    TopKZCDP,
    cross_check,
    poisson_accountants,
)
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.record.results import Verdict

CLAIM = ApproxDP(1.0, 1e-5)


@dataclass(frozen=True)
class Thing(Description):
    """A class of mechanisms of a size: smaller ones lie within larger ones of the same kind."""

    kind: str = "thing"
    size: int = 1
    adjacency = "add or remove one record"
    sampling = "Poisson"

    @property
    def describes(self):
        return self

    @property
    def text(self):
        return f"{self.kind} of size {self.size}"

    def includes(self, other):
        return (
            isinstance(other, Thing)
            and other.kind == self.kind
            and other.size <= self.size
        )


@dataclass(frozen=True)
class Says:
    """An accountant that says one ε for every δ."""

    soundness: Soundness
    epsilon: float
    name: str = "it"
    describes: Thing = Thing()
    adjacency: str = "add or remove one record"
    sampling: str = "Poisson"
    source: str = "test"

    def epsilon_at(self, delta):
        return self.epsilon

    def delta_at(self, epsilon):
        return float(epsilon < self.epsilon)


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
    assert (check.lower.value if check.lower else None) == (
        max(lowers) if lowers else None
    )
    assert (check.upper.value if check.upper else None) == (
        min(uppers) if uppers else None
    )


@pytest.mark.parametrize(
    ("odd", "finding"),
    [
        (upper(-0.05, "odd"), "ε = -0.05 at δ = 1e-05 is no ε"),
        (upper(math.nan, "odd"), "ε = nan at δ = 1e-05 is no ε"),
        (lower(math.nan, "odd"), "ε = nan at δ = 1e-05 is no ε"),
        (
            Says(Soundness.APPROXIMATION, 0.7, "odd"),
            "underestimates: ε = 0.7, but lower shows at least 0.9",
        ),
        (
            Says(Soundness.UNPROVED, 0.7, "odd"),
            "underestimates: ε = 0.7, but lower shows at least 0.9",
        ),
        (
            upper(0.1, "odd", describes=Thing("other")),
            "is about other of size 1; the claim is about thing of size 1",
        ),
        (
            lower(5.0, "odd", describes=Thing("other")),
            "is about other of size 1; the claim is about thing of size 1",
        ),
    ],
)
def test_findings_about_an_accountant_change_nothing(odd, finding):
    sound = [lower(0.9), upper(1.2)]
    for claimed, verdict in (
        (0.8, Verdict.VIOLATED),
        (1.0, Verdict.NOT_REFUTED),
        (1.3, Verdict.CERTIFIED),
    ):
        claim = ApproxDP(claimed, 1e-5)
        check = cross_check(claim, [*sound, odd], about=Thing())
        assert check.verdict is verdict is cross_check(claim, sound).verdict
        assert check.findings == [f"odd: {finding}"]


class RunsOut(Says):
    def epsilon_at(self, delta):
        raise MemoryError


@pytest.mark.parametrize("kind", [Raises, RunsOut])
@pytest.mark.parametrize("soundness", [Soundness.UPPER, Soundness.LOWER])
def test_an_accountant_that_fails_gives_no_answer_and_is_no_finding(kind, soundness):
    message = {
        Raises: "raised ValueError: different signs; it",
        RunsOut: "ran out of memory; it",
    }[kind]
    odd = kind(soundness, 0.0, "odd")
    for claimed, verdict in (
        (0.8, Verdict.VIOLATED),
        (1.0, Verdict.NOT_REFUTED),
        (1.3, Verdict.CERTIFIED),
    ):
        check = cross_check(ApproxDP(claimed, 1e-5), [lower(0.9), upper(1.2), odd])
        assert check.verdict is verdict
        assert check.findings == []
        (failed,) = check.failures
        assert failed.startswith(f"odd: {message} gave no answer: use ")
    alone = cross_check(CLAIM, [odd])
    assert alone.verdict is Verdict.NOT_REFUTED
    assert "what is proved is nothing" in alone.statement
    assert alone.lower is alone.upper is None


def test_proofs_that_contradict_each_other_do_not_count():
    check = cross_check(CLAIM, [lower(2.0), upper(1.5), upper(3.0, "other")])
    assert check.verdict is Verdict.NOT_REFUTED
    assert check.findings == [
        "lower: contradiction: ε is at most 1.5 (upper) and at least 2 (lower); neither counts",
        "upper: contradiction: ε is at most 1.5 (upper) and at least 2 (lower); neither counts",
    ]
    assert (
        cross_check(
            ApproxDP(3.0, 1e-5), [lower(2.0), upper(1.5), upper(3.0, "other")]
        ).verdict
        is Verdict.CERTIFIED
    )


def test_equal_bounds_do_not_contradict_each_other():
    check = cross_check(CLAIM, [lower(1.5), upper(1.5 * (1 - 1e-12))])
    assert check.verdict is Verdict.VIOLATED
    assert not check.findings


PARTS = OptimalComposition(0.1, 0.0, 20)
SELECTIONS = TopKZCDP(20, 0.1)
"""Twenty ε-DP parts compose to 1.79; selections of bounded range ε are better ones, of which a proof says 1.014."""


@pytest.mark.parametrize(
    "order",
    list(permutations([PARTS, SELECTIONS, BasicComposition(0.1, 0.0, 20), ZCDP(0.1)])),
)
def test_the_worst_of_a_wider_class_refutes_nothing(order):
    assert PARTS.epsilon_at(1e-6) == pytest.approx(1.79, abs=0.01)
    check = cross_check(ApproxDP(1.2, 1e-6), order)
    assert check.verdict is Verdict.CERTIFIED
    assert check.about == TopK(20, 0.1)
    assert check.lower is None
    assert not check.findings
    assert cross_check(ApproxDP(0.5, 1e-6), order).verdict is Verdict.NOT_REFUTED


def test_a_claim_about_the_wider_class_is_another_claim():
    """All parts lose 1.79 at worst, and what selections lose bounds that from below."""
    claim = ApproxDP(1.2, 1e-6)
    assert cross_check(claim, [PARTS]).verdict is Verdict.VIOLATED
    check = cross_check(
        claim, [PARTS, SELECTIONS, TopKNonAdaptive(20, 0.1)], about=PARTS
    )
    assert check.verdict is Verdict.VIOLATED
    assert "the worst of any 20 adaptive mechanisms of (0.1, 0)-DP" in check.statement
    assert check.lower.name == PARTS.name
    assert check.upper.name == PARTS.name
    found = cross_check(
        ApproxDP(0.9, 1e-6), [TopKNonAdaptive(20, 0.1)], about=Composition(0.1, 0.0, 20)
    )
    assert found.verdict is Verdict.VIOLATED


def test_composition_of_the_parts_of_gaussian_noise_does_not_refute_it():
    """Ten releases, each (ε, δ)-DP: as any such parts they lose more than as Gaussian noise."""
    noise = GaussianCurve(4.0, count=10)
    part = GaussianCurve(4.0).epsilon_at(1e-7)
    parts = OptimalComposition(part, 1e-7, 10)
    assert noise.epsilon_at(1e-5) < 0.9 * parts.epsilon_at(1e-5)
    claim = ApproxDP((noise.epsilon_at(1e-5) + parts.epsilon_at(1e-5)) / 2, 1e-5)
    assert cross_check(claim, [parts]).verdict is Verdict.VIOLATED
    for listed in ([noise, parts], [parts, noise], [noise]):
        check = cross_check(claim, listed)
        assert check.verdict is Verdict.CERTIFIED
        assert check.findings == []
    assert cross_check(claim, [parts], about=noise).verdict is Verdict.NOT_REFUTED


def test_where_the_worst_need_not_be_attained_nothing_is_refuted():
    claim = ApproxDP(1.0, 1e-5)
    assert cross_check(claim, [GaussianCurve(1.0)]).verdict is Verdict.VIOLATED
    check = cross_check(claim, [GaussianCurve(1.0)], attained=False)
    assert check.verdict is Verdict.NOT_REFUTED
    assert check.lower is None
    assert (
        cross_check(ApproxDP(5.0, 1e-5), [GaussianCurve(1.0)], attained=False).verdict
        is Verdict.CERTIFIED
    )


def test_the_steps_without_sampling_bound_them_with_it_from_above_only():
    whole, sampled = GaussianCurve(1.0, count=10), Poisson(1.0, 0.1, 10)
    assert cross_check(CLAIM, [whole]).verdict is Verdict.VIOLATED
    assert cross_check(CLAIM, [whole], about=sampled).verdict is Verdict.NOT_REFUTED
    assert (
        cross_check(ApproxDP(100.0, 1e-5), [whole], about=sampled).verdict
        is Verdict.CERTIFIED
    )


@pytest.mark.parametrize(
    ("sensitivity", "verdict"), [(1.0, Verdict.NOT_REFUTED), (2.0, Verdict.CERTIFIED)]
)
def test_a_sensitivity_for_other_neighbours_bounds_nothing(sensitivity, verdict):
    """A record that is replaced moves a sum of clipped gradients by 2C: noise over C is not what bounds that."""
    claim = ApproxDP(GaussianCurve(1.0, 2.0).epsilon_at(1e-5), 1e-5)
    check = cross_check(
        claim, [GaussianCurve(1.0, sensitivity)], about=FixedSize(1.0, 1000, 1000, 1)
    )
    assert check.verdict is verdict
    assert bool(check.findings) is (verdict is Verdict.NOT_REFUTED)


@pytest.mark.parametrize(
    "listed",
    [
        [GaussianCurve(1.0), GaussianCurve(2.0)],
        [OptimalComposition(1.0, 0.0, 3), PLDUpper(1.0, 0.1, 3)],
        [TopKZCDP(3, 0.1), TopKZCDP(3, 0.2)],
        [PLDUpper(1.0, 0.1, 3), FixedSizeUpper(1.0, 100, 10, 3)],
        [GaussianCurve(1.0), ZCDP(0.4)],
    ],
)
def test_what_cannot_be_compared_is_refused(listed):
    with pytest.raises(
        AccountantError, match=r"expected accountants of one thing.*about=\.\.\."
    ):
        cross_check(CLAIM, listed)
    check = cross_check(CLAIM, listed, about=listed[0])
    assert [finding.split("(")[0] for finding in check.findings] == [
        type(listed[1]).__name__
    ]
    assert "; the claim is about " in check.findings[0]


def test_a_check_needs_an_accountant():
    with pytest.raises(AccountantError, match="at least one accountant"):
        cross_check(CLAIM, [])


@given(data=st.data(), claimed=st.floats(0.1, 8))
def test_wider_classes_only_certify(data, claimed):
    """Whatever is true of the classes, as long as their proofs are: the worst of a larger one loses more."""
    truth = data.draw(st.lists(st.floats(0, 8), min_size=3, max_size=3).map(sorted))
    kinds = st.tuples(
        st.sampled_from(list(Soundness)), st.integers(1, 3), st.floats(0, 4)
    )

    def says(number, drawn):
        soundness, size, off = drawn
        signs = {Soundness.EXACT: 0, Soundness.UPPER: 1}
        epsilon = max(0.0, truth[size - 1] + signs.get(soundness, -1) * off)
        return Says(soundness, epsilon, f"{number}", Thing(size=size))

    listed = [
        says(k, one)
        for k, one in enumerate(data.draw(st.lists(kinds, min_size=1, max_size=6)))
    ]
    least = min(one.describes.size for one in listed)
    own = [one for one in listed if one.describes.size == least]
    alone = cross_check(PureDP(claimed), own).verdict
    together = cross_check(PureDP(claimed), data.draw(st.permutations(listed)))
    assert together.about == Thing(size=least)
    assert together.verdict is alone or (alone, together.verdict) == (
        Verdict.NOT_REFUTED,
        Verdict.CERTIFIED,
    )
    for size, loss in enumerate(truth, start=1):
        verdict = cross_check(PureDP(claimed), listed, about=Thing(size=size)).verdict
        assert verdict is not Verdict.VIOLATED or claimed < loss
        assert verdict is not Verdict.CERTIFIED or claimed >= loss


def test_what_is_rounded_in_floating_point_without_a_bound_certifies_nothing():
    check = cross_check(CLAIM, [Says(Soundness.UNPROVED, 0.5, "float"), lower(0.2)])
    assert check.verdict is Verdict.NOT_REFUTED
    assert check.upper is None
    assert check.statement.endswith(
        "; float has 0.5, with rounding errors that are not bounded"
    )


@given(
    sigma=st.floats(0.3, 10),
    delta=st.floats(1e-12, 0.1),
    change=st.sampled_from([1e-6, -1e-6, 0.0]),
)
def test_exact_accountants_decide_up_to_rounding(sigma, delta, change):
    curve = GaussianCurve(sigma)
    epsilon = curve.epsilon_at(delta)
    if epsilon < 1e-3:
        return
    verdict = cross_check(ApproxDP(epsilon * (1 + change), delta), [curve]).verdict
    assert verdict is (Verdict.VIOLATED if change < 0 else Verdict.CERTIFIED)
    assert (
        cross_check(ApproxDP(epsilon * (1 - 1e-15), delta), [curve]).verdict
        is not Verdict.VIOLATED
    )


def test_a_claim_that_is_the_closed_form_but_for_rounding():
    exact = OptimalComposition(0.1, 0.0, 3)
    level = exact.epsilon_at(0.0)
    check = cross_check(PureDP(level * (1 - 1e-12)), [exact])
    assert check.verdict is Verdict.NOT_REFUTED
    assert "but for rounding" in check.statement


def test_pure_claims_of_gaussian_noise_are_violated():
    assert cross_check(PureDP(50.0), [GaussianCurve(1.0)]).verdict is Verdict.VIOLATED


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_gaussian_claims_are_not_certified_by_points_of_their_curve(mu):
    curve = GaussianCurve(1 / mu)
    assert cross_check(GaussianDP(0.999 * mu), [curve]).verdict is Verdict.VIOLATED
    upper = Says(Soundness.UPPER, 0.0)
    check = cross_check(GaussianDP(1.1 * mu), [upper])
    assert check.verdict is Verdict.NOT_REFUTED
    assert check.statement.endswith(
        "statements that it implies were compared, and do not imply it"
    )
    assert cross_check(GaussianDP(1.1 * mu), [curve]).verdict is Verdict.CERTIFIED, (
        "by the noise, and not by its points"
    )


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
    assert [finding.split("(")[0] for finding in tiny.findings] == [
        "OpacusPRV",
        "OpacusRDP",
    ]
    assert [failed.split("(")[0] for failed in tiny.failures] == ["OpacusGDP"]
    assert tiny.findings[1].endswith("ε = -0.0512892 at δ = 0.05 is no ε")
