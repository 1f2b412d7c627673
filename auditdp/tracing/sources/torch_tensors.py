"""torch, where it is imported: its samplers as functions, in place, and in distributions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from auditdp.tracing.draws import ALONE, CHOICE, COIN
from auditdp.tracing.families import NoiseLaw
from auditdp.tracing.forms import number
from auditdp.tracing.noise import ARITHMETIC, Noise, noise_of
from auditdp.tracing.numpy_functions import plain
from auditdp.tracing.patches import Patches
from auditdp.tracing.plain import any_of, shape_of
from auditdp.tracing.run import Active, WatchedRun, in_run
from auditdp.tracing.sites import here
from auditdp.tracing.torch_functions import (
    AFFINE,
    COMPARISONS,
    COPYING,
    GATHERING,
    LAYING,
    LINEAR,
    fill,
    named,
    torch_function,
)

Parameters = Callable[..., tuple[NoiseLaw, Any]]
FUNCTIONS: dict[str, Parameters] = {
    "randn": lambda *_, **__: (NoiseLaw("Gaussian"), 0.0),
    "randn_like": lambda *_, **__: (NoiseLaw("Gaussian"), 0.0),
    "rand": lambda *_, **__: (NoiseLaw("uniform"), 0.0),
    "rand_like": lambda *_, **__: (NoiseLaw("uniform"), 0.0),
    "normal": lambda mean=0.0, std=1.0, *_, **__: (NoiseLaw("Gaussian", number(std)), number(mean)),
}
"""For each function, from its arguments the law of the draw and the location."""
IN_PLACE: dict[str, Parameters] = {
    "normal_": lambda mean=0.0, std=1.0, **_: (NoiseLaw("Gaussian", std), mean),
    "uniform_": lambda low=0.0, high=1.0, **_: (NoiseLaw("uniform", high - low), low),
    "exponential_": lambda lambd=1.0, **_: (NoiseLaw("exponential", 1 / lambd), 0.0),
}
DISTRIBUTIONS: dict[str, tuple[str, str, str]] = {
    "Laplace": ("Laplace", "loc", "scale"),
    "Normal": ("Gaussian", "loc", "scale"),
    "Gumbel": ("Gumbel", "loc", "scale"),
}
TABLES = {"Bernoulli": COIN, "Categorical": CHOICE}
DESCRIBING = (
    *(
        "device",
        "dim",
        "dtype",
        "grad",
        "grad_fn",
        "is_floating_point",
        "is_leaf",
        "is_sparse",
        "layout",
        "len",
        "ndim",
    ),
    *("numel", "requires_grad", "shape", "size", "stride"),
)
"""What may be asked of a tensor without a look at its entries."""
FOLLOWED = (*ARITHMETIC, *AFFINE, *COMPARISONS, *COPYING, *LAYING, *LINEAR, *GATHERING, "rsub")
"""Functions of noise that may be noise again, or a release; any other ends it."""
TRANSFORMS = ("grad", "grad_and_value", "jacrev", "vmap")
OVERWRITING = ("zero", "fill")
"""What leaves nothing of a tensor's entries."""
TEMPORARY = 2
"""References to a tensor that nobody holds, while one of its methods is watched."""


def watch(patches: Patches, active: Active) -> None:
    """Replace what draws."""
    torch = sys.modules["torch"]
    mode = _filled_tensors(active)
    patches.around.append(lambda: mode)
    for name, parameters in FUNCTIONS.items():
        patches.attribute(torch, name, _function(name, getattr(torch, name), parameters, active))
    patches.attribute(torch, "randperm", _public("permutation", torch.randperm, active))
    patches.attribute(torch, "randint", _public("choice of items", torch.randint, active))
    patches.attribute(torch, "bernoulli", _bernoulli(torch.bernoulli, active))
    for name in ("tensor", "as_tensor", "from_numpy"):
        patches.attribute(torch, name, _converted(getattr(torch, name)))
    for name in TRANSFORMS:
        patches.attribute(torch.func, name, _transformed(getattr(torch.func, name)))
    patches.attribute(torch.nn.Parameter, "__new__", _parameter(torch.nn.Parameter.__new__))
    for name, parameters in IN_PLACE.items():
        patches.attribute(torch.Tensor, name, _in_place(name, getattr(torch.Tensor, name), parameters, active))
    if (distributions := sys.modules.get("torch.distributions")) is not None:
        for name in (*DISTRIBUTIONS, *TABLES):
            for method in ("sample", "rsample"):
                if hasattr(getattr(distributions, name), method):
                    _distribution(patches, getattr(distributions, name), name, method, active)


