"""The rows of approximate personalised PageRank: given, of public nodes, or sampled.

All three answer alike: ``draw`` for runs, ``mixture`` for laws, and ``there`` for which ids are nodes of the graph. An id is
there if the graph has an edge or a self-loop of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal, Protocol

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import Array, brief
from mechanisms.cells import Rng
from mechanisms.pagerank.ista import ALPHA, RHO, TOLERANCE, Walk, ista
from mechanisms.validation import check_integer

KEPT = 4096
"""Graphs in dense form whose rows are kept: an audit asks for the same few again in every batch."""
NOBODY = -1
"""The id of a row, or of an entry of a row, that there is not."""

Component = tuple[Fraction, tuple[int, ...], Array]
"""A probability, the ids that are released with the rows, and the rows, shape (count, nodes)."""


class Rows(Protocol):
    """Interface between mechanisms and their rows."""

    nodes: int
    count: int
    labelled: bool
    """True if the ids of the rows' nodes are released."""

    @property
    def name(self) -> str:
        """A phrase for the rows."""

    def there(self, data: Any) -> Array:
        """Return True for ids that are nodes of the graph, bool, shape (nodes,)."""

    def draw(self, data: Any, size: int, rng: Rng) -> tuple[Array, Array]:
        """Return the rows' ids, shape (size, count), and rows, shape (size or 1, count, nodes), of ``size`` runs."""

    def mixture(self, data: Any) -> list[Component]:
        """Return the possible rows with their probabilities."""


@dataclass(frozen=True)
class GivenRows:
    """Rows that are the data themselves: non-negative numbers, shape (count, nodes), or (nodes,) for one row."""

    nodes: int
    count: int = 1
    labelled: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        """A phrase with the number of rows."""
        return f"{self.count} given"

    def there(self, data: Any) -> Array:
        """Return that every id is there."""
        return np.ones(self.nodes, bool)

    def draw(self, data: Any, size: int, rng: Rng) -> tuple[Array, Array]:
        """Return the data, and 0, 1, .. for ids."""
        array = np.asarray(data, np.float64)
        if (
            array.size != self.count * self.nodes
            or not (np.isfinite(array) & (array >= 0)).all()
        ):
            raise MechanismError(
                f"expected {self.count} rows of {self.nodes} numbers >= 0, got {brief(array)} of shape {array.shape}"
            )
        return np.tile(np.arange(self.count), (size, 1)), array.reshape(
            1, self.count, self.nodes
        )

    def mixture(self, data: Any) -> list[Component]:
        """Return the data with probability 1."""
        return [(Fraction(1), (), self.draw(data, 1, np.random.default_rng(0))[1][0])]


@dataclass(frozen=True)
class PublicRows:
    """The rows of public ids. A node that is not there has the row 0.

    Args:
        nodes: Number of ids of the universe.
        seeds: The ids whose rows they are.
        alpha: Restart probability of the lazy walk.
        rho: Regularisation.
        tolerance: Of the KKT residual.
    """

    nodes: int
    seeds: tuple[int, ...] = (0,)
    alpha: float = ALPHA
    rho: float = RHO
    tolerance: float = TOLERANCE
    labelled: bool = field(default=False, init=False)

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.seeds)

    @property
    def name(self) -> str:
        """Whose rows they are."""
        return (
            f"rows of {', '.join(map(str, self.seeds))}"
            if self.count < 5
            else f"{self.count} public rows"
        )

    def there(self, data: Any) -> Array:
        """Return True for ids with edges or a self-loop."""
        return _degrees(data, self.nodes) > 0

    def of(self, data: Any, seeds: Any) -> Array:
        """Return the rows of these ids, dense, shape (seeds, nodes)."""
        _degrees(data, self.nodes)
        if isinstance(data, np.ndarray):
            return _kept(
                self, tuple(map(int, seeds)), np.asarray(data, np.float64).tobytes()
            ).copy()
        rows = ista(
            data, seeds, alpha=self.alpha, rho=self.rho, tolerance=self.tolerance
        )
        return rows if isinstance(rows, np.ndarray) else np.asarray(rows.toarray())

    def draw(self, data: Any, size: int, rng: Rng) -> tuple[Array, Array]:
        """Return the seeds and their rows: nothing is drawn."""
        return np.tile(np.array(self.seeds), (size, 1)), self.of(data, self.seeds)[None]

    def mixture(self, data: Any) -> list[Component]:
        """Return the rows with probability 1."""
        return [(Fraction(1), (), self.of(data, self.seeds))]


