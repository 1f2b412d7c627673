"""Bounds from counts, scores and outputs.

Known values with their source, and oracles that count everything.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, ndtri, xlogy
from scipy.stats import binom, binomtest, norm
from statsmodels.stats.proportion import proportion_confint

from auditdp.bounds import (
    METHODS,
    Bound,
    api,
    from_counts,
    from_guesses,
    from_labelled_guesses,
    from_observed,
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
from auditdp.claims.statements import PureDP
from auditdp.errors import ConfigurationError

every_curve = pytest.mark.parametrize(
    "curve", [EpsilonDelta(), EpsilonDelta(0.05), Gaussian()]
)

# Counts of an event.


def clopper_pearson(first, second, **options):
    """The bound, and the two limits of statsmodels."""
    low, _ = proportion_confint(first, 150, alpha=0.05, method="beta")
    _, high = proportion_confint(second, 150, alpha=0.05, method="beta")
    options["method"] = "clopper-pearson"
    return from_counts(first, 150, second, 150, **options).lower, low, high


def test_clopper_pearson_is_that_of_statsmodels():
    lower, low, high = clopper_pearson(110, 40)
    expected = max(math.log(low / high), math.log((1 - high) / (1 - low)))
    assert lower == pytest.approx(expected, rel=1e-6)

    # δ is subtracted from the event, and from its complement.
    lower, low, high = clopper_pearson(140, 100, delta=0.01)
    expected = math.log((1 - high - 0.01) / (1 - low))
    assert lower == pytest.approx(expected, rel=1e-6)

    lower, low, high = clopper_pearson(110, 40, parameter="mu")
    assert lower == pytest.approx(ndtri(low) - ndtri(high), rel=1e-6)


@pytest.mark.parametrize("method", ["exact", "clopper-pearson"])
@pytest.mark.parametrize("counts", [(0, 0), (20, 20), (50, 50), (5, 40)])
def test_no_difference_gives_no_bound(method, counts):
    first, second = counts
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
    p = np.clip(curve.largest_p(q, 0.8), 1e-300, 1 - 1e-15)
    for x, y in [(30, 9), (40, 5), (20, 0)]:
        a, c = x / 40, y / 50
        divergence = 40 * (xlogy(a, a / p) + xlogy(1 - a, (1 - a) / (1 - p)))
        divergence += 50 * (xlogy(c, c / q) + xlogy(1 - c, (1 - c) / (1 - q)))
        found = one_event.statistic(Counts(x, 40, y, 50), curve, 0.8)
        assert found == pytest.approx(divergence.min(), rel=1e-5)
    assert one_event.statistic(Counts(10, 40, 9, 50), curve, 0.8) == 0


@every_curve
def test_the_exact_p_value_is_the_largest_over_the_boundary(curve):
    """Counts every table at 4,001 values of the nuisance.

    The p-value is above all of them and hardly above the largest, and the test ends
    early on the right side of alpha.
    """
    n, m, level = 14, 11, 0.7
    tables = itertools.product(range(n + 1), range(m + 1))
    statistic = np.array(
        [one_event.statistic(Counts(x, n, y, m), curve, level) for x, y in tables]
    ).reshape(n + 1, m + 1)
    q = np.linspace(0, 1, 4001)
    p = curve.largest_p(q, level)
    first = binom.pmf(np.arange(n + 1)[:, None], n, p)
    second = binom.pmf(np.arange(m + 1)[:, None], m, q)
    for x, y in [(7, 0), (10, 2), (14, 3), (14, 6), (12, 0)]:
        extreme = (statistic >= statistic[x, y] * (1 - 1e-9)).astype(float)
        largest = np.einsum("ij,ik,jk->k", extreme, first, second).max()
        counts = Counts(x, n, y, m)
        found = one_event.p_value(counts, curve, level, 0.0)
        assert largest <= found <= 1.03 * largest + 2e-9, (x, y)
        early = one_event.p_value(counts, curve, level, 0.05)
        assert (early <= 0.05) == (found <= 0.05)


def test_cells_of_counts_only_raise_the_p_value(monkeypatch):
    counts, curve = Counts(380, 600, 200, 600), EpsilonDelta()
    fine = one_event.p_value(counts, curve, 0.55, 0.0)
    monkeypatch.setattr(one_event, "LIMITS", replace(LIMITS, count_cells=60))
    assert fine < one_event.p_value(counts, curve, 0.55, 0.0) < 1.3 * fine


@pytest.mark.full
def test_large_counts_reach_the_asymptotic_bound():
    """At 20,000 an arm the signed root is normal.

    The bound is ln(p/q) less 1.645 standard errors.
    """
    found = from_counts(12_000, 20_000, 5_000, 20_000).lower
    error = math.sqrt((0.4 / 0.6 + 0.75 / 0.25) / 20_000)
    asymptotic = math.log(0.6 / 0.25) - norm.isf(0.05) * error
    assert asymptotic - 0.15 * error <= found < asymptotic


def test_dkw_is_the_largest_over_all_thresholds():
    rng = np.random.default_rng(0)
    first, second = rng.normal(1.5, 1, 300), rng.normal(0, 1, 200)
    a, b = (math.sqrt(math.log(2 / 0.05) / 2 / n) for n in (300, 200))
    ratios = [1.0]
    for threshold in first:
        p, q = (np.mean(each >= threshold) for each in (first, second))
        ratios.append((p - a) / (q + b))
        ratios.append((1 - q - b) / (1 - max(0, p - a)))
    found = one_event.dkw(first, second, EpsilonDelta(), 0.05)

    assert found == pytest.approx(math.log(max(ratios)))


# The scan.


def largest_divergence(right, sizes, q):
    """The largest k KL(V/k, q) of the sets of which more than q are right."""
    a = right / sizes
    divergence = sizes * (xlogy(a, a / q) + xlogy(1 - a, (1 - a) / (1 - q)))
    return np.where(a > q, divergence, 0.0).max()


@pytest.mark.parametrize("epsilon", [0.0, 1.5])
@pytest.mark.parametrize("sizes", [range(1, 11), [2, 3, 7, 11], [11]])
def test_the_law_of_the_scan_is_exact(sizes, epsilon):
    """P(S >= s) over all outcomes of independent guesses."""
    sizes, q = np.array(sizes), float(expit(epsilon))
    outcomes = np.array(list(itertools.product((0, 1), repeat=int(sizes[-1]))))
    chances = np.prod(np.where(outcomes, q, 1 - q), axis=1)
    statistics = np.array(
        [largest_divergence(np.cumsum(each)[sizes - 1], sizes, q) for each in outcomes]
    )
    for k in (-1, -2, len(outcomes) // 2, 5):
        right = np.cumsum(outcomes[k])[sizes - 1]
        extreme = statistics >= statistics[k] * (1 - 1e-9)
        expected = chances[extreme].sum() if statistics[k] > 0 else 1.0
        found = thresholds.p_value(thresholds.Sets(sizes, right, sizes[-1]), epsilon)
        assert found == pytest.approx(expected, rel=1e-8)
        assert found >= expected * (1 - 1e-12)


def test_a_scan_of_perfect_guesses_has_the_p_value_of_its_last_set():
    """All of n right: only the largest set attains S = n ln(1/q), so p = q^n."""
    sets = thresholds.Sets(np.arange(1, 201), np.arange(1, 201), 200)
    expected = float(expit(0.5)) ** 200
    assert thresholds.p_value(sets, 0.5) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    ("guess", "sizes", "right"),
    [
        ("both", [2, 4, 5, 7], [2, 3, 4, 5]),
        ("in", [1, 2, 4, 5, 6, 7], [1, 2, 3, 3, 4, 4]),
        ("out", None, [1, 1, 2, 3, 3, 3]),
    ],
)
def test_nested_sets_by_hand(guess, sizes, right):
    """Scores 9 8 7 7 | 3 2 1 with labels 1 1 0 1 | 0 1 0.

    The cut nearest to the middle is after four.
    """
    scores = np.array([7.0, 1, 9, 2, 7, 3, 8])
    labels = np.array([0, 0, 1, 1, 1, 0, 1], dtype=np.int8)
    found = thresholds.nested_sets(scores, labels, guess)

    assert sizes is None or found.sizes.tolist() == sizes
    assert found.right.tolist() == right


@pytest.mark.parametrize(
    ("guess", "right"), [("in", [1, 2, 3]), ("out", [1, 2, 3]), ("both", [1, 2, 4])]
)
def test_right_guesses_by_hand(guess, right):
    labels = np.array([1, 1, 0, 1, 0, 0])
    numbers = (1, 2, 6) if guess == "both" else (1, 3, 6)
    found = [thresholds.right_guesses(labels, n, guess) for n in numbers]
    assert found == right


@pytest.mark.parametrize("guess", thresholds.GUESSES)
def test_the_sets_do_not_depend_on_the_order_of_the_rows(guess):
    rng = np.random.default_rng(2)
    scores = rng.integers(0, 5, 100).astype(float)
    labels = rng.integers(0, 2, 100).astype(np.int8)
    before = thresholds.nested_sets(scores, labels, guess)
    for order in (np.argsort(labels), np.argsort(-labels)):
        again = thresholds.nested_sets(scores[order], labels[order], guess)
        assert np.array_equal(again.sizes, before.sizes)
        assert np.array_equal(again.right, before.right)


def test_the_number_of_sets_has_a_limit():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 50_000).astype(np.int8)
    sets = thresholds.nested_sets(rng.random(50_000), labels, "both")

    assert len(sets.sizes) <= LIMITS.nested_sets
    assert sets.sizes[-1] >= 49_998


def test_equal_scores_are_guessed_in_random_order():
    """With the rows' own order every guess would be right.

    A difference of 50 is 7 standard deviations.
    """
    labels = np.repeat([1, 0], 500).astype(np.int8)
    order = thresholds.descending(np.zeros(1000), np.random.default_rng(0))
    assert abs(thresholds.right_guesses(labels[order], 200, "both") - 100) < 50


# Outputs.


def test_the_learned_event_does_not_depend_on_the_testing_labels():
    rng = np.random.default_rng(4)
    outputs, labels = rng.normal(size=(100, 2)), rng.integers(0, 2, 100).astype(np.int8)
    learning = one_event.learning_part(labels, 0.35, rng)
    changed = np.where(learning, labels, 1 - labels).astype(np.int8)
    one, other = (
        one_event.learned_scores(outputs, each, learning, np.random.default_rng(0))
        for each in (labels, changed)
    )

    assert np.array_equal(one[0], other[0])
    assert np.array_equal(one[1], other[1])


def test_the_learning_part_is_a_share_of_either_label():
    labels = np.repeat([0, 1], [100, 300]).astype(np.int8)
    learning = one_event.learning_part(labels, 0.2, np.random.default_rng(0))
    assert np.bincount(labels[learning]).tolist() == [20, 60]


def test_an_event_of_several_coordinates_is_learned():
    """No single coordinate shows it: the product of two signs.

    The truth is at least ln 2.
    """
    rng = np.random.default_rng(5)
    first, second = rng.normal(size=(2, 1000, 2))
    first[:, 1] = np.abs(first[:, 1]) * np.sign(first[:, 0])

    assert from_outputs(first, second).lower > 0.3
    assert from_outputs(second[:300], second[300:600]).lower < 0.3


def test_bets_refute_a_curve_that_no_single_event_refutes():
    """Three numbers that are 1-GDP together, against a claim of 0.5."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(600, 3)) + 3**-0.5, rng.normal(size=(600, 3))
    bound = from_outputs(first, second, parameter="mu", claim=0.5)

    assert (bound.method, bound.n) == ("bets", 1_200)
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
    first, second = np.arange(n_first, dtype=float), -1.0 - np.arange(n_second)
    from_outputs(first, second, method="bets", claim=1.0)
    for record, data in ((first, 1), (second, 0)):
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

    mu = from_guesses(90, 100, parameter="mu").statement
    assert "not a bare (epsilon, delta) statement" in mu
    for part in ("90 of 100 guesses right", "fair coin", "arXiv:2305.08846v1"):
        assert part in str(from_guesses(90, 100))


