"""Grids, restrictions and seeds."""

import math

import pytest

from auditdp.errors import ConfigurationError
from gnn.experiments.experiment import Comparison, Experiment, Factor, Metric, Plot
from gnn.experiments.grid import canonical, cells, plain, restricted, settings
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


def test_a_grid_is_the_product_of_its_factors_without_what_is_left_out():
    found = settings(small(keep=lambda p: p["a"] < 3 or p["b"] == "x"), "paper")
    assert [(s["a"], s["b"]) for s in found] == [
        (1, "x"),
        (1, "y"),
        (2, "x"),
        (2, "y"),
        (3, "x"),
    ]


def test_profiles_differ_in_values_and_repetitions():
    assert len(cells(TOY, profile="paper", root_seed=1)) == 3 * (3 * 2 + 3)
    quick = cells(TOY, profile="quick", root_seed=1)
    assert len(quick) == 2 * (2 * 2 + 2)
    assert {cell.parameters["epochs"] for cell in quick} == {3}
    assert [cell.repetition for cell in quick] == [0] * 6 + [1] * 6


def test_a_repaired_setting_follows_the_published_one():
    forms = [(s["epsilon"], s["method"], s["form"]) for s in settings(TOY, "quick")]
    assert forms[:3] == [
        (1.0, "ours", "published"),
        (1.0, "ours", "repaired"),
        (1.0, "theirs", "published"),
    ]
    assert "form" not in settings(small(), "paper")[0]


def test_restrictions_of_one_factor_widen_and_of_several_narrow():
    every = settings(TOY, "paper")
    found = restricted(
        TOY, every, ["epsilon=1", "epsilon=0.5", "method=ours", "form=published"]
    )
    assert [s["epsilon"] for s in found] == [0.5, 1.0]


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("epsilom=1", "no factor 'epsilom'; did you mean 'epsilon'"),
        ("method=our", "no value 'our' here; did you mean 'ours'"),
        ("epsilon=7", "no value '7' here; known: 0.5, 1, 2"),
        ("ours", "expected FACTOR=VALUE, such as epsilon=0.5"),
    ],
)
def test_bad_restrictions_say_what_there_is(only, message):
    with pytest.raises(ConfigurationError, match=message):
        cells(TOY, profile="paper", root_seed=1, only=[only])
    with pytest.raises(ConfigurationError, match="no setting of toy has all of these"):
        cells(
            TOY, profile="paper", root_seed=1, only=["method=theirs", "form=repaired"]
        )


def test_a_seed_depends_on_everything_that_names_the_cell_and_on_nothing_else():
    whole = {(cell.key, cell.seed) for cell in cells(TOY, profile="paper", root_seed=1)}
    assert len({seed for _, seed in whole}) == len(whole) == 27
    assert {
        (c.key, c.seed)
        for c in cells(TOY, profile="paper", root_seed=1, only=["method=ours"])
    } < whole
    assert not {c.seed for c in cells(TOY, profile="paper", root_seed=2)} & {
        seed for _, seed in whole
    }
    assert all(0 <= seed < 2**63 for _, seed in whole)


def test_seeds_stay_the_same_for_ever():
    """Known values: a change here would make every record of the past worthless."""
    first = cells(small(), profile="paper", root_seed=20240229)[0]
    assert (first.seed, first.key) == (SEED, KEY)


SEED, KEY = 5566858084352085178, "bdd81e6c261afa612ad03b3f"


def test_values_of_a_common_factor_share_seeds_and_not_keys():
    found = cells(small(common=("b",)), profile="quick", root_seed=1)
    seeds = {(cell.parameters["a"], cell.seed) for cell in found}
    assert len(seeds) == 3
    assert len({cell.key for cell in found}) == 6


def test_another_version_is_another_cell():
    old, new = (
        cells(small(version=version), profile="quick", root_seed=1)[0]
        for version in (1, 2)
    )
    assert old.key != new.key


def test_numbers_have_one_form():
    assert (
        canonical({"b": 1.0, "a": math.inf})
        == '{"a": "inf", "b": 1}'
        == canonical({"a": math.inf, "b": 1})
    )
    assert plain(0.1) == 0.1
    assert plain(True) is True


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"factors": (Factor("a", (1,)), Factor("a", (2,)))}, "different names"),
        ({"factors": (Factor("form", (1,)),)}, "other than 'form'"),
        ({"factors": (Factor("a", ()),)}, "each with a value"),
        ({"repetitions": {"quick": 1}}, "repetitions >= 1 for quick and paper"),
        (
            {"plots": (Plot("n", x="a"),)},
            "no metric 'n'; did you mean|no metric 'n'; known: m",
        ),
        ({"plots": (Plot("m", x="aa"),)}, "no factor 'aa'; did you mean 'a'"),
        ({"comparisons": (Comparison("m", "c", 1, 2),)}, "no factor 'c'"),
        ({"common": ("d",)}, "no factor 'd'"),
    ],
)
def test_an_experiment_that_is_declared_wrong_says_so(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        small(**changes)
