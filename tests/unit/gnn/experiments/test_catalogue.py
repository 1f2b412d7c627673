"""The experiments of this project: what they declare, what they name, and small runs of them."""

import os
from pathlib import Path

import numpy as np
import pytest

from auditdp.errors import ConfigurationError
from gnn.experiments.catalogue import Catalogue, catalogue
from gnn.experiments.catalogue.dprr_cost import (
    barabasi_albert_cost,
    degrees,
    deployed,
    reddit_cost,
    sampled,
)
from gnn.experiments.experiment import PROFILES
from gnn.experiments.grid import settings
from gnn.experiments.privacy import Ledger
from mechanisms.graphs import Graph
from tests.unit.gnn.experiments.toy import TOY

ROOT = Path(__file__).resolve().parents[4]
ALL = list(catalogue().experiments.values())
LEDGER = Ledger.read(ROOT / "reports" / "claims.json").lines


@pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.name)
def test_every_setting_has_a_guarantee_whose_audit_is_in_the_ledger(experiment):
    for profile in PROFILES:
        assert settings(experiment, profile)
        for setting in settings(experiment, profile):
            audit = experiment.guarantee(setting).audit
            assert not audit or audit in LEDGER, audit
            for metric in experiment.metrics:
                experiment.published(setting, metric.name)
            experiment.files(setting)


def test_two_experiments_of_one_name_are_refused():
    with pytest.raises(ConfigurationError, match="two experiments are called 'toy'"):
        Catalogue.of([TOY, TOY])
    assert [each.name for each in Catalogue.of([TOY]).chosen(["all"])] == ["toy"]


# DPRR


def setting(**changes):
    return {
        "mechanism": "DPRR",
        "epsilon": 1.0,
        "nodes": 300,
        "m": 3,
        "graphs": 2,
        "form": "published",
    } | changes


def test_the_published_allocation_exceeds_its_budget_and_the_repaired_one_keeps_to_it():
    """√(8/3781) = .046 is more than a tenth of .2: .046 + .18 = .226."""
    published, repaired = (
        deployed(setting(epsilon=0.2, form=form), nodes_max=3782)
        for form in ("published", "repaired")
    )
    assert published.epsilon1 + published.epsilon2 == pytest.approx(0.2259989, abs=1e-6)
    assert repaired.epsilon1 + repaired.epsilon2 <= 0.2
    found = {e.name: e for e in ALL}["dprr-degrees"]
    forms = [
        (s["data"], s["epsilon"])
        for s in settings(found, "paper")
        if s["form"] == "repaired"
    ]
    assert forms == [("REDDIT-BINARY", 0.2), ("Barabási–Albert m = 5", 0.2)]


def test_randomised_response_is_dense_and_dprr_is_not():
    """RR sends n(n−1)/(1+e) flipped bits beside its 2·897·(1−1/(1+e)) true ones, less what it flips of them."""
    rr, dprr = (
        barabasi_albert_cost(setting(mechanism=name), 3, "cpu")
        for name in ("RR", "DPRR")
    )
    zeros, ones, flip = 300 * 299 - 2 * 891, 2 * 891, 1 / (1 + np.e)
    assert rr["edges received"] == pytest.approx(
        zeros * flip + ones * (1 - flip), rel=0.02
    )
    assert dprr["edges received"] < rr["edges received"] / 4
    assert dprr["peak memory"] < rr["peak memory"]
    assert dprr["mean nodes"] == 300
    assert min(rr["release"], rr["aggregation"]) > 0


def test_a_share_of_the_nodes_keeps_the_edges_among_them():
    graph = Graph.from_matrix(1 - np.eye(10, dtype=np.int8))
    found = sampled(graph, 0.5, np.random.default_rng(0))
    assert (found.nodes, found.edges.shape[1]) == (5, 10)
    assert sampled(graph, 0.0, np.random.default_rng(0)).nodes == 2


def test_degrees_under_dprr_follow_the_true_ones_and_randomised_responses_do_not():
    data = "Barabási–Albert m = 5"
    dprr, rr = (
        degrees(setting(mechanism=name, data=data, graphs=1, epsilon=2.0), 1, "cpu")
        for name in ("DPRR", "RR")
    )
    assert dprr["correlation"] > 0.7 > rr["correlation"]
    assert abs(dprr["d̃ − d"]) < 10 < 150 < rr["d̃ − d"]
    assert dprr["noisy degree"][0][0] == pytest.approx(
        2**2.25
    )  # the smallest degree is 5, or 1 in the first star


@pytest.mark.skipif(
    not (Path(os.environ.get("AUDITDP_DATA", "")) / "reddit_binary.npz").is_file(),
    reason="needs reddit_binary.npz",
)
def test_reddit_graphs_are_sampled_with_the_largest_among_them():
    found = reddit_cost(
        {"mechanism": "LocalLap", "epsilon": 1.0, "rate": 0.5, "graphs": 1}, 1, "cpu"
    )
    assert found["mean nodes"] == 1891
