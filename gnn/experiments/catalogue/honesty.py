"""The cost of honesty: each paper's mechanism as published and repaired.

Each setting is a setting of its paper's own experiments, by the same cell; here they stand side by side on the same splits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gnn.experiments.catalogue import dpar, dprr, graph_pub, hetero_rr, lpgnn
from gnn.experiments.experiment import (
    FORM,
    LARGEST,
    PUBLISHED,
    Cell,
    Experiment,
    Factor,
    Guarantee,
    Metric,
    Metrics,
    Parameters,
)
from gnn.experiments.published import Published
from gnn.experiments.published import dpar as dpar_published
from gnn.experiments.published import lpgnn as lpgnn_published

if TYPE_CHECKING:
    from torch import Tensor

    from gnn.datasets.splits import Split

EPSILONS = (1.0, 8.0)
NO_DATA, NON_PRIVATE = 0.0, math.inf
"""The ε of rows that do not use what the paper protects, and of rows that do not protect it."""
MAJORITY, CLEAN = "majority class", "non-private"
ALL_LABELS = "GraphPub, test labels used"
SIZE_KNOWN = "DPRR, n known"
DEGREES = hetero_rr.DEGREES
STEPS_OF_FEATURES, BATCH = 8000, 60
"""DP-SGD of Features: on Cora-ML these are DPAR's 200 epochs, and as many steps on the others."""
Setting = Mapping[str, Any]


def _dprr(data: str, method: str, epsilon: float) -> Setting:
    known = method in (SIZE_KNOWN, dprr.USERS)
    return {
        "data": data,
        "mechanism": {SIZE_KNOWN: "DPRR", CLEAN: "NonPriv-Full"}.get(method, method),
        "epsilon": epsilon,
        "share": 0.0,
        "reading": "n known" if known else "source",
        "graphs": 800,
        "largest": 1000,
        "layers": 5,
        "hidden": 32,
        "dropout": 0.5,
        "epochs": 60,
        "patience": 20,
    }


def _lpgnn(data: str, method: str, epsilon: float) -> Setting:
    if method == CLEAN:
        return {
            "data": data,
            "features": "MBM",
            "epsilon_x": math.inf,
            "epsilon_y": math.inf,
            "epochs": 500,
        }
    features = "OHD" if method == DEGREES else "MBM"
    return {
        "data": data,
        "features": features,
        "epsilon_x": epsilon,
        "epsilon_y": epsilon,
        "epochs": 500,
    }


def _graph_pub(data: str, method: str, epsilon: float) -> Setting:
    return {
        "data": data,
        "model": "GCN",
        "method": {ALL_LABELS: graph_pub.WHOLE, CLEAN: graph_pub.PRIVATE}.get(
            method, method
        ),
        "epsilon": epsilon,
        "labels": "all" if method == ALL_LABELS else "training",
        "steps": 100,
        "epochs": 200,
    }


def _hetero_rr(data: str, method: str, epsilon: float) -> Setting:
    common = {
        "data": data,
        "steps": 50,
        "learning rate": 0.001,
        "epochs": hetero_rr.EPOCHS,
    }
    if method == "FeatureRR":
        return common | {"method": method, "epsilon_f": epsilon}
    if method in (DEGREES, CLEAN):
        return common | {
            "method": DEGREES if method == DEGREES else hetero_rr.CLEAN,
            "epsilon_f": epsilon,
        }
    if method == hetero_rr.NO_EDGES:
        return common | {"edges": method}
    return common | {"edges": method, "epsilon_e": epsilon, "rho": 0.305}


def _dpar(data: str, method: str, epsilon: float) -> Setting:
    nodes = {"Cora-ML": 2396, "CS": 14666, "Physics": 27594}[data]
    return {
        "data": data,
        "method": dpar.EXACT if method == CLEAN else method,
        "epsilon": math.inf if method == CLEAN else epsilon,
        "epochs": 200,
        "baseline batch": BATCH,
        "baseline epochs": math.ceil(STEPS_OF_FEATURES / math.ceil(nodes / BATCH)),
    }


def _graph_labels(data: str, seed: int) -> tuple[Tensor, Split]:
    import torch

    graphs, split, _ = dprr.prepared(_dprr(data, "DPRR", 1.0), seed)
    return torch.cat([graph.y for graph in graphs]), split


