"""diffprivlib 0.4.0: Laplace noise from one uniform number, and the Wishart mechanism; both are gone in 0.6.6.

Its models need a scikit-learn of its time; its mechanisms alone are imported here.
"""

import sys
import types

import numpy as np

from auditdp import Audit, PureDP, audit
from libraries.old.versions import old

FOLDER = old("diffprivlib", "0.4.0")
package = types.ModuleType("diffprivlib")
package.__path__ = [str(FOLDER / "diffprivlib")]
sys.modules["diffprivlib"] = package

from diffprivlib import mechanisms as dp  # noqa: E402  # once it is known where from

ROW = "diffprivlib 0.4.0"


def randomised(made):
    """Return a mechanism that randomises a value with one of diffprivlib's, from the audit's generator."""

    def mechanism(data, size, *, rng):
        made._rng = rng
        return np.array([made.randomise(data) for _ in range(size)])

    return mechanism


@audit(
    row=ROW,
    reading="Laplace, bits",
    source="diffprivlib issue 19; Mironov 2012; pull request 47",
    expect="violation",
)
def laplace_bits(epsilon=1.0):
    """Laplace noise from one uniform number by the inverse of its distribution function hides its input in all bits."""
    made = randomised(dp.Laplace(epsilon=epsilon, sensitivity=1))
    return Audit(
        made, PureDP(epsilon), [(0.0, 1.0)], evidence=["support"], calls=20_000
    )


@audit(
    row=ROW,
    reading="Wishart",
    source="diffprivlib issues 23 and 42; Sheffet 2019, footnote 4",
    expect="violation",
)
def wishart(epsilon=1.0):
    """A covariance matrix with Wishart noise, for rows of norm at most 1.

    False: the noise has no negative eigenvalue, so the release bounds the matrix from above.
    """
    pairs = [(np.diag([1.0, 0.0]), np.diag([0.0, 1.0]))]
    return Audit(
        randomised(dp.Wishart(epsilon=epsilon, sensitivity=1.0)),
        PureDP(epsilon),
        pairs,
        calls=10_000,
    )
