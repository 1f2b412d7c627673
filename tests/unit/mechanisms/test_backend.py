"""Draws and arrays of either library: shapes, types, devices, and the grid of uniform numbers."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from auditdp.errors import MechanismError
from mechanisms.backend import BITS, backend_of

ROOT = Path(__file__).resolve().parents[3]
GPU = pytest.param("cuda", marks=pytest.mark.gpu)


def numpy_backend():
    return backend_of(np.random.default_rng(5))


def torch_backend(device="cpu"):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return backend_of(torch.Generator(device).manual_seed(5))


@pytest.fixture(params=["numpy", "cpu", GPU])
def backend(request):
    return numpy_backend() if request.param == "numpy" else torch_backend(request.param)


def as_numpy(values):
    return values if isinstance(values, np.ndarray) else values.cpu().numpy()


def test_uniform_numbers_are_multiples_of_the_grid(backend):
    u = as_numpy(backend.uniform(2000, 3))
    assert u.shape == (2000, 3)
    assert u.dtype == np.float64
    steps = u * 2.0**BITS
    assert (steps == np.floor(steps)).all()
    assert 0 <= u.min() < 0.01
    assert 0.99 < u.max() < 1
    assert (steps % 2 == 1).any()  # all 53 bits are used


@pytest.mark.parametrize("draw", ["normal", "laplace"])
def test_noise_has_the_asked_shape_and_type(backend, draw):
    noise = as_numpy(getattr(backend, draw)(4, 5))
    assert noise.shape == (4, 5)
    assert noise.dtype == np.float64
    assert len(np.unique(noise)) == 20
    assert noise.min() < 0 < noise.max()


def test_integers_cover_their_range(backend):
    drawn = as_numpy(backend.integers(3, 200))
    assert drawn.dtype == np.int64
    assert set(drawn) == {0, 1, 2}


@pytest.mark.parametrize("size", [1, 3, 5])
def test_subsets_have_their_size_and_differ(backend, size):
    mask = as_numpy(backend.subsets(300, 5, size))
    assert mask.shape == (300, 5)
    assert mask.dtype == bool
    assert (mask.sum(axis=1) == size).all()
    assert len(np.unique(mask, axis=0)) == {1: 5, 3: 10, 5: 1}[size]


def test_arrays_are_float64(backend):
    for values in ([1, 2], np.array([0.5], np.float32), np.array([True])):
        array = backend.array(values)
        assert as_numpy(array).dtype == np.float64
        np.testing.assert_array_equal(as_numpy(array), values)


@pytest.mark.parametrize("device", ["cpu", GPU])
def test_tensors_stay_on_the_device_of_the_generator(device):
    backend = torch_backend(device)
    for drawn in (
        backend.uniform(2),
        backend.normal(2),
        backend.laplace(2),
        backend.subsets(2, 3, 1),
        backend.array([1]),
    ):
        assert drawn.device.type == device


def test_a_tensor_of_another_device_is_refused():
    backend = torch_backend()
    with pytest.raises(
        MechanismError,
        match=r"generator's device, cpu, got one on meta; move the tensor",
    ):
        backend.array(backend.xp.zeros(2, device="meta"))


def test_the_same_seed_gives_the_same_draws():
    for make in (numpy_backend, torch_backend):
        np.testing.assert_array_equal(
            as_numpy(make().uniform(4)), as_numpy(make().uniform(4))
        )


@pytest.mark.parametrize("wrong", [None, 7, np.random.RandomState(0)])
def test_what_is_no_generator_is_refused(wrong):
    with pytest.raises(
        MechanismError,
        match=r"expected rng, a numpy.random.Generator .*; write numpy.random.default_rng",
    ):
        backend_of(wrong)


def test_mechanisms_do_not_load_torch():
    code = "import sys, mechanisms.numeric; sys.exit('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode
        == 0
    )
