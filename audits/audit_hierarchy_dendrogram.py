"""The dendrogram of hierarchical random graphs, privHRG and EdgeRR (pHRG): every claim as stated and as deployed.

It is drawn by a chain whose stationary law is meant to be the exponential mechanism for the likelihood of the graph, with
the budget ε₁. What is true, by enumeration of every dendrogram and every pair of graphs of a few nodes:

- With the 2 in the exponent and the sensitivity of Equation 19, the *stationary* law of the chain is the exponential
  mechanism and keeps ε₁.
- After one step from a public dendrogram the loss is infinite, after a few it exceeds ε₁; how many are enough is known for
  small graphs only. A uniformly random start keeps ε₁ after any number of steps on all graphs of up to 5 nodes.
- Without the 2, with Equation 15, or with V_pri taken from the data, the claim is false, each on its own.
- With alternating moves it depends on how many a step has, which the paper leaves open. With one private move or three the
  claim is false, for small budgets; with two, or four and more, all graphs of 3 and 4 nodes keep it.
"""

from auditdp import Audit, Edges, Pair, PureDP, audit
from audits.graphs import BESIDE, SQUARE, WEDGE, graph, telling
from mechanisms.hierarchy import DendrogramStep, PrivateEdgeDP
from mechanisms.hierarchy.dendrogram_step import RepeatedMoves
from mechanisms.hierarchy.likelihood import acceptance_rate

PRIV_HRG = "Xiao, Chen & Tan 2014 (privHRG), KDD"
HETERO_RR = "Tran et al. 2022 (HeteroRR), EdgeRR"
MATCHING = ((0, 3), (1, 2))
"""Two public edges without a common node."""


# The sensitivity of the likelihood.


@audit(
    source=f"{PRIV_HRG}, sensitivity of log L; {HETERO_RR}, Equation 19",
    row="privHRG",
    reading="sensitivity, as stated",
)
def hrg_sensitivity(epsilon=1.0, nodes=4):
    """One edge changes log L of any dendrogram by at most Δ = log N_max − (N_max−1) log((N_max−1)/N_max).

    True and attained for every number of nodes (proof in ``mechanisms/hierarchy/likelihood.py``).
    """
    return Audit(
        mechanism=DendrogramStep(epsilon, nodes),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        controls=[DendrogramStep(epsilon, nodes, equation="15")],
        evidence=["sensitivity"],
        decides="nothing is open: the proof in mechanisms/hierarchy/likelihood.py covers every size",
        equivalent_mutants={
            "*": "the claim bounds the change of log L alone: a larger Δ keeps it, and drawing is for privhrg_dendrogram"
        },
    )


@audit(
    source=f"{HETERO_RR}, Equation 15",
    row="EdgeRR",
    reading="sensitivity, Equation 15",
    expect="miscalibration",
    smallest={"nodes": range(3, 6)},
)
def edge_rr_sensitivity(epsilon=1.0, nodes=4):
    """One edge changes log L of any dendrogram by at most Δ = log N_max + log(1 + 1/(N_max−1)).

    False from 4 nodes on: the second logarithm lacks its factor N_max − 1.
    """
    return Audit(
        mechanism=DendrogramStep(epsilon, nodes, equation="15"),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        evidence=["sensitivity"],
    )


# The dendrogram.


@audit(source=PRIV_HRG, row="privHRG", reading="dendrogram, as stated (stationary law)")
def privhrg_dendrogram(epsilon=1.0, nodes=4):
    """The dendrogram of privHRG, drawn from the stationary law of its chain, is ε₁-edge DP.

    The exact ε is .5ε₁ for 3 nodes, and for ε₁ = 1 it is .471 for 4, .497 for 5 and .490 for 6.
    """
    return Audit(
        mechanism=DendrogramStep(epsilon, nodes),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        controls=[DendrogramStep(5 * epsilon, nodes)],
        play=[*telling(nodes), SQUARE],
    )


@audit(
    source=f"a reading that the paper does not make: {PRIV_HRG}, which starts at random, from a public dendrogram",
    expect="violation",
    row="privHRG",
    reading="dendrogram, one step from a public dendrogram",
    smallest={"nodes": range(3, 5)},
)
def privhrg_dendrogram_one_step(epsilon=1.0, nodes=3):
    """The dendrogram of privHRG after one step of its chain from a public dendrogram is ε₁-edge DP.

    False with an infinite loss: where no move lowers the likelihood every move is accepted, and the start cannot be kept.
    """
    return Audit(
        mechanism=DendrogramStep(epsilon, nodes, steps=1),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        play=Edges(nodes).pairs()[:1],
    )


