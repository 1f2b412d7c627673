"""DPRR's accuracy: a GIN on randomised neighbour lists, by ε, share of non-private users, allocation and reading."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from gnn.experiments.execute import data_folder
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
from gnn.experiments.published import dprr

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data

    from gnn.datasets.splits import Split


class DataSet(NamedTuple):
    """A data set of graphs: its file, the nodes of its largest graph, which is public, and the fractions of its split."""

    file: str
    nodes_max: int
    split: str


REDDIT, THREADS, DEEZER = "REDDIT-BINARY", "Reddit threads", "Deezer egos"
DATA_SETS = {
    REDDIT: DataSet("reddit_binary.npz", 3782, "dprr-reddit"),
    THREADS: DataSet("substitutes/reddit_threads_10k.npz", 97, "dprr-reddit"),
    DEEZER: DataSet("substitutes/deezer_egos.npz", 363, "dprr-stargazers"),
}
AUDITS = {
    "DPRR": ("audits/audit_edges.py::dprr", "audits/audit_edges.py::customised_dprr"),
    "RR": ("audits/audit_edges.py::warner_rr", "audits/audit_edges.py::customised_rr"),
    "LocalLap": (
        "audits/audit_edges.py::local_laplace",
        "audits/audit_edges.py::local_laplace",
    ),
}
"""Audits with everybody private, and in the customised setting. LocalLap's server reads
the same messages in both."""
NON_PRIVATE = ("NonPriv-Part", "NonPriv-Full")
USERS = "number of users alone"
"""The release without lists: only n, if the reading lets nodes know it."""
READINGS: dict[str, dict[str, Any]] = {
    "source": {},
    "n known": {"features": "size"},
    "lists of others": {"sums": "lists of others"},
    "sum readout": {"readout": "sum"},
    "LocalLap by rows": {"local_lap": "rows"},
}
"""Differences from the reading of the source."""


def released(parameters: Parameters) -> Any:
    """Return the release of a setting.

    Raises:
        MechanismError: If the repaired allocation leaves nothing of ε.
    """
    from gnn.pipelines.dprr import Release

    allocation = str(parameters.get("allocation", "published"))
    return Release(
        "NonPriv-Full"
        if parameters["mechanism"] == USERS
        else str(parameters["mechanism"]),
        float(parameters["epsilon"]),
        float(parameters["share"]),
        DATA_SETS[str(parameters["data"])].nodes_max,
        "within" if parameters.get(FORM) == REPAIRED else allocation,
        reading(parameters).get("local_lap", "pairs"),
    )


def reading(parameters: Parameters) -> Mapping[str, Any]:
    """Return the difference from the reading of the source."""
    return READINGS[str(parameters.get("reading", "source"))]


def budgets(parameters: Parameters) -> tuple[float, float]:
    """Return ε₁ and ε₂ of DPRR's published allocation on a data set."""
    epsilon = float(parameters["epsilon"])
    nodes_max = DATA_SETS[str(parameters["data"])].nodes_max
    first = max(math.sqrt(8 / (nodes_max - 1)), (1 - dprr.ALLOCATION) * epsilon)
    return first, dprr.ALLOCATION * epsilon


def repairable(parameters: Parameters) -> bool:
    """Return True if the published allocation exceeds ε and the repaired one is not empty."""
    if (
        parameters["mechanism"] != "DPRR"
        or parameters.get("allocation", "published") != "published"
    ):
        return False
    first, second = budgets(parameters)
    epsilon = float(parameters["epsilon"])
    return first + second > epsilon * (1 + 1e-9) and first < epsilon


def guarantee(parameters: Parameters) -> Guarantee:
    """Return the ε-edge LDP of a private user's list: ε₁ + ε₂ for DPRR; no claim where lists are public or not used."""
    mechanism, epsilon = str(parameters["mechanism"]), float(parameters["epsilon"])
    if mechanism in NON_PRIVATE:
        return Guarantee(None)
    audit = AUDITS[mechanism][float(parameters["share"]) > 0]
    over = (
        mechanism == "DPRR" and parameters.get("allocation", "published") == "published"
    )
    supports = (
        epsilon
        if parameters.get(FORM) == REPAIRED or not over
        else max(epsilon, sum(budgets(parameters)))
    )
    return Guarantee(epsilon, audit, supports=supports)


