"""The error bound of the convolution, against the same sums in balls.

The window holds nearly all of the mass.
"""

import math

import numpy as np
import pytest
from flint import arb, arb_poly
from hypothesis import given
from hypothesis import strategies as st

from auditdp.accountants import AccountantError, PLDUpper
from auditdp.accountants.convolution import Tilt, repeated
from auditdp.mechanism.laws import precision


def in_balls(masses, times):
    with precision(400):
        power = arb_poly([arb(float(m)) for m in masses]) ** times
        return list(power)


def masses_and_errors(found):
    """Yield the number of each mass, and three balls.

    They are the mass without the tilt, its largest error, and the mass that is outside.
    """
    for k, mass in enumerate(found.masses):
        number = found.first + k
        scale = (arb(found.log_total) - arb(found.tilt) * (number - found.origin)).exp()
        slack = arb(found.relative) * arb(float(mass)) * scale
        yield (
            number,
            arb(float(mass)) * scale,
            arb(found.each) * scale + slack,
            arb(found.outside) * scale,
        )


WEIGHTS = st.lists(
    st.floats(0, 1) | st.just(0.0) | st.floats(1e-12, 1e-9), min_size=1, max_size=40
)


@given(
    weights=WEIGHTS,
    times=st.integers(1, 200),
    whole=st.floats(0.9, 1.001),
    slope=st.floats(0, 3) | st.just(0.0),
    orders=st.none() | st.tuples(st.floats(0.01, 3), st.floats(0.01, 3)),
    extended=st.booleans(),
)
def test_every_mass_is_within_its_bound(weights, times, whole, slope, orders, extended):
    masses = np.array(weights) + 1e-9
    masses *= whole / masses.sum()
    found, exact = (
        repeated(masses, times, Tilt(slope, orders=orders, extended=extended)),
        in_balls(masses, times),
    )
    with precision(400):
        inside = set()
        for number, mass, error, outside in masses_and_errors(found):
            inside.add(number)
            # what has wrapped around adds to it
            assert -error <= mass - exact[number]
            assert mass - exact[number] <= error + outside
        elsewhere = sum(
            (
                m * (arb(found.tilt) * (k - found.origin) - found.log_total).exp()
                for k, m in enumerate(exact)
                if k not in inside
            ),
            arb(0),
        )
        assert elsewhere <= found.outside * (1 + found.relative)


def test_tilted_sums_are_right_where_untilted_ones_are_lost():
    """A sum of 300 coins that is 280 has a mass of 2e-60.

    That is 40 digits below what a transform loses without a tilt.
    """
    masses = np.array([0.5, 0.5])
    tilt = Tilt.of(masses, 300, math.log(1e-59))
    found, exact = repeated(masses, 300, tilt), in_balls(masses, 300)
    with precision(400):
        each = {
            number: (mass, error) for number, mass, error, _ in masses_and_errors(found)
        }
        mass, error = each[280]
        assert abs(mass - exact[280]) <= error < exact[280] * 1e-9
    assert repeated(masses, 300, Tilt()).each > 1e-20


def test_the_bound_is_of_use():
    """A thousand uses of 10,000 points.

    All masses together are off by 1e-13, or 2e-10 without extended precision.
    """
    masses = np.exp(-(np.linspace(-6, 6, 10_001) ** 2) / 2)
    found = repeated(masses / masses.sum(), 1000, Tilt())
    assert found.each * len(found.masses) < 1e6 * 4000 * Tilt().unit
    assert found.masses.sum() == pytest.approx(1, abs=1e-10)
    # Sixteen times more uses have four times as wide a sum, and lose sixteen times as
    # much.
    assert repeated(masses / masses.sum(), 16_000, Tilt()).each < 20 * found.each


def test_a_window_that_is_too_narrow_is_detected():
    """A window of e^-2 leaves more outside than e^-48, and the result states it."""
    masses = np.full(50, 0.02)
    found, exact = repeated(masses, 100, Tilt(0.0, -2.0)), in_balls(masses, 100)
    inside = range(found.first, found.first + len(found.masses))
    elsewhere = float(sum((m for k, m in enumerate(exact) if k not in inside), arb(0)))
    assert math.exp(-48) < elsewhere <= found.outside


def test_a_few_large_sums_of_little_probability_do_not_widen_the_window():
    """At orders of 10/deviation·2^−5 and more the added record had 10^8 sums."""
    steps = 1000
    curve = PLDUpper(0.37, 1e-4, steps)
    for loss in curve.losses(1e-15, curve.loss_quantile(1e-15) / 1e4):
        threshold, log_tail = 1e-3 / loss.interval - loss.lowest * steps, math.log(1e-9)
        tilt = Tilt.of(loss.masses, steps, log_tail).towards(
            loss.masses, steps, log_tail, threshold
        )
        assert tilt.length < 100_000


def test_too_many_uses_are_refused():
    with pytest.raises(AccountantError, match="at most"):
        repeated(np.array([0.5, 0.5]), 10**10, Tilt())
