"""Verdicts by accounting are proofs.

None of 2,000 random lists of accountants (a tenth in the short form) is wrong.
"""

import numpy as np
import pytest

from auditdp.accountants import cross_checks
from benchmarks.false_alarms_accounting import FALSE_ALARMS

LISTS = {
    "Gaussian noise, lists of accountants": 500,
    "randomised responses, lists of accountants": 300,
    "one selection, lists of accountants": 150,
    "sampled response, lists of accountants": 1_000,
    "one step of DP-SGD, lists of accountants": 100,
}
"""How many of each are drawn in full, 2,050 in all."""


@pytest.mark.dear
@pytest.mark.statistical
@pytest.mark.parametrize(("name", "lists"), LISTS.items())
def test_no_list_of_accountants_makes_a_wrong_verdict(name, lists, repeats):
    """Not a statistical statement: one wrong verdict is a fault, whatever α is."""
    assert FALSE_ALARMS[name](repeats(lists), np.random.default_rng(20240229)) == 0


@pytest.mark.dear
@pytest.mark.parametrize("name", LISTS)
def test_the_oracle_finds_a_cross_check_that_takes_any_class_for_the_mechanism(
    name, monkeypatch
):
    """Many verdicts would be wrong if the worst of a wider class were attained."""
    monkeypatch.setattr(cross_checks, "within", lambda narrow, wide: True)
    assert FALSE_ALARMS[name](40, np.random.default_rng(20240229)) >= 3
