"""Counts of the data sets, which three of the papers print."""

from __future__ import annotations

import numpy as np

from gnn.experiments.catalogue import dpar, dprr, graph_pub
from gnn.experiments.execute import data_folder, files_of
from gnn.experiments.experiment import Experiment, Factor, Metric, Metrics, Parameters
from gnn.experiments.published import Published
from gnn.experiments.published import dpar as dpar_published
from gnn.experiments.published import dprr as dprr_published
from gnn.experiments.published import graph_pub as graph_pub_published

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


def counts(parameters: Parameters, seed: int, device: str) -> Metrics:
    """Count the nodes, edges, classes and features in a file; edges as its source lists them."""
    path = data_folder() / FILES[str(parameters["data"])]
    with np.load(path, allow_pickle=False) as file:
        classes = len(np.unique(file["y"][file["y"] >= 0]))
        if str(file["kind"]) == "graphs":
            sizes = np.diff(file["graph_ptr_nodes"])
            first = np.repeat(
                file["graph_ptr_nodes"][:-1], np.diff(file["graph_ptr_edges"])
            )
            degrees = np.bincount((file["edge_index"] + first).ravel())
            return {
                "graphs": len(sizes),
                "classes": classes,
                "nodes, largest": int(sizes.max()),
                "nodes, mean": float(sizes.mean()),
                "degree, largest": int(degrees.max()),
                "degree, mean": float(degrees.sum() / sizes.sum()),
            }
        listed = (
            "edge_index_source" if "edge_index_source" in file.files else "edge_index"
        )
        found = {
            "nodes": int(file["num_nodes"]),
            "edges": file[listed].shape[1],
            "classes": classes,
        }
        if "x_shape" in file.files:
            found["features"] = int(file["x_shape"][1])
        return found


def published(parameters: Parameters, metric: str) -> Published | None:
    """Return the number of the paper."""
    return PUBLISHED.get((str(parameters["data"]), metric))


EXPERIMENTS = (
    Experiment(
        name="data-statistics",
        title="Counts of the data sets",
        source="Tables of data sets of DPRR (III), GraphPub (1) and DPAR (2)",
        factors=(Factor("data", tuple(FILES)),),
        metrics=tuple(
            Metric(name)
            for name in dict.fromkeys(
                (
                    *("nodes", "edges", "classes", "features", "graphs"),
                    *(metric for _, metric in dprr_published.STATISTICS),
                )
            )
        ),
        cell=counts,
        repetitions={"quick": 1, "paper": 1},
        files=files_of(FILES),
        published=published,
        notes=(
            "Edges are counted as a source lists them: a link that it repeats counts again. The edges of CS and Physics "
            "count once, although their sources list both directions. DPAR prints four times that for CS and twice for "
            "Physics."
        ),
    ),
)
