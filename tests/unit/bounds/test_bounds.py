"""Bounds from counts, scores and outputs.

Known values with their source, and oracles that count everything.
"""

import itertools
from dataclasses import replace
from math import inf, log, nan, sqrt

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.special import expit, xlogy
from scipy.stats import binom, binomtest
from statsmodels.stats.proportion import proportion_confint

from auditdp import PureDP
from auditdp.bounds import (
    METHODS,
    Bound,
    api,
    from_counts,
    from_guesses,
    from_labelled_guesses,
    from_outputs,
    from_scores,
    methods,
    one_event,
    stated_assumptions,
    thresholds,
)
from auditdp.bounds.one_event import Counts
from auditdp.bounds.privacy_curves import EpsilonDelta, Gaussian
from auditdp.bounds.result import LIMITS, Question
from auditdp.errors import ConfigurationError

every_curve = pytest.mark.parametrize(
    "curve", [EpsilonDelta(), EpsilonDelta(0.05), Gaussian()]
)


def divergence_of(share, p):
    """The binomial divergence kl(share | p)."""
    inside = xlogy(share, share / p)
    outside = xlogy(1 - share, (1 - share) / (1 - p))
    return inside + outside


# Counts of an event.


@every_curve
@pytest.mark.parametrize(("first", "second"), [(110, 40), (140, 100)])
def test_clopper_pearson_is_that_of_statsmodels(curve, first, second):
    """The bound from the event, or the one from its complement."""
    low, _ = proportion_confint(first, 150, alpha=0.05, method="beta")
    _, high = proportion_confint(second, 150, alpha=0.05, method="beta")
    expected = max(curve.level(low, high), curve.level(1 - high, 1 - low))
    counts = Counts(first, 150, second, 150)
    found = one_event.clopper_pearson(counts, curve, 0.05)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("method", ["exact", "clopper-pearson"])
@pytest.mark.parametrize(("first", "second"), [(0, 0), (50, 50), (5, 40)])
def test_no_difference_gives_no_bound(method, first, second):
    found = from_counts(first, 50, second, 50, method=method, claim=0.1)
    assert found.lower == 0
    assert not found.refuted
    assert "nothing above epsilon = 0" in found.statement


@every_curve
def test_the_statistic_is_the_smallest_divergence_from_the_claim(curve):
    """Against a grid of 200,001 boundary points.

    It is 0 if the estimate itself keeps the claim.
    """
    q = np.linspace(1e-9, 1 - 1e-9, 200_001)
    p = curve.largest_p(q, 0.8)
    p = np.clip(p, 1e-300, 1 - 1e-15)
    for x, y in [(30, 9), (40, 5), (20, 0)]:
        divergence = 40 * divergence_of(x / 40, p)
        divergence += 50 * divergence_of(y / 50, q)
        found = one_event.statistic(Counts(x, 40, y, 50), curve, 0.8)
        assert found == pytest.approx(divergence.min(), rel=1e-5)
    assert one_event.statistic(Counts(10, 40, 9, 50), curve, 0.8) == 0


@every_curve
def test_the_exact_p_value_is_the_largest_over_the_boundary(curve):
    """Counts every table at 4,001 values of the nuisance.

    The p-value is above all of them and hardly above the largest, and the test ends
    early on the right side of alpha.
    """
    n = 14
    m = 11
    level = 0.7
    statistic = np.zeros((n + 1, m + 1))
    for x, y in np.ndindex(statistic.shape):
        statistic[x, y] = one_event.statistic(Counts(x, n, y, m), curve, level)
    q = np.linspace(0, 1, 4001)
    p = curve.largest_p(q, level)
    first = binom.pmf(np.arange(n + 1)[:, None], n, p)
    second = binom.pmf(np.arange(m + 1)[:, None], m, q)
    for x, y in [(7, 0), (10, 2), (14, 3), (14, 6), (12, 0)]:
        extreme = statistic >= statistic[x, y] * (1 - 1e-9)
        largest = np.einsum("ij,ik,jk->k", extreme * 1.0, first, second).max()
        counts = Counts(x, n, y, m)
        found = one_event.p_value(counts, curve, level, 0.0)
        assert largest <= found <= 1.03 * largest + 2e-9, (x, y)
        early = one_event.p_value(counts, curve, level, 0.05)
        assert (early <= 0.05) == (found <= 0.05)


