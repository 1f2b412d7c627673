"""What the entries of noise are made of: a sparse matrix, entries by entries of draws."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from auditdp.tracing.draws import Term, WatchedDraw


class Coordinates(NamedTuple):
    """The nonzero numbers of the matrix, in the order of the entries, which are counted flat.

    Attributes:
        draws: The draws.
        rows: The entry of the noise.
        which: The draw, by its place in ``draws``.
        places: The entry of the draw.
        numbers: What the standard draw is multiplied by.
    """

    draws: tuple[WatchedDraw, ...]
    rows: Any
    which: Any
    places: Any
    numbers: Any

    def taken(self, index: Any, factors: Any) -> Coordinates:
        """Return those of some entries, in that order, multiplied by factors."""
        starts, ends = (
            np.searchsorted(self.rows, index, side) for side in ("left", "right")
        )
        counts = ends - starts
        rows = np.repeat(np.arange(len(index)), counts)
        at = np.arange(counts.sum()) + np.repeat(
            starts - np.cumsum(counts) + counts, counts
        )
        return Coordinates(
            self.draws,
            rows,
            self.which[at],
            self.places[at],
            self.numbers[at] * factors[rows],
        )

    @property
    def columns(self) -> Any:
        """Numbers that two of the coordinates share if they are of the same entry of a draw, whatever its name."""
        first: dict[
            int, int
        ] = {}  # draws that are the same numbers share what they were used in
        names = np.array(
            [first.setdefault(id(draw.used), len(first)) for draw in self.draws],
            np.int64,
        )
        _, found = np.unique(
            np.stack([names[self.which], self.places]), axis=1, return_inverse=True
        )
        return found.ravel()

    def by_draw(self) -> list[tuple[WatchedDraw, Any]]:
        """Return each draw with its entries."""
        return [
            (draw, self.places[self.which == k])
            for k, draw in enumerate(self.draws)
            if np.any(self.which == k)
        ]


class Mixed(WatchedDraw):
    """Entries that are made of those of several draws, as one draw.

    Attributes:
        of: What they are made of.
    """

    __slots__ = ("of",)
    of: Coordinates

    def _of(self, index: Any) -> list[tuple[WatchedDraw, Any]]:
        index = np.ravel(index)
        return self.of.taken(index, np.ones(len(index))).by_draw()

    def earlier(self, index: Any) -> list[int]:
        """Return the releases that some entries went into already."""
        return sorted(
            {
                number
                for draw, places in self._of(index)
                for number in draw.earlier(places)
            }
        )

    def use(self, index: Any, release: int) -> None:
        """Note that some entries go into a release."""
        for draw, places in self._of(index):
            draw.use(places, release)


def coordinates(terms: tuple[Term, ...], shape: tuple[int, ...]) -> Coordinates:
    """Return what the entries of noise of a shape are made of."""
    parts: list[Coordinates] = []
    for term in terms:
        index, factors, scales = (
            np.broadcast_to(part, shape).ravel()
            for part in (term.index, term.factor, term.draw.law.scale)
        )
        if isinstance(term.draw, Mixed):
            parts.append(term.draw.of.taken(index, factors))
        else:
            rows = np.arange(len(index))
            parts.append(
                Coordinates(
                    (term.draw,),
                    rows,
                    np.zeros(len(index), np.int64),
                    index,
                    factors * scales,
                )
            )
    return parts[0] if len(parts) == 1 else together(parts, [0] * len(parts))


def together(parts: list[Coordinates], after: list[int]) -> Coordinates:
    """Return the coordinates of several parts as one, each with its entries counted from a number on."""
    offsets = np.cumsum([0, *(len(part.draws) for part in parts)])
    made = [
        (part.rows + start, part.which + offset, part.places, part.numbers)
        for part, start, offset in zip(parts, after, offsets, strict=False)
    ]
    rows, which, places, numbers = (
        np.concatenate(each) for each in zip(*made, strict=True)
    )
    order = np.argsort(rows, kind="stable")
    draws = tuple(draw for part in parts for draw in part.draws)
    return Coordinates(draws, rows[order], which[order], places[order], numbers[order])
