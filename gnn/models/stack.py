"""Layers one after the other, with dropout and an activation between them: what GCN, GAT, GraphSAGE and MLP share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from auditdp.errors import ConfigurationError
from gnn.sparse import dropout
from gnn.validation import check_choice, check_count, check_number

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "elu": functional.elu,
    "relu": functional.relu,
    "selu": functional.selu,
    "tanh": torch.tanh,
}
"""Activations by name."""


def widths(
    owner: str, features: int, hidden: int, classes: int, layers: int
) -> list[tuple[int, int]]:
    """Return the inputs and outputs of each layer, after a check of all four numbers."""
    for name, value in (
        ("features", features),
        ("hidden", hidden),
        ("classes", classes),
        ("layers", layers),
    ):
        check_count(owner, name, value)
    sizes = [features, *[hidden] * (layers - 1), classes]
    return list(itertools.pairwise(sizes))


class LayerEdges(NamedTuple):
    """Edges as a model's layers are given them; a model takes them in place of ``edge_index``, to make them once.

    Attributes:
        arcs: (source, target), int64, shape (2, arcs).
        weights: Of each arc, where layers read weights.
    """

    arcs: Tensor
    weights: Tensor | None


class Stack(nn.Module):
    """layers[−1](... σ(layers[0](x))), with dropout of the input and after each activation.

    Attributes:
        layers: The layers; a subclass says in ``apply`` how one is called.
        hops: How many edges away a prediction reaches: the number of layers that pass messages.

    Args:
        layers: At least one.
        hops: As above.
        dropout: Probability to drop a unit of a hidden layer, in [0, 1).
        input_dropout: Probability to drop an entry of x, in [0, 1).
        activation: σ, one of ``ACTIVATIONS``.

    Raises:
        ConfigurationError: If a parameter is outside its range.
    """

    weighted = False
    """True if the layers read edge weights."""

    def __init__(
        self,
        layers: Iterable[nn.Module],
        *,
        hops: int,
        dropout: float,
        input_dropout: float,
        activation: str,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        check_number(owner, "dropout", dropout, below=1)
        check_number(owner, "input_dropout", input_dropout, below=1)
        check_choice(owner, "activation", activation, tuple(ACTIVATIONS))
        self.layers = nn.ModuleList(layers)
        self.hops = hops
        self.dropout, self.input_dropout = dropout, input_dropout
        self.activation = activation

    def edges(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None
    ) -> LayerEdges:
        """Return the edges that every layer is given, by default those of the input; arguments as of ``forward``."""
        if edge_weight is not None and not self.weighted:
            raise ConfigurationError(
                f"{type(self).__name__}: reads no edge weights; leave edge_weight out, or use GCN"
            )
        return LayerEdges(edge_index, edge_weight)

    def apply_layer(self, layer: nn.Module, x: Tensor, edges: LayerEdges) -> Tensor:
        """Return a layer's output; by default without weights."""
        found: Tensor = layer(x, edges.arcs)
        return found

    def _run(
        self,
        x: Tensor,
        edge_index: Tensor | LayerEdges | None,
        edge_weight: Tensor | None,
        layers: int,
    ) -> Tensor:
        if edge_index is None:
            edge_index = torch.empty(2, 0, dtype=torch.long, device=x.device)
        edges = (
            edge_index
            if isinstance(edge_index, LayerEdges)
            else self.edges(x, edge_index, edge_weight)
        )
        sigma = ACTIVATIONS[self.activation]
        x = dropout(x, self.input_dropout, training=self.training)
        for number, layer in enumerate(self.layers[:layers], start=1):
            x = self.apply_layer(layer, x, edges)
            if number < len(self.layers):
                x = dropout(sigma(x), self.dropout, training=self.training)
        return x

    def hidden(
        self,
        x: Tensor,
        edge_index: Tensor | LayerEdges | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Return the last hidden layer after its activation, shape (nodes, hidden)."""
        return self._run(x, edge_index, edge_weight, len(self.layers) - 1)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | LayerEdges | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Return the logits.

        Args:
            x: Features, dense or sparse CSR, shape (nodes, features).
            edge_index: Arcs (source, target) without self-loops, int64, shape (2, arcs), by default none; or what
                ``edges`` returned.
            edge_weight: Of each arc, shape (arcs,), where the model reads weights.

        Returns:
            Shape (nodes, classes).
        """
        return self._run(x, edge_index, edge_weight, len(self.layers))