def test_cells_of_counts_only_raise_the_p_value(monkeypatch):
    counts = Counts(380, 600, 200, 600)
    fine = one_event.p_value(counts, EpsilonDelta(), 0.55, 0.0)
    monkeypatch.setattr(one_event, "LIMITS", replace(LIMITS, count_cells=60))
    coarse = one_event.p_value(counts, EpsilonDelta(), 0.55, 0.0)
    assert fine < coarse < 1.3 * fine


@every_curve
def test_dkw_is_the_largest_over_all_thresholds(curve):
    rng = default_rng(0)
    first = rng.normal(1.5, 1, 300)
    second = rng.normal(0, 1, 200)
    a, b = (sqrt(log(2 / 0.05) / 2 / n) for n in (300, 200))
    levels = []
    for threshold in first:
        p = np.mean(first >= threshold) - a
        q = np.mean(second >= threshold) + b
        levels.append(curve.level(max(0, p), min(1, q)))
    found = one_event.dkw(first, second, curve, 0.05)
    assert found == pytest.approx(max(levels))


# The scan.


def largest_divergence(right, sizes, q):
    """The largest k kl(V/k | q) of the sets of which more than q are right."""
    share = right / sizes
    divergence = sizes * divergence_of(share, q)
    return np.where(share > q, divergence, 0.0).max()


