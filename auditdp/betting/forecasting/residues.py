"""What is left of an output beyond the steps of its noise.

Noise of single precision, or rounded before it is added, is a multiple of some step: the output modulo that step is then
what was added to, modulo it, on which there is no noise. Outputs are all different, and their residues are few.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from auditdp.numerics.arrays import Floats

FINE = 2.0**-30
"""Step, relative to the spread, that noise of single precision has except in one call of some 200."""
DECIMALS = 10.0 ** -np.arange(8)
"""Steps of numbers that are rounded to decimals."""
PARTS = 2.0**14
"""Residues are rounded to this part of a step: beyond are the last bits of doubles, which no noise of doubles hides
(`evidence/game/support.py`)."""
DISTINCT = 0.75
"""Share of distinct numbers below which they repeat by themselves."""
FEW = 0.5
"""Share of distinct residues up to which there are few."""
LEAST = 8
"""Numbers that are needed."""


def residue_of(column: Floats) -> Callable[[Floats], Floats] | None:
    """Return the residues of outputs by the largest step that leaves few of them, where there is one.

    Args:
        column: Numbers of outputs of both inputs, shape (n,).

    Returns:
        A function of numbers, or None where the numbers themselves repeat, where their residues are as many, or where all
        have the same, such as integers.
    """
    seen = column[np.isfinite(column)]
    if len(seen) < LEAST or len(np.unique(seen)) < DISTINCT * len(seen):
        return None
    spread = len(seen) / 2 * float(np.median(np.diff(np.sort(seen))))  # of either input, however far apart the two are
    if not 0 < spread < np.inf:
        return None
    finest = 2.0 ** np.floor(np.log2(spread)) * FINE
    for step in (*(step for step in DECIMALS if finest < step < spread), finest):
        if 2 <= len(np.unique(_residue(seen, step))) <= FEW * len(seen):
            return lambda column, step=step: _residue(column, step)  # type: ignore[misc]
    return None


def _residue(column: Floats, step: float) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        steps = column / step
        return np.asarray(np.round((steps - np.floor(steps)) * PARTS) % PARTS)
