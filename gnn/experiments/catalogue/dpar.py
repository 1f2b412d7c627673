"""DPAR's table and figures: accuracy of private node classification, with the baselines, as published and repaired."""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from gnn.experiments.execute import files_of
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
    Value,
)
from gnn.experiments.published import Published, dpar

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data

    from gnn.datasets.splits import Split

FILES = {
    "Cora-ML": "cora_ml.npz",
    "CS": "coauthor_cs.npz",
    "Physics": "coauthor_physics.npz",
}
DPAR_METHODS = ("DPAR-EM0", "DPAR-EM1", "DPAR-GM")
EXACT, GAP_EDGE, ONE_HOT = "DPAR", "GAP (edge)", "Features (Algorithm 2)"
METHODS = (*dpar.METHODS, GAP_EDGE, EXACT)
"""``EXACT`` is DPAR without noise, where EM0, EM1 and GM are one; the source has no GAP at edge level. ``ONE_HOT``, which is
Features as the special case of DPAR whose rows name themselves, is in an experiment of its own."""
RANDOM, WHOLE, COMMUNITIES = "random", "random, in the whole graph", "communities"
"""Which nodes are tested, and on which graph.

The source says: a random fifth, on the graph of test nodes alone. Its published code tests on one of nine parts that METIS
cuts.
"""
COUNTS, BINARY = "counts", "binary"
"""CS and Physics count words; torch-geometric's copies of them say which words there are."""
AUDITS = {
    "GAP": "audits/audit_accounting_baselines.py::gap_node",
    GAP_EDGE: "audits/audit_accounting_baselines.py::gap_edge",
    "SAGE": "audits/audit_accounting_baselines.py::sage_node_level",
    "Features": "audits/audit_accounting_baselines.py::features",
}
PIPELINES = {
    "GAP": ("audits/audit_trainers_graphs.py::gap_node_displaced",),
    "SAGE": (
        "audits/audit_trainers_deployed.py::sage_model",
        "audits/audit_trainers_graphs.py::sage_node_displaced",
    ),
}
"""Audits of the pipelines, with the sampler of neighbours that the certificates of the
accounting omit."""
DPAR_MODEL = "audits/audit_trainers_deployed.py::dpar_model"
DPAR_PUBLISHED = "audits/audit_accounting_dpar.py::dpar_sensitivity"
DPAR_REPAIRED = "audits/audit_accounting_dpar.py::subsample_fixed_size"
FIELDS = (
    "share",
    "rate",
    "pagerank_rows",
    "k",
    "tau",
    "columns",
    "others",
    "epochs",
    "batch",
    "entry_clip",
    "row_clip",
    "clipping_norm",
)
"""Factors that are parameters of DPAR."""


def parameters_of(setting: Parameters) -> dict[str, Any]:
    """Return the arguments of ``DPARParameters`` for a setting.

    A factor "clip" is C₂ for EM and C₁ for GM; "pagerank epsilon" and "training epsilon" are parts of a sum.
    """
    method = str(setting["method"])
    found: dict[str, Any] = {name: setting[name] for name in FIELDS if name in setting}
    if "clip" in setting:
        found["row_clip" if method == "DPAR-GM" else "entry_clip"] = setting["clip"]
    if "pagerank epsilon" in setting:
        pagerank, training = (
            float(setting["pagerank epsilon"]),
            float(setting["training epsilon"]),
        )
        found |= {
            "epsilon": pagerank + training,
            "share": pagerank / (pagerank + training),
        }
    else:
        found["epsilon"] = float(setting["epsilon"])
    if (
        method == ONE_HOT
    ):  # one row is left to DP-APPR, with next to nothing of the budget
        found |= {"pagerank_rows": 1, "k": 1, "share": 0.001}
    return found | {
        "delta": dpar.DELTAS[str(setting["data"])],
        "method": "EM0" if method in (EXACT, ONE_HOT) else method.removeprefix("DPAR-"),
        "accounting": setting.get(FORM, "published"),
    }


def prepared(
    name: str, seed: int, *, test: str = RANDOM, features: str = COUNTS
) -> tuple[Data, Split, torch.Generator]:
    """Return a data set, its split, and the generator of all later steps."""
    import torch

    from gnn.datasets import community_split, load, paper_split

    generator = torch.Generator().manual_seed(seed)
    data = load(FILES[name].removesuffix(".npz"))
    if features == BINARY:
        data.x.values().fill_(1.0)
    if test == COMMUNITIES:
        return data, community_split(data, 1 / 9, generator=generator), generator
    return data, paper_split("dpar", data.y, generator=generator), generator