@pytest.mark.parametrize("epsilon", [0.0, 1.5])
@pytest.mark.parametrize("sizes", [range(1, 11), [2, 3, 7, 11], [11]])
def test_the_law_of_the_scan_is_exact(sizes, epsilon):
    """P(S >= s) over all outcomes of independent guesses."""
    sizes = np.array(sizes)
    q = float(expit(epsilon))
    outcomes = list(itertools.product((0, 1), repeat=int(sizes[-1])))
    chances = np.prod(np.where(outcomes, q, 1 - q), axis=1)
    rights = np.cumsum(outcomes, axis=1)[:, sizes - 1]
    statistics = np.array([largest_divergence(right, sizes, q) for right in rights])
    for k in (-1, -2, len(outcomes) // 2, 5):
        extreme = statistics >= statistics[k] * (1 - 1e-9)
        expected = chances[extreme].sum() if statistics[k] > 0 else 1.0
        sets = thresholds.Sets(sizes, rights[k], sizes[-1])
        found = thresholds.p_value(sets, epsilon)
        assert found == pytest.approx(expected, rel=1e-8)
        assert found >= expected * (1 - 1e-12)


@pytest.mark.parametrize(
    ("guess", "sizes", "right"),
    [
        ("both", [2, 4, 5, 7], [2, 3, 4, 5]),
        ("in", [1, 2, 4, 5, 6, 7], [1, 2, 3, 3, 4, 4]),
        ("out", [1, 2, 3, 5, 6, 7], [1, 1, 2, 3, 3, 3]),
    ],
)
def test_nested_sets_by_hand(guess, sizes, right):
    """Scores 9 8 7 7 | 3 2 1 with labels 1 1 0 1 | 0 1 0, in any order.

    The cut nearest to the middle is after four.
    """
    scores = np.array([9.0, 8, 7, 7, 3, 2, 1])
    labels = np.array([1, 1, 0, 1, 0, 1, 0], dtype=np.int8)
    for order in (np.argsort(labels), np.argsort(-labels)):
        found = thresholds.nested_sets(scores[order], labels[order], guess)
        assert found.sizes.tolist() == sizes
        assert found.right.tolist() == right


@pytest.mark.parametrize(
    ("guess", "numbers", "right"),
    [
        ("in", [1, 3, 6], [1, 2, 3]),
        ("out", [1, 3, 6], [1, 2, 3]),
        ("both", [1, 2, 6], [1, 2, 4]),
    ],
)
def test_right_guesses_by_hand(guess, numbers, right):
    labels = np.array([1, 1, 0, 1, 0, 0])
    found = [thresholds.right_guesses(labels, number, guess) for number in numbers]
    assert found == right


def test_the_number_of_sets_has_a_limit():
    rng = default_rng(3)
    labels = rng.integers(0, 2, 50_000).astype(np.int8)
    sets = thresholds.nested_sets(rng.random(50_000), labels, "both")
    assert len(sets.sizes) <= LIMITS.nested_sets
    assert sets.sizes[-1] >= 49_998


def test_equal_scores_are_guessed_in_random_order():
    """With the rows' own order every guess would be right.

    A difference of 50 is 7 standard deviations.
    """
    labels = np.repeat([1, 0], 500).astype(np.int8)
    order = thresholds.descending(np.zeros(1000), default_rng(0))
    right = thresholds.right_guesses(labels[order], 200, "both")
    assert abs(right - 100) < 50


# Outputs.


def test_the_learned_event_does_not_depend_on_the_testing_labels():
    rng = default_rng(4)
    outputs = rng.normal(size=(100, 2))
    labels = rng.integers(0, 2, 100).astype(np.int8)
    learning = one_event.learning_part(labels, 0.35, rng)
    changed = np.where(learning, labels, 1 - labels).astype(np.int8)
    one, other = (
        one_event.learned_scores(outputs, each, learning, default_rng(0))
        for each in (labels, changed)
    )
    assert np.array_equal(one[0], other[0])
    assert np.array_equal(one[1], other[1])


def test_the_learning_part_is_a_share_of_either_label():
    labels = np.repeat([0, 1], [100, 300]).astype(np.int8)
    learning = one_event.learning_part(labels, 0.2, default_rng(0))
    assert np.bincount(labels[learning]).tolist() == [20, 60]


def test_an_event_of_several_coordinates_is_learned():
    """No single coordinate shows it: the product of two signs.

    The truth is at least ln 2.
    """
    first, second = default_rng(5).normal(size=(2, 1000, 2))
    first[:, 1] = np.abs(first[:, 1]) * np.sign(first[:, 0])
    assert from_outputs(first, second).lower > 0.3
    assert from_outputs(second[:300], second[300:600]).lower < 0.3


def test_bets_refute_a_curve_that_no_single_event_refutes():
    """Three numbers that are 1-GDP together, against a claim of 0.5."""
    first, second = default_rng(0).normal(size=(2, 600, 3))
    first += 3**-0.5
    bound = from_outputs(first, second, parameter="mu", claim=0.5)
    assert bound.method == "bets"
    assert bound.n == 1_200
    assert bound.refuted
    assert 0.5 <= bound.lower < 1.0


@pytest.mark.dear
@pytest.mark.parametrize(("n_first", "n_second"), [(25, 400), (20, 20), (400, 25)])
def test_bets_use_no_recorded_output_twice(monkeypatch, n_first, n_second):
    used = {0: [], 1: []}
    call = stated_assumptions._Recorded.__call__

    def recorded(self, data, size, *, rng):
        outputs = call(self, data, size, rng=rng)
        used[data] += np.ravel(outputs).tolist()
        return outputs

    monkeypatch.setattr(stated_assumptions._Recorded, "__call__", recorded)
    first = np.arange(n_first, dtype=float)
    second = -1.0 - np.arange(n_second)
    from_outputs(first, second, method="bets", claim=1.0)
    for data, record in enumerate((second, first)):
        assert len(set(used[data])) == len(used[data])
        assert set(used[data]) <= set(record.tolist())


def test_bets_on_records_that_are_too_short_bound_nothing():
    question = Question(EpsilonDelta(), 0.05, 1.0)
    found = stated_assumptions.played(np.zeros(7), np.ones(7), question, seed=0)
    assert found == ((0.0, 1.0), 0)


# The functions that users call.


def test_statements():
    found = from_guesses(90, 100, delta=1e-5, claim=1.0)
    assert "is refuted (p <= " in found.statement
    assert "at delta = 1e-05" in found.statement
    assert "is not refuted (p <= " in from_guesses(60, 100, claim=1.0).statement
    mu = from_guesses(90, 100, parameter="mu")
    assert "not a bare (epsilon, delta) statement" in mu.statement
    text = str(from_guesses(90, 100))
    for part in ("90 of 100 guesses right", "fair coin", "arXiv:2305.08846v1"):
        assert part in text


def test_a_bound_survives_json():
    found = from_guesses(90, 100, delta=1e-5, claim=1.0)
    for bound in (found, replace(found, lower=inf, assumptions=[])):
        assert Bound.from_json(bound.to_json()) == bound


@pytest.mark.dear
@pytest.mark.parametrize("options", [{}, {"delta": 1e-5}, {"parameter": "mu"}])
@pytest.mark.parametrize("kind", sorted(api.KINDS, reverse=True))
def test_every_listed_method_works(kind, options):
    rng = default_rng(7)
    labels = rng.integers(0, 2, 120)
    scores = 2 * labels + rng.normal(size=120)
    calls = {
        "counts": (from_counts, [50, 60, 10, 60], {}),
        "guesses": (from_guesses, [90, 100], {"canaries": 120}),
        "outputs": (from_outputs, [scores[labels == 1], scores[labels == 0]], {}),
    }
    call, record, more = calls.get(kind, (from_scores, [scores, labels], {}))
    if call is from_scores:
        more = {"design": kind}
    for method in methods(kind, **options):
        found = call(*record, **options, **more, method=method, claim=0.1)
        assert found.method == method
        assert method in METHODS
        assert found.source
        assert found.assumptions
        assert found.refuted == (found.lower >= 0.1 * (1 - 1e-8))
        assert found.refuted == (found.p_value <= 0.05)


def test_several_numbers_of_guesses_share_alpha():
    rng = default_rng(8)
    labels = rng.integers(0, 2, 400)
    scores = labels + rng.normal(size=400)

    def bound(guesses, alpha):
        options = {"design": "one-run", "delta": 1e-5, "claim": 0.2}
        return from_scores(scores, labels, guesses=guesses, alpha=alpha, **options)

    together = bound([100, 200], 0.05)
    alone = [bound([n], 0.025) for n in (100, 200)]
    assert together.lower == max(each.lower for each in alone)
    smallest = min(each.p_value for each in alone)
    assert together.p_value == pytest.approx(min(1, 2 * smallest))


@pytest.mark.parametrize("design", ["coin", "one-run"])
@pytest.mark.parametrize("rows", [40, 5_000])
def test_labels_that_fair_coins_hardly_give_are_refused(design, rows):
    """A two-sided p-value of 1e-6 or less.

    The guesses and scores have no information.
    """
    most = next(k for k in range(rows // 2, rows) if binomtest(k, rows).pvalue <= 1e-6)
    guesses = np.arange(rows) % 3 == 0
    scores = np.sin(np.arange(rows))
    for call, record in ((from_labelled_guesses, guesses), (from_scores, scores)):
        for inside in (most, rows - most):
            labels = np.arange(rows) < inside
            with pytest.raises(ConfigurationError):
                call(record, labels, design=design)
        for inside in (most - 1, rows - most + 1):
            labels = np.arange(rows) < inside
            call(record, labels, design=design)


@pytest.mark.parametrize(
    ("share", "design"),
    [(0.5, "coin"), (0.5, "one-run"), (0.5, "arms"), (0.95, "arms")],
)
def test_guesses_without_information_bound_nothing(share, design):
    """Always 'in', always 'out', or by chance.

    A share of the 200 rows are members.
    """
    labels = np.arange(200) < 200 * share
    chance = default_rng(3).integers(0, 2, 200)
    some = np.where(chance, 1.0, nan)
    for guesses in (np.ones(200), np.zeros(200), some, chance):
        assert from_labelled_guesses(guesses, labels, design=design).lower == 0


def test_guesses_of_fixed_arms_are_counts_of_the_guess_in():
    labels = np.repeat([1, 0], [60, 140])
    wrong = np.arange(200) % 10 == 0
    guesses = np.where(wrong, 1 - labels, labels).astype(float)
    guesses[::7] = nan
    found = from_labelled_guesses(guesses, labels, design="arms", claim=1.0)
    first = int((guesses[:60] == 1).sum())
    second = int((guesses[60:] == 1).sum())
    expected = from_counts(first, 60, second, 140, claim=1.0)
    assert found.lower == expected.lower
    assert found.p_value == expected.p_value
    assert found.method == "exact"
    assert found.refuted


def counts(*numbers, **options):
    return lambda: from_counts(*(numbers or (1, 4, 0, 4)), **options)


def scores(scores=(3.0, 2, 1, 0), labels=(1, 1, 0, 0), design="coin", **options):
    return lambda: from_scores(scores, labels, design=design, **options)


def outputs(first, second, **options):
    return lambda: from_outputs(first, second, **options)


ZEROS = [0.0] * 30
ROWS = np.zeros((30, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (counts(5, 4, 0, 4), "0 <= first <= n_first .*first=5, n_first=4"),
        (counts(0, 0, 0, 4), "n_first > 0, .*first=0, n_first=0"),
        (counts(1.5, 4, 0, 4), "whole numbers.*1.5"),
        (counts(parameter="mu", delta=0.1), "delta=0.1 has no meaning for mu"),
        (counts(parameter="epsilom"), "did you mean 'epsilon'"),
        (counts(parameter=None), "unknown parameter None"),
        (counts(alpha=None), "expected alpha as a number, got None"),
        (lambda: from_guesses(0, 0, canaries=3), "none of 3 canaries was guessed"),
        (lambda: methods("score"), "unknown kind of record 'score'"),
        (lambda: methods("coin", parameter="mo"), "unknown parameter 'mo'"),
        (scores(guess="inn"), "did you mean 'in'"),
        (scores(guesses=[2]), r"guesses=\[2\].*'scan'"),
        (scores(design="arms", guess="in"), "guess='in'.*'split-exact'"),
        (scores(design="one-run", delta=0.1, guesses=[5]), "guesses <= canaries.*5"),
        (scores(design="one-run", delta=0.1, guesses=[0]), r"numbers >= 1.*\[0\]"),
        (scores([1, 2, 3]), r"\(3,\).*\(4,\)"),
        (scores([1, 1, 1, 1]), "all 4 scores are equal to 1"),
        (outputs(ZEROS, ZEROS, claim=PureDP(1.0)), r"as a number.*PureDP\(epsilon=1"),
        (outputs(ZEROS[:19], ZEROS), "first: 19 outputs, expected at least 20"),
        (outputs(ROWS, np.zeros((30, 3))), "2 numbers per output and second 3"),
        (outputs(ROWS, ROWS, method="dkw"), "dkw needs one number.*split-exact"),
        (outputs([[1.0], [1.0, 2.0]], ZEROS), "first: .* all rows of one shape"),
    ],
)
def test_records_and_options_that_cannot_be_used_are_refused(call, message):
    with pytest.raises(ConfigurationError, match=f"(?s){message}"):
        call()


def test_an_unknown_option_is_refused_with_the_likely_one():
    with pytest.raises(TypeError, match=r"unknown option alhpa=; did you mean 'alpha'"):
        from_counts(10, 100, 5, 100, alhpa=0.1)
