"""Watched generators of numpy, whose draws are noise that remembers its line.

Every draw passes through `watched_draw`. ``SAMPLERS`` has the law of each method, and
``METHODS`` the methods that choose or permute items. The generators follow at the end.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from auditdp.tracing.draws import ALONE, CHOICE, COIN
from auditdp.tracing.linear_forms import number
from auditdp.tracing.mixed_values import LIMITS, linear
from auditdp.tracing.noise import (
    WRITTEN,
    drawn_noise,
    drawn_release,
    noise_of,
    plain,
    settled,
    write,
)
from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.plain_values import ndim, shape_of
from auditdp.tracing.sites import here
from auditdp.tracing.watched_run import Active, WatchedRun

Perform = Callable[..., Any]
Sample = tuple[NoiseLaw | None, Any, Any]
"""Law of a draw without its location, its location, and the argument ``size``.

The law is None if the trace does not follow it.
"""
DOUBLE = (None, np.float64, float, "float64", int, np.int64, "int64")
"""Values of the argument ``dtype`` that the trace follows: 64 bits or the default.

Draws of fewer bits have another law than their family.
"""


def _located(family: str) -> Callable[..., Sample]:
    return lambda loc=0.0, scale=1.0, size=None: (
        NoiseLaw(family, number(scale)),
        number(loc),
        size,
    )


def _standard(family: str) -> Callable[..., Sample]:
    def sample(
        size: Any = None, dtype: Any = None, method: str = "", out: Any = None
    ) -> Sample:
        return _if(dtype in DOUBLE, NoiseLaw(family)), 0.0, size

    return sample


def _if(is_known: bool, law: NoiseLaw) -> NoiseLaw | None:
    """Return a law if it is known, else None."""
    if is_known:
        return law
    return None


def _integer(
    low: Any,
    high: Any = None,
    size: Any = None,
    dtype: Any = None,
    endpoint: bool = False,
) -> Sample:
    if high is None:
        low, high = 0, low
    law = NoiseLaw("integer", 1.0, number(high) - number(low) + bool(endpoint))
    return _if(dtype in DOUBLE, law), number(low), size


def _binomial(n: Any, p: Any, size: Any = None) -> Sample:
    if ndim(n) == 0 and n == 1:
        return NoiseLaw("coin"), np.asarray(p, float), size
    law = NoiseLaw("binomial", 1.0, (number(n), number(p)))
    return _if(ndim(n) == ndim(p) == 0, law), 0.0, size


def _normals(mean: Any, cov: Any, size: Any = None, *_: Any, **__: Any) -> Sample:
    mean, covariance = np.asarray(mean, float), np.asarray(cov, float)
    variances = np.diag(covariance)
    is_diagonal = not np.any(covariance != np.diag(variances))
    if size is not None:
        size = (*_shape(size), len(mean))
    law = NoiseLaw("Gaussian", np.sqrt(variances))
    return _if(is_diagonal, law), mean, size


SAMPLERS: dict[str, Callable[..., Sample]] = {
    "laplace": _located("Laplace"),
    "normal": _located("Gaussian"),
    "gumbel": _located("Gumbel"),
    "logistic": _located("logistic"),
    "standard_normal": _standard("Gaussian"),
    "standard_exponential": _standard("exponential"),
    "standard_laplace": _standard("Laplace"),
    **dict.fromkeys(
        ("random", "random_sample", "sample", "ranf"), _standard("uniform")
    ),
    "rand": lambda *size: (NoiseLaw("uniform"), 0.0, size),
    "randn": lambda *size: (NoiseLaw("Gaussian"), 0.0, size),
    "uniform": lambda low=0.0, high=1.0, size=None: (
        NoiseLaw("uniform", number(high) - number(low)),
        number(low),
        size,
    ),
    "exponential": lambda scale=1.0, size=None: (
        NoiseLaw("exponential", number(scale)),
        0.0,
        size,
    ),
    "geometric": lambda p, size=None: (
        NoiseLaw("geometric", 1.0, number(p)),
        0.0,
        size,
    ),
    "poisson": lambda lam=1.0, size=None: (
        NoiseLaw("Poisson", 1.0, number(lam)),
        0.0,
        size,
    ),
    "integers": _integer,
    "randint": _integer,
    "binomial": _binomial,
    "multivariate_normal": _normals,
}
"""Functions from the arguments of a call to its ``Sample``, by the method's name."""
PARAMETERS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "negative_binomial": lambda n, p, size=None: (n, p),
    "standard_t": lambda df, size=None: (df,),
    "gamma": lambda shape, scale=1.0, size=None: (shape, scale),
}
"""Functions from the arguments of a call to its parameters, by the method's name.

The trace does not follow the noise of these methods. It only compares their parameters
on both inputs.
"""


