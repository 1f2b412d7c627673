"""Stand-ins, in the judging process, for a mechanism, its inputs and its calls.

The objects themselves are in the process of the mechanism. The judging process has a
number for each of them, and sends requests over the channel (``channel``). Each method
here that sends a request has its other end in ``auditing.serving``.
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
    """A generator in a request; it is pickled with its state and its seed sequence."""

    rng: np.random.Generator

    @classmethod
    def of(cls, rng: np.random.Generator) -> Seed:
        """Return a generator for a request."""
        return cls(rng)

    def generator(self) -> np.random.Generator:
        """Return the generator of a request."""
        return self.rng


@dataclass(frozen=True)
class After:
    """Effects of requested calls, which the judging process copies to its own objects.

    The outputs of the calls are sent beside them.
    """

    state: (
        tuple[
            Annotated[str, Field(pattern="^[0-9a-f]{1,32}$")],
            bool,
            Annotated[int, Field(ge=0, lt=1 << 32)],
        ]
        | None
    )
    """State of the generator after the calls, or None if the request has no generator.

    It is the state in hexadecimal digits, and numpy's buffered half of a draw: whether
    there is one, and its value.
    """
    spawned: Count
    """Number of generators that were ever spawned from the generator."""
    raising: bool
    """True if exceptions are outputs in all later calls."""
    raised: dict[Text, Count]
    """Number of calls of this request that raised, by the type of the exception."""
    kept: list[Text]
    """Types of inputs that cannot be copied (``Inputs.kept``)."""

    @classmethod
    def of(
        cls, calls: Calls, rng: np.random.Generator | None, raised: Counter[str]
    ) -> dict[str, Any]:
        """Return the effects of a request as plain data.

        Args:
            calls: The calls.
            rng: The generator of the request, if there is one.
            raised: The counts of exceptions before the request.
        """
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
        """Bring ``rng``, the generator of the request, into its state after the calls.

        Raises:
            LostError: If the state is missing or not possible.
        """
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
    """Reply to ``look``: the form of rows, labels of numbers, and side outputs.

    The fields are those of ``Representation`` and ``Calls``.
    """

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
    """The properties of a mechanism that are sent before the first call.

    The last three are False if no requested kind of evidence uses them.
    """

    per_call: bool
    """True if the mechanism makes one output a call."""
    knows_odds: bool
    """True if it states probabilities of outputs (``Capabilities.knows_odds``)."""
    scores: bool
    """True if it has a method ``score``."""
    tells_possible: bool
    """True if it has a method ``possible``."""


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
    """Stand-in for an input, which is in the process of the mechanism.

    It is side 0 or 1 of a pair: ``data`` or ``neighbour``. numpy converts it to a flat
    array of its numbers, if the input has only numbers.
    """

    def __init__(self, channel: Channel, pair: int, side: int) -> None:
        self.pair = pair
        self.side = side
        self._channel = channel
        self._numbers: list[Array] | None = None

    @property
    def place(self) -> tuple[int, int]:
        """The numbers of the pair and of the side, which name the input in requests."""
        return self.pair, self.side

    def ask(self, what: str) -> Any:
        """Call a method of the other process about the input's pair.

        Returns:
            The plain data of the answer.
        """
        return self._channel.ask(what, self.pair)[0]

    def __deepcopy__(self, memo: Any) -> HeldInput:
        # A copy is not needed, because nothing in this process can change the input.
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        # The numbers are sent once, and only if they are needed.
        if self._numbers is None:
            _, self._numbers = self._channel.ask("numbers", self.place)
        if len(self._numbers) != 1 or self._numbers[0].ndim != 1:
            raise TypeError("no numbers")
        return self._numbers[0].astype(dtype or np.float64)


class MechanismElsewhere:
    """Stand-in for a mechanism, which is in a process of its own.

    Attributes:
        channel: The channel to that process.
        number: 0 for the audited mechanism, and 1, 2, ... for its controls.
        name: The name in reports.
        seeded: Whether the mechanism draws from the generator of the audit.
        plays: The kinds of evidence that are gathered in this process. All others are
            gathered in the process of the mechanism.
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
        """Request that the other process prepares evidence, before any is gathered.

        Its answer sets ``held`` and the optional methods of this stand-in.

        Args:
            request: The settings of the run, the name that keys its random streams, and
                whether the mechanism is a control.
        """
        self.held, _ = self.channel.ask("gather", self.number, *request)
        self.score = self._score if self.held.scores else None
        self.possible = self._possible if self.held.tells_possible else None

    def __call__(
        self, data: HeldInput, size: int, *, rng: np.random.Generator
    ) -> Array:
        """Return ``size`` outputs as rows, whose form this call alone decides."""
        calls = self.calls()
        calls.look([data], rng)
        return calls(data, size, rng)

    def calls(self) -> CallsElsewhere:
        """Return calls whose form of rows is not decided yet."""
        return CallsElsewhere(self, self.channel.ask("calls", self.number)[0])

    def law(
        self, form: Representation, pair: Any
    ) -> tuple[Callable[[Array], list[Array]], float, list[Floats]]:
        """Return the law of outputs on a pair that the mechanism states.

        Returns:
            A function that takes rows of this form and returns their log probabilities
            or densities on both inputs, two arrays of shape (rows,). Then the largest
            log probability of an output that the law does not list. Then the finite
            log-odds of the law and their weights: two arrays, or no array if they are
            unknown.
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
        """Return the log-odds of a law and their weights after a check; [] if none."""
        stated = [np.asarray(array, np.float64) for array in arrays]
        if stated and not _is_law(*stated):
            raise MechanismError(
                f"{self.name}: the law of its odds has weights that are no frequencies"
            )
        return stated

    def replayed(
        self, form: Representation, pair: Any
    ) -> tuple[Callable[[Array], Array], list[Floats]] | None:
        """Return the log-odds of outputs on a pair, as fitted to a trace of the code.

        Returns:
            A function that takes rows of this form and returns their log-odds; and the
            log-odds of the law and their weights, two arrays, or no array if they are
            unknown. None if no law was fitted for the pair.
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
    """Calls that the process of the mechanism makes; it returns the rows.

    Attributes:
        number: The number of these calls in that process.
    """

    mechanism: Any

    def __init__(self, mechanism: MechanismElsewhere, number: int) -> None:
        super().__init__(mechanism)
        self.number = number
        self.raising = mechanism.held.per_call

    def look(self, inputs: Iterable[Any], rng: np.random.Generator) -> None:
        """Request a decision on the form of rows, unless it is decided."""
        if self._representation is not None:
            return
        places = [each.place for each in islice(inputs, MOST_PROBED)]
        value, arrays = self._ask("look", places, rng=rng)
        form = dict(vars(shaped(ANSWERS["look"], value)))
        # The first rows fix the shape and the type of all later answers.
        (like,) = arrays or [np.zeros(0)]
        if like.ndim < 1 or len(like) < 1:
            raise LostError("the process of the mechanism shows no outputs")
        self.like = like
        self.labels = form.pop("labels")
        self.drew = form.pop("drew")
        self.shown = [Shown(*each) for each in form.pop("shown")]
        self._representation = Representation(like.shape[1:], like.dtype, **form)

    def repeated(self, data: Any, seed: int, size: int) -> tuple[bool, bool]:
        """Call the mechanism twice with one seed.

        Returns:
            Whether the outputs are equal, and whether the generators end in the same
            state.
        """
        # The seed makes both generators there, so that none is sent.
        value, _ = self._ask("repeated", data.place, seed, size)
        same: tuple[bool, bool] = shaped(ANSWERS["repeated"], value)
        return same

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Array:
        """Return ``size`` outputs as rows; ``look`` must have been called before."""
        return self._rows_of([(data, size)], rng)[0]

    def sides(
        self, data: Any, ones: int, neighbour: Any, zeros: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return rows of outputs on both inputs of a pair, by one request.

        There are ``ones`` rows on the input, and ``zeros`` rows on its neighbour.
        """
        first, second = self._rows_of([(data, ones), (neighbour, zeros)], rng)
        return first, second

    def _rows_of(
        self, wanted: Sequence[tuple[Any, int]], rng: np.random.Generator
    ) -> list[Array]:
        request = [(data.place, size) for data, size in wanted]
        return self._rows_by("rows", request, [size for _, size in wanted], rng)

    def runs(self, wanted: Sequence[Run]) -> Array:
        """Return the rows of repeatable calls, one after the other in one array."""
        size = sum(run.size for run in wanted)
        return self._rows_by("runs", sent(wanted), [size])[0]

    def _rows_by(
        self,
        what: str,
        request: Sequence[Any],
        sizes: Sequence[int],
        rng: np.random.Generator | None = None,
    ) -> list[Array]:
        # The form of rows was decided before.
        assert self.like is not None
        # The size of the answer is known, so a longer answer is not read.
        max_bytes = sum(sizes) * self.like[:1].nbytes
        _, arrays = self._ask(what, request, self._singly, rng=rng, max_bytes=max_bytes)
        return self.checked(arrays, sizes)

    def anew(self) -> Self:
        """Return calls of the same mechanism whose form of rows is not decided yet."""
        fresh = super().anew()
        fresh.number, _ = self.mechanism.channel.ask("anew", self.number)
        return fresh

    def checked(self, arrays: list[Array], sizes: Sequence[int]) -> list[Array]:
        """Return the arrays of an answer after a check.

        Raises:
            LostError: If the arrays do not have ``sizes`` rows, in this order, or the
                shape and type of their rows are not those of the decided form.
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
    """Return repeatable calls in the form of a request: place, size and seed."""
    return [(run.data.place, run.size, run.seed) for run in runs]
