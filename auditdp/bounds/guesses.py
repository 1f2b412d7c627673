"""Tests of how many guesses of membership were right: V of r, where every canary was in by its own fair coin.

The guesses may come from independent runs or from one training run that saw all canaries at once: independent runs are
one mechanism on all coins, in which each coin is as protected as in its own run.
"""

from __future__ import annotations

import numpy as np
from scipy.special import bdtrc, expit, logit

from auditdp.bounds.curves import Curve, OfClaim
from auditdp.bounds.levels import highest_rejected, smallest_alpha
from auditdp.bounds.result import Answer, Question
from auditdp.numerics.arrays import Booleans, Floats
from auditdp.numerics.binomial import lower_limit

PAPER = "Steinke, Nasr & Jagielski (2023), 'Privacy Auditing with One (1) Training Run', arXiv:2305.08846v1"
BINOMIAL = f"Proposition 5.1 of {PAPER}"
ONE_RUN = f"the exact form (auditdp/bounds/guesses.py) of Theorem 5.2 of {PAPER}"
ONE_RUN_CURVE = (
    "the recursion of Mahloujifar, Melis & Chaudhuri (2024), 'Auditing f-Differential Privacy in One Run', "
    "arXiv:2410.22235v1"
)
SOURCES = {"binomial": BINOMIAL, "one-run": ONE_RUN, "one-run-curve": ONE_RUN_CURVE}
ROUNDING = 1e-9


def answer(method: str, correct: int, guesses: int, canaries: int, question: Question) -> Answer:
    """Return the bound by one of the methods of ``SOURCES``, and the p-value of the claim if there is one."""
    curve, alpha, claim = question
    if method == "binomial":
        lower = binomial(correct, guesses, alpha)
        return Answer(lower, None if claim is None else one_run_p_value(correct, guesses, canaries, claim, 0.0))
    if method == "one-run":
        lower = one_run(correct, guesses, canaries, curve.delta, alpha)
        return Answer(lower, None if claim is None else one_run_p_value(correct, guesses, canaries, claim, curve.delta))
    lower = one_run_curve(correct, guesses, canaries, curve, alpha)
    return Answer(lower, None if claim is None else one_run_curve_p_value(correct, guesses, canaries, curve, claim))


def binomial(correct: int, guesses: int, alpha: float) -> float:
    """Return the epsilon refuted by the exact binomial test; pure epsilon only.

    Null: flipping any one coin changes the law of the output by at most e^epsilon, pointwise. Then V is stochastically
    at most Bin(r, q), q = e^epsilon/(1+e^epsilon): given the output y and the coins before i, the odds of coin i are
    P(y | b_i=1, before)/P(y | b_i=0, before), in [1/E, E], so whatever was guessed from y is right with probability
    at most q; couple each with a uniform variable. So the p-value is P(Bin(r, q) >= v), and it equals alpha at q =
    BetaInv(alpha; v, r-v+1). Which canaries to guess on, and how many, may depend on the output.

    Args:
        correct: v, how many guesses were right.
        guesses: r, how many guesses were made.
        alpha: The error probability.
    """
    return max(0.0, float(logit(lower_limit(correct, guesses, alpha))))


