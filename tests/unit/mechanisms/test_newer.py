"""Noise of published code that states no law, or whose law depends on the data."""

import numpy as np
import pytest

from mechanisms.message_passing import CaribouEmbedding, FeaturesAgree
from mechanisms.node_level import DrawnWithReplacementLower
from tests.statistical.stated_laws import EDGE


@pytest.mark.parametrize(
    ("data", "nodes"),
    [
        (EDGE, 0),
        (0 * EDGE, 2),
    ],
)
def test_features_of_isolated_nodes_agree_in_the_embedding(data, nodes):
    agree = FeaturesAgree(CaribouEmbedding(4.0, 2))
    assert (agree(data, 100, rng=np.random.default_rng(1)) == nodes).all()
    assert agree.distribution(data).outcomes.tolist() == [[nodes]]


def test_more_replacement_shows_more():
    once, twice = (DrawnWithReplacementLower(4.0, 6, 2, 6, steps) for steps in (1, 2))
    assert once.epsilon_at(1 / 60) < twice.epsilon_at(1 / 60)
    described = once.describes
    assert (type(described).__name__, described.steps) == ("DrawnWithReplacement", 1)
