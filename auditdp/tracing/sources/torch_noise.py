"""torch, where it is imported: its samplers as functions, in place, and in distributions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from auditdp.tracing.array_functions import plain
from auditdp.tracing.draws import ALONE, CHOICE, COIN
from auditdp.tracing.linear_forms import number
from auditdp.tracing.noise import ARITHMETIC, Noise, noise_of, write
from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.patches import Patches
from auditdp.tracing.plain_values import any_of, put_at, shape_of
from auditdp.tracing.sites import here
from auditdp.tracing.tensor_functions import (
    AFFINE,
    COMPARISONS,
    COPYING,
    DESCRIBING,
    GATHERING,
    LAYING,
    LINEAR,
    OVERWRITING,
    each_of,
    end,
    fill,
    is_alone,
    memory,
    named,
    noise_in,
    torch_function,
)
from auditdp.tracing.watched_run import Active, WatchedRun, in_run

Parameters = Callable[..., tuple[NoiseLaw, Any]]
FUNCTIONS: dict[str, Parameters] = {
    "randn": lambda *_, **__: (NoiseLaw("Gaussian"), 0.0),
    "randn_like": lambda *_, **__: (NoiseLaw("Gaussian"), 0.0),
    "rand": lambda *_, **__: (NoiseLaw("uniform"), 0.0),
    "rand_like": lambda *_, **__: (NoiseLaw("uniform"), 0.0),
    "normal": lambda mean=0.0, std=1.0, *_, **__: (
        NoiseLaw("Gaussian", number(std)),
        number(mean),
    ),
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
FOLLOWED = (
    *ARITHMETIC,
    *AFFINE,
    *COMPARISONS,
    *COPYING,
    *LAYING,
    *LINEAR,
    *GATHERING,
    "rsub",
)
"""Functions of noise that may be noise again, or a release; any other ends it."""
VIEWS = (
    *COPYING,
    *LAYING,
    "H",
    "T",
    "data",
    "getitem",
    "item",
    "mH",
    "mT",
    "numpy",
    "tolist",
)
"""What looks at the memory of a tensor, or copies entries of it."""
TRANSFORMS = ("grad", "grad_and_value", "jacrev", "vmap")
TEMPORARY = 2
"""References to a tensor that nobody holds, while one of its methods is watched."""


def watch(patches: Patches, active: Active) -> None:
    """Replace what draws."""
    torch = sys.modules["torch"]
    with torch.device("cpu"):
        torch.empty(
            0
        )  # torch looks up once, here at the latest, which functions heed a default device
    mode = _filled_tensors(active)
    patches.around.append(lambda: mode)
    for name, parameters in FUNCTIONS.items():
        patches.attribute(
            torch, name, _function(name, getattr(torch, name), parameters, active)
        )
    patches.attribute(torch, "randperm", _public("permutation", torch.randperm, active))
    patches.attribute(
        torch, "randint", _public("choice of items", torch.randint, active)
    )
    patches.attribute(torch, "bernoulli", _bernoulli(torch.bernoulli, active))
    for name in ("tensor", "as_tensor", "from_numpy"):
        patches.attribute(torch, name, _converted(getattr(torch, name)))
    for name in TRANSFORMS:
        patches.attribute(torch.func, name, _transformed(getattr(torch.func, name)))
    patches.attribute(
        torch.nn.Parameter, "__new__", _parameter(torch.nn.Parameter.__new__)
    )
    for name, parameters in IN_PLACE.items():
        patches.attribute(
            torch.Tensor,
            name,
            _in_place(name, getattr(torch.Tensor, name), parameters, active),
        )
    if (distributions := sys.modules.get("torch.distributions")) is not None:
        for name in (*DISTRIBUTIONS, *TABLES):
            for method in ("sample", "rsample"):
                if hasattr(getattr(distributions, name), method):
                    _distribution(
                        patches, getattr(distributions, name), name, method, active
                    )


def _filled_tensors(active: Active) -> Any:
    """Return a mode of torch in which a tensor that noise was written into stands for that noise."""
    overrides = sys.modules["torch.overrides"]

    class FilledTensors(overrides.TorchFunctionMode):  # type: ignore[name-defined,misc]
        def __torch_function__(
            self, function: Any, types: Any, arguments: Any = (), keywords: Any = None
        ) -> Any:
            run, keywords = active(), keywords or {}
            if run is None:
                return function(*arguments, **keywords)
            (name, in_place), attribute = (
                named(function),
                getattr(getattr(function, "__self__", None), "__name__", ""),
            )
            written = type(arguments[-1]) is Noise if arguments else False
            if (
                written
                and name == "set"
                and (attribute == "grad" or not arguments[0].requires_grad)
            ):
                return function(
                    arguments[0], fill(run, arguments[1].value, arguments[1])
                )
            if name == "set" and written:
                return torch_function(function, arguments, keywords)
            if (name in DESCRIBING and not in_place) or (
                name == "get" and attribute in DESCRIBING
            ):
                return function(*arguments, **keywords)
            if name in OVERWRITING and (
                written or not run.filled.keys().isdisjoint(map(memory, arguments))
            ):
                return _overwritten(run, function, name, arguments, keywords)
            if not run.filled:
                return function(*arguments, **keywords)
            found = [_noise_in(run, value) for value in arguments]
            if all(new is old for new, old in zip(found, arguments, strict=True)):
                return function(*arguments, **keywords)
            if (of_each := each_of(name, in_place, arguments, keywords)) is not None:
                apply, each, options = of_each
                return [
                    self.__torch_function__(apply, types, one, options) for one in each
                ]
            if (type(found[0]) is Noise and name in VIEWS) or (
                name == "get" and attribute in VIEWS
            ):
                return _viewed(function, name, found[0], arguments, keywords)
            if name not in FOLLOWED:
                _end(
                    run,
                    arguments,
                    "" if name == "requires_grad" else f"is used by {name}",
                )  # parameters are public
                return function(*arguments, **keywords)
            result = torch_function(function, found, keywords)
            return (
                fill(run, arguments[0], result)
                if in_place and found[0] is not arguments[0]
                else result
            )

    return FilledTensors()


def _noise_in(run: WatchedRun, value: Any) -> Any:
    """Return the noise that a tensor, or each of a list, stands for; else the value."""
    if type(value) in (list, tuple):
        found = [_noise_in(run, item) for item in value]
        return (
            value
            if all(new is old for new, old in zip(found, value, strict=True))
            else found
        )
    noise = noise_in(run, value)
    return value if noise is None else noise


def _overwritten(
    run: WatchedRun,
    function: Any,
    name: str,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    """Write into a tensor, and keep what is noise then."""
    tensor, content = (
        arguments[0],
        _noise_in(run, arguments[-1]) if name != "zero" else 0.0,
    )
    if type(tensor) is Noise or tensor.requires_grad or keywords:
        return torch_function(function, arguments, keywords)
    return fill(
        run, tensor, content, put_at(arguments[1]) if name == "setitem" else None
    )


def _viewed(
    function: Any,
    name: str,
    noise: Noise,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    """Return tensors that look at the same memory as they are, and noise where they have their own."""
    if name in ("item", "tolist"):
        return getattr(noise, name)()
    made = function(*arguments, **keywords)
    if name == "numpy":
        return noise.copied(made)
    if all(
        memory(part) == memory(arguments[0])
        for part in (made if isinstance(made, list | tuple) else (made,))
    ):
        return made
    return (
        noise[arguments[1]]
        if name == "getitem"
        else torch_function(function, [noise, *arguments[1:]], keywords)
    )


def _end(run: WatchedRun, values: Any, why: str) -> None:
    """End the noise that tensors stand for, and leave its numbers in them."""
    for value in values:
        if type(value) in (list, tuple):
            _end(run, value, why)
        elif memory(value) in run.filled:
            end(run, value, "" if value.requires_grad else why)


def _size(
    name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[int, ...]:
    """Return the shape that a function draws."""
    if name.endswith("_like"):
        return tuple(arguments[0].shape)
    if name == "normal":
        mean, std, size = (*arguments, *(None,) * 3)[:3]
        size = keywords.get("size", size)
        given = (keywords.get("mean", mean), keywords.get("std", std))
        return (
            np.broadcast_shapes(*map(shape_of, given)) if size is None else tuple(size)
        )
    size = keywords.get("size", arguments)
    return (
        tuple(size[0])
        if len(size) == 1 and isinstance(size[0], Sequence)
        else tuple(size)
    )


def _noise(
    run: WatchedRun,
    name: str,
    perform: Callable[[], Any],
    law: NoiseLaw,
    location: Any,
    shape: Any = None,
) -> Any:
    draw = run.draw(name, perform, law, here(), location=location, shape=shape)
    return noise_of(run, draw, location if any_of(location) else None)


def _function(
    name: str, function: Callable[..., Any], parameters: Parameters, active: Active
) -> Callable[..., Any]:
    def draw(run: WatchedRun, *arguments: Any, **keywords: Any) -> Any:
        if (out := keywords.pop("out", None)) is not None:
            result = draw(run, *arguments, **keywords)
            return (
                fill(run, out, result) if type(result) is Noise else write(out, result)
            )
        law, location = parameters(*arguments, **keywords)
        is_parameter = keywords.pop("requires_grad", False)
        shape = _size(name, arguments, keywords)
        noise = _noise(
            run,
            name,
            run.unwatched(function, *arguments, **keywords),
            law,
            location,
            shape,
        )
        return noise.requires_grad_() if is_parameter else noise

    return in_run(function, active, draw)


def _public(
    family: str, function: Callable[..., Any], active: Active
) -> Callable[..., Any]:
    """Return a sampler of orders or places that do not depend on the data, as public randomness."""

    def draw(run: WatchedRun, *arguments: Any, **keywords: Any) -> Any:
        site, count = (
            here(),
            float(max(number for number in arguments if isinstance(number, int))),
        )
        made = run.draw(
            family,
            run.unwatched(function, *arguments, **keywords),
            NoiseLaw(family, 1.0, count),
            site,
        )
        return run.release(ALONE, NoiseLaw(family, 1.0, count), None, made.value, site)

    return in_run(function, active, draw)


def _bernoulli(function: Callable[..., Any], active: Active) -> Callable[..., Any]:
    def draw(run: WatchedRun, chances: Any, *arguments: Any, **keywords: Any) -> Any:
        if arguments:
            return function(chances, *arguments, **keywords)
        site = here()
        made = run.draw(
            "bernoulli",
            run.unwatched(function, chances, **keywords),
            NoiseLaw("coin"),
            site,
        )
        return run.release(COIN, NoiseLaw("coin"), number(chances), made.value, site)

    return in_run(function, active, draw)


def _in_place(
    name: str, function: Callable[..., Any], parameters: Parameters, active: Active
) -> Callable[..., Any]:
    def draw(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
        run = active()
        if run is None:
            return function(tensor, *arguments, **keywords)
        law, location = parameters(*arguments, **keywords)
        held = sys.getrefcount(tensor) > TEMPORARY
        perform = run.unwatched(_drawn_in, function, tensor, *arguments, **keywords)
        noise = _noise(run, name, perform, law, location, tuple(tensor.shape))
        if type(noise) is Noise and tensor.requires_grad:
            noise = noise.settle("")  # a parameter, as it is initialised
        if type(noise) is not Noise:
            return write(tensor, noise)
        return fill(run, tensor, noise) if held or not is_alone(tensor) else noise

    return draw


def _drawn_in(
    function: Callable[..., Any], tensor: Any, *arguments: Any, **keywords: Any
) -> Any:
    """Return what a sampler writes into a tensor, which is left as it was."""
    before = tensor.detach().clone()
    made = function(tensor, *arguments, **keywords).detach().clone()
    write(tensor, before)
    return made


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
            return function(
                *plain(arguments, ""),
                **dict(zip(keywords, plain([*keywords.values()], ""), strict=True)),
            )

        return call

    return made


def _parameter(make: Callable[..., Any]) -> Any:
    """Return what makes a parameter, also of noise: how it is initialised is public."""

    def new(kind: Any, data: Any = None, *arguments: Any, **keywords: Any) -> Any:
        return make(
            kind,
            data.settle("") if type(data) is Noise else data,
            *arguments,
            **keywords,
        )

    return staticmethod(new)


def _distribution(
    patches: Patches, kind: Any, name: str, method: str, active: Active
) -> None:
    function = getattr(kind, method)

    def draw(run: WatchedRun, self: Any, *arguments: Any, **keywords: Any) -> Any:
        perform = run.unwatched(function, self, *arguments, **keywords)
        if name in DISTRIBUTIONS:
            family, loc, scale = DISTRIBUTIONS[name]
            law = NoiseLaw(family, number(getattr(self, scale)))
            return _noise(run, name, perform, law, number(getattr(self, loc)))
        site = here()
        made = run.draw(name, perform, NoiseLaw(TABLES[name]), site)
        return run.release(
            TABLES[name], NoiseLaw(TABLES[name]), number(self.probs), made.value, site
        )

    patches.attribute(kind, method, in_run(function, active, draw))
