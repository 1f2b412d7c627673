"""How the level that is certified grows from step to step, for trainers that release something at every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from auditdp.adjacency import Pair, as_adjacency
from auditdp.auditing.judging import claim_of_privacy
from auditdp.bounds.answers import RUNS, played
from auditdp.bounds.curves import EpsilonDelta, curve_of_claim
from auditdp.bounds.inputs import FEWEST_OUTPUTS
from auditdp.bounds.result import Question
from auditdp.claims.base import Claim
from auditdp.claims.curves import AccountedDP
from auditdp.errors import ConfigurationError, MechanismError
from auditdp.mechanism.protocol import name_of
from auditdp.numerics.arrays import Floats
from auditdp.numerics.randomness import stream
from auditdp.record.results import ClaimRecord
from auditdp.training.trainers import as_training, two_worlds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_STEPS = 6
"""Numbers of steps that are looked at, unless they are given."""


@dataclass(frozen=True)
class LevelByStep:
    """Lower bounds on the level of what the first steps release; all hold together with confidence 1 - alpha.

    Attributes:
        steps: How many steps are released, increasing.
        bounds: The bound for each.
        claim: The claim about all steps.
        alpha: Probability that any of the bounds is above the truth.
        trainings: Trainings on either input.
    """

    steps: Sequence[int]
    bounds: Sequence[float]
    claim: ClaimRecord
    alpha: float
    trainings: int

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the bounds against the steps, and the claim, on Matplotlib's own new axes unless some are given."""
        from auditdp.report.html.notebook import plot_levels

        return plot_levels([*zip(self.steps, self.bounds, strict=True)], self.claim, "steps released", axes)


def level_by_step(
    train: Callable[..., Any],
    claim: Claim,
    pairs: Any,
    *,
    trainings: int = 500,
    steps: Sequence[int] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> LevelByStep:
    """Certify a level for each of some numbers of steps, from the same trainings.

    Each bound is that of a game on the recorded releases of the first steps (``auditdp.bounds.bets``), with an equal share
    of alpha. It says which steps give the most away, and whether a claim about all of them grows as it should.

    Args:
        train: ``train(data, rng)`` or ``train(data)``, which yields or returns what each step releases, the same number of
            numbers in each; or a mechanism ``train(data, size, *, rng)`` that returns shape (size, steps, ...).
        claim: About all steps together.
        pairs: Two inputs (data, neighbour), or an adjacency, of which the first pair is taken.
        trainings: On either input, at least 20.
        steps: Numbers of steps to look at; at most six unless given, growing by equal ratios up to all.
        alpha: Probability that any of the bounds is above the truth.
        seed: Root seed.

    Raises:
        ConfigurationError: If a number is out of range.
        MechanismError: If trainings do not release the same numbers in every step.
    """
    if not 0 < alpha < 1 or trainings < FEWEST_OUTPUTS:
        raise ConfigurationError(
            f"expected alpha strictly between 0 and 1 and trainings >= {FEWEST_OUTPUTS}, got alpha={alpha!r} and "
            f"trainings={trainings!r}"
        )
    adjacency = as_adjacency(two_worlds(pairs))
    pair: Pair = adjacency.pairs()[0]
    adjacency.check(pair)
    first, second = (
        _released(train, data, trainings, stream(seed, "level by step", world))
        for world, data in enumerate((pair.data, pair.neighbour))
    )
    if first.shape[1:] != second.shape[1:]:
        raise MechanismError(
            f"{name_of(train)}: releases shape {first.shape[1:]} on one input and {second.shape[1:]} on the other"
        )
    last = first.shape[1]
    chosen = sorted(set(np.geomspace(1, last, MOST_STEPS).round().astype(int).tolist() if steps is None else steps))
    if not chosen or chosen[0] < 1 or chosen[-1] > last:
        raise ConfigurationError(f"expected steps in 1..{last}, the steps of a training, got steps={steps!r}")
    # The levels of an accountant's curves bound nothing; ε at the δ that it quotes is bounded by itself.
    curve = EpsilonDelta(claim.quoted) if isinstance(claim, AccountedDP) else curve_of_claim(claim)
    question = Question(curve, alpha / len(chosen), claim.level)
    bounds = [played(_flat(first[:, :k]), _flat(second[:, :k]), question, seed, [RUNS]).lower for k in chosen]
    return LevelByStep(chosen, bounds, claim_of_privacy(claim, adjacency.name), alpha, trainings)


def _flat(releases: Floats) -> Floats:
    return releases.reshape(len(releases), -1)


def _released(train: Any, data: Any, size: int, rng: np.random.Generator) -> Floats:
    """Return what each step of each training releases, shape (size, steps, numbers)."""
    mechanism: Any = as_training(train)
    try:
        if mechanism is train:
            made = np.asarray(mechanism(data, size, rng=rng), dtype=float)
        else:
            made = np.array([mechanism(data, rng) for _ in range(size)], dtype=float)
    except (TypeError, ValueError) as error:
        raise MechanismError(
            f"{name_of(train)}: expected the same numbers from every step of every training: {error}"
        ) from error
    if made.ndim < 2:
        raise MechanismError(
            f"{name_of(train)}: releases one number a training, expected something from every step: yield it after each"
        )
    return made.reshape(*made.shape[:2], -1)
