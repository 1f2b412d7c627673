"""HeteroRR's experiments: what their settings mean, and small runs on a graph of two communities."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

import torch

from gnn import datasets
from gnn.datasets.generated import stochastic_block_model
from gnn.experiments.catalogue import hetero_rr
from gnn.experiments.catalogue.hetero_rr import (
    CLEAN,
    EXPERIMENTS,
    PUBLIC_ALONE,
    both_guarantee,
    edge_guarantee,
    edge_release,
    feature_guarantee,
    feature_release,
    utility,
)
from gnn.experiments.grid import settings
from gnn.pipelines.hetero_rr import EdgeRelease, FeatureRelease

FOUND = {each.name: each for each in EXPERIMENTS}
LEARNING = {"learning rate": 0.01, "epochs": 60}


@pytest.fixture
def communities(monkeypatch, tmp_path):
    """In place of every data set."""
    data = stochastic_block_model(
        [60, 60],
        inside=0.1,
        across=0.005,
        features=6,
        signal=4.0,
        rng=np.random.default_rng(0),
    )
    data.x = torch.sigmoid(data.x)
    monkeypatch.setattr(datasets, "load", lambda name, folder: data)
    monkeypatch.setenv("AUDITDP_DATA", str(tmp_path))
    hetero_rr.prepared.cache_clear()
    yield data
    hetero_rr.prepared.cache_clear()


@pytest.mark.parametrize("name", FOUND)
def test_every_setting_is_a_release(name):
    for each in settings(FOUND[name], "paper"):
        if "epsilon_f" in each:
            FeatureRelease(**feature_release(each))
        if "epsilon_e" in each:
            EdgeRelease(**edge_release(each))


def test_what_has_no_budget_is_run_once():
    features = settings(FOUND["hetero-rr-features"], "paper")
    assert sum(each["method"] == CLEAN for each in features) == 2
    edges = settings(FOUND["hetero-rr-edges"], "paper")
    assert sum(each["edges"] in (CLEAN, PUBLIC_ALONE) for each in edges) == 2 * 4 * 2


def test_what_the_audits_support():
    def features(**changes):
        return feature_guarantee(
            {"method": "FeatureRR", "epsilon_f": 4.0, "form": "published"} | changes
        )

    def edges(**changes):
        return edge_guarantee(
            {"edges": "EdgeRR", "epsilon_e": 1.0, "form": "published"} | changes
        )

    assert features().supports is None
    assert (
        features(form="repaired").supports == features(method="Duchi").supports == 4.0
    )
    assert (
        features(method="Duchi", used="sampled").audit != features(method="Duchi").audit
    )
    assert features(method=CLEAN).printed is None
    assert edges().supports is None
    assert edges(form="repaired").supports == edges(edges="EdgeRand").supports == 1.0
    both = {
        "method": "FeatureRR",
        "epsilon_f": 4.0,
        "edges": "EdgeRR",
        "epsilon_e": 1.0,
    }
    assert both_guarantee(both | {"form": "published"}).supports is None
    assert 4.0 < features().at_most < 1.25 * 4.0
    assert features(form="repaired").at_most is None
    assert (
        both_guarantee(both | {"form": "repaired"}).supports
        == both_guarantee(both).printed
        == 5.0
    )


def test_features_on_communities(communities):
    clean = utility(
        {"data": "Cora", "method": CLEAN, "epsilon_f": 1.0} | LEARNING, 1, "cpu"
    )
    noisy = utility(
        {"data": "Cora", "method": "Duchi", "epsilon_f": 1.0} | LEARNING, 1, "cpu"
    )
    assert clean["F1"] > 0.9
    assert noisy["F1"] <= clean["F1"]
    assert "LinkTeller AUC" not in clean


def test_link_teller_finds_the_edges_of_the_clean_graph_and_less_where_private_ones_are_left_out(
    communities,
):
    base = {
        "data": "Cora",
        "rho": 0.3,
        "epsilon_e": 1.0,
        "steps": 2,
        "form": "published",
    } | LEARNING
    clean, public = (
        utility(base | {"edges": name}, 1, "cpu") for name in (CLEAN, PUBLIC_ALONE)
    )
    assert clean["LinkTeller AUC"] > 0.95
    assert clean["private edges kept"] == 1
    assert public["private edges kept"] == 0
    assert public["LinkTeller AUC"] < clean["LinkTeller AUC"] - 0.1
    released = utility(base | {"edges": "EdgeRR"}, 1, "cpu")
    assert released["released edges"] >= public["released edges"]


def test_both_are_released_together(communities):
    setting = {
        "method": "FeatureRR",
        "edges": "EdgeRR",
        "epsilon_f": 10.0,
        "epsilon_e": 2.0,
        "form": "repaired",
    }
    found = utility(
        setting | {"data": "Cora", "rho": 0.2, "steps": 2} | LEARNING, 1, "cpu"
    )
    assert set(found) == {metric.name for metric in FOUND["hetero-rr-both"].metrics}
