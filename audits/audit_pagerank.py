"""DP-APPR-EM, the K largest entries of rows of PageRank with Gumbel noise: one row, all rows, and as deployed.

"Node DP" is read twice: the edges of one node of a public universe of ids are replaced, or a node is added or removed. On
graphs of few nodes every entry of a row is above C₂ = .001 or zero, so clipped rows show who is connected to the seed.

The neighbours differ in everything that a theorem allows, so a certificate that covers all pairs of four ids is one about
the mechanism and those; certificates "as declared" hold for any number of ids, given the sensitivity that they name.
"""

import numpy as np

from auditdp import ApproxDP, Audit, Nodes, Pair, PureDP, QueryAnswers, audit
from audits.graphs import graph, hub_changed
from mechanisms.pagerank import (
    DPApprEM,
    DPApprEMValues,
    GivenRows,
    PlainRows,
    PublicRows,
    SampledRows,
    SelectedValues,
    entry_epsilon,
    row_epsilon,
    share_of_row,
)

DPAR = "Zhang et al. 2024 (DPAR), arXiv:2210.04442"
ONE_ROW, MATRIX = "DP-APPR-EM, one row", "DP-APPR-EM, matrix of M rows"


def hub_of_two(nodes):
    """Return the pair in which node 0 leaves the hub 3 of all others for node 1, whose leaf is 2: two entries rise."""
    rest = [(1, 2), *((3, leaf) for leaf in range(4, nodes))]
    return [
        Pair(
            graph(nodes, *rest, (0, 3)),
            graph(nodes, *rest, (0, 1)),
            "leaf of a large hub | of a small one",
        )
    ]


def leaf_removed(nodes):
    """Return the pair in which node 1 loses its only neighbour, who is then not there: its row differs."""
    there = np.eye(nodes, dtype=np.int8)
    gone = np.diag(np.r_[np.ones(nodes - 1, np.int8), 0]).astype(np.int8)
    return [Pair(there + graph(nodes, (1, nodes - 1)), gone, "leaf | no leaf")]


SOME_RISE = np.array([1.0, 1.0, 0.0, 0.0])
VALUES_HALVED = "the sets of two of eight ids lose 1.6 of 2 at most (``set_epsilon``), so the values may lose .5 instead of .25"  # noqa: E501


SAMPLED_EQUIVALENTS = {
    "*: draw 1, random in SampledRows.draw*": "whose rows they are does not depend on who is there"
}
"""Why mutants keep the claim of a selection from rows that are sampled among all ids."""


def twice(loss):
    """Return why half of the noise keeps a claim that has slack on few ids."""
    reason = (
        f"with twice the ε, all pairs of so few ids lose at most {loss}, by enumeration"
    )
    return {"noise halved: draw *, gumbel in *": reason}


@audit(
    source=f"a claim that nobody makes, of the input of {DPAR}, as in Fountoulakis et al. 2019",
    expect="violation",
    smallest={"nodes": range(2, 5)},
)
def ista_appr(epsilon=1.0, nodes=3):
    """A row of approximate PageRank, released as it is, is ε-node DP (claimed by nobody, at no ε).

    Nothing is drawn, so that two graphs with different rows are told apart for certain.
    """
    return Audit(
        PlainRows(PublicRows(nodes)), PureDP(epsilon), Nodes(nodes), calls=5_000
    )


# One row.


@audit(
    source=f"{DPAR}, Corollary 1",
    row=ONE_ROW,
    reading="as stated, from the graph, one node's edges replaced",
)
def dp_appr_em(epsilon=0.25, k=2, delta=1e-3, nodes=4):
    """The K largest entries of a public node's row, clipped to [0, C₂] with Gumbel(C₂/ε), are (ε₁, δ)-node DP.

    With K = 2 the first term is the least, and ε₁ = 2Kε = 1.
    """
    return Audit(
        mechanism=DPApprEM(epsilon, k, PublicRows(nodes)),
        claim=ApproxDP(row_epsilon(epsilon, k, delta), delta),
        pairs=Nodes(nodes),
        controls=[DPApprEM(12 * epsilon, k, PublicRows(nodes))],
        play=hub_changed(nodes),
        calls=60_000,
        equivalent_mutants=twice(".885 of 1"),
    )


@audit(
    source=f"{DPAR}, Corollary 1",
    row=ONE_ROW,
    reading="as stated, any clipped entries, their order released too",
)
def dp_appr_em_entries(epsilon=0.25, k=2, delta=1e-3, clip=0.001):
    """The K largest of n numbers in [0, C₂], in order, with Gumbel(C₂/ε), are (ε₁, δ)-DP whatever numbers change.

    On numbers that are 0 or C₂; the loss nears 2Kε as ever more fall and few rise.
    """
    nodes = len(SOME_RISE)
    rows = GivenRows(nodes)
    return Audit(
        mechanism=DPApprEM(epsilon, k, rows, clip, ordered=True),
        claim=ApproxDP(row_epsilon(epsilon, k, delta), delta),
        pairs=QueryAnswers(nodes, "all", clip, largest=1),
        controls=[DPApprEM(12 * epsilon, k, rows, clip, ordered=True)],
        play=[Pair(clip * SOME_RISE, clip * (1 - SOME_RISE), "two fall, two rise")],
        calls=200_000,
    )


