"""Features for graphs that have none, and the usual normalisations of those that have some."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

from gnn.sparse import is_sparse, with_values
from gnn.validation import DataError, check_count


def constant(data: Data, width: int = 1) -> Tensor:
    """Return ones, float32, shape (nodes, width): the features of DPRR's GIN, and LPGNN's ONES."""
    check_count("constant", "width", width)
    return torch.ones(int(data.num_nodes or 0), width)


def one_hot_degree(data: Data, width: int) -> Tensor:
    """Return the degree of each node, one-hot, float32, shape (nodes, width); degrees from width − 1 share a column.

    LPGNN's OHD.
    """
    check_count("one_hot_degree", "width", width)
    degrees = degree(
        data.edge_index[1], int(data.num_nodes or 0), dtype=torch.long
    ).clamp(max=width - 1)
    return torch.nn.functional.one_hot(degrees, width).float()


def uniform(data: Data, width: int, *, generator: torch.Generator) -> Tensor:
    """Return independent uniform numbers in [0, 1), float32, shape (nodes, width): LPGNN's RND."""
    check_count("uniform", "width", width)
    return torch.rand(int(data.num_nodes or 0), width, generator=generator)


def identity(data: Data) -> Tensor:
    """Return the identity matrix, sparse, float32, shape (nodes, nodes): each node has a feature of its own."""
    nodes = int(data.num_nodes or 0)
    return torch.sparse_csr_tensor(
        torch.arange(nodes + 1),
        torch.arange(nodes),
        torch.ones(nodes),
        size=(nodes, nodes),
        check_invariants=False,
    )


def rows_normalised(x: Tensor) -> Tensor:
    """Return features >= 0, dense or sparse, with rows that sum to 1; rows of zeros stay.

    Source: Kipf & Welling (2017), arXiv:1609.02907v4, Section 5.2.
    """
    if is_sparse(x):
        rows = torch.repeat_interleave(x.crow_indices().diff())
        sums = x.values().new_zeros(x.shape[0]).index_add_(0, rows, x.values())
        values = x.values() / sums[rows].clamp(min=torch.finfo(x.dtype).tiny)
        return with_values(x, values)
    sums = x.sum(dim=1, keepdim=True)
    return torch.where(sums > 0, x / sums, x)


def scaled(x: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Return dense features with every column stretched to [low, high]; constant columns become ``low``.

    Note:
        The range of a column is that of the population, which a private release must not depend on.

    Raises:
        DataError: If x is sparse.
    """
    if is_sparse(x):
        raise DataError(
            f"scaled: expected dense features, got layout {x.layout}; load them with features='dense'"
        )
    least, most = x.amin(dim=0), x.amax(dim=0)
    spread = most - least
    return low + (high - low) * (x - least) / torch.where(spread > 0, spread, 1.0)
