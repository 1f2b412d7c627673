"""Grids, restrictions and seeds."""

import math

import pytest

from auditdp.errors import ConfigurationError
from gnn.experiments.experiment import Experiment, Factor, Metric
from gnn.experiments.grid import canonical, cells, restricted, settings
from tests.unit.gnn.experiments.toy import TOY


def small(**changes):
    """An experiment of two factors."""
    arguments = {
        "name": "small",
        "title": "t",
        "source": "s",
        "factors": (Factor("a", (1, 2, 3)), Factor("b", ("x", "y"))),
        "metrics": (Metric("m"),),
        "cell": lambda parameters, seed, device: {"m": 0.0},
        "repetitions": {"quick": 1, "paper": 2},
    }
    return Experiment(**arguments | changes)


def toy_cells(root_seed=1, **arguments):
    return cells(TOY, profile="paper", root_seed=root_seed, **arguments)


def seeds(found):
    return {cell.seed for cell in found}


def test_a_grid_is_the_product_of_its_factors_without_excluded_settings():
    found = settings(small(keep=lambda p: p["a"] < 3 or p["b"] == "x"), "paper")
    names = "".join(f"{s['a']}{s['b']} " for s in found)
    assert names == "1x 1y 2x 2y 3x "


def test_restrictions_of_one_factor_widen_and_of_several_narrow():
    only = ["epsilon=1", "epsilon=0.5", "method=ours", "form=published"]
    found = restricted(TOY, settings(TOY, "paper"), only)
    assert [s["epsilon"] for s in found] == [0.5, 1.0]


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("epsilom=1", "no factor 'epsilom'; did you mean 'epsilon'"),
        ("method=our", "no value 'our' here; did you mean 'ours'"),
        ("method=theirs form=repaired", "no setting of toy has all of these"),
    ],
)
def test_bad_restrictions_list_the_allowed_ones(only, message):
    with pytest.raises(ConfigurationError, match=message):
        toy_cells(only=only.split())


def test_a_seed_depends_on_the_names_of_the_cell_and_on_nothing_else():
    whole = toy_cells()
    assert len(seeds(whole)) == 27
    assert all(0 <= seed < 2**63 for seed in seeds(whole))
    assert seeds(toy_cells(only=["method=ours"])) < seeds(whole)
    assert not seeds(toy_cells(root_seed=2)) & seeds(whole)


def test_seeds_and_keys_are_the_known_ones():
    """A change here would make every record of the past worthless."""
    first = cells(small(), profile="paper", root_seed=20240229)[0]
    assert first.seed == 5566858084352085178
    assert first.key == "bdd81e6c261afa612ad03b3f"

    newer = cells(small(version=2), profile="paper", root_seed=20240229)[0]
    assert newer.key != first.key


def test_values_of_a_common_factor_share_seeds_and_not_keys():
    found = cells(small(common=("b",)), profile="quick", root_seed=1)
    assert len({(cell.parameters["a"], cell.seed) for cell in found}) == 3
    assert len({cell.key for cell in found}) == 6


def test_numbers_have_one_form():
    expected = '{"a": "inf", "b": 1, "c": 0.1, "d": true}'
    for one in (1, 1.0):
        assert canonical({"b": one, "a": math.inf, "d": True, "c": 0.1}) == expected