def _hetero_rr_labels(data: str, seed: int) -> tuple[Tensor, Split]:
    found = hetero_rr.prepared(data, seed)
    return found.data.y, found.split


def _labels(
    prepared: Callable[[str, int], tuple[Any, ...]],
) -> Callable[[str, int], tuple[Tensor, Split]]:
    def found(data: str, seed: int) -> tuple[Tensor, Split]:
        graph, split, *_ = prepared(data, seed)
        return graph.y, split

    return found


@dataclass(frozen=True)
class Reading:
    """A difference from the figure's reading, and the experiment that tests it.

    Attributes:
        words: What is done otherwise.
        experiment: Where it is tested.
        default: Parameters of that experiment's rows that are as in the figure.
        changed: Those that differ.
        data: The data set.
    """

    words: str
    experiment: str
    default: Setting
    changed: Setting
    data: str


@dataclass(frozen=True)
class Paper:
    """One paper's rows.

    Attributes:
        files: Its data sets.
        own: The paper's own methods, by data set.
        beside: Methods beside them at the same ε: what leaves a part of the data unused, or may explain a difference.
        without: For each method the rows that do not use what it protects, besides the majority class.
        explains: The row of ``beside`` that may explain a difference, and in words what it differs by.
        leaves: The row of ``beside`` that leaves a part of the data unused, and which.
        readings: What else may explain a difference.
        remark: What there is to say of the printed numbers themselves.
        setting: Parameters of the paper's own cell.
        cell: It.
        score: The metric of it that the paper reports, and its unit.
        guarantee: The privacy of a setting of the cell.
        repairable: Whether a setting of the cell has a repaired form.
        labels: Labels of nodes or graphs and their split, of a seed.
        published: What the paper prints for (data, method, ε), as a share.
    """

    files: Mapping[str, str]
    own: Callable[[str], Sequence[str]]
    beside: Sequence[str]
    without: Mapping[str, Sequence[str]]
    setting: Callable[[str, str, float], Setting]
    cell: Cell
    score: tuple[str, float]
    guarantee: Callable[[Parameters], Guarantee]
    repairable: Callable[[Parameters], bool]
    labels: Callable[[str, int], tuple[Tensor, Split]]
    published: Callable[[str, str, float], Published | None] = lambda *_: None
    explains: tuple[str, str] = ("", "")
    leaves: tuple[str, str] = ("", "")
    readings: Sequence[Reading] = ()
    remark: str = ""

    def baselines(self, method: str = "") -> Sequence[str]:
        """Return the rows at ε = 0 of a method, or of all."""
        named = [self.without.get(method, ())] if method else self.without.values()
        return (MAJORITY, *dict.fromkeys(name for names in named for name in names))


def _lpgnn_number(data: str, method: str, epsilon: float) -> Published | None:
    feature = {"LPGNN": "MBM", DEGREES: "OHD"}.get(method, "")
    found = lpgnn_published.FEATURES.get((feature, data)) if epsilon == 1 else None
    return found and replace(
        found, mean=found.mean / 100, sd=found.sd and found.sd / 100
    )


def _graph_pub_number(data: str, method: str, epsilon: float) -> Published | None:
    return (
        graph_pub.table(_graph_pub(data, method, epsilon), "accuracy")
        if method in graph_pub.METHODS
        else None
    )


def _dpar_number(data: str, method: str, epsilon: float) -> Published | None:
    if method == CLEAN:
        return dpar_published.NON_PRIVATE.get((data, dpar.EXACT))
    return dpar_published.ACCURACY.get((data, method, epsilon))


