"""The exact unconditional test of two binomial counts against the claim that P(A) <= F(Q(A)).

**Statistic.** With kl⁺ the binomial divergence kl(a‖p) where the data lie on the wrong side of the null and 0 elsewhere,

    T(x, y) = min over q of  n kl⁺(x/n ‖ F(q)) + m kl⁺(q ‖ y/m),   kl⁺(a‖p): a > p,   kl⁺(q‖c) = kl(c‖q): c < q,

half the squared signed root of the likelihood ratio. Each term grows with x and falls with y, so T does.

**Nuisance.** {T >= t} is therefore closed under raising x and lowering y, so its probability grows with p = P(A) and
falls with q = Q(A): over the null p <= F(q) it is largest on the boundary p = F(q), and on an interval of boundary
points it is at most its value at (F(q_high), q_low). The supremum over q is bounded from above by splitting intervals
until that is precise enough: never a grid of points with hope in between.

**Range of q.** Let C be the Clopper-Pearson interval of q at confidence 1 - γ from y. Then γ + sup over C is a valid
p-value (Berger & Boos 1994, "P values maximized over a confidence set for the nuisance parameter"): with p(q) the
p-value at the true q, P(γ + sup over C <= α) <= P(q not in C) + P(p(q) <= α - γ) <= α.

**Large counts.** Where there are more values of x than ``CELLS`` they are taken together, each cell with every y that
any of its members has: this enlarges the event whose probability is bounded.

**Closed form.** T <= T₁ + T₂, the two terms at the true (p, q), and by Chernoff P(T_i >= s) <= e^-s each; so
P(T >= t) <= (1 + t) e^-t. It falls with t, hence grows with the level, whose nulls are nested. As it bounds the
p-value of every q, min(closed form, sup over C) + γ is valid as well.

Source: Barnard (1947), "Significance tests for 2x2 tables", for the unconditional test; the statistic for a general
trade-off curve and the interval bound are proved above.

Bounds from confidence limits on the two probabilities of an event: what readers of the literature know.

Both are conservative: they pay for two simultaneous limits where the claim is about one comparison. For two arms of 150
and a tight claim, Clopper-Pearson refutes some ten times more rarely than its alpha allows.

Choosing an event on one part of the outputs, so that the rest can test it.

Everything here is a choice: it may cost power, never validity, as the outputs that test the event had no part in it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, rel_entr

from auditdp.bounds.bound_levels import highest_chain
from auditdp.bounds.privacy_curves import Curve
from auditdp.bounds.result import Answer
from auditdp.numerics.arrays import Booleans, Floats, Labels
from auditdp.numerics.binomial import lower_limit, upper_limit
from auditdp.numerics.streams import one_thread

SOURCE = (
    "Barnard (1947), 'Significance tests for 2x2 tables', with the likelihood ratio as statistic and the nuisance "
    "maximised over a confidence set: Berger & Boos (1994)"
)
GAMMA = 1e-9
CELLS = 512
INTERVALS = 64
ROUNDS = 3
GOLDEN = 40
SLACK = 1e-7
ROUNDING = 1e-12


def exact(counts: Counts, curve: Curve, alpha: float, claim: float | None) -> Answer:
    """Return the largest level that is refuted with all below it, and the p-value of the claim.

    The event must have been chosen without looking at these outputs.
    """
    lower = highest_chain(
        lambda level, enough: p_value(counts, curve, level, enough),
        lambda level: (
            GAMMA
            + ROUNDING
            + _closed_form(statistic(counts, curve, level) * (1 - SLACK))
        ),
        alpha=alpha,
        claim=claim,
        n=counts.n_first + counts.n_second,
    )
    return Answer(lower, None if claim is None else p_value(counts, curve, claim, 0.0))


def p_value(counts: Counts, curve: Curve, level: float, enough: float) -> float:
    """Return an upper bound on the p-value of the claim at this level.

    It is sharpened until it is known on which side of ``enough`` it is; 0 sharpens it fully.
    """
    observed = statistic(counts, curve, level)
    if observed <= SLACK:
        return 1.0
    region = _Region(counts, curve, level, observed * (1 - SLACK))
    return min(
        1.0,
        GAMMA
        + ROUNDING
        + min(_closed_form(observed * (1 - SLACK)), region.supremum(enough - GAMMA)),
    )


def _closed_form(largest: float) -> float:
    return (1 + largest) * math.exp(-largest)


def _kl(a: Floats, p: Floats) -> Floats:
    return np.asarray(rel_entr(a, p) + rel_entr(1 - a, 1 - p))


def statistic(counts: Counts, curve: Curve, level: float) -> float:
    """Return T of the two counts: 0 where the claim at that level allows the rates that were seen."""
    return float(
        _divergence(
            counts, curve, level, np.array([counts.first]), np.array([counts.second])
        )[0]
    )


def _divergence(
    counts: Counts,
    curve: Curve,
    level: float,
    first: NDArray[Any],
    second: NDArray[Any],
) -> Floats:
    """Return T, elementwise, by golden-section search: both terms are convex in q, as F is concave."""
    a, c = first / counts.n_first, second / counts.n_second
    # Outside [c, F⁻¹(a)] one term is zero and the other not smaller than at the end.
    low, high = c, np.maximum(c, curve.least(a, level))

    def total(q: Floats) -> Floats:
        p = np.minimum(curve.most(q, level), a)
        return counts.n_first * _kl(a, p) + counts.n_second * _kl(c, q)

    ratio = (np.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = total(left), total(right)
    for _ in range(GOLDEN):
        goes_left = at_left <= at_right
        low, high = np.where(goes_left, low, left), np.where(goes_left, right, high)
        new = np.where(
            goes_left, high - ratio * (high - low), low + ratio * (high - low)
        )
        at_new = total(new)
        left, right = np.where(goes_left, new, right), np.where(goes_left, left, new)
        at_left, at_right = (
            np.where(goes_left, at_new, at_right),
            np.where(goes_left, at_left, at_new),
        )
    return np.where(a > curve.most(c, level), np.minimum(at_left, at_right), 0.0)


class _Region:
    """The event {T >= t}, or a slightly larger one, and its probability over the boundary of the null.

    For counts x in a cell (edges[j-1], edges[j]] the event is y <= tops[j], which is right at the cell's upper edge and
    too large below it.
    """

    def __init__(
        self, counts: Counts, curve: Curve, level: float, threshold: float
    ) -> None:
        from scipy.stats import binom  # slow to load: only where it is needed

        self.counts, self.curve, self.level = counts, curve, level
        at = counts.second, counts.n_second, GAMMA / 2
        self.range = least, most = float(lower_limit(*at)), float(upper_limit(*at))
        lowest = int(binom.ppf(ROUNDING, counts.n_first, curve.most(least, level))) - 1
        highest = int(binom.isf(ROUNDING, counts.n_first, curve.most(most, level)))
        edges = np.linspace(max(0, lowest), max(0, min(counts.n_first, highest)), CELLS)
        self.edges = np.unique(np.append(np.round(edges), counts.n_first))
        low, high = (
            np.full(self.edges.shape, -1.0),
            np.full(self.edges.shape, float(counts.n_second)),
        )
        while np.any(high - low > 1):  # T falls with y, and is 0 at y = n_second
            middle = np.floor((low + high) / 2)
            inside = (
                _divergence(counts, curve, level, self.edges, np.maximum(middle, 0.0))
                >= threshold
            )
            inside |= middle < 0
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        self.tops = np.maximum.accumulate(low)

    def probability(self, p: Floats, q: Floats) -> Floats:
        """Return P(y <= top(x)) for x ~ Bin(n_first, p) and y ~ Bin(n_second, q), elementwise."""
        first, second = self.counts.n_first, self.counts.n_second
        # Sum over the steps of the boundary: the cells above edges[j-1] gain P(tops[j-1] < y <= tops[j]).
        steps = np.flatnonzero(np.diff(self.tops, prepend=-1.0))
        if not len(steps):
            return np.zeros_like(p)
        below = np.append(-1.0, self.edges)[steps]
        above = np.where(
            below >= 0, bdtrc(np.maximum(below, 0), first, p[:, None]), 1.0
        )
        reached = bdtr(np.minimum(self.tops[steps], second), second, q[:, None])
        return np.asarray(np.sum(above * np.diff(reached, axis=1, prepend=0.0), axis=1))

    def supremum(self, enough: float) -> float:
        """Return an upper bound on the probability over all boundary points in the range of q."""
        least, most = self.range
        angles = np.linspace(
            np.arcsin(np.sqrt(least)), np.arcsin(np.sqrt(most)), INTERVALS + 1
        )
        left, right, settled = angles[:-1], angles[1:], 0.0
        for round_ in range(ROUNDS + 1):
            low, high = np.sin(left) ** 2, np.sin(right) ** 2
            # The ends of an interval are moved outwards by more than the sine's rounding.
            low, high = low * (1 - ROUNDING), np.minimum(1.0, high * (1 + ROUNDING))
            upper = self.probability(self.curve.most(high, self.level), low)
            certain = max(
                enough,
                float(np.max(self.probability(self.curve.most(low, self.level), high))),
            )
            open_ = upper > certain
            settled = max([settled, *upper[~open_]])
            if round_ == ROUNDS or not np.any(open_) or (certain > enough > 0):
                break
            left, right = left[open_], right[open_]
            parts = np.linspace(left, right, 5)
            left, right = parts[:-1].ravel(), parts[1:].ravel()
        return float(max([settled, *upper[open_]]))


CLOPPER_PEARSON = (
    "Clopper & Pearson (1934), 'The use of confidence or fiducial limits illustrated in the case of the binomial', with "
    "alpha/2 for each arm"
)
DKW = (
    "Massart (1990), 'The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality', Theorem 1, one-sided, with "
    "alpha/2 for each arm"
)


class Counts(NamedTuple):
    """How often an event occurred: ``first`` of ``n_first`` outputs of one input, ``second`` of ``n_second``."""

    first: int
    n_first: int
    second: int
    n_second: int

    def __str__(self) -> str:
        return f"the event in {self.first} of {self.n_first} first and {self.second} of {self.n_second} second outputs"


def clopper_pearson(counts: Counts, curve: Curve, alpha: float) -> float:
    """Return the level refuted by the lower limit on P(A) and the upper limit on Q(A), each at alpha/2.

    Null: the pair meets the curve at level t. Let p, q be the true probabilities. With probability at least
    1 - alpha both p_lo <= p and q_hi >= q; then p_lo <= p <= F_t(q) <= F_t(q_hi), so level t allows (p_lo, q_hi), and
    the bound, which is the infimum of the levels that do, is at most t. Any delta; it also covers the complement.

    The event must have been chosen without looking at these outputs.
    """
    low = lower_limit(counts.first, counts.n_first, alpha / 2)
    high = upper_limit(counts.second, counts.n_second, alpha / 2)
    return float(curve.level(float(low), float(high)))


def dkw(first: Floats, second: Floats, curve: Curve, alpha: float) -> float:
    """Return the largest level that is refuted by any threshold on a score, for all thresholds at once.

    Null: the pair meets the curve at level t. By Massart's inequality, with probability at least 1 - alpha/2 each,
    P(s >= x) >= (share of first at or above x) - sqrt(ln(2/alpha)/(2n)) for every x, and Q(s >= x) is bounded from above
    in the same way. From there on the proof is that of ``clopper_pearson``, for every x at once, so the threshold may
    be chosen on the same data. Blind to events that are rarer than the margin.
    Scores are those of independent outputs, larger for what is more like the first input.
    """
    thresholds = np.unique(first)
    p = 1 - np.searchsorted(np.sort(first), thresholds) / len(first)
    q = 1 - np.searchsorted(np.sort(second), thresholds) / len(second)
    margin = np.sqrt(np.log(2 / alpha) / 2 / np.array([len(first), len(second)]))
    return float(
        np.max(
            curve.level(np.maximum(0.0, p - margin[0]), np.minimum(1.0, q + margin[1]))
        )
    )


THRESHOLDS = 200
CAUTION = 0.1
FOLDS = 5


def learning_part(labels: Labels, share: float, rng: np.random.Generator) -> Booleans:
    """Return which rows the event is chosen on: the same random share of either label, shape (n,)."""
    chosen = np.zeros(len(labels), dtype=bool)
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(labels == label))
        chosen[rows[: max(1, round(share * len(rows)))]] = True
    return chosen


def event_counts(scores: Floats, labels: Labels, threshold: float) -> Counts:
    """Return how often the score is at least the threshold under either label."""
    first, second = scores[labels == 1], scores[labels == 0]
    return Counts(
        int(np.sum(first >= threshold)),
        len(first),
        int(np.sum(second >= threshold)),
        len(second),
    )


def best_threshold(scores: Floats, labels: Labels, curve: Curve) -> float:
    """Return the threshold with the largest Clopper-Pearson bound at error probability ``CAUTION``.

    A bound rather than an estimate, as the largest of many estimates is that of a rare event by luck. Where no bound is
    above 0, it is the threshold whose probabilities, estimated with a pseudo-count, allow the highest level.

    Scores are of shape (n,), larger for what is more like label 1; both labels are present.
    """
    candidates = np.unique(
        np.quantile(
            scores, np.linspace(0, 1, THRESHOLDS + 1)[1:], method="inverted_cdf"
        )
    )

    def promise(threshold: float) -> tuple[float, float]:
        counts = event_counts(scores, labels, threshold)
        first, second = (
            (counts.first + 0.5) / (counts.n_first + 1),
            (counts.second + 0.5) / (counts.n_second + 1),
        )
        return clopper_pearson(counts, curve, CAUTION), float(
            curve.level(first, second)
        )

    return float(max(candidates, key=lambda threshold: promise(float(threshold))))


def learned_scores(
    outputs: Floats, labels: Labels, learning: Booleans, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return a score of each learning row, from a model that has not seen it, and of each testing row.

    The score is the log-odds of label 1 by gradient-boosted trees (scikit-learn), fitted to the learning rows.

    Outputs are of shape (n, features); the rows that may be learned from are of shape (n,).
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    features, target = outputs[learning], labels[learning]
    leaf = max(5, min(50, len(target) // 20))
    model = HistGradientBoostingClassifier(
        max_iter=50, min_samples_leaf=leaf, early_stopping=False, random_state=0
    )
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    with one_thread():
        held_out = cross_val_predict(
            model, features, target, cv=folds, method="decision_function"
        )
        return held_out, model.fit(features, target).decision_function(
            outputs[~learning]
        )
