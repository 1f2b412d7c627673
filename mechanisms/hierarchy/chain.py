"""Drawing dendrograms: the Markov chain with incremental counts, for any size, and exact draws by rejection."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mechanisms.cells import Rng
from mechanisms.hierarchy.dendrogram import Dendrogram, Layer, uniform

BLOCK = 8192
"""Steps for which random numbers are drawn at once."""


def run_chain(
    dendrogram: Dendrogram, stages: Sequence[tuple[float, ...]], steps: int, rng: Rng
) -> int:
    """Take a number of steps in place and return the number of accepted moves.

    Each stage of a step proposes one of the 2(n−2) moves, all equally likely, and carries it out with probability
    min(1, e^x), x the change of log L weighted by the stage. The cost of a move does not grow with the
    graph but with its average degree and the depth of the dendrogram, see ``dendrogram.py``.
    """
    proposals, carried = 2 * len(dendrogram.movable), 0
    for done in range(0, steps if proposals else 0, BLOCK):
        count = min(BLOCK, steps - done)
        for weights, indices, uniforms in zip(
            [*stages] * count,
            rng.integers(proposals, size=(count, len(stages))).ravel().tolist(),
            rng.random(count * len(stages)).tolist(),
            strict=True,
        ):
            move = dendrogram.move(indices, weights)
            if uniforms < math.exp(min(0.0, move.change)):
                dendrogram.accept(move)
                carried += 1
    return carried


def exact_draw(
    leaves: int, layers: Sequence[Layer], weights: tuple[float, ...], rng: Rng
) -> Dendrogram:
    """Return a dendrogram with probability proportional to exp(Σ weight·log L), without a chain.

    A uniform dendrogram is kept with probability exp(Σ weight·log L) <= 1, else drawn again: the law is exact up to the
    rounding of doubles. The number of draws is 1/E[exp(Σ weight·log L)] on average, which limits it to small graphs and
    small ε; how long it takes depends on the data, so it must not be observable.
    """
    while True:
        dendrogram = Dendrogram(uniform(leaves, rng), layers)
        total = sum(
            weight * dendrogram.log_likelihood(layer)
            for layer, weight in enumerate(weights)
            if weight
        )
        if rng.random() < math.exp(total):
            return dendrogram
