"""Xu et al. (2024), "GraphPub: Generation of Differential Privacy Graph with High Availability", arXiv:2403.00030v2."""

from __future__ import annotations

from dataclasses import dataclass

from gnn.experiments.published import Ordering, Printed, Published, Statement, diagram

SOURCE = "Xu et al. (2024), arXiv:2403.00030v2"
EPSILONS = (20.0, 17.0, 14.0, 11.0, 8.0, 5.0, 2.0, 1.0)

_ACCURACY = {
    ("Cora", "GCN", "RR"): (
        0.8002,
        0.795,
        0.8004,
        0.8002,
        0.7298,
        0.3984,
        0.3098,
        0.3074,
    ),
    ("Cora", "GCN", "DPRR"): (
        0.794,
        0.7848,
        0.7186,
        0.4408,
        0.2402,
        0.1804,
        0.18,
        0.1674,
    ),
    ("Cora", "GCN", "LAPGRAPH"): (
        0.7898,
        0.7516,
        0.6896,
        0.4658,
        0.3106,
        0.3114,
        0.3116,
        0.2794,
    ),
    ("Cora", "GCN", "GraphPub"): (
        0.7996,
        0.7962,
        0.8162,
        0.8242,
        0.8202,
        0.811,
        0.8064,
        0.7806,
    ),
    ("Cora", "GAT", "RR"): (
        0.7918,
        0.7884,
        0.7896,
        0.7874,
        0.712,
        0.3798,
        0.0944,
        0.2012,
    ),
    ("Cora", "GAT", "DPRR"): (
        0.7838,
        0.7732,
        0.6978,
        0.4422,
        0.2146,
        0.1632,
        0.1542,
        0.1736,
    ),
    ("Cora", "GAT", "LAPGRAPH"): (
        0.7702,
        0.7458,
        0.6732,
        0.4556,
        0.1012,
        0.1702,
        0.1156,
        0.1452,
    ),
    ("Cora", "GAT", "GraphPub"): (
        0.7872,
        0.787,
        0.8038,
        0.8228,
        0.8114,
        0.8024,
        0.7926,
        0.7644,
    ),
    ("Cora", "GraphSAGE", "RR"): (
        0.7656,
        0.7698,
        0.7714,
        0.7716,
        0.7228,
        0.5132,
        0.5414,
        0.5132,
    ),
    ("Cora", "GraphSAGE", "DPRR"): (
        0.7678,
        0.7624,
        0.7072,
        0.5378,
        0.3944,
        0.3228,
        0.3178,
        0.3162,
    ),
    ("Cora", "GraphSAGE", "LAPGRAPH"): (
        0.7602,
        0.739,
        0.693,
        0.5618,
        0.5118,
        0.532,
        0.5442,
        0.5176,
    ),
    ("Cora", "GraphSAGE", "GraphPub"): (
        0.7682,
        0.7654,
        0.7816,
        0.7934,
        0.7904,
        0.7738,
        0.778,
        0.7484,
    ),
    ("Citeseer", "GCN", "RR"): (
        0.656,
        0.6508,
        0.6566,
        0.641,
        0.5298,
        0.5298,
        0.187,
        0.2002,
    ),
    ("Citeseer", "GCN", "DPRR"): (
        0.6548,
        0.6332,
        0.5434,
        0.3386,
        0.2352,
        0.2024,
        0.2122,
        0.2076,
    ),
    ("Citeseer", "GCN", "LAPGRAPH"): (
        0.6338,
        0.5954,
        0.525,
        0.3188,
        0.2094,
        0.1958,
        0.1952,
        0.1982,
    ),
    ("Citeseer", "GCN", "GraphPub"): (
        0.6556,
        0.6558,
        0.689,
        0.7092,
        0.7256,
        0.717,
        0.6884,
        0.6742,
    ),
    ("Citeseer", "GAT", "RR"): (
        0.6372,
        0.6366,
        0.6382,
        0.6352,
        0.5104,
        0.5104,
        0.1596,
        0.1642,
    ),
    ("Citeseer", "GAT", "DPRR"): (
        0.6314,
        0.6172,
        0.5274,
        0.3274,
        0.2312,
        0.2122,
        0.213,
        0.2126,
    ),
    ("Citeseer", "GAT", "LAPGRAPH"): (
        0.6174,
        0.5792,
        0.5084,
        0.3154,
        0.1762,
        0.1854,
        0.2002,
        0.1852,
    ),
    ("Citeseer", "GAT", "GraphPub"): (
        0.637,
        0.6446,
        0.6774,
        0.6998,
        0.714,
        0.7016,
        0.6786,
        0.6754,
    ),
    ("Citeseer", "GraphSAGE", "RR"): (
        0.6434,
        0.6434,
        0.6448,
        0.6524,
        0.5738,
        0.449,
        0.495,
        0.5168,
    ),
    ("Citeseer", "GraphSAGE", "DPRR"): (
        0.6444,
        0.6438,
        0.5824,
        0.457,
        0.3634,
        0.347,
        0.3458,
        0.324,
    ),
    ("Citeseer", "GraphSAGE", "LAPGRAPH"): (
        0.6242,
        0.609,
        0.5642,
        0.421,
        0.4696,
        0.4942,
        0.5062,
        0.5182,
    ),
    ("Citeseer", "GraphSAGE", "GraphPub"): (
        0.6456,
        0.6504,
        0.6726,
        0.695,
        0.6996,
        0.6846,
        0.6698,
        0.6626,
    ),
    ("Polblogs", "GCN", "RR"): (
        0.8488,
        0.8543,
        0.8543,
        0.8638,
        0.8482,
        0.7916,
        0.5728,
        0.4973,
    ),
    ("Polblogs", "GCN", "DPRR"): (
        0.8486,
        0.8552,
        0.8379,
        0.8057,
        0.6838,
        0.5099,
        0.5105,
        0.5042,
    ),
    ("Polblogs", "GCN", "LAPGRAPH"): (
        0.8512,
        0.8587,
        0.8274,
        0.7973,
        0.7638,
        0.5011,
        0.5021,
        0.4992,
    ),
    ("Polblogs", "GCN", "GraphPub"): (
        0.8478,
        0.8752,
        0.8579,
        0.8331,
        0.8434,
        0.7234,
        0.6943,
        0.6693,
    ),
    ("Polblogs", "GAT", "RR"): (
        0.8712,
        0.868,
        0.8688,
        0.8701,
        0.8556,
        0.8008,
        0.5895,
        0.4977,
    ),
    ("Polblogs", "GAT", "DPRR"): (
        0.8749,
        0.8695,
        0.8615,
        0.8162,
        0.6905,
        0.5236,
        0.5055,
        0.5076,
    ),
    ("Polblogs", "GAT", "LAPGRAPH"): (
        0.8663,
        0.8573,
        0.8278,
        0.808,
        0.7669,
        0.488,
        0.5078,
        0.4922,
    ),
    ("Polblogs", "GAT", "GraphPub"): (
        0.8714,
        0.8667,
        0.8686,
        0.8638,
        0.8512,
        0.816,
        0.7968,
        0.8305,
    ),
    ("Polblogs", "GraphSAGE", "RR"): (
        0.8596,
        0.8627,
        0.8617,
        0.856,
        0.8497,
        0.7389,
        0.572,
        0.4981,
    ),
    ("Polblogs", "GraphSAGE", "DPRR"): (
        0.8621,
        0.8621,
        0.8518,
        0.8034,
        0.6863,
        0.5183,
        0.4964,
        0.4958,
    ),
    ("Polblogs", "GraphSAGE", "LAPGRAPH"): (
        0.8472,
        0.8482,
        0.8173,
        0.7851,
        0.7097,
        0.4901,
        0.5034,
        0.5015,
    ),
    ("Polblogs", "GraphSAGE", "GraphPub"): (
        0.8606,
        0.8623,
        0.8596,
        0.8585,
        0.8484,
        0.8307,
        0.7874,
        0.8324,
    ),
}
ACCURACY = {
    (data, model, method, epsilon): Published(
        mean, "Table 2", cell=(data, model, method, f"ε = {epsilon:g}")
    )
    for (data, model, method), values in _ACCURACY.items()
    for epsilon, mean in zip(EPSILONS, values, strict=True)
}
"""Data set, model, method, ε: accuracy, mean of five. For Citeseer the paper prints the same number for RR at ε = 8 and 5,
with GCN and with GAT."""


