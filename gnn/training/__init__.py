"""One loop that trains every model, with or without DP-SGD, and the metrics of a model."""

from gnn.training.examples import EgoGraphs, Examples, PageRankRows, Rows, ego_graphs
from gnn.training.fit import fit
from gnn.training.metrics import (
    accuracy,
    area_under_roc,
    f1,
    largest_share,
    macro_f1,
    micro_f1,
)
from gnn.training.prediction import evaluate, predict
from gnn.training.private import PrivateSettings, fit_private, noise_for
from gnn.training.record import Epoch, Record, Settings, higher_score, last, lower_loss

__all__ = [
    "EgoGraphs",
    "Epoch",
    "Examples",
    "PageRankRows",
    "PrivateSettings",
    "Record",
    "Rows",
    "Settings",
    "accuracy",
    "area_under_roc",
    "ego_graphs",
    "evaluate",
    "f1",
    "fit",
    "fit_private",
    "higher_score",
    "largest_share",
    "last",
    "lower_loss",
    "macro_f1",
    "micro_f1",
    "noise_for",
    "predict",
]
