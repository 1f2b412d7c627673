"""HeteroRR of Tran et al. (2022), arXiv:2211.05766: embeddings and private edges released once, and a network on both.

``trained_extractor`` makes embeddings from public nodes, ``released_features`` and ``released_graph`` release them and the
edges by FeatureRR, EdgeRR or a mechanism of the comparison, and ``learn`` trains.
"""

from gnn.pipelines.hetero_rr.edges import (
    DividedGraph,
    EdgeRelease,
    divided,
    released_graph,
    united,
)
from gnn.pipelines.hetero_rr.extractor import (
    ExtractorSettings,
    embedded,
    raw_records,
    trained_extractor,
)
from gnn.pipelines.hetero_rr.features import FeatureRelease, released_features
from gnn.pipelines.hetero_rr.learning import Learned, MeanGCN, learn

__all__ = [
    "DividedGraph",
    "EdgeRelease",
    "ExtractorSettings",
    "FeatureRelease",
    "Learned",
    "MeanGCN",
    "divided",
    "embedded",
    "learn",
    "raw_records",
    "released_features",
    "released_graph",
    "trained_extractor",
    "united",
]
