"""Mechanisms with broken noise: the result of one draw is changed.

A *site* is a place in the code that draws: a method of the generator, with the chain of
calls that leads to it. So all passes of a loop are one site.

Noise is scaled by a factor f: f = 1/2 halves it, f = 0 removes it. Noise with a
location m becomes m + f(x − m). A geometric count x becomes ⌈x/2⌉, since P(⌈x/2⌉ > k) =
P(x > 2k) = ((1−p)²)^k. A uniform number u becomes

        u^f / (u^f + (1−u)^f),   that is   logit u ↦ f logit u,

so u < p becomes logit u < logit(p)/f. For any probability p with which u is compared,
in either direction, f = 1/2 squares the odds of the comparison: randomised response
with ε becomes one with 2ε. For f = 0 the likelier outcome is certain. Laplace noise
that is made from uniform numbers has half its scale, in the tails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from auditdp.auditing.watched_draws import Draw, Key, watched_call
from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array, as_mechanism, is_seeded, name_of

LOCATED = ("laplace", "normal", "gumbel", "logistic", "multivariate_normal")
"""Methods of draws with a location and a scale."""
SCALED = (
    "standard_normal",
    "standard_exponential",
    "exponential",
    "standard_gamma",
    "gamma",
    "rayleigh",
)
"""Methods of draws with a scale only."""
HALVED = (*LOCATED, *SCALED, "random", "uniform", "geometric", "binomial")
"""Methods of draws whose noise can be halved; so can a 'choice' with probabilities."""
LEFT_OUT = (
    *HALVED,
    "choice",
    "integers",
    "bytes",
    "permutation",
    "permuted",
    "shuffle",
)
"""Methods of draws whose noise can be left out."""
SAMPLE = 64
"""Number of outputs of the call that finds the sites on an input."""
SEED = 0
"""Seed of every run of a ``Seeded`` mechanism."""


@dataclass(frozen=True)
class Site:
    """A place in the code that draws, and the faults that it can have.

    Attributes:
        number: Number of the site, from 1, in the order of first use.
        method: Method of the generator that draws.
        place: The drawing function and its caller, in words.
        key: The chain of calls that leads to the draw.
        operators: Names of the faults that apply (``FAULTS``).
    """

    number: int
    method: str
    place: str
    key: Key
    operators: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the site for reports: its number, its method, and its place."""
        return f"draw {self.number}, {self.method} in {self.place}"


def sites(mechanism: Any, inputs: Sequence[Any]) -> list[Site]:
    """Return the sites that draw when the mechanism runs, in order of first use."""
    drawn: dict[tuple[str, Key], dict[str, None]] = {}

    def note(draw: Draw) -> Any:
        value = draw.as_is()
        drawn.setdefault((draw.method, draw.key), {}).update(
            dict.fromkeys(_applicable(draw, value))
        )
        return value

    for number, data in enumerate(inputs):
        watched_call(mechanism, data, SAMPLE, np.random.default_rng(number), note)
    return [
        Site(number, method, _place(key), key, tuple(operators))
        for number, ((method, key), operators) in enumerate(drawn.items(), start=1)
    ]


def _place(key: Key) -> str:
    """Return the names of the function that draws and of its caller, in words."""
    names = [
        code.co_qualname.partition(".<locals>.<")[0].rpartition("<locals>.")[2]
        for code, _ in key
    ]
    return ", called by ".join(dict.fromkeys(names[:2])) or "native code"


def _applicable(draw: Draw, value: Any) -> Iterator[str]:
    if draw.method in HALVED or (
        draw.method == "choice" and draw.argument(3, "p") is not None
    ):
        yield "noise halved"
    if draw.method in LEFT_OUT:
        yield "noise left out"
    if draw.earlier is not None:
        yield "noise reused"
    if _coordinates(draw, value) > 1:
        yield "one noise for all coordinates"


def _coordinates(draw: Draw, value: Any) -> int:
    """Return the number of entries that one run draws at this site."""
    shape = np.shape(value)
    if draw.size is None:
        return int(np.prod(shape))
    return int(np.prod(shape[1:])) if len(shape) > 1 and shape[0] == draw.size else 1


