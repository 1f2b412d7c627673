"""The exact scan: every number of guesses at once, on labels that were thrown by fair coins.

**Sets.** The scores alone, never the labels, give a nested sequence of sets of canaries with a guess for each: the most
extreme ones first. Canaries with equal scores enter together, as the order of the rows may know the labels.

**Statistic.** With V_k right guesses among the k of a set, S = max over the sets of k kl(V_k/k ‖ q) where V_k/k > q, and
q = e^epsilon/(1+e^epsilon).

**Null.** Flipping any one coin changes the law of the scores by at most e^epsilon, pointwise. Given the scores and the
coins before it, each guess is right with probability at most q (see ``guesses.binomial``), so the indicators of right
guesses lie below independent Bernoulli(q) variables on one probability space. S never decreases with any of them, as
k kl(V/k ‖ q) 1{V > kq} does not; so P(S >= s) is at most its value for independent Bernoulli(q) guesses. This holds for
independent runs and for one training run alike. Pure epsilon only.

It does not hold where the numbers of in and out were fixed: of two rows, one of each, both guesses are right together,
and with probability up to E²/(1+E²) > q, E = e^epsilon. Such records need a test of two arms.

**P-value.** For Bernoulli(q) guesses V_k is a random walk, and S >= s means that it reaches a boundary: its law below the
boundary is carried from set to set, exactly and without simulation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit, rel_entr

from auditdp.bounds.bound_levels import highest_chain
from auditdp.bounds.result import Answer
from auditdp.errors import ConfigurationError
from auditdp.numerics.arrays import Floats, Integers, Labels

SOURCE = (
    "Proposition 5.1 of Steinke, Nasr & Jagielski (2023), arXiv:2305.08846v1, for the law of right guesses; the "
    "maximum over sets and its exact law are proved in auditdp.bounds.thresholds"
)
GUESSES = ("both", "in", "out")
SETS = 256
LOST = 1e-18
SLACK = 1e-9


class Sets(NamedTuple):
    """Nested sets of guesses on so many canaries: their sizes, increasing, and how many guesses of each are right."""

    sizes: Integers
    right: Integers
    canaries: int


def nested_sets(scores: Floats, labels: Labels, guess: str) -> Sets:
    """Return at most ``SETS`` nested sets, of sizes that grow geometrically.

    Args:
        scores: One for each canary, shape (n,); larger is more like 'in'.
        labels: 1 for in, 0 for out, shape (n,).
        guess: 'in' guesses that the highest scores are in; 'out' that the lowest are out; 'both' does both, in equal
            numbers, up to the cut between two scores that is nearest to the median.

    Raises:
        ConfigurationError: If all scores are equal.
    """
    values, group = np.unique(scores, return_inverse=True)
    if len(values) == 1:
        raise ConfigurationError(
            f"all {len(scores)} scores are equal to {values[0]:g}; a score has to tell canaries apart"
        )
    members, inside = (
        np.bincount(group),
        np.bincount(group, weights=labels).astype(np.int64),
    )
    # After each group of equal scores: how many canaries, and how many right guesses, from the top and from the bottom.
    top = np.cumsum(members[::-1]), np.cumsum(inside[::-1])
    bottom = np.cumsum(members), np.cumsum(members - inside)
    if guess == "both":
        cut = int(np.argmin(np.abs(2 * top[0][:-1] - len(scores)))) + 1
        sides = [
            tuple(part[:cut] for part in top),
            tuple(part[: len(values) - cut] for part in bottom),
        ]
    else:
        sides = [top if guess == "in" else bottom]
    wanted = np.unique(
        np.round(np.geomspace(1, max(side[0][-1] for side in sides), SETS)).astype(
            np.int64
        )
    )
    sizes, right = np.zeros_like(wanted), np.zeros_like(wanted)
    for side in sides:
        last = np.searchsorted(
            side[0], wanted, side="right"
        )  # the largest whole number of groups that is wanted
        sizes += np.append(0, side[0])[last]
        right += np.append(0, side[1])[last]
    _, first = np.unique(sizes, return_index=True)
    first = first[sizes[first] > 0]
    return Sets(sizes[first], right[first], len(scores))


def descending(scores: Floats, rng: np.random.Generator) -> Integers:
    """Return the rows from the highest score to the lowest, equal scores in random order: the rows' own may know labels."""
    shuffled = rng.permutation(len(scores))
    return np.asarray(shuffled[np.argsort(-scores[shuffled], kind="stable")])


