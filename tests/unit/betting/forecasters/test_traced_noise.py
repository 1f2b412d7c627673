"""The laws of noisy numbers, run by run."""

import numpy as np
import pytest

from auditdp.betting.forecasters.traced_noise import Laws, function_of
from auditdp.tracing.noise_families import FAMILIES

NORMAL = 0.6, 2.0, np.nan
GEOMETRIC = 0.6, 1.0, 0.5


@pytest.mark.parametrize(
    ("family", "one", "other", "common"),
    [
        # A value may be rounded otherwise in each run.
        ("Gaussian", NORMAL, (0.6 * (1 - 1e-15), 2.0, np.nan), True),
        ("Gaussian", NORMAL, (0.6 + 1e-6, 2.0, np.nan), False),
        ("Gaussian", NORMAL, (0.6, 2.0 + 1e-6, np.nan), False),
        ("two-sided geometric", GEOMETRIC, (0.6 + 1e-12, 1.0, 0.5), False),
    ],
)
def test_another_value_or_scale_is_another_law(family, one, other, common):
    laws = Laws(FAMILIES[family], np.array([one, other]))
    assert (laws.common() is not None) == common


def test_a_step_is_a_function_of_the_models_before_it_and_after_it():
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(8, 30))
    models = -0.05 * steps.cumsum(axis=1)
    models = np.column_stack([np.full(8, 7.0), models, np.full(8, np.nan)])
    columns, weights, offset = function_of(steps[:, 11], models)
    assert sorted(columns.tolist()) == [11, 12]
    assert models[:, columns] @ weights + offset == pytest.approx(steps[:, 11])
    assert function_of(rng.normal(size=8), models) is None
