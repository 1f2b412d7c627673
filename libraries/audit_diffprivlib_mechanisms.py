"""IBM's diffprivlib: its mechanisms, at the ε and δ that they are made with.

All are made with ``random_state``, a parameter of theirs, so that every run can be repeated. The neighbours are two values
whose distance is the ``sensitivity``, or any two values of a mechanism that has none, as each docstring says.
"""

import numpy as np
from diffprivlib import mechanisms as dp

from auditdp import AnyValues, ApproxDP, Audit, PureDP
from libraries.stated import of, state

audit = of("diffprivlib")
SOURCE = "diffprivlib 0.6.6, docstring of mechanisms."
APART = [(0.0, 1.0), (0.3, -0.7)]
WHOLE = [(0, 1), (5, 4)]
AGES = ("child", "adult", "senior")


class Randomised:
    """A mechanism of diffprivlib by its name and parameters, made anew for every call of many outputs."""

    def __init__(self, name, **parameters):
        self.kind, self.parameters = getattr(dp, name), parameters

    def __call__(self, data, size, *, rng):
        """Return ``size`` outputs for one value."""
        made = self.kind(**self.parameters, random_state=state(rng))
        return np.array([made.randomise(data) for _ in range(size)])


@audit(source=SOURCE + "Laplace", reading="Laplace")
def laplace(epsilon=1.0):
    """Laplace noise from four uniform numbers."""
    return Audit(
        Randomised("Laplace", epsilon=epsilon, sensitivity=1), PureDP(epsilon), APART
    )


@audit(
    source=SOURCE + "Laplace: 'support for (relaxed) (ε, δ)-differential privacy'",
    reading="Laplace, δ",
)
def laplace_relaxed(epsilon=1.0, delta=0.1):
    """Laplace noise of scale sensitivity/(ε − ln(1 − δ))."""
    return Audit(
        Randomised("Laplace", epsilon=epsilon, delta=delta, sensitivity=1),
        ApproxDP(epsilon, delta),
        APART,
    )


@audit(source=SOURCE + "LaplaceTruncated", reading="LaplaceTruncated")
def laplace_truncated(epsilon=1.0):
    """Laplace noise; what falls out of the domain is put on its ends."""
    made = Randomised(
        "LaplaceTruncated", epsilon=epsilon, sensitivity=1, lower=0, upper=3
    )
    return Audit(made, PureDP(epsilon), [(0.0, 1.0), (2.0, 1.0)])


@audit(source=SOURCE + "LaplaceFolded", reading="LaplaceFolded")
def laplace_folded(epsilon=1.0):
    """Laplace noise; what falls out of the domain is folded back into it."""
    made = Randomised("LaplaceFolded", epsilon=epsilon, sensitivity=1, lower=0, upper=3)
    return Audit(made, PureDP(epsilon), [(0.0, 1.0), (2.0, 1.0)])


@audit(source=SOURCE + "LaplaceBoundedDomain", reading="LaplaceBoundedDomain")
def laplace_bounded(epsilon=1.0):
    """Laplace noise, drawn until it falls into the domain, of a scale that pays for that."""
    made = Randomised(
        "LaplaceBoundedDomain", epsilon=epsilon, sensitivity=1, lower=0, upper=3
    )
    return Audit(made, PureDP(epsilon), [(0.0, 1.0), (2.0, 1.0)])


@audit(source=SOURCE + "LaplaceBoundedNoise", reading="LaplaceBoundedNoise")
def laplace_bounded_noise(epsilon=1.0, delta=0.1):
    """Laplace noise of bounded size."""
    made = Randomised(
        "LaplaceBoundedNoise", epsilon=epsilon, delta=delta, sensitivity=1
    )
    return Audit(made, ApproxDP(epsilon, delta), APART)


@audit(source=SOURCE + "Staircase", reading="Staircase")
def staircase(epsilon=1.0):
    """The staircase mechanism at its default γ."""
    return Audit(
        Randomised("Staircase", epsilon=epsilon, sensitivity=1), PureDP(epsilon), APART
    )


@audit(source=SOURCE + "Snapping", reading="Snapping")
def snapping(epsilon=1.0):
    """Mironov's snapping mechanism."""
    made = Randomised("Snapping", epsilon=epsilon, sensitivity=1, lower=-10, upper=10)
    return Audit(made, PureDP(epsilon), APART)


@audit(source=SOURCE + "Uniform: (0, δ)", reading="Uniform")
def uniform(delta=0.1):
    """Uniform noise, claimed at ε = 0; a claim needs ε > 0, so it is audited at 1e-6."""
    return Audit(
        Randomised("Uniform", delta=delta, sensitivity=1), ApproxDP(1e-6, delta), APART
    )


@audit(source=SOURCE + "Gaussian", reading="Gaussian")
def gaussian(epsilon=1.0, delta=0.01):
    """Gaussian noise by the classic formula."""
    return Audit(
        Randomised("Gaussian", epsilon=epsilon, delta=delta, sensitivity=1),
        ApproxDP(epsilon, delta),
        APART,
    )