def right_guesses(labels: Labels, number: int, guess: str) -> int:
    """Return how many of so many guesses are right, on labels from the highest score to the lowest.

    'in' guesses the first, 'out' the last, 'both' half of each, the odd one being 'in'.
    """
    guessed_in = {"in": number, "out": 0, "both": number - number // 2}[guess]
    guessed_out = number - guessed_in
    return int(
        labels[:guessed_in].sum()
        + guessed_out
        - labels[len(labels) - guessed_out :].sum()
    )


def scan(sets: Sets, alpha: float, claim: float | None) -> Answer:
    """Return the largest epsilon that is refuted with all below it, and the p-value of the claim."""
    lower = highest_chain(
        lambda epsilon, _: p_value(sets, epsilon),
        # By Chernoff for each set; it never decreases, as S falls with epsilon.
        lambda epsilon: (
            len(sets.sizes)
            * math.exp(-_statistic(sets, float(expit(epsilon))) * (1 - SLACK))
        ),
        alpha=alpha,
        claim=claim,
        n=int(sets.sizes[-1]),
    )
    return Answer(lower, None if claim is None else p_value(sets, claim))


def telling(sets: Sets, epsilon: float) -> str:
    """Say which set tells most against the claim at this epsilon."""
    best = int(np.argmax(_divergence(sets.right, sets.sizes, float(expit(epsilon)))))
    return f"{sets.right[best]} of {sets.sizes[best]} guesses right in the most telling of {len(sets.sizes)} sets"


def p_value(sets: Sets, epsilon: float) -> float:
    """Return P(S >= its observed value) for independent guesses that are right with probability q."""
    q = float(expit(epsilon))
    observed = _statistic(sets, q) * (1 - SLACK)
    if observed <= 0:
        return 1.0
    return min(
        1.0, _crossing(sets.sizes, _boundary(sets.sizes, observed, q), q) * (1 + SLACK)
    )


def _divergence(right: Integers, sizes: Integers, q: float) -> Floats:
    """Return k kl(V/k ‖ q) where V/k > q, else 0."""
    share = right / sizes
    return np.where(
        share > q, sizes * (rel_entr(share, q) + rel_entr(1 - share, 1 - q)), 0.0
    )


def _statistic(sets: Sets, q: float) -> float:
    return float(np.max(_divergence(sets.right, sets.sizes, q)))


def _boundary(sizes: Integers, statistic: float, q: float) -> Integers:
    """Return for each size the smallest V whose divergence is at least the statistic; size + 1 if there is none."""
    low, high = (
        np.zeros_like(sizes),
        sizes + 1,
    )  # V = 0 is always below, size + 1 stands for none
    while np.any(high - low > 1):
        middle = (low + high) // 2
        reached = _divergence(middle, sizes, q) >= statistic
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def _crossing(sizes: Integers, boundary: Integers, q: float) -> float:
    """Return the probability that the random walk of right guesses is on or above the boundary at some size."""
    from scipy.stats import binom  # slow to load: only where it is needed

    law, offset, crossed = (
        np.ones(1),
        0,
        0.0,
    )  # law[k] is P(V = offset + k, never on the boundary so far)
    for step, limit in zip(np.diff(sizes, prepend=0), boundary, strict=True):
        law = np.convolve(law, binom.pmf(np.arange(step + 1), step, q))
        crossed += law[max(0, limit - offset) :].sum()
        law = law[: max(0, limit - offset)]
        # Mass too small to matter counts as crossed; what is left of the law stays short.
        light = int(np.searchsorted(np.cumsum(law), LOST))
        crossed += law[:light].sum()
        law, offset = law[light:], offset + light
        if not len(law):
            break
    return float(crossed)
