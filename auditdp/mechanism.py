"""The Mechanism protocol, adapters for people's own functions, and the guard around every call.

A mechanism is any callable ``mechanism(data, size, *, rng)`` that returns ``size`` *independent* outputs for one input,
stacked along the first axis. Independence is what makes a batch of calls as good as that many single calls: a mechanism
that shares noise between the outputs of one call is a different mechanism, and ``check_independence`` looks for that.
NaN in an output means "no number here" (a query that was not answered, the padding of a short trace) and is an output
like any other. A function ``f(data, rng)``, one output a call, may also return text, None, and lists of different lengths
(`traces.py`).

Optional methods make audits stronger; the harness uses those it finds:

- ``distribution(data) -> FiniteLaw``, ``StepLaw``, ``LaplaceLaw`` or ``GaussianLaw``: the exact law of the output itself
  (exact evidence, and the best forecaster);
- ``before_processing(data)``, the law of what is computed before post-processing, of any of these families: the output loses
  at most what that law loses, so exact evidence can certify a claim by it and never refute one. ``laplace(data)`` is an
  older name of it;
- ``envelope() -> Envelope``: the least and the most probability of every output over all records of a ``Box`` (exact
  evidence about all pairs of them);
- ``log_prob(outputs, data) -> array (size,)``: log density or probability (the best forecaster);
- ``score(outputs, pair) -> array (size,)``: one number per output that keeps what tells the pair apart;
- ``query(data, rng) -> array``, what is computed before the noise, with its internal randomness from ``rng``;
  ``sensitivity``, the number that the noise is calibrated to; and ``norm``, 'l1', 'l2', 'linf' or an order, in which
  that number bounds the change of the query between neighbours (evidence of sensitivity).
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from auditdp.errors import MechanismError
from auditdp.traces import Traces

Array = NDArray[Any]


@runtime_checkable
class Mechanism(Protocol):
    """A randomised map from private data to something released."""

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` independent outputs for ``data``, shape (size, ...)."""


class PerCall:
    """Adapts ``function(data, rng)``, one output a call, to the Mechanism protocol."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = name_of(function)
        self._traces = Traces()

    def __getattr__(self, attribute: str) -> Any:
        """Offer what else the function offers, such as the ``distribution`` of a callable object."""
        if attribute in ("function", "_traces"):  # while a copy is being made
            raise AttributeError(attribute)
        return getattr(self.function, attribute)

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Call the function ``size`` times and stack what it returns: arrays of one shape, or anything with leaves."""
        outputs = [self.function(data, rng=rng) for _ in range(size)]
        if not self._traces.width and (stacked := _stack(outputs)) is not None:
            return stacked
        return self._traces.rows(outputs)


def _stack(outputs: Sequence[Any]) -> Array | None:
    """Return numeric outputs of one shape and type as one array, or None for any others."""
    try:
        arrays = [np.asarray(output) for output in outputs]
    except ValueError:  # ragged
        return None
    alike = len({(array.shape, array.dtype) for array in arrays}) == 1 and arrays[0].dtype.kind in "biuf"
    alike = alike and bool(arrays[0].size)  # empty lists may be followed by others
    return np.stack(arrays) if alike else None


