"""jax, where it is imported: the samplers of ``jax.random``, and so what jax-privacy adds to gradients.

While code is watched nothing is compiled, so that its samplers are called where they stand; a result may differ from that
of compiled code in its last bits. Operators keep noise noise; for the functions of ``jax.numpy`` it is an ordinary array.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from auditdp.tracing.array_functions import plainly
from auditdp.tracing.draws import ALONE, COIN
from auditdp.tracing.linear_forms import number
from auditdp.tracing.noise import ARITHMETIC, Noise, noise_of, operated
from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.patches import Patches
from auditdp.tracing.sites import here
from auditdp.tracing.watched_run import Active, WatchedRun, in_run

FAMILIES = {"normal": "Gaussian", "laplace": "Laplace", "gumbel": "Gumbel"}
FAMILIES |= {name: name for name in ("logistic", "exponential", "uniform")}
"""By the name of a sampler."""
OTHERS = (
    *(
        "ball",
        "beta",
        "binomial",
        "categorical",
        "cauchy",
        "chisquare",
        "choice",
        "dirichlet",
        "double_sided_maxwell",
    ),
    *(
        "f",
        "gamma",
        "generalized_normal",
        "geometric",
        "loggamma",
        "lognormal",
        "maxwell",
        "multivariate_normal",
    ),
    *(
        "orthogonal",
        "pareto",
        "permutation",
        "poisson",
        "rademacher",
        "randint",
        "rayleigh",
        "t",
        "triangular",
    ),
    *("truncated_normal", "wald", "weibull_min"),
)
"""Samplers that are not followed."""


def watch(patches: Patches, active: Active) -> None:
    """Replace samplers and what computes with noise; nothing is compiled."""
    jax = sys.modules["jax"]
    patches.around.append(jax.disable_jit)
    for name in (*FAMILIES, *OTHERS, "bernoulli"):
        if (function := getattr(jax.random, name, None)) is not None:
            patches.attribute(jax.random, name, _sampler(name, function, active))
    for name, function in list(vars(jax.numpy).items()):
        if (
            callable(function)
            and not name.startswith("_")
            and not isinstance(function, type)
        ):
            patches.attribute(jax.numpy, name, _computing(name, function))


def _sampler(
    name: str, function: Callable[..., Any], active: Active
) -> Callable[..., Any]:
    signature, jax = inspect.signature(function), sys.modules["jax"]

    def compiled(*arguments: Any, **keywords: Any) -> Any:
        with jax.disable_jit(False):
            return function(*arguments, **keywords)

    def draw(run: WatchedRun, *arguments: Any, **keywords: Any) -> Any:
        if any(
            isinstance(value, jax.core.Tracer)
            for value in (*arguments, *keywords.values())
        ):
            return function(*arguments, **keywords)
        given = signature.bind(*arguments, **keywords)
        given.apply_defaults()
        of, perform, site = (
            given.arguments,
            run.unwatched(compiled, *arguments, **keywords),
            here(),
        )
        if name in OTHERS:
            made = run.draw(name, perform, NoiseLaw(name), site)
            return run.release(ALONE, made.law, None, made.value, site, why="is drawn")
        if name == "bernoulli":
            made = run.draw(name, perform, NoiseLaw("coin"), site)
            chances = np.broadcast_to(number(of["p"]), np.shape(made.value))
            return run.release(COIN, NoiseLaw("coin"), chances, made.value, site)
        low, high = (
            number(of.get(name, default))
            for name, default in (("minval", 0.0), ("maxval", 1.0))
        )
        law = NoiseLaw(FAMILIES[name], high - low)
        key = (
            jax.random.key_data(of["key"])
            if jax.numpy.issubdtype(of["key"].dtype, jax.dtypes.prng_key)
            else of["key"]
        )
        origin = (
            np.asarray(key).tobytes(),
            name,
            tuple(np.shape(of["shape"])) and tuple(of["shape"]),
        )
        made = run.draw(name, perform, law, site, location=low, origin=origin)
        return noise_of(run, made, low if np.any(low) else None)

    return functools.wraps(function)(in_run(function, active, draw))


def _computing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of ``jax.numpy`` that takes noise."""

    @functools.wraps(function)
    def compute(*arguments: Any, **keywords: Any) -> Any:
        if not any(type(value) is Noise for value in (*arguments, *keywords.values())):
            return function(*arguments, **keywords)
        if name in ARITHMETIC and not keywords:
            return operated(ARITHMETIC[name], *arguments)
        return plainly(function, arguments, keywords, name)

    return compute
