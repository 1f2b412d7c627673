"""DP-SGD with Poisson batches: bounds, and the accountants of other libraries.

One step adds N(0, σ²C²) to a sum of gradients clipped to norm C, over a batch in which
each record is with probability q. Neighbours differ in one record that is there or not.
The worst pair is attained: all other gradients zero, that of the record always C. In
each step its outputs are N(0, σ²) against (1−q) N(0, σ²) + q N(1, σ²), one order when
the record is removed and the other when it is added, and the truth is the larger of
both compositions (Zhu, Dong & Wang 2022, "Optimal Accounting of Differential Privacy
via Characteristic Function", arXiv:2106.08567v3, Theorem 11).

The loss of an output x is ln((1−q) + q e^((2x−1)/(2σ²))), increasing, and never below
ln(1−q).

Opacus' three accountants return their own numbers. Nothing is corrected, so that the
cross-check can show the result that a user of Opacus would get: with Opacus 1.6.0 a
negative ε where the true one is nearly zero (σ = 5, q = .001, 10 steps, δ = .05), and
errors. Opacus is imported when a number is computed.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, logit, ndtri

from auditdp.accountants.accountant import Accountant, Soundness
from auditdp.accountants.concentrated import RenyiCurve, dp_accounting
from auditdp.accountants.dp_sgd_parameters import Poisson
from auditdp.accountants.loss_grid import (
    GridCurve,
    OnGrid,
    from_above,
    in_both_orders,
)
from auditdp.accountants.normal_quantiles import Enclosed, gaussian_cells
from auditdp.accountants.parameter_checks import check_delta, check_epsilon
from auditdp.accountants.root_finding import crossing
from auditdp.claims.statements import GaussianDP
from auditdp.errors import MissingExtraError, StoppedError
from auditdp.mechanism.protocol import Array


class SampledCurve(GridCurve):
    """The curve of steps on a sample, whose worst pair is put on a grid."""

    noise_multiplier: float
    sensitivity: ClassVar[float] = 1.0
    """The largest move of a sum of clipped gradients, over the clipping norm."""
    if TYPE_CHECKING:

        @property
        def rate(self) -> float:
            """The probability of a record to be in a batch."""

    @property
    def pair(self) -> SampledPair:
        """The worst pair of a step."""
        return SampledPair(self.noise_multiplier / self.sensitivity, self.rate)

    def loss_quantile(self, negligible: float) -> float:
        """Return the loss of the record's removal; that of its addition is smaller."""
        return self.pair.loss_quantile(negligible)


class SampledLower(SampledCurve):
    """The curve of the attained pair in both orders, rounded down."""

    soundness = Soundness.LOWER

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of a step when the record is removed, and when added."""
        ends = self.pair.half_way(negligible, interval)
        offset = interval / 2 - float(ends[0])
        return in_both_orders(*self.pair.cells(ends), interval, offset)


class PLDUpper(Poisson, SampledCurve):
    """The curve of the worst pair, rounded up.

    Note:
        dp-accounting's own distribution connects the same dots by differences of δ,
        whose rounding is divided by the distance of the points: at q = 1e-6 and less it
        gives a bound that is many times too large, or none. It does not bound the error
        of its convolution.
    """

    soundness = Soundness.UPPER
    source = (
        "the worst pair (Zhu, Dong & Wang 2022, Theorem 11), by connecting the dots "
        "(arXiv:2207.04380v2)"
    )

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of a step when the record is removed, and when added."""
        points = self.pair.points(negligible, interval)
        first, last, ends = int(points[0]), int(points[-1]), points * interval
        (low_with, high_with), (low, high) = self.pair.cells(ends)
        off = self.pair.rounding(ends)
        return [
            from_above(high_with, low, first, interval, rounding=off),
            from_above(high[::-1], low_with[::-1], -last, interval, rounding=off),
        ]


class PLDLower(Poisson, SampledLower):
    """The curve of the worst pair, rounded down.

    Note:
        dp-accounting's optimistic estimate rounds every loss down and so lies half an
        interval a step below the truth: 1.778 where this bound gives 1.828, for σ = 1,
        q = .01, 1,000 steps and δ = 1e-5. It also adds 1e-15 to δ, the wrong way.
    """

    source = "the attained pair (Zhu, Dong & Wang 2022, arXiv:2106.08567v3, Theorem 11)"


