"""LPGNN's two tables and its figures: features, learning algorithms, budgets, architectures, denoised labels."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from gnn.experiments.execute import data_folder, files_of
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
from gnn.experiments.published import Published, lpgnn, lpgnn_settings

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data

    from gnn.datasets.splits import Split

FILES = {
    "Cora": "cora.npz",
    "PubMed": "pubmed.npz",
    "Facebook": "facebook.npz",
    "LastFM": "lastfm_asia.npz",
}
LASTFM_WIDTH = 7842
"""Features of LastFM in the source, which the data folder lacks: the width of ad-hoc ones."""
STEPS = (0, 1, 2, 4, 8, 16)
RECORD = "audits/audit_labels.py::features_and_label"
LABEL = "audits/audit_labels.py::label_rr"
LABEL_BESIDE = "audits/audit_labels.py::label_beside_features"
ENCODER = "audits/audit_features.py::multi_bit_everybody"
SCALING = "audits/audit_features.py::min_max"


def setting(parameters: Parameters) -> dict[str, Any]:
    """Return the parameters of the pipeline for a setting of any of these grids."""
    data, features = str(parameters["data"]), str(parameters.get("features", "MBM"))
    epsilon_x = math.inf if features != "MBM" else float(parameters["epsilon_x"])
    epsilon_y = float(parameters["epsilon_y"])
    steps_features, steps_labels = lpgnn_settings.steps(data, epsilon_x, epsilon_y)
    scaling = "none"
    if data == "PubMed" and features == "MBM":
        scaling = "clip" if parameters.get(FORM) == REPAIRED else "population"
    return {
        "epsilon_features": epsilon_x,
        "epsilon_labels": epsilon_y,
        "features": features,
        "learning": parameters.get("learning", "Drop"),
        "model": parameters.get("model", "GraphSAGE"),
        "steps_features": steps_features,
        "steps_labels": steps_labels,
        "scaling": scaling,
        "width": LASTFM_WIDTH if data == "LastFM" else None,
        "epochs": int(parameters["epochs"]),
        **lpgnn_settings.fitting(data, features, epsilon_x, epsilon_y)._asdict(),
    }


def loaded(name: str) -> Data:
    """Return a data set; of LastFM the ten largest classes."""
    from gnn.datasets import load
    from gnn.datasets.conversion import restricted

    data = load(FILES[name].removesuffix(".npz"), data_folder())
    return restricted(data, data.lpgnn_top10_mask) if name == "LastFM" else data


def prepared(name: str, seed: int) -> tuple[Data, Split, torch.Generator]:
    """Return a data set, its random split, and the generator of all later steps."""
    import torch

    from gnn.datasets import paper_split

    generator, data = torch.Generator().manual_seed(seed), loaded(name)
    return data, paper_split("lpgnn", data.y, generator=generator), generator


def accuracy(parameters: Parameters, seed: int, device: str) -> Metrics:
    """Train LPGNN once, on a random split."""
    from gnn.pipelines.lpgnn import Parameters as Settings
    from gnn.pipelines.lpgnn import lpgnn as train

    data, split, generator = prepared(str(parameters["data"]), seed)
    _, record = train(
        data,
        Settings(**setting(parameters)),
        split=split,
        generator=generator,
        device=device,
    )
    return {
        "accuracy": 100 * record.test_accuracy,
        LARGEST: record.largest_share,
        "label accuracy": 100 * record.label_accuracy,
        "epoch kept": record.training.chosen,
        "training": record.training.seconds,
    }


def denoising(parameters: Parameters, seed: int, device: str) -> Metrics:
    """Label accuracy of KProp for every K."""
    import numpy as np

    from gnn.pipelines.lpgnn import denoised_labels, noisy_labels, normalised_adjacency
    from mechanisms.labels import LabelRR

    rng = np.random.default_rng(seed)
    data, split, _ = prepared(str(parameters["data"]), seed)
    response = LabelRR(float(parameters["epsilon_y"]), data.num_classes)
    noisy = noisy_labels(data.y, split, response, rng=rng)
    operator = normalised_adjacency(data.edge_index, int(data.num_nodes or 0))
    curve = []
    for steps in STEPS:
        found = denoised_labels(operator, noisy, data.num_classes, steps)[
            split.training
        ]
        reached = found >= 0
        curve.append(
            (
                steps,
                100 * float((found == data.y[split.training])[reached].float().mean()),
            )
        )
    return {"label accuracy": curve, "best label accuracy": max(y for _, y in curve)}


def guarantee(parameters: Parameters) -> Guarantee:
    """Return ε_x + ε_y of a node's features and label; of the label alone where features are not protected or not used."""
    epsilon_x, epsilon_y = (
        float(parameters["epsilon_x"]),
        float(parameters["epsilon_y"]),
    )
    if parameters.get("features", "MBM") != "MBM":
        return Guarantee(epsilon_y, LABEL, supports=epsilon_y)
    if math.isinf(epsilon_x):
        return (
            Guarantee(None)
            if math.isinf(epsilon_y)
            else Guarantee(epsilon_y, LABEL_BESIDE, supports=epsilon_y)
        )
    total = epsilon_x if math.isinf(epsilon_y) else epsilon_x + epsilon_y
    if scaled(parameters) and parameters.get(FORM) != REPAIRED:
        return Guarantee(total, SCALING)
    return Guarantee(
        total, ENCODER if math.isinf(epsilon_y) else RECORD, supports=total
    )