def watched_draw(
    run: WatchedRun,
    method: str,
    perform: Perform,
    arguments: Sequence[Any],
    keywords: dict[str, Any],
    origin: Any = None,
) -> Any:
    """Draw by a method of numpy's generators.

    Args:
        run: The run that records the draw.
        method: Name of the method.
        perform: The unwatched method.
        arguments: Its positional arguments.
        keywords: Its keyword arguments.
        origin: Key that is equal for two draws of the same numbers; None if it is
            unknown.

    Returns:
        Noise, or a released number, in place of the result. Methods that choose or
        permute items return the items.
    """
    why = "is a parameter of a draw"
    arguments = settled(arguments, why)
    keywords = dict(zip(keywords, settled([*keywords.values()], why), strict=True))
    if method in METHODS:
        return METHODS[method](run, perform, *arguments, origin=origin, **keywords)
    # Noise that is written into an array of the code ends there.
    if keywords.get("out") is not None and method in SAMPLERS:
        out = keywords.pop("out")
        given = {**keywords, "size": np.shape(out)}
        drawn = watched_draw(run, method, perform, (), given, origin)
        return write(out, plain(drawn, WRITTEN))
    draw_it = functools.partial(perform, *arguments, **keywords)
    law: NoiseLaw | None = None
    location: Any = 0.0
    size = None
    if method in SAMPLERS:
        law, location, size = SAMPLERS[method](*arguments, **keywords)
    if law is None and method == "multivariate_normal":
        noise = _correlated(run, draw_it, *arguments, origin=origin, **keywords)
        if noise is not None:
            return noise
    if law is None:
        return _not_followed(run, method, draw_it, arguments, keywords)
    options = {"origin": origin}
    if law.family == "coin":
        shape = _shape(size, location)
        return drawn_release(
            run, method, draw_it, COIN, law, location, shape=shape, **options
        )
    parameters = [location, law.scale]
    if law.parameter is not None and not isinstance(law.parameter, tuple):
        parameters.append(law.parameter)
    shape = _shape(size, *parameters)
    return drawn_noise(run, method, draw_it, law, location, shape=shape, **options)


def _shape(size: Any, *parameters: Any) -> tuple[int, ...]:
    """Return the shape of a draw.

    It is ``size`` as a tuple. For None and () it is the shape to which the parameters
    broadcast.
    """
    is_several = isinstance(size, tuple | list | np.ndarray)
    if is_several and len(size):
        return tuple(size)
    if size is not None and not is_several:
        return (int(size),)
    shapes = {shape_of(parameter) for parameter in parameters}
    if len(shapes) == 1:
        return shapes.pop()
    return np.broadcast_shapes(*shapes)


def _correlated(
    run: WatchedRun,
    perform: Perform,
    mean: Any,
    cov: Any,
    size: Any = None,
    *_: Any,
    origin: Any = None,
    **__: Any,
) -> Any:
    """Draw one Gaussian vector with a covariance, as a matrix times independent noise.

    Args:
        run: The run.
        perform: Function without arguments that draws the vector.
        mean: The mean vector.
        cov: The covariance matrix.
        size: Argument ``size`` of numpy.
        origin: Key that is equal for two draws of the same numbers, or None.

    Returns:
        The noise, or None if the covariance has no full rank, if the vector is too
        long, or if ``size`` is given.
    """
    mean, covariance = np.asarray(mean, float), np.asarray(cov, float)
    if size is not None or len(mean) > LIMITS.mixed:
        return None
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return None
    drawn: list[Any] = []

    def standard() -> Any:
        drawn.append(perform())
        return np.linalg.solve(factor, drawn[0] - mean)

    def moved(draws: Any) -> Any:
        return mean + factor @ draws

    method, law = "multivariate_normal", NoiseLaw("Gaussian")
    draw = run.draw(method, standard, law, here(), shape=mean.shape, origin=origin)
    # A replay has the recorded draws, and calls no sampler.
    drawn.append(moved(draw.value))
    return linear(noise_of(run, draw), moved, drawn[0])


