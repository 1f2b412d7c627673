"""A mechanism in a process of its own: whoever judges holds numbers for it and for its inputs, and asks (``channel``)."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from auditdp.errors import MechanismError
from auditdp.mechanism.calls.calling import MOST_PROBED, Calls, Run, Shown
from auditdp.mechanism.calls.channel import Channel, LostError, shaped
from auditdp.mechanism.calls.representation import Representation
from auditdp.mechanism.protocol import Array

MOST_SPAWNED = 1 << 20
"""Generators that calls of one question may spawn from theirs."""
MOST_LISTED = 4_096
"""Log-odds of which a law is made, at most."""
Text = Annotated[str, Field(max_length=10_000)]
Count = Annotated[int, Field(ge=0, lt=1 << 48)]


class Seed(NamedTuple):
    """A generator as it is sent: where it is in its stream, and the key of that with what was spawned from it."""

    state: dict[str, Any]
    entropy: Any
    spawn_key: tuple[int, ...]
    spawned: int

    @classmethod
    def of(cls, rng: np.random.Generator) -> Seed:
        """Return what makes this generator anew."""
        key: Any = rng.bit_generator.seed_seq
        state: Any = rng.bit_generator.state
        return cls(state, key.entropy, key.spawn_key, key.n_children_spawned)

    def generator(self) -> np.random.Generator:
        """Return the generator."""
        key = np.random.SeedSequence(
            self.entropy, spawn_key=self.spawn_key, n_children_spawned=self.spawned
        )
        rng = np.random.Generator(np.random.PCG64(key))
        rng.bit_generator.state = self.state
        return rng


@dataclass(frozen=True)
class After:
    """What calls have left behind, beside their outputs."""

    state: (
        tuple[
            Annotated[str, Field(pattern="^[0-9a-f]{1,32}$")],
            bool,
            Annotated[int, Field(ge=0, lt=1 << 32)],
        ]
        | None
    )
    """Of the generator: its number in hexadecimal digits, and the half of one that is left over."""
    spawned: Count
    raising: bool
    raised: dict[Text, Count]
    """How often calls raised, by the type of the exception."""
    kept: list[Text]

    @classmethod
    def of(
        cls, calls: Calls, rng: np.random.Generator | None, raised: Counter[str]
    ) -> dict[str, Any]:
        """Return it as plain data."""
        found: dict[str, Any] = {
            "raising": calls.raising,
            "raised": calls.raised - raised,
            "kept": sorted(calls.inputs.kept),
        }
        if rng is None:
            return found | {"state": None, "spawned": 0}
        there, key = rng.bit_generator.state, rng.bit_generator.seed_seq
        state = (
            f"{there['state']['state']:x}",
            bool(there["has_uint32"]),
            there["uinteger"],
        )
        return found | {"state": state, "spawned": key.n_children_spawned}  # type: ignore[attr-defined]

    def left(self, rng: np.random.Generator) -> None:
        """Leave a generator as calls have left theirs."""
        key: Any = rng.bit_generator.seed_seq
        more = self.spawned - key.n_children_spawned
        if self.state is None or not 0 <= more <= MOST_SPAWNED:
            raise LostError(
                "the process of the mechanism does not say in which state it left its generator"
            )
        if more:
            key.spawn(more)
        there = dict(rng.bit_generator.state)
        number, has, half = self.state
        there |= {
            "state": there["state"] | {"state": int(number, 16)},
            "has_uint32": int(has),
            "uinteger": half,
        }
        rng.bit_generator.state = there


@dataclass(frozen=True)
class FormHeld:
    """How outputs are represented, what each number of a row is called, and what calls show beside their outputs."""

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
    """What whoever judges is told of a mechanism before its first call."""

    per_call: bool
    knows_odds: bool
    scores: bool
    tells_possible: bool


_HELD: TypeAdapter[MechanismHeld] = TypeAdapter(MechanismHeld)
_ANSWERED: TypeAdapter[tuple[After, Any]] = TypeAdapter(tuple[After, Any])
_COUNT: TypeAdapter[int] = TypeAdapter(Count)
_COUNT_OR_NONE: TypeAdapter[int | None] = TypeAdapter(Count | None)
_FORM: TypeAdapter[FormHeld] = TypeAdapter(FormHeld)
_SAME: TypeAdapter[tuple[bool, bool]] = TypeAdapter(tuple[bool, bool])
_UNLISTED: TypeAdapter[tuple[Count, float]] = TypeAdapter(tuple[Count, float])


class HeldInput:
    """An input that lies in the process of its mechanism: ``data`` of a pair, side 0, or its ``neighbour``, side 1.

    As an array it is its numbers, where it is made of numbers.
    """

    def __init__(self, channel: Channel, pair: int, side: int) -> None:
        self.pair, self.side = pair, side
        self._channel = channel
        self._numbers: list[Array] | None = None

    @property
    def place(self) -> tuple[int, int]:
        """What questions call it by."""
        return self.pair, self.side

    def ask(self, what: str) -> Any:
        """Return what is answered about its pair."""
        return self._channel.ask(what, self.pair)[0]

    def __deepcopy__(self, memo: Any) -> HeldInput:
        return self  # nothing here can change it

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self._numbers is None:
            _, self._numbers = self._channel.ask("numbers", self.place)
        if len(self._numbers) != 1 or self._numbers[0].ndim != 1:
            raise TypeError("no numbers")
        return self._numbers[0].astype(dtype or np.float64)


class MechanismElsewhere:
    """A mechanism in another process.

    Its number there is 0 for the one that is audited, then those of its controls. Evidence of the kinds that it ``plays``
    is gathered here, all other there.
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
        self.channel, self.number, self.name, self.seeded, self.plays = (
            channel,
            number,
            name,
            seeded,
            plays,
        )
        self.held = MechanismHeld(False, False, False, False)
        self.score: Any = None
        self.possible: Any = None

    def begin(self, *asked: Any) -> None:
        """Have evidence prepared there, as is asked, before any is gathered."""
        self.held = shaped(_HELD, self.channel.ask("gather", self.number, *asked)[0])
        self.score = self._score if self.held.scores else None
        self.possible = self._possible if self.held.tells_possible else None

    def __call__(
        self, data: HeldInput, size: int, *, rng: np.random.Generator
    ) -> Array:
        """Return rows of ``size`` outputs."""
        made = self.calls()
        made.look([data], rng)
        return made(data, size, rng)

    def calls(self) -> CallsElsewhere:
        """Return calls of it, nothing decided about how outputs are represented."""
        return CallsElsewhere(self, self.new("calls", self.number))

    def law(
        self, form: Representation, pair: Any
    ) -> tuple[Callable[[Array], list[Array]], float, list[NDArray[np.float64]]]:
        """Return what it states of how likely outputs are on a pair.

        That is a function of the log probabilities, or densities, of outputs on both inputs, each shape (outputs,); the
        largest log probability of an output that the law does not list; and the log-odds that it gives and how often,
        where it is finite: two arrays, or none.
        """
        value, arrays = self.channel.ask("law", self.number, form, pair.data.pair)
        number, unlisted = shaped(_UNLISTED, value)
        return partial(self._log_probs, number), unlisted, self._stated(arrays)

    def _log_probs(self, number: int, outputs: Array) -> list[Array]:
        _, arrays = self.channel.ask("log_probs", number, outputs)
        if [array.shape for array in arrays] != [(len(outputs),)] * 2:
            raise MechanismError(
                f"expected two log probabilities of each of {len(outputs):,} outputs"
            )
        return arrays

    def _stated(self, arrays: Sequence[Array]) -> list[Array]:
        """Return how often which log-odds are given, two arrays or none."""
        stated = [np.asarray(array, np.float64) for array in arrays]
        if stated and not _is_law(*stated):
            raise MechanismError(
                f"{self.name}: the law of its odds has weights that are no frequencies"
            )
        return stated

    def replayed(
        self, form: Representation, pair: Any
    ) -> tuple[Callable[[Array], Array], list[Array]] | None:
        """Return the log-odds of outputs by what a trace reads off the code on a pair, and how often it gives which.

        Where that is nothing, it returns None; what is not known beforehand is empty.
        """
        value, arrays = self.channel.ask("read", self.number, form, pair.data.pair)
        number, stated = shaped(_COUNT_OR_NONE, value), self._stated(arrays)
        return None if number is None else (partial(self._odds, number), stated)

    def _odds(self, number: int, outputs: Array) -> Array:
        odds = self._one(self.channel.ask("odds", number, outputs))
        if odds.shape != (len(outputs),):
            raise LostError(
                f"expected the log-odds of each of {len(outputs):,} outputs, got shape {odds.shape}"
            )
        return odds.astype(np.float64)

    def _score(self, outputs: Array, pair: Any) -> Array:
        return self._one(
            self.channel.ask("score", self.number, outputs, pair.data.pair)
        )

    def _possible(self, outputs: Array, data: HeldInput) -> Array:
        return self._one(self.channel.ask("possible", self.number, outputs, data.place))

    def _one(self, answered: tuple[Any, list[Array]]) -> Array:
        (array,) = answered[1] or [np.zeros(0)]
        return array

    def new(self, what: str, *arguments: Any) -> int:
        """Return the number of something that is made there."""
        number, _ = self.channel.ask(what, *arguments)
        return shaped(_COUNT, number)


