"""The data folder: graphs, features and labels in npz files without pickles."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch_geometric.data import Data

from auditdp.configuration import DATA_VARIABLE
from auditdp.errors import ConfigurationError, MechanismError, did_you_mean
from gnn.datasets.conversion import to_data
from gnn.sparse import csr
from gnn.validation import DataError, check_choice
from mechanisms import graphs

NODE_SETS = (
    "citeseer",
    "coauthor_cs",
    "coauthor_physics",
    "cora",
    "cora_ml",
    "facebook",
    "lastfm_asia",
    "polblogs",
    "pubmed",
)
"""Data sets of one graph, with labels of its nodes."""
GRAPH_SETS = ("deezer_egos", "ppi_structure", "reddit_binary", "reddit_threads_10k")
"""Data sets of many graphs; all but ``ppi_structure`` have a label for each."""
MASKS = ("train_mask", "val_mask", "test_mask", "lpgnn_top10_mask")


def find(name: str, folder: str | Path | None = None) -> Path:
    """Return the file of a data set, in the folder or in its folder ``substitutes``.

    Args:
        name: One of ``NODE_SETS`` or ``GRAPH_SETS``.
        folder: The data folder; by default the environment variable AUDITDP_DATA names it.

    Raises:
        ConfigurationError: If the name is unknown, no folder is named, or the file is not in it.
    """
    known = (*NODE_SETS, *GRAPH_SETS)
    if name not in known:
        raise ConfigurationError(f"no data set {name!r}; {did_you_mean(name, known)}")
    place = folder if folder is not None else os.environ.get(DATA_VARIABLE)
    if not place:
        raise ConfigurationError(
            f"the data set {name!r} needs the data folder: give it as an argument or set {DATA_VARIABLE}; with a network, "
            "gnn.datasets.published downloads most data sets"
        )
    candidates = [
        Path(place) / f"{name}.npz",
        Path(place) / "substitutes" / f"{name}.npz",
    ]
    for path in candidates:
        if path.is_file():
            return path
    raise ConfigurationError(
        f"the data set {name!r} is not in {place}: no file {candidates[0]}; correct the folder or {DATA_VARIABLE}, or, "
        "with a network, use gnn.datasets.published"
    )


def load(
    name: str,
    folder: str | Path | None = None,
    *,
    features: Literal["sparse", "dense", "none"] = "sparse",
) -> Data:
    """Return a data set of one graph.

    Args:
        name: One of ``NODE_SETS``.
        folder: The data folder; by default the environment variable AUDITDP_DATA names it.
        features: Layout of ``x``: a sparse CSR tensor, a dense one (coauthor_physics takes 1.2 GB), or none.

    Returns:
        Data with ``edge_index`` (int64, shape (2, 2E): each edge in both directions, no self-loops), ``x`` (float32,
        shape (nodes, features); None where there are no features), ``y`` (int64, -1 where there is no label),
        ``num_nodes``, ``num_classes``, ``name``, and the masks that the source has: ``train_mask``, ``val_mask``,
        ``test_mask`` or ``lpgnn_top10_mask`` (bool).

    Raises:
        ConfigurationError: If there is no such data set or file.
        DataError: If the file does not follow the schema.
    """
    check_choice("load", "features", features, ("sparse", "dense", "none"))
    if name in GRAPH_SETS:
        raise ConfigurationError(
            f"the data set {name!r} has many graphs; use load_graphs({name!r})"
        )
    path = find(name, folder)
    try:
        data = to_data(graphs.load_graph(path))
    except MechanismError as error:
        raise DataError(str(error)) from None
    with np.load(path, allow_pickle=False) as archive:
        data.y = torch.from_numpy(_key(archive, path, "y").astype(np.int64))
        data.num_classes = int(_key(archive, path, "num_classes"))
        data.name = name
        for key in MASKS:
            if key in archive.files:
                data[key] = torch.from_numpy(archive[key])
        if features != "none" and "x_data" in archive.files:
            parts = [
                _key(archive, path, f"x_{part}")
                for part in ("data", "indices", "indptr", "shape")
            ]
            try:
                x = csr(
                    parts[0], parts[1], parts[2], (int(parts[3][0]), int(parts[3][1]))
                )
            except RuntimeError as error:
                raise DataError(
                    f"{path}: the features are no CSR matrix: {error}"
                ) from None
            data.x = x.to_dense() if features == "dense" else x
    return data


def load_graphs(name: str, folder: str | Path | None = None) -> list[Data]:
    """Return a data set of many graphs.

    Args:
        name: One of ``GRAPH_SETS``.
        folder: The data folder; by default the environment variable AUDITDP_DATA names it.

    Returns:
        For each graph data as of ``load``, without features (``gnn.datasets.features`` makes some), with ``y`` (int64,
        shape (1,)) where the data set has labels.

    Raises:
        ConfigurationError: If there is no such data set or file.
        DataError: If the file does not follow the schema.
    """
    if name in NODE_SETS:
        raise ConfigurationError(
            f"the data set {name!r} has one graph; use load({name!r})"
        )
    path = find(name, folder)
    try:
        found = graphs.load_graphs(path)
    except MechanismError as error:
        raise DataError(str(error)) from None
    with np.load(path, allow_pickle=False) as archive:
        labels = archive["y"].astype(np.int64) if "y" in archive.files else None
    if labels is None:
        return [to_data(graph) for graph in found]
    return [
        to_data(graph, y=torch.tensor([y]))
        for graph, y in zip(found, labels.tolist(), strict=True)
    ]


def _key(archive: Any, path: Path, key: str) -> np.ndarray:
    if key not in archive.files:
        raise DataError(
            f"{path}: not a data set of the expected schema, it lacks {key}"
        )
    return np.asarray(archive[key])
