"""Noise whose entries are put together of others, or added up by a linear function, with the loss of its covariance."""

import math

import numpy as np
import pytest
import scipy.sparse

from tests.unit.tracing.idioms import level_of, of_tensors, torch, traced

MATRIX = np.array([[1.0, 0.5, 0.25], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
MIXED = 1.5 * math.sqrt(np.linalg.inv(4 * MATRIX @ MATRIX.T)[2, 2])
PARTS = np.array([True, False, True])
TENSOR = torch.tensor(MATRIX, dtype=torch.float32)


OF_ARRAYS = {
    "append": (lambda n: np.append(n(2), n(1)), 0.75),
    "insert": (lambda n: np.insert(n(2), 1, n(1)), 0.75),
    "where": (lambda n: np.where(PARTS, n(3), n(3)), 0.75),
    "flip": (lambda n: np.flip(n(3)), 0.75),
    "roll": (lambda n: np.roll(n(3), 1), 0.75),
    "outer": (lambda n: np.outer(np.ones(1), n(3))[0], 0.75),
    "zeros beside noise": (lambda n: np.concatenate([np.zeros(2), n(1)]), 0.75),
    "sums that are joined": (
        lambda n: np.concatenate([n(2) * 0.6 + n(2) * 0.8, n(1)]),
        0.75,
    ),
    "matmul": (lambda n: MATRIX @ n(3), MIXED),
    "matmul from the left": (lambda n: n(3) @ MATRIX.T, MIXED),
    "a sparse matrix": (lambda n: n(3) @ scipy.sparse.csr_array(MATRIX.T), MIXED),
    "dot": (lambda n: n(3).dot(MATRIX.T), MIXED),
    "einsum": (lambda n: np.einsum("ij,j->i", MATRIX, n(3)), MIXED),
    "a diagonal": (lambda n: np.diag([1.0, 1.0, 2.0]) @ n(3), 0.375),
    "sum": (lambda n: n((4, 3)).sum(axis=0) / 2, 0.75),
    "mean": (lambda n: 2 * n((4, 3)).mean(0), 0.75),
    "cumsum": (lambda n: np.cumsum(n(3)), 0.75),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_arrays(name):
    mix, level = OF_ARRAYS[name]
    assert level_of(
        lambda v, rng: v + mix(lambda size: rng.normal(0, 2.0, size))
    ) == pytest.approx(level)


@pytest.mark.parametrize("at", [0, 1])
def test_a_covariance(at):
    def code(v, rng):
        v = np.array(v)
        return (1 - at) * v + rng.multivariate_normal(at * v, 4 * MATRIX @ MATRIX.T)

    assert level_of(code) == pytest.approx(MIXED)


OF_TENSORS = {
    "where": (
        lambda v, n: v + torch.where(torch.tensor(PARTS), n, 2 * torch.randn(3)),
        0.75,
    ),
    "zeros beside noise": (lambda v, n: v + torch.cat([torch.zeros(2), n[:1]]), 0.75),
    "matmul": (lambda v, n: v + TENSOR @ n, MIXED),
    "mv": (lambda v, n: v + torch.mv(TENSOR, n), MIXED),
    "einsum": (lambda v, n: v + torch.einsum("ij,j->i", TENSOR, n), MIXED),
    "linear": (lambda v, n: v + torch.nn.functional.linear(n, TENSOR), MIXED),
    "with a bias": (
        lambda v, n: torch.nn.functional.linear(n, TENSOR, v / 3),
        MIXED / 3,
    ),
    "a multiple with a bias": (
        lambda v, n: torch.nn.functional.linear(n, torch.eye(3) / 7, v / 3),
        1.75,
    ),
    "addmv": (lambda v, n: torch.addmv(v, TENSOR, n), MIXED),
    "sum of both": (lambda v, n: torch.stack([v, n]).sum(0), 0.75),
    "drawn by a covariance": (
        lambda v, n: torch.distributions.MultivariateNormal(
            v, 4 * TENSOR @ TENSOR.T
        ).sample(),
        MIXED,
    ),
}


@pytest.mark.parametrize("name", OF_TENSORS)
def test_tensors(name):
    mix, level = OF_TENSORS[name]
    assert level_of(of_tensors(lambda v: mix(v, 2 * torch.randn(3)))) == pytest.approx(
        level, rel=1e-5
    )


OF_LOW_RANK = {
    "arrays": lambda v, rng: v + np.array([[1.0], [1.0], [0.0]]) @ rng.normal(size=1),
    "tensors": of_tensors(
        lambda v: v + (torch.tensor([[1.0], [1.0], [0.0]]) @ torch.randn(1, 1))[:, 0]
    ),
    "joined twice": lambda v, rng: (lambda n: v + np.concatenate([n, n[1:]]))(
        rng.normal(size=2)
    ),
}


@pytest.mark.parametrize("name", OF_LOW_RANK)
def test_noise_of_low_rank_hides_no_move_that_lies_outside(name):
    assert [finding.kind for finding in traced(OF_LOW_RANK[name]).findings] == ["reuse"]


@pytest.mark.parametrize("product", [lambda w, n: (w * n).sum(), torch.dot])
def test_noise_that_a_gradient_shows_is_opaque(product):
    def perturbed(v):
        weights = torch.zeros(3, requires_grad=True)
        (torch.dot(weights, v) + product(weights, torch.randn(3))).backward()
        return weights.grad

    pair = traced(of_tensors(perturbed))
    assert (pair.extent, pair.proposes) == ("part", False)


def in_a_loop(v, rng):
    total = rng.normal(0, 2.0, 3)
    for k, x in enumerate(v):
        total += np.eye(3)[k] * x
    return np.zeros(3) + total / 2


def out_of_an_array(v, rng):
    made = []
    for x in v:
        n = rng.normal(0, 2.0)
        n += x / 2
        n -= -x / 2
        made.append(n)
    return made


def of_a_tensor(v, rng):
    total = torch.normal(0.0, 2.0, (3,))
    for k, x in enumerate(v):
        total -= torch.eye(3)[k] * x
    return total.tolist()


def and_compared(v, rng):
    n = rng.normal(0, 2.0)
    n += v[0]
    n += v[2]
    return [n] if n > 0 else []


@pytest.mark.parametrize(
    "function", [in_a_loop, out_of_an_array, of_a_tensor, and_compared]
)
def test_values_that_are_added_to_noise_one_after_another_are_released_as_their_sum(
    function,
):
    assert level_of(function) == pytest.approx(0.75)