class RDP(Poisson, RenyiCurve):
    """dp-accounting's Rényi accountant: sound in real numbers, and loose.

    The errors of its series and of their rounding are not bounded.
    """

    source = (
        "dp-accounting 0.6, RDP (Mironov, Talwar & Zhang 2019, arXiv:1908.10530v1, "
        "Section 3.3)"
    )

    def divergences(self) -> tuple[Array, Array]:
        """Return dp-accounting's orders and the divergence of a step for each."""
        library = dp_accounting()
        noise = library.GaussianDpEvent(self.noise_multiplier)
        step = library.PoissonSampledDpEvent(self.rate, noise)
        accountant = library.rdp.RdpAccountant().compose(step)
        return accountant.orders, accountant.rdp


def poisson_accountants(
    noise_multiplier: float, rate: float, steps: int
) -> list[Accountant]:
    """Return every accountant of DP-SGD with Poisson batches, the tightest first."""
    kinds = (PLDUpper, PLDLower, RDP, OpacusPRV, OpacusRDP, OpacusGDP)
    return [kind(noise_multiplier, rate, steps) for kind in kinds]


def deviations(negligible: float) -> float:
    """Return the reach of a grid beyond which the probability is negligible.

    It is in standard deviations, from 1 to 37.
    """
    return min(max(-float(ndtri(negligible)), 1.0), 37.0)


class SampledPair(NamedTuple):
    """N(0, σ²) against (1−q) N(0, σ²) + q N(1, σ²), a sum without and with a record."""

    sigma: float
    rate: float

    def loss(self, output: Any) -> Any:
        """Return the privacy loss of outputs, in nats, when the record is removed."""
        exponent = (2 * output - 1) / (2 * self.sigma**2)
        if self.rate == 1:
            return exponent
        log_rate = math.log(self.rate)
        return np.logaddexp(math.log1p(-self.rate), log_rate + exponent)

    def output_of(self, losses: Array) -> Array:
        """Return the outputs that have these losses, all of them above ln(1−q)."""
        if self.rate == 1:
            return 0.5 + self.sigma**2 * losses
        beyond = losses - math.log1p(-self.rate)
        # (2x−1)/(2σ²) is the logarithm of 1 + (e^loss − 1)/q = (e^beyond − 1)(1−q)/q, in
        # which nothing cancels.
        log_ratio = beyond + np.log(-np.expm1(-beyond)) - logit(self.rate)
        return np.asarray(0.5 + self.sigma**2 * log_ratio)

    def loss_quantile(self, negligible: float) -> float:
        """Return the loss of tail probability ``negligible`` under the larger mean."""
        return float(self.loss(1 + deviations(negligible) * self.sigma))

    def points(self, negligible: float, interval: float) -> Array:
        """Return the numbers of a grid's points, from the least to the largest loss.

        The probability of losses outside is negligible.
        """
        reach = deviations(negligible) * self.sigma
        low, high = self.loss(np.array([-reach, 1 + reach])) / interval
        return np.arange(math.floor(low), math.ceil(high) + 1)

    def half_way(self, negligible: float, interval: float) -> Array:
        """Return ends of cells, half-way between points of a grid.

        The lowest point is the loss of the first cell as a whole: losses end at
        ln(1−q), and a good part of them lies just above, so that no cell below the
        first one could make its loss smaller.
        """
        reach = deviations(negligible) * self.sigma

        def gap(output: float) -> float:
            log_with = log_ndtr((output - 1) / self.sigma)
            share = math.exp(log_with - log_ndtr(output / self.sigma))
            loss_below = math.log1p(self.rate * (share - 1))
            return interval / 2 - float(self.loss(output)) + loss_below

        # The first end lies half an interval above the loss of the first cell as a whole,
        # if there is such a place.
        points = self.points(negligible, interval)
        first = (float(points[0]) + 0.5) * interval
        if self.rate < 1 and gap(-reach) > 0 >= gap(1 + reach):
            first = float(self.loss(crossing(gap, -reach, 1 + reach)))
        return first + np.arange(len(points)) * interval

    def cells(self, ends: Array) -> tuple[Enclosed, Enclosed]:
        """Return bounds on the masses of cells of losses, with and without the record.

        Args:
            ends: The ascending losses between the cells, shape (n,): the first of n + 1
                cells has the losses below them, the last those above.
        """
        # Below ln(1−q) there are no outputs.
        edges, possible = np.full(len(ends), -np.inf), self._possible(ends)
        edges[possible] = self.output_of(ends[possible])
        without = gaussian_cells(edges, 0.0, self.sigma)
        shifted = gaussian_cells(edges, 1.0, self.sigma)
        rate = self.rate
        low, high = (
            (1 - rate) * a + rate * b for a, b in zip(without, shifted, strict=True)
        )
        # A rate that is a quotient of counts is off by u, and so is the share of the
        # law without the record.
        off = 2.0**-52 * rate * without[1]
        low = np.maximum(low * (1 - 2.0**-50) - off, 0.0)
        return (low, high * (1 + 2.0**-50) + off), without

    def rounding(self, ends: Array) -> float:
        """Return the largest distance of losses of the cells' outputs beyond the ends.

        The loss of each edge is computed again: its exponent is off by 4u relatively,
        and the rest by 8u of its terms. The ends may have been multiples of an
        interval, off by u.
        """
        ends = ends[self._possible(ends)]
        edges = self.output_of(ends)
        exponents = (2 * edges - 1) / (2 * self.sigma**2)
        largest = 1 + float(np.abs(exponents).max()) + abs(math.log(self.rate))
        largest += float(np.abs(ends).max())
        if self.rate < 1:
            largest += abs(math.log1p(-self.rate))
        return float(np.abs(self.loss(edges) - ends).max()) + 2.0**-48 * largest

    def _possible(self, ends: Array) -> Any:
        if self.rate == 1:
            return np.full(len(ends), True)
        return ends > math.log1p(-self.rate)


