"""Counts of the data sets, which three of the papers print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gnn.experiments.catalogue import dpar, dprr, graph_pub
from gnn.experiments.execute import data_folder, files_of
from gnn.experiments.experiment import Experiment, Factor, Metric, Metrics, Parameters
from gnn.experiments.published import Published
from gnn.experiments.published import dpar as dpar_published
from gnn.experiments.published import dprr as dprr_published
from gnn.experiments.published import graph_pub as graph_pub_published

if TYPE_CHECKING:
    from auditdp.mechanism.protocol import Array

FILES = (
    graph_pub.FILES
    | dpar.FILES
    | {"REDDIT-BINARY": dprr.DATA_SETS["REDDIT-BINARY"].file}
)
PUBLISHED = (
    dpar_published.STATISTICS
    | graph_pub_published.STATISTICS
    | dprr_published.STATISTICS
)


def counted(parameters: Parameters, seed: int, device: str) -> Metrics:
    """Count what is in a file; edges as its source lists them."""
    path = data_folder() / FILES[str(parameters["data"])]
    with np.load(path, allow_pickle=False) as file:
        found = of_graphs(file) if str(file["kind"]) == "graphs" else of_nodes(file)
        found["classes"] = len(np.unique(file["y"][file["y"] >= 0]))
    return {"number": found[str(parameters["count"])]}


def of_nodes(file: Mapping[str, Array]) -> dict[str, float]:
    """Return the counts of one graph with classes of nodes."""
    listed = "edge_index_source" if "edge_index_source" in file else "edge_index"
    found = {
        "nodes": float(file["num_nodes"]),
        "edges": float(file[listed].shape[1]),
    }
    if "x_shape" in file:
        found["features"] = float(file["x_shape"][1])
    return found


def of_graphs(file: Mapping[str, Array]) -> dict[str, float]:
    """Return the counts of a collection of graphs."""
    sizes = np.diff(file["graph_ptr_nodes"])
    first = np.repeat(file["graph_ptr_nodes"][:-1], np.diff(file["graph_ptr_edges"]))
    degrees = np.bincount((file["edge_index"] + first).ravel())
    return {
        "graphs": float(len(sizes)),
        "nodes, largest": float(sizes.max()),
        "nodes, mean": float(sizes.mean()),
        "degree, largest": float(degrees.max()),
        "degree, mean": float(degrees.sum() / sizes.sum()),
    }


def published(parameters: Parameters, metric: str) -> Published | None:
    """Return the number of the paper."""
    return PUBLISHED.get((str(parameters["data"]), str(parameters["count"])))


EXPERIMENTS = (
    Experiment(
        name="data-statistics",
        title="Counts of the data sets",
        source="Tables of data sets of DPRR (III), GraphPub (1) and DPAR (2)",
        factors=(
            Factor("data", tuple(FILES)),
            Factor("count", tuple(dict.fromkeys(what for _, what in PUBLISHED))),
        ),
        metrics=(Metric("number"),),
        cell=counted,
        repetitions={"quick": 1, "paper": 1},
        keep=lambda setting: published(setting, "number") is not None,
        files=files_of(FILES),
        published=published,
        notes=(
            "Edges are counted as a source lists them: a link that it repeats counts again. The edges of CS and Physics "
            "count once, although their sources list both directions. DPAR prints four times that for CS and twice for "
            "Physics."
        ),
    ),
)
