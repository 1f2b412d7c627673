"""HeteroRR: extractors, released features, divided and released graphs, networks."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch.testing import assert_close

from auditdp.errors import ConfigurationError
from gnn.datasets.conversion import to_graph
from gnn.pipelines.hetero_rr import (
    EdgeRelease,
    ExtractorSettings,
    FeatureRelease,
    MeanGCN,
    divided,
    embedded,
    raw_records,
    released_features,
    released_graph,
    trained_extractor,
)
from gnn.pipelines.hetero_rr.edges import METHODS as EDGE_METHODS
from gnn.pipelines.hetero_rr.features import NUMERIC
from tests.unit.gnn.draws import arcs, generator, rng

parametrize = pytest.mark.parametrize

PUBLIC = np.arange(0, 120, 3)


@pytest.fixture(scope="module")
def records(graph):
    return raw_records(torch.sigmoid(graph.x))


@pytest.fixture(scope="module")
def train(graph, records):
    def trained(**options):
        settings = ExtractorSettings(width=8, sensitive=0.34, **options)
        labels = graph.y[PUBLIC]
        return trained_extractor(
            records[PUBLIC], labels, settings, generator=generator()
        )

    return trained


@pytest.fixture(scope="module")
def extractor(train):
    return train(epochs=60)


@pytest.fixture(scope="module")
def release(records, extractor):
    """The released features of records, by default of all nodes."""

    def released(given=records, **settings):
        chosen = FeatureRelease(**settings)
        return released_features(given, extractor, chosen, public=PUBLIC, rng=rng())

    return released


@pytest.fixture(scope="module")
def graph_in_two(graph):
    return divided(to_graph(graph), 0.3, rng=rng())


def edges_of(graph):
    return set(map(tuple, graph.edges.T.tolist()))


# Features


def test_raw_records_have_a_one_and_are_clipped():
    found = raw_records(torch.tensor([[0.5, 3.0], [-1.0, 0.0]]))
    assert_array_equal(
        found,
        [
            [0.5, 1, 1],
            [0, 0, 1],
        ],
    )

    sparse = raw_records(torch.eye(2).to_sparse_csr())
    assert_array_equal(
        sparse,
        [
            [1, 0, 1],
            [0, 1, 1],
        ],
    )


def test_an_extractor_of_public_nodes_separates_the_classes_of_others(
    graph, records, extractor
):
    """A node is classified by the nearest mean of the public nodes' embeddings."""
    z, labels = embedded(extractor, records), graph.y.numpy()
    assert ((z >= 0) & (z <= 1)).all()

    distances = []
    for label in (0, 1):
        members = PUBLIC[labels[PUBLIC] == label]
        distances.append(np.linalg.norm(z - z[members].mean(axis=0), axis=1))
    right = np.argmin(distances, axis=0) == labels

    assert np.delete(right, PUBLIC).mean() > 0.9
    assert len(extractor.sensitive) == 2


@parametrize(
    ("method", "epsilon", "shift"),
    [
        ("FeatureRR", 200.0, 0.05),
        ("LPGNN", 160.0, 0.0),
        *((method, 200.0, 0.0) for method in (*NUMERIC, "clean")),
    ],
)
def test_released_features_come_close_to_the_embedding_at_a_large_budget(
    method, epsilon, shift, records, extractor, release
):
    """FeatureRR releases the upper end of a bin of width .1."""
    z = embedded(extractor, records)
    found = release(method=method, epsilon=epsilon)

    assert abs((found - z).mean() - shift) < 0.05
    assert np.corrcoef(found.ravel(), z.ravel())[0, 1] > 0.9


@parametrize("form", ["published", "repaired"])
def test_a_release_of_feature_rr_depends_on_one_record(records, release, form):
    changed = records.copy()
    changed[1, :-1] = 1 - changed[1, :-1]
    first = release(form=form, epsilon=20.0)
    second = release(changed, form=form, epsilon=20.0)
    differs = (first != second).any(axis=1)

    assert np.flatnonzero(differs).tolist() == [1]
    assert set(np.unique(first)) <= {u / 10 for u in range(1, 11)}


def test_features_may_be_sampled_or_standardised(release):
    sampled = release(method="Duchi", used="sampled", epsilon=1.0)
    assert ((sampled != 0.5).sum(axis=1) == 1).all()

    found = release(method="Duchi", inputs="standardised")
    assert_allclose(found.mean(axis=0), 0, atol=1e-12)
    assert_allclose(found.std(axis=0), 1)


# Edges


def test_a_share_of_the_edges_is_private(graph, graph_in_two):
    whole = to_graph(graph)
    assert graph_in_two.private.edges.shape[1] == round(0.3 * whole.edges.shape[1])
    assert_array_equal(graph_in_two.whole.edges, whole.edges)
    with pytest.raises(ConfigurationError, match="share of private edges"):
        divided(whole, 0.0, rng=rng())


@parametrize("form", ["published", "repaired"])
@parametrize("method", EDGE_METHODS)
def test_every_released_graph_has_the_public_edges(method, form, graph_in_two):
    release = EdgeRelease(method, 2.0, form=form, steps=5)
    found = edges_of(released_graph(graph_in_two, release, rng=rng(1)))
    public = edges_of(graph_in_two.public)

    assert public <= found
    if method == "clean":
        assert found == edges_of(graph_in_two.whole)
    if method == "public edges alone":
        assert found == public


@parametrize("method", ["EdgeRand", "LapGraph"])
@parametrize("protected", ["private", "all"])
def test_all_edges_or_private_ones_are_perturbed(method, protected, graph_in_two):
    release = EdgeRelease(method, 0.1, protected=protected)
    found = edges_of(released_graph(graph_in_two, release, rng=rng()))
    public = edges_of(graph_in_two.public)
    lost = len(public - found) / len(public)

    assert lost == 0 if protected == "private" else lost > 0.3


@parametrize("form", ["published", "repaired"])
def test_published_edge_rr_adds_no_edges_to_nodes_without_private_ones(
    form, graph_in_two
):
    """The repaired form declares all nodes."""
    release = EdgeRelease("EdgeRR", 0.5, form=form, steps=5)
    found = edges_of(released_graph(graph_in_two, release, rng=rng(2)))
    added = found - edges_of(graph_in_two.public)
    others = {node for edge in added for node in edge}
    others -= set(graph_in_two.private.edges.ravel().tolist())

    assert bool(others) is (form == "repaired")


# Networks


def test_the_network_is_two_means_over_neighbours_and_self():
    """A path 0–1–2."""
    model = MeanGCN(2, 2, hidden=4, generator=generator()).eval()
    path = arcs("01 10 12 21")
    x = torch.rand(3, 2, generator=generator(1))
    mean = (
        torch.tensor(
            [
                [3.0, 3.0, 0.0],
                [2.0, 2.0, 2.0],
                [0.0, 3.0, 3.0],
            ]
        )
        / 6
    )
    first, second = model.layers
    expected = mean @ second((mean @ first(x)).relu())

    assert_close(model(x, path), expected)

    torch.manual_seed(0)
    model.train()
    model(x, path).sum().backward()

    assert first.weight.grad.any()
