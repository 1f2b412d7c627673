"""Sajadmanesh & Gatica-Perez (2021), "Locally Private Graph Neural Networks", arXiv:2006.05535: accuracy in per cent.

The numbers are those of the slides of a talk on the paper (29 July 2021); GraphSAGE, mean ± what the slides print after ±.
"""

from __future__ import annotations

from gnn.experiments.published import Ordering, Printed, Published, Statement, diagram

SOURCE = "Sajadmanesh & Gatica-Perez (2021), arXiv:2006.05535"
DATA_SETS = ("Cora", "PubMed", "Facebook", "LastFM")

_FEATURES = {
    "Ones": ((22.6, 5.0), (38.9, 0.4), (29.0, 1.4), (19.6, 1.8)),
    "OHD": ((44.4, 3.5), (52.5, 5.7), (77.2, 0.3), (66.4, 1.6)),
    "RND": ((26.4, 3.0), (56.0, 1.3), (35.2, 5.6), (32.3, 6.3)),
    "MBM": ((69.3, 1.2), (74.9, 0.3), (84.9, 0.2), (82.1, 1.0)),
}
FEATURES = {
    (feature, data): Published(mean, "table of ad-hoc features", sd, (data, feature))
    for feature, values in _FEATURES.items()
    for data, (mean, sd) in zip(DATA_SETS, values, strict=True)
}
"""Feature, data set, at ε_y = 1; MBM is the multi-bit mechanism at ε_x = 1, and the others use no feature of a user."""

LOSSES = ("cross-entropy", "forward correction", "Drop")
_LEARNING = {
    ("Cora", 0.5): ((18.6, 1.3), (18.6, 2.5), (42.9, 1.5)),
    ("Cora", 1.0): ((25.5, 1.7), (37.1, 2.5), (69.3, 1.2)),
    ("Cora", 2.0): ((52.9, 2.1), (75.1, 1.0), (78.4, 0.7)),
    ("Facebook", 0.5): ((50.9, 4.2), (68.9, 1.3), (75.1, 0.6)),
    ("Facebook", 1.0): ((55.2, 1.3), (73.8, 1.1), (84.9, 0.2)),
    ("Facebook", 2.0): ((81.6, 1.2), (88.9, 0.2), (90.7, 0.1)),
    ("LastFM", 0.5): ((21.1, 4.6), (44.9, 5.3), (70.0, 3.0)),
    ("LastFM", 1.0): ((28.4, 2.5), (58.5, 3.6), (82.1, 1.0)),
    ("LastFM", 2.0): ((56.8, 2.8), (79.2, 1.3), (85.7, 0.7)),
}
LEARNING = {
    (data, epsilon_y, loss): Published(
        mean,
        "table of learning algorithms",
        sd,
        (data, loss, f"ε_y = {epsilon_y:g}"),
    )
    for (data, epsilon_y), values in _LEARNING.items()
    for loss, (mean, sd) in zip(LOSSES, values, strict=True)
}
"""Data set, ε_y, how the model is trained, at ε_x = 1."""

STATEMENTS = (
    Statement(
        "label accuracy against K",
        "plotted for Facebook, Cora and LastFM (4, 7 and 10 classes)",
    ),
    Statement("performance under varying ε_x and ε_y", "plotted for GraphSAGE"),
    Statement("base architectures", "GCN, GAT and GraphSAGE plotted on Facebook"),
    Statement(
        "the grids ε_x ∈ {.01, .1, 1, 2, 3, ∞}, ε_y ∈ {.5, 1, 2, 3, ∞}",
        "which values are plotted",
        verified=False,
    ),
    Statement(
        "hyperparameters",
        "steps K_x and K_y, learning rates, dropout and weight decay",
        verified=False,
    ),
)


def _above(experiment: str, factor: str, higher: str, lower: str) -> Ordering:
    return Ordering(
        f"{higher} is more accurate than {lower}",
        experiment,
        "accuracy",
        factor,
        higher,
        lower,
    )


PRINTED = (
    diagram("Diagrams", "the protocol, KProp, the architecture and Drop"),
    Printed(
        "Table of ad-hoc features",
        "accuracy with the multi-bit mechanism and with features that need nothing of a user",
        ("lpgnn-features", "honesty"),
        tuple(FEATURES.values()),
        tuple(
            _above("lpgnn-features", "features", "MBM", each)
            for each in ("Ones", "OHD", "RND")
        ),
        {"LastFM, MBM": "the features of LastFM are not among the data"},
    ),
    Printed(
        "Table of learning algorithms",
        "accuracy by learning algorithm and ε_y",
        ("lpgnn-learning", "honesty"),
        tuple(LEARNING.values()),
        tuple(
            _above("lpgnn-learning", "learning", "Drop", each) for each in LOSSES[:2]
        ),
        {"LastFM": "the features of LastFM are not among the data"},
    ),
    Printed(
        "Figure of denoised labels",
        "accuracy of labels against the number K of steps of KProp",
        ("lpgnn-denoising",),
    ),
    Printed(
        "Figure of varying budgets",
        "accuracy of GraphSAGE by ε_x and ε_y",
        ("lpgnn-budgets",),
    ),
    Printed(
        "Figure of base architectures",
        "accuracy of GCN, GAT and GraphSAGE on Facebook",
        ("lpgnn-architectures",),
    ),
)
"""The tables and figures of the slides, which have no numbers. The paper itself was not at hand."""
