"""Tensors that noise is written into, whole or in parts, by views, as gradients and by ``out=``."""

import numpy as np
import pytest

from tests.unit.tracing.idioms import last, level_of, of_tensors, torch, traced

pytestmark = pytest.mark.usefixtures("made_on_device")


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


def added_to_zeros(v):
    noise = torch.zeros(3)
    for _ in range(4):
        noise += torch.randn(3)
    return v + noise


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


FULL = {
    "whole": lambda v: last(noise := torch.zeros(3), noise.normal_(0, 2.0), v + noise),
    "scaled": lambda v: last(
        noise := torch.zeros(3), noise.normal_(), noise.mul_(2.0), v.add_(noise)
    ),
    "by copy": lambda v: last(
        noise := torch.empty(3), noise.copy_(2 * torch.randn(3)), v + noise
    ),
    "by another buffer": lambda v: last(
        one := torch.empty(3),
        other := torch.empty(3),
        one.normal_(0, 2.0),
        other.copy_(one),
        one.zero_(),
        v + other + one,
    ),
    "by data": lambda v: last(
        noise := torch.empty(3), noise.data.normal_(0, 2.0), v + noise
    ),
    "by vector": lambda v: last(
        noise := [torch.empty(1), torch.empty(2)],
        torch.nn.utils.vector_to_parameters(2 * torch.randn(3), noise),
        torch.cat([v[:1] + noise[0], v[1:] + noise[1]]),
    ),
    "by out": lambda v: last(
        noise := torch.empty(3),
        torch.randn(3, out=noise),
        torch.add(v, torch.mul(noise, 2, out=noise), out=v),
    ),
    "as an array": lambda v: last(
        noise := torch.empty(3),
        noise.normal_(0, 2.0),
        v.cpu().numpy() + noise.cpu().numpy(),
    ),
    "rounded": lambda v: (
        v.bfloat16() + 2 * torch.randn(3, dtype=torch.bfloat16)
    ).float(),
} | {
    each.__name__: each
    for each in (
        by_slices,
        entry_by_entry,
        by_a_mask,
        added_to_zeros,
        as_gradient,
        in_a_step_of_its_own,
    )
}


@pytest.mark.parametrize("name", FULL)
def test_it_stands_for_the_noise(name):
    assert level_of(of_tensors(FULL[name])) == pytest.approx(
        0.75, rel=1e-2 if name == "rounded" else 1e-5
    )


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
    pair = traced(of_tensors(function))
    assert pair.proposes
    assert not np.isfinite(pair.level)


def test_a_tensor_of_noise_in_the_output_shows_what_it_was_added_to():
    pair = traced(
        of_tensors(
            lambda v: last(noise := torch.zeros(3), noise.normal_(), (v + noise, noise))
        )
    )
    assert [finding.kind for finding in pair.findings] == ["reuse"]


def by_an_earlier_array(v):
    array = np.zeros(3, np.float32)
    noise = torch.from_numpy(array)
    noise.normal_(0, 2.0)
    array[2] = 0
    return v.cpu() + noise


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


def clamped(v):
    noise = torch.zeros(3)
    noise.normal_()
    noise.clamp_(-1, 1)
    return v + noise


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (by_an_earlier_array, ""),
        (by_a_gradient, ""),
        (by_an_argument, ""),
        (clamped, "by clamp"),
    ],
)
def test_what_is_changed_where_nobody_sees_it_or_otherwise_is_opaque(function, why):
    pair = traced(of_tensors(function))
    assert pair.extent != "full"
    assert any(why in said for _, said in pair.opaque)
    assert not pair.proposes
