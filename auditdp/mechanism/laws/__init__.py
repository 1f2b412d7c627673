"""Laws of outputs, which mechanisms state and exact evidence compares.

``FiniteLaw`` has finitely many outputs. ``StepLaw`` is for a number with a piecewise
constant density and atoms. ``LaplaceLaw`` and ``GaussianLaw`` add independent noise to
a vector. ``Envelope`` has the smallest and the largest probability of each output over
all inputs of a domain. The names of ball arithmetic are exported here as well, and
``row_keys``, which returns the values of outputs as bytes.
"""

from auditdp.mechanism.calls.leaves import row_keys
from auditdp.mechanism.laws.additive import GaussianLaw, LaplaceLaw, StepLaw
from auditdp.mechanism.laws.finite import Envelope, FiniteLaw
from auditdp.numerics.balls import (
    FLOAT_ABSOLUTE_ERROR,
    FLOAT_RELATIVE_ERROR,
    PRECISION_BITS,
    ball,
    precision,
)

__all__ = [
    "FLOAT_ABSOLUTE_ERROR",
    "FLOAT_RELATIVE_ERROR",
    "PRECISION_BITS",
    "Envelope",
    "FiniteLaw",
    "GaussianLaw",
    "LaplaceLaw",
    "StepLaw",
    "ball",
    "precision",
    "row_keys",
]
