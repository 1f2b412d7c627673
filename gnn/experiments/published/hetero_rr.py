"""Tran et al. (2022), "Heterogeneous Randomized Response for Differential Privacy in GNNs", arXiv:2211.05766: plots."""

from __future__ import annotations

from dataclasses import dataclass

from gnn.experiments.published import Statement

SOURCE = "Tran et al. (2022), arXiv:2211.05766"


@dataclass(frozen=True)
class Improvement:
    """Average improvement of a method over ε in per cent, by a two-sided t-test."""

    method: str
    over: str
    per_cent: float
    p_value: float
    source: str


IMPROVEMENTS = {
    "FLICKR-MIR features": Improvement(
        "FeatureRR", "LPGNN", 7.6, 3.0e-5, "text of Figure 6"
    ),
    "PPI features": Improvement(
        "FeatureRR", "Three-output", 2.6, 0.0031, "text of Figure 6"
    ),
    "FLICKR-MIR edges": Improvement(
        "EdgeRR", "LapGraph", 6.3, 3.6e-9, "text of Figure 7"
    ),
}

STATEMENTS = (
    Statement(
        "Figure 6",
        "FeatureRR is best of Duchi, Piecewise, Hybrid, Three-output, Sub-optimal and LPGNN",
    ),
    Statement(
        "Figure 7", "EdgeRR is best of privHRG, EdgeRand and LapGraph on FLICKR-MIR"
    ),
    Statement("Figure 7 (b)", "on PPI F1 is higher the smaller ρ is"),
    Statement("LinkTeller", "AUC falls from .91 to nearly a random guess with EdgeRR"),
    Statement(
        "Figure 8", "images inverted from FeatureRR's embeddings cannot be recognised"
    ),
    Statement(
        "Figures 6 and 7",
        "the values of ε_f, ε_e and γ that are plotted, hidden units and patience",
        verified=False,
    ),
)
