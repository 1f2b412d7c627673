"""Certified bounds: known values, with where they come from, and oracles that count everything."""

import doctest
import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar
from scipy.special import expit, ndtri, xlogy
from scipy.stats import binom, binomtest, norm
from statsmodels.stats.proportion import proportion_confint

import auditdp.bounds
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
from auditdp.bounds import one_run as guessing
from auditdp.bounds.one_event import Counts
from auditdp.bounds.privacy_curves import EpsilonDelta, Gaussian
from auditdp.bounds.result import LIMITS, Question, rounded_down, rounded_up
from auditdp.claims.statements import GaussianDP, PureDP
from auditdp.errors import ConfigurationError

pytestmark = pytest.mark.dear

CURVES = [EpsilonDelta(), EpsilonDelta(0.05), Gaussian()]


def test_the_examples_in_the_docstrings():
    for module in (auditdp.bounds, api):
        found = doctest.testmod(module)
        assert found.attempted
        assert not found.failed


# Counts of an event


def test_clopper_pearson_is_that_of_statsmodels():
    low, _ = proportion_confint(110, 150, alpha=0.05, method="beta")
    _, high = proportion_confint(40, 150, alpha=0.05, method="beta")
    found = from_counts(110, 150, 40, 150, method="clopper-pearson")
    expected = max(math.log(low / high), math.log((1 - high) / (1 - low)))
    assert found.lower == pytest.approx(expected, rel=1e-6)
    gaussian = from_counts(110, 150, 40, 150, parameter="mu", method="clopper-pearson")
    assert gaussian.lower == pytest.approx(ndtri(low) - ndtri(high), rel=1e-6)


def test_clopper_pearson_takes_delta_off_the_event_and_its_complement():
    low, _ = proportion_confint(140, 150, alpha=0.05, method="beta")
    _, high = proportion_confint(100, 150, alpha=0.05, method="beta")
    found = from_counts(140, 150, 100, 150, delta=0.01, method="clopper-pearson")
    assert found.lower == pytest.approx(
        math.log((1 - high - 0.01) / (1 - low)), rel=1e-6
    )


@pytest.mark.parametrize("method", ["exact", "clopper-pearson"])
@pytest.mark.parametrize(
    "counts", [(0, 50, 0, 50), (20, 50, 20, 50), (50, 50, 50, 50), (5, 50, 40, 50)]
)
def test_no_difference_gives_no_bound(method, counts):
    found = from_counts(*counts, method=method, claim=0.1)
    assert found.lower == 0
    assert not found.refuted
    assert "nothing above epsilon = 0" in found.statement


def nearest_divergence(n, m, curve, level, a, c):
    """The least n KL(a, F(q)) + m KL(c, q) over the boundary p = F(q); 0 where the shares themselves keep the claim."""

    def total(q):
        p = min(float(curve.largest_p(np.array(q), level)), a)
        first = xlogy(a, a / p) + xlogy(1 - a, (1 - a) / (1 - p) if a < 1 else 1.0)
        return n * first + m * (
            xlogy(c, c / q) + xlogy(1 - c, (1 - c) / (1 - q) if c < 1 else 1.0)
        )

    if a <= curve.largest_p(np.array(c), level):
        return 0.0
    return minimize_scalar(
        total,
        bounds=(max(c, 1e-12), 1 - 1e-12),
        method="bounded",
        options={"xatol": 1e-10},
    ).fun


@pytest.mark.parametrize("curve", CURVES)
def test_the_exact_p_value_is_the_largest_over_the_boundary(curve):
    """Counts every table, at 4,001 values of the nuisance: the bound is above all of them and hardly above the largest."""
    n, m, level = 14, 11, 0.7
    first, second = np.meshgrid(np.arange(n + 1.0), np.arange(m + 1.0), indexing="ij")
    statistic = np.vectorize(partial(nearest_divergence, n, m, curve, level))(
        first / n, second / m
    )
    q = np.linspace(0, 1, 4001)
    p = curve.largest_p(q, level)
    laws = (
        binom.pmf(np.arange(n + 1)[:, None], n, p)[:, None, :]
        * binom.pmf(np.arange(m + 1)[:, None], m, q)[None]
    )
    for x, y in [(7, 0), (10, 2), (14, 3), (14, 6), (12, 0)]:
        extreme = statistic >= statistic[x, y] * (1 - 1e-9)
        largest = np.tensordot(extreme.astype(float), laws, axes=([0, 1], [0, 1])).max()
        found = one_event.p_value(Counts(x, n, y, m), curve, level, 0.0)
        assert largest <= found <= 1.03 * largest + 2e-9, (x, y)


