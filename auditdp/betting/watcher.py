"""The watcher: looks at outputs in every way it knows, and forecasts from each of them.

Every view (`views.py`, `learners.py`) has cells with the counts of the coins (`cells.py`), and every variant of reading
them is a forecaster. Nobody chooses among them: the wealth is averaged over all, and its leader follows the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Pair
from auditdp.betting.batch import Batch
from auditdp.betting.caps import log_cap
from auditdp.betting.cells import MOST_NAMES, VARIANTS, WEIGHTS, Bank, Cells, Names
from auditdp.betting.forecasts import Forecasts
from auditdp.betting.learners import Learner, learners_for
from auditdp.betting.memory import Memory
from auditdp.betting.views import as_rows, by_inputs, fingerprint, views_of
from auditdp.dominating import Floats
from auditdp.errors import AuditError
from auditdp.mechanism import Array

FIRST_CUT = 8
FEW_ROWS = 1 << 14
SAMPLE = 4096
RARELY_DISTINCT = 0.5
"""Names say nothing where more of a sample's rows than this have one of their own."""
OFTEN_DISTINCT = 0.75
"""Of a sample of rows that are 4096 different ones, all alike, about two thirds are distinct."""
SOON, LATE = 1.5, 2.0
FINEST_FROM = 10_000
WHOLE = 5
TELLING = 3.0
HANDICAP = 8
LATE_HANDICAP = 64
MANY_CALLS = 500_000


class Watching:
    """The default forecaster of black boxes, to be bound to a pair.

    Args:
        prefix: Put before the names of its views.
        share: Its prior weight in the mixture.
    """

    name = "watcher"

    def __init__(self, prefix: str = "", *, share: float = 1.0) -> None:
        self.prefix = prefix
        self.share = share

    def player(self, mechanism: Any, pair: Pair) -> Watcher:
        """Return the player of one pair."""
        return Watcher(pair, self.prefix, self.share)