def _is_law(log_odds: Array, weights: Array, *more: Array) -> bool:
    one = (
        not more
        and log_odds.ndim == 1
        and log_odds.shape == weights.shape
        and 0 < len(weights) <= MOST_LISTED
    )
    return bool(
        one
        and not np.isnan(log_odds).any()
        and (weights >= 0).all()
        and 0 < weights.sum() < np.inf
    )


class CallsElsewhere(Calls):
    """Asks another process for the outputs of a mechanism, as rows.

    The number is that of these calls there.
    """

    mechanism: Any

    def __init__(self, mechanism: MechanismElsewhere, number: int) -> None:
        super().__init__(mechanism)
        self.number, self._singly = number, False
        self.raising = mechanism.held.per_call

    def look(self, inputs: Iterable[Any], rng: np.random.Generator) -> None:
        """Have it decided there how outputs are represented, unless that is decided."""
        if self._representation is not None:
            return
        places = [each.place for each in islice(inputs, MOST_PROBED)]
        value, arrays = self._ask("look", places, rng=rng)
        form = shaped(_FORM, value)
        (like,) = arrays or [np.zeros(0)]
        if like.ndim < 1 or len(like) < 1:
            raise LostError("the process of the mechanism shows no outputs")
        self.like, self.labels, self.drew = like, form.labels, form.drew
        self.shown = [Shown(*each) for each in form.shown]
        self._representation = Representation(
            like.shape[1:],
            like.dtype,
            form.flat,
            form.typed,
            form.kind,
            form.longest,
            form.ordered,
        )

    def repeated(self, data: Any, seed: int, size: int) -> tuple[bool, bool]:
        """Return whether calls with two generators of one state gave the same outputs, and drew equally much."""
        value, _ = self._ask("repeated", data.place, seed, size)
        return shaped(_SAME, value)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Array:
        """Return ``size`` outputs as rows; how they look has been decided."""
        return self._rows_of([(data, size)], rng)[0]

    def sides(
        self, data: Any, ones: int, neighbour: Any, zeros: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return rows of ``ones`` outputs on an input, and then of ``zeros`` on its neighbour, asked for at once."""
        first, second = self._rows_of([(data, ones), (neighbour, zeros)], rng)
        return first, second

    def _rows_of(
        self, wanted: Sequence[tuple[Any, int]], rng: np.random.Generator
    ) -> list[Array]:
        sizes = [size for _, size in wanted]
        asked = [(data.place, size) for data, size in wanted]
        _, arrays = self._ask(
            "rows", asked, self._singly, rng=rng, most=self._bytes(sum(sizes))
        )
        return self.checked(arrays, sizes)

    def runs(self, wanted: Sequence[Run]) -> Array:
        """Return the rows of some calls."""
        size = sum(run.size for run in wanted)
        _, arrays = self._ask(
            "runs", sent(wanted), self._singly, most=self._bytes(size)
        )
        return self.checked(arrays, [size])[0]

    def anew(self) -> Self:
        """Return the same calls, with nothing decided about how outputs are represented."""
        fresh = super().anew()
        fresh.number = self.mechanism.new("anew", self.number)
        return fresh

    def singly(self) -> CallsElsewhere:
        """Return the same calls made one by one."""
        single = copy.copy(self)
        single._singly = True
        return single

    def checked(self, arrays: list[Array], sizes: Sequence[int]) -> list[Array]:
        """Return an answer if it is arrays of so many rows.

        Raises:
            LostError: If it is anything else.
        """
        assert self.like is not None  # they were looked at
        wanted = [(self.like.dtype, (size, *self.like.shape[1:])) for size in sizes]
        if [(array.dtype, array.shape) for array in arrays] == wanted:
            return arrays
        found, asked = (
            ", ".join(f"{dtype} of shape {shape}" for dtype, shape in some) or "nothing"
            for some in ([(array.dtype, array.shape) for array in arrays], wanted)
        )
        raise LostError(
            f"the process of the mechanism was asked for {asked}, and answered {found}"
        )

    def _bytes(self, size: int) -> int:
        assert self.like is not None  # they were looked at
        return size * self.like[:1].nbytes

    def _ask(
        self,
        what: str,
        *arguments: Any,
        rng: np.random.Generator | None = None,
        **options: Any,
    ) -> tuple[Any, list[Array]]:
        seed = None if rng is None else Seed.of(rng)
        value, arrays = self.mechanism.channel.ask(
            "of_calls", self.number, what, self.raising, seed, *arguments, **options
        )
        after, value = shaped(_ANSWERED, value)
        self.raising |= after.raising
        self.raised.update(after.raised)
        self.inputs.kept.update(after.kept)
        if rng is not None:
            after.left(rng)
        return value, arrays


def calls_of(mechanism: Any) -> Calls:
    """Return calls of a mechanism, in this process or in its own."""
    return (
        mechanism.calls()
        if isinstance(mechanism, MechanismElsewhere)
        else Calls(mechanism)
    )


def sent(runs: Sequence[Run]) -> list[tuple[tuple[int, int], int, int]]:
    """Return runs as questions name them."""
    return [(run.data.place, run.size, run.seed) for run in runs]
