"""Blink: noisy neighbour lists and degrees of users who hide their links, as stated, for both ends of a link, and searched.

Only the abstract and the published code were read (see ``audits.papers.blink``). The law of a message is finite here, and
all pairs of a few users are computed.
"""

from fractions import Fraction

from auditdp import Audit, EdgeLDP, ListsLDP, Pair, PureDP, Relationship, audit
from audits.graphs import graph
from mechanisms.link_ldp import LinkMessage, LinkMessages

BLINK = "Zhu, Tan & Xiao 2023 (Blink), arXiv:2309.03190"
CODE = "Blink's code, zhxchd/Blink_GNN at 947ec30c"
SHARE = Fraction(1, 10)


@audit(source=f"{BLINK}, abstract; client.py", row="Blink", reading="one user's message, as stated")
def blink_message(epsilon=1.0, nodes=4):
    """A noisy degree (share δ of the budget) and a noisy neighbour list (the rest) together are ε-link LDP."""
    return Audit(
        mechanism=LinkMessage(epsilon, SHARE),
        claim=PureDP(epsilon),
        pairs=EdgeLDP(nodes),
        controls=[LinkMessage(2 * epsilon, SHARE)],
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
        mechanism=LinkMessages(LinkMessage(epsilon, SHARE), nodes), claim=PureDP(epsilon), pairs=Relationship(nodes)
    )


@audit(source="derived here", row="Blink", reading="an undirected link, at twice the budget", repairs="blink_link")
def blink_link_doubled(epsilon=1.0, nodes=3):
    """The messages of all users of an undirected graph are 2ε-DP for a link."""
    return Audit(
        mechanism=LinkMessages(LinkMessage(epsilon, SHARE), nodes),
        claim=PureDP(2 * epsilon),
        pairs=Relationship(nodes),
        play=[Pair(graph(nodes, (0, 1)), graph(nodes), "a link | none")],
        controls=[LinkMessages(LinkMessage(2 * epsilon, SHARE), nodes)],
        cost="ε/2 for every message where a link is to have ε",
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
    return Audit(mechanism=LinkMessages(LinkMessage(epsilon, SHARE), 2, runs), claim=PureDP(epsilon), pairs=ListsLDP(2))


@audit(source="derived here", row="Blink", reading="a search on one set of messages", repairs="blink_search")
def blink_search_once(epsilon=1.0, runs=2):
    """Messages that every run gets its share of the budget for are ε-link LDP together."""
    return Audit(
        mechanism=LinkMessages(LinkMessage(epsilon / runs, SHARE), 2, runs),
        claim=PureDP(epsilon),
        pairs=ListsLDP(2),
        controls=[LinkMessages(LinkMessage(epsilon, SHARE), 2, runs)],
        cost="nothing where the server keeps one set of messages and tunes on it",
    )
