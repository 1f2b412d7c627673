"""Hidano & Murakami (2022), "Degree-Preserving Randomized Response ...", arXiv:2202.10209: accuracy is plotted only."""

from __future__ import annotations

from gnn.experiments.published import Statement

SOURCE = "Hidano & Murakami (2022), arXiv:2202.10209"

EPSILONS = (0.2, 0.5, 1.0, 2.0)
"""Figure 5, with α = 0."""
ALLOCATION_EPSILONS = (0.1, 0.2, 0.5, 1.0)
"""Figure 6, REDDIT-MULTI-5K and Github StarGazers."""
NON_PRIVATE_SHARES = (0.0, 0.1, 0.2, 0.5)
"""α of Figure 4, with ε = 1."""
BARABASI_ALBERT_EDGES = (3, 5)
"""m of Figure 9."""
BARABASI_ALBERT_NODES = (1000, 2000, 3000, 4000)
"""n of Figure 9."""
ALLOCATION = 0.9
"""α in ε₁ = max{√(8/(n_max−1)), (1−α)ε}, ε₂ = αε (Section V-A)."""

STATEMENTS = (
    Statement(
        "Figure 4",
        "DPRR is best or almost best at every share of non-private users; RR hardly gains with α",
    ),
    Statement(
        "Figure 4",
        "at ε = 1 and α = .2 accuracy and AUC are within about .1 of NonPriv-Full on all data sets",
    ),
    Statement(
        "Figures 4 and 5", "DPRR is above LocalLap in all cases, and above NonPriv-Part"
    ),
    Statement(
        "Figure 6",
        "the allocation is better than 1 : 9 where ε is small, and the same at ε ∈ {.5, 1} on REDDIT-MULTI-5K and at ε = 1 "
        "on Github StarGazers",
    ),
    Statement(
        "Figure 7",
        "d̃ ≈ d for d < 500, 1,000, 200 on REDDIT-MULTI-5K, REDDIT-BINARY, Github StarGazers, at ε = 1",
    ),
    Statement(
        "Figure 7",
        "RR makes lists of most users dense; LocalLap makes lists sparse whatever the degree",
    ),
    Statement(
        "Figures 8 and 9",
        "run time is almost quadratic in the graph's size for RR, almost linear for DPRR and LocalLap",
    ),
    Statement("Figure 8", "which sampling rates γ are plotted", verified=False),
)
