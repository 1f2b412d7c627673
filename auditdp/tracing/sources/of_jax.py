"""jax: the samplers of ``jax.random``, and so the noise of jax-privacy.

While code is watched, jax compiles nothing but its samplers, so that the trace observes
each call of a sampler. A result may differ from that of compiled code in its last bits.
Noise stays noise under operators and under the arithmetic functions of ``jax.numpy``.
Under any other function of ``jax.numpy`` the noise ends.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from auditdp.tracing.array_functions import ARITHMETIC
from auditdp.tracing.draws import ALONE, COIN
from auditdp.tracing.linear_forms import number
from auditdp.tracing.noise import Noise, drawn_noise, drawn_release, plainly
from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.patches import Patches
from auditdp.tracing.watched_run import Active, WatchedRun, in_run

FAMILIES = {"normal": "Gaussian", "laplace": "Laplace", "gumbel": "Gumbel"}
FAMILIES |= {name: name for name in ("logistic", "exponential", "uniform")}
"""The family of each sampler that is followed."""
OTHERS = (
    "ball",
    "beta",
    "binomial",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "dirichlet",
    "double_sided_maxwell",
    "f",
    "gamma",
    "generalized_normal",
    "geometric",
    "loggamma",
    "lognormal",
    "maxwell",
    "multivariate_normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "t",
    "triangular",
    "truncated_normal",
    "wald",
    "weibull_min",
)
"""Samplers whose law is not followed."""


def watch(patches: Patches, active: Active) -> None:
    """Replace the samplers of ``jax.random`` and the functions of ``jax.numpy``.

    In watched runs, compilation is switched off.
    """
    jax = sys.modules["jax"]
    patches.around.append(jax.disable_jit)
    for name in (*FAMILIES, *OTHERS, "bernoulli"):
        function = getattr(jax.random, name, None)
        if function is not None:
            patches.attribute(jax.random, name, _sampler(name, function, active))
    for name, function in list(vars(jax.numpy).items()):
        is_class = isinstance(function, type)
        if callable(function) and not name.startswith("_") and not is_class:
            patches.attribute(jax.numpy, name, _computing(name, function))


def _sampler(
    name: str, function: Callable[..., Any], active: Active
) -> Callable[..., Any]:
    signature, jax = inspect.signature(function), sys.modules["jax"]

    def compiled(*arguments: Any, **keywords: Any) -> Any:
        with jax.disable_jit(False):
            return function(*arguments, **keywords)

    def draw(run: WatchedRun, *arguments: Any, **keywords: Any) -> Any:
        values = (*arguments, *keywords.values())
        if any(isinstance(value, jax.core.Tracer) for value in values):
            return function(*arguments, **keywords)
        perform = run.unwatched(compiled, *arguments, **keywords)
        if name in OTHERS:
            law, why = NoiseLaw(name), "is drawn"
            return drawn_release(run, name, perform, ALONE, law, why=why)
        bound = signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        of = bound.arguments
        if name == "bernoulli":
            law, chances = NoiseLaw("coin"), number(of["p"])
            return drawn_release(run, name, perform, COIN, law, chances)
        low, high = number(of.get("minval", 0.0)), number(of.get("maxval", 1.0))
        key, shape = of["key"], tuple(np.atleast_1d(of["shape"]).tolist())
        if jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key):
            key = jax.random.key_data(key)
        # Calls with the same key, sampler and shape return the same numbers.
        origin = (np.asarray(key).tobytes(), name, shape)
        law = NoiseLaw(FAMILIES[name], high - low)
        return drawn_noise(run, name, perform, law, low, origin=origin)

    return functools.wraps(function)(in_run(function, active, draw))


def _computing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement of a function of ``jax.numpy``, which also takes noise.

    For arithmetic without keywords it returns noise. Any other function gets ordinary
    arrays, and the noise ends.
    """

    @functools.wraps(function)
    def compute(*arguments: Any, **keywords: Any) -> Any:
        if not any(type(value) is Noise for value in (*arguments, *keywords.values())):
            return function(*arguments, **keywords)
        if name in ARITHMETIC and not keywords:
            return ARITHMETIC[name](*arguments)
        return plainly(function, arguments, keywords, name)

    return compute