@audit(
    source=f"a reading that the paper does not make: {PRIV_HRG}, which starts at random, from a public dendrogram",
    expect="violation",
    row="privHRG",
    reading="dendrogram, three steps from a public dendrogram",
    smallest={"nodes": range(3, 5)},
)
def privhrg_dendrogram_few_steps(epsilon=0.1, nodes=4, steps=3):
    """The dendrogram of privHRG after three steps of its chain from a public dendrogram is ε₁-edge DP.

    False at ε₁ = .1: the exact ε is 1.31ε₁ for 3 nodes and 1.86ε₁ for 4. There it falls to .82ε₁ with the fourth step and
    tends to .475ε₁; at ε₁ = 1 two steps exceed ε₁ for 3 nodes (1.08ε₁) and none beyond the first for 4.
    """
    return Audit(
        mechanism=DendrogramStep(epsilon, nodes, steps=steps),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        evidence=["exact"],
    )


@audit(
    source=f"repair of {PRIV_HRG}",
    row="privHRG",
    reading="dendrogram, 12 steps from a public dendrogram",
)
def privhrg_dendrogram_enough_steps(epsilon=1.0, nodes=4, steps=12):
    """The dendrogram of privHRG after 3·nodes steps from a public dendrogram is ε₁-edge DP: for 4 nodes.

    For larger graphs the claim has this form only if the chain's distance from its stationary law is bounded.
    """
    return Audit(
        mechanism=DendrogramStep(epsilon, nodes, steps=steps),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        controls=[DendrogramStep(5 * epsilon, nodes, steps=steps)],
        play=[telling(nodes)[0], Edges(nodes).pairs()[-1]],
        equivalent_mutants={
            "noise halved: draw 2, random in ExactChain.run*": (
                "squared odds of acceptance: by enumeration of all pairs of 4 nodes the exact ε is then .336"
            ),
        },
        cost=f"{steps} steps for {nodes} nodes; log L keeps its whole weight",
        decides="a bound on the mixing time of the chain for the sizes that are deployed",
    )


@audit(
    source=PRIV_HRG,
    row="privHRG",
    reading="dendrogram, one step from a random start",
)
def privhrg_dendrogram_uniform_start(epsilon=1.0, nodes=4, steps=1):
    """The dendrogram of privHRG after one step from a uniformly random dendrogram is ε₁-edge DP: for 4 nodes.

    By enumeration at most .75ε₁ for 3 to 5 nodes, any number of steps and ε₁ from .001 to 10; no proof for larger graphs.
    """
    return Audit(
        mechanism=DendrogramStep(epsilon, nodes, steps=steps, start="uniform"),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        controls=[DendrogramStep(20 * epsilon, nodes, steps=steps, start="uniform")],
        play=[
            telling(nodes)[0],
            Pair(graph(nodes, (2, 3)), graph(nodes), "an edge | none"),
        ],
        calls=50_000,  # the control needs some 2,000, as many as the quick budget has
        equivalent_mutants={
            "noise halved: draw 3, random in ExactChain.run*": (
                "squared odds of acceptance: by enumeration of all pairs of 4 nodes the exact ε is then .211"
            ),
        },
        cost="none in ε₁: the start is drawn anew for each release",
        decides="a proof for every size that the chain from a uniform start loses at most ε₁ after any number of steps",
    )


@audit(
    source=f"{HETERO_RR}, exponent as printed",
    row="EdgeRR",
    reading="dendrogram, no 2, Equation 19",
    expect="violation",
    smallest={"nodes": range(3, 5)},
)
def edge_rr_dendrogram(epsilon=5.0, nodes=4):
    """The dendrogram with acceptance min(1, exp(ε₁ΔlogL/Δ)), Δ of Equation 19, is ε₁-edge DP (stationary law).

    False: the exponential mechanism pays once for the weight and once for its sum, up to 2ε₁. The exact ε is 1.159ε₁ here;
    at ε₁ = 2 it is .997ε₁ for 4 nodes, 1.11ε₁ for 5 and 1.17ε₁ for 6; with 3 nodes it is ε₁ for every ε₁.
    """
    return Audit(
        mechanism=DendrogramStep(epsilon, nodes, factor=1),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        evidence=["exact"],
    )


