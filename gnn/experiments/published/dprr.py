"""Hidano & Murakami (2022), "Degree-Preserving Randomized Response ...", arXiv:2202.10209: accuracy is plotted only."""

from __future__ import annotations

from gnn.experiments.published import Ordering, Printed, Published, Statement, diagram

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

_STATISTICS = {
    "REDDIT-MULTI-5K": (4999, 5, 3782, 508.5, 2011, 2.34),
    "REDDIT-BINARY": (2000, 2, 3648, 429.6, 3062, 2.32),
    "Github StarGazers": (12725, 2, 957, 113.8, 755, 4.12),
}
_COUNTS = (
    "graphs",
    "classes",
    "nodes, largest",
    "nodes, mean",
    "degree, largest",
    "degree, mean",
)
STATISTICS = {
    (data, what): Published(number, "Table III", cell=(data, what))
    for data, values in _STATISTICS.items()
    for what, number in zip(_COUNTS, values, strict=True)
}
"""Data set and count."""

_NOT_HERE = {
    name: f"{name} is not among the data"
    for name in ("REDDIT-MULTI-5K", "Github StarGazers")
}
_SUBSTITUTES = (
    "REDDIT-BINARY is its data; Reddit threads and Deezer egos stand in for the others."
)


def _best(experiment: str, others: tuple[str, ...]) -> tuple[Ordering, ...]:
    return tuple(
        Ordering(
            f"DPRR is more accurate than {each}",
            experiment,
            "accuracy",
            "mechanism",
            "DPRR",
            each,
        )
        for each in others
    )


def _costs(experiment: str, metric: str, what: str) -> tuple[Ordering, ...]:
    return tuple(
        Ordering(
            f"{what} of RR than of {each}", experiment, metric, "mechanism", "RR", each
        )
        for each in ("DPRR", "LocalLap")
    )


PRINTED = (
    diagram("Table I", "the notation"),
    Printed(
        "Table II",
        "orders of growth of time and memory",
        ("dprr-cost-nodes",),
        orderings=_costs(
            "dprr-cost-nodes", "edges received", "more edges are received"
        ),
        remark="Ours are the edges that the server receives.",
    ),
    Printed(
        "Table III",
        "counts of the three collections of graphs",
        ("data-statistics",),
        tuple(STATISTICS.values()),
        lacking=_NOT_HERE,
        exact=True,
    ),
    diagram("Figure 1", "the system"),
    diagram("Figure 2", "the steps of DPRR"),
    diagram("Figure 3", "randomised response and edge sampling"),
    Printed(
        "Figure 4",
        "accuracy and AUC against the share of non-private users at ε = 1",
        ("dprr-share",),
        orderings=_best("dprr-share", ("RR", "LocalLap", "NonPriv-Part")),
        remark=_SUBSTITUTES,
    ),
    Printed(
        "Figure 5",
        "accuracy and AUC against ε, all users private",
        ("dprr-epsilon",),
        orderings=_best("dprr-epsilon", ("RR", "LocalLap")),
        remark=_SUBSTITUTES,
    ),
    Printed(
        "Figure 6",
        "accuracy by how ε is shared between degree and list",
        ("dprr-allocation",),
        orderings=(
            Ordering(
                "at ε = .1 the proposed shares are better than 1 : 9",
                "dprr-allocation",
                "accuracy",
                "allocation",
                "published",
                "1:9",
                {"epsilon": 0.1},
            ),
        ),
        remark=_SUBSTITUTES,
    ),
    Printed(
        "Figure 7",
        "noisy against true degrees (left), and degrees by class (right)",
        ("dprr-degrees",),
        orderings=tuple(
            Ordering(
                f"noisy degrees tell more of the true ones, by their correlation, under DPRR than under {each}",
                "dprr-degrees",
                "correlation",
                "mechanism",
                "DPRR",
                each,
            )
            for each in ("RR", "LocalLap")
        ),
        remark=(
            "Ours are on REDDIT-BINARY and on Barabási–Albert graphs. By the mean of |d̃ − d|, which the paper does not "
            "compare, LocalLap's nearly empty lists are nearer than DPRR's, as most degrees are small."
        ),
    ),
    Printed(
        "Figure 8",
        "run time on REDDIT-BINARY against the share of nodes that is kept",
        ("dprr-cost-rate",),
        orderings=_costs(
            "dprr-cost-rate", "aggregation", "a layer takes longer on lists"
        ),
        remark="Ours time the sum of one layer over the lists, not a training.",
    ),
    Printed(
        "Figure 9",
        "run time on Barabási–Albert graphs against the number of nodes",
        ("dprr-cost-nodes",),
        orderings=_costs(
            "dprr-cost-nodes", "aggregation", "a layer takes longer on lists"
        ),
        remark="Ours time the sum of one layer over the lists, not a training.",
    ),
)
"""The paper's Figures 1 to 9 and Tables I to III."""
