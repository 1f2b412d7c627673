"""Laws of outputs that mechanisms state and exact evidence compares; ball arithmetic.

``FiniteLaw`` (finitely many outputs), ``StepLaw`` (a number with a piecewise constant
density, and atoms), ``LaplaceLaw`` and ``GaussianLaw`` (independent noise on a vector),
and ``Envelope`` (the least and the most that any input of a whole domain gives an
output).
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
