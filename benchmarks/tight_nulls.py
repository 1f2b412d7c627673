"""Mechanisms at exactly their claims, one for each way in which bets on a true claim could go wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from auditdp import (
    AccountedDP,
    ApproxDP,
    GaussianDP,
    Pair,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from auditdp.accountants import PLDLower
from auditdp.claims.statements import Claim
from auditdp.mechanism.protocol import Array
from auditdp.testing import GaussianMechanism, LaplaceMechanism, LeakyResponse, Response
from benchmarks.parts import Rng
from benchmarks.tight_pairs import PAIRS, TightPairs
from mechanisms.classic import Gaussian, NoisyHistogram1

BIT = (Pair(1, 0),)
VECTOR = (Pair(np.eye(3)[0], np.zeros(3)),)


@dataclass(frozen=True)
class Bits:
    """Randomised response on four bits, of which the pair differs in the second: tight for ``epsilon``."""

    epsilon: float

    def __call__(self, data: int, size: int, *, rng: Rng) -> Array:
        """Return ``size`` rows of four noisy bits."""
        truth = np.array([1, data, 0, 1], np.int8)
        return truth ^ (rng.random((size, 4)) > Response(self.epsilon).keep)

    def log_prob(self, outputs: Array, data: int) -> Array:
        """Return the log probability of each row, up to a common term."""
        return np.where(outputs[:, 1] == data, 0.0, -self.epsilon)


@dataclass(frozen=True)
class Product:
    """Normal noise in three numbers, of which the sign of the first one's product with the last is a randomised response."""

    epsilon: float

    def __call__(self, data: int, size: int, *, rng: Rng) -> Array:
        """Return ``size`` rows of three numbers."""
        rows = rng.normal(size=(size, 3))
        response = 2 * Response(self.epsilon)(data, size, rng=rng) - 1
        rows[:, 2] = np.abs(rows[:, 2]) * np.sign(rows[:, 0]) * response
        return rows

    def log_prob(self, outputs: Array, data: int) -> Array:
        """Return the log probability of each row, up to a common term."""
        return np.where((outputs[:, 0] * outputs[:, 2] > 0) == data, 0.0, -self.epsilon)


@dataclass(frozen=True)
class MostlyNew:
    """Seven times in ten a vector that never comes again, else the extreme pair of (``epsilon``, ``delta``/.3).

    As a whole it is tight for (``epsilon``, ``delta``). A bet only on outputs that come again that pays the price of
    ``delta`` for those alone would win.
    """

    epsilon: float
    delta: float

    def __call__(self, data: int, size: int, *, rng: Rng) -> Array:
        """Return ``size`` rows (value, whether it is new)."""
        repeated, new = self._repeated(data, size, rng=rng), rng.random(size) < 0.7
        return np.stack([np.where(new, 9 + rng.random(size), repeated), new], axis=1)

    def log_prob(self, outputs: Array, data: int) -> Array:
        """Return the log probability of each row, up to a common term."""
        repeated = self._repeated.distribution(data).log_prob(
            outputs[:, 0].astype(np.int8)
        )
        return np.where(outputs[:, 1] == 1, 0.0, repeated)

    @property
    def _repeated(self) -> LeakyResponse:
        return LeakyResponse(self.epsilon, self.delta / 0.3)


@dataclass(frozen=True)
class Mixture:
    """One of several tight mechanisms, chosen at random and named in the output: as tight as each of them."""

    parts: tuple[Any, ...]

    def __call__(self, data: int, size: int, *, rng: Rng) -> Array:
        """Return ``size`` rows (number of the part, its output)."""
        chosen = rng.integers(len(self.parts), size=size)
        drawn = [
            np.asarray(part(data, size, rng=rng), float).reshape(size)
            for part in self.parts
        ]
        return np.stack([chosen, np.choose(chosen, drawn)], axis=1)

    def log_prob(self, outputs: Array, data: int) -> Array:
        """Return the log probability of each row."""
        chosen, total = outputs[:, 0].astype(int), np.zeros(len(outputs))
        for k, part in enumerate(self.parts):
            values = outputs[chosen == k, 1]
            if isinstance(part, LeakyResponse | Response) and len(values):
                total[chosen == k] = part.distribution(data).log_prob(
                    values.astype(np.int8)
                )
            elif len(values):
                total[chosen == k] = part.log_prob(values, data)
        return total


