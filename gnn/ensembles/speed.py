"""``python -m gnn.ensembles.speed``: trainings a second of an ensemble against a plain loop, one model at a time.

Both train an MLP of 16-16-2 by DP-SGD on batches of 32 of 64 rows, in float64 on one thread. The plain loop takes gradients
of examples by ``torch.func.vmap`` as well, of one model at a time, and keeps its weights by name; it is what a person would
write for one model. Times are of the processor, set-up included; rounds alternate, so that other load on the machine meets
both, and the ratio that counts is the median over rounds. On a GPU times are by the clock.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from gnn.ensembles.draws import keys_of
from gnn.ensembles.example import cross_entropy
from gnn.ensembles.fit import fit_ensemble
from gnn.ensembles.trainer import Trainer
from gnn.ensembles.worlds import World
from gnn.training.gradients import clipped_sum, noisy_mean, weights_of
from gnn.training.private import PrivateSettings

ROWS, FEATURES, BATCH, ALONE = 64, 16, 32, 8
"""Of these, ``ALONE`` models are trained by the plain loop in a round, whose time per model does not depend on it."""


def data() -> World:
    """Return random rows of two classes."""
    x = torch.randn(ROWS, FEATURES, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return World((x, (x[:, 0] > 0).long()))


def network(hidden: int) -> nn.Module:
    """Return the MLP."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(FEATURES, hidden), nn.ReLU(), nn.Linear(hidden, 2)).double()


def settings_of(steps: int, gradients: str = "functorch") -> PrivateSettings:
    """Return DP-SGD on batches of fixed size."""
    return PrivateSettings(
        steps=steps,
        noise_multiplier=1.0,
        clipping_norm=1.0,
        batch=BATCH,
        rate=None,
        learning_rate=0.1,
        optimiser="sgd",
        gradients="layers" if gradients == "layers" else "functorch",
    )


def plain(count: int, steps: int, hidden: int, device: str) -> float:
    """Return seconds per training of the plain loop."""
    model, settings, generator = network(hidden).to(device), settings_of(steps), torch.Generator().manual_seed(0)
    x, y = (each.to(device) for each in data().inputs)

    def loss(weights: dict[str, Tensor], row: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(functional_call(model, weights, (row,)), target)

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))
    first = {name: weight.detach() for name, weight in weights_of(model).items()}

    def train() -> dict[str, Tensor]:
        weights = first
        for _ in range(steps):
            index = torch.randperm(ROWS, generator=generator)[:BATCH].to(device)
            total = clipped_sum(gradients(weights, x[index], y[index]), settings.clipping_norm)
            mean = noisy_mean(total, deviation=settings.noise_multiplier, batch=BATCH, generator=generator)
            weights = {name: weight - settings.learning_rate * mean[name] for name, weight in weights.items()}
        return weights

    return seconds(lambda: [train() for _ in range(count)], device) / count


def together(count: int, steps: int, hidden: int, device: str, gradients: str) -> float:
    """Return seconds per training of an ensemble."""
    trainer = Trainer(network(hidden), cross_entropy, settings_of(steps, gradients))
    keys = keys_of(count, rng=np.random.default_rng(0))
    return seconds(lambda: fit_ensemble(trainer, [data()], keys=keys, device=device), device) / count


def seconds(work: Callable[[], object], device: str) -> float:
    """Return what some work takes: of the processor, or on a GPU by the clock."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    started = clock()
    work()
    return clock() - started


def main() -> None:
    """Print trainings a second of the loops, and their ratios to the plain one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", action="store_true", help="the seconds per training of every round, as JSON")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rest = given.steps, given.hidden, given.device
    loops: dict[str, Callable[[], float]] = {
        "plain loop, one model at a time": lambda: plain(ALONE, *rest),
        "ensemble, gradients of examples": lambda: together(given.models, *rest, "functorch"),
        "ensemble, gradients by layers": lambda: together(given.models, *rest, "layers"),
    }
    plain(1, *rest)
    times: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(given.rounds):
        for name, loop in loops.items():
            times[name].append(loop())
    if given.json:
        print(json.dumps(times))
        return
    base = next(iter(times.values()))
    for name, found in times.items():
        ratio = statistics.median(b / a for a, b in zip(found, base, strict=True))
        print(f"{name:32} {1 / statistics.median(found):9.1f} trainings a second, {ratio:6.1f} times the plain loop")


if __name__ == "__main__":
    main()
