"""What is left of outputs beyond the steps of their noise: found where noise has steps, and only there."""

import numpy as np
import pytest

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.views import residue_of, views_of

READINGS = 0.123456789, 0.7654321


def outputs(noise, of=READINGS, count=8, seed=1):
    """Noise of either of two readings."""
    rng = np.random.default_rng(seed)
    return np.concatenate([np.float64(reading) + noise(rng, count) for reading in of])


STEPPED = {
    "single precision": lambda rng, n: rng.laplace(size=n).astype(np.float32),
    "half precision": lambda rng, n: rng.laplace(size=n).astype(np.float16),
    "thousandths": lambda rng, n: rng.laplace(size=n).round(3),
    "whole numbers, far apart": lambda rng, n: (
        rng.geometric(1e-4, n) - rng.geometric(1e-4, n)
    ),
    "steps of 2⁻²⁰": lambda rng, n: rng.integers(-(2**20), 2**20, n) / 2**20,
}


@pytest.mark.parametrize("kind", STEPPED)
def test_residues_tell_what_noise_was_added_to(kind):
    residue = residue_of(outputs(STEPPED[kind]))
    assert residue is not None
    one, other = np.split(residue(outputs(STEPPED[kind], count=1_000, seed=2)), 2)
    values, counts = np.unique(one, return_counts=True)
    common = values[np.argmax(counts)]
    assert (one == common).mean() > 0.9
    assert (other == common).mean() < 0.01


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_noise_of_doubles_has_no_steps(scale):
    assert residue_of(outputs(lambda rng, n: rng.laplace(scale=scale, size=n))) is None
    assert (
        residue_of(
            outputs(lambda rng, n: rng.normal(scale=scale, size=n), of=(41.0, 42.0))
        )
        is None
    )


@pytest.mark.parametrize(
    "column",
    [
        outputs(
            STEPPED["single precision"], of=(41.0, 42.0)
        ),  # integers, of which nothing is left
        outputs(lambda rng, n: rng.integers(0, 3, n), of=(0, 1)),  # numbers that repeat
        np.round(
            outputs(lambda rng, n: rng.laplace(size=n)), 2
        ),  # rounded after the noise
        np.full(16, np.nan),
        np.full(16, 3.0),
        np.array([1.5, 2.5]),
    ],
    ids=["integers", "repeating", "cents", "missing", "constant", "few"],
)
def test_where_nothing_is_left_there_is_no_view(column):
    assert residue_of(column) is None


def test_numbers_that_are_missing_or_huge_stay_numbers():
    residue = residue_of(outputs(STEPPED["single precision"]))
    assert np.isnan(residue(np.array([np.nan, np.inf, -np.inf]))).all()
    assert np.isfinite(residue(np.array([1e200, -1e200, 0.0]))).all()


def test_a_view_is_there_for_each_number_with_steps():
    steps, smooth = (
        outputs(STEPPED["thousandths"]),
        outputs(lambda rng, n: rng.laplace(size=n)),
    )
    names = [
        view.name
        for view in views_of(
            np.column_stack([smooth, steps]), Pair("a", "b"), with_inputs=False
        )
    ]
    assert [name for name in names if "steps" in name] == [
        "[1] beyond the steps of its noise"
    ]
    names = [
        view.name
        for view in views_of(smooth[:, None], Pair("a", "b"), with_inputs=False)
    ]
    assert names == ["value", "fingerprint"]
