"""Tests of one event, and its choice on a part of the outputs.

First, the exact unconditional test of two binomial counts against the claim that
P(A) <= F(Q(A)).

**Statistic.** With kl⁺ the binomial divergence kl(a‖p) where the data lie on the wrong
side of the null and 0 elsewhere,

    T(x, y) = min over q of  n kl⁺(x/n ‖ F(q)) + m kl⁺(q ‖ y/m),

    kl⁺(a‖p): a > p,   kl⁺(q‖c) = kl(c‖q): c < q,

half the squared signed root of the likelihood ratio. Each term grows with x and falls
with y, so T does.

**Nuisance.** {T >= t} is therefore closed under raising x and lowering y, so its
probability grows with p = P(A) and falls with q = Q(A): over the null p <= F(q) it is
largest on the boundary p = F(q), and on an interval of boundary points it is at most
its value at (F(q_high), q_low). The supremum over q is bounded from above by splitting
intervals until that is precise enough, and never by a grid of points that leaves the
points between them out.

**Range of q.** Let C be the Clopper-Pearson interval of q at confidence 1 - γ from y.
Then γ + sup over C is a valid p-value (Berger & Boos 1994, "P values maximized over a
confidence set for the nuisance parameter"): with p(q) the p-value at the true q, P(γ +
sup over C <= α) <= P(q not in C) + P(p(q) <= α - γ) <= α.

**Large counts.** If there are more values of x than ``LIMITS.count_cells``, they are
grouped, and each cell has every y that any of its members has: this enlarges the event
whose probability is bounded.

**Closed form.** T <= T₁ + T₂, the two terms at the true (p, q), and by Chernoff
P(T_i >= s) <= e^-s each; so P(T >= t) <= (1 + t) e^-t. It falls with t, hence grows
with the level, whose nulls are nested. As it bounds the p-value of every q, min(closed
form, sup over C) + γ is valid as well.

Source: Barnard (1947), "Significance tests for 2x2 tables", for the unconditional test;
the statistic for a general trade-off curve and the interval bound are proved above.

Second, ``clopper_pearson`` and ``dkw`` bound the level by confidence limits on P(A) and
Q(A), as is usual in the literature. Both are conservative: they pay for two
simultaneous limits although the claim is about one comparison. For two arms of 150 and
a tight claim, Clopper-Pearson refutes some ten times more rarely than its alpha allows.

Third, an event is chosen on one part of the outputs. This may cost power, never
validity, because the outputs that test the event had no part in its choice.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, rel_entr

from auditdp.bounds.bound_levels import highest_chain
from auditdp.bounds.privacy_curves import Curve
from auditdp.bounds.result import LIMITS, Answer
from auditdp.numerics.arrays import Booleans, Floats, Labels
from auditdp.numerics.binomial import lower_limit, upper_limit
from auditdp.numerics.streams import one_thread

GAMMA = 1e-9
"""Probability that the true q lies outside its confidence interval.

