"""Goodness of fit of a sampler's outputs to the law that is stated of them.

The null hypothesis is that the sampler is right, its runs are independent and their
number is fixed. Then ``check`` fails with probability ALPHA, as far as a chi-square
statistic has the law of chi-square: to that end cells are pooled, the rarest first,
until LEAST_EXPECTED are expected in each. An output that the law rules out fails
whatever else was drawn.
"""

import numpy as np
from scipy import stats

from auditdp.mechanism.laws import FiniteLaw, GaussianLaw, LaplaceLaw, StepLaw, row_keys

ALPHA = 1e-6
LEAST_EXPECTED = 20
SIGNS = 6
"""The number of coordinates whose joint signs are counted."""
STEP_CELLS = 60


def check(p_value, what):
    assert p_value > ALPHA, f"{what}: p-value {p_value:.2g}, alpha={ALPHA:g}"


def chi_square_p(counts, probabilities):
    """P-value of counts in cells of known probabilities.

    It is 0 for a count in a cell of probability 0.
    """
    counts = np.asarray(counts)
    probabilities = np.asarray(probabilities)
    if counts[probabilities == 0].any():
        return 0.0
    order = np.argsort(probabilities, kind="stable")
    expected = probabilities[order] * counts.sum()
    label = [0]
    total = 0.0
    for here in expected[:-1]:
        total += here
        full = total >= LEAST_EXPECTED
        label.append(label[-1] + full)
        total = 0.0 if full else total
    wanted = np.bincount(label, expected)
    found = np.bincount(label, counts[order])
    statistic = ((found - wanted) ** 2 / wanted).sum()
    return stats.chi2.sf(statistic, max(len(wanted) - 1, 1))


def goodness_p(outputs, law):
    """Return the p-value of outputs under a law, or under a distribution function."""
    if isinstance(law, FiniteLaw):
        return finite_p(outputs, law)
    if isinstance(law, StepLaw):
        return step_p(outputs, law)
    if isinstance(law, LaplaceLaw):
        return vector_p((outputs - law.location) / law.scale, stats.laplace.cdf)
    if isinstance(law, GaussianLaw):
        flat = outputs.reshape(len(outputs), -1)
        return vector_p((flat - law.location) / law.sigma, stats.norm.cdf)
    return stats.kstest(np.ravel(outputs), law).pvalue


def finite_p(outputs, law):
    places = [law.index.get(key, -1) for key in row_keys(outputs)]
    if min(places) < 0:
        return 0.0
    return chi_square_p(np.bincount(places, minlength=len(law.floats)), law.floats)


def step_p(outputs, law):
    """Cells that cover all steps, and one cell an atom."""
    atoms = np.array([float(y) for y in law.points])
    mass = np.array([float(p) for p in law.points.values()])
    at_atom = np.isin(outputs, atoms)
    counts = [np.sum(outputs == y) for y in atoms]
    probabilities = list(mass)
    ends = [float(end) for end in law.ends]
    if ends:
        edges = np.unique(np.r_[np.linspace(ends[0], ends[-1], STEP_CELLS), ends])
        below = law.cdf(edges) - (edges[:, None] >= atoms) @ mass
        counts = [*counts, *np.histogram(outputs[~at_atom], edges)[0]]
        probabilities = [*probabilities, *np.diff(below)]
    if sum(counts) < len(outputs):
        return 0.0
    return chi_square_p(counts, probabilities)


def vector_p(standard, cdf):
    """Each coordinate has the distribution function, and joint signs are fair coins."""
    standard = standard.reshape(len(standard), -1)
    found = [stats.kstest(column, cdf).pvalue for column in standard.T]
    signs = standard[:, :SIGNS] > 0
    codes = signs @ (1 << np.arange(signs.shape[1]))
    counts = np.bincount(codes, minlength=1 << signs.shape[1])
    found.append(chi_square_p(counts, np.full(len(counts), 1 / len(counts))))
    return min(found) * len(found)


def follows(outputs, law, what):
    check(goodness_p(outputs, law), what)
