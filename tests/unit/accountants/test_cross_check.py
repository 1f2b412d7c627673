"""A claim is compared with accountants.

There are three verdicts. Findings about accountants decide nothing.
"""

import math
from dataclasses import dataclass
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp import ApproxDP, GaussianDP, PureDP, Verdict
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

CERTIFIED, VIOLATED = Verdict.CERTIFIED, Verdict.VIOLATED
OPEN = Verdict.NOT_REFUTED
CLAIM = ApproxDP(1.0, 1e-5)


def claimed(epsilon):
    return ApproxDP(epsilon, 1e-5)


@dataclass(frozen=True)
class Thing(Description):
    """A class of mechanisms of a size.

    Smaller ones lie within larger ones of the same kind.
    """

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
        same_kind = isinstance(other, Thing) and other.kind == self.kind
        return same_kind and other.size <= self.size


@dataclass(frozen=True)
class Constant:
    """An accountant with one ε for every δ, or one that raises."""

    soundness: Soundness
    epsilon: float
    name: str = "it"
    describes: Thing = Thing()
    error: BaseException | None = None
    adjacency: str = "add or remove one record"
    sampling: str = "Poisson"
    source: str = "test"

    def epsilon_at(self, delta):
        if self.error:
            raise self.error
        return self.epsilon

    def delta_at(self, epsilon):
        return float(epsilon < self.epsilon)


def upper(epsilon, name="upper", **others):
    return Constant(Soundness.UPPER, epsilon, name, **others)


def lower(epsilon, name="lower", **others):
    return Constant(Soundness.LOWER, epsilon, name, **others)


# Claims on either side of, and between, the proofs below.
SOUND = [lower(0.9), upper(1.2)]
DECIDED = [(0.8, VIOLATED), (1.0, OPEN), (1.3, CERTIFIED)]


@given(
    claim=st.floats(0.01, 10),
    lowers=st.lists(st.floats(0, 4.9), max_size=3),
    uppers=st.lists(st.floats(5, 9), max_size=3),
)
def test_the_verdict_is_where_the_claim_lies(claim, lowers, uppers):
    accountants = [lower(e, f"lower {k}") for k, e in enumerate(lowers)]
    accountants += [upper(e, f"upper {k}") for k, e in enumerate(uppers)]
    accountants.append(Constant(Soundness.APPROXIMATION, 5.0, "approximation"))
    check = cross_check(claimed(claim), accountants)
    least, most = max(lowers, default=0), min(uppers, default=math.inf)
    if claim < least * (1 - 1e-9):
        assert check.verdict is VIOLATED
    elif claim >= most:
        assert check.verdict is CERTIFIED
    elif claim > least:
        assert check.verdict is OPEN
    assert not check.findings
    for bound, values, expected in (
        (check.lower, lowers, least),
        (check.upper, uppers, most),
    ):
        assert bound.value == expected if values else bound is None


UNDERESTIMATE = "underestimates: ε = 0.7, but lower shows at least 0.9"
ANOTHER_THING = "is about other of size 1; the claim is about thing of size 1"


@pytest.mark.parametrize(
    ("odd", "finding"),
    [
        (upper(-0.05, "odd"), "ε = -0.05 at δ = 1e-05 is no ε"),
        (upper(math.nan, "odd"), "ε = nan at δ = 1e-05 is no ε"),
        (Constant(Soundness.APPROXIMATION, 0.7, "odd"), UNDERESTIMATE),
        (upper(0.1, "odd", describes=Thing("other")), ANOTHER_THING),
        (lower(5.0, "odd", describes=Thing("other")), ANOTHER_THING),
    ],
)
def test_findings_about_an_accountant_change_nothing(odd, finding):
    for epsilon, verdict in DECIDED:
        check = cross_check(claimed(epsilon), [*SOUND, odd], about=Thing())
        assert check.verdict is verdict is cross_check(claimed(epsilon), SOUND).verdict
        assert check.findings == [f"odd: {finding}"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("different signs"), "raised ValueError: different signs"),
        (MemoryError(), "ran out of memory"),
    ],
)
@pytest.mark.parametrize("soundness", [Soundness.UPPER, Soundness.LOWER])
def test_an_accountant_that_fails_has_no_answer_and_is_no_finding(
    error, message, soundness
):
    odd = Constant(soundness, 0.0, "odd", error=error)
    for epsilon, verdict in DECIDED:
        check = cross_check(claimed(epsilon), [*SOUND, odd])
        assert (check.verdict, check.findings) == (verdict, [])
        (failed,) = check.failures
        assert failed.startswith(f"odd: {message}; it gave no answer: use ")
    alone = cross_check(CLAIM, [odd])
    assert alone.verdict is OPEN
    assert alone.lower is alone.upper is None


def test_proofs_that_contradict_each_other_do_not_count():
    proofs = [lower(2.0), upper(1.5), upper(3.0, "other")]
    check = cross_check(CLAIM, proofs)
    assert check.verdict is OPEN
    reason = "contradiction: ε is at most 1.5 (upper) and at least 2 (lower)"
    assert check.findings == [
        f"{name}: {reason}; neither counts" for name in ("lower", "upper")
    ]
    assert cross_check(claimed(3.0), proofs).verdict is CERTIFIED
    equal = cross_check(CLAIM, [lower(1.5), upper(1.5 * (1 - 1e-12))])
    assert (equal.verdict, equal.findings) == (VIOLATED, [])


