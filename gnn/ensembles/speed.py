"""``python -m gnn.ensembles.speed``: trainings a second of an ensemble against a plain loop, one model at a time.

Both train an MLP of 16-16-2 by DP-SGD on batches of 32 of 64 rows, on one thread. The plain loop takes gradients of examples
by ``torch.func.vmap`` as well, of one model at a time, and keeps its weights by name; it is what a person would write for
one model. Times are of the processor, set-up included; rounds alternate, so that other load on the machine meets both, and
the ratio that counts is the median over rounds. On a GPU times are by the clock, and so they are with several threads.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from gnn.ensembles.draws import draws_of, keys_of
from gnn.ensembles.fit import fit_ensemble
from gnn.ensembles.graphs import GraphWorlds, node_loss
from gnn.ensembles.stack import CrossEntropy
from gnn.ensembles.trainer import Trainer
from gnn.ensembles.worlds import World
from gnn.models import GCN
from gnn.speed import in_turns, times_as_long
from gnn.training.gradients import clipped_sum, noisy_mean, weights_of
from gnn.training.private import PrivateSettings

FEATURES, BATCH, ALONE = 16, 32, 8
"""Of these, ``ALONE`` models are trained by the plain loop in a round, whose time per model does not depend on it."""


def cross_entropy(
    call: Callable[[Tensor], Tensor], row: Tensor, target: Tensor
) -> Tensor:
    """Return the loss of a row of features at its class."""
    return functional.cross_entropy(call(row), target)


PLAIN = "plain loop, one model at a time"
EXAMPLES, LAYERS, HAND = (
    "ensemble, gradients of examples",
    "ensemble, gradients by layers",
    "ensemble, by hand",
)
DRAWS, GRAPHS = "noise and batches alone", "ensemble of GCN, gradients of nodes"


@dataclass(frozen=True)
class Case:
    """The model and the data of a measurement.

    Attributes:
        models: How many, in an ensemble.
        rows: Rows of the data, of which half are in each batch, or 32 where they are 64 or more; nodes of graphs.
        hidden: Units of the hidden layer.
        steps: Steps of each training.
        dtype: Of all numbers.
        device: Where to train.
        workers: Threads of sums by hand.
    """

    models: int = 4096
    rows: int = 64
    hidden: int = 16
    steps: int = 10
    dtype: torch.dtype = torch.float64
    device: str = "cpu"
    workers: int = 1

    def data(self) -> World:
        """Return random rows of two classes."""
        x = torch.randn(
            self.rows,
            FEATURES,
            generator=torch.Generator().manual_seed(0),
            dtype=torch.float64,
        )
        return World((x.to(self.dtype), (x[:, 0] > 0).long()))

    def network(self) -> nn.Module:
        """Return the MLP."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = nn.Sequential(
                nn.Linear(FEATURES, self.hidden), nn.ReLU(), nn.Linear(self.hidden, 2)
            )
        return model.to(self.dtype)

    def settings(self, *, layers: bool) -> PrivateSettings:
        """Return DP-SGD on batches of fixed size."""
        return PrivateSettings(
            steps=self.steps,
            noise_multiplier=1.0,
            clipping_norm=1.0,
            batch=min(BATCH, self.rows // 2),
            rate=None,
            learning_rate=0.1,
            optimiser="sgd",
            gradients="layers" if layers else "functorch",
        )

    def trainer(self, kind: str) -> Trainer:
        """Return the trainer of an ensemble."""
        loss = CrossEntropy() if kind == HAND else cross_entropy
        return Trainer(self.network(), loss, self.settings(layers=kind != EXAMPLES))

    def seconds(self, kind: str) -> float:
        """Return the duration of a training, in CPU seconds or by the clock."""
        work = {PLAIN: self._plain, DRAWS: self._draws, GRAPHS: self._graphs}.get(
            kind, lambda: self._ensemble(kind)
        )
        clock = (
            time.process_time
            if self.device == "cpu" and self.workers == 1
            else time.perf_counter
        )
        started = clock()
        count = work()
        return (clock() - started) / count

    def _plain(self) -> int:
        """Train some models one after the other."""
        model, settings, generator = (
            self.network().to(self.device),
            self.settings(layers=False),
            torch.Generator().manual_seed(0),
        )
        x, y = (each.to(self.device) for each in self.data().inputs)

        def loss(weights: dict[str, Tensor], row: Tensor, target: Tensor) -> Tensor:
            return functional.cross_entropy(
                functional_call(model, weights, (row,)), target
            )

        gradients = vmap(grad(loss), in_dims=(None, 0, 0))
        first = {name: weight.detach() for name, weight in weights_of(model).items()}
        for _ in range(ALONE):
            weights = first
            for _ in range(self.steps):
                index = torch.randperm(self.rows, generator=generator)[
                    : int(settings.batch)
                ].to(self.device)
                total = clipped_sum(
                    gradients(weights, x[index], y[index]), settings.clipping_norm
                )
                mean = noisy_mean(
                    total, deviation=1.0, batch=settings.batch, generator=generator
                )
                weights = {
                    name: weight - settings.learning_rate * mean[name]
                    for name, weight in weights.items()
                }
        return ALONE

    def _ensemble(self, kind: str) -> int:
        """Train an ensemble."""
        keys = keys_of(self.models, rng=np.random.default_rng(0))
        fit_ensemble(
            self.trainer(kind),
            [self.data()],
            keys=keys,
            device=self.device,
            workers=self.workers,
        )
        return self.models

    def _graphs(self) -> int:
        """Train an ensemble of two-layer GCNs on a ring; all nodes are in every batch."""
        x, targets = self.data().inputs
        model = GCN(
            FEATURES,
            2,
            hidden=self.hidden,
            layers=2,
            dropout=0.0,
            generator=torch.Generator().manual_seed(0),
        )
        settings = replace(
            self.settings(layers=False), rate=1.0, batch=float(self.rows)
        )
        ring = np.roll(np.eye(self.rows, dtype=np.int8), 1, axis=1)
        world = GraphWorlds(x, targets)(
            np.eye(self.rows, dtype=np.int8) + ring + ring.T
        )
        keys = keys_of(self.models, rng=np.random.default_rng(0))
        fit_ensemble(
            Trainer(model.to(self.dtype), node_loss, settings),
            [world],
            keys=keys,
            device=self.device,
        )
        return self.models

    def _draws(self) -> int:
        """Draw the random numbers of an ensemble by hand, for as many trainings at once."""
        trainer, keys = (
            self.trainer(HAND),
            keys_of(self.models, rng=np.random.default_rng(0)),
        )
        for part in np.array_split(keys, -(-self.models // 256)):
            draws_of(
                part,
                trainer.settings,
                records=np.ones((1, self.rows), dtype=bool),
                world_of=np.zeros(len(part), dtype=np.int64),
                weights=trainer.start.numel(),
                dtype=self.dtype,
            )
        return self.models


def times(case: Case, kinds: list[str], rounds: int) -> dict[str, list[float]]:
    """Return the seconds per training of each kind and round; rounds alternate, after a small one that does not count."""
    small = replace(case, models=min(case.models, ALONE))
    for kind in kinds:
        small.seconds(kind)
    return in_turns({kind: partial(case.seconds, kind) for kind in kinds}, rounds)


def main() -> None:
    """Print trainings a second of the loops, and their ratios to the plain one."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("models", "rows", "hidden", "steps", "workers"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Case(), name))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument(
        "--kinds", nargs="+", choices=[PLAIN, EXAMPLES, LAYERS, HAND, DRAWS, GRAPHS]
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="the seconds per training of every round, as JSON",
    )
    given = vars(parser.parse_args())
    torch.set_num_threads(1)
    rounds, as_json, dtype = (
        given.pop("rounds"),
        given.pop("json"),
        getattr(torch, given.pop("dtype")),
    )
    default = (
        [PLAIN, HAND]
        if given["workers"] > 1
        else [PLAIN, EXAMPLES, LAYERS, HAND, DRAWS]
    )
    found = times(
        Case(dtype=dtype, **{k: v for k, v in given.items() if k != "kinds"}),
        given["kinds"] or default,
        rounds,
    )
    if as_json:
        print(json.dumps(found))
        return
    base = next(iter(found.values()))
    for name, taken in found.items():
        ratio = times_as_long(base, taken)
        print(
            f"{name:32} {1 / statistics.median(taken):9.1f} trainings a second, {ratio:6.1f} times the first"
        )


if __name__ == "__main__":
    main()
