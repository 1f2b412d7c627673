"""IBM's diffprivlib: its statistics of arrays.

The docstrings of 0.6.6 do not say what neighbours are; the sensitivities do. A mean, a variance and a sum are calibrated
to (upper − lower)/n and the like, which holds where one entry is replaced and n is public; a histogram to 1, which holds
where one entry is added or removed. Each is audited with the neighbours for which its calibration is meant, so that a
finding does not depend on the reading. ``bounds`` and ``range`` are always given, as the warnings of the library ask for.
"""

import warnings

import numpy as np
from diffprivlib import tools
from hypothesis import strategies as st

from auditdp import Audit, PureDP, Records, Rows
from libraries.stated import of, state

audit = of("diffprivlib")
SOURCE = "diffprivlib 0.6.6, docstring of tools."
UNIT = (0.0, 0.25, 0.5, 1.0)
ADDED = Rows(st.floats(0, 1), "add/remove", most=4, into=np.ndarray)
REPLACED = Records(4, UNIT)


class Statistic:
    """One of diffprivlib's functions of an array, with fixed parameters."""

    def __init__(self, name, **parameters):
        self.function, self.parameters = getattr(tools, name), parameters

    def __call__(self, data, size, *, rng):
        """Return ``size`` releases for one array."""
        values, random_state = np.ravel(data), state(rng)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", RuntimeWarning
            )  # of numpy, about arrays without a number
            return np.array(
                [
                    self.function(values, **self.parameters, random_state=random_state)
                    for _ in range(size)
                ]
            )


def replaced(name, claim, calls=10_000, **parameters):
    """Return the audit of a statistic of four numbers of [0, 1] of which one is replaced."""
    return Audit(
        Statistic(name, epsilon=claim, bounds=(0, 1), **parameters),
        PureDP(claim),
        REPLACED,
        calls=calls,
    )


@audit(source=SOURCE + "mean", reading="mean")
def mean(epsilon=1.0):
    """The mean of four numbers of [0, 1], of which one is replaced."""
    return replaced("mean", epsilon)


@audit(source=SOURCE + "var", reading="var")
def variance(epsilon=1.0):
    """The variance of four numbers of [0, 1], of which one is replaced."""
    return replaced("var", epsilon)


@audit(source=SOURCE + "std", reading="std")
def deviation(epsilon=1.0):
    """The standard deviation of four numbers of [0, 1], of which one is replaced."""
    return replaced("std", epsilon)


@audit(source=SOURCE + "sum", reading="sum")
def total(epsilon=1.0):
    """The sum of four numbers of [0, 1], of which one is replaced."""
    return replaced("sum", epsilon)


@audit(source=SOURCE + "sum with dtype=int", reading="sum of integers")
def total_of_integers(epsilon=1.0):
    """The sum of four integers of 0..3, of which one is replaced."""
    summed = Statistic("sum", epsilon=epsilon, bounds=(0, 3), dtype=int)
    return Audit(
        summed, PureDP(epsilon), Records(4, [0.0, 1.0, 2.0, 3.0]), calls=10_000
    )


@audit(source=SOURCE + "count_nonzero", reading="count_nonzero")
def count(epsilon=1.0):
    """How many of four entries are not zero; one is replaced."""
    return Audit(
        Statistic("count_nonzero", epsilon=epsilon),
        PureDP(epsilon),
        Records(4, [0.0, 1.0]),
        calls=10_000,
    )


@audit(source=SOURCE + "median", reading="median")
def median(epsilon=1.0):
    """The median of four numbers of [0, 1], of which one is replaced."""
    return replaced("median", epsilon, calls=5_000)


@audit(source=SOURCE + "quantile", reading="quantile")
def quantiles(epsilon=1.0):
    """Two quantiles of four numbers of [0, 1], of which one is replaced."""
    return replaced("quantile", epsilon, calls=5_000, quant=[0.25, 0.75])


class Histogram(Statistic):
    """One of diffprivlib's histograms, without its bins."""

    def __call__(self, data, size, *, rng):
        """Return ``size`` histograms of one array, flat."""
        random_state = state(rng)
        made = [
            self.function(
                *self.read(data), **self.parameters, random_state=random_state
            )[0]
            for _ in range(size)
        ]
        return np.array(made).reshape(size, -1)

    def read(self, data):
        """Return the arguments of the function."""
        return [data]


@audit(source=SOURCE + "histogram", reading="histogram")
def histogram(epsilon=1.0):
    """Counts of numbers of [0, 1] in three bins; one number is added or removed."""
    return Audit(
        Histogram("histogram", epsilon=epsilon, bins=3, range=(0, 1)),
        PureDP(epsilon),
        ADDED,
        calls=10_000,
    )


@audit(source=SOURCE + "histogram with density=True", reading="histogram, density")
def density(epsilon=1.0):
    """The same, as densities."""
    made = Histogram("histogram", epsilon=epsilon, bins=3, range=(0, 1), density=True)
    return Audit(made, PureDP(epsilon), ADDED, calls=5_000)


class OfTwo(Histogram):
    """A histogram of two columns."""

    def read(self, data):
        """Return both columns."""
        rows = np.reshape(data, (-1, 2))
        return [rows[:, 0], rows[:, 1]]