def one_run_p_value(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Return the largest probability of v right guesses of r on m canaries that (epsilon, delta)-DP allows: a p-value.

    Null: flipping any one of the m coins is (epsilon, delta)-DP. The number of guesses must not depend on the output when
    delta > 0. Let E = e^epsilon, W ~ Bin(r, E/(1+E)), u_j = P(W = j) and f_j = P(W >= j). The result is the height at
    m delta of the concave hull of the points (j u_j/f_j, f_v/f_j), 0 <= j <= v, and 1 beyond the last of them.

    *Constraint.* Let C be the number of right guesses, w_c its law, and C' the right guesses on all but canary i. For any
    set A of counts, and whatever the other coins are, each of the events "guessed in, C' in A" and "guessed out, C' in A"
    has at most E times the probability that it has if i is wrong, plus delta; so P(right on i, C' in A) <=
    E P(wrong on i, C' in A) + delta. Summed over i: Σ_{c in A} d_c <= m delta with d_c = (c+1) w_{c+1} - E (r-c) w_c. So
    the positive parts of all d_c sum to at most that.

    *Bound.* Let a + λx be a line above those points with 0 <= a <= 1 and λ >= 0, and let y_r = 0 and
    y_{c-1} = max(0, f_{max(v,c)} - a f_c)/(c u_c). As E (r-c) u_c = (c+1) u_{c+1}, for each c it holds that
    1{c >= v} - a <= c y_{c-1} - E (r-c) y_c. Weighted by w_c, these sum to P(C >= v) - a <= Σ y_c d_c <= λ m delta, since
    y_{c-1} <= λ: for c <= v by the line, and beyond since c u_c/f_c grows with c. ∎

    *Attained* by mixtures of two laws of W given W >= j, with an equal share of w_c for each pattern of c right guesses.

    Note:
        It takes the place of Theorem 5.2 of Steinke, Nasr & Jagielski (2023), arXiv:2305.08846v1, mostly a little larger.
        That is smaller where the p-value is near 1: .9421 for v = 1 of 2, epsilon = 1, delta = .05, which allow .9447.

    Args:
        correct: v, how many guesses were right.
        guesses: r, how many guesses were made, fixed in advance.
        canaries: m, how many coins there were.
        epsilon: The level that is tested.
        delta: The claimed delta.
    """
    if correct == 0:
        return 1.0
    q = float(expit(epsilon))
    if delta == 0:
        return float(bdtrc(correct - 1, guesses, q))
    from scipy.stats import binom  # slow to load: only where it is needed

    logs = binom.logpmf(np.arange(guesses + 1), guesses, q)
    tails = np.logaddexp.accumulate(logs[::-1])[::-1][: correct + 1]
    costs, gains = np.arange(correct + 1) * np.exp(logs[: correct + 1] - tails), np.exp(tails[-1] - tails)
    return _concave_hull(costs, gains, canaries * delta)


def _concave_hull(x: Floats, y: Floats, at: float) -> float:
    """Return the height of the concave hull of points, both of whose coordinates increase, at a place; the last y beyond."""
    left, right = 0, len(x) - 1
    if at >= x[right]:
        return float(y[right])
    first, height = int(np.searchsorted(x, at, side="right")), -np.inf
    # The line between two points, with either of them replaced in turn by the one that lifts it most.
    while True:
        right = first + int(np.argmax((y[first:] - y[left]) / (x[first:] - x[left])))
        left = int(np.argmin((y[right] - y[:first]) / (x[right] - x[:first])))
        lifted = y[left] + (at - x[left]) * (y[right] - y[left]) / (x[right] - x[left])
        if lifted <= height:
            return float(height)
        height = lifted


def one_run(correct: int, guesses: int, canaries: int, delta: float, alpha: float) -> float:
    """Return the epsilon refuted by ``one_run_p_value``."""

    def rejected(levels: Floats) -> Booleans:
        values = [one_run_p_value(correct, guesses, canaries, float(level), delta) for level in levels]
        return np.array(values) <= alpha

    return highest_rejected(rejected)


def curve_refuted(
    correct: int, guesses: int, canaries: int, curve: Curve, level: float | Floats, alpha: float | Floats
) -> Booleans:
    """Return, elementwise, whether the curve at a level makes v of r right guesses less probable than alpha.

    Null: flipping any one of the m coins changes the law of the output as the curve at this level allows. The number of
    guesses r must not depend on the output.

    *Constraints.* Let C be the number of right guesses, p_c its law, R_j = (1/m) Σ_{c>=j} c p_c and
    H_j = (1/m) Σ_{c>=j} (r-c) p_c. For canary i let C' count the right guesses on the others. "Guessed in and
    C' >= j" has probability a or b given that i is in or out, "guessed out and C' >= j" has a' or b'; so a <= F(b) and
    b' <= F(a'), and P(right on i, C' >= j) = (a + b')/2 <= F((b + a')/2) = F(P(wrong on i, C' >= j)), as F is concave.
    The average of the left side over the m canaries is R_{j+1}, as C = C' + 1 where i is right; that of the argument
    on the right is H_j, as C = C' where i is wrong. By concavity again R_{j+1} <= F(H_j), so H_j >= F⁻¹(R_{j+1}).

    *Recursion.* Suppose P(C >= v) = τ. From (R, H) = (R_v, H_v), mass p at c = v-1, ..., 0 adds p u_c/m with
    u_c = (c, r-c), and by the constraint p is at least m (F⁻¹(R) - H)₊/(r-c). Let S_c(R, H) be the least R_0 + H_0
    that can be reached from (R_c, H_c) = (R, H). By induction from S_0 = R + H, S_c never decreases along w = (1, -1)
    nor along u_c. The least p is optimal, as S_{c-1} never decreases along u_{c-1}. Along w the least p grows, since
    F⁻¹ does and H falls. Along u_c = u_{c-1} + w by a step s it falls by at most s (r-c)/(r-c+1) <= s (in units of
    1/m), while s u_{c-1} + s w was added: the next state moves by non-negative amounts of u_{c-1} and w. ∎

    *Test.* All of τ at c = v gives the start τ (v, r-v)/m, mass above v moves it along w, and larger τ along u_v. So if the
    recursion from α (v, r-v)/m ends above R_0 + H_0 = r/m, which is what p sums to, then P(C >= v) < α. It is monotone in
    α by the same argument, and in the level, as F⁻¹ falls with it.

    Args:
        correct: v, how many guesses were right.
        guesses: r, how many guesses were made, fixed in advance.
        canaries: m, how many coins there were.
        curve: The family of claims.
        level: The levels that are tested, shape () or (k,).
        alpha: The error probabilities, shape () or (k,).
    """
    level, alpha = np.broadcast_arrays(np.atleast_1d(level), np.atleast_1d(alpha))
    right, wrong = alpha * correct / canaries, alpha * (guesses - correct) / canaries
    for c in range(correct - 1, -1, -1):
        missing = np.maximum(0.0, curve.least(np.minimum(1.0, right), level) - wrong)
        right, wrong = right + c / (guesses - c) * missing, wrong + missing
    return np.asarray(right + wrong > guesses / canaries * (1 + ROUNDING))


def one_run_curve(correct: int, guesses: int, canaries: int, curve: Curve, alpha: float) -> float:
    """Return the level refuted by ``curve_refuted``, one of the family's where that has some levels only."""
    level = highest_rejected(lambda levels: curve_refuted(correct, guesses, canaries, curve, levels, alpha))
    return (curve.of_family(level) or level) if level and isinstance(curve, OfClaim) else level


def one_run_curve_p_value(correct: int, guesses: int, canaries: int, curve: Curve, level: float) -> float:
    """Return the smallest alpha at which ``curve_refuted`` refutes the level."""
    return smallest_alpha(lambda alphas: curve_refuted(correct, guesses, canaries, curve, level, alphas))
