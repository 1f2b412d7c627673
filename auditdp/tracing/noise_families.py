"""Families of noise: the density of one draw, its distribution function, and what a moved location loses.

A release is R = v + c·U with a draw U of a family in its standard form, so the density of R at r is that of U at
(r − v)/c, divided by |c|. What two locations v and v′ under the same noise lose is exact for each family: the sum of
|v − v′|/c for Laplace and logistic noise and for the difference of two geometric draws (where it is whole), the square of
‖v − v′‖₂/σ for Gaussian noise, and without bound for noise whose support or tail shows the location.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from auditdp.tracing.plain_values import all_of, any_of, ndim

WHOLE = 1e-9
"""How far from a whole number rounding may leave a difference of numbers that is one."""


class Loss(NamedTuple):
    """What one release loses on a pair: an (ε, δ) statement, or that of a Gaussian pair.

    Attributes:
        epsilon: ε in nats, without bound where infinite.
        delta: δ: above 0 where some outcomes occur on one input alone.
        squared_mu: The square of μ, of releases with Gaussian noise; 0 for others.
        rho: ρ of zero-concentrated DP in nats, where it is known exactly and less than every (ε, 0) statement has.
    """

    epsilon: float = 0.0
    delta: float = 0.0
    squared_mu: float = 0.0
    rho: float | None = None


NOTHING = Loss()
UNBOUNDED = Loss(math.inf, 1.0)


@dataclass(frozen=True, eq=False)
class Family:
    """One family in its standard form.

    Attributes:
        name: What sentences call it.
        log_density: Log density, or log probability, of the standard draw; with the shape parameter where it has one.
        distribution: P(U <= z), for draws that are compared with a number; None where that is not followed.
        loss: The loss of a location that moved, given the moves in units of the scale, and the shape parameter; None where
            it is neither an (ε, δ) statement nor that of a Gaussian pair.
        norm: The norm in which a move counts.
        is_whole: Whether draws are whole numbers.
        is_part: Whether draws are parts, of a difference of two or of a comparison; adding a value to others is the release.
        is_symmetric: Whether a draw and its negative have one law.
        is_by_rho: Whether the loss, that of a Gaussian pair, bounds Rényi divergences alone, and no other curve.
    """

    name: str
    log_density: Callable[[Any, Any], Any] | None
    distribution: Callable[[Any, Any], Any] | None
    loss: Callable[[Any, Any], Loss | None]
    norm: str = "L1"
    is_whole: bool = False
    is_part: bool = False
    is_symmetric: bool = False
    is_by_rho: bool = False

    def log_densities(
        self, values: Any, location: Any, scale: Any, parameter: Any
    ) -> Any:
        """Return the log density, or log probability, of values: of draws that are scaled and moved, entry by entry."""
        assert self.log_density is not None  # asked of families that have one
        logs = self.log_density((values - location) / scale, parameter)
        return np.asarray(logs) - (0.0 if self.is_whole else np.log(np.abs(scale)))


def _linear(moves: Any, _: Any) -> Loss:
    return Loss(abs(float(moves)) if ndim(moves) == 0 else float(np.abs(moves).sum()))


def _laplace(moves: Any, _: Any) -> Loss:
    """Laplace noise: ρ is ε − 1 + e^−ε, its Kullback–Leibler divergence (Harrison & Manurangsi 2025, arXiv:2510.25746)."""
    epsilons = np.abs(np.atleast_1d(np.asarray(moves, float)))
    return Loss(
        float(epsilons.sum()), rho=float(np.sum(epsilons + np.expm1(-epsilons)))
    )


def _gaussian(moves: Any, _: Any) -> Loss:
    return Loss(
        squared_mu=float(moves) ** 2
        if ndim(moves) == 0
        else float(np.square(moves).sum())
    )


def _shown(moves: Any, _: Any) -> Loss:
    return UNBOUNDED if any_of(moves) else NOTHING


def _not_known(moves: Any, _: Any) -> Loss | None:
    """Neither a statement nor the loss of a Gaussian pair: nobody has to know it where nothing moves."""
    return None if any_of(moves) else NOTHING


def _uniform(moves: Any, _: Any) -> Loss:
    """Intervals that overlap: what lies in both has one density, and what lies in one of them occurs on one input alone."""
    overlap = float(np.prod(np.maximum(1 - np.abs(np.atleast_1d(moves)), 0.0)))
    return Loss(0.0, 1 - overlap)


def _of_whole(loss: Callable[[Any, Any], Loss]) -> Callable[[Any, Any], Loss]:
    """Return the loss of whole noise: without bound where a move is no whole number."""
    return lambda moves, of: (
        loss(moves, of)
        if all_of(np.abs(moves - np.rint(moves)) <= WHOLE)
        else UNBOUNDED
    )


def _laplace_distribution(z: Any, _: Any) -> Any:
    half = np.exp(-np.abs(z)) / 2
    return np.where(np.asarray(z) < 0, half, 1 - half)


def _normal_distribution(z: Any, _: Any) -> Any:
    from scipy.special import ndtr  # slow to load: only where it is needed

    return ndtr(z)


def _whole_only(z: Any, log_probability: Any) -> Any:
    return np.where(
        np.abs(z - np.rint(z)) <= WHOLE * np.maximum(1, np.abs(z)),
        log_probability,
        -np.inf,
    )


def _log_geometric(z: Any, p: Any) -> Any:
    log = np.log(p) + (np.rint(z) - 1) * np.log1p(-np.asarray(p, float))
    return _whole_only(z, np.where(np.rint(z) >= 1, log, -np.inf))


def _log_two_sided(z: Any, p: Any) -> Any:
    p = np.asarray(p, float)
    return _whole_only(z, np.log(p / (2 - p)) + np.abs(np.rint(z)) * np.log1p(-p))


def _log_integers(z: Any, count: Any) -> Any:
    inside = (np.rint(z) >= 0) & (np.rint(z) < count)
    return _whole_only(z, np.where(inside, -np.log(count), -np.inf))


def _log_poisson(z: Any, rate: Any) -> Any:
    from scipy.stats import poisson  # slow to load: only where it is needed

    return _whole_only(z, poisson.logpmf(np.rint(z), rate))


def _log_binomial(z: Any, parameters: tuple[float, float]) -> Any:
    from scipy.stats import binom

    return _whole_only(z, binom.logpmf(np.rint(z), *parameters))


def _log_rounded(z: Any, scale: Any) -> Any:
    """Laplace noise of a scale, rounded to the nearest whole number."""
    k = np.abs(np.rint(z))
    zero = np.log(-np.expm1(-0.5 / scale))
    return _whole_only(
        z, np.where(k == 0, zero, -k / scale + np.log(np.sinh(0.5 / scale)))
    )


def _log_discrete_gaussian(z: Any, sigma: Any) -> Any:
    from scipy.special import logsumexp  # slow to load: only where it is needed

    reach = np.arange(
        -math.ceil(20 * float(np.max(sigma))) - 1,
        math.ceil(20 * float(np.max(sigma))) + 2,
    )
    total = logsumexp(-np.square(reach[:, None] / np.atleast_1d(sigma)) / 2, axis=0)
    return _whole_only(
        z, -np.square(np.rint(z) / sigma) / 2 - (total if ndim(sigma) else total[0])
    )


FAMILIES = {
    family.name: family
    for family in (
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
            "L2",
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
            _shown,
            is_part=True,
        ),
        Family(
            "exponential",
            lambda z, _: np.where(np.asarray(z) >= -1e-12, -z, -np.inf),
            lambda z, _: np.where(
                np.asarray(z) > 0, -np.expm1(-np.maximum(z, 0.0)), 0.0
            ),
            _shown,
            is_part=True,
        ),
        Family(
            "uniform",
            lambda z, _: np.where(
                (np.asarray(z) >= -1e-12) & (np.asarray(z) <= 1 + 1e-12), 0.0, -np.inf
            ),
            lambda z, _: np.clip(z, 0.0, 1.0),
            _uniform,
            is_part=True,
        ),
        Family("geometric", _log_geometric, None, _shown, is_whole=True, is_part=True),
        Family(
            "two-sided geometric",
            _log_two_sided,
            None,
            _of_whole(
                lambda moves, p: Loss(
                    float(
                        np.sum(
                            np.abs(np.rint(moves)) * -np.log1p(-np.asarray(p, float))
                        )
                    )
                )
            ),
            is_whole=True,
            is_symmetric=True,
        ),
        Family("Poisson", _log_poisson, None, _not_known, is_whole=True),
        Family("binomial", _log_binomial, None, _not_known, is_whole=True),
        Family(  # as Gaussian noise, whose Rényi divergences are no smaller (Canonne, Kamath & Steinke 2020, Prop. 5)
            "discrete Gaussian",
            _log_discrete_gaussian,
            None,
            _of_whole(
                lambda moves, sigma: Loss(
                    squared_mu=float(np.sum(np.square(moves / sigma)))
                )
            ),
            norm="L2",
            is_whole=True,
            is_symmetric=True,
            is_by_rho=True,
        ),
        Family(
            "rounded Laplace",
            _log_rounded,
            None,
            _of_whole(
                lambda moves, scale: Loss(float(np.sum(np.abs(np.rint(moves)) / scale)))
            ),
            is_whole=True,
            is_symmetric=True,
        ),
        Family(
            "integer",
            _log_integers,
            lambda z, count: np.clip(
                (np.floor(np.asarray(z, float)) + 1) / count, 0.0, 1.0
            ),
            _shown,
            is_whole=True,
            is_part=True,
        ),
    )
}


def _clipped(noise: Family) -> Family:
    """Return the family of clipped noise: the ends of its interval have a probability, and occur on one input alone."""
    distribution: Any = noise.distribution

    def loss(moves: Any, bounds: Any) -> Loss | None:
        (low, high), inside = bounds, noise.loss(moves, None)
        moved = np.abs(np.atleast_1d(moves))
        moved = moved[moved > 0]
        first = distribution(low + moved, None) + 1 - distribution(high, None)
        second = distribution(low, None) + 1 - distribution(high - moved, None)
        only = np.minimum(np.maximum(first, second), 1.0)
        return (
            None
            if inside is None
            else inside._replace(delta=float(1 - np.prod(1 - only)))
        )

    return Family(f"clipped {noise.name}", None, None, loss, noise.norm)


FAMILIES |= {
    family.name: family
    for family in (_clipped(FAMILIES["Laplace"]), _clipped(FAMILIES["Gaussian"]))
}


@dataclass(frozen=True, eq=False)
class DeclaredLoss:
    """What a library says of a primitive that draws its noise where it cannot be seen: it is trusted.

    Attributes:
        distance: How far two of its inputs are apart, in the metric that the library means.
        loss: What it says to lose at a distance; None where it does not say so in a form that composes.
    """

    distance: Callable[[Any, Any], float]
    loss: Callable[[float], Loss | None]


@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """The law of the noise of a release.

    Attributes:
        family: A name in ``FAMILIES``; any other is the name of a sampler whose law the trace does not know.
        scale: What the standard draw is multiplied by, a number or an array; negative where it is mirrored.
        parameter: The shape parameter: p of geometric draws, how many integers there are, the scale before rounding.
        declared: What a library says that it loses, where nobody sees how it draws.
    """

    family: str
    scale: Any = 1.0
    parameter: Any = None
    declared: DeclaredLoss | None = None

    @property
    def known(self) -> Family | None:
        """The family, where the trace knows it."""
        return FAMILIES.get(self.family)

    def is_as_wide(self, other: NoiseLaw) -> bool:
        """Return whether another law has the same scale, up to its sign where noise is symmetric."""
        if self.known is not None and self.known.is_symmetric:
            return same(abs(self.scale), abs(other.scale))
        return same(self.scale, other.scale)

    def log_likelihood(self, location: Any, result: Any) -> float:
        """Return the log density of a result, summed over its entries; NaN where the law is not known.

        Args:
            location: v, a number or an array.
            result: r, of the same shape.
        """
        known = self.known
        if known is None or known.log_density is None:
            return math.nan
        with np.errstate(all="ignore"):
            values = np.real(np.asarray(result)).astype(float)
            at, scale = np.asarray(location, float), np.asarray(self.scale, float)
            logs = known.log_densities(values, at, scale, self.parameter)
            return float(
                np.broadcast_to(
                    logs, np.broadcast_shapes(values.shape, at.shape, scale.shape)
                ).sum()
            )


def same(a: Any, b: Any) -> bool:
    """Return whether two parameters of a law are equal, NaN as NaN; arrays of one value and that value are."""
    if a is b:
        return True
    try:
        return (
            bool(a == b)
            if ndim(a) == 0 and ndim(b) == 0
            else bool(np.all(np.equal(a, b)))
        )
    except (TypeError, ValueError):
        return False


def moves(a: Any, b: Any) -> Any:
    """Return by how much a location moved, entry by entry: 0 where both are the same, infinite where one is no number."""
    if type(a) is type(b) and isinstance(a, int | np.integer):
        by = int(b) - int(a)
        return float(by) if abs(by) < 1e300 else math.inf
    with np.errstate(all="ignore"):
        first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
        alike = (first == second) | (np.isnan(first) & np.isnan(second))
        moved = np.where(alike, 0.0, second - first)
        moved = np.where(np.isnan(moved), np.inf, moved)
    return float(moved) if moved.ndim == 0 else moved


def location_loss(law: NoiseLaw, other: NoiseLaw, moved: Any) -> Loss | None:
    """Return the loss of a release whose location moved; None where the law is not known.

    Args:
        law: Of the noise on one input.
        other: On the other; another scale shows in the tails, without bound.
        moved: By how much, as ``moves`` has it.
    """
    known, alike = (
        law.known,
        law.family == other.family and same(law.parameter, other.parameter),
    )
    if known is None:
        return NOTHING if alike and not any_of(moved) else None
    if not alike or not law.is_as_wide(other):
        return UNBOUNDED
    if not any_of(moved):
        return NOTHING
    if not all_of(np.isfinite(moved)):
        return UNBOUNDED
    return known.loss(in_scales(moved, law.scale), law.parameter)


def in_scales(moved: Any, scale: Any) -> Any:
    """Return moves in units of the scale: 0 where nothing moves, infinite where something does that has no noise."""
    with np.errstate(all="ignore"):
        return (
            moved / scale
            if all_of(scale)
            else np.where(np.equal(moved, 0), 0.0, np.divide(moved, scale))
        )
