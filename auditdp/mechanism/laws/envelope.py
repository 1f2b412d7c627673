"""The least and the most that any input of a domain gives an output: local privacy over all inputs at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws.balls import ball, middle, precision


@dataclass(frozen=True, eq=False)
class Envelope:
    """For every output the smallest and the largest probability (or density) over all inputs of a domain.

    In local privacy any two inputs are neighbours, so the pure epsilon is exactly

        max over outputs of ln(most / least),

    with no pair left out: whatever two inputs and whatever output, P(y) <= most and Q(y) >= least, and both are attained.
    ``uses`` independent uses on different coordinates of a product of domains multiply it: every coordinate reaches its own
    worst case at once. Where the coordinates are tied to each other that is a bound only: exact evidence compares an
    envelope with the law, where the mechanism states one, and takes what is attained from the law. A density is taken with
    respect to any measure that does not depend on the input; outputs on which the law is constant may be listed as one.

    Args:
        outputs: The outputs, or words for classes of them, n of them.
        least: The smallest probability of each over the domain: Fractions, arb balls, or floats.
        most: The largest.
        inputs: For each, (an input where it is largest, an input where it is smallest), whole inputs of the mechanism.
        uses: Coordinates that each lose this much.

    Raises:
        MechanismError: If there is nothing, the lengths differ, or a smallest exceeds its largest or is negative.
    """

    outputs: Sequence[Any]
    least: Sequence[Any]
    most: Sequence[Any]
    inputs: Sequence[tuple[Any, Any]]
    uses: int = 1

    def __post_init__(self) -> None:
        sizes = {len(self.outputs), len(self.least), len(self.most), len(self.inputs)}
        if len(sizes) != 1 or 0 in sizes or self.uses < 1:
            raise MechanismError(
                f"Envelope: expected as many outputs, least, most and inputs, and uses >= 1, got {len(self.outputs)}, "
                f"{len(self.least)}, {len(self.most)}, {len(self.inputs)} and uses={self.uses!r}"
            )
        if any(bool(a > b) or bool(a < 0) for a, b in self.bounds):
            raise MechanismError(
                f"Envelope: expected 0 <= least <= most, got {list(zip(self.least, self.most, strict=True))}"
            )

    @cached_property
    def bounds(self) -> list[tuple[arb, arb]]:
        """(least, most) of each output as balls; densities may exceed 1, and so may what their floats are off by."""
        unit = max([1.0, *map(middle, self.most)])
        with precision():
            return [(ball(a, unit), ball(b, unit)) for a, b in zip(self.least, self.most, strict=True)]

    def same_as(self, other: Envelope) -> bool:
        """Return whether two envelopes agree up to rounding."""
        mine, theirs = (
            np.array([[middle(a), middle(b)] for a, b in law.bounds] + [[law.uses, 0]]) for law in (self, other)
        )
        return mine.shape == theirs.shape and np.allclose(mine, theirs, rtol=1e-9, atol=0)
