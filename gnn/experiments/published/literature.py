"""Published accuracies without privacy on citation graphs with their public split."""

from __future__ import annotations

from gnn.experiments.published import Published

GCN = "Kipf & Welling (2017), arXiv:1609.02907v4, Table 2"
GAT = "Veličković et al. (2018), arXiv:1710.10903v3, Table 2"
SAGE = "Feng et al. (2020), arXiv:2005.11079, Table 1"
"""Hamilton et al. (2017) have no citation graph with this split; the text of this table was not at hand."""

ACCURACY = {
    ("Cora", "GCN"): Published(81.5, GCN),
    ("Citeseer", "GCN"): Published(70.3, GCN),
    ("PubMed", "GCN"): Published(79.0, GCN),
    ("Cora", "GAT"): Published(83.0, GAT, 0.7),
    ("Citeseer", "GAT"): Published(72.5, GAT, 0.7),
    ("PubMed", "GAT"): Published(79.0, GAT, 0.3),
    ("Cora", "GraphSAGE"): Published(78.9, SAGE, 0.8),
    ("Citeseer", "GraphSAGE"): Published(67.4, SAGE, 0.7),
    ("PubMed", "GraphSAGE"): Published(77.8, SAGE, 0.6),
}
"""Accuracy in percent, by data set and model."""
