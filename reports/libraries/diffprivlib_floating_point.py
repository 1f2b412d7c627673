"""Laplace noise of four uniform numbers lies on another lattice of doubles from another input. Needs diffprivlib alone."""

import math

from diffprivlib.mechanisms import Gaussian, Laplace


def lowest_bit(x):
    """Return the place of the lowest bit of a double, such as −53 for 2⁻⁵³."""
    fraction, exponent = math.frexp(x)
    whole = int(abs(fraction) * 2**53)
    return exponent - 53 + (whole & -whole).bit_length() - 1


for name, mechanism in (
    ("Laplace", Laplace(epsilon=1, sensitivity=1)),
    ("Gaussian", Gaussian(epsilon=1, delta=1e-5, sensitivity=1)),
):
    for value in (0.0, 1.0):
        fine, all_of_them = 0, 0
        for _ in range(100_000):
            released = mechanism.randomise(value)
            if 0.125 <= released < 0.5:
                all_of_them += 1
                fine += lowest_bit(released) < -53
        print(
            f"{name} of {value}: {fine} of {all_of_them} releases in [.125, .5) have a bit below 2^-53"
        )
