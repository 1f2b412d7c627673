"""Whole pipelines as mechanisms: seeds, scores and laws; Opacus' step by hand."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from auditdp import Pair
from gnn.ensembles.trained import Trained, TrainedByLaw, fit_by_opacus, weights_row
from gnn.models import DecoupledPageRank
from gnn.pipelines.features import FeaturesParameters, fit_features
from gnn.training import PrivateSettings
from tests.unit.gnn.draws import rng


def test_a_pipeline_is_run_by_itself_with_a_seed_for_each_call():
    parameters = FeaturesParameters(
        epsilon=2.0, delta=1e-2, batch=4, epochs=1, hidden=1, layers=1
    )
    x = rng().standard_normal((4, 3)).astype(np.float32)

    def weights(data, generator):
        given = Data(
            x=torch.from_numpy(data),
            y=torch.tensor([0, 1, 1, 0]),
            edge_index=torch.empty(2, 0, dtype=torch.long),
            num_nodes=4,
        )
        return weights_row(
            fit_features(given, parameters, classes=2, generator=generator)[0]
        )

    made = Trained(weights, np.arange(8.0), "Features")
    found = made(x, 2, rng=rng(5))
    seed = int(rng(5).integers(2**32))
    np.testing.assert_array_equal(
        found[0], weights(x, torch.Generator().manual_seed(seed)).numpy()
    )
    assert not np.array_equal(found[0], found[1])
    np.testing.assert_allclose(
        made.score(found, Pair(0, 1)), found.astype(float) @ np.arange(8.0)
    )


def test_a_law_is_that_of_the_score():
    made = TrainedByLaw(
        lambda data, generator: torch.zeros(2),
        np.array([1.0, -1.0]),
        "none",
        lambda s, data: s * data,
    )
    np.testing.assert_array_equal(
        made.log_prob(np.array([[3.0, 1.0], [0.0, 2.0]]), 5.0), [10.0, -10.0]
    )


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_a_step_of_opacus_is_the_noised_sum_of_clipped_gradients(rate):
    """Two rows that mix two nodes with weights ½; at zero weights a gradient is (p − y) ⊗ (mean of the two, 1)."""
    x = torch.tensor([[[6.0], [2.0]], [[-0.2], [0.2]]])
    settings = PrivateSettings(
        steps=1,
        noise_multiplier=1e-6,
        clipping_norm=1.0,
        batch=2,
        rate=rate,
        learning_rate=2.0,
        optimiser="sgd",
    )
    sums = []
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        model = DecoupledPageRank(1, 2, hidden=1, layers=1, generator=generator)
        with torch.no_grad():
            for weight in model.parameters():
                weight.zero_()
        fit_by_opacus(
            model,
            (x, torch.full((2, 2), 0.5)),
            torch.zeros(2, dtype=torch.long),
            settings,
            generator=generator,
        )
        sums.append(-weights_row(model).numpy())
    far, near = (
        np.array([-4.0, 4.0, -1.0, 1.0]) / np.sqrt(34.0),
        np.array([0.0, 0.0, -0.5, 0.5]),
    )
    possible = [far + near] if rate == 1 else [far + near, far, near, 0 * far]
    assert all(
        any(np.allclose(each, sum_, atol=1e-4) for sum_ in possible) for each in sums
    )
    assert len(np.unique(np.round(sums, 2), axis=0)) > (rate < 1)
