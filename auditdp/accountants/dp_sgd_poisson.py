"""DP-SGD with Poisson batches: how tightly its curve is known.

One step adds N(0, σ²C²) to a sum of gradients clipped to norm C, over a batch in which each record is with probability q.
Neighbours differ in one record that is there or not. The worst pair is attained: all other gradients zero, that of the
record always C. In each step its outputs are N(0, σ²) against (1−q) N(0, σ²) + q N(1, σ²), one order when the record is
removed and the other when it is added, and the truth is the larger of both compositions (Zhu, Dong & Wang 2022, "Optimal
Accounting of Differential Privacy via Characteristic Function", arXiv:2106.08567v3, Theorem 11).

One noisy sum over a sampled batch: N(0, σ²) against (1−q) N(0, σ²) + q N(1, σ²), exactly and on a grid.

The loss of an output x is ln((1−q) + q e^((2x−1)/(2σ²))), increasing, and never below ln(1−q).

What Opacus' three accountants say of DP-SGD, in their own numbers.

Nothing is corrected here, so that the cross-check can show what a user of Opacus would be told: with Opacus 1.6.0 a negative
ε where the true one is nearly zero (σ = 5, q = .001, 10 steps, δ = .05), and errors. Opacus is imported when a number is
asked for.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, logit, ndtri

from auditdp.accountants.accountant import (
    Accountant,
    Soundness,
    check_delta,
    check_epsilon,
    crossing,
)
from auditdp.accountants.concentrated import RenyiCurve, dp_accounting
from auditdp.accountants.dp_sgd_parameters import Poisson
from auditdp.accountants.loss_grid import GridCurve, OnGrid, from_above, from_below
from auditdp.accountants.normal_quantiles import Enclosed, gaussian_cells
from auditdp.claims.statements import GaussianDP
from auditdp.errors import MissingExtraError, StoppedError
from auditdp.mechanism.protocol import Array


@dataclass(frozen=True)
class _StepOnGrid(Poisson, GridCurve):
    """What both bounds share."""

    def largest_loss(self, negligible: float) -> float:
        """Return the loss of the record's removal; that of its addition is the smaller one."""
        return largest_loss(self.noise_multiplier, self.rate, negligible)


@dataclass(frozen=True)
class PLDUpper(_StepOnGrid):
    """The curve of the worst pair, rounded up.

    Note:
        dp-accounting's own distribution connects the same dots by differences of δ, whose rounding is divided by the
        distance of the points: at q = 1e-6 and less it gives a bound that is many times too large, or none. Its convolution
        does not say what it loses.
    """

    soundness: ClassVar[Soundness] = Soundness.UPPER
    source: ClassVar[str] = (
        "the worst pair (Zhu, Dong & Wang 2022, Theorem 11), by connecting the dots (arXiv:2207.04380v2)"
    )

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of a step when the record is removed, and when it is added."""
        at = points(self.noise_multiplier, self.rate, negligible, interval)
        (low_with, high_with), (low, high) = cells(
            self.noise_multiplier, self.rate, at * interval
        )
        off = rounding(self.noise_multiplier, self.rate, at * interval)
        removed = from_above(high_with, low, int(at[0]), interval, rounding=off)
        return [
            removed,
            from_above(
                high[::-1], low_with[::-1], -int(at[-1]), interval, rounding=off
            ),
        ]


@dataclass(frozen=True)
class PLDLower(_StepOnGrid):
    """The curve of the worst pair, rounded down.

    Note:
        dp-accounting's optimistic estimate rounds every loss down and so lies half an interval a step below the truth: 1.778
        where this bound gives 1.828, for σ = 1, q = .01, 1,000 steps and δ = 1e-5. It also adds 1e-15 to δ, the wrong way.
    """

    soundness: ClassVar[Soundness] = Soundness.LOWER
    source: ClassVar[str] = (
        "the attained pair (Zhu, Dong & Wang 2022, arXiv:2106.08567v3, Theorem 11)"
    )

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of a step when the record is removed, and when it is added."""
        return removed_and_added(self.noise_multiplier, self.rate, negligible, interval)


