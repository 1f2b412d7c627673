"""DPAR from the private graph to the model."""

from __future__ import annotations

import torch
from torch_geometric.data import Data

from gnn.models import DecoupledPageRank
from gnn.pipelines.dpar.budget import budget_of, supported_epsilon
from gnn.pipelines.dpar.matrix import capped, normalised, pagerank_matrix
from gnn.pipelines.dpar.parameters import DPARParameters
from gnn.pipelines.parts import (
    PrivateRecord,
    check_training,
    numpy_generator,
    part,
    settings_of,
)
from gnn.training import PageRankRows, fit_private


def fit_dpar(
    data: Data,
    parameters: DPARParameters,
    *,
    classes: int,
    generator: torch.Generator,
    device: str | torch.device = "cpu",
) -> tuple[DecoupledPageRank, PrivateRecord]:
    """Train DPAR on all nodes of a graph; the model's ``forward`` is the inference by power iteration.

    A share q of the nodes is drawn without replacement; M of them have rows of PageRank on the subgraph, released by
    DP-APPR; a network is trained by DP-SGD on Σ_k Π_jk f(x_k). The result is a function of the arguments and of the
    state of ``generator``, on one device and one number of threads.

    Source: Zhang et al. (2024), arXiv:2210.04442, Algorithms 1 to 3 and Equation 4.

    Note:
        Deviations: nodes are drawn to a fixed number, and the noise of the published form is that of an exact
        accountant, see ``gnn.pipelines.dpar.budget``. Each node has a self-loop for PageRank, as in the published code,
        as 9 % of the nodes of a sparse graph have hardly an edge.

    Args:
        data: The training nodes, all of them private, with features ``x``, labels ``y`` and ``edge_index``.
        parameters: Budget, PageRank, training.
        classes: Number of classes, public.
        generator: The randomness, on the CPU.
        device: Where to train.

    Returns:
        The model, and the record: ε that is proved (``supported_epsilon``), noise "training" (over C), and "selection",
        "values" (both ε) or "rows" (σ over C₁), and the numbers of nodes, rows and steps, and the rows that the busiest
        node is in.

    Raises:
        ConfigurationError: If a parameter or the device is not there.
        DataError: If the data cannot be trained on.
        TrainingError: If a loss is no number.
    """
    check_training("fit_dpar", data, classes)
    nodes = int(data.num_nodes or 0)
    sizes = parameters.sizes(nodes)
    budget = budget_of(parameters, nodes) if parameters.private else None
    drawn = torch.randperm(nodes, generator=generator)[: sizes.drawn].sort().values
    subgraph = part(data, drawn)
    rng = numpy_generator(generator)
    matrix = pagerank_matrix(subgraph, parameters, budget, rng=rng)
    if parameters.accounting == "repaired" and budget is not None:
        matrix = capped(matrix, parameters.most_rows, rng=rng)
    matrix = normalised(matrix, parameters.tau, parameters.columns)
    model = DecoupledPageRank(
        data.x.shape[1],
        classes,
        hidden=parameters.hidden,
        layers=parameters.layers,
        alpha=parameters.alpha,
        steps=parameters.inference_steps,
        generator=generator,
    )
    multiplier = budget.noise_multiplier if budget else 0.0
    settings = settings_of(
        parameters, multiplier, steps=sizes.steps, batch=sizes.batch, rate=None
    )
    examples = PageRankRows(
        subgraph.x,
        torch.from_numpy(matrix.ids),
        torch.from_numpy(matrix.weights).to(torch.float32),
    )
    _, training = fit_private(
        model.mlp,
        examples,
        subgraph.y[torch.from_numpy(matrix.owners)],
        settings=settings,
        generator=generator,
        device=device,
    )
    noise = {}
    if budget is not None:
        noise = {"training": budget.noise_multiplier, "selection": budget.entry_epsilon}
        noise |= {"values": budget.value_epsilon, "rows": budget.row_sigma}
    return model.to(device).eval(), PrivateRecord(
        epsilon=supported_epsilon(parameters, nodes),
        delta=parameters.delta,
        neighbours="one node replaced: features, label and edges",
        trainings={"network": training},
        noise={name: value for name, value in noise.items() if value},
        counts={
            "drawn nodes": sizes.drawn,
            "private rows": sizes.private_rows,
            "rows": sizes.rows,
            "steps": sizes.steps,
            "rows of a node": int(matrix.rows_of_nodes.max()),
        },
    )