@dataclass(frozen=True)
class Coarse:
    """The interval between ``edges`` in which a normal variable falls: within the curve of 1/``sigma``-GDP."""

    sigma: float
    edges: tuple[float, ...]

    def __call__(self, data: int, size: int, *, rng: Rng) -> Array:
        """Return ``size`` numbers of intervals."""
        return np.searchsorted(
            self.edges, data + self.sigma * rng.standard_normal(size)
        ).astype(float)

    def log_prob(self, outputs: Array, data: int) -> Array:
        """Return the log probability of each interval."""
        ends = np.concatenate([[-np.inf], self.edges, [np.inf]])
        return np.asarray(
            np.log(np.diff(norm.cdf((ends - data) / self.sigma)))[
                np.asarray(outputs).astype(int)
            ]
        )


@dataclass(frozen=True)
class Null:
    """A mechanism at exactly its claim, and a leakier one that an overconfident forecaster believes in."""

    mechanism: Any
    claim: Claim
    believed: Any
    pairs: Sequence[Pair] = BIT


MIXED = ("(ε, δ)", "Gaussian")
NULLS = {
    "randomised response": Null(Response(1.0), PureDP(1.0), Response(1.4)),
    "small ε": Null(Response(0.1), PureDP(0.1), Response(0.3)),
    "no loss": Null(Response(0.0), PureDP(0.0), Response(0.4)),
    "Laplace": Null(LaplaceMechanism(1.0), PureDP(1.0), LaplaceMechanism(0.7)),
    "Laplace, 3 numbers": Null(
        NoisyHistogram1(1.0), PureDP(1.0), NoisyHistogram1(1.4), VECTOR
    ),
    "four bits": Null(Bits(1.0), PureDP(1.0), Bits(1.4)),
    "sign of a product": Null(Product(1.0), PureDP(1.0), Product(1.4)),
    "(ε, δ)": Null(
        LeakyResponse(1.0, 0.05), ApproxDP(1.0, 0.05), LeakyResponse(1.4, 0.1)
    ),
    "(0, δ)": Null(
        LeakyResponse(0.0, 0.1), ApproxDP(0.0, 0.1), LeakyResponse(0.4, 0.2)
    ),
    "mostly new": Null(MostlyNew(0.2, 0.25), ApproxDP(0.2, 0.25), MostlyNew(1.0, 0.29)),
    "mixture of (ε, δ)": Null(
        Mixture(
            (
                LeakyResponse(1.0, 0.05),
                LeakyResponse(1.0, 0.02),
                LaplaceMechanism(1.0),
                Response(1.0),
            )
        ),
        ApproxDP(1.0, 0.05),
        Mixture(
            (
                LeakyResponse(1.4, 0.1),
                LeakyResponse(1.5, 0.1),
                LaplaceMechanism(0.7),
                Response(1.5),
            )
        ),
    ),
    "Gaussian": Null(GaussianMechanism(1.0), GaussianDP(1.0), GaussianMechanism(0.7)),
    "Gaussian, 3 numbers": Null(
        Gaussian(1.0, 1e-5, "laplace"),
        GaussianDP(1.0),
        Gaussian(1.0, 1e-5, "laplace", sensitivity=0.7),
        VECTOR,
    ),
    "mixture of Gaussian": Null(
        Mixture(
            (GaussianMechanism(1.0), Coarse(1.0, (0.5,)), Coarse(1.0, (-0.5, 1.5)))
        ),
        GaussianDP(1.0),
        Mixture(
            (GaussianMechanism(0.7), Coarse(0.7, (0.5,)), Coarse(0.7, (-0.5, 1.5)))
        ),
    ),
    "four tight pairs": Null(
        Response(1.0),
        PureDP(1.0),
        Response(1.4),
        tuple(Pair(1, 0, str(k)) for k in range(4)),
    ),
    **{
        f"tight channels, {name}": Null(
            TightPairs(claim), claim, TightPairs(claim, stretch=1.4), PAIRS
        )
        for name, claim in {
            "ε": PureDP(1.0),
            "(ε, δ)": ApproxDP(1.0, 0.05),
            "Gaussian": GaussianDP(1.0),
            "accountant": AccountedDP(PLDLower(1.0, 0.1, 10), quoted=1e-3),
            "zCDP": ZeroConcentratedDP(0.5),
            "Rényi": RenyiDP(4.0, 2.0),
        }.items()
    },
}
