"""torch, where it is imported: its samplers as functions, in place, and in distributions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from auditdp.tracing.draws import ALONE, CHOICE, COIN
from auditdp.tracing.families import NoiseLaw
from auditdp.tracing.forms import number
from auditdp.tracing.noise import ARITHMETIC, Noise, noise_of
from auditdp.tracing.numpy_functions import plainly
from auditdp.tracing.patches import Patches
from auditdp.tracing.plain import any_of
from auditdp.tracing.run import Active, WatchedRun, in_run
from auditdp.tracing.sites import here
from auditdp.tracing.torch_functions import fill, named, torch_function

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
OVERWRITING = ("zero", "fill")
"""What leaves nothing of a tensor's entries."""
TEMPORARY = 2
"""References to a tensor that nobody holds, while one of its methods is watched."""


def watch(patches: Patches, active: Active) -> None:
    """Replace what draws."""
    torch = sys.modules["torch"]
    patches.context(_filled_tensors(active))
    for name, parameters in FUNCTIONS.items():
        patches.attribute(torch, name, _function(name, getattr(torch, name), parameters, active))
    patches.attribute(torch, "randperm", _public("permutation", torch.randperm, active))
    patches.attribute(torch, "randint", _public("choice of items", torch.randint, active))
    patches.attribute(torch, "bernoulli", _bernoulli(torch.bernoulli, active))
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
            if run is None or not run.filled:
                return function(*arguments, **keywords)
            (name, in_place), described = named(function), getattr(function, "__self__", None)
            if name in DESCRIBING or (name == "get" and getattr(described, "__name__", "") in DESCRIBING):
                return function(*arguments, **keywords)
            found = [run.filled[id(value)][1] if id(value) in run.filled else value for value in arguments]
            if all(new is old for new, old in zip(found, arguments, strict=True)):
                return function(*arguments, **keywords)
            if in_place and name in OVERWRITING and found[1:] == [*arguments[1:]]:
                run.filled.pop(id(arguments[0]), None)
                return function(*arguments, **keywords)
            if not in_place or found[0] is arguments[0]:
                return torch_function(function, found, keywords)
            tensor, noise = run.filled.pop(id(arguments[0]))
            if name in ARITHMETIC:
                result = torch_function(function, found, keywords)
                return fill(tensor, result) if type(result) is Noise else tensor.copy_(result)
            tensor.copy_(noise.settle(f"is used by {name}"))
            return plainly(function, [tensor, *found[1:]], keywords, name)

    return FilledTensors()


def _noise(run: WatchedRun, name: str, perform: Callable[[], Any], law: NoiseLaw, location: Any) -> Any:
    draw = run.draw(name, perform, law, here(), location=location)
    return noise_of(run, draw, location if any_of(location) else None)


def _function(name: str, function: Callable[..., Any], parameters: Parameters, active: Active) -> Callable[..., Any]:
    def draw(run: WatchedRun, *arguments: Any, **keywords: Any) -> Any:
        if keywords.get("out") is not None:
            return function(*arguments, **keywords)
        law, location = parameters(*arguments, **keywords)
        return _noise(run, name, run.unwatched(function, *arguments, **keywords), law, location)

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
        noise = _noise(run, name, lambda: perform().clone(), law, location)
        if not held:
            return noise
        return fill(tensor, noise) if type(noise) is Noise else tensor.copy_(noise)

    return draw


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