@dataclass(frozen=True)
class Attack:
    """A row of Table 3: the pairs that the attacker names, compared with one graph."""

    precision: float
    recall: float


ATTACKS = {
    ("Cora", "original"): Attack(0.0265, 0.0402),
    ("Cora", "published"): Attack(0.1592, 0.2221),
    ("Citeseer", "original"): Attack(0.0284, 0.0269),
    ("Citeseer", "published"): Attack(0.1927, 0.1679),
    ("Polblogs", "original"): Attack(0.0362, 0.0369),
    ("Polblogs", "published"): Attack(0.1488, 0.1487),
}
"""Data set, graph that is compared with, at ε = 1. Recall over precision is the number of pairs over that of edges."""
ATTACK_CELLS = {
    (data, which, metric): Published(
        getattr(attack, metric), "Table 3", cell=(data, which, metric)
    )
    for (data, which), attack in ATTACKS.items()
    for metric in ("precision", "recall")
}
"""Data set, graph, precision or recall: the numbers of Table 3."""
OVERHEAD = {
    what: Published(milliseconds, "Table 4", cell=(what,))
    for what, milliseconds in (
        ("GraphPub", 1513),
        ("GCN", 717),
        ("GAT", 4514),
        ("GraphSAGE", 1288),
    )
}
"""Milliseconds on Cora, of building GraphPub's graph and of training a network."""

