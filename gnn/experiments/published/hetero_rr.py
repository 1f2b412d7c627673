"""Tran et al. (2022), "Heterogeneous Randomized Response for Differential Privacy in GNNs", arXiv:2211.05766: plots."""

from __future__ import annotations

from dataclasses import dataclass

from gnn.experiments.published import Ordering, Printed, Published, Statement, diagram

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

NOT_HERE = {
    "FLICKR-MIR": "FLICKR-MIR is not among the data",
    "PPI": "features and labels of PPI are not among the data",
}
NO_PICTURES = {"FLICKR-MIR": NOT_HERE["FLICKR-MIR"]}
SUBSTITUTES = "Ours are on Cora and Citeseer, which are not its data."


def _improvements(place: str) -> tuple[Published, ...]:
    return tuple(
        Published(number, each.source, cell=(*name.split(), what, unit))
        for name, each in IMPROVEMENTS.items()
        if each.source.endswith(place)
        for what in (f"{each.method} over {each.over}",)
        for number, unit in ((each.per_cent, "%"), (each.p_value, "p"))
    )


def _best(
    experiment: str, factor: str, method: str, *others: str
) -> tuple[Ordering, ...]:
    return tuple(
        Ordering(
            f"{method} is better than {each}", experiment, "F1", factor, method, each
        )
        for each in others
    )


_EDGES = _best("hetero-rr-edges", "edges", "EdgeRR", "privHRG", "EdgeRand", "LapGraph")
PRINTED = (
    diagram("Figure 1", "the threat"),
    diagram("Figure 2", "a hierarchical random graph"),
    Printed(
        "Figure 3",
        "importance and sensitivity of the features of an embedding",
        reason="there is no experiment for it yet",
    ),
    diagram("Figure 4", "a hierarchical random graph with private edges"),
    diagram("Figure 5", "the possible structures of a subtree"),
    Printed(
        "Figure 6",
        "utility against ε_f of FeatureRR and six mechanisms",
        ("hetero-rr-features",),
        _improvements("Figure 6"),
        _best(
            "hetero-rr-features",
            "method",
            "FeatureRR",
            "Duchi",
            "Piecewise",
            "Hybrid",
            "Three-output",
            "Sub-optimal",
            "LPGNN",
        ),
        NOT_HERE,
        SUBSTITUTES,
    ),
    Printed(
        "Figure 7",
        "utility against ε_e of EdgeRR and three mechanisms",
        ("hetero-rr-edges",),
        _improvements("Figure 7"),
        (
            *_EDGES,
            Ordering(
                "with EdgeRR, utility is higher for ρ = .05 than for ρ = .2",
                "hetero-rr-edges",
                "F1",
                "rho",
                0.05,
                0.2,
                {"edges": "EdgeRR"},
            ),
        ),
        NO_PICTURES,
        SUBSTITUTES,
    ),
    Printed(
        "Section V, text",
        "AUC of LinkTeller without privacy and with EdgeRR",
        ("hetero-rr-edges",),
        tuple(
            Published(auc, "Section V", cell=("FLICKR-MIR", what))
            for what, auc in (
                ("without privacy", 0.91),
                ("EdgeRR, smallest", 0.52),
                ("EdgeRR, largest", 0.54),
            )
        ),
        (
            Ordering(
                "LinkTeller's AUC is higher without privacy than with EdgeRR",
                "hetero-rr-edges",
                "LinkTeller AUC",
                "edges",
                "clean",
                "EdgeRR",
            ),
        ),
        NO_PICTURES,
        SUBSTITUTES,
    ),
    Printed(
        "Figure 8",
        "images that are reconstructed from embeddings",
        reason="its images and its attacker, trained on ImageNet, are not among the data",
    ),
    diagram("Figure 9", "how importance and sensitivity are found"),
    Printed(
        "Figure 10",
        "utility of both releases on FLICKR-MIR",
        reason=NOT_HERE["FLICKR-MIR"],
    ),
    Printed("Figure 11", "utility of both releases on PPI", reason=NOT_HERE["PPI"]),
)
"""The paper's Figures 1 to 11, and the numbers of its text; it has no numbered table."""