def test_a_bound_survives_json():
    found = from_guesses(90, 100, delta=1e-5, claim=1.0)
    for bound in (found, replace(found, lower=math.inf, assumptions=[])):
        assert Bound.from_json(bound.to_json()) == bound


@pytest.mark.dear
@pytest.mark.parametrize("options", [{}, {"delta": 1e-5}, {"parameter": "mu"}])
@pytest.mark.parametrize("kind", sorted(api.KINDS, reverse=True))
def test_every_listed_method_works(kind, options):
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 2, 120)
    scores = 2 * labels + rng.normal(size=120)
    for method in methods(kind, **options):
        asked = {**options, "method": method, "claim": 0.1}
        if kind == "counts":
            found = from_counts(50, 60, 10, 60, **asked)
        elif kind == "guesses":
            found = from_guesses(90, 100, canaries=120, **asked)
        elif kind == "outputs":
            found = from_outputs(scores[labels == 1], scores[labels == 0], **asked)
        else:
            found = from_scores(scores, labels, design=kind, **asked)
        assert found.method == method
        assert method in METHODS
        assert found.source
        assert found.assumptions
        assert found.refuted == (found.lower >= 0.1 * (1 - 1e-8))
        assert found.refuted == (found.p_value <= 0.05)


def test_several_numbers_of_guesses_share_alpha():
    rng = np.random.default_rng(8)
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
    guesses, scores = np.arange(rows) % 3 == 0, np.sin(np.arange(rows))
    for inside in (most, rows - most):
        labels = np.arange(rows) < inside
        with pytest.raises(ConfigurationError):
            from_labelled_guesses(guesses, labels, design=design)
        with pytest.raises(ConfigurationError):
            from_scores(scores, labels, design=design)
        from_labelled_guesses(guesses, labels, design="arms")
    for inside in (most - 1, rows - most + 1):
        labels = np.arange(rows) < inside
        from_labelled_guesses(guesses, labels, design=design)
        from_scores(scores, labels, design=design)


