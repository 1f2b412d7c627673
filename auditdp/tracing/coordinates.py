"""A sparse matrix that maps entries of draws to entries of noise.

`Mixed` is one draw in place of several, with such a matrix.
`auditdp.tracing.mixed_values` makes it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from auditdp.tracing.draws import Term, WatchedDraw


class Coordinates(NamedTuple):
    """The nonzero coefficients of the matrix, in the order of the entries of the noise.

    Each of the four arrays has one item for each coefficient.

    Attributes:
        draws: The draws.
        rows: Index of the entry of the noise, counted flat; ascending.
        which: Index of the draw in ``draws``.
        places: Index of the entry of that draw, counted flat.
        numbers: The coefficient, which multiplies the standard draw.
    """

    draws: tuple[WatchedDraw, ...]
    rows: Any
    which: Any
    places: Any
    numbers: Any

    def taken(self, index: Any, factors: Any) -> Coordinates:
        """Return the coordinates of chosen entries of the noise, multiplied by factors.

        Row k of the result is the entry ``index[k]``.

        Args:
            index: Flat indices of the entries; an entry may occur several times.
            factors: Factor of each item of ``index``.
        """
        starts = np.searchsorted(self.rows, index, "left")
        counts = np.searchsorted(self.rows, index, "right") - starts
        rows = np.repeat(np.arange(len(index)), counts)
        # The numbers of an entry lie side by side from its start on.
        firsts = np.cumsum(counts) - counts
        at = np.arange(counts.sum()) + np.repeat(starts - firsts, counts)
        return Coordinates(
            self.draws,
            rows,
            self.which[at],
            self.places[at],
            self.numbers[at] * factors[rows],
        )

    @property
    def columns(self) -> Any:
        """Column of each coefficient in the matrix, an array in the order of ``rows``.

        Each entry of each draw has one column. Draws that are the same numbers share
        their columns.
        """
        # Draws that are the same numbers share the record of their uses.
        first: dict[int, int] = {}
        names = [first.setdefault(id(draw.used), len(first)) for draw in self.draws]
        of_draws = np.array(names, np.int64)[self.which]
        pairs = np.stack([of_draws, self.places])
        return np.unique(pairs, axis=1, return_inverse=True)[1].ravel()

    def by_draw(self) -> list[tuple[WatchedDraw, Any]]:
        """Return each draw that has a coefficient, with flat indices of its entries.

        An entry is repeated if it has several coefficients.
        """
        parts = [self.places[self.which == k] for k in range(len(self.draws))]
        pairs = zip(self.draws, parts, strict=True)
        return [(draw, places) for draw, places in pairs if places.size]


class Mixed(WatchedDraw):
    """Entries of several draws, or sums of them, as one draw.

    Attributes:
        of: Coordinates of its entries in these draws.
    """

    __slots__ = ("of",)
    of: Coordinates

    def _of(self, index: Any) -> list[tuple[WatchedDraw, Any]]:
        index = np.ravel(index)
        return self.of.taken(index, np.ones(len(index))).by_draw()

    def earlier(self, index: Any) -> list[int]:
        """Return the numbers of the releases that first used entries of ``index``.

        The numbers ascend.
        """
        releases = set[int]()
        for draw, places in self._of(index):
            releases.update(draw.earlier(places))
        return sorted(releases)

    def use(self, index: Any, release: int) -> None:
        """Record the number of a release as the first use of entries of ``index``.

        Entries with an earlier use are left as they are.
        """
        for draw, places in self._of(index):
            draw.use(places, release)


def coordinates(terms: tuple[Term, ...], shape: tuple[int, ...]) -> Coordinates:
    """Return the coordinates of noise of this shape in the draws of its terms."""
    parts: list[Coordinates] = []
    for term in terms:
        index, factors, scales = (
            np.broadcast_to(part, shape).ravel()
            for part in (term.index, term.factor, term.draw.law.scale)
        )
        if isinstance(term.draw, Mixed):
            parts.append(term.draw.of.taken(index, factors))
            continue
        rows, which = np.arange(len(index)), np.zeros(len(index), np.int64)
        draws = (term.draw,)
        parts.append(Coordinates(draws, rows, which, index, factors * scales))
    if len(parts) == 1:
        return parts[0]
    return together(parts, [0] * len(parts))


def together(parts: list[Coordinates], after: list[int]) -> Coordinates:
    """Return the coordinates of several parts of noise as one.

    Args:
        parts: The coordinates of each part.
        after: For each part, the index in the whole noise of its first entry. Parts
            with the same index are added.
    """
    offsets = np.cumsum([0, *(len(part.draws) for part in parts)])
    moved = [part.rows + start for part, start in zip(parts, after, strict=True)]
    which = [part.which + k for part, k in zip(parts, offsets, strict=False)]
    rows = np.concatenate(moved)
    order = np.argsort(rows, kind="stable")
    return Coordinates(
        tuple(draw for part in parts for draw in part.draws),
        rows[order],
        np.concatenate(which)[order],
        np.concatenate([part.places for part in parts])[order],
        np.concatenate([part.numbers for part in parts])[order],
    )
