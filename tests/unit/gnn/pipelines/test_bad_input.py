"""What no pipeline may stumble over: each is given the same bad graphs, and handles them or says what is wrong."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from auditdp.errors import ConfigurationError, MechanismError
from gnn.datasets import NODE_SETS, Split, load, load_graphs, random_split
from gnn.datasets.files import GRAPH_SETS
from gnn.datasets.generated import stochastic_block_model, threads
from gnn.pipelines.dpar import DPARParameters, fit_dpar
from gnn.pipelines.dprr import GINParameters, Release, fit_gin
from gnn.pipelines.features import FeaturesParameters, fit_features
from gnn.pipelines.gap import GAPParameters, fit_gap
from gnn.pipelines.lpgnn import Parameters as LPGNNParameters
from gnn.pipelines.lpgnn import lpgnn
from gnn.pipelines.sage_dp import SAGEParameters, fit_sage
from gnn.training import predict
from gnn.validation import DataError, TrainingError

pytestmark = pytest.mark.dear

torch.set_num_threads(1)
NODES = 80
GOOD = stochastic_block_model(
    [40, 40],
    inside=0.2,
    across=0.02,
    features=4,
    signal=2.0,
    rng=np.random.default_rng(0),
)
GOOD.x = GOOD.x.clamp(-5, 5) / 10 + 0.5  # LPGNN declares [0, 1]
SPLIT = Split(torch.arange(40), torch.arange(40, 60), torch.arange(60, 80))


def generator():
    return torch.Generator().manual_seed(0)


def private(fit, parameters):
    return lambda data, classes=2, **changes: fit(
        data, replace(parameters, **changes), classes=classes, generator=generator()
    )


def locally(data, classes=2, **changes):
    data = data.clone()
    data.num_classes = classes
    parameters = replace(
        LPGNNParameters(epochs=3, steps_features=1, steps_labels=1), **changes
    )
    return lpgnn(data, parameters, split=SPLIT, generator=generator())


EXACT = {"epsilon": math.inf, "delta": 0.01}
BUDGET = {"epsilon": 8.0, "delta": 0.01}
NODE_PIPELINES = {
    "LPGNN": locally,
    "Features": private(
        fit_features, FeaturesParameters(**BUDGET, batch=20, epochs=2, hidden=4)
    ),
    "GAP, nodes": private(
        fit_gap, GAPParameters(**BUDGET, batch=20, epochs=2, out_degree=4, hidden=4)
    ),
    "GAP, edges": private(
        fit_gap, GAPParameters(**BUDGET, level="edge", batch=20, epochs=2, hidden=4)
    ),
    "SAGE": private(fit_sage, SAGEParameters(**BUDGET, batch=20, steps=4)),
    "DPAR": private(
        fit_dpar,
        DPARParameters(
            **BUDGET,
            rate=0.5,
            pagerank_rows=8,
            batch=8,
            epochs=2,
            hidden=4,
            accounting="repaired",
        ),
    ),
}


def changed(**values):
    data = GOOD.clone()
    for key, value in values.items():
        data[key] = value
    return data


EMPTY = Data(
    x=torch.empty(0, 4),
    edge_index=torch.empty(2, 0, dtype=torch.long),
    y=torch.empty(0, dtype=torch.long),
    num_nodes=0,
)
NO_EDGES = torch.empty(2, 0, dtype=torch.long)
every_node_pipeline = pytest.mark.parametrize("name", NODE_PIPELINES)


@every_node_pipeline
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (EMPTY, "no nodes|at least one training|the split has ids|empty"),
        (changed(x=None), "features x"),
        (changed(x=GOOD.x.long()), "floating"),
        (
            changed(x=torch.where(torch.arange(NODES)[:, None] == 3, math.nan, GOOD.x)),
            "NaN or infinite|finite",
        ),
        (
            changed(x=torch.where(torch.arange(NODES)[:, None] == 3, math.inf, GOOD.x)),
            "NaN or infinite|finite",
        ),
        (changed(y=torch.full((NODES,), -1)), "no label|a label"),
        (
            changed(edge_index=torch.tensor([[0, NODES], [NODES, 0]])),
            f"edges between nodes 0 to {NODES}",
        ),
        (changed(edge_index=torch.tensor([[4], [4]])), "self-loops"),
    ],
    ids=[
        "empty",
        "no features",
        "integers",
        "NaN",
        "infinite",
        "no labels",
        "edges beyond the nodes",
        "self-loops",
    ],
)
def test_bad_graphs_are_refused_with_what_is_wrong(name, data, message):
    with pytest.raises(DataError, match=message):
        NODE_PIPELINES[name](data)


@every_node_pipeline
def test_isolated_nodes_are_trained_on(name):
    lonely = changed(
        edge_index=GOOD.edge_index[
            :, (GOOD.edge_index < 70).all(dim=0) & (GOOD.edge_index > 4).all(dim=0)
        ]
    )
    model, _ = NODE_PIPELINES[name](lonely)
    assert torch.isfinite(predict(model, lonely)).all()


@every_node_pipeline
def test_a_graph_without_edges_is_trained_on(name):
    lonely = changed(edge_index=NO_EDGES)
    changes = {"steps_labels": 0} if name == "LPGNN" else {}
    model, _ = NODE_PIPELINES[name](lonely, **changes)
    assert torch.isfinite(predict(model, lonely)).all()


def test_drop_says_what_to_do_on_a_graph_without_edges():
    with pytest.raises(DataError, match="steps_labels=0"):
        locally(changed(edge_index=NO_EDGES))


@every_node_pipeline
def test_a_class_without_training_nodes_has_a_column_and_no_effect_on_the_others(name):
    model, _ = NODE_PIPELINES[name](GOOD, classes=3)
    logits = predict(model, GOOD)
    assert logits.shape == (NODES, 3)
    assert torch.isfinite(logits).all()


@every_node_pipeline
def test_labels_beyond_the_classes_are_refused(name):
    with pytest.raises((DataError, MechanismError), match=r"label|classes"):
        NODE_PIPELINES[name](changed(y=GOOD.y + 5))


@every_node_pipeline
def test_a_training_that_diverges_is_an_error_with_a_remedy(name):
    changes = {"epochs": 20} if name != "SAGE" else {"steps": 40}
    with pytest.raises(
        TrainingError,
        match=r"loss of epoch \d+ is (nan|inf).*use a learning rate smaller than",
    ):
        NODE_PIPELINES[name](GOOD, learning_rate=1e38, **changes)


def test_features_outside_the_declared_range_are_refused_or_clipped():
    """LPGNN's encoder alone declares a range; DP-SGD clips gradients, and the other pipelines read no range."""
    outside = changed(x=GOOD.x + 1)
    with pytest.raises(MechanismError, match=r"expected features in \[0, 1\]"):
        locally(outside)
    model, record = locally(outside, scaling="clip")
    assert math.isfinite(record.training.best.training_loss)
    assert torch.isfinite(predict(model, record.released)).all()


