"""LPGNN from raw features and labels to a trained model and its record."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch_geometric.data import Data

from gnn.datasets.splits import Split
from gnn.pipelines.lpgnn.features import reports
from gnn.pipelines.lpgnn.labels import (
    below_ceiling,
    denoised_labels,
    log_corrected,
    log_denoised,
    noisy_labels,
    transition,
)
from gnn.pipelines.lpgnn.model import LocallyPrivateGNN, network_of
from gnn.pipelines.lpgnn.parameters import Parameters
from gnn.pipelines.lpgnn.propagation import normalised_adjacency, propagated
from gnn.randomness import deterministic, device_of, seeded
from gnn.training import Record, Settings, accuracy, largest_share
from gnn.training.checks import check_data, untrained_classes
from gnn.training.loop import check_finite, run_epochs
from gnn.validation import DataError
from mechanisms.labels import LabelRR


@dataclass(frozen=True, eq=False)
class LPGNNRecord:
    """The outcome of a run. Accuracies need true labels, and are not released.

    Attributes:
        training: The epochs; losses and scores are on noisy labels.
        released: What the server has: ``x``, the reports that the model is called on, ``edge_index``, and ``y``, the noisy
            labels of training and validation nodes, elsewhere -1.
        test_accuracy: Share of test nodes that are classified right, in [0, 1].
        largest_share: Share of the predictions on test nodes that one class has; 1 of a constant predictor.
        label_accuracy: Share of training nodes whose label, as it is learnt from, is the true one.
        ceiling: Acc*, the probability that a label is sent as it is.
        training_nodes: How many nodes the loss is taken over: those that some noisy label reaches.
    """

    training: Record
    released: Data
    test_accuracy: float
    largest_share: float
    label_accuracy: float
    ceiling: float
    training_nodes: int


def lpgnn(
    data: Data,
    parameters: Parameters | None = None,
    *,
    split: Split,
    generator: torch.Generator,
    device: str | torch.device = "cpu",
) -> tuple[LocallyPrivateGNN, LPGNNRecord]:
    """Let every node randomise features and label, and train a network on the messages.

    Everybody's features go through the multi-bit encoder, labels of training and validation nodes through randomised
    response; edges are public. The model is trained on KProp of the rectified features. The result is a function of the
    arguments and of the state of ``generator``, on one device and one number of threads.

    Source: Sajadmanesh & Gatica-Perez (2021), "Locally Private Graph Neural Networks", CCS, arXiv:2006.05535.

    Note:
        Training nodes that no noisy label reaches in exactly K_y steps, isolated ones among them, are left out of Drop's
        loss: KProp says nothing of them.

    Args:
        data: One undirected graph with ``edge_index``, ``y``, and ``x`` (dense or sparse CSR) unless features are ad hoc.
        parameters: ``Parameters()`` by default.
        split: The nodes to train, validate and test on; all need labels.
        generator: All randomness, that of the users too; on the CPU.
        device: Where to train.

    Returns:
        The model with the weights of the epoch that is kept, to be called on ``x`` and ``edge_index`` of what was released,
        and the record.

    Raises:
        ConfigurationError: If the device does not exist.
        DataError: If the model cannot be trained on the data, such as features that are NaN.
        MechanismError: If a feature is outside the declared bounds.
        TrainingError: If a loss is no number.
    """
    parameters = parameters or Parameters()
    place = device_of(device)
    if parameters.features == "MBM" or data.x is not None:
        check_data(data, split)
    labels = data.y.cpu()
    if not bool((labels[split.test] >= 0).all()):
        raise DataError(
            "LPGNN: some test nodes have no label (-1); leave them out of the split"
        )
    classes = int(getattr(data, "num_classes", None) or labels.max() + 1)
    response = (
        None
        if math.isinf(parameters.epsilon_labels)
        else LabelRR(parameters.epsilon_labels, classes)
    )
    users = np.random.default_rng(
        int(torch.randint(2**63 - 1, (), generator=generator))
    )
    sent = reports(data, parameters, generator=generator)
    noisy = noisy_labels(labels, split, response, rng=users)
    released = Data(
        x=sent.encoded, edge_index=data.edge_index.cpu(), y=noisy, num_nodes=len(labels)
    )
    check_data(released, replace(split, test=split.test[:0]))
    model = network_of(parameters, sent, classes, generator=generator).to(place)
    with deterministic(place), seeded(generator, place):
        task = _Learning(
            model, released, transition(response, classes), split, parameters, place
        )
        training = run_epochs(
            model,
            epochs=parameters.epochs,
            learning_rate=parameters.learning_rate,
            patience=None,
            train=task.train,
            assess=task.assess if len(split.validation) else None,
            better=below_ceiling(float(task.law[0, 0])),
            after=lambda epoch: None,
            device=place,
        )
        logits = task.logits().cpu()
    training = replace(training, untrained_classes=untrained_classes(data, split))
    learnt, used = task.targets.cpu(), task.nodes.cpu()
    return model, LPGNNRecord(
        training,
        released,
        test_accuracy=accuracy(logits[split.test], labels[split.test]),
        largest_share=largest_share(logits[split.test], labels[split.test]),
        label_accuracy=_share(learnt[used] == labels[used]),
        ceiling=float(task.law[0, 0]),
        training_nodes=len(used),
    )


class _Learning:
    """A model, its optimiser, its training data, and the two losses."""

    def __init__(
        self,
        model: LocallyPrivateGNN,
        released: Data,
        law: Tensor,
        split: Split,
        parameters: Parameters,
        place: torch.device,
    ) -> None:
        self.model, self.learning, self.rate = (
            model,
            parameters.learning,
            parameters.learning_rate,
        )
        self.law, self.noisy = law.to(place), released.y.to(place)
        edge_index = released.edge_index.to(place)
        self.operator = normalised_adjacency(edge_index, len(self.noisy))
        self.inputs = model.prepared(released.x.to(place), edge_index, self.operator)
        self.steps = parameters.steps_labels if self.learning == "Drop" else 0
        self.targets = denoised_labels(self.operator, self.noisy, len(law), self.steps)
        self.reach = propagated(
            self.operator, law.new_ones(len(self.noisy), 1).to(place), self.steps
        )
        self.validated = split.validation.to(place)
        nodes = split.training.to(place)
        self.nodes = nodes[self.targets[nodes] >= 0]
        if not len(self.nodes):
            raise DataError(
                "Drop: no noisy label reaches a training node; use steps_labels=0"
            )
        settings = Settings(
            learning_rate=self.rate, weight_decay=parameters.weight_decay
        )
        self.optimiser = settings.optimiser_of(model)

    @torch.no_grad()
    def logits(self) -> Tensor:
        """Return the logits of all nodes, without dropout."""
        self.model.eval()
        found: Tensor = self.model(*self.inputs)
        return found

    def train(self, number: int) -> tuple[float, float]:
        """Make a step on all training nodes; return the loss and the accuracy on noisy labels before it."""
        self.model.train()
        logits = self.model(*self.inputs)
        if self.learning == "Drop":
            logs = log_denoised(logits, self.law, self.operator, self.steps, self.reach)
        else:
            logs = log_corrected(
                logits, self.law if self.learning == "forward correction" else None
            )
        loss = functional.nll_loss(logs[self.nodes], self.targets[self.nodes])
        check_finite(loss.item(), f"training loss of epoch {number}", self.rate)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return loss.item(), accuracy(
            logits.detach()[self.nodes], self.noisy[self.nodes]
        )

    def assess(self) -> tuple[float, float]:
        """Return the loss and the accuracy on the noisy labels of validation nodes, the former by forward correction."""
        logits, noisy = self.logits()[self.validated], self.noisy[self.validated]
        logs = log_corrected(
            logits, None if self.learning == "cross-entropy" else self.law
        )
        return functional.nll_loss(logs, noisy).item(), accuracy(logits, noisy)


def _share(right: Tensor) -> float:
    return float(right.float().mean()) if len(right) else math.nan