It is added to every p-value.
"""
SEARCH_RTOL = 1e-7
"""Bound on the relative error of T, which golden-section search computes."""
ROUNDING = 1e-12
"""Bound on the absolute error of a sum of binomial tails, and on the relative error of
the probabilities that these tails are computed from."""


class Counts(NamedTuple):
    """Numbers of outputs of two inputs, and the numbers of them that are in an event.

    Attributes:
        first: Number of outputs of the first input that are in the event.
        n_first: Number of outputs of the first input.
        second: Number of outputs of the second input that are in the event.
        n_second: Number of outputs of the second input.
    """

    first: int
    n_first: int
    second: int
    n_second: int

    def __str__(self) -> str:
        return f"the event in {self.first} of {self.n_first} first and {self.second} of {self.n_second} second outputs"


def exact(counts: Counts, curve: Curve, alpha: float, claim: float | None) -> Answer:
    """Return the bound of the exact test, and the p-value of the claim.

    The bound is the largest grid level that is refuted together with all below it. The
    event must have been chosen without looking at these outputs.
    """
    lower = highest_chain(
        lambda level, enough: p_value(counts, curve, level, enough),
        lambda level: _closed_form(statistic(counts, curve, level)),
        alpha=alpha,
        claim=claim,
        n=counts.n_first + counts.n_second,
    )
    return Answer(lower, None if claim is None else p_value(counts, curve, claim, 0.0))


def p_value(counts: Counts, curve: Curve, level: float, enough: float) -> float:
    """Return an upper bound on the p-value of the claim at this level.

    Args:
        counts: The counts.
        curve: The family of claims.
        level: The level.
        enough: The bound is refined until it is certain whether it is above or below
            this number. 0 refines it fully.
    """
    observed = statistic(counts, curve, level)
    if observed <= SEARCH_RTOL:
        return 1.0
    region = _Region(counts, curve, level, observed * (1 - SEARCH_RTOL))
    bound = GAMMA + ROUNDING + region.supremum(enough - GAMMA)
    return min(1.0, _closed_form(observed), bound)


def _closed_form(observed: float) -> float:
    """Return the closed-form bound on the p-value if T is ``observed``.

    T is first lowered by the error of its search.
    """
    lowest = observed * (1 - SEARCH_RTOL)
    return GAMMA + ROUNDING + (1 + lowest) * math.exp(-lowest)


def _kl(a: Floats, p: Floats) -> Floats:
    return np.asarray(rel_entr(a, p) + rel_entr(1 - a, 1 - p))


def statistic(counts: Counts, curve: Curve, level: float) -> float:
    """Return the statistic T; it is 0 if the claim allows the observed rates."""
    first, second = np.array([counts.first]), np.array([counts.second])
    return float(_divergence(counts, curve, level, first, second)[0])


def _divergence(
    counts: Counts,
    curve: Curve,
    level: float,
    first: NDArray[Any],
    second: NDArray[Any],
) -> Floats:
    """Return the statistic T for ``first`` (x) and ``second`` (y), elementwise.

    They replace the numbers in the event in ``counts``. Golden-section search minimises
    over q, because both terms are convex in q.
    """
    a, c = first / counts.n_first, second / counts.n_second
    # Outside [c, F⁻¹(a)] one term is zero and the other not smaller than at the end.
    low, high = c, np.maximum(c, curve.smallest_q(a, level))

    def total(q: Floats) -> Floats:
        p = np.minimum(curve.largest_p(q, level), a)
        return counts.n_first * _kl(a, p) + counts.n_second * _kl(c, q)

    ratio = (np.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = total(left), total(right)
    # Forty steps shrink the interval to 4e-9 of its length.
    for _ in range(40):
        is_left = at_left <= at_right
        low, high = np.where(is_left, low, left), np.where(is_left, right, high)
        step = ratio * (high - low)
        new = np.where(is_left, high - step, low + step)
        at_new = total(new)
        left, right = np.where(is_left, new, right), np.where(is_left, left, new)
        at_left, at_right = (
            np.where(is_left, at_new, at_right),
            np.where(is_left, at_left, at_new),
        )
    return np.where(a > curve.largest_p(c, level), np.minimum(at_left, at_right), 0.0)


class _Region:
    """The event {T >= t}, or a slightly larger one, and its probability under the null.

    For counts x in a cell (edges[j-1], edges[j]] the event is y <= tops[j]. This is
    exact at the cell's upper edge, and may be too large below it.
    """

    def __init__(
        self, counts: Counts, curve: Curve, level: float, threshold: float
    ) -> None:
        # This import is slow, so it is made when it is needed.
        from scipy.stats import binom

        self.counts, self.curve, self.level = counts, curve, level
        at = counts.second, counts.n_second, GAMMA / 2
        self.range = float(lower_limit(*at)), float(upper_limit(*at))
        p_low, p_high = (curve.largest_p(q, level) for q in self.range)
        lowest = max(0, int(binom.ppf(ROUNDING, counts.n_first, p_low)) - 1)
        highest = int(binom.isf(ROUNDING, counts.n_first, p_high))
        highest = max(0, min(counts.n_first, highest))
        edges = np.linspace(lowest, highest, LIMITS.count_cells)
        self.edges = np.unique(np.append(np.round(edges), counts.n_first))
        low = np.full(self.edges.shape, -1.0)
        high = np.full(self.edges.shape, float(counts.n_second))
        # Bisection, because T falls with y; it is 0 at y = n_second.
        while np.any(high - low > 1):
            middle = np.floor((low + high) / 2)
            second = np.maximum(middle, 0.0)
            inside = _divergence(counts, curve, level, self.edges, second) >= threshold
            inside |= middle < 0
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        # The event has to be closed under raising x.
        self.tops = np.maximum.accumulate(low)

    def probability(self, p: Floats, q: Floats) -> Floats:
        """Return the probability of the event for p and q, elementwise."""
        first, second = self.counts.n_first, self.counts.n_second
        # Sum over the steps of the boundary: cells above edges[j-1] gain the
        # probability P(tops[j-1] < y <= tops[j]).
        steps = np.flatnonzero(np.diff(self.tops, prepend=-1.0))
        if not len(steps):
            return np.zeros_like(p)
        below = np.append(-1.0, self.edges)[steps]
        above = bdtrc(np.maximum(below, 0), first, p[:, None])
        above = np.where(below >= 0, above, 1.0)
        reached = bdtr(np.minimum(self.tops[steps], second), second, q[:, None])
        return np.asarray(np.sum(above * np.diff(reached, axis=1, prepend=0.0), axis=1))

    def supremum(self, enough: float) -> float:
        """Return an upper bound on the probability over the range of q.

        Args:
            enough: The refinement stops once it is certain whether the bound is above
                or below this number. 0 refines it fully.
        """
        least, most = np.arcsin(np.sqrt(self.range))
        angles = np.linspace(least, most, LIMITS.nuisance_intervals + 1)
        left, right, settled = angles[:-1], angles[1:], 0.0
        for round_ in range(LIMITS.nuisance_rounds + 1):
            # The ends of an interval are moved outwards by more than the sine's
            # rounding.
            low = np.sin(left) ** 2 * (1 - ROUNDING)
            high = np.minimum(1.0, np.sin(right) ** 2 * (1 + ROUNDING))
            upper = self.probability(self.curve.largest_p(high, self.level), low)
            lower = self.probability(self.curve.largest_p(low, self.level), high)
            certain = max(enough, float(np.max(lower)))
            # Only an interval whose bound exceeds what is certain can raise the
            # supremum.
            is_open = upper > certain
            settled = max([settled, *upper[~is_open]])
            is_last = round_ == LIMITS.nuisance_rounds
            if is_last or not np.any(is_open) or (certain > enough > 0):
                break
            parts = np.linspace(left[is_open], right[is_open], 5)
            left, right = parts[:-1].ravel(), parts[1:].ravel()
        return float(max([settled, *upper[is_open]]))


def clopper_pearson(counts: Counts, curve: Curve, alpha: float) -> float:
    """Return the largest level refuted by limits on P(A) and Q(A), each at alpha/2.

    Null: the pair meets the curve at level t. Let p, q be the true probabilities. With
    probability at least 1 - alpha both p_lo <= p and q_hi >= q; then p_lo <= p <=
    F_t(q) <= F_t(q_hi), so level t allows (p_lo, q_hi), and the bound, which is the
    infimum of the levels that do, is at most t. It holds for any delta. F also bounds
    the complement of the event, so the complement needs no test of its own.

    The event must have been chosen without looking at these outputs.
    """
    low = lower_limit(counts.first, counts.n_first, alpha / 2)
    high = upper_limit(counts.second, counts.n_second, alpha / 2)
    return float(curve.level(float(low), float(high)))


def dkw(first: Floats, second: Floats, curve: Curve, alpha: float) -> float:
    """Return the largest level refuted by any threshold, for all thresholds at once.

    Null: the pair meets the curve at level t. By Massart's inequality, with probability
    at least 1 - alpha/2 each, P(s >= x) >= (share of first at or above x) -
    sqrt(ln(2/alpha)/(2n)) for every x, and Q(s >= x) is bounded from above in the same
    way. From there on the proof is that of ``clopper_pearson``, for every x at once, so
    the threshold may be chosen on the same data. The bound misses events that are rarer
    than the margin.

    Args:
        first: Scores of independent outputs of the first input, shape (n,); larger is
            more like the first input.
        second: Scores of independent outputs of the second input, shape (m,).
        curve: The family of claims.
        alpha: The error probability.
    """
    # Between two scores of the first input, the bound is largest at the upper one.
    thresholds = np.unique(first)
    p, q = (
        1 - np.searchsorted(np.sort(scores), thresholds) / len(scores)
        for scores in (first, second)
    )
    margin = np.sqrt(np.log(2 / alpha) / 2 / np.array([len(first), len(second)]))
    lowest, highest = np.maximum(0.0, p - margin[0]), np.minimum(1.0, q + margin[1])
    return float(np.max(curve.level(lowest, highest)))


def learning_part(labels: Labels, share: float, rng: np.random.Generator) -> Booleans:
    """Return a mask of random rows, on which the event is chosen.

    It has the fraction ``share`` of the rows of each label, and at least one of each.
    """
    chosen = np.zeros(len(labels), dtype=bool)
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(labels == label))
        chosen[rows[: max(1, round(share * len(rows)))]] = True
    return chosen


def event_counts(scores: Floats, labels: Labels, threshold: float) -> Counts:
    """Return the counts of the event that the score is at least the threshold.

    Rows with label 1 are outputs of the first input, those with 0 of the second.
    """
    above = scores >= threshold
    first, second = above[labels == 1], above[labels == 0]
    return Counts(int(np.sum(first)), len(first), int(np.sum(second)), len(second))


def best_threshold(scores: Floats, labels: Labels, curve: Curve) -> float:
    """Return the threshold with the largest Clopper-Pearson bound at alpha = 0.1.

    Bounds are compared rather than estimates, because the largest of many estimates is
    often the one of a rare event, by chance. Thresholds with equal bounds are compared
    by the level that the event's rates refute, with half a count added to each.

    Args:
        scores: Shape (n,), larger for rows that are more like label 1.
        labels: Shape (n,); both labels are present.
        curve: The family of claims.
    """
    shares = np.linspace(0, 1, LIMITS.event_thresholds + 1)[1:]
    candidates = np.unique(np.quantile(scores, shares, method="inverted_cdf"))

    def promise(threshold: float) -> tuple[float, float]:
        counts = event_counts(scores, labels, threshold)
        first = (counts.first + 0.5) / (counts.n_first + 1)
        second = (counts.second + 0.5) / (counts.n_second + 1)
        estimate = float(curve.level(first, second))
        return clopper_pearson(counts, curve, 0.1), estimate

    return float(max(candidates, key=lambda threshold: promise(float(threshold))))


def learned_scores(
    outputs: Floats, labels: Labels, learning: Booleans, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return a score of each learning row and of each testing row.

    The score is the log-odds of label 1 by gradient-boosted trees (scikit-learn),
    fitted to the learning rows. A learning row's own score is from a model fitted to
    other rows.

    Args:
        outputs: Shape (n, features).
        labels: Shape (n,).
        learning: Mask of the rows that may be learned from, shape (n,).
        rng: Generator for the five folds of the learning rows.

    Returns:
        The scores of the learning rows and of the testing rows, each in the order of
        the rows.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    features, target = outputs[learning], labels[learning]
    leaf = max(5, min(50, len(target) // 20))
    model = HistGradientBoostingClassifier(
        max_iter=50, min_samples_leaf=leaf, early_stopping=False, random_state=0
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=int(rng.integers(2**31)))
    with one_thread():
        held_out = cross_val_predict(
            model, features, target, cv=folds, method="decision_function"
        )
        model.fit(features, target)
        return held_out, model.decision_function(outputs[~learning])
