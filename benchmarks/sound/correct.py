"""Correct mechanisms with exact claims: any objection to one of them is false.

Unless another pair is given, a mechanism gets 0 or 1.
"""

from benchmarks.sound.correct_choices import CHOICE_CASES
from benchmarks.sound.correct_curves import CURVE_CASES
from benchmarks.sound.correct_laplace import LAPLACE_CASES

CORRECT = (*LAPLACE_CASES, *CHOICE_CASES, *CURVE_CASES)