@pytest.mark.parametrize("curve", CURVES)
def test_the_exact_test_has_its_size_at_every_value_of_the_nuisance(curve):
    """All tables of 12 and 12, so the size is known without simulation: at most alpha, and not far below."""
    n, level, alpha, q = 12, 1.0, 0.05, np.linspace(0, 1, 501)
    refuted = np.array(
        [
            [
                one_event.p_value(Counts(x, n, y, n), curve, level, alpha) <= alpha
                for y in range(n + 1)
            ]
            for x in range(n + 1)
        ]
    )
    assert np.all(np.diff(refuted.astype(int), axis=0) >= 0)
    assert np.all(np.diff(refuted.astype(int), axis=1) <= 0)
    first = binom.pmf(np.arange(n + 1)[:, None], n, curve.largest_p(q, level))
    second = binom.pmf(np.arange(n + 1)[:, None], n, q)
    size = np.einsum("ij,ik,jk->k", refuted.astype(float), first, second)
    assert 0.02 < size.max() <= alpha


@pytest.mark.parametrize("curve", CURVES)
def test_the_statistic_is_the_smallest_divergence_from_the_null(curve):
    """Against a grid of 200,001 boundary points; 0 where the estimate itself meets the claim."""
    level, counts = 0.8, Counts(30, 40, 9, 50)
    q = np.linspace(1e-9, 1 - 1e-9, 200_001)
    p = np.clip(curve.largest_p(q, level), 1e-300, 1 - 1e-15)
    a, c = 0.75, 0.18
    divergence = 40 * (a * np.log(a / p) + (1 - a) * np.log((1 - a) / (1 - p)))
    divergence += 50 * (c * np.log(c / q) + (1 - c) * np.log((1 - c) / (1 - q)))
    assert one_event.statistic(counts, curve, level) == pytest.approx(
        divergence.min(), rel=1e-7
    )
    assert one_event.statistic(Counts(10, 40, 9, 50), curve, level) == 0


def test_cells_of_counts_only_ever_raise_the_p_value(monkeypatch):
    counts, curve = Counts(380, 600, 200, 600), EpsilonDelta()
    fine = one_event.p_value(counts, curve, 0.55, 0.0)
    monkeypatch.setattr(one_event, "LIMITS", replace(LIMITS, count_cells=60))
    coarse = one_event.p_value(counts, curve, 0.55, 0.0)
    assert fine < coarse < 1.3 * fine


@pytest.mark.full
def test_large_counts_reach_the_asymptotic_bound():
    """At 20,000 an arm the signed root is normal: the bound is ln(p/q) less 1.645 standard errors."""
    n, p, q = 20_000, 0.6, 0.25
    found = from_counts(int(p * n), n, int(q * n), n)
    error = math.sqrt((1 - p) / p / n + (1 - q) / q / n)
    assert found.lower == pytest.approx(
        math.log(p / q) - norm.isf(0.05) * error, abs=0.15 * error
    )
    assert found.lower < math.log(p / q) - norm.isf(0.05) * error


def test_dkw_is_the_largest_over_all_thresholds():
    rng = np.random.default_rng(0)
    first, second = rng.normal(1.5, 1, 300), rng.normal(0, 1, 200)
    a, b = (math.sqrt(math.log(2 / 0.05) / 2 / n) for n in (300, 200))
    best = max(
        math.log(
            max(
                1,
                (np.mean(first >= t) - a) / (np.mean(second >= t) + b),
                (1 - np.mean(second >= t) - b) / u,
            )
        )
        for t in first
        if (u := 1 - max(0, np.mean(first >= t) - a)) > 0
    )
    assert one_event.dkw(first, second, EpsilonDelta(), 0.05) == pytest.approx(best)


# Guesses


@pytest.mark.parametrize(
    ("guesses", "epsilon"), [(10, 1.05187), (100, 3.49297), (1000, 5.80907)]
)
@pytest.mark.parametrize("method", ["binomial", "one-run-curve"])
def test_perfect_guessing(guesses, epsilon, method):
    """q^m = alpha, so epsilon = -ln(alpha^(-1/m) - 1)."""
    assert -math.log(0.05 ** (-1 / guesses) - 1) == pytest.approx(epsilon, abs=1e-5)
    found = from_guesses(guesses, guesses, method=method).lower
    assert epsilon - 2e-5 <= found <= -math.log(0.05 ** (-1 / guesses) - 1)


