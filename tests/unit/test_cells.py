"""Cells: how a line is cut, where every value falls, and what each estimator makes of the counts, against plain formulas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logit
from scipy.stats import norm
from statsmodels.stats.proportion import proportion_confint

from auditdp.betting.cells import (
    CERTAIN,
    COARSE,
    FINEST,
    FITTED,
    MAX_ATOMS,
    MOST_NAMES,
    NESTED,
    NEWTON_STEPS,
    VARIANTS,
    WARY,
    Bank,
    Cells,
    Names,
)

NAN, INF = math.nan, math.inf
numbers = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 1.0, NAN, INF, -INF])


def test_few_distinct_values_are_each_a_cell():
    cells = Cells(np.array([7.0, 5.0, 7.0, 9.0]))
    assert cells.count(np.array([5.0, 7.0, 7.0, 9.0])).tolist() == [1, 2, 1]
    assert cells.count(np.array([-1.0, 6.0, 99.0])).tolist() == [1, 1, 1], "what is new joins the next value above"


def test_so_many_distinct_values_are_atoms_and_one_more_is_cut_at_quantiles():
    assert Cells(np.arange(float(MAX_ATOMS))).size == MAX_ATOMS
    assert Cells(np.arange(float(MAX_ATOMS + 1))).size < MAX_ATOMS


def test_a_value_that_occurs_several_times_where_others_occur_once_has_a_cell_of_its_own():
    rng = np.random.default_rng(5)
    noise = rng.normal(size=2_000)
    cells = Cells(np.concatenate([noise, [0.25, 0.25, -3.0, -3.0, -3.0]]))
    apart = [cells.count(np.concatenate([noise, [value]])) - cells.count(noise) for value in (0.25, -3.0)]
    for value, change in zip((0.25, -3.0), apart, strict=True):
        (cell,) = np.flatnonzero(change)
        assert cells.index(np.nextafter(value, [-np.inf, np.inf])).tolist() == [cell - 1, cell + 1]
    assert Cells(noise).size == cells.size - 4
    often = np.round(noise, 2)  # repeats are everywhere: none is cut out
    assert Cells(often).size < 2 * Cells(noise).size


def test_zeros_of_either_sign_are_one_value():
    cells = Cells(np.array([0.0, -0.0, 1.0]))
    assert cells.size == 2
    assert cells.count(np.array([-0.0, 0.0])).tolist() == [2, 0]


@pytest.mark.parametrize("n", [100, 1_000, 10_000, 100_000])
def test_cells_get_finer_with_more_values_and_towards_both_ends(n):
    values = np.random.default_rng(0).normal(size=n)
    cells = Cells(values)
    counts = cells.count(values)
    parts = int(np.clip(2 ** (np.log2(n) // 2.5), 4, FINEST))
    assert counts.sum() == n
    assert counts.min() >= 1
    assert parts <= cells.size <= parts + 2 * math.log2(n)
    middle = counts[len(counts) // 2]
    assert middle == pytest.approx(n / parts, rel=0.5)
    if n >= 1_000:
        assert max(counts[0], counts[-1]) < middle / 4, "rare events have cells of their own"


def test_what_is_no_number_has_a_cell_of_its_own_beyond_infinity():
    values = np.array([1.0, NAN, INF, -INF, 2.0, NAN, INF])
    assert Cells(values).count(values).tolist() == [1, 1, 1, 2, 2]
    assert Cells(np.array([NAN, NAN])).count(np.array([NAN, 3.0, NAN])).tolist() == [1, 2]
    assert Cells(np.array([1.0, 2.0])).count(np.array([NAN, 1.0])).tolist() == [1, 1], "never seen: the last cell"


@given(st.lists(numbers, min_size=1, max_size=300), st.lists(numbers, max_size=50))
def test_every_value_lies_in_one_cell_and_counting_agrees_with_looking_up(seen, new):
    cells = Cells(np.array(seen))
    assert len(cells.groups) == len(COARSE) + 1
    for group in cells.groups:
        assert group.shape == (cells.size,)
        assert (np.diff(group) >= 0).all(), "coarse cells are made of neighbouring ones"
    for values in (np.array(seen), np.array(new, dtype=float)):
        index = cells.index(values)
        assert cells.count(values).tolist() == np.bincount(index, minlength=cells.size).tolist()
        edges = [-INF, *cells.edges, NAN]
        for value, cell in zip(values, index, strict=True):
            if not np.isnan(value):
                assert cell == 0 or edges[cell] < value
                assert cell == cells.size - 1 or value <= edges[cell + 1]
            else:
                assert cell == cells.size - 1


def test_coarse_cells_are_about_halves_and_quarters():
    values = np.random.default_rng(0).normal(size=4_000)
    cells = Cells(values)
    counts = cells.count(values)
    for group, parts in zip(cells.groups, COARSE.values(), strict=False):
        shares = np.bincount(group, weights=counts) / 4_000
        assert len(shares) == parts
        assert shares == pytest.approx(1 / parts, abs=0.05)


def test_names_are_counted_exactly_and_strangers_last():
    names = Names(np.array([3.0, 1.0, 3.0, 8.0]))
    assert names.count(np.array([8.0, 3.0, 2.0, 3.0, 9.0, 0.0])).tolist() == [0, 2, 1, 3]
    assert names.index(np.array([8.0, 3.0, 2.0, 9.0])).tolist() == [2, 1, 3, 3]
    assert names.count(np.zeros(0)).tolist() == [0, 0, 0, 0]


def test_the_most_frequent_names_are_kept():
    rare, frequent = np.arange(MOST_NAMES + 50.0), np.repeat([7.5, 9.5], 3)
    names = Names(np.concatenate([rare, frequent]))
    assert names.size == MOST_NAMES + 1
    assert names.count(frequent)[-1] == 0


def plain(ones, zeros, prior=0.5):
    return math.log((ones + prior) / (zeros + prior))


def cautious(ones, zeros, errors=1.0):
    """Wilson's interval for the share of ones, half a call of either coin added, and in it the odds nearest to 0."""
    low, high = proportion_confint(ones + 0.5, ones + zeros + 1, alpha=2 * normal_tail(errors), method="wilson")
    p = min(max(0.5, low), high)
    return math.log(p / (1 - p))


