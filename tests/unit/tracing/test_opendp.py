"""The contract with OpenDP: a measurement is one release, with the loss of its map."""

import pytest

from auditdp import ApproxDP, PureDP, ZeroConcentratedDP
from tests.unit.tracing.toys import kinds, pair_of

pytest.importorskip("opendp", reason="OpenDP is in the environment of `make libraries`")
import opendp.prelude as dp

dp.enable_features("contrib")
FLOAT = dp.atom_domain(T=float, nan=False)
INTS = dp.vector_domain(dp.atom_domain(T=int))


def laplace(v, rng):
    return dp.m.make_laplace(FLOAT, dp.absolute_distance(T=float), 2.0)(v)


def counted(rows, rng):
    space = INTS, dp.symmetric_distance()
    return (space >> dp.t.then_count() >> dp.m.then_laplace(0.5))(rows)


def vector(v, rng):
    floats = dp.vector_domain(FLOAT)
    return dp.m.make_gaussian(floats, dp.l2_distance(T=float), 2.0)(v)


def curve():
    gaussian = dp.m.make_gaussian(FLOAT, dp.absolute_distance(T=float), 4.0)
    return dp.c.make_zCDP_to_approxDP(gaussian)


@pytest.mark.parametrize(
    ("function", "pair", "claim", "level"),
    [
        (laplace, (3.0, 5.0), PureDP(1.0), 1.0),
        (counted, ([1, 2], [1, 2, 3]), PureDP(1.0), 2.0),
        (vector, ([0.0, 0.0], [3.0, 4.0]), ZeroConcentratedDP(1.0), 25 / 8),
    ],
)
def test_a_measurement_loses_what_its_map_gives(function, pair, claim, level):
    found = pair_of(function, *pair, claim)
    assert found.extent == "full"
    assert found.differ is None
    assert found.level == pytest.approx(level)
    (release,) = found.first.releases
    assert release.site.function == function.__name__
    assert found.proposes == (level > claim.level)
    assert "trusted" in str(found)


def test_statements_with_a_delta_are_taken_as_they_are():
    made = dp.c.make_fix_delta(curve(), 1e-6)
    epsilon, _ = made.map(1.0)

    def approximate(v, rng):
        return dp.c.make_fix_delta(curve(), 1e-6).invoke(v)

    composed = pair_of(approximate, claim=ApproxDP(9.0, 1e-6)).composed
    assert composed.statements == pytest.approx(epsilon)
    assert composed.delta == pytest.approx(1e-6)


def test_code_after_a_measurement_is_followed():
    pair = pair_of(lambda v, rng: laplace(v, rng) + v, 3.0, 4.0, PureDP(1.0))
    assert kinds(pair) == ["round"]


def test_a_curve_is_opaque():
    pair = pair_of(lambda v, rng: curve()(v), 3.0, 4.0, PureDP(1.0))
    assert pair.extent == "none"
    assert not pair.proposes
