"""The measurements of speed and memory on small graphs."""

import json

import pytest
import torch

from gnn import scale
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

    def found(*arguments):
        monkeypatch.setattr("sys.argv", ["scale", *arguments])
        scale.main()
        return json.loads(capsys.readouterr().out)

    return found


@pytest.mark.parametrize("name", scale.MEASUREMENTS)
def test_every_measurement_is_printed(name, run):
    found = run(name, "--epochs", "1", "--threads", "1")
    assert 0.1 < found["peak memory"] < 20
    assert min(value for value in found.values() if isinstance(value, float)) > 0
