"""Traced runs of a pair, from which it is read how likely outputs are on either input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditdp.numerics.arrays import Floats
from auditdp.tracing import PairTrace
from auditdp.tracing.draws import Release


@dataclass(frozen=True, eq=False)
class SeenRuns:
    """Traced runs of a pair.

    Attributes:
        traces: One for each run, recorded on the data or on the neighbour.
        forward: Whether it was recorded on the data.
        rows: The outputs on the data, and those on the neighbour with the same results of all releases, each of shape
            (runs, numbers).
    """

    traces: Sequence[PairTrace]
    forward: Sequence[bool]
    rows: tuple[Floats, Floats]

    @property
    def is_alike(self) -> bool:
        """Whether all of them are understood in full, and have the same releases on both inputs."""
        kinds = [
            [(m.first.site, m.first.kind, m.first.law.family, m.first.shape) for m in each.moved]
            for each in self.traces
        ]
        understood = all(each.extent == "full" and not each.second.parted for each in self.traces)
        return understood and all(one == kinds[0] for one in kinds)

    @property
    def places(self) -> range:
        """The releases, by their number."""
        return range(len(self.traces[0].moved))

    def of(self, place: int) -> tuple[list[Release], list[Release]]:
        """Return a release in all runs, on the data and on the neighbour."""
        pairs = [(m.first, m.second) for m in (each.moved[place] for each in self.traces)]
        first, second = zip(
            *(pair if forward else pair[::-1] for pair, forward in zip(pairs, self.forward, strict=True)), strict=True
        )
        return list(first), list(second)

    def loses(self, place: int) -> bool:
        """Return whether a release loses anything, or may."""
        return any(moved.loss is None or any(moved.loss) for moved in (each.moved[place] for each in self.traces))
