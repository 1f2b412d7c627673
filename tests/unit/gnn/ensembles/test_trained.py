"""Whole pipelines as mechanisms: seeds, scores and laws; Opacus' step by hand."""

import numpy as np
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch_geometric.data import Data

from auditdp import Pair
from gnn.ensembles.trained import Trained, fit_by_opacus, weights_row
from gnn.models import DecoupledPageRank
from gnn.pipelines.features import FeaturesParameters, fit_features
from gnn.training import PrivateSettings
from tests.unit.gnn.draws import generator, rng, zeroed


def features_weights(data, generator):
    """The weights of a small training of Features on four nodes."""
    parameters = FeaturesParameters(
        epsilon=2.0, delta=1e-2, batch=4, epochs=1, hidden=1, layers=1
    )
    given = Data(
        x=torch.from_numpy(data),
        y=torch.tensor([0, 1, 1, 0]),
        edge_index=torch.empty(2, 0, dtype=torch.long),
        num_nodes=4,
    )
    return weights_row(
        fit_features(given, parameters, classes=2, generator=generator)[0]
    )


def test_a_pipeline_is_run_with_a_seed_for_each_call():
    x = rng().standard_normal((4, 3)).astype(np.float32)
    direction = np.arange(8.0)
    made = Trained(features_weights, direction, "Features")
    found = made(x, 2, rng=rng(5))
    seed = int(rng(5).integers(2**32))
    expected = features_weights(x, generator(seed)).numpy()

    assert_array_equal(found[0], expected)
    assert not np.array_equal(found[0], found[1])

    score = made.score(found, Pair(0, 1))
    assert_allclose(score, found.astype(float) @ direction)


def test_a_step_of_opacus_is_the_noised_sum_of_clipped_gradients():
    """A gradient at zero weights is (p − y) ⊗ (mean of two rows, 1); each has a coin."""
    x = torch.tensor([[[6.0], [2.0]], [[-0.2], [0.2]]])
    data = x, torch.full((2, 2), 0.5)
    settings = PrivateSettings(
        steps=1,
        noise_multiplier=1e-6,
        clipping_norm=1.0,
        batch=2,
        rate=0.5,
        learning_rate=2.0,
        optimiser="sgd",
    )
    targets = torch.zeros(2, dtype=torch.long)
    far = np.array([-4.0, 4.0, -1.0, 1.0]) / np.sqrt(34.0)
    near = np.array([0.0, 0.0, -0.5, 0.5])
    possible = np.array([far + near, far, near, 0 * far])
    found = set()
    for seed in range(8):
        draws = generator(seed)
        model = zeroed(DecoupledPageRank(1, 2, hidden=1, layers=1, generator=draws))
        fit_by_opacus(model, data, targets, settings, generator=draws)
        distances = np.abs(possible + weights_row(model).numpy()).max(axis=1)
        assert distances.min() < 1e-4
        found.add(distances.argmin())

    assert len(found) > 1
