"""The networks that construct L: two layers on edge weights, differentiable in them.

On weights 0 and 1 each is the network of ``gnn.models`` of the same name, without dropout.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from gnn.pipelines.graph_pub.weights import EdgeWeights
from gnn.randomness import seeded
from gnn.sparse import is_sparse, product, transposed
from gnn.validation import check_choice

CONSTRUCTORS = ("GCN", "GAT", "GraphSAGE")
HIDDEN = 16
NEGATIVE_SLOPE = 0.2


class Features:
    """X, dense or sparse CSR, shape (nodes, features), with data for its products."""

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.transpose = transposed(x) if is_sparse(x) else None

    def times(self, weight: Tensor) -> Tensor:
        """Return X times a weight of shape (features, out)."""
        return (
            self.x @ weight
            if self.transpose is None
            else product(self.x, self.transpose, weight)
        )


class Constructor(nn.Module, ABC):
    """Two layers with a ReLU between them; the hidden one is what L is made of.

    Args:
        features: Width of X.
        classes: Width of the output.
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.sizes = [(features, HIDDEN), (HIDDEN, classes)]
        self.weights = nn.ParameterList(map(_glorot, self.sizes))
        self.biases = nn.ParameterList(torch.zeros(out) for _, out in self.sizes)

    @abstractmethod
    def mixed(self, edges: EdgeWeights, mapped: Tensor, layer: int) -> Tensor:
        """Return a layer's output for the mapped inputs x W, shape (nodes, out)."""

    def own(self, inputs: Features, layer: int) -> Tensor | float:
        """Return a layer's contribution of a node's own input, by separate weights."""
        return 0.0

    def _layer(self, edges: EdgeWeights, inputs: Features, layer: int) -> Tensor:
        mixed = self.mixed(edges, inputs.times(self.weights[layer]), layer)
        found: Tensor = mixed + self.own(inputs, layer) + self.biases[layer]
        return found

    def hidden(self, edges: EdgeWeights, x: Features) -> Tensor:
        """Return Z, shape (nodes, hidden)."""
        return self._layer(edges, x, 0).relu()

    def forward(self, edges: EdgeWeights, x: Features) -> Tensor:
        """Return the logits, shape (nodes, classes)."""
        return self._layer(edges, Features(self.hidden(edges, x)), 1)


class DenseGCN(Constructor):
    """S σ(S X W₁ + b₁) W₂ + b₂ with S = D^-½(A+I)D^-½.

    Source: Kipf & Welling (2017), arXiv:1609.02907v4, Equation 9.
    """

    def mixed(self, edges: EdgeWeights, mapped: Tensor, layer: int) -> Tensor:
        """Return S x W as D^-½((A+I)(D^-½ x W))."""
        scale = (edges.totals + 1).rsqrt()
        scaled = scale * mapped
        return scale * (edges.product(scaled) + scaled)


class DenseSAGE(Constructor):
    """W₁ Σ_j a_ij x_j / max(1, Σ_j a_ij) + b + W₂ x_i: the mean of the neighbours, continued to weights.

    Source: Hamilton et al. (2017), arXiv:1706.02216v4, Algorithm 1 with the mean aggregator.

    Note:
        A mean with weights has no derivative where all are 0, which reverse learning starts from. The denominator is
        therefore at least 1, which changes nothing for whole numbers of neighbours.
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__(features, classes)
        self.own_weights = nn.ParameterList(map(_glorot, self.sizes))

    def mixed(self, edges: EdgeWeights, mapped: Tensor, layer: int) -> Tensor:
        """Return the mean of the neighbours."""
        return edges.product(mapped) / edges.totals.clamp(min=1)

    def own(self, inputs: Features, layer: int) -> Tensor:
        """Return W₂ x_i."""
        return inputs.times(self.own_weights[layer])


class DenseGAT(Constructor):
    """Attention with one head, Σ_j α_ij W x_j + b, α_ij ∝ a_ij exp(LeakyReLU(s·W x_j + t·W x_i)), a_ii = 1.

    Source: Veličković et al. (2018), arXiv:1710.10903v3, Equations 1 to 3.

    Note:
        One head of 16 units in place of eight of 8, as each head has a dense matrix of its own here.
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__(features, classes)
        self.sources = nn.ParameterList(_glorot((out, 1)) for _, out in self.sizes)
        self.targets = nn.ParameterList(_glorot((out, 1)) for _, out in self.sizes)

    def mixed(self, edges: EdgeWeights, mapped: Tensor, layer: int) -> Tensor:
        """Return the attention-weighted mean of the neighbours and the node itself."""
        source, target = mapped @ self.sources[layer], mapped @ self.targets[layer]
        # A number that does not depend on j leaves α as it is; this one keeps the exponentials at 1 or below.
        most = functional.leaky_relu(target + source.max(), NEGATIVE_SLOPE).detach()
        weights = (
            edges.dense
            * (functional.leaky_relu(target + source.t(), NEGATIVE_SLOPE) - most).exp()
        )
        own = (functional.leaky_relu(target + source, NEGATIVE_SLOPE) - most).exp()
        return (weights @ mapped + own * mapped) / (
            weights.sum(dim=1, keepdim=True) + own
        )


KINDS: dict[str, type[Constructor]] = {
    "GCN": DenseGCN,
    "GAT": DenseGAT,
    "GraphSAGE": DenseSAGE,
}


def constructor(
    name: str, features: int, classes: int, *, generator: torch.Generator
) -> Constructor:
    """Return a constructor with random weights.

    Args:
        name: One of ``CONSTRUCTORS``.
        features: Width of X.
        classes: Width of the output.
        generator: Of the weights, on the CPU.

    Raises:
        ConfigurationError: If there is none of that name.
    """
    check_choice("constructor", "constructor", name, CONSTRUCTORS)
    with seeded(generator):
        return KINDS[name](features, classes)


def _glorot(size: Sequence[int]) -> Tensor:
    return nn.init.xavier_uniform_(torch.empty(*size))
