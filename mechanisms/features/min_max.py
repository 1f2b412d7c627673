"""Scaling a population's features before everybody encodes theirs: by its range, as deployed, or by public bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, Literal

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import Array
from mechanisms.backend import Rng, Values, backend_of
from mechanisms.features.multi_bit import MAX_OUTCOMES, MultiBit
from mechanisms.validation import check_integer


@dataclass(frozen=True)
class Everybody:
    """Every user of a population encodes their own record; all that they send is released.

    Input: raw features, float64, shape (users, dimension). Output: float64, shape (size, users, columns), with NaN in the
    columns that are not released.

    Claimed and true: the encoder's ε for one user's record, since the others' do not depend on it.

    Args:
        encoder: What each user runs on their record.
        users: Number of users, >= 1.
    """

    encoder: MultiBit
    users: int

    def __post_init__(self) -> None:
        check_integer(type(self).__name__, "users", self.users, 1)

    @property
    def name(self) -> str:
        """The preparation of the records, and the encoders."""
        return f"{self.encoder.name} by each of {self.users} users"

    def prepared(self, matrix: Values, xp: Any) -> Values:
        """Return the records that the users encode."""
        return matrix

    def encoder_of(self, records: Values) -> Any:
        """Return the encoder for prepared records, which may have fewer columns than the raw ones."""
        return self.encoder

    def perturb(self, values: Values, *, rng: Rng) -> Values:
        """Return one release: int8, shape (users, columns), for raw features of shape (users, dimension)."""
        backend = backend_of(rng)
        records = self.prepared(self._matrix(backend.array(values)), backend.xp)
        return self.encoder_of(records).perturb(records, rng=rng)

    def _matrix(self, matrix: Values) -> Values:
        expected = (self.users, self.encoder.dimension)
        if tuple(matrix.shape) != expected or not math.isfinite(
            float(abs(matrix).max())
        ):
            raise MechanismError(
                f"{self.name}: expected finite raw features of shape {expected}, got shape {tuple(matrix.shape)}, values "
                f"up to {float(abs(matrix).max()) if math.prod(matrix.shape) else math.nan:g}"
            )
        return matrix

    def _records(self, data: Any) -> Array:
        return self.prepared(self._matrix(np.asarray(data, np.float64)), np)

    def _padded(self, sent: Array) -> Array:
        """The reports with NaN for the columns that are not released."""
        padded = np.full((*sent.shape[:-1], self.encoder.dimension), np.nan)
        padded[..., : sent.shape[-1]] = sent
        return padded

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent releases, float64, shape (size, users, dimension)."""
        records = self._records(data)
        sent = self.encoder_of(records).perturb(np.tile(records, (size, 1)), rng=rng)
        return self._padded(sent.reshape(size, self.users, records.shape[1]))

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the exact law as Fractions, where there are at most 2^12 outputs: the product over the users.

        Raises:
            MechanismError: If there are more.
        """
        laws = [self.user_law(data, user) for user in range(self.users)]
        if (count := math.prod(len(law.outcomes) for law in laws)) > MAX_OUTCOMES:
            raise MechanismError(
                f"{self.name}: {count} outputs, at most {MAX_OUTCOMES}; use fewer users or features"
            )
        sent = np.array(
            [np.stack(rows) for rows in product(*(law.outcomes for law in laws))]
        )
        return FiniteLaw(
            sent,
            [math.prod(each) for each in product(*(law.probabilities for law in laws))],
        )

    def user_law(self, data: Any, user: int) -> FiniteLaw:
        """Return the exact law of one user's report, of outputs of shape (dimension,)."""
        records = self._records(data)
        law = self.encoder_of(records).distribution(records[user])
        return FiniteLaw(self._padded(law.outcomes), law.probabilities)

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log probability of each release, shape (size,)."""
        records, outputs = self._records(data), np.asarray(outputs)
        encoder, columns = self.encoder_of(records), records.shape[1]
        released = (~np.isnan(outputs)).all(axis=1).sum(axis=1)
        sent = np.nan_to_num(outputs[:, :, :columns])
        logs = sum(
            encoder.log_prob(sent[:, user], record)
            for user, record in enumerate(records)
        )
        return np.where(released == columns, logs, -np.inf)


@dataclass(frozen=True)
class MinMaxScaled(Everybody):
    """Every feature is scaled to [0, 1] by its least and greatest value in the population; then everybody encodes.

    Claimed, implicitly: the encoder's ε for one user's record. False from two users on: the scaled records of the others
    depend on it. With n users the loss is exactly nε: each report is ε-LDP in the scaled record that it is about, so it is
    no more; and it is that much where the features of everybody else are 0 while one user's move from 1 to −1: the others
    are scaled to 0 before and to 1 after, and the user to 1 before and to 0 after. One report that is seen alone,
    anybody's, keeps ε.

    A feature that is the same for everybody has no range. "low" scales it to 0; "drop" releases it not at all, as in the
    published code of the encoder's source, and then how many features are released depends on the data: no ε holds from
    two users on. With one user alone every feature is constant, and nothing of the record is released.

    Args:
        encoder: What each user runs; its bounds are 0 and 1.
        users: Number of users.
        constant: What happens to a feature that is the same for everybody.
    """

    constant: Literal["low", "drop"] = "low"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.encoder.low, self.encoder.high) != (0, 1):
            raise MechanismError(
                f"MinMaxScaled: expected an encoder with bounds 0 and 1, which features are scaled to, got "
                f"{self.encoder.low:g} and {self.encoder.high:g}"
            )
        if self.constant not in ("low", "drop"):
            raise MechanismError(
                f"MinMaxScaled: expected constant='low' or 'drop', got {self.constant!r}"
            )

    @property
    def name(self) -> str:
        """The scaling and the encoder of the result."""
        dropped = ", constant features dropped" if self.constant == "drop" else ""
        return f"min-max scaling{dropped}, then {super().name}"

    def prepared(self, matrix: Values, xp: Any) -> Values:
        """Return the scaled records, without the columns that are dropped."""
        least = xp.amin(matrix, 0)
        width = xp.amax(matrix, 0) - least
        if self.constant == "drop":
            matrix, least, width = (
                matrix[:, width > 0],
                least[width > 0],
                width[width > 0],
            )
        return (matrix - least) / xp.where(width > 0, width, 1.0)

    def encoder_of(self, records: Values) -> Any:
        """Return the encoder for the remaining features.

        It sends at most the number of features that it sent before, and at most those
        that remain.
        """
        columns = records.shape[1]
        if not columns:
            return Silence()
        return replace(
            self.encoder, dimension=columns, sampled=min(self.encoder.m, columns)
        )


@dataclass(frozen=True)
class Silence:
    """Encodes records of no features: there is nothing to send."""

    def perturb(self, values: Values, *, rng: Rng) -> Values:
        """Return records of no features, int8, shape (n, 0)."""
        xp = backend_of(rng).xp
        return xp.asarray(values, dtype=xp.int8)

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law: one output."""
        return FiniteLaw(np.zeros((1, 0), np.int8), [Fraction(1)])

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return 0 for each output."""
        return np.zeros(len(outputs))


@dataclass(frozen=True)
class PublicBounds(Everybody):
    """Every feature is clipped to the encoder's bounds, which are public; then everybody encodes.

    The repair of ``MinMaxScaled``: ε for one user's record, whatever numbers it holds. The price is noise in proportion to
    the width of the bounds instead of the range that the population happens to have, and a bias where they clip.
    """

    @property
    def name(self) -> str:
        """The clipping and the encoder of the result."""
        return f"clipping to public bounds, then {super().name}"

    def prepared(self, matrix: Values, xp: Any) -> Values:
        """Return the clipped records."""
        return xp.clip(matrix, self.encoder.low, self.encoder.high)


@dataclass(frozen=True)
class OneReport:
    """The report of one user of a population; the rest of the release is withheld.

    Args:
        population: Everybody's release.
        user: Index of the user, from 0.
    """

    population: Everybody
    user: int = 0

    @property
    def name(self) -> str:
        """The user and the release."""
        return f"report of user {self.user} in {self.population.name}"

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent reports, float64, shape (size, dimension)."""
        return self.population(data, size, rng=rng)[:, self.user]

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the exact law: the encoder's, on the scaled record."""
        return self.population.user_law(data, self.user)
