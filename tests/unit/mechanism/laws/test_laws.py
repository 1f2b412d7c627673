"""Laws: what they refuse, how outputs find their probability, and the closed form for Laplace noise."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from scipy.stats import laplace

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import (
    PRECISION_BITS,
    FiniteLaw,
    LaplaceLaw,
    ball,
    precision,
    row_keys,
)

BITS = np.array([0, 1])


@pytest.mark.parametrize(
    ("probabilities", "shown"),
    [
        ([Fraction(1, 2)], "2 outcomes but 1"),
        ([Fraction(1, 2), Fraction(1, 2), Fraction(0)], "2 outcomes but 3"),
        ([Fraction(3, 2), Fraction(-1, 2)], "minimum -0.5"),
        ([0.5, 0.4], "sum 0.9"),
        ([0.7, 0.7], "sum 1.4"),
        ([math.nan, 0.5], "sum nan"),
        ([math.inf, 0.5], "sum inf"),
        ([arb(0.5), arb(0.25)], "sum 0.75"),
    ],
)
def test_what_is_no_law_is_refused(probabilities, shown):
    with pytest.raises(MechanismError, match=shown):
        FiniteLaw(BITS, probabilities)


@pytest.mark.parametrize(
    "missing", [Fraction(1, 10**10), Fraction(1, 10**15), Fraction(-1, 10**10)], ids=str
)
def test_exact_probabilities_must_sum_to_one_exactly(missing):
    """Whatever mass is not listed may be where the two inputs differ, so nothing could be certified from such a law."""
    with pytest.raises(MechanismError, match="sum"):
        FiniteLaw(BITS, [Fraction(1, 2), Fraction(1, 2) - missing])


def test_balls_must_be_able_to_sum_to_one():
    with precision():
        FiniteLaw(BITS, [arb(0.5, 1e-6), arb(0.5, 1e-6)])
        with pytest.raises(MechanismError, match="sum"):
            FiniteLaw(BITS, [arb(0.5, 1e-14), arb(0.5, 1e-14) - arb("1e-10")])


def test_an_outcome_is_listed_once():
    with pytest.raises(MechanismError, match="twice"):
        FiniteLaw(np.array([1, 1]), [Fraction(1, 2), Fraction(1, 2)])
    with pytest.raises(MechanismError, match="twice"):
        FiniteLaw([(1, None), (1, None)], [Fraction(1, 2), Fraction(1, 2)])


def test_floats_may_be_off_by_their_rounding():
    law = FiniteLaw(np.arange(10), [0.1] * 10)
    assert law.floats.sum() == pytest.approx(1)


def test_log_prob_of_listed_and_impossible_outputs():
    law = FiniteLaw(
        np.array([[0, 0], [0, 1], [1, 1]]),
        [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)],
    )
    logs = law.log_prob(np.array([[1, 1], [1, 0], [0, 0], [0, 1]]))
    assert logs.tolist() == pytest.approx(
        [math.log(0.25), -math.inf, math.log(0.5), math.log(0.25)]
    )


def test_an_outcome_of_probability_zero_is_impossible():
    assert FiniteLaw(BITS, [Fraction(1), Fraction(0)]).log_prob(BITS).tolist() == [
        0.0,
        -math.inf,
    ]


def test_of_a_value_that_is_listed_twice_an_outcome_stands_for_its_own_kind():
    law = FiniteLaw([0, 1, 1.0], [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)])
    assert law.places([1.0, 1, 0, 0.0, 2]).tolist() == [2, 1, 0, 0, -1]
    assert law.places([0, 0.0], split=frozenset(law.values)).tolist() == [0, -1]


@pytest.mark.parametrize(
    "kind",
    [bool, np.int8, np.int64, np.uint8, np.float32, np.float64],
    ids=lambda k: k.__name__,
)
def test_numbers_agree_whatever_their_type(kind):
    law = FiniteLaw(BITS, [Fraction(1, 4), Fraction(3, 4)])
    assert np.exp(law.log_prob(np.array([1, 0, 1], kind))).tolist() == pytest.approx(
        [0.75, 0.25, 0.75]
    )


def test_minus_zero_is_zero():
    assert (
        row_keys(np.array([0.0]))
        == row_keys(np.array([-0.0]))
        == row_keys(np.array([0]))
        == row_keys([False])
    )
    law = FiniteLaw(np.array([0.0, 1.0]), [Fraction(1, 4), Fraction(3, 4)])
    assert law.log_prob(np.array([-0.0]))[0] == pytest.approx(math.log(0.25))


def test_keys_tell_rows_apart():
    rows = np.array([[0, 1], [1, 0], [0, 1]])
    keys = row_keys(rows)
    assert keys[0] == keys[2] != keys[1]
    assert len(set(row_keys(np.array([0.1, np.nextafter(0.1, 1)])))) == 2


def test_balls_contain_their_value():
    with precision():
        assert ball(Fraction(1, 3)).contains(arb(1) / 3)
        assert ball(Fraction(1, 3)).rad() < 1e-70
        assert ball(3) == 3
        assert ball(np.int64(3)) == 3
        wide = ball(0.1)
        assert wide.contains(arb(1) / 10)
        assert float(wide.rad()) == pytest.approx(1e-10 + 1e-12, rel=1e-3)
        assert float(ball(0.0).rad()) == pytest.approx(1e-12, rel=1e-3)
        assert ball(0) == 0
    exact = arb(0.25)
    assert ball(exact) is exact


def test_precision_is_put_back():
    before = ctx.prec
    with precision():
        assert ctx.prec == PRECISION_BITS
    assert ctx.prec == before
    with pytest.raises(ZeroDivisionError), precision():
        1 / 0  # noqa: B018 - any error inside
    assert ctx.prec == before


def test_the_laplace_epsilon_is_the_supremum_of_the_log_ratio():
    location, other, scale = (
        np.array([0.0, 1.0, 5.0]),
        np.array([0.5, -1.25, 5.0]),
        np.array([1.0, 2.0, 0.5]),
    )
    y = np.linspace(-20, 20, 4001)
    ratios = [
        laplace.logpdf(y, a, s) - laplace.logpdf(y, b, s)
        for a, b, s in zip(location, other, scale, strict=True)
    ]
    one, two = LaplaceLaw(location, scale), LaplaceLaw(other, scale)
    # Coordinates are independent: the supremum over the product is the sum of the suprema.
    assert float(one.epsilon_against(two)) == pytest.approx(
        sum(r.max() for r in ratios), rel=1e-9
    )
    assert float(two.epsilon_against(one)) == pytest.approx(
        sum((-r).max() for r in ratios), rel=1e-9
    )


def test_the_laplace_epsilon_is_exact():
    one, two = (
        LaplaceLaw(np.array([0.1, 1.0]), np.array([0.3, 3.0])),
        LaplaceLaw(np.array([0.4, 2.0]), np.array([0.3, 3.0])),
    )
    assert one.epsilon_against(two) == (Fraction(0.4) - Fraction(0.1)) / Fraction(
        0.3
    ) + Fraction(1, 3)
    assert one.epsilon_against(one) == 0
    assert isinstance(one.epsilon_against(two), Fraction)


def test_laplace_laws_of_different_scales_have_no_closed_form():
    with pytest.raises(MechanismError, match="scale depends on the data"):
        LaplaceLaw(np.zeros(1), np.ones(1)).epsilon_against(
            LaplaceLaw(np.zeros(1), 2 * np.ones(1))
        )


@pytest.mark.parametrize(
    ("location", "scale"),
    [
        (np.zeros(2), np.ones(3)),
        (np.zeros((2, 2)), np.ones((2, 2))),
        (0.0, 1.0),
        (np.zeros(2), np.array([1.0, 0.0])),
        (np.zeros(2), np.array([1.0, -1.0])),
        (np.zeros(2), np.array([1.0, math.nan])),
    ],
)
def test_what_is_no_laplace_law_is_refused(location, scale):
    with pytest.raises(MechanismError, match="LaplaceLaw"):
        LaplaceLaw(location, scale)
