"""KProp in front of any graph neural network, as one model of the users' messages."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, SAGEConv
from torch_geometric.utils import degree

from gnn.models import GAT, GCN, GraphSAGE
from gnn.models.propagation import propagation_edges
from gnn.models.stack import ACTIVATIONS, LayerEdges, Stack
from gnn.pipelines.lpgnn.features import Reports
from gnn.pipelines.lpgnn.parameters import Parameters
from gnn.pipelines.lpgnn.propagation import PropagatedFeatures, normalised_adjacency
from gnn.sparse import dropout, product, transposed


class Mixing(NamedTuple):
    """The matrix by which a layer mixes neighbours, sparse CSR, and its transpose."""

    matrix: Tensor
    transpose: Tensor


class Mixed(nn.Module):
    """Σ_j M_ij W x_j + b, and + V x_i where the node has a map of its own: a layer of GCN or GraphSAGE as sparse products.

    The weights are those of the layer of torch-geometric that is given, and so is the function; sums over edges as a product
    with a sparse matrix, whose transpose is kept, take less time than gathering and scattering.

    Args:
        layer: ``GCNConv`` or ``SAGEConv``.
    """

    def __init__(self, layer: Any) -> None:
        super().__init__()
        mean = isinstance(layer, SAGEConv)
        self.maps = nn.ModuleList([layer.lin_l, layer.lin_r] if mean else [layer.lin])
        self.bias: nn.Parameter = layer.lin_l.bias if mean else layer.bias

    def forward(self, x: Tensor | PropagatedFeatures, graph: Mixing) -> Tensor:
        """Return the layer's output, shape (nodes, out)."""
        first, *own = mapped(x, self.maps).chunk(len(self.maps), dim=1)
        found = product(*graph, first.contiguous()) + self.bias
        return found + own[0] if own else found


class Attending(nn.Module):
    """A layer of GAT whose linear map comes first, so that it can be of features before they are propagated.

    Args:
        layer: ``GATConv``; its linear map moves here.
    """

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.maps = nn.ModuleList([layer.lin])
        layer.lin = nn.Identity()
        self.attention = layer

    def forward(self, x: Tensor | PropagatedFeatures, graph: LayerEdges) -> Tensor:
        """Return the layer's output, shape (nodes, heads × out)."""
        found: Tensor = self.attention(mapped(x, self.maps), graph.arcs)
        return found


def mapped(x: Tensor | PropagatedFeatures, maps: nn.ModuleList) -> Tensor:
    """Return the products with the weights of linear maps, side by side."""
    weight = torch.cat([each.get_parameter("weight") for each in maps])
    return x.product(weight) if isinstance(x, PropagatedFeatures) else x @ weight.t()


class LocallyPrivateGNN(nn.Module):
    """GNN(KProp(rectified reports)).

    Source: Sajadmanesh & Gatica-Perez (2021), arXiv:2006.05535.

    Args:
        network: GraphSAGE, GCN or GAT, whose layers this model takes.
        steps: K_x of KProp.
        scale: The rectifier's step.
        shift: The rectifier's middle (α+β)/2.
    """

    def __init__(
        self, network: Stack, *, steps: int, scale: float = 1.0, shift: float = 0.0
    ) -> None:
        super().__init__()
        self.kind = type(network)
        self.dropout, self.activation = network.dropout, network.activation
        self.layers = nn.ModuleList(
            Attending(layer) if isinstance(layer, GATConv) else Mixed(layer)
            for layer in network.layers
        )
        self.steps, self.scale, self.shift = steps, scale, shift

    def prepared(
        self, x: Tensor, edge_index: Tensor, operator: Tensor | None = None
    ) -> tuple[PropagatedFeatures, Mixing | LayerEdges]:
        """Return the first step of a call with the same arguments, to compute it once.

        Args:
            x: What users send, as of ``Reports.encoded``.
            edge_index: Each edge in both directions, int64, shape (2, arcs).
            operator: ``normalised_adjacency(edge_index, nodes)``, where it is known.
        """
        if operator is None:
            operator = normalised_adjacency(edge_index, len(x))
        found = PropagatedFeatures(
            x, operator, self.steps, scale=self.scale, shift=self.shift
        )
        return found, self._graph(edge_index, operator)

    def _graph(self, edge_index: Tensor, operator: Tensor) -> Mixing | LayerEdges:
        nodes = operator.shape[0]
        if self.kind is GraphSAGE:
            weights = (
                degree(edge_index[1], nodes).clamp(min=1).reciprocal()[edge_index[1]]
            )
        else:
            edge_index, weights = propagation_edges(operator, edge_index, None)
        if self.kind is GAT:
            return LayerEdges(edge_index, None)
        matrix = torch.sparse_coo_tensor(
            edge_index.flip(0), weights, (nodes, nodes), check_invariants=False
        )
        matrix = matrix.to_sparse_csr()
        return Mixing(matrix, transposed(matrix) if self.kind is GraphSAGE else matrix)

    def forward(
        self,
        x: Tensor | PropagatedFeatures,
        graph: Tensor | Mixing | LayerEdges,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Return the logits.

        Args:
            x: As of ``prepared``, or the first that it returned.
            graph: ``edge_index`` as of ``prepared``, or the second that it returned.
            edge_weight: Not read; edges have no weights.

        Returns:
            Shape (nodes, classes).
        """
        if isinstance(x, Tensor):
            assert isinstance(graph, Tensor)
            x, graph = self.prepared(x, graph)
        found: Tensor = self.layers[0](x, graph)
        for layer in self.layers[1:]:
            hidden = dropout(
                ACTIVATIONS[self.activation](found),
                self.dropout,
                training=self.training,
            )
            found = layer(hidden, graph)
        return found


def network_of(
    parameters: Parameters,
    reports: Reports,
    classes: int,
    *,
    generator: torch.Generator,
) -> LocallyPrivateGNN:
    """Return an untrained model for these reports."""
    width, of = reports.encoded.shape[1], parameters
    network: Stack
    if of.model == "GAT":
        network = GAT(
            width,
            classes,
            hidden=of.hidden,
            heads=of.heads,
            dropout=of.dropout,
            attention_dropout=of.dropout,
            activation="selu",
            generator=generator,
        )
    else:
        kind = GCN if of.model == "GCN" else GraphSAGE
        network = kind(
            width,
            classes,
            hidden=of.hidden,
            dropout=of.dropout,
            activation="selu",
            generator=generator,
        )
    return LocallyPrivateGNN(
        network, steps=of.steps_features, scale=reports.scale, shift=reports.shift
    )