def _filled_tensors(active: Active) -> Any:
    """Return a mode of torch in which a tensor that noise was written into stands for that noise."""
    overrides = sys.modules["torch.overrides"]

    class FilledTensors(overrides.TorchFunctionMode):  # type: ignore[name-defined,misc]
        def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
            run, keywords = active(), keywords or {}
            if function.__name__ == "__set__" and any(type(value) is Noise for value in arguments):
                return torch_function(function, arguments, keywords)
            if run is None or not run.filled:
                return function(*arguments, **keywords)
            (name, in_place), described = named(function), getattr(function, "__self__", None)
            if (name in DESCRIBING and not in_place) or (
                name == "get" and getattr(described, "__name__", "") in DESCRIBING
            ):
                return function(*arguments, **keywords)
            found = [_noise_in(run, value) for value in arguments]
            if all(new is old for new, old in zip(found, arguments, strict=True)):
                return function(*arguments, **keywords)
            if in_place and name in OVERWRITING and found[1:] == [*arguments[1:]]:
                run.filled.pop(id(arguments[0]), None)
                return function(*arguments, **keywords)
            if name not in FOLLOWED:
                _end(run, arguments, "" if name == "requires_grad" else f"is used by {name}")  # parameters are public
                return function(*arguments, **keywords)
            if not in_place or found[0] is arguments[0]:
                return torch_function(function, found, keywords)
            tensor, _ = run.filled.pop(id(arguments[0]))
            result = torch_function(function, found, keywords)
            return fill(tensor, result) if type(result) is Noise else tensor.copy_(result)

    return FilledTensors()


def _noise_in(run: WatchedRun, value: Any) -> Any:
    """Return the noise that a tensor, or each of a list, stands for; else the value."""
    if type(value) in (list, tuple):
        found = [_noise_in(run, item) for item in value]
        return value if all(new is old for new, old in zip(found, value, strict=True)) else found
    return run.filled[id(value)][1] if id(value) in run.filled else value


def _end(run: WatchedRun, values: Any, why: str) -> None:
    """End the noise that tensors stand for, and leave its numbers in them."""
    for value in values:
        if type(value) in (list, tuple):
            _end(run, value, why)
        elif id(value) in run.filled:
            tensor, noise = run.filled.pop(id(value))
            _write(tensor, noise.settle("" if tensor.requires_grad else why))


def _write(tensor: Any, value: Any) -> Any:
    with sys.modules["torch"].no_grad():
        return tensor.copy_(value)


