"""PyDP: Python bindings of Google's C++ library, at the ε and δ that its algorithms are made with.

Neighbours differ in the contributions of one user, who is there or not: with ``l0_sensitivity`` and ``linf_sensitivity`` 1,
as here, in one entry that is added or removed (README of Google's library, "Key terms" and "User contributions"). PyDP
draws from a generator of its own.
"""

from hypothesis import strategies as st
from pydp.algorithms import laplacian
from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism
from pydp.algorithms.partition_selection import create_partition_strategy
from pydp.algorithms.quantile_tree import QuantileTree

from auditdp import ApproxDP, Audit, PureDP, Rows
from libraries.stated import each, of

audit = of("python-dp")
SOURCE = "PyDP 1.1.5, "
FLOATS = Rows(st.floats(0, 1), "add/remove", most=4)
WHOLE = Rows(st.integers(0, 5), "add/remove", most=4)
COUNTS = [(0, 1), (3, 4), (8, 9)]


def computed(name, entries=FLOATS, calls=20_000, epsilon=1.0, **parameters):
    """Return the audit of an algorithm that is made anew for every call."""
    kind = getattr(laplacian, name)

    def release(data):
        return kind(epsilon=epsilon, **parameters).quick_result(list(data))

    return Audit(each(release), PureDP(epsilon), entries, calls=calls)


@audit(source=SOURCE + "LaplaceMechanism", reading="LaplaceMechanism, floats")
def laplace(epsilon=1.0):
    """Laplace noise on a float; neighbours are 1 apart."""
    made = LaplaceMechanism(epsilon, 1.0)
    return Audit(each(made.add_noise), PureDP(epsilon), [(0.0, 1.0), (0.3, -0.7)])


@audit(source=SOURCE + "LaplaceMechanism", reading="LaplaceMechanism, integers")
def laplace_of_integers(epsilon=1.0):
    """Laplace noise on an integer; neighbours are 1 apart."""
    made = LaplaceMechanism(epsilon, 1.0)
    return Audit(each(made.add_noise), PureDP(epsilon), [(0, 1), (5, 4)])


@audit(source=SOURCE + "GaussianMechanism", reading="GaussianMechanism")
def gaussian(epsilon=1.0, delta=1e-2):
    """Gaussian noise on a float; neighbours are 1 apart."""
    made = GaussianMechanism(epsilon, delta, 1.0)
    return Audit(
        each(made.add_noise), ApproxDP(epsilon, delta), [(0.0, 1.0), (0.3, -0.7)]
    )


@audit(source=SOURCE + "laplacian.Count", reading="Count")
def count():
    """How many entries there are; one is added or removed."""
    return computed("Count", WHOLE)


@audit(source=SOURCE + "laplacian.BoundedSum", reading="BoundedSum, integers")
def total_of_integers():
    """The sum of integers of 0..5; one is added or removed."""
    return computed("BoundedSum", WHOLE, lower_bound=0, upper_bound=5)


@audit(source=SOURCE + "laplacian.BoundedSum", reading="BoundedSum, floats")
def total():
    """The sum of floats of [0, 1]; one is added or removed."""
    return computed("BoundedSum", lower_bound=0.0, upper_bound=1.0, dtype="float")


@audit(source=SOURCE + "laplacian.BoundedMean", reading="BoundedMean")
def mean():
    """The mean of floats of [0, 1]; one is added or removed."""
    return computed("BoundedMean", lower_bound=0.0, upper_bound=1.0, dtype="float")


@audit(source=SOURCE + "laplacian.BoundedVariance", reading="BoundedVariance")
def variance():
    """The variance of floats of [0, 1]; one is added or removed."""
    return computed("BoundedVariance", lower_bound=0.0, upper_bound=1.0, dtype="float")


@audit(
    source=SOURCE + "laplacian.BoundedStandardDeviation",
    reading="BoundedStandardDeviation",
)
def deviation():
    """The standard deviation of floats of [0, 1]; one is added or removed."""
    return computed(
        "BoundedStandardDeviation", lower_bound=0.0, upper_bound=1.0, dtype="float"
    )


@audit(source=SOURCE + "laplacian.Max", reading="Max")
def largest():
    """The largest of floats of [0, 1]; one is added or removed."""
    return computed(
        "Max", calls=10_000, lower_bound=0.0, upper_bound=1.0, dtype="float"
    )


@audit(source=SOURCE + "laplacian.Min", reading="Min")
def least():
    """The least of floats of [0, 1]; one is added or removed."""
    return computed(
        "Min", calls=10_000, lower_bound=0.0, upper_bound=1.0, dtype="float"
    )


@audit(source=SOURCE + "laplacian.Median", reading="Median")
def median():
    """The median of floats of [0, 1]; one is added or removed."""
    return computed(
        "Median", calls=10_000, lower_bound=0.0, upper_bound=1.0, dtype="float"
    )


@audit(source=SOURCE + "laplacian.Percentile", reading="Percentile")
def percentile():
    """The first quartile of floats of [0, 1]; one is added or removed."""
    return computed(
        "Percentile",
        calls=10_000,
        percentile=0.25,
        lower_bound=0.0,
        upper_bound=1.0,
        dtype="float",
    )


@audit(source=SOURCE + "quantile_tree.QuantileTree", reading="QuantileTree")
def tree(epsilon=1.0):
    """Two quantiles of floats of [0, 1] from a tree of height 2; one is added or removed."""

    def release(data):
        made = QuantileTree(0.0, 1.0, 2, 4)
        for entry in data:
            made.add_entry(entry)
        return made.compute_quantiles(epsilon, 0.0, 1, 1, [0.25, 0.75], "laplace")

    return Audit(each(release), PureDP(epsilon), FLOATS, calls=10_000)


def selection(strategy, epsilon=1.0, delta=0.05):
    """Return the audit of the selection of a partition, with one user more or less."""
    made = create_partition_strategy(strategy, epsilon, delta, 1)
    return Audit(each(made.should_keep), ApproxDP(epsilon, delta), COUNTS)


@audit(
    source=SOURCE + "create_partition_strategy('truncated_geometric')",
    reading="partition selection, geometric",
)
def selection_geometric():
    """Whether a partition is kept, by the truncated geometric mechanism."""
    return selection("truncated_geometric")


@audit(
    source=SOURCE + "create_partition_strategy('laplace')",
    reading="partition selection, Laplace",
)
def selection_laplace():
    """Whether a partition is kept, by Laplace noise."""
    return selection("laplace")


@audit(
    source=SOURCE + "create_partition_strategy('gaussian')",
    reading="partition selection, Gaussian",
)
def selection_gaussian():
    """Whether a partition is kept, by Gaussian noise."""
    return selection("gaussian")