def normal_tail(z):
    return math.erfc(z / math.sqrt(2)) / 2


def nested(ones, zeros):
    """Odds of every cell with four calls more, divided as in the tail: it, its inner neighbour, and all further out."""
    odds, size = [], len(ones)
    for c in range(size):
        tail = slice(0, c + 2) if 2 * c < size else slice(max(c - 1, 0), size)
        share = (ones[tail].sum() + 0.5) / (ones[tail].sum() + zeros[tail].sum() + 1)
        odds.append(math.log((ones[c] + NESTED * share) / (zeros[c] + NESTED * (1 - share))))
    return odds


def fitted(ones, zeros, shapes, ridge):
    """Newton's steps from 0 up Σ n₁ ln p + n₀ ln(1-p) - ridge |w|²/2, where p = expit(Σ w shape), and three are shrunk."""
    weights = np.zeros(len(shapes))
    for _ in range(NEWTON_STEPS):
        gradient, curvature = -ridge * weights, ridge * np.eye(len(shapes))
        for one, zero, x in zip(ones, zeros, shapes.T, strict=True):
            p = 1 / (1 + math.exp(-weights @ x))
            gradient = gradient + x * (one * (1 - p) - zero * p)
            curvature = curvature + np.outer(x, x) * (one + zero) * p * (1 - p)
        weights = weights + np.linalg.inv(curvature) @ gradient
    chi_squared = weights @ curvature @ weights
    shrink = 1 - 1 / chi_squared if chi_squared > 1 else 0
    return (shrink * weights if len(weights) == 3 else weights) @ shapes


@pytest.mark.parametrize("values", [[1.0, 2.0, 2.0, 5.0], [3.0], [7.0, math.nan, 1.0, 1.0]], ids=str)
def test_shapes_are_functions_of_the_share_below_the_middle_of_a_cell(values):
    cells = Cells(np.array(values))
    counts = cells.count(np.array(values))
    u = (np.cumsum(counts) - counts / 2) / len(values)
    assert cells.shapes == pytest.approx(
        np.array([2 * u - 1, 1 + np.log(u), 1 + np.log(1 - u), norm.ppf(u)]), abs=1e-12
    )


