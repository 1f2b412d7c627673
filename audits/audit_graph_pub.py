"""GraphPub's selection of published neighbours, central model: every reading of the claim, and the repairs.

L, the matrix of scores by which neighbours are selected, is public here unless an audit says otherwise: then the selection
has to keep the claim by itself, which is the reading most in its favour. Sizes ascend until one violates the claim.
"""

import math

import numpy as np

from auditdp import Audit, Edges, NeighbourList, Pair, PureDP, audit
from mechanisms.edges import PerUser
from mechanisms.edges.graph_pub import GraphPub, counts, linear_scores, score_matrix
from mechanisms.edges.graph_pub_response import GraphPubList, GraphPubResponse

GRAPH_PUB = "Xu et al. 2024, arXiv:2403.00030"
SIZES = {"nodes": range(2, 5)}
CORA = {"nodes": 2708, "degree": 2 * 5429 / 2708}


def embedding(nodes):
    """Return points on a circle, one radian apart: a public embedding in which no two nodes have the same neighbours."""
    angles = np.arange(nodes)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def published(nodes, epsilon=1.0, **readings):
    """Audit ε-edge DP, or (ε₁+ε₂)-edge DP with noisy degrees, of the selection by a public L."""
    readings.setdefault("scores", score_matrix(embedding(nodes)))
    mechanism = GraphPub(epsilon, nodes, **readings)
    claim = epsilon + (mechanism.degree_epsilon or 0)
    return Audit(
        mechanism=mechanism, claim=PureDP(claim), pairs=Edges(nodes), calls=2_000
    )


@audit(
    source=GRAPH_PUB,
    expect="violation",
    row="GraphPub",
    reading="as stated, L public",
    smallest=SIZES,
)
def graph_pub(epsilon=1.0, nodes=4):
    """E₁ real neighbours and E₂ others with the largest L, both rounded to nearest, provide ε-edge DP.

    False for every ε, on two nodes: E₁ + E₂ is the degree, so the list tells whether there is an edge.
    """
    return published(nodes, epsilon)


@audit(
    source=GRAPH_PUB,
    expect="violation",
    row="GraphPub",
    reading="E₁ and E₂ rounded down",
    smallest=SIZES,
)
def graph_pub_floor(epsilon=1.0, nodes=4):
    """The selection with both counts rounded down provides ε-edge DP.

    False on three nodes, the fewest that publish any.
    """
    return published(nodes, epsilon, rounding="floor")


@audit(
    source=GRAPH_PUB,
    expect="violation",
    row="GraphPub",
    reading="E₁ rounded at random",
    smallest=SIZES,
)
def graph_pub_random(epsilon=1.0, nodes=4):
    """The selection with E₁ rounded at random, to its value on average, and E₂ the rest provides ε-edge DP."""
    return published(nodes, epsilon, rounding="random")


@audit(
    source=GRAPH_PUB,
    expect="violation",
    row="GraphPub",
    reading="real neighbours uniformly",
    smallest=SIZES,
)
def graph_pub_uniform(epsilon=1.0, nodes=4):
    """E₁ real neighbours chosen uniformly and the E₂ others with the largest L provide ε-edge DP."""
    return published(nodes, epsilon, choice="real uniformly")


@audit(
    source=GRAPH_PUB,
    expect="violation",
    row="GraphPub",
    reading="the undirected union released",
    smallest=SIZES,
)
def graph_pub_union(epsilon=1.0, nodes=4):
    """The undirected graph of all published lists provides ε-edge DP."""
    return published(nodes, epsilon, union=True)


@audit(
    source=GRAPH_PUB,
    expect="violation",
    row="GraphPub",
    reading="L from the graph, by one untrained linear layer",
    smallest=SIZES,
)
def graph_pub_deployed(epsilon=1.0, nodes=4):
    """The selection by an L that is computed from the private edges provides ε-edge DP (one untrained linear layer)."""
    return published(nodes, epsilon, scores=linear_scores(embedding(nodes)))


@audit(
    source=f"{GRAPH_PUB}, Section 3.6",
    expect="violation",
    row="GraphPub, degrees (§3.6)",
    reading="as stated, L public",
    smallest=SIZES,
)
def graph_pub_degrees(epsilon1=0.5, epsilon2=1.0, nodes=4):
    """The selection with noisy degrees m̃ = max{round(m + Lap(1/ε₁)), 1} in E₁ and E₂ provides (ε₁+ε₂)-edge DP.

    False for every ε₁ and ε₂: nobody publishes as real a neighbour that they do not have.
    """
    return published(nodes, epsilon2, degree_epsilon=epsilon1)


