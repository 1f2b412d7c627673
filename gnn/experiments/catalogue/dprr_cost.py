"""DPRR's run time and memory against the size of the graph, and noisy degrees against true ones: Figures 7, 8 and 9."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from auditdp.mechanism.protocol import Array
from gnn.experiments.execute import data_folder
from gnn.experiments.experiment import (
    FORM,
    REPAIRED,
    Experiment,
    Factor,
    Guarantee,
    Metric,
    Metrics,
    Parameters,
    Plot,
)
from gnn.experiments.published import dprr
from mechanisms.edges import DPRR, LocalLaplaceGraph, RandomisedResponse
from mechanisms.graphs import DirectedGraph, Graph, barabasi_albert, load_graphs

REDDIT = "reddit_binary.npz"
REDDIT_NODES_MAX = 3782
HIDDEN = 64
"""Units of the layer whose sum over neighbours is timed; the source's grid has 16 to 128."""
MECHANISMS = ("DPRR", "LocalLap", "RR")
AUDITS = {
    "DPRR": "audits/audit_edges.py::dprr",
    "LocalLap": "audits/audit_edges.py::local_laplace",
    "RR": "audits/audit_edges.py::warner_rr",
}
MEGABYTE = 1e6


def deployed(parameters: Parameters, *, nodes_max: int) -> DPRR:
    """Return DPRR with the published allocation, or with the one that keeps to ε where the form is repaired."""
    allocate = (
        DPRR.allocated_within if parameters.get(FORM) == REPAIRED else DPRR.allocated
    )
    return allocate(float(parameters["epsilon"]), nodes_max, dprr.ALLOCATION)


def released(
    parameters: Parameters, graph: Graph, *, nodes_max: int, rng: np.random.Generator
) -> DirectedGraph | Graph:
    """Return the messages about one graph that the server receives."""
    mechanism, epsilon = parameters["mechanism"], float(parameters["epsilon"])
    if mechanism == "LocalLap":
        return LocalLaplaceGraph(epsilon, graph.nodes).whole_graph(graph, rng=rng)
    row = (
        deployed(parameters, nodes_max=nodes_max)
        if mechanism == "DPRR"
        else RandomisedResponse(epsilon)
    )
    return row.whole_graph(graph, rng=rng)


def guarantee(parameters: Parameters, *, nodes_max: int) -> Guarantee:
    """Return the ε-edge LDP of a setting: ε₁ + ε₂ for DPRR."""
    mechanism, epsilon = str(parameters["mechanism"]), float(parameters["epsilon"])
    if mechanism == "DPRR":
        row = deployed(parameters, nodes_max=nodes_max)
        return Guarantee(
            epsilon, AUDITS[mechanism], supports=row.epsilon1 + row.epsilon2
        )
    return Guarantee(epsilon, AUDITS[mechanism], supports=epsilon)


def cost(
    parameters: Parameters,
    graphs: Sequence[Graph],
    *,
    nodes_max: int,
    rng: np.random.Generator,
) -> Metrics:
    """Measure releasing graphs, and summing 64 features over the neighbours that were released, in CPU seconds a graph."""
    release, aggregate, edges = 0.0, 0.0, 0
    for graph in graphs:
        features = rng.random((graph.nodes, HIDDEN))
        started = time.process_time()
        arcs = released(parameters, graph, nodes_max=nodes_max, rng=rng).arcs
        release += time.process_time() - started
        edges += arcs.shape[1]
        matrix = csr_array(
            (np.ones(arcs.shape[1]), (arcs[0], arcs[1])),
            shape=(graph.nodes, graph.nodes),
        )
        started = time.process_time()
        matrix @ features
        aggregate += time.process_time() - started
    tracemalloc.start()
    try:
        released(parameters, graphs[-1], nodes_max=nodes_max, rng=rng)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return {
        "mean nodes": float(np.mean([graph.nodes for graph in graphs])),
        "edges received": edges / len(graphs),
        "release": release / len(graphs),
        "aggregation": aggregate / len(graphs),
        "peak memory": peak / MEGABYTE,
    }


