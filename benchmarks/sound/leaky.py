"""Leaky mechanisms with known loss: a stated bound below it is false.

Unless another pair is given, a mechanism gets 0 or 1; unless another claim is given, its authors say that it is 1-DP.
A loss is infinite where an output, or a set of outputs, has a probability on one input alone.
"""

from benchmarks.sound.leaky_moves import MOVE_CASES
from benchmarks.sound.leaky_noise import NOISE_CASES
from benchmarks.sound.leaky_outcomes import OUTCOME_CASES

LEAKY = (*NOISE_CASES, *OUTCOME_CASES, *MOVE_CASES)