@audit(
    source=f"{GRAPH_PUB}, Section 3.6",
    expect="violation",
    row="GraphPub, degrees (§3.6)",
    reading="most in its favour: random rounding, L drawn afresh, undirected union",
    smallest=SIZES,
)
def graph_pub_degrees_random(epsilon1=0.5, epsilon2=1.0, nodes=3):
    """Noisy degrees, counts rounded at random, everybody chosen uniformly, and the union released: (ε₁+ε₂)-edge DP.

    Of two nodes the loss is finite, 3.15 for ε₁ + ε₂ = 1.5; of three it is infinite.
    """
    readings = {"rounding": "random", "choice": "uniformly", "union": True}
    return published(nodes, epsilon2, degree_epsilon=epsilon1, **readings)


@audit(
    source=GRAPH_PUB,
    expect="violation",
    row="GraphPub ablations",
    reading="L replaced by a random matrix",
    smallest=SIZES,
)
def graph_pub_random_scores(epsilon=1.0, nodes=4):
    """The selection by a random matrix, fresh in every run, provides ε-edge DP."""
    return published(nodes, epsilon, choice="uniformly")


@audit(
    source=GRAPH_PUB,
    expect="violation",
    row="GraphPub ablations",
    reading="A_s replaced by A, L by one untrained linear layer, counts rounded down",
    smallest=SIZES,
)
def graph_pub_adjacency_scores(epsilon=1.0, nodes=4):
    """The selection by an L computed from A itself provides ε-edge DP (one untrained linear layer, counts rounded down)."""
    return published(
        nodes, epsilon, rounding="floor", scores=linear_scores(embedding(nodes))
    )


def share_kept(epsilon, nodes, degree):
    """Return the share of its real neighbours that a node of this degree publishes."""
    return float(counts(epsilon, degree, nodes)[0]) / degree


@audit(
    source="derived here",
    row="GraphPub",
    reading="every pair at random, by public degree and L",
    repairs="graph_pub",
)
def graph_pub_response(epsilon=1.0, nodes=3, degree=1.5):
    """Each pair published with probability q, or p = E·q where it is an edge, q by a public degree and L, has ε-edge DP."""
    scores = score_matrix(embedding(nodes))
    kept = share_kept(epsilon, **CORA)
    return Audit(
        mechanism=GraphPubResponse(epsilon, nodes, scores, degree),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        controls=[GraphPubResponse(2 * epsilon, nodes, scores, degree)],
        calls=20_000,
        cost=(
            "with equal L as many real and other neighbours on average, but no longer exactly: a node publishes m with "
            "standard"
            f"deviation near √m, {math.sqrt(CORA['degree']):.2g} at the mean degree {CORA['degree']:.3g} of Cora, where it "
            f"was 0; there {100 * kept:.2g} % of the real neighbours are shown at ε = {epsilon:g}, before and after"
        ),
    )


def second_neighbour(nodes):
    """Return the pair on which a list published bit by bit loses most: with two neighbours, or with one of them."""
    one, other = np.eye(2, nodes - 1, dtype=np.int8)
    return Pair(one + other, one, "two neighbours | one of them")


@audit(
    source="derived here",
    row="GraphPub, degrees (§3.6)",
    reading="every bit at random, by the noisy degree",
    repairs="graph_pub_degrees",
)
def graph_pub_list(epsilon1=0.5, epsilon2=1.0, nodes=5):
    """A list published bit by bit, at rates given by its noisy degree, provides (ε₁+ε₂)-edge LDP."""
    return Audit(
        mechanism=GraphPubList(epsilon1, epsilon2, nodes),
        claim=PureDP(epsilon1 + epsilon2),
        pairs=NeighbourList(nodes),
        controls=[GraphPubList(epsilon1, 2 * epsilon2, nodes)],
        play=[second_neighbour(nodes), *NeighbourList(nodes).pairs()[:1]],
        calls=1_000_000,
        cost="ε₁ + ε₂ for one list, twice that for an undirected edge, which is in two; and numbers hold on average only",
    )


@audit(
    source="derived here",
    row="GraphPub, degrees (§3.6)",
    reading="every bit at random, by everybody: an undirected edge",
    repairs="graph_pub_degrees",
)
def graph_pub_lists(epsilon1=0.25, epsilon2=0.5, nodes=3):
    """All lists published bit by bit, at rates given by noisy degrees, provide 2(ε₁+ε₂)-edge DP."""
    return Audit(
        mechanism=PerUser(GraphPubList(epsilon1, epsilon2, nodes), nodes),
        claim=PureDP(2 * (epsilon1 + epsilon2)),
        pairs=Edges(nodes),
        controls=[PerUser(GraphPubList(epsilon1, 4 * epsilon2, nodes), nodes)],
        calls=20_000,
        equivalent_mutants={
            "noise reused: draw 1, laplace *": "for 3 nodes every noisy degree is 1, whatever its noise is"
        },
        cost="half of (ε₁+ε₂) for each list, so that an undirected edge has the whole",
    )