def accuracy_of(setting: Parameters, seed: int, device: str) -> Metrics:
    """Train a method on 80 % of the nodes and test it on the graph of the others."""
    import torch

    from gnn.pipelines.dpar import DPARParameters, fit_dpar
    from gnn.pipelines.features import FeaturesParameters, fit_features
    from gnn.pipelines.gap import GAPParameters, fit_gap
    from gnn.pipelines.parts import PrivateRecord, part
    from gnn.pipelines.sage_dp import SAGEParameters, fit_sage
    from gnn.training import evaluate, largest_share

    tests = str(setting.get("test nodes", RANDOM))
    features = str(setting.get("features", COUNTS))
    data, split, generator = prepared(
        str(setting["data"]), seed, test=tests, features=features
    )
    training, test = (
        part(data, split.training),
        data if tests == WHOLE else part(data, split.test),
    )
    common: dict[str, Any] = {
        "classes": int(data.num_classes),
        "generator": generator,
        "device": device,
    }
    started = time.process_time()
    model: torch.nn.Module
    record: PrivateRecord
    method = str(setting["method"])
    if method in (*DPAR_METHODS, EXACT, ONE_HOT):
        model, record = fit_dpar(
            training, DPARParameters(**parameters_of(setting)), **common
        )
    else:
        budget: dict[str, Any] = {
            "epsilon": float(setting["epsilon"]),
            "delta": dpar.DELTAS[str(setting["data"])],
        }
        size: dict[str, Any] = {
            "batch": int(setting["baseline batch"]),
            "epochs": int(setting["baseline epochs"]),
        }
        if method == "Features":
            model, record = fit_features(
                training, FeaturesParameters(**budget, **size), **common
            )
        elif method == "SAGE":
            steps = size["epochs"] * math.ceil(len(split.training) / size["batch"])
            model, record = fit_sage(
                training,
                SAGEParameters(**budget, batch=size["batch"], steps=steps),
                **common,
            )
        else:
            size["level"] = "edge" if method == GAP_EDGE else "node"
            model, record = fit_gap(training, GAPParameters(**budget, **size), **common)
    tested = split.test if tests == WHOLE else torch.arange(len(split.test))
    found = {
        "accuracy": evaluate(model, test, tested, device=device),
        LARGEST: evaluate(model, test, tested, score=largest_share, device=device),
        "training": time.process_time() - started,
        "peak memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    optional = {
        "noise": max(
            record.noise.get(name, 0.0) for name in ("training", "trainings", "network")
        ),
        "rows of a node": record.counts.get("rows of a node", 0),
    }
    return found | {
        name: value
        for name, value in optional.items()
        if value and math.isfinite(value)
    }


def guarantee(setting: Parameters) -> Guarantee:
    """Return ε that is printed for a setting, and the audit that is about it.

    The published form of DPAR has none that an audit supports.
    """
    if "pagerank epsilon" in setting:
        epsilon = float(setting["pagerank epsilon"]) + float(
            setting["training epsilon"]
        )
    else:
        epsilon = float(setting["epsilon"])
    if math.isinf(epsilon):
        return Guarantee(None)
    method = str(setting["method"])
    if method in AUDITS:
        return Guarantee(
            epsilon, AUDITS[method], supports=epsilon, others=PIPELINES.get(method, ())
        )
    if setting.get(FORM) == REPAIRED:
        return Guarantee(epsilon, DPAR_REPAIRED, supports=epsilon)
    return Guarantee(epsilon, DPAR_PUBLISHED, others=(DPAR_MODEL,))


def published(setting: Parameters, metric: str) -> Published | None:
    """Return the number of Table 1."""
    if metric != "accuracy":
        return None
    data, epsilon = str(setting["data"]), float(setting["epsilon"])
    method = "Features" if setting["method"] == ONE_HOT else str(setting["method"])
    if math.isinf(epsilon):
        return dpar.NON_PRIVATE.get((data, method))
    return dpar.ACCURACY.get((data, method, epsilon))


def in_table(setting: Parameters) -> bool:
    """Return True if Table 1 has the setting; GAP at edge level is beside it."""
    without_noise = setting["method"] in dpar.NON_PRIVATE_METHODS
    return (
        without_noise
        if math.isinf(float(setting["epsilon"]))
        else setting["method"] != EXACT
    )


def in_test_nodes(setting: Parameters) -> bool:
    """Return True if a setting is run; some run on one data set only."""
    data, method, tested = setting["data"], setting["method"], setting["test nodes"]
    if setting["features"] == BINARY and (data, tested) != ("CS", WHOLE):
        return False
    if method in ("DPAR-EM0", "DPAR-GM") and (data, tested) != ("Cora-ML", COMMUNITIES):
        return False
    return (method == EXACT) == math.isinf(float(setting["epsilon"]))