@dataclass(frozen=True)
class RDP(Poisson, RenyiCurve):
    """dp-accounting's Rényi accountant: sound in real numbers, and loose; its series and their rounding are not bounded."""

    source: ClassVar[str] = (
        "dp-accounting 0.6, RDP (Mironov, Talwar & Zhang 2019, arXiv:1908.10530v1, Section 3.3)"
    )

    def divergences(self) -> tuple[Array, Array]:
        """Return dp-accounting's orders and the divergence of a step for each."""
        library = dp_accounting()
        step = library.PoissonSampledDpEvent(
            self.rate, library.GaussianDpEvent(self.noise_multiplier)
        )
        accountant = library.rdp.RdpAccountant().compose(step)
        return accountant.orders, accountant.rdp


def removed_and_added(
    noise_multiplier: float, rate: float, negligible: float, interval: float
) -> list[OnGrid]:
    """Return lower bounds on the loss of the attained pair in both orders."""
    ends = half_way(noise_multiplier, rate, negligible, interval)
    (low_with, high_with), (low_without, high_without) = cells(
        noise_multiplier, rate, ends
    )
    point = float(ends[0]) - interval / 2
    return [
        from_below(one, other, interval, -sign * point % interval)
        for one, other, sign in (
            (low_with, high_without, 1),
            (low_without, high_with, -1),
        )
    ]


def poisson_accountants(
    noise_multiplier: float, rate: float, steps: int
) -> list[Accountant]:
    """Return every accountant of DP-SGD with Poisson batches, Opacus' among them, tightest first."""
    kinds = (PLDUpper, PLDLower, RDP, OpacusPRV, OpacusRDP, OpacusGDP)
    return [kind(noise_multiplier, rate, steps) for kind in kinds]


def deviations(negligible: float) -> float:
    """Return how far out, in standard deviations, a grid reaches that may leave out such a probability."""
    return min(max(-float(ndtri(negligible)), 1.0), 37.0)


def loss(output: Any, noise_multiplier: float, rate: float) -> Any:
    """Return the privacy loss of outputs, in nats, when the record is removed."""
    exponent = (2 * output - 1) / (2 * noise_multiplier**2)
    return (
        np.logaddexp(math.log1p(-rate), math.log(rate) + exponent)
        if rate < 1
        else exponent
    )


def output_of(
    losses: Array, noise_multiplier: float, rate: float
) -> NDArray[np.float64]:
    """Return the outputs that have these losses, all of them above ln(1−q)."""
    if rate == 1:
        return np.asarray(0.5 + noise_multiplier**2 * losses)
    beyond = losses - math.log1p(-rate)
    # 1 + (e^loss − 1)/q = (e^beyond − 1)(1−q)/q, in which nothing cancels.
    return np.asarray(
        0.5 + noise_multiplier**2 * (beyond + np.log(-np.expm1(-beyond)) - logit(rate))
    )


def largest_loss(noise_multiplier: float, rate: float, negligible: float) -> float:
    """Return the loss that is exceeded with the probability ``negligible`` under the larger mean."""
    return float(
        loss(1 + deviations(negligible) * noise_multiplier, noise_multiplier, rate)
    )


def points(
    noise_multiplier: float, rate: float, negligible: float, interval: float
) -> NDArray[np.int64]:
    """Return the numbers of the points of a grid from the least loss, or so far out, to the largest."""
    reach = deviations(negligible) * noise_multiplier
    low, high = loss(np.array([-reach, 1 + reach]), noise_multiplier, rate) / interval
    return np.arange(math.floor(low), math.ceil(high) + 1)


def half_way(
    noise_multiplier: float, rate: float, negligible: float, interval: float
) -> NDArray[np.float64]:
    """Return ends of cells, half-way between points of a grid, of which the lowest is the loss of the first cell as a whole.

    Losses end at ln(1−q), and a good part of them lies just above: no cell below the first one could make its loss smaller.
    """
    reach = deviations(negligible) * noise_multiplier

    def gap(output: float) -> float:
        share = math.exp(
            log_ndtr((output - 1) / noise_multiplier)
            - log_ndtr(output / noise_multiplier)
        )
        return (
            interval / 2
            - float(loss(output, noise_multiplier, rate))
            + math.log1p(rate * (share - 1))
        )

    numbers = points(noise_multiplier, rate, negligible, interval)
    first = (float(numbers[0]) + 0.5) * interval
    if rate < 1 and gap(-reach) > 0 >= gap(1 + reach):
        first = float(loss(crossing(gap, -reach, 1 + reach), noise_multiplier, rate))
    return np.asarray(first + np.arange(len(numbers)) * interval, np.float64)


