"""Promises of a whole curve δ(ε): what an accountant computes for a mechanism, and what Rényi and concentrated DP imply.

They are statements for the game, which bets against a whole curve at once (`auditdp/betting/wealth/regions.py`): what
refutes such a claim refutes the curve, and not necessarily the one (ε, δ) that is quoted from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from auditdp.claims.claim import Claim, check_positive
from auditdp.claims.dominating import DominatingPair
from auditdp.errors import ClaimError

POINTS = 160
"""Points of a curve that a claim is made of."""
FLOOR = 1e-12
"""δ below which nothing more is asked of a curve."""
MOST_EPSILON = 700.0
STRENGTHS = 1.04 ** np.arange(-48.0, 17.0)
"""Noise of the claim over noise of each member of a family of curves."""
ORDERS = 1 + np.geomspace(1e-3, 1e4, 150)


@dataclass(frozen=True, eq=False)
class AccountedDP(Claim):
    """The whole privacy curve of an accountant: for every epsilon, delta is at most what it says, in both orders.

    Levels are members of a family of curves, in which the noise is multiplied by a factor, by their epsilon at the quoted
    delta; where no family is given, the claim's is the only one. A level that is refuted says that its curve is exceeded
    somewhere, so it is no bound on the mechanism's epsilon at the quoted delta.

    Args:
        curve: A privacy curve: an accountant of this project (anything with ``delta_at(epsilon)``), a privacy loss
            distribution of dp-accounting (with ``get_delta_for_epsilon``), a function of epsilon, or a sequence of
            points (epsilon, delta).
        quoted: The delta at which epsilon is quoted.
        family: For a factor, the curve of the same mechanism with that many times the noise; more noise allows less.
        source: Where the claim is stated: paper, theorem, version.

    Raises:
        ClaimError: If the curve is none, never falls to the quoted delta, or has values that are no probabilities.

    >>> claim = AccountedDP([(0.0, 0.4), (1.0, 0.1), (2.0, 1e-3)], quoted=0.1)
    >>> round(claim.level, 6)
    1.0
    """

    curve: Any
    quoted: float = field(default=1e-5, kw_only=True)
    family: Callable[[float], Any] | None = field(default=None, kw_only=True)
    source: str = field(default="", kw_only=True)
    delta: ClassVar[float | None] = None
    alternative: ClassVar[str] = "the leakiest mechanism with a curve of this family"

    def __post_init__(self) -> None:
        if not 0 < self.quoted < 1:
            raise ClaimError(
                f"AccountedDP: expected quoted in (0, 1), got quoted={self.quoted!r}"
            )
        _ = self.level

    @property
    def levels(self) -> list[float]:  # type: ignore[override]  # which is read alone
        """The levels of the family."""
        return [*self.members]

    @property
    def is_its_points(self) -> bool:
        """Whether the curve is given by points, and says nothing between them."""
        return isinstance(self.curve, Sequence | np.ndarray)

    @cached_property
    def _points(self) -> NDArray[np.float64]:
        return _points(self.curve)

    def statements(self) -> NDArray[np.float64]:
        """Return points of the curve, shape (points, 2): what they promise is all that is bet against."""
        return self._points

    @cached_property
    def level(self) -> float:
        """Epsilon at the quoted delta."""
        return _epsilon_at(self._pair, self.quoted)

    @cached_property
    def members(self) -> dict[float, AccountedDP]:
        """The claims of the family by their levels, this one among them."""
        made = {self.level: self}
        if self.family is not None:
            for strength in STRENGTHS:
                if not math.isclose(strength, 1.0):
                    member = replace(self, curve=self.family(1 / float(strength)))
                    made[member.level] = member
        return dict(sorted(made.items()))

    def at(self, level: float) -> AccountedDP:
        """Return the member of the family at one of its levels.

        Raises:
            ClaimError: If the family has no such level.
        """
        if level not in self.members:
            raise ClaimError(
                f"AccountedDP: no member of the family has level {level!r}; known are {[*self.members]!r:.200}"
            )
        return self.members[level]

    def __str__(self) -> str:
        return f"the curve through ({self.level:.6g}, {self.quoted:.3g})-DP"


@dataclass(frozen=True)
class ZeroConcentratedDP(Claim):
    """rho-zero-concentrated differential privacy, through the best known curve that it implies.

    What is bet against is δ(ε) = inf over α > 1 of e^((α-1)(αρ-ε)) (1-1/α)^α/(α-1), Proposition 12 of Canonne, Kamath &
    Steinke (2020, arXiv:2004.00010). A pair may satisfy it and not be rho-zCDP, so less is refuted than the claim
    says.

    Args:
        rho: The claimed rho; finite and positive.
        source: Where the claim is stated: paper, theorem, version.

    Raises:
        ClaimError: If rho is not a positive finite number.
    """

    rho: float
    source: str = field(default="", kw_only=True)
    delta: ClassVar[float | None] = None
    parameter: ClassVar[str] = "rho"
    recorded_by: ClassVar[tuple[str, ...]] = ("rho",)
    alternative: ClassVar[str] = "the leakiest mechanism with this curve"

    def __post_init__(self) -> None:
        check_positive("ZeroConcentratedDP", "rho", self.rho)

    def statements(self) -> NDArray[np.float64]:
        """Return points of the curve that it implies, from epsilon = 0 on, shape (points, 2)."""
        spread = math.sqrt(2 * self.rho)
        epsilons = self.rho + np.linspace(-self.rho, 6.5 * spread, POINTS)
        return _implied(epsilons, ORDERS * self.rho)

    def __str__(self) -> str:
        return f"{self.rho:.6g}-zCDP"


@dataclass(frozen=True)
class RenyiDP(Claim):
    """(order, epsilon)-Rényi differential privacy, through the best known curve that it implies.

    What is bet against is δ(ε') = e^((α-1)(ε-ε')) (1-1/α)^α/(α-1) for this one order α (Canonne, Kamath & Steinke 2020,
    arXiv:2004.00010, Proposition 12). A pair may satisfy it and not be (α, ε)-RDP, so less is refuted than the claim says.

    Args:
        order: The order alpha, above 1.
        epsilon: The claimed Rényi divergence of that order, in nats; finite and positive.
        source: Where the claim is stated: paper, theorem, version.

    Raises:
        ClaimError: If the order is not above 1, or epsilon is not a positive finite number.
    """

    order: float
    epsilon: float
    source: str = field(default="", kw_only=True)
    delta: ClassVar[float | None] = None
    bounds: ClassVar[str] = "divergence of that order"
    alternative: ClassVar[str] = "the leakiest mechanism with this curve"

    def __post_init__(self) -> None:
        check_positive("RenyiDP", "epsilon", self.epsilon)
        if not (self.order > 1 and math.isfinite(self.order)):
            raise ClaimError(
                f"RenyiDP: expected a finite order > 1, got order={self.order!r}"
            )

    def statements(self) -> NDArray[np.float64]:
        """Return points of the curve that it implies, from epsilon = 0 on, shape (points, 2)."""
        epsilons = np.linspace(
            0.0, self.epsilon + math.log(1 / FLOOR) / (self.order - 1), POINTS
        )
        return _implied(epsilons, np.array([self.epsilon]), np.array([self.order]))

    def __str__(self) -> str:
        return f"({self.order:.6g}, {self.epsilon:.6g})-RDP"


def _implied(
    epsilons: NDArray[np.float64],
    divergences: NDArray[np.float64],
    orders: NDArray[np.float64] = ORDERS,
) -> NDArray[np.float64]:
    """Return the smallest δ over some orders at each ε, where it is below 1, with a last point of no promise left out."""
    logs = (
        (orders - 1) * (divergences - epsilons[:, None])
        + orders * np.log1p(-1 / orders)
        - np.log(orders - 1)
    ).min(axis=1)
    kept = logs < -1e-9
    return np.stack([epsilons[kept], np.exp(logs[kept])], axis=1)


def _points(curve: Any) -> NDArray[np.float64]:
    """Return points (epsilon, delta) of a curve, so far out that next to nothing is left."""
    if isinstance(curve, Sequence | np.ndarray):
        points = np.asarray(curve, dtype=np.float64)
        DominatingPair.of(points)  # says what is wrong with them
        return points
    delta_at = _delta_at(curve)
    end = 1.0
    while end < MOST_EPSILON and delta_at(end) > FLOOR:
        end *= 1.5
    # Dense near 0, where most of what can be told lies.
    epsilons = end * np.linspace(0.0, 1.0, POINTS) ** 1.5
    deltas = np.array([delta_at(float(epsilon)) for epsilon in epsilons])
    if not (np.isfinite(deltas).all() and (deltas >= 0).all()):
        raise ClaimError(
            f"AccountedDP: expected delta >= 0 at every epsilon, got {deltas.tolist()!r:.200}"
        )
    kept = deltas < 1
    if not kept.any():
        raise ClaimError(
            "AccountedDP: the curve promises nothing: delta is 1 at every epsilon"
        )
    return np.stack([epsilons[kept], deltas[kept]], axis=1)


def _delta_at(curve: Any) -> Callable[[float], float]:
    for name in ("delta_at", "get_delta_for_epsilon"):
        if hasattr(curve, name):
            return lambda epsilon: float(getattr(curve, name)(epsilon))
    if callable(curve):
        return lambda epsilon: float(curve(epsilon))
    raise ClaimError(
        f"AccountedDP: expected a curve with delta_at(epsilon) or get_delta_for_epsilon(epsilon), a function of epsilon, or "
        f"points (epsilon, delta), got {curve!r:.200}"
    )


def _epsilon_at(pair: DominatingPair, delta: float) -> float:
    """Return the smallest epsilon at which a pair needs no more than a delta."""
    finite = pair.log_odds[np.isfinite(pair.log_odds)]
    low, high = 0.0, float(finite.max()) + 1e-9
    if pair.hockey_stick(high) > delta:
        raise ClaimError(
            f"AccountedDP: the curve does not fall to the quoted delta {delta!r}; quote a larger one"
        )
    while high - low > 1e-12 * max(high, 1.0):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if pair.hockey_stick(middle) <= delta else (middle, high)
        )
    return high
