"""Edges in the local and the central model: every privacy claim, as stated and as deployed.

"As stated" audits the step that the theorem is about; "as deployed" audits everything that is released, from the raw
private input, under the adjacency that the paper names. Certificates cover all pairs of a small number of nodes.

Budgets, sizes, pairs and calls are such that every fault that ``auditdp mutate`` derives is refuted, or argued to be none.
"""

import numpy as np

from auditdp import (
    Audit,
    Edges,
    NeighbourList,
    NeighbourLists,
    Pair,
    PureDP,
    Relationship,
    audit,
)
from mechanisms.edges import (
    DPRR,
    Customised,
    EdgeRand,
    LapGraph,
    LapGraphNoisy,
    LocalLaplaceGraph,
    LocalLaplaceMessage,
    LocalLaplaceMessages,
    LocalLaplaceRow,
    NonPrivFull,
    NonPrivPart,
    PerUser,
    Publish,
    RandomisedResponse,
    RandomisedResponseGraph,
)
from mechanisms.edges.dprr_statistic import DPRRStatistic

DPRR_PAPER = "Hidano & Murakami 2022, arXiv:2202.10209"
OURS = "a reading that the paper does not make"
LINKTELLER = "Wu et al. 2022 (LinkTeller), arXiv:2108.06504"

THINNING = "the numbers that decide which ones survive do not depend on the list: post-processing of noisy degree and bits"
DPRR_EQUIVALENTS = {
    "noise halved: draw 3,*": THINNING,
    "noise left out: draw 3,*": THINNING,
    "one noise for all coordinates: draw 3,*": THINNING,
}
"""Why mutants keep the DPRR's claim: noise on the degree (ε₁), noise of its own on the bits (ε₂), then post-processing."""


@audit(
    source=f"{DPRR_PAPER}, Section III (Warner's randomised response)",
    row="Warner RR",
    reading="as stated",
)
def warner_rr(epsilon=1.0, nodes=8):
    """Warner's randomised response on a neighbour list provides ε-edge LDP."""
    return Audit(
        mechanism=RandomisedResponse(epsilon),
        claim=PureDP(epsilon),
        pairs=NeighbourList(nodes),
        controls=[RandomisedResponse(1.5 * epsilon), Publish()],
    )


@audit(
    source=f"{DPRR_PAPER}, Proposition 1", row="Warner RR", reading="undirected graph"
)
def warner_rr_relationship(epsilon=1.0, nodes=3):
    """ε-edge LDP for every list protects an undirected edge, which is in two lists, with 2ε-relationship DP."""
    return Audit(
        mechanism=RandomisedResponseGraph(epsilon, nodes),
        claim=PureDP(2 * epsilon),
        pairs=Relationship(nodes),
        controls=[RandomisedResponseGraph(1.5 * epsilon, nodes), NonPrivFull(nodes)],
    )


@audit(
    source=f"{DPRR_PAPER}, Proposition 2",
    row="DPRR (Alg. 1)",
    reading="as stated, noisy degree clipped at 0",
)
def dprr(epsilon1=0.5, epsilon2=0.5, nodes=8):
    """The DPRR provides (ε₁ + ε₂)-edge LDP (noisy degree clipped at 0, as implemented)."""
    pairs = NeighbourList(nodes)
    return Audit(
        mechanism=DPRR(epsilon1, epsilon2),
        claim=PureDP(epsilon1 + epsilon2),
        pairs=pairs,
        controls=[DPRR(epsilon1, 3 * epsilon2), Publish()],
        play=pairs.pairs(),
        equivalent_mutants=DPRR_EQUIVALENTS,
    )


@audit(
    source=f"{DPRR_PAPER}, Proposition 2 and Algorithm 1",
    row="DPRR (Alg. 1)",
    reading="as printed",
)
def dprr_as_printed(epsilon1=0.5, epsilon2=0.5, nodes=8):
    """The DPRR provides (ε₁ + ε₂)-edge LDP (formula as printed: a very negative noisy degree keeps every one)."""
    pairs = NeighbourList(nodes)
    return Audit(
        mechanism=DPRR(epsilon1, epsilon2, clip_degree=False),
        claim=PureDP(epsilon1 + epsilon2),
        pairs=pairs,
        controls=[DPRR(epsilon1, 3 * epsilon2, clip_degree=False)],
        play=pairs.pairs(),
        equivalent_mutants=DPRR_EQUIVALENTS,
    )


