"""Feature matrices of torch's CSR layout, beside dense ones."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def is_sparse(x: Tensor) -> bool:
    """Whether x has the CSR layout."""
    return x.layout == torch.sparse_csr


def with_values(x: Tensor, values: Tensor) -> Tensor:
    """Return a sparse matrix with the places of x and other values."""
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, size=x.shape)


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
    places = torch.repeat_interleave(shift, counts) + torch.arange(int(counts.sum()), device=x.device)
    starts = torch.cat([ends.new_zeros(1), ends])
    return torch.sparse_csr_tensor(starts, x.col_indices()[places], x.values()[places], size=(len(index), x.shape[1]))


def dropout(x: Tensor, p: float, *, training: bool) -> Tensor:
    """Return x, dense or sparse, in training with entries set to 0 with probability p and the others divided by 1 − p.

    Zeros of a sparse matrix stay what they are, so that only the stored entries need a coin.
    """
    if not training or p == 0:
        return x
    if is_sparse(x):
        return with_values(x, functional.dropout(x.values(), p))
    return functional.dropout(x, p)