def _size(name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape that a function draws."""
    if name.endswith("_like"):
        return tuple(arguments[0].shape)
    if name == "normal":
        mean, std, size = (*arguments, *(None,) * 3)[:3]
        size = keywords.get("size", size)
        given = (keywords.get("mean", mean), keywords.get("std", std))
        return np.broadcast_shapes(*map(shape_of, given)) if size is None else tuple(size)
    size = keywords.get("size", arguments)
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], Sequence) else tuple(size)


def _noise(
    run: WatchedRun, name: str, perform: Callable[[], Any], law: NoiseLaw, location: Any, shape: Any = None
) -> Any:
    draw = run.draw(name, perform, law, here(), location=location, shape=shape)
    return noise_of(run, draw, location if any_of(location) else None)


def _function(name: str, function: Callable[..., Any], parameters: Parameters, active: Active) -> Callable[..., Any]:
    def draw(run: WatchedRun, *arguments: Any, **keywords: Any) -> Any:
        if keywords.get("out") is not None:
            return function(*arguments, **keywords)
        law, location = parameters(*arguments, **keywords)
        is_parameter = keywords.pop("requires_grad", False)
        shape = _size(name, arguments, keywords)
        noise = _noise(run, name, run.unwatched(function, *arguments, **keywords), law, location, shape)
        return noise.requires_grad_() if is_parameter else noise

    return in_run(function, active, draw)


def _public(family: str, function: Callable[..., Any], active: Active) -> Callable[..., Any]:
    """Return a sampler of orders or places that do not depend on the data, as public randomness."""

    def draw(run: WatchedRun, *arguments: Any, **keywords: Any) -> Any:
        site, count = here(), float(max(number for number in arguments if isinstance(number, int)))
        made = run.draw(family, run.unwatched(function, *arguments, **keywords), NoiseLaw(family, 1.0, count), site)
        return run.release(ALONE, NoiseLaw(family, 1.0, count), None, made.value, site)

    return in_run(function, active, draw)


def _bernoulli(function: Callable[..., Any], active: Active) -> Callable[..., Any]:
    def draw(run: WatchedRun, chances: Any, *arguments: Any, **keywords: Any) -> Any:
        if arguments:
            return function(chances, *arguments, **keywords)
        site = here()
        made = run.draw("bernoulli", run.unwatched(function, chances, **keywords), NoiseLaw("coin"), site)
        return run.release(COIN, NoiseLaw("coin"), number(chances), made.value, site)

    return in_run(function, active, draw)


def _in_place(name: str, function: Callable[..., Any], parameters: Parameters, active: Active) -> Callable[..., Any]:
    def draw(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
        run = active()
        if run is None:
            return function(tensor, *arguments, **keywords)
        law, location = parameters(*arguments, **keywords)
        held = sys.getrefcount(tensor) > TEMPORARY
        perform = run.unwatched(function, tensor, *arguments, **keywords)
        noise = _noise(run, name, lambda: perform().clone(), law, location, tuple(tensor.shape))
        if type(noise) is Noise and tensor.requires_grad:
            noise = noise.settle("")  # a parameter, as it is initialised
        if type(noise) is not Noise:
            return _write(tensor, noise)
        if held:
            return fill(tensor, noise)
        _write(tensor, noise.value)  # what it is a view of may be held
        return noise

    return draw


def _converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes a tensor of an array, also of noise."""

    def convert(data: Any, *arguments: Any, **keywords: Any) -> Any:
        if type(data) is not Noise:
            return function(data, *arguments, **keywords)
        made = data.copied(function(np.asarray(data.value), *arguments, **keywords))
        if data.settled is not None:
            return function(np.asarray(data.settled[0]), *arguments, **keywords)
        return made.settle("") if made.value.requires_grad else made

    return convert


def _transformed(transform: Callable[..., Any]) -> Callable[..., Any]:
    """Return a transform of ``torch.func`` whose functions take noise as what it is: weights that are initialised."""

    def made(*given: Any, **options: Any) -> Any:
        function = transform(*given, **options)

        def call(*arguments: Any, **keywords: Any) -> Any:
            return function(*plain(arguments, ""), **dict(zip(keywords, plain([*keywords.values()], ""), strict=True)))

        return call

    return made


def _parameter(make: Callable[..., Any]) -> Any:
    """Return what makes a parameter, also of noise: how it is initialised is public."""

    def new(kind: Any, data: Any = None, *arguments: Any, **keywords: Any) -> Any:
        return make(kind, data.settle("") if type(data) is Noise else data, *arguments, **keywords)

    return staticmethod(new)


def _distribution(patches: Patches, kind: Any, name: str, method: str, active: Active) -> None:
    function = getattr(kind, method)

    def draw(run: WatchedRun, self: Any, *arguments: Any, **keywords: Any) -> Any:
        perform = run.unwatched(function, self, *arguments, **keywords)
        if name in DISTRIBUTIONS:
            family, loc, scale = DISTRIBUTIONS[name]
            return _noise(
                run, name, perform, NoiseLaw(family, number(getattr(self, scale))), number(getattr(self, loc))
            )
        site = here()
        made = run.draw(name, perform, NoiseLaw(TABLES[name]), site)
        return run.release(TABLES[name], NoiseLaw(TABLES[name]), number(self.probs), made.value, site)

    patches.attribute(kind, method, in_run(function, active, draw))