@audit(
    source=f"{DPRR_PAPER}, Propositions 1 and 2",
    row="DPRR (Alg. 1)",
    reading="by every user, noisy degree clipped at 0",
)
def dprr_relationship(epsilon1=0.25, epsilon2=0.25, nodes=4):
    """The DPRR by every user provides 2(ε₁ + ε₂)-relationship DP.

    With four users and this budget, the one pair that is played shows every fault, noise that users share among them.
    """
    pairs = Relationship(nodes)
    return Audit(
        mechanism=PerUser(DPRR(epsilon1, epsilon2), nodes),
        claim=PureDP(2 * (epsilon1 + epsilon2)),
        pairs=pairs,
        controls=[PerUser(DPRR(epsilon1, 4 * epsilon2), nodes)],
        play=pairs.pairs()[:1],
        calls=100_000,
        equivalent_mutants=DPRR_EQUIVALENTS,
    )


@audit(
    source=f"{DPRR_PAPER}, Equation 8 (allocation of the budget), plotted as 'ε'",
    expect="violation",
    row="DPRR, allocated",
    reading="the smallest graph",
    smallest={"nodes": range(2, 9)},
)
def dprr_allocated(epsilon=2.0, nodes=8):
    """The DPRR with ε₁ = max{√(8/(n_max−1)), (1−α)ε} and ε₂ = αε, plotted as ε, provides ε-edge LDP.

    False as soon as √(8/(n_max−1)) > (1−α)ε: the two parts then sum to more than ε. Here on the smallest graphs, where
    every list can be enumerated; ``dprr_allocated_reddit`` has the size and an ε of the paper's own experiments.
    """
    return Audit(
        mechanism=DPRR.allocated(epsilon, nodes),
        claim=PureDP(epsilon),
        pairs=NeighbourList(nodes),
    )


@audit(
    source=f"{DPRR_PAPER}, Equation 8, at the size of REDDIT-MULTI-5K's largest graph",
    expect="violation",
    row="DPRR, allocated",
    reading="REDDIT-MULTI-5K at ε = .2",
)
def dprr_allocated_reddit(epsilon=0.2, n_max=3782, degree=0):
    """The DPRR with the published allocation on a graph of n_max nodes, plotted as ε, provides ε-edge LDP.

    False at the ε = .2 of the paper's figures: ε₁ = √(8/3781) = .046 and ε₂ = .18 sum to .226. Exact evidence
    enumerates a sufficient statistic of the list; a violation this small is far beyond what sampling can see.
    """
    return allocated_on(epsilon, n_max, degree)


@audit(
    source=f"{DPRR_PAPER}, Equation 8 and Figure 6, at the size of Github StarGazers' largest graph",
    expect="violation",
    row="DPRR, allocated",
    reading="Github StarGazers at ε = .1",
)
def dprr_allocated_github(epsilon=0.1, n_max=957, degree=0):
    """The DPRR with the published allocation on a graph of n_max nodes, plotted as ε, provides ε-edge LDP.

    False: ε₁ = √(8/956) = .0915 and ε₂ = .09 sum to .1815, the largest excess among the settings of the paper's figures.
    """
    return allocated_on(epsilon, n_max, degree)


def allocated_on(epsilon, n_max, degree):
    """Audit the published allocation on lists of n_max − 1 bits, by a sufficient statistic of two neighbours."""
    statistic = DPRRStatistic(DPRR.allocated(epsilon, n_max), n_max - 1, degree)
    return Audit(
        mechanism=statistic,
        claim=PureDP(epsilon),
        pairs=NeighbourList(n_max),
        play=[statistic.pair],
        exhaustive=False,
        evidence=["exact"],
    )


@audit(
    source=f"repair of {DPRR_PAPER}, Equation 8",
    row="DPRR, allocated",
    reading="ε₂ = ε − ε₁",
    repairs="dprr_allocated",
)
def dprr_allocated_repaired(epsilon=2.0, nodes=8):
    """The DPRR with the same ε₁ and ε₂ = ε − ε₁ provides ε-edge LDP."""
    pairs, published, repaired = (
        NeighbourList(nodes),
        DPRR.allocated(epsilon, nodes),
        DPRR.allocated_within(epsilon, nodes),
    )
    return Audit(
        mechanism=repaired,
        claim=PureDP(epsilon),
        pairs=pairs,
        controls=[DPRR.allocated(2 * epsilon, nodes)],
        play=pairs.pairs(),
        equivalent_mutants=DPRR_EQUIVALENTS,
        cost=(
            f"a bit is kept with probability {repaired.keep:.3f} instead of {published.keep:.3f} "
            f"(n_max = {nodes}, ε = {epsilon:g})"
        ),
    )


