"""GraphPub as published: train GCNs, learn A_s, compute L, select neighbours.

Features and labels are public, edges are private. Training is with a public seed, so that L is a function of the graph and
laws are exact, or afresh in every run. The selection breaks the claim whatever L is, so the smallest counterexamples have
two nodes, as with a public L; what L itself gives away is audited on pairs of graphs of which a public L tells nothing.
Where every run trains, none is traced first: traced runs are dearer than the calls that they spare.
"""

import numpy as np

from auditdp import Audit, Edges, Pair, PureDP, Skip, audit
from audits.graphs import graph
from mechanisms.edges.graph_pub import GraphPub
from mechanisms.edges.graph_pub_response import GraphPubResponse

GRAPH_PUB = "Xu et al. 2024, arXiv:2403.00030"
SIZES = {"nodes": range(2, 7)}
SEED = 0
TRIANGLE = ((2, 3), (2, 4), (3, 4))


def gnn():
    """Return the room that trains, or skip where torch is missing."""
    try:
        from gnn import graph_pub
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise Skip(
            "needs torch; install it with: pip install 'auditdp[torch]'"
        ) from None
    return graph_pub


def training(nodes, epochs, steps, encode="learned"):
    """Return the training of L on nodes in a circle of features, in alternating classes."""
    angles, trainer = np.arange(nodes), gnn()
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    reverse = trainer.ReverseLearning(steps=steps)
    return trainer.TrainedScores(
        features, angles % 2, encode=encode, reverse=reverse, epochs=epochs
    )


@audit(
    source=GRAPH_PUB,
    expect="violation",
    row="GraphPub",
    reading="as deployed, L trained on the graph with a public seed",
    smallest=SIZES,
)
def graph_pub_trained(epsilon=1.0, nodes=4, epochs=50, steps=20):
    """The whole pipeline, trained with a public seed, provides ε-edge DP."""
    scores = training(nodes, epochs, steps).with_seed(SEED)
    return Audit(
        mechanism=GraphPub(epsilon, nodes, scores),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        calls=2_000,
    )


@audit(
    source=GRAPH_PUB,
    expect="violation",
    row="GraphPub",
    reading="as deployed, L trained afresh in every run",
    smallest=SIZES,
)
def graph_pub_trained_afresh(epsilon=1.0, nodes=4, epochs=50, steps=20):
    """The whole pipeline, trained afresh in every run, provides ε-edge DP."""
    mechanism = gnn().GraphPubTrained(epsilon, training(nodes, epochs, steps))
    return Audit(
        mechanism=mechanism,
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        calls=2_000,
        trace=False,
    )


@audit(
    source=f"{GRAPH_PUB}, Section 3.6",
    expect="violation",
    row="GraphPub, degrees (§3.6)",
    reading="as deployed, L trained on the graph with a public seed",
    smallest=SIZES,
)
def graph_pub_trained_degrees(epsilon1=0.5, epsilon2=1.0, nodes=4, epochs=50, steps=20):
    """The whole pipeline with noisy degrees provides (ε₁+ε₂)-edge DP."""
    mechanism = GraphPub(
        epsilon2,
        nodes,
        training(nodes, epochs, steps).with_seed(SEED),
        degree_epsilon=epsilon1,
    )
    return Audit(
        mechanism=mechanism,
        claim=PureDP(epsilon1 + epsilon2),
        pairs=Edges(nodes),
        calls=2_000,
    )


@audit(
    source=GRAPH_PUB,
    expect="violation",
    row="GraphPub ablations",
    reading="A_s replaced by A, L trained on the graph with a public seed",
    smallest=SIZES,
)
def graph_pub_trained_adjacency(epsilon=1.0, nodes=4, epochs=50, steps=20):
    """The pipeline without A_s, its encoder trained on A itself, provides ε-edge DP."""
    scores = training(nodes, epochs, steps, encode="private").with_seed(SEED)
    return Audit(
        mechanism=GraphPub(epsilon, nodes, scores),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        calls=2_000,
    )


def unwritten_edges():
    """Return graphs of five nodes with and without edge 01, of which the selection tells nothing if L is public.

    Nodes 0 and 1 have no other edge; nodes 2, 3 and 4 are a triangle or a path. At ε = 1, counts rounded down, who has one
    neighbour publishes nobody (E₁ = E/(E+4) = .40, E₂ = .60), and who has two publishes one of them (E₁ = 1.29, E₂ = .71),
    the one of the larger L: so edge 01 is never published, and changes what is published through L alone.
    """
    pairs = []
    for left_out in (None, *TRIANGLE):
        rest = [edge for edge in TRIANGLE if edge != left_out]
        others = (
            "triangle"
            if left_out is None
            else f"path without edge {left_out[0]}{left_out[1]}"
        )
        pairs.append(
            Pair(graph(5, (0, 1), *rest), graph(5, *rest), f"{others} ± edge 01")
        )
    return pairs


@audit(
    source=GRAPH_PUB,
    expect="violation",
    row="GraphPub",
    reading="what L alone gives away, trained with a public seed",
)
def graph_pub_leaking_scores(epochs=100, steps=100):
    """L, trained with a public seed, keeps 1-edge DP where the selection by a public L tells nothing.

    False: some node shows another of its neighbours if nodes elsewhere in the graph are joined.
    """
    scores = training(5, epochs, steps).with_seed(SEED)
    mechanism = GraphPub(1.0, 5, scores, rounding="floor")
    return Audit(
        mechanism=mechanism,
        claim=PureDP(1.0),
        pairs=Edges(5),
        play=unwritten_edges(),
        exhaustive=False,
        evidence=("exact",),
    )


@audit(
    source=GRAPH_PUB,
    expect="violation",
    row="GraphPub",
    reading="what L alone gives away, trained afresh in every run",
)
def graph_pub_leaking_scores_afresh(epochs=100, steps=100):
    """L, trained afresh in every run, keeps 1-edge DP where the selection by a public L tells nothing (the triangle)."""
    mechanism = gnn().GraphPubTrained(1.0, training(5, epochs, steps), rounding="floor")
    return Audit(
        mechanism=mechanism,
        claim=PureDP(1.0),
        pairs=Edges(5),
        play=unwritten_edges()[:1],
        calls=2_000,
        trace=False,
    )


@audit(
    source="derived here",
    row="GraphPub",
    reading="the pipeline trained on the graph without its edges, every pair at random by a public degree",
    repairs="graph_pub_trained",
)
def graph_pub_trained_response(epsilon=1.0, nodes=3, degree=1.5, epochs=50, steps=20):
    """L trained on features and labels alone, then each pair published with probability q, or p = E·q, has ε-edge DP.

    M is trained on no edges, so that L is public, and the rest is the repair of the selection.
    """
    scores = training(nodes, epochs, steps).with_seed(SEED)(
        np.zeros((nodes, nodes), np.int8)
    )
    return Audit(
        mechanism=GraphPubResponse(epsilon, nodes, scores, degree),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        controls=[GraphPubResponse(2 * epsilon, nodes, scores, degree)],
        calls=20_000,
        cost=(
            "L knows no edge any more, which at a small ε is most of what the published lists say of the graph; and numbers "
            "hold on average only"
        ),
    )
