"""False alarms of one training with many canaries on true and tight claims.

Every canary has an atom of the claim's dominating pair drawn for it, which is as much as the claim allows anybody to learn
of its coin, and its score is that atom's log-odds. Under (ε, δ) all canaries may also be betrayed at once, with probability
δ: that is the least favourable law known for a test of how many guesses are right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from auditdp import (
    AccountedDP,
    ApproxDP,
    Canaries,
    GaussianDP,
    PureDP,
    ZeroConcentratedDP,
)
from auditdp.accountants import PLDLower
from auditdp.claims.claim import Claim
from auditdp.claims.dominating import DominatingPair
from auditdp.evidence.one_run_evidence import one_run_evidence
from auditdp.mechanism.protocol import PerCall
from auditdp.numerics.arrays import Floats
from auditdp.numerics.streams import stream
from auditdp.record.results import Verdict
from benchmarks.parts import ALPHA, Check, Rng

CANARIES = 120
DELTA = 0.05
SURE = 50.0
"""Score of a canary whose atom leaves no doubt, with the sign of its coin."""


@dataclass(frozen=True)
class TightCanaries:
    """Scores of canaries, each protected exactly as the claim states.

    Args:
        claim: What holds.
        at_once: Probability that all canaries are betrayed, on top of that.
    """

    claim: Claim
    at_once: float = 0.0

    @cached_property
    def atoms(self) -> tuple[Floats, Floats, Floats]:
        """Log-odds of the atoms, and their cumulative probabilities where a canary is out and where it is in."""
        pair = DominatingPair.of(self.claim.statements())
        odds = np.clip(pair.log_odds, -SURE, SURE)
        return odds, np.cumsum(pair.p / pair.p.sum()), np.cumsum(pair.q / pair.q.sum())

    def __call__(self, included: Any, rng: Rng) -> Floats:
        """Return the score of each canary, shape (canaries,)."""
        odds, out, inside = self.atoms
        uniform = rng.random(len(included))
        if rng.random() < self.at_once:
            return np.where(included, SURE, -SURE)
        drawn = np.where(
            included, np.searchsorted(inside, uniform), np.searchsorted(out, uniform)
        )
        return np.asarray(odds[np.minimum(drawn, len(odds) - 1)])


TIGHT = {
    "ε": TightCanaries(PureDP(1.0)),
    "(ε, δ)": TightCanaries(ApproxDP(1.0, DELTA)),
    "(ε, δ), all canaries at once": TightCanaries(PureDP(1.0), at_once=DELTA),
    "Gaussian": TightCanaries(GaussianDP(1.0)),
    "accountant": TightCanaries(AccountedDP(PLDLower(1.0, 0.1, 10), quoted=1e-3)),
    "zCDP": TightCanaries(ZeroConcentratedDP(0.5)),
}


def refuted(
    canaries: TightCanaries,
    repeats: int,
    rng: Rng,
    *,
    trainings: int = 1,
    claimed: Claim | None = None,
) -> int:
    """Return the number of audits that refute a claim, by default the true one.

    Args:
        canaries: What is audited.
        repeats: How many audits.
        rng: Randomness of all of them.
        trainings: Of each audit.
        claimed: The claim, if not that of the canaries, which is ``ApproxDP`` where all may be betrayed at once.
    """
    holds = (
        ApproxDP(canaries.claim.level, canaries.at_once)
        if canaries.at_once
        else canaries.claim
    )
    found = 0
    for seed in rng.integers(2**63, size=repeats).tolist():
        evidence = one_run_evidence(
            PerCall(canaries),
            claimed or holds,
            Canaries(CANARIES),
            alpha=ALPHA,
            trainings=trainings,
            streams=partial(stream, seed),
        )
        found += evidence.verdict is Verdict.VIOLATED
    return found


FALSE_ALARMS: dict[str, Check] = {
    **{
        f"{name}, {CANARIES} canaries": partial(refuted, canaries)
        for name, canaries in TIGHT.items()
    },
    "ε, three trainings": partial(refuted, TIGHT["ε"], trainings=3),
}
