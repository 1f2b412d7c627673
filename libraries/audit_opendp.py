"""OpenDP: measurements with the privacy maps that they state themselves.

A measurement of OpenDP says what it loses: its map takes a distance of inputs to a loss. Every claim here is that map at the
distance of the neighbours; the docstrings say what the distance is. OpenDP draws from its own generator, so these audits
repeat the test and not its numbers. Vectors have noise of their own for each entry, which makes many outputs of one call.
"""

import numpy as np
import opendp.prelude as dp
from hypothesis import strategies as st

from auditdp import (
    AnyValues,
    ApproxDP,
    Audit,
    PureDP,
    Records,
    Rows,
    ZeroConcentratedDP,
    unseeded,
)
from libraries.stated import each, of, together

dp.enable_features("contrib", "honest-but-curious", "idealized-numerics")
audit = of("opendp")
SOURCE = "OpenDP 0.16.0, "
FLOAT, INT = dp.atom_domain(T=float, nan=False), dp.atom_domain(T=int)
FLOATS, INTS = dp.vector_domain(FLOAT), dp.vector_domain(INT)


def stated(measurement, distance=1.0):
    """Return the ε that a measurement states at a distance."""
    return PureDP(measurement.map(distance))


@audit(source=SOURCE + "measurements.make_laplace", reading="make_laplace, floats")
def laplace(scale=1.0):
    """Laplace noise on a float; neighbours are 1 apart."""
    made = dp.m.make_laplace(FLOATS, dp.l1_distance(T=float), scale)
    return Audit(
        together(made), stated(made), [(0.0, 1.0), (0.3, -0.7), (1e9, 1e9 + 1)]
    )


@audit(source=SOURCE + "measurements.make_laplace", reading="make_laplace, integers")
def discrete_laplace(scale=1.0):
    """Discrete Laplace noise on an integer; neighbours are 1 apart."""
    made = dp.m.make_laplace(INTS, dp.l1_distance(T=int), scale)
    return Audit(together(made), stated(made, 1), [(0, 1), (5, 4)])


@audit(
    source=SOURCE + "measurements.make_geometric with bounds", reading="make_geometric"
)
def geometric(scale=1.0):
    """Geometric noise that is sampled in constant time within bounds; neighbours are 1 apart."""
    made = dp.m.make_geometric(INTS, dp.l1_distance(T=int), scale, bounds=(0, 10))
    return Audit(together(made), stated(made, 1), [(0, 1), (5, 4), (10, 9)])


@audit(source=SOURCE + "measurements.make_gaussian", reading="make_gaussian, floats")
def gaussian(scale=2.0):
    """Gaussian noise on a float, as zCDP; neighbours are 1 apart."""
    made = dp.m.make_gaussian(FLOATS, dp.l2_distance(T=float), scale)
    return Audit(
        together(made), ZeroConcentratedDP(made.map(1.0)), [(0.0, 1.0), (0.3, -0.7)]
    )


@audit(source=SOURCE + "measurements.make_gaussian", reading="make_gaussian, integers")
def discrete_gaussian(scale=2.0):
    """Discrete Gaussian noise on an integer, as zCDP; neighbours are 1 apart."""
    made = dp.m.make_gaussian(INTS, dp.l2_distance(T=float), scale)
    return Audit(together(made), ZeroConcentratedDP(made.map(1.0)), [(0, 1), (5, 4)])


@audit(
    source=SOURCE + "combinators.make_zCDP_to_approxDP", reading="make_gaussian, (ε, δ)"
)
def gaussian_approximate(scale=2.0, delta=1e-3):
    """The same noise on a float at the (ε, δ) that OpenDP's conversion gives."""
    made = dp.m.make_gaussian(FLOATS, dp.l2_distance(T=float), scale)
    converted = dp.c.make_zCDP_to_approxDP(made)
    return Audit(
        together(made), ApproxDP(converted.map(1.0).epsilon(delta), delta), [(0.0, 1.0)]
    )


@audit(
    source=SOURCE + "measurements.make_canonical_noise", reading="make_canonical_noise"
)
def canonical(epsilon=1.0, delta=1e-2):
    """Canonical noise on a float for (1, .01); neighbours are 1 apart."""
    made = dp.m.make_canonical_noise(
        FLOAT, dp.absolute_distance(T=float), 1.0, (epsilon, delta)
    )
    return Audit(each(made), ApproxDP(*made.map(1.0)), [(0.0, 1.0)], calls=4_000)