@lru_cache(maxsize=KEPT)
def _kept(of: PublicRows, seeds: tuple[int, ...], matrix: bytes) -> Array:
    graph = np.frombuffer(matrix, np.float64).reshape(of.nodes, of.nodes)
    rows: Array = ista(graph, seeds, alpha=of.alpha, rho=of.rho, tolerance=of.tolerance)
    return rows


@dataclass(frozen=True)
class SampledRows:
    """The rows of nodes that are sampled uniformly, without replacement, afresh in every run.

    A row is a training example of its node, so the ids of the sampled nodes are released with the rows, ascending. Where
    fewer nodes are there than are to be sampled, all are, and the rest have the id −1 and no row.

    Args:
        nodes: Number of ids of the universe.
        count: How many are sampled.
        among: Who is sampled: the nodes that are there, or every id of the universe; absent ones then have the row 0.
        walk: How rows are computed; its seeds do not matter.
    """

    nodes: int
    count: int
    among: Literal["present", "universe"] = "present"
    walk: PublicRows | None = None
    labelled: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        check_integer("SampledRows", "count", self.count, 1)
        if self.among not in ("present", "universe"):
            raise MechanismError(
                f"SampledRows: expected among='present' or 'universe', got {self.among!r}"
            )

    @property
    def name(self) -> str:
        """A phrase with the number of sampled rows and their population."""
        return f"{self.count} sampled rows{', absent ones too,' if self.among == 'universe' else ''}"

    def there(self, data: Any) -> Array:
        """Return True for ids with edges or a self-loop."""
        return _degrees(data, self.nodes) > 0

    def _population(self, data: Any) -> Array:
        return np.flatnonzero(self.there(data) | (self.among == "universe"))

    def _padded(self, ids: Array) -> Array:
        """Ids with −1 for those that are missing, shape (runs, count)."""
        missing = np.full((len(ids), self.count - ids.shape[1]), NOBODY, np.int64)
        return np.concatenate([ids, missing], axis=1)

    def _rows(self, data: Any, ids: Array) -> Array:
        """The rows of padded ids, shape (runs, count, nodes)."""
        distinct, place = np.unique(ids, return_inverse=True)
        rows = (self.walk or PublicRows(self.nodes)).of(data, np.maximum(distinct, 0))
        rows[distinct == NOBODY] = 0
        return rows[place.reshape(ids.shape)]

    def draw(self, data: Any, size: int, rng: Rng) -> tuple[Array, Array]:
        """Return ascending ids of sampled nodes, and their rows."""
        population = self._population(data)
        picked = rng.random((size, len(population))).argsort(axis=1)[:, : self.count]
        ids = self._padded(np.sort(population[picked], axis=1))
        return ids, self._rows(data, ids)

    def mixture(self, data: Any) -> list[Component]:
        """Return every set of nodes, all with the same probability."""
        population = self._population(data)
        sets = np.array(
            list(combinations(population, min(self.count, len(population)))), np.int64
        )
        ids = self._padded(sets.reshape(len(sets), -1))
        share = Fraction(1, len(ids))
        return [
            (share, tuple(map(int, who)), rows)
            for who, rows in zip(ids, self._rows(data, ids), strict=True)
        ]


@dataclass(frozen=True)
class PlainRows:
    """Rows without protection, where nobody claims privacy.

    Input: a graph. Output: every entry of every row, float64, shape (size, rows·nodes).

    Args:
        rows: Which rows.
    """

    rows: PublicRows

    @property
    def name(self) -> str:
        """Whose rows they are."""
        return f"PlainRows({self.rows.name} of {self.rows.nodes})"

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return the rows ``size`` times: nothing is drawn."""
        return np.tile(np.ravel(self.rows.of(data, self.rows.seeds)), (size, 1))

    def distribution(self, data: Any) -> FiniteLaw:
        """Return the rows with probability 1."""
        return FiniteLaw(self(data, 1, rng=np.random.default_rng(0)), [Fraction(1)])


def _degrees(data: Any, nodes: int) -> Array:
    degrees = Walk.on(data).degrees
    if len(degrees) != nodes:
        raise MechanismError(
            f"expected a graph of {nodes} ids, got one of {len(degrees)}"
        )
    return degrees