def largest_probability(canaries, guesses, correct, statements):
    """The largest P(V >= v) of all mechanisms that keep some (epsilon, delta), by a linear programme over their outputs."""
    outputs = [
        dict(zip(chosen, guess, strict=True))
        for chosen in itertools.combinations(range(canaries), guesses)
        for guess in itertools.product((0, 1), repeat=guesses)
    ]
    coins = np.array(list(itertools.product((0, 1), repeat=canaries)))
    neighbours = [
        (a, b)
        for a, b in itertools.permutations(range(len(coins)), 2)
        if (coins[a] != coins[b]).sum() == 1
    ]
    asked = list(itertools.product(neighbours, statements))
    losses = np.zeros((len(asked), len(coins)))
    for row, ((a, b), (epsilon, _)) in zip(losses, asked, strict=True):
        row[a], row[b] = 1.0, -math.exp(epsilon)
    summed, each = np.ones((1, len(outputs))), np.eye(len(outputs))
    excess, totals = (
        np.eye(len(asked) * len(outputs)),
        np.kron(np.eye(len(asked)), summed),
    )
    won = [
        sum(truth[i] == g for i, g in guess.items()) >= correct
        for truth in coins
        for guess in outputs
    ]
    found = linprog(
        -np.append(np.array(won) / len(coins), np.zeros(len(excess))),
        A_ub=np.block(
            [
                [np.kron(losses, each), -excess],
                [np.zeros((len(asked), len(won))), totals],
            ]
        ),
        b_ub=np.append(np.zeros(len(excess)), [delta for _, (_, delta) in asked]),
        A_eq=np.hstack(
            [np.kron(np.eye(len(coins)), summed), np.zeros((len(coins), len(excess)))]
        ),
        b_eq=np.ones(len(coins)),
    )
    return -found.fun


@pytest.mark.parametrize(
    ("canaries", "guesses", "correct", "epsilon", "delta"),
    [
        (2, 2, 1, 1.0, 0.05),  # .9447, and Theorem 5.2 of arXiv:2305.08846v1 has .9421
        (2, 2, 2, 1.0, 0.05),
        (2, 1, 1, 0.5, 0.1),
        (3, 3, 1, 1.0, 0.05),
        (3, 3, 2, 0.3, 0.15),
        (3, 3, 3, 0.3, 0.15),
        (3, 2, 1, 1.0, 0.05),
        (3, 2, 2, 0.7, 0.03),
    ],
)
def test_the_one_run_p_value_is_what_the_worst_of_all_mechanisms_does(
    canaries, guesses, correct, epsilon, delta
):
    worst = largest_probability(canaries, guesses, correct, [(epsilon, delta)])
    assert guessing.one_run_p_value(
        correct, guesses, canaries, epsilon, delta
    ) == pytest.approx(worst, abs=1e-7)
    assert (
        guessing.one_run_curve_p_value(
            correct, guesses, canaries, EpsilonDelta(delta), epsilon
        )
        >= worst - 1e-7
    )


@pytest.mark.parametrize(("correct", "mu"), [(1, 1.0), (2, 1.0), (2, 0.3)])
def test_the_recursion_allows_what_the_worst_of_all_mechanisms_does_under_a_curve(
    correct, mu
):
    """A programme of some statements of the curve allows a little more than all of them do."""
    worst = largest_probability(2, 2, correct, GaussianDP(mu).statements()[::4])
    assert guessing.one_run_curve_p_value(correct, 2, 2, Gaussian(), mu) >= worst - 1e-3


def test_the_one_run_p_value_is_mostly_below_that_of_the_paper():
    """Appendix D of arXiv:2305.08846v1, written out."""

    def listing(m, r, v, epsilon, delta):
        q = 1 / (1 + math.exp(-epsilon))
        beta, alpha, total = binom.sf(v - 1, r, q), 0, 0
        for i in range(1, v + 1):
            total += binom.pmf(v - i, r, q)
            alpha = max(alpha, total / i)
        return min(1, beta + alpha * delta * 2 * m)

    for m, r, v, epsilon, delta in [
        (1000, 100, 90, 1.0, 1e-5),
        (100, 100, 80, 0.5, 1e-3),
        (50, 20, 20, 2.0, 0.01),
    ]:
        found, paper = (
            guessing.one_run_p_value(v, r, m, epsilon, delta),
            listing(m, r, v, epsilon, delta),
        )
        assert binom.sf(v - 1, r, expit(epsilon)) < found < paper


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.1])
def test_the_one_run_p_value_never_falls_with_epsilon(delta):
    for correct, guesses in [(60, 60), (50, 60), (31, 60)]:
        values = [
            guessing.one_run_p_value(correct, guesses, 100, e, delta)
            for e in np.linspace(0, 6, 200)
        ]
        assert np.all(np.diff(values) >= -1e-12)


