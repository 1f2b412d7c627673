"""The laws of privacy, which every kind of claim obeys: whatever is added to ``CLAIMS`` is tried here, too."""

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest

from auditdp.claims.curves import AccountedDP, RenyiDP, ZeroConcentratedDP
from auditdp.claims.dominating import LARGEST_EPSILON, DominatingPair
from auditdp.claims.statements import CLAIMS, ApproxDP, GaussianDP, PureDP
from auditdp.errors import ClaimError

EXAMPLES = [
    *(PureDP(epsilon) for epsilon in (0.0, 0.01, 1.0, 64.0)),
    *(ApproxDP(*each) for each in ((0.0, 0.1), (1.0, 0.01), (0.1, 0.9), (64.0, 1e-12))),
    *(GaussianDP(mu) for mu in (1e-3, 0.1, 1.0, 4.0, 17.0, 30.0)),
    AccountedDP([(0.0, 0.4), (1.0, 0.1), (2.0, 1e-3)], quoted=0.1),
    AccountedDP(GaussianDP(1.0), quoted=1e-3),
    *(ZeroConcentratedDP(rho) for rho in (0.01, 0.5, 4.0)),
    RenyiDP(4.0, 1.0),
    RenyiDP(1.5, 3.0),
]
EPSILONS = [0.0, 1e-9, 0.01, 0.3, 1.0, 2.5, 7.0, 40.0]
SLACK = 1e-12
every = pytest.mark.parametrize("claim", EXAMPLES, ids=str)


def product(one: DominatingPair, other: DominatingPair) -> DominatingPair:
    """Two outputs, one of either pair; mirrored as they are."""
    return DominatingPair(
        np.outer(one.p, other.p).ravel(), np.outer(one.q, other.q).ravel()
    )


def test_every_kind_is_tried():
    assert {type(claim) for claim in EXAMPLES} == set(CLAIMS.values())


@every
def test_the_curve_is_a_probability_that_falls_and_is_convex_in_the_exponential_of_epsilon(
    claim,
):
    """A hockey-stick divergence is a supremum of functions that are affine in e^ε, and 1 at most where e^ε = 0."""
    deltas = [claim.delta_at(epsilon) for epsilon in EPSILONS]
    assert all(
        0 <= later <= former + SLACK <= 1 + SLACK for former, later in pairwise(deltas)
    )
    for (a, one), (b, other) in pairwise(
        [(0.0, 1.0), *zip(map(math.exp, EPSILONS), deltas, strict=True)]
    ):
        for share in (0.1, 0.5, 0.9):
            middle = share * a + (1 - share) * b
            if middle >= 1:
                assert (
                    claim.delta_at(math.log(middle))
                    <= share * one + (1 - share) * other + 1e-9
                )
    assert all(
        d >= 1 - math.exp(e) * (1 - deltas[0] + SLACK)
        for e, d in zip(EPSILONS, deltas, strict=True)
    )


@every
def test_who_promises_more_allows_no_more(claim):
    levels = claim.levels or [
        f * claim.level for f in (0.5, 1.0, 1.5, 2.0) if claim.level
    ]
    for strong, weak in pairwise(map(claim.at, levels)):
        assert all(strong.delta_at(e) <= weak.delta_at(e) + SLACK for e in EPSILONS)
        assert strong.posterior_cap() <= weak.posterior_cap()


@every
def test_a_level_is_given_back_and_nothing_else_changes(claim):
    other = dataclasses.replace(claim, source="S").at(
        claim.level if claim.levels else 2.5
    )
    assert (type(other), other.source, other.delta) == (type(claim), "S", claim.delta)
    assert other.level == (claim.level if claim.levels else 2.5)
    with pytest.raises(ClaimError):
        claim.at(-1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        claim.source = "elsewhere"
    if claim.recorded_by:
        assert claim == type(claim)(
            *(getattr(claim, name) for name in claim.recorded_by)
        )


@every
def test_the_curve_is_what_its_statements_promise_together(claim):
    """None is exceeded, some are attained, and all are where no others imply them; between them, no more is promised."""
    statements, tangents = claim.statements(), claim.tangents()
    assert {epsilon for epsilon, _ in tangents} <= set(
        statements[:, 0]
    ) or not claim.of_curve
    assert len({epsilon for epsilon, _ in tangents}) == len(tangents)
    with np.errstate(all="raise", under="ignore", divide="ignore"):
        pair = DominatingPair.of(statements)
    known = [each for each in [*statements, *tangents] if each[0] <= LARGEST_EPSILON]
    attained = [
        claim.delta_at(e) == pytest.approx(d, rel=1e-9, abs=1e-300) for e, d in known
    ]
    assert any(attained)
    assert all(attained) or claim.of_curve
    assert all(claim.delta_at(e) <= d * (1 + 1e-9) for e, d in known)
    assert all(
        pair.hockey_stick(e) == pytest.approx(claim.delta_at(e), rel=1e-6, abs=1e-14)
        for e, _ in known[::7]
    )
    for epsilon in [
        *np.linspace(0, 1.5, 97) * min(statements[-1, 0], LARGEST_EPSILON / 1.5),
        *EPSILONS,
    ]:
        assert (
            pair.hockey_stick(epsilon) >= claim.delta_at(epsilon) * (1 - 1e-9) - 1e-15
        )


@every
def test_processing_what_comes_out_tells_no_more(claim):
    """Atoms of the pair that the claim allows are joined, or sent elsewhere at random: the claim still holds, both ways."""
    pair, rng = DominatingPair.of(claim.statements()), np.random.default_rng(1)
    for channel in (
        np.eye(3)[rng.integers(3, size=len(pair.p))],
        rng.dirichlet(np.full(4, 0.3), len(pair.p)),
    ):
        p, q = pair.p @ channel, pair.q @ channel
        for epsilon in EPSILONS:
            for one, other in ((p, q), (q, p)):
                assert (
                    DominatingPair(one, other).hockey_stick(epsilon)
                    <= pair.hockey_stick(epsilon) + SLACK
                )


@every
def test_two_releases_lose_no_more_than_the_sum_and_no_less_than_one(claim):
    """Theorem 3.16 of Dwork & Roth (2014): (ε₁, δ₁) and (ε₂, δ₂) make (ε₁ + ε₂, δ₁ + δ₂)."""
    pair = DominatingPair.of(claim.statements())
    for other in (claim, PureDP(0.5), ApproxDP(0.2, 0.01)):
        both = product(pair, DominatingPair.of(other.statements()))
        for one in (0.0, 0.3, 2.5):
            for two in (0.0, 1.0):
                most = pair.hockey_stick(one) + DominatingPair.of(
                    other.statements()
                ).hockey_stick(two)
                assert both.hockey_stick(one + two) <= most + SLACK
            assert both.hockey_stick(one) >= pair.hockey_stick(one) - SLACK
