"""How far outputs are from a stated law: known values, a brute-force oracle, and what is refuted."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import multinomial

from auditdp import StepLaw
from auditdp.evidence import counted_events
from auditdp.evidence.counted_events import (
    cdf_of,
    kolmogorov,
    kolmogorov_margin,
    log_e_value,
    total_variation,
)
from auditdp.mechanism.laws import GaussianLaw, LaplaceLaw
from auditdp.numerics.binomial import upper_limit


@pytest.mark.parametrize("seed", range(6))
def test_total_variation_is_the_largest_over_all_subsets(seed):
    rng = np.random.default_rng(seed)
    outputs, runs = int(rng.integers(1, 7)), int(rng.integers(30, 900))
    x, q = (
        rng.multinomial(runs, rng.dirichlet(np.ones(outputs))),
        rng.dirichlet(np.ones(outputs)),
    )
    sets = [
        list(s)
        for size in range(outputs + 1)
        for s in combinations(range(outputs), size)
    ]
    truth = max(float(upper_limit(x[s].sum(), runs, 0.01)) - q[s].sum() for s in sets)
    assert total_variation(x[None], q[None], runs, 0.01) == pytest.approx(
        truth, abs=0.1 / math.sqrt(runs)
    )
    assert total_variation(x[None], q[None], runs, 0.01) >= truth - 1e-12


def test_many_outputs_are_bounded_no_lower(monkeypatch):
    x, q = np.array([30, 50, 20]), np.array([0.3, 0.4, 0.3])
    exact = total_variation(x[None], q[None], 100, 0.01)
    monkeypatch.setattr(counted_events.CountLimits, "exact_outputs", 0)
    assert total_variation(x[None], q[None], 100, 0.01) >= exact


def test_what_never_came_may_still_come():
    found = total_variation(np.array([[1_000]]), np.array([[1.0]]), 1_000, 0.01)
    assert found == pytest.approx(1 - 0.01 ** (1 / 1_000))


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_the_worst_input_counts_wherever_it_stands(order):
    counts, law = np.array([[50, 50], [90, 10]]), np.full((2, 2), 0.5)
    assert (
        total_variation(counts[order], law, 100, 0.01)
        == total_variation(counts[1:], law[1:], 100, 0.01)
        > 0.4
    )


def test_an_e_value_has_expectation_one_under_the_law():
    """Every outcome of 6 runs on two inputs, weighted with its probability."""
    law = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    outcomes = [
        np.array([a, b, 6 - a - b])
        for a, b in product(range(7), repeat=2)
        if a + b <= 6
    ]
    total = sum(
        multinomial.pmf(x, 6, law[0])
        * multinomial.pmf(y, 6, law[1])
        * math.exp(log_e_value(np.array([x, y]), law))
        for x in outcomes
        for y in outcomes
    )
    assert total == pytest.approx(1, rel=1e-7)


def test_an_output_that_the_law_excludes_refutes_it():
    assert log_e_value(np.array([[999, 1]]), np.array([[1.0, 0.0]])) == math.inf
    assert log_e_value(np.array([[999, 0]]), np.array([[1.0, 0.0]])) <= 0


@pytest.mark.parametrize(
    ("runs", "bias"), [(2_000, 0.08), (20_000, 0.025), (200_000, 0.008)]
)
def test_a_biased_bit_is_refuted(runs, bias):
    """About seven standard deviations: refuted at 1e-4 with expected counts."""
    counts = np.rint(runs * np.array([[0.5 + bias, 0.5 - bias]])).astype(int)
    assert log_e_value(counts, np.full((1, 2), 0.5)) > math.log(1e4)


def test_kolmogorov_distances_of_few_numbers():
    uniform = StepLaw([0, 1], [1])
    assert kolmogorov(np.array([0.5]), uniform.cdf) == pytest.approx(0.5)
    assert kolmogorov(np.array([0.25, 0.75]), uniform.cdf) == pytest.approx(0.25)
    coin = StepLaw(atoms=[0, 1], probabilities=[0.5, 0.5])
    assert kolmogorov(np.array([0.0, 1.0]), coin.cdf) == pytest.approx(0)
    assert kolmogorov(np.array([0.0, 0.0]), coin.cdf) == pytest.approx(0.5)
    assert kolmogorov(np.array([0.5, np.nan]), uniform.cdf) == 1.0


def test_laws_of_one_number_have_a_distribution_function():
    assert cdf_of(GaussianLaw(np.array([2.0]), 3.0))(
        np.array([2.0, 5.0])
    ) == pytest.approx(ndtr([0, 1]))
    assert cdf_of(GaussianLaw(np.zeros(2), 1.0)) is None
    assert (
        cdf_of(LaplaceLaw(np.zeros(1), np.ones(1))) is None
    )  # of what is computed before post-processing


def test_the_margin_is_that_of_massart():
    assert kolmogorov_margin(200, 0.05) == pytest.approx(math.sqrt(math.log(40) / 400))