def test_shapes_are_finite_where_the_last_cell_is_empty():
    """The value 5 is so frequent that the last quantiles, and with them the last edge, are 5 itself."""
    values = np.r_[np.arange(1000) / 1000, np.full(1000, 5.0)]
    cells = Cells(values)
    assert cells.count(values)[-1] == 0
    assert np.isfinite(cells.shapes).all()


def test_curved_finds_the_odds_of_extremes_in_few_calls():
    """Values are uniform under coin 0 and the smaller of two such under coin 1, whose density is 2(1-v).

    Then v is below the share 2v - v² of both coins' values with log-odds ln 2(1-v): not among the shapes, but near. Alpha:
    the largest error below, of 8,000 calls and a fixed seed, is four times the standard error at each of the nine points.
    """
    rng = np.random.default_rng(5)
    zeros, ones = rng.random(4000), rng.random((4000, 2)).min(axis=1)
    cells = Cells(np.concatenate([zeros, ones]))
    counts = np.stack([cells.count(zeros), cells.count(ones)]).astype(float)
    (said,) = Bank([cells], counts).forecasts(np.zeros_like(counts))
    points = np.arange(1, 10) / 10
    curved = said.log_odds[VARIANTS.index("cells, curved")][cells.index(points)]
    assert curved == pytest.approx(np.log(2 * (1 - points)), abs=0.2)


def by_name(counts, group, shapes):
    """What every variant has to say, cell by cell, from counts of shape (2, cells); variants as they are named."""
    said = {}
    for resolution, parts in zip([*COARSE, "cells"], group, strict=True):
        zeros, ones = (np.bincount(parts, weights=side) for side in counts)
        for how, estimate in {
            "": plain,
            ", cautious": cautious,
            ", wary": lambda a, b: cautious(a, b, WARY),
            ", certain": lambda a, b: 0.0 if a and b else plain(a, b, CERTAIN),
            ", mirrored": None,
            ", nested": None,
            ", sloped": None,
            ", curved": None,
            ", normal": None,
        }.items():
            if f"{resolution}{how}" not in VARIANTS:
                continue
            if how == ", nested":
                table = nested(ones, zeros)
            elif how in (", sloped", ", curved", ", normal"):
                rows, ridge = FITTED[f"cells{how}"]
                table = fitted(ones, zeros, shapes[rows], ridge)
            elif estimate is None:
                table = [plain(ones[c] + zeros[-1 - c], zeros[c] + ones[-1 - c]) for c in range(len(ones))]
            else:
                table = [estimate(a, b) for a, b in zip(ones, zeros, strict=True)]
            said[f"{resolution}{how}"] = [table[c] for c in parts]
    return np.array([said[variant] for variant in VARIANTS])


def test_every_variant_of_every_partition_is_the_plain_formula():
    """Three partitions of different sizes in one bank: nobody's counts leak into another's forecasts."""
    random = np.random.default_rng(1)
    values = [random.normal(size=500), random.integers(0, 5, 500).astype(float), random.normal(size=90) ** 3]
    partitions = [Cells(v) for v in values]
    counts = [random.integers(0, 40, (2, cells.size)).astype(float) for cells in partitions]
    batch = [random.integers(0, 4, (2, cells.size)).astype(float) for cells in partitions]
    bank = Bank(partitions, np.hstack(counts))
    for said, cells, seen, now in zip(bank.forecasts(np.hstack(batch)), partitions, counts, batch, strict=True):
        assert said.ones.tolist() == now[1].tolist()
        assert said.zeros.tolist() == now[0].tolist()
        assert said.log_odds == pytest.approx(by_name(seen, cells.groups, cells.shapes), abs=1e-9)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_surer_an_estimate_must_be_the_less_it_says_and_coins_can_be_exchanged(ones, zeros):
    def said(one, zero):
        cells = Cells(np.array([0.0]))
        return dict(
            zip(
                VARIANTS,
                Bank([cells], np.array([[zero], [one]], float)).forecasts(np.ones((2, 1)))[0].log_odds[:, 0],
                strict=True,
            )
        )

    odds, swapped = said(ones, zeros), said(zeros, ones)
    assert 0 <= abs(odds["cells, wary"]) <= abs(odds["cells, cautious"]) <= abs(odds["cells"]) + 1e-12
    if ones and zeros:
        assert odds["cells, certain"] == 0
    else:
        assert abs(odds["cells"]) <= abs(odds["cells, certain"])
    for variant in VARIANTS:
        assert swapped[variant] == pytest.approx(-odds[variant], abs=1e-9)
        assert odds[variant] * (ones - zeros) >= 0


