"""The contract with PyDP.

Mechanisms have their scale, and a row of an algorithm loses ε.
"""

import pytest

from auditdp import GaussianDP, PureDP
from tests.unit.tracing.toys import pair_of, record

pytest.importorskip("pydp", reason="PyDP is in the environment of `make libraries`")
from pydp.algorithms import laplacian
from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism


def laplace(v, rng):
    return LaplaceMechanism(0.5, 2.0).add_noise(v)


def gaussian(v, rng):
    return GaussianMechanism(1.0, 1e-5, 1.0).add_noise(v)


def counted(rows, rng):
    return laplacian.Count(epsilon=0.5).quick_result(rows)


def one_by_one(rows, rng):
    algorithm = laplacian.Count(epsilon=0.5)
    for row in rows:
        algorithm.add_entry(row)
    return algorithm.result()


MU = 1 / GaussianMechanism(1.0, 1e-5, 1.0).std


@pytest.mark.parametrize(
    ("function", "pair", "claim", "level"),
    [
        (laplace, (3.0, 5.0), PureDP(1.0), 0.5),
        (gaussian, (3.0, 4.0), GaussianDP(1.0), MU),
        (counted, ([1, 2], [1, 2, 3]), PureDP(1.0), 0.5),
        (one_by_one, ([1, 2], [1, 2, 3, 3]), PureDP(0.9), 1.0),
    ],
)
def test_a_call_is_one_release(function, pair, claim, level):
    found = pair_of(function, *pair, claim)
    assert found.extent == "full"
    assert found.differ is None
    assert found.level == pytest.approx(level)
    (release,) = found.first.releases
    assert release.site.function == function.__name__
    assert found.proposes == (level > claim.level)


def test_after_a_run_the_library_is_as_before():
    before = LaplaceMechanism.add_noise
    record(laplace, 3.0)
    assert LaplaceMechanism.add_noise is before
