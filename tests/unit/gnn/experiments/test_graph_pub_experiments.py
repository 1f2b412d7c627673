"""GraphPub's experiments: what their settings mean, what they print, and small runs on a graph of two communities."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from gnn.datasets.generated import stochastic_block_model
from gnn.experiments.catalogue import graph_pub
from gnn.experiments.catalogue.graph_pub import (
    EXPERIMENTS,
    NO_DESCENT,
    PRIVATE,
    RANDOM,
    WHOLE,
    accuracy,
    attack,
    guarantee,
    release_of,
    table,
    table_of_attack,
)
from gnn.experiments.grid import settings
from gnn.experiments.privacy import Ledger, supported

FOUND = {each.name: each for each in EXPERIMENTS}


def setting(**changes):
    base = {
        "data": "Cora",
        "model": "GCN",
        "method": WHOLE,
        "epsilon": 1.0,
        "steps": 5,
        "epochs": 30,
    }
    return base | {"form": "published"} | changes


@pytest.fixture
def communities(monkeypatch):
    """In place of every data set."""
    data = stochastic_block_model(
        [40, 40],
        inside=0.15,
        across=0.02,
        features=6,
        signal=4.0,
        rng=np.random.default_rng(0),
    )
    monkeypatch.setattr(graph_pub, "loaded", lambda name: data)
    for cached in (graph_pub.prepared, graph_pub.embedded):
        cached.cache_clear()
    yield data
    for cached in (graph_pub.prepared, graph_pub.embedded):
        cached.cache_clear()


@pytest.mark.parametrize("name", FOUND)
def test_every_setting_is_a_release(name):
    for each in settings(FOUND[name], "paper"):
        release_of(each)


def test_table_2_has_its_numbers():
    """Three data sets, three networks, four methods, four budgets; and a row for each network on the private graph."""
    found = settings(FOUND["graph-pub-table"], "paper")
    printed = [table(each, "accuracy") for each in found if each["form"] == "published"]
    assert sum(each is not None for each in printed) == 3 * 3 * 4 * 4
    assert sum(each["method"] == PRIVATE for each in found) == 9
    assert table(setting(), "accuracy").mean == 0.7806
    assert table(setting(), "arcs") is None
    assert table_of_attack(setting(), "precision (A)").mean == 0.0265
    assert table_of_attack(setting(), "recall (Ã)").mean == 0.2221


def test_what_the_audits_support():
    """None of GraphPub; ε of its repair; 2ε of DPRR, whose lists have an edge twice, and ε of its repair."""
    for method in (WHOLE, RANDOM, NO_DESCENT):
        assert guarantee(setting(method=method)).supports is None
        assert guarantee(setting(method=method, form="repaired")).supports == 1.0
    assert guarantee(setting(method="DPRR")).supports == 2.0
    assert guarantee(setting(method="DPRR", form="repaired")).supports == 1.0
    assert guarantee(setting(method="LAPGRAPH") | {"budget used": 0.5}).supports == 0.5
    assert guarantee(setting(method=PRIVATE)).printed is None
    assert "degrees" in guarantee(setting() | {"degree share": 0.5}).audit


def test_the_ledger_finds_a_repair_by_its_own_audit():
    ledger = Ledger.read(
        Path(__file__).resolve().parents[4] / "reports" / "claims.json"
    )
    repaired = supported(guarantee(setting(form="repaired")), ledger)
    assert repaired.startswith("ε ≤ 1 (GraphPub, ")
    assert repaired.endswith("at random by a public degree: certified, there at 1-DP)")
    assert supported(guarantee(setting()), ledger).startswith(
        "refuted (GraphPub, as deployed"
    )
    for arcs in ("lists", "union"):  # whatever L is, at any ε
        at_eight = supported(
            guarantee(setting() | {"epsilon": 8.0, "arcs": arcs}), ledger
        )
        assert at_eight.startswith("refuted (GraphPub, ")
        assert at_eight.endswith("violated at 1-DP, ε = ∞)")


def test_parts_that_are_left_out():
    assert release_of(setting(method=RANDOM)).selection == "uniformly"
    assert release_of(setting(method=PRIVATE)).method == "none"
    assert release_of(setting() | {"degree share": 0.5}).degree_share == 0.5
    assert release_of(setting(method="DPRR") | {"budget used": 0.5}).epsilon == 0.5


def test_methods_on_communities(communities):
    """At ε = 1 most of what GraphPub publishes is not real and joins communities all the same; a random choice does not."""
    found = {
        (method, form): accuracy(setting(method=method, form=form), 3, "cpu")
        for method, form in (
            (WHOLE, "published"),
            (WHOLE, "repaired"),
            (RANDOM, "published"),
            (PRIVATE, "published"),
        )
    }
    whole = found[WHOLE, "published"]
    assert whole["real arcs"] < 0.5 < found[PRIVATE, "published"]["real arcs"] == 1
    assert whole["degree similarity"] > 0.99
    assert whole["accuracy"] > 0.9
    assert found[WHOLE, "repaired"]["accuracy"] > 0.9
    assert whole["construction"] > 0 == found[RANDOM, "published"]["construction"]
    assert accuracy(setting(), 3, "cpu")["accuracy"] == whole["accuracy"]


def test_the_attack_finds_what_was_published_rather_than_the_edges(communities):
    found = attack(setting(), 3, "cpu")
    assert set(found) == {metric.name for metric in FOUND["graph-pub-attack"].metrics}
    assert found["AUC (Ã)"] > found["AUC (A)"]
