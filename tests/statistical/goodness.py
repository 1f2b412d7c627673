"""Is a sampler right? Chi-square tests of its outputs against the law that it states.

The null hypothesis is that the sampler is right, its runs are independent and their number is fixed. Then ``check`` fails
with probability ALPHA, as far as the statistic has the law of chi-square: to that end cells are pooled, the rarest first,
until LEAST_EXPECTED are expected in each. What the law rules out fails whatever else is seen.
"""

import numpy as np
from scipy import stats

from auditdp.mechanism.laws import row_keys

ALPHA = 1e-6
LEAST_EXPECTED = 20


def check(p_value, what):
    assert p_value > ALPHA, f"{what}: p-value {p_value:.2g}, alpha={ALPHA:g}"


def goodness_p(outputs, law):
    """P-value of outputs under a finite law; 0 where it does not list one of them."""
    places = [law.index.get(key, -1) for key in row_keys(outputs)]
    return (
        0.0
        if min(places) < 0
        else chi_square_p(np.bincount(places, minlength=len(law.floats)), law.floats)
    )


def follows(outputs, law, what):
    """Check outputs against a finite law, which has to list every one of them."""
    assert law.index.keys() >= set(row_keys(outputs)), (
        f"{what}: an output that the law does not list"
    )
    check(goodness_p(outputs, law), what)


def chi_square_p(counts, probabilities):
    """P-value of counts in cells of known probabilities; 0 where something is seen in a cell of probability 0."""
    counts, probabilities = np.asarray(counts), np.asarray(probabilities)
    if counts[probabilities == 0].any():
        return 0.0
    order = np.argsort(probabilities, kind="stable")
    expected = probabilities[order] * counts.sum()
    label, total = [0], 0.0
    for here in expected[:-1]:
        total += here
        full = total >= LEAST_EXPECTED
        label.append(label[-1] + full)
        total = 0.0 if full else total
    wanted, seen = np.bincount(label, expected), np.bincount(label, counts[order])
    return stats.chi2.sf(((seen - wanted) ** 2 / wanted).sum(), max(len(wanted) - 1, 1))