AS_IN_FIGURE = {"test nodes": dpar.RANDOM, "features": dpar.COUNTS}
LEARNED = {"labels": "training", "arcs": "lists", FORM: PUBLISHED}
PAPERS = {
    "DPRR": Paper(
        files={name: dprr.DATA_SETS[name].file for name in (dprr.REDDIT, dprr.THREADS)},
        own=lambda _: ("DPRR",),
        beside=(SIZE_KNOWN, "RR"),
        without={"DPRR": (dprr.USERS,)},
        explains=(
            SIZE_KNOWN,
            "the number of users n, which the degrees of RR's lists tell and those of DPRR's do not",
        ),
        setting=_dprr,
        cell=dprr.classified,
        score=("accuracy", 1.0),
        guarantee=dprr.guarantee,
        repairable=dprr.repairable,
        labels=_graph_labels,
    ),
    "LPGNN": Paper(
        files={name: lpgnn.FILES[name] for name in ("Cora", "PubMed", "Facebook")},
        own=lambda _: ("LPGNN",),
        beside=(DEGREES,),
        leaves=(DEGREES, "the features"),
        without={},
        setting=_lpgnn,
        cell=lpgnn.accuracy,
        score=("accuracy", 0.01),
        guarantee=lpgnn.guarantee,
        repairable=lpgnn.scaled,
        labels=_labels(lpgnn.prepared),
        published=_lpgnn_number,
    ),
    "GraphPub": Paper(
        files=graph_pub.FILES,
        own=lambda _: (graph_pub.WHOLE,),
        beside=(ALL_LABELS,),
        without={graph_pub.WHOLE: (graph_pub.NO_EDGES,)},
        explains=(
            ALL_LABELS,
            "labels of test nodes, from which Equation 6 learns the published graph",
        ),
        setting=_graph_pub,
        cell=graph_pub.accuracy,
        score=("accuracy", 1.0),
        guarantee=graph_pub.guarantee,
        repairable=graph_pub.repairable,
        labels=_labels(graph_pub.prepared),
        published=_graph_pub_number,
        readings=(
            Reading(
                "degrees as features",
                "graph-pub-readings",
                LEARNED,
                {"data": graph_pub.DEGREE_FEATURES},
                "Polblogs",
            ),
            Reading(
                "labels of validation nodes as well",
                "graph-pub-readings",
                LEARNED,
                {"labels": "training and validation"},
                "Citeseer",
            ),
        ),
    ),
    "HeteroRR": Paper(
        files=hetero_rr.FILES,
        own=lambda _: ("EdgeRR", "FeatureRR"),
        beside=(),
        without={
            "EdgeRR": (hetero_rr.NO_EDGES, hetero_rr.PUBLIC_ALONE),
            "FeatureRR": (DEGREES,),
        },
        setting=_hetero_rr,
        cell=hetero_rr.utility,
        score=("F1", 1.0),
        guarantee=lambda setting: (
            hetero_rr.edge_guarantee(setting)
            if "edges" in setting
            else hetero_rr.feature_guarantee(setting)
        ),
        repairable=lambda setting: True,
        labels=_hetero_rr_labels,
    ),
    "DPAR": Paper(
        files=dpar.FILES,
        own=lambda data: (
            dpar.DPAR_METHODS if data == "Cora-ML" else dpar.DPAR_METHODS[1:2]
        ),
        beside=("Features",),
        leaves=("Features", "the edges"),
        without={},
        setting=_dpar,
        cell=dpar.accuracy_of,
        score=("accuracy", 1.0),
        guarantee=dpar.guarantee,
        repairable=dpar.repairable,
        labels=_labels(dpar.prepared),
        published=_dpar_number,
        readings=(
            Reading(
                "communities as test nodes",
                "dpar-test-nodes",
                AS_IN_FIGURE,
                {"test nodes": dpar.COMMUNITIES},
                "Cora-ML",
            ),
            *(
                Reading(words, "dpar-test-nodes", AS_IN_FIGURE, changed, "CS")
                for words, changed in (
                    ("tests in the whole graph", {"test nodes": dpar.WHOLE}),
                    (
                        "tests in the whole graph and binary features",
                        {"test nodes": dpar.WHOLE, "features": dpar.BINARY},
                    ),
                )
            ),
        ),
        remark=(
            f"All printed numbers of DPAR on Cora-ML are multiples of 1/{dpar_published.TEST_NODES}. Each therefore seems "
            "to be of one run, tested on one of the parts that the published code cuts by METIS."
        ),
    ),
}


def in_figure(setting: Parameters) -> bool:
    """Return True if a combination of the factors is a row."""
    paper, data, method = (
        PAPERS[str(setting["paper"])],
        str(setting["data"]),
        str(setting["method"]),
    )
    if data not in paper.files:
        return False
    epsilon = float(setting["epsilon"])
    if epsilon == NO_DATA:
        return method in paper.baselines()
    return (
        method == CLEAN
        if epsilon == NON_PRIVATE
        else method in (*paper.own(data), *paper.beside)
    )