def _not_followed(
    run: WatchedRun,
    method: str,
    perform: Perform,
    arguments: Sequence[Any],
    keywords: dict[str, Any],
) -> Any:
    """Draw by a sampler of unknown law.

    Returns:
        Noise of unknown law for a number or an array. Any other result is released at
        once and returned.
    """
    parameter = None
    if method in PARAMETERS:
        parameter = tuple(map(repr, PARAMETERS[method](*arguments, **keywords)))
    site, law = here(), NoiseLaw(method, 1.0, parameter)
    draw = run.draw(method, perform, law, site)
    if isinstance(draw.value, int | float | np.generic | np.ndarray):
        return noise_of(run, draw)
    return run.release(ALONE, law, None, draw.value, site, why="is drawn")


def _choice(
    run: WatchedRun,
    perform: Perform,
    a: Any,
    size: Any = None,
    replace: bool = True,
    p: Any = None,
    *,
    origin: Any = None,
    **options: Any,
) -> Any:
    """Choose items, by the table of probabilities ``p`` or uniformly.

    The arguments from ``a`` on are those of numpy's ``choice``, which is ``perform``.

    Returns:
        The items, or their places if ``a`` is a number.
    """
    is_count = ndim(a) == 0
    count = int(a) if is_count else len(a)
    shape = _shape(size, 0.0)
    draw = functools.partial(perform, count, size, replace, p, **options)
    items: dict[str, Any] = {}
    if p is None:
        # One draw has the same law with and without replacement.
        law = items_law(count, replace=replace or not shape)
    elif replace or not shape:
        law = NoiseLaw("choice")
        names = None if is_count else tuple(map(repr, np.asarray(a).tolist()))
        items = {"table": np.asarray(p, float), "names": names}
    else:
        chances = repr(np.asarray(p, float).tolist())
        law = NoiseLaw("a choice by a table without replacement", 1.0, chances)
        items = {"why": "is drawn"}
        origin = None
    place = drawn_places(
        run, "choice", draw, law, count, shape=shape, origin=origin, **items
    )
    if is_count:
        return place
    axis = options.get("axis")
    if axis:
        return np.take(np.asarray(a), place, axis=axis)
    return np.asarray(a)[place]


def items_law(count: int, *, replace: bool) -> NoiseLaw:
    """Return the law of places that are drawn uniformly among ``count`` items.

    Args:
        count: Number of items.
        replace: Whether a place may be drawn several times.
    """
    family = "choice of items" if replace else "sample of items"
    return NoiseLaw(family, 1.0, count)


def drawn_places(
    run: WatchedRun,
    method: str,
    draw: Perform,
    law: NoiseLaw,
    count: int,
    *,
    table: Any = None,
    **options: Any,
) -> Any:
    """Draw places of items, by a table of probabilities or uniformly.

    Args:
        run: The run that records the draw and the release.
        method: Name of the sampler.
        draw: Function without arguments that returns the places.
        law: Law of the draw.
        count: Number of items.
        table: Probability of each item, or None if all are equal.
        options: Arguments ``names``, ``why``, ``shape`` and ``origin`` of
            ``drawn_release``.

    Returns:
        The place, or an array of places, all of them below ``count``.
    """
    kind = ALONE if table is None else CHOICE
    place = drawn_release(run, method, draw, kind, law, table, **options)
    # A replay may be forced to a place that its own items do not have.
    is_array = isinstance(place, np.ndarray)
    if is_array:
        return np.minimum(place, count - 1)
    return min(place, count - 1)


