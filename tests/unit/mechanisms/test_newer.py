"""Blink's messages, noisy hops, embeddings, and noise of published code: samples against laws, and what is refused."""

import math

import numpy as np
import pytest

from auditdp.errors import MechanismError
from mechanisms.link_ldp import LinkMessage, LinkMessages
from mechanisms.message_passing import (
    AllIterations,
    CaribouEmbedding,
    ContractiveIterations,
    FeaturesAgree,
    NeighbourEmbedding,
    NoisyHop,
)
from mechanisms.node_level import (
    Beyond,
    ClippedAtPercentile,
    DrawnWithReplacementLower,
    SymmetricLaplace,
    WithinBall,
)
from mechanisms.node_level.thresholds import ClippedAtConstant

SIZE = 20_000
EDGE, NONE = np.array([[0, 1], [1, 0]]), np.zeros((2, 2), int)


def total_variation(mechanism, data):
    """Half the distance of frequencies from a finite law."""
    law = mechanism.distribution(data)
    seen = mechanism(data, SIZE, rng=np.random.default_rng(1))
    assert np.isfinite(law.log_prob(seen)).all()
    rows, counts = np.unique(
        np.asarray(seen).reshape(SIZE, -1), axis=0, return_counts=True
    )
    gaps = np.abs(
        counts / SIZE - np.exp(law.log_prob(rows.reshape(-1, *law.outcomes.shape[1:])))
    )
    return (
        gaps.sum()
        + 1
        - np.exp(law.log_prob(rows.reshape(-1, *law.outcomes.shape[1:]))).sum()
    ) / 2


@pytest.mark.parametrize(
    ("mechanism", "data"),
    [
        (LinkMessage(1.0), np.array([1, 0, 1])),
        (LinkMessages(LinkMessage(2.0), 2), EDGE),
        (WithinBall(SymmetricLaplace(1.4, 3), 0.5), 1.0),
        (WithinBall(SymmetricLaplace(1.4, 3), 0.5), 0.0),
        (Beyond(ClippedAtPercentile(2.0, 4.0), 4.0), (0.01, 1.0, 1.0)),
    ],
)
def test_samples_follow_the_finite_law(mechanism, data):
    assert total_variation(mechanism, data) < 0.03


@pytest.mark.parametrize(
    ("mechanism", "data"),
    [
        (ContractiveIterations(0.5, 1.0, 2.0, 4), 1),
        (AllIterations(0.5, 1.0, 2.0, 4), 1),
        (NoisyHop(1.0, 2), EDGE),
        (NeighbourEmbedding(1.0, 1.0, 2), np.array([1, 0, 1])),
        (ClippedAtConstant(2.0, 2.0), (0.5, 3.0)),
    ],
)
def test_samples_follow_the_gaussian_law(mechanism, data):
    law, seen = (
        mechanism.distribution(data),
        mechanism(data, SIZE, rng=np.random.default_rng(1)).reshape(SIZE, -1),
    )
    assert np.abs(seen.mean(axis=0) - law.location).max() < 5 * law.sigma / math.sqrt(
        SIZE
    )
    assert seen.std(axis=0) == pytest.approx(law.sigma, rel=0.03)


def test_features_of_isolated_nodes_agree_in_the_embedding():
    agree = FeaturesAgree(CaribouEmbedding(4.0, 2))
    for data, nodes in ((EDGE, 0), (NONE, 2)):
        assert (agree(data, 100, rng=np.random.default_rng(1)) == nodes).all()
        assert agree.distribution(data).outcomes.tolist() == [[nodes]]


def test_the_embedding_states_no_law():
    """Its covariance depends on the graph."""
    assert not hasattr(CaribouEmbedding(4.0, 2), "distribution")


def test_more_replacement_shows_more():
    few, many = (
        DrawnWithReplacementLower(4.0, 6, 2, 6, steps).epsilon_at(1 / 60)
        for steps in (1, 2)
    )
    assert few < many
    described = DrawnWithReplacementLower(4.0, 6, 2, 6, 1).describes
    assert (type(described).__name__, described.steps) == ("DrawnWithReplacement", 1)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: LinkMessage(-1.0),
        lambda: LinkMessage(1.0, 1.5),
        lambda: LinkMessages(LinkMessage(1.0), 1),
        lambda: LinkMessages(LinkMessage(1.0), 5).distribution(np.zeros((5, 5), int)),
        lambda: ContractiveIterations(1.0, 1.0, 1.0, 2),
        lambda: NoisyHop(1.0, 2, share=1.5),
        lambda: NeighbourEmbedding(1.0, 1.0, 1).distribution(np.array([1, 1])),
        lambda: WithinBall(SymmetricLaplace(1.0, 2), 1.0),
        lambda: WithinBall(SymmetricLaplace(1.0, 3), 1.0).distribution(0.5),
        lambda: ClippedAtPercentile(0.0, 1.0),
    ],
)
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(MechanismError, match="expected"):
        wrong()
