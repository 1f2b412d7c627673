"""Feature matrices of torch's CSR layout, beside dense ones."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

# Products and rows are all that is used here, and tests compare them with dense matrices.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")


def csr(
    values: NDArray[np.generic],
    indices: NDArray[np.generic],
    pointers: NDArray[np.generic],
    shape: tuple[int, int],
) -> Tensor:
    """Return a sparse matrix as a float32 tensor of torch's CSR layout, after a check of its indices.

    Raises:
        RuntimeError: If these are not the parts of a CSR matrix of this shape.
    """
    parts = (
        pointers.astype(np.int64),
        indices.astype(np.int64),
        values.astype(np.float32),
    )
    # An empty array has stride 0, which some versions of torch refuse as not contiguous; a copy in this format has stride 1.
    copies = (
        torch.from_numpy(part).clone(memory_format=torch.contiguous_format)
        for part in parts
    )
    return torch.sparse_csr_tensor(*copies, size=shape, check_invariants=True)


def is_sparse(x: Tensor) -> bool:
    """Return True if x has the CSR layout."""
    return x.layout == torch.sparse_csr


def with_values(x: Tensor, values: Tensor) -> Tensor:
    """Return a sparse matrix with the places of x and other values."""
    return torch.sparse_csr_tensor(
        x.crow_indices(), x.col_indices(), values, size=x.shape, check_invariants=False
    )


def rows(x: Tensor, index: Tensor) -> Tensor:
    """Return some rows of a dense or sparse matrix, in its layout.

    Args:
        x: Shape (rows, columns).
        index: int64, shape (count,).
    """
    if not is_sparse(x):
        return x[index]
    pointers = x.crow_indices()
    counts = pointers.diff()[index]
    ends = counts.cumsum(0)
    shift = pointers[index] - (ends - counts)
    places = torch.repeat_interleave(shift, counts) + torch.arange(
        int(counts.sum()), device=x.device
    )
    starts = torch.cat([ends.new_zeros(1), ends])
    return torch.sparse_csr_tensor(
        starts,
        x.col_indices()[places],
        x.values()[places],
        size=(len(index), x.shape[1]),
        check_invariants=False,
    )


def transposed(x: Tensor) -> Tensor:
    """Return the transpose of a sparse matrix, of the CSR layout too."""
    return x.t().to_sparse_csr()


class _ConstantProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transpose: Tensor, dense: Tensor) -> Tensor:
        ctx.transpose = transpose
        return matrix @ dense

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.transpose @ gradient


def product(matrix: Tensor, transpose: Tensor, dense: Tensor) -> Tensor:
    """Return the product of a constant sparse matrix and a dense one, differentiable in the latter.

    The transpose, which a gradient needs, is given: torch's own product makes it again at every step.

    Args:
        matrix: Sparse CSR, shape (rows, columns).
        transpose: ``transposed(matrix)``, or the matrix itself if it is symmetric.
        dense: Shape (columns, width).
    """
    found: Tensor = _ConstantProduct.apply(matrix, transpose, dense)  # type: ignore[no-untyped-call]
    return found


def dropout(x: Tensor, p: float, *, training: bool) -> Tensor:
    """Return x, dense or sparse, in training with entries set to 0 with probability p and the others divided by 1 − p.

    Zeros of a sparse matrix stay what they are, so that only the stored entries need a coin.
    """
    if not training or p == 0:
        return x
    if is_sparse(x):
        return with_values(x, functional.dropout(x.values(), p))
    return functional.dropout(x, p)
