"""A sufficient statistic of DPRR's output for two neighbour lists of any length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb
from scipy.special import gammaln

from auditdp.adjacency import Pair
from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.edges.dprr import DPRR
from mechanisms.validation import bit_list

QUADRATURE_ERROR = 1e-9


@dataclass(frozen=True)
class DPRRStatistic:
    """DPRR on a list, reduced to (own bit, ones kept among ``degree`` others, ones set among the rest).

    For the pair of lists whose ones are the places 0..degree and 1..degree, every likelihood of the whole output
    depends on these three numbers alone, so they are as private as the whole output, and have only
    2 (degree + 1) (bits − degree) values where the output has 2^bits.

    Input: one of the two lists of ``pair``. Output: int64, shape (size, 3).

    Note:
        Probabilities come from quadrature in floating point, and are enclosed with a relative error of 1e-9, ten times
        what the quadrature is tested to keep.

    Args:
        mechanism: The DPRR.
        bits: Length of the list, n − 1.
        degree: Ones that both lists share.
    """

    mechanism: DPRR
    bits: int
    degree: int

    @property
    def name(self) -> str:
        """The DPRR and the list's length."""
        return f"{self.mechanism.name} on {self.bits} bits, sufficient statistic"

    @cached_property
    def pair(self) -> Pair:
        """The two lists that the statistic is sufficient for."""
        low = np.zeros(self.bits, np.int8)
        low[1 : self.degree + 1] = 1
        high = low.copy()
        high[0] = 1
        return Pair(
            high, low, f"{self.bits} bits, degree {self.degree + 1} | {self.degree}"
        )

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return the statistic of ``size`` independent outputs."""
        return self.reduce(self.mechanism(data, size, rng=rng))

    def reduce(self, outputs: Array) -> Array:
        """Return (own bit, ones kept, ones set) of noisy lists, shape (size, 3)."""
        shared = slice(1, self.degree + 1)
        parts = (
            outputs[:, 0],
            outputs[:, shared].sum(axis=1),
            outputs[:, self.degree + 1 :].sum(axis=1),
        )
        return np.stack(parts, axis=1).astype(np.int64)

    @cached_property
    def _classes(self) -> Array:
        return np.indices((2, self.degree + 1, self.bits - self.degree)).reshape(3, -1)

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log probability of each value of the statistic, shape (size,)."""
        own, kept, others = np.asarray(outputs, np.int64).T
        has_own = int(bit_list(self.name, data)[0])
        law = self.mechanism.law(self.bits, self.degree + has_own)
        rest = self.bits - 1 - self.degree
        ways = _log_choose(self.degree, kept) + _log_choose(rest, others)
        return ways + law.log_prob(kept + own * has_own, others + own * (1 - has_own))

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law of the statistic, each probability enclosed to 1e-9."""
        classes = self._classes.T
        values = np.exp(self.log_prob(classes, data))
        # Values below the smallest normal double would lose digits that the enclosure promises.
        kept = values > 1e-300
        return FiniteLaw(
            classes[kept], [arb(v, QUADRATURE_ERROR * v) for v in values[kept]]
        )


def _log_choose(n: int, k: Array) -> Array:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
