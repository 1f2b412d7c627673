"""Graphs to learn from: files of the data folder, torch-geometric's own data sets, generated graphs, and their splits."""

from gnn.datasets.files import GRAPH_SETS, NODE_SETS, load, load_graphs
from gnn.datasets.splits import (
    Split,
    community_split,
    paper_split,
    public_split,
    random_split,
)

__all__ = [
    "GRAPH_SETS",
    "NODE_SETS",
    "Split",
    "community_split",
    "load",
    "load_graphs",
    "paper_split",
    "public_split",
    "random_split",
]
