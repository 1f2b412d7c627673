"""The measurements of speed and memory on small graphs."""

import json

import pytest
import torch

from gnn import scale, speed
from tests.unit.gnn.draws import two_communities


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in place, where every data set is a graph of 100 nodes."""
    graph = two_communities(50, features=30)
    graph.x = graph.x.sigmoid()
    for k, name in enumerate(("train_mask", "val_mask", "test_mask")):
        graph[name] = torch.arange(100) % 3 == k

    monkeypatch.setattr(scale, "load", lambda name, features="sparse": graph)
    monkeypatch.setattr(scale, "REPEATS", 2)
    sparse = graph.clone()
    sparse.x = graph.x.to_sparse_csr()
    monkeypatch.setattr(speed, "load", lambda name: sparse)

    def found(module, *arguments):
        monkeypatch.setattr("sys.argv", ["command", *arguments])
        module.main()
        return json.loads(capsys.readouterr().out)

    return found


@pytest.mark.parametrize("name", scale.MEASUREMENTS)
def test_every_measurement_is_printed(name, run):
    found = run(scale, name, "--epochs", "1", "--threads", "1")
    assert 0.1 < found["peak memory"] < 20
    assert min(value for value in found.values() if isinstance(value, float)) > 0
    assert name == "kprop-bandwidth" or found["nodes"] == 100


def test_all_loops_are_timed_in_every_round(run):
    times = run(speed, "--rounds", "2", "--epochs", "1", "--json")
    assert all(len(found) == 2 and min(found) > 0 for found in times.values())