@audit(source=SOURCE + "histogram2d", reading="histogram2d")
def histogram_of_two(epsilon=1.0):
    """Counts of points of the unit square in 2 × 2 bins; one point is added or removed."""
    made = OfTwo("histogram2d", epsilon=epsilon, bins=2, range=[(0, 1), (0, 1)])
    points = Rows(st.tuples(st.floats(0, 1), st.floats(0, 1)), "add/remove", most=3)
    return Audit(made, PureDP(epsilon), points, calls=5_000)


# What follows is refuted.


@audit(
    source=SOURCE + "nanmean: 'ignoring NaNs'", reading="nanmean", expect="violation"
)
def mean_without_missing(epsilon=1.0):
    """The mean of the numbers among four entries of [0, 1] or NaN, of which one is replaced.

    False: the noise is calibrated to (upper − lower)/4 whatever is missing, and a mean of one number moves by 1.
    """
    return missing("nanmean", epsilon)


@audit(source=SOURCE + "nanvar: 'ignoring NaNs'", reading="nanvar", expect="violation")
def variance_without_missing(epsilon=1.0):
    """The variance of the numbers among four entries of [0, 1] or NaN, of which one is replaced.

    False, for the reason of ``nanmean``.
    """
    return missing("nanvar", epsilon)


@audit(source=SOURCE + "nanstd: 'ignoring NaNs'", reading="nanstd", expect="violation")
def deviation_without_missing(epsilon=1.0):
    """The standard deviation of the numbers among four entries of [0, 1] or NaN, of which one is replaced.

    False, for the reason of ``nanmean``.
    """
    return missing("nanstd", epsilon)


def missing(name, claim, entries=10):
    """Return the audit of a statistic of arrays of which all entries but one or two are NaN."""
    rest = [np.nan] * (entries - 2)
    pairs = [(np.array([*rest, 0.0, 1.0]), np.array([*rest, 0.0, 0.0]))]
    return Audit(
        Statistic(name, epsilon=claim, bounds=(0, 1)),
        PureDP(claim),
        pairs,
        calls=10_000,
    )


@audit(
    source=SOURCE + "nansum: 'ignoring NaNs'",
    reading="nansum, bounds without 0",
    expect="violation",
)
def sum_without_missing(epsilon=1.0):
    """The sum of the numbers among three entries of [10, 11] or NaN, of which one is replaced.

    False: the noise is calibrated to upper − lower = 1, and a number instead of a NaN moves the sum by 10 or more.
    """
    pairs = [(np.array([10.0, 10.0, 11.0]), np.array([10.0, 10.0, np.nan]))]
    return Audit(
        Statistic("nansum", epsilon=epsilon, bounds=(10, 11)),
        PureDP(epsilon),
        pairs,
        calls=10_000,
    )


class Weighted(Histogram):
    """A histogram of weighted numbers."""

    def read(self, data):
        """Return the numbers alone; the weights are passed by name."""
        self.parameters["weights"] = [weight for _, weight in data]
        return [[number for number, _ in data]]


@audit(
    source=SOURCE + "histogram, parameter weights",
    reading="histogram, weights",
    expect="violation",
)
def weighted_histogram(epsilon=1.0):
    """Weighted counts in two bins; one number of weight 5 is added or removed.

    False: the noise is calibrated to a sensitivity of 1 whatever the weights are.
    """
    made = Weighted("histogram", epsilon=epsilon, bins=2, range=(0, 1))
    return Audit(
        made, PureDP(epsilon), [([(0.2, 1.0), (0.3, 5.0)], [(0.2, 1.0)])], calls=10_000
    )


@audit(
    source=SOURCE + "quantile, 'Privacy parameter epsilon'",
    reading="quantile, long array",
    expect="violation",
)
def quantile_of_ties(epsilon=1.0):
    """The median of 2,982 entries that are all 0, or of which one is 1.

    False: exp(−ε·1491/2) is 0 in floating point, so that every weight of the exponential mechanism is 0 on the first input,
    which raises RuntimeError each time, and the smallest double on the second, which never raises.
    """
    ties = np.zeros(round(2982 / epsilon))
    other = ties.copy()
    other[-1] = 1.0
    made = Statistic("quantile", quant=0.5, epsilon=epsilon, bounds=(0, 1))

    def call(data, rng):
        return float(made(data, 1, rng=rng)[0])

    return Audit(call, PureDP(epsilon), [(ties, other)], calls=1_000)


@audit(
    source=SOURCE + "sum; Casacuberta et al. 2022, arXiv:2207.10635, Section 5",
    reading="sum, rounding",
    expect="violation",
)
def rounded_sum(epsilon=1.0):
    """The sum of four numbers of [2⁵², 2⁵² + 1], of which one is replaced.

    False: doubles beyond 2⁵⁴ are multiples of 4, so that 2⁵⁴ + 2 and 2⁵⁴ + 3, whose distance is the sensitivity, are
    rounded to 2⁵⁴ and 2⁵⁴ + 4.
    """
    low = 2.0**52
    numbers, other = (
        low + np.array([1.0, 1.0, 1.0, 0.0]),
        low + np.array([1.0, 1.0, 0.0, 0.0]),
    )
    made = Statistic("sum", epsilon=epsilon, bounds=(low, low + 1))
    return Audit(made, PureDP(epsilon), [(numbers, other)], calls=10_000)
