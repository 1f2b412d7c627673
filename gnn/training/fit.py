"""Training on a graph's nodes or on many graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.utils import k_hop_subgraph

from gnn.datasets.splits import Split
from gnn.models.appnp import APPNP
from gnn.models.stack import Stack
from gnn.randomness import deterministic, device_of, seeded
from gnn.sparse import rows
from gnn.training.checks import check_data, check_logits, untrained_classes
from gnn.training.loop import check_finite, run_epochs, weighted_mean
from gnn.training.metrics import accuracy
from gnn.training.prediction import GRAPHS_AT_ONCE, batches, logits_of
from gnn.training.record import (
    Criterion,
    Epoch,
    Hook,
    Loss,
    Record,
    Score,
    Settings,
    lower_loss,
)
from gnn.validation import DataError


def fit(
    model: nn.Module,
    data: Data | Sequence[Data],
    *,
    split: Split,
    generator: torch.Generator,
    settings: Settings | None = None,
    loss: Loss = functional.cross_entropy,
    score: Score = accuracy,
    better: Criterion = lower_loss,
    hook: Hook | None = None,
    device: str | torch.device = "cpu",
) -> tuple[nn.Module, Record]:
    """Train a model of nodes or of graphs, and return it with the weights of the chosen epoch, and the record.

    All nodes of a graph are trained at once, or batches of them, each with everything that its predictions depend on:
    neighbours are not sampled. Graphs come in shuffled batches. The result is a function of the arguments and of the
    state of ``generator``, on one device and one number of threads.

    Args:
        model: One of ``gnn.models``, or a module that is called like them. It is trained in place, on the device.
        data: One graph, with ``x``, ``edge_index``, ``y`` (-1 where there is no label) and, for models that read them,
            ``edge_weight``; or several, each with one label. To train on other labels than the true ones, give a copy.
        split: The nodes or graphs to train and to validate on; they need labels.
        generator: The randomness of batches and dropout, on the CPU.
        settings: How long and how fast; ``Settings()`` by default.
        loss: Mean loss of logits at targets, in training and validation.
        score: What is recorded of logits at targets.
        better: Which epoch is kept.
        hook: Called after each epoch; targets that it returns replace ``y`` in what follows (one graph only).
        device: Where to train.

    Raises:
        ConfigurationError: If the device does not exist, or the criterion needs a validation part and there is none.
        DataError: If the model cannot be trained on the data: no nodes, features that are not finite, no labels, labels
            beyond the model's classes, fewer than two classes to train on, self-loops.
        TrainingError: If a loss is no number, or no epoch met the criterion.
    """
    settings = settings or Settings()
    place = device_of(device)
    check_data(data, split)
    model.to(place)
    kind = _Nodes if isinstance(data, Data) else _Graphs
    with deterministic(place), seeded(generator, place):
        task = kind(model, data, split, settings, loss, score, generator, place)

        def after(epoch: Epoch) -> None:
            targets = hook(epoch, model) if hook is not None else None
            if targets is not None:
                task.replace_targets(targets)

        record = run_epochs(
            model,
            epochs=settings.epochs,
            learning_rate=settings.learning_rate,
            patience=settings.patience,
            train=task.train,
            assess=task.assess if len(split.validation) else None,
            better=better,
            after=after,
            device=place,
        )
    return model, replace(record, untrained_classes=untrained_classes(data, split))


class _Task:
    """A model, its optimiser, and the loop over the batches of an epoch."""

    def __init__(
        self,
        model: nn.Module,
        split: Split,
        settings: Settings,
        loss: Loss,
        score: Score,
        generator: torch.Generator,
        place: torch.device,
    ) -> None:
        self.model, self.split, self.settings = model, split, settings
        self.loss, self.score = loss, score
        self.generator, self.place = generator, place
        self.optimiser = settings.optimiser_of(model)

    def training_batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield logits, with gradients, and targets."""
        raise NotImplementedError

    def validation(self) -> tuple[Tensor, Tensor]:
        """Return logits and targets."""
        raise NotImplementedError

    def replace_targets(self, targets: Tensor) -> None:
        """Use these targets from now on."""
        raise NotImplementedError

    def train(self, number: int) -> tuple[float, float]:
        """Train an epoch."""
        self.model.train()
        if (
            self.settings.halving
            and number > 1
            and (number - 1) % self.settings.halving == 0
        ):
            for group in self.optimiser.param_groups:
                group["lr"] /= 2
        losses, scores = [], []
        for logits, targets in self.training_batches():
            loss = self.loss(logits, targets)
            value = loss.item()
            check_finite(
                value, f"training loss of epoch {number}", self.settings.learning_rate
            )
            self.optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
            losses.append((value, len(targets)))
            scores.append((self.score(logits.detach(), targets), len(targets)))
        return weighted_mean(losses), weighted_mean(scores)

    @torch.no_grad()
    def assess(self) -> tuple[float, float]:
        """Return loss and score on the validation part."""
        self.model.eval()
        logits, targets = self.validation()
        return self.loss(logits, targets).item(), self.score(logits, targets)


