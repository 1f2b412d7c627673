"""The same bad graphs for every pipeline, which handles or refuses them."""

import math
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from auditdp.errors import MechanismError
from gnn.datasets import Split, random_split
from gnn.datasets.generated import threads
from gnn.pipelines.dpar import DPARParameters, fit_dpar
from gnn.pipelines.dprr import GINParameters, Release, fit_gin
from gnn.pipelines.features import FeaturesParameters, fit_features
from gnn.pipelines.gap import GAPParameters, fit_gap
from gnn.pipelines.lpgnn import Parameters as LPGNNParameters
from gnn.pipelines.lpgnn import lpgnn
from gnn.pipelines.sage_dp import SAGEParameters, fit_sage
from gnn.training import predict
from gnn.validation import DataError, TrainingError
from tests.unit.gnn.draws import generator, rng, two_communities

parametrize = pytest.mark.parametrize

pytestmark = pytest.mark.dear

torch.set_num_threads(1)
NODES = 80
GOOD = two_communities(40, features=4, signal=2.0)
GOOD.x = GOOD.x.clamp(-5, 5) / 10 + 0.5  # LPGNN declares the range [0, 1].
SPLIT = Split(torch.arange(40), torch.arange(40, 60), torch.arange(60, 80))
NO_EDGES = torch.empty(2, 0, dtype=torch.long)


def private(fit, parameters):
    def run(data, classes=2, **changes):
        changed = replace(parameters, **changes)
        return fit(data, changed, classes=classes, generator=generator())

    return run


def locally(data, classes=2, **changes):
    data = data.clone()
    data.num_classes = classes
    parameters = replace(LPGNN, **changes)
    return lpgnn(data, parameters, split=SPLIT, generator=generator())


LPGNN = LPGNNParameters(epochs=3, steps_features=1, steps_labels=1)


BUDGET = {"epsilon": 8.0, "delta": 0.01}
SMALL = BUDGET | {"batch": 20, "epochs": 2, "hidden": 4}
ROWS = {"rate": 0.5, "pagerank_rows": 8, "accounting": "repaired"}
NODE_PIPELINES = {
    "LPGNN": locally,
    "Features": private(fit_features, FeaturesParameters(**SMALL)),
    "GAP, nodes": private(fit_gap, GAPParameters(**SMALL, out_degree=4)),
    "GAP, edges": private(fit_gap, GAPParameters(**SMALL, level="edge")),
    "SAGE": private(fit_sage, SAGEParameters(**BUDGET, batch=20, steps=4)),
    "DPAR": private(fit_dpar, DPARParameters(**SMALL | ROWS | {"batch": 8})),
}
every_node_pipeline = parametrize("name", NODE_PIPELINES)


def changed(**values):
    data = GOOD.clone()
    for key, value in values.items():
        data[key] = value
    return data


NAN = torch.where(torch.arange(NODES)[:, None] == 3, math.nan, GOOD.x)


@every_node_pipeline
@parametrize(
    ("key", "value", "message"),
    [
        ("x", None, "features x"),
        ("x", NAN, "NaN or infinite|finite"),
        ("y", torch.full((NODES,), -1), "no label|a label"),
        ("y", GOOD.y + 5, "label|classes"),
        ("edge_index", torch.tensor([[0, 80], [80, 0]]), "nodes 0 to 80"),
        ("edge_index", torch.tensor([[4], [4]]), "self-loops"),
    ],
)
def test_bad_graphs_are_refused(name, key, value, message):
    with pytest.raises((DataError, MechanismError), match=message):
        NODE_PIPELINES[name](changed(**{key: value}))


@every_node_pipeline
def test_a_graph_without_nodes_is_refused(name):
    empty = GOOD.subgraph(torch.arange(0))
    message = "no nodes|the split has ids"
    with pytest.raises((DataError, MechanismError), match=message):
        NODE_PIPELINES[name](empty)


@every_node_pipeline
@parametrize("isolated", [10, NODES])
def test_isolated_nodes_and_an_absent_class_are_trained_on(name, isolated):
    inside = (GOOD.edge_index >= isolated).all(dim=0)
    lonely = changed(edge_index=GOOD.edge_index[:, inside])
    changes = {"steps_labels": 0} if name == "LPGNN" else {}
    model, _ = NODE_PIPELINES[name](lonely, classes=3, **changes)
    logits = predict(model, lonely)

    assert logits.shape == (NODES, 3)
    assert torch.isfinite(logits).all()


@every_node_pipeline
def test_a_training_that_diverges_is_an_error_with_a_remedy(name):
    longer = {"steps": 40} if name == "SAGE" else {"epochs": 20}
    message = r"loss of epoch \d+ is (nan|inf).*use a learning rate smaller than"
    with pytest.raises(TrainingError, match=message):
        NODE_PIPELINES[name](GOOD, learning_rate=1e38, **longer)


def test_features_outside_the_declared_range_are_refused_or_clipped():
    """The encoder of LPGNN alone declares a range."""
    outside = changed(x=GOOD.x + 1)
    with pytest.raises(MechanismError, match=r"expected features in \[0, 1\]"):
        locally(outside)

    model, record = locally(outside, scaling="clip")
    assert torch.isfinite(predict(model, record.released)).all()


# Graphs


GRAPHS = threads(24, mean_nodes=12, rng=rng())
LABELS = torch.cat([graph.y for graph in GRAPHS])
GRAPH_SPLIT = random_split(
    LABELS, (0.5, 0.25, 0.25), generator=generator(), stratified=True
)


@parametrize("mechanism", ["DPRR", "RR", "LocalLap", "NonPriv-Part"])
def test_graphs_without_nodes_or_edges_are_trained_on(mechanism):
    graphs = [graph.clone() for graph in GRAPHS]
    for number in GRAPH_SPLIT.test.tolist():
        graphs[number].y = torch.tensor([2])

    for nodes, number in enumerate(GRAPH_SPLIT.training[:3].tolist()):
        label = torch.tensor([nodes % 2])
        graphs[number] = Data(edge_index=NO_EDGES, y=label, num_nodes=nodes)

    release = Release(mechanism, 1.0, 0.3)
    short = GINParameters(layers=2, hidden=4, epochs=2)
    given = {"split": GRAPH_SPLIT, "generator": generator()}
    record = fit_gin(graphs, release, short, **given)[1].training

    assert record.untrained_classes == (2,)
    assert all(math.isfinite(epoch.training_loss) for epoch in record.epochs)
