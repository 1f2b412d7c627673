"""The contract with PyDP: mechanisms tell their scale, and algorithms what a row loses."""

import numpy as np
import pytest

from auditdp.claims.statements import GaussianDP, PureDP
from auditdp.tracing import Trace, compare

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


@pytest.mark.parametrize(
    ("function", "pair", "claim", "level"),
    [
        (laplace, (3.0, 5.0), PureDP(1.0), 0.5),
        (
            gaussian,
            (3.0, 4.0),
            GaussianDP(1.0),
            1 / GaussianMechanism(1.0, 1e-5, 1.0).std,
        ),
        (counted, ([1, 2], [1, 2, 3]), PureDP(1.0), 0.5),
        (one_by_one, ([1, 2], [1, 2, 3, 3]), PureDP(0.9), 1.0),
    ],
)
def test_a_call_is_one_release(function, pair, claim, level):
    found = compare(Trace(function), *pair, np.random.default_rng(0), claim=claim)
    assert found.extent == "full"
    assert found.differ is None
    assert found.level == pytest.approx(level)
    assert [release.site.function for release in found.first.releases] == [
        function.__name__
    ]
    assert found.proposes == (level > claim.level)


def test_after_a_run_the_library_is_as_before():
    before = LaplaceMechanism.add_noise
    Trace(laplace).record(3.0, np.random.default_rng(0))
    assert LaplaceMechanism.add_noise is before