def _spoiled(draw: Draw, factor: float) -> Any:
    """Draw noise whose scale, or whose log-odds, is multiplied by a factor.

    The factor 0 removes the noise: the result is its location, the likelier outcome, or
    the first element.
    """
    match draw.method:
        case "choice":
            return _choice(draw, factor)
        case "binomial":
            n, p = draw.argument(0, "n"), np.asarray(draw.argument(1, "p"), float)
            if factor:
                return draw.with_argument(1, "p", p**2 / (p**2 + (1 - p) ** 2))
            return 0 * draw.as_is() + np.rint(n * p).astype(int)
        case "bytes":
            return bytes(len(draw.as_is()))
        case "permutation" | "permuted":
            x = draw.argument(0, "x")
            return np.arange(x) if isinstance(x, int | np.integer) else np.array(x)
        case "shuffle":
            return None
    value = draw.as_is()
    match draw.method:
        case "random":
            spoiled = _odds(value, factor)
        case "uniform":
            low, high = draw.argument(0, "low", 0.0), draw.argument(1, "high", 1.0)
            spoiled = low + (high - low) * _odds((value - low) / (high - low), factor)
        case "geometric":
            spoiled = -(-value // 2) if factor else value * 0 + 1
        case "integers":
            spoiled = value * 0 + (
                0 if draw.argument(1, "high") is None else draw.argument(0, "low")
            )
        case _:
            spoiled = _location(draw) + factor * (value - _location(draw))
    return _into(value, spoiled)


def _location(draw: Draw) -> Any:
    """Return the location of the noise; 0 if its law has none."""
    name = "mean" if draw.method == "multivariate_normal" else "loc"
    return np.asarray(draw.argument(0, name, 0.0)) if draw.method in LOCATED else 0


def _into(value: Any, spoiled: Any) -> Any:
    """Return the changed draw, in the array of the original draw if that is an array.

    The caller may have given this array as ``out``.
    """
    if not isinstance(value, np.ndarray):
        return spoiled
    value[...] = spoiled
    return value


def _odds(u: Any, factor: float) -> Any:
    """Return uniform numbers with their logit multiplied by the factor."""
    return u**factor / (u**factor + (1 - u) ** factor)


def _choice(draw: Draw, factor: float) -> Any:
    """Choose with squared probabilities, as the exponential mechanism with 2ε does.

    With the factor 0, choose the likeliest element, or without probabilities the first
    elements.
    """
    p = draw.argument(3, "p")
    if p is not None and factor:
        squared = np.asarray(p, float) ** 2
        return draw.with_argument(3, "p", squared / squared.sum())
    value, a = draw.as_is(), draw.argument(0, "a")
    elements = np.arange(a) if isinstance(a, int | np.integer) else np.asarray(a)
    chosen = elements if p is None else elements[[np.argmax(p)]]
    return np.resize(chosen, np.shape(value)) if np.ndim(value) else chosen[0]


def _reused(draw: Draw) -> Any:
    """Draw from the generator's state before the first draw of this method in the call.

    Afterwards the state is restored.
    """
    if draw.earlier is None:
        return draw.as_is()
    bits = draw.generator.bit_generator
    now, bits.state = bits.state, draw.earlier
    try:
        return draw.as_is()
    finally:
        bits.state = now


def _shared(draw: Draw) -> Any:
    """Draw noise that is the same for all coordinates of a run."""
    value = draw.as_is()
    if _coordinates(draw, value) == 1:
        return value
    noise = np.asarray(value - _location(draw))
    runs = () if draw.size is None else (draw.size,)
    first = noise.reshape(*runs, -1)[..., 0].reshape(
        *runs, *[1] * (noise.ndim - len(runs))
    )
    return _into(value, _location(draw) + first)


FAULTS: dict[str, tuple[Callable[[Draw], Any], str]] = {
    "noise halved": (
        partial(_spoiled, factor=0.5),
        "has half its scale, or squared odds",
    ),
    "noise left out": (partial(_spoiled, factor=0.0), "is constant"),
    "noise reused": (_reused, "repeats the first one of its kind in the call"),
    "one noise for all coordinates": (
        _shared,
        "is the same for all coordinates of a run",
    ),
}
"""Functions that perform a changed draw, with a description of the change, by the name
of the fault (the operator)."""


@dataclass(frozen=True, eq=False)
class Spoiled:
    """A mechanism with a fault at one site; its other draws are unchanged."""

    mechanism: Any
    site: Site
    operator: str

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` outputs with the changed noise."""
        outputs: Array = watched_call(self.mechanism, data, size, rng, self._listen)
        return outputs

    def _listen(self, draw: Draw) -> Any:
        here = draw.key == self.site.key and draw.method == self.site.method
        return FAULTS[self.operator][0](draw) if here else draw.as_is()


class WithoutNoise:
    """A mechanism whose draws return their location; see ``without_noise``."""

    def __init__(self, mechanism: Any) -> None:
        self.mechanism = mechanism
        self.name = f"{name_of(mechanism)} without noise"

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Any:
        """Return ``size`` outputs without noise."""
        return watched_call(self.mechanism, data, size, rng, _silent)


def _silent(draw: Draw) -> Any:
    return _spoiled(draw, 0.0) if draw.method in LEFT_OUT else draw.as_is()


def without_noise(mechanism: Any) -> WithoutNoise:
    """Return a broken twin of a mechanism, without its noise, for ``controls``.

    Every draw from ``rng`` returns its location, the likelier outcome, or the first
    element. If an audit does not refute this twin, both inputs of its pairs have the
    same outputs without noise, or the audit has too few calls.

    Raises:
        MechanismError: If the mechanism draws its own randomness, and not from ``rng``.

    >>> twin = without_noise(lambda x, rng: x + rng.laplace(scale=5))
    >>> [float(x) for x in twin(3.0, 2, rng=np.random.default_rng(0))]
    [3.0, 3.0]
    """
    if not is_seeded(mechanism):
        raise MechanismError(
            f"without_noise: {name_of(mechanism)} draws its own randomness, which cannot be left out"
        )
    return WithoutNoise(mechanism)


@dataclass(frozen=True, eq=False)
class Seeded:
    """A mechanism that ignores ``rng`` and sets its own seed, so all runs are equal."""

    mechanism: Any

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return the output of the run with seed 0, ``size`` times."""
        run = as_mechanism(self.mechanism)(data, 1, rng=np.random.default_rng(SEED))
        return np.repeat(np.asarray(run), size, axis=0)
