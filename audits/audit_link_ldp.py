"""Blink: noisy neighbour lists and degrees of users who hide their links, as stated, for both ends of a link, and searched.

Only the abstract and the published code were read (see ``audits.papers.blink``). The law of a message is finite here, and
all pairs of a few users are computed.
"""

from fractions import Fraction

from auditdp import Audit, NeighbourList, NeighbourLists, PureDP, Relationship, audit
from mechanisms.link_ldp import LinkMessage, LinkMessages

BLINK = "Zhu, Tan & Xiao 2023 (Blink), arXiv:2309.03190"
CODE = "Blink's code, zhxchd/Blink_GNN at 947ec30c"
SHARE = Fraction(7, 10)
"""One of the shares for the degree that the published search tries."""


@audit(
    source=f"{BLINK}, abstract; client.py",
    row="Blink",
    reading="one user's message, as stated",
)
def blink_message(epsilon=1.2, nodes=3):
    """A noisy degree (share δ of the budget) and a noisy neighbour list (the rest) together are ε-link LDP."""
    return Audit(
        mechanism=LinkMessage(epsilon, SHARE),
        claim=PureDP(epsilon),
        pairs=NeighbourList(nodes),
        controls=[LinkMessage(2 * epsilon, SHARE)],
        play=NeighbourList(nodes).pairs()[:1],
    )


@audit(
    source=f"a reading of {BLINK}, abstract: 'without revealing the existence of any link'",
    expect="violation",
    row="Blink",
    reading="an undirected link, reported by both of its ends",
    smallest={"nodes": range(2, 4)},
)
def blink_link(epsilon=1.0, nodes=2):
    """The messages of all users of an undirected graph are ε-DP for a link."""
    return Audit(
        mechanism=LinkMessages(LinkMessage(epsilon, SHARE), nodes),
        claim=PureDP(epsilon),
        pairs=Relationship(nodes),
    )


@audit(
    source=f"{CODE}, scripts/run_blink.py, grid search",
    expect="violation",
    row="Blink",
    reading="published code: fresh messages for every run of the search",
    smallest={"runs": range(1, 3)},
)
def blink_search(epsilon=1.0, runs=1):
    """All messages of one of two users, in as many runs as the server asks for, are ε-link LDP."""
    return Audit(
        mechanism=LinkMessages(LinkMessage(epsilon, SHARE), 2, runs),
        claim=PureDP(epsilon),
        pairs=NeighbourLists(2),
    )