@audit(
    source=SOURCE + "measurements.make_randomized_response_bool",
    reading="make_randomized_response_bool",
)
def response(probability=0.75):
    """Randomised response on a bit; any two bits are neighbours."""
    made = dp.m.make_randomized_response_bool(probability)
    return Audit(
        each(made), PureDP(made.map(1)), AnyValues([False, True]), calls=10_000
    )


@audit(
    source=SOURCE + "measurements.make_randomized_response",
    reading="make_randomized_response",
)
def categorical_response(probability=0.6):
    """Randomised response on four categories; any two are neighbours."""
    made = dp.m.make_randomized_response(["a", "b", "c", "d"], probability)
    return Audit(
        each(made), PureDP(made.map(1)), AnyValues(["a", "b", "c", "d"]), calls=10_000
    )


@audit(source=SOURCE + "measurements.make_noisy_max", reading="make_noisy_max")
def noisy_max(scale=2.0):
    """The place of the largest of three scores under exponential noise; all scores may move by 1 in either direction."""
    made = dp.m.make_noisy_max(
        FLOATS, dp.linf_distance(T=float), dp.max_divergence(), scale
    )
    return Audit(
        each(lambda scores: made(list(scores))),
        stated(made),
        [((3.0, 2.0, 2.0), (2.0, 3.0, 3.0))],
        calls=10_000,
    )


@audit(source=SOURCE + "measurements.make_noisy_top_k", reading="make_noisy_top_k")
def noisy_top(scale=2.0):
    """The places of the two largest of four scores; all scores may move by 1 in either direction."""
    made = dp.m.make_noisy_top_k(
        FLOATS, dp.linf_distance(T=float), dp.max_divergence(), 2, scale
    )
    pair = ((3.0, 3.0, 2.0, 2.0), (2.0, 2.0, 3.0, 3.0))
    return Audit(
        each(lambda scores: made(list(scores))), stated(made), [pair], calls=20_000
    )


@audit(
    source=SOURCE + "measurements.make_noisy_max with zero_concentrated_divergence",
    reading="make_noisy_max, Gumbel",
)
def noisy_max_gumbel(scale=2.0):
    """The same under Gumbel noise, as zCDP."""
    made = dp.m.make_noisy_max(
        FLOATS, dp.linf_distance(T=float), dp.zero_concentrated_divergence(), scale
    )
    return Audit(
        each(lambda scores: made(list(scores))),
        ZeroConcentratedDP(made.map(1.0)),
        [((3.0, 2.0, 2.0), (2.0, 3.0, 3.0))],
    )


def rows(transformation):
    """Return a mechanism of a transformation of a list of rows with noise on it."""
    return each(lambda data: transformation(list(data)))


ADDED = Rows(st.floats(0, 1), "add/remove", most=4)


@audit(
    source=SOURCE + "transformations.then_sum of clamped floats",
    reading="sum of floats",
)
def total(scale=1.0):
    """The sum of clamped floats with Laplace noise; one row is added or removed (symmetric distance 1)."""
    made = (
        (FLOATS, dp.symmetric_distance())
        >> dp.t.then_clamp((0.0, 1.0))
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale)
    )
    return Audit(rows(made), PureDP(made.map(1)), ADDED, calls=5_000)


@audit(
    source=SOURCE + "transformations.then_sum of integers", reading="sum of integers"
)
def total_of_integers(scale=3.0):
    """The sum of clamped integers with discrete Laplace noise; one row is added or removed."""
    made = (
        (INTS, dp.symmetric_distance())
        >> dp.t.then_clamp((0, 3))
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale)
    )
    return Audit(
        rows(made),
        PureDP(made.map(1)),
        Rows(st.integers(0, 3), "add/remove", most=4),
        calls=5_000,
    )


@audit(source=SOURCE + "transformations.then_count", reading="count")
def count(scale=1.0):
    """The number of rows with discrete Laplace noise; one row is added or removed."""
    made = (
        (INTS, dp.symmetric_distance()) >> dp.t.then_count() >> dp.m.then_laplace(scale)
    )
    return Audit(
        rows(made),
        PureDP(made.map(1)),
        Rows(st.integers(0, 3), "add/remove", most=4),
        calls=10_000,
    )