def _permuted(
    method: str,
    run: WatchedRun,
    perform: Perform,
    x: Any,
    axis: int | None = None,
    out: Any = None,
    *,
    origin: Any = None,
) -> Any:
    """Permute by places, so that a replay puts its own items in the recorded order.

    The arguments from ``x`` on are those of numpy's method ``method``, which is
    ``perform``.

    Returns:
        The permuted items; None for ``shuffle``, which changes ``x`` in place.
    """
    if out is not None:
        draw = functools.partial(perform, x, axis=axis, out=out)
        return _not_followed(run, method, draw, (), {})
    is_count = ndim(x) == 0 and not hasattr(x, "__len__")
    # ``permuted`` permutes each line along an axis by itself.
    each = method == "permuted"
    axis = axis if each else axis or 0
    shape = shape_of(x)
    if not each:
        count = int(x) if is_count else len(x)
        shape = (shape[axis] if axis else count,)

    def places() -> Any:
        order = np.arange(math.prod(shape)).reshape(shape)
        if method == "shuffle":
            perform(order)
            return order
        if each:
            return perform(order, axis=axis)
        return perform(len(order))

    family = "permutation"
    if len(shape) != 1:
        family = "permutation along an axis"
    law = NoiseLaw(family, 1.0, math.prod(shape))
    order = drawn_release(run, method, places, ALONE, law, shape=shape, origin=origin)
    if each:
        return np.ravel(x)[order]
    order = as_order(order, shape[0])
    if method != "shuffle":
        if is_count:
            return order
        return np.take(np.asarray(x), order, axis=axis)
    is_array = isinstance(x, np.ndarray)
    x[:] = np.take(x, order, axis=axis) if is_array else [x[k] for k in order]
    return None


def as_order(places: Any, count: int) -> Any:
    """Return an order of ``count`` items from an order of more or fewer items.

    Places from ``count`` on are left out. Missing ones follow at the end, ascending.
    """
    # A replay may be forced to an order of more items, or of fewer.
    order = dict.fromkeys(place for place in places.tolist() if place < count)
    return np.array([*order, *(k for k in range(count) if k not in order)], int)


METHODS: dict[str, Callable[..., Any]] = {"choice": _choice}
for _name in ("permutation", "permuted", "shuffle"):
    METHODS[_name] = functools.partial(_permuted, _name)


# -- generators ------------------------------------------------------------------------


def _unseen(run: WatchedRun | None, source: str) -> None:
    """Record an opaque release, since code can now draw numbers unobserved.

    Args:
        run: The run under way; None records nothing.
        source: Name of the object with which the code can draw.
    """
    if run is not None:
        why = "draws numbers that the trace does not watch"
        run.release(ALONE, NoiseLaw(source), None, 0, here(), why=why)


class _Watched:
    """A generator whose draws are watched, on the stream of a plain generator.

    Args:
        plain: The plain generator.
        active: Function that returns the run under way in this thread, or None.
        seed: A value that generators share if they have the same seed; None if the seed
            is unknown.
    """

    def __init__(self, plain: Any, active: Active, seed: Any = None) -> None:
        super().__init__(plain._bit_generator)  # type: ignore[call-arg]
        self._plain, self._active, self._seed, self._count = plain, active, seed, 0

    def __reduce__(self) -> Any:
        _unseen(self._active(), "a copy of the generator")
        return self._plain.__reduce__()

    def _draw(
        self, method: str, arguments: Sequence[Any], keywords: dict[str, Any]
    ) -> Any:
        perform, run = getattr(self._plain, method), self._active()
        if run is None:
            return perform(*arguments, **keywords)
        origin = None
        if self._seed is not None:
            # Generators with one seed draw the same numbers in the same order.
            self._count += 1
            origin = (self._seed, self._count, method)
        return watched_draw(run, method, perform, arguments, keywords, origin)


class WatchedGenerator(_Watched, np.random.Generator):
    """A generator ``numpy.random.Generator`` whose draws are watched."""

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Return children of the generator, which are watched as well."""
        children = self._plain.spawn(n_children)
        return [WatchedGenerator(child, self._active) for child in children]

    @property
    def bit_generator(self) -> Any:
        """The source of its bits.

        Reading it records an opaque release, as no trace observes what code draws from
        it.
        """
        _unseen(self._active(), "the bit generator")
        return self._plain.bit_generator


class WatchedState(_Watched, np.random.RandomState):
    """A generator ``numpy.random.RandomState`` whose draws are watched."""


UNWATCHED = ("seed", "get_state", "set_state")
"""Methods of ``RandomState`` that draw nothing."""


def _method(name: str) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if name in UNWATCHED:
            return getattr(self._plain, name)(*arguments, **keywords)
        return self._draw(name, arguments, keywords)

    return call


for _kind, _base in (
    (WatchedGenerator, np.random.Generator),
    (WatchedState, np.random.RandomState),
):
    for _name, _value in vars(_base).items():
        if not _name.startswith("_") and callable(_value) and _name != "spawn":
            setattr(_kind, _name, _method(_name))
