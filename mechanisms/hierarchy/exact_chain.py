"""All dendrograms of a few leaves, the Markov chain over them as a table, and its exact laws.

There are (2n−3)!! = 3·5···(2n−3) dendrograms over n leaves: 3, 15, 105 and 945 for n = 3..6. A chain moves between them; a
*stage* of it proposes one of the 2(n−2) moves, all equally likely, and carries it out with probability min(1, e^x), x the
change of a weighted log likelihood. A chain repeats a few stages in turn.

What is met by ``rng.random() < p`` for a double p in [0, 1] has probability ⌈2^53 p⌉/2^53, since the generator draws uniform
multiples of 2^-53. The laws after t steps are those of these probabilities: of the program, not of its formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from itertools import combinations, groupby
from operator import mul
from typing import Any

import numpy as np
from flint import arb, arb_mat

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import ball, precision
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.hierarchy.dendrogram import Dendrogram, Edge, Layer, Nested
from mechanisms.hierarchy.likelihood import exact_term, gain, term
from mechanisms.rounding import GRID

MAX_LEAVES = 6


def all_dendrograms(leaves: Sequence[int]) -> Iterator[Nested]:
    """Yield every dendrogram over the leaves once, in brackets: of two siblings, the one with the first leaf is left."""
    first, *rest = leaves
    if not rest:
        yield first
    for size in range(len(rest)):
        for beside in combinations(rest, size):
            others = [leaf for leaf in rest if leaf not in beside]
            for left in all_dendrograms([first, *beside]):
                for right in all_dendrograms(others):
                    yield left, right


class States:
    """Every dendrogram over n leaves; make it with ``states(n)``, which keeps it.

    Attributes:
        dendrograms: All of them, in brackets, K = (2n−3)!!.
        moves: The number of the dendrogram that each of 2(n−2) moves leads to, shape (K, 2(n−2)).
        places: For every move, the nodes r and p (0..n−2) before it and after it, shape (K, 2(n−2), 4).
        splits: Which pairs lie across each internal node, bool, shape (K, n−1, n(n−1)/2).
        pair_sizes: How many leaves the lowest common ancestor of a pair has below it, int16, shape (K, n(n−1)/2).
    """

    def __init__(self, leaves: int) -> None:
        self.leaves, self.dendrograms = leaves, list(all_dendrograms(range(leaves)))
        trees = [Dendrogram.of(nested) for nested in self.dendrograms]
        keys = [_clusters(tree) for tree in trees]
        numbers = {frozenset(key): number for number, key in enumerate(keys)}
        self.moves = np.zeros((len(trees), 2 * (leaves - 2)), np.int64)
        self.places = np.zeros((*self.moves.shape, 4), np.int64)
        for number, nested in enumerate(self.dendrograms):
            for index in range(2 * (leaves - 2)):
                tree = Dendrogram.of(nested)
                move = tree.move(index, ())
                tree.accept(move)
                after = _clusters(tree)
                target = self.moves[number, index] = numbers[frozenset(after)]
                nodes = (move.r - leaves, move.p - leaves)
                self.places[number, index] = [
                    *nodes,
                    *(keys[target].index(after[node]) for node in nodes),
                ]
        self.splits = np.array([_splits(tree) for tree in trees])
        self.pair_sizes = np.array([tree.pair_sizes() for tree in trees])

    def number(self, children: Sequence[tuple[int, int]]) -> int:
        """Return the number of the dendrogram with these children of internal nodes, whichever child is written first."""
        wanted = frozenset(_clusters(Dendrogram(children)))
        return next(
            k
            for k, tree in enumerate(self.dendrograms)
            if frozenset(_clusters(Dendrogram.of(tree))) == wanted
        )

    def counts(self, layer: Layer) -> list[list[tuple[int, int]]]:
        """Return for every dendrogram the (edges, pairs of members) across each of its n−1 internal nodes."""
        matrix = np.zeros((self.leaves,) * 2, np.int64)
        for i, j in layer.edges:
            matrix[i, j] = matrix[j, i] = 1
        is_member = np.isin(np.arange(self.leaves), list(layer.members))
        above = np.triu_indices(self.leaves, 1)
        edges, pairs = (
            self.splits @ matrix[above],
            self.splits @ np.outer(is_member, is_member)[above].astype(np.int64),
        )
        return [
            list(zip(e, n, strict=True))
            for e, n in zip(edges.tolist(), pairs.tolist(), strict=True)
        ]


def _clusters(tree: Dendrogram) -> list[tuple[int, ...]]:
    """The leaves below each internal node: as a set, they are the dendrogram."""
    return [tuple(found) for found in tree.below()[tree.leaves :]]


def _splits(tree: Dendrogram) -> Array:
    below, n = tree.below(), tree.leaves
    across = np.zeros((n - 1, n, n), bool)
    for node in range(n, 2 * n - 1):
        left, right = (below[child] for child in tree.children[node])
        across[node - n][np.ix_(left, right)] = True
    return (across | across.transpose(0, 2, 1))[:, *np.triu_indices(n, 1)]


@lru_cache(maxsize=MAX_LEAVES)
def states(leaves: int) -> States:
    """Return every dendrogram with a number of leaves.

    Raises:
        MechanismError: If there are more than 6 leaves.
    """
    if leaves > MAX_LEAVES:
        raise MechanismError(
            f"states: {leaves} leaves have more dendrograms than can be listed; use at most {MAX_LEAVES}, or play the game"
        )
    return States(leaves)


@dataclass(frozen=True, eq=False)
class ExactChain:
    """The chain over all dendrograms for given edges.

    Args:
        leaves: How many leaves, 2 to 6.
        layers: The edges whose likelihoods weigh.
        stages: The weights of the layers at each stage of one step.
    """

    leaves: int
    layers: Sequence[Layer]
    stages: Sequence[tuple[float, ...]]

    @cached_property
    def states(self) -> States:
        """The dendrograms."""
        return states(self.leaves)

    @cached_property
    def counts(self) -> list[list[list[tuple[int, int]]]]:
        """The (edges, pairs) across each internal node, by layer and dendrogram."""
        return [self.states.counts(layer) for layer in self.layers]

    @cached_property
    def acceptance(self) -> Array:
        """The probability, a double, with which each stage carries out each move, shape (stages, K, 2(n−2))."""
        table = np.ones((len(self.stages), *self.states.moves.shape))
        for at in np.ndindex(table.shape):
            change = sum(
                (
                    weight * self._gain(layer, at[1], at[2])
                    for layer, weight in enumerate(self.stages[at[0]])
                    if weight
                ),
                0.0,
            )
            table[at] = math.exp(min(0.0, change))
        return table

    def _gain(self, layer: int, number: int, index: int) -> float:
        before, after = (
            self.counts[layer][k] for k in (number, self.states.moves[number, index])
        )
        r, p, after_r, after_p = self.states.places[number, index]
        return gain((before[r], before[p]), (after[after_r], after[after_p]))

    def run(self, start: Array, steps: int, rng: Rng) -> Array:
        """Return the dendrograms' numbers after some steps from ``start``, shape (size,)."""
        current = np.array(start)
        moves = self.states.moves
        for _ in range(steps if moves.shape[1] else 0):
            for accepted in self.acceptance:
                index = rng.integers(moves.shape[1], size=len(current))
                carried = rng.random(len(current)) < accepted[current, index]
                current = np.where(carried, moves[current, index], current)
        return current

    def law_after(self, start: Sequence[Any], steps: int) -> list[arb]:
        """Return the law of the dendrogram after some steps, enclosed.

        ``start`` is the law before them, over the K dendrograms.
        """
        with precision():
            law = arb_mat([[ball(p) for p in start]])
            step = self._step
            for _ in range(steps):
                law = law * step
            return [law[0, j] for j in range(len(start))]

    @property
    def _step(self) -> arb_mat:
        """The transition matrix of one step, all stages in turn."""
        first, *rest = (
            # A power takes fewer products than its factors one by one.
            self._matrix(stage) ** len(list(equal))
            for stage, equal in groupby(self.stages)
        )
        return reduce(mul, rest, first)

    def _matrix(self, stage: tuple[float, ...]) -> arb_mat:
        """The transition matrix of one stage, enclosed."""
        kernel = self._kernel(self.stages.index(stage))
        return arb_mat([[ball(p) for p in row] for row in kernel])

    def _kernel(self, stage: int) -> list[list[Fraction]]:
        """The transition probabilities of one stage as Fractions: rows sum to 1."""
        moves = self.states.moves
        count, proposals = moves.shape
        rows = [[Fraction(0)] * count for _ in range(count)]
        for number in range(count):
            for index in range(proposals):
                rows[number][moves[number, index]] += (
                    met(self.acceptance[stage, number, index]) / proposals
                )
            rows[number][number] += 1 - sum(rows[number], Fraction(0))
        return rows

    def stationary_law(self) -> list[arb]:
        """Return the stationary law, enclosed.

        One stage: proportional to exp(Σ weight·log L), by detailed balance, in exact arithmetic. Several stages: what the
        product of their transition matrices leaves as it is, which is none of the stages' own laws.
        """
        with precision():
            if len(self.stages) > 1:
                return self._fixed_point()
            weights = [value.exp() for value in self.exact_log_weights(self.stages[0])]
            total = sum(weights, arb(0))
            return [weight / total for weight in weights]

    def _fixed_point(self) -> list[arb]:
        """Solve law·(step − 1) = 0, sum of law = 1; the last equation replaces one that follows from the others."""
        step, count = self._step, len(self.states.dendrograms)
        equations = [
            [step[j, i] - (i == j) for j in range(count)] for i in range(count - 1)
        ]
        solved = arb_mat([*equations, [arb(1)] * count]).solve(
            arb_mat([[arb(int(i == count - 1))] for i in range(count)])
        )
        return [solved[j, 0] for j in range(count)]

    def exact_log_weights(self, weights: Iterable[float]) -> list[arb]:
        """Return Σ weight·log L of every dendrogram, enclosed."""
        totals = [arb(0)] * len(self.states.dendrograms)
        for weight, counts in zip(weights, self.counts, strict=True):
            rate = ball(Fraction(weight))
            totals = [
                total + rate * sum((exact_term(*count) for count in here), arb(0))
                for total, here in zip(totals, counts, strict=True)
            ]
        return totals

    def log_likelihoods(self, layer: int) -> Array:
        """Return log L of one layer for every dendrogram, float64, shape (K,)."""
        return np.array(
            [sum(term(*count) for count in here) for here in self.counts[layer]]
        )


def met(probability: float) -> Fraction:
    """Return the probability that ``rng.random() < probability`` for a double in [0, 1]."""
    return Fraction(math.ceil(Fraction(float(probability)) * GRID), GRID)


def edges_of(matrix: Array) -> list[Edge]:
    """Return the edges (i, j), i < j, of a symmetric matrix."""
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(matrix, 1))]
