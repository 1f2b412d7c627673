"""Tests of the number V of right guesses among r guesses of membership.

The guesses may come from one training run with all canaries, or from independent runs
with one canary each. Independent runs count as one mechanism whose input is all coins,
since each coin is as protected as in its own run.

``from_given_propensities`` is for rows whose membership no coin decided. Right guesses
are compared with the number that is likely without any training.

Its null hypothesis: with the rows' features given, each is a member with its propensity
π, independent of the others, and a row more or less changes the law of the release by
at most e^epsilon, pointwise. Given the release and the memberships of the rows before
it, the odds of row i are then between e^−epsilon and e^epsilon times π/(1 − π), so that
a guess of it is right with probability at most

    c = expit(epsilon + logit π) if it is 'in', expit(epsilon − logit π) if it is 'out',

for a guess that is made from anything except the labels. Couple each with a uniform
variable: the number of right guesses is stochastically at most the sum of independent
Bernoulli(c), whose law is computed exactly, and never falls with epsilon. With π = ½ it
is ``binomial``. Pure epsilon only.

Recorded data cannot prove that propensities are true, but two numbers can refute them:
the sum of the labels, and their sum weighted with the log odds of π. If the p-value of
both together is below ``MIN_FIT_P``, there is no bound.

Source: the setting, in which memberships are random only given the features of each
row, is that of Cebere, Even, Bleistein & Bellet (2026), "Privacy Auditing with Zero (0)
Training Run", arXiv:2605.14591; the bound is derived above. For fair coins it is
Proposition 5.1 of Steinke, Nasr & Jagielski (2023), arXiv:2305.08846v1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import bdtrc, expit, logit, ndtr

from auditdp.bounds.bound_levels import highest_rejected, smallest_alpha
from auditdp.bounds.privacy_curves import Curve, OfClaim
from auditdp.bounds.result import MIN_FIT_P, ROUNDING, Answer, Question
from auditdp.errors import ConfigurationError
from auditdp.numerics.arrays import Booleans, Floats, Labels
from auditdp.numerics.binomial import lower_limit


def from_right_guesses(
    method: str, correct: int, guesses: int, canaries: int, question: Question
) -> Answer:
    """Return the bound by one of three methods, and the p-value of the claim.

    Args:
        method: 'binomial', 'one-run' or 'one-run-curve'.
        correct: Number of right guesses.
        guesses: Number of guesses.
        canaries: Number of canaries.
        question: The family of claims, the error probability and the claim.
    """
    curve, alpha, claim = question
    counts = correct, guesses, canaries
    if method == "binomial":
        lower = binomial(correct, guesses, alpha)
    elif method == "one-run":
        lower = one_run(*counts, curve.delta, alpha)
    else:
        lower = one_run_curve(*counts, curve, alpha)
    if claim is None:
        return Answer(lower, None)
    if method == "one-run-curve":
        return Answer(lower, one_run_curve_p_value(*counts, curve, claim))
    return Answer(lower, one_run_p_value(*counts, claim, curve.delta))


def binomial(correct: int, guesses: int, alpha: float) -> float:
    """Return the largest epsilon that the exact binomial test refutes.

    Null: flipping any one coin changes the law of the output by at most E = e^epsilon,
    pointwise; pure epsilon only. Then V is stochastically at most Bin(r, q), q =
    E/(1+E): given the output y and the coins before i, the odds of coin i are
    P(y | b_i=1, before)/P(y | b_i=0, before), in [1/E, E], so whatever was guessed from
    y is right with probability at most q; couple each with a uniform variable. So the
    p-value is P(Bin(r, q) >= v), and it equals alpha at q = BetaInv(alpha; v, r-v+1).
    Which canaries to guess on, and how many, may depend on the output.

    Args:
        correct: v, the number of right guesses.
        guesses: r, the number of guesses.
        alpha: The error probability.
    """
    return max(0.0, float(logit(lower_limit(correct, guesses, alpha))))


def one_run_p_value(
    correct: int, guesses: int, canaries: int, epsilon: float, delta: float
) -> float:
    """Return the largest probability of v or more right guesses that the claim allows.

    Null: flipping any one of the m coins is (epsilon, delta)-DP. The number of guesses
    must not depend on the output if delta > 0. Let E = e^epsilon, W ~ Bin(r, E/(1+E)),
    u_j = P(W = j) and f_j = P(W >= j). The result is the height at m delta of the
    concave hull of the points (j u_j/f_j, f_v/f_j), 0 <= j <= v, and 1 beyond the last
    of them.

    *Constraint.* Let C be the number of right guesses, w_c its law, and C' the right
    guesses on all but canary i. For any set A of counts, and whatever the other coins
    are, each of the events "guessed in, C' in A" and "guessed out, C' in A" has at most
    E times the probability that it has if i is wrong, plus delta; so P(right on i, C'
    in A) <= E P(wrong on i, C' in A) + delta. Summed over i: Σ_{c in A} d_c <= m delta
    with d_c = (c+1) w_{c+1} - E (r-c) w_c. So the positive parts of all d_c sum to at
    most that.

    *Bound.* Let a + λx be a line above those points with 0 <= a <= 1 and λ >= 0, and
    let y_r = 0 and y_{c-1} = max(0, f_{max(v,c)} - a f_c)/(c u_c). As E (r-c) u_c =
    (c+1) u_{c+1}, for each c it holds that 1{c >= v} - a <= c y_{c-1} - E (r-c) y_c.
    Weighted by w_c, these sum to P(C >= v) - a <= Σ y_c d_c <= λ m delta, since y_{c-1}
    <= λ: for c <= v by the line, and beyond since c u_c/f_c grows with c. ∎

    *Attained* by mixtures of two laws of W given W >= j, with an equal share of w_c for
    each pattern of c right guesses.

    Note:
        It takes the place of the p-value of Theorem 5.2 of Steinke, Nasr & Jagielski
        (2023), arXiv:2305.08846v1, which is mostly a little larger. Near 1 that p-value
        can be too small: it is .9421 for v = 1 of r = 2, epsilon = 1 and delta = .05,
        where the claim allows .9447.

    Args:
        correct: v, the number of right guesses.
        guesses: r, the number of guesses, fixed in advance.
        canaries: m, the number of coins.
        epsilon: The level that is tested.
        delta: The claimed delta.
    """
    if correct == 0:
        return 1.0
    q = float(expit(epsilon))
    if delta == 0:
        return float(bdtrc(correct - 1, guesses, q))
    # This import is slow, so it is made when it is needed.
    from scipy.stats import binom

    # Points of the hull, in logarithms, since tails of many guesses underflow.
    logs = binom.logpmf(np.arange(guesses + 1), guesses, q)
    tails = np.logaddexp.accumulate(logs[::-1])[::-1][: correct + 1]
    costs = np.arange(correct + 1) * np.exp(logs[: correct + 1] - tails)
    return _concave_hull(costs, np.exp(tails[-1] - tails), canaries * delta)


def _concave_hull(x: Floats, y: Floats, at: float) -> float:
    """Return the height at ``at`` of the concave hull of points with increasing x.

    Returns:
        The height, or the last y if ``at`` is beyond the last point.
    """
    left, right = 0, len(x) - 1
    if at >= x[right]:
        return float(y[right])
    first, height = int(np.searchsorted(x, at, side="right")), -np.inf
    # Replace the two ends of a line in turn by the point that lifts the line most.
    while True:
        right = first + int(np.argmax((y[first:] - y[left]) / (x[first:] - x[left])))
        left = int(np.argmin((y[right] - y[:first]) / (x[right] - x[:first])))
        lifted = y[left] + (at - x[left]) * (y[right] - y[left]) / (x[right] - x[left])
        if lifted <= height:
            return float(height)
        height = lifted


def one_run(
    correct: int, guesses: int, canaries: int, delta: float, alpha: float
) -> float:
    """Return the largest epsilon that ``one_run_p_value`` refutes at alpha, or 0."""

    def p_value(epsilon: float) -> float:
        return one_run_p_value(correct, guesses, canaries, epsilon, delta)

    return _highest_epsilon(p_value, alpha)


def _highest_epsilon(
    p_value: Callable[[float], float], alpha: float, parts: int = 32
) -> float:
    """Return the largest epsilon with a p-value of at most alpha, or 0 if none has one.

    The search divides an interval of levels into ``parts`` parts at a time.
    """
    return highest_rejected(
        lambda levels: np.array([p_value(float(each)) <= alpha for each in levels]),
        parts,
    )


def curve_refuted(
    correct: int,
    guesses: int,
    canaries: int,
    curve: Curve,
    level: float | Floats,
    alpha: float | Floats,
) -> Booleans:
    """Return True where v or more right guesses have probability below alpha.

    The law is that of the worst mechanism that meets the claim at ``level``.

    Null: flipping any one of the m coins changes the law of the output as the curve at
    this level allows. The number of guesses r must not depend on the output.

    *Constraints.* Let C be the number of right guesses, p_c its law, R_j = (1/m)
    Σ_{c>=j} c p_c and H_j = (1/m) Σ_{c>=j} (r-c) p_c. For canary i let C' count the
    right guesses on the others. "Guessed in and C' >= j" has probability a or b given
    that i is in or out, "guessed out and C' >= j" has a' or b'; so a <= F(b) and b' <=
    F(a'), and P(right on i, C' >= j) = (a + b')/2 <= F((b + a')/2) = F(P(wrong on i, C'
    >= j)), as F is concave. The average of the left side over the m canaries is
    R_{j+1}, as C = C' + 1 where i is right; that of the argument on the right is H_j,
    as C = C' where i is wrong. By concavity again R_{j+1} <= F(H_j), so H_j >=
    F⁻¹(R_{j+1}).

    *Recursion.* Suppose P(C >= v) = τ. From (R, H) = (R_v, H_v), mass p at c = v-1,
    ..., 0 adds p u_c/m with u_c = (c, r-c), and by the constraint p is at least m
    (F⁻¹(R) - H)₊/(r-c). Let S_c(R, H) be the least R_0 + H_0 that can be reached from
    (R_c, H_c) = (R, H). By induction from S_0 = R + H, S_c never decreases along w =
    (1, -1) nor along u_c. The least p is optimal, as S_{c-1} never decreases along
    u_{c-1}. Along w the least p grows, since F⁻¹ does and H falls. Along u_c = u_{c-1}
    + w by a step s it falls by at most s (r-c)/(r-c+1) <= s (in units of 1/m), while s
    u_{c-1} + s w was added: the next state moves by non-negative amounts of u_{c-1} and
    w. ∎

    *Test.* All of τ at c = v gives the start τ (v, r-v)/m, mass above v moves it along
    w, and larger τ along u_v. So if the recursion from α (v, r-v)/m ends above R_0 +
    H_0 = r/m, which is what p sums to, then P(C >= v) < α. It is monotone in α by the
    same argument, and in the level, as F⁻¹ falls with it.

    Args:
        correct: v, the number of right guesses.
        guesses: r, the number of guesses, fixed in advance.
        canaries: m, the number of coins.
        curve: The family of claims.
        level: The levels that are tested, shape () or (k,).
        alpha: The error probabilities, shape () or (k,).

    Returns:
        For each level and its alpha, whether the level is refuted; shape (1,) or (k,).
    """
    level, alpha = np.broadcast_arrays(np.atleast_1d(level), np.atleast_1d(alpha))
    # The state (R, H) after all mass of the p-value at v right guesses.
    right, wrong = alpha * correct / canaries, alpha * (guesses - correct) / canaries
    for c in range(correct - 1, -1, -1):
        missing = np.maximum(
            0.0, curve.smallest_q(np.minimum(1.0, right), level) - wrong
        )
        right, wrong = right + c / (guesses - c) * missing, wrong + missing
    return np.asarray(right + wrong > guesses / canaries * (1 + ROUNDING))


def one_run_curve(
    correct: int, guesses: int, canaries: int, curve: Curve, alpha: float
) -> float:
    """Return the largest level that ``curve_refuted`` refutes at alpha.

    It is 0 if none is refuted. If the claim's family has finitely many levels, the
    result is 0, one of them, or a number above all of them.
    """
    level = highest_rejected(
        lambda levels: curve_refuted(correct, guesses, canaries, curve, levels, alpha)
    )
    if level and isinstance(curve, OfClaim):
        return curve.of_family(level) or level
    return level


def one_run_curve_p_value(
    correct: int, guesses: int, canaries: int, curve: Curve, level: float
) -> float:
    """Return the smallest alpha at which ``curve_refuted`` refutes the level, or 1."""
    return smallest_alpha(
        lambda alphas: curve_refuted(correct, guesses, canaries, curve, level, alphas)
    )


def from_given_propensities(
    guessed_in: Booleans,
    right: int,
    propensities: Floats,
    alpha: float,
    claim: float | None,
) -> Answer:
    """Return the bound from right guesses about rows whose membership no coin decided.

    Args:
        guessed_in: Whether each guessed row was guessed 'in', shape (guesses,).
        right: Number of right guesses.
        propensities: π of each guessed row, shape (guesses,), in (0, 1).
        alpha: The error probability.
        claim: The claimed epsilon, or None.

    Returns:
        The largest epsilon that is refuted, or 0, and the p-value of the claim.
    """
    towards = np.where(guessed_in, 1, -1) * logit(propensities)

    def p_value(epsilon: float) -> float:
        return _at_least(right, expit(epsilon + towards))

    lower = _highest_epsilon(p_value, alpha, parts=2)
    return Answer(lower, None if claim is None else p_value(claim))


def check_fit(labels: Labels, propensities: Floats) -> None:
    """Check that the labels do not contradict the propensities.

    Raises:
        ConfigurationError: If they do, at level ``MIN_FIT_P``.
    """
    excess, variance = labels - propensities, propensities * (1 - propensities)
    largest = 0.0
    for weights in (np.ones(len(labels)), logit(propensities)):
        deviation = math.sqrt(max(float(np.dot(weights * weights, variance)), 1e-300))
        largest = max(largest, abs(float(np.dot(weights, excess)) / deviation))
    # Two two-sided tests, by Bonferroni.
    p_value = min(1.0, 4 * float(ndtr(-largest)))
    if p_value < MIN_FIT_P:
        raise ConfigurationError(
            f"propensities: expected {propensities.sum():,.1f} rows to be in and {labels.sum():,} are, or those that are "
            f"likely to be in are not (p = {p_value:.2g}); fit the propensities to rows like these"
        )


def _at_least(right: int, probabilities: Floats) -> float:
    """Return P(sum >= right) for the sum of Bernoulli variables.

    The variables are independent, with these probabilities of 1.
    """
    # After each variable, law[k] is the probability of k successes so far.
    law = np.zeros(len(probabilities) + 1)
    law[0] = 1.0
    for count, p in enumerate(probabilities, start=1):
        law[1 : count + 1] = law[1 : count + 1] * (1 - p) + law[:count] * p
        law[0] *= 1 - p
    return float(law[right:].sum())
