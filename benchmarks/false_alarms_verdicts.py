"""False verdicts VIOLATED of whole audits of true claims with another fault.

``FALSE_ALARMS`` maps a name to a function of (repeats, rng) that returns how many of so many audits ended VIOLATED. The
mechanism declares a sensitivity of 1 where two neighbours need 1.25, and its noise is just right for 1.25: the calibration
is refuted every time, and the claim may be refuted at most ``ALPHA`` of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from auditdp import AnyValues, Audit, LaplaceLaw, PureDP, Verdict
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.mechanism.protocol import Array
from auditdp.record.budget import Budget
from benchmarks.parts import ALPHA, Check, Rng

CALLS = 120
WEIGHT = 1.25


@dataclass(frozen=True)
class Understated:
    """``WEIGHT`` times the input plus Lap(``WEIGHT``): 1-DP exactly, argued for by a sensitivity that is too small.

    ``believed`` is the scale that the forecaster takes for that of the noise.
    """

    believed: float
    sensitivity: float = 1.0
    norm: str = "l1"
    name: str = "Understated"

    def query(self, data: float, rng: Rng | None = None) -> float:
        """Return the numbers without noise."""
        return WEIGHT * data

    def __call__(self, data: float, size: int, *, rng: Rng) -> Array:
        """Return noisy answers, shape (size,)."""
        return self.query(data) + rng.laplace(scale=WEIGHT, size=size)

    def log_prob(self, outputs: Array, data: float) -> Array:
        """Return log densities up to a constant, at the believed scale."""
        return np.asarray(-np.abs(outputs - self.query(data)) / self.believed)


class Stated(Understated):
    """The same with its law."""

    def laplace(self, data: float) -> LaplaceLaw:
        """Return the law of the output."""
        return LaplaceLaw(np.array([self.query(data)]), np.array([WEIGHT]))


def _violated(mechanism: Understated, repeats: int, rng: Rng) -> int:
    audit = Audit(
        mechanism, PureDP(1.0), AnyValues((0.0, 1.0)), forecasters=[LikelihoodRatio()]
    )
    settings = [
        Settings(ALPHA, Budget(CALLS), int(seed))
        for seed in rng.integers(2**32, size=repeats)
    ]
    return sum(run_audit(audit, each).verdict is Verdict.VIOLATED for each in settings)


FALSE_ALARMS: dict[str, Check] = {
    "understated sensitivity, likelihood ratio": partial(
        _violated, Understated(WEIGHT)
    ),
    "understated sensitivity, overconfident": partial(
        _violated, Understated(0.7 * WEIGHT)
    ),
    "understated sensitivity, law certified": partial(_violated, Stated(WEIGHT)),
}
