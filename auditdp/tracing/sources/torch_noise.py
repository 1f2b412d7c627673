"""torch: samplers that are functions, that fill a tensor, or that are distributions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from auditdp.tracing.draws import ALONE, CHOICE, COIN
from auditdp.tracing.filled_tensors import fill, is_alone
from auditdp.tracing.linear_forms import number
from auditdp.tracing.noise import (
    Noise,
    drawn_noise,
    drawn_release,
    opened,
    plain,
    write,
)
from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.patches import Patches
from auditdp.tracing.plain_values import shape_of
from auditdp.tracing.tensor_functions import filled_tensors
from auditdp.tracing.watched_run import Active, WatchedRun

Sample = tuple[NoiseLaw, Any, tuple[int, ...]]
"""Law of a draw without its location, the location, and the shape."""


def _sized(family: str) -> Callable[..., Sample]:
    def sample(*size: Any, **options: Any) -> Sample:
        shape = options.get("size", size)
        if len(shape) == 1 and isinstance(shape[0], Sequence):
            shape = shape[0]
        return NoiseLaw(family), 0.0, tuple(shape)

    return sample


def _like(family: str) -> Callable[..., Sample]:
    return lambda tensor, **_: (NoiseLaw(family), 0.0, tuple(tensor.shape))


def _normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **_: Any) -> Sample:
    if size is None:
        size = np.broadcast_shapes(shape_of(mean), shape_of(std))
    return NoiseLaw("Gaussian", number(std)), number(mean), tuple(size)


FUNCTIONS: dict[str, Callable[..., Sample]] = {
    "randn": _sized("Gaussian"),
    "randn_like": _like("Gaussian"),
    "rand": _sized("uniform"),
    "rand_like": _like("uniform"),
    "normal": _normal,
}
"""Functions from the arguments of a call to its ``Sample``, by the sampler's name."""
IN_PLACE: dict[str, Callable[..., tuple[NoiseLaw, Any]]] = {
    "normal_": lambda mean=0.0, std=1.0, **_: (NoiseLaw("Gaussian", std), mean),
    "uniform_": lambda low=0.0, high=1.0, **_: (NoiseLaw("uniform", high - low), low),
    "exponential_": lambda lambd=1.0, **_: (NoiseLaw("exponential", 1 / lambd), 0.0),
}
"""Functions from the arguments of a call to its law and its location, by the method.

The method fills a tensor with draws.
"""
DISTRIBUTIONS = {"Laplace": "Laplace", "Normal": "Gaussian", "Gumbel": "Gumbel"}
"""The family of each distribution that has the attributes ``loc`` and ``scale``."""
TABLES = {"Bernoulli": COIN, "Categorical": CHOICE}
"""The kind of release of each distribution that has the attribute ``probs``."""


def watch(patches: Patches, active: Active) -> None:
    """Replace samplers, and functions that make tensors or parameters of noise.

    Transforms of ``torch.func`` are replaced as well, and a mode of torch is entered in
    each watched run (see `tensor_functions`).
    """
    torch = sys.modules["torch"]
    with torch.device("cpu"):
        # At its first call in such a context, torch looks up the functions that heed a
        # default device.
        torch.empty(0)
    mode = filled_tensors(active)
    patches.around.append(lambda: mode)
    for name, sample in FUNCTIONS.items():
        patches.sampler(torch, name, active, partial(_drawn, name, sample))
    for name, family in (("randperm", "permutation"), ("randint", "choice of items")):
        patches.sampler(torch, name, active, partial(_public, family))
    patches.sampler(torch, "bernoulli", active, _bernoulli)
    for name in ("tensor", "as_tensor", "from_numpy"):
        patches.attribute(torch, name, _converted(getattr(torch, name)))
    for name in ("grad", "grad_and_value", "jacrev", "vmap"):
        patches.attribute(torch.func, name, _transformed(getattr(torch.func, name)))
    parameter = torch.nn.Parameter
    patches.attribute(parameter, "__new__", _parameter(parameter.__new__))
    for name in IN_PLACE:
        function = getattr(torch.Tensor, name)
        patches.attribute(torch.Tensor, name, _in_place(name, function, active))
    for name in (*DISTRIBUTIONS, *TABLES):
        kind = getattr(torch.distributions, name)
        for method in ("sample", "rsample"):
            if hasattr(kind, method):
                patches.sampler(kind, method, active, partial(_distribution, name))


