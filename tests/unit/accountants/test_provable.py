"""No verdict on any kind of claim by any kind of accountant is wrong.

The claims are just within and just beyond the truth.
"""

import mpmath as mp
import pytest

from auditdp import (
    AccountedDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    Verdict,
    ZeroConcentratedDP,
)
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

CERTIFIED, VIOLATED, OPEN = Verdict.CERTIFIED, Verdict.VIOLATED, Verdict.NOT_REFUTED
OFF = (1e-6, 1e-3, 0.3)
ORDERS = (1.01, 2.0, 17.5, 400.0)


def response(epsilon, order):
    """D of randomised response, term by term."""
    p, q = 1 / (1 + mp.exp(-epsilon)), 1 / (1 + mp.exp(epsilon))
    return mp.log(p**order * q ** (1 - order) + q**order * p ** (1 - order)) / (
        order - 1
    )


def sampled(noise, rate, order):
    """D of one step of DP-SGD, by quadrature of an integral over the outputs.

    It is the larger of both orders of the pair.
    """
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


def renyi(order):
    return lambda level: RenyiDP(order, level)


def near(make, truth, listed, *, open_at=(), **about):
    """Claim a little more and a little less than the truth.

    All verdicts but ``open_at`` are decided, and none is wrong.
    """
    for off in OFF:
        for sign, right, wrong in ((1, CERTIFIED, VIOLATED), (-1, VIOLATED, CERTIFIED)):
            found = cross_check(make(float(truth) * (1 + sign * off)), listed, **about)
            assert found.verdict is not wrong, found.statement
            assert found.verdict is right or right in open_at, found.statement


GAUSSIANS = [(0.7, 1.0, 1), (3.0, 2.0, 7), (20.0, 1.0, 1000)]


@pytest.mark.dear
@pytest.mark.parametrize(("sigma", "sensitivity", "count"), GAUSSIANS)
def test_gaussian_noise(sigma, sensitivity, count):
    """D = αρ and μ² = 2ρ with ρ = kΔ²/(2σ²), to all digits, for any accountants."""
    rho = mp.mpf(count) * mp.mpf(sensitivity) ** 2 / (2 * mp.mpf(sigma) ** 2)
    curve, loose = GaussianCurve(sigma, sensitivity, count), ZCDP(float(rho) * 1.5)
    lists = [[curve, loose], [loose]]
    if count == 1:
        lists.append([ClassicGaussian(sigma, sensitivity, everywhere=True)])
    for listed in lists:
        near(ZeroConcentratedDP, rho, listed, about=curve)
        near(GaussianDP, mp.sqrt(2 * rho), listed, about=curve)
        for order in ORDERS:
            near(renyi(order), order * rho, listed, about=curve)
        options = {"about": curve, "attained": False, "open_at": (VIOLATED,)}
        near(ZeroConcentratedDP, rho, listed, **options)
    delta = 1e-5
    near(lambda level: ApproxDP(level, delta), curve.epsilon_at(delta), [curve])


@pytest.mark.dear
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("count", [1, 5])
def test_pure_parts(epsilon, count):
    """Randomised responses have the largest divergence of all.

    For orders near 1 it is the sum of ε·tanh(ε/2).
    """
    exact = mp.mpf(epsilon)
    for accountant in (
        OptimalComposition(epsilon, 0.0, count),
        BasicComposition(epsilon, 0.0, count),
        HeterogeneousComposition((epsilon,) * count, (0.0,) * count),
    ):
        near(ZeroConcentratedDP, count * exact * mp.tanh(exact / 2), [accountant])
        for order in ORDERS:
            near(renyi(order), count * response(exact, order), [accountant])
        near(PureDP, count * epsilon, [accountant], open_at=(VIOLATED,))
    mixed = HeterogeneousComposition((epsilon, 2 * epsilon), (0.0, 0.0))
    near(renyi(2.0), response(exact, 2) + response(2 * exact, 2), [mixed])


@pytest.mark.parametrize("claim", [RenyiDP(2.0, 500.0), ZeroConcentratedDP(500.0)])
@pytest.mark.parametrize(
    "parts",
    [
        OptimalComposition(0.1, 1e-9, 3),
        HeterogeneousComposition((0.1, 0.2), (0.0, 1e-30)),
    ],
    ids=["equal", "mixed"],
)
def test_a_mechanism_that_may_reveal_its_input_has_no_divergence(claim, parts):
    """Its curve lies below the one that the claim implies, but for δ below 1e-9."""
    assert cross_check(claim, [parts]).verdict is VIOLATED
    assert cross_check(claim, [parts], attained=False).verdict is OPEN
    assert (
        cross_check(claim, [PoissonSubsampled(0.1, 1e-9, 0.1)]).verdict is not CERTIFIED
    )


