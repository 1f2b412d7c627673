"""Functions of arrays and of tensors on noise: one table for both libraries.

A function gets a library, three numbers of which the last one moves by 1.5, and a
sampler of Gaussian noise of deviation 2. The expectation is μ if the noise is followed
throughout, "bare" if the move has no noise, "reuse" if the noise does not hide it, or
the reason why the trace does not follow the noise.
"""

import math
from collections import namedtuple

import numpy as np
import pytest
import scipy.sparse

from auditdp import GaussianDP
from tests.unit.tracing.toys import kinds, pair_of

torch = pytest.importorskip("torch")
ALL = "numpy torch cuda"
BOTH = "numpy torch"
TORCH = "torch cuda"
WHOLE = 0.75
MATRIX = np.array([[1.0, 0.5, 0.25], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
MIXED = 1.5 * math.sqrt(np.linalg.inv(4 * MATRIX @ MATRIX.T)[2, 2])
TENSOR = torch.tensor(MATRIX, dtype=torch.float32)
PARTS = np.array([True, False, True])
Two = namedtuple("Two", "first second")
IN_PLACE = "may have been changed in place"


def cases(libraries, expected, *functions, **lambdas):
    """Return a parameter for each function in each library."""
    named = {function.__name__: function for function in functions} | lambdas
    for name, function in named.items():
        for library in libraries.split():
            marks = pytest.mark.gpu if library == "cuda" else ()
            yield pytest.param(
                function, library, expected, id=f"{name}-{library}", marks=marks
            )


def code_of(function, library):
    """Return code of a list and a generator, which draws from that generator alone."""

    def of_arrays(v, rng):
        return function(np, np.array(v), lambda *size: rng.normal(0, 2.0, size))

    def of_tensors(v, rng):
        torch.manual_seed(int(rng.integers(2**31)))
        return function(torch, torch.tensor(v), lambda *size: 2 * torch.randn(size))

    return of_arrays if library == "numpy" else of_tensors


def like(v):
    return MATRIX if isinstance(v, np.ndarray) else TENSOR.to(v)


# -- noise that a function lays out, mixes or changes, and returns ---------------------


def changed_by_out(x, v, n):
    noise = n(3) / 2
    x.multiply(noise, 2, out=noise)
    x.add(v, noise, out=v)
    return v


def an_entry_that_stays(x, v, n):
    noise = n(3)
    noise[0] = 0.0
    return v + noise


def entries_of_other_noise(x, v, n):
    noise = n(3)
    noise[1:] = n(2)
    return v + noise


def added_to_zeros(x, v, n):
    noise = x.zeros(3)
    for _ in range(4):
        noise += n(3) / 2
    return v + noise


def compared_after_additions(x, v, n):
    noise = n()
    noise += v[0]
    noise += v[2]
    return [noise] if noise > 0 else []


FOLLOWED = [
    *cases(
        ALL,
        WHOLE,
        changed_by_out,
        an_entry_that_stays,
        entries_of_other_noise,
        added_to_zeros,
        flip=lambda x, v, n: v + x.flip(n(3), (0,)),
        reshape=lambda x, v, n: v + n(3, 1).reshape(3),
        where=lambda x, v, n: v + x.where(x.asarray(PARTS), n(3), n(3)),
        joined=lambda x, v, n: v + x.concatenate([n(2) * 0.6 + n(2) * 0.8, n(1)]),
        zeros_beside=lambda x, v, n: v + x.concatenate([x.zeros(2), n(1)]),
        sum=lambda x, v, n: v + n(4, 3).sum(0) / 2,
        cumsum=lambda x, v, n: v + x.cumsum(n(3), 0),
    ),
    *cases(BOTH, WHOLE, compared_after_additions),
    *cases(
        ALL,
        MIXED,
        matmul=lambda x, v, n: v + like(v) @ n(3),
    ),
    *cases(
        "numpy",
        WHOLE,
        copy=lambda x, v, n: v + with_copy_cleared(n(3), np.copy),
    ),
    *cases(
        "numpy",
        MIXED,
        sparse=lambda x, v, n: v + n(3) @ scipy.sparse.csr_array(MATRIX.T),
    ),
]


def with_copy_cleared(noise, copy):
    other = copy(noise)
    other *= 0
    return noise + other


# -- tensors alone: draws, copies, and tensors that noise is written into --------------


def filled_with_numbers(x, v, n):
    noise = n(3)
    noise.fill_(0.0)
    return v + n(3) + noise


def several_tensors(x, v, n):
    values = [v.double()]
    noise = [torch.randn(3, dtype=torch.double)]
    torch._foreach_mul_(noise, 2.0)
    torch._foreach_add_(values, noise)
    return values[0]


def written_into_parameters(x, v, n):
    noise = [torch.empty(1), torch.empty(2)]
    torch.nn.utils.vector_to_parameters(n(3), noise)
    return torch.cat([v[:1] + noise[0], v[1:] + noise[1]])


def filled(x, v, n):
    noise = torch.zeros(3)
    noise.normal_().mul_(4.0).div_(2)
    return v.add_(noise)


def filled_by_copies(x, v, n):
    noise = torch.empty(3)
    other = torch.empty(3)
    noise.data.normal_(0, 2.0)
    other.copy_(noise)
    noise.zero_()
    return v + other + noise


def filled_by_out(x, v, n):
    noise = torch.empty(3)
    torch.randn(3, out=noise)
    return torch.add(v, torch.mul(noise, 2, out=noise), out=v)


def filled_entry_by_entry(x, v, n):
    noise = torch.empty(4)
    for entry in noise:
        entry.normal_(0, 2.0)
    return v.cpu().numpy() + noise.cpu().numpy()[1:]


def added_to_a_gradient(x, v, n):
    weights = torch.nn.Parameter(torch.zeros(3))
    weights.grad = n(3)
    weights.grad += v
    torch.optim.SGD([weights], 0.1).step()
    return weights.detach()


def global_noise():
    return np.random.normal(0, 2.0, 3)  # noqa: NPY002


FOLLOWED += [
    *cases(
        TORCH,
        WHOLE,
        filled_with_numbers,
        several_tensors,
        written_into_parameters,
        filled,
        filled_by_copies,
        filled_by_out,
        filled_entry_by_entry,
        added_to_a_gradient,
        normal=lambda x, v, n: v.add_(torch.normal(0.0, 2.0, (3,), device=v.device)),
        randn_like=lambda x, v, n: v.add_(torch.randn_like(v), alpha=2.0),
        distribution=lambda x, v, n: (
            v + torch.distributions.Normal(0, 2.0).sample((3,))
        ),
        copies=lambda x, v, n: v.cpu() + n(3).float().detach().to("cpu", torch.float32),
        from_numpy=lambda x, v, n: v + torch.from_numpy(global_noise()).to(v),
    ),
    *cases(
        TORCH,
        pytest.approx(WHOLE, rel=1e-2),
        rounded=lambda x, v, n: (v.bfloat16() + n(3).bfloat16()).float(),
    ),
    *cases(
        TORCH,
        MIXED,
        addmv=lambda x, v, n: torch.addmv(v, like(v), n(3)),
    ),
    *cases(
        TORCH,
        MIXED / 3,
        linear_with_a_bias=lambda x, v, n: torch.nn.functional.linear(
            n(3), like(v), v / 3
        ),
    ),
]


# -- moves that the noise does not hide, and noise that is not followed ----------------


def overwritten_where_it_moves(x, v, n):
    noise = n(3)
    noise[2] = 0.0
    return v + noise


def filled_in_part(x, v, n):
    noise = torch.zeros(3)
    noise[:2] = n(2)
    return v + noise


def cleared_in_part(x, v, n):
    noise = torch.empty(3)
    noise.normal_(0, 2.0)
    noise[2:].zero_()
    return v + noise


def filled_and_returned(x, v, n):
    noise = torch.zeros(3)
    noise.normal_()
    return v + noise, noise


def joined_twice(x, v, n):
    noise = n(2)
    return v + x.concatenate([noise, noise[1:]])


NOT_HIDDEN = [
    *cases(ALL, "bare", overwritten_where_it_moves),
    *cases(TORCH, "bare", filled_in_part, cleared_in_part),
    *cases(TORCH, "reuse", filled_and_returned),
    *cases(
        ALL,
        "reuse",
        joined_twice,
        index=lambda x, v, n: v + n(3)[[0, 1, 1]],
    ),
]


def slice_changed(x, v, n):
    noise = n(3)
    part = noise[2:]
    part *= 0
    return v + noise


def view_changed(x, v, n):
    noise = n(3)
    noise.reshape(3, 1).mul_(0)
    return v + noise


def changed_as_an_argument(x, v, n):
    noise = torch.empty(3)
    noise.normal_(0, 2.0)
    torch.sum(v[None], 0, out=noise)
    return noise


def clamped(x, v, n):
    noise = torch.zeros(3)
    noise.normal_()
    noise.clamp_(-1, 1)
    return v + noise


def gradient_of_a_product(x, v, n):
    weights = torch.zeros(3, requires_grad=True)
    (torch.dot(weights, v) + (weights * n(3)).sum()).backward()
    return weights.grad


NOT_FOLLOWED = [
    *cases(
        "numpy",
        IN_PLACE,
        slice_changed,
    ),
    *cases(
        "numpy",
        "is used by",
        block=lambda x, v, n: v + x.block([[n(3)], [n(3)]])[0],
        hypot=lambda x, v, n: v + x.hypot(n(2), Two(n(), 1.0)).sum(),
    ),
    *cases(TORCH, IN_PLACE, view_changed),
    *cases(TORCH, "by clamp", clamped),
    *cases(
        TORCH,
        "",
        changed_as_an_argument,
        gradient_of_a_product,
        other_bytes=lambda x, v, n: v + n(3).view(torch.int32),
    ),
]


@pytest.mark.parametrize(
    ("function", "library", "expected"), [*FOLLOWED, *NOT_HIDDEN, *NOT_FOLLOWED]
)
def test_functions_of_noise(function, library, expected):
    """The output is that of a plain run, and the comparison is the expected one."""
    code = code_of(function, library)
    first = [1.0, 2.0, 3.0]

    def seeded(run):
        np.random.seed(0)  # noqa: NPY002
        return run()

    if library == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    with torch.device("cuda" if library == "cuda" else "cpu"):
        claim = GaussianDP(9.0)
        pair = seeded(lambda: pair_of(code, first, [1.0, 2.0, 4.5], claim))
        plain = seeded(lambda: code(first, np.random.default_rng(0)))
    assert type(plain) is type(pair.first.output)
    assert str(plain) == str(pair.first.output)
    if expected == "bare":
        assert pair.extent == "full"
        assert pair.level == math.inf
        assert pair.proposes
    elif expected == "reuse":
        assert pair.extent == "full"
        assert kinds(pair) == ["reuse"]
    elif isinstance(expected, str):
        assert pair.extent != "full"
        assert any(expected in why for _, why in pair.opaque)
        assert not pair.first.untraceable
        assert not pair.proposes
    else:
        assert pair.extent == "full"
        assert not pair.opaque
        assert pair.differ is None
        assert pair.is_bound
        assert not pair.proposes
        assert pair.level == (
            pytest.approx(expected, rel=1e-5)
            if isinstance(expected, float)
            else expected
        )
