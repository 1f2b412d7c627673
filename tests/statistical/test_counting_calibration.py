"""Bounds from counts at their tightest cases are wrong no more often than stated.

The whole table of cases is in ``benchmarks/false_alarms_counting.py``, with fewer
repeats in ``test_false_alarms.py``.
"""

import numpy as np
import pytest
from scipy.stats import binom

from auditdp.numerics.streams import stream
from benchmarks.false_alarms_counting import ALPHA, FALSE_ALARMS

pytestmark = pytest.mark.statistical

REPEATS = 2_000
FALSE_FAILURE = 1e-6
TIGHT = {
    "ε too low: one event decides": 0.005,
    "δ(½) too low: one event decides": 0.005,
    "no such event: one event decides": 0.005,
    "distance too low: wrong by a bias of .05": 0.02,
    "law refuted: normal": 0.02,
    "law refuted: two outputs": 0.0,
}
"""What is least favourable, and a rate that it must reach: a case in which nothing can go wrong would test nothing."""


@pytest.mark.dear
@pytest.mark.parametrize("name", TIGHT)
def test_bounds_are_wrong_at_most_as_often_as_stated(name):
    """Each assertion fails by chance with probability 1e-6 at most."""
    wrong = FALSE_ALARMS[name](REPEATS, stream(5, name))
    assert wrong <= binom.isf(FALSE_FAILURE, REPEATS, ALPHA), (
        f"{wrong} of {REPEATS} at alpha = {ALPHA}"
    )
    assert wrong >= binom.ppf(FALSE_FAILURE, REPEATS, TIGHT[name]), (
        f"{wrong} of {REPEATS}: no tight case"
    )


def test_tables_are_drawn_anew():
    rates = {
        FALSE_ALARMS["ε too low: one event decides"](100, np.random.default_rng(seed))
        for seed in range(6)
    }
    assert len(rates) > 1