@dataclass(eq=False)
class _Look:
    """One view with its cells; ``learner`` is set where the view has to be learned first."""

    name: str
    values: Callable[[Array], Floats] | None
    learner: Learner | None = None
    names: bool = False
    weight: float = 1.0
    cells: Cells | None = None
    every: int = 1
    left: bool = False

    def count(self, parts: Sequence[Array], first: int) -> NDArray[np.intp]:
        """Return how many of the first rows of some parts lie in each cell, and how many of the others, shape (2, size)."""
        assert self.cells is not None  # asked of views that were cut
        assert self.values is not None
        values = np.concatenate([np.zeros(0), *(self.values(rows) for rows in parts if len(rows))])
        return np.stack([self.cells.count(values[:first]), self.cells.count(values[first:])])

    def train(self, sides: tuple[Array, Array]) -> tuple[Floats, Floats]:
        """Learn the view from rows under coin 0 and coin 1, and return its values of rows that it was not learned from."""
        assert self.learner is not None  # asked of learned views
        if self.learner.blind:
            self.values = self._fit(sides)
            return self.values(sides[0]), self.values(sides[1])
        halves = [(sides[0][k::2], sides[1][k::2]) for k in (0, 1)]
        first = self._fit(halves[0])
        fresh = [first(side) for side in halves[1]]
        self.values = first
        if sum(map(len, sides)) <= FEW_ROWS:
            second = self._fit(halves[1])
            fresh = [np.concatenate([f, second(side)]) for f, side in zip(fresh, halves[0], strict=True)]
            self.values = self._fit(sides)
        return fresh[0], fresh[1]

    def _fit(self, sides: Sequence[Array]) -> Callable[[Array], Floats]:
        assert self.learner is not None  # asked of learned views
        rows = [side[: self.learner.most // 2] for side in sides]
        return self.learner.fit(
            np.concatenate(rows), np.repeat(np.array([0, 1], np.int8), [len(part) for part in rows])
        )


class _Alphabet:
    """The different outputs that were seen, where they are few: then a batch is counted by output, and not by call.

    Args:
        rows: All outputs that are kept, shape (n, d).
        prints: Their fingerprints, shape (n,).
        looks: The views that were cut into cells.
    """

    def __init__(self, rows: Array, prints: Floats, looks: Sequence[_Look]) -> None:
        self._names = Names(prints)
        _, first = np.unique(prints, return_index=True)
        letters = rows[first]
        self._looks, self._where = looks, []
        for look in looks:
            assert look.cells is not None  # it was cut
            assert look.values is not None
            self._where.append((look.cells.index(look.values(letters)), look.cells.size))

    def count(self, rows: Array) -> Floats:
        """Return the counts of a batch in the cells of all views: every call counts, since every call pays for delta."""
        prints = fingerprint(rows)
        *seen, others = self._names.count(prints)
        counts = np.concatenate([np.bincount(where, weights=seen, minlength=size) for where, size in self._where])
        if others:
            new = rows[self._names.index(prints) == len(seen)]
            counts += np.concatenate([look.count([new], len(new))[0] for look in self._looks])
        return counts


class Watcher:
    """Views of outputs with counts, as a player; see the module's text."""

    def __init__(self, pair: Pair, prefix: str = "", share: float = 1.0) -> None:
        self.pair = pair
        self.prefix = prefix
        self.share = share
        self._prepare: Callable[[Array], Array] | None = None
        self._looks: list[_Look] = []
        self._next = FIRST_CUT
        self._cut: list[_Look] = []
        self._bank: Bank | None = None
        self._batch: Floats | None = None
        self._nothing: Array = np.zeros((0, 1))
        self._rng = np.random.default_rng(0)
        self._alphabet: _Alphabet | None = None

    def look_through(self, prepare: Callable[[Array], Array]) -> None:
        """Look at ``prepare(outputs)``, one row of numbers for each output, instead of the outputs."""
        self._prepare = prepare

    @property
    def names(self) -> Sequence[str]:
        """Every view with every variant of reading its cells."""
        return [f"{self.prefix}{look.name} in {variant}" for look in self._looks for variant in VARIANTS]

    @property
    def shares(self) -> Sequence[float]:
        """The share of the watcher, divided by the weights of its views and of the variants."""
        weights = np.outer([look.weight for look in self._looks], [WEIGHTS.get(variant, 1.0) for variant in VARIANTS])
        return list(self.share * weights.ravel() / weights.sum())

    def open(self, like: Array, pairs: Sequence[Pair] = (), labels: Sequence[str] = ()) -> None:
        """Choose the views, from outputs of independent calls that look like those to come, and from the game's pairs.

        Args:
            like: The outputs.
            pairs: The pairs of the game.
            labels: What each number of an output is called.
        """
        rows = self._rows(like)
        self._nothing = rows[:0]
        with_inputs = any(by_inputs(pair, rows.shape[1]) for pair in pairs or [self.pair])
        views = views_of(rows, self.pair, with_inputs=with_inputs, labels=labels if self._prepare is None else ())
        self._looks = [_Look(view.name, view.values, weight=view.weight) for view in views]
        self._looks.append(_Look("fingerprint", fingerprint, names=True))
        self._looks += [_Look(learner.name, None, learner) for learner in learners_for(rows.shape[1])]

    def _rows(self, outputs: Array) -> Array:
        """Return the rows of some outputs, as they are looked at."""
        return self._as_rows(outputs if self._prepare is None or not len(outputs) else self._prepared(outputs))

    def _sides(self, batch: Batch) -> tuple[Array, Array]:
        """Return the rows of a batch under coin 0 and under coin 1; what prepares them sees the batch in random order."""
        ones, zeros = (batch.ones, batch.zeros) if self._prepare is None else batch.by_coin(self._prepared(batch.mixed))
        return self._as_rows(zeros), self._as_rows(ones)

    def _as_rows(self, side: Array) -> Array:
        return as_rows(side) if len(side) else self._nothing

    def _prepared(self, outputs: Array) -> Array:
        assert self._prepare is not None  # asked where there is something to look through
        prepared = np.asarray(self._prepare(outputs))
        if prepared.shape[:1] != (len(outputs),):
            raise AuditError(
                f"{self.prefix.strip(': ')}: expected one row for each of {len(outputs)} outputs, got shape {prepared.shape}"
            )
        return prepared

    def forecast(self, batch: Batch) -> list[Forecasts]:
        """Count the batch in the cells of every view, and forecast from the counts of earlier ones."""
        if self._bank is None:
            return [Forecasts.abstaining(len(VARIANTS))] * len(self._looks)
        sides = self._sides(batch)
        self._batch = self._count(self._cut, sides) if self._alphabet is None else self._letters(sides)
        said = iter(self._bank.forecasts(self._batch))
        return [Forecasts.abstaining(len(VARIANTS)) if look.cells is None else next(said) for look in self._looks]

    def _count(self, looks: Sequence[_Look], sides: tuple[Array, Array]) -> Floats:
        """Return the counts of outputs under coin 0 and coin 1 in the cells of some views, shape (2, all cells)."""
        seen = {}
        for every in {look.every for look in looks}:
            zeros, ones = self._first(every, sides)
            parts = [sides[0][:zeros], sides[1][:ones]]
            # Where rows are few, most of the time goes into looking at all, and so they are looked at together.
            seen[every] = [np.concatenate(parts)] if zeros + ones <= FEW_ROWS else parts, zeros
        return np.concatenate([look.count(*seen[look.every]) for look in looks], axis=1).astype(np.float64)

    def _letters(self, sides: tuple[Array, Array]) -> Floats:
        assert self._alphabet is not None  # asked where there is one
        return np.stack([self._alphabet.count(side) for side in sides])

    def _first(self, every: int, sides: tuple[Array, Array]) -> tuple[int, int]:
        """Return how many calls of either coin are among the first of a batch, in an order that no coin has a say in."""
        zeros, ones = (len(side) for side in sides)
        seen = -(-(zeros + ones) // every)
        few = int(self._rng.hypergeometric(zeros, ones, seen)) if every > 1 else zeros
        return few, seen - few

    def learn(self, memory: Memory, *, stalled: bool) -> None:
        """Add the counts of the batch; cut anew, and train learners, whenever the calls have doubled."""
        if self._bank is not None and self._batch is not None:
            self._bank.counts += self._batch
            self._batch = None
        if memory.calls < self._next or memory.full or not (len(memory.ones) and len(memory.zeros)):
            return
        self._next = math.ceil((SOON if memory.calls < FEW_ROWS else LATE) * memory.calls)
        sides = self._rows(memory.zeros), self._rows(memory.ones)
        step = -(-sum(map(len, sides)) // SAMPLE)
        # Every so many of both sides, as if they were one.
        some = np.concatenate([sides[0][::step], sides[1][-len(sides[0]) % step :: step]])
        distinct = len(np.unique(fingerprint(some))) / len(some)
        before = {id(look): part for look, part in self._parts()}
        counts, self._cut = [], []
        for look in self._looks:
            if look.left and id(look) in before:
                counts.append(before[id(look)])
                self._cut.append(look)
                continue
            if look.names and distinct > RARELY_DISTINCT:
                look.cells = None
                continue
            if look.learner is None:
                assert look.values is not None  # only learned views start without
                values = look.values(sides[0]), look.values(sides[1])
            elif memory.calls < look.learner.start or (look.learner.heavy and not stalled):
                look.cells = None
                continue
            else:
                values = look.train(sides)
            look.cells = (Names if look.names else Cells)(np.concatenate(values))
            counts.append(np.stack([look.cells.count(side) for side in values]).astype(np.float64))
            self._cut.append(look)
        self._bank = Bank([look.cells for look in self._cut if look.cells is not None], np.hstack(counts))
        self._alphabet = None
        if some.shape[1] > 1 and distinct <= OFTEN_DISTINCT:
            everything = np.concatenate(sides)
            prints = fingerprint(everything)
            if len(np.unique(prints)) <= min(MOST_NAMES, len(everything) // 2):
                self._alphabet = _Alphabet(everything, prints, self._cut)

    def _parts(self) -> list[tuple[_Look, Floats]]:
        """Return the views that are cut, with the counts in their cells."""
        if self._bank is None:
            return []
        return [(look, self._bank.counts[:, part]) for look, part in zip(self._cut, self._bank.slices, strict=True)]

    def rank(self, won: Floats, calls: int) -> None:
        """Let only the best views see whole batches, and the others an eighth, or less once there are many calls.

        A heavy view sees them only where none earns more, and once there are many calls only where it earns clearly more
        than any other. Views that earn clearly less than another, and heavy ones that earn less at all, are left as they
        are, not learned or cut again.

        Args:
            won: Log wealth that every forecaster won on this pair lately, shape (forecasters, statements).
            calls: Calls of this pair.
        """
        best = won.reshape(len(self._looks), len(VARIANTS), -1).max(axis=1)
        behind = np.where(best > 0, best.max(axis=0) - best, np.inf).min(axis=1)  # who abstains is not behind, but idle
        others, ahead = (HANDICAP, 0.0) if calls < MANY_CALLS else (LATE_HANDICAP, TELLING)
        heavy = np.array([look.learner is not None and look.learner.heavy for look in self._looks])
        lead = (best - best[~heavy].max(axis=0)).max(axis=1)
        for place, k in enumerate(np.argsort(behind, kind="stable")):
            look, unloved = self._looks[k], heavy[k] and (behind[k] > 0 or lead[k] < ahead)
            whole = place < WHOLE and (np.isfinite(behind[k]) or calls < MANY_CALLS) and not unloved
            look.every = 1 if whole else others
            look.left = bool(best.max() > TELLING and (unloved or behind[k] > TELLING))

    def plausible_growth(self, epsilon: float, rng: np.random.Generator, leading: int | None) -> float:
        """Draw odds that the counts leave plausible and return what they would earn.

        Looks at the cells of the leading forecaster; where none has earned anything yet, at every view, at first coarsely.
        """
        if self._bank is None:
            return float("inf")
        finest = self._bank.counts[:, self._bank.slices[0]].sum() >= FINEST_FROM
        chosen, variant = list(range(len(self._cut))), len(VARIANTS) - 1 if finest else 3
        if leading is not None and (look := self._looks[leading // len(VARIANTS)]) in self._cut:
            chosen, variant = [self._cut.index(look)], leading % len(VARIANTS)
        log_q, log_1q = log_cap(epsilon)
        best = 0.0
        for k in chosen:
            p, share = self._bank.plausible(rng, k, variant)
            p = np.clip(np.maximum(p, 1 - p), 0.5, 1 - 1e-12)
            kl = p * (np.log(p) - log_q) + (1 - p) * (np.log1p(-p) - log_1q)
            best = max(best, float(np.sum(share * np.where(np.log(p) > log_q, kl, 0.0))))
        return best
