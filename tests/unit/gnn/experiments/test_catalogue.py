"""All experiments: budgets of their settings, printed numbers, and costs of DPRR."""

import numpy as np
import pytest

from gnn.experiments.catalogue import catalogue
from gnn.experiments.catalogue.dprr_cost import barabasi_albert_cost
from gnn.experiments.experiment import PROFILES
from gnn.experiments.grid import settings
from tests.unit.gnn.experiments.toy import LEDGER

ALL = catalogue().experiments


@pytest.mark.parametrize("name", ALL)
def test_every_setting_has_a_guarantee_whose_audit_is_in_the_ledger(name):
    experiment = ALL[name]
    for profile in PROFILES:
        found = settings(experiment, profile)
        assert found
        for setting in found:
            audit = experiment.guarantee(setting).audit
            assert not audit or audit in LEDGER.lines, audit
            for metric in experiment.metrics:
                experiment.published(setting, metric.name)
            experiment.files(setting)


# The cost of DPRR

SETTING = {
    "mechanism": "DPRR",
    "epsilon": 1.0,
    "nodes": 300,
    "m": 3,
    "graphs": 1,
    "form": "published",
    "data": "Barabási–Albert m = 5",
}


def test_randomised_response_is_dense_and_dprr_is_not():
    """2·891 of n(n−1) bits are ones; each is flipped with probability 1/(1+e)."""
    rr = barabasi_albert_cost(SETTING | {"mechanism": "RR"}, 3, "cpu")
    dprr = barabasi_albert_cost(SETTING, 3, "cpu")
    ones, flip = 2 * 891, 1 / (1 + np.e)
    expected = (300 * 299 - ones) * flip + ones * (1 - flip)

    assert rr["edges received"] == pytest.approx(expected, rel=0.02)
    assert dprr["edges received"] < rr["edges received"] / 4
    assert dprr["peak memory"] < rr["peak memory"]
    assert dprr["mean nodes"] == 300