def barabasi_albert_cost(parameters: Parameters, seed: int, device: str) -> Metrics:
    """Cost on preferential attachment graphs."""
    rng, nodes = np.random.default_rng(seed), int(parameters["nodes"])
    graphs = [
        barabasi_albert(nodes, int(parameters["m"]), rng)
        for _ in range(int(parameters["graphs"]))
    ]
    return cost(parameters, graphs, nodes_max=nodes, rng=rng)


def reddit_cost(parameters: Parameters, seed: int, device: str) -> Metrics:
    """Cost on graphs of REDDIT-BINARY of which a share of the nodes is kept, the largest one among them."""
    rng = np.random.default_rng(seed)
    every = load_graphs(data_folder() / REDDIT)
    largest = int(np.argmax([graph.nodes for graph in every]))
    others = rng.choice(len(every), int(parameters["graphs"]) - 1, replace=False)
    graphs = [
        sampled(every[k], float(parameters["rate"]), rng) for k in [*others, largest]
    ]
    return cost(parameters, graphs, nodes_max=REDDIT_NODES_MAX, rng=rng)


def sampled(graph: Graph, rate: float, rng: np.random.Generator) -> Graph:
    """Return the subgraph on a random share of the nodes, at least two."""
    size = max(2, round(rate * graph.nodes))
    new = np.full(graph.nodes, -1)
    new[np.sort(rng.choice(graph.nodes, size, replace=False))] = np.arange(size)
    ends = new[graph.edges]
    return Graph.of(size, ends[:, (ends >= 0).all(axis=0)])


def degrees(parameters: Parameters, seed: int, device: str) -> Metrics:
    """Noisy against true degrees of the nodes of many graphs."""
    rng, number = np.random.default_rng(seed), int(parameters["graphs"])
    if parameters["data"] == "REDDIT-BINARY":
        every = load_graphs(data_folder() / REDDIT)
        graphs = [every[k] for k in rng.choice(len(every), number, replace=False)]
    else:
        graphs = [barabasi_albert(2000, 5, rng) for _ in range(number)]
    nodes_max = _nodes_max(parameters)
    true = np.concatenate([graph.degrees for graph in graphs])
    noisy = np.concatenate(
        [
            _degrees(released(parameters, g, nodes_max=nodes_max, rng=rng))
            for g in graphs
        ]
    )
    return {
        "d̃ − d": float(np.mean(noisy - true)),
        "|d̃ − d|": float(np.mean(abs(noisy - true))),
        "correlation": float(np.corrcoef(true, noisy)[0, 1]) if np.ptp(noisy) else 0.0,
        "noisy degree": _binned(true, noisy),
    }


def _degrees(graph: DirectedGraph | Graph) -> Array:
    return np.bincount(graph.arcs[0], minlength=graph.nodes)


def _binned(true: Array, noisy: Array) -> list[tuple[float, float]]:
    """The mean noisy degree in each of the bins [2^(k/2), 2^((k+1)/2)), at the middle of the bin in logarithms."""
    bins = np.floor(2 * np.log2(np.maximum(true, 1))).astype(int)
    return [
        (2 ** (k / 2 + 0.25), float(noisy[(bins == k) & (true > 0)].mean()))
        for k in np.unique(bins[true > 0])
    ]


def _nodes_max(parameters: Parameters) -> int:
    return REDDIT_NODES_MAX if parameters["data"] == "REDDIT-BINARY" else 2000


def _over_budget(parameters: Parameters) -> bool:
    """Return True if DPRR's published allocation exceeds the printed ε."""
    if parameters["mechanism"] != "DPRR":
        return False
    row = deployed(parameters, nodes_max=_nodes_max(parameters))
    return row.epsilon1 + row.epsilon2 > float(parameters["epsilon"]) * (1 + 1e-12)


def _reddit_only(parameters: Parameters) -> Sequence[str]:
    return (
        (REDDIT,) if parameters.get("data", "REDDIT-BINARY") == "REDDIT-BINARY" else ()
    )