@pytest.mark.parametrize(
    ("share", "design"),
    [(0.5, "coin"), (0.5, "one-run"), (0.5, "arms"), (0.8, "arms"), (0.95, "arms")],
)
def test_guesses_without_information_bound_nothing(share, design):
    """Always 'in', always 'out', or by chance.

    A share of the 200 rows are members.
    """
    labels = np.arange(200) < 200 * share
    chance = np.random.default_rng(3).integers(0, 2, 200)
    some = np.where(chance, 1.0, math.nan)
    for guesses in (np.ones(200), np.zeros(200), some, chance):
        assert from_labelled_guesses(guesses, labels, design=design).lower == 0


def test_guesses_of_fixed_arms_are_counts_of_the_guess_in():
    labels = np.repeat([1, 0], [60, 140])
    guesses = np.where(np.arange(200) % 10 == 0, 1 - labels, labels).astype(float)
    guesses[::7] = math.nan
    found = from_labelled_guesses(guesses, labels, design="arms", claim=1.0)
    first, second = (int((guesses[labels == label] == 1).sum()) for label in (1, 0))
    expected = from_counts(first, 60, second, 140, claim=1.0)

    assert (found.lower, found.p_value) == (expected.lower, expected.p_value)
    assert found.method == "exact"
    assert found.refuted


