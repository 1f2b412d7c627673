"""A mechanism that is as leaky as any claim allows, on several pairs at once, each in a way of its own.

A pair of inputs (k, 1) and (k, 0) draws an atom z from the claim's dominating pair and returns what channel k makes of it:
all of z, which of two halves z is in (a cut where the claim is tight at one ε), z in groups of three, and z sent through a
random channel. By construction each satisfies the claim, and the first two attain it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from auditdp import Pair
from auditdp.claims.claim import Claim
from auditdp.claims.dominating import DominatingPair
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from benchmarks.parts import Rng

LABELS = 5
PAIRS = tuple(Pair((k, 1), (k, 0), f"channel {k}") for k in range(4))


@dataclass(frozen=True)
class TightPairs:
    """Outputs are numbers of cells.

    Args:
        claim: What holds, and no more.
        stretch: Factor on the log-odds of what is drawn; more than 1 breaks the claim.
    """

    claim: Claim
    stretch: float = 1.0

    @cached_property
    def laws(self) -> list[tuple[Floats, Floats]]:
        """The probabilities of the cells of every channel under input 0 and input 1."""
        pair = DominatingPair.of(self.claim.statements())
        p, q = pair.p, pair.q
        if self.stretch != 1:
            odds = np.clip(self.stretch * pair.log_odds, -50, 50)
            both = p + q
            p, q = both / (1 + np.exp(odds)), both / (1 + np.exp(-odds))
            p, q = p / p.sum(), q / q.sum()
        atoms = np.arange(len(p))
        groups = (atoms, (atoms >= len(p) // 2).astype(int), atoms // 3)
        made = [(np.bincount(group, p), np.bincount(group, q)) for group in groups]
        channel = np.random.default_rng(len(p)).dirichlet(np.ones(LABELS), len(p))
        return [*made, (p @ channel, q @ channel)]

    def __call__(self, data: tuple[int, int], size: int, *, rng: Rng) -> Array:
        """Return ``size`` numbers of cells."""
        law = np.cumsum(self.laws[data[0]][data[1]])
        return np.asarray(
            np.searchsorted(law, law[-1] * rng.random(size), side="right")
        )

    def log_prob(self, outputs: Array, data: tuple[int, int]) -> Array:
        """Return the log probability of each output."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.laws[data[0]][data[1]][outputs]))
