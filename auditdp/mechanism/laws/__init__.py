"""Known output laws, from which exact evidence computes: one file per family, and ball arithmetic.

``FiniteLaw`` (finitely many outputs), ``StepLaw`` (a number with a piecewise constant density, and atoms), ``LaplaceLaw``
and ``GaussianLaw`` (independent noise on a vector), and ``Envelope`` (the least and the most that any input of a whole
domain gives an output).
"""

from auditdp.mechanism.calls.leaves import row_keys
from auditdp.mechanism.laws.balls import FLOAT_ABSOLUTE_ERROR, FLOAT_RELATIVE_ERROR, PRECISION_BITS, ball, precision
from auditdp.mechanism.laws.envelope import Envelope
from auditdp.mechanism.laws.finite import FiniteLaw
from auditdp.mechanism.laws.gaussian import GaussianLaw
from auditdp.mechanism.laws.laplace import LaplaceLaw
from auditdp.mechanism.laws.step import StepLaw

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