@audit(
    source=f"{HETERO_RR}, exponent as printed with Equation 15",
    row="EdgeRR",
    reading="dendrogram, no 2, Equation 15",
    expect="violation",
    smallest={"nodes": range(3, 5)},
)
def edge_rr_dendrogram_printed(epsilon=0.5, nodes=4):
    """The dendrogram with acceptance min(1, exp(ε₁ΔlogL/Δ)), Δ of Equation 15, is ε₁-edge DP (stationary law).

    False: 1.26ε₁ for 4 nodes at ε₁ = .5, 1.34ε₁ for 5, and up to 2.16ε₁ for 6 nodes at ε₁ = 10.
    """
    return Audit(
        mechanism=DendrogramStep(epsilon, nodes, factor=1, equation="15"),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        evidence=["exact"],
    )


@audit(
    source=f"a reading that the paper does not make: {HETERO_RR}, Equation 15, with the 2 of a published implementation",
    expect="violation",
    smallest={"nodes": range(2, 6)},
)
def edge_rr_dendrogram_equation_15(epsilon=20.0, nodes=5):
    """The dendrogram with acceptance min(1, exp(ε₁ΔlogL/(2Δ))), Δ of Equation 15, is ε₁-edge DP (stationary law).

    False: 1.06ε₁ for 5 nodes at ε₁ = 20 (1.02ε₁ at 10). On all pairs of 4 nodes it is at most .95ε₁ up to ε₁ = 40, and of 5
    and 6 nodes at most .71ε₁ up to ε₁ = 2, so that this fault does not show at small ε₁.
    """
    return Audit(
        mechanism=DendrogramStep(epsilon, nodes, equation="15"),
        claim=PureDP(epsilon),
        pairs=Edges(nodes, unlabelled=True),
        evidence=["exact"],
    )


@audit(
    source=f"repair of {HETERO_RR}, exponent and Equation 15",
    row="EdgeRR",
    reading="dendrogram, with the 2, Equation 19",
    repairs="edge_rr_dendrogram_printed",
)
def edge_rr_dendrogram_repaired(epsilon=0.5, nodes=4):
    """The dendrogram with acceptance min(1, exp(ε₁ΔlogL/(2Δ))), Δ of Equation 19, is ε₁-edge DP (stationary law)."""
    printed = acceptance_rate(epsilon, 2000, equation="15", factor=1)
    return Audit(
        mechanism=DendrogramStep(epsilon, nodes),
        claim=PureDP(epsilon),
        pairs=Edges(nodes),
        controls=[DendrogramStep(8 * epsilon, nodes)],
        play=telling(nodes),
        cost=(
            f"the weight of log L falls by a factor of {printed / acceptance_rate(epsilon, 2000):.3g} at 2,000 private nodes"
        ),
    )


# Public and private moves.


@audit(
    source=f"{HETERO_RR}, Algorithm 2, lines 6 to 15",
    row="EdgeRR",
    reading="dendrogram, one private move a step; with the 2 and Equation 19",
    expect="violation",
)
def edge_rr_one_private_move(epsilon=0.1, public_moves=1):
    """The dendrogram of a chain with one public and one private move a step is ε₁-edge DP for private edges.

    False even with the 2, Equation 19 and at the stationary law, on 3 nodes with public edges 0-1 and 0-2: 1.039ε₁ with one
    public move a step, 1.782ε₁ with ten or more. At ε₁ = .9 and above all graphs of 3 and 4 nodes keep ε₁. Each kind of
    moves has a stationary law, both in turn have neither: public moves lead back to where one private move shows whether it
    was accepted.
    """
    return Audit(
        mechanism=RepeatedMoves(
            epsilon, 3, moves="alternating", public=WEDGE, public_moves=public_moves
        ),
        claim=PureDP(epsilon),
        pairs=PrivateEdgeDP(3, WEDGE),
        evidence=["exact"],
    )