_STATISTICS = {
    "Cora": (2708, 5429, 7, 1433),
    "Citeseer": (3327, 4732, 6, 3703),
    "Polblogs": (1490, 19025, 2),
}
STATISTICS = {
    (data, what): Published(number, "Table 1", cell=(data, what))
    for data, values in _STATISTICS.items()
    for what, number in zip(
        ("nodes", "edges", "classes", "features"), values, strict=False
    )
}
"""Data set and count; Polblogs has no features."""

STATEMENTS = (
    Statement(
        "Table 2",
        "GraphPub is no worse than RR, DPRR and LAPGRAPH at almost every ε, and may gain as ε falls",
    ),
    Statement(
        "Figure 2a",
        "degrees are preserved well on Cora for ε in (0, 2], better with a larger share for ε₁",
    ),
    Statement(
        "Figure 2c",
        "with a random matrix in place of L, accuracy drops rapidly as ε falls",
    ),
    Statement(
        "Figure 2d",
        "without projected gradient descent accuracy drops and is still good",
    ),
    Statement("Figure 3", "GCN, GAT and GraphSAGE can each construct L"),
    Statement("Figures 2 and 3", "the numbers that are plotted", verified=False),
)


def _above(method: str) -> Ordering:
    return Ordering(
        f"networks are more accurate on GraphPub's graphs than on those of {method}",
        "graph-pub-table",
        "accuracy",
        "method",
        "GraphPub",
        method,
    )


def _ablation(lower: str) -> Ordering:
    return Ordering(
        f"GraphPub is better than with {lower}",
        "graph-pub-ablations",
        "accuracy",
        "method",
        "GraphPub",
        lower,
    )


PRINTED = (
    diagram("Figure 1", "the framework"),
    Printed(
        "Table 1",
        "counts of the three graphs",
        ("data-statistics",),
        tuple(STATISTICS.values()),
        exact=True,
    ),
    Printed(
        "Table 2",
        "accuracy of three networks on graphs published by four methods at eight ε",
        ("graph-pub-table", "honesty"),
        tuple(ACCURACY.values()),
        (_above("RR"), _above("DPRR"), _above("LAPGRAPH")),
        {
            f"ε = {epsilon:g}": "ε = 17, 14, 11 and 5 are not in our grid"
            for epsilon in (17.0, 14.0, 11.0, 5.0)
        },
        "The paper states “no less accurate”, in almost all cases; a comparison here is for “more accurate”. At ε = 8 its "
        "RR, DPRR and LAPGRAPH, with GCN on Cora and Citeseer, are all more than 2 sd below ours at ε. One of these six "
        "is within 2 sd of ours at ε/2, and two lie between both (experiment graph-pub-baselines).",
    ),
    Printed(
        "Figure 2a",
        "similarity of the degrees on Cora by the share of their budget",
        ("graph-pub-degrees",),
        orderings=(
            Ordering(
                "degrees are kept better with a share of .8 than of .2",
                "graph-pub-degrees",
                "degree similarity",
                "degree share",
                0.8,
                0.2,
            ),
        ),
    ),
    Printed(
        "Figure 2b",
        "distribution of the degrees on Cora at ε = 1",
        reason="there is no experiment for it yet",
    ),
    Printed(
        "Figure 2c",
        "accuracy on Cora with a random matrix in place of L",
        ("graph-pub-ablations",),
        orderings=(
            _ablation("random matrix"),
            Ordering(
                "with a random matrix, accuracy falls from ε = 20 to ε = 1",
                "graph-pub-ablations",
                "accuracy",
                "epsilon",
                20.0,
                1.0,
                {"method": "random matrix"},
            ),
        ),
    ),
    Printed(
        "Figure 2d",
        "accuracy on Cora without gradient descent",
        ("graph-pub-ablations",),
        orderings=(_ablation("no gradient descent"),),
    ),
    Printed(
        "Figure 3",
        "accuracy on Cora with L by GCN, GAT and GraphSAGE",
        ("graph-pub-constructors",),
        remark=(
            "With L by GCN or GraphSAGE ours is .76 to .79 at ε = 2 and 1, and with L by GAT .45; at ε = 20 and 8 the "
            "three agree within .01. The paper does not state how A_s is learned through attention; ours has one head, so "
            "that this may be our reading."
        ),
    ),
    Printed(
        "Table 3",
        "precision and recall of link inference at ε = 1",
        ("graph-pub-attack",),
        tuple(ATTACK_CELLS.values()),
        remark=(
            "Low precision is no protection, as few pairs are edges. By AUC the attack on GraphPub's graphs finds the real "
            "edges better than features alone, on all three data sets."
        ),
    ),
    Printed(
        "Table 4",
        "run time on Cora",
        cells=tuple(OVERHEAD.values()),
        reason="they are times on two RTX 2080 Ti, which are not here",
    ),
)
"""The paper's Figures 1 to 3 and Tables 1 to 4."""