@audit(source=f"{DPRR_PAPER}, baseline LocalLap", row="LocalLap", reading="as stated")
def local_laplace(epsilon=1.0, nodes=6):
    """LocalLap, as stated: a user's noisy degree and noisy cells provide ε-edge LDP (ε₁ = ε/10, ε₂ = ε − ε₁)."""
    return Audit(
        mechanism=LocalLaplaceMessage(epsilon),
        claim=PureDP(epsilon),
        pairs=NeighbourList(nodes),
        controls=[LocalLaplaceMessage(1.5 * epsilon)],
    )


@audit(
    source=f"{DPRR_PAPER}, baseline LocalLap with Proposition 1",
    row="LocalLap",
    reading="undirected graph, all messages",
)
def local_laplace_relationship(epsilon=1.0, nodes=4):
    """LocalLap, all messages: 2ε-relationship DP; exactly 1.1ε, since only one of two users sends the cell."""
    pairs = Relationship(nodes)
    return Audit(
        mechanism=LocalLaplaceMessages(epsilon, nodes),
        claim=PureDP(2 * epsilon),
        pairs=pairs,
        controls=[LocalLaplaceMessages(2.5 * epsilon, nodes)],
        play=pairs.pairs()[:1],
        calls=500_000,
    )


HALF_OF_THE_NOISE = "half of all noise makes it the mechanism with 2ε, whose stated law is certified: ε = 1.682 on all pairs"


@audit(
    source=f"{DPRR_PAPER}, baseline LocalLap with Proposition 1",
    row="LocalLap",
    reading="as deployed, the server's graph",
)
def local_laplace_graph(epsilon=1.0, nodes=4):
    """LocalLap, as deployed: the server's graph of the T largest cells provides 2ε-relationship DP."""
    return Audit(
        mechanism=LocalLaplaceGraph(epsilon, nodes),
        claim=PureDP(2 * epsilon),
        pairs=Relationship(nodes),
        controls=[LocalLaplaceGraph(8 * epsilon, nodes)],
        equivalent_mutants={"noise halved: draw 1,*": HALF_OF_THE_NOISE},
    )


@audit(source=LINKTELLER, row="EdgeRand", reading="as stated and as deployed")
def edge_rand(epsilon=1.0, nodes=4):
    """EdgeRand provides ε-edge DP."""
    return Audit(
        mechanism=EdgeRand(epsilon, nodes),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        controls=[EdgeRand(1.5 * epsilon, nodes)],
    )


@audit(source=LINKTELLER, row="LapGraph", reading="as stated")
def lap_graph(epsilon=1.0, nodes=4):
    """LapGraph, as stated: the noisy edge count (ε₁ = .01ε) and the noisy cells provide ε-edge DP."""
    return Audit(
        mechanism=LapGraphNoisy(epsilon, nodes),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        controls=[LapGraphNoisy(1.5 * epsilon, nodes)],
    )


@audit(source=LINKTELLER, row="LapGraph", reading="as deployed")
def lap_graph_deployed(epsilon=1.0, nodes=4):
    """LapGraph, as deployed: the released graph of the T largest cells provides ε-edge DP."""
    pairs = Edges(nodes)
    return Audit(
        mechanism=LapGraph(epsilon, nodes),
        claim=PureDP(epsilon),
        pairs=pairs,
        controls=[LapGraph(6 * epsilon, nodes)],
        play=[*pairs.pairs(), _path_closed(nodes)],
        calls=300_000,
    )


def _path_closed(nodes):
    """Return a path through all nodes, and the same with its ends joined."""
    path = np.eye(nodes, k=1, dtype=np.int8) + np.eye(nodes, k=-1, dtype=np.int8)
    cycle = path.copy()
    cycle[0, -1] = cycle[-1, 0] = 1
    return Pair(cycle, path, "path + 1 edge")


@audit(
    source=f"{DPRR_PAPER}, customised setting",
    row="customised setting",
    reading="as stated, RR",
)
def customised_rr(epsilon=1.0, nodes=3):
    """Customised setting with RR: ε-edge LDP for a private user's own list, others publishing theirs."""
    return Audit(
        mechanism=Customised(RandomisedResponse(epsilon), nodes, private=(0,)),
        claim=PureDP(epsilon),
        pairs=NeighbourLists(nodes, protected=(0,)),
        controls=[Customised(RandomisedResponse(1.5 * epsilon), nodes, private=(0,))],
    )


