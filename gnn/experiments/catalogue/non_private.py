"""Accuracy without privacy on Cora, Citeseer and PubMed: are the networks and their trainer those of the literature?"""

from __future__ import annotations

from gnn.experiments.execute import data_folder, files_of
from gnn.experiments.experiment import Experiment, Factor, Metric, Metrics, Parameters
from gnn.experiments.published import Published, literature

FILES = {"Cora": "cora.npz", "Citeseer": "citeseer.npz", "PubMed": "pubmed.npz"}
PLAIN_INPUT = "GraphSAGE, input kept"
MODELS = ("GCN", "GAT", "GraphSAGE", PLAIN_INPUT)


def accuracy_of(parameters: Parameters, seed: int, device: str) -> Metrics:
    """Train a network on the public split with the settings of its paper, and test it."""
    import torch

    from gnn.datasets import load, public_split
    from gnn.datasets.features import rows_normalised
    from gnn.models import GAT, GCN, GraphSAGE
    from gnn.models.stack import Stack
    from gnn.training import Settings, evaluate, fit, higher_score

    generator = torch.Generator().manual_seed(seed)
    data = load(FILES[str(parameters["data"])].removesuffix(".npz"), data_folder())
    data.x = rows_normalised(data.x)
    sizes = data.x.shape[1], int(data.num_classes)
    epochs, kind = int(parameters["epochs"]), parameters["model"]
    model: Stack
    if kind == "GAT":
        model = GAT(
            *sizes, input_dropout=0.6, attention_dropout=0.6, generator=generator
        )
        dense = parameters["data"] == "PubMed"
        settings = Settings(
            epochs=5 * epochs,
            learning_rate=0.01 if dense else 0.005,
            weight_decay=0.001 if dense else 5e-4,
            patience=epochs // 2,
        )
    else:
        dropped = 0.0 if kind == PLAIN_INPUT else 0.5
        model = (GCN if kind == "GCN" else GraphSAGE)(
            *sizes, input_dropout=dropped, generator=generator
        )
        settings = Settings(epochs=epochs, weight_decay=5e-4, decayed="first")
    split = public_split(data)
    _, record = fit(
        model,
        data,
        split=split,
        generator=generator,
        settings=settings,
        better=higher_score,
        device=device,
    )
    return {
        "accuracy": 100 * evaluate(model, data, split.test, device=device),
        "epoch kept": record.chosen,
        "training": record.seconds,
    }


def published(parameters: Parameters, metric: str) -> Published | None:
    """Return the number of the literature."""
    key = str(parameters["data"]), str(parameters["model"]).partition(",")[0]
    return literature.ACCURACY.get(key) if metric == "accuracy" else None


EXPERIMENTS = (
    Experiment(
        name="non-private-accuracy",
        title="Accuracy without privacy on the public splits of the citation graphs",
        source=f"{literature.GCN}; {literature.GAT}; GraphSAGE as of {literature.SAGE}",
        factors=(
            Factor("data", tuple(FILES), quick=("Cora", "Citeseer")),
            Factor("model", MODELS),
            Factor("epochs", (200,)),
        ),
        metrics=(
            Metric("accuracy", "%"),
            Metric("epoch kept"),
            Metric("training", "s"),
        ),
        cell=accuracy_of,
        repetitions={"quick": 2, "paper": 10},
        files=files_of(FILES),
        published=published,
        notes=(
            "GCN and GAT have the settings of their papers: 16 units, dropout .5, weight decay 5e-4 in the first layer, 200 "
            "epochs of Adam with .01; and 8 heads of 8 units, dropout .6 of everything, weight decay 5e-4 (PubMed .001), "
            "Adam with .005 (PubMed .01), up to 1,000 epochs with patience 100, and one head in the last layer, where the "
            "paper has 8 for PubMed. GraphSAGE, with the mean of all neighbours, has those of GCN, and in rows of its own "
            "no dropout of its input, as its paper has none. The epoch with the highest validation accuracy is kept. "
            "Initial weights and dropout vary, the split does not."
        ),
    ),
)
