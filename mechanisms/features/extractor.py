"""Features of a raw record, and how important and how sensitive each of them is: a linear model of either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import brief
from mechanisms.backend import Rng, Values, backend_of


@dataclass(frozen=True)
class LinearExtractor:
    """Features z = clip(Wx, 0, 1) of a raw record x, and how important and how sensitive each feature of a record is.

    Importance is the linear SHAP value c_i(z_i − μ_i) of a linear model with coefficients c and background means μ.
    Sensitivity is |z_i − ẑ_i|, where ẑ are the features of the record whose sensitive inputs are set to 0. Each is divided
    by its sum over the features.

    Source: Tran, Lai, Phan et al. (2022), arXiv:2211.05766, Section IV; the paper leaves the extractor and the model open.

    Note:
        Where the sensitive inputs change nothing, z = ẑ, or all importances are 0, the published quotient is 0/0. Every
        feature then counts the same, 1/d.

    Args:
        weights: W, d rows of as many numbers as a record has inputs.
        sensitive: Indices of the sensitive inputs.
        coefficients: c, d numbers; all 1 by default.
        background: μ, the same for every feature.
    """

    weights: tuple[tuple[float, ...], ...]
    sensitive: tuple[int, ...] = (0,)
    coefficients: tuple[float, ...] = ()
    background: float = 0.5

    def __post_init__(self) -> None:
        rows = {len(row) for row in self.weights}
        matrix = np.array(self.weights if len(rows) == 1 else [], np.float64)
        if not matrix.size or not np.isfinite(matrix).all():
            raise MechanismError(
                f"LinearExtractor: expected a matrix of finite weights, got {self.weights!r}"
            )
        if any(not 0 <= i < matrix.shape[1] for i in self.sensitive):
            raise MechanismError(
                f"LinearExtractor: expected sensitive inputs from 0 to {matrix.shape[1] - 1}, got {self.sensitive!r}"
            )
        if len(self.coefficients) not in (0, len(matrix)):
            raise MechanismError(
                f"LinearExtractor: expected {len(matrix)} coefficients, got {self.coefficients!r}"
            )

    @property
    def inputs(self) -> int:
        """Numbers in a raw record."""
        return len(self.weights[0])

    def records(self, values: Values, rng: Rng) -> Values:
        """Return raw records as float64 of shape (n, inputs), on the generator's device.

        Raises:
            MechanismError: If they are anything else, or a number is not in [0, 1].
        """
        records = backend_of(rng).array(values)
        if records.ndim != 2 or records.shape[1] != self.inputs:
            raise MechanismError(
                f"LinearExtractor: expected records of shape (n, {self.inputs}), got {tuple(records.shape)}"
            )
        if not bool(((records >= 0) & (records <= 1)).all()):
            raise MechanismError(
                f"LinearExtractor: expected records in [0, 1], got {brief(values)}; scale and clip them"
            )
        return records

    def features(self, records: Values, backend: Any) -> Values:
        """Return z, float64 in [0, 1], shape (n, d), for raw records of shape (n, inputs)."""
        return backend.xp.clip(records @ backend.array(self.weights).T, 0.0, 1.0)

    def shares(self, records: Values, gamma: float, backend: Any) -> Values:
        """Return θ, shape (n, d): γα_i + (1−γ)(β_min + β_max − β_i) with importance α and sensitivity β, summing to 1."""
        public = np.ones(self.inputs)
        public[list(self.sensitive)] = 0
        features, masked = (
            self.features(r, backend)
            for r in (records, records * backend.array(public))
        )
        coefficients = backend.array(self.coefficients or np.ones(len(self.weights)))
        importance = _normalised(
            abs(coefficients * (features - self.background)), backend.xp
        )
        sensitivity = _normalised(abs(features - masked), backend.xp)
        least, most = (
            f(sensitivity, 1)[:, None] for f in (backend.xp.amin, backend.xp.amax)
        )
        return _normalised(
            gamma * importance + (1 - gamma) * (least + most - sensitivity), backend.xp
        )


def _normalised(values: Values, xp: Any) -> Values:
    """Rows divided by their sums; equal parts where a sum is 0."""
    total = values.sum(1)[:, None]
    return xp.where(
        total > 0, values / xp.where(total > 0, total, 1.0), 1.0 / values.shape[1]
    )
