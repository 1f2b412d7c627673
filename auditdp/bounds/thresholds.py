"""The exact scan: all numbers of guesses at once, on labels of fair coins.

**Sets.** The scores alone, never the labels, give a nested sequence of sets of canaries
with a guess for each, starting with the most extreme scores. Canaries with equal scores
enter together, because the order of the rows may depend on the labels.

**Statistic.** With V_k right guesses among the k of a set, S = max over the sets of
k kl(V_k/k ‖ q) where V_k/k > q, and q = e^epsilon/(1+e^epsilon).

**Null.** Flipping any one coin changes the law of the scores by at most e^epsilon,
pointwise. Given the scores and the coins before it, each guess is right with
probability at most q (see ``one_run.binomial``), so the indicators of right guesses lie
below independent Bernoulli(q) variables on one probability space. S never decreases
with any of them, because k kl(V/k ‖ q) 1{V > kq} does not; so P(S >= s) is at most its
value for independent Bernoulli(q) guesses. This holds for independent runs and for one
training run alike. Pure epsilon only.

It does not hold if the numbers of in and out were fixed: of two rows, one of each, both
guesses are right together, and with probability up to E²/(1+E²) > q, E = e^epsilon.
Such records need a test of two arms.

**P-value.** For Bernoulli(q) guesses V_k is a random walk, and S >= s means that it
reaches a boundary: its law below the boundary is carried from set to set, exactly and
without simulation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit, rel_entr

from auditdp.bounds.bound_levels import highest_chain
from auditdp.bounds.result import LIMITS, ROUNDING, Answer
from auditdp.errors import ConfigurationError
from auditdp.numerics.arrays import Floats, Integers, Labels

GUESSES = ("both", "in", "out")


class Sets(NamedTuple):
    """Nested sets of guesses: each set contains all guesses of the sets before it.

    Attributes:
        sizes: Number of guesses in each set, increasing, shape (sets,).
        right: Number of right guesses in each set, shape (sets,).
        canaries: Number of all canaries, also of those without a guess.
    """

    sizes: Integers
    right: Integers
    canaries: int


def nested_sets(scores: Floats, labels: Labels, guess: str) -> Sets:
    """Return nested sets of guesses whose sizes grow about geometrically.

    Args:
        scores: One for each canary, shape (n,); larger is more like 'in'.
        labels: 1 for in, 0 for out, shape (n,).
        guess: 'in' guesses that the highest scores are in; 'out' that the lowest are
            out. 'both' makes both guesses, in about equal numbers, each on its side of
            the cut between two scores that is nearest to the median.

    Raises:
        ConfigurationError: If all scores are equal.
    """
    values, group = np.unique(scores, return_inverse=True)
    if len(values) == 1:
        raise ConfigurationError(
            f"all {len(scores)} scores are equal to {values[0]:g}; a score has to tell canaries apart"
        )
    members = np.bincount(group)
    inside = np.bincount(group, weights=labels).astype(np.int64)
    # Canaries and right guesses, summed over the groups of equal scores from either
    # end.
    top = np.cumsum([members[::-1], inside[::-1]], axis=1)
    bottom = np.cumsum([members, members - inside], axis=1)
    sides = [top if guess == "in" else bottom]
    if guess == "both":
        cut = int(np.argmin(np.abs(2 * top[0, :-1] - len(scores)))) + 1
        sides = [top[:, :cut], bottom[:, : len(values) - cut]]
    largest = max(side[0, -1] for side in sides)
    wanted = np.round(np.geomspace(1, largest, LIMITS.nested_sets)).astype(np.int64)
    wanted = np.unique(wanted)
    totals = np.zeros((2, len(wanted)), np.int64)
    for side in sides:
        # A set has whole groups: the largest number of them that does not exceed its
        # size.
        last = np.searchsorted(side[0], wanted, side="right")
        totals += np.pad(side, ((0, 0), (1, 0)))[:, last]
    # Several wanted sizes may give the same set; empty sets have no guess.
    _, first = np.unique(totals[0], return_index=True)
    first = first[totals[0, first] > 0]
    return Sets(totals[0, first], totals[1, first], len(scores))


def descending(scores: Floats, rng: np.random.Generator) -> Integers:
    """Return the indices of the rows by falling score, equal scores in random order.

    The order in which rows were given may depend on the labels, so it is not used.
    """
    # A stable sort keeps equal scores in the order of the permutation.
    shuffled = rng.permutation(len(scores))
    return np.asarray(shuffled[np.argsort(-scores[shuffled], kind="stable")])


def guesses_in(number: int, guess: str) -> int:
    """Return the number of 'in' guesses among ``number`` guesses.

    For 'both' it is half of them, rounded up.
    """
    return {"in": number, "out": 0, "both": number - number // 2}[guess]


def right_guesses(labels: Labels, number: int, guess: str) -> int:
    """Return the number of right guesses.

    Args:
        labels: Labels from the highest score to the lowest: 1 for in, 0 for out.
        number: Number of guesses.
        guess: 'in' guesses that the first are in, and 'out' that the last are out.
            'both' makes half of the guesses each way; an odd one is 'in'.
    """
    first = guesses_in(number, guess)
    last = number - first
    return int(labels[:first].sum() + last - labels[len(labels) - last :].sum())


def scan(sets: Sets, alpha: float, claim: float | None) -> Answer:
    """Return the bound of the exact scan on epsilon, and the p-value of the claim.

    The bound is the largest grid level that is refuted together with all below it.
    """

    def easy(epsilon: float) -> float:
        # By Chernoff for each set; it never decreases, as S falls with epsilon.
        statistic = _statistic(sets, float(expit(epsilon)))
        return len(sets.sizes) * math.exp(-statistic * (1 - ROUNDING))

    lower = highest_chain(
        lambda epsilon, _: p_value(sets, epsilon),
        easy,
        alpha=alpha,
        claim=claim,
        n=int(sets.sizes[-1]),
    )
    return Answer(lower, None if claim is None else p_value(sets, claim))


def describe_best(sets: Sets, epsilon: float) -> str:
    """Return a sentence on the set with the largest statistic at this epsilon."""
    best = int(np.argmax(_divergence(sets.right, sets.sizes, float(expit(epsilon)))))
    return f"{sets.right[best]} of {sets.sizes[best]} guesses right in the best of {len(sets.sizes)} sets"


def p_value(sets: Sets, epsilon: float) -> float:
    """Return the p-value of the claim at this epsilon.

    It is the probability that S, the statistic of the module, reaches its observed
    value if each guess is right with probability e^epsilon/(1 + e^epsilon).
    """
    q = float(expit(epsilon))
    observed = _statistic(sets, q) * (1 - ROUNDING)
    if observed <= 0:
        return 1.0
    boundary = _boundary(sets.sizes, observed, q)
    return min(1.0, _crossing(sets.sizes, boundary, q) * (1 + ROUNDING))


def _divergence(right: Integers, sizes: Integers, q: float) -> Floats:
    """Return k kl(V/k ‖ q) where V/k > q, else 0; V is ``right``, k is ``sizes``."""
    share = right / sizes
    divergence = sizes * (rel_entr(share, q) + rel_entr(1 - share, 1 - q))
    return np.where(share > q, divergence, 0.0)


def _statistic(sets: Sets, q: float) -> float:
    return float(np.max(_divergence(sets.right, sets.sizes, q)))


def _boundary(sizes: Integers, statistic: float, q: float) -> Integers:
    """Return for each size the smallest V whose divergence is at least the statistic.

    V is a number of right guesses. It is size + 1 if no V reaches the statistic.
    """
    # The value V = 0 never reaches the statistic, which is positive.
    low, high = np.zeros_like(sizes), sizes + 1
    while np.any(high - low > 1):
        middle = (low + high) // 2
        reached = _divergence(middle, sizes, q) >= statistic
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def _crossing(sizes: Integers, boundary: Integers, q: float) -> float:
    """Return the probability that the number of right guesses reaches the boundary.

    That is, some set has at least the number of right guesses in ``boundary``. Each
    guess is right with probability q.
    """
    # This import is slow, so it is made when it is needed.
    from scipy.stats import binom

    # Invariant: law[k] is P(V = offset + k, and V was below the boundary so far).
    law = np.ones(1)
    offset = 0
    crossed = 0.0
    for step, limit in zip(np.diff(sizes, prepend=0), boundary, strict=True):
        law = np.convolve(law, binom.pmf(np.arange(step + 1), step, q))
        below = max(0, limit - offset)
        crossed += law[below:].sum()
        law = law[:below]
        # A mass below 1e-18 counts as crossed; the rest of the law stays short.
        light = int(np.searchsorted(np.cumsum(law), 1e-18))
        crossed += law[:light].sum()
        law, offset = law[light:], offset + light
        if not len(law):
            break
    return float(crossed)
