"""Neighbours that are made in the process of a mechanism: whoever judges has numbers and texts for them, and asks."""

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
"""What a call of a found pair promises to gain, at most, relative to the listed one that differs most."""
MOST_COUNTED = 1 << 20
"""Pairs that are counted, where there are so many or more."""
PairHeld = tuple[Count, Text]
"""The number of a pair there, and how reports write it."""
PromisedHeld = Annotated[
    list[tuple[PairHeld, Annotated[float, Field(ge=1, le=MOST_PROMISED)]]],
    Field(max_length=64),
]
"""Pairs, each with what it promises."""


@record(frozen=True, eq=False)
class PairElsewhere(Pair):
    """A pair of inputs that lie in another process."""

    text: str = ""

    def __str__(self) -> str:
        return self.text

    @property
    def python(self) -> str:
        """Python that makes both inputs; nothing that does anything else."""
        text = shaped(_TEXT, self.data.ask("python"))
        return text if not text or is_data(text) else ""


@dataclass(frozen=True)
class TraceHeld:
    """What a trace of the code proposes, and whether laws were read off it."""

    pairs: PromisedHeld
    reads: bool = False


@record
class TraceElsewhere:
    """What a trace saw of a mechanism in its process, for a game."""

    calls: CallsElsewhere
    proposed: Sequence[tuple[Pair, float]]
    """The pairs that are to be played beside the listed ones, each with what it promises, the best first."""

    def reads(self) -> bool:
        """Return whether laws can be read off; they may propose another pair. How outputs look has been decided."""
        found = shaped(_TRACE, self._ask("reads", self.calls.number))
        self.proposed = promised(self.calls.mechanism.channel, found.pairs)
        return found.reads

    def recorded(self, *, played: bool, abstained: int) -> Any:
        """Return what is told of it; see ``auditdp.evidence.trace_records.game_trace``."""
        return self._ask("traced", played, abstained)

    def _ask(self, what: str, *arguments: Any) -> Any:
        mechanism = self.calls.mechanism
        return mechanism.channel.ask(what, mechanism.number, *arguments)[0]


def promised(channel: Channel, pairs: PromisedHeld) -> list[tuple[Pair, float]]:
    """Return the pairs that are proposed in a process, each with what it promises."""
    return [(_named(channel, held), promise) for held, promise in pairs]


def _named(channel: Channel, held: PairHeld) -> Pair:
    number, text = held
    return PairElsewhere(
        HeldInput(channel, number, 0), HeldInput(channel, number, 1), text=text
    )


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
_TRACE: TypeAdapter[TraceHeld] = TypeAdapter(TraceHeld)
_TEXT: TypeAdapter[str] = TypeAdapter(Text)
_TRUTH: TypeAdapter[bool] = TypeAdapter(bool)


class AdjacencyElsewhere:
    """The adjacency of an audit in another process, which checks every pair before it is named here."""

    def __init__(self, channel: Channel, name: str) -> None:
        self.name = name
        self._channel = channel

    def check(self, pair: Pair) -> None:
        """Do nothing: it was checked where it lies."""

    def pairs(self) -> list[Pair]:
        """Return the pairs that are played: those that the audit names, or that the adjacency lists.

        Raises:
            AdjacencyError: If one of them is none, or there are none.
        """
        return [
            self._pair(held) for held in shaped(_PAIRS, self._channel.ask("pairs")[0])
        ]

    def exhaustive(self) -> list[Pair] | None:
        """Return as many pairs as there are, of which nothing is known; None where there are too many."""
        count = shaped(_EXHAUSTIVE, self._channel.ask("exhaustive")[0])
        return None if count is None else [Pair(None, None)] * count

    def can_search(self) -> bool:
        """Return whether it generates pairs that it does not list."""
        return shaped(_TRUTH, self._channel.ask("can_search")[0])

    def traced(
        self, calls: Any, played: Sequence[Pair], most: int, seed: int, *, search: bool
    ) -> TraceElsewhere:
        """Have the code traced, on the pairs that are played and, in a search, on others."""
        assert isinstance(calls, CallsElsewhere)
        asked = (
            calls.mechanism.number,
            [pair.data.pair for pair in played],
            most,
            seed,
            search,
        )
        found = shaped(_TRACE, self._channel.ask("trace", *asked)[0])
        return TraceElsewhere(calls, promised(self._channel, found.pairs))

    def proposed(
        self, calls: Any, played: Sequence[Pair], most: int, *, first: int
    ) -> tuple[list[tuple[Pair, float]], int]:
        """Have pairs searched for beside those that are played, with about so many calls.

        Return them, each with what it promises, and how many were looked at.
        """
        assert isinstance(calls, CallsElsewhere)
        asked = (
            calls.mechanism.number,
            calls.number,
            [pair.data.pair for pair in played],
            first,
            most,
        )
        found, looked_at = shaped(_PROPOSED, self._channel.ask("propose", *asked)[0])
        return promised(self._channel, found), looked_at

    def smaller(
        self, calls: Any, pair: Pair, refuted_at: int, alpha: float
    ) -> Pair | None:
        """Have the smallest pair looked for that refutes the claim as one did, and return it, if there is any."""
        assert isinstance(calls, CallsElsewhere)
        asked = calls.mechanism.number, calls.number, pair.data.pair, refuted_at, alpha
        held = shaped(_SMALLER, self._channel.ask("smaller", *asked)[0])
        return None if held is None else self._pair(held)

    def _pair(self, held: PairHeld) -> Pair:
        return _named(self._channel, held)
