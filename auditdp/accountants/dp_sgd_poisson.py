"""DP-SGD with Poisson batches: bounds, and the accountants of other libraries.

One step adds N(0, σ²C²) to a sum of gradients that are clipped to norm C, over a batch
that contains each record with probability q. Neighbours add or remove one record. The
worst pair is attained: all other gradients are zero, and the record's always has norm
C. Divided by C, the outputs of a step are N(0, σ²) without the record and (1−q) N(0,
σ²) + q N(1, σ²) with it. The true curve is the larger of two compositions: that of with
against without (the record is removed), and that of without against with (it is added)
(Zhu, Dong & Wang 2022, "Optimal Accounting of Differential Privacy via Characteristic
Function", arXiv:2106.08567v3, Theorem 11).

When the record is removed, the loss of an output x is ln((1−q) + q e^((2x−1)/(2σ²))).
It increases in x, and is always above ln(1−q).

The numbers of Opacus' three accountants are not corrected, so that the cross-check can
show the result that a user of Opacus would get. Opacus 1.6.0 has a negative ε where the
true one is nearly zero (σ = 5, q = .001, 10 steps, δ = .05), and raises some errors.
Opacus is imported when a number is computed.
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
    """The curve of DP-SGD with sampled batches, from the worst pair of one step."""

    noise_multiplier: float
    sensitivity: ClassVar[float] = 1.0
    """Largest change of a sum of clipped gradients, divided by the clipping norm."""
    if TYPE_CHECKING:

        @property
        def rate(self) -> float:
            """The probability of a record to be in a batch."""

    @property
    def pair(self) -> SampledPair:
        """The worst pair of output laws of a step, with and without the record."""
        return SampledPair(self.noise_multiplier / self.sensitivity, self.rate)

    def loss_quantile(self, negligible: float) -> float:
        """Return a loss in nats that a step exceeds with a small probability.

        The probability is at most about ``negligible``, for a removed and for an added
        record.
        """
        return self.pair.loss_quantile(negligible)


class SampledLower(SampledCurve):
    """A lower bound on the curve of the attained pair, in both orders."""

    soundness = Soundness.LOWER

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return two losses of a step: when the record is removed, and when added."""
        ends = self.pair.half_way(negligible, interval)
        offset = interval / 2 - float(ends[0])
        return in_both_orders(*self.pair.cells(ends), interval, offset)


class PLDUpper(Poisson, SampledCurve):
    """An upper bound on the curve of the worst pair of DP-SGD with Poisson batches.

    Note:
        dp-accounting's privacy loss distribution connects the dots as well (see
        ``loss_grid``), but computes masses as differences of δ. This divides their
        rounding error by the distance of the points: for q <= 1e-6 it gives a bound
        that is many times too large, or none. It does not bound the error of its
        convolution.
    """

    soundness = Soundness.UPPER
    source = (
        "the worst pair (Zhu, Dong & Wang 2022, Theorem 11), by connecting the dots "
        "(arXiv:2207.04380v2)"
    )

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return two losses of a step: when the record is removed, and when added."""
        points = self.pair.points(negligible, interval)
        first, last, ends = int(points[0]), int(points[-1]), points * interval
        (low_with, high_with), (low, high) = self.pair.cells(ends)
        off = self.pair.rounding(ends)
        return [
            from_above(high_with, low, first, interval, rounding=off),
            from_above(high[::-1], low_with[::-1], -last, interval, rounding=off),
        ]


class PLDLower(Poisson, SampledLower):
    """A lower bound on the curve of the worst pair of DP-SGD with Poisson batches.

    Note:
        dp-accounting's optimistic estimate rounds every loss down. So it lies below the
        truth by half an interval of its grid for each step: for σ = 1, q = .01, 1,000
        steps and δ = 1e-5 its ε is 1.778, where this bound gives 1.828. It also adds
        1e-15 to δ, which is the wrong direction for a lower bound.
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
        """Return dp-accounting's orders, and its D_α of one step for each of them."""
        library = dp_accounting()
        noise = library.GaussianDpEvent(self.noise_multiplier)
        step = library.PoissonSampledDpEvent(self.rate, noise)
        accountant = library.rdp.RdpAccountant().compose(step)
        return accountant.orders, accountant.rdp


def poisson_accountants(
    noise_multiplier: float, rate: float, steps: int
) -> list[Accountant]:
    """Return every accountant of DP-SGD with Poisson batches, proved bounds first."""
    kinds = (PLDUpper, PLDLower, RDP, OpacusPRV, OpacusRDP, OpacusGDP)
    return [kind(noise_multiplier, rate, steps) for kind in kinds]


def deviations(negligible: float) -> float:
    """Return z with P(N > z) = ``negligible`` for a standard normal N.

    z is clipped to [1, 37].
    """
    return min(max(-float(ndtri(negligible)), 1.0), 37.0)