def prepared(
    parameters: Parameters, seed: int
) -> tuple[list[Data], Split, torch.Generator]:
    """Return a setting's graphs, their split, and the generator of later steps."""
    import numpy as np
    import torch

    from gnn.datasets import load_graphs, paper_split

    data = DATA_SETS[str(parameters["data"])]
    generator = torch.Generator().manual_seed(seed)
    found = load_graphs(
        data.file.removesuffix(".npz").rpartition("/")[2], data_folder()
    )
    found = [
        graph for graph in found if graph.num_nodes <= float(parameters["largest"])
    ]
    number = int(min(float(parameters["graphs"]), len(found)))
    chosen = np.random.default_rng(seed).choice(len(found), number, replace=False)
    graphs = [found[k] for k in np.sort(chosen)]
    split = paper_split(
        data.split, torch.cat([graph.y for graph in graphs]), generator=generator
    )
    return graphs, split, generator


def classified(parameters: Parameters, seed: int, device: str) -> Metrics:
    """Train a GIN on the messages that the server receives, and test it."""
    from gnn.pipelines.dprr import GINParameters, fit_gin

    graphs, split, generator = prepared(parameters, seed)
    if parameters["mechanism"] == USERS:
        for graph in graphs:
            graph.edge_index = graph.edge_index[:, :0]
    patience = float(parameters["patience"])
    settings = GINParameters(
        layers=int(parameters["layers"]),
        hidden=int(parameters["hidden"]),
        dropout=float(parameters["dropout"]),
        **{
            name: value
            for name, value in reading(parameters).items()
            if name != "local_lap"
        },
        epochs=int(parameters["epochs"]),
        patience=None if math.isinf(patience) else int(patience),
    )
    started = time.process_time()
    _, record = fit_gin(
        graphs,
        released(parameters),
        settings,
        split=split,
        generator=generator,
        device=device,
    )
    return {
        "accuracy": record.accuracy,
        "AUC": record.area,
        LARGEST: record.largest_share,
        "ones": record.arcs,
        "|d̃ − d|": record.degree_error,
        "epoch kept": record.training.chosen,
        "time": time.process_time() - started,
    }


def files(parameters: Parameters) -> Sequence[str]:
    """Return the file of the data set."""
    return (DATA_SETS[str(parameters["data"])].file,)


def sensible(parameters: Parameters) -> bool:
    """Return True if a combination is a setting."""
    mechanism, share = parameters["mechanism"], float(parameters["share"])
    return (
        share > 0
        if mechanism == "NonPriv-Part"
        else share == 0 or mechanism != "NonPriv-Full"
    )