def test_the_recursion_allows_what_a_mechanism_can_do():
    """A leak of all coins with probability delta, else randomised response: alpha = P(C >= v) must not be refuted."""
    m, epsilon, delta = 40, 1.0, 0.02
    law = (1 - delta) * binom.pmf(np.arange(m + 1), m, expit(epsilon))
    law[m] += delta
    for v in range(m + 1):
        tail = float(law[v:].sum())
        assert not guessing.curve_refuted(
            v, m, m, EpsilonDelta(delta), epsilon, tail * (1 - 1e-9)
        )[0]


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_the_recursion_allows_independent_gaussian_canaries(mu):
    m = 60
    right = norm.cdf(mu / 2)
    for v in range(m + 1):
        assert not guessing.curve_refuted(
            v, m, m, Gaussian(), mu, binom.sf(v - 1, m, right) * (1 - 1e-9)
        )[0]


def test_the_recursion_is_exact_for_one_canary():
    """P(right) <= Φ(mu/2), attained, for one guess: refuted exactly above."""
    limit = norm.cdf(0.5)
    assert not guessing.curve_refuted(1, 1, 1, Gaussian(), 1.0, limit * (1 - 1e-6))[0]
    assert guessing.curve_refuted(1, 1, 1, Gaussian(), 1.0, limit * (1 + 1e-6))[0]


def test_the_recursion_does_not_give_the_binomial_much_away():
    for correct, guesses in [(80, 100), (730, 1000)]:
        exact = from_guesses(correct, guesses).lower
        found = from_guesses(correct, guesses, method="one-run-curve").lower
        assert 0.97 * exact < found <= exact


# The scan


def largest_divergence(right, sizes, q):
    """The largest k KL(V/k, q) of the sets of which more than q are right, by its definition."""
    shares = [(int(k), v / k) for v, k in zip(right, sizes, strict=True) if v / k > q]
    return max(
        (k * (xlogy(a, a / q) + xlogy(1 - a, (1 - a) / (1 - q))) for k, a in shares),
        default=0.0,
    )


def brute_force(sizes, statistic, q):
    """P(S >= statistic) over all outcomes of independent guesses, with their probabilities."""
    total = 0.0
    for outcome in itertools.product((0, 1), repeat=int(sizes[-1])):
        right = np.cumsum(outcome)[sizes - 1]
        if largest_divergence(right, sizes, q) >= statistic * (1 - 1e-9):
            total += q ** sum(outcome) * (1 - q) ** (len(outcome) - sum(outcome))
    return total