def test_before_anything_is_counted_everybody_abstains():
    cells = Cells(np.arange(5.0))
    assert (Bank([cells], np.zeros((2, cells.size))).forecasts(np.ones((2, cells.size)))[0].log_odds == 0).all()


def test_nothing_is_said_of_names_that_were_not_seen():
    names = Names(np.array([1.0, 2.0, 2.0]))
    said = Bank([names], np.array([[0.0, 9.0, 50.0], [9.0, 0.0, 0.0]])).forecasts(np.ones((2, 3)))[0]
    assert (said.log_odds[:, -1] == 0).all()
    fine = said.log_odds[VARIANTS.index("cells")]
    assert fine[:2].tolist() == pytest.approx([plain(9, 0), plain(0, 9)])
    assert said.ones.tolist() == said.zeros.tolist() == [1, 1, 1], "every call is counted, whatever is said of it"


def test_forecasts_do_not_depend_on_the_batch_they_are_about():
    """Validity rests on it: the same counts say the same, whatever is asked."""
    random = np.random.default_rng(2)
    cells = Cells(random.normal(size=300))
    bank = Bank([cells], random.integers(0, 30, (2, cells.size)).astype(float))
    asked = [bank.forecasts(random.integers(0, 9, (2, cells.size)).astype(float))[0].log_odds for _ in range(3)]
    assert (asked[0] == asked[1]).all()
    assert (asked[0] == asked[2]).all()


@pytest.mark.statistical
def test_plausible_sums_of_shapes_are_drawn_around_what_was_fitted():
    """Means of 4,000 draws of the log-odds of two partitions, within six standard errors: at most 2e-9 each by normality.

    With one weight the standard error is |rank| / sqrt(4 + Σ calls p(1-p) rank²), here with p(1-p) near 1/4.
    """
    rng = np.random.default_rng(4)
    partitions = [Cells(rng.normal(size=1000)) for _ in range(2)]
    counts = np.hstack(
        [np.stack([cells.count(rng.normal(loc, size=500)) for loc in (0.0, 0.3)]) for cells in partitions]
    )
    bank = Bank(partitions, counts.astype(float))
    said = bank.forecasts(np.zeros_like(bank.counts))
    for name in FITTED:
        variant = VARIANTS.index(name)
        for k, cells in enumerate(partitions):
            draws = np.array([logit(bank.plausible(rng, k, variant)[0]) for _ in range(4_000)])
            errors = draws.std(axis=0) / math.sqrt(4_000)
            assert (abs(draws.mean(axis=0) - said[k].log_odds[variant]) <= 6 * errors + 1e-3).all(), name
            if name == "cells, sloped":
                rank = cells.shapes[0]
                expected = abs(rank) / math.sqrt(
                    FITTED["cells, sloped"][1] + bank.counts[:, bank.slices[k]].sum(axis=0) @ rank**2 / 4
                )
                assert draws.std(axis=0) == pytest.approx(expected, rel=0.15)


@pytest.mark.statistical
def test_plausible_odds_are_drawn_from_their_posterior():
    """Means of 4,000 draws of Beta(n1 + 1/2, n0 + 1/2), within six standard errors: at most 2e-9 each by normality."""
    cells = Cells(np.arange(4.0))
    counts = np.array([[9.0, 0.0, 3.0, 8.0], [1.0, 0.0, 3.0, 32.0]])
    bank, rng = Bank([cells], counts), np.random.default_rng(0)
    for variant, name in enumerate(VARIANTS):
        if name in FITTED:
            continue
        group = cells.groups[[*COARSE, "cells"].index(name.split(",")[0])]
        zeros, ones = (np.bincount(group, weights=side) for side in counts)
        draws, shares = zip(*(bank.plausible(rng, 0, variant) for _ in range(4_000)), strict=True)
        a, b = ones + 0.5, zeros + 0.5
        error = np.sqrt(a * b / (a + b) ** 2 / (a + b + 1) / 4_000)
        assert (abs(np.mean(draws, axis=0) - a / (a + b)) <= 6 * error).all(), name
        assert shares[0] == pytest.approx((ones + zeros) / counts.sum())
