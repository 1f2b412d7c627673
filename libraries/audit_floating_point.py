"""Continuous noise of all libraries, bit by bit: does the representation leak the input?

Only the support is played here; how large the noise is, is for the other audits. Mironov (2012, "On Significance of the
Least Significant Bits for Differential Privacy", CCS) broke textbook Laplace noise; diffprivlib draws four uniform numbers
a sample instead of one (Holohan & Braghin 2021, arXiv:2107.10138), which Haney et al. (2022, "Precision-based attacks and
interval refining", arXiv:2207.13793) broke in turn. Issue 94 of diffprivlib asks to say so; its docstrings say that the
sampling is there "to prevent against reconstruction attacks due to limited floating point precision".
"""

import opendp.prelude as dp
from pydp.algorithms import laplacian
from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism

from auditdp import ApproxDP, Audit, PureDP, ZeroConcentratedDP
from libraries.audit_diffprivlib_mechanisms import Randomised
from libraries.stated import each, of, together

dp.enable_features("contrib", "honest-but-curious")
DIFFPRIVLIB, OPENDP, PYDP = of("diffprivlib"), of("opendp"), of("python-dp")
FLOATS = dp.vector_domain(dp.atom_domain(T=float, nan=False))
APART = [(0.0, 1.0), (0.0, 1 / 3)]
INSIDE = [(1.0, 2.0), (1.0, 4 / 3)]


def bits(mechanism, claim, pairs=APART, calls=20_000):
    """Return the audit of the support alone."""
    return Audit(mechanism, claim, pairs, evidence=["support"], calls=calls)


@DIFFPRIVLIB(
    source="diffprivlib 0.6.6, Laplace", reading="bits of Laplace", expect="violation"
)
def diffprivlib_laplace(epsilon=1.0):
    """Laplace noise of diffprivlib hides its input in all bits. False."""
    return bits(Randomised("Laplace", epsilon=epsilon, sensitivity=1), PureDP(epsilon))


@DIFFPRIVLIB(
    source="diffprivlib 0.6.6, LaplaceTruncated",
    reading="bits of LaplaceTruncated",
    expect="violation",
)
def diffprivlib_truncated(epsilon=1.0):
    """Truncated Laplace noise of diffprivlib, by which its means and sums are released. False."""
    return bits(
        Randomised(
            "LaplaceTruncated", epsilon=epsilon, sensitivity=1, lower=0, upper=3
        ),
        PureDP(epsilon),
        INSIDE,
    )


@DIFFPRIVLIB(
    source="diffprivlib 0.6.6, LaplaceBoundedDomain",
    reading="bits of LaplaceBoundedDomain",
    expect="violation",
)
def diffprivlib_bounded(epsilon=1.0):
    """Laplace noise on a bounded domain. False."""
    made = Randomised(
        "LaplaceBoundedDomain", epsilon=epsilon, sensitivity=1, lower=0, upper=3
    )
    return bits(made, PureDP(epsilon), [(0.0, 1.0), (0.0, 1 / 3)], 10_000)


@DIFFPRIVLIB(
    source="diffprivlib 0.6.6, Staircase",
    reading="bits of Staircase",
    expect="violation",
)
def diffprivlib_staircase(epsilon=1.0):
    """The staircase mechanism of diffprivlib. False."""
    return bits(
        Randomised("Staircase", epsilon=epsilon, sensitivity=1), PureDP(epsilon)
    )


@DIFFPRIVLIB(
    source="diffprivlib 0.6.6, Gaussian", reading="bits of Gaussian", expect="violation"
)
def diffprivlib_gaussian(epsilon=1.0, delta=1e-2):
    """Gaussian noise of diffprivlib. False."""
    made = Randomised("Gaussian", epsilon=epsilon, delta=delta, sensitivity=1)
    return bits(made, ApproxDP(epsilon, delta))


@DIFFPRIVLIB(source="diffprivlib 0.6.6, Snapping", reading="bits of Snapping")
def diffprivlib_snapping(epsilon=1.0):
    """Mironov's remedy: what is added is rounded to a lattice that does not depend on the input."""
    return bits(
        Randomised("Snapping", epsilon=epsilon, sensitivity=1, lower=-10, upper=10),
        PureDP(epsilon),
    )


@OPENDP(source="OpenDP 0.16.0, make_laplace", reading="bits of make_laplace")
def opendp_laplace(scale=1.0):
    """Laplace noise of OpenDP on a float, which is sampled exactly and rounded."""
    made = dp.m.make_laplace(FLOATS, dp.l1_distance(T=float), scale)
    return bits(together(made), PureDP(made.map(1.0)))


@OPENDP(source="OpenDP 0.16.0, make_gaussian", reading="bits of make_gaussian")
def opendp_gaussian(scale=2.0):
    """Gaussian noise of OpenDP on a float."""
    made = dp.m.make_gaussian(FLOATS, dp.l2_distance(T=float), scale)
    return bits(together(made), ZeroConcentratedDP(made.map(1.0)), calls=10_000)


@PYDP(source="PyDP 1.1.5, LaplaceMechanism", reading="bits of LaplaceMechanism")
def pydp_laplace(epsilon=1.0):
    """Laplace noise of Google's library, which is a multiple of a granularity, as is the rounded input."""
    return bits(each(LaplaceMechanism(epsilon, 1.0).add_noise), PureDP(epsilon))


@PYDP(
    source="PyDP 1.1.5, GaussianMechanism",
    reading="bits of GaussianMechanism",
    expect="violation",
)
def pydp_gaussian(epsilon=1.0, delta=1e-5):
    """Gaussian noise of Google's library hides its input in all bits.

    False: the noise is a multiple of a granularity of about σ/2⁵⁶, which doubles beyond about σ/8 do not resolve.
    """
    return bits(
        each(GaussianMechanism(epsilon, delta, 1.0).add_noise), ApproxDP(epsilon, delta)
    )


@PYDP(source="PyDP 1.1.5, laplacian.BoundedSum", reading="bits of BoundedSum")
def pydp_sum(epsilon=1.0):
    """The sum of floats of [0, 1] of Google's library; one is added or removed."""

    def release(data):
        made = laplacian.BoundedSum(
            epsilon=epsilon, lower_bound=0.0, upper_bound=1.0, dtype="float"
        )
        return made.quick_result(list(data))

    return bits(each(release), PureDP(epsilon), [((0.1, 1 / 3), (0.1,))])


@PYDP(source="PyDP 1.1.5, laplacian.BoundedMean", reading="bits of BoundedMean")
def pydp_mean(epsilon=1.0):
    """The mean of floats of [0, 1] of Google's library; one is added or removed."""

    def release(data):
        made = laplacian.BoundedMean(
            epsilon=epsilon, lower_bound=0.0, upper_bound=1.0, dtype="float"
        )
        return made.quick_result(list(data))

    return bits(each(release), PureDP(epsilon), [((0.1, 1 / 3), (0.1,))])
