"""Claims: what they refuse, and their curves against the extreme pairs that attain them."""

import math

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm

from auditdp.betting.wealth.levels import level_grid
from auditdp.claims.dominating import DominatingPair
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.errors import AuditError, ClaimError

NOT_A_LEVEL = [0, -1, -0.5, math.nan, math.inf, -math.inf, "1", None, 1j, [1.0]]
NOT_A_DELTA = [-1e-9, 1, 1.5, math.nan, math.inf, "0.1", None]


def hockey_stick(p, q, epsilon):
    """Σ (p - e^ε q)₊, term by term."""
    return math.fsum(
        max(a - math.exp(epsilon) * b, 0.0) for a, b in zip(p, q, strict=True)
    )


def response(epsilon):
    """Both laws of randomised response on one bit."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    return [keep, 1 - keep], [1 - keep, keep]


def reveal_or_response(epsilon, delta):
    """Both laws of the extreme (epsilon, delta) pair: reveal with probability delta, else randomised response."""
    (a, b), (c, d) = response(epsilon)
    return [(1 - delta) * a, (1 - delta) * b, delta, 0.0], [
        (1 - delta) * c,
        (1 - delta) * d,
        0.0,
        delta,
    ]


@pytest.mark.parametrize(
    "value", [value for value in NOT_A_LEVEL if value != 0], ids=repr
)
@pytest.mark.parametrize(
    "claim",
    [PureDP, lambda v: ApproxDP(v, 0.1), GaussianDP],
    ids=["pure", "approx", "gaussian"],
)
def test_a_level_that_is_not_a_positive_finite_number_is_refused(claim, value):
    with pytest.raises(ClaimError) as caught:
        claim(value)
    assert repr(value) in str(caught.value)


def test_an_epsilon_may_be_0_and_a_mu_may_not():
    """Total variation: a fair coin is guessed with probability (1 + δ)/2, and with 1/2 where δ is 0 too."""
    assert ApproxDP(0.0, 0.1).delta_at(0.0) == ApproxDP(0, 0.1).delta_at(2.0) == 0.1
    assert PureDP(0.0).posterior_cap() == ApproxDP(0.0, 0.0).posterior_cap() == 0.5
    assert PureDP(0).delta_at(0.0) == 0.0
    pair = DominatingPair.of(ApproxDP(0.0, 0.1).statements())
    assert pair.p.tolist() == pytest.approx([0.0, 0.45, 0.45, 0.1])
    assert pair.hockey_stick(0.0) == pytest.approx(0.1)
    assert level_grid(ApproxDP(0.0, 0.1))[:2].tolist() == pytest.approx([0.0, 1e-3])
    with pytest.raises(ClaimError, match="mu=0"):
        GaussianDP(0)


@pytest.mark.parametrize("delta", NOT_A_DELTA, ids=repr)
def test_a_delta_outside_0_1_is_refused(delta):
    with pytest.raises(ClaimError, match="delta"):
        ApproxDP(1.0, delta)


def test_claim_errors_are_audit_errors_and_value_errors():
    assert issubclass(ClaimError, AuditError)
    assert issubclass(ClaimError, ValueError)


@pytest.mark.parametrize(
    "level",
    [1, 1.0, np.float64(1), np.float32(1), np.int64(1)],
    ids=lambda v: type(v).__name__,
)
def test_levels_of_any_real_type_are_accepted(level):
    assert (
        PureDP(level).level
        == ApproxDP(level, 0.0).level
        == GaussianDP(level).level
        == 1.0
    )
    assert type(PureDP(level).level) is float


@pytest.mark.parametrize("epsilon0", [0.01, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.0, 1.5])
def test_the_pure_curve_is_that_of_randomised_response(epsilon0, share):
    p, q = response(epsilon0)
    epsilon = share * epsilon0
    assert PureDP(epsilon0).delta_at(epsilon) == pytest.approx(
        hockey_stick(p, q, epsilon), abs=1e-12
    )


@pytest.mark.parametrize("epsilon0", [0.01, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.05, 0.7])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0, 2.0])
def test_the_approximate_curve_is_that_of_reveal_or_respond(epsilon0, delta, share):
    p, q = reveal_or_response(epsilon0, delta)
    epsilon = share * epsilon0
    assert ApproxDP(epsilon0, delta).delta_at(epsilon) == pytest.approx(
        hockey_stick(p, q, epsilon), abs=1e-12
    )


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 2.5, 6.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
def test_the_gaussian_curve_is_the_integral_of_the_hockey_stick(mu, epsilon):
    # (φ(x - mu) - e^ε φ(x))₊ is positive beyond x = ε/mu + mu/2.
    def excess(x):
        return norm.pdf(x - mu) - math.exp(epsilon) * norm.pdf(x)

    start = epsilon / mu + mu / 2
    expected, _ = integrate.quad(
        excess, start, start + 12 + mu, epsabs=1e-14, epsrel=1e-12, limit=500
    )
    assert GaussianDP(mu).delta_at(epsilon) == pytest.approx(
        expected, rel=1e-8, abs=1e-13
    )


def test_known_values():
    assert PureDP(math.log(3)).posterior_cap() == pytest.approx(0.75)
    assert PureDP(math.log(3)).delta_at(0.0) == pytest.approx(
        0.5
    )  # total variation of (3/4, 1/4) and (1/4, 3/4)
    assert GaussianDP(1.0).delta_at(0.0) == pytest.approx(2 * norm.cdf(0.5) - 1)
    # Φ(-1/2) - e Φ(-3/2), with both from tables
    assert GaussianDP(1.0).delta_at(1.0) == pytest.approx(
        0.3085375387 - math.e * 0.0668072013, abs=1e-9
    )


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0, 40.0])
def test_the_cap_is_the_posterior_of_randomised_response(epsilon):
    assert PureDP(epsilon).posterior_cap() == pytest.approx(
        1 / (1 + math.exp(-epsilon)), rel=1e-15
    )
    assert ApproxDP(epsilon, 0.0).posterior_cap() == PureDP(epsilon).posterior_cap()
    assert ApproxDP(epsilon, 1e-9).posterior_cap() == 1.0
    assert GaussianDP(epsilon).posterior_cap() == 1.0


def test_how_claims_read():
    assert str(PureDP(1.0)) == "1-DP"
    assert str(ApproxDP(0.5, 1e-5)) == "(0.5, 1e-05)-DP"
    assert str(GaussianDP(2.0)) == "2-GDP"
    assert [claim.parameter for claim in (PureDP, ApproxDP, GaussianDP)] == [
        "epsilon",
        "epsilon",
        "mu",
    ]
