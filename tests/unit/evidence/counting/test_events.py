"""Bounds over all events: a brute-force oracle, known values, and how tight they are."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtr

from auditdp.evidence import counted_events
from auditdp.evidence.counted_events import (
    RegionLimits,
    largest_losses,
    most_hits,
    nodes,
    radius,
    unseen,
)
from auditdp.numerics.binomial import lower_limit, upper_limit

PAIR = np.array([[0], [1]])
KEEP = 1 / (1 + math.exp(-1))
RESPONSE = np.array([[KEEP, 1 - KEEP], [1 - KEEP, KEEP]])


def subsets(outputs):
    return [
        list(chosen)
        for size in range(outputs + 1)
        for chosen in combinations(range(outputs), size)
    ]


def region(x, y, runs, error, angles=601):
    """Points of the edge of an event's region, from its definition."""
    theta = np.linspace(0, np.pi / 2, angles)
    r = radius(error)
    return upper_limit(x, runs, ndtr(-r * np.cos(theta))), lower_limit(
        y, runs, ndtr(-r * np.sin(theta))
    )


@pytest.mark.parametrize("error", [0.5, 0.05, 1e-4, 1e-12])
def test_two_normal_numbers_leave_the_radius_as_often_as_stated(error):
    assert ndtr(-radius(error)) + math.exp(
        -(radius(error) ** 2) / 2
    ) / 4 == pytest.approx(error, rel=1e-9)


def test_an_error_beyond_any_is_no_radius():
    assert radius(1.0) == 0.0


def test_the_most_hits_are_those_of_the_best_set():
    rng = np.random.default_rng(5)
    for outputs in range(1, 8):
        first, second = (
            rng.multinomial(40, rng.dirichlet(np.ones(outputs) / 2)) for _ in range(2)
        )
        best = [
            max(first[s].sum() for s in subsets(outputs) if second[s].sum() <= y)
            for y in range(41)
        ]
        assert most_hits(first, second, 40).tolist() == best


def test_of_too_many_outputs_the_rarest_are_given_away(monkeypatch):
    first, second = np.array([5, 3, 2]), np.array([6, 1, 3])
    exact = most_hits(first, second, 10)
    monkeypatch.setattr(counted_events.CountLimits, "outputs", 2)
    assert (most_hits(first, second, 10) >= exact).all()
    assert most_hits(first, second, 10)[0] == 3


@pytest.mark.parametrize("seed", range(8))
def test_bounds_are_the_largest_over_all_subsets(seed):
    """Every subset of the outputs, both orders, with limits from the definition of the region on a fine grid of angles."""
    rng = np.random.default_rng(seed)
    outputs, runs, error = (
        int(rng.integers(1, 6)),
        int(rng.integers(60, 3000)),
        10.0 ** rng.uniform(-6, -1),
    )
    counts = np.array(
        [rng.multinomial(runs, rng.dirichlet(np.ones(outputs))) for _ in range(2)]
    )
    delta, epsilon = 3 * unseen(runs, error), 0.4
    (found,), (needed,) = largest_losses(
        counts, PAIR, runs, error=error, deltas=[delta], epsilons=[epsilon]
    )
    edges = [
        region(counts[a, s].sum(), counts[1 - a, s].sum(), runs, error)
        for s in subsets(outputs)
        for a in (0, 1)
    ]
    with np.errstate(divide="ignore"):
        truth = max(
            0.0,
            max(
                np.max(np.log(p[p > delta] - delta) - np.log(q[p > delta]), initial=0)
                for p, q in edges
            ),
        )
    assert truth - 1e-9 <= found or found == truth == math.inf
    assert found <= truth * 1.02 + 0.01 or found == truth
    least = max(0.0, max(np.max(p - math.exp(epsilon) * q) for p, q in edges))
    assert least - 1e-12 <= needed <= least * 1.02 + 1e-3


def test_the_region_of_a_grid_of_angles_encloses_the_whole():
    p, q = RegionLimits(500, 1e-3)(np.array([40]), np.array([15]), 9)
    edge = region(40, 15, 500, 1e-3)
    for a, b in zip(*edge, strict=True):
        assert ((a <= p[0]) & (b >= q[0])).any()


def test_rounded_limits_are_wider():
    limits, rng = RegionLimits(100_000, 1e-3), np.random.default_rng(1)
    x, y = rng.integers(0, 100_001, (2, 50))
    (p, q), (wide_p, wide_q) = (
        limits(x, y, counted_events.CountLimits.coarse_grid),
        limits.rounded(x, y),
    )
    assert (p <= wide_p + 1e-15).all()
    assert (q >= wide_q - 1e-15).all()


def test_nodes_hold_every_small_count_and_both_ends():
    found = nodes(1_000_000, 0.25)
    assert found[0] == 0
    assert found[-1] == 1_000_000
    assert set(range(16)) <= set(found.tolist())
    assert len(found) < 15_000
    assert nodes(1, 0.25).tolist() == [0, 1]


def test_what_never_came_costs_delta():
    (never, finite), _ = largest_losses(
        np.array([[500], [500]]),
        PAIR,
        500,
        error=0.05,
        deltas=[0.99 * unseen(500, 0.05), 1.01 * unseen(500, 0.05)],
    )
    assert (never, finite) == (math.inf, 0.0)


def test_an_output_that_an_input_cannot_give_leaves_no_epsilon():
    (epsilon,), (delta,) = largest_losses(
        np.array([[500, 0], [0, 500]]),
        PAIR,
        500,
        error=0.05,
        deltas=[0.5],
        epsilons=[800.0],
    )
    assert epsilon == math.inf
    assert delta == 1.0


@pytest.mark.parametrize(
    ("runs", "within"),
    [(1_000, 1.30), (10_000, 1.10), (100_000, 1.03), (1_000_000, 1.01)],
)
def test_randomised_response_is_bounded_closely(runs, within):
    """Expected counts, error 1e-3: how far above the truth of 1 the bound is where chance is kind to neither side."""
    counts = np.rint(runs * RESPONSE).astype(int)
    (found,), _ = largest_losses(
        counts, PAIR, runs, error=1e-3, deltas=[1.25 * unseen(runs, 1e-3)]
    )
    assert 1 < found < within


def test_two_limits_would_be_wider():
    """Against the quotient of two Clopper-Pearson limits, each with half the error, for an output of equal probability."""
    runs, x, error = 10_000, 400, 1e-3
    two = math.log(upper_limit(x, runs, error / 2) / lower_limit(x, runs, error / 2))
    p, q = RegionLimits(runs, error)(
        np.array([x]), np.array([x]), counted_events.CountLimits.fine_grid
    )
    assert np.log(p / q).max() < 0.82 * two
