"""Common parts of the audits of trainers."""

from auditdp import Skip
from auditdp.betting.forecasters.forecaster import LikelihoodRatio, Scored

ABADI = "Abadi et al. 2016, arXiv:1607.00133v2, Algorithm 1"


def ensembles():
    """Return the room that trains many models at once, or skip where torch is missing."""
    try:
        from gnn import ensembles
        from gnn.ensembles import example, graphs
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "torch_geometric"):
            raise
        raise Skip(
            "needs torch; install it with: pip install 'auditdp[torch]'"
        ) from None
    return ensembles, example, graphs


def forecasters():
    """Return who knows the law that is claimed, and who learns how a twin's likelihood ratio differs from it."""
    return [LikelihoodRatio(), Scored()]


HUB = -5.0
"""Feature of the last id; all others have 1, so that they are on its side where they are its neighbours."""
SCALE = 1e7
"""Gradients are that many times as long as features of 1 have, so that all are clipped."""


def graph_trainer(nodes, sigma, steps, kind="GCN"):
    """Return a function for the released sums of a layer on public ids.

    Args:
        nodes: Public ids.
        sigma: σ.
        steps: Steps.
        kind: Of the layer: "GCN" or "GraphSAGE".
    """
    import torch

    from gnn import models
    from gnn.training import PrivateSettings

    room, _, graphs = ensembles()
    network = getattr(models, kind)
    model = network(
        1,
        2,
        hidden=1,
        layers=1,
        dropout=0.0,
        generator=torch.Generator().manual_seed(0),
    ).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(0.0)
    settings = PrivateSettings(
        steps=steps,
        noise_multiplier=sigma,
        clipping_norm=1.0,
        batch=float(nodes),
        rate=1.0,
        learning_rate=1e-6,
        optimiser="sgd",
    )
    x = torch.ones(nodes, 1, dtype=torch.float64)
    x[-1] = HUB
    world = graphs.GraphWorlds(SCALE * x, torch.zeros(nodes, dtype=torch.long))

    def released(reach, label="", twin=None):
        trainer = room.Trainer(model, graphs.node_loss, settings)
        return room.NoisedSums(
            room.twins(trainer)[twin] if twin else trainer,
            world=world,
            reach=reach,
            label=label,
        )

    return released