def cells(
    noise_multiplier: float, rate: float, ends: Array
) -> tuple[Enclosed, Enclosed]:
    """Return bounds on the probabilities, with the record and without it, of the cells of losses between ends.

    The losses at their ends ascend, shape (n,): the first of n + 1 cells has the losses below them, the last those above.
    """
    edges = np.full(len(ends), -np.inf)
    possible = ends > math.log1p(-rate) if rate < 1 else np.full(len(ends), True)
    edges[possible] = output_of(ends[possible], noise_multiplier, rate)
    without = gaussian_cells(edges, 0.0, noise_multiplier)
    shifted = gaussian_cells(edges, 1.0, noise_multiplier)
    return mixture(rate, without, shifted), without


def mixture(rate: float, without: Enclosed, shifted: Enclosed) -> Enclosed:
    """Return bounds on the probabilities of cells where the second law is drawn with probability q, the first otherwise."""
    low, high = (
        (1 - rate) * a + rate * b for a, b in zip(without, shifted, strict=True)
    )
    # A rate that is a quotient of counts is off by u, and so is the share of the law without the record.
    off = 2.0**-52 * rate * without[1]
    return np.maximum(low * (1 - 2.0**-50) - off, 0.0), high * (1 + 2.0**-50) + off


def rounding(noise_multiplier: float, rate: float, ends: Array) -> float:
    """Return how far at most the losses of the cells' outputs lie beyond the ends that ``cells`` was asked for.

    The loss of each edge is computed again: its exponent is off by 4u relatively, and the rest by 8u of what is added up.
    The ends may have been multiples of an interval, off by u.
    """
    ends = ends[ends > math.log1p(-rate)] if rate < 1 else ends
    edges = output_of(ends, noise_multiplier, rate)
    exponents = (2 * edges - 1) / (2 * noise_multiplier**2)
    largest = (
        1
        + float(np.abs(exponents).max())
        + abs(math.log(rate))
        + float(np.abs(ends).max())
    )
    largest += abs(math.log1p(-rate)) if rate < 1 else 0.0
    return (
        float(np.abs(loss(edges, noise_multiplier, rate) - ends).max())
        + 2.0**-48 * largest
    )


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
        except (
            ValueError,
            RuntimeError,
        ):  # Opacus refuses some δ that it takes for too small
            return 1.0


@dataclass(frozen=True)
class OpacusRDP(Opacus):
    """The moments accountant on Opacus' own orders."""

    mechanism: ClassVar[str] = "rdp"
    soundness: ClassVar[Soundness] = Soundness.UNPROVED
    source: ClassVar[str] = (
        "Opacus, RDPAccountant (Mironov, Talwar & Zhang 2019, arXiv:1908.10530v1)"
    )


@dataclass(frozen=True)
class OpacusPRV(Opacus):
    """The end of Opacus' interval for ε.

    Note:
        Gopi, Lee & Wutschitz (2021), arXiv:2106.02848, prove their interval on a domain that Opacus (as its source says)
        does not quite use, and Opacus composes one order of the pair only. So this proves nothing, good as it usually is.
    """

    mechanism: ClassVar[str] = "prv"
    soundness: ClassVar[Soundness] = Soundness.APPROXIMATION
    source: ClassVar[str] = (
        "Opacus, PRVAccountant (Gopi, Lee & Wutschitz 2021, arXiv:2106.02848)"
    )

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
    source: ClassVar[str] = (
        "Opacus, GaussianAccountant (Bu, Dong, Long & Su 2020, arXiv:1911.11607)"
    )

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε) of the same central limit, in closed form."""
        check_epsilon(type(self).__name__, epsilon)
        mu = self.rate * math.sqrt(self.steps * math.expm1(self.noise_multiplier**-2))
        return GaussianDP(mu).delta_at(epsilon)