@audit(
    source=f"{HETERO_RR}, Algorithm 2, lines 6 to 15",
    row="EdgeRR",
    reading="dendrogram, three private moves a step; with the 2 and Equation 19",
    expect="violation",
)
def edge_rr_three_private_moves(epsilon=0.05, public_moves=100, private_moves=3):
    """The dendrogram of a chain with three private moves a step, after public ones, is ε₁-edge DP for private edges.

    False on 4 nodes with public edges 0-3 and 1-2: 1.058ε₁ here, and ε₁ is kept with up to ten public moves a step, or at
    ε₁ = .1. On 5 nodes it is 1.175ε₁ at .1.
    """
    step = RepeatedMoves(
        epsilon,
        4,
        moves="alternating",
        public=MATCHING,
        public_moves=public_moves,
        private_moves=private_moves,
    )
    return Audit(
        mechanism=step,
        claim=PureDP(epsilon),
        pairs=PrivateEdgeDP(4, MATCHING),
        evidence=["exact"],
    )


@audit(
    source=f"{HETERO_RR}, Algorithm 2, lines 6 to 15, with Equations 14 and 15",
    row="EdgeRR",
    reading="dendrogram, all as printed",
    expect="violation",
)
def edge_rr_dendrogram_as_printed(epsilon=0.1, public_moves=1):
    """The dendrogram of Algorithm 2 as printed, public and private moves and no 2, is ε₁-edge DP for private edges.

    False at the least budget of the paper's figures and at the stationary law, on 3 nodes with public edges 0-1 and 0-2,
    where both printed sensitivities agree: 1.95ε₁ with one public and one private move a step, as Section III-B has it, and
    3.22ε₁ with ten public ones.
    """
    step = RepeatedMoves(
        epsilon,
        3,
        moves="alternating",
        public=WEDGE,
        public_moves=public_moves,
        factor=1,
        equation="15",
    )
    return Audit(
        mechanism=step,
        claim=PureDP(epsilon),
        pairs=PrivateEdgeDP(3, WEDGE),
        evidence=["exact"],
    )


@audit(
    source=f"{HETERO_RR}, Algorithm 2, lines 3 to 15, with Equations 14 and 15",
    row="EdgeRR",
    reading="dendrogram, all as printed, one step from a random dendrogram",
    expect="violation",
)
def edge_rr_dendrogram_one_step(epsilon=0.1, public_moves=1):
    """The dendrogram of Algorithm 2 as printed, after one step from a random dendrogram, is ε₁-edge DP for private edges.

    False as at the stationary law, by 2.36ε₁: that the chain has not converged is no way out.
    """
    step = RepeatedMoves(
        epsilon,
        3,
        steps=1,
        start="uniform",
        moves="alternating",
        public=WEDGE,
        public_moves=public_moves,
        factor=1,
        equation="15",
    )
    return Audit(
        mechanism=step,
        claim=PureDP(epsilon),
        pairs=PrivateEdgeDP(3, WEDGE),
        evidence=["exact"],
    )


@audit(
    source=f"repair of {HETERO_RR}, pHRG",
    row="EdgeRR",
    reading="dendrogram, joint moves",
    repairs="edge_rr_one_private_move",
)
def edge_rr_joint(epsilon=1.0):
    """The dendrogram of moves accepted with min(1, exp(Δlog L_pub + ε₁Δlog L_pri/(2Δ))) is ε₁-edge DP (stationary law).

    It is the exponential mechanism for log L_pri over the public law exp(log L_pub).
    """
    pairs = PrivateEdgeDP(4, WEDGE)
    found = {"moves": "joint", "public": WEDGE}
    return Audit(
        mechanism=DendrogramStep(epsilon, 4, **found),
        claim=PureDP(epsilon),
        pairs=pairs,
        controls=[DendrogramStep(8 * epsilon, 4, **found)],
        play=[BESIDE],
        cost="none: a step has one acceptance for both likelihoods",
    )


# The nodes with private edges.


@audit(
    source=f"{HETERO_RR}, V_pri",
    row="EdgeRR",
    reading="dendrogram, V_pri from the data",
    expect="violation",
    smallest={"nodes": range(2, 7)},
)
def edge_rr_private_nodes_dendrogram(epsilon=0.1, nodes=6):
    """The dendrogram alone, V_pri being the nodes that have a private edge, is ε₁-edge DP (with the 2, Equation 19).

    False: a first edge of a node changes N_r at all its ancestors. 1.2ε₁ on 6 nodes; on all pairs of 3, 4 and 5 nodes it
    is at most .33, .59 and .91ε₁. Two edges of 4 nodes change log L by 3.30 where Δ is 2.25.
    """
    return Audit(
        mechanism=DendrogramStep(epsilon, nodes, private_nodes="data"),
        claim=PureDP(epsilon),
        pairs=Edges(nodes, unlabelled=True),
        evidence=["exact"],
    )
