"""Claims of a whole curve δ(ε): of an accountant, of Rényi DP and of zCDP.

The game bets against all statements of a curve at once
(`auditdp/betting/wealth/regions.py`). So a refutation of such a claim refutes the
curve, but not necessarily the one (ε, δ) that a paper quotes from the curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from auditdp.claims.claim import Claim, check_positive
from auditdp.claims.dominating import DominatingPair
from auditdp.errors import ClaimError
from auditdp.numerics.arrays import Floats, is_number

POINTS = 160
"""Number of epsilons at which a curve is evaluated for the statements of a claim."""
FLOOR = 1e-12
"""The points of a curve end at an ε at which δ is about this small.

For zCDP they end at a fixed number of standard deviations instead.
"""
STRENGTHS = 1.04 ** np.arange(-48.0, 17.0)
"""The claim's noise divided by the noise of each member of a family of curves."""
ORDERS = 1 + np.geomspace(1e-3, 1e4, 150)
"""Orders α: the δ that zCDP implies at an ε is the smallest one over them."""


@dataclass(frozen=True, eq=False)
class AccountedDP(Claim):
    """The whole privacy curve of an accountant, which bounds delta at every epsilon.

    The curve bounds delta in both orders of the neighbours. The level of a curve is its
    epsilon at the quoted delta. A family has curves for other amounts of noise, so an
    audit can refute other levels than the claimed one. Without a family, the claimed
    level is the only one. A level is refuted if its curve is exceeded at any epsilon.
    So a refuted level is no lower bound on the mechanism's epsilon at the quoted delta:
    the excess may be at another epsilon.

    Args:
        curve: A privacy curve: an accountant of this project (anything with
            ``delta_at(epsilon)``), a privacy loss distribution of dp-accounting (with
            ``get_delta_for_epsilon``), a function of epsilon, or a sequence of points
            (epsilon, delta).
        quoted: The delta at which epsilon is quoted.
        family: A function that takes a factor, and returns the curve of the same
            mechanism with its noise multiplied by that factor. A larger factor must
            give a smaller delta at every epsilon.
        source: The paper, theorem and version that states the claim.

    Raises:
        ClaimError: If ``quoted`` is not between 0 and 1, if ``curve`` is of another
            type, or if the curve never falls to the quoted delta, is 1 everywhere, or
            has a delta that is negative or not finite. Of a sequence of points, also if
            it is empty or has an epsilon < 0 or a delta > 1.

    >>> claim = AccountedDP([(0.0, 0.4), (1.0, 0.1), (2.0, 1e-3)], quoted=0.1)
    >>> round(claim.level, 6)
    1.0
    """

    curve: Any
    quoted: float = field(default=1e-5, kw_only=True)
    family: Callable[[float], Any] | None = field(default=None, kw_only=True)
    source: str = field(default="", kw_only=True)
    delta = None
    alternative = "the leakiest mechanism with a curve of this family"

    def __post_init__(self) -> None:
        if not (is_number(self.quoted) and 0 < self.quoted < 1):
            raise ClaimError(
                f"AccountedDP: expected quoted in (0, 1), got quoted={self.quoted!r}"
            )
        _ = self.level

    @property
    def levels(self) -> list[float]:  # type: ignore[override]  # it is only read
        """The levels of the family, ascending."""
        return [*self.members]

    @property
    def is_its_points(self) -> bool:
        """True if the curve is a list of points, which are then its only statements."""
        return isinstance(self.curve, Sequence | np.ndarray)

    def statements(self) -> Floats:
        """Return the points of the curve that are tested, shape (points, 2)."""
        return self._points

    @cached_property
    def _points(self) -> Floats:
        if self.is_its_points:
            try:
                points = np.asarray(self.curve, dtype=np.float64)
            except (TypeError, ValueError):
                raise ClaimError(
                    f"AccountedDP: expected points (epsilon, delta), got {self.curve!r:.200}"
                ) from None
            # It raises if they are no statements.
            DominatingPair.of(points)
            return points
        delta_at = _delta_at(self.curve)
        end = 1.0
        # e^ε overflows beyond 709.
        while end < 700 and delta_at(end) > FLOOR:
            end *= 1.5
        # Dense near 0, where a test distinguishes the most.
        epsilons = end * np.linspace(0.0, 1.0, POINTS) ** 1.5
        deltas = np.array([delta_at(epsilon) for epsilon in epsilons.tolist()])
        if not (np.isfinite(deltas).all() and (deltas >= 0).all()):
            raise ClaimError(
                "AccountedDP: expected delta >= 0 at every epsilon, got "
                f"{deltas.tolist()!r:.200}"
            )
        informative = deltas < 1
        if not informative.any():
            raise ClaimError(
                "AccountedDP: the curve promises nothing: delta is 1 at every epsilon"
            )
        return np.stack([epsilons[informative], deltas[informative]], axis=1)

    @cached_property
    def level(self) -> float:
        """The smallest epsilon at which the statements imply delta <= ``quoted``."""
        # Beyond the largest log-odds δ is constant.
        log_odds = self._pair.log_odds
        low, high = 0.0, float(log_odds[np.isfinite(log_odds)].max()) + 1e-9
        if self.delta_at(high) > self.quoted:
            raise ClaimError(
                f"AccountedDP: the curve does not fall to the quoted delta {self.quoted!r}; "
                "quote a larger one"
            )
        while high - low > 1e-12 * max(high, 1.0):
            middle = (low + high) / 2
            if self.delta_at(middle) <= self.quoted:
                high = middle
            else:
                low = middle
        return high

    @cached_property
    def members(self) -> dict[float, AccountedDP]:
        """This claim and those of its family, keyed by level in ascending order."""
        members = {self.level: self}
        if self.family is not None:
            for strength in STRENGTHS.tolist():
                if strength != 1:
                    member = replace(self, curve=self.family(1 / strength))
                    members[member.level] = member
        return dict(sorted(members.items()))

    def at(self, level: float) -> AccountedDP:
        """Return the member of the family at one of its levels.

        Raises:
            ClaimError: If the family has no such level.
        """
        if level not in self.members:
            raise ClaimError(
                f"AccountedDP: no member of the family has level {level!r}; known are "
                f"{[*self.members]!r:.200}"
            )
        return self.members[level]

    def __str__(self) -> str:
        return f"the curve through ({self.level:.6g}, {self.quoted:.3g})-DP"


