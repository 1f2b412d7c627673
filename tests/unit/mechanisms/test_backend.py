"""Draws and arrays of either library: types, devices, and the grid of uniform numbers."""

import ast
from pathlib import Path

import numpy as np
import pytest

from auditdp.errors import MechanismError
from mechanisms.backend import BITS, backend_of
from tests.statistical.stated_laws import torch_generator

same = np.testing.assert_array_equal

ROOT = Path(__file__).resolve().parents[3]
LIBRARIES = ["numpy", "cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def backend_from(library):
    if library == "numpy":
        return backend_of(np.random.default_rng(5))
    return backend_of(torch_generator(library, 5))


def as_numpy(values):
    return values if isinstance(values, np.ndarray) else values.cpu().numpy()


@pytest.fixture(params=LIBRARIES)
def backend(request):
    return backend_from(request.param)


def test_uniform_numbers_are_multiples_of_the_grid(backend):
    u = as_numpy(backend.uniform(2000, 3))
    steps = u * 2.0**BITS
    assert u.shape == (2000, 3)
    assert (steps == np.floor(steps)).all()
    assert 0 <= u.min() < 0.01
    assert 0.99 < u.max() < 1
    assert (steps % 2 == 1).any(), "all 53 bits are used"


def test_arrays_are_float64(backend):
    for values in ([1, 2], np.array([0.5], np.float32), np.array([True])):
        array = as_numpy(backend.array(values))
        assert array.dtype == np.float64
        assert (array == values).all()


@pytest.mark.parametrize("device", LIBRARIES[1:])
def test_tensors_stay_on_the_device_of_the_generator(device):
    backend = backend_from(device)
    for drawn in (
        backend.uniform(2),
        backend.normal(2),
        backend.laplace(2),
        backend.subsets(2, 3, 1),
        backend.array([1]),
    ):
        assert drawn.device.type == device


def test_a_tensor_of_another_device_is_refused():
    backend = backend_from("cpu")
    with pytest.raises(MechanismError, match="got one on meta; move the tensor"):
        backend.array(backend.xp.zeros(2, device="meta"))


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_same_seed_gives_the_same_draws(library):
    first, second = (as_numpy(backend_from(library).uniform(4)) for _ in range(2))
    assert (first == second).all()


def test_mechanisms_import_no_torch_until_a_tensor_comes():
    """Nor does the harness, as the test of the layers has it."""
    for path in (ROOT / "mechanisms").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert "torch" not in ast.unparse(node), path
