"""The contract with OpenDP: a measurement is one release that loses what its map says of the pair."""

import numpy as np
import pytest

from auditdp.claims.curves import ZeroConcentratedDP
from auditdp.claims.statements import ApproxDP, PureDP
from auditdp.tracing import Trace, compare

pytest.importorskip("opendp", reason="OpenDP is in the environment of `make libraries`")
import opendp.prelude as dp

dp.enable_features("contrib")
FLOAT, FLOATS = (
    dp.atom_domain(T=float, nan=False),
    dp.vector_domain(dp.atom_domain(T=float, nan=False)),
)
INTS = dp.vector_domain(dp.atom_domain(T=int))


def laplace(v, rng):
    return dp.m.make_laplace(FLOAT, dp.absolute_distance(T=float), 2.0)(v)


def counted(rows, rng):
    made = (
        (INTS, dp.symmetric_distance()) >> dp.t.then_count() >> dp.m.then_laplace(0.5)
    )
    return made(rows)


def vector(v, rng):
    return dp.m.make_gaussian(FLOATS, dp.l2_distance(T=float), 2.0)(v)


def approximate(v, rng):
    made = dp.c.make_zCDP_to_approxDP(
        dp.m.make_gaussian(FLOAT, dp.absolute_distance(T=float), 4.0)
    )
    return dp.c.make_fix_delta(made, 1e-6).invoke(v)


@pytest.mark.parametrize(
    ("function", "pair", "claim", "level"),
    [
        (laplace, (3.0, 5.0), PureDP(1.0), 1.0),
        (counted, ([1, 2], [1, 2, 3]), PureDP(1.0), 2.0),
        (vector, ([0.0, 0.0], [3.0, 4.0]), ZeroConcentratedDP(1.0), 25 / 8),
    ],
)
def test_it_loses_what_its_map_says(function, pair, claim, level):
    found = compare(Trace(function), *pair, np.random.default_rng(0), claim=claim)
    assert found.extent == "full"
    assert found.differ is None
    assert found.level == pytest.approx(level)
    assert [release.site.function for release in found.first.releases] == [
        function.__name__
    ]
    assert found.proposes == (level > claim.level)
    assert "trusted" in str(found)


def test_statements_with_a_delta_are_taken_as_they_are():
    found = compare(
        Trace(approximate),
        0.0,
        1.0,
        np.random.default_rng(0),
        claim=ApproxDP(9.0, 1e-6),
    )
    made = dp.c.make_zCDP_to_approxDP(
        dp.m.make_gaussian(FLOAT, dp.absolute_distance(T=float), 4.0)
    )
    epsilon, _ = dp.c.make_fix_delta(made, 1e-6).map(1.0)
    assert (found.composed.statements, found.composed.delta) == (
        pytest.approx(epsilon),
        pytest.approx(1e-6),
    )


def test_what_follows_a_measurement_is_followed():
    def shown_twice(v, rng):
        return laplace(v, rng) + v

    found = compare(
        Trace(shown_twice), 3.0, 4.0, np.random.default_rng(0), claim=PureDP(1.0)
    )
    assert [finding.kind for finding in found.findings] == ["round"]


def test_a_curve_is_opaque():
    def profile(v, rng):
        return dp.c.make_zCDP_to_approxDP(
            dp.m.make_gaussian(FLOAT, dp.absolute_distance(T=float), 4.0)
        )(v)

    found = compare(
        Trace(profile), 3.0, 4.0, np.random.default_rng(0), claim=PureDP(1.0)
    )
    assert found.extent == "none"
    assert not found.proposes
