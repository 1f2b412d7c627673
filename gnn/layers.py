"""Graph convolution on dense adjacency matrices, of one graph or of a batch."""

from __future__ import annotations

import torch
from torch import Tensor

from auditdp.errors import MechanismError


def propagation(adjacency: Tensor) -> Tensor:
    """Return D^-½(A+I)D^-½ with D the row sums of A + I: the operator by which a graph convolution mixes neighbours.

    Source: Kipf & Welling (2017), "Semi-Supervised Classification with Graph Convolutional Networks",
    arXiv:1609.02907v4, Equation 2.

    Args:
        adjacency: A, symmetric, weights >= 0, shape (..., nodes, nodes); differentiable in it.

    Raises:
        MechanismError: If it is not square.
    """
    if adjacency.ndim < 2 or adjacency.shape[-1] != adjacency.shape[-2]:
        raise MechanismError(
            f"propagation: expected adjacency matrices of shape (..., nodes, nodes), got {tuple(adjacency.shape)}"
        )
    looped = adjacency + torch.eye(
        adjacency.shape[-1], dtype=adjacency.dtype, device=adjacency.device
    )
    scale = looped.sum(dim=-1).rsqrt()
    return scale[..., :, None] * looped * scale[..., None, :]


def graph_convolution(operator: Tensor, features: Tensor, weight: Tensor) -> Tensor:
    """Return SXW, shape (..., nodes, out), without an activation.

    Args:
        operator: S, such as ``propagation(A)``, shape (..., nodes, nodes).
        features: X, shape (..., nodes, in).
        weight: W, shape (..., in, out).
    """
    return operator @ (features @ weight)