def _drawn(
    name: str,
    sample: Callable[..., Sample],
    run: WatchedRun,
    function: Any,
    *arguments: Any,
    out: Any = None,
    requires_grad: bool = False,
    **keywords: Any,
) -> Any:
    law, location, shape = sample(*arguments, **keywords)
    perform = run.unwatched(function, *arguments, **keywords)
    noise = drawn_noise(run, name, perform, law, location, shape=shape)
    if out is not None:
        if type(noise) is Noise:
            return fill(run, out, noise)
        return write(out, noise)
    if requires_grad:
        return noise.requires_grad_()
    return noise


def _public(
    family: str, run: WatchedRun, function: Any, *arguments: Any, **keywords: Any
) -> Any:
    """Draw an order or integers, release them as public randomness, and return them.

    Args:
        family: "permutation" or "choice of items".
        run: The run.
        function: The sampler.
        arguments: Its positional arguments.
        keywords: Its keyword arguments.
    """
    count = float(max(part for part in arguments if isinstance(part, int)))
    perform = run.unwatched(function, *arguments, **keywords)
    return drawn_release(run, family, perform, ALONE, NoiseLaw(family, 1.0, count))


def _bernoulli(
    run: WatchedRun, function: Any, chances: Any, *arguments: Any, **keywords: Any
) -> Any:
    if arguments:
        return function(chances, *arguments, **keywords)
    perform, law = run.unwatched(function, chances, **keywords), NoiseLaw("coin")
    return drawn_release(run, "bernoulli", perform, COIN, law, number(chances))


def _distribution(
    name: str, run: WatchedRun, function: Any, self: Any, *given: Any, **options: Any
) -> Any:
    perform = run.unwatched(function, self, *given, **options)
    if name in TABLES:
        kind, chances = TABLES[name], number(self.probs)
        return drawn_release(run, name, perform, kind, NoiseLaw(kind), chances)
    law = NoiseLaw(DISTRIBUTIONS[name], number(self.scale))
    return drawn_noise(run, name, perform, law, number(self.loc))


def _in_place(
    name: str, function: Callable[..., Any], active: Active
) -> Callable[..., Any]:
    def draw(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
        run = active()
        if run is None:
            return function(tensor, *arguments, **keywords)
        # Two references are this function's own. Without a further one, no name in the
        # code holds the tensor.
        is_held = sys.getrefcount(tensor) > 2

        # The sampler writes into the tensor, which keeps its numbers until ``fill``.
        def perform() -> Any:
            before = tensor.detach().clone()
            drawn = function(tensor, *arguments, **keywords).detach().clone()
            write(tensor, before)
            return drawn

        law, location = IN_PLACE[name](*arguments, **keywords)
        shape, draw_it = tuple(tensor.shape), run.unwatched(perform)
        noise = drawn_noise(run, name, draw_it, law, location, shape=shape)
        if tensor.requires_grad:
            # A parameter may be initialised by noise.
            noise = plain(noise, "")
        if type(noise) is not Noise:
            return write(tensor, noise)
        if is_held or not is_alone(tensor):
            return fill(run, tensor, noise)
        return noise

    return draw


def _converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes a tensor of an array, also of noise."""

    def convert(data: Any, *arguments: Any, **keywords: Any) -> Any:
        data = opened(data)
        if type(data) is not Noise:
            return function(data, *arguments, **keywords)
        noise = data.copied(function(np.asarray(data.value), *arguments, **keywords))
        if noise.value.requires_grad:
            return noise.settle("")
        return noise

    return convert


def _transformed(transform: Callable[..., Any]) -> Callable[..., Any]:
    """Return a transform of ``torch.func`` whose functions get numbers, not noise.

    The noise ends. It is taken for initial weights, which are public.
    """

    def transformed(*given: Any, **options: Any) -> Any:
        function = transform(*given, **options)
        return lambda *arguments, **keywords: function(
            *[plain(argument, "") for argument in arguments], **plain(keywords, "")
        )

    return transformed


def _parameter(make: Callable[..., Any]) -> Any:
    """Return a function that makes a parameter of a tensor, also of noise.

    Noise that initialises a parameter ends, and is public.
    """

    def new(kind: Any, data: Any = None, *arguments: Any, **keywords: Any) -> Any:
        return make(kind, plain(data, ""), *arguments, **keywords)

    return staticmethod(new)