@dataclass(frozen=True)
class ZeroConcentratedDP(Claim):
    """rho-zero-concentrated differential privacy, through the curve it implies.

    The tested curve is δ(ε) = inf over α > 1 of e^((α-1)(αρ-ε)) (1-1/α)^α/(α-1),
    Proposition 12 of Canonne, Kamath & Steinke (2020, arXiv:2004.00010). A mechanism
    may satisfy this curve without being rho-zCDP, so an audit cannot refute every false
    claim.

    Args:
        rho: The claimed rho; finite and positive.
        source: The paper, theorem and version that states the claim.

    Raises:
        ClaimError: If rho is not a positive finite number.
    """

    rho: float
    source: str = field(default="", kw_only=True)
    delta = None
    parameter = "rho"
    recorded_by = ("rho",)
    alternative = "the leakiest mechanism with this curve"

    def __post_init__(self) -> None:
        check_positive("ZeroConcentratedDP", "rho", self.rho)

    def statements(self) -> Floats:
        """Return points of the implied curve, by increasing epsilon, shape (points, 2).

        Points with a delta of 1 are left out.
        """
        # Gaussian noise of this ρ has losses with this standard deviation around ρ.
        spread = math.sqrt(2 * self.rho)
        epsilons = self.rho + np.linspace(-self.rho, 6.5 * spread, POINTS)
        return _implied(epsilons, ORDERS * self.rho, ORDERS)

    def __str__(self) -> str:
        return f"{self.rho:.6g}-zCDP"


@dataclass(frozen=True)
class RenyiDP(Claim):
    """(order, epsilon)-Rényi differential privacy, through the curve it implies.

    The tested curve is δ(ε') = e^((α-1)(ε-ε')) (1-1/α)^α/(α-1) for this one order α
    (Canonne, Kamath & Steinke 2020, arXiv:2004.00010, Proposition 12). A mechanism may
    satisfy this curve without being (α, ε)-RDP, so an audit cannot refute every false
    claim.

    Args:
        order: The order alpha, above 1.
        epsilon: The claimed Rényi divergence of that order, in nats; finite and
            positive.
        source: The paper, theorem and version that states the claim.

    Raises:
        ClaimError: If the order is not above 1, or epsilon is not a positive finite
            number.
    """

    order: float
    epsilon: float
    source: str = field(default="", kw_only=True)
    delta = None
    bounds = "divergence of that order"
    alternative = "the leakiest mechanism with this curve"

    def __post_init__(self) -> None:
        check_positive("RenyiDP", "epsilon", self.epsilon)
        if not (is_number(self.order) and 1 < self.order < math.inf):
            raise ClaimError(
                f"RenyiDP: expected a finite order > 1, got order={self.order!r}"
            )

    def statements(self) -> Floats:
        """Return points of the implied curve, by increasing epsilon, shape (points, 2).

        Points with a delta of 1 are left out.
        """
        end = self.epsilon + math.log(1 / FLOOR) / (self.order - 1)
        epsilons = np.linspace(0.0, end, POINTS)
        return _implied(epsilons, np.array([self.epsilon]), np.array([self.order]))

    def __str__(self) -> str:
        return f"({self.order:.6g}, {self.epsilon:.6g})-RDP"


def _implied(epsilons: Floats, divergences: Floats, orders: Floats) -> Floats:
    """Return points (ε, δ) with δ < 1 of the curve that Rényi divergences imply.

    Args:
        epsilons: The epsilons of the points, shape (points,).
        divergences: The Rényi divergence of each order, shape (orders,).
        orders: The orders α. The smallest δ over them is the δ of a point.
    """
    logs = (
        (orders - 1) * (divergences - epsilons[:, None])
        + orders * np.log1p(-1 / orders)
        - np.log(orders - 1)
    ).min(axis=1)
    # A point with δ = 1 promises nothing.
    informative = logs < -1e-9
    return np.stack([epsilons[informative], np.exp(logs[informative])], axis=1)


def _delta_at(curve: Any) -> Callable[[float], float]:
    for name in ("delta_at", "get_delta_for_epsilon"):
        if hasattr(curve, name):
            return lambda epsilon: float(getattr(curve, name)(epsilon))
    if callable(curve):
        return lambda epsilon: float(curve(epsilon))
    raise ClaimError(
        "AccountedDP: expected a curve with delta_at(epsilon) or "
        "get_delta_for_epsilon(epsilon), a function of epsilon, or points (epsilon, delta), "
        f"got {curve!r:.200}"
    )
