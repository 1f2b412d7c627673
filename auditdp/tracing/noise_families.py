"""Families of noise: density, distribution function, and loss of a moved location.

A release is R = v + c·U with a draw U of a family in its standard form, so the density
of R at r is that of U at (r − v)/c, divided by |c|. Each family has the loss of two
locations v and v′ under the same noise. It is ε = Σ |v − v′|/c for Laplace and logistic
noise, and for the difference of two geometric draws if the move is whole. For Gaussian
noise it is μ² = (‖v − v′‖₂/σ)². These losses are exact. The others are upper bounds.
The loss counts as unbounded for noise whose support or tail reveals the location, and
that of discrete Gaussian noise bounds Rényi divergences alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from auditdp.tracing.plain_values import all_of, any_of, ndim
from auditdp.tracing.trace_limits import ABSOLUTE_ROUNDING, ROUNDING


class Loss(NamedTuple):
    """Loss of one release on a pair: an (ε, δ) statement, or μ² of a Gaussian pair.

    A Gaussian pair of parameter μ is as hard to tell apart as N(0, 1) and N(μ, 1).

    Attributes:
        epsilon: ε in nats, which may be infinite.
        delta: δ, such as the probability of outcomes that occur on one input alone.
        squared_mu: μ² of a Gaussian pair; 0 for a statement.
        rho: ρ of zero-concentrated DP in nats, if it is known exactly and is smaller
            than the ρ that ε implies; else None.
    """

    epsilon: float = 0.0
    delta: float = 0.0
    squared_mu: float = 0.0
    rho: float | None = None


NOTHING = Loss()
UNBOUNDED = Loss(math.inf, 1.0)


@dataclass(frozen=True, eq=False)
class Family:
    """One family of noise, given by its standard draw U.

    The noise of a release is c·U with a scale c. Some families also have a shape
    parameter, such as p of geometric draws. ``log_density``, ``distribution``, ``loss``
    and ``units`` are functions of a number or an array z, and of this parameter.

    Attributes:
        name: Its name in sentences.
        log_density: Log density of U at z, or log probability if U is whole; None if it
            is not computed.
        distribution: P(U <= z); None if comparisons of a draw with a number are not
            followed.
        loss: Loss of a location that moves by z scales, or by z in ``units`` if these
            are given. Its result is None if the loss is neither an (ε, δ) statement nor
            that of a Gaussian pair.
        norm: Norm in which a move counts, "L1" or "L2".
        units: For whole noise whose shape parameter decides its width, the move z in
            units of that width; None for other noise.
        is_whole: Whether draws are whole numbers.
        is_part: Whether code usually combines such a draw with others to noise, such as
            two geometric draws, or compares it. The sum of a value and such a draw is
            not released before the code uses it.
        is_symmetric: Whether a draw and its negative have one law.
        is_by_rho: Whether the μ² of ``loss`` bounds only the Rényi divergences, and not
            δ(ε).
    """

    name: str
    log_density: Callable[[Any, Any], Any] | None
    distribution: Callable[[Any, Any], Any] | None
    loss: Callable[[Any, Any], Loss | None]
    norm: str = "L1"
    units: Callable[[Any, Any], Any] | None = None
    is_whole: bool = False
    is_part: bool = False
    is_symmetric: bool = False
    is_by_rho: bool = False

    def log_densities(
        self, values: Any, location: Any, scale: Any, parameter: Any
    ) -> Any:
        """Return log densities of location + scale·U at values, entry by entry.

        For whole draws they are log probabilities. The family has to have a
        ``log_density``.
        """
        # Callers check that the family has one.
        assert self.log_density is not None
        logs = np.asarray(self.log_density((values - location) / scale, parameter))
        return logs if self.is_whole else logs - np.log(np.abs(scale))

    def loss_of(self, moved: Any, parameter: Any) -> Loss | None:
        """Return the loss of a location that moves by ``moved`` scales.

        Noise with ``units`` is whole and does not hide a move by a fraction, so the
        loss of such a move is unbounded. The result is None if the loss is neither an
        (ε, δ) statement nor that of a Gaussian pair.
        """
        if self.units is None:
            return self.loss(moved, parameter)
        whole = np.rint(moved)
        if not all_of(np.abs(moved - whole) <= ROUNDING):
            return UNBOUNDED
        return self.loss(self.units(whole, parameter), parameter)


# Losses of moves in units of the scale.


def _linear(moved: Any, _: Any) -> Loss:
    return Loss(abs(float(moved)) if ndim(moved) == 0 else float(np.abs(moved).sum()))


def _laplace(moved: Any, _: Any) -> Loss:
    """Return the loss of Laplace noise whose location moves by ``moved`` scales.

    Its ρ is the Kullback–Leibler divergence ε − 1 + e^−ε (Harrison & Manurangsi 2025,
    arXiv:2510.25746).
    """
    epsilons = np.abs(np.atleast_1d(np.asarray(moved, float)))
    rho = float(np.sum(epsilons + np.expm1(-epsilons)))
    return Loss(float(epsilons.sum()), rho=rho)


def _gaussian(moved: Any, _: Any) -> Loss:
    return Loss(squared_mu=float(np.square(moved).sum()))


def _revealed(moved: Any, _: Any) -> Loss:
    return UNBOUNDED if any_of(moved) else NOTHING


def _unknown(moved: Any, _: Any) -> Loss | None:
    return None if any_of(moved) else NOTHING


def _uniform(moved: Any, _: Any) -> Loss:
    """Return the loss of uniform noise whose location moves by ``moved`` widths.

    ε is 0. δ is the probability of the results that only one of the two locations can
    have.
    """
    lengths = np.maximum(1 - np.abs(np.atleast_1d(moved)), 0.0)
    return Loss(0.0, 1 - float(np.prod(lengths)))


# Laws of whole draws.


def _whole_only(z: Any, log_probability: Any) -> Any:
    is_whole = np.abs(z - np.rint(z)) <= ROUNDING * np.maximum(1, np.abs(z))
    return np.where(is_whole, log_probability, -np.inf)


def _log_geometric(z: Any, p: Any) -> Any:
    k = np.rint(z)
    logs = np.log(p) + (k - 1) * np.log1p(-np.asarray(p, float))
    return _whole_only(z, np.where(k >= 1, logs, -np.inf))


def _log_two_sided(z: Any, p: Any) -> Any:
    p = np.asarray(p, float)
    return _whole_only(z, np.log(p / (2 - p)) + np.abs(np.rint(z)) * np.log1p(-p))


def _log_integers(z: Any, count: Any) -> Any:
    k = np.rint(z)
    return _whole_only(z, np.where((k >= 0) & (k < count), -np.log(count), -np.inf))


def _log_poisson(z: Any, rate: Any) -> Any:
    # SciPy is slow to load, so it is imported only if it is needed.
    from scipy.stats import poisson

    return _whole_only(z, poisson.logpmf(np.rint(z), rate))


def _log_binomial(z: Any, parameters: tuple[float, float]) -> Any:
    from scipy.stats import binom

    return _whole_only(z, binom.logpmf(np.rint(z), *parameters))


def _log_rounded(z: Any, scale: Any) -> Any:
    """Return the log probability of z for Laplace noise, rounded to whole numbers."""
    k = np.abs(np.rint(z))
    at_zero = np.log(-np.expm1(-0.5 / scale))
    elsewhere = -k / scale + np.log(np.sinh(0.5 / scale))
    return _whole_only(z, np.where(k == 0, at_zero, elsewhere))


def _log_discrete_gaussian(z: Any, sigma: Any) -> Any:
    from scipy.special import logsumexp

    # Beyond 20 standard deviations all probabilities together are lost in rounding.
    reach = math.ceil(20 * float(np.max(sigma))) + 1
    grid = np.arange(-reach, reach + 1)[:, None]
    total = logsumexp(-np.square(grid / np.atleast_1d(sigma)) / 2, axis=0)
    if not ndim(sigma):
        total = total[0]
    return _whole_only(z, -np.square(np.rint(z) / sigma) / 2 - total)


def _geometric_units(moved: Any, p: Any) -> Any:
    return moved * -np.log1p(-np.asarray(p, float))


# Distribution functions of continuous draws.


def _laplace_distribution(z: Any, _: Any) -> Any:
    half = np.exp(-np.abs(z)) / 2
    return np.where(np.asarray(z) < 0, half, 1 - half)


def _normal_distribution(z: Any, _: Any) -> Any:
    from scipy.special import ndtr

    return ndtr(z)


def _log_uniform(z: Any, _: Any) -> Any:
    z = np.asarray(z)
    return np.where(
        (z >= -ABSOLUTE_ROUNDING) & (z <= 1 + ABSOLUTE_ROUNDING), 0.0, -np.inf
    )


def _exponential_distribution(z: Any, _: Any) -> Any:
    return -np.expm1(-np.maximum(z, 0.0))


_LIST = (
    Family(
        "Laplace",
        lambda z, _: -np.abs(z) - math.log(2),
        _laplace_distribution,
        _laplace,
        is_symmetric=True,
    ),
    Family(
        "Gaussian",
        lambda z, _: -np.square(z) / 2 - math.log(2 * math.pi) / 2,
        _normal_distribution,
        _gaussian,
        norm="L2",
        is_symmetric=True,
    ),
    Family(
        "logistic",
        lambda z, _: -np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z))),
        lambda z, _: 1 / (1 + np.exp(-np.asarray(z, float))),
        _linear,
        is_symmetric=True,
    ),
    Family(
        "Gumbel",
        lambda z, _: -z - np.exp(-z),
        lambda z, _: np.exp(-np.exp(-np.asarray(z, float))),
        _revealed,
        is_part=True,
    ),
    Family(
        "exponential",
        lambda z, _: np.where(np.asarray(z) >= -ABSOLUTE_ROUNDING, -z, -np.inf),
        _exponential_distribution,
        _revealed,
        is_part=True,
    ),
    Family(
        "uniform",
        _log_uniform,
        lambda z, _: np.clip(z, 0.0, 1.0),
        _uniform,
        is_part=True,
    ),
    Family(
        "geometric",
        _log_geometric,
        None,
        _revealed,
        units=_geometric_units,
        is_whole=True,
        is_part=True,
    ),
    Family(
        "two-sided geometric",
        _log_two_sided,
        None,
        _linear,
        units=_geometric_units,
        is_whole=True,
        is_symmetric=True,
    ),
    Family("Poisson", _log_poisson, None, _unknown, is_whole=True),
    Family("binomial", _log_binomial, None, _unknown, is_whole=True),
    # Its Rényi divergences are at most those of Gaussian noise
    # (Canonne, Kamath & Steinke 2020, Proposition 5).
    Family(
        "discrete Gaussian",
        _log_discrete_gaussian,
        None,
        _gaussian,
        norm="L2",
        units=lambda moved, sigma: moved / sigma,
        is_whole=True,
        is_symmetric=True,
        is_by_rho=True,
    ),
    Family(
        "rounded Laplace",
        _log_rounded,
        None,
        _linear,
        units=lambda moved, scale: moved / scale,
        is_whole=True,
        is_symmetric=True,
    ),
    Family(
        "integer",
        _log_integers,
        lambda z, count: np.clip((np.floor(np.asarray(z, float)) + 1) / count, 0, 1),
        _revealed,
        is_whole=True,
        is_part=True,
    ),
)
FAMILIES = {family.name: family for family in _LIST}
"""Families by their names."""


def _clipped(noise: Family) -> Family:
    """Return the family of noise that is clipped to an interval.

    The ends of the interval have positive probability, and move with the location. So
    some results occur on one input alone: an end of its interval, and numbers outside
    the interval of the other input. δ is an upper bound of their probability.
    """
    distribution: Any = noise.distribution

    def loss(moved: Any, bounds: Any) -> Loss | None:
        (low, high), inside = bounds, noise.loss(moved, None)
        away = np.abs(np.atleast_1d(moved))
        away = away[away > 0]
        # Probability, on the first and on the second input, of results that the other
        # input cannot have.
        first = distribution(low + away, None) + 1 - distribution(high, None)
        second = distribution(low, None) + 1 - distribution(high - away, None)
        alone = np.minimum(np.maximum(first, second), 1.0)
        if inside is None:
            return None
        return inside._replace(delta=float(1 - np.prod(1 - alone)))

    return Family(f"clipped {noise.name}", None, None, loss, noise.norm)


for _name in ("Laplace", "Gaussian"):
    FAMILIES[f"clipped {_name}"] = _clipped(FAMILIES[_name])


@dataclass(frozen=True, eq=False)
class DeclaredLoss:
    """Loss that a library declares for a function whose draws are not observed.

    The trace trusts it.

    Attributes:
        distance: Function of two inputs of the library function: their distance in the
            library's metric.
        loss: Function of a distance: the loss, or None if the declared loss does not
            compose.
    """

    distance: Callable[[Any, Any], float]
    loss: Callable[[float], Loss | None]


@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """The law of the noise of a release.

    Attributes:
        family: A name in ``FAMILIES``, or another name if the law is unknown.
        scale: Factor c of the standard draw, a number or an array; negative if the draw
            is mirrored.
        parameter: Shape parameter, such as p of geometric draws, the number of
            integers, the scale before rounding, or the ends of clipped noise in scales;
            None for a family without one.
        declared: Loss that a library declares for draws that are not observed; else
            None.
    """

    family: str
    scale: Any = 1.0
    parameter: Any = None
    declared: DeclaredLoss | None = None

    @property
    def known(self) -> Family | None:
        """The family, or None if its law is unknown."""
        return FAMILIES.get(self.family)

    def is_same(self, other: NoiseLaw) -> bool:
        """Return True if another law has the same family, scale and shape parameter."""
        if self.family != other.family or not same(self.scale, other.scale):
            return False
        return same(self.parameter, other.parameter)

    def is_as_wide(self, other: NoiseLaw) -> bool:
        """Return True if another law has the same scale.

        The sign of the scale does not count for symmetric noise.
        """
        if self.known is not None and self.known.is_symmetric:
            return same(abs(self.scale), abs(other.scale))
        return same(self.scale, other.scale)

    def log_likelihood(self, location: Any, result: Any) -> float:
        """Return the log density of a result; NaN if it is not computed for the family.

        For an array it is the sum over all entries.

        Args:
            location: Value to which the noise is added: a number or an array.
            result: Noisy value.
        """
        known = self.known
        if known is None or known.log_density is None:
            return math.nan
        values = np.real(np.asarray(result)).astype(float)
        at, scale = np.asarray(location, float), np.asarray(self.scale, float)
        shape = np.broadcast_shapes(values.shape, at.shape, scale.shape)
        with np.errstate(all="ignore"):
            logs = known.log_densities(values, at, scale, self.parameter)
            return float(np.broadcast_to(logs, shape).sum())


def same(a: Any, b: Any) -> bool:
    """Return True if two numbers, arrays or other parameters are equal.

    An array and a number are equal if all entries equal the number.
    """
    if a is b:
        return True
    try:
        if ndim(a) == 0 and ndim(b) == 0:
            return bool(a == b)
        return bool(np.all(np.equal(a, b)))
    except (TypeError, ValueError):
        return False


def moves(a: Any, b: Any) -> Any:
    """Return the move b − a of a location, entry by entry.

    If a and b differ and one of them is NaN, the move is infinite.
    """
    if type(a) is type(b) and isinstance(a, int | np.integer):
        by = int(b) - int(a)
        # A larger number is no double.
        return float(by) if abs(by) < 1e300 else math.inf
    with np.errstate(all="ignore"):
        first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
        is_same = (first == second) | (np.isnan(first) & np.isnan(second))
        moved = np.where(is_same, 0.0, second - first)
        moved = np.where(np.isnan(moved), np.inf, moved)
    return float(moved) if moved.ndim == 0 else moved


def location_loss(law: NoiseLaw, other: NoiseLaw, moved: Any) -> Loss | None:
    """Return the loss of a release whose location moved, or None if it is unknown.

    If the first law is known and the second differs from it, the loss is unbounded:
    noise of another scale reveals the input in its tails. It is also unbounded for an
    infinite move.

    Args:
        law: Law of the noise on the first input.
        other: Law of the noise on the second input.
        moved: Move of the location, as returned by ``moves``.
    """
    known = law.known
    is_same = law.family == other.family and same(law.parameter, other.parameter)
    if known is None:
        return NOTHING if is_same and not any_of(moved) else None
    if not is_same or not law.is_as_wide(other):
        return UNBOUNDED
    if not any_of(moved):
        return NOTHING
    if not all_of(np.isfinite(moved)):
        return UNBOUNDED
    return known.loss_of(in_scales(moved, law.scale), law.parameter)


def in_scales(moved: Any, scale: Any) -> Any:
    """Return moves in units of the scale; a nonzero move at scale 0 is infinite."""
    with np.errstate(all="ignore"):
        if all_of(scale):
            return moved / scale
        return np.where(np.equal(moved, 0), 0.0, np.divide(moved, scale))
