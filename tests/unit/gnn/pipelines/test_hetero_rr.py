"""HeteroRR: extractors, released features, divided and released graphs, the network of means."""

import numpy as np
import pytest
import torch

from auditdp.errors import ConfigurationError, MechanismError
from gnn.datasets import random_split
from gnn.datasets.conversion import to_graph
from gnn.pipelines.hetero_rr import (
    EdgeRelease,
    ExtractorSettings,
    FeatureRelease,
    MeanGCN,
    divided,
    embedded,
    learn,
    raw_records,
    released_features,
    released_graph,
    trained_extractor,
    united,
)
from gnn.pipelines.hetero_rr.edges import METHODS as EDGE_METHODS
from gnn.pipelines.hetero_rr.features import METHODS
from gnn.validation import DataError
from mechanisms.backend import backend_of
from mechanisms.features import MultiBit
from tests.unit.gnn.draws import generator

RNG = np.random.default_rng
PUBLIC = np.arange(0, 120, 3)


@pytest.fixture(scope="module")
def records(graph):
    return raw_records(torch.sigmoid(graph.x))


@pytest.fixture(scope="module")
def extractor(graph, records):
    settings = ExtractorSettings(width=8, sensitive=0.34, epochs=60)
    return trained_extractor(
        records[PUBLIC], graph.y[PUBLIC], settings, generator=generator()
    )


@pytest.fixture(scope="module")
def graph_in_two(graph):
    return divided(to_graph(graph), 0.3, rng=RNG(0))


def release(records, extractor, rng=None, **settings):
    return released_features(
        records, extractor, FeatureRelease(**settings), public=PUBLIC, rng=rng or RNG(0)
    )


def test_raw_records_have_a_one_and_are_clipped():
    found = raw_records(torch.tensor([[0.5, 3.0], [-1.0, 0.0]]))
    np.testing.assert_array_equal(found, [[0.5, 1, 1], [0, 0, 1]])
    np.testing.assert_array_equal(
        raw_records(torch.eye(2).to_sparse_csr()), [[1, 0, 1], [0, 1, 1]]
    )


