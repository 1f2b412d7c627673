"""Batches of nodes that are drawn with replacement, accounted for from below."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.stats import binom

from auditdp.accountants import NodeLevel, NodeLevelLower
from auditdp.mechanism.protocol import Array


@dataclass(frozen=True)
class DrawnWithReplacement(NodeLevel):
    """DP-SGD over nodes whose batches are drawn with replacement: a gradient may be in a batch more than once.

    How many of a batch one node can change is then binomial with (m, N_T/N), and up to m; without replacement it is
    hypergeometric, and N_T at most.
    """

    sampling: ClassVar[str] = "fixed size with replacement"

    @property
    def describes(self) -> DrawnWithReplacement:
        """DP-SGD with these batches."""
        return DrawnWithReplacement(
            *(getattr(self, field.name) for field in fields(DrawnWithReplacement))
        )

    @property
    def text(self) -> str:
        """The class in a few words."""
        return f"{super().text}, drawn with replacement"


@dataclass(frozen=True)
class DrawnWithReplacementLower(DrawnWithReplacement, NodeLevelLower):
    """An attained pair: all gradients that the node reaches change from −C to C at once."""

    source: ClassVar[str] = "the attained mixture of Gaussians, binomial weights"

    @cached_property
    def affected(self) -> tuple[Array, Array]:
        """Numbers of changed gradients in a batch, with their probabilities rounded down.

        Numbers beyond the first 64 are left out, which can only lower the bound.
        """
        counts = np.arange(min(self.batch, 64) + 1)
        weights = binom.pmf(counts, self.batch, self.reached / self.nodes) * (1 - 1e-10)
        return counts, weights
