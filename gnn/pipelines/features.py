"""Features: DP-SGD on a network of features alone, without the graph."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from gnn.models import MLP
from gnn.pipelines.parts import (
    PrivateRecord,
    check_parameters,
    check_training,
    record_noise,
    settings_of,
    steps_of,
)
from gnn.training import Rows, fit_private


@dataclass(frozen=True)
class FeaturesParameters:
    """The parameters of Features.

    Args:
        epsilon: ε in nats; infinite for no noise and no clipping.
        delta: δ, in (0, 1).
        batch: Expected size of a Poisson batch; all nodes where they are fewer.
        epochs: Epochs of ⌈nodes/batch⌉ steps.
        clipping_norm: C.
        learning_rate: Of Adam.
        hidden: Units of the hidden layer.
        layers: Layers of the network.

    Raises:
        ConfigurationError: If a parameter is outside its range.
    """

    epsilon: float = 8.0
    delta: float = 2e-3
    batch: int = 60
    epochs: int = 200
    clipping_norm: float = 1.0
    learning_rate: float = 0.005
    hidden: int = 32
    layers: int = 2

    def __post_init__(self) -> None:
        check_parameters(self, "batch", "epochs", "hidden", "layers")


def fit_features(
    data: Data,
    parameters: FeaturesParameters,
    *,
    classes: int,
    generator: torch.Generator,
    device: str | torch.device = "cpu",
) -> tuple[MLP, PrivateRecord]:
    """Train an MLP by DP-SGD with Poisson batches, the nodes being records; the edges are not read.

    Source: Abadi et al. (2016), arXiv:1607.00133v2, Algorithm 1; the baseline "Features" of Zhang et al. (2024),
    arXiv:2210.04442, Section 4. Noise by ``gnn.training.noise_for``, the certified reading "Poisson batches, loss
    distributions" of the audits.

    Args:
        data: The training nodes with features ``x`` and labels ``y``.
        parameters: Budget and training.
        classes: Number of classes, public.
        generator: The randomness, on the CPU.
        device: Where to train.

    Returns:
        The model, and the record, with noise "network" over C.

    Raises:
        ConfigurationError: If the device is not there.
        DataError: If the data cannot be trained on.
        TrainingError: If a loss is no number.
    """
    check_training("fit_features", data, classes)
    nodes, private = int(data.num_nodes or 0), not math.isinf(parameters.epsilon)
    batch = min(parameters.batch, nodes)
    steps = steps_of(nodes, batch=batch, epochs=parameters.epochs)
    rate = batch / nodes
    noise = (
        record_noise(parameters.epsilon, parameters.delta, rate, steps)
        if private
        else 0.0
    )
    model = MLP(
        data.x.shape[1],
        classes,
        hidden=parameters.hidden,
        layers=parameters.layers,
        dropout=0.0,
        generator=generator,
    )
    settings = settings_of(parameters, noise, steps=steps, batch=batch, rate=rate)
    _, training = fit_private(
        model,
        Rows(data.x),
        data.y,
        settings=settings,
        generator=generator,
        device=device,
    )
    return model.eval(), PrivateRecord(
        epsilon=parameters.epsilon,
        delta=parameters.delta,
        neighbours="one node is there or not: features and label; edges are not read",
        trainings={"network": training},
        noise={"network": noise} if private else {},
        counts={"nodes": nodes, "steps": steps},
    )