def as_mechanism(function: Any) -> Mechanism:
    """Return ``function`` as a Mechanism: itself if it takes a size, else adapted one call at a time.

    Args:
        function: ``f(data, size, *, rng)`` (vectorised) or ``f(data, rng)`` (one output a call).

    Raises:
        MechanismError: If it is not callable or takes neither form of arguments.
    """
    if not callable(function):
        raise MechanismError(
            f"expected a mechanism: a callable f(data, size, *, rng) or f(data, rng), got {function!r}"
        )
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return function  # type: ignore[no-any-return]  # builtins without a signature must follow the protocol
    names = [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
    if "rng" not in names:
        raise MechanismError(
            f"{name_of(function)}: takes {', '.join(names) or 'nothing'}, but needs an argument 'rng' for its "
            "randomness: f(data, size, *, rng) or f(data, rng)"
        )
    if "size" in names:
        return function  # type: ignore[no-any-return]
    return PerCall(function)


def stated_law(mechanism: Any) -> Callable[[Any], Any] | None:
    """Return what gives the law of an input: of the output where that is stated, else before post-processing, else None."""
    names = ("distribution", "before_processing", "laplace")
    return next((law for name in names if (law := getattr(mechanism, name, None)) is not None), None)


def law_is_of_output(mechanism: Any) -> bool:
    """Return whether the stated law is that of the output itself, and not of something before post-processing."""
    return getattr(mechanism, "distribution", None) is not None


def name_of(mechanism: Any) -> str:
    """Return the name that reports call a mechanism by: its ``name``, its function or class name, or its repr.

    Never a default repr: that holds a memory address, and a record must not depend on where objects lie.
    """
    name = getattr(mechanism, "name", None)
    if isinstance(name, str):
        return name
    if isinstance(mechanism, PerCall):
        return mechanism.name
    if isinstance(mechanism, functools.partial):
        return f"partial({name_of(mechanism.func)})"
    if getattr(mechanism, "__name__", None):
        return str(mechanism.__name__)
    text = repr(mechanism)
    return type(mechanism).__name__ if re.search(r" at 0x[0-9a-fA-F]+", text) else text


def call(mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator, *, like: Array | None = None) -> Array:
    """Run the mechanism and check what it returns.

    Args:
        mechanism: The mechanism to run.
        data: One input.
        size: How many independent outputs to draw; 0 gives an empty array when ``like`` tells its shape.
        rng: The randomness to use.
        like: Outputs of an earlier call; dtype and trailing shape must agree with them.

    Returns:
        A numeric or boolean array of shape (size, ...), in which NaN means "no number here".

    Raises:
        MechanismError: If the mechanism raises, or returns ragged or object outputs, the wrong first dimension, or another
            dtype or shape than before.
    """
    name = name_of(mechanism)
    if size == 0 and like is not None:
        return like[:0]
    try:
        raw = mechanism(data, size, rng=rng)
    except MechanismError:
        raise
    except Exception as error:
        raise MechanismError(f"{name} raised {type(error).__name__}: {error} (on input {brief(data)})") from error
    try:
        outputs = np.asarray(raw)
    except ValueError as error:
        raise MechanismError(
            f"{name}: returned ragged outputs ({error}); all {size} outputs must have one shape"
        ) from error
    if outputs.dtype.kind not in "biuf":
        raise MechanismError(
            f"{name}: returned dtype {outputs.dtype}, expected booleans, integers or floats; encode it as numbers"
        )
    if outputs.ndim == 0 or outputs.shape[0] != size:
        raise MechanismError(
            f"{name}: returned shape {outputs.shape}, expected first dimension size={size}: one row per independent run"
        )
    if like is not None and outputs.dtype != like.dtype:
        raise MechanismError(
            f"{name}: returned dtype {outputs.dtype} after {like.dtype} before; a dtype that depends on the data is "
            "itself a leak, and no common representation is assumed: return one dtype"
        )
    if like is not None and outputs.shape[1:] != like.shape[1:]:
        raise MechanismError(
            f"{name}: returned outputs of shape {outputs.shape[1:]} after {like.shape[1:]} before; pad to one shape"
        )
    return outputs


def check_independence(mechanism: Mechanism, data: Any, rng: np.random.Generator, *, size: int = 64) -> None:
    """Raise if the outputs of one call visibly share their noise.

    Compares one call of ``size`` outputs with ``size`` calls of one output. Noise drawn once and reused gives one row
    ``size`` times, where single calls disagree with each other. If the calls are independent and the commonest output
    has probability p, a false alarm has probability p^64 P(Bin(64, p) <= 48), at most 1.2e-6 (at p = .85). Subtler
    sharing is not seen.

    Raises:
        MechanismError: If all rows of the batch agree while at most three quarters of the single calls do.
    """
    batch = call(mechanism, data, size, rng)
    if len(np.unique(batch.reshape(size, -1), axis=0)) > 1:
        return
    singles = np.concatenate([call(mechanism, data, 1, rng, like=batch) for _ in range(size)])
    _, counts = np.unique(singles.reshape(size, -1), axis=0, return_counts=True)
    if counts.max() <= 3 * size // 4:
        raise MechanismError(
            f"{name_of(mechanism)}: all {size} outputs of one call are equal while single calls differ; the call must "
            "return independent runs: draw fresh noise for each of its size outputs"
        )


def identity_key(data: Any) -> Any:
    """Return a hashable key that two inputs share only if they are certainly the same.

    Arrays are compared by type, shape and content, containers by their items, plain values by type and value, and
    anything else by identity (so the object has to stay alive as long as the key is used).
    """
    if isinstance(data, np.ndarray) and data.dtype.kind in "biufc":
        return ("array", data.dtype.str, data.shape, data.tobytes())
    if isinstance(data, tuple | list):
        return (type(data).__name__, tuple(identity_key(item) for item in data))
    if isinstance(data, bool | int | float | str | bytes | None | np.generic):
        return (type(data).__name__, repr(data))
    return ("object", id(data))


def _is_graph(data: Any) -> bool:
    """Return whether something is the symmetric int8 matrix of a graph without loops."""
    if not isinstance(data, np.ndarray) or data.dtype != np.int8 or data.ndim != 2 or len(data) < 2:
        return False
    square = data.shape[0] == data.shape[1]
    return square and bool((data == data.T).all() and not data.diagonal().any() and ((data == 0) | (data == 1)).all())


def brief(data: Any, limit: int = 60) -> str:
    """Return a short, one-line rendering of an input: the adjacency matrix of a graph by its edges, such as 01 12."""
    if isinstance(data, np.generic):
        data = data.item()
    if _is_graph(data):
        between = "" if len(data) <= 10 else "-"
        edges = " ".join(f"{i}{between}{j}" for i, j in np.argwhere(np.triu(data)))
        text = f"{len(data)} nodes, edges {edges or 'none'}"
    else:
        text = np.array2string(data, threshold=20, separator=",") if isinstance(data, np.ndarray) else repr(data)
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