@audit(
    source=(
        f"a reading that the paper does not make: {DPAR}, Corollary 1, without its factor 2, as for counts (Durfee & Rogers "
        "2019, arXiv:1905.04273)"
    ),
    expect="violation",
    smallest={"nodes": range(2, 6)},
)
def dp_appr_em_counted_once(epsilon=0.5, k=1, delta=1e-3, nodes=4):
    """The K largest with Gumbel(C₂/ε) are (min{Kε, ..}, δ)-node DP, each selection counted as ε.

    False from four ids on.

    True where all entries change in one direction. But a seed that moves from one part of the graph to another lets some
    rise and others fall.
    """
    return Audit(
        mechanism=DPApprEM(epsilon, k, PublicRows(nodes)),
        claim=ApproxDP(row_epsilon(epsilon, k, delta, each=1), delta),
        pairs=Nodes(nodes),
        calls=5_000,
    )


@audit(
    source=f"{DPAR}, Corollary 1",
    row=ONE_ROW,
    reading="each selection counted as 2ε",
)
def dp_appr_em_counted_twice(epsilon=0.5, k=1, delta=1e-3, nodes=4):
    """The K largest with Gumbel(C₂/ε) are (min{2Kε, ..}, δ)-node DP: Corollary 1 with its factor 2.

    True, for K = 1.
    """
    return Audit(
        mechanism=DPApprEM(epsilon, k, PublicRows(nodes)),
        claim=ApproxDP(row_epsilon(epsilon, k, delta), delta),
        pairs=Nodes(nodes),
        controls=[DPApprEM(6 * epsilon, k, PublicRows(nodes))],
        play=hub_changed(nodes),
        calls=60_000,
        cost="twice the noise for the same ε₁, which is what Corollary 1 has; its published code draws Gumbel(2C₂/ε)",
    )


@audit(
    source=f"{DPAR}, Corollary 1, option II",
    row=ONE_ROW,
    reading="as stated, option II",
)
def dp_appr_em_values(epsilon=0.5, value_epsilon=0.25, k=2, delta=1e-6, nodes=8):
    """The K largest with their clipped values and Lap(KC₂/ε₂) are (ε₁ + ε₂, δ)-node DP.

    True: the two steps compose.
    """
    rows = PublicRows(nodes)
    return Audit(
        mechanism=DPApprEMValues(DPApprEM(epsilon, k, rows), value_epsilon),
        claim=ApproxDP(row_epsilon(epsilon, k, delta) + value_epsilon, delta),
        pairs=Nodes(nodes),
        controls=[
            DPApprEMValues(DPApprEM(16 * epsilon, k, rows), value_epsilon),
            DPApprEMValues(DPApprEM(epsilon, k, rows), 24 * value_epsilon),
        ],
        play=hub_of_two(nodes),
        calls=200_000,
        equivalent_mutants={"noise halved: draw 2, laplace in *": VALUES_HALVED},
        decides=(
            "nothing sampled: it follows by basic composition from the certificates of both steps, ``dp_appr_em`` and "
            "``dp_appr_em_values_given``"
        ),
    )


@audit(
    source=f"{DPAR}, option II",
    row=ONE_ROW,
    reading="option II, the values given the indices",
)
def dp_appr_em_values_given(value_epsilon=1.0, nodes=4):
    """Given the indices, the K clipped values with Lap(KC₂/ε₂) are ε₂-node DP.

    True, and exactly ε₂.
    """
    rows = PublicRows(nodes)
    return Audit(
        mechanism=SelectedValues(value_epsilon, (1, 2), rows),
        claim=PureDP(value_epsilon),
        pairs=Nodes(nodes),
        controls=[SelectedValues(4 * value_epsilon, (1, 2), rows)],
        play=hub_changed(nodes),
        calls=60_000,
    )


# The matrix of all rows.


def budget_of_entries(epsilon, rows, k, delta):
    """Return the ε of the entries' noise for (ε_g, 2Mδ) of M rows, by Theorem 1 and Corollary 1."""
    return entry_epsilon(share_of_row(epsilon, rows, delta), k, delta)


@audit(
    source=f"{DPAR}, Theorem 1",
    row=MATRIX,
    reading="public rows, one node's edges replaced",
)
def dp_appr_em_matrix(epsilon=1.0, k=2, delta=1e-3, nodes=4):
    """The K largest of each of M public rows, with ε₁ = ε_g/(2√(M ln(e + ε_g/(2Mδ)))), are (ε_g, 2Mδ)-node DP.

    True here.

    M = 2 rows of four ids, where ε₁ spends a sixth of ε_g on each; where the formula itself ends is for accountants.
    """
    seeds = (0, 1)
    each = budget_of_entries(epsilon, len(seeds), k, delta)
    return Audit(
        mechanism=DPApprEM(each, k, PublicRows(nodes, seeds)),
        claim=ApproxDP(epsilon, 2 * len(seeds) * delta),
        pairs=Nodes(nodes),
        controls=[DPApprEM(40 * each, k, PublicRows(nodes, seeds))],
        play=hub_changed(nodes),
        calls=60_000,
        equivalent_mutants=twice(".221 of 1"),
    )


