"""DPRR's accuracy experiments: which settings there are, what they spend, and a small run."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from gnn.experiments.catalogue.dprr import (
    DATA_SETS,
    EXPERIMENTS,
    METRICS,
    READINGS,
    budgets,
    classified,
    guarantee,
    released,
    repairable,
)
from gnn.experiments.grid import settings
from gnn.experiments.privacy import Ledger, supported
from gnn.pipelines.dprr import GINParameters, Release
from mechanisms.graphs import load_graphs

FOUND = {each.name: each for each in EXPERIMENTS}
LEDGER = Ledger.read(Path(__file__).resolve().parents[4] / "reports" / "claims.json")


def setting(**changes):
    return {
        "data": "REDDIT-BINARY",
        "mechanism": "DPRR",
        "epsilon": 1.0,
        "share": 0.0,
        "form": "published",
    } | changes


@pytest.mark.parametrize("name", FOUND)
def test_every_setting_has_a_release_that_spends_what_is_stated(name):
    for each in settings(FOUND[name], "paper"):
        release, stated = released(each), guarantee(each)
        if stated.printed is None:
            assert each["mechanism"].startswith("NonPriv")
        elif each["mechanism"] != "NonPriv-Part":
            assert release.spent <= stated.supports * (1 + 1e-12)
            assert release.spent == pytest.approx(stated.supports, rel=1e-9)
            assert supported(stated, LEDGER).startswith("ε ≤")


def test_a_repaired_row_stands_where_the_allocation_exceeds_its_budget_and_something_is_left():
    """√(8/3781) = .046, √(8/96) = .289 and √(8/362) = .149 against a tenth of ε."""
    where = {
        (each["data"], each["epsilon"])
        for each in settings(FOUND["dprr-epsilon"], "paper")
        if each["form"] == "repaired"
    }
    assert where == {
        ("REDDIT-BINARY", 0.2),
        *(("Reddit threads", epsilon) for epsilon in (0.5, 1.0, 2.0)),
        *(("Deezer egos", epsilon) for epsilon in (0.2, 0.5, 1.0)),
    }
    assert sum(budgets(setting(epsilon=0.2))) == pytest.approx(0.2259989, abs=1e-6)
    assert not repairable(setting(data="Reddit threads", epsilon=0.2))
    assert not repairable(setting(data="Reddit threads", allocation="1:9"))
    for each in settings(FOUND["dprr-epsilon"], "paper"):
        if each["form"] == "repaired":
            assert released(each).spent <= each["epsilon"]
            assert guarantee(each).supports == each["epsilon"]


def test_non_private_baselines_stand_where_they_mean_something():
    table = settings(FOUND["dprr-share"], "paper")
    shares = {
        name: {e["share"] for e in table if e["mechanism"] == name}
        for name in ("NonPriv-Part", "NonPriv-Full", "RR")
    }
    assert shares == {
        "NonPriv-Part": {0.1, 0.2, 0.5},
        "NonPriv-Full": {0.0},
        "RR": {0.0, 0.1, 0.2, 0.5},
    }
    assert "customised" in guarantee(setting(share=0.2)).audit
    assert "customised" not in guarantee(setting()).audit


def test_every_reading_is_another_pipeline():
    default = GINParameters(), Release("LocalLap")
    for name, values in READINGS.items():
        release = released(setting(mechanism="LocalLap", reading=name))
        model = GINParameters(
            **{key: value for key, value in values.items() if key != "local_lap"}
        )
        assert ((model, release) == default) == (name == "source")


def test_a_small_run_on_a_file(tmp_path, monkeypatch):
    """Stars of label 0 and paths of label 1, of at most the largest size."""
    sizes = [*[8] * 30, 50]
    edges, ends = [], [0]
    for k, size in enumerate(sizes):
        others = np.arange(1, size)
        edges.append(
            np.stack([np.zeros(size - 1, int) if k % 2 == 0 else others - 1, others])
        )
        ends.append(ends[-1] + size - 1)
    folder = tmp_path / "substitutes"
    folder.mkdir()
    np.savez(
        folder / "deezer_egos.npz",
        kind="graphs",
        edges_stored="once_u_lt_v",
        edge_index=np.concatenate(edges, axis=1),
        graph_ptr_nodes=np.concatenate([[0], np.cumsum(sizes)]),
        graph_ptr_edges=np.array(ends),
        y=np.arange(31) % 2,
    )
    monkeypatch.setenv("AUDITDP_DATA", str(tmp_path))
    model = {
        "graphs": math.inf,
        "largest": 10,
        "layers": 2,
        "hidden": 8,
        "dropout": 0.0,
        "epochs": 30,
        "patience": 100,
    }
    found = classified(
        setting(data="Deezer egos", mechanism="NonPriv-Full") | model, 1, "cpu"
    )
    assert set(found) <= {metric.name for metric in METRICS}
    assert found["ones"] == 14
    assert found["AUC"] == 1.0


@pytest.mark.parametrize("name", DATA_SETS)
def test_the_largest_graph_is_as_declared(name):
    folder = Path(os.environ.get("AUDITDP_DATA", ""))
    path = folder / DATA_SETS[name].file
    if not path.is_file():
        pytest.skip(
            f"needs {DATA_SETS[name].file} in the folder that AUDITDP_DATA names"
        )
    assert max(graph.nodes for graph in load_graphs(path)) == DATA_SETS[name].nodes_max


def test_the_numbers_of_the_notes():
    """How well the number of users alone tells the classes apart."""
    from sklearn.metrics import roc_auc_score

    for name, expected in (("REDDIT-BINARY", 0.78), ("Reddit threads", 0.67)):
        path = Path(os.environ.get("AUDITDP_DATA", "")) / DATA_SETS[name].file
        if not path.is_file():
            pytest.skip(
                f"needs {DATA_SETS[name].file} in the folder that AUDITDP_DATA names"
            )
        area = roc_auc_score(
            np.load(path)["y"], [graph.nodes for graph in load_graphs(path)]
        )
        assert max(area, 1 - area) == pytest.approx(expected, abs=0.006)