def repairable(setting: Parameters) -> bool:
    """Return True if there is a repaired accounting: for DPAR with noise."""
    return setting["method"] in DPAR_METHODS


METRICS = (
    Metric("accuracy"),
    Metric(LARGEST),
    Metric("noise"),
    Metric("rows of a node"),
    Metric("training", "CPU s"),
    Metric("peak memory", "MiB"),
)
NOTE = (
    "The published form has the noise of its theorems, by an exact accountant where they leave a constant open. The audits "
    "refute three steps of the published argument: sensitivity τC (dpar_sensitivity), qε for a sample of nodes "
    "(subsample_naive), and, where M rows alone are trained on, batches that are counted as of all nodes "
    "(dpar_batches_of_rows); for a node that is added or removed also the δ of rows that are sampled among the "
    "nodes (dp_appr_em_deployed). The repaired form has noise for two rows a node, and ln(1 + q(e^ε − 1)). Noise "
    "is the multiplier of DP-SGD, over C; peak memory is that of the process so far. The paper does not say what "
    "the nodes without a private row are trained with; as in its published code, it is themselves alone."
)


_experiment = partial(
    Experiment,
    metrics=METRICS,
    cell=accuracy_of,
    repetitions={"quick": 1, "paper": 3},
    files=files_of(FILES),
    guarantee=guarantee,
)


def _figure(
    name: str,
    title: str,
    source: str,
    varied: Sequence[Factor],
    *,
    data: tuple[str, ...] = ("Cora-ML",),
    statement: str = "",
    x: str = "",
    log_x: bool = False,
    panels: tuple[str, ...] = (),
    repaired: bool = True,
) -> Experiment:
    """An experiment with DPAR's three methods on common random draws."""
    names = {factor.name for factor in varied}
    epsilon = (
        () if names & {"epsilon", "pagerank epsilon"} else (Factor("epsilon", (8.0,)),)
    )
    factors = (
        Factor("data", data, quick=data[:1]),
        Factor("method", DPAR_METHODS, quick=DPAR_METHODS[:1]),
        *epsilon,
        *varied,
        Factor("epochs", (200,), quick=(100,)),
    )
    repairs: dict[str, Any] = {"repaired": repairable} if repaired else {}
    return _experiment(
        name=name,
        title=title,
        source=f"{dpar.SOURCE}, {source}",
        factors=factors,
        common=("method", *names, *([FORM] if repaired else [])),
        plots=(
            Plot(
                "accuracy",
                x=x,
                lines="method",
                panels=panels + ((FORM,) if repaired else ()),
                log_x=log_x,
            ),
        )
        if x
        else (),
        statements=tuple(each for each in dpar.STATEMENTS if each.source == statement),
        notes=NOTE,
        **repairs,
    )


def _values(*values: Value) -> tuple[Value, ...]:
    return values


