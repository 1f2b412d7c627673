"""Laws of finitely many outputs, what all laws refuse, and envelopes."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from auditdp.errors import MechanismError
from auditdp.evidence.exact_losses import envelope_losses
from auditdp.mechanism.laws import (
    Envelope,
    FiniteLaw,
    GaussianLaw,
    LaplaceLaw,
    StepLaw,
    precision,
    row_keys,
)

BITS = np.array([0, 1])
HALF = Fraction(1, 2)
QUARTER = Fraction(1, 4)
TINY = Fraction(1, 10**300)
ONE = np.ones(1)
TWO = np.ones(2)
with precision():
    THIRD = arb(1) / 3


REFUSED = {
    FiniteLaw: [
        ((BITS, [HALF]), "2 outcomes but 1"),
        ((BITS, [Fraction(3, 2), -HALF]), "minimum -0.5"),
        (([0, 1, 2], [0.75, 0.25 + 1e-9, -1e-9]), "minimum -1e-09"),
        ((BITS, [0.5, 0.4]), "sum 0.9"),
        ((BITS, [math.nan, 0.5]), "sum nan"),
        # The mass that is not listed may be where the two inputs differ.
        ((BITS, [HALF, HALF - Fraction(1, 10**15)]), "sum"),
        (([0], [1 - TINY]), "exactly"),
        (([1, 1], [HALF, HALF]), "twice"),
    ],
    StepLaw: [
        (([0, 1],), "2 breaks and 0 densities"),
        (([0, 1], [1], [0]), "1 atoms and 0 probabilities"),
        (([0, 0, 1], [1, 1]), "increasing"),
        (((), (), [1, 1], [HALF, HALF]), "distinct"),
        (([0, 1, 2], [Fraction(2), Fraction(-1)]), ">= 0"),
        (([0, 1], [HALF]), "sum 0.5"),
        (([0, math.inf], [1.0]), "finite"),
        (((), (), [0, math.nan], [0.5, 0.5]), "finite"),
    ],
    GaussianLaw: [
        ((ONE, 0.0), "sigma > 0"),
        ((ONE, math.inf), "sigma > 0"),
        ((ONE, math.nan), "sigma > 0"),
        ((np.zeros((1, 1)), 1.0), "location"),
    ],
    LaplaceLaw: [
        ((TWO, np.ones(3)), "LaplaceLaw"),
        ((ONE, 0 * ONE), "LaplaceLaw"),
        ((ONE, math.nan * ONE), "LaplaceLaw"),
    ],
    Envelope: [
        (([0], [1], [], [(0, 1)]), "as many"),
        (([], [], [], []), "as many"),
        (([0], [QUARTER], [HALF], [(0, 1)], 0), "uses"),
        (([0], [HALF], [QUARTER], [(0, 1)]), "least <= most"),
    ],
}


@pytest.mark.parametrize("law", REFUSED)
def test_other_numbers_are_no_law(law):
    for arguments, fragment in REFUSED[law]:
        with pytest.raises(MechanismError, match=fragment):
            law(*arguments)


def test_floats_and_balls_may_be_off_by_their_rounding():
    assert FiniteLaw(np.arange(10), [0.1] * 10).floats.sum() == pytest.approx(1)
    FiniteLaw(BITS, [arb(0.5, 1e-6), arb(0.5, 1e-6)])
    StepLaw([0, 3], [THIRD])
    StepLaw([0, 3], [1 / 3])
    assert FiniteLaw(BITS, [1 - TINY, TINY]).left_out.most == 0


def test_outputs_have_their_log_probability():
    rows = np.array([[0, 0], [0, 1], [1, 1], [2, 2]])
    law = FiniteLaw(rows, [HALF, QUARTER, QUARTER, Fraction(0)])
    logs = law.log_prob(np.array([[1, 1], [1, 0], [0, 0], [0, 1], [2, 2]]))
    assert np.exp(logs).tolist() == pytest.approx([0.25, 0.0, 0.5, 0.25, 0.0])


def test_a_value_that_is_listed_twice_has_a_place_for_each_type():
    law = FiniteLaw([0, 1, 1.0], [HALF, QUARTER, QUARTER])
    assert law.places([1.0, 1, 0, 0.0, 2]).tolist() == [2, 1, 0, 0, -1]
    assert law.places([0, 0.0], split=frozenset(law.values)).tolist() == [0, -1]


def test_keys_tell_rows_apart_and_minus_zero_is_zero():
    keys = row_keys(np.array([[0, 1], [1, 0], [0, 1]]))
    assert keys[0] == keys[2] != keys[1]
    assert len(set(row_keys(np.array([0.1, np.nextafter(0.1, 1)])))) == 2
    zeros = [np.array([0.0]), np.array([-0.0]), np.array([0]), [False]]
    assert len({row_keys(zero)[0] for zero in zeros}) == 1


def test_an_envelope_loses_as_much_on_every_use():
    least = [QUARTER, HALF, Fraction(0)]
    most = [HALF, HALF, QUARTER]
    stated = Envelope(["a", "b", "c"], least, most, [(0, 1)] * 3, uses=3)
    losses = [loss.lower for loss in envelope_losses(stated)]
    assert losses == pytest.approx([3 * math.log(2), 0, math.inf])
