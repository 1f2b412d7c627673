"""Every kind of claim × every kind of accountant, just within and just beyond the truth: no verdict is wrong."""

import math

import mpmath as mp
import pytest

from auditdp import Audit
from auditdp.accountants import (
    RDP,
    ZCDP,
    BasicComposition,
    ClassicGaussian,
    Composition,
    FixedSizeLower,
    FixedSizeUpper,
    GaussianCurve,
    HeterogeneousComposition,
    NodeLevelLower,
    NodeLevelUpper,
    OptimalComposition,
    PLDLower,
    PLDUpper,
    PoissonSubsampled,
    ShuffledLower,
    ShuffledUpper,
    Soundness,
    TopKNonAdaptive,
    TopKOptimalComposition,
    TopKZCDP,
    WithReplacementSubsampled,
    cross_check,
)
from auditdp.accountants.provable import bounds
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.claims.statements import (
    AccountedDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from auditdp.record.budget import Budget
from auditdp.record.results import Verdict

pytestmark = pytest.mark.dear

CERTIFIED, VIOLATED, OPEN = Verdict.CERTIFIED, Verdict.VIOLATED, Verdict.NOT_REFUTED
OFF = (1e-6, 1e-3, 0.3)
ORDERS = (1.01, 2.0, 17.5, 400.0)


def response(epsilon, order):
    """D of randomised response, term by term."""
    p, q = 1 / (1 + mp.exp(-epsilon)), 1 / (1 + mp.exp(epsilon))
    return mp.log(p**order * q ** (1 - order) + q**order * p ** (1 - order)) / (
        order - 1
    )


def laplace(epsilon, order):
    """D of Laplace noise (Mironov 2017, arXiv:1702.07476, Proposition 6)."""
    terms = order * mp.exp((order - 1) * epsilon) + (order - 1) * mp.exp(
        -order * epsilon
    )
    return mp.log(terms / (2 * order - 1)) / (order - 1)


def sampled(noise, rate, order):
    """D of one step of DP-SGD, the larger order of the pair, by quadrature of an integral over the outputs."""
    ratio = lambda x: 1 - rate + rate * mp.exp((2 * x - 1) / (2 * mp.mpf(noise) ** 2))  # noqa: E731
    density = lambda x: mp.npdf(x, 0, noise)  # noqa: E731
    ends = [-30 * noise, 0, 1, order, order + 30 * noise]
    both = [
        mp.quad(lambda x, k=k: density(x) * ratio(x) ** k, ends)
        for k in (order, 1 - order)
    ]
    return max(mp.log(value) / (order - 1) for value in both)


def gaussian_delta(mu, epsilon):
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(
        -mu / 2 - epsilon / mu
    )


def near(make, truth, listed, *, open_at=(), **about):
    """Claim a little more and a little less than the truth: what is decided is right, and all but ``open_at`` is decided."""
    for off in OFF:
        for sign, right, wrong in ((1, CERTIFIED, VIOLATED), (-1, VIOLATED, CERTIFIED)):
            found = cross_check(make(float(truth) * (1 + sign * off)), listed, **about)
            assert found.verdict is not wrong, found.statement
            if right not in open_at:
                assert found.verdict is right, found.statement


GAUSSIANS = [(0.7, 1.0, 1), (0.98, 1.0, 1), (3.0, 2.0, 7), (20.0, 1.0, 1000)]


@pytest.mark.parametrize(("sigma", "sensitivity", "count"), GAUSSIANS)
def test_gaussian_noise(sigma, sensitivity, count):
    """D = αρ with ρ = kΔ²/(2σ²), and μ² = 2ρ: decided to all digits by the description, whoever is asked."""
    rho = mp.mpf(count) * mp.mpf(sensitivity) ** 2 / (2 * mp.mpf(sigma) ** 2)
    curve = GaussianCurve(sigma, sensitivity, count)
    lists = [[curve, ZCDP(float(rho) * 1.5)], [ZCDP(float(rho) * 1.5)]]
    lists += (
        [[ClassicGaussian(sigma, sensitivity, everywhere=True)]] if count == 1 else []
    )
    for listed in lists:
        about = {"about": curve}
        near(ZeroConcentratedDP, rho, listed, **about)
        near(GaussianDP, mp.sqrt(2 * rho), listed, **about)
        for order in ORDERS:
            near(
                lambda level, order=order: RenyiDP(order, level),
                order * rho,
                listed,
                **about,
            )
        near(
            ZeroConcentratedDP,
            rho,
            listed,
            **about,
            attained=False,
            open_at=(VIOLATED,),
        )
    delta = 1e-5
    near(lambda level: ApproxDP(level, delta), curve.epsilon_at(delta), [curve])


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("count", [1, 5])
def test_pure_parts(epsilon, count):
    """Randomised responses have the largest divergence of all; of orders at 1 it is the sum of ε·tanh(ε/2)."""
    parts = [
        [OptimalComposition(epsilon, 0.0, count)],
        [BasicComposition(epsilon, 0.0, count)],
        [HeterogeneousComposition((epsilon,) * count, (0.0,) * count)],
    ]
    for listed in parts:
        near(ZeroConcentratedDP, count * epsilon * mp.tanh(mp.mpf(epsilon) / 2), listed)
        for order in ORDERS:
            near(
                lambda level, order=order: RenyiDP(order, level),
                count * response(mp.mpf(epsilon), order),
                listed,
            )
        near(PureDP, count * epsilon, listed, open_at=(VIOLATED,))
    mixed = HeterogeneousComposition((epsilon, 2 * epsilon), (0.0, 0.0))
    near(
        lambda level: RenyiDP(2.0, level),
        response(mp.mpf(epsilon), 2) + response(2 * mp.mpf(epsilon), 2),
        [mixed],
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_mechanism_of_a_class_may_be_a_better_one(epsilon):
    """Laplace noise is ε-DP, with smaller divergences than randomised response: nothing is refuted or falsely proved."""
    for order in ORDERS:
        claim = lambda level, order=order: RenyiDP(order, level)  # noqa: E731
        truth = laplace(mp.mpf(epsilon), order)
        assert truth < response(mp.mpf(epsilon), order)
        near(
            claim,
            truth,
            [OptimalComposition(epsilon, 0.0, 1)],
            attained=False,
            open_at=(CERTIFIED, VIOLATED),
        )


@pytest.mark.parametrize("claim", [RenyiDP(2.0, 500.0), ZeroConcentratedDP(500.0)])
@pytest.mark.parametrize(
    "parts",
    [
        OptimalComposition(0.1, 1e-9, 3),
        HeterogeneousComposition((0.1, 0.2), (0.0, 1e-30)),
    ],
    ids=["equal", "mixed"],
)
def test_what_may_reveal_its_input_has_no_divergence(claim, parts):
    """Its curve lies below the one that the claim implies nearly everywhere, and beyond 1e-9 nobody looks."""
    assert cross_check(claim, [parts]).verdict is VIOLATED
    assert cross_check(claim, [parts], attained=False).verdict is OPEN
    assert (
        cross_check(claim, [PoissonSubsampled(0.1, 1e-9, 0.1)]).verdict is not CERTIFIED
    )


@pytest.mark.parametrize(
    ("noise", "rate", "steps"), [(1.0, 0.1, 1), (0.6, 0.01, 20), (2.0, 1.0, 3)]
)
def test_sampled_steps(noise, rate, steps):
    """Decided at integer orders; between them, and of all orders at once, never wrong."""
    listed = [
        PLDUpper(noise, rate, steps),
        PLDLower(noise, rate, steps),
        RDP(noise, rate, steps),
    ]
    for order in (2, 3, 8):
        near(
            lambda level, order=order: RenyiDP(float(order), level),
            steps * sampled(noise, rate, order),
            listed,
        )
    near(
        lambda level: RenyiDP(2.5, level),
        steps * sampled(noise, rate, 2.5),
        listed,
        open_at=(CERTIFIED, VIOLATED),
    )
    near(ZeroConcentratedDP, steps / (2 * mp.mpf(noise) ** 2), listed)
    near(GaussianDP, mp.sqrt(steps) / noise, listed[:2], open_at=(VIOLATED,))


@pytest.mark.parametrize(
    "listed",
    [
        [FixedSizeUpper(1.0, 100, 10, 3), FixedSizeLower(1.0, 100, 10, 3)],
        [ShuffledUpper(1.0, 10, 3), ShuffledLower(1.0, 10, 3)],
        [NodeLevelUpper(20.0, 100, 3, 10, 3), NodeLevelLower(20.0, 100, 3, 10, 3)],
        [TopKZCDP(5, 0.3), TopKNonAdaptive(5, 0.3), TopKOptimalComposition(5, 0.3)],
        [PoissonSubsampled(1.0, 0.0, 0.1)],
        [WithReplacementSubsampled(1.0, 0.0, 100, 10)],
        [ZCDP(0.3)],
        [OptimalComposition(0.3, 0.0, 5)],
    ],
    ids=lambda listed: type(listed[0]).__name__,
)
def test_a_divergence_and_a_curve_that_are_certified_are_not_refuted_by_any_point(
    listed,
):
    """Whatever is certified, a loss of the same class at any ε lies below what it implies, also at the bound itself."""
    subject = listed[0].describes
    for make in (
        ZeroConcentratedDP,
        GaussianDP,
        lambda level: RenyiDP(2.0, level),
        lambda level: RenyiDP(30.0, level),
    ):
        suffices = bounds(make(1.0), subject)[1]
        if not suffices.is_finite():
            assert cross_check(make(20.0), listed).verdict is OPEN
            continue
        level = float(suffices) * (1 + 1e-12)
        assert cross_check(make(level), listed).verdict is CERTIFIED
        for epsilon, delta in make(level).statements()[::20]:
            for loss in (one for one in listed if one.soundness.is_attained):
                assert loss.delta_at(float(epsilon)) <= delta * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
def test_a_curve_holds_where_all_of_its_points_do(sigma):
    """No point stands for another, wherever the one that is false lies; at points the bounds may be of different proofs."""
    mu, curve = 1 / mp.mpf(sigma), GaussianCurve(sigma)
    epsilons = [0.0, 0.3, 1.0, float(mu) ** 2 + 2 * float(mu)]
    deltas = [float(gaussian_delta(mu, epsilon)) for epsilon in epsilons]
    quoted = deltas[2]

    def claim(offs):
        points = [
            (e, d * (1 + off)) for e, d, off in zip(epsilons, deltas, offs, strict=True)
        ]
        return AccountedDP(points, quoted=max(quoted, points[-1][1]))

    for off in OFF:
        assert cross_check(claim([off] * 4), [curve]).verdict is CERTIFIED
        for k in range(4):
            broken = cross_check(
                claim([-off if j == k else off for j in range(4)]), [curve]
            )
            assert broken.verdict is VIOLATED, (off, k)
            assert (
                cross_check(
                    claim([-off if j == k else off for j in range(4)]),
                    [ZCDP(float(mu**2 / 2) * 1.001)],
                ).verdict
                is not CERTIFIED
            )
    never = AccountedDP([(0.0, 0.9), (1.0, 1e-30)], quoted=0.5)
    assert cross_check(never, [PLDUpper(sigma, 1.0, 1)]).verdict is not CERTIFIED, (
        "points that the accountant never reaches"
    )


def test_a_function_of_epsilon_is_certified_as_the_curve_of_a_proof_alone():
    listed = [PLDUpper(1.0, 0.1, 10), PLDLower(1.0, 0.1, 10)]
    assert cross_check(AccountedDP(PLDUpper(1.0, 0.1, 10)), listed).verdict is CERTIFIED
    assert (
        cross_check(AccountedDP(GaussianCurve(1.0, 1.0, 10)), listed).verdict
        is CERTIFIED
    ), "the steps without sampling"
    for curve in (
        PLDUpper(1.0, 0.1, 10).delta_at,
        PLDLower(1.0, 0.1, 10),
        RDP(1.0, 0.1, 10),
        PLDUpper(1.0, 0.1, 11),
    ):
        found = cross_check(AccountedDP(curve), listed)
        assert found.verdict is OPEN, curve
    assert cross_check(AccountedDP(PLDUpper(1.01, 0.1, 10)), listed).verdict is VIOLATED


def test_a_formula_and_a_mechanism_are_judged_by_the_same_rules():
    settings = Settings(alpha=0.05, budget=Budget(1_000), root_seed=1)
    noise = [GaussianCurve(0.7)]
    assert (
        run_audit(Audit(None, RenyiDP(2.0, 1.0), accountants=noise), settings).verdict
        is VIOLATED
    )
    assert (
        run_audit(
            Audit(None, ZeroConcentratedDP(0.5), accountants=[GaussianCurve(0.98)]),
            settings,
        ).verdict
        is VIOLATED
    )

    def release(data, size, *, rng):
        return data + rng.normal(scale=0.7, size=size)

    for claim, verdict in ((RenyiDP(2.0, 2.05), CERTIFIED), (RenyiDP(2.0, 2.0), OPEN)):
        audit = Audit(
            release, claim, [(0.0, 1.0)], accountants=noise, evidence=["accounting"]
        )
        assert run_audit(audit, settings).verdict is verdict
    audit = Audit(
        release,
        RenyiDP(2.0, 2.0),
        [(0.0, 1.0)],
        accountants=noise,
        about=noise[0],
        evidence=["accounting"],
    )
    result = run_audit(audit, settings)
    assert result.verdict is VIOLATED
    assert result.epsilon_lower == pytest.approx(2 / 0.98, rel=1e-12)


def test_accountants_that_prove_nothing_decide_nothing():
    """Numbers far within a curve, of an approximation, and of an unproved bound."""
    claims = [PureDP(9.0), ApproxDP(9.0, 1e-3), AccountedDP([(3.0, 0.5)], quoted=0.6)]
    for soundness in (Soundness.APPROXIMATION, Soundness.UNPROVED):
        listed = [
            type("Loose", (BasicComposition,), {"soundness": soundness})(0.1, 0.0, 3)
        ]
        assert {
            cross_check(claim, listed, about=Composition(0.1, 0.0, 3)).verdict
            for claim in claims
        } == {OPEN}
    assert math.isclose(BasicComposition(0.1, 0.0, 3).epsilon_at(0.0), 0.3)
