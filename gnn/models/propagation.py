"""The operator by which GCN and APPNP mix neighbours, on lists of edges."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_self_loops

from gnn.sparse import is_sparse


def propagation_edges(
    x: Tensor, edge_index: Tensor, edge_weight: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the edges of S = D^-½(A+I)D^-½, self-loops among them, and their weights, D the row sums of A + I.

    Source: Kipf & Welling (2017), arXiv:1609.02907v4, Equation 2; by torch-geometric's ``gcn_norm``.

    Note:
        Operators of torch-geometric do the same themselves, but look for self-loops in a way that ``torch.func.vmap``
        refuses. Here loops are added to edges that have none.

    Args:
        x: Features, of which only the number, the type and the device are read, shape (nodes, features).
        edge_index: Arcs without self-loops, int64, shape (2, arcs).
        edge_weight: Of each arc, >= 0; 1 by default.
    """
    if edge_weight is None:
        edge_weight = (x.values() if is_sparse(x) else x).new_ones(edge_index.shape[1])
    looped, weights = add_self_loops(
        edge_index, edge_weight, fill_value=1.0, num_nodes=x.shape[0]
    )
    found: tuple[Tensor, Tensor] = gcn_norm(
        looped, weights, x.shape[0], add_self_loops=False
    )
    return found
