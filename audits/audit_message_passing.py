"""Message passing with noise: hops that contract and the embedding of CARIBOU's code; neighbour lists embedded by DPDGC's.

Of both papers only abstracts and published code were read (see ``audits.papers.caribou`` and ``audits.papers.decoupled``).
An audit of code is about what its lines do on the smallest graphs that show it.
"""

import numpy as np

from auditdp import AnyValues, Audit, Edges, GaussianDP, audit
from mechanisms.message_passing import (
    AllIterations,
    CaribouEmbedding,
    ContractiveIterations,
    FeaturesAgree,
    NeighbourEmbedding,
    NoisyHop,
)
from mechanisms.validation import all_bits

CARIBOU = "Zheng et al. 2025 (CARIBOU), arXiv:2506.22727"
CARIBOU_CODE = "CARIBOU's code, yuzhengcuhk/caribou-public at bc7bf38f"
DPDGC_CODE = "DPDGC's code, thupchnsky/dp-gnn at 6ea28473"

DEPTH_EQUIVALENTS = {
    "noise reused: draw 1, standard_normal*": "noise that is the same in all hops adds up as the shift does: μ = s/σ"
}
"""Why mutants keep the claim of the last hop."""


@audit(
    source=f"{CARIBOU}, abstract; calibrate() of its code",
    row="CARIBOU",
    reading="loss that converges with depth",
)
def caribou_depth(lipschitz=0.5, sensitivity=1.0, sigma=2.0, hops=16):
    """K noisy hops that contract with c count as min{K, (1 − c^K)(1 + c)/((1 + c^K)(1 − c))} if the last is released."""
    mechanism = ContractiveIterations(lipschitz, sensitivity, sigma, hops)
    return Audit(
        mechanism=mechanism,
        claim=GaussianDP(mechanism.mu),
        pairs=AnyValues([0, 1]),
        controls=[AllIterations(lipschitz, sensitivity, sigma, hops)],
        equivalent_mutants=DEPTH_EQUIVALENTS,
    )


@audit(
    source=f"{CARIBOU_CODE}, caribou_inf.py, the last line of the loop",
    expect="violation",
    row="CARIBOU",
    reading="published code: an aggregation after the noise",
    smallest={"nodes": range(2, 4)},
)
def caribou_embedding(noise=4.0, nodes=2):
    """The embedding of one noisy hop that is aggregated once more without noise is 1/λ-Gaussian DP for an edge."""
    return Audit(
        mechanism=FeaturesAgree(CaribouEmbedding(noise, nodes)),
        claim=GaussianDP(1 / noise),
        pairs=Edges(nodes),
    )


@audit(
    source="derived here",
    row="CARIBOU",
    reading="the noisy hop itself, the code's sensitivity",
    repairs="caribou_embedding",
)
def caribou_noisy_hop(noise=2.0, nodes=4):
    """One noisy hop that is released as it is, with the code's sensitivity, is 1/λ-Gaussian DP for an edge."""
    return Audit(
        mechanism=NoisyHop(noise, nodes),
        claim=GaussianDP(1 / noise),
        pairs=Edges(nodes),
        play=Edges(nodes).pairs()[:1],
        controls=[NoisyHop(noise / 3, nodes)],
        cost="the classifier sees one aggregation less for the same noise",
    )


def neighbours(others, max_degree):
    """Any two sets of at most D nodes that have the replaced node as a neighbour."""
    lists = all_bits(others)
    return AnyValues(
        list(lists[lists.sum(axis=1) <= max_degree]),
        finite=True,
        label="a replaced node's neighbours",
    )


@audit(
    source=f"{DPDGC_CODE}, perturb() of dpdgc_ndp.py",
    row="DPDGC",
    reading="embedding, rows of W scaled to s",
)
def dpdgc_embedding(noise=1.0, max_degree=2, others=4):
    """The embedding A·W with noise λ·s·√(2D) is 1/λ-Gaussian DP for a replaced node if the rows of W have norm s."""
    return Audit(
        mechanism=NeighbourEmbedding(noise, 1.0, max_degree),
        claim=GaussianDP(1 / noise),
        pairs=neighbours(others, max_degree),
        play=neighbours(others, max_degree).pairs()[:1],
        controls=[NeighbourEmbedding(noise / 2, 1.0, max_degree)],
    )


@audit(
    source=f"{DPDGC_CODE}, AdjEncoderModule.predict() and --norm-scale 1e-8",
    expect="violation",
    row="DPDGC",
    reading="published code: rows of W that are not scaled",
)
def dpdgc_embedding_unscaled(
    noise=1.0, norm_scale=1e-8, max_degree=2, others=4, weight=0.03
):
    """The embedding A·W of the code, whose rows of W keep the norm that they are trained to, is 1/λ-Gaussian DP."""
    return Audit(
        mechanism=NeighbourEmbedding(noise, norm_scale, max_degree, weight),
        claim=GaussianDP(1 / noise),
        pairs=neighbours(others, max_degree),
    )


@audit(
    source="derived here",
    row="DPDGC",
    reading="noise for the norm that the rows have",
    repairs="dpdgc_embedding_unscaled",
)
def dpdgc_embedding_measured(noise=1.0, max_degree=2, others=4, weight=0.03):
    """The embedding A·W is 1/λ-Gaussian DP if s is a public bound on the rows of W, and W is scaled to it."""
    return Audit(
        mechanism=NeighbourEmbedding(
            noise, weight, max_degree, np.nextafter(weight, 0)
        ),
        claim=GaussianDP(1 / noise),
        pairs=neighbours(others, max_degree),
        play=neighbours(others, max_degree).pairs()[:1],
        controls=[NeighbourEmbedding(noise / 2, weight, max_degree, weight)],
        cost="noise in proportion to the weights, as intended",
    )
