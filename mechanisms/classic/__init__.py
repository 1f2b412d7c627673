"""The mechanisms that auditing papers measure themselves on, correct and broken.

Sources: Ding et al. (2018, StatDP, arXiv:1805.10277), Bichsel et al. (2021, DP-Sniper, S&P), Lyu, Su & Li (2017,
arXiv:1603.01699), and for each mechanism the paper that its docstring names. Inputs are vectors of query answers,
float64, shape (k,); ``auditdp.QueryAnswers`` says which are neighbours. A docstring says what is claimed and what is
true. All are vectorised over ``size``.
"""

from mechanisms.classic.batches import BatchSums
from mechanisms.classic.exponential import ExponentialMechanism
from mechanisms.classic.floating import NaiveLaplace
from mechanisms.classic.gaussian import Gaussian, GaussianAbove
from mechanisms.classic.geometric import TruncatedGeometric
from mechanisms.classic.laplace import (
    LaplaceParallel,
    LaplaceSum,
    NoisyHistogram1,
    NoisyHistogram2,
    PrefixSum,
)
from mechanisms.classic.noisy_max import NoisyMax1, NoisyMax2, NoisyMax3, NoisyMax4
from mechanisms.classic.numeric_sparse_vector import SVT3, NumericSVT
from mechanisms.classic.rappor import OneTimeRappor, Rappor
from mechanisms.classic.sparse_vector import SVT1, SVT2, SVT4, SVT5, SVT6

__all__ = [
    "SVT1",
    "SVT2",
    "SVT3",
    "SVT4",
    "SVT5",
    "SVT6",
    "BatchSums",
    "ExponentialMechanism",
    "Gaussian",
    "GaussianAbove",
    "LaplaceParallel",
    "LaplaceSum",
    "NaiveLaplace",
    "NoisyHistogram1",
    "NoisyHistogram2",
    "NoisyMax1",
    "NoisyMax2",
    "NoisyMax3",
    "NoisyMax4",
    "NumericSVT",
    "OneTimeRappor",
    "PrefixSum",
    "Rappor",
    "TruncatedGeometric",
]