def counts(*numbers, **options):
    return lambda: from_counts(*(numbers or (1, 4, 0, 4)), **options)


def guesses(*numbers, **options):
    return lambda: from_guesses(*numbers, **options)


def scores(**options):
    good = {"scores": [3.0, 2, 1, 0], "labels": [1, 1, 0, 0], "design": "coin"}
    return lambda: from_scores(**{**good, **options})


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
        (counts(alpha=0), "alpha between 0 and 1.*0"),
        (counts(claim=math.nan), "claim >= 0.*nan"),
        (counts(delta=math.nan), r"delta in \[0, 1\).*nan"),
        (counts(parameter="mu", delta=0.1), "delta=0.1 has no meaning for mu"),
        (counts(parameter="epsilom"), "did you mean 'epsilon'"),
        (counts(method="exakt"), "'exakt'.*did you mean 'exact'"),
        (guesses(3, 4, alpha="5%"), "alpha as a number.*'5%'"),
        (guesses(5, 4), "correct <= guesses <= canaries.*correct=5, guesses=4"),
        (guesses(0, 0, canaries=3), "none of 3 canaries was guessed"),
        (lambda: methods("score"), "unknown kind of record 'score'"),
        (scores(guess="inn"), "did you mean 'in'"),
        (scores(guesses=[2]), r"guesses=\[2\].*'scan'"),
        (scores(design="arms", guess="in"), "guess='in'.*'split-exact'"),
        (scores(design="one-run", delta=0.1, guesses=[5]), "guesses <= canaries.*5"),
        (scores(scores=[1, 2, 3]), r"\(3,\).*\(4,\)"),
        (scores(scores=["a", 1, 2, 3]), "scores: expected numbers"),
        (scores(scores=[1, 1, 1, 1]), "all 4 scores are equal to 1"),
        (scores(labels=[1, 1, 1, 1]), "4 in and 0 out.*record more runs"),
        (
            lambda: from_observed([1, 2, 3, 4], [1, 1, 0, 0], [0.5] * 4, guess="inn"),
            "did you mean 'in'",
        ),
        (
            lambda: from_labelled_guesses([math.nan] * 4, [1, 1, 0, 0], design="coin"),
            "none of 4 canaries",
        ),
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
