"""The measurements of speed and memory on small graphs, and the bars of the benchmark."""

import json

import numpy as np
import pytest
import torch

from gnn import scale, speed
from gnn.datasets.generated import stochastic_block_model


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in place, where every data set is a graph of 100 nodes."""
    graph = stochastic_block_model(
        [50, 50],
        inside=0.2,
        across=0.02,
        features=30,
        signal=3.0,
        rng=np.random.default_rng(0),
    )
    graph.x = graph.x.sigmoid()
    for k, name in enumerate(("train_mask", "val_mask", "test_mask")):
        graph[name] = torch.arange(100) % 3 == k

    sparse = graph.clone()
    sparse.x = graph.x.to_sparse_csr()
    monkeypatch.setattr(scale, "load", lambda name, features="sparse": graph)
    monkeypatch.setattr(speed, "load", lambda name: sparse)
    monkeypatch.setattr(scale, "REPEATS", 2)

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
