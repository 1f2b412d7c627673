"""The laws of noisy numbers, run by run."""

import numpy as np
import pytest

from auditdp.betting.forecasters.traced_noise import Laws, function_of
from auditdp.tracing.noise_families import FAMILIES


def laws(family, *numbers):
    return Laws(FAMILIES[family], np.array(numbers))


def test_a_value_that_is_rounded_otherwise_in_each_run_has_one_law():
    clipped = [0.6, 0.6 * (1 + 2e-16), 0.6 * (1 - 1e-15)]
    assert (
        laws("Gaussian", *((value, 2.0, np.nan) for value in clipped)).common()
        is not None
    )


@pytest.mark.parametrize(
    ("family", "others"),
    [
        ("Gaussian", (0.6 + 1e-6, 2.0, np.nan)),
        ("Gaussian", (0.6, 2.0 + 1e-6, np.nan)),
        ("two-sided geometric", (0.6 + 1e-12, 1.0, 0.5)),
    ],
)
def test_another_value_or_scale_is_another_law(family, others):
    known = (0.6, others[1] if others[0] != 0.6 else 2.0, others[2])
    assert laws(family, known, known).common() is not None
    assert laws(family, known, others).common() is None


def test_a_step_is_read_from_the_models_before_it_and_after_it():
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(8, 30))
    models = np.column_stack(
        [np.full(8, 7.0), -0.05 * steps.cumsum(axis=1), np.full(8, np.nan)]
    )
    columns, weights, offset = function_of(steps[:, 11], models)
    assert sorted(columns.tolist()) == [11, 12]
    assert models[:, columns] @ weights + offset == pytest.approx(steps[:, 11])
    assert function_of(rng.normal(size=8), models) is None
