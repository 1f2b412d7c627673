"""Tiny experiments, and the ledger of this project's claims."""

from pathlib import Path

from gnn.experiments.catalogue import Catalogue
from gnn.experiments.experiment import (
    FORM,
    REPAIRED,
    Comparison,
    Experiment,
    Factor,
    Guarantee,
    Metric,
    Plot,
)
from gnn.experiments.privacy import Ledger
from gnn.experiments.published import Published, Statement

ROOT = Path(__file__).resolve().parents[4]
LEDGER = Ledger.read(ROOT / "reports" / "claims.json")


def is_ours(parameters):
    return parameters["method"] == "ours"


def cell(parameters, seed, device):
    """Return a number of the setting and, a little, of the seed; "broken" fails."""
    if parameters["method"] == "broken":
        raise ValueError("no convergence <here>")

    gain = 10 * is_ours(parameters) - 5 * (parameters[FORM] == REPAIRED)
    value = 50 + gain + parameters["epsilon"] + seed / 2**63
    return {"accuracy": value, "path": [(1, 1.0), (2, value)]}


def guarantee(parameters):
    audit = "audits/audit_edges.py::warner_rr" if is_ours(parameters) else ""
    return Guarantee(parameters["epsilon"], audit)


TOY = Experiment(
    name="toy",
    title="A toy | with a bar",
    source="Nobody (2020), Table 7",
    factors=(
        Factor("epsilon", (0.5, 1.0, 2.0), quick=(1.0, 2.0)),
        Factor("method", ("ours", "theirs")),
        Factor("epochs", (200,), quick=(3,)),
    ),
    metrics=(Metric("accuracy", "%"), Metric("path", curve="epoch"), Metric("unused")),
    cell=cell,
    repetitions={"quick": 2, "paper": 3},
    repaired=is_ours,
    published=lambda parameters, metric: (
        Published(61.5, "Table 7", 0.3) if is_ours(parameters) else None
    ),
    guarantee=guarantee,
    comparisons=(Comparison("accuracy", "method", "ours", "theirs", 0.003, "Table 7"),),
    plots=(
        Plot("accuracy", x="epsilon", lines="method"),
        Plot("path", lines="method", panels=("epsilon",), diagonal=True),
    ),
    statements=(
        Statement("Figure 1", "ours is best"),
        Statement("Figure 2", "a curve", verified=False),
    ),
)
BROKEN = Experiment(
    name="broken",
    title="One method fails",
    source="Nobody (2020), Table 8",
    factors=(Factor("epsilon", (1.0,)), Factor("method", ("ours", "broken"))),
    metrics=(Metric("accuracy"), Metric("path", curve="epoch")),
    cell=cell,
    repetitions={"quick": 1, "paper": 1},
    repaired=is_ours,
)
CATALOGUE = Catalogue.of(
    [TOY, BROKEN], {"absent": "needs torch, which is not installed"}
)