@audit(source=SOURCE + "transformations.then_count_by_categories", reading="histogram")
def histogram(scale=1.0):
    """Counts of categories with discrete Laplace noise; one row is added or removed."""
    made = (
        (dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance())
        >> dp.t.then_count_by_categories(["a", "b"])
        >> dp.m.then_laplace(scale)
    )
    return Audit(
        rows(made),
        PureDP(made.map(1)),
        Rows(st.sampled_from("abc"), "add/remove", most=4),
        calls=10_000,
    )


@audit(source=SOURCE + "transformations.then_mean", reading="mean")
def mean(scale=0.25):
    """The mean of four clamped floats with Laplace noise; one row is replaced (symmetric distance 2)."""
    sized = dp.vector_domain(FLOAT, size=4)
    made = (
        (sized, dp.symmetric_distance())
        >> dp.t.then_clamp((0.0, 1.0))
        >> dp.t.then_mean()
        >> dp.m.then_laplace(scale)
    )
    mechanism = each(lambda data: made(np.ravel(data).tolist()))
    return Audit(
        mechanism, PureDP(made.map(2)), Records(4, [0.0, 0.5, 1.0]), calls=4_000
    )


@audit(source=SOURCE + "transformations.then_variance", reading="variance")
def variance(scale=0.25):
    """The variance of four clamped floats with Laplace noise; one row is replaced (symmetric distance 2)."""
    sized = dp.vector_domain(FLOAT, size=4)
    made = (
        (sized, dp.symmetric_distance())
        >> dp.t.then_clamp((0.0, 1.0))
        >> dp.t.then_variance()
        >> dp.m.then_laplace(scale)
    )
    mechanism = each(lambda data: made(np.ravel(data).tolist()))
    return Audit(
        mechanism, PureDP(made.map(2)), Records(4, [0.0, 0.5, 1.0]), calls=4_000
    )


@audit(
    source=SOURCE + "measurements.make_private_quantile",
    reading="make_private_quantile",
)
def quantile(scale=1.0):
    """The median among five candidates; one row is added or removed."""
    candidates = [0.0, 0.25, 0.5, 0.75, 1.0]
    made = dp.m.make_private_quantile(
        FLOATS,
        dp.symmetric_distance(),
        dp.max_divergence(),
        candidates,
        alpha=0.5,
        scale=scale,
    )
    return Audit(rows(made), PureDP(made.map(1)), ADDED, calls=5_000)


@audit(
    source=SOURCE + "measurements.make_laplace_threshold",
    reading="make_laplace_threshold",
)
def threshold(scale=1.0, least=4):
    """Counts of unknown categories with Laplace noise, of which small ones are left out; one row is added or removed."""
    made = (
        (dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance())
        >> dp.t.then_count_by()
        >> dp.m.then_laplace_threshold(scale, threshold=least)
    )
    mechanism = unseeded(lambda data: dict(sorted(made(list(data)).items())))
    pairs = [(["a", "b"], ["a"]), (["a", "a", "a", "b"], ["a", "a", "b"])]
    return Audit(mechanism, ApproxDP(*made.map(1)), pairs, calls=3_000)


@audit(
    source=SOURCE + "extras.sklearn PCA, then_private_eigenvector",
    reading="private eigenvector, 2 dimensions",
)
def eigenvector(epsilon=1.0):
    """The first direction of rows of norm at most 1; one row is replaced (symmetric distance 2)."""
    from opendp.extras.numpy import _sscp_domain
    from opendp.extras.sklearn._make_eigenvector import make_private_eigenvector

    made = make_private_eigenvector(
        _sscp_domain(num_features=2, norm=1.0, p=2, size=9, T=float),
        dp.symmetric_distance(),
        epsilon,
    )
    pairs = [
        (np.diag([5.0, 4.0]), np.diag([4.0, 5.0])),
        (np.diag([6.0, 3.0]), np.diag([5.0, 4.0])),
    ]
    return Audit(each(made), PureDP(made.map(2)), pairs, calls=200)