COST = (
    Metric("mean nodes"),
    Metric("edges received"),
    Metric("release", "CPU s"),
    Metric("aggregation", "CPU s"),
    Metric("peak memory", "MB"),
)
NOTE = (
    "All figures are for one graph. The source times 100 epochs of a GIN on 1,500 or 1,000 graphs; every layer of it sums "
    "over the edges that the server received, and that sum, of 64 features, is what is timed here as aggregation. Release "
    "is the work of all users together; the sampler touches only ones, so RR costs its n²/(1+e^ε) flipped zeros."
)
EXPERIMENTS = (
    Experiment(
        name="dprr-cost-nodes",
        title="Run time and memory of DPRR, RR and LocalLap against the number of nodes, Barabási–Albert graphs",
        source=f"{dprr.SOURCE}, Figure 9 and Table II",
        factors=(
            Factor("m", dprr.BARABASI_ALBERT_EDGES, quick=(3,)),
            Factor("nodes", dprr.BARABASI_ALBERT_NODES, quick=(500, 1000, 2000)),
            Factor("mechanism", MECHANISMS),
            Factor("epsilon", (1.0,)),
            Factor("graphs", (10,), quick=(2,)),
        ),
        metrics=COST,
        cell=barabasi_albert_cost,
        repetitions={"quick": 2, "paper": 3},
        common=("mechanism",),
        guarantee=lambda parameters: guarantee(
            parameters, nodes_max=int(parameters["nodes"])
        ),
        plots=tuple(
            Plot(
                metric,
                x="nodes",
                lines="mechanism",
                panels=("m",),
                log_x=True,
                log_y=True,
            )
            for metric in ("edges received", "release", "aggregation", "peak memory")
        ),
        statements=(dprr.STATEMENTS[6],),
        notes=NOTE,
        alone=True,
    ),
    Experiment(
        name="dprr-cost-rate",
        title="Run time and memory of DPRR, RR and LocalLap against the share of nodes that is kept, REDDIT-BINARY",
        source=f"{dprr.SOURCE}, Figure 8 and Table II",
        factors=(
            Factor("rate", (0.2, 0.4, 0.6, 0.8, 1.0), quick=(0.5, 1.0)),
            Factor("mechanism", MECHANISMS),
            Factor("epsilon", (1.0,)),
            Factor("graphs", (100,), quick=(10,)),
        ),
        metrics=COST,
        cell=reddit_cost,
        repetitions={"quick": 2, "paper": 3},
        common=("mechanism",),
        files=_reddit_only,
        guarantee=lambda parameters: guarantee(parameters, nodes_max=REDDIT_NODES_MAX),
        plots=tuple(
            Plot(metric, x="rate", lines="mechanism", log_y=True)
            for metric in ("edges received", "release", "aggregation", "peak memory")
        ),
        statements=(dprr.STATEMENTS[6], dprr.STATEMENTS[7]),
        notes=f"{NOTE} Each cell measures random graphs and the largest one, whose release gives the memory.",
        alone=True,
    ),
    Experiment(
        name="dprr-degrees",
        title="Noisy degrees against true degrees under DPRR, RR and LocalLap",
        source=f"{dprr.SOURCE}, Figure 7, left",
        factors=(
            Factor("data", ("REDDIT-BINARY", "Barabási–Albert m = 5")),
            Factor("epsilon", (0.2, 1.0)),
            Factor("mechanism", MECHANISMS),
            Factor("graphs", (100,), quick=(20,)),
        ),
        metrics=(
            Metric("d̃ − d"),
            Metric("|d̃ − d|"),
            Metric("correlation"),
            Metric("noisy degree", curve="true degree d"),
        ),
        cell=degrees,
        repetitions={"quick": 2, "paper": 3},
        common=("mechanism", "epsilon", FORM),
        repaired=_over_budget,
        files=_reddit_only,
        guarantee=lambda parameters: guarantee(
            parameters, nodes_max=_nodes_max(parameters)
        ),
        plots=(
            Plot(
                "noisy degree",
                lines="mechanism",
                panels=("data", "epsilon"),
                log_x=True,
                log_y=True,
                diagonal=True,
            ),
        ),
        statements=dprr.STATEMENTS[4:6],
        notes=(
            "The source plots ε = 1; ε = .2, the smallest of its Figure 5, is where its allocation exceeds the ε that is "
            "printed on these graphs, and the repaired row keeps to it. Points are means of d̃ over nodes of like degree."
        ),
    ),
)
