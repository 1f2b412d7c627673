"""Graph neural networks on torch-geometric's operators, one a file.

Models of nodes are called with (x, edge_index, edge_weight=None), models of graphs with (x, edge_index, batch, size), and
return logits. ``hops`` of a model of nodes is how far a prediction reaches.
"""

from gnn.models.appnp import APPNP
from gnn.models.gat import GAT
from gnn.models.gcn import GCN
from gnn.models.gin import GIN
from gnn.models.mlp import MLP
from gnn.models.pagerank import DecoupledPageRank
from gnn.models.sage import GraphSAGE

__all__ = ["APPNP", "GAT", "GCN", "GIN", "MLP", "DecoupledPageRank", "GraphSAGE"]
