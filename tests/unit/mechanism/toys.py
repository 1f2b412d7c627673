"""Helpers of the tests of mechanisms and of their calls."""

import numpy as np

from auditdp.mechanism.calls import Calls
from auditdp.mechanism.protocol import as_mechanism


def generator(seed=0):
    return np.random.default_rng(seed)


def calls_of(function):
    """Return the calls of a function of one output or of many."""
    return Calls(as_mechanism(function))


def returns(value):
    """Return a mechanism of many outputs that always returns the value."""
    return lambda data, size, *, rng: value


def noisy(data, rng):
    return data + rng.laplace()


def noisy_rows(data, size, *, rng):
    return data + rng.laplace(size=size)
