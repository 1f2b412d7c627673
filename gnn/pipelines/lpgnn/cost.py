"""``python -m gnn.pipelines.lpgnn.cost DATA``: seconds and memory of each stage of LPGNN on a data set of the data folder.

Memory is the peak of the whole process so far, libraries (some 0.5 GiB) included. ``--dense`` also makes the matrix
S^K x′ that training does without, nodes × features float32, of the rectified reports.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gnn.datasets import NODE_SETS, load, paper_split
from gnn.pipelines.lpgnn.features import reports
from gnn.pipelines.lpgnn.parameters import Parameters
from gnn.pipelines.lpgnn.pipeline import lpgnn
from gnn.pipelines.lpgnn.propagation import PropagatedFeatures, k_prop, normalised_adjacency


def peak() -> float:
    """Return the most memory that this process has held, in GiB (Linux counts it in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Print the wall time, the processor time and the peak memory of a block."""
    wall, processor = time.perf_counter(), time.process_time()
    yield
    seconds, used = time.perf_counter() - wall, time.process_time() - processor
    print(f"{name:44} {seconds:8.1f} s, {used:8.1f} CPU s, peak memory {peak():.2f} GiB", flush=True)


def main() -> None:
    """Print what each stage costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", choices=NODE_SETS)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--steps", type=int, default=2, help="K_x; K_y is 4")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--dense", action="store_true", help="also make the propagated features as a dense matrix")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    generator = torch.Generator().manual_seed(0)
    parameters = Parameters(scaling="clip", steps_features=given.steps, epochs=given.epochs)
    with stage("data"):
        data = load(given.data)
    nodes, width = data.x.shape
    print(f"{given.data}: {nodes:,} nodes, {width:,} features, {data.edge_index.shape[1] // 2:,} edges")
    with stage("multi-bit reports of everybody"):
        sent = reports(data, parameters, generator=generator)
    with stage("KProp, ready to be multiplied"):
        operator = normalised_adjacency(data.edge_index, nodes)
        features = PropagatedFeatures(sent.encoded, operator, given.steps, scale=sent.scale, shift=sent.shift)
    with stage("product with 32 units"):
        features.product(torch.randn(32, width, generator=generator))
    split = paper_split("lpgnn", data.y, generator=generator)
    with stage(f"LPGNN from raw data, {given.epochs} epochs"):
        _, record = lpgnn(data, parameters, split=split, generator=generator)
    print(f"test accuracy {100 * record.test_accuracy:.1f} %, epoch {record.training.chosen} kept")
    if given.dense:
        with stage("multi-bit and KProp as a dense matrix"):
            full = sent.encoded.to_dense().mul_(sent.scale).add_(sent.shift)
            k_prop(operator, full, given.steps)


if __name__ == "__main__":
    main()