class Opacus(Poisson):
    """One of Opacus' accountants: the unchanged number of ``get_epsilon(delta)``."""

    mechanism: ClassVar[str]

    def epsilon_at(self, delta: float) -> float:
        """Return Opacus' own ε, which may be negative.

        Raises:
            MissingExtraError: If Opacus is not installed.
            Exception: Any error of Opacus.
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
        """Limit the memory of Opacus' accountant; those of few orders take little."""

    def delta_at(self, epsilon: float) -> float:
        """Return a δ at which Opacus' ε is at most ``epsilon``, or 1.

        It is at least 1e-12, since Opacus refuses smaller ones, and within 1e-9 of the
        smallest such δ.
        """
        check_epsilon(type(self).__name__, epsilon)
        low = math.log(1e-12)
        if self._excess(low, epsilon) <= 0:
            return 1e-12
        # Opacus takes a second for each evaluation, and interpolation needs a third of
        # those of bisection.
        root = brentq(self._excess, low, 0.0, args=(epsilon,), xtol=2e-10)
        return math.exp(min(root + 5e-10, 0.0))

    def _excess(self, log_delta: float, epsilon: float) -> float:
        """Opacus' ε minus ``epsilon``; -1 at δ = 1, where no ε is lost."""
        if log_delta == 0:
            return -1.0
        try:
            return self.epsilon_at(math.exp(log_delta)) - epsilon
        # Opacus refuses some δ as too small.
        except (ValueError, RuntimeError):
            return 1.0


class OpacusRDP(Opacus):
    """The moments accountant on Opacus' own orders."""

    mechanism = "rdp"
    soundness = Soundness.UNPROVED
    source = "Opacus, RDPAccountant (Mironov, Talwar & Zhang 2019, arXiv:1908.10530v1)"


class OpacusPRV(Opacus):
    """The end of Opacus' interval for ε.

    Note:
        Gopi, Lee & Wutschitz (2021), arXiv:2106.02848, prove their interval on a domain
        that Opacus (according to its source) does not quite use, and Opacus composes
        one order of the pair only. So this proves nothing, good as it usually is.
    """

    mechanism = "prv"
    soundness = Soundness.APPROXIMATION
    source = "Opacus, PRVAccountant (Gopi, Lee & Wutschitz 2021, arXiv:2106.02848)"

    def limit(self, accountant: Any) -> None:
        """Make it raise a ``StoppedError`` instead of using a very large grid.

        At the limit Opacus takes some 300 MB and 3 CPU seconds; both grow with the
        points, to 13 GB and more.
        """
        max_points = 2**22
        choose_grid = accountant._get_domain

        def bounded(**options: Any) -> Any:
            grid = choose_grid(**options)
            if grid.size > max_points:
                raise StoppedError(
                    f"a grid of {grid.size:,} points is needed, and at most {max_points:,} are "
                    "computed"
                )
            return grid

        accountant._get_domain = bounded


class OpacusGDP(Opacus):
    """The central limit of many steps, μ = q √(T (e^(1/σ²) − 1)): it underestimates.

    Source: Bu, Dong, Long & Su (2020), "Deep Learning with Gaussian Differential
    Privacy", arXiv:1911.11607; Gopi, Lee & Wutschitz (2021), arXiv:2106.02848, show
    that it is no bound.
    """

    mechanism = "gdp"
    soundness = Soundness.APPROXIMATION
    source = "Opacus, GaussianAccountant (Bu, Dong, Long & Su 2020, arXiv:1911.11607)"

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε) of the same central limit, in closed form."""
        check_epsilon(type(self).__name__, epsilon)
        mu = self.rate * math.sqrt(self.steps * math.expm1(self.noise_multiplier**-2))
        return GaussianDP(mu).delta_at(epsilon)
