"""Stand-ins for the adjacency and the pairs of an audit, for the judging process.

The inputs are in the process of the mechanism. The process that judges the audit has
only a number and a text for each pair. It sends requests over the channel, and the
process of the mechanism answers them (``auditing.serving``).
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

The *promise* of a pair is the expected gain of a call on this pair, divided by that of
a call on the listed pair that differs most.
"""
MOST_COUNTED = 1 << 20
"""Largest reported number of enumerated pairs; it stands for any larger number."""

PairHeld = tuple[Count, Text]
"""The number of a pair in the process of the mechanism, and its text in reports."""
PromisedHeld = Annotated[
    list[tuple[PairHeld, Annotated[float, Field(ge=1, le=MOST_PROMISED)]]],
    Field(max_length=64),
]
"""Pairs, at most 64, each with its promise (``MOST_PROMISED`` defines the word)."""


@record(frozen=True, eq=False)
class PairElsewhere(Pair):
    """A pair of inputs that are in the process of the mechanism."""

    text: str = ""

    def __str__(self) -> str:
        return self.text

    @property
    def python(self) -> str:
        """Python source of both inputs; '' if there is none, or if it is other code."""
        # A user may paste the text, so it must not run code that the other process
        # chose.
        text = shaped(_TEXT, self.data.ask("python"))
        if not text or is_data(text):
            return text
        return ""


@dataclass(frozen=True)
class TraceHeld:
    """Reply with the pairs that a trace of the mechanism proposes.

    ``reads`` is True if laws of the outputs were fitted to the trace. It is False if no
    law fits, and in the first reply, before laws are requested.
    """

    pairs: PromisedHeld
    reads: bool = False


@record
class TraceElsewhere:
    """Stand-in for the trace of a mechanism, which is in the mechanism's process.

    Attributes:
        calls: The calls of the mechanism.
        proposed: The pairs to play beside the listed ones, with their promises, the
            best first.
    """

    calls: CallsElsewhere
    proposed: Sequence[tuple[Pair, float]]

    def reads(self) -> bool:
        """Fit laws of the outputs to the trace, and return True if that succeeds.

        It replaces ``proposed``, because the laws may propose other pairs. ``calls``
        must have called the mechanism before: the first call fixes the shape and the
        type of an output, which the laws need.
        """
        trace = shaped(_TRACE, self._ask("reads", self.calls.number))
        self.proposed = promised(self.calls.mechanism.channel, trace.pairs)
        return trace.reads

    def recorded(self, *, played: bool, abstained: int) -> Any:
        """Return the record of the trace as plain data, or None if nothing was traced.

        Args:
            played: Whether a law of the trace was a forecaster of the game.
            abstained: Number of outputs for which this forecaster gave no odds.
        """
        return self._ask("traced", played, abstained)

    def _ask(self, request: str, *arguments: Any) -> Any:
        mechanism = self.calls.mechanism
        return mechanism.channel.ask(request, mechanism.number, *arguments)[0]


def promised(channel: Channel, pairs: PromisedHeld) -> list[tuple[Pair, float]]:
    """Return a stand-in for every pair of a reply, with the promise of the pair."""
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
    """Stand-in for the adjacency of an audit, which is in the mechanism's process.

    That process checks all pairs. Every method except ``check`` sends it a request.
    """

    def __init__(self, channel: Channel, name: str) -> None:
        self.name = name
        self._channel = channel

    def check(self, pair: Pair) -> None:
        """Do nothing, because the process of the mechanism has checked the pair."""

    def pairs(self) -> list[Pair]:
        """Return the pairs to play: those that the audit names or the adjacency lists.

        Raises:
            AdjacencyError: If one of them is no pair of neighbours, or there are none.
        """
        held_pairs = shaped(_PAIRS, self._channel.ask("pairs")[0])
        return [_pair(self._channel, held) for held in held_pairs]

    def exhaustive(self) -> list[Pair] | None:
        """Return a placeholder for every pair, or None if there are too many.

        Only the number of placeholders is used; it is at most ``MOST_COUNTED``.
        """
        count = shaped(_EXHAUSTIVE, self._channel.ask("exhaustive")[0])
        if count is None:
            return None
        return [Pair(None, None)] * count

    def can_search(self) -> bool:
        """Return True if the adjacency generates pairs that it does not list."""
        return shaped(_TRUTH, self._channel.ask("can_search")[0])

    def traced(
        self, calls: Any, played: Sequence[Pair], most: int, seed: int, *, search: bool
    ) -> TraceElsewhere:
        """Trace the mechanism on pairs.

        Args:
            calls: The calls of the mechanism.
            played: The pairs that the game plays.
            most: Largest number of calls of the game, which bounds the traced runs.
            seed: The seed of the generated pairs and of the runs.
            search: Whether generated pairs are traced as well.
        """
        trace = shaped(_TRACE, self._ask("trace", calls, played, most, seed, search))
        return TraceElsewhere(calls, promised(self._channel, trace.pairs))

    def proposed(
        self, calls: Any, played: Sequence[Pair], most: int, *, first: int
    ) -> tuple[list[tuple[Pair, float]], int]:
        """Search for pairs whose outputs are farther apart than those of listed pairs.

        Args:
            calls: The calls of the mechanism.
            played: All pairs that the game plays.
            most: Largest number of calls, approximately.
            first: The number of listed pairs, with which ``played`` begins.

        Returns:
            At most four pairs, each with its promise, and the number of tried pairs. If
            no outputs are farther apart, the best pair that is not listed is returned.
        """
        reply = self._ask("propose", calls, calls.number, played, first, most)
        held_pairs, tried = shaped(_PROPOSED, reply)
        return promised(self._channel, held_pairs), tried

    def smaller(
        self, calls: Any, pair: Pair, refuted_at: int, alpha: float
    ) -> Pair | None:
        """Search for a smaller pair that refutes the claim as a given pair does.

        Args:
            calls: The calls of the mechanism.
            pair: The pair that refuted the claim.
            refuted_at: The number of calls after which it refuted the claim.
            alpha: The level of the test.

        Returns:
            The smallest pair that was found, or None if none is smaller.
        """
        reply = self._ask("smaller", calls, calls.number, pair, refuted_at, alpha)
        held = shaped(_SMALLER, reply)
        if held is None:
            return None
        return _pair(self._channel, held)

    def _ask(self, request: str, calls: Any, *arguments: Any) -> Any:
        """Send a request about a mechanism, with numbers in place of pairs."""
        assert isinstance(calls, CallsElsewhere)
        sent = []
        for argument in arguments:
            if isinstance(argument, Pair):
                argument = argument.data.pair
            elif isinstance(argument, Sequence):
                argument = [pair.data.pair for pair in argument]
            sent.append(argument)
        return self._channel.ask(request, calls.mechanism.number, *sent)[0]
