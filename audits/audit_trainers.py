"""Trainers by DP-SGD: thousands of trainings of a small model in one batch, with the worst record that a record can be.

What DP-SGD's proof lets everybody see is released, the noised sum of every step, or the final model alone. A gradient
canary is ten times as long as the clipping norm and changes its sign from step to step, so that missing clipping and noise
that steps share show as well. For graphs, a record is a node with its edges, which are in the losses of its neighbours.
"""

import math

from auditdp import AccountedDP, Audit, GaussianDP, Nodes, audit
from auditdp.accountants import PLDUpper
from audits.trainers import ABADI, ensembles, forecasters, graph_trainer

CANARY = 10.0
"""Norm of a canary before clipping, over the clipping norm."""
HARDEST = (
    "no clipping",
    "clipping after averaging",
    "noise seeded alike in every step",
    "half the noise",
)
"""Twins of a kind of fault each: those with less than half of the noise are found wherever half of it is."""


@audit(source=f"{ABADI}; Dong, Roth & Su 2022, arXiv:1905.02383v3, Corollary 3.3")
def dp_sgd_full_batch(mu=1.0, steps=2):
    """The noised sums of DP-SGD on all examples, with noise √steps/μ, are μ-Gaussian DP for one record there or not."""
    room, example, _ = ensembles()
    trainer = example.full_batch(mu, steps)
    twins = room.twins(trainer)
    return Audit(
        mechanism=room.NoisedSums(trainer),
        claim=GaussianDP(mu),
        pairs=example.canary_pair(steps, norm=CANARY),
        controls=[room.NoisedSums(twins[name], label=name) for name in HARDEST],
        forecasters=forecasters(),
        calls=20_000,
        exhaustive=False,
    )


@audit(
    source=f"{ABADI}; its accountant: Zhu, Dong & Wang 2022, arXiv:2106.08567v3, Theorem 11"
)
def dp_sgd_poisson(noise_multiplier=1.0, rate=0.5, steps=3):
    """The noised sums of DP-SGD on Poisson batches have the accountant's curve, even if all other coins are seen."""
    room, example, _ = ensembles()
    trainer = example.trainer(noise_multiplier=noise_multiplier, rate=rate, steps=steps)
    twins = room.twins(trainer)

    def curve(factor):
        return PLDUpper(noise_multiplier * factor, rate, steps)

    return Audit(
        mechanism=room.NoisedSums(trainer),
        claim=AccountedDP(curve(1.0), family=curve),
        pairs=example.canary_pair(steps, norm=CANARY),
        controls=[
            room.NoisedSums(twins[name], label=name)
            for name in ("no clipping", "no noise")
        ],
        forecasters=forecasters(),
        calls=20_000,
        exhaustive=False,
    )


@audit(source=ABADI)
def dp_sgd_final_model(mu=1.0, steps=2):
    """The final model of DP-SGD on all examples, with noise √steps/μ, is μ-Gaussian DP for a record that is there or not."""
    room, example, _ = ensembles()
    trainer = example.full_batch(mu, steps)
    twins = room.twins(trainer)
    return Audit(
        mechanism=room.FinalModel(trainer),
        claim=GaussianDP(mu),
        pairs=example.canary_pair(steps, norm=CANARY, alternating=False),
        controls=[
            room.FinalModel(twins[name], label=name)
            for name in ("no clipping", "half the noise")
        ],
        calls=20_000,
        exhaustive=False,
    )


NODES = {"nodes": range(1, 5)}


@audit(
    source=f"{ABADI}, applied to the nodes of a graph",
    expect="violation",
    smallest=NODES,
)
def gcn_accounted_for_records(sigma=1.0, steps=1, nodes=2):
    """DP-SGD on the nodes of a graph, by a layer of GCN, is √steps/σ-Gaussian DP for a node that is there or not.

    False: a node is in its neighbours' losses, whose clipped gradients turn around.
    """
    released = graph_trainer(nodes, sigma, steps)
    return Audit(
        mechanism=released(1.0),
        claim=GaussianDP(math.sqrt(steps) / sigma),
        pairs=Nodes(nodes, "removed", loops=True),
        forecasters=forecasters(),
        calls=2_000,
    )


@audit(
    source=f"{ABADI}, applied to the nodes of a graph",
    expect="miscalibration",
    smallest=NODES,
)
def gcn_sensitivity_of_a_record(nodes=2):
    """The sum of the nodes' clipped gradients changes by C at most where a node is there or not. False, as above."""
    return Audit(
        mechanism=graph_trainer(nodes, 1.0, 1)(1.0),
        claim=GaussianDP(1.0),
        pairs=Nodes(nodes, "removed", loops=True),
        evidence=("sensitivity",),
    )


@audit(
    source=f"{ABADI}, applied to the nodes of a graph",
    expect="miscalibration",
    smallest=NODES,
)
def sage_sensitivity_of_a_record(nodes=2):
    """The same of a layer of GraphSAGE, whose nodes have the mean of their neighbours beside their own features. False."""
    return Audit(
        mechanism=graph_trainer(nodes, 1.0, 1, "GraphSAGE")(1.0),
        claim=GaussianDP(1.0),
        pairs=Nodes(nodes, "removed", loops=True),
        evidence=("sensitivity",),
    )


@audit(
    source="derived here: all other nodes' gradients turn around, and that of the node itself appears"
)
def gcn_accounted_for_nodes(noise=1.0, steps=1, nodes=2):
    """The same with noise λ(2n − 1)C on n ids is √steps/λ-Gaussian DP for a node that is there or not."""
    reach = 2 * nodes - 1
    released = graph_trainer(nodes, noise * reach, steps)
    return Audit(
        mechanism=released(reach),
        claim=GaussianDP(math.sqrt(steps) / noise),
        pairs=Nodes(nodes, "removed", loops=True),
        controls=[
            released(reach, name, name) for name in ("no clipping", "half the noise")
        ],
        forecasters=forecasters(),
        calls=20_000,
    )
