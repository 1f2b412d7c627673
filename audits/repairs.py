"""The cost of repaired accounting: accuracy at the printed ε, published and repaired.

Run as ``python -m audits.repairs reports``: the numbers are those of recorded cells.
"""

import argparse
import math
from collections import defaultdict
from pathlib import Path

import numpy as np

from gnn.experiments.record import read, record_path

EXPERIMENT, EPOCHS = "dpar-table", 200
"""Cells of fewer epochs are those of quicker runs."""
HEAD = """# What repairs cost

Written by `python -m audits.repairs reports` from the recorded cells of `{experiment}`: means over repetitions with the same
seeds, δ as the source prints it. The published form of DPAR has the noise of its theorems; the audits refute its sensitivity
(`dpar_sensitivity`, `dpar_gradients`), its amplification (`subsample_naive`) and the model that comes out (`dpar_model`).
The repaired form drops entries of the released matrix until a node is in two rows at most, has noise for the 2RC that its
gradients change by, and accounts for the draw of nodes by ln(1 + q(e^ε − 1)); each part is certified by an audit. The last
column is the accuracy without any noise.

| data | method | printed ε | published: accuracy | repaired: accuracy | × noise | no noise |
| --- | --- | --- | --- | --- | --- | --- |
"""


def rows(cells):
    """Yield the cells of a line for each data set, method and ε of which both forms were recorded.

    Args:
        cells: Records of finished cells.
    """
    found = defaultdict(list)
    for cell in cells:
        given = cell.parameters
        if cell.metrics and not cell.error and given["epochs"] == EPOCHS:
            found[
                given["data"], given["method"], float(given["epsilon"]), given["form"]
            ].append(cell.metrics)

    def mean(key, metric):
        return float(np.mean([metrics[metric] for metrics in found[key]]))

    for data, method, epsilon, form in list(found):
        published, repaired = (
            (data, method, epsilon, each) for each in ("published", "repaired")
        )
        if form != "repaired" or published not in found:
            continue
        clean = (data, "DPAR", math.inf, "published")
        yield [
            data,
            method,
            f"{epsilon:g}",
            f"{mean(published, 'accuracy'):.3f}",
            f"{mean(repaired, 'accuracy'):.3f}",
            f"{mean(repaired, 'noise') / mean(published, 'noise'):.1f}",
            f"{mean(clean, 'accuracy'):.3f}" if clean in found else "–",
        ]


def main():
    """Write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m audits.repairs", description=main.__doc__
    )
    parser.add_argument(
        "reports",
        type=Path,
        help="the folder of reports, with records below experiments/",
    )
    given = parser.parse_args()
    lines = [
        f"| {' | '.join(row)} |\n"
        for row in rows(read(record_path(given.reports, EXPERIMENT)).values())
    ]
    (given.reports / "repairs.md").write_text(
        HEAD.format(experiment=EXPERIMENT) + "".join(lines), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
