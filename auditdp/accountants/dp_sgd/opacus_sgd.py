"""What Opacus' three accountants say of DP-SGD, in their own numbers.

Nothing is corrected here, so that the cross-check can show what a user of Opacus would be told: with Opacus 1.6.0 a negative
ε where the true one is nearly zero (σ = 5, q = .001, 10 steps, δ = .05), and errors. Opacus is imported when a number is
asked for.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

from scipy.optimize import brentq

from auditdp.accountants.base import Soundness, check_delta, check_epsilon
from auditdp.accountants.dp_sgd.parameters import Poisson
from auditdp.claims.statements import GaussianDP
from auditdp.errors import MissingExtraError, StoppedError

MOST_POINTS = 2**22
"""Points of a grid with which Opacus takes some 300 MB and 3 CPU seconds; both grow with them, to 13 GB and more."""
LEAST_DELTA = 1e-12
"""Where the search for δ begins: Opacus refuses smaller ones."""


@dataclass(frozen=True)
class Opacus(Poisson):
    """One of Opacus' accountants: the number that ``get_epsilon(delta)`` returns, whatever it is."""

    mechanism: ClassVar[str]

    def epsilon_at(self, delta: float) -> float:
        """Return Opacus' own ε, which may be negative.

        Raises:
            MissingExtraError: If Opacus is not installed.
            Exception: Whatever Opacus raises.
        """
        check_delta(type(self).__name__, delta)
        try:
            from opacus.accountants import create_accountant
        except ModuleNotFoundError as error:
            raise MissingExtraError.of(error) or error from None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            accountant: Any = create_accountant(self.mechanism)
            accountant.history = [(self.noise_multiplier, self.rate, self.steps)]
            self.limit(accountant)
            return float(accountant.get_epsilon(delta))

    def limit(self, accountant: Any) -> None:
        """Make Opacus' accountant raise before it takes more than some memory; those of few orders take little."""

    def delta_at(self, epsilon: float) -> float:
        """Return a δ of at least 1e-12 at which Opacus' ε is at most ``epsilon``, within 1e-9 of the smallest; else 1."""
        check_epsilon(type(self).__name__, epsilon)
        low = math.log(LEAST_DELTA)
        if self._excess(low, epsilon) <= 0:
            return LEAST_DELTA
        # Opacus takes a second for each question: interpolation asks a third as often as bisection.
        found = brentq(self._excess, low, 0.0, args=(epsilon,), xtol=2e-10)
        return math.exp(min(found + 5e-10, 0.0))

    def _excess(self, log_delta: float, epsilon: float) -> float:
        """How far Opacus' ε lies above ``epsilon``; -1 at δ = 1, where no ε is lost."""
        if log_delta == 0:
            return -1.0
        try:
            return self.epsilon_at(math.exp(log_delta)) - epsilon
        except (ValueError, RuntimeError):  # Opacus refuses some δ that it takes for too small
            return 1.0


@dataclass(frozen=True)
class OpacusRDP(Opacus):
    """The moments accountant on Opacus' own orders."""

    mechanism: ClassVar[str] = "rdp"
    soundness: ClassVar[Soundness] = Soundness.UNPROVED
    source: ClassVar[str] = "Opacus, RDPAccountant (Mironov, Talwar & Zhang 2019, arXiv:1908.10530v1)"


@dataclass(frozen=True)
class OpacusPRV(Opacus):
    """The end of Opacus' interval for ε.

    Note:
        Gopi, Lee & Wutschitz (2021), arXiv:2106.02848, prove their interval on a domain that Opacus (as its source says)
        does not quite use, and Opacus composes one order of the pair only. So this proves nothing, good as it usually is.
    """

    mechanism: ClassVar[str] = "prv"
    soundness: ClassVar[Soundness] = Soundness.APPROXIMATION
    source: ClassVar[str] = "Opacus, PRVAccountant (Gopi, Lee & Wutschitz 2021, arXiv:2106.02848)"

    def limit(self, accountant: Any) -> None:
        """Make it raise a ``StoppedError`` where its grid would have more than ``MOST_POINTS``."""
        chosen = accountant._get_domain

        def bounded(**asked: Any) -> Any:
            grid = chosen(**asked)
            if grid.size > MOST_POINTS:
                raise StoppedError(
                    f"a grid of {grid.size:,} points is needed, and at most {MOST_POINTS:,} are computed"
                )
            return grid

        accountant._get_domain = bounded


@dataclass(frozen=True)
class OpacusGDP(Opacus):
    """The central limit of many steps, μ = q √(T (e^(1/σ²) − 1)): it underestimates.

    Source: Bu, Dong, Long & Su (2020), "Deep Learning with Gaussian Differential Privacy", arXiv:1911.11607; that it is no
    bound is shown by Gopi, Lee & Wutschitz (2021), arXiv:2106.02848.
    """

    mechanism: ClassVar[str] = "gdp"
    soundness: ClassVar[Soundness] = Soundness.APPROXIMATION
    source: ClassVar[str] = "Opacus, GaussianAccountant (Bu, Dong, Long & Su 2020, arXiv:1911.11607)"

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε) of the same central limit, in closed form."""
        check_epsilon(type(self).__name__, epsilon)
        mu = self.rate * math.sqrt(self.steps * math.expm1(self.noise_multiplier**-2))
        return GaussianDP(mu).delta_at(epsilon)