@pytest.mark.dear
@pytest.mark.parametrize(
    ("noise", "rate", "steps"), [(1.0, 0.1, 1), (0.6, 0.01, 20), (2.0, 1.0, 3)]
)
def test_sampled_steps(noise, rate, steps):
    """Claims of integer orders are decided; other verdicts are never wrong."""
    listed = [
        PLDUpper(noise, rate, steps),
        PLDLower(noise, rate, steps),
        RDP(noise, rate, steps),
    ]
    for order in (2.0, 3.0, 8.0):
        near(renyi(order), steps * sampled(noise, rate, order), listed)
    between, undecided = steps * sampled(noise, rate, 2.5), (CERTIFIED, VIOLATED)
    near(renyi(2.5), between, listed, open_at=undecided)
    near(ZeroConcentratedDP, steps / (2 * mp.mpf(noise) ** 2), listed)
    near(GaussianDP, mp.sqrt(steps) / noise, listed[:2], open_at=(VIOLATED,))


@pytest.mark.dear
@pytest.mark.parametrize(
    "listed",
    [
        [FixedSizeUpper(1.0, 100, 10, 3), FixedSizeLower(1.0, 100, 10, 3)],
        [ShuffledUpper(1.0, 10, 3), ShuffledLower(1.0, 10, 3)],
        [NodeLevelUpper(20.0, 100, 3, 10, 3), NodeLevelLower(20.0, 100, 3, 10, 3)],
        [TopKZCDP(5, 0.3), TopKNonAdaptive(5, 0.3), TopKOptimalComposition(5, 0.3)],
        [PoissonSubsampled(1.0, 0.0, 0.1)],
        [WithReplacementSubsampled(1.0, 0.0, 100, 10)],
    ],
    ids=lambda listed: type(listed[0]).__name__,
)
def test_a_divergence_and_a_curve_that_are_certified_are_not_refuted_by_any_point(
    listed,
):
    """A loss of the same class lies at any ε below the δ that a certified claim implies.

    The claim may be the bound itself.
    """
    attained = [one for one in listed if one.soundness.is_attained]
    for make in (ZeroConcentratedDP, GaussianDP, renyi(2.0), renyi(30.0)):
        _, suffices = bounds(make(1.0), listed[0].describes)
        if not suffices.is_finite():
            assert cross_check(make(20.0), listed).verdict is OPEN
            continue
        claim = make(float(suffices) * (1 + 1e-12))
        assert cross_check(claim, listed).verdict is CERTIFIED
        for epsilon, delta in claim.statements()[::20]:
            for loss in attained:
                assert loss.delta_at(float(epsilon)) <= delta * (1 + 1e-9)


@pytest.mark.dear
@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
def test_a_curve_holds_where_all_of_its_points_do(sigma):
    """No point stands for another, and points may have bounds of different proofs."""
    mu, curve = 1 / mp.mpf(sigma), GaussianCurve(sigma)
    concentrated = ZCDP(float(mu**2 / 2) * 1.001)
    epsilons = [0.0, 0.3, 1.0, float(mu) ** 2 + 2 * float(mu)]
    deltas = [float(gaussian_delta(mu, epsilon)) for epsilon in epsilons]

    def claim(offs):
        changed = [delta * (1 + off) for delta, off in zip(deltas, offs, strict=True)]
        points = list(zip(epsilons, changed, strict=True))
        return AccountedDP(points, quoted=max(deltas[2], changed[-1]))

    for off in OFF:
        assert cross_check(claim([off] * 4), [curve]).verdict is CERTIFIED
        for k in range(4):
            broken = claim([-off if j == k else off for j in range(4)])
            assert cross_check(broken, [curve]).verdict is VIOLATED, (off, k)
            assert cross_check(broken, [concentrated]).verdict is not CERTIFIED
    unreached = AccountedDP([(0.0, 0.9), (1.0, 1e-30)], quoted=0.5)
    check = cross_check(unreached, [PLDUpper(sigma, 1.0, 1)])
    assert check.verdict is not CERTIFIED


@pytest.mark.parametrize(
    ("curve", "verdict"),
    [
        (PLDUpper(1.0, 0.1, 10), CERTIFIED),
        # The steps without sampling.
        (GaussianCurve(1.0, 1.0, 10), CERTIFIED),
        (PLDUpper(1.0, 0.1, 10).delta_at, OPEN),
        (PLDLower(1.0, 0.1, 10), OPEN),
        (RDP(1.0, 0.1, 10), OPEN),
        (PLDUpper(1.0, 0.1, 11), OPEN),
        (PLDUpper(1.01, 0.1, 10), VIOLATED),
    ],
)
def test_a_function_of_epsilon_is_certified_as_the_curve_of_a_proof_alone(
    curve, verdict
):
    listed = [PLDUpper(1.0, 0.1, 10), PLDLower(1.0, 0.1, 10)]
    assert cross_check(AccountedDP(curve), listed).verdict is verdict


@pytest.mark.parametrize("soundness", [Soundness.APPROXIMATION, Soundness.UNPROVED])
@pytest.mark.parametrize(
    "claim", [PureDP(9.0), ApproxDP(9.0, 1e-3), AccountedDP([(3.0, 0.5)], quoted=0.6)]
)
def test_accountants_that_prove_nothing_decide_nothing(claim, soundness):
    loose = type("Loose", (BasicComposition,), {"soundness": soundness})
    about = Composition(0.1, 0.0, 3)
    assert cross_check(claim, [loose(0.1, 0.0, 3)], about=about).verdict is OPEN