def test_an_extractor_of_public_nodes_tells_the_classes_of_others(
    graph, records, extractor
):
    """By the nearest mean of the public nodes' embeddings."""
    z, labels = embedded(extractor, records), graph.y.numpy()
    assert z.shape == (120, 8)
    assert ((z >= 0) & (z <= 1)).all()
    means = np.stack([z[PUBLIC][labels[PUBLIC] == c].mean(axis=0) for c in (0, 1)])
    guesses = ((z[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    others = np.setdiff1d(np.arange(120), PUBLIC)
    assert (guesses == labels)[others].mean() > 0.9
    assert len(extractor.sensitive) == 2
    assert max(extractor.sensitive) < 6


def test_telling_inputs_are_those_of_the_largest_weights(graph, records):
    settings = ExtractorSettings(width=8, sensitive=0.34, masked="telling", epochs=5)
    found = trained_extractor(
        records[PUBLIC], graph.y[PUBLIC], settings, generator=generator()
    )
    sizes = np.abs(np.array(found.weights))[:, :-1].sum(axis=0)
    assert set(found.sensitive) == set(np.argsort(-sizes)[:2].tolist())


def test_public_nodes_need_labels(graph, records):
    with pytest.raises(DataError, match="expected public nodes with a label each"):
        trained_extractor(records[:2], torch.tensor([0, -1]), generator=generator())


@pytest.mark.parametrize("method", METHODS)
def test_released_features_come_close_to_the_embedding_at_a_large_budget(
    method, records, extractor
):
    """The mean over 200 nodes' worth of noise; FeatureRR names the upper end of a bin of width .1."""
    z = embedded(extractor, records)
    epsilon = 8 * 25.0 if method != "LPGNN" else 8 * 20.0
    found = release(records, extractor, method=method, epsilon=epsilon)
    assert found.shape == z.shape
    shift = 0.05 if method == "FeatureRR" else 0.0
    assert abs((found - z).mean() - shift) < 0.05
    assert np.corrcoef(found.ravel(), z.ravel())[0, 1] > 0.9


def test_lpgnn_is_the_rectified_multi_bit_encoder(records, extractor):
    z, encoder = embedded(extractor, records), MultiBit(2.0, 8)
    found = release(records, extractor, method="LPGNN", epsilon=2.0)
    np.testing.assert_array_equal(
        found, encoder.rectify(encoder.perturb(z, rng=RNG(0)))
    )
    assert len(np.unique(found)) == 3


def test_feature_rr_of_a_record_depends_on_its_own_shares_and_the_repaired_one_on_public_ones(
    records, extractor
):
    """With one sensitive record changed, the repaired release of all others, on the same noise, stays."""
    shares = extractor.shares(records, 0.5, backend_of(RNG(0)))
    assert shares.std(axis=0).max() > 0.01
    changed = records.copy()
    changed[1, :-1] = 1 - changed[1, :-1]
    for form in ("published", "repaired"):
        first, second = (
            release(each, extractor, form=form, epsilon=20.0)
            for each in (records, changed)
        )
        np.testing.assert_array_equal(
            np.delete(first, 1, axis=0), np.delete(second, 1, axis=0)
        )
        assert (first[1] != second[1]).any()
        assert set(np.unique(first)) <= {u / 10 for u in range(1, 11)}


def test_standardised_inputs_have_mean_0_and_deviation_1(records, extractor):
    found = release(records, extractor, method="Duchi", inputs="standardised")
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(found.std(axis=0), 1)


def test_sampled_features_are_few_and_every_feature_is_all(records, extractor):
    sampled = release(records, extractor, method="Duchi", used="sampled", epsilon=1.0)
    assert ((sampled != 0.5).sum(axis=1) == 1).all()
    assert (release(records, extractor, method="Duchi", epsilon=1.0) != 0.5).all()


def test_a_share_of_the_edges_is_private(graph, graph_in_two):
    whole = to_graph(graph)
    assert graph_in_two.private.edges.shape[1] == round(0.3 * whole.edges.shape[1])
    np.testing.assert_array_equal(graph_in_two.whole.edges, whole.edges)
    with pytest.raises(ConfigurationError, match="share of private edges"):
        divided(whole, 0.0, rng=RNG(0))


@pytest.mark.parametrize("form", ["published", "repaired"])
@pytest.mark.parametrize("method", EDGE_METHODS)
def test_every_released_graph_has_the_public_edges(method, form, graph_in_two):
    found = released_graph(
        graph_in_two, EdgeRelease(method, 2.0, form=form, steps=5), rng=RNG(1)
    )
    np.testing.assert_array_equal(united(found, graph_in_two.public).edges, found.edges)
    assert found.nodes == 120
    private = {"clean": True, "public edges alone": False}.get(method)
    if private is not None:
        assert (found.edges.shape[1] > graph_in_two.public.edges.shape[1]) is private


@pytest.mark.parametrize("method", ["EdgeRand", "LapGraph"])
def test_all_edges_or_private_ones_are_perturbed(method, graph_in_two):
    kept = {}
    for protected in ("private", "all"):
        found = released_graph(
            graph_in_two, EdgeRelease(method, 0.1, protected=protected), rng=RNG(0)
        )
        public = set(map(tuple, graph_in_two.public.edges.T.tolist()))
        kept[protected] = len(public & set(map(tuple, found.edges.T.tolist()))) / len(
            public
        )
    assert kept["private"] == 1
    assert kept["all"] < 0.7


def test_repaired_edge_rr_declares_all_nodes_and_the_published_one_those_with_private_edges(
    graph_in_two,
):
    """Nodes without a private edge get no new edge from the published form: V_pri shows."""
    public = set(map(tuple, graph_in_two.public.edges.T.tolist()))
    members = set(graph_in_two.private.edges.ravel().tolist())
    outside = {}
    for form in ("published", "repaired"):
        found = released_graph(
            graph_in_two, EdgeRelease("EdgeRR", 0.5, form=form, steps=5), rng=RNG(2)
        )
        new = set(map(tuple, found.edges.T.tolist())) - public
        outside[form] = sum(not set(edge) <= members for edge in new)
    assert outside["published"] == 0
    assert outside["repaired"] > 0


def test_the_operator_is_the_mean_of_neighbours_and_self():
    """A path 0–1–2: rows ½ ½ 0, ⅓ ⅓ ⅓, 0 ½ ½; and the network is two of these."""
    model = MeanGCN(2, 2, hidden=4, generator=generator()).eval()
    arcs, x = (
        torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        torch.rand(3, 2, generator=generator(1)),
    )
    mean = torch.tensor([[1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3], [0, 1 / 2, 1 / 2]])
    torch.testing.assert_close(model.edges(x, arcs).arcs.to_dense(), mean)
    first, second = model.layers
    expected = mean @ second((mean @ first(x)).relu())
    torch.testing.assert_close(model(x, arcs), expected)
    model.train()
    model(x, arcs).sum().backward()
    assert first.weight.grad.abs().sum() > 0


def test_a_network_learns_from_what_is_released(
    graph, graph_in_two, records, extractor
):
    split = random_split(graph.y, (0.4, 0.2, 0.4), generator=generator())
    x = torch.from_numpy(release(records, extractor, method="clean")).float()
    found = learn(
        x,
        graph_in_two.whole,
        graph.y,
        split=split,
        generator=generator(),
        epochs=60,
        learning_rate=0.01,
    )
    assert found.scores["F1"] > 0.9
    assert found.scores["AUC"] > 0.95
    with pytest.raises(MechanismError, match="expected records in"):
        release(records * 3, extractor)