# Twenty ε-DP parts compose to 1.79; selections of bounded range ε are better ones, of
# which a proof has 1.014.
PARTS = OptimalComposition(0.1, 0.0, 20)
SELECTIONS = TopKZCDP(20, 0.1)
LISTED = [PARTS, SELECTIONS, BasicComposition(0.1, 0.0, 20), ZCDP(0.1)]


@pytest.mark.parametrize("order", list(permutations(LISTED))[::5])
def test_the_worst_of_a_wider_class_refutes_nothing(order):
    check = cross_check(ApproxDP(1.2, 1e-6), order)
    assert (check.verdict, check.about) == (CERTIFIED, TopK(20, 0.1))
    assert (check.lower, check.findings) == (None, [])
    assert cross_check(ApproxDP(0.5, 1e-6), order).verdict is OPEN


def test_a_claim_about_the_wider_class_is_another_claim():
    """All parts lose 1.79 at worst, and the loss of selections bounds that from below."""
    claim = ApproxDP(1.2, 1e-6)
    assert cross_check(claim, [PARTS]).verdict is VIOLATED
    listed = [PARTS, SELECTIONS, TopKNonAdaptive(20, 0.1)]
    check = cross_check(claim, listed, about=PARTS)
    assert check.verdict is VIOLATED
    assert "the worst of any 20 adaptive mechanisms of (0.1, 0)-DP" in check.statement
    assert check.lower.name == check.upper.name == PARTS.name
    about = Composition(0.1, 0.0, 20)
    found = cross_check(ApproxDP(0.9, 1e-6), listed[2:], about=about)
    assert found.verdict is VIOLATED


# Poisson steps without sampling bound those with it from above only.
TEN_STEPS, SAMPLED = GaussianCurve(1.0, count=10), Poisson(1.0, 0.1, 10)
PART = OptimalComposition(0.1, 0.0, 3)


@pytest.mark.parametrize(
    ("claim", "accountant", "options", "verdict"),
    [
        (claimed(1.0), GaussianCurve(1.0), {}, VIOLATED),
        (claimed(1.0), GaussianCurve(1.0), {"attained": False}, OPEN),
        (claimed(1.0), TEN_STEPS, {}, VIOLATED),
        (claimed(1.0), TEN_STEPS, {"about": SAMPLED}, OPEN),
        (claimed(100.0), TEN_STEPS, {"about": SAMPLED}, CERTIFIED),
        # By the noise, and not by points of its curve.
        (GaussianDP(1.1), GaussianCurve(1.0), {}, CERTIFIED),
        (GaussianDP(1.1), upper(0.0), {}, OPEN),
        # A closed form but for rounding.
        (PureDP(PART.epsilon_at(0.0) * (1 - 1e-12)), PART, {}, OPEN),
    ],
)
def test_a_claim_against_one_accountant(claim, accountant, options, verdict):
    assert cross_check(claim, [accountant], **options).verdict is verdict


@pytest.mark.parametrize("sensitivity", [1.0, 2.0])
def test_a_sensitivity_for_other_neighbours_bounds_nothing(sensitivity):
    """A record that is replaced moves a sum of clipped gradients by 2C.

    Noise over C is not what bounds that.
    """
    claim = claimed(GaussianCurve(1.0, 2.0).epsilon_at(1e-5))
    noise, batches = GaussianCurve(1.0, sensitivity), FixedSize(1.0, 1000, 1000, 1)
    check = cross_check(claim, [noise], about=batches)
    assert check.verdict is (CERTIFIED if sensitivity == 2 else OPEN)
    assert bool(check.findings) is (sensitivity == 1)


@pytest.mark.parametrize(
    "listed",
    [
        [GaussianCurve(1.0), GaussianCurve(2.0)],
        [OptimalComposition(1.0, 0.0, 3), PLDUpper(1.0, 0.1, 3)],
        [PLDUpper(1.0, 0.1, 3), FixedSizeUpper(1.0, 100, 10, 3)],
        [GaussianCurve(1.0), ZCDP(0.4)],
    ],
)
def test_accountants_that_cannot_be_compared_are_refused(listed):
    with pytest.raises(AccountantError, match="at least one accountant"):
        cross_check(CLAIM, [])
    with pytest.raises(AccountantError, match=r"of one thing.*about=\.\.\."):
        cross_check(CLAIM, listed)
    (finding,) = cross_check(CLAIM, listed, about=listed[0]).findings
    assert finding.startswith(type(listed[1]).__name__)
    assert "; the claim is about " in finding


def names(findings):
    return [finding.split("(")[0] for finding in findings]


def test_opacus_underestimates_and_goes_below_zero():
    pytest.importorskip("opacus")
    check = cross_check(claimed(1.7), poisson_accountants(1.0, 0.01, 1000))
    assert names(check.findings) == ["OpacusGDP"]
    assert "underestimates: ε = 1.61771" in check.findings[0]
    tiny = cross_check(ApproxDP(1.7, 0.05), poisson_accountants(5.0, 0.001, 10))
    assert tiny.verdict is CERTIFIED
    assert names(tiny.findings) == ["OpacusPRV", "OpacusRDP"]
    assert names(tiny.failures) == ["OpacusGDP"]
    assert tiny.findings[1].endswith("ε = -0.0512892 at δ = 0.05 is no ε")