@audit(source=SOURCE + "GaussianAnalytic", reading="GaussianAnalytic")
def gaussian_analytic(epsilon=2.0, delta=0.01):
    """Gaussian noise of Balle and Wang's scale."""
    made = Randomised("GaussianAnalytic", epsilon=epsilon, delta=delta, sensitivity=1)
    return Audit(made, ApproxDP(epsilon, delta), APART)


@audit(source=SOURCE + "GaussianDiscrete", reading="GaussianDiscrete")
def gaussian_discrete(epsilon=1.0, delta=0.1):
    """Discrete Gaussian noise."""
    made = Randomised("GaussianDiscrete", epsilon=epsilon, delta=delta)
    return Audit(made, ApproxDP(epsilon, delta), WHOLE, calls=10_000)


@audit(source=SOURCE + "Geometric", reading="Geometric")
def geometric(epsilon=1.0):
    """Two-sided geometric noise."""
    return Audit(Randomised("Geometric", epsilon=epsilon), PureDP(epsilon), WHOLE)


@audit(source=SOURCE + "Geometric, sensitivity 2", reading="Geometric, sensitivity 2")
def geometric_of_two(epsilon=1.0):
    """Two-sided geometric noise for a sensitivity of 2."""
    return Audit(
        Randomised("Geometric", epsilon=epsilon, sensitivity=2),
        PureDP(epsilon),
        [(0, 2), (0, 1)],
    )


@audit(source=SOURCE + "GeometricTruncated", reading="GeometricTruncated")
def geometric_truncated(epsilon=1.0):
    """Geometric noise; what falls out of the domain is put on its ends."""
    return Audit(
        Randomised("GeometricTruncated", epsilon=epsilon, lower=0, upper=5),
        PureDP(epsilon),
        WHOLE,
    )


@audit(source=SOURCE + "GeometricFolded", reading="GeometricFolded")
def geometric_folded(epsilon=1.0):
    """Geometric noise; what falls out of the domain is folded back into it."""
    return Audit(
        Randomised("GeometricFolded", epsilon=epsilon, lower=0.5, upper=5.5),
        PureDP(epsilon),
        [(1, 2), (5, 4)],
    )


@audit(source=SOURCE + "Binary", reading="Binary")
def binary(epsilon=1.0):
    """Randomised response."""
    made = Randomised("Binary", epsilon=epsilon, value0="no", value1="yes")
    return Audit(made, PureDP(epsilon), AnyValues(["no", "yes"]))


@audit(source=SOURCE + "ExponentialCategorical", reading="ExponentialCategorical")
def exponential_categorical(epsilon=1.0):
    """The exponential mechanism that answers a value with one that is near."""
    near = [("child", "adult", 1), ("adult", "senior", 1), ("child", "senior", 2)]
    return Audit(
        Randomised("ExponentialCategorical", epsilon=epsilon, utility_list=near),
        PureDP(epsilon),
        AnyValues(AGES),
    )


def selected(name, **parameters):
    """Return a mechanism that selects one of some candidates by the utilities that it is given."""

    def select(utilities, size, *, rng):
        made = getattr(dp, name)(
            utility=list(utilities),
            sensitivity=1,
            random_state=state(rng),
            **parameters,
        )
        return np.array([made.randomise() for _ in range(size)])

    return select


UTILITIES = [((3.0, 2.0, 2.0), (2.0, 3.0, 3.0)), ((0.0, 1.0, 1.0), (1.0, 0.0, 0.0))]
MONOTONIC = [((3.0, 2.0, 2.0), (3.0, 3.0, 3.0)), ((1.0, 0.0, 0.0), (0.0, 0.0, 0.0))]


@audit(source=SOURCE + "Exponential", reading="Exponential")
def exponential(epsilon=1.0):
    """The exponential mechanism; each utility may change by the sensitivity."""
    return Audit(selected("Exponential", epsilon=epsilon), PureDP(epsilon), UTILITIES)


@audit(source=SOURCE + "Exponential, monotonic", reading="Exponential, monotonic")
def exponential_monotonic(epsilon=1.0):
    """The exponential mechanism with half of the noise, where utilities only grow with a record."""
    return Audit(
        selected("Exponential", epsilon=epsilon, monotonic=True),
        PureDP(epsilon),
        MONOTONIC,
    )


@audit(source=SOURCE + "PermuteAndFlip", reading="PermuteAndFlip")
def permute_and_flip(epsilon=1.0):
    """Permute and flip."""
    return Audit(
        selected("PermuteAndFlip", epsilon=epsilon), PureDP(epsilon), UTILITIES
    )


@audit(source=SOURCE + "Bingham", reading="Bingham, 2 dimensions")
def bingham(epsilon=1.0):
    """An eigenvector of a matrix; the quadratic form of the difference of two neighbours is at most 1 on unit vectors."""
    pairs = [
        (np.diag([5.0, 4.0]), np.diag([4.0, 5.0])),
        (np.diag([5.0, 1.0]), np.diag([6.0, 0.0])),
    ]
    return Audit(
        Randomised("Bingham", epsilon=epsilon), PureDP(epsilon), pairs, calls=1_000
    )
