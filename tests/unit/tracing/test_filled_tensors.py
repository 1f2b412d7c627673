"""Tensors that noise is written into, whole or in parts, by views, as gradients and by ``out=``."""

import numpy as np
import pytest

from auditdp.claims.statements import GaussianDP
from auditdp.tracing import Trace, compare

torch = pytest.importorskip("torch")
FIRST, SECOND = [1.0, 2.0, 3.0], [1.0, 2.0, 4.5]


def traced(function):
    def code(v, rng):
        torch.manual_seed(int(rng.integers(2**31)))
        return function(torch.tensor(v))

    pair = compare(Trace(code), FIRST, SECOND, np.random.default_rng(0), claim=GaussianDP(9.0))
    assert str(pair.first.output) == str(code(FIRST, np.random.default_rng(0)))
    return pair


def by_slices(v):
    noise = torch.empty(3)
    noise[:1], noise[1:] = 2 * torch.randn(1), 2 * torch.randn(2)
    return v + noise


def entry_by_entry(v):
    noise = torch.empty(4)
    for entry in noise:
        entry.normal_(0, 2.0)
    return v + noise[1:]


def by_a_mask(v):
    noise, mask = 2 * torch.randn(3), torch.tensor([True, False, True])
    buffer = torch.zeros(3)
    buffer[mask] = noise[mask]
    buffer[~mask] = noise[~mask]
    return v + buffer


def by_copy(v):
    noise = torch.empty(3)
    noise.copy_(2 * torch.randn(3))
    return v + noise


def by_another_buffer(v):
    first, second = torch.empty(3), torch.empty(3)
    first.normal_(0, 2.0)
    second.copy_(first)
    first.zero_()
    return v + second + first


def by_data(v):
    noise = torch.empty(3)
    noise.data.normal_(0, 2.0)
    return v + noise


def by_vector(v):
    noise = [torch.empty(1), torch.empty(2)]
    torch.nn.utils.vector_to_parameters(2 * torch.randn(3), noise)
    return torch.cat([v[:1] + noise[0], v[1:] + noise[1]])


def by_out(v):
    noise = torch.empty(3)
    torch.randn(3, out=noise)
    return torch.add(v, torch.mul(noise, 2, out=noise), out=v)


def as_an_array(v):
    noise = torch.empty(3)
    noise.normal_(0, 2.0)
    return v.numpy() + noise.numpy()


def rounded(v):
    return (v.bfloat16() + 2 * torch.randn(3, dtype=torch.bfloat16)).float()


def as_gradient(v):
    weights = torch.nn.Parameter(torch.zeros(3))
    weights.grad = 2 * torch.randn(3)
    weights.grad += v
    torch.optim.SGD([weights], 0.1).step()
    return weights.detach()


def in_a_step_of_its_own(v):
    weights = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([weights], 0.1, foreach=True)
    weights.grad = v.clone()
    optimizer.step()
    weights.grad = 2 * torch.randn(3)
    optimizer.step()
    return weights.detach()


FULL = (
    by_slices,
    entry_by_entry,
    by_a_mask,
    by_copy,
    by_another_buffer,
    by_data,
    by_vector,
    by_out,
    as_an_array,
    rounded,
)


@pytest.mark.parametrize("function", [*FULL, as_gradient, in_a_step_of_its_own], ids=lambda function: function.__name__)
def test_it_stands_for_the_noise(function):
    pair = traced(function)
    assert (pair.extent, pair.is_bound, pair.level) == ("full", True, pytest.approx(0.75, rel=1e-2))
    assert [finding.kind for finding in pair.findings if finding.is_read_off] == []


def part_without(v):
    noise = torch.zeros(3)
    noise[:2] = torch.randn(2)
    return v + noise


def part_overwritten(v):
    noise = torch.empty(3)
    noise.normal_(0, 2.0)
    noise[2:].zero_()
    return v + noise


@pytest.mark.parametrize("function", [part_without, part_overwritten])
def test_what_is_not_written_or_is_overwritten_has_no_noise(function):
    pair = traced(function)
    assert pair.proposes
    assert not np.isfinite(pair.level)


def by_an_earlier_array(v):
    array = np.zeros(3, np.float32)
    noise = torch.from_numpy(array)
    noise.normal_(0, 2.0)
    array[2] = 0
    return v + noise


def by_a_gradient(v):
    weights = torch.nn.Parameter(torch.zeros(3))
    weights.grad = torch.zeros(3)
    weights.grad.normal_(0, 2.0)
    (weights * v).sum().backward()
    return weights.grad


def by_an_argument(v):
    noise = torch.empty(3)
    noise.normal_(0, 2.0)
    torch.sum(v[None], 0, out=noise)
    return noise


@pytest.mark.parametrize("function", [by_an_earlier_array, by_a_gradient, by_an_argument])
def test_what_is_changed_where_nobody_sees_it_is_opaque(function):
    pair = traced(function)
    assert pair.extent != "full"
    assert not pair.proposes
