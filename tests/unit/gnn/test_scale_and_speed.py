"""What the measurements of speed and memory measure, on small graphs, and what the benchmark makes of them."""

import json
import sys

import numpy as np
import pytest
import torch

from benchmarks import gnn as part
from benchmarks.parts import Options
from gnn import scale, speed
from gnn.datasets.generated import stochastic_block_model


@pytest.fixture
def small(monkeypatch):
    """Every data set is a graph of 100 nodes, whose features are in [0, 1]."""
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
    monkeypatch.setattr(scale, "load", lambda name, features="sparse": graph)
    monkeypatch.setattr(speed, "load", lambda name: graph)
    return graph


@pytest.mark.parametrize("name", scale.MEASUREMENTS)
def test_every_measurement_prints_what_the_benchmark_reads(
    name, small, capsys, monkeypatch
):
    monkeypatch.setattr(scale, "REPEATS", 2)
    monkeypatch.setattr(sys, "argv", ["scale", name, "--epochs", "2", "--threads", "1"])
    scale.main()
    found = json.loads(capsys.readouterr().out)
    assert 0.1 < found["peak memory"] < 20
    assert found["cpu seconds"] > 0
    if name == "kprop-bandwidth":
        assert found["bytes a second"] > 0 < found["copied a second"]
    else:
        assert found["nodes"] == 100
        assert found["seconds"] > 0


@pytest.mark.full
def test_memory_that_was_held_is_in_the_peak():
    before = scale.peak_memory(torch.device("cpu"))
    held = np.ones(
        2**25 + 2**17 * int(before * 1024)
    )  # a quarter of a GiB more than the peak so far
    del held
    assert scale.peak_memory(torch.device("cpu")) > before + 0.2


def test_both_loops_are_timed_in_every_round(small, capsys, monkeypatch):
    small.x = small.x.to_sparse_csr()
    monkeypatch.setattr(
        sys, "argv", ["speed", "--rounds", "2", "--epochs", "1", "--json"]
    )
    speed.main()
    times = json.loads(capsys.readouterr().out)
    assert part.PLAIN in times
    assert all(len(found) == 2 and min(found) > 0 for found in times.values())


# The benchmark


EPOCHS = {
    part.PLAIN: [2.0, 1.0, 4.0],
    "trainer, dense features": [1.0, 1.0, 1.0],
    "trainer, sparse features": [1.0, 0.4, 8.0],
}
RESULTS = {
    part.EPOCH: EPOCHS,
    part.LPGNN: {
        "seconds": 100.0,
        "cpu seconds": 150.0,
        "epochs": 500,
        "peak memory": 1.0,
        "accuracy": 0.85,
        "nodes": 22470,
    },
    part.DPAR: {
        "seconds": 90.0,
        "cpu seconds": 90.0,
        "epochs": 200,
        "peak memory": 1.5,
        "accuracy": 0.9,
        "nodes": 34493,
    },
    part.FEATURES: {
        "seconds": 60.0,
        "cpu seconds": 60.0,
        "epochs": 1,
        "peak memory": 3.0,
        "nodes": 34493,
    },
    part.BANDWIDTH: {"bytes a second": 1e9, "copied a second": 1e10},
}


def met(**changes):
    return [bar.met for bar in part.view(RESULTS | changes).bars]


def test_bars_compare_with_what_was_measured():
    """Ratios are taken in each round: 1/2, 1, 1/4 and 1/2, 2/5, 2 have medians of a half."""
    assert met() == [True] * 4
    assert (
        "dense features: 0.500 of it; trainer, sparse features: 0.500 of it"
        in part.view(RESULTS).bars[0].found
    )
    slow = EPOCHS | {"trainer, sparse features": [1.0, 1.1, 8.0]}
    assert met(**{part.EPOCH: slow}) == [False, True, True, True]
    assert met(**{part.LPGNN: RESULTS[part.LPGNN] | {"seconds": 301.0}}) == [
        True,
        False,
        True,
        True,
    ]
    assert met(**{part.DPAR: RESULTS[part.DPAR] | {"peak memory": 4.5}}) == [
        True,
        True,
        False,
        True,
    ]  # 34,493² · 4 B = 4.43 GiB
    assert met(**{part.FEATURES: RESULTS[part.FEATURES] | {"peak memory": 4.1}}) == [
        True,
        True,
        True,
        False,
    ]
    assert [bar.met for bar in part.view({}).bars] == [None] * 4
    assert [len(table.rows) for table in part.view(RESULTS).tables] == [3, 3, 2]


def test_there_are_no_units_without_data(monkeypatch):
    monkeypatch.delenv(part.DATA_VARIABLE, raising=False)
    assert part.units(Options(1)) == {}
    monkeypatch.setenv(part.DATA_VARIABLE, "somewhere")
    assert set(part.units(Options(1))) == set(part.MEASUREMENTS)


@pytest.mark.full
def test_a_measurement_that_fails_says_why(monkeypatch, tmp_path):
    monkeypatch.setenv(part.DATA_VARIABLE, str(tmp_path))
    with pytest.raises(
        RuntimeError, match=r"dpar-physics.*failed:(.|\n)*coauthor_physics"
    ):
        part.measure(part.DPAR, quick=True)
