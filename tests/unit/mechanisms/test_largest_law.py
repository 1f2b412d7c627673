import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import precision, row_keys
from mechanisms.edges import LapGraph, LocalLaplaceGraph, LocalLaplaceRow
from mechanisms.edges.largest_law import (
    laplace_sum_tail,
    rounded_total_law,
    top_probability,
)

PATH = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], np.int8)


def test_the_tail_of_one_and_of_two_laplace_variables_is_the_known_one():
    x = Fraction(3, 2)
    assert math.isclose(
        float(laplace_sum_tail(x, 1).mid()), math.exp(-1.5) / 2, rel_tol=1e-14
    )
    assert math.isclose(
        float(laplace_sum_tail(x, 2).mid()),
        (2 + 1.5) * math.exp(-1.5) / 4,
        rel_tol=1e-14,
    )


def test_the_tail_of_a_sum_agrees_with_a_convolution():
    for n in (3, 5):

        def density(t, n=n):  # characteristic function 1/(1+w^2)^n inverted
            return (
                quad(
                    lambda w: (1 + w * w) ** -n, 0, 60, weight="cos", wvar=t, limit=400
                )[0]
                / math.pi
            )

        expected = quad(density, 1.25, 40, limit=200)[0]
        assert math.isclose(
            float(laplace_sum_tail(Fraction(5, 4), n).mid()), expected, rel_tol=1e-5
        )


def test_half_of_the_noise_lies_on_either_side():
    law = rounded_total_law(3, Fraction(2), 6)
    assert all((p - q).contains(0) for p, q in zip(law, law[::-1], strict=True))
    assert sum(law).contains(1)


def test_the_top_cell_of_two_is_the_closed_form():
    """P(1 + X > Y) for two Laplace variables of scale s is 1 - e^(-1/s) (2 + 1/s) / 4."""
    s = 0.8
    value = top_probability(2, 1, 1, 0, s)
    assert math.isclose(
        float(value.mid()), 1 - math.exp(-1 / s) * (2 + 1 / s) / 4, rel_tol=1e-13
    )


def test_all_sets_of_one_size_are_the_whole():
    for m, k, t in ((5, 2, 1), (5, 2, 3), (6, 0, 2), (6, 6, 4)):
        with precision():
            total = sum(
                math.comb(k, a)
                * math.comb(m - k, t - a)
                * top_probability(m, k, a, t - a, 0.7)
                for a in range(max(0, t - m + k), min(k, t) + 1)
            )
            assert total.contains(1)
            assert float(total.rad()) < 1e-60


@pytest.mark.dear
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "data"),
    [
        (LapGraph(1.0, 4), PATH),
        (LapGraph(30.0, 4), PATH),
        (LocalLaplaceGraph(2.0, 4), PATH),
        (LocalLaplaceRow(3.0), np.array([1, 0, 0, 1, 0], np.int8)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_sampler_agrees_with_the_law(mechanism, data):
    alpha, size = 1e-6, 60_000
    law = mechanism.distribution(data)
    outputs = mechanism(data, size, rng=np.random.default_rng(1))
    counts = np.bincount(
        [law.index[key] for key in row_keys(outputs)], minlength=len(law.outcomes)
    )
    expected = law.floats * size
    common = expected >= 5
    observed = np.append(counts[common], counts[~common].sum())
    theory = np.append(expected[common], expected[~common].sum())
    kept = theory > 0
    p = stats.chisquare(
        observed[kept], theory[kept] * observed.sum() / theory.sum()
    ).pvalue
    assert p >= alpha, f"chi-square p = {p:.2g} < alpha = {alpha}"


def test_too_many_cells_are_refused():
    with pytest.raises(
        MechanismError, match="15 cells has 2\\^15 outcomes; use at most 10"
    ):
        LapGraph(1.0, 6).distribution(np.zeros((6, 6)))