class _Nodes(_Task):
    """Nodes of one graph."""

    def __init__(
        self, model: nn.Module, data: Data, split: Split, *rest: object
    ) -> None:
        super().__init__(model, split, *rest)  # type: ignore[arg-type]
        # Only what models read goes to the device; ``to`` would change the caller's data.
        self.data = Data(
            x=data.x.to(self.place),
            edge_index=data.edge_index.to(self.place),
            num_nodes=data.num_nodes,
        )
        if data.edge_weight is not None:
            self.data.edge_weight = data.edge_weight.to(self.place)
        self.targets = data.y.to(self.place)
        self.training, self.validated = (
            split.training.to(self.place),
            split.validation.to(self.place),
        )
        # What layers are given does not change from epoch to epoch.
        given = self.data.x, self.data.edge_index, self.data.edge_weight
        self.edges = model.edges(*given) if isinstance(model, Stack | APPNP) else None

    def logits(self) -> Tensor:
        """Return the logits of all nodes."""
        if self.edges is None:
            return logits_of(self.model, self.data)
        found: Tensor = self.model(self.data.x, self.edges)
        return found

    def training_batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield all training nodes, or batches of them in random order."""
        if self.settings.batch is None:
            logits = self.logits()
            check_logits(logits, self.targets, len(self.targets))
            yield logits[self.training], self.targets[self.training]
            return
        order = torch.randperm(len(self.training), generator=self.generator).to(
            self.place
        )
        for nodes in torch.split(self.training[order], self.settings.batch):
            part, at = neighbourhood(self.data, nodes, int(self.model.hops))  # type: ignore[arg-type]
            logits = logits_of(self.model, part)
            check_logits(logits, self.targets, int(part.num_nodes or 0))
            yield logits[at], self.targets[nodes]

    def validation(self) -> tuple[Tensor, Tensor]:
        """Return logits and targets of the validation nodes."""
        return self.logits()[self.validated], self.targets[self.validated]

    def replace_targets(self, targets: Tensor) -> None:
        """Use these targets from now on."""
        if targets.shape != self.targets.shape:
            raise DataError(
                f"the hook returned targets of shape {tuple(targets.shape)}, expected {tuple(self.targets.shape)}"
            )
        self.targets = targets.to(self.place)


class _Graphs(_Task):
    """Many graphs."""

    def __init__(
        self, model: nn.Module, data: Sequence[Data], split: Split, *rest: object
    ) -> None:
        super().__init__(model, split, *rest)  # type: ignore[arg-type]
        chosen = [data[i] for i in split.training.tolist()]
        size = self.settings.batch or GRAPHS_AT_ONCE
        self.loader = DataLoader(
            chosen, batch_size=size, shuffle=True, generator=self.generator
        )
        self.validated = list(
            batches([data[i] for i in split.validation.tolist()], size, self.place)
        )
        self.targets = torch.cat(
            [data[i].y for i in torch.cat([split.training, split.validation]).tolist()]
        )

    def training_batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield batches in random order."""
        for batch in self.loader:
            on_device = batch.to(self.place)
            logits = logits_of(self.model, on_device)
            check_logits(logits, self.targets, on_device.num_graphs)
            yield logits, on_device.y

    def validation(self) -> tuple[Tensor, Tensor]:
        """Return logits and targets of the validation graphs."""
        return (
            torch.cat([logits_of(self.model, batch) for batch in self.validated]),
            torch.cat([batch.y for batch in self.validated]),
        )


def neighbourhood(data: Data, nodes: Tensor, hops: int) -> tuple[Data, Tensor]:
    """Return the part of a graph on which a model computes the same logits of some nodes as on the whole.

    That is everything within one hop more than messages pass: the weight of an edge depends on the degrees of its ends.

    Args:
        data: One graph.
        nodes: Ids, int64, without repetition.
        hops: How far messages pass; 0 for models without any.

    Returns:
        The part, and the places of ``nodes`` in it.
    """
    if hops == 0:
        return Data(
            x=rows(data.x, nodes),
            edge_index=data.edge_index[:, :0],
            num_nodes=len(nodes),
        ), torch.arange(len(nodes), device=nodes.device)
    subset, edge_index, at, kept = k_hop_subgraph(
        nodes, hops + 1, data.edge_index, relabel_nodes=True, num_nodes=data.num_nodes
    )
    part = Data(x=rows(data.x, subset), edge_index=edge_index, num_nodes=len(subset))
    if data.edge_weight is not None:
        part.edge_weight = data.edge_weight[kept]
    return part, at
