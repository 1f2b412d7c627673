"""A mechanism in a process of its own, for the judging process.

The judging process holds numbers in place of the mechanism and its inputs, and calls
methods of the other process (``channel``). ``ANSWERS`` has the type of the answer of
each method.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from auditdp.errors import MechanismError
from auditdp.mechanism.calls.calling import MOST_PROBED, Calls, Run, Shown
from auditdp.mechanism.calls.channel import ANSWERS, Channel, LostError, shaped
from auditdp.mechanism.calls.representation import Representation
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats

Text = Annotated[str, Field(max_length=10_000)]
Count = Annotated[int, Field(ge=0, lt=1 << 48)]


class Seed(NamedTuple):
    """A generator in a request: a pickle holds its state and its seed sequence."""

    rng: np.random.Generator

    @classmethod
    def of(cls, rng: np.random.Generator) -> Seed:
        """Return the seed that restores a generator."""
        return cls(rng)

    def generator(self) -> np.random.Generator:
        """Return the generator."""
        return self.rng


@dataclass(frozen=True)
class After:
    """The effects of calls beside their outputs."""

    state: (
        tuple[
            Annotated[str, Field(pattern="^[0-9a-f]{1,32}$")],
            bool,
            Annotated[int, Field(ge=0, lt=1 << 32)],
        ]
        | None
    )
    """State of the generator: hexadecimal digits, and an unused half number, if any."""
    spawned: Count
    raising: bool
    raised: dict[Text, Count]
    """Number of calls that raised, by the type of the exception."""
    kept: list[Text]

    @classmethod
    def of(
        cls, calls: Calls, rng: np.random.Generator | None, raised: Counter[str]
    ) -> dict[str, Any]:
        """Return the effects as plain data; ``raised`` are the earlier counts."""
        state, spawned = None, 0
        if rng is not None:
            there: Any = rng.bit_generator.state
            number = f"{there['state']['state']:x}"
            state = number, bool(there["has_uint32"]), there["uinteger"]
            spawned = rng.bit_generator.seed_seq.n_children_spawned  # type: ignore[attr-defined]
        return {
            "state": state,
            "spawned": spawned,
            "raising": calls.raising,
            "raised": calls.raised - raised,
            "kept": sorted(calls.inputs.kept),
        }

    def left(self, rng: np.random.Generator) -> None:
        """Bring a generator into the state in which the calls left theirs."""
        key: Any = rng.bit_generator.seed_seq
        more = self.spawned - key.n_children_spawned
        # A million spawned generators are more than calls of one request need.
        if self.state is None or not 0 <= more <= 1 << 20:
            raise LostError(
                "the process of the mechanism does not say in which state it left its generator"
            )
        # The generator spawns here what the calls spawned there, so that later
        # generators are the same, and continues in their state.
        if more:
            key.spawn(more)
        number, has_half, half = self.state
        there: Any = rng.bit_generator.state
        there["state"]["state"] = int(number, 16)
        rng.bit_generator.state = there | {
            "has_uint32": int(has_half),
            "uinteger": half,
        }


@dataclass(frozen=True)
class FormHeld:
    """The representation of outputs, the labels of their numbers, and side outputs."""

    flat: bool
    typed: bool
    kind: Text
    longest: Count
    ordered: Count
    labels: list[Text]
    drew: bool
    shown: list[tuple[Literal["stdout", "logging", "files"], Count, bool | None]]


@dataclass(frozen=True)
class MechanismHeld:
    """The properties of a mechanism that are sent before the first call."""

    per_call: bool
    knows_odds: bool
    scores: bool
    tells_possible: bool


_ANSWERS: dict[str, Any] = {
    "gather": MechanismHeld,
    "calls": Count,
    "anew": Count,
    "law": tuple[Count, float],
    "read": Count | None,
    "of_calls": tuple[After, Any],
    "look": FormHeld,
    "repeated": tuple[bool, bool],
}
ANSWERS |= {method: TypeAdapter(kind) for method, kind in _ANSWERS.items()}


class HeldInput:
    """An input in the process of its mechanism: side 0 or 1 of a pair.

    Side 0 is the ``data`` of the pair and side 1 its ``neighbour``. An input that is
    made of numbers converts to the array of them.
    """

    def __init__(self, channel: Channel, pair: int, side: int) -> None:
        self.pair = pair
        self.side = side
        self._channel = channel
        self._numbers: list[Array] | None = None

    @property
    def place(self) -> tuple[int, int]:
        """The name of the input in requests."""
        return self.pair, self.side

    def ask(self, what: str) -> Any:
        """Return the answer of a method about the pair."""
        return self._channel.ask(what, self.pair)[0]

    def __deepcopy__(self, memo: Any) -> HeldInput:
        # Nothing here can change it.
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        # The numbers are sent once, and only if they are needed.
        if self._numbers is None:
            _, self._numbers = self._channel.ask("numbers", self.place)
        if len(self._numbers) != 1 or self._numbers[0].ndim != 1:
            raise TypeError("no numbers")
        return self._numbers[0].astype(dtype or np.float64)


class MechanismElsewhere:
    """A mechanism in another process.

    Attributes:
        number: 0 for the mechanism that is audited, then those of its controls.
        plays: The kinds of evidence that are gathered here; all others are gathered
            there.
        held: The properties of the mechanism.
    """

    def __init__(
        self,
        channel: Channel,
        number: int,
        name: str,
        *,
        seeded: bool,
        plays: Collection[str],
    ) -> None:
        self.channel = channel
        self.number = number
        self.name = name
        self.seeded = seeded
        self.plays = plays
        self.held = MechanismHeld(False, False, False, False)
        self.score: Any = None
        self.possible: Any = None

    def begin(self, *request: Any) -> None:
        """Have evidence prepared in the other process, before any is gathered."""
        self.held, _ = self.channel.ask("gather", self.number, *request)
        self.score = self._score if self.held.scores else None
        self.possible = self._possible if self.held.tells_possible else None

    def __call__(
        self, data: HeldInput, size: int, *, rng: np.random.Generator
    ) -> Array:
        """Return rows of ``size`` outputs."""
        calls = self.calls()
        calls.look([data], rng)
        return calls(data, size, rng)

    def calls(self) -> CallsElsewhere:
        """Return calls whose outputs have no representation yet."""
        return CallsElsewhere(self, self.channel.ask("calls", self.number)[0])

    def law(
        self, form: Representation, pair: Any
    ) -> tuple[Callable[[Array], list[Array]], float, list[Floats]]:
        """Return the stated probabilities of outputs on a pair.

        Returns:
            A function of the log probabilities, or densities, of outputs on both
            inputs, each shape (outputs,); the largest log probability of an output that
            the law does not list; and the finite log-odds of the law with their
            weights, two arrays or none.
        """
        request = "law", self.number, form, pair.data.pair
        (number, unlisted), arrays = self.channel.ask(*request)
        return partial(self._log_probs, number), unlisted, self._stated(arrays)

    def _log_probs(self, number: int, outputs: Array) -> list[Array]:
        _, arrays = self.channel.ask("log_probs", number, outputs)
        if [array.shape for array in arrays] != [(len(outputs),)] * 2:
            raise MechanismError(
                f"expected two log probabilities of each of {len(outputs):,} outputs"
            )
        return arrays

    def _stated(self, arrays: Sequence[Array]) -> list[Floats]:
        """Return log-odds and their weights, two arrays or none, after a check."""
        stated = [np.asarray(array, np.float64) for array in arrays]
        if stated and not _is_law(*stated):
            raise MechanismError(
                f"{self.name}: the law of its odds has weights that are no frequencies"
            )
        return stated

    def replayed(
        self, form: Representation, pair: Any
    ) -> tuple[Callable[[Array], Array], list[Floats]] | None:
        """Return the log-odds of outputs that a trace of the code derives on a pair.

        Returns:
            A function of the log-odds of outputs, and the log-odds with their weights,
            two arrays or none if they are unknown beforehand. None if the trace derives
            none.
        """
        request = "read", self.number, form, pair.data.pair
        number, arrays = self.channel.ask(*request)
        stated = self._stated(arrays)
        return None if number is None else (partial(self._odds, number), stated)

    def _odds(self, number: int, outputs: Array) -> Floats:
        odds = self._array("odds", number, outputs)
        if odds.shape != (len(outputs),):
            raise LostError(
                f"expected the log-odds of each of {len(outputs):,} outputs, got shape {odds.shape}"
            )
        return odds.astype(np.float64)

    def _score(self, outputs: Array, pair: Any) -> Array:
        return self._array("score", self.number, outputs, pair.data.pair)

    def _possible(self, outputs: Array, data: HeldInput) -> Array:
        return self._array("possible", self.number, outputs, data.place)

    def _array(self, what: str, *arguments: Any) -> Array:
        _, arrays = self.channel.ask(what, *arguments)
        (array,) = arrays or [np.zeros(0)]
        return array


def _is_law(log_odds: Array, weights: Array, *more: Array) -> bool:
    if more or log_odds.ndim != 1 or log_odds.shape != weights.shape:
        return False
    # A law of more than 4,096 log-odds is refused, to protect time.
    if not 0 < len(weights) <= 4_096 or np.isnan(log_odds).any():
        return False
    return bool((weights >= 0).all() and 0 < weights.sum() < np.inf)


class CallsElsewhere(Calls):
    """Calls that another process makes; outputs come as rows.

    Attributes:
        number: The number of these calls in the other process.
    """

    mechanism: Any

    def __init__(self, mechanism: MechanismElsewhere, number: int) -> None:
        super().__init__(mechanism)
        self.number = number
        self.raising = mechanism.held.per_call

    def look(self, inputs: Iterable[Any], rng: np.random.Generator) -> None:
        """Have the representation of outputs decided there, unless it is decided."""
        if self._representation is not None:
            return
        places = [each.place for each in islice(inputs, MOST_PROBED)]
        value, arrays = self._ask("look", places, rng=rng)
        form = dict(vars(shaped(ANSWERS["look"], value)))
        # The first rows decide shape and type of all later answers.
        (like,) = arrays or [np.zeros(0)]
        if like.ndim < 1 or len(like) < 1:
            raise LostError("the process of the mechanism shows no outputs")
        self.like = like
        self.labels = form.pop("labels")
        self.drew = form.pop("drew")
        self.shown = [Shown(*each) for each in form.pop("shown")]
        self._representation = Representation(like.shape[1:], like.dtype, **form)

    def repeated(self, data: Any, seed: int, size: int) -> tuple[bool, bool]:
        """Return (equal outputs, equal numbers of draws) of two calls with one seed."""
        # The seed makes both generators there, so that none is sent.
        value, _ = self._ask("repeated", data.place, seed, size)
        same: tuple[bool, bool] = shaped(ANSWERS["repeated"], value)
        return same

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Array:
        """Return ``size`` outputs as rows; the representation has been decided."""
        return self._rows_of([(data, size)], rng)[0]

    def sides(
        self, data: Any, ones: int, neighbour: Any, zeros: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return rows of outputs on an input and on its neighbour, by one request."""
        first, second = self._rows_of([(data, ones), (neighbour, zeros)], rng)
        return first, second

    def _rows_of(
        self, wanted: Sequence[tuple[Any, int]], rng: np.random.Generator
    ) -> list[Array]:
        request = [(data.place, size) for data, size in wanted]
        return self._rows_by("rows", request, [size for _, size in wanted], rng)

    def runs(self, wanted: Sequence[Run]) -> Array:
        """Return the rows of some calls."""
        size = sum(run.size for run in wanted)
        return self._rows_by("runs", sent(wanted), [size])[0]

    def _rows_by(
        self,
        what: str,
        request: Sequence[Any],
        sizes: Sequence[int],
        rng: np.random.Generator | None = None,
    ) -> list[Array]:
        # The representation of outputs was fixed before.
        assert self.like is not None
        # The size of the answer is known, and a longer one is not read.
        max_bytes = sum(sizes) * self.like[:1].nbytes
        _, arrays = self._ask(what, request, self._singly, rng=rng, max_bytes=max_bytes)
        return self.checked(arrays, sizes)

    def anew(self) -> Self:
        """Return the same calls, without a representation of outputs."""
        fresh = super().anew()
        fresh.number, _ = self.mechanism.channel.ask("anew", self.number)
        return fresh

    def checked(self, arrays: list[Array], sizes: Sequence[int]) -> list[Array]:
        """Return an answer if it is one array of rows for each of ``sizes``.

        Raises:
            LostError: If it is anything else.
        """
        # The representation of outputs was fixed before.
        assert self.like is not None
        wanted = [(self.like.dtype, (size, *self.like.shape[1:])) for size in sizes]
        found = [(array.dtype, array.shape) for array in arrays]
        if found == wanted:
            return arrays
        raise LostError(
            f"the process of the mechanism was asked for {_listed(wanted)}, and answered {_listed(found)}"
        )

    def _ask(
        self,
        what: str,
        *arguments: Any,
        rng: np.random.Generator | None = None,
        **options: Any,
    ) -> tuple[Any, list[Array]]:
        seed = None if rng is None else Seed.of(rng)
        request = "of_calls", self.number, what, self.raising, seed, *arguments
        (after, value), arrays = self.mechanism.channel.ask(*request, **options)
        # The effects of the calls are taken over, as if they had been made here.
        self.raising |= after.raising
        self.raised.update(after.raised)
        self.inputs.kept.update(after.kept)
        if rng is not None:
            after.left(rng)
        return value, arrays


def _listed(kinds: Sequence[tuple[Any, Any]]) -> str:
    named = [f"{dtype} of shape {shape}" for dtype, shape in kinds]
    return ", ".join(named) or "nothing"


def calls_of(mechanism: Any) -> Calls:
    """Return calls of a mechanism, in this process or in its own."""
    if isinstance(mechanism, MechanismElsewhere):
        return mechanism.calls()
    return Calls(mechanism)


def sent(runs: Sequence[Run]) -> list[tuple[tuple[int, int], int, int]]:
    """Return runs as requests name them."""
    return [(run.data.place, run.size, run.seed) for run in runs]