class SampledPair(NamedTuple):
    """The laws of a step without and with the record, for a gradient of norm C = 1.

    They are N(0, σ²) without the record, and (1−q) N(0, σ²) + q N(1, σ²) with it.
    """

    sigma: float
    rate: float

    def loss(self, output: Any) -> Any:
        """Return the losses of outputs in nats, with the record against without it."""
        exponent = (2 * output - 1) / (2 * self.sigma**2)
        # At rate 1 the logarithm of 1 − q does not exist.
        if self.rate == 1:
            return exponent
        log_rate = math.log(self.rate)
        # The sum of exponentials itself would overflow for a large exponent.
        return np.logaddexp(math.log1p(-self.rate), log_rate + exponent)

    def output_of(self, losses: Array) -> Array:
        """Return the outputs that have these losses, which have to be above ln(1−q)."""
        if self.rate == 1:
            return 0.5 + self.sigma**2 * losses
        beyond = losses - math.log1p(-self.rate)
        # (2x−1)/(2σ²) is the logarithm of 1 + (e^loss − 1)/q = (e^beyond − 1)(1−q)/q, in
        # which nothing cancels.
        log_ratio = beyond + np.log(-np.expm1(-beyond)) - logit(self.rate)
        return np.asarray(0.5 + self.sigma**2 * log_ratio)

    def loss_quantile(self, negligible: float) -> float:
        """Return a loss that an output of N(1, σ²) exceeds with a given probability.

        It is limited to the loss of outputs 1 to 37 deviations above the mean.
        """
        return float(self.loss(1 + deviations(negligible) * self.sigma))

    def points(self, negligible: float, interval: float) -> Array:
        """Return the points of a grid as multiples of ``interval``, ascending.

        A loss outside the grid has about the probability ``negligible``, or less.
        """
        reach = deviations(negligible) * self.sigma
        low, high = self.loss(np.array([-reach, 1 + reach])) / interval
        return np.arange(math.floor(low), math.ceil(high) + 1)

    def half_way(self, negligible: float, interval: float) -> Array:
        """Return losses at which cells end, half-way between the points of a grid.

        The losses ascend by ``interval``. The lowest point is the loss of the first
        cell as a whole, which has all losses below the first end. Losses are above
        ln(1−q), and many lie just above it. So there is no cell below the first one
        from which it could take a share (``centred``).
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
            ends: Ascending losses at which cells end, shape (n,). The first of the n +
                1 cells has all losses below the first end, the last cell all losses
                above the last end.
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
        # The rate may be a rounded quotient of counts, off by u, and then 1 − rate is
        # off by u as well.
        off = 2.0**-52 * rate * without[1]
        low = np.maximum(low * (1 - 2.0**-50) - off, 0.0)
        return (low, high * (1 + 2.0**-50) + off), without

    def rounding(self, ends: Array) -> float:
        """Return a bound on the distance of a loss from its cell, due to rounding.

        The loss of each edge is computed again: its exponent is off by 4u relatively,
        and the rest by 8u of its terms. The ends themselves may be rounded multiples of
        an interval, off by u.
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
    """One of Opacus' accountants; its ε is the unchanged ``get_epsilon(delta)``."""

    mechanism: ClassVar[str]

    def epsilon_at(self, delta: float) -> float:
        """Return Opacus' own ε, which may be negative.

        Raises:
            MissingExtraError: If Opacus is not installed.
            Exception: Any error that Opacus raises.
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
        """Limit the memory of Opacus' accountant; by default, do nothing."""

    def delta_at(self, epsilon: float) -> float:
        """Return a δ at which Opacus' ε is at most ``epsilon``, or 1.

        It is at least 1e-12, since Opacus may refuse a smaller δ. Apart from this limit
        it exceeds the smallest such δ by at most a relative 1e-9.
        """
        check_epsilon(type(self).__name__, epsilon)
        low = math.log(1e-12)
        if self._excess(low, epsilon) <= 0:
            return 1e-12
        # Opacus takes a second for each evaluation, and interpolation needs a third of
        # those of bisection.
        root = brentq(self._excess, low, 0.0, args=(epsilon,), xtol=2e-10)
        # The root is off by 2e-10 in either direction, and a smaller δ would miss ε.
        return math.exp(min(root + 5e-10, 0.0))

    def _excess(self, log_delta: float, epsilon: float) -> float:
        """Return Opacus' ε at δ = e^``log_delta``, minus ``epsilon``.

        Returns:
            The difference; −1 at δ = 1, which every mechanism meets; 1 if Opacus
            refuses δ.
        """
        if log_delta == 0:
            return -1.0
        try:
            return self.epsilon_at(math.exp(log_delta)) - epsilon
        # Opacus raises one of these errors if δ is too small for it.
        except (ValueError, RuntimeError):
            return 1.0


class OpacusRDP(Opacus):
    """Opacus' Rényi accountant, on its own orders."""

    mechanism = "rdp"
    soundness = Soundness.UNPROVED
    source = "Opacus, RDPAccountant (Mironov, Talwar & Zhang 2019, arXiv:1908.10530v1)"


class OpacusPRV(Opacus):
    """The upper end of the interval for ε of Opacus' PRV accountant.

    Note:
        Gopi, Lee & Wutschitz (2021), arXiv:2106.02848, prove their interval for a
        domain from which Opacus' source deviates slightly, and Opacus composes only one
        order of the pair. So the number proves nothing, although it is usually good.
    """

    mechanism = "prv"
    soundness = Soundness.APPROXIMATION
    source = "Opacus, PRVAccountant (Gopi, Lee & Wutschitz 2021, arXiv:2106.02848)"

    def limit(self, accountant: Any) -> None:
        """Make the accountant raise a ``StoppedError`` instead of using a huge grid.

        At the limit of points Opacus takes some 300 MB and 3 CPU seconds. Both grow
        with the number of points, to 13 GB and more.
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
    """The Gaussian DP of the central limit, μ = q √(T (e^(1/σ²) − 1)).

    It underestimates ε.

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
