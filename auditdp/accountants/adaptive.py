"""Parts that are chosen one by one, each and its noise after all that was released before: what may be spent, and what was.

A part may be anything whose class is described; what it costs is known before it is released. Write L for the privacy loss
of all that was released on one of two neighbours, P, against the other, Q, and c_1, c_2, ... for the costs, each a function
of what came before it.

**Filters** keep a guarantee that was fixed beforehand, whatever was chosen, as long as Σ c_t never exceeds it.

- *Rényi and zero-concentrated DP* (c the D_α/α of a part, for one α or all): given the past, E_Q[(P_t/Q_t)^α] <=
  e^(α(α−1)c_t), so that e^(αL − α(α−1)Σc) is a supermartingale under Q that begins at 1, and E_Q[e^(αL)] <= e^(α(α−1)ρ) for
  the budget ρ (Feldman & Zrnic 2021, "Individual Privacy Accounting via a Rényi Filter", arXiv:2008.11193).
- *Gaussian DP* (c the μ² of a part): let δ_r(ε) be the curve of the budget r. With none left nothing is lost. Given that
  whoever has r − c left loses no more than δ_{r−c}, who first spends c loses, over the outputs y of that part with loss
  l(y), at most E_P[δ_{r−c}(ε − l(y))]. That is its composition with a pair of normal laws, and the largest for the pair
  that dominates the part, a normal one again: δ_r(ε) (Smith & Thakurta 2022, arXiv:2210.17520; Koskela, Tobaben & Honkela
  2022, arXiv:2209.15596). Here r − c depends on the past, but not on y, and induction over the number of parts is all.

**Odometers** bound the loss at all times at once: with probability 1 − δ under P, L <= ε_t after every t, so that who stops
at some time, chosen as one likes, with ε_t <= ε has kept (ε, δ)-DP (Rogers, Roth, Ullman & Vadhan 2016, arXiv:1605.08294).
With V = Σ c_t of zero-concentrated DP, e^(λ(L − V) − λ²V) is a supermartingale under P for every λ > 0. So is its mean over
λ = |N(0, 1/γ)|, which is at least √(γ/(γ + 2V)) e^(x²/(2(γ + 2V))) for x = L − V >= 0; by Ville's inequality

    L <= V + √((γ + 2V) (2 ln(1/δ) + ln(1 + 2V/γ)))  for all t at once, with probability 1 − δ

(Whitehouse, Ramdas, Rogers & Wu 2023, arXiv:2203.05481, have the like). It is the narrowest at V = ρ where
2ρ/γ = 2 ln(1/δ) + ln(1 + 2ρ/γ), and its root there some 8 % larger than 2√(ρ ln(1/δ)), which holds at one time alone.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from auditdp.accountants.base import AccountantError, check_positive, greatest
from auditdp.accountants.description import Description, around
from auditdp.accountants.zcdp import ZCDP
from auditdp.claims.curves import RenyiDP, ZeroConcentratedDP
from auditdp.claims.statements import GaussianDP
from auditdp.mechanism.laws import precision
from auditdp.mechanism.laws.balls import above, ball


class Spending:
    """What parts cost: μ² for Gaussian DP, D_α/α for Rényi DP of an order, ρ, its supremum, for zero-concentrated DP."""

    def __init__(self, kind: GaussianDP | RenyiDP | ZeroConcentratedDP) -> None:
        self.kind = kind
        self.spent = Fraction(0)
        self.adjacency = ""

    def cost(self, part: Description) -> Fraction:
        """Return what a part costs, rounded up.

        Raises:
            AccountantError: If that is not known, or other neighbours were meant before.
        """
        order, known = self.kind.order if isinstance(self.kind, RenyiDP) else None, []
        for one in around(part):
            if isinstance(self.kind, GaussianDP):
                known.append(one.gaussian)
                continue
            known.append(one.zcdp)
            _, most = one.concentrated(order)
            known += [Fraction(above(most))] if most.is_finite() else []
        if not (costs := [each for each in known if each is not None]):
            raise AccountantError(f"expected a part with a bound of the kind of {self.kind}, got {part.text}")
        if self.adjacency and self._asked(part) not in ("", self.adjacency):
            raise AccountantError(
                f"expected a part for neighbours that {self.adjacency}, as before, got one that is for: {part.adjacency}"
            )
        return min(costs)

    def spend(self, part: Description) -> None:
        """Count a part that will be released.

        Raises:
            AccountantError: If its cost is not known, or more than what is left. Nothing is spent then.
        """
        self.spent += self.cost(part)
        self.adjacency = self.adjacency or self._asked(part)

    @staticmethod
    def _asked(part: Description) -> str:
        """Which neighbours a part is for, if not any."""
        return "" if part.adjacency.startswith(("any", "as for the parts")) else part.adjacency


class Filter(Spending):
    """A budget that adaptive parts may spend, and keep ``kind`` together: what it does not afford must not be released.

    >>> from auditdp.accountants.gaussian import GaussianNoise
    >>> budget = Filter(GaussianDP(1.0))
    >>> for sigma in (2.0, 1.25, 3.0):  # or what the last release suggests
    ...     if budget.affords(GaussianNoise(sigma)):
    ...         budget.spend(GaussianNoise(sigma))
    >>> round(float(budget.spent), 2), budget.affords(GaussianNoise(3.0))
    (0.89, False)

    Args:
        kind: What is kept.
    """

    @classmethod
    def of(cls, epsilon: float, delta: float) -> Filter:
        """Return the filter of the largest ρ, rounded down, for which zero-concentrated DP implies (epsilon, delta)-DP."""
        check_positive("Filter.of", epsilon=epsilon, delta=delta)
        return cls(ZeroConcentratedDP(greatest(lambda rho: ZCDP(rho).delta_at(epsilon), delta)))

    @property
    def budget(self) -> Fraction:
        """What may be spent in all."""
        level = Fraction(self.kind.level)
        if isinstance(self.kind, RenyiDP):
            return level / Fraction(self.kind.order)
        return level**2 if isinstance(self.kind, GaussianDP) else level

    def affords(self, part: Description) -> bool:
        """Return whether a part may still be released."""
        return self.spent + self.cost(part) <= self.budget

    def spend(self, part: Description) -> None:
        """Count a part that will be released, if it is afforded."""
        if not self.affords(part):
            left = float(self.budget - self.spent)
            raise AccountantError(
                f"expected a part that costs {left:.6g} at most, got {part.text}; release nothing of it"
            )
        super().spend(part)


class Odometer(Spending):
    """What adaptive parts have lost so far, at all times at once, without a budget.

    >>> from auditdp.accountants.laplace import LaplaceNoise
    >>> odometer = Odometer(1e-6, expected=0.1)
    >>> for _ in range(100):
    ...     odometer.spend(LaplaceNoise(20.0))
    >>> round(odometer.epsilon, 2)
    2.93

    Args:
        delta: δ of all times together, in (0, 1).
        expected: The ρ at which the bound is to be the narrowest; it is chosen beforehand, and the bound holds at any other.
    """

    def __init__(self, delta: float, *, expected: float) -> None:
        check_positive("Odometer", delta=delta, expected=expected)
        if delta >= 1:
            raise AccountantError(f"Odometer: expected delta in (0, 1), got delta={delta!r}")
        super().__init__(ZeroConcentratedDP(expected))
        self.delta, twice, ratio = delta, -2 * math.log(delta), 1.0
        for _ in range(50):
            ratio = twice + math.log1p(ratio)
        self._gamma = 2 * expected / ratio

    @property
    def epsilon(self) -> float:
        """The bound on the loss so far, rounded up: who stops because of it keeps (epsilon, delta)-DP."""
        if not self.spent:
            return 0.0
        with precision():
            rho, gamma = ball(self.spent), arb(self._gamma)
            root = (gamma + 2 * rho) * (-2 * arb(self.delta).log() + (2 * rho / gamma).log1p())
            return above(rho + root.sqrt())