def scaled(parameters: Parameters) -> bool:
    """Return True if the published pipeline scales features by the population's range."""
    return (
        parameters["data"] == "PubMed"
        and parameters.get("features", "MBM") == "MBM"
        and not math.isinf(float(parameters["epsilon_x"]))
    )


def table_of_features(parameters: Parameters, metric: str) -> Published | None:
    """Return the accuracy that the source prints for features."""
    key = (str(parameters["features"]), str(parameters["data"]))
    return lpgnn.FEATURES.get(key) if metric == "accuracy" else None


def table_of_learning(parameters: Parameters, metric: str) -> Published | None:
    """Return the accuracy that the source prints for a learning algorithm."""
    key = (
        str(parameters["data"]),
        float(parameters["epsilon_y"]),
        str(parameters["learning"]),
    )
    return (
        lpgnn.LEARNING.get(key)
        if metric == "accuracy" and parameters["features"] == "MBM"
        else None
    )


METRICS = (
    Metric("accuracy", "%"),
    Metric(LARGEST),
    Metric("label accuracy", "%"),
    Metric("epoch kept"),
    Metric("training", "s"),
)
EPOCHS = Factor("epochs", (500,), quick=(60,))
NOTE = (
    "Random splits of 50/25/25 %, the same for all settings of a data set. Settings are those that the authors publish with "
    "their code. The printed ε is ε_x + ε_y of a node's features and label together, or ε_y where no feature of a user is "
    "used. Words of Cora and Facebook are there or not, so their bounds 0 and 1 are public; the published pipeline "
    "stretches PubMed's features by the range of the population, and the repaired row clips them to public bounds 0 and 1. "
    "Label accuracy is that of the labels that are learnt from, on training nodes."
)
LASTFM = "LastFM's features are not in the data folder: of it there are the rows that need none."
_experiment = partial(
    Experiment,
    metrics=METRICS,
    cell=accuracy,
    repetitions={"quick": 2, "paper": 10},
    files=files_of(FILES),
    guarantee=guarantee,
)
EXPERIMENTS = (
    _experiment(
        name="lpgnn-features",
        title="Accuracy of LPGNN with the multi-bit mechanism against features that need nothing of a user",
        source=f"{lpgnn.SOURCE}, table of ad-hoc features",
        factors=(
            Factor("data", lpgnn.DATA_SETS, quick=("Cora",)),
            Factor("features", ("Ones", "OHD", "RND", "MBM")),
            Factor("epsilon_x", (1.0,)),
            Factor("epsilon_y", (1.0,)),
            EPOCHS,
        ),
        keep=lambda parameters: (
            (parameters["data"], parameters["features"]) != ("LastFM", "MBM")
        ),
        common=("features", FORM),
        repaired=scaled,
        published=table_of_features,
        notes=f"{NOTE} {LASTFM}",
    ),
    _experiment(
        name="lpgnn-learning",
        title="Accuracy of LPGNN by learning algorithm: cross-entropy, forward correction and Drop",
        source=f"{lpgnn.SOURCE}, table of learning algorithms",
        factors=(
            Factor("data", ("Cora", "Facebook", "LastFM"), quick=("Cora",)),
            Factor("features", ("MBM", "OHD"), quick=("MBM",)),
            Factor("epsilon_x", (1.0,)),
            Factor("epsilon_y", (0.5, 1.0, 2.0), quick=(1.0, 2.0)),
            Factor("learning", lpgnn.LOSSES),
            EPOCHS,
        ),
        keep=lambda parameters: (
            (parameters["data"] == "LastFM") == (parameters["features"] == "OHD")
        ),
        common=("epsilon_y", "learning"),
        published=table_of_learning,
        plots=(Plot("accuracy", x="epsilon_y", lines="learning", panels=("data",)),),
        notes=f"{NOTE} {LASTFM} Here LastFM is learnt from degrees (OHD), which the source's table does not do.",
    ),
    _experiment(
        name="lpgnn-budgets",
        title="Accuracy of LPGNN by ε_x and ε_y",
        source=f"{lpgnn.SOURCE}, figure of varying budgets",
        factors=(
            Factor("data", ("Cora", "PubMed", "Facebook"), quick=("Cora",)),
            Factor(
                "epsilon_x", lpgnn_settings.EPSILON_FEATURES, quick=(0.1, 1.0, math.inf)
            ),
            Factor("epsilon_y", lpgnn_settings.EPSILON_LABELS, quick=(1.0, math.inf)),
            EPOCHS,
        ),
        repetitions={"quick": 1, "paper": 3},
        common=("epsilon_x", "epsilon_y", FORM),
        repaired=scaled,
        plots=(Plot("accuracy", x="epsilon_x", lines="epsilon_y", panels=("data",)),),
        statements=(lpgnn.STATEMENTS[1], lpgnn.STATEMENTS[3]),
        notes=NOTE,
    ),
    _experiment(
        name="lpgnn-architectures",
        title="Accuracy of LPGNN by architecture and ε_x",
        source=f"{lpgnn.SOURCE}, figure of base architectures",
        factors=(
            Factor("data", ("Facebook",), quick=("Cora",)),
            Factor("model", ("GCN", "GAT", "GraphSAGE")),
            Factor(
                "epsilon_x", lpgnn_settings.EPSILON_FEATURES, quick=(0.1, 1.0, math.inf)
            ),
            Factor("epsilon_y", (1.0,)),
            EPOCHS,
        ),
        repetitions={"quick": 1, "paper": 3},
        common=("model", "epsilon_x"),
        plots=(Plot("accuracy", x="epsilon_x", lines="model", panels=("data",)),),
        statements=(lpgnn.STATEMENTS[2],),
        notes=NOTE,
    ),
    _experiment(
        name="lpgnn-denoising",
        title="Accuracy of labels denoised by KProp against K",
        source=f"{lpgnn.SOURCE}, figure of denoised labels",
        factors=(
            Factor("data", ("Facebook", "Cora", "LastFM"), quick=("Cora",)),
            Factor("epsilon_y", (0.5, 1.0, 2.0, 3.0)),
        ),
        metrics=(
            Metric("label accuracy", "%", curve="steps K"),
            Metric("best label accuracy", "%"),
        ),
        cell=denoising,
        common=("epsilon_y",),
        guarantee=lambda parameters: Guarantee(
            float(parameters["epsilon_y"]),
            LABEL,
            supports=float(parameters["epsilon_y"]),
        ),
        plots=(Plot("label accuracy", lines="epsilon_y", panels=("data",)),),
        statements=(lpgnn.STATEMENTS[0],),
        notes="Training nodes that a noisy label reaches in K steps. K = 0 is randomised response alone.",
    ),
)
