"""The ways in which exact evidence covers neighbours, each with what it assumes and what contradicts it.

``Enumerated``: all pairs were looked at. ``Enclosed``: an envelope bounds what any two inputs of a domain can do.
``AdditiveCoverage``: a declared model of noise bounds all pairs by the sensitivity. ``Searched``: some pairs, and nothing is
known of the others. A cover that is contradicted by a pair covers nothing, and then has neither a bound nor assumptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from auditdp.adjacency import Adjacency, AnyValues
from auditdp.evidence.exact.noise import DeclaredNoise
from auditdp.evidence.exact.pair_loss import PairLoss


class Coverage(Protocol):
    """What is known of the pairs of a scope."""

    @property
    def scope(self) -> str:
        """Which pairs these are, in words."""

    @property
    def bound(self) -> PairLoss | None:
        """A bound on the loss of every pair of the scope; None where there is none but the losses that were computed."""

    def check(self) -> str:
        """Return why other neighbours are not covered, in words; empty where all of them are."""

    def assumptions(self) -> list[str]:
        """Return what the cover rests on."""


@dataclass(frozen=True)
class Enumerated:
    """All pairs that the adjacency lists as its neighbours.

    Attributes:
        reordered: How many were compared in another order of the nodes, where they are listed up to that order.
        unlike: How one of them lost something else there; empty where none did.
    """

    adjacency: Adjacency
    pairs: int
    reordered: int = 0
    unlike: str = ""
    bound: None = None

    @property
    def scope(self) -> str:
        """All pairs, and those in another order where they are not the same."""
        many = f"all {count(self.pairs)}" if self.pairs > 1 else "the only pair"
        also = f" and {self.reordered} in another order of the nodes," if self.unlike else ""
        return f"{many}{also} of {self.adjacency.name}"

    def check(self) -> str:
        """Return how the order of the nodes matters, if it does."""
        return self.unlike

    def assumptions(self) -> list[str]:
        """Return that the order of nodes does not matter, or that listed values are all there are, where that is so."""
        if self.unlike:
            return []
        if self.reordered:
            tried = f"true on {self.reordered} pairs in another order of the nodes"
            return [f"it treats nodes alike: {tried}, and not proved on all"]
        return ["scope: these values are the whole domain"] if isinstance(self.adjacency, AnyValues) else []


@dataclass(frozen=True)
class Enclosed:
    """All pairs of a domain, by an envelope.

    Attributes:
        enclosing: The largest loss that the envelope allows.
        compared: On how many pairs the law was compared with it; 0 where no law is stated.
        beyond: How the law loses more than the envelope allows; empty where it was not seen to.
    """

    adjacency: Adjacency
    enclosing: PairLoss
    compared: int = 0
    beyond: str = ""

    @property
    def scope(self) -> str:
        """All pairs, or those that were compared."""
        return f"{count(self.compared) if self.beyond else 'all pairs'} of {self.adjacency.name}"

    @property
    def bound(self) -> PairLoss | None:
        """What the envelope allows."""
        return None if self.beyond else self.enclosing

    def check(self) -> str:
        """Return how the law contradicts the envelope, if it does."""
        return self.beyond

    def assumptions(self) -> list[str]:
        """Return that the envelope is right, and how far that was compared."""
        if self.beyond:
            return []
        most = "its envelope is the least and the most of every output"
        if not self.compared:
            return [f"{most}, attained as stated: no law was there to compare"]
        searched = "and that is searched, not proved, for all others"
        return [f"{most}: its law lost no more on {count(self.compared)}, {searched}"]


@dataclass(frozen=True)
class AdditiveCoverage:
    """All neighbours of a declared sensitivity, by the model of noise of one scale and shape.

    Attributes:
        of_sensitivity: The loss of answers that are as far apart as the sensitivity.
        seen: The pairs that were looked at, in words.
        departure: How one of them contradicts the model; empty where none does.
    """

    adjacency: Adjacency
    noise: DeclaredNoise
    of_sensitivity: PairLoss
    seen: str
    departure: str = ""

    @property
    def scope(self) -> str:
        """All neighbours whose answers are so near, or the pairs that were looked at."""
        if self.departure:
            return f"{self.seen} of {self.adjacency.name}"
        return (
            f"all neighbours with queries {self._apart}, as declared, of noise of one scale{self._around}; "
            f"{self.adjacency.name}"
        )

    @property
    def bound(self) -> PairLoss | None:
        """The loss of answers that are as far apart as the sensitivity."""
        return None if self.departure else self.of_sensitivity

    def check(self) -> str:
        """Return how a pair departs from the model, if one does."""
        return self.departure

    def assumptions(self) -> list[str]:
        """Return that the model holds for pairs that were not looked at, too."""
        if self.departure:
            return []
        others = f"true on {self.seen}, and searched, not proved, on all others"
        return [
            f"the noise has one scale and shape{self._around}, whatever the data: {others}",
            f"the answers of neighbours are {self._apart}: declared; {others}",
        ]

    @property
    def _apart(self) -> str:
        return f"at most {self.noise.sensitivity:g} apart in {self.noise.norm}"

    @property
    def _around(self) -> str:
        return " around its query" if self.noise.able.query is not None else ""


@dataclass(frozen=True)
class Searched:
    """Some pairs: those that are given or listed, and those that a search came across.

    Attributes:
        seen: The pairs that were looked at, in words.
        remedy: How all pairs could be covered, in words.
    """

    adjacency: Adjacency
    seen: str
    remedy: str = ""
    bound: None = None

    @property
    def scope(self) -> str:
        """The pairs that were looked at."""
        return f"{self.seen} of {self.adjacency.name}"

    def check(self) -> str:
        """Return that others were not covered."""
        return f"not all neighbouring pairs were covered{self.remedy and f'; {self.remedy}'}"

    def assumptions(self) -> list[str]:
        """Return nothing: nothing is said of other pairs."""
        return []


def count(pairs: int) -> str:
    """Return '1 pair' or '2,184 pairs'."""
    return f"{pairs:,} pairs" if pairs != 1 else "1 pair"
