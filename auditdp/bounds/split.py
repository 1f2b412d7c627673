"""Choosing an event on one part of the outputs, so that the rest can test it.

Everything here is a choice: it may cost power, never validity, as the outputs that test the event had no part in it.
"""

from __future__ import annotations

import numpy as np

from auditdp.bounds.curves import Curve
from auditdp.bounds.intervals import Counts, clopper_pearson
from auditdp.numerics.arrays import Booleans, Floats, Labels
from auditdp.numerics.threads import one_thread

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
    return Counts(int(np.sum(first >= threshold)), len(first), int(np.sum(second >= threshold)), len(second))


def best_threshold(scores: Floats, labels: Labels, curve: Curve) -> float:
    """Return the threshold with the largest Clopper-Pearson bound at error probability ``CAUTION``.

    A bound rather than an estimate, as the largest of many estimates is that of a rare event by luck. Where no bound is
    above 0, it is the threshold whose probabilities, estimated with a pseudo-count, allow the highest level.

    Scores are of shape (n,), larger for what is more like label 1; both labels are present.
    """
    candidates = np.unique(np.quantile(scores, np.linspace(0, 1, THRESHOLDS + 1)[1:], method="inverted_cdf"))

    def promise(threshold: float) -> tuple[float, float]:
        counts = event_counts(scores, labels, threshold)
        first, second = (counts.first + 0.5) / (counts.n_first + 1), (counts.second + 0.5) / (counts.n_second + 1)
        return clopper_pearson(counts, curve, CAUTION), float(curve.level(first, second))

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
    model = HistGradientBoostingClassifier(max_iter=50, min_samples_leaf=leaf, early_stopping=False, random_state=0)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    with one_thread():
        held_out = cross_val_predict(model, features, target, cv=folds, method="decision_function")
        return held_out, model.fit(features, target).decision_function(outputs[~learning])
