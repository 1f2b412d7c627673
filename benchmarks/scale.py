"""``python -m benchmarks.scale``: time and memory of whole-graph releases from 10⁴ edges to those of Orkut, 117 million.

Every size is generated and every release is measured in a process of its own: CPU seconds of the release alone, and the
process's peak of memory, with the graph. Beside DPRR stand the largest-cell mechanisms, and what dense randomised response
would need: its n²/(1 + e^ε) flips, at the cost of a flip that was measured at ``DENSE`` edges.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.cells import distinct
from mechanisms.edges import DPRR, LapGraph, LocalLaplaceGraph, RandomisedResponse
from mechanisms.graphs import Graph
from mechanisms.neighbour_lists import PackedLists

ORKUT_NODES, ORKUT_EDGES = 3_072_441, 117_185_083
SIZES = (10**4, 10**5, 10**6, 10**7, ORKUT_EDGES)
DENSE = 10**5
"""Edges up to which dense randomised response is measured; beyond, it is predicted."""
EPSILON = 1.0
SKEW = 1.6
"""Node k has an expected degree in proportion to (k/n)^(1/SKEW − 1); the largest of Orkut's size is about Orkut's 33,313."""
MECHANISMS = ("DPRR", "LapGraph", "LocalLap", "RR")
GIGABYTE = 1e9


def generate(edges: int, folder: Path, rng: np.random.Generator) -> None:
    """Write the neighbour lists of a random graph with a given number of edges.

    Both ends of an edge are drawn in proportion to weights of a power law; loops and repetitions are drawn again.
    """
    nodes = round(edges * ORKUT_NODES / ORKUT_EDGES)
    keys = np.empty(0, np.int64)
    while len(keys) < edges:
        ends = (nodes * rng.random((2, edges - len(keys) + 16)) ** SKEW).astype(
            np.int64
        )
        low, high = ends.min(axis=0), ends.max(axis=0)
        keys = distinct(np.concatenate([keys, (low * nodes + high)[low < high]]))
    keys = np.delete(keys, rng.choice(len(keys), len(keys) - edges, replace=False))
    lists = PackedLists.of(Graph(nodes, np.stack(np.divmod(keys, nodes))))
    np.save(folder / "starts.npy", lists.starts)
    np.save(folder / "targets.npy", lists.targets)


def measure(mechanism: str, folder: Path, rng: np.random.Generator) -> dict[str, Any]:
    """Release the graph of a folder once, and return the cost."""
    lists = PackedLists(np.load(folder / "starts.npy"), np.load(folder / "targets.npy"))
    nodes, arcs = lists.nodes, len(lists.targets)
    graph = None if mechanism == "DPRR" else _graph(lists)
    if graph is not None:
        del lists
    wall, cpu = time.perf_counter(), time.process_time()
    if graph is None:
        released = len(DPRR.allocated(EPSILON, nodes).lists(lists, rng=rng).targets)
    else:
        kinds: dict[str, Any] = {
            "LapGraph": LapGraph(EPSILON, nodes),
            "LocalLap": LocalLaplaceGraph(EPSILON, nodes),
            "RR": RandomisedResponse(EPSILON),
        }
        noisy = kinds[mechanism].whole_graph(graph, rng=rng)
        released = (
            2 * noisy.edges.shape[1]
            if isinstance(noisy, Graph)
            else noisy.arcs.shape[1]
        )
    return {
        "mechanism": mechanism,
        "nodes": nodes,
        "edges": arcs // 2,
        "released": released,
        "CPU seconds": time.process_time() - cpu,
        "seconds": time.perf_counter() - wall,
        "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIGABYTE,
    }


def _graph(lists: PackedLists) -> Graph:
    sources = np.repeat(np.arange(lists.nodes), lists.sizes)
    later = sources < lists.targets
    return Graph(lists.nodes, np.stack([sources[later], lists.targets[later]]))


def predicted(rows: list[dict[str, Any]], nodes: int) -> dict[str, float]:
    """Return the predicted cost of dense randomised response on many nodes."""
    last = max(
        (row for row in rows if row["mechanism"] == "RR"), key=lambda row: row["nodes"]
    )
    flips = (nodes / last["nodes"]) ** 2
    memory = (
        16 * nodes**2 / (1 + math.exp(EPSILON)) / GIGABYTE
    )  # two ids of eight bytes an arc, that of the result alone
    return {"CPU seconds": last["CPU seconds"] * flips, "peak GB": memory}


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| mechanism | nodes | edges | released arcs | CPU s | peak GB |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(
        rows, key=lambda row: (MECHANISMS.index(row["mechanism"]), row["edges"])
    ):
        counts = (f"{row[name]:,}" for name in ("nodes", "edges", "released"))
        lines.append(
            f"| {' | '.join([row['mechanism'], *counts])} | {row['CPU seconds']:.2f} | {row['peak GB']:.2f} |"
        )
    for nodes, edges in sorted(
        {(row["nodes"], row["edges"]) for row in rows if row["edges"] > DENSE}
    ):
        need = predicted(rows, nodes)
        flips = nodes**2 / (1 + math.exp(EPSILON))
        lines.append(
            f"| RR, predicted | {nodes:,} | {edges:,} | {flips:,.0f} | {need['CPU seconds']:,.0f} | {need['peak GB']:,.1f} |"
        )
    return "\n".join(lines)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw time and memory against the number of edges, both on logarithmic axes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "scale"}):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        for axes, unit in zip(
            figure.subplots(1, 2), ("CPU seconds", "peak GB"), strict=True
        ):
            for name in MECHANISMS:
                found = sorted(
                    (row["edges"], row[unit])
                    for row in rows
                    if row["mechanism"] == name
                )
                if found:
                    axes.plot(*zip(*found, strict=True), marker="o", label=name)
            sizes = sorted(
                {(row["edges"], row["nodes"]) for row in rows if row["edges"] >= DENSE}
            )
            dense = [predicted(rows, nodes)[unit] for _, nodes in sizes]
            axes.plot(
                [edges for edges, _ in sizes],
                dense,
                linestyle="--",
                color="grey",
                label="RR, predicted",
            )
            axes.set(xscale="log", yscale="log", xlabel="edges", ylabel=unit)
        axes.legend(fontsize="small")
        figure.savefig(path, metadata={"Date": None})


def _in_process(*arguments: str) -> str:
    command = [sys.executable, "-m", __spec__.name, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Measure, and write OUT.json, OUT.svg and OUT.md; rows that OUT.json has already are kept and not measured again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, nargs="+", default=SIZES)
    parser.add_argument(
        "--mechanisms", nargs="+", choices=MECHANISMS, default=MECHANISMS
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--out", type=Path, default=Path("reports/scale"))
    parser.add_argument(
        "--generate", metavar="FOLDER", type=Path, help=argparse.SUPPRESS
    )
    parser.add_argument(
        "--measure", metavar="FOLDER", type=Path, help=argparse.SUPPRESS
    )
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    if given.generate:
        return generate(given.edges[0], given.generate, rng)
    if given.measure:
        return print(json.dumps(measure(given.mechanisms[0], given.measure, rng)))
    record, seed = given.out.with_suffix(".json"), str(given.seed)
    rows = json.loads(record.read_text()) if record.exists() else []
    for edges in given.edges:
        known = {row["mechanism"] for row in rows if row["edges"] == edges}
        wanted = [
            name
            for name in given.mechanisms
            if name not in known and (name != "RR" or edges <= DENSE)
        ]
        if not wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            _in_process("--generate", folder, "--edges", str(edges), "--seed", seed)
            for name in wanted:
                rows.append(
                    json.loads(
                        _in_process(
                            "--measure", folder, "--mechanisms", name, "--seed", seed
                        )
                    )
                )
                print(rows[-1], flush=True)
                record.write_text(json.dumps(rows, indent=1) + "\n")
    plot(rows, given.out.with_suffix(".svg"))
    given.out.with_suffix(".md").write_text(
        f"# Whole graphs at scale\n\n`python -m benchmarks.scale`, ε = {EPSILON:g}, one release each. Time is that of the "
        "release; memory is the peak of its process, with the graph.\n\n"
        f"{table(rows)}\n\n![Time and memory against edges]({given.out.name}.svg)\n"
    )
    return None


if __name__ == "__main__":
    main()
