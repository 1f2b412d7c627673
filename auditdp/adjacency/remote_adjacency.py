"""Adjacencies and pairs of an audit in another process, which has the inputs.

The process that judges an audit has numbers and texts for the pairs. It sends requests
over the channel, and the process of the mechanism answers them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass as record
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from auditdp.adjacency.adjacency import Pair, is_data
from auditdp.mechanism.calls.channel import Channel, shaped
from auditdp.mechanism.calls.remote_mechanism import (
    CallsElsewhere,
    Count,
    HeldInput,
    Text,
)

MOST_PROMISED = 16.0
"""Largest accepted promise of a found pair.

A promise is the expected gain of a call, relative to the listed pair that differs most.
"""
MOST_COUNTED = 1 << 20
"""Number of enumerated pairs beyond which they are not counted further."""

PairHeld = tuple[Count, Text]
"""The number of a pair in the other process, and its text in reports."""
PromisedHeld = Annotated[
    list[tuple[PairHeld, Annotated[float, Field(ge=1, le=MOST_PROMISED)]]],
    Field(max_length=64),
]
"""Pairs, each with its promise."""


@record(frozen=True, eq=False)
class PairElsewhere(Pair):
    """A pair of inputs of another process."""

    text: str = ""

    def __str__(self) -> str:
        return self.text

    @property
    def python(self) -> str:
        """Python that makes both inputs, or '' if the received text is other code."""
        # A user may paste the text, so the other process must not choose what it does.
        text = shaped(_TEXT, self.data.ask("python"))
        if not text or is_data(text):
            return text
        return ""


@dataclass(frozen=True)
class TraceHeld:
    """The pairs that a trace of the code proposes.

    ``reads`` states whether the trace contains laws of the outputs.
    """

    pairs: PromisedHeld
    reads: bool = False


@record
class TraceElsewhere:
    """The trace of a mechanism in its process, for a game.

    Attributes:
        calls: The calls of the mechanism.
        proposed: The pairs to play beside the listed ones, with promises, the best
            first.
    """

    calls: CallsElsewhere
    proposed: Sequence[tuple[Pair, float]]

    def reads(self) -> bool:
        """Return True if the trace contains laws, which may propose other pairs.

        The representation of outputs has to be fixed before.
        """
        trace = shaped(_TRACE, self._ask("reads", self.calls.number))
        self.proposed = promised(self.calls.mechanism.channel, trace.pairs)
        return trace.reads

    def recorded(self, *, played: bool, abstained: int) -> Any:
        """Return the record of the trace; see ``evidence.trace_records.game_trace``."""
        return self._ask("traced", played, abstained)

    def _ask(self, request: str, *arguments: Any) -> Any:
        mechanism = self.calls.mechanism
        return mechanism.channel.ask(request, mechanism.number, *arguments)[0]


def promised(channel: Channel, pairs: PromisedHeld) -> list[tuple[Pair, float]]:
    """Return the pairs that another process proposes, each with its promise."""
    return [(_pair(channel, held), promise) for held, promise in pairs]


def _pair(channel: Channel, held: PairHeld) -> Pair:
    number, text = held
    data, neighbour = (HeldInput(channel, number, side) for side in (0, 1))
    return PairElsewhere(data, neighbour, text=text)


# Types of the replies. A reply of another type or size is an error of the audit.
_PAIRS: TypeAdapter[list[PairHeld]] = TypeAdapter(
    Annotated[list[PairHeld], Field(min_length=1)]
)
_PROPOSED: TypeAdapter[tuple[PromisedHeld, int]] = TypeAdapter(
    tuple[PromisedHeld, Count]
)
_SMALLER: TypeAdapter[PairHeld | None] = TypeAdapter(PairHeld | None)
_EXHAUSTIVE: TypeAdapter[int | None] = TypeAdapter(
    Annotated[int, Field(ge=0, le=MOST_COUNTED)] | None
)
_TRACE = TypeAdapter(TraceHeld)
_TEXT: TypeAdapter[str] = TypeAdapter(Text)
_TRUTH = TypeAdapter(bool)


class AdjacencyElsewhere:
    """The adjacency of an audit in another process, which checks all pairs."""

    def __init__(self, channel: Channel, name: str) -> None:
        self.name = name
        self._channel = channel

    def check(self, pair: Pair) -> None:
        """Do nothing, because the other process has checked the pair."""

    def pairs(self) -> list[Pair]:
        """Return the pairs to play: those that the audit names or the adjacency lists.

        Raises:
            AdjacencyError: If one of them is no pair of neighbours, or there are none.
        """
        held_pairs = shaped(_PAIRS, self._channel.ask("pairs")[0])
        return [_pair(self._channel, held) for held in held_pairs]

    def exhaustive(self) -> list[Pair] | None:
        """Return a placeholder for every pair, or None if there are too many."""
        count = shaped(_EXHAUSTIVE, self._channel.ask("exhaustive")[0])
        if count is None:
            return None
        return [Pair(None, None)] * count

    def can_search(self) -> bool:
        """Return True if the adjacency generates pairs beside those that it lists."""
        return shaped(_TRUTH, self._channel.ask("can_search")[0])

    def traced(
        self, calls: Any, played: Sequence[Pair], most: int, seed: int, *, search: bool
    ) -> TraceElsewhere:
        """Trace the code on the played pairs, and with ``search`` on others."""
        trace = shaped(_TRACE, self._ask("trace", calls, played, most, seed, search))
        return TraceElsewhere(calls, promised(self._channel, trace.pairs))

    def proposed(
        self, calls: Any, played: Sequence[Pair], most: int, *, first: int
    ) -> tuple[list[tuple[Pair, float]], int]:
        """Search pairs beside those that are played, with about ``most`` calls.

        Returns:
            The pairs, each with its promise, and the number of pairs that were tried.
        """
        reply = self._ask("propose", calls, calls.number, played, first, most)
        held_pairs, tried = shaped(_PROPOSED, reply)
        return promised(self._channel, held_pairs), tried

    def smaller(
        self, calls: Any, pair: Pair, refuted_at: int, alpha: float
    ) -> Pair | None:
        """Return the smallest pair that refutes the claim like a given one, or None."""
        reply = self._ask("smaller", calls, calls.number, pair, refuted_at, alpha)
        held = shaped(_SMALLER, reply)
        if held is None:
            return None
        return _pair(self._channel, held)

    def _ask(self, request: str, calls: Any, *arguments: Any) -> Any:
        """Send a request about a mechanism, with the numbers of pairs for the pairs."""
        assert isinstance(calls, CallsElsewhere)
        sent = []
        for argument in arguments:
            if isinstance(argument, Pair):
                argument = argument.data.pair
            elif isinstance(argument, Sequence):
                argument = [pair.data.pair for pair in argument]
            sent.append(argument)
        return self._channel.ask(request, calls.mechanism.number, *sent)[0]
