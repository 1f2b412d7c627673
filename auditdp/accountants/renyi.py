"""Curves from Rényi divergences of many orders."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from auditdp.accountants.base import Soundness, check_delta, check_epsilon
from auditdp.accountants.description import Repeated
from auditdp.errors import MissingExtraError
from auditdp.mechanism.protocol import Array

LOG_MOMENT_ERROR = 1e-12
"""What is added to (α−1) times the divergence of each use; dp-accounting ends its series at terms of e^−30 = 9e-14, and
rounding can make it zero or negative, of which it makes ε = 0. That this is enough was measured and is not derived, so these
curves prove nothing; those of loss distributions are tighter, and do."""


def dp_accounting() -> Any:
    """Return dp-accounting, which is imported when a number is asked for.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import dp_accounting.rdp
    except ModuleNotFoundError as error:
        raise MissingExtraError.of(error) or error from None
    return dp_accounting


@dataclass(frozen=True)
class RenyiCurve(Repeated):
    """The curve of T equal uses from the Rényi divergences of one: for each δ, the least ε over all orders.

    Source: Canonne, Kamath & Steinke (2020), "The Discrete Gaussian for Differential Privacy", arXiv:2004.00010v4,
    Proposition 12, as implemented in dp-accounting.
    """

    soundness: ClassVar[Soundness] = Soundness.UNPROVED

    def divergences(self) -> tuple[Array, Array]:
        """Return orders α > 1 and an upper bound on the divergence of one use for each."""
        raise NotImplementedError

    @cached_property
    def _composed(self) -> tuple[Any, Any]:
        absl = logging.getLogger("absl")
        disabled, absl.disabled = absl.disabled, True  # dp-accounting names every order that it leaves out
        try:
            orders, each = self.divergences()
        finally:
            absl.disabled = disabled
        return orders, self.uses * (np.maximum(each, 0.0) + LOG_MOMENT_ERROR / (orders - 1))

    def delta_at(self, epsilon: float) -> float:
        """Return the least δ over the orders."""
        check_epsilon(type(self).__name__, epsilon)
        if epsilon == math.inf:
            return 0.0
        return float(dp_accounting().rdp.rdp_privacy_accountant.compute_delta(*self._composed, epsilon)[0])

    def epsilon_at(self, delta: float) -> float:
        """Return the least ε over the orders; ``inf`` for δ = 0."""
        check_delta(type(self).__name__, delta)
        if delta == 0:
            return math.inf
        return float(dp_accounting().rdp.rdp_privacy_accountant.compute_epsilon(*self._composed, delta)[0])