@pytest.mark.parametrize(
    "sizes", [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [2, 3, 7, 11], [11]]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
def test_the_law_of_the_scan_is_exact(sizes, epsilon):
    sizes, rng = np.array(sizes), np.random.default_rng(1)
    for _ in range(5):
        sets = thresholds.Sets(
            sizes, np.cumsum(rng.random(sizes[-1]) < 0.85)[sizes - 1], int(sizes[-1])
        )
        q = float(expit(epsilon))
        statistic = largest_divergence(sets.right, sets.sizes, q)
        expected = brute_force(sizes, statistic, q) if statistic > 0 else 1.0
        assert (
            expected
            <= thresholds.p_value(sets, epsilon) * (1 + 1e-12)
            <= expected * (1 + 1e-8)
        )


def test_a_scan_of_perfect_guesses_has_the_p_value_of_its_last_set():
    """All of n right: S is n ln(1/q), which the largest set alone reaches, so p = q^n; tiny p-values stay exact."""
    sets = thresholds.Sets(np.arange(1, 201), np.arange(1, 201), 200)
    assert thresholds.p_value(sets, 0.5) == pytest.approx(
        float(expit(0.5)) ** 200, rel=1e-8
    )


def test_nested_sets_by_hand():
    """Scores 9 8 7 7 | 3 2 1 with labels 1 1 0 1 | 0 1 0: the cut nearest to the middle is after four."""
    scores = np.array([7.0, 1, 9, 2, 7, 3, 8])
    labels = np.array([0, 0, 1, 1, 1, 0, 1], dtype=np.int8)
    both = thresholds.nested_sets(scores, labels, "both")
    assert both.sizes.tolist() == [
        2,
        4,
        5,
        7,
    ]  # 1+1, 2+2, 2+3 (the sevens come together), 4+3
    assert both.right.tolist() == [2, 3, 4, 5]
    assert thresholds.nested_sets(scores, labels, "in")[:2][0].tolist() == [
        1,
        2,
        4,
        5,
        6,
        7,
    ]
    assert thresholds.nested_sets(scores, labels, "in").right.tolist() == [
        1,
        2,
        3,
        3,
        4,
        4,
    ]
    assert thresholds.nested_sets(scores, labels, "out").right.tolist() == [
        1,
        1,
        2,
        3,
        3,
        3,
    ]


@pytest.mark.parametrize("guess", thresholds.GUESSES)
def test_the_sets_do_not_know_the_order_of_the_rows(guess):
    rng = np.random.default_rng(2)
    scores, labels = (
        rng.integers(0, 5, 100).astype(float),
        rng.integers(0, 2, 100).astype(np.int8),
    )
    for order in (np.argsort(labels), np.argsort(-labels)):
        again = thresholds.nested_sets(scores[order], labels[order], guess)
        before = thresholds.nested_sets(scores, labels, guess)
        assert np.array_equal(again.sizes, before.sizes)
        assert np.array_equal(again.right, before.right)


def test_many_canaries_have_few_sets():
    rng = np.random.default_rng(3)
    sets = thresholds.nested_sets(
        rng.random(50_000), rng.integers(0, 2, 50_000).astype(np.int8), "both"
    )
    assert len(sets.sizes) <= LIMITS.nested_sets
    assert sets.sizes[-1] >= 49_998


def test_equal_scores_are_guessed_in_random_order():
    """All scores equal and all rows that are in first: with the rows' own order every guess would be right."""
    labels = np.repeat([1, 0], 500).astype(np.int8)
    order = thresholds.descending(np.zeros(1000), np.random.default_rng(0))
    assert (
        abs(thresholds.right_guesses(labels[order], 200, "both") - 100) < 50
    )  # 7 standard deviations


def test_right_guesses_by_hand():
    labels = np.array([1, 1, 0, 1, 0, 0])
    assert [thresholds.right_guesses(labels, n, "in") for n in (1, 3, 6)] == [1, 2, 3]
    assert [thresholds.right_guesses(labels, n, "out") for n in (1, 3, 6)] == [1, 2, 3]
    assert [thresholds.right_guesses(labels, n, "both") for n in (1, 2, 5, 6)] == [
        1,
        2,
        4,
        4,
    ]


# Splits


def test_what_is_learned_does_not_know_the_testing_labels():
    rng = np.random.default_rng(4)
    outputs, labels = rng.normal(size=(200, 2)), rng.integers(0, 2, 200).astype(np.int8)
    learning = one_event.learning_part(labels, 0.35, rng)
    changed = np.where(learning, labels, 1 - labels).astype(np.int8)
    one = one_event.learned_scores(outputs, labels, learning, np.random.default_rng(0))
    other = one_event.learned_scores(
        outputs, changed, learning, np.random.default_rng(0)
    )
    assert np.array_equal(one[0], other[0])
    assert np.array_equal(one[1], other[1])


def test_the_learning_part_is_a_share_of_either_label():
    labels = np.repeat([0, 1], [100, 300]).astype(np.int8)
    learning = one_event.learning_part(labels, 0.2, np.random.default_rng(0))
    assert np.bincount(labels[learning]).tolist() == [20, 60]


def test_an_event_of_several_coordinates_is_learned():
    """An event that no single coordinate sees: the product of two signs."""
    rng = np.random.default_rng(5)
    first, second = rng.normal(size=(2, 1500, 2))
    first[:, 1] = np.abs(first[:, 1]) * np.sign(first[:, 0])
    found = from_outputs(first, second)
    assert (
        found.lower > 0.4
    )  # the truth is ln 2 (or more: the second law has the event with probability 1/2)


def test_outputs_of_one_law_give_no_bound():
    rng = np.random.default_rng(6)
    assert from_outputs(rng.normal(size=300), rng.normal(size=300)).lower < 0.3


# What a bound says


def test_bets_see_a_whole_curve_that_no_single_event_shows():
    """Three numbers that each say a little: together they are 1-GDP, and the claim of .5 is refuted."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(600, 3)) + 3**-0.5, rng.normal(size=(600, 3))
    bound = from_outputs(first, second, parameter="mu", claim=0.5)
    assert (bound.method, bound.n) == ("bets", 1_200)
    assert bound.refuted
    assert 0.5 <= bound.lower < 1.0
    true = from_outputs(first, second, parameter="mu", claim=1.0)
    assert true.lower < 1.0
    assert not true.refuted
    assert from_outputs(first, second, parameter="mu").p_value is None


@pytest.mark.parametrize(("n_first", "n_second"), [(20, 20), (25, 400), (400, 25)])
def test_bets_use_no_recorded_output_twice(monkeypatch, n_first, n_second):
    handed = []
    call = stated_assumptions._Recorded.__call__
    monkeypatch.setattr(
        stated_assumptions._Recorded,
        "__call__",
        lambda self, data, size, *, rng: (
            handed.append((data, call(self, data, size, rng=rng))) or handed[-1][1]
        ),
    )
    first, second = np.arange(n_first, dtype=float), -1.0 - np.arange(n_second)
    bound = from_outputs(first, second, method="bets", claim=1.0)
    for record, data in ((first, 1), (second, 0)):
        seen = np.concatenate(
            [outputs for given, outputs in handed if given == data]
        ).ravel()
        assert len(set(seen.tolist())) == len(seen) <= len(record)
        assert set(seen.tolist()) <= set(record.tolist())
    assert bound.lower >= 0.0


def test_bets_on_records_that_are_too_short_say_nothing():
    """After the outputs that show what outputs look like, too few are left to bet on."""
    question = Question(EpsilonDelta(), 0.05, 1.0)
    assert stated_assumptions.played(np.zeros(7), np.ones(7), question, seed=0) == (
        (0.0, 1.0),
        0,
    )


def test_a_bound_survives_json():
    found = from_guesses(90, 100, delta=1e-5, claim=1.0)
    assert Bound.from_json(found.to_json()) == found
    infinite = Bound("exact", "epsilon", math.inf, 0.05, 1, "", [], "")
    assert Bound.from_json(infinite.to_json()) == infinite


def test_the_statement_says_what_is_refuted():
    assert "is refuted (p <= " in from_guesses(90, 100, claim=1.0).statement
    assert "is not refuted (p <= " in from_guesses(60, 100, claim=1.0).statement
    assert "at delta = 1e-05" in from_guesses(90, 100, delta=1e-5).statement
    assert (
        "not a bare (epsilon, delta) statement"
        in from_guesses(90, 100, parameter="mu").statement
    )
    text = str(from_guesses(90, 100))
    assert "90 of 100 guesses right" in text
    assert "fair coin" in text
    assert "arXiv:2305.08846v1" in text


@pytest.mark.parametrize("value", [0.0, 1 / 3, 2 / 3, 1e-30, 0.99999, 12345.6789, 1.0])
def test_numbers_are_written_on_the_safe_side(value):
    assert float(rounded_down(value)) <= value <= float(rounded_up(value))
    assert float(rounded_up(value)) - float(rounded_down(value)) <= 0.11 * value


@pytest.mark.parametrize("kind", api.KINDS)
@pytest.mark.parametrize(
    ("parameter", "delta"), [("epsilon", 0.0), ("epsilon", 1e-5), ("mu", 0.0)]
)
def test_every_listed_method_works(kind, parameter, delta):
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 2, 120)
    scores = 2 * labels + rng.normal(size=120)
    for method in methods(kind, parameter=parameter, delta=delta):
        options = {
            "parameter": parameter,
            "delta": delta,
            "method": method,
            "claim": 0.1,
        }
        found = {
            "counts": lambda options=options: from_counts(50, 60, 10, 60, **options),
            "guesses": lambda options=options: from_guesses(
                90, 100, canaries=120, **options
            ),
            "outputs": lambda options=options: from_outputs(
                scores[labels == 1], scores[labels == 0], **options
            ),
        }.get(
            kind,
            lambda options=options: from_scores(scores, labels, design=kind, **options),
        )()
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
    together = from_scores(
        scores, labels, design="one-run", delta=1e-5, guesses=[100, 200], claim=0.2
    )
    options = {"design": "one-run", "delta": 1e-5, "claim": 0.2}
    alone = [
        from_scores(scores, labels, guesses=[n], alpha=0.025, **options)
        for n in (100, 200)
    ]
    assert together.lower == max(bound.lower for bound in alone)
    assert together.p_value == pytest.approx(
        min(1, 2 * min(bound.p_value for bound in alone))
    )


def refused(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except ConfigurationError:
        return True
    return False


@pytest.mark.parametrize("design", ["coin", "one-run"])
@pytest.mark.parametrize("rows", [40, 100, 5_000])
def test_labels_that_fair_coins_hardly_give_are_refused(design, rows):
    """As many in as have a two-sided p-value of 1e-6 or less, and one fewer; guesses and scores know nothing."""
    most = next(k for k in range(rows // 2, rows) if binomtest(k, rows).pvalue <= 1e-6)
    for inside, expected in (
        (most, True),
        (most - 1, False),
        (rows - most, True),
        (rows - most + 1, False),
    ):
        labels = np.arange(rows) < inside
        if expected or min(inside, rows - inside) >= 2:
            guesses = np.arange(rows) % 3 == 0
            assert (
                refused(from_labelled_guesses, guesses, labels, design=design)
                is expected
            )
            assert (
                refused(from_scores, np.sin(np.arange(rows)), labels, design=design)
                is expected
            )
            assert not refused(from_labelled_guesses, guesses, labels, design="arms")


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
def test_guesses_without_information_bound_nothing_whatever_the_share_of_members(share):
    """Always 'in', always 'out', or by chance: 200 rows, of which a share are members."""
    labels = np.arange(200) < 200 * share
    chance = np.random.default_rng(3).integers(0, 2, 200)
    for guesses in (
        np.ones(200),
        np.zeros(200),
        np.where(chance, 1.0, math.nan),
        chance,
    ):
        designs = ["arms"] if share > 0.5 else ["coin", "arms", "one-run"]
        for design in designs:
            assert from_labelled_guesses(guesses, labels, design=design).lower == 0


def test_guesses_of_fixed_arms_are_counts_of_the_guess_in():
    labels = np.repeat([1, 0], [60, 140])
    guesses = np.where(np.arange(200) % 10 == 0, 1 - labels, labels).astype(float)
    guesses[::7] = math.nan
    found = from_labelled_guesses(guesses, labels, design="arms", claim=1.0)
    first, second = ((guesses[labels == label] == 1).sum() for label in (1, 0))
    expected = from_counts(int(first), 60, int(second), 140, claim=1.0)
    assert (found.lower, found.p_value, found.method) == (
        expected.lower,
        expected.p_value,
        "exact",
    )
    assert found.refuted


GOOD = {"scores": [3.0, 2, 1, 0], "labels": [1, 1, 0, 0], "design": "coin"}
NAN = [3.0, math.nan, 1, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: from_counts(5, 4, 0, 4),
            ["0 <= first <= n_first", "first=5, n_first=4"],
        ),
        (lambda: from_counts(0, 0, 0, 4), ["n_first > 0", "first=0, n_first=0"]),
        (lambda: from_counts(1.5, 4, 0, 4), ["whole numbers", "1.5"]),
        (lambda: from_counts(1, 4, 0, 4, alpha=0), ["alpha between 0 and 1", "0"]),
        (
            lambda: from_counts(1, 4, 0, 4, claim=-1),
            ["claim >= 0", "-1", "leave it out"],
        ),
        (
            lambda: from_outputs([1.0] * 30, [0.0] * 30, claim=PureDP(1.0)),
            ["claim as a number", "PureDP(epsilon=1.0"],
        ),
        (lambda: from_guesses(3, 4, alpha="5%"), ["alpha as a number", "'5%'"]),
        (lambda: from_counts(1, 4, 0, 4, claim=math.nan), ["claim >= 0", "nan"]),
        (lambda: from_counts(1, 4, 0, 4, delta=1.0), ["delta in [0, 1)", "1.0"]),
        (lambda: from_counts(1, 4, 0, 4, delta=math.nan), ["delta in [0, 1)", "nan"]),
        (
            lambda: from_counts(1, 4, 0, 4, parameter="mu", delta=0.1),
            ["delta=0.1 has no meaning for mu"],
        ),
        (
            lambda: from_counts(1, 4, 0, 4, parameter="epsilom"),
            ["did you mean 'epsilon'?"],
        ),
        (
            lambda: from_counts(1, 4, 0, 4, method="exakt"),
            ["'exakt'", "did you mean 'exact'?"],
        ),
        (
            lambda: from_guesses(5, 4),
            ["correct <= guesses <= canaries", "correct=5, guesses=4"],
        ),
        (
            lambda: from_guesses(4, 4, canaries=3),
            ["correct <= guesses <= canaries", "guesses=4, canaries=3"],
        ),
        (lambda: from_guesses(0, 0, canaries=3), ["none of 3 canaries was guessed"]),
        (
            lambda: from_guesses(3, 4, delta=0.1, method="binomial"),
            ["'binomial' does not fit", "delta=0.1"],
        ),
        (lambda: methods("score"), ["unknown kind of record 'score'"]),
        (
            lambda: from_scores(**{**GOOD, "design": "coins"}),
            ["unknown design 'coins'", "fair coin"],
        ),
        (lambda: from_scores(**GOOD, guess="inn"), ["did you mean 'in'?"]),
        (
            lambda: from_observed([1, 2, 3, 4], [1, 1, 0, 0], [0.5] * 4, guess="inn"),
            ["did you mean 'in'?"],
        ),
        (lambda: from_scores(**GOOD, guesses=[2]), ["guesses=[2]", "'scan'"]),
        (
            lambda: from_scores(**{**GOOD, "design": "arms"}, guess="in"),
            ["guess='in'", "'split-exact'"],
        ),
        (
            lambda: from_labelled_guesses([1, 0.5, 1, 1], [1, 1, 0, 0], design="coin"),
            ["guesses: expected 1", "0.5"],
        ),
        (
            lambda: from_labelled_guesses([1, "x", 1, 1], [1, 1, 0, 0], design="coin"),
            ["guesses: expected numbers"],
        ),
        (
            lambda: from_labelled_guesses([math.nan] * 4, [1, 1, 0, 0], design="coin"),
            ["none of 4 canaries"],
        ),
        (
            lambda: from_labelled_guesses([1, 1, 0, 0], [1, 1, 0, 0], design="coins"),
            ["unknown design 'coins'"],
        ),
        (lambda: from_scores(**{**GOOD, "scores": [1, 2, 3]}), ["(3,)", "(4,)"]),
        (
            lambda: from_scores(**{**GOOD, "scores": ["a", 1, 2, 3]}),
            ["scores: expected numbers"],
        ),
        (
            lambda: from_scores(**{**GOOD, "scores": NAN}),
            ["scores: row 2 is nan", "the same for either label"],
        ),
        (
            lambda: from_scores(**{**GOOD, "scores": [1, 1, 1, 1]}),
            ["all 4 scores are equal to 1"],
        ),
        (
            lambda: from_scores(**{**GOOD, "labels": [1, 1, -1, -1]}),
            ["1 for in and 0 for out, got -1"],
        ),
        (
            lambda: from_scores(**{**GOOD, "labels": [1, 1, 1, 1]}),
            ["4 in and 0 out", "record more runs"],
        ),
        (
            lambda: from_scores(
                **{**GOOD, "design": "one-run"}, delta=0.1, guesses=[5]
            ),
            ["guesses <= canaries", "5"],
        ),
        (
            lambda: from_outputs([1.0] * 19, [1.0] * 30),
            ["first: 19 outputs, expected at least 20"],
        ),
        (
            lambda: from_outputs(np.zeros((30, 2)), np.zeros((30, 3))),
            ["2 numbers per output and second 3"],
        ),
        (
            lambda: from_outputs(np.zeros((30, 2)), np.zeros((30, 2)), method="dkw"),
            ["dkw needs one number", "split-exact"],
        ),
        (
            lambda: from_outputs([[1.0], [1.0, 2.0]], [1.0] * 30),
            ["first: expected numbers, all rows of one shape"],
        ),
    ],
)
def test_what_cannot_be_used_is_refused(call, message):
    with pytest.raises(ConfigurationError) as refusal:
        call()
    for words in message:
        assert words in str(refusal.value)


def test_an_unknown_option_is_refused_with_the_one_that_was_meant():
    with pytest.raises(TypeError, match=r"unknown option alhpa=; did you mean 'alpha'"):
        from_counts(10, 100, 5, 100, alhpa=0.1)