def own(setting: Parameters) -> tuple[Paper, Parameters]:
    """Return the paper of a setting, and the parameters of its cell."""
    paper, epsilon = PAPERS[str(setting["paper"])], float(setting["epsilon"])
    used = epsilon if epsilon in EPSILONS else EPSILONS[0]
    found = paper.setting(str(setting["data"]), str(setting["method"]), used)
    return paper, {**found, FORM: setting.get(FORM, PUBLISHED)}


def accuracy(setting: Parameters, seed: int, device: str) -> Metrics:
    """Return the test accuracy of a row, by the cell of its paper."""
    paper, parameters = own(setting)
    if setting["method"] == MAJORITY:
        labels, split = paper.labels(str(setting["data"]), seed)
        most = labels[split.training].bincount().argmax()
        return {
            "accuracy": float((labels[split.test] == most).double().mean()),
            LARGEST: 1.0,
        }
    metric, unit = paper.score
    found = paper.cell(parameters, seed, device)
    return {"accuracy": unit * float(found[metric]), LARGEST: found[LARGEST]}  # type: ignore[arg-type]


def guarantee(setting: Parameters) -> Guarantee:
    """Return the privacy of a row; none is claimed where nothing private is used, or nothing protected."""
    if float(setting["epsilon"]) not in EPSILONS:
        return Guarantee(None)
    paper, parameters = own(setting)
    return paper.guarantee(parameters)


def repairable(setting: Parameters) -> bool:
    """Return True if a row has a repaired form: the audits refute the paper's printed ε."""
    paper, parameters = own(setting)
    mine = setting["method"] in paper.own(str(setting["data"]))
    return (
        mine and float(setting["epsilon"]) in EPSILONS and paper.repairable(parameters)
    )


def published(setting: Parameters, metric: str) -> Published | None:
    """Return the number that the paper prints."""
    if metric != "accuracy":
        return None
    paper = PAPERS[str(setting["paper"])]
    return paper.published(
        str(setting["data"]), str(setting["method"]), float(setting["epsilon"])
    )


METHODS = (
    MAJORITY,
    dprr.USERS,
    graph_pub.NO_EDGES,
    hetero_rr.PUBLIC_ALONE,
    *(
        "DPRR",
        SIZE_KNOWN,
        "RR",
        "LPGNN",
        DEGREES,
        "GraphPub",
        ALL_LABELS,
        "EdgeRR",
        "FeatureRR",
    ),
    *(*dpar.DPAR_METHODS, "Features", CLEAN),
)
DATA = tuple(dict.fromkeys(name for paper in PAPERS.values() for name in paper.files))
EXPERIMENTS = (
    Experiment(
        name="honesty",
        title="What honesty costs",
        source="Five papers: DPRR, LPGNN, GraphPub, HeteroRR and DPAR",
        factors=(
            Factor("paper", tuple(PAPERS)),
            Factor("data", DATA, quick=("Cora", "Cora-ML", dprr.THREADS)),
            Factor("epsilon", (NO_DATA, *EPSILONS, NON_PRIVATE)),
            Factor("method", METHODS),
        ),
        metrics=(Metric("accuracy"), Metric(LARGEST)),
        cell=accuracy,
        repetitions={"quick": 1, "paper": 5},
        keep=in_figure,
        common=("epsilon", "method", FORM),
        repaired=repairable,
        files=lambda setting: (
            PAPERS[str(setting["paper"])].files[str(setting["data"])],
        ),
        published=published,
        guarantee=guarantee,
        notes=(
            "ε is what each paper calls so: of a neighbour list (DPRR), of features and of labels each (LPGNN), of an edge "
            "(GraphPub, EdgeRR), of a feature vector (FeatureRR), of a node (DPAR). ε = 0 does not use what the paper "
            "protects, ε = ∞ does not protect it. All learn from labels of training nodes alone; “test labels used” is "
            "GraphPub as its Equation 6 has it. The majority class is that of the training labels. DPRR: 800 graphs of "
            "at most 1,000 nodes, 60 epochs; Reddit threads are a substitute. HeteroRR's data sets are not here: Cora and "
            "Citeseer stand in, 30.5 % of the edges private for EdgeRR. Features is DP-SGD in 8,000 batches of 60; in "
            "dpar-table it is 20 epochs of batches of 256, 200 batches in all on Cora-ML, and its accuracy is lower for it "
            "(dpar-features varies both)."
        ),
    ),
)