@audit(
    source=f"{DPAR}, Theorem 1 with δ ≈ 1/#training nodes",
    expect="violation",
    row=MATRIX,
    reading="as deployed: rows sampled among the nodes, selected among the nodes; a node added or removed",
    smallest={"nodes": range(3, 6)},
)
def dp_appr_em_deployed(epsilon=1.0, k=2, count=1, nodes=4):
    """M rows of sampled nodes, with indices among the N nodes that there are, are (ε_g, 2Mδ)-node DP for δ = 1/N.

    Whoever is sampled or selected is there. A node with small entries is among the K of a row with probability near K/N, so
    in the release with some M(K+1)/N, which is more than 2Mδ = 2M/N for K > 1, whatever ε is. All ids but one are there in
    the pairs that are compared.
    """
    delta = 1 / nodes
    each = budget_of_entries(epsilon, count, k, delta)
    return Audit(
        mechanism=DPApprEM(each, k, SampledRows(nodes, count), candidates="present"),
        claim=ApproxDP(epsilon, 2 * count * delta),
        pairs=Nodes(nodes, "removed", loops=True),
        exhaustive=False,
        calls=5_000,
    )


@audit(
    source=f"{DPAR}, Theorem 1 with a δ below 1/(2N)",
    expect="violation",
    row=MATRIX,
    reading="rows sampled among the nodes, selected among public ids; a node added or removed",
    smallest={"nodes": range(2, 6)},
)
def dp_appr_em_sampled(epsilon=1.0, k=2, count=1, nodes=4, delta_of_node=0.25):
    """M rows of sampled nodes, with indices among public ids, are (ε_g, 2Mδ)-node DP for δ = 1/(4N).

    A node is sampled with probability M/N, and its row names it: no δ below 1/(2N) can hold, whatever the noise.
    """
    delta = delta_of_node / nodes
    each = budget_of_entries(epsilon, count, k, delta)
    return Audit(
        mechanism=DPApprEM(each, k, SampledRows(nodes, count)),
        claim=ApproxDP(epsilon, 2 * count * delta),
        pairs=Nodes(nodes, "removed", loops=True),
        exhaustive=False,
        calls=5_000,
    )


@audit(
    source="derived here",
    row=MATRIX,
    reading="public rows and public ids; a node added or removed",
    repairs="dp_appr_em_deployed",
)
def dp_appr_em_public(epsilon=1.0, k=2, delta=1e-3, nodes=4):
    """The K largest of each of M public rows, among all ids of a public universe, are (ε_g, 2Mδ)-node DP.

    True here.

    An id whose node is not there has entries 0 and, for a row, 0 everywhere; it is sampled and selected like any other.
    """
    seeds = (0, 1)
    each = budget_of_entries(epsilon, len(seeds), k, delta)
    pairs = Nodes(nodes, "removed", loops=True)
    return Audit(
        mechanism=DPApprEM(each, k, PublicRows(nodes, seeds)),
        claim=ApproxDP(epsilon, 2 * len(seeds) * delta),
        pairs=pairs,
        controls=[
            DPApprEM(60 * each, k, PublicRows(nodes, seeds)),
            DPApprEM(each, k, PublicRows(nodes, seeds), candidates="present"),
        ],
        play=leaf_removed(nodes),
        calls=60_000,
        equivalent_mutants=twice(".178 of 1"),
        cost="rows and indices are spent on ids whose node is not there: of K selected ids a share is nobody",
    )


@audit(
    source="derived here",
    row=MATRIX,
    reading="rows sampled among public ids; a node added or removed",
    repairs="dp_appr_em_sampled",
)
def dp_appr_em_sampled_ids(epsilon=1.0, k=2, count=1, delta=1e-3, nodes=3):
    """M rows of ids sampled from a public universe, whoever is there, are (ε_g, 2Mδ)-node DP.

    True here, for any δ.
    """
    each = budget_of_entries(epsilon, count, k, delta)
    rows, pairs = (
        SampledRows(nodes, count, "universe"),
        Nodes(nodes, "removed", loops=True),
    )
    return Audit(
        mechanism=DPApprEM(each, k, rows),
        claim=ApproxDP(epsilon, 2 * count * delta),
        pairs=pairs,
        controls=[
            DPApprEM(40 * each, k, rows),
            DPApprEM(each, k, SampledRows(nodes, count)),
        ],
        play=leaf_removed(nodes),
        calls=60_000,
        equivalent_mutants=SAMPLED_EQUIVALENTS | twice(".086 of 1"),
        cost="of M sampled ids, a share is nobody's: as many rows are lost as ids are absent",
    )
