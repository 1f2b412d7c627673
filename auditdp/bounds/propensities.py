"""Members and others as they are, in no run of one's own: right guesses against what is likely without any training.

Null: with the rows' features given, each is a member with its propensity π, independent of the others, and a row more or
less changes the law of what is released by at most e^epsilon, pointwise. Given what is released and the memberships of the
rows before it, the odds of row i are then between e^−epsilon and e^epsilon times π/(1 − π), so that a guess of it is right
with probability at most

    c = expit(epsilon + logit π) where it says 'in', expit(epsilon − logit π) where it says 'out',

whatever the guess was made from but the labels. Couple each with a uniform variable: the number of right guesses is
stochastically at most the sum of independent Bernoulli(c), whose law is computed exactly, and never falls with epsilon. With
π = ½ it is ``guesses.binomial``. Pure epsilon only.

No number in the record can show that propensities are true; that they do not fit the labels some can: their sum, and that
weighted with the log odds of π. Where the p-value of both together is below ``LEAST_P`` nothing is bounded.

Source: the setting, in which memberships are not random but for what is known of each row, is that of Cebere, Even,
Bleistein & Bellet (2026), "Privacy Auditing with Zero (0) Training Run", arXiv:2605.14591; the bound is derived above. For
fair coins it is Proposition 5.1 of Steinke, Nasr & Jagielski (2023), arXiv:2305.08846v1.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logit, ndtr

from auditdp.bounds.levels import highest_rejected
from auditdp.bounds.result import Answer
from auditdp.errors import ConfigurationError
from auditdp.numerics.arrays import Booleans, Floats, Labels

SOURCE = "arXiv:2605.14591, with the law of right guesses of auditdp.bounds.propensities"
LEAST_P = 0.01


def answer(guessed_in: Booleans, right: int, propensities: Floats, alpha: float, claim: float | None) -> Answer:
    """Return the largest epsilon that so many right guesses refute, and the p-value of the claim if there is one.

    Args:
        guessed_in: What was guessed of each row that was guessed, shape (guesses,).
        right: How many of these guesses are right.
        propensities: π of each of these rows, shape (guesses,), in (0, 1).
        alpha: The error probability.
        claim: The claimed epsilon.
    """
    towards = np.where(guessed_in, 1, -1) * logit(propensities)

    def p_value(epsilon: float) -> float:
        return _at_least(right, expit(epsilon + towards))

    lower = highest_rejected(lambda levels: np.array([p_value(float(each)) <= alpha for each in levels]), parts=2)
    return Answer(lower, None if claim is None else p_value(claim))


def check_fit(labels: Labels, propensities: Floats) -> None:
    """Raise where the labels show that the propensities are not theirs."""
    excess, variance = labels - propensities, propensities * (1 - propensities)
    weights = [np.ones(len(labels)), logit(propensities)]
    scores = [float(np.dot(w, excess)) / math.sqrt(max(float(np.dot(w * w, variance)), 1e-300)) for w in weights]
    p_value = min(1.0, 4 * float(ndtr(-max(map(abs, scores)))))
    if p_value < LEAST_P:
        raise ConfigurationError(
            f"propensities: expected {propensities.sum():,.1f} rows to be in and {labels.sum():,} are, or those that are "
            f"likely to be in are not (p = {p_value:.2g}); fit the propensities to rows like these"
        )


def _at_least(right: int, probabilities: Floats) -> float:
    """P(sum of independent Bernoulli variables >= right)."""
    law = np.zeros(len(probabilities) + 1)
    law[0] = 1.0
    for count, probability in enumerate(probabilities, start=1):
        law[1 : count + 1] = law[1 : count + 1] * (1 - probability) + law[:count] * probability
        law[0] *= 1 - probability
    return float(law[right:].sum())