METRICS = (
    Metric("accuracy"),
    Metric("AUC"),
    Metric(LARGEST),
    Metric("ones"),
    Metric("|d̃ − d|"),
    Metric("epoch kept"),
    Metric("time", "CPU s"),
)
MODEL = (
    Factor("graphs", (math.inf,), quick=(500,)),
    Factor("largest", (math.inf,), quick=(1000,)),
    Factor("layers", (5,)),
    Factor("hidden", (64,), quick=(32,)),
    Factor("dropout", (0.5,)),
    Factor("epochs", (500,), quick=(25,)),
    Factor("patience", (100,)),
)
NOTE = (
    "GIN-0 on constant features, mean readout, batches of 64, Adam with learning rate .01 halved every 50 epochs, and the "
    "epoch with the lowest validation loss. The source chooses layers, units, learning rate and dropout by the validation "
    "graphs in each case, out of 96; here they are those of the published code. A node sums over its own list, as the "
    "source's adjacency matrix does. Ones is the mean number of ones in all lists of a graph, and |d̃ − d| the mean error "
    "of a degree. Settings are compared on the same graphs and splits. The printed ε is for one bit of a private user's "
    "list; edges to non-private users are in the clear. REDDIT-MULTI-5K and Github StarGazers are not in the data folder: "
    "Reddit threads and Deezer egos, small graphs of the same kinds, stand in for them; n_max, on which the allocation "
    "depends, is that of each whole data set: 3,782, 97 and 363. The quick profile has fewer graphs, none larger than "
    "1,000 nodes, half as many units and 25 epochs."
)
NO_LIST = "Where ε₁ alone exceeds ε there is no repaired row: the allocation leaves nothing for the list."
COMMON = ("mechanism", "epsilon", "share", FORM)
ALL = tuple(DATA_SETS)
_experiment = partial(
    Experiment,
    metrics=METRICS,
    cell=classified,
    repetitions={"quick": 2, "paper": 10},
    files=files,
    guarantee=guarantee,
)
EXPERIMENTS = (
    _experiment(
        name="dprr-share",
        title="Accuracy of graph classification against the share of non-private users, ε = 1",
        source=f"{dprr.SOURCE}, Figure 4",
        factors=(
            Factor("data", ALL),
            Factor("epsilon", (1.0,)),
            Factor("share", dprr.NON_PRIVATE_SHARES),
            Factor("mechanism", ("DPRR", "RR", "LocalLap", *NON_PRIVATE)),
            *MODEL,
        ),
        keep=sensible,
        common=COMMON,
        repaired=repairable,
        plots=tuple(
            Plot(name, x="share", lines="mechanism", panels=("data", FORM))
            for name in ("accuracy", "AUC")
        ),
        statements=dprr.STATEMENTS[:3],
        notes=f"{NOTE} {NO_LIST}",
    ),
    _experiment(
        name="dprr-epsilon",
        title="Accuracy of graph classification against ε, everybody private",
        source=f"{dprr.SOURCE}, Figure 5",
        factors=(
            Factor("data", ALL),
            Factor("share", (0.0,)),
            Factor("epsilon", dprr.EPSILONS),
            Factor("mechanism", ("DPRR", "RR", "LocalLap")),
            *MODEL,
        ),
        common=COMMON,
        repaired=repairable,
        plots=tuple(
            Plot(
                name, x="epsilon", lines="mechanism", panels=("data", FORM), log_x=True
            )
            for name in ("accuracy", "AUC")
        ),
        statements=(dprr.STATEMENTS[2],),
        notes=f"{NOTE} {NO_LIST}",
    ),
    _experiment(
        name="dprr-allocation",
        title="Accuracy of graph classification under DPRR by how ε is shared between degree and list",
        source=f"{dprr.SOURCE}, Figure 6",
        factors=(
            Factor("data", (THREADS, DEEZER)),
            Factor("share", (0.0,)),
            Factor("mechanism", ("DPRR",)),
            Factor("epsilon", dprr.ALLOCATION_EPSILONS),
            Factor("allocation", ("published", "1:9")),
            *MODEL,
        ),
        common=(*COMMON, "allocation"),
        repaired=repairable,
        plots=(
            Plot(
                "accuracy",
                x="epsilon",
                lines="allocation",
                panels=("data", FORM),
                log_x=True,
            ),
        ),
        statements=(dprr.STATEMENTS[3],),
        notes=(
            f"{NOTE} The published allocation spends more than the ε under which it is compared with 1 : 9 wherever the two "
            f"differ; 1 : 9 spends ε. {NO_LIST}"
        ),
    ),
    _experiment(
        name="dprr-readings",
        title="Which details decide the ranking: what nodes know, whom they sum over, what LocalLap's server does, readout",
        source=f"{dprr.SOURCE}, Section V-A and its published code",
        factors=(
            Factor("data", (REDDIT, THREADS)),
            Factor("epsilon", (1.0,)),
            Factor("share", (0.0, 0.2), quick=(0.0,)),
            Factor("reading", tuple(READINGS)),
            Factor("mechanism", ("DPRR", "RR", "LocalLap", "NonPriv-Full")),
            *MODEL,
        ),
        keep=lambda setting: (
            sensible(setting)
            and (
                setting["reading"] != "LocalLap by rows"
                or setting["mechanism"] == "LocalLap"
            )
        ),
        common=(*COMMON[:3], "reading"),
        statements=dprr.STATEMENTS[:3],
        notes=(
            f"{NOTE} Readings: of the source; every node knows the number n of users, which the server knows anyway and "
            "which alone tells the two classes of REDDIT-BINARY apart with an AUC of .78 (Reddit threads: .67); sums over "
            "the lists that name a node instead of its own, which no mechanism preserves; the sum in place of the mean as "
            "readout, which grows with n; LocalLap by rows, where every private user's list has as many ones as the user's "
            "own noisy degree, as DPRR's has in expectation. Lists under RR have (n − 1)/(1 + e^ε) wrong ones, so that "
            "their degrees tell n."
        ),
    ),
)