EXPERIMENTS = (
    _experiment(
        name="dpar-table",
        title="Accuracy of DPAR, GAP, SAGE-DP and Features, inductive",
        source=f"{dpar.SOURCE}, Table 1",
        factors=(
            Factor("data", tuple(FILES), quick=("Cora-ML",)),
            Factor("epsilon", (1.0, 8.0, math.inf), quick=(8.0, math.inf)),
            Factor("method", METHODS),
            Factor("epochs", (200,), quick=(100,)),
            Factor("baseline batch", (256,)),
            Factor("baseline epochs", (20,), quick=(10,)),
        ),
        keep=in_table,
        common=("epsilon", "method", FORM),
        repaired=lambda setting: (
            repairable(setting) and not math.isinf(float(setting["epsilon"]))
        ),
        published=published,
        statements=(dpar.STATEMENTS[5],),
        notes=(
            f"{NOTE} MS Academic is the graph of CS under another name, and Reddit is not here. The baselines train 20 "
            "epochs of batches of 256 nodes, as the source does not state theirs; GAP at edge level protects edges alone. "
            "The certificates of GAP and SAGE-DP are for graphs whose out-degrees are bounded already; sampling neighbours, "
            "as here and there, does not give that for a node that brings edges."
        ),
    ),
    _experiment(
        name="dpar-features",
        title="Which training gives Features its accuracy",
        source=f"{dpar.SOURCE}, Table 1, Features",
        factors=(
            Factor("data", ("Cora-ML",)),
            Factor("epsilon", (1.0, 8.0), quick=(8.0,)),
            Factor("method", ("Features", ONE_HOT)),
            Factor("baseline batch", (60, 256, 1024)),
            Factor("baseline epochs", (20, 100, 200), quick=(20, 100)),
            Factor("epochs", (200,), quick=(100,)),
        ),
        keep=lambda setting: (
            (setting["baseline batch"], setting["baseline epochs"]) in ((256, 20),)
            if setting["method"] == ONE_HOT
            else (setting["baseline batch"], setting["baseline epochs"])
            in ((60, 200), (256, 20), (1024, 100))
        ),
        common=("epsilon", "method", "baseline batch", "baseline epochs"),
        published=published,
        notes=(
            "The source says that Features is Algorithm 2 with one-hot rows, and does not say how it is trained. "
            "Algorithm 2 draws 9 % of the nodes and spends ε/q on them, which the audits refute (subsample_naive); "
            f"Features by itself is DP-SGD on all nodes. {NOTE}"
        ),
    ),
    _experiment(
        name="dpar-test-nodes",
        title="How DPAR's accuracy depends on which nodes are tested",
        source=f"{dpar.SOURCE}, Table 1, and its published code",
        factors=(
            Factor("data", ("Cora-ML", "CS"), quick=("Cora-ML",)),
            Factor("epsilon", (1.0, 8.0, math.inf), quick=(8.0,)),
            Factor("method", (*DPAR_METHODS, EXACT), quick=("DPAR-EM1",)),
            Factor("test nodes", (RANDOM, WHOLE, COMMUNITIES)),
            Factor("features", (COUNTS, BINARY), quick=(COUNTS,)),
            Factor("epochs", (200,), quick=(100,)),
        ),
        repetitions={"quick": 1, "paper": 5},
        keep=in_test_nodes,
        common=("epsilon", "method", "test nodes", "features"),
        published=published,
        notes=(
            "The source tests a random fifth of the nodes, on the graph of these alone. Its published code cuts the graph "
            "into nine parts by METIS, trains on seven and tests on one; here Louvain communities stand in, a ninth of the "
            f"nodes or more, which keep their edges and have classes of their own. {NOTE}"
        ),
    ),
    _figure(
        "dpar-readings",
        "Which reading of DPAR's rows and columns gives its accuracy",
        "Table 1; readings of Algorithm 2 and of its published code",
        (
            Factor("epsilon", (1.0, 8.0), quick=(8.0,)),
            Factor("columns", _values("clipped", "scaled")),
            Factor("others", _values("identity", "none")),
        ),
        statement="Section 4",
        repaired=False,
    ),
    _figure(
        "dpar-pagerank-budget",
        "Accuracy against the budget of DP-APPR, that of DP-SGD being fixed",
        "Figure 1",
        (
            Factor("pagerank epsilon", (0.5, 1.0, 2.0, 4.0, 8.0), quick=(0.5, 8.0)),
            Factor("training epsilon", (4.0,)),
        ),
        statement="Figure 1",
        x="pagerank epsilon",
        log_x=True,
    ),
    _figure(
        "dpar-share",
        "Accuracy against the share of the budget that DP-APPR has",
        "Figures 2 to 6",
        (
            Factor("epsilon", (1.0, 8.0), quick=(8.0,)),
            Factor("share", (0.1, 0.3, 0.5, 0.7, 0.9), quick=(0.1, 0.9)),
        ),
        data=tuple(FILES),
        statement="Figures 2 to 6",
        x="share",
        panels=("data", "epsilon"),
    ),
    _figure(
        "dpar-clip",
        "Accuracy against what entries (EM) or rows (GM) are clipped to",
        "Figure 7",
        (Factor("clip", (1e-4, 1e-3, 1e-2, 1e-1, 1.0), quick=(1e-3, 1.0)),),
        x="clip",
        log_x=True,
    ),
    _figure(
        "dpar-k",
        "Accuracy against the number of entries of a row",
        "Figure 8",
        (Factor("k", (2, 4, 8, 16, 32), quick=(2, 16)),),
        statement="Figure 8",
        x="k",
        log_x=True,
    ),
    _figure(
        "dpar-batch",
        "Accuracy against the batch size of DP-SGD",
        "Figure 10",
        (Factor("k", (4,)), Factor("batch", (10, 60, 200), quick=(10, 60))),
        statement="Figure 10",
        x="batch",
        log_x=True,
        repaired=False,
    ),
    _figure(
        "dpar-gradient-clip",
        "Accuracy against what the norm of a gradient is clipped to",
        "Figure 11",
        (Factor("clipping_norm", (0.1, 1.0, 10.0), quick=(1.0, 10.0)),),
        statement="Figure 11",
        x="clipping_norm",
        log_x=True,
        repaired=False,
    ),
    _figure(
        "dpar-rows",
        "Accuracy against the number of private rows",
        "Figure 12",
        (
            Factor("epsilon", (1.0, 8.0), quick=(8.0,)),
            Factor("pagerank_rows", (2, 20, 70, 140, 216), quick=(2, 140)),
        ),
        statement="Figure 12",
        x="pagerank_rows",
        panels=("epsilon",),
    ),
)
