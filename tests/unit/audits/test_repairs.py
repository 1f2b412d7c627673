"""The table of what repairs cost.

Means of both forms, of those of which both were recorded.
"""

import math

import pytest

pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from audits.repairs import rows
from gnn.experiments.record import CellRecord


def cell(method, epsilon, form, accuracy, noise, *, error="", epochs=200):
    return CellRecord(
        key=f"{method} {epsilon} {form} {accuracy}",
        experiment="dpar-table",
        version=1,
        parameters={
            "data": "Cora-ML",
            "method": method,
            "epsilon": epsilon,
            "form": form,
            "epochs": epochs,
        },
        repetition=0,
        root_seed=0,
        seed=0,
        device="cpu",
        seconds=1.0,
        metrics={"accuracy": accuracy, "noise": noise},
        error=error,
    )


def test_means_of_both_forms():
    cells = [
        cell("DPAR-EM0", 1, "published", 0.4, 2.0),
        cell("DPAR-EM0", 1, "published", 0.6, 2.0),
        cell("DPAR-EM0", 1, "repaired", 0.3, 9.0),
        cell("DPAR-EM0", 1, "repaired", 0.9, 9.0, error="crashed"),
        cell("DPAR-EM0", 1, "repaired", 0.8, 9.0, epochs=20),
        cell("DPAR-GM", 1, "repaired", 0.2, 9.0),
        cell("GAP", 1, "published", 0.2, 9.0),
        cell("DPAR", math.inf, "published", 0.7, 0.0),
    ]
    assert list(rows(cells)) == [
        ["Cora-ML", "DPAR-EM0", "1", "0.500", "0.300", "4.5", "0.700"]
    ]
