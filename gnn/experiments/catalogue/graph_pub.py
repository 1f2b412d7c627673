"""GraphPub's tables and figures: accuracy on published graphs, ablations, constructors, degrees and the attack."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from auditdp.numerics.streams import stream
from gnn.experiments.execute import data_folder, files_of, generator_of
from gnn.experiments.experiment import (
    FORM,
    LARGEST,
    REPAIRED,
    Experiment,
    Factor,
    Guarantee,
    Metric,
    Metrics,
    Parameters,
    Plot,
)
from gnn.experiments.published import Published, graph_pub

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data

    from gnn.datasets.splits import Split
    from gnn.pipelines.graph_pub import Release
    from mechanisms.graphs import Graph

FILES = {"Cora": "cora.npz", "Citeseer": "citeseer.npz", "Polblogs": "polblogs.npz"}
DEGREE_FEATURES = "Polblogs, degrees as features"
READ = FILES | {DEGREE_FEATURES: FILES["Polblogs"]}
METHODS = ("RR", "DPRR", "LAPGRAPH", "GraphPub")
RANDOM, NO_DESCENT, WHOLE, PRIVATE = (
    "random matrix",
    "no gradient descent",
    "GraphPub",
    "private graph",
)
NO_EDGES = "no edges"
EPSILONS = (20.0, 8.0, 2.0, 1.0)
AUDITS = {
    "RR": "audits/audit_edges.py::edge_rand",
    "DPRR": "audits/audit_edges.py::dprr_relationship",
    "LAPGRAPH": "audits/audit_edges.py::lap_graph_deployed",
    WHOLE: "audits/audit_graph_pub_trained.py::graph_pub_trained_afresh",
    RANDOM: "audits/audit_graph_pub.py::graph_pub_random_scores",
    NO_DESCENT: "audits/audit_graph_pub_trained.py::graph_pub_trained_adjacency",
}
DEGREES = "audits/audit_graph_pub_trained.py::graph_pub_trained_degrees"
RESPONSE = "audits/audit_graph_pub_trained.py::graph_pub_trained_response"
LISTS, UNION = (
    "audits/audit_graph_pub.py::graph_pub",
    "audits/audit_graph_pub.py::graph_pub_union",
)
"""Of what is selected whatever L is: lists are as long as degrees."""
SELECTED = (WHOLE, RANDOM, NO_DESCENT)
"""Methods that are GraphPub, whole or without a part."""


def loaded(name: str) -> Data:
    """Return a data set; a node of Polblogs, which has no features, has one of its own, or its degree."""
    from gnn.datasets import load
    from gnn.datasets.features import identity, one_hot_degree

    data = load(READ[name].removesuffix(".npz"), data_folder())
    if data.x is None:
        data.x = (
            one_hot_degree(data, 200) if name == DEGREE_FEATURES else identity(data)
        )
    return data


def release_of(setting: Parameters) -> Release:
    """Return the release of the graph in a setting."""
    from gnn.pipelines.graph_pub import Release

    method = str(setting["method"])
    kind: Any = (
        "none"
        if method in (PRIVATE, NO_EDGES)
        else "GraphPub"
        if method in SELECTED
        else method
    )
    form: Any = setting.get(FORM, "published")
    arcs: Any = setting.get("arcs", "lists")
    return Release(
        kind,
        float(setting["epsilon"]) * float(setting.get("budget used", 1.0)),
        form=form,
        selection="uniformly" if method == RANDOM else "largest",
        degree_share=float(setting.get("degree share", 0.0)),
        arcs=arcs,
    )


@lru_cache(maxsize=6)
def embedded(
    data: str, seed: int, device: str, steps: int, epochs: int, **scores: Any
) -> tuple[torch.Tensor, float]:
    """Z, which does not depend on ε, and the CPU seconds that it took."""
    from gnn.pipelines.graph_pub import ScoreSettings, embedding
    from gnn.reverse_learning import ReverseLearning

    settings = ScoreSettings(
        reverse=ReverseLearning(steps=steps), epochs=epochs, **scores
    )
    graph, split = prepared(data, seed)
    started = time.process_time()
    found = embedding(
        graph,
        settings,
        split=split,
        generator=generator_of(seed, "scores"),
        device=device,
    )
    return found, time.process_time() - started


@lru_cache(maxsize=3)
def prepared(data: str, seed: int) -> tuple[Data, Split]:
    """Return a data set and its split."""
    from gnn.datasets import paper_split

    found = loaded(data)
    return found, paper_split(
        "graphpub", found.y, generator=generator_of(seed, "split")
    )


def embedding_of(
    setting: Parameters, seed: int, device: str
) -> tuple[torch.Tensor | None, float]:
    """Return Z of a setting and its CPU seconds; None where nothing is selected by it."""
    if setting["method"] not in (WHOLE, NO_DESCENT):
        return None, 0.0
    return embedded(
        str(setting["data"]),
        seed,
        device,
        int(setting["steps"]),
        int(setting["epochs"]),
        constructor=setting.get("constructor", "GCN"),
        encode="private"
        if setting["method"] == NO_DESCENT and setting.get(FORM) != REPAIRED
        else "learned",
        labels=setting.get("labels", "training"),
        edges=setting.get(FORM) != REPAIRED,
    )


def released(
    setting: Parameters, seed: int, device: str
) -> tuple[Graph, torch.Tensor, float]:
    """Return the private graph, the arcs that are published, and the CPU seconds of Z."""
    import torch

    from gnn.datasets.conversion import to_graph
    from gnn.pipelines.graph_pub import published_arcs

    data, _ = prepared(str(setting["data"]), seed)
    z, seconds = embedding_of(setting, seed, device)
    graph = to_graph(data)
    z = torch.zeros(graph.nodes, 1) if z is None else z
    arcs = published_arcs(
        graph, release_of(setting), rng=stream(seed, "release"), embedding=z
    )
    return graph, arcs[:, :0] if setting["method"] == NO_EDGES else arcs, seconds


def accuracy(setting: Parameters, seed: int, device: str) -> Metrics:
    """Publish the graph, train a network on it, and test it."""
    from gnn.pipelines.graph_pub import learn
    from gnn.training import evaluate, largest_share

    data, split = prepared(str(setting["data"]), seed)
    graph, arcs, seconds = released(setting, seed, device)
    started = time.process_time()
    found = learn(
        data,
        arcs,
        str(setting["model"]),
        split=split,
        generator=generator_of(seed, "learning"),
        epochs=int(setting["epochs"]),
        device=device,
    )
    own, other = _degrees(graph, arcs)
    return {
        "accuracy": found.test_accuracy,
        LARGEST: evaluate(
            found.model, found.data, split.test, score=largest_share, device=device
        ),
        "arcs": arcs.shape[1],
        "real arcs": _real_share(graph, arcs),
        "degree similarity": _cosine(own, other),
        "construction": seconds,
        "training": time.process_time() - started,
    }


def attack(setting: Parameters, seed: int, device: str) -> Metrics:
    """Take the pairs of most similar embeddings of a GCN on the published graph as edges: Table 3.

    "No edges" is a GCN that sees the features of a node alone, as nothing of the graph is published.
    """
    import torch

    from gnn.attacks import embedding_similarity
    from gnn.pipelines.graph_pub import learn

    name = str(setting["data"])
    data, split = prepared(name, seed)
    graph, arcs, _ = released(setting, seed, device)
    options: dict[str, Any] = {
        "split": split,
        "generator": generator_of(seed, "learning"),
        "device": device,
    }
    model = learn(data, arcs, "GCN", epochs=int(setting["epochs"]), **options).model
    with torch.no_grad():
        hidden: Any = model.cpu().eval().hidden(data.x, arcs)  # type: ignore[operator]
    printed = graph_pub.ATTACKS[name, "original"]
    guesses = round(graph.edges.shape[1] * printed.recall / printed.precision)
    found: dict[str, float] = {}
    for which, edges in (("A", graph.edges), ("Ã", arcs.numpy())):
        if not edges.shape[1]:
            continue
        outcome = embedding_similarity(
            hidden, edges, rng=stream(seed, "ties", which), predicted=guesses
        )
        found |= {
            f"{metric} ({which})": value for metric, value in outcome.metrics().items()
        }
    return {
        metric: found[metric] for metric in found if not metric.startswith("average")
    }


def _degrees(graph: Any, arcs: torch.Tensor) -> tuple[Any, Any]:
    import numpy as np

    return graph.degrees, np.bincount(arcs[1].numpy(), minlength=graph.nodes)


def _cosine(first: Any, second: Any) -> float:
    size = float((first**2).sum() * (second**2).sum()) ** 0.5
    return float((first * second).sum()) / size if size else 0.0


def _real_share(graph: Any, arcs: torch.Tensor) -> float:
    """The share of the published arcs that are edges of the private graph."""
    from gnn.attacks import are_edges

    return (
        float(are_edges(arcs.numpy(), graph.edges, nodes=graph.nodes).mean())
        if arcs.shape[1]
        else 0.0
    )


def guarantee(setting: Parameters) -> Guarantee:
    """Return the printed ε, and the ε that the audits support for one undirected edge."""
    method, epsilon = str(setting["method"]), float(setting["epsilon"])
    if method in (PRIVATE, NO_EDGES):
        return Guarantee(None)
    used = epsilon * float(setting.get("budget used", 1.0))
    if method in SELECTED:
        if setting.get(FORM) == REPAIRED:
            return Guarantee(epsilon, RESPONSE, supports=epsilon)
        if setting.get("degree share"):
            return Guarantee(epsilon, DEGREES)
        return Guarantee(
            epsilon,
            AUDITS[method],
            others=(UNION if setting.get("arcs") == "union" else LISTS,),
        )
    lists = 2 if method == "DPRR" and setting.get(FORM) != REPAIRED else 1
    return Guarantee(epsilon, AUDITS[method], supports=lists * used)


def repairable(setting: Parameters) -> bool:
    """Return True if the audits do not support the printed ε for an edge."""
    return setting["method"] in (*SELECTED, "DPRR")


def table(setting: Parameters, metric: str) -> Published | None:
    """Return the accuracy of Table 2."""
    if metric != "accuracy":
        return None
    key = (
        str(setting["data"]),
        str(setting["model"]),
        str(setting["method"]),
        float(setting["epsilon"]),
    )
    return graph_pub.ACCURACY.get(key)


def table_of_attack(setting: Parameters, metric: str) -> Published | None:
    """Return precision and recall of Table 3."""
    if setting["method"] != WHOLE or not metric.startswith(("precision", "recall")):
        return None
    which = "original" if metric.endswith("(A)") else "published"
    return graph_pub.ATTACK_CELLS[str(setting["data"]), which, metric.split()[0]]


METRICS = (
    Metric("accuracy"),
    Metric(LARGEST),
    Metric("arcs"),
    Metric("real arcs"),
    Metric("degree similarity"),
    Metric("construction", "CPU s"),
    Metric("training", "CPU s"),
)
DATA = Factor("data", tuple(FILES), quick=("Cora",))
CORA = Factor("data", ("Cora",))
MODEL = Factor("model", ("GCN", "GAT", "GraphSAGE"), quick=("GCN",))
GCN = Factor("model", ("GCN",))
EPSILON = Factor("epsilon", EPSILONS)
STEPS = Factor("steps", (100,))
EPOCHS = Factor("epochs", (200,))
NOTE = (
    "Random splits of 10/20/70 %, the same for all settings of a data set and a repetition. The repaired row of GraphPub "
    "publishes every pair at random, by a public mean degree and an L that is learned without edges; that of DPRR has half "
    "of ε for each of the two lists that an edge is in. Labels of training nodes are public, and A_s is learned from them "
    "alone: Equation 6 sums over all nodes, test nodes among them, so that the published graph would tell of their labels "
    "(experiment graph-pub-readings has both). Steps of reverse learning, which the source does not state, are 100. A node "
    "of Polblogs, which has no features, has one of its own. Real arcs are the share of the published that are edges."
)


def _experiment(
    name: str, title: str, source: str, factors: tuple[Factor, ...], **arguments: Any
) -> Experiment:
    settings: dict[str, Any] = {
        "metrics": METRICS,
        "cell": accuracy,
        "version": 2,
        "repetitions": {"quick": 1, "paper": 5},
        "common": (*(factor.name for factor in factors if factor.name != "data"), FORM),
        "repaired": repairable,
        "files": files_of(FILES),
        "guarantee": guarantee,
        "notes": NOTE,
    }
    return Experiment(
        name=name,
        title=title,
        source=f"{graph_pub.SOURCE}, {source}",
        factors=factors,
        **(settings | arguments),
    )


def in_readings(setting: Parameters) -> bool:
    """Return True if a setting differs in one reading: labels, arcs, or features."""
    if setting["method"] == PRIVATE:
        return (setting["labels"], setting["arcs"], setting["epsilon"]) == (
            "training",
            "lists",
            8.0,
        )
    if setting["arcs"] == "union":
        return (setting["data"], setting["labels"]) == ("Cora", "all")
    return setting["data"] != DEGREE_FEATURES or setting["labels"] == "training"


EXPERIMENTS = (
    _experiment(
        "graph-pub-table",
        "Accuracy of networks on graphs published by RR, DPRR, LAPGRAPH and GraphPub",
        "Table 2",
        (DATA, MODEL, Factor("method", (*METHODS, PRIVATE)), EPSILON, STEPS, EPOCHS),
        keep=lambda setting: (
            setting["method"] != PRIVATE or setting["epsilon"] == EPSILONS[0]
        ),
        published=table,
        plots=(
            Plot(
                "accuracy",
                x="epsilon",
                lines="method",
                panels=("data", "model", FORM),
                log_x=True,
            ),
        ),
        statements=(graph_pub.STATEMENTS[0],),
    ),
    _experiment(
        "graph-pub-readings",
        "What GraphPub's accuracy depends on: whose labels, and how lists become a graph",
        "Equation 6 and Section 3.5",
        (
            Factor("data", tuple(READ), quick=("Cora",)),
            GCN,
            Factor("method", (WHOLE, PRIVATE), quick=(WHOLE,)),
            Factor("labels", ("all", "training", "training and validation")),
            Factor("arcs", ("lists", "union")),
            Factor("epsilon", (8.0, 1.0)),
            STEPS,
            EPOCHS,
        ),
        keep=in_readings,
        files=files_of(READ),
        published=table,
    ),
    _experiment(
        "graph-pub-baselines",
        "Whether RR, DPRR and LAPGRAPH had half of the budget",
        "Table 2",
        (
            Factor("data", ("Cora", "Citeseer")),
            GCN,
            Factor("method", ("RR", "DPRR", "LAPGRAPH")),
            EPSILON,
            Factor("budget used", (1.0, 0.5)),
            STEPS,
            EPOCHS,
        ),
        repetitions={"quick": 1, "paper": 5},
        published=table,
        repaired=lambda _: False,
        notes=f"Half of the budget, as for a graph whose pairs are perturbed from both ends. {NOTE}",
    ),
    _experiment(
        "graph-pub-ablations",
        "Accuracy with a random matrix in place of L, and without gradient descent",
        "Figures 2c and 2d",
        (CORA, MODEL, Factor("method", SELECTED), EPSILON, STEPS, EPOCHS),
        repetitions={"quick": 1, "paper": 3},
        keep=lambda setting: setting["model"] == "GCN" or setting["method"] == RANDOM,
        repaired=lambda _: False,
        plots=(
            Plot(
                "accuracy", x="epsilon", lines="method", panels=("model",), log_x=True
            ),
        ),
        statements=graph_pub.STATEMENTS[2:4],
    ),
    _experiment(
        "graph-pub-constructors",
        "Accuracy by the network that constructs L",
        "Figure 3",
        (
            CORA,
            GCN,
            Factor("method", (WHOLE,)),
            Factor("constructor", ("GCN", "GAT", "GraphSAGE")),
            EPSILON,
            STEPS,
            EPOCHS,
        ),
        repetitions={"quick": 1, "paper": 3},
        repaired=lambda _: False,
        plots=(Plot("accuracy", x="epsilon", lines="constructor", log_x=True),),
        statements=(graph_pub.STATEMENTS[4],),
    ),
    _experiment(
        "graph-pub-degrees",
        "Similarity of degrees by the share of the budget that they have",
        "Figure 2a",
        (
            CORA,
            GCN,
            Factor("method", (WHOLE,)),
            Factor("epsilon", (2.0, 1.0, 0.5, 0.1), quick=(2.0, 0.5)),
            Factor("degree share", (0.8, 0.5, 0.2)),
            STEPS,
            EPOCHS,
        ),
        repetitions={"quick": 1, "paper": 3},
        repaired=lambda _: False,
        plots=(Plot("degree similarity", x="epsilon", lines="degree share"),),
        statements=(graph_pub.STATEMENTS[1],),
    ),
    _experiment(
        "graph-pub-attack",
        "Precision and recall of link inference by embedding similarity",
        "Table 3",
        (
            DATA,
            Factor("method", (WHOLE, PRIVATE, NO_EDGES)),
            Factor("epsilon", (1.0,)),
            STEPS,
            EPOCHS,
        ),
        cell=attack,
        metrics=tuple(
            Metric(f"{name} ({which})")
            for which in ("A", "Ã")
            for name in ("precision", "recall", "AUC")
        ),
        repetitions={"quick": 1, "paper": 3},
        published=table_of_attack,
        notes=(
            "The hidden layer of a GCN on the published graph; as many pairs are named as the printed recall and precision "
            "imply. A is the private graph and Ã the published one. The row without edges is the attack by features alone. "
            f"{NOTE}"
        ),
    ),
)