# Graphs


GRAPHS = threads(24, mean_nodes=12, rng=np.random.default_rng(0))
GRAPH_SPLIT = random_split(
    torch.cat([g.y for g in GRAPHS]),
    (0.5, 0.25, 0.25),
    generator=generator(),
    stratified=True,
)
SHORT = GINParameters(layers=2, hidden=4, epochs=2)
mechanisms = pytest.mark.parametrize(
    "mechanism", ["DPRR", "RR", "LocalLap", "NonPriv-Part"]
)


def gin(graphs, mechanism, *, split=GRAPH_SPLIT, parameters=SHORT):
    return fit_gin(
        graphs,
        Release(mechanism, 1.0, 0.3),
        parameters,
        split=split,
        generator=generator(),
    )


@mechanisms
def test_graphs_without_nodes_or_edges_are_among_the_others(mechanism):
    nothing = Data(edge_index=NO_EDGES, y=torch.tensor([0]), num_nodes=0)
    lonely = [
        Data(edge_index=NO_EDGES, y=torch.tensor([k % 2]), num_nodes=k)
        for k in (1, 2, 7)
    ]
    first, second, third, fourth = GRAPH_SPLIT.training[:4].tolist()
    graphs = list(GRAPHS)
    graphs[first], graphs[second], graphs[third], graphs[fourth] = nothing, *lonely
    _, record = gin(graphs, mechanism)
    assert all(math.isfinite(epoch.training_loss) for epoch in record.training.epochs)


@mechanisms
def test_graphs_without_any_node_are_refused(mechanism):
    nothing = [Data(edge_index=NO_EDGES, y=graph.y, num_nodes=0) for graph in GRAPHS]
    with pytest.raises(DataError, match="no nodes to train on"):
        gin(nothing, mechanism)


@mechanisms
def test_a_class_without_training_graphs_is_recorded(mechanism):
    graphs = [graph.clone() for graph in GRAPHS]
    for k in GRAPH_SPLIT.test.tolist():
        graphs[k].y = torch.tensor([2])
    _, record = gin(graphs, mechanism)
    assert record.training.untrained_classes == (2,)
    assert math.isfinite(record.training.best.training_loss)
    alike = [graph.clone() for graph in GRAPHS]
    for graph in alike:
        graph.y = torch.tensor([1])
    with pytest.raises(DataError, match="there is nothing to learn"):
        gin(alike, mechanism)


def test_a_gin_that_diverges_is_an_error_with_a_remedy():
    with pytest.raises(TrainingError, match="use a learning rate smaller than"):
        gin(GRAPHS, "RR", parameters=replace(SHORT, epochs=20, learning_rate=1e38))


def test_unlabelled_graphs_are_refused():
    graphs = [graph.clone() for graph in GRAPHS]
    graphs[int(GRAPH_SPLIT.training[0])].y = torch.tensor([-1])
    with pytest.raises(DataError, match="1 of 12 training items have no label"):
        gin(graphs, "RR")


# Data sets


@pytest.mark.parametrize("name", [*NODE_SETS, *GRAPH_SETS])
def test_a_missing_data_set_is_named_with_its_folder(name, tmp_path):
    call = load if name in NODE_SETS else load_graphs
    with pytest.raises(
        ConfigurationError,
        match=rf"'{name}' is not in {tmp_path}.*gnn.datasets.published",
    ):
        call(name, tmp_path)
