"""The laws of privacy, which every kind of claim obeys.

Whatever is added to ``CLAIMS`` is tried here, too.
"""

import dataclasses
import math
from itertools import pairwise, product

import numpy as np
import pytest

from auditdp import AccountedDP, RenyiDP, ZeroConcentratedDP
from auditdp.claims.dominating import LARGEST_EPSILON, DominatingPair
from auditdp.claims.statements import CLAIMS, ApproxDP, GaussianDP, PureDP
from auditdp.errors import ClaimError

EXAMPLES = [
    *map(PureDP, (0.0, 0.01, 1.0, 64.0)),
    *(ApproxDP(*each) for each in ((0.0, 0.1), (1.0, 0.01), (0.1, 0.9), (64.0, 1e-12))),
    *map(GaussianDP, (1e-3, 1.0, 17.0, 30.0)),
    AccountedDP([(0.0, 0.4), (1.0, 0.1), (2.0, 1e-3)], quoted=0.1),
    AccountedDP(GaussianDP(1.0), quoted=1e-3),
    *map(ZeroConcentratedDP, (0.01, 0.5, 4.0)),
    RenyiDP(4.0, 1.0),
    RenyiDP(1.5, 3.0),
]
EPSILONS = [0.0, 1e-9, 0.01, 0.3, 1.0, 2.5, 7.0, 40.0]
SLACK = 1e-12
every = pytest.mark.parametrize("claim", EXAMPLES, ids=str)


def test_every_kind_is_tried():
    assert {type(claim) for claim in EXAMPLES} == set(CLAIMS.values())


@every
def test_the_curve_is_a_probability_that_falls_and_is_convex_in_the_exponential_of_epsilon(
    claim,
):
    """A hockey-stick divergence is a supremum of functions that are affine in e^ε.

    It is 1 at most where e^ε = 0.
    """
    deltas = [claim.delta_at(epsilon) for epsilon in EPSILONS]
    assert deltas[-1] >= 0
    assert deltas[0] <= 1 + SLACK
    assert max(np.diff(deltas)) <= SLACK

    points = [(0.0, 1.0), *zip(map(math.exp, EPSILONS), deltas, strict=True)]
    for ((a, one), (b, other)), share in product(pairwise(points), (0.1, 0.5, 0.9)):
        middle = share * a + (1 - share) * b
        if middle >= 1:
            chord = share * one + (1 - share) * other
            assert claim.delta_at(math.log(middle)) <= chord + 1e-9
    for scale, delta in points[1:]:
        assert delta >= 1 - scale * (1 - deltas[0] + SLACK)


@every
def test_a_stronger_claim_allows_no_more(claim):
    multiples = [f * claim.level for f in (0.5, 1.0, 1.5, 2.0) if claim.level]
    for strong, weak in pairwise(map(claim.at, claim.levels or multiples)):
        for epsilon in EPSILONS:
            assert strong.delta_at(epsilon) <= weak.delta_at(epsilon) + SLACK
        assert strong.posterior_cap() <= weak.posterior_cap()


@every
def test_another_level_changes_nothing_else(claim):
    level = claim.level if claim.levels else 2.5
    other = dataclasses.replace(claim, source="S").at(level)
    assert type(other) is type(claim)
    assert other.source == "S"
    assert other.delta == claim.delta
    assert other.level == level
    with pytest.raises(ClaimError):
        claim.at(-1.0)
    if claim.recorded_by:
        recorded = [getattr(claim, name) for name in claim.recorded_by]
        assert claim == type(claim)(*recorded)


@every
def test_the_curve_is_that_of_its_statements_together(claim):
    """None is exceeded, some are attained, and all are where no others imply them.

    Between them, no more is promised.
    """
    statements = claim.statements()
    tangents = claim.tangents()
    places = {epsilon for epsilon, _ in tangents}
    assert places <= set(statements[:, 0]) or not claim.of_curve
    assert len(places) == len(tangents)

    with np.errstate(all="raise", under="ignore", divide="ignore"):
        pair = DominatingPair.of(statements)
    known = [each for each in [*statements, *tangents] if each[0] <= LARGEST_EPSILON]
    attained = []
    for k, (epsilon, delta) in enumerate(known):
        found = claim.delta_at(epsilon)
        attained.append(found == pytest.approx(delta, rel=1e-9, abs=1e-300))
        assert found <= delta * (1 + 1e-9)
        if k % 7 == 0:
            exact = pytest.approx(found, rel=1e-6, abs=1e-14)
            assert pair.hockey_stick(epsilon) == exact
    assert any(attained)
    assert all(attained) or claim.of_curve

    between = np.linspace(0, min(1.5 * statements[-1, 0], LARGEST_EPSILON), 97)
    for epsilon in [*between, *EPSILONS]:
        most = pair.hockey_stick(epsilon)
        exact = claim.delta_at(epsilon)
        assert most >= exact * (1 - 1e-9) - 1e-15
        if claim.delta is not None:
            assert most == pytest.approx(exact, rel=1e-6, abs=1e-12)
