"""Generators of numpy that are watched: each draw is noise that remembers where it was drawn."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from auditdp.tracing.draws import ALONE, CHOICE, COIN, Term
from auditdp.tracing.linear_forms import number
from auditdp.tracing.mixed_values import MOST_MIXED, linear
from auditdp.tracing.noise import WRITTEN, Noise, noise_of, settled, write
from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.plain_values import any_of, ndim, shape_of
from auditdp.tracing.sites import here
from auditdp.tracing.watched_run import Active, WatchedRun

Perform = Callable[..., Any]
SAMPLERS: dict[str, tuple[str, tuple[str, ...], tuple[float, ...]]] = {
    "laplace": ("Laplace", ("loc", "scale", "size"), (0.0, 1.0)),
    "normal": ("Gaussian", ("loc", "scale", "size"), (0.0, 1.0)),
    "multivariate_normal": ("Gaussian", ("mean", "cov", "size"), ()),
    "gumbel": ("Gumbel", ("loc", "scale", "size"), (0.0, 1.0)),
    "logistic": ("logistic", ("loc", "scale", "size"), (0.0, 1.0)),
    "uniform": ("uniform", ("low", "high", "size"), (0.0, 1.0)),
    "exponential": ("exponential", ("scale", "size"), (1.0,)),
    "standard_normal": ("Gaussian", ("size", "dtype", "out"), ()),
    "standard_exponential": ("exponential", ("size", "dtype", "method", "out"), ()),
    "standard_laplace": ("Laplace", ("size",), ()),
    "random": ("uniform", ("size", "dtype", "out"), ()),
    "random_sample": ("uniform", ("size",), ()),
    "sample": ("uniform", ("size",), ()),
    "ranf": ("uniform", ("size",), ()),
    "rand": ("uniform", (), ()),
    "randn": ("Gaussian", (), ()),
    "geometric": ("geometric", ("p", "size"), ()),
    "integers": ("integer", ("low", "high", "size", "dtype", "endpoint"), ()),
    "randint": ("integer", ("low", "high", "size", "dtype"), ()),
    "poisson": ("Poisson", ("lam", "size"), (1.0,)),
    "binomial": ("binomial", ("n", "p", "size"), ()),
}
"""For each sampler its family, and the names of its arguments with their defaults."""
OTHERS = {
    "negative_binomial": ("n", "p"),
    "standard_t": ("df",),
    "gamma": ("shape", "scale"),
}
"""Samplers whose law is a parameter of the release, and that are not followed further."""
PERMUTING = ("permutation", "permuted", "shuffle")


def watched_draw(
    run: WatchedRun,
    method: str,
    perform: Perform,
    arguments: Sequence[Any],
    keywords: dict[str, Any],
    origin: Any = None,
) -> Any:
    """Draw by a method of numpy's generators, and return what the caller's code is to see in place of the number.

    Args:
        run: Keeps the draw.
        method: Its name.
        perform: Draws.
        arguments: Its positional arguments.
        keywords: Its keyword arguments.
        origin: See ``WatchedRun.draw``.
    """
    arguments, keywords = (
        settled(arguments),
        dict(zip(keywords, settled([*keywords.values()]), strict=True)),
    )
    if method == "choice":
        return _choice(run, perform, arguments, keywords, origin)
    if method in PERMUTING:
        return _permuted(run, method, perform, arguments, keywords, origin)
    draw_it = functools.partial(perform, *arguments, **keywords)
    if method == "binomial":
        given = dict(zip(("n", "p", "size"), arguments, strict=False)) | keywords
        if ndim(given["n"]) == 0 and given["n"] == 1:
            return _events(run, draw_it, given, origin)
    if keywords.get("out") is not None and method in SAMPLERS:
        out = keywords.pop("out")
        given = {**keywords, "size": np.shape(out)}
        drawn = watched_draw(run, method, perform, (), given, origin)
        return write(out, drawn.settle(WRITTEN) if type(drawn) is Noise else drawn)
    if method not in SAMPLERS:
        return _other(run, method, draw_it, arguments, keywords)
    family, names, defaults = SAMPLERS[method]
    given = dict(zip(names, arguments, strict=False)) | keywords
    law, location = _law(family, method, names, defaults, given)
    if law is None:
        found = (
            _correlated(run, draw_it, given, origin)
            if method == "multivariate_normal"
            else None
        )
        return (
            _other(run, method, draw_it, arguments, keywords)
            if found is None
            else found
        )
    site = here()
    size = tuple(arguments) if method in ("rand", "randn") else given.get("size")
    several = law.parameter is None or isinstance(law.parameter, tuple)
    shape = _shape(size, location, law.scale, 0.0 if several else law.parameter)
    if method == "multivariate_normal" and size is not None:
        shape = (*shape, len(location))
    draw = run.draw(
        method, draw_it, law, site, location=location, shape=shape, origin=origin
    )
    if any_of(location):
        run.located.add(site)
    return noise_of(run, draw, location if site in run.located else None)


def _law(
    family: str,
    method: str,
    names: Sequence[str],
    defaults: Sequence[float],
    given: dict[str, Any],
) -> tuple[NoiseLaw | None, Any]:
    """Return the law of a draw without its location, and the location."""
    if given.get("dtype") not in (
        None,
        np.float64,
        float,
        "float64",
        int,
        np.int64,
        "int64",
    ):
        return None, 0.0  # fewer bits: another law
    values = dict(zip(names, defaults, strict=False)) | {
        k: v for k, v in given.items() if v is not None
    }
    if method == "multivariate_normal":
        covariance = np.asarray(values["cov"], float)
        if np.any(covariance != np.diag(np.diag(covariance))):
            return None, 0.0
        return NoiseLaw(family, np.sqrt(np.diag(covariance))), np.asarray(
            values["mean"], float
        )
    if family in ("geometric", "Poisson"):
        return NoiseLaw(
            family, 1.0, number(values["p" if family == "geometric" else "lam"])
        ), 0.0
    if family == "binomial":
        trials, p = (number(values[name]) for name in ("n", "p"))
        return (
            NoiseLaw(family, 1.0, (trials, p)) if ndim(trials) == ndim(p) == 0 else None
        ), 0.0
    if family == "integer":
        low, high = values["low"], values.get("high")
        low, high = (0, low) if high is None else (low, high)
        count = number(high) - number(low) + bool(values.get("endpoint"))
        return NoiseLaw(family, 1.0, count), number(low)
    if family == "uniform" and "low" in values:
        return NoiseLaw(family, number(values["high"]) - number(values["low"])), number(
            values["low"]
        )
    return NoiseLaw(family, number(values.get("scale", 1.0))), number(
        values.get("loc", 0.0)
    )


def _correlated(
    run: WatchedRun, perform: Perform, given: dict[str, Any], origin: Any
) -> Any:
    """Draw one vector with a covariance, a matrix times independent noise; None where it has no full rank or is too long."""
    mean, covariance = (np.asarray(given[name], float) for name in ("mean", "cov"))
    if given.get("size") is not None or len(mean) > MOST_MIXED:
        return None
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return None
    drawn: list[Any] = []

    def standard() -> Any:
        drawn.append(perform())
        return np.linalg.solve(factor, drawn[0] - mean)

    draw = run.draw(
        "multivariate_normal",
        standard,
        NoiseLaw("Gaussian"),
        here(),
        shape=mean.shape,
        origin=origin,
    )
    noise = noise_of(run, draw)
    return linear(
        noise,
        lambda: drawn[0] if drawn else mean + factor @ draw.value,
        lambda z: mean + factor @ z,
    )


def _shape(size: Any, *parameters: Any) -> tuple[int, ...]:
    if size is not None and size != ():
        return (
            tuple(size) if isinstance(size, tuple | list | np.ndarray) else (int(size),)
        )
    shapes = {shape_of(parameter) for parameter in parameters}
    return shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)


def _other(
    run: WatchedRun,
    method: str,
    perform: Perform,
    arguments: Sequence[Any],
    keywords: dict[str, Any],
) -> Any:
    """Draw by a sampler that is not followed: a number whose law has a name alone."""
    site = here()
    names = OTHERS.get(method, ())
    given = dict(zip(names, arguments, strict=False)) | keywords
    parameter = (
        tuple(repr(given[name]) for name in names if name in given) if names else None
    )
    draw = run.draw(method, perform, NoiseLaw(method, 1.0, parameter), site)
    if not isinstance(draw.value, int | float | np.generic | np.ndarray):
        return run.release(ALONE, draw.law, None, draw.value, site, why="is drawn")
    return noise_of(run, draw)


def _events(
    run: WatchedRun, perform: Perform, given: dict[str, Any], origin: Any
) -> Any:
    """Draw events, numbers 0 and 1, of given probabilities."""
    site, chances, law = here(), np.asarray(given["p"], float), NoiseLaw("coin")
    draw = run.draw(
        "binomial",
        perform,
        law,
        site,
        shape=_shape(given.get("size"), chances),
        origin=origin,
    )
    location = (
        float(chances)
        if ndim(draw.value) == 0
        else np.broadcast_to(chances, shape_of(draw.value))
    )
    return run.release(COIN, law, location, draw.value, site, (Term(draw, 0),))


def _choice(
    run: WatchedRun,
    perform: Perform,
    arguments: Sequence[Any],
    keywords: dict[str, Any],
    origin: Any,
) -> Any:
    """Choose from a table of probabilities, or some of the items at random."""
    given = dict(zip(("a", "size", "replace", "p"), arguments, strict=False)) | keywords
    items, size, chances, replace = (
        given["a"],
        given.get("size"),
        given.get("p"),
        given.get("replace", True),
    )
    count = int(items) if ndim(items) == 0 else len(items)
    rest = {key: value for key, value in given.items() if key in ("axis", "shuffle")}
    site, shape = here(), () if size is None else _shape(size)
    if chances is None:
        law = NoiseLaw(
            "choice of items" if replace or not shape else "sample of items", 1.0, count
        )
        draw = run.draw(
            "choice",
            lambda: perform(count, size, replace, **rest),
            law,
            site,
            shape=shape,
            origin=origin,
        )
        place = run.release(ALONE, law, None, draw.value, site)
    elif not replace and shape:
        law = NoiseLaw(
            "a choice by a table without replacement",
            1.0,
            repr(np.asarray(chances, float).tolist()),
        )
        draw = run.draw(
            "choice",
            lambda: perform(count, size, replace, chances, **rest),
            law,
            site,
            shape=shape,
        )
        place = run.release(ALONE, law, None, draw.value, site, why="is drawn")
    else:
        law, table = NoiseLaw("choice"), np.asarray(chances, float)
        draw = run.draw(
            "choice",
            lambda: perform(count, size, replace, chances),
            law,
            site,
            shape=shape,
            origin=origin,
        )
        named = (
            None if ndim(items) == 0 else tuple(map(repr, np.asarray(items).tolist()))
        )
        place = run.release(
            CHOICE, law, table, draw.value, site, (Term(draw, 0),), names=named
        )
    place = (
        np.minimum(place, count - 1)
        if isinstance(place, np.ndarray)
        else min(place, count - 1)
    )
    if ndim(items) == 0:
        return place
    found = np.asarray(items)
    return (
        found[place]
        if not rest.get("axis")
        else np.take(found, place, axis=rest["axis"])
    )


def _permuted(
    run: WatchedRun,
    method: str,
    perform: Perform,
    arguments: Sequence[Any],
    keywords: dict[str, Any],
    origin: Any,
) -> Any:
    """Permute by places, so that a replay puts its own items in the recorded order."""
    items: Any = arguments[0] if arguments else keywords.get("x")
    each = method == "permuted"  # every line by itself
    axis = keywords.get(
        "axis", arguments[1] if len(arguments) > 1 else None if each else 0
    )
    if keywords.get("out") is not None:
        return _other(
            run,
            method,
            functools.partial(perform, *arguments, **keywords),
            arguments,
            keywords,
        )
    count = (
        int(items) if ndim(items) == 0 and not hasattr(items, "__len__") else len(items)
    )
    shape = shape_of(items) if each else (count if not axis else shape_of(items)[axis],)
    site = here()

    def places() -> Any:
        order = np.arange(math.prod(shape)).reshape(shape)
        if method == "shuffle":
            perform(order)
            return order
        return perform(order, axis=axis) if each else perform(len(order))

    law = NoiseLaw(
        "permutation" if len(shape) == 1 else "permutation along an axis",
        1.0,
        math.prod(shape),
    )
    draw = run.draw(method, places, law, site, shape=shape, origin=origin)
    order = run.release(ALONE, law, None, draw.value, site)
    if each:
        return np.ravel(items)[order]
    if not np.array_equal(
        np.sort(order), np.arange(shape[0])
    ):  # forced to one of another length
        kept = [k for k in dict.fromkeys(order.tolist()) if k < shape[0]]
        order = np.array(kept + [k for k in range(shape[0]) if k not in set(kept)], int)
    if method == "shuffle":
        moved = (
            [items[k] for k in order]
            if not isinstance(items, np.ndarray)
            else np.take(items, order, axis=axis)
        )
        items[:] = moved
        return None
    if ndim(items) == 0 and not hasattr(items, "__len__"):
        return order
    return np.take(np.asarray(items), order, axis=axis)


def _unseen(run: WatchedRun | None, source: str) -> None:
    """Note in the run under way that the code has a source of draws that the trace does not see."""
    if run is not None:
        run.release(
            ALONE,
            NoiseLaw(source),
            None,
            0,
            here(),
            why="draws numbers that the trace does not see",
        )


class WatchedGenerator(np.random.Generator):
    """A generator on the stream of another one whose draws are watched.

    Args:
        plain: The other one.
        active: Returns the run under way; None where there is none, or in another thread.
        seed: What generators share that have the same seed; None where it is not known.
    """

    def __init__(
        self, plain: np.random.Generator, active: Active, seed: Any = None
    ) -> None:
        super().__init__(plain.bit_generator)
        self._plain, self._active, self._seed, self._count = plain, active, seed, 0

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Return children that are watched as well."""
        return [
            WatchedGenerator(child, self._active)
            for child in self._plain.spawn(n_children)
        ]

    @property
    def bit_generator(self) -> Any:
        """The source of its bits, whose draws no trace sees."""
        _unseen(self._active(), "the bit generator")
        return self._plain.bit_generator

    def __reduce__(self) -> Any:
        _unseen(self._active(), "a copy of the generator")
        return self._plain.__reduce__()

    def _draw(
        self, method: str, arguments: Sequence[Any], keywords: dict[str, Any]
    ) -> Any:
        perform, run = getattr(self._plain, method), self._active()
        if run is None:
            return perform(*arguments, **keywords)
        self._count += 1
        origin = None if self._seed is None else (self._seed, self._count, method)
        return watched_draw(run, method, perform, arguments, keywords, origin)


class WatchedState(np.random.RandomState):
    """The same for numpy's older generator."""

    def __init__(
        self, plain: np.random.RandomState, active: Active, seed: Any = None
    ) -> None:
        super().__init__(plain._bit_generator)
        self._plain, self._active, self._seed, self._count = plain, active, seed, 0

    def __reduce__(self) -> Any:
        _unseen(self._active(), "a copy of the generator")
        return self._plain.__reduce__()

    _draw = WatchedGenerator._draw


UNWATCHED = ("spawn", "seed", "get_state", "set_state")


def _watch(method: str) -> Callable[..., Any]:
    def draw(self: Any, *arguments: Any, **keywords: Any) -> Any:
        return self._draw(method, arguments, keywords)

    return draw


def _plainly(method: str) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
        return getattr(self._plain, method)(*arguments, **keywords)

    return call


for _kind, _base in (
    (WatchedGenerator, np.random.Generator),
    (WatchedState, np.random.RandomState),
):
    for _name in dir(_base):
        if (
            not _name.startswith("_")
            and callable(getattr(_base, _name))
            and _name != "spawn"
        ):
            setattr(
                _kind, _name, _plainly(_name) if _name in UNWATCHED else _watch(_name)
            )
