"""Published attacks as games: bets on the result of an attack certify a lower bound.

An attack is post-processing of what is released: it can refute a claim about the release, and certifies no more than it
sees.
"""

from functools import cache

import numpy as np

from auditdp import Audit, Edges, GaussianDP, Pair, PureDP, audit
from auditdp.training import Training, as_training
from audits.trainers import ABADI, ensembles
from mechanisms.edges import EdgeRand

LINKTELLER = "Wu, Long, Zhang & Li 2022, arXiv:2108.06504, Algorithm 1"
YEOM = "Yeom, Giacomelli, Fredrikson & Jha 2018, arXiv:1709.01604v5, Section 3.2"


def influence_of_a_node_on_another(nodes):
    """Return LinkTeller as an attack: the influence of node 0 on node 1, of a GCN that answers on the graph it is given."""
    ensembles()
    import torch

    from gnn.attacks.link_teller import influence
    from gnn.models import GCN

    generator = torch.Generator().manual_seed(0)
    model = (
        GCN(4, 2, hidden=4, layers=2, dropout=0.0, generator=generator).double().eval()
    )
    features = torch.randn(nodes, 4, dtype=torch.float64, generator=generator)
    rows, columns = np.triu_indices(nodes, 1)

    @cache
    def of_graph(kept):
        """Return the influence in a graph of some pairs above the diagonal; there are few graphs, each computed once."""
        kept = np.array(kept, dtype=int)
        arcs = torch.from_numpy(
            np.stack(
                [np.r_[rows[kept], columns[kept]], np.r_[columns[kept], rows[kept]]]
            )
        )
        return float(
            influence(lambda x: model(x, arcs), features, nodes=[0, 1], method="exact")[
                0, 1
            ]
        )

    def link_teller(bits):
        """Return the influence in the graph of these pairs above the diagonal."""
        return of_graph(tuple(np.flatnonzero(bits)))

    return link_teller


@audit(source=LINKTELLER)
def link_teller_on_randomised_edges(epsilon=1.0, nodes=4):
    """LinkTeller on a GCN that answers on edges released by EdgeRand does not tell more of an edge than ε allows."""
    attack = influence_of_a_node_on_another(nodes)
    graph = np.zeros((nodes, nodes), np.int8)
    graph[0, 2] = graph[2, 0] = graph[1, 3] = graph[3, 1] = 1
    linked = graph.copy()
    linked[0, 1] = linked[1, 0] = 1

    def as_it_is(data, rng):
        return data[np.triu_indices(nodes, 1)]

    return Audit(
        mechanism=as_training(EdgeRand(epsilon, nodes), attack),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        play=[Pair(linked, graph, "edge 01")],
        controls=[
            as_training(EdgeRand(2 * epsilon, nodes), attack),
            Training(as_it_is, attack),
        ],
        evidence=("game",),
        calls=2_000,
    )


@audit(source=f"{YEOM}; {ABADI}")
def membership_inference_on_dp_sgd(mu=1.0, steps=2):
    """The loss of a mislabelled outlier under the final model of DP-SGD tells no more of it than μ-Gaussian DP allows."""
    room, example, _ = ensembles()
    import torch

    trainer = example.full_batch(mu, steps)
    worlds = example.canary_pair(steps)
    rows, classes = worlds.neighbour.inputs
    outlier = 5.0 * torch.ones(1, example.FEATURES, dtype=torch.float64)
    label = torch.zeros(1, dtype=torch.long)
    pair = Pair(
        room.World(
            (torch.cat([rows, outlier]), torch.cat([classes, label])),
            name="8 examples and an outlier",
        ),
        room.World((rows, classes), name="8 examples"),
        "outlier",
    )

    def loss(weights):
        """Return the loss of the outlier under a linear model."""
        matrix, bias = np.split(weights, [example.FEATURES * example.CLASSES])
        logits = matrix.reshape(example.CLASSES, -1) @ outlier[0].numpy() + bias
        return float(np.logaddexp.reduce(logits) - logits[0])

    broken = room.twins(trainer)
    return Audit(
        mechanism=as_training(room.FinalModel(trainer), loss),
        claim=GaussianDP(mu),
        pairs=pair,
        controls=[
            as_training(room.FinalModel(broken[name]), loss)
            for name in ("no clipping", "half the noise")
        ],
        evidence=("game",),
        calls=10_000,
        exhaustive=False,
    )
