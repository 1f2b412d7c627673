"""``python -m gnn.speed``: an epoch of GCN on Cora by the trainer against torch-geometric's plain loop.

Both train on the same graph, features and split, and measure training, validation and, in the plain loop, test accuracy
after every step, as torch-geometric's example does. Times are of the processor, set-up included; rounds alternate, so
that other load on the machine meets both, and the ratio that counts is the median over rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from gnn.datasets import load, public_split
from gnn.datasets.features import rows_normalised
from gnn.models import GCN
from gnn.training import Settings, fit, higher_score


class Plain(torch.nn.Module):
    """The network of torch-geometric's example, with normalised edges kept between calls."""

    def __init__(self, features: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.conv1 = GCNConv(features, 16, cached=True)
        self.conv2 = GCNConv(16, classes, cached=True)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        x = functional.dropout(x, p=self.dropout, training=self.training)
        x = self.conv1(x, edge_index).relu()
        x = functional.dropout(x, p=0.5, training=self.training)
        found: torch.Tensor = self.conv2(x, edge_index)
        return found


def plain(data: Data, epochs: int, dropout: float, device: str) -> float:
    """Return seconds per epoch of the plain loop."""
    given = data.to(device)
    model = Plain(data.x.shape[1], data.num_classes, dropout).to(device)
    groups = [
        {"params": model.conv1.parameters(), "weight_decay": 5e-4},
        {"params": model.conv2.parameters(), "weight_decay": 0.0},
    ]
    optimiser = torch.optim.Adam(groups, lr=0.01)
    start = time.process_time()
    for _ in range(epochs):
        model.train()
        optimiser.zero_grad()
        out = model(given.x, given.edge_index)
        functional.cross_entropy(
            out[given.train_mask], given.y[given.train_mask]
        ).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        model.eval()
        with torch.no_grad():
            guesses = model(given.x, given.edge_index).argmax(dim=-1)
        for mask in (given.train_mask, given.val_mask, given.test_mask):
            int((guesses[mask] == given.y[mask]).sum()) / int(mask.sum())
    return (time.process_time() - start) / epochs


def ours(data: Data, epochs: int, dropout: float, device: str) -> float:
    """Return seconds per epoch of the trainer."""
    generator = torch.Generator().manual_seed(0)
    model = GCN(
        data.x.shape[1], data.num_classes, input_dropout=dropout, generator=generator
    )
    settings = Settings(epochs=epochs, weight_decay=5e-4, decayed="first")
    split = public_split(data)
    start = time.process_time()
    fit(
        model,
        data,
        split=split,
        generator=generator,
        settings=settings,
        better=higher_score,
        device=device,
    )
    return (time.process_time() - start) / epochs


def in_turns(
    loops: Mapping[str, Callable[[], float]], rounds: int
) -> dict[str, list[float]]:
    """Return the seconds of each loop and round; rounds alternate."""
    found: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(rounds):
        for name, loop in loops.items():
            found[name].append(loop())
    return found


def times_as_long(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the ratio of the durations of two loops: the median over rounds."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


def main() -> None:
    """Print the seconds per epoch of the loops, and their ratios to the plain one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--input-dropout", type=float, default=0.5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--json",
        action="store_true",
        help="the seconds per epoch of every round, as JSON",
    )
    given = parser.parse_args()
    sparse = load("cora")
    sparse.x = rows_normalised(sparse.x)
    dense = sparse.clone()
    dense.x = sparse.x.to_dense()
    loops: dict[str, Callable[[], float]] = {
        "plain loop, dense features": lambda: plain(
            dense, given.epochs, given.input_dropout, given.device
        ),
        "trainer, dense features": lambda: ours(
            dense, given.epochs, given.input_dropout, given.device
        ),
        "trainer, sparse features": lambda: ours(
            sparse, given.epochs, given.input_dropout, given.device
        ),
    }
    times = in_turns(loops, given.rounds)
    if given.json:
        print(json.dumps(times))
        return
    base = times["plain loop, dense features"]
    for name, seconds in times.items():
        each, ratio = statistics.median(seconds) * 1e3, times_as_long(seconds, base)
        print(f"{name:28} {each:7.2f} ms per epoch, {ratio:.3f} of the plain loop")


if __name__ == "__main__":
    main()
