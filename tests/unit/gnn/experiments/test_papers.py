"""The experiments of four papers: parameters and budgets of their settings, small runs."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

import torch

from gnn import datasets
from gnn.experiments.catalogue import dpar, dprr, graph_pub, hetero_rr
from gnn.experiments.grid import settings
from gnn.experiments.privacy import supported
from gnn.pipelines.dpar import DPARParameters
from gnn.pipelines.hetero_rr import EdgeRelease, FeatureRelease
from tests.unit.gnn.draws import two_communities
from tests.unit.gnn.experiments.toy import LEDGER

FOUND = {}
for paper in (dpar, dprr, graph_pub, hetero_rr):
    FOUND |= {each.name: each for each in paper.EXPERIMENTS}

DPAR = {"data": "Cora-ML", "method": "DPAR-EM0", "epsilon": 8.0, "form": "published"}
DPRR = {
    "data": "REDDIT-BINARY",
    "mechanism": "DPRR",
    "epsilon": 1.0,
    "share": 0.0,
    "form": "published",
}
GRAPH_PUB = {
    "data": "Cora",
    "model": "GCN",
    "method": graph_pub.WHOLE,
    "epsilon": 1.0,
    "steps": 5,
    "epochs": 30,
    "form": "published",
}
FEATURES = {"method": "FeatureRR", "epsilon_f": 4.0, "form": "published"}
EDGES = {"edges": "EdgeRR", "epsilon_e": 1.0, "form": "published"}
REPAIRED = {"form": "repaired"}


def papers_settings(name):
    return settings(FOUND[name], "paper")


# Settings


@pytest.mark.parametrize("name", FOUND)
def test_every_setting_has_parameters(name):
    for each in papers_settings(name):
        if name.startswith("dpar"):
            if str(each["method"]).startswith("DPAR"):
                DPARParameters(**dpar.parameters_of(each))
        elif name.startswith("graph-pub"):
            graph_pub.release_of(each)
        elif name.startswith("hetero-rr"):
            if "epsilon_f" in each:
                FeatureRelease(**hetero_rr.feature_release(each))
            if "epsilon_e" in each:
                EdgeRelease(**hetero_rr.edge_release(each))


@pytest.mark.parametrize("name", [each for each in FOUND if each.startswith("dprr")])
def test_a_release_of_dprr_spends_the_stated_budget(name):
    for each in papers_settings(name):
        stated = dprr.guarantee(each)
        if stated.printed is None:
            assert each["mechanism"].startswith("NonPriv")
        elif each["mechanism"] != "NonPriv-Part":
            spent = dprr.released(each).spent
            assert spent == pytest.approx(stated.supports, rel=1e-9)
            assert spent <= stated.supports * (1 + 1e-12)
            assert supported(stated, LEDGER).startswith("ε ≤")


# Budgets


@pytest.mark.parametrize(
    ("guarantee", "setting", "changes", "supports"),
    [
        (dpar.guarantee, DPAR, {}, None),
        (dpar.guarantee, DPAR, REPAIRED, 8.0),
        (dpar.guarantee, DPAR, {"method": "GAP", "epsilon": 1.0}, 1.0),
        (graph_pub.guarantee, GRAPH_PUB, {}, None),
        (graph_pub.guarantee, GRAPH_PUB, REPAIRED, 1.0),
        # An edge is in two lists of DPRR.
        (graph_pub.guarantee, GRAPH_PUB, {"method": "DPRR"}, 2.0),
        (hetero_rr.feature_guarantee, FEATURES, REPAIRED, 4.0),
        (hetero_rr.feature_guarantee, FEATURES, {"method": "Duchi"}, 4.0),
        (hetero_rr.both_guarantee, FEATURES | EDGES, {}, None),
        (hetero_rr.both_guarantee, FEATURES | EDGES, REPAIRED, 5.0),
    ],
)
def test_the_supported_budget_of_a_setting(guarantee, setting, changes, supports):
    assert guarantee(setting | changes).supports == supports


# Small runs


@pytest.fixture
def communities(monkeypatch):
    """Two communities in place of every data set."""
    data = two_communities(40, inside=0.15, features=6, signal=4.0)
    bounded = data.clone()
    bounded.x = torch.sigmoid(data.x)
    monkeypatch.setattr(graph_pub, "loaded", lambda name: data)
    monkeypatch.setattr(datasets, "load", lambda name, folder: bounded)
    monkeypatch.setenv("AUDITDP_DATA", ".")
    cached = (graph_pub.prepared, graph_pub.embedded, hetero_rr.prepared)
    for each in cached:
        each.cache_clear()

    yield
    for each in cached:
        each.cache_clear()


def test_graph_pub_joins_communities_by_arcs_that_are_not_real(communities):
    """Most of the arcs that are published at ε = 1 are not real."""
    whole = graph_pub.accuracy(GRAPH_PUB, 3, "cpu")
    random = graph_pub.accuracy(GRAPH_PUB | {"method": graph_pub.RANDOM}, 3, "cpu")
    private = graph_pub.accuracy(GRAPH_PUB | {"method": graph_pub.PRIVATE}, 3, "cpu")

    assert whole["real arcs"] < 0.5
    assert private["real arcs"] == 1
    assert whole["degree similarity"] > 0.99
    assert whole["accuracy"] > 0.9
    assert graph_pub.accuracy(GRAPH_PUB | REPAIRED, 3, "cpu")["accuracy"] > 0.9
    assert whole["construction"] > 0 == random["construction"]


def test_link_teller_finds_the_edges_of_the_clean_graph_and_not_the_private_ones(
    communities,
):
    base = {"data": "Cora", "rho": 0.3, "steps": 2, "learning rate": 0.01, "epochs": 40}
    found = {}
    for edges in (hetero_rr.CLEAN, hetero_rr.PUBLIC_ALONE, "EdgeRR"):
        setting = base | EDGES | {"edges": edges}
        found[edges] = hetero_rr.utility(setting, 1, "cpu")

    clean, public = found[hetero_rr.CLEAN], found[hetero_rr.PUBLIC_ALONE]
    assert clean["LinkTeller AUC"] > 0.95
    assert (clean["private edges kept"], public["private edges kept"]) == (1, 0)
    assert public["LinkTeller AUC"] < clean["LinkTeller AUC"] - 0.1
    assert found["EdgeRR"]["released edges"] >= public["released edges"]

    features = {"method": hetero_rr.CLEAN, "epsilon_f": 1.0} | base
    found = hetero_rr.utility(features, 1, "cpu")

    assert found["F1"] > 0.9
    assert "LinkTeller AUC" not in found
