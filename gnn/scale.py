"""``python -m gnn.scale NAME``: time and memory of large computations.

Memory is the most that the process has held, libraries (some .5 GiB) included. Times are wall times beside processor times.
On a GPU memory is what torch has allocated there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

from gnn.datasets import load, paper_split
from gnn.pipelines.dpar import DPARParameters, fit_dpar
from gnn.pipelines.lpgnn import Parameters, lpgnn
from gnn.pipelines.lpgnn.features import reports
from gnn.pipelines.lpgnn.propagation import (
    PropagatedFeatures,
    k_prop,
    normalised_adjacency,
)
from gnn.pipelines.parts import part
from gnn.randomness import device_of
from gnn.training import evaluate

Measured = dict[str, float]
GIB = 2.0**30
REPEATS = 20


def peak_memory(device: torch.device) -> float:
    """Return the most memory that this process has held, in GiB; on a GPU that of the device.

    Note:
        Of the process it is Linux's VmHWM: ``getrusage`` also counts what the parent held when it started this one.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / GIB
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / GIB
    raise OSError("/proc/self/status has no VmHWM; memory is measured on Linux alone")


def lpgnn_facebook(device: str, epochs: int) -> Measured:
    """LPGNN on Facebook at ε_x = ε_y = 1 with the published settings, from raw data in memory to test accuracy."""
    data, generator = load("facebook"), torch.Generator().manual_seed(0)
    split = paper_split("lpgnn", data.y, generator=generator)
    parameters = Parameters(
        steps_features=2,
        steps_labels=4,
        learning_rate=0.001,
        weight_decay=0.01,
        epochs=epochs,
    )
    started = time.perf_counter()
    _, record = lpgnn(data, parameters, split=split, generator=generator, device=device)
    return {
        "seconds": time.perf_counter() - started,
        "accuracy": record.test_accuracy,
        "nodes": float(len(data.y)),
    }


def dpar_physics(device: str, epochs: int) -> Measured:
    """DPAR-EM0 on Physics, from the split to the test accuracy by power iteration, as published."""
    data, generator = load("coauthor_physics"), torch.Generator().manual_seed(0)
    split = paper_split("dpar", data.y, generator=generator)
    started = time.perf_counter()
    training, test = part(data, split.training), part(data, split.test)
    parameters = DPARParameters(epsilon=8.0, delta=1e-4, method="EM0", epochs=epochs)
    model, _ = fit_dpar(
        training,
        parameters,
        classes=int(data.num_classes),
        generator=generator,
        device=device,
    )
    accuracy = evaluate(model, test, torch.arange(len(split.test)), device=device)
    return {
        "seconds": time.perf_counter() - started,
        "accuracy": accuracy,
        "nodes": float(len(data.y)),
    }


def features_physics(device: str, epochs: int) -> Measured:
    """Multi-bit reports of all nodes of Physics, KProp times 32 units, and KProp as a dense matrix; on the CPU."""
    data, generator = load("coauthor_physics"), torch.Generator().manual_seed(0)
    nodes, width = data.x.shape
    started = time.perf_counter()
    sent = reports(
        data, Parameters(epsilon_features=1.0, scaling="clip"), generator=generator
    )
    operator = normalised_adjacency(data.edge_index, nodes)
    features = PropagatedFeatures(
        sent.encoded, operator, 2, scale=sent.scale, shift=sent.shift
    )
    features.product(torch.randn(32, width, generator=generator))
    k_prop(operator, sent.encoded.to_dense().mul_(sent.scale).add_(sent.shift), 2)
    return {
        "seconds": time.perf_counter() - started,
        "nodes": float(nodes),
        "features": float(width),
    }


def kprop_bandwidth(device: str, epochs: int) -> Measured:
    """Measure a step of KProp on Physics with 32 units in bytes a second.

    A step reads the operator (CSR: values, columns, row starts) and x once, and writes its result once.
    """
    place, data = device_of(device), load("coauthor_physics", features="none")
    nodes = int(data.num_nodes or 0)
    operator = normalised_adjacency(data.edge_index, nodes).to(place)
    x = torch.rand(nodes, 32, device=place)
    parts = (operator.values(), operator.col_indices(), operator.crow_indices(), x, x)
    moved = sum(each.numel() * each.element_size() for each in parts)
    source = torch.rand(2**26, device=place)
    target = torch.empty_like(source)
    return {
        "bytes a second": moved / _median_time(lambda: operator @ x, place),
        "copied a second": 2
        * source.numel()
        * source.element_size()
        / _median_time(lambda: target.copy_(source), place),
    }


def _median_time(call: Callable[[], object], place: torch.device) -> float:
    """The median of ``REPEATS`` wall times, after one call that is not counted."""
    times = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        call()
        if place.type == "cuda":
            torch.cuda.synchronize(place)
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


MEASUREMENTS: dict[str, tuple[Callable[[str, int], Measured], int]] = {
    "lpgnn-facebook": (lpgnn_facebook, 500),
    "dpar-physics": (dpar_physics, 200),
    "features-physics": (features_physics, 1),
    "kprop-bandwidth": (kprop_bandwidth, 1),
}
"""The measurements, with their numbers of epochs."""


def main() -> None:
    """Print one measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=MEASUREMENTS)
    parser.add_argument("--epochs", type=int, help="by default those of the papers")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    measure, epochs = MEASUREMENTS[given.name]
    started = time.process_time()
    found = measure(given.device, given.epochs or epochs)
    found |= {
        "epochs": given.epochs or epochs,
        "threads": given.threads,
        "cpu seconds": time.process_time() - started,
    }
    print(json.dumps(found | {"peak memory": peak_memory(device_of(given.device))}))


if __name__ == "__main__":
    main()