@audit(
    source=f"{DPRR_PAPER}, customised setting",
    row="customised setting",
    reading="as stated, DPRR",
)
def customised_dprr(epsilon1=0.5, epsilon2=0.5, nodes=3):
    """Customised setting with the DPRR: (ε₁ + ε₂)-edge LDP for a private user's own list, others publishing theirs."""
    pairs = NeighbourLists(nodes, protected=(0,))
    return Audit(
        mechanism=Customised(DPRR(epsilon1, epsilon2), nodes, private=(0,)),
        claim=PureDP(epsilon1 + epsilon2),
        pairs=pairs,
        controls=[Customised(DPRR(epsilon1, 3 * epsilon2), nodes, private=(0,))],
        play=pairs.pairs(),
        calls=200_000,
        equivalent_mutants=DPRR_EQUIVALENTS,
    )


@audit(
    source=f"{DPRR_PAPER}, customised setting",
    row="customised setting",
    reading="as stated, LocalLap",
)
def customised_local_laplace(epsilon=2.0, nodes=3):
    """Customised setting with LocalLap row by row: ε-edge LDP for a private user's list, others publishing theirs."""
    pairs = NeighbourLists(nodes, protected=(0,))
    return Audit(
        mechanism=Customised(LocalLaplaceRow(epsilon), nodes, private=(0,)),
        claim=PureDP(epsilon),
        pairs=pairs,
        controls=[Customised(LocalLaplaceRow(6 * epsilon), nodes, private=(0,))],
        play=pairs.pairs(),
        calls=300_000,
    )


@audit(
    source=f"{OURS}: {DPRR_PAPER}, Section III, says that relationship DP does not hold there",
    expect="violation",
)
def customised_relationship(epsilon=1.0, nodes=2):
    """Customised setting: a private user's edges have 2ε-relationship DP whoever is at the other end.

    False, as the paper says: an edge to a non-private user stands in that user's published list. The claim holds for a
    private user's own list (``customised_rr``), and for edges between two private users.
    """
    return Audit(
        mechanism=Customised(RandomisedResponse(epsilon), nodes, private=(0,)),
        claim=PureDP(2 * epsilon),
        pairs=Relationship(nodes),
    )


@audit(
    source=f"{DPRR_PAPER}, customised setting: edges between private users are kept secret; Proposition 1",
    row="customised setting",
    reading="edges between private users, RR",
)
def customised_relationship_private(epsilon=1.0, nodes=3):
    """Customised setting: an edge between two private users has 2ε-relationship DP, other users publishing their lists."""
    private = (0, 1)
    return Audit(
        mechanism=Customised(RandomisedResponse(epsilon), nodes, private=private),
        claim=PureDP(2 * epsilon),
        pairs=Relationship(nodes, among=private),
        controls=[
            Customised(RandomisedResponse(1.5 * epsilon), nodes, private=private)
        ],
        equivalent_mutants={
            "noise reused: draw 1, *": "the bit of the edge is the same in both lists then, and costs ε once"
        },
        cost="edges to users who are not private stay unprotected",
    )


@audit(
    source=f"{OURS} of {DPRR_PAPER}, baseline NonPriv-Full, which protects nobody",
    expect="violation",
)
def nonpriv_full(epsilon=1.0, nodes=2):
    """Everybody publishing their list provides ε-relationship DP (claimed by nobody, at no ε)."""
    return Audit(NonPrivFull(nodes), PureDP(epsilon), Relationship(nodes))


@audit(
    source=f"{DPRR_PAPER}, baseline NonPriv-Part: a graph composed of only non-private users",
    row="NonPriv-Part, NonPriv-Full",
    reading="edges of private users",
)
def nonpriv_part(epsilon=0.01, nodes=3):
    """NonPriv-Part reveals nothing of an edge of a private user, whoever is at the other end (ε = 0, so at any ε).

    All users but one are private here, so that every edge has a private end, and the graph of the others has none.
    """
    return Audit(
        mechanism=NonPrivPart(nodes, tuple(range(nodes - 1))),
        claim=PureDP(epsilon),
        pairs=Relationship(nodes),
        controls=[NonPrivFull(nodes)],
    )
