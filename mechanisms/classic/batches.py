"""Noisy sums over batches of records; their privacy depends on how batches are drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import logsumexp

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array, brief
from mechanisms.cells import Rng
from mechanisms.classic.noise import answers
from mechanisms.validation import check_integer, check_positive


@dataclass(frozen=True)
class BatchSums:
    """One epoch of batches, the sum of each batch released with N(0, σ²): the steps of DP-SGD with a linear query.

    Input: records in [−1, 1], shape (n,), a removed record being 0. Output: float64, shape (size, batches). Batches are

    - "poisson": every record is in every batch with probability 1/batches, independently;
    - "shuffled": a random order of the records cut into batches of equal size.

    Claimed, in the common practice that shuffles and accounts for Poisson batches: the (ε, δ) of Poisson batches. True:
    where the other records are −1 and the last is 1 or removed, the shuffled batches show an offset of 2 or 1 in exactly
    one batch, which is far easier to tell than an offset of 1 or 0 in a Poisson number of batches (Chua et al.).

    Source: Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha & Zhang (2024), "How Private are DP-SGD Implementations?",
    ICML (arXiv:2403.17673v2; adaptive batch linear queries).

    Args:
        sigma: Standard deviation of the noise on each sum, records being at most 1 in size; finite and > 0.
        batches: Number of batches T, >= 2.
        sampling: "poisson" or "shuffled".
    """

    sigma: float
    batches: int
    sampling: Literal["poisson", "shuffled"]

    def __post_init__(self) -> None:
        check_positive("BatchSums", "sigma", self.sigma)
        check_integer("BatchSums", "batches", self.batches, 2)
        if self.sampling not in ("poisson", "shuffled"):
            raise MechanismError(
                f"BatchSums: expected sampling 'poisson' or 'shuffled', got {self.sampling!r}"
            )

    @property
    def name(self) -> str:
        """The mechanism and its parameters."""
        return (
            f"BatchSums(sigma={self.sigma:g}, batches={self.batches}, {self.sampling})"
        )

    def _records(self, data: Array) -> Array:
        records = answers(self.name, data)
        if np.abs(records).max() > 1 or len(records) % self.batches:
            raise MechanismError(
                f"{self.name}: expected a multiple of {self.batches} records in [-1, 1], got {brief(records)}"
            )
        return records

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return the noisy batch sums of ``size`` independent epochs, float64, shape (size, batches)."""
        records = self._records(data)
        noise = self.sigma * rng.standard_normal((size, self.batches))
        if self.sampling == "shuffled":
            order = rng.permuted(np.tile(records, (size, 1)), axis=1)
            return noise + order.reshape(size, self.batches, -1).sum(axis=2)
        for value, count in Counter(records.tolist()).items():
            if value:
                noise += value * rng.binomial(count, 1 / self.batches, noise.shape)
        return noise

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log density of each output, shape (size,).

        Poisson batches are independent, each a mixture over the sums that its records can have. Shuffled ones are a
        mixture over the place of the one record that differs from the others.

        Raises:
            MechanismError: If the batches are shuffled and more than one record differs from the others.
        """
        records, outputs = self._records(data), np.asarray(outputs)
        constant = np.log(self.sigma * np.sqrt(2 * np.pi))
        if self.sampling == "poisson":
            sums = _poisson_sums(records, 1 / self.batches)
            shifts, weights = np.array(list(sums)), np.array(list(sums.values()))
            mixture = -(((outputs[..., None] - shifts) / self.sigma) ** 2) / 2
            return (logsumexp(mixture, b=weights, axis=2) - constant).sum(axis=1)
        common, count = Counter(records.tolist()).most_common(1)[0]
        if count < len(records) - 1:
            raise MechanismError(
                f"{self.name}: states its law only where all records but one agree: {brief(records)}"
            )
        offset = records.sum() - len(records) * common
        centred = (outputs - common * (len(records) // self.batches)) / self.sigma
        # moving the offset into batch t changes -|y|²/2 by (y_t - offset/2σ) offset/σ
        gain = (centred - offset / (2 * self.sigma)) * offset / self.sigma
        return (
            logsumexp(gain, axis=1)
            - np.log(self.batches)
            - (centred**2).sum(axis=1) / 2
            - self.batches * constant
        )


def _poisson_sums(records: Array, rate: float) -> dict[float, float]:
    """The law of the sum of a Poisson batch: value to probability."""
    sums = {0.0: 1.0}
    for record in records:
        drawn: dict[float, float] = Counter()
        for value, probability in sums.items():
            drawn[value] += probability * (1 - rate)
            drawn[value + record] += probability * rate
        sums = drawn
    return sums
